//! The endpoint in this process, with its limits set as a fault needs them, and what a well-behaved sender finds there.

use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::collector::trace::v1::trace_service_client::TraceServiceClient;
use parking_lot::FairMutex;
use reqtop::pipeline;
use reqtop::source::intake::{Bounds, channel};
use reqtop::source::notices::{Notice, Notices};
use reqtop::source::otlp::{Address, Endpoint, Settings};
use reqtop::store::{Limits, Store};
use serde_json::{Value as Json, json};
use tokio::runtime::Runtime;
use tokio::sync::oneshot;
use tonic::transport::Channel;

use crate::common::{self, Answer};

/// How long anything may take.
pub const DEADLINE: Duration = Duration::from_secs(60);

/// An endpoint with a store.
pub struct House {
    pub grpc: SocketAddr,
    pub http: SocketAddr,
    pub notices: Notices,
    pub store: Arc<FairMutex<Store>>,
    runtime: Runtime,
    stop: Option<oneshot::Sender<()>>,
    served: Option<tokio::task::JoinHandle<std::io::Result<()>>>,
    writer: Option<JoinHandle<()>>,
}

impl House {
    /// Serves with these settings on free ports.
    pub fn with(settings: Settings) -> Self {
        Self::at(Address::Exactly("127.0.0.1:0".parse().unwrap()), settings)
    }

    /// Serves gRPC at this address.
    pub fn at(grpc: Address, settings: Settings) -> Self {
        let http = Address::Exactly("127.0.0.1:0".parse().unwrap());
        let bound = Endpoint::bind(Settings { grpc, http, ..settings }).unwrap();
        let (grpc, http) = (bound.grpc()[0], bound.http()[0]);
        let (intake, outlet) = channel(Bounds::default());
        let store = Arc::new(FairMutex::new(Store::new(Limits::default())));
        let writer = pipeline::start(outlet, Arc::clone(&store), Arc::new(|| 1), || {}).unwrap();
        let notices = Notices::default();
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
        let (stop, stopped) = oneshot::channel::<()>();
        let served = runtime.spawn(bound.serve(intake, notices.clone(), async {
            let _ = stopped.await;
        }));
        Self { grpc, http, notices, store, runtime, stop: Some(stop), served: Some(served), writer: Some(writer) }
    }

    /// Waits until there are notices of this kind.
    pub fn wait_noted(&self, notice: Notice, count: u64) {
        wait(&format!("{count} × {notice:?}, have {:?}", self.notices.list()), || self.notices.count(notice) >= count);
    }

    /// Runs something that waits for the network.
    pub fn block_on<T>(&self, work: impl Future<Output = T>) -> T {
        self.runtime.block_on(work)
    }

    /// Waits until no connection is open.
    pub fn wait_deserted(&self) {
        // Of the endpoint itself and of its two listeners.
        const OWN_TASKS: usize = 3;
        wait("connections to end", || self.runtime.metrics().num_alive_tasks() <= OWN_TASKS);
    }

    /// Spans received so far.
    pub fn spans(&self) -> u64 {
        self.store.lock().counts().spans_received
    }

    /// A good sender is served, over both protocols; gives how long that took.
    pub fn serves(&self) -> Duration {
        let begun = Instant::now();
        let before = self.spans();
        assert_eq!(common::post_json(self.http, &one_span(before)).status, 200);
        assert_eq!(self.spans(), before + 1);
        self.block_on(async {
            let channel = Channel::from_shared(format!("http://{}", self.grpc)).unwrap().connect().await.unwrap();
            let export = ExportTraceServiceRequest::default();
            tokio::time::timeout(DEADLINE, TraceServiceClient::new(channel).export(export)).await.unwrap().unwrap();
        });
        begun.elapsed()
    }
}

impl Drop for House {
    fn drop(&mut self) {
        let _ = self.stop.take().map(|stop| stop.send(()));
        if let Some(served) = self.served.take() {
            let _ = self.runtime.block_on(served);
        }
        if let Some(writer) = self.writer.take() {
            let _ = writer.join();
        }
    }
}

/// An export of one span that no other number has.
pub fn one_span(number: u64) -> Json {
    let span = json!({"traceId": format!("{:032x}", number + 1), "spanId": format!("{:016x}", number + 1),
        "name": "http-request", "startTimeUnixNano": "1000", "endTimeUnixNano": "2000"});
    json!({"resourceSpans": [{"scopeSpans": [{"spans": [span]}]}]})
}

/// Waits until something is so.
#[track_caller]
pub fn wait(what: &str, mut so: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !so() {
        assert!(begun.elapsed() < DEADLINE, "waited in vain for {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Waits until the other side closes; gives what it said before.
#[track_caller]
pub fn wait_closed(stream: &mut TcpStream) -> Vec<u8> {
    stream.set_read_timeout(Some(DEADLINE)).unwrap();
    let (mut said, mut bytes) = (Vec::new(), [0; 4096]);
    loop {
        match stream.read(&mut bytes) {
            Ok(0) => return said,
            Ok(count) => said.extend_from_slice(&bytes[..count]),
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {
                panic!("still open after {DEADLINE:?}")
            }
            Err(_) => return said,
        }
    }
}

/// A connection that said this.
pub fn say(address: SocketAddr, bytes: &[u8]) -> TcpStream {
    let mut stream = TcpStream::connect(address).unwrap();
    let _ = stream.write_all(bytes);
    stream
}

/// Posts protobuf with further headers, a line each.
pub fn protobuf(address: SocketAddr, headers: &str, body: &[u8]) -> Answer {
    let head = format!("POST /v1/traces HTTP/1.1\nContent-Type: application/x-protobuf\n{headers}");
    common::http(address, &head, body)
}

/// The most memory a process has had resident, bytes; 0 where the system does not say.
pub fn peak_memory(pid: u32) -> usize {
    status(pid, "VmHWM:") << 10
}

/// The number behind a word in what Linux says of a process; 0 elsewhere.
pub fn status(pid: u32, word: &str) -> usize {
    let text = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let line = text.lines().find(|line| line.starts_with(word)).unwrap_or_default();
    line.split_whitespace().nth(1).and_then(|number| number.parse().ok()).unwrap_or(0)
}

/// Mebibytes, for tables.
pub fn mib(bytes: usize) -> String {
    format!("{} MiB", bytes >> 20)
}
