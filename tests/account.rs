//! The account of what came: received = held + duplicate + rejected + shed + evicted, after every message whatever it is, and
//! from end to end against what the senders themselves were told, under load, kills and restarts.

mod common;
#[path = "common/message.rs"]
mod message;

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use common::mutate::Mutator;
use message::message;
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::collector::trace::v1::trace_service_client::TraceServiceClient;
use parking_lot::FairMutex;
use prost::Message;
use reqtop::lifecycle::ids::{SpanId, TraceId};
use reqtop::lifecycle::packed::varint;
use reqtop::pipeline::{self, take_in};
use reqtop::source::intake::{Body, Bounds, Payload, Receipt, Signal, channel};
use reqtop::source::notices::{Notice, Notices};
use reqtop::source::otlp::json::{Shape, transcode};
use reqtop::source::otlp::{Address, Endpoint, Settings};
use reqtop::store::{Limits, Store};
use reqtop::view::account::Account;
use tokio::sync::oneshot;
use tonic::Code;

/// What the store counts comes out even, and what it holds is there.
fn assert_even(store: &Store, what: &str) {
    let counts = store.counts();
    let (spans, records) = (Account::of_spans(counts), Account::of_records(counts));
    assert!(spans.is_even(), "{what}: {spans}");
    assert!(records.is_even(), "{what}: {records}");
    assert_eq!(store.spans().count() as u64, spans.held, "{what}: {spans}");
    assert_eq!(store.records().count() as u64, records.held, "{what}: {records}");
}

/// The messages of a capture in protobuf.
fn messages(name: &str) -> Vec<Vec<u8>> {
    let bytes = common::inflated(name);
    let (mut rest, mut messages) = (bytes.as_slice(), Vec::new());
    while let Some(length) = varint(&mut rest) {
        let (message, tail) = rest.split_at(length as usize);
        messages.push(message.to_vec());
        rest = tail;
    }
    // Small ones: much is spoiled, little is repeated.
    messages.retain(|message| message.len() < 48 << 10);
    messages
}

fn lines(name: &str) -> Vec<Vec<u8>> {
    let text = common::inflated(name);
    text.split(|byte| *byte == b'\n').filter(|line| line.len() < 48 << 10).map(<[u8]>::to_vec).collect()
}

/// How many spans or log records a well-formed message holds.
fn items(signal: Signal, bytes: &[u8]) -> Option<u64> {
    use opentelemetry_proto::tonic::collector::logs::v1::ExportLogsServiceRequest;
    Some(match signal {
        Signal::Traces => {
            let request = ExportTraceServiceRequest::decode(bytes).ok()?;
            request.resource_spans.iter().flat_map(|of| &of.scope_spans).map(|of| of.spans.len() as u64).sum()
        }
        _ => {
            let request = ExportLogsServiceRequest::decode(bytes).ok()?;
            request.resource_logs.iter().flat_map(|of| &of.scope_logs).map(|of| of.log_records.len() as u64).sum()
        }
    })
}

