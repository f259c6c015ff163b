//! The real-time runner: a simulated cluster paced to the clock, sent through real OTLP/gRPC clients.
//!
//! Owns: pacing, the bounded queue between simulation and sender, retries, the counts of what was sent. Keeps out: what
//! is sent. The only place of the demo that waits; it paces by [`tokio::time`], and the start of virtual time is given.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use opentelemetry_proto::tonic::collector::logs::v1::ExportLogsServiceRequest;
use opentelemetry_proto::tonic::collector::logs::v1::logs_service_client::LogsServiceClient;
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::collector::trace::v1::trace_service_client::TraceServiceClient;
use parking_lot::Mutex;
use prost::Message;
use tokio::sync::mpsc;
use tokio::time::Instant;
use tonic::metadata::AsciiMetadataValue;
use tonic::service::Interceptor;
use tonic::service::interceptor::InterceptedService;
use tonic::transport::{Channel, Endpoint};
use tonic::{Code, Request, Status};

use super::ledger::Ledger;
use super::{Cluster, Delivery, Settings, Signal};

/// Virtual time passes in steps of this.
const STEP: Duration = Duration::from_millis(20);
/// Deliveries that may wait to be sent; beyond that the cluster waits too, so nothing is lost and the ledger stays true.
const WAITING: usize = 1_024;
/// Tries of one export before it is given up.
const TRIES: u32 = 12;
/// The first pause between two tries; it doubles up to the last.
const FIRST_PAUSE: Duration = Duration::from_millis(25);
const LAST_PAUSE: Duration = Duration::from_secs(2);
/// A request in flight is waited for this long after the stop.
const GRACE: Duration = Duration::from_secs(20);
/// After the end, what was handed over may take this long to be sent.
const LAST_CALL: Duration = Duration::from_secs(5);

/// What a run came to.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Report {
    /// Exports that were acknowledged.
    pub exports: u64,
    /// Their bytes, before compression.
    pub bytes: u64,
    /// Spans acknowledged (those the receiver said it rejected not counted).
    pub spans: u64,
    /// Log records acknowledged.
    pub logs: u64,
    /// Exports that were given up: after all tries, or because the end came first.
    pub lost: u64,
    /// Tries that had to be repeated.
    pub retries: u64,
    /// The last reason an export was given up or repeated.
    pub trouble: Option<String>,
    /// What truly happened, as far as it was handed to the client.
    pub ledger: Ledger,
}

/// Where to send.
#[derive(Clone)]
pub struct Target {
    /// Of an OTLP/gRPC endpoint: `http://127.0.0.1:4317`.
    pub url: String,
    /// The token it asks for; in no message and no `Debug` output.
    pub bearer: Option<String>,
}

type Client = InterceptedService<Channel, Bearer>;

/// Shows the token with every export.
#[derive(Clone)]
struct Bearer(Option<AsciiMetadataValue>);

impl Interceptor for Bearer {
    fn call(&mut self, mut request: Request<()>) -> Result<Request<()>, Status> {
        if let Some(value) = &self.0 {
            request.metadata_mut().insert("authorization", value.clone());
        }
        Ok(request)
    }
}

/// Runs a cluster in real time until `shutdown`, or the settings' duration, and sends everything to `to`.
/// `start_ns` is the present, nanoseconds since the epoch: the start of virtual time.
///
/// After a duration the requests in flight are waited for; after a shutdown what has been said is still sent.
///
/// # Errors
/// When it is not the address of an endpoint.
pub async fn run(
    settings: &Settings,
    to: Target,
    start_ns: u64,
    shutdown: impl Future<Output = ()>,
) -> Result<Report, String> {
    let Target { url, bearer } = to;
    let endpoint = Endpoint::from_shared(url.clone())
        .map_err(|error| format!("--export expects a URL such as http://127.0.0.1:4317, got {url:?}: {error}"))?
        .connect_timeout(Duration::from_secs(5))
        .timeout(Duration::from_secs(10));
    let bearer = bearer.map(|token| AsciiMetadataValue::try_from(format!("Bearer {token}")));
    let bearer = bearer.transpose().map_err(|_| "the token does not fit a header")?;
    let client = InterceptedService::new(endpoint.connect_lazy(), Bearer(bearer));
    let sent = Arc::new(Mutex::new(Report::default()));
    let (hand, waiting) = mpsc::channel(WAITING);
    let mut sender = tokio::spawn(send_all(client, waiting, Arc::clone(&sent)));
    let mut cluster = Cluster::new(settings, start_ns);
    let all = pace(&mut cluster, settings.duration, start_ns, hand, shutdown).await;
    match tokio::time::timeout(LAST_CALL, &mut sender).await {
        Ok(Ok(())) => {}
        Ok(Err(error)) => sent.lock().trouble = Some(format!("the sender ended early: {error}")),
        // Nobody listens: whoever asked for the end does not wait for the remaining tries.
        Err(_) => sender.abort(),
    }
    let mut report = sent.lock().clone();
    report.lost = all.saturating_sub(report.exports);
    report.ledger = cluster.ledger().clone();
    Ok(report)
}

