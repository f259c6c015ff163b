//! Whatever comes in whatever order: costs stay within bounds, everything is accounted for, every byte comes back.

use proptest::prelude::*;

use super::*;

/// One thing that happens to a store.
#[derive(Clone, Debug)]
enum Step {
    /// Spans, from a seed: some old, some twice, some with ids of others.
    Spans(u64, usize),
    Record(u8, u8),
    Sign(u8, u8, bool),
    Clock(i64),
    Refresh,
    Finish,
    Check,
    Pin(u8),
    Memory(usize),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        8 => (any::<u64>(), 1usize..40).prop_map(|(seed, count)| Step::Spans(seed, count)),
        3 => (0u8..20, 0u8..6).prop_map(|(request, kind)| Step::Record(request, kind)),
        2 => (0u8..12, 0u8..20, any::<bool>()).prop_map(|(trace, request, done)| Step::Sign(trace, request, done)),
        2 => prop_oneof![-40_000_000_000i64..40_000_000_000, Just(i64::MAX), Just(i64::MIN)].prop_map(Step::Clock),
        4 => Just(Step::Refresh),
        1 => Just(Step::Finish),
        1 => Just(Step::Check),
        1 => any::<u8>().prop_map(Step::Pin),
        1 => (0usize..300).prop_map(|kib| Step::Memory(kib << 10)),
    ]
}

const NAMES: [&str; 9] = [
    "http-request",
    "request.lifecycle",
    "router.queue",
    "router.selection",
    "kv_router.route_request",
    "request.dispatch",
    "worker.operation",
    "handle_payload",
    "step",
];
const REQUESTS: [&str; 5] = ["r1", "r2", "r3", "r4", ""];

/// Spans of few traces, ids and requests: they meet, repeat, contradict each other and point in circles.
fn some(seed: u64, count: usize) -> Vec<Spec> {
    let mut rng = fastrand::Rng::with_seed(seed);
    let mut one = || {
        let (start, length) = (rng.u64(..5_000), rng.u64(..500));
        let end = if rng.u8(..5) == 0 { 0 } else { start + length };
        let trace = rng.u16(1..10);
        let mut spec = span(trace, rng.u64(1..60), rng.u64(..60), NAMES[rng.usize(..NAMES.len())], start, end);
        spec.kind = rng.i32(0..6);
        for key in ["request_id", "dynamo.request.id"] {
            if rng.bool() {
                spec = spec.with(key, REQUESTS[rng.usize(..REQUESTS.len())]);
            }
        }
        if rng.u8(..3) == 0 {
            spec = spec.with("dynamo.request.terminal.outcome", ["success", "cancelled", "odd"][rng.usize(..3)]);
        }
        if rng.u8(..6) == 0 {
            spec = spec.with("endpoint", "worker_kv_query_source_ab");
        }
        spec.with("worker_id", rng.u8(..4))
    };
    (0..count).map(|_| one()).collect()
}

fn assert_whole(store: &Store) {
    let counts = store.counts();
    let lost = counts.spans_duplicate + counts.spans_refused + counts.spans_shed;
    assert_eq!(counts.spans_received, counts.spans_kept + lost);
    assert_eq!(counts.spans_held(), store.spans().count() as u64);
    assert_eq!(counts.records_received, counts.records_kept() + counts.records_duplicate + counts.records_bad);
    assert_eq!(counts.records_held(), store.records().count() as u64);
}

/// What holds once a store was brought up to date.
fn assert_settled(store: &Store) {
    assert_whole(store);
    assert!(store.memory() <= store.limits.memory || store.full, "{} of {}", store.memory(), store.limits.memory);
    let standing = store.standing();
    assert_eq!(standing.total, store.len() as u64);
    assert_eq!(standing.by_outcome.iter().sum::<u64>() + standing.without_root, standing.total);
    // Every span of a request is in its tree once.
    let mut in_requests = 0;
    for (key, facts) in store.requests() {
        let view = store.request(key).unwrap();
        let spans = view.tree().iter().filter(|row| matches!(row.node, Node::Span(_))).count();
        assert_eq!((spans, view.spans.len() as u32), (view.spans.len(), facts.spans), "{facts:?}");
        in_requests += spans as u64;
    }
    assert!(in_requests <= store.counts().spans_held());
}