#[test]
fn after_any_message_everything_is_accounted_for() {
    let traces = messages("dev-sim-disagg-http.traces.pb.gz");
    let logs = messages("dev-sim-disagg-http.logs.pb.gz");
    let json = lines("abort.traces.jsonl.gz");
    for seed in 0..6 {
        let mut mutator = Mutator::new(seed);
        // From hardly anything to more than enough.
        let memory = [4 << 10, 60 << 10, 200 << 10, 1 << 20, 8 << 20, 64 << 20][seed as usize];
        let mut store = Store::new(Limits { memory, lost_after_ns: 1_000_000_000 });
        let (mut now_ns, mut asked, mut malformed) = (1_796_003_500_000_000_000_u64, 0, 0);
        for step in 0..250 {
            let what = format!("seed {seed} step {step}");
            let (signal, mut payload) = match mutator.rng.u8(..8) {
                0..4 => (Signal::Traces, Payload::otlp(Signal::Traces, mutator.from(&traces))),
                4..7 => (Signal::Logs, Payload::otlp(Signal::Logs, mutator.from(&logs))),
                _ => {
                    let mut out = Vec::new();
                    let Ok(tally) = transcode(Shape::Request(Signal::Traces), &mutator.from(&json), &mut out) else {
                        continue;
                    };
                    (Signal::Traces, Payload { tally, ..Payload::otlp(Signal::Traces, out) })
                }
            };
            let refused_before = payload.tally.refused_spans;
            let Body::Otlp(_, bytes) = &payload.body else { unreachable!() };
            let bytes = bytes.clone();
            let before = store.counts().clone();
            match take_in(&mut store, &mut payload, now_ns) {
                Ok(receipt) => {
                    asked += 1;
                    let now = store.counts();
                    // Prost knows UTF-8 better and reads what is inside of attributes: what it refuses may be fine here.
                    let came = now.spans_received - before.spans_received;
                    let told = receipt.taken + receipt.refused;
                    let records = now.records_received - before.records_received;
                    let others = now.other_logs - before.other_logs + now.signs - before.signs;
                    assert_eq!(told, came + records + others, "{what}: {receipt:?}");
                    if let Some(items) = items(signal, &bytes) {
                        assert_eq!(told, items + refused_before, "{what}: what the message holds");
                    }
                }
                Err(_) => {
                    malformed += 1;
                    assert_eq!(store.counts().spans_received, before.spans_received, "{what}");
                }
            }
            assert_even(&store, &what);
            match mutator.rng.u8(..6) {
                0 => store.refresh(now_ns),
                1 => store.finish(now_ns),
                2 => {
                    let key = store.requests().next().map(|(key, _)| key);
                    store.pin(key);
                }
                3 => store.pin(None),
                // A clock that jumps.
                4 => now_ns = now_ns.wrapping_add_signed(mutator.rng.i64(-9_000_000_000..9_000_000_000)),
                _ => {}
            }
            assert_even(&store, &what);
        }
        store.finish(now_ns);
        store.check_all();
        assert_even(&store, "in the end");
        assert!(asked > 25 && malformed > 25, "{asked} taken, {malformed} not: both are wanted");
    }
}

#[test]
fn what_does_not_fit_beside_the_request_being_looked_at_is_shed_and_leaves_nothing_behind() {
    let mut store = Store::new(Limits { memory: 100 << 10, ..Limits::default() });
    let take =
        |store: &mut Store, bytes: Vec<u8>| take_in(store, &mut Payload::otlp(Signal::Traces, bytes), 7).unwrap();
    // One large request, looked at.
    take(&mut store, message(0, 0, 4_000).encode_to_vec());
    store.refresh(7);
    store.pin(Some(reqtop::lifecycle::request::RequestKey(0)));
    let more = message(0, 0, 8_000).encode_to_vec();
    take(&mut store, more);
    store.refresh(7);
    let (memory, traces) = (store.memory(), store.traces());
    let mut shed = 0;
    for export in 1..2_000 {
        let Receipt { taken, refused, reason } = take(&mut store, message(0, export, 3).encode_to_vec());
        assert_eq!((taken, refused), (0, 3));
        assert!(reason.unwrap().contains("--max-memory"));
        shed += refused;
    }
    store.refresh(7);
    assert_even(&store, "shed");
    assert_eq!((store.counts().spans_shed, store.traces()), (shed, traces));
    assert!(store.memory() <= memory + 4096, "{} after {memory}", store.memory());
}

const SENDERS: u64 = 8;
const EXPORTS: u64 = 40;
const SPANS: u64 = 25;

/// What all senders were told.
#[derive(Default)]
struct Told {
    /// Spans said to be taken.
    accepted: AtomicU64,
    /// Spans said to be rejected.
    rejected: AtomicU64,
    /// Times "come again" was said.
    busy: AtomicU64,
    /// Exports that nobody heard an answer to, as their sender was killed.
    unheard: AtomicU64,
}

/// Sends one export until it is taken.
async fn send(client: &mut TraceServiceClient<tonic::transport::Channel>, told: &Told, sender: u64, export: u64) {
    loop {
        told.unheard.fetch_add(1, Ordering::SeqCst);
        let answer = client.export(message(sender, export, SPANS)).await;
        told.unheard.fetch_sub(1, Ordering::SeqCst);
        match answer {
            Ok(answer) => {
                let rejected = answer.into_inner().partial_success.map_or(0, |partial| partial.rejected_spans as u64);
                told.rejected.fetch_add(rejected, Ordering::SeqCst);
                told.accepted.fetch_add(SPANS - rejected, Ordering::SeqCst);
                return;
            }
            Err(status) => {
                assert_eq!(status.code(), Code::Unavailable, "{status}");
                told.busy.fetch_add(1, Ordering::SeqCst);
            }
        }
    }
}