/// Lets virtual time follow the clock and hands over what is sent, until the end. Gives how many exports there were.
async fn pace(
    cluster: &mut Cluster,
    duration: Option<Duration>,
    start_ns: u64,
    hand: mpsc::Sender<Delivery>,
    shutdown: impl Future<Output = ()>,
) -> u64 {
    let begun = Instant::now();
    let mut all = 0;
    let mut ticks = tokio::time::interval(STEP);
    ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    tokio::pin!(shutdown);
    loop {
        tokio::select! {
            biased;
            () = &mut shutdown => return all,
            _ = ticks.tick() => {}
        }
        let passed = begun.elapsed();
        if duration.is_some_and(|duration| passed >= duration) {
            cluster.close();
        }
        let mut ending = false;
        let deliveries = cluster.advance(start_ns + passed.as_nanos() as u64);
        all += deliveries.len() as u64;
        for delivery in deliveries {
            let room = tokio::select! {
                biased;
                room = hand.reserve() => room.ok(),
                () = &mut shutdown, if !ending => {
                    ending = true;
                    last_room(&hand).await
                }
                room = last_room(&hand), if ending => room,
            };
            // Nobody takes it any more.
            let Some(room) = room else { return all };
            room.send(delivery);
        }
        if ending {
            return all;
        }
        let over = duration.is_some_and(|duration| passed >= duration + GRACE);
        if cluster.is_done() || over {
            return all;
        }
    }
}

/// Room for what has happened before the end: the ledger counts it, so it is still told.
async fn last_room(hand: &mpsc::Sender<Delivery>) -> Option<mpsc::Permit<'_, Delivery>> {
    tokio::time::timeout(LAST_CALL, hand.reserve()).await.ok()?.ok()
}

/// Sends what comes, in order, until the other side is done.
async fn send_all(client: Client, mut waiting: mpsc::Receiver<Delivery>, sent: Arc<Mutex<Report>>) {
    let mut traces = TraceServiceClient::new(client.clone());
    let mut logs = LogsServiceClient::new(client);
    while let Some(delivery) = waiting.recv().await {
        let bytes = delivery.body.len() as u64;
        let taken = match delivery.signal {
            Signal::Traces => send_traces(&mut traces, &delivery, &sent).await,
            Signal::Logs => send_logs(&mut logs, &delivery, &sent).await,
        };
        let mut sent = sent.lock();
        match taken {
            Ok(taken) => {
                sent.exports += 1;
                sent.bytes += bytes;
                match delivery.signal {
                    Signal::Traces => sent.spans += taken,
                    Signal::Logs => sent.logs += taken,
                }
            }
            Err(reason) => sent.trouble = Some(reason),
        }
    }
}

async fn send_traces(
    client: &mut TraceServiceClient<Client>,
    delivery: &Delivery,
    sent: &Mutex<Report>,
) -> Result<u64, String> {
    let body = ExportTraceServiceRequest::decode(delivery.body.clone()).map_err(|error| error.to_string())?;
    let count = body.resource_spans.iter().flat_map(|one| &one.scope_spans).map(|one| one.spans.len() as u64).sum();
    let mut tries = Tries::default();
    loop {
        match client.export(body.clone()).await {
            Ok(answer) => {
                let refused = answer.into_inner().partial_success.map_or(0, |partial| partial.rejected_spans);
                return Ok(u64::saturating_sub(count, refused.max(0) as u64));
            }
            Err(status) => tries.again(&status, sent).await?,
        }
    }
}

async fn send_logs(
    client: &mut LogsServiceClient<Client>,
    delivery: &Delivery,
    sent: &Mutex<Report>,
) -> Result<u64, String> {
    let body = ExportLogsServiceRequest::decode(delivery.body.clone()).map_err(|error| error.to_string())?;
    let count = body.resource_logs.iter().flat_map(|one| &one.scope_logs).map(|one| one.log_records.len() as u64).sum();
    let mut tries = Tries::default();
    loop {
        match client.export(body.clone()).await {
            Ok(answer) => {
                let refused = answer.into_inner().partial_success.map_or(0, |partial| partial.rejected_log_records);
                return Ok(u64::saturating_sub(count, refused.max(0) as u64));
            }
            Err(status) => tries.again(&status, sent).await?,
        }
    }
}

/// The tries of one export.
#[derive(Default)]
struct Tries(u32);

