//! Forwarding to a far side that takes, stalls, refuses and comes back.

use std::sync::atomic::AtomicBool;

use bytes::Bytes;

use super::*;
use crate::pipeline;
use crate::source::intake::{Bounds, Signal, channel};
use crate::source::notices::Notices;
use crate::source::otlp::{Address, Bound, Endpoint};
use crate::store::{Limits, Store};
use parking_lot::FairMutex;
use tokio::sync::oneshot;

fn quiet() -> Alarm {
    Arc::new(|_: &str| {})
}

fn settings(url: &str, gzip: bool) -> Settings {
    Settings {
        target: Target::parse(url).unwrap(),
        headers: HeaderMap::new(),
        gzip,
        waiting: WAITING,
        files: trust::Files::default(),
    }
}

/// Waits until something holds.
fn until(what: &str, holds: impl Fn() -> bool) {
    let end = Instant::now() + Duration::from_secs(30);
    while !holds() {
        assert!(Instant::now() < end, "waited in vain for: {what}");
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// Our own endpoint as the far side; keeps what it was sent.
struct Far {
    bound: Option<Bound>,
    runtime: tokio::runtime::Runtime,
    got: Arc<Mutex<Vec<(Signal, Bytes)>>>,
}

struct Keep(Arc<Mutex<Vec<(Signal, Bytes)>>>);

impl Tap for Keep {
    fn take(&mut self, item: &Item) {
        self.0.lock().push((item.signal, item.bytes.clone()));
    }
}

fn bind() -> Bound {
    let any = || Address::Exactly((crate::own::loopback(), 0).into());
    Endpoint::bind(crate::source::otlp::Settings { grpc: any(), http: any(), ..Default::default() }).unwrap()
}

impl Far {
    fn new() -> Self {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        Self { bound: Some(bind()), runtime, got: Arc::default() }
    }

    /// Serves until the sender is dropped or told.
    fn serve(&mut self) -> (oneshot::Sender<()>, tokio::task::JoinHandle<std::io::Result<()>>) {
        self.serve_and_pass_on(None)
    }

    /// Serves, and hands on what comes.
    fn serve_and_pass_on(
        &mut self,
        onward: Option<Forwarder>,
    ) -> (oneshot::Sender<()>, tokio::task::JoinHandle<std::io::Result<()>>) {
        let (intake, outlet) = channel(Bounds::default());
        let store = Arc::new(FairMutex::new(Store::new(Limits::default())));
        let keep: Box<dyn Tap> = Box::new(Keep(Arc::clone(&self.got)));
        let onward = onward.map(|onward| Box::new(onward) as Box<dyn Tap>);
        pipeline::start_with(outlet, store, Arc::new(|| 7), onward.into_iter().chain([keep]).collect(), || {}).unwrap();
        let (stop, stopped) = oneshot::channel::<()>();
        let bound = self.bound.take().unwrap();
        let serving = self.runtime.spawn(bound.serve(intake, Notices::default(), async {
            let _ = stopped.await;
        }));
        (stop, serving)
    }
}

fn span(number: u64) -> Bytes {
    use crate::lifecycle::packed::put_bytes;
    let mut bytes = Vec::new();
    put_bytes(&mut bytes, 1, &[7; 16]);
    put_bytes(&mut bytes, 2, &(number + 1).to_be_bytes());
    put_bytes(&mut bytes, 5, b"request.lifecycle");
    // A field that no version knows: it goes on all the same.
    put_bytes(&mut bytes, 1999, b"kept");
    for field in [2, 2, 1] {
        let inner = std::mem::take(&mut bytes);
        put_bytes(&mut bytes, field, &inner);
    }
    bytes.into()
}

#[test]
fn forwarded_equals_received_through_a_restart_of_the_far_side() {
    for (scheme, gzip) in [("grpc", false), ("grpc", true), ("http", false), ("http", true)] {
        let mut far = Far::new();
        let bound = far.bound.as_ref().unwrap();
        let address = if scheme == "grpc" { bound.grpc()[0] } else { bound.http()[0] };
        let (grpc, http) = (bound.grpc()[0], bound.http()[0]);
        let (mut forwarder, forwarding) =
            Forwarding::start(settings(&format!("{scheme}://{address}"), gzip), quiet()).unwrap();
        let (stop, serving) = far.serve();
        let sent: Vec<Bytes> = (0..40).map(span).collect();
        for bytes in &sent[..15] {
            forwarder.take(&Item::straight(Signal::Traces, bytes, 1));
        }
        until("the first exports", || forwarding.standing().forwarded == 15);
        drop(stop);
        far.runtime.block_on(serving).unwrap().unwrap();
        for bytes in &sent[15..] {
            forwarder.take(&Item::straight(Signal::Traces, bytes, 1));
        }
        until("a try that fails", || forwarding.standing().retried > 0);
        assert!(forwarding.standing().trouble.is_some() && forwarding.standing().waiting == 25);
        let exactly = Address::Exactly;
        let again = crate::source::otlp::Settings { grpc: exactly(grpc), http: exactly(http), ..Default::default() };
        far.bound = Some(Endpoint::bind(again).unwrap());
        let (stop, serving) = far.serve();
        until("all exports", || forwarding.standing().forwarded == 40);
        drop(forwarder);
        let standing = forwarding.finish(|_| true);
        assert_eq!((standing.dropped, standing.refused, standing.waiting), (0, 0, 0));
        drop(stop);
        far.runtime.block_on(serving).unwrap().unwrap();
        let mut got: Vec<Bytes> = far.got.lock().iter().map(|(_, bytes)| bytes.clone()).collect();
        let mut sent = sent.clone();
        // Several are under way at once; one whose answer was lost comes twice.
        got.sort();
        got.dedup();
        sent.sort();
        assert!(got == sent, "{scheme} {gzip}: {} of {}", got.len(), sent.len());
    }
}

#[test]
fn two_that_forward_to_each_other_pass_everything_on_once() {
    for scheme in ["grpc", "http"] {
        let mut both = [Far::new(), Far::new()];
        let address = |far: &Far| {
            let bound = far.bound.as_ref().unwrap();
            if scheme == "grpc" { bound.grpc()[0] } else { bound.http()[0] }
        };
        let alarms = Arc::new(AtomicU64::new(0));
        let toward = |far: &Far| {
            let heard = Arc::clone(&alarms);
            let alarm: Alarm = Arc::new(move |words: &str| {
                assert!(words.contains("comes back from there"), "{words}");
                heard.fetch_add(1, Ordering::SeqCst);
            });
            Forwarding::start(settings(&format!("{scheme}://{}", address(far)), false), alarm).unwrap()
        };
        // The first forwards to the second, and the second to the first.
        let ((first_out, first), (second_out, second)) = (toward(&both[1]), toward(&both[0]));
        let (mut sender, sending) = toward(&both[0]);
        let stops = [both[0].serve_and_pass_on(Some(first_out)).0, both[1].serve_and_pass_on(Some(second_out)).0];
        for number in 0..10 {
            sender.take(&Item::straight(Signal::Traces, &span(number), 1));
        }
        until("all of it coming back", || first.standing().came_back == 10);
        let told = |forwarding: &Forwarding| {
            let Standing { forwarded, came_back, dropped, refused, .. } = forwarding.standing();
            (forwarded, came_back, dropped + refused)
        };
        // The answers to the last of it may still be on their way.
        until("all answers", || told(&second) == (10, 0, 0));
        assert_eq!(told(&first), (10, 10, 0), "{scheme}");
        assert_eq!(told(&sending), (10, 0, 0), "{scheme}");
        assert_eq!(alarms.load(Ordering::SeqCst), 1);
        let got = both.each_ref().map(|far| far.got.lock().len());
        assert_eq!(got, [20, 10], "{scheme}: each export once, and once more where it came back");
        drop(stops);
    }
}

#[test]
fn what_finds_no_room_is_counted_and_nobody_waits() {
    // Bound, and never served: connections queue and no answer comes.
    let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", silent.local_addr().unwrap());
    let (mut forwarder, forwarding) =
        Forwarding::start(Settings { waiting: 2_000, ..settings(&url, false) }, quiet()).unwrap();
    let began = Instant::now();
    for number in 0..1000 {
        forwarder.take(&Item::straight(Signal::Traces, &span(number), 1));
    }
    forwarder.take(&Item::straight(Signal::Metrics, &Bytes::new(), 1));
    forwarder.take(&Item::straight(Signal::Traces, &Bytes::new(), 1));
    assert!(began.elapsed() < Duration::from_secs(20));
    let standing = forwarding.standing();
    assert!(standing.waiting > 5 && standing.waiting_bytes <= 2_000, "{standing:?}");
    assert_eq!(standing.waiting + standing.dropped, 1000);
}

/// A far side over HTTP that gives these answers, one a request.
fn scripted(answers: Vec<String>) -> (String, Arc<Mutex<Vec<String>>>) {
    use std::io::{BufRead, BufReader, Read, Write};
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/base", listener.local_addr().unwrap());
    let heads = Arc::<Mutex<Vec<String>>>::default();
    let seen = Arc::clone(&heads);
    std::thread::spawn(move || {
        for answer in answers {
            let (mut stream, _) = listener.accept().unwrap();
            let mut reader = BufReader::new(stream.try_clone().unwrap());
            let (mut head, mut length) = (String::new(), 0);
            loop {
                let mut line = String::new();
                reader.read_line(&mut line).unwrap();
                if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
                    length = value.trim().parse().unwrap();
                }
                if line.trim().is_empty() {
                    break;
                }
                head += &line;
            }
            reader.read_exact(&mut vec![0; length]).unwrap();
            seen.lock().push(head);
            stream.write_all(answer.as_bytes()).unwrap();
        }
    });
    (url, heads)
}

fn answer(status: &str, headers: &str, body: &str) -> String {
    format!("HTTP/1.1 {status}\r\nConnection: close\r\n{headers}Content-Length: {}\r\n\r\n{body}", body.len())
}

#[test]
fn answers_mean_what_the_specification_says() {
    let partial = "\n\x07\x08\x02\x12\x03why";
    let (url, heads) = scripted(vec![
        answer("429 Too Many Requests", "Retry-After: 1\r\n", "slow down"),
        answer("503 Service Unavailable", "", ""),
        answer("200 OK", "Content-Type: application/x-protobuf\r\n", partial),
        answer("400 Bad Request", "", "not like this\x1b[31m"),
        answer("200 OK", "", ""),
    ]);
    let mut headers = HeaderMap::new();
    let (name, value) = crate::source::remote::client::header("Authorization=Bearer hush").unwrap();
    headers.insert(name, value);
    let alarmed = Arc::new(AtomicBool::new(false));
    let heard = Arc::clone(&alarmed);
    let alarm: Alarm = Arc::new(move |words: &str| {
        assert!(words.contains("refuses") && words.contains("400") && !words.contains("hush"), "{words}");
        heard.store(true, Ordering::Relaxed);
    });
    let all = Settings { headers, ..settings(&url, true) };
    assert!(!format!("{all:?}").contains("hush"));
    let (mut forwarder, forwarding) = Forwarding::start(all, alarm).unwrap();
    let began = Instant::now();
    forwarder.take(&Item::straight(Signal::Traces, &span(1), 1));
    until("the first to be taken", || forwarding.standing().forwarded == 1);
    assert!(began.elapsed() >= Duration::from_secs(1), "the far side asked for a second");
    let standing = forwarding.standing();
    assert_eq!((standing.retried, standing.rejected, standing.refused), (2, 2, 0));
    assert!(standing.trouble.unwrap().contains("why"));
    forwarder.take(&Item::straight(Signal::Logs, &span(2), 1));
    until("the second to be refused", || forwarding.standing().refused == 1);
    assert!(alarmed.load(Ordering::Relaxed));
    forwarder.take(&Item::straight(Signal::Logs, &span(3), 1));
    drop(forwarder);
    let standing = forwarding.finish(|_| true);
    assert_eq!((standing.forwarded, standing.refused, standing.dropped, standing.trouble), (2, 1, 0, None));
    let heads = heads.lock();
    assert!(heads[0].starts_with("POST /base/v1/traces ") && heads[3].starts_with("POST /base/v1/logs "));
    let head = heads[0].to_ascii_lowercase();
    for line in ["authorization: bearer hush", "content-encoding: gzip", "content-type: application/x-protobuf"] {
        assert!(head.contains(line), "{head}");
    }
}

/// What others' servers are made from: tonic's generated service. The first export is turned away with a `RetryInfo`.
mod generated {
    use opentelemetry_proto::tonic::collector::trace::v1::trace_service_server::{TraceService, TraceServiceServer};
    use opentelemetry_proto::tonic::collector::trace::v1::{
        ExportTracePartialSuccess, ExportTraceServiceRequest, ExportTraceServiceResponse,
    };
    use tonic::{Request, Response, Status};

    use super::*;

    #[derive(Clone, Default)]
    struct Service {
        asked: Arc<AtomicU64>,
        got: Arc<Mutex<Vec<ExportTraceServiceRequest>>>,
    }

    #[tonic::async_trait]
    impl TraceService for Service {
        async fn export(
            &self,
            request: Request<ExportTraceServiceRequest>,
        ) -> Result<Response<ExportTraceServiceResponse>, Status> {
            assert_eq!(request.metadata().get("x-scope-orgid").unwrap(), "team");
            match self.asked.fetch_add(1, Ordering::Relaxed) {
                0 => {
                    let mut details = Vec::new();
                    // A Status whose details hold a RetryInfo of 0.3 s.
                    let info = [&b"\n\x06\x10\x80\xc6\x86\x8f\x01"[..]].concat();
                    let name = b"type.googleapis.com/google.rpc.RetryInfo";
                    let any = [&[0x0a, name.len() as u8][..], name, &[0x12, info.len() as u8], &info].concat();
                    details.extend_from_slice(&[0x1a, any.len() as u8]);
                    details.extend_from_slice(&any);
                    Err(Status::with_details(tonic::Code::ResourceExhausted, "later", details.into()))
                }
                1 => Err(Status::permission_denied("not you")),
                2 => {
                    self.got.lock().push(request.into_inner());
                    let partial = ExportTracePartialSuccess { rejected_spans: 1, error_message: "odd".into() };
                    Ok(Response::new(ExportTraceServiceResponse { partial_success: Some(partial) }))
                }
                _ => {
                    self.got.lock().push(request.into_inner());
                    Ok(Response::new(ExportTraceServiceResponse::default()))
                }
            }
        }
    }

    #[test]
    fn a_generated_service_gets_what_was_received_and_its_answers_are_understood() {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        let service = Service::default();
        let listener = runtime.block_on(tokio::net::TcpListener::bind("127.0.0.1:0")).unwrap();
        let url = format!("grpc://{}", listener.local_addr().unwrap());
        let path = "/opentelemetry.proto.collector.trace.v1.TraceService/{method}";
        let services = axum::Router::new().route_service(path, TraceServiceServer::new(service.clone()));
        runtime.spawn(async move { axum::serve(listener, services).await });
        let mut headers = HeaderMap::new();
        headers.insert("x-scope-orgid", http::HeaderValue::from_static("team"));
        let (mut forwarder, forwarding) =
            Forwarding::start(Settings { headers, ..settings(&url, false) }, quiet()).unwrap();
        let began = Instant::now();
        forwarder.take(&Item::straight(Signal::Traces, &span(1), 1));
        until("the first to be refused", || forwarding.standing().refused == 1);
        assert!(began.elapsed() >= Duration::from_millis(300), "the far side asked for a while");
        assert!(forwarding.standing().trouble.unwrap().contains("not you"));
        forwarder.take(&Item::straight(Signal::Traces, &span(2), 1));
        until("the second", || forwarding.standing().forwarded == 1);
        assert_eq!((forwarding.standing().rejected, forwarding.standing().retried), (1, 1));
        forwarder.take(&Item::straight(Signal::Traces, &span(3), 1));
        drop(forwarder);
        assert_eq!(forwarding.finish(|_| true).forwarded, 2);
        let ids: Vec<Vec<u8>> = service
            .got
            .lock()
            .iter()
            .map(|request| request.resource_spans[0].scope_spans[0].spans[0].span_id.clone())
            .collect();
        assert_eq!(ids, [3u64, 4].map(|id| id.to_be_bytes().to_vec()));
    }
}

#[test]
fn the_end_waits_no_longer_than_whoever_waits_wants_to() {
    let (mut forwarder, forwarding) = Forwarding::start(settings("grpc://127.0.0.1:1", false), quiet()).unwrap();
    forwarder.take(&Item::straight(Signal::Traces, &span(1), 1));
    drop(forwarder);
    let mut asked = 0;
    let standing = forwarding.finish(|waited| {
        asked += 1;
        assert!(waited < LAST_CALL);
        asked < 3
    });
    assert_eq!((asked, standing.waiting), (3, 1));
}