use crate::lifecycle::request::Node;

proptest! {
    #![proptest_config(ProptestConfig {
        cases: std::env::var("REQTOP_FUZZ").ok().and_then(|cases| cases.parse().ok()).unwrap_or(64),
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn anything_in_any_order_is_kept_within_bounds_and_accounted_for(
        steps in proptest::collection::vec(step(), 1..60), memory in 0usize..400
    ) {
        let mut store = Store::new(Limits { memory: memory << 10, lost_after_ns: 5_000_000_000 });
        let mut now_ns = 100_000_000_000_u64;
        for step in steps {
            match step {
                Step::Spans(seed, count) => send(&mut store, &some(seed, count), now_ns),
                Step::Record(request, kind) => {
                    let id = REQUESTS[usize::from(request) % REQUESTS.len()];
                    let (kind, own) = [("request_end", "request"), ("router_selection", "selection"), ("tool_start", "tool")]
                        [usize::from(kind) % 3];
                    record(
                        &mut store,
                        &format!(r#"{{"event_type":"{kind}","event_time_unix_ms":{request},"{own}":{{"request_id":"{id}"}}}}"#),
                    );
                }
                Step::Sign(trace, request, done) => {
                    let kind = if done { SignKind::Completed { status: "success".into() } } else { SignKind::Received };
                    sign(&mut store, u16::from(trace), REQUESTS[usize::from(request) % 4], kind);
                }
                Step::Clock(by) => now_ns = now_ns.saturating_add_signed(by),
                Step::Refresh => {
                    store.refresh(now_ns);
                    assert_settled(&store);
                }
                Step::Finish => {
                    store.finish(now_ns);
                    assert_settled(&store);
                }
                Step::Check => store.check(now_ns),
                Step::Pin(at) => {
                    let key = store.requests().map(|(key, _)| key).nth(usize::from(at) % 16);
                    store.pin(key);
                }
                Step::Memory(limit) => store.limits.memory = limit,
            }
            assert_whole(&store);
        }
        store.finish(now_ns);
        store.check_all();
        // Answers take room, too.
        store.refresh(now_ns);
        assert_settled(&store);
        store.pin(None);
        store.limits.memory = 0;
        store.refresh(now_ns);
        assert_whole(&store);
        assert_eq!((store.memory(), store.len(), store.spans().count()), (0, 0, 0));
        assert!(store.traces.is_empty() && store.by_rid.is_empty() && store.aliases.is_empty());
        assert!(store.in_flight.is_empty() && store.ended.is_empty() && store.control.is_empty());
        assert_eq!(store.standing(), Standing::default());
    }
}

#[test]
fn a_request_that_logs_alone_tell_of_outlives_the_spans_of_its_trace() {
    let mut store = Store::new(Limits { memory: 381 << 10, lost_after_ns: 5_000_000_000 });
    let now_ns = 100_000_000_000;
    send(&mut store, &[span(5, 1, 0, "request.lifecycle", 0, 10).with("dynamo.request.id", REQUESTS[0])], now_ns);
    sign(&mut store, 5, REQUESTS[1], SignKind::Received);
    store.refresh(now_ns);
    assert_eq!(store.len(), 2);
    let told = store.requests().find(|(_, facts)| !facts.has_root).map(|(key, _)| key);
    store.pin(told);
    store.limits.memory = 0;
    store.refresh(now_ns);
    assert_eq!((store.len(), store.spans().count()), (1, 0));
    assert_whole(&store);
    store.pin(None);
    store.refresh(now_ns);
    assert_eq!((store.memory(), store.len()), (0, 0));
    assert!(store.traces.is_empty());
}
