//! The endpoint over real sockets: what clients of all kinds send, and what they hear back. Numbers like B16 are those of
//! the known field cases.

use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use flate2::Compression;
use flate2::write::{GzEncoder, ZlibEncoder};
use opentelemetry_proto::tonic::collector::logs::v1::ExportLogsServiceRequest;
use opentelemetry_proto::tonic::collector::logs::v1::logs_service_client::LogsServiceClient;
use opentelemetry_proto::tonic::collector::metrics::v1::ExportMetricsServiceRequest;
use opentelemetry_proto::tonic::collector::metrics::v1::metrics_service_client::MetricsServiceClient;
use opentelemetry_proto::tonic::collector::trace::v1::trace_service_client::TraceServiceClient;
use opentelemetry_proto::tonic::collector::trace::v1::{ExportTraceServiceRequest, ExportTraceServiceResponse};
use prost::Message;
use reqtop::source::decode;
use reqtop::source::intake::{Bounds, Intake, Outlet, Receipt, Refusal, channel};
use reqtop::source::notices::{Notice, Notices};
use reqtop::source::otlp::{Address, Endpoint, Settings};
use tokio::runtime::Runtime;
use tokio::sync::oneshot;
use tonic::codec::CompressionEncoding;
use tonic::transport::Channel;
use tonic::{Code, Request};

#[path = "common/own.rs"]
mod own;

/// What the writer took in.
#[derive(Clone, Default, Debug)]
struct Taken {
    spans: Vec<(String, u64)>,
    records: usize,
    signs: usize,
    points: u64,
    other_logs: u64,
    snake_case: u64,
}

/// A served endpoint with a writer that counts.
struct House {
    runtime: Runtime,
    grpc: SocketAddr,
    http: SocketAddr,
    notices: Notices,
    taken: Arc<Mutex<Taken>>,
    stop: Option<oneshot::Sender<()>>,
    served: Option<tokio::task::JoinHandle<std::io::Result<()>>>,
    writer: Option<JoinHandle<()>>,
}

fn settings() -> Settings {
    Settings { grpc: Address::Loopback(0), http: Address::Loopback(0), ..Settings::default() }
}

fn write(mut outlet: Outlet, taken: Arc<Mutex<Taken>>) {
    while let Some(mut delivery) = outlet.recv() {
        let outcome = decode(&mut delivery.payload).map_err(Refusal::Malformed).map(|batch| {
            let mut taken = taken.lock().unwrap();
            let name = |name: &[u8]| String::from_utf8_lossy(name).into_owned();
            taken.spans.extend(batch.spans.iter().map(|span| (name(span.name), span.start_ns)));
            taken.records += batch.records.len();
            taken.signs += batch.signs.len();
            taken.points += batch.tally.metric_points;
            taken.other_logs += batch.tally.other_logs;
            taken.snake_case += batch.tally.snake_case;
            Receipt::of(&batch)
        });
        delivery.answer(outcome);
    }
}

impl House {
    fn open() -> Self {
        Self::with(settings())
    }

    fn with(settings: Settings) -> Self {
        let (intake, outlet) = channel(Bounds::default());
        let taken: Arc<Mutex<Taken>> = Arc::default();
        let writer = {
            let taken = Arc::clone(&taken);
            std::thread::spawn(move || write(outlet, taken))
        };
        let mut house = Self::around(settings, intake);
        house.writer = Some(writer);
        house.taken = taken;
        house
    }

    /// Serves, leaving the writer to the caller.
    fn around(settings: Settings, intake: Intake) -> Self {
        let bound = Endpoint::bind(settings).unwrap();
        let (grpc, http) = (bound.grpc()[0], bound.http()[0]);
        let notices = Notices::default();
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
        let (stop, stopped) = oneshot::channel();
        let shutdown = async {
            let _ = stopped.await;
        };
        let served = runtime.spawn(bound.serve(intake, notices.clone(), shutdown));
        let taken = Arc::default();
        Self { runtime, grpc, http, notices, taken, stop: Some(stop), served: Some(served), writer: None }
    }

    fn taken(&self) -> Taken {
        self.taken.lock().unwrap().clone()
    }

    fn connect(&self) -> Channel {
        let address = format!("http://{}", self.grpc);
        self.runtime.block_on(Channel::from_shared(address).unwrap().connect()).unwrap()
    }

