//! More than the store can take: senders are told to come again, the screen goes on, nothing acknowledged is lost.

#[path = "common/message.rs"]
mod message;

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use message::message;
use opentelemetry_proto::tonic::collector::trace::v1::trace_service_client::TraceServiceClient;
use parking_lot::FairMutex;
use prost::Message;
use reqtop::pipeline;
use reqtop::source::intake::{Bounds, channel};
use reqtop::source::notices::{Notice, Notices};
use reqtop::source::otlp::{Address, Endpoint, Settings};
use reqtop::store::{Limits, Store};
use tokio::sync::oneshot;
use tonic::Code;

const SENDERS: u64 = 20;
const EXPORTS: u64 = 10;
const SPANS: u64 = 50;

/// Posts a message over HTTP; gives the head of the answer.
fn post(address: SocketAddr, body: &[u8]) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    let length = body.len();
    write!(stream, "POST /v1/traces HTTP/1.1\r\nhost: test\r\nconnection: close\r\ncontent-type: application/x-protobuf\r\ncontent-length: {length}\r\n\r\n").unwrap();
    stream.write_all(body).unwrap();
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).unwrap();
    String::from_utf8_lossy(&answer).to_ascii_lowercase()
}

#[test]
fn the_overloaded_store_says_so_and_loses_nothing_it_acknowledged() {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let any = || Address::Exactly("127.0.0.1:0".parse().unwrap());
    let bound = Endpoint::bind(Settings { grpc: any(), http: any(), ..Settings::default() }).unwrap();
    let (grpc, http) = (bound.grpc()[0], bound.http()[0]);
    let (intake, outlet) = channel(Bounds { payloads: 2, bytes: 64 << 10 });
    let store = Arc::new(FairMutex::new(Store::new(Limits::default())));
    let writer = pipeline::start(outlet, Arc::clone(&store), Arc::new(|| 7), || {}).unwrap();
    let notices = Notices::default();
    let (stop, stopped) = oneshot::channel::<()>();
    let serving = runtime.spawn(bound.serve(intake, notices.clone(), async {
        let _ = stopped.await;
    }));

    // A store that is busy: nothing is taken in while it is locked, so most senders find the channel full.
    let locked = store.lock();
    let (busy, taken) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(0)));
    let senders: Vec<_> = (0..SENDERS)
        .map(|sender| {
            let (busy, taken) = (Arc::clone(&busy), Arc::clone(&taken));
            runtime.spawn(async move {
                let mut client = TraceServiceClient::connect(format!("http://{grpc}")).await.unwrap();
                for export in 0..EXPORTS {
                    // As an SDK does: again until it is taken.
                    loop {
                        match client.export(message(sender, export, SPANS)).await {
                            Ok(_) => break,
                            Err(status) => {
                                assert_eq!(status.code(), Code::Unavailable, "{status}");
                                assert!(!status.details().is_empty(), "a hint when to come again");
                                busy.fetch_add(1, Ordering::Relaxed);
                            }
                        }
                    }
                    taken.fetch_add(SPANS, Ordering::Relaxed);
                }
            })
        })
        .collect();
    while busy.load(Ordering::Relaxed) < SENDERS {
        std::thread::yield_now();
    }
    let answer = post(http, &message(SENDERS, 0, SPANS).encode_to_vec());
    assert!(answer.starts_with("http/1.1 503") && answer.contains("retry-after:"), "{answer}");
    assert_eq!(taken.load(Ordering::Relaxed), 0, "nothing is acknowledged before it is in the store");
    drop(locked);

    // The screen's share: a reader gets the store between two payloads, however many wait, and finds what was acknowledged.
    while taken.load(Ordering::Relaxed) < SENDERS * EXPORTS * SPANS {
        let acknowledged = taken.load(Ordering::Relaxed);
        assert!(store.lock().counts().spans_kept >= acknowledged);
    }
    for sender in senders {
        runtime.block_on(sender).unwrap();
    }
    drop(stop);
    runtime.block_on(serving).unwrap().unwrap();
    writer.join().unwrap();
    let store = store.lock();
    let counts = store.counts();
    assert_eq!((counts.spans_kept, counts.spans_duplicate, counts.spans_shed), (SENDERS * EXPORTS * SPANS, 0, 0));
    assert_eq!(store.spans().count() as u64, counts.spans_kept);
    assert!(notices.count(Notice::Busy) >= SENDERS, "the header tells");
}
