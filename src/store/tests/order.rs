//! Any order of arrival and any repetition: the same requests, nothing lost uncounted, every byte back.

use proptest::prelude::*;

use super::*;
use crate::lifecycle::request::{Node, Up};

/// What does not depend on the order of arrival.
fn summary(store: &Store) -> Vec<(String, String)> {
    let mut all: Vec<_> = store
        .requests()
        .map(|(key, facts)| {
            let view = store.request(key).unwrap();
            let tree: Vec<_> = view
                .tree()
                .iter()
                .map(|row| match row.node {
                    Node::Span(at) => format!("{}{}", row.depth, view.spans[at as usize].id),
                    Node::Missing(id) => format!("{}missing {id}", row.depth),
                })
                .collect();
            let records: Vec<_> = view.records.iter().map(|record| &*record.raw).collect();
            (facts.request_id.to_string(), format!("{facts:?} {tree:?} {records:?}"))
        })
        .collect();
    all.sort();
    all
}

/// Where two stores first differ.
fn difference(one: &Store, other: &Store) -> Option<String> {
    let (one, other) = (summary(one), summary(other));
    if one.len() != other.len() {
        return Some(format!("{} and {} requests", one.len(), other.len()));
    }
    let (mine, others) = one.iter().zip(&other).find(|(mine, others)| mine != others)?;
    let at = mine.1.bytes().zip(others.1.bytes()).take_while(|(a, b)| a == b).count().saturating_sub(60);
    let part = |text: &str| text.chars().skip(at).take(300).collect::<String>();
    Some(format!("{}: {}\n{}", mine.0, part(&mine.1), part(&others.1)))
}

/// Something that arrives by itself.
#[derive(Clone, Debug)]
enum Arrival {
    Span(Spec),
    Record(String),
    Sign(Sign),
}

impl Arrival {
    fn end(request: &str, received_ms: u64, ended_ms: u64, rest: &str) -> Self {
        Self::Record(format!(
            r#"{{"event_type":"request_end","event_time_unix_ms":{},"request":{{"request_id":"{request}","request_received_ms":{}{rest}}}}}"#,
            EPOCH_MS + ended_ms,
            EPOCH_MS + received_ms,
        ))
    }

    fn choice(request: &str, at_ms: u64, pool: &str, worker: u64) -> Self {
        Self::Record(format!(
            r#"{{"event_type":"router_selection","event_time_unix_ms":{},"selection":{{"request_id":"{request}","worker_type":"{pool}","candidate_count":2,"candidates":[[{worker},0,1.5],[99,1,2.5]]}}}}"#,
            EPOCH_MS + at_ms,
        ))
    }

    fn sign(trace: Option<u16>, request: &str, at_ms: u64, model: &str, completed: bool) -> Self {
        Self::Sign(Sign {
            trace: trace.map(trace_id),
            request_id: request.into(),
            time_ns: (EPOCH_MS + at_ms) * 1_000_000,
            model: model.into(),
            endpoint: "chat_completions".into(),
            streaming: (!completed).then_some(true),
            kind: if completed { SignKind::Completed { status: "success".into() } } else { SignKind::Received },
        })
    }

    fn send(&self, store: &mut Store) {
        match self {
            Self::Span(spec) => send(store, std::slice::from_ref(spec), 1),
            Self::Record(json) => record(store, json),
            Self::Sign(sign) => _ = store.ingest(&Batch { signs: vec![sign.clone()], ..Batch::default() }, 1),
        }
    }
}

/// A base request that begins then.
fn begun(trace: u16, request: &'static str, at_ms: u64) -> Vec<Arrival> {
    let mut specs = base_request(trace, request);
    specs.iter_mut().for_each(|spec| (spec.start_ms, spec.end_ms) = (spec.start_ms + at_ms, spec.end_ms + at_ms));
    specs.into_iter().map(Arrival::Span).collect()
}

/// The store after these arrivals, brought up to date after every so many.
fn after(arrivals: &[Arrival], every: usize) -> Store {
    let mut store = store();
    for part in arrivals.chunks(every) {
        part.iter().for_each(|arrival| arrival.send(&mut store));
        store.refresh(1);
    }
    store.finish(1);
    store
}

/// The same arrivals in another order, some of them twice.
fn shuffled(arrivals: &[Arrival], seed: u64) -> Vec<Arrival> {
    let mut rng = fastrand::Rng::with_seed(seed);
    let mut all = arrivals.to_vec();
    all.extend(arrivals.iter().filter(|_| rng.u8(..4) == 0).cloned());
    rng.shuffle(&mut all);
    all
}