impl Tries {
    /// Waits before the next try, or says why there is none.
    async fn again(&mut self, status: &Status, sent: &Mutex<Report>) -> Result<(), String> {
        let reason = format!("export failed: {} ({:?})", status.message(), status.code());
        // What the OTLP specification lists as retryable, as far as a loopback endpoint answers it.
        let passing = matches!(
            status.code(),
            Code::Unavailable | Code::ResourceExhausted | Code::DeadlineExceeded | Code::Aborted | Code::Cancelled
        );
        self.0 += 1;
        if !passing || self.0 >= TRIES {
            return Err(reason);
        }
        {
            let mut sent = sent.lock();
            sent.retries += 1;
            sent.trouble = Some(reason);
        }
        tokio::time::sleep((FIRST_PAUSE * 2u32.saturating_pow(self.0 - 1)).min(LAST_PAUSE)).await;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU64, Ordering};

    use opentelemetry_proto::tonic::collector::logs::v1::ExportLogsServiceResponse;
    use opentelemetry_proto::tonic::collector::logs::v1::logs_service_server::{LogsService, LogsServiceServer};
    use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceResponse;
    use opentelemetry_proto::tonic::collector::trace::v1::trace_service_server::{TraceService, TraceServiceServer};
    use tokio::sync::Notify;
    use tonic::{Request, Response};

    use super::*;

    /// Takes everything but the first export, for which it is not ready yet.
    #[derive(Clone, Default)]
    struct Receiver(Arc<Received>);

    #[derive(Default)]
    struct Received {
        spans: AtomicU64,
        exports: AtomicU64,
        enough: Notify,
    }

    #[tonic::async_trait]
    impl TraceService for Receiver {
        async fn export(
            &self,
            request: Request<ExportTraceServiceRequest>,
        ) -> Result<Response<ExportTraceServiceResponse>, Status> {
            if self.0.exports.fetch_add(1, Ordering::Relaxed) == 0 {
                return Err(Status::unavailable("not ready yet"));
            }
            let spans = request.into_inner().resource_spans;
            let count: usize = spans.iter().flat_map(|one| &one.scope_spans).map(|one| one.spans.len()).sum();
            self.0.spans.fetch_add(count as u64, Ordering::Relaxed);
            if self.0.spans.load(Ordering::Relaxed) > 200 {
                self.0.enough.notify_one();
            }
            Ok(Response::new(ExportTraceServiceResponse::default()))
        }
    }

    #[tonic::async_trait]
    impl LogsService for Receiver {
        async fn export(
            &self,
            _: Request<ExportLogsServiceRequest>,
        ) -> Result<Response<ExportLogsServiceResponse>, Status> {
            Ok(Response::new(ExportLogsServiceResponse::default()))
        }
    }

    #[tokio::test]
    async fn what_is_sent_over_loopback_is_what_the_ledger_counts() {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let receiver = Receiver::default();
        let services = axum::Router::new()
            .route_service(
                "/opentelemetry.proto.collector.trace.v1.TraceService/{method}",
                TraceServiceServer::new(receiver.clone()),
            )
            .route_service(
                "/opentelemetry.proto.collector.logs.v1.LogsService/{method}",
                LogsServiceServer::new(receiver.clone()),
            );
        let server = tokio::spawn(async move { axum::serve(listener, services).await });
        let settings = Settings { rate: 150.0, ..Settings::default() };
        let start_ns = 1_796_000_000_000_000_000;
        let report =
            run(&settings, Target { url, bearer: None }, start_ns, receiver.0.enough.notified()).await.unwrap();
        server.abort();
        assert_eq!((report.lost, report.retries), (0, 1), "{:?}", report.trouble);
        assert_eq!(report.spans, receiver.0.spans.load(Ordering::Relaxed));
        assert_eq!(report.spans, report.ledger.tally.spans);
        let told = report.ledger.tally.received + report.ledger.tally.completed.values().sum::<u64>();
        assert_eq!(report.logs, told + report.ledger.tally.records_by_type.values().sum::<u64>());
    }

    /// What waited to be sent when the end came is lost as well as what was given up.
    #[tokio::test]
    async fn what_nobody_answered_before_the_end_is_counted_as_lost() {
        let mute = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", mute.local_addr().unwrap());
        let (hold, held) = tokio::sync::oneshot::channel();
        let called = async {
            let _ = hold.send(mute.accept().await.unwrap());
        };
        let settings = Settings { rate: 150.0, ..Settings::default() };
        let report = run(&settings, Target { url, bearer: None }, 1_796_000_000_000_000_000, called).await.unwrap();
        assert!(report.exports == 0 && report.lost > 0, "{report:?}");
        drop(held);
    }

    #[tokio::test]
    async fn a_url_that_is_none_is_refused_with_what_was_expected() {
        let error =
            run(&Settings::default(), Target { url: "not a url".into(), bearer: None }, 0, std::future::pending())
                .await
                .unwrap_err();
        assert!(error.contains("expects a URL") && error.contains("not a url"), "{error}");
    }
}