#[test]
fn the_senders_own_count_is_ours_under_load_kill_and_restart() {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let any = || Address::Exactly("127.0.0.1:0".parse().unwrap());
    let bound = Endpoint::bind(Settings { grpc: any(), http: any(), ..Settings::default() }).unwrap();
    let grpc = bound.grpc()[0];
    let (intake, outlet) = channel(Bounds { payloads: 1, bytes: 16 << 10 });
    // Room for about half of it: the rest is evicted.
    let store = Arc::new(FairMutex::new(Store::new(Limits { memory: 150 << 10, ..Limits::default() })));
    let writer = pipeline::start(outlet, Arc::clone(&store), Arc::new(|| 7), || {}).unwrap();
    let notices = Notices::default();
    let (stop, stopped) = oneshot::channel::<()>();
    let serving = runtime.spawn(bound.serve(intake, notices.clone(), async {
        let _ = stopped.await;
    }));

    let told = Arc::new(Told::default());
    // Where each sender is; it has it from its disk when it is started again.
    let at: Arc<Vec<AtomicU64>> = Arc::new((0..SENDERS).map(|_| AtomicU64::new(0)).collect());
    let mut running: HashMap<u64, tokio::task::JoinHandle<()>> = HashMap::new();
    let start = |sender: u64| {
        let (told, at) = (Arc::clone(&told), Arc::clone(&at));
        runtime.spawn(async move {
            let mut client = TraceServiceClient::connect(format!("http://{grpc}")).await.unwrap();
            loop {
                let export = at[sender as usize].load(Ordering::SeqCst);
                if export == EXPORTS {
                    return;
                }
                send(&mut client, &told, sender, export).await;
                at[sender as usize].fetch_add(1, Ordering::SeqCst);
            }
        })
    };
    let mut rng = fastrand::Rng::with_seed(7);
    let mut kills = 0;
    let mut done: HashSet<u64> = HashSet::new();
    while done.len() < SENDERS as usize {
        // Now and then the store is held long enough for senders to be told that it is busy.
        let held = (rng.u8(..4) == 0).then(|| store.lock());
        for sender in 0..SENDERS {
            let task = running.entry(sender).or_insert_with(|| start(sender));
            if task.is_finished() {
                done.insert(sender);
            } else if kills < 60 && rng.u8(..3) == 0 {
                task.abort();
                kills += 1;
                let _ = runtime.block_on(running.remove(&sender).unwrap());
            }
        }
        let busy = told.busy.load(Ordering::SeqCst);
        if held.is_some() {
            let until = std::time::Instant::now() + Duration::from_millis(400);
            while told.busy.load(Ordering::SeqCst) == busy && std::time::Instant::now() < until {
                std::thread::yield_now();
            }
        }
        drop(held);
        std::thread::yield_now();
        let store = store.lock();
        let account = Account::of_spans(store.counts());
        assert!(account.is_even(), "{account}");
        assert!(account.received >= told.accepted.load(Ordering::SeqCst), "told before it was taken in");
    }
    drop(stop);
    runtime.block_on(serving).unwrap().unwrap();
    writer.join().unwrap();

    let mut store = store.lock();
    store.finish(7);
    assert_even(&store, "in the end");
    let counts = store.counts();
    let told_of = |count: &AtomicU64| count.load(Ordering::SeqCst);
    let unheard = told_of(&told.unheard);
    assert!(kills > 10 && told_of(&told.busy) > 0 && counts.spans_evicted > 0, "{kills} kills, {counts:?}");
    // Every span was accepted once in the end, as its sender sends it until it is.
    assert_eq!(told_of(&told.accepted) + told_of(&told.rejected), SENDERS * EXPORTS * SPANS);
    assert_eq!(told_of(&told.rejected), counts.spans_shed);
    // What came is what was heard of, and of the exports that nobody heard an answer to those that came whole.
    let beyond = counts.spans_received - told_of(&told.accepted) - told_of(&told.rejected);
    assert!(
        beyond % SPANS == 0 && beyond <= unheard * SPANS,
        "{beyond} spans beyond those heard of, {unheard} unheard"
    );
    // A repetition of what is held is a duplicate; of what has been evicted meanwhile, a span like any other.
    assert_eq!(counts.spans_kept + counts.spans_duplicate + counts.spans_shed, counts.spans_received);
    assert!(counts.spans_duplicate <= beyond);
    // Each refusal was counted once; those of killed senders may have come too late to be heard.
    let busy = notices.count(Notice::Busy);
    assert!((told_of(&told.busy)..=told_of(&told.busy) + unheard).contains(&busy), "{busy} times busy");
    let ids: HashSet<(TraceId, SpanId)> = store.spans().map(|span| (span.trace, span.id)).collect();
    assert_eq!(ids.len() as u64, counts.spans_held(), "each once");
}