    /// Ends it; gives how long that took.
    fn close(&mut self) -> Duration {
        let start = Instant::now();
        let _ = self.stop.take().unwrap().send(());
        self.runtime.block_on(self.served.take().unwrap()).unwrap().unwrap();
        start.elapsed()
    }

    /// Posts JSON to `/v1/traces`.
    fn json(&self, body: impl AsRef<[u8]>) -> Answer {
        self.post("/v1/traces", &[("Content-Type", "application/json")], body.as_ref())
    }

    fn protobuf(&self, body: &[u8]) -> Answer {
        self.post("/v1/traces", &[("Content-Type", "application/x-protobuf")], body)
    }

    fn post(&self, path: &str, headers: &[(&str, &str)], body: &[u8]) -> Answer {
        self.send("POST", path, headers, body)
    }

    fn send(&self, method: &str, path: &str, headers: &[(&str, &str)], body: &[u8]) -> Answer {
        let mut stream = TcpStream::connect(self.http).unwrap();
        let mut head = format!("{method} {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n");
        for (name, value) in headers {
            head += &format!("{name}: {value}\r\n");
        }
        head += &format!("Content-Length: {}\r\n\r\n", body.len());
        stream.write_all(head.as_bytes()).unwrap();
        // The server may refuse before it has read everything.
        let _ = stream.write_all(body);
        Answer::read(stream)
    }
}

impl Drop for House {
    fn drop(&mut self) {
        if self.stop.is_some() {
            self.close();
        }
        if let Some(writer) = self.writer.take() {
            writer.join().unwrap();
        }
    }
}

#[derive(Debug)]
struct Answer {
    status: u16,
    head: String,
    body: Vec<u8>,
}

impl Answer {
    fn read(mut stream: TcpStream) -> Self {
        stream.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
        let mut bytes = Vec::new();
        match stream.read_to_end(&mut bytes) {
            Err(error) if error.kind() != ErrorKind::ConnectionReset => panic!("{error}"),
            _ => {}
        }
        let end = bytes.windows(4).position(|window| window == b"\r\n\r\n").expect("a whole head");
        let head = String::from_utf8(bytes[..end].to_vec()).unwrap().to_ascii_lowercase();
        let status = head.split(' ').nth(1).unwrap().parse().unwrap();
        Self { status, head, body: bytes[end + 4..].to_vec() }
    }

    fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }
}

const SPAN: &str = r#"{"traceId":"0123456789abcdef0123456789abcdef","spanId":"00000000000000a1","parentSpanId":"","name":"http-request","kind":2,"startTimeUnixNano":"1760000000000000000","endTimeUnixNano":"1760000000120000000","attributes":[],"status":{}}"#;

