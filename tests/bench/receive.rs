//! gRPC and HTTP end to end: one client, and the endpoint with the store behind it, against the same endpoint with a
//! drain behind it that decodes with prost and drops.

use std::hint::black_box;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use bytes::Bytes;
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use parking_lot::FairMutex;
use prost::Message;
use reqtop::pipeline;
use reqtop::source::intake::{Body, Bounds, Outlet, Receipt, channel};
use reqtop::source::notices::Notices;
use reqtop::source::otlp::{Address, Endpoint, Settings};
use reqtop::store::{Limits, Store};
use reqtop::tap::forward::Raw;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::sync::oneshot;
use tonic::Status;

use crate::load::{capture, messages, spans};
use crate::{Line, against, median};

const COPIES: u32 = 30;
const ROUNDS: usize = 5;
/// Exports on their way at once, as from that many processes.
const AT_ONCE: usize = 8;

#[derive(Clone, Copy)]
enum Protocol {
    Grpc,
    Http,
}

#[derive(Clone, Copy)]
enum Behind {
    Store,
    Drain,
}

pub fn lines() -> Vec<Line> {
    let requests = capture("dev-sim");
    let count = spans(&requests) * COPIES as usize;
    let messages: Vec<Bytes> = (1..=COPIES).flat_map(|copy| messages(&requests, copy)).map(Bytes::from).collect();
    let rate = |time: Duration| format!("{:.2} M spans/s", count as f64 / time.as_secs_f64() / 1e6);
    [("gRPC end to end", Protocol::Grpc), ("HTTP end to end", Protocol::Http)]
        .map(|(name, protocol)| {
            let round = |_| (once(protocol, Behind::Store, &messages), once(protocol, Behind::Drain, &messages));
            let (ours, reference) = median((0..ROUNDS).map(round).collect());
            Line {
                name: name.into(),
                measured: rate(ours),
                reference: format!("discarding {}", rate(reference)),
                ratio: against(ours, reference),
                budget: 1.0 / 0.9,
                stretch: 1.0,
            }
        })
        .into()
}

fn drain(mut outlet: Outlet) {
    while let Some(delivery) = outlet.recv() {
        if let Body::Otlp(_, bytes) = &delivery.payload.body {
            black_box(ExportTraceServiceRequest::decode(bytes.clone()).unwrap());
        }
        delivery.answer(Ok(Receipt::default()));
    }
}

fn once(protocol: Protocol, behind: Behind, messages: &[Bytes]) -> Duration {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let any = || Address::Exactly("127.0.0.1:0".parse().unwrap());
    let bound = Endpoint::bind(Settings { grpc: any(), http: any(), ..Settings::default() }).unwrap();
    let (grpc, http) = (bound.grpc()[0], bound.http()[0]);
    let (intake, outlet) = channel(Bounds::default());
    let writer = match behind {
        Behind::Store => {
            let store = Arc::new(FairMutex::new(Store::new(Limits { memory: 4 << 30, ..Limits::default() })));
            let start = Instant::now();
            let clock = Arc::new(move || 1_800_000_000_000_000_000 + start.elapsed().as_nanos() as u64);
            pipeline::start(outlet, store, clock, || {}).unwrap()
        }
        Behind::Drain => std::thread::spawn(|| drain(outlet)),
    };
    let (stop, stopped) = oneshot::channel::<()>();
    let serving = runtime.spawn(bound.serve(intake, Notices::default(), async {
        let _ = stopped.await;
    }));
    let start = Instant::now();
    runtime.block_on(send(protocol, grpc, http, messages));
    let took = start.elapsed();
    drop(stop);
    runtime.block_on(serving).unwrap().unwrap();
    writer.join().unwrap();
    took
}

async fn send(protocol: Protocol, grpc: SocketAddr, http: SocketAddr, messages: &[Bytes]) {
    let next = Arc::new(AtomicU64::new(0));
    let channel = tonic::transport::Endpoint::from_shared(format!("http://{grpc}"))
        .unwrap()
        .initial_stream_window_size(1 << 20)
        .connect_lazy();
    let mut senders = tokio::task::JoinSet::new();
    for _ in 0..AT_ONCE {
        let (next, messages, channel) = (Arc::clone(&next), messages.to_vec(), channel.clone());
        senders.spawn(async move {
            let take = || messages.get(next.fetch_add(1, Ordering::Relaxed) as usize).cloned();
            match protocol {
                Protocol::Grpc => {
                    let mut client = tonic::client::Grpc::new(channel);
                    while let Some(message) = take() {
                        export(&mut client, message).await.unwrap();
                    }
                }
                Protocol::Http => {
                    let mut stream = tokio::net::TcpStream::connect(http).await.unwrap();
                    stream.set_nodelay(true).unwrap();
                    while let Some(message) = take() {
                        post(&mut stream, &message).await;
                    }
                }
            }
        });
    }
    while let Some(done) = senders.join_next().await {
        done.unwrap();
    }
}

/// Sends one export request in its encoded form.
pub async fn export(client: &mut tonic::client::Grpc<tonic::transport::Channel>, message: Bytes) -> Result<(), Status> {
    client.ready().await.map_err(|error| Status::unavailable(error.to_string()))?;
    let path = "/opentelemetry.proto.collector.trace.v1.TraceService/Export".parse().unwrap();
    client.unary(tonic::Request::new(message), path, Raw).await.map(drop)
}

async fn post(stream: &mut tokio::net::TcpStream, body: &[u8]) {
    let head = format!(
        "POST /v1/traces HTTP/1.1\r\nhost: bench\r\ncontent-type: application/x-protobuf\r\ncontent-length: {}\r\n\r\n",
        body.len()
    );
    stream.write_all(head.as_bytes()).await.unwrap();
    stream.write_all(body).await.unwrap();
    let (mut answer, mut bytes) = (Vec::new(), [0; 4096]);
    loop {
        let count = stream.read(&mut bytes).await.unwrap();
        assert!(count > 0, "the connection ended");
        answer.extend_from_slice(&bytes[..count]);
        let text = String::from_utf8_lossy(&answer);
        if let Some((head, _)) = text.split_once("\r\n\r\n") {
            assert!(head.starts_with("HTTP/1.1 200"), "{head}");
            let length = head
                .lines()
                .find_map(|line| line.to_ascii_lowercase().strip_prefix("content-length: ")?.parse::<usize>().ok())
                .unwrap_or(0);
            if answer.len() >= head.len() + 4 + length {
                return;
            }
        }
    }
}