/// Requests told of by spans, records and logs, one only by records, one only by logs; a fragment in a trace of its own.
fn requests_of_every_kind() -> Vec<Arrival> {
    let mut all = Vec::new();
    for (trace, request, at_ms) in [(1, "r1", 0), (2, "r2", 500), (3, "r3", 500)] {
        all.extend(begun(trace, request, at_ms));
        all.push(Arrival::sign(Some(trace), request, at_ms, "m", false));
        all.push(Arrival::sign(Some(trace), request, at_ms + 99, "n", true));
        all.push(Arrival::sign(None, request, at_ms + 101, "", true));
        all.push(Arrival::end(request, at_ms, at_ms + 100, r#","output_tokens":7,"model":"n""#));
        all.push(Arrival::choice(request, at_ms + 3, "decode", 5));
        all.push(Arrival::choice(request, at_ms + 3, "decode", 6));
        all.push(Arrival::choice(request, at_ms + 2, "prefill", 7));
    }
    all.push(Arrival::Span(span(9, 900, 0, "worker.operation", 510, 597).with("dynamo.request.id", "r2")));
    all.push(Arrival::end("r3", 500, 700, r#","output_tokens":9,"cached_tokens":3,"model":"o""#));
    all.push(Arrival::choice("r4", 10, "decode", 8));
    all.push(Arrival::end("r4", 0, 50, r#","worker":{"decode_worker_id":8,"decode_dp_rank":0}"#));
    all.push(Arrival::sign(Some(5), "r5", 20, "m", false));
    all.push(Arrival::sign(Some(5), "r5", 21, "n", false));
    for tool in ["a", "b"] {
        all.push(Arrival::Record(format!(r#"{{"event_type":"tool_start","tool":{{"name":"{tool}"}}}}"#)));
    }
    all
}

/// Requests that share an id, each in its trace, with records and logs of each and fragments in traces of their own.
fn requests_of_one_id() -> Vec<Arrival> {
    let mut all = Vec::new();
    for (trace, at_ms) in [(1, 0), (2, 1_000), (3, 2_000)] {
        all.extend(begun(trace, "t", at_ms));
        all.push(Arrival::sign(Some(trace), "t", at_ms, "m", false));
        all.push(Arrival::sign(Some(trace), "t", at_ms + 99, "m", true));
        all.push(Arrival::end("t", at_ms, at_ms + 100, ""));
        all.push(Arrival::choice("t", at_ms + 3, "decode", 5));
        let worker = span(trace + 10, 900, 0, "worker.operation", at_ms + 10, at_ms + 97);
        all.push(Arrival::Span(worker.with("dynamo.request.id", "t")));
    }
    all
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn spans_records_and_logs_in_any_order_give_the_same_requests(seed in any::<u64>(), every in 1usize..9) {
        let arrivals = requests_of_every_kind();
        let (straight, mixed) = (after(&arrivals, arrivals.len()), after(&shuffled(&arrivals, seed), every));
        prop_assert_eq!(difference(&mixed, &straight), None);
        prop_assert_eq!(mixed.counts().records_kept(), straight.counts().records_kept());
        let loose = |store: &Store| store.loose_records().map(|record| record.raw.clone()).collect::<std::collections::BTreeSet<_>>();
        prop_assert_eq!(loose(&mixed), loose(&straight));
    }

    #[test]
    fn requests_of_one_id_are_told_apart_in_any_order(seed in any::<u64>(), every in 1usize..9) {
        let arrivals = requests_of_one_id();
        let (straight, mixed) = (after(&arrivals, arrivals.len()), after(&shuffled(&arrivals, seed), every));
        prop_assert_eq!(straight.len(), 3);
        prop_assert_eq!(difference(&mixed, &straight), None);
    }

    #[test]
    fn any_order_and_any_repetition_give_the_same_requests(seed in any::<u64>(), chunk in 1usize..9) {
        let mut specs = Vec::new();
        for (trace, request) in [(1, "r1"), (2, "r2"), (3, "r3")] {
            specs.extend(base_request(trace, request));
        }
        specs.push(span(9, 900, 0, "worker.operation", 10, 97).with("dynamo.request.id", "r2").of("dynamo-worker"));
        specs.push(span(3, 950, 999, "worker.admission", 10, 11).with("dynamo.request.id", "r3"));
        let mut straight = store();
        send(&mut straight, &specs, 1);
        straight.refresh(1);

        let mut rng = fastrand::Rng::with_seed(seed);
        let mut shuffled = specs.clone();
        shuffled.extend(specs.iter().filter(|_| rng.bool()).cloned().collect::<Vec<_>>());
        rng.shuffle(&mut shuffled);
        let mut mixed = store();
        for part in shuffled.chunks(chunk) {
            send(&mut mixed, part, 1);
            mixed.refresh(1);
        }
        prop_assert_eq!(summary(&mixed), summary(&straight));
        let counts = mixed.counts();
        prop_assert_eq!(counts.spans_received, shuffled.len() as u64);
        prop_assert_eq!(counts.spans_kept, specs.len() as u64);
        prop_assert_eq!(counts.spans_duplicate, (shuffled.len() - specs.len()) as u64);
    }

    #[test]
    fn any_graph_of_parents_becomes_a_forest_with_every_span_once(parents in proptest::collection::vec(0u64..40, 1..40)) {
        let specs: Vec<Spec> = parents.iter().enumerate().map(|(at, parent)| span(1, at as u64 + 1, *parent, "s", at as u64, 50)).collect();
        let mut store = store();
        send(&mut store, &specs, 1);
        store.refresh(1);
        let (key, _) = store.requests().next().unwrap();
        let view = store.request(key).unwrap();
        let mut spans: Vec<u32> = view.tree().iter().filter_map(|row| if let Node::Span(at) = row.node { Some(at) } else { None }).collect();
        spans.sort_unstable();
        prop_assert_eq!(spans, (0..specs.len() as u32).collect::<Vec<_>>());
        prop_assert!(view.spans.iter().all(|span| span.up != Up::Elsewhere));
    }

    #[test]
    fn the_account_of_bytes_returns_to_zero(order in proptest::collection::vec((1u8..12, 0usize..7), 1..200)) {
        let mut store = Store::new(Limits { memory: 20_000, ..Limits::default() });
        for (step, (trace, at)) in order.iter().enumerate() {
            let request = ["a", "b", "c", "d"][usize::from(*trace % 4)];
            send(&mut store, &base_request(u16::from(*trace), request)[*at..=*at], step as u64);
            store.refresh(step as u64);
            prop_assert!(store.memory() <= 20_000);
        }
        let counts = store.counts();
        prop_assert_eq!(counts.spans_received, counts.spans_kept + counts.spans_duplicate + counts.spans_shed);
        prop_assert_eq!(counts.spans_kept, counts.spans_evicted + store.spans().count() as u64);
        store.limits.memory = 0;
        store.refresh(1000);
        prop_assert_eq!(store.memory(), 0);
    }

    #[test]
    fn shared_traces_give_every_byte_back_too(order in proptest::collection::vec((1u16..4, 0u64..40, 0usize..7), 1..80)) {
        let mut store = Store::new(Limits { memory: 40_000, ..Limits::default() });
        for (step, (trace, turn, at)) in order.iter().enumerate() {
            let request = ["a", "b", "c", "d", "e", "f", "g", "h"][*turn as usize % 8];
            let mut spec = base_request(*trace, request).swap_remove(*at);
            spec.id += turn << 8;
            spec.parent += if spec.parent > 0 { turn << 8 } else { 0 };
            send(&mut store, &[spec], step as u64);
            store.refresh(step as u64);
            prop_assert!(store.memory() <= 40_000);
            let counts = store.counts();
            prop_assert_eq!(counts.spans_kept, counts.spans_evicted + store.spans().count() as u64);
            let of_requests: usize = store.requests().map(|(key, _)| store.request(key).unwrap().spans.len()).sum();
            prop_assert_eq!(of_requests, store.spans().count());
        }
        store.limits.memory = 0;
        store.refresh(1000);
        prop_assert_eq!((store.memory(), store.len(), store.spans().count()), (0, 0, 0));
    }
}

#[test]
fn of_two_ids_in_one_fragment_the_first_to_start_is_its_own_whatever_came_first() {
    let id = "dynamo.request.id";
    let spans = [
        span(1, 1, 9, "router.queue", 0, 5).with(id, "r1"),
        span(1, 2, 1, "router.selection", 2, 3).with(id, "r2"),
        span(1, 3, 1, "router.selection", 1, 3).with(id, "r3"),
        span(1, 4, 8, "request.dispatch", 4, 6).with(id, "r2"),
    ];
    let of = |order: [usize; 4]| {
        let mut store = store();
        order.into_iter().for_each(|at| send(&mut store, &spans[at..=at], 1));
        store.finish(1);
        store
    };
    let first = of([0, 1, 2, 3]);
    let mut ids: Vec<String> = first.requests().map(|(_, facts)| facts.request_id.to_string()).collect();
    ids.sort();
    assert_eq!(ids, ["r1", "r2"]);
    for order in [[3, 2, 1, 0], [1, 0, 3, 2], [2, 3, 0, 1], [1, 2, 3, 0]] {
        assert_eq!(difference(&first, &of(order)), None, "{order:?}");
    }
}