fn wrap(spans: &[&str]) -> String {
    format!(r#"{{"resourceSpans":[{{"resource":{{}},"scopeSpans":[{{"spans":[{}]}}]}}]}}"#, spans.join(","))
}

fn capture(name: &str) -> Vec<u8> {
    let path = format!("{}/tests/fixtures/{name}", env!("CARGO_MANIFEST_DIR"));
    let mut bytes = Vec::new();
    flate2::read::MultiGzDecoder::new(std::fs::File::open(path).unwrap()).read_to_end(&mut bytes).unwrap();
    bytes
}

/// The messages of a capture, each as it came.
fn messages(name: &str) -> Vec<Vec<u8>> {
    let bytes = capture(name);
    let (mut rest, mut messages) = (&bytes[..], Vec::new());
    while !rest.is_empty() {
        let length = prost::decode_length_delimiter(&mut rest).unwrap();
        messages.push(rest[..length].to_vec());
        rest = &rest[length..];
    }
    messages
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

fn zlib(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = ZlibEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

/// B27: plain, gzip and zstd on all three services.
#[test]
fn captures_over_grpc_in_every_compression() {
    let house = House::open();
    let channel = house.connect();
    for compression in [None, Some(CompressionEncoding::Gzip), Some(CompressionEncoding::Zstd)] {
        let before = house.taken();
        house.runtime.block_on(async {
            let mut traces = TraceServiceClient::new(channel.clone());
            let mut logs = LogsServiceClient::new(channel.clone());
            let mut metrics = MetricsServiceClient::new(channel.clone());
            if let Some(compression) = compression {
                traces = traces.send_compressed(compression);
                logs = logs.send_compressed(compression);
                metrics = metrics.send_compressed(compression);
            }
            for message in messages("dev-sim.traces.pb.gz") {
                let request = ExportTraceServiceRequest::decode(&message[..]).unwrap();
                let answer = traces.export(request).await.unwrap().into_inner();
                assert_eq!(answer.partial_success, None);
            }
            for message in messages("dev-sim.logs.pb.gz") {
                let request = ExportLogsServiceRequest::decode(&message[..]).unwrap();
                assert_eq!(logs.export(request).await.unwrap().into_inner().partial_success, None);
            }
            // B22, B25: empty messages are a success.
            let empty = ExportMetricsServiceRequest::default();
            assert_eq!(metrics.export(empty).await.unwrap().into_inner().partial_success, None);
        });
        let after = house.taken();
        assert_eq!(after.spans.len() - before.spans.len(), 1167);
        assert_eq!((after.records - before.records, after.signs - before.signs), (152, 156));
    }
    assert_eq!(house.notices.total(), 0);
}

#[test]
fn captures_over_http_in_every_coding() {
    let house = House::open();
    let mut spans = 0;
    type Code = fn(&[u8]) -> Vec<u8>;
    let codings: [(&str, Code); 6] = [
        ("identity", <[u8]>::to_vec),
        ("gzip", gzip),
        ("x-gzip", gzip),
        ("GZIP", gzip),
        ("zstd", |bytes| zstd::encode_all(bytes, 1).unwrap()),
        ("deflate", zlib),
    ];
    for (name, code) in codings {
        let headers = [("Content-Type", "application/x-protobuf"), ("Content-Encoding", name)];
        for message in messages("dev-sim.traces.pb.gz") {
            let answer = house.post("/v1/traces", &headers, &code(&message));
            assert_eq!((answer.status, answer.body.len()), (200, 0), "{name}: {answer:?}");
        }
        spans += 1167;
        assert_eq!(house.taken().spans.len(), spans, "{name}");
    }
    for (path, file) in [
        ("/v1/traces", "dev-sim.traces.jsonl.gz"),
        ("/v1/logs", "dev-sim.logs.jsonl.gz"),
        ("/v1/metrics", "metrics.metrics.jsonl.gz"),
    ] {
        for line in capture(file).split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
            let headers = [("Content-Type", "application/json"), ("Content-Encoding", "gzip")];
            let answer = house.post(path, &headers, &gzip(line));
            assert_eq!((answer.status, answer.text().as_str()), (200, "{}"));
        }
    }
    let taken = house.taken();
    assert_eq!((taken.spans.len(), taken.records, taken.signs), (spans + 1167, 152, 156));
    assert!(taken.points > 0 && taken.other_logs > 0);
}

#[test]
fn b01_b02_b06_json_of_many_tongues() {
    let house = House::open();
    let base64 = SPAN.replace("0123456789abcdef0123456789abcdef", "ASNFZ4mrze8BI0VniavN7w==");
    let answer = house.json(wrap(&[&base64]));
    assert!(answer.status == 200 && answer.text().contains("\"rejectedSpans\":\"1\""), "{answer:?}");
    assert!(answer.text().contains("traceId") && answer.text().contains("hex"), "{answer:?}");
    assert_eq!(house.taken().spans.len(), 0);

    for time in ["1760000000000000000", "\"1760000000000000000\"", "1.76e18"] {
        let span = SPAN.replace("\"1760000000000000000\"", time);
        assert_eq!(house.json(wrap(&[&span])).status, 200);
    }
    assert!(house.taken().spans.iter().all(|(_, start)| *start == 1_760_000_000_000_000_000));
    let split = SPAN.replace("\"1760000000000000000\"", r#"{"low":1,"high":2}"#);
    let answer = house.json(wrap(&[&split]));
    assert!(answer.status == 400 && answer.text().contains("startTimeUnixNano"), "{answer:?}");

    let answer = house.json(
        r#"{"resource_spans":[{"scope_spans":[{"spans":[{"trace_id":"0123456789abcdef0123456789abcdef","span_id":"00000000000000a1","name":"x","start_time_unix_nano":"1760000000000000000"}]}]}]}"#,
    );
    assert_eq!((answer.status, house.taken().spans.len()), (200, 4));
    assert_eq!((house.taken().snake_case, house.notices.count(Notice::SnakeCase)), (5, 1));
}

#[test]
fn b11_bad_ids_cost_their_spans() {
    let house = House::open();
    let id = "0123456789abcdef0123456789abcdef";
    let spans = [
        SPAN,
        &SPAN.replace(id, "00000000000000000000000000000000"),
        &SPAN.replace(id, "abcd"),
        &SPAN.replace(r#""spanId":"00000000000000a1","#, ""),
        &SPAN.replace(r#""parentSpanId":"""#, r#""parentSpanId":"0000000000000000""#).replace(r#""kind":2,"#, ""),
    ];
    let answer = house.json(wrap(&spans));
    assert!(answer.status == 200 && answer.text().contains("\"rejectedSpans\":\"3\""), "{answer:?}");
    assert_eq!(house.taken().spans.len(), 2);
}

#[test]
fn b13_invalid_utf8_costs_nothing() {
    let hex = "0a6f126d12340a100123456789abcdef0123456789abcdef120800000000000000a12a04676f6f64390000b0d4acc66c18414042bfd4acc66c1812350a100123456789abcdef0123456789abcdef120800000000000000a22a056162ff6364390000b0d4acc66c18414042bfd4acc66c18";
    let body: Vec<u8> = (0..hex.len()).step_by(2).map(|at| u8::from_str_radix(&hex[at..at + 2], 16).unwrap()).collect();
    let house = House::open();
    assert_eq!(house.protobuf(&body).status, 200);
    let names: Vec<_> = house.taken().spans.into_iter().map(|(name, _)| name).collect();
    assert_eq!(names, ["good", "ab\u{fffd}cd"]);
}

#[test]
fn b15_b16_b17_types_methods_and_paths() {
    let house = House::open();
    let json = wrap(&[SPAN]);
    for kind in ["application/json; charset=utf-8", "Application/JSON;v=1"] {
        assert_eq!(house.post("/v1/traces", &[("Content-Type", kind)], json.as_bytes()).status, 200);
    }
    for kind in ["application/x-protobuf; messageType=\"x\"", "application/protobuf"] {
        let answer = house.post("/v1/traces", &[("Content-Type", kind)], b"");
        assert_eq!((answer.status, answer.body.len()), (200, 0));
    }
    for headers in [&[][..], &[("Content-Type", "text/plain")]] {
        let answer = house.post("/v1/traces", headers, b"x");
        assert!(
            answer.status == 415 && answer.text().contains("application/x-protobuf, application/json"),
            "{answer:?}"
        );
    }
    let answer = house.send("GET", "/v1/traces", &[], b"");
    assert!(
        answer.status == 405 && answer.head.contains("allow: post") && answer.text().contains("POST"),
        "{answer:?}"
    );
    for path in ["/", "/v1/trace", "/v1/traces/v1/traces", "/v1/traces//"] {
        let answer = house.post(path, &[("Content-Type", "application/json")], json.as_bytes());
        assert!(answer.status == 404 && answer.text().contains("/v1/traces, /v1/logs, /v1/metrics"), "{answer:?}");
    }
    assert_eq!(house.post("/v1/traces/", &[("Content-Type", "application/json")], json.as_bytes()).status, 200);
    let answer = house.post("/v1/traces", &[("Content-Type", "application/json"), ("Content-Encoding", "br")], b"x");
    assert!(answer.status == 415 && answer.text().contains("br") && answer.text().contains("gzip"), "{answer:?}");
    assert_eq!(house.notices.count(Notice::UnknownPath), 4);
    // Two bodies of no type, one of no coding: what is sent elsewhere holds no spans for here.
    assert_eq!(house.notices.lost(), 3);
    assert!(house.notices.list().iter().any(|noted| noted.latest.contains("/v1/traces//")));
    assert_eq!(house.taken().spans.len(), 3);
}

#[test]
fn b21_origins_only_when_allowed() {
    let preflight = [
        ("Origin", "http://localhost:3000"),
        ("Access-Control-Request-Method", "POST"),
        ("Access-Control-Request-Headers", "content-type"),
    ];
    let post = [("Origin", "http://localhost:3000"), ("Content-Type", "application/json")];
    let closed = House::open();
    assert_eq!(closed.send("OPTIONS", "/v1/traces", &preflight, b"").status, 405);
    assert_eq!(closed.post("/v1/traces", &post, b"{").status, 403);
    assert_eq!(closed.notices.lost(), 0, "a page that may not send loses nothing of ours");
    assert!(!closed.post("/v1/traces", &post, b"{}").head.contains("access-control"));

    let house = House::with(Settings { origins: vec!["http://localhost:3000".into()], ..settings() });
    let answer = house.send("OPTIONS", "/v1/traces", &preflight, b"");
    assert_eq!(answer.status, 204);
    for header in
        ["access-control-allow-origin: http://localhost:3000", "content-type, content-encoding", "allow-methods: post"]
    {
        assert!(answer.head.contains(header), "{answer:?}");
    }
    let answer = house.post("/v1/traces", &post, b"{}");
    assert!(answer.status == 200 && answer.head.contains("access-control-allow-origin: http://localhost:3000"));
    // A refusal must be readable for the page as well.
    assert!(house.post("/v1/traces", &post, b"{").head.contains("access-control-allow-origin"));
    let other = [("Origin", "http://evil.example"), ("Content-Type", "application/json")];
    assert!(!house.post("/v1/traces", &other, b"{}").head.contains("access-control"));
}

#[test]
fn b22_b25_empty_requests_are_a_success() {
    let house = House::open();
    let answer = house.protobuf(b"");
    assert_eq!((answer.status, answer.body.len()), (200, 0));
    for path in ["/v1/traces", "/v1/logs", "/v1/metrics"] {
        let answer = house.post(path, &[("Content-Type", "application/json")], b"{}");
        assert_eq!((answer.status, answer.text().as_str()), (200, "{}"));
        assert!(answer.head.contains("content-type: application/json"));
    }
    assert_eq!(house.json(wrap(&[])).text(), "{}");
}

#[test]
fn malformed_and_oversized_bodies_are_named() {
    let house = House::with(Settings { max_message: 100_000, ..settings() });
    let answer = house.json("{\"resourceSpans\":[{");
    assert!(answer.status == 400 && answer.text().contains("\"message\":\"not OTLP/JSON"), "{answer:?}");
    let answer = house.protobuf(&[0x0a, 0x05, 0x12]);
    assert!(answer.status == 400 && answer.text().contains("ExportTraceServiceRequest, field 1"), "{answer:?}");
    let answer = house.post(
        "/v1/traces",
        &[("Content-Type", "application/json"), ("Content-Encoding", "gzip")],
        b"not compressed at all",
    );
    assert!(answer.status == 400 && answer.text().contains("gzip"), "{answer:?}");
    // Told by its length, by its bytes, and by what it inflates to.
    assert_eq!(house.json(vec![b' '; 100_001]).status, 413);
    let headers = [("Content-Type", "application/json"), ("Content-Encoding", "gzip")];
    let answer = house.post("/v1/traces", &headers, &gzip(&vec![b' '; 50_000_000]));
    assert!(answer.status == 413 && answer.text().contains("100000"), "{answer:?}");
    assert_eq!((house.notices.count(Notice::Malformed), house.notices.count(Notice::TooLarge)), (3, 2));
    assert_eq!(house.notices.lost(), 5);
    // Metrics hold no span.
    let json = [("Content-Type", "application/json")];
    assert_eq!(house.post("/v1/metrics", &json, b"{").status, 400);
    assert_eq!(house.notices.lost(), 5);
    assert_eq!(house.json(wrap(&[SPAN])).status, 200);
}

#[test]
fn grpc_refusals_have_their_codes() {
    let house = House::with(Settings { max_message: 100_000, ..settings() });
    let channel = house.connect();
    let message = messages("dev-sim.traces.pb.gz").into_iter().find(|message| message.len() > 100_000).unwrap();
    let request = ExportTraceServiceRequest::decode(&message[..]).unwrap();
    house.runtime.block_on(async {
        let mut client = TraceServiceClient::new(channel.clone());
        let status = client.export(request.clone()).await.unwrap_err();
        // With nothing that would have it sent again.
        assert_eq!((status.code(), status.details()), (Code::ResourceExhausted, &[][..]));
        // A bomb: small on the wire, large when inflated.
        let mut client = TraceServiceClient::new(channel.clone()).send_compressed(CompressionEncoding::Gzip);
        assert!(client.export(request).await.is_err());
        // B31: metadata is not looked at.
        let mut request = Request::new(ExportTraceServiceRequest::default());
        request.metadata_mut().insert("authorization", "Bearer x".parse().unwrap());
        request.metadata_mut().insert("x-scope-orgid", "tenant".parse().unwrap());
        client.export(request).await.unwrap();
        // A partial success comes only with something refused.
        let bad = ExportTraceServiceRequest::decode(&bad_span()[..]).unwrap();
        let partial = client.export(bad).await.unwrap().into_inner().partial_success.unwrap();
        assert_eq!(partial.rejected_spans, 1);
        assert!(partial.error_message.contains("traceId"));
    });
    for (path, code) in [("/opentelemetry.proto.collector.trace.v1.TraceService/Import", 12), ("/x", 12)] {
        assert_eq!(house.runtime.block_on(call(channel.clone(), path, Vec::new())), code);
    }
    let path = "/opentelemetry.proto.collector.trace.v1.TraceService/Export";
    assert_eq!(house.runtime.block_on(call(channel, path, vec![0xff])), Code::InvalidArgument as i32);
    let answer = house.protobuf(&bad_span());
    let partial = ExportTraceServiceResponse::decode(&answer.body[..]).unwrap().partial_success.unwrap();
    assert_eq!(partial.rejected_spans, 1);
    assert_eq!(house.notices.count(Notice::UnknownPath), 2);
    // The large one, the bomb and the malformed one; not what was asked of no method of ours.
    assert_eq!(house.notices.lost(), 3);
    assert!(!format!("{:?}", house.notices.list()).contains("Bearer"));
}

/// A request of one span without ids.
fn bad_span() -> Vec<u8> {
    vec![0x0a, 0x07, 0x12, 0x05, 0x12, 0x03, 0x2a, 0x01, b'x']
}

/// Calls any method with any bytes; gives the status code.
async fn call(channel: Channel, path: &str, message: Vec<u8>) -> i32 {
    struct Bytes;
    impl tonic::codec::Codec for Bytes {
        type Encode = Vec<u8>;
        type Decode = ();
        type Encoder = Self;
        type Decoder = Self;
        fn encoder(&mut self) -> Self {
            Self
        }
        fn decoder(&mut self) -> Self {
            Self
        }
    }
    impl tonic::codec::Encoder for Bytes {
        type Item = Vec<u8>;
        type Error = tonic::Status;
        fn encode(&mut self, item: Vec<u8>, out: &mut tonic::codec::EncodeBuf<'_>) -> Result<(), tonic::Status> {
            bytes::BufMut::put_slice(out, &item);
            Ok(())
        }
    }
    impl tonic::codec::Decoder for Bytes {
        type Item = ();
        type Error = tonic::Status;
        fn decode(&mut self, _: &mut tonic::codec::DecodeBuf<'_>) -> Result<Option<()>, tonic::Status> {
            Ok(Some(()))
        }
    }
    let mut client = tonic::client::Grpc::new(channel);
    client.ready().await.unwrap();
    let answer = client.unary(Request::new(message), path.parse().unwrap(), Bytes).await;
    answer.map_or_else(|status| status.code() as i32, |_| 0)
}

#[test]
fn plain_http_on_the_grpc_port_is_told_where_to_go() {
    let mut house = House::open();
    house.http = house.grpc;
    let answer = house.json("{}");
    assert!(answer.status == 415 && answer.text().contains("OTLP/gRPC"), "{answer:?}");
}

#[test]
fn a_store_that_cannot_keep_up_asks_for_patience() {
    let (intake, outlet) = channel(Bounds { payloads: 1, bytes: 1 << 20 });
    let house = House::around(settings(), intake);
    // Nobody takes anything out: one of two waits inside, the other finds no room.
    let (answers, answered) = std::sync::mpsc::channel();
    for _ in 0..2 {
        let (http, answers) = (house.http, answers.clone());
        std::thread::spawn(move || {
            let mut stream = TcpStream::connect(http).unwrap();
            let head = "POST /v1/traces HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}";
            stream.write_all(head.as_bytes()).unwrap();
            answers.send(Answer::read(stream)).unwrap();
        });
    }
    let answer = answered.recv().unwrap();
    assert_eq!(answer.status, 503);
    assert!(answer.head.contains("retry-after: 1") && answer.text().contains("send it again"), "{answer:?}");
    let channel = house.connect();
    let status = house.runtime.block_on(async {
        TraceServiceClient::new(channel).export(ExportTraceServiceRequest::default()).await.unwrap_err()
    });
    assert_eq!(status.code(), Code::Unavailable);
    assert!(String::from_utf8_lossy(status.details()).contains("google.rpc.RetryInfo"));
    assert!(house.notices.count(Notice::Busy) >= 2);
    drop(outlet);
    // What was inside hears that the program ends.
    let answer = answered.recv().unwrap();
    assert!(answer.status == 503 && answer.text().contains("ending"), "{answer:?}");
}

/// B29: both loopbacks, one port.
#[test]
fn both_loopbacks_are_served() {
    let bound = Endpoint::bind(settings()).unwrap();
    assert!(bound.open().is_empty());
    for addresses in [bound.grpc(), bound.http()] {
        assert!(addresses.iter().all(|address| address.port() == addresses[0].port()));
        assert_eq!(addresses.len(), if TcpListener::bind("[::1]:0").is_ok() { 2 } else { 1 });
    }
    let any = Settings { http: "0.0.0.0:0".parse().unwrap(), ..settings() };
    let bound = Endpoint::bind(any).unwrap();
    assert!(!bound.open().is_empty() && bound.cautions()[0].contains("--token-file"));
}

/// B30: one line, and nothing half-started.
#[test]
fn a_taken_port_leaves_nothing_behind() {
    let holder = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = holder.local_addr().unwrap().port();
    let [free] = own::free();
    let taken = Settings { grpc: Address::Exactly(free), http: Address::Loopback(port), ..settings() };
    let error = Endpoint::bind(taken).unwrap_err().to_string();
    assert!(
        error.contains(&format!("127.0.0.1:{port}")) && error.contains("--http") && !error.contains('\n'),
        "{error}"
    );
    TcpListener::bind(free).expect("the other port is free again");
}

/// A gRPC export of which three bytes have come, in plain HTTP/2.
fn half_a_message(grpc: SocketAddr) -> TcpStream {
    let frame = |kind: u8, flags: u8, stream: u8, payload: &[u8]| {
        [&[0, 0, payload.len() as u8, kind, flags, 0, 0, 0, stream], payload].concat()
    };
    let path = b"/opentelemetry.proto.collector.trace.v1.TraceService/Export";
    // POST, http, then :path, :authority and content-type as they are (RFC 7541 §6.2.2).
    let mut head = vec![0x83, 0x86, 0x04, path.len() as u8];
    head.extend(path);
    head.extend(b"\x01\x01x\x0f\x10\x10application/grpc");
    let mut stream = TcpStream::connect(grpc).unwrap();
    stream.write_all(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n").unwrap();
    let frames = [frame(4, 0, 0, &[]), frame(1, 4, 1, &head), frame(0, 0, 1, &[0, 0, 0])];
    stream.write_all(&frames.concat()).unwrap();
    stream
}

/// B64: idle connections, an open channel and half a body do not hold the end up for more than the grace of a second.
#[test]
fn the_end_waits_for_nobody() {
    let mut house = House::open();
    let channel = house.connect();
    house.runtime.block_on(async {
        TraceServiceClient::new(channel.clone()).export(ExportTraceServiceRequest::default()).await.unwrap()
    });
    let mut idle = TcpStream::connect(house.http).unwrap();
    idle.write_all(
        b"POST /v1/traces HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}",
    )
    .unwrap();
    let mut one = [0];
    idle.read_exact(&mut one).unwrap();
    let silent = TcpStream::connect(house.http).unwrap();
    let mut half = TcpStream::connect(house.http).unwrap();
    half.write_all(
        b"POST /v1/traces HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 99\r\n\r\n{",
    )
    .unwrap();
    let half_a_message = half_a_message(house.grpc);
    let deadline = Instant::now() + Duration::from_secs(10);
    while house.notices.under_way() < 2 {
        assert!(Instant::now() < deadline, "both halves are read");
        std::thread::yield_now();
    }
    let (grpc, http) = (house.grpc, house.http);
    let took = house.close();
    assert!(took < Duration::from_millis(1900), "{took:?}");
    // What was in them may be lost.
    let notices = &house.notices;
    assert_eq!((notices.count(Notice::CutOff), notices.lost(), notices.under_way()), (2, 2, 0), "{:?}", notices.list());
    for address in [grpc, http] {
        TcpListener::bind(address).expect("the port is free");
    }
    for mut held in [idle, silent, half, half_a_message] {
        held.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
        let mut rest = Vec::new();
        match held.read_to_end(&mut rest) {
            Ok(_) => {}
            Err(error) => assert_eq!(error.kind(), ErrorKind::ConnectionReset),
        }
    }
    drop(channel);
}
