//! The store under any order of arrival, repetition, eviction: the same trees, nothing lost uncounted, every byte back.

use proptest::prelude::*;

use super::{Limits, Store};
use crate::lifecycle::batch::{Batch, ResourceIn, ScopeIn, Sign, SignKind, SpanIn};
use crate::lifecycle::facts::{Facts, Marks, State};
use crate::lifecycle::ids::{SpanId, TraceId};
use crate::lifecycle::packed::{self, Value};
use crate::lifecycle::record::Record;
use crate::lifecycle::request::{Node, RequestKey, Up};
use crate::lifecycle::stage::{Outcome, Phase};

/// A span to be sent.
#[derive(Clone, Debug)]
struct Spec {
    trace: u16,
    id: u64,
    parent: u64,
    name: &'static str,
    kind: i32,
    start_ms: u64,
    end_ms: u64,
    service: &'static str,
    attrs: Vec<(&'static str, String)>,
}

const EPOCH_MS: u64 = 1_796_003_500_000;

fn span(trace: u16, id: u64, parent: u64, name: &'static str, start_ms: u64, end_ms: u64) -> Spec {
    Spec { trace, id, parent, name, kind: 1, start_ms, end_ms, service: "dynamo-frontend", attrs: Vec::new() }
}

impl Spec {
    fn with(mut self, key: &'static str, value: impl ToString) -> Self {
        self.attrs.push((key, value.to_string()));
        self
    }

    fn of(self, service: &'static str) -> Self {
        Self { service, ..self }
    }
}

fn trace_id(trace: u16) -> TraceId {
    TraceId(std::array::from_fn(|at| trace.to_be_bytes()[1 - at % 2]))
}

fn send(store: &mut Store, specs: &[Spec], now_ns: u64) {
    let packed: Vec<Vec<Vec<u8>>> = specs
        .iter()
        .map(|spec| spec.attrs.iter().map(|(key, value)| packed::pack(key, Value::Str(value))).collect())
        .collect();
    let services: Vec<Vec<u8>> =
        specs.iter().map(|spec| packed::pack("service.name", Value::Str(spec.service))).collect();
    let mut batch = Batch { scopes: vec![ScopeIn::default()], ..Batch::default() };
    for ((spec, attrs), service) in specs.iter().zip(&packed).zip(&services) {
        let at = batch.attrs.len() as u32;
        batch.attrs.push(service);
        batch.resources.push(ResourceIn { attrs: at..at + 1, ..ResourceIn::default() });
        let start = batch.attrs.len() as u32;
        batch.attrs.extend(attrs.iter().map(Vec::as_slice));
        batch.spans.push(SpanIn {
            trace: trace_id(spec.trace),
            id: SpanId(spec.id.to_be_bytes()),
            parent: (spec.parent > 0).then(|| SpanId(spec.parent.to_be_bytes())),
            name: spec.name.as_bytes(),
            kind: spec.kind,
            start_ns: (EPOCH_MS + spec.start_ms) * 1_000_000,
            end_ns: (EPOCH_MS + spec.end_ms) * 1_000_000,
            attrs: start..batch.attrs.len() as u32,
            events: 0..0,
            links: 0..0,
            resource: batch.resources.len() as u32 - 1,
            scope: 0,
            status_code: 0,
            status_message: b"",
            trace_state: b"",
            flags: 257,
            dropped: [0; 3],
        });
    }
    store.ingest(&batch, now_ns);
}

fn record(store: &mut Store, json: &str) {
    let batch = Batch { records: vec![Record::from_json(json.as_bytes()).unwrap()], ..Batch::default() };
    store.ingest(&batch, 1);
}

fn sign(store: &mut Store, trace: u16, request: &str, kind: SignKind) {
    let sign = Sign {
        trace: Some(trace_id(trace)),
        request_id: request.into(),
        time_ns: EPOCH_MS * 1_000_000,
        model: "m".into(),
        endpoint: "chat_completions".into(),
        streaming: Some(true),
        kind,
    };
    store.ingest(&Batch { signs: vec![sign], ..Batch::default() }, 1);
}

fn store() -> Store {
    Store::new(Limits::default())
}

/// An aggregated request of the base layout.
fn base_request(trace: u16, request: &'static str) -> Vec<Spec> {
    let id = u64::from(trace) << 32;
    vec![
        span(trace, id + 1, 0, "http-request", 0, 99).with("request_id", request).with("ttft_ms", "21.50"),
        span(trace, id + 2, id + 1, "request.lifecycle", 0, 100)
            .with("dynamo.request.id", request)
            .with("dynamo.request.terminal.outcome", "success"),
        span(trace, id + 3, id + 2, "request.preprocessing", 0, 1).with("dynamo.request.id", request),
        span(trace, id + 4, id + 2, "kv_router.select_worker", 1, 9),
        span(trace, id + 5, id + 4, "kv_router.schedule", 1, 8),
        span(trace, id + 6, id + 2, "kv_router.route_request", 9, 98)
            .with("request_id", request)
            .with("worker_id", "10075825329253151357")
            .with("dp_rank", 0)
            .with("phase", "Aggregated")
            .with("request.attempt", 0)
            .with("request.outcome", "success"),
        span(trace, id + 7, id + 6, "handle_payload", 10, 97).with("request_id", request).of("dynamo-worker"),
    ]
}

fn all(store: &Store) -> Vec<(RequestKey, &Facts)> {
    store.requests().collect()
}

#[test]
fn a_base_request_is_read_whole() {
    let mut store = store();
    send(&mut store, &base_request(1, "r1"), 1);
    store.refresh(1);
    let [(key, facts)] = all(&store)[..] else { panic!() };
    assert_eq!((&*facts.request_id, facts.state, facts.outcome), ("r1", State::Ended, Some(Outcome::Success)));
    assert_eq!((facts.total_ns(), facts.ttft_ns.unwrap().0), (Some(100_000_000), 21_500_000));
    assert_eq!((facts.queue_wait_ns(), facts.attempts(), facts.legs.len()), (Some(7_000_000), 1, 1));
    assert_eq!(facts.legs[0].phase, Phase::Aggregated);
    assert_eq!(facts.legs[0].worker().unwrap().id, 10_075_825_329_253_151_357);
    assert_eq!(facts.marks, Marks::default());
    let view = store.request(key).unwrap();
    let depths: Vec<_> = view.tree().iter().map(|row| row.depth).collect();
    assert_eq!(depths, [0, 1, 2, 2, 3, 2, 3]);
    assert_eq!(store.standing().by_outcome[0], 1);
}

#[test]
fn a_request_in_flight_is_listed_from_its_first_sign_and_stays_itself() {
    let mut store = store();
    sign(&mut store, 1, "r1", SignKind::Received);
    store.refresh(1);
    let [(key, facts)] = all(&store)[..] else { panic!() };
    assert_eq!((facts.state, &*facts.model, facts.spans), (State::InFlight, "m", 0));
    let specs = base_request(1, "r1");
    for part in [3..5, 5..7, 2..3, 0..1] {
        send(&mut store, &specs[part], 1);
        store.refresh(1);
        let [(now, facts)] = all(&store)[..] else { panic!("{:?}", all(&store)) };
        assert_eq!((store.resolve(key), facts.state), (Some(now), State::InFlight));
    }
    send(&mut store, &specs[1..2], 1);
    store.refresh(1);
    let [(now, facts)] = all(&store)[..] else { panic!() };
    assert_eq!((store.resolve(key), facts.state, facts.marks), (Some(now), State::Ended, Marks::default()));
}

#[test]
fn several_requests_share_a_trace() {
    let mut store = store();
    let mut specs = Vec::new();
    for (at, request) in ["r1", "r2"].into_iter().enumerate() {
        let mut of_one = base_request(1, request);
        for spec in &mut of_one {
            spec.id += at as u64 * 100;
            spec.parent += if spec.parent > 0 { at as u64 * 100 } else { 77 };
        }
        specs.append(&mut of_one);
    }
    specs.reverse();
    send(&mut store, &specs, 1);
    store.refresh(1);
    let ids: Vec<_> = store.requests().map(|(_, facts)| (facts.request_id.to_string(), facts.spans)).collect();
    assert_eq!(ids.len(), 2, "{ids:?}");
    assert!(ids.iter().all(|(_, spans)| *spans == 7), "{ids:?}");
    assert!(store.requests().all(|(_, facts)| facts.marks.has(Marks::SHARED_TRACE)));
}

#[test]
fn a_fragment_in_another_trace_is_joined_and_marked() {
    for fragment_first in [true, false] {
        let mut store = store();
        let fragment =
            [span(9, 900, 0, "worker.operation", 10, 97).with("dynamo.request.id", "r1").of("dynamo-worker")];
        let specs = base_request(1, "r1");
        let (first, second) = if fragment_first { (&fragment[..], &specs[..]) } else { (&specs[..], &fragment[..]) };
        for specs in [first, second] {
            send(&mut store, specs, 1);
            store.refresh(1);
        }
        let [(_, facts)] = all(&store)[..] else { panic!("{fragment_first}: {:?}", all(&store).len()) };
        assert_eq!(facts.spans, 8);
        assert!(facts.marks.has(Marks::INFERRED_JOIN));
    }
}

#[test]
fn two_requests_with_one_public_id_stay_two() {
    let mut store = store();
    record(
        &mut store,
        &format!(
            r#"{{"event_type":"request_end","event_time_unix_ms":{},"request":{{"request_id":"r1","request_received_ms":{}}}}}"#,
            EPOCH_MS + 100,
            EPOCH_MS
        ),
    );
    for trace in [1, 2] {
        let mut specs = base_request(trace, "r1");
        for spec in &mut specs {
            spec.start_ms += u64::from(trace) * 50;
            spec.end_ms += u64::from(trace) * 50;
        }
        send(&mut store, &specs, 1);
        store.refresh(1);
    }
    let [(_, one), (_, two)] = all(&store)[..] else { panic!() };
    assert!(one.marks.has(Marks::SHARED_ID) && two.marks.has(Marks::SHARED_ID));
    assert_eq!((one.spans, two.spans), (7, 7));
    assert_eq!((one.has_record, two.has_record), (true, false));
}

#[test]
fn control_traffic_is_no_request() {
    let mut store = store();
    let specs =
        [span(1, 1, 0, "handle_payload", 0, 1).with("request_id", "x").with("endpoint", "worker_kv_query_source_ab")];
    send(&mut store, &specs, 1);
    store.refresh(1);
    assert_eq!((store.len(), store.traces(), store.counts().spans_kept), (0, 1, 1));
}

#[test]
fn cycles_and_self_parents_are_recovered_and_marked() {
    let mut store = store();
    send(
        &mut store,
        &[span(1, 1, 2, "a", 0, 1), span(1, 2, 1, "b", 0, 1), span(1, 3, 3, "c", 0, 1), span(1, 4, 2, "d", 0, 1)],
        1,
    );
    store.refresh(1);
    let [(key, facts)] = all(&store)[..] else { panic!() };
    assert!(facts.marks.has(Marks::CYCLE));
    assert_eq!(store.request(key).unwrap().tree().len(), 4);
}

#[test]
fn a_missing_parent_has_a_row_that_names_it() {
    let mut store = store();
    send(&mut store, &[span(1, 1, 255, "a", 0, 1), span(1, 2, 1, "b", 0, 1), span(1, 3, 255, "c", 1, 1)], 1);
    store.refresh(1);
    let [(key, facts)] = all(&store)[..] else { panic!() };
    assert_eq!((facts.orphans, facts.state), (2, State::InFlight));
    assert!(!facts.marks.has(Marks::MISSING_PARENT), "what is in flight has simply not arrived yet");
    let view = store.request(key).unwrap();
    let nodes: Vec<_> = view.tree().iter().map(|row| (row.node, row.depth, row.below)).collect();
    let missing = Node::Missing(SpanId(255u64.to_be_bytes()));
    assert_eq!(nodes, [(missing, 0, 3), (Node::Span(0), 1, 1), (Node::Span(1), 2, 0), (Node::Span(2), 1, 0)]);
}

#[test]
fn a_span_called_from_elsewhere_ends_its_request_without_its_caller() {
    let mut store = store();
    let called = |trace, kind| Spec { kind, ..span(trace, 1, 255, "a", 1, 2) };
    send(&mut store, &[called(1, 2), called(2, 1), called(3, 5)], 1);
    store.refresh(1);
    let states: Vec<_> = all(&store).iter().map(|(_, facts)| facts.state).collect();
    assert_eq!(states, [State::Ended, State::InFlight, State::Ended]);
    assert!(all(&store)[0].1.marks.has(Marks::MISSING_PARENT));
}

#[test]
fn many_requests_in_one_trace_cost_what_changes() {
    let mut store = store();
    let request = |turn: u64| {
        let id = format!("r{turn}");
        [
            span(1, 2 * turn + 1, 0, "http-request", turn, turn + 1).with("request_id", &*id),
            span(1, 2 * turn + 2, 2 * turn + 1, "request.lifecycle", turn, turn + 1).with("dynamo.request.id", &*id),
        ]
    };
    for turn in 0..500 {
        send(&mut store, &request(turn), turn);
        store.refresh(turn);
    }
    store.finish(500);
    assert_eq!((store.len(), store.standing().in_flight), (500, 0));
    assert!(all(&store).iter().all(|(_, facts)| facts.spans == 2 && facts.marks.has(Marks::SHARED_TRACE)));
    // A late child of the first turn belongs to it, and only it changes.
    send(&mut store, &[span(1, 9_999, 2, "request.preprocessing", 0, 1)], 9_000);
    store.finish(9_000);
    let (key, facts) = all(&store)[0];
    assert_eq!((facts.spans, store.news_ns(key)), (3, Some(9_000)));
    let (last, _) = all(&store)[499];
    assert!(store.news_ns(last).unwrap() < 9_000);
}

#[test]
fn many_requests_with_one_id_cost_no_more_than_few() {
    let mut store = store();
    for turn in 0..1_000u16 {
        let spans = [span(turn + 1, 1, 0, "http-request", u64::from(turn), 4_000).with("request_id", "test")];
        send(&mut store, &spans, u64::from(turn));
        store.refresh(u64::from(turn));
    }
    assert_eq!(store.len(), 1_000);
    assert!(all(&store).iter().skip(1).all(|(_, facts)| facts.marks.has(Marks::SHARED_ID)));
}

#[test]
fn what_the_hot_path_remembers_counts_as_memory() {
    let mut store = store();
    let before = store.memory();
    let long = "x".repeat(1 << 20);
    send(&mut store, &[span(1, 1, 0, "a", 0, 1).with("prompt", &*long)], 1);
    let held = store.memory() - before;
    assert!(held > 2 << 20, "the attribute and its copy to compare the next one with: {held}");
    send(&mut store, &[span(1, 2, 0, "a", 0, 1)], 1);
    let held = store.memory() - before;
    assert!(held < (1 << 20) + 65_536, "the copy has gone: {held}");
}

#[test]
fn a_chain_of_20_000_is_one_tree() {
    let mut store = store();
    let mut specs: Vec<Spec> = (1..=20_000).map(|id| span(1, id, id - 1, "step", 0, 1)).collect();
    specs.reverse();
    for (part, chunk) in specs.chunks(512).enumerate() {
        send(&mut store, chunk, part as u64);
        store.refresh(part as u64);
    }
    store.finish(1);
    let [(key, facts)] = all(&store)[..] else { panic!() };
    assert_eq!(facts.spans, 20_000);
    let tree = store.request(key).unwrap().tree();
    assert_eq!((tree.len(), tree.last().unwrap().depth), (20_000, 19_999));
}

#[test]
fn a_silent_request_is_lost_and_an_answer_brings_it_back() {
    let mut store = Store::new(Limits { lost_after_ns: 5_000_000_000, ..Limits::default() });
    let specs = base_request(1, "r1");
    send(&mut store, &specs[2..4], 1_000_000_000);
    store.refresh(1_000_000_000);
    assert_eq!((store.standing().in_flight, store.standing().lost), (1, 0));
    store.refresh(9_000_000_000);
    assert_eq!((store.standing().in_flight, store.standing().lost), (0, 1));
    send(&mut store, &specs[..2], 10_000_000_000);
    store.refresh(10_000_000_000);
    assert_eq!((store.standing().lost, store.standing().by_outcome[0]), (0, 1));
}

#[test]
fn records_alone_make_a_request_and_join_by_id() {
    let mut store = store();
    let selection = r#"{"event_type":"router_selection","event_time_unix_ms":1796003500001,"selection":{"request_id":"r1","worker_type":"decode","candidate_count":2,"candidates":[[10075825329253151357,0,10.5],[3,0,12.0]]}}"#;
    record(&mut store, selection);
    record(&mut store, selection);
    store.refresh(1);
    assert_eq!((store.len(), store.counts().records_duplicate), (1, 1));
    send(&mut store, &base_request(1, "r1"), 1);
    store.refresh(1);
    let [(_, facts)] = all(&store)[..] else { panic!() };
    let selection = facts.legs[0].selection.as_ref().unwrap();
    assert_eq!((selection.margin, selection.regret(), facts.legs.len()), (Some(1.5), Some(0.0), 1));
}

#[test]
fn a_record_written_twice_is_kept_twice_and_a_delivery_that_comes_again_is_not() {
    let mut store = store();
    let end = r#"{"event_type":"request_end","event_time_unix_ms":1,"request":{"request_id":"r1"}}"#;
    let records = || [end, end].map(|json| Record::from_json(json.as_bytes()).unwrap()).to_vec();
    for _ in 0..3 {
        store.ingest(&Batch { records: records(), ..Batch::default() }, 1);
    }
    record(&mut store, end);
    store.refresh(1);
    let [(key, _)] = all(&store)[..] else { panic!() };
    assert_eq!((store.request(key).unwrap().records.len(), store.counts().records_duplicate), (2, 5));
}

#[test]
fn eviction_takes_whole_requests_gives_every_byte_back_and_spares_the_pinned_one() {
    let mut store = Store::new(Limits { memory: 60_000, ..Limits::default() });
    let mut first = None;
    for trace in 1..=200 {
        let request: &'static str = Box::leak(format!("request-{trace}").into_boxed_str());
        send(&mut store, &base_request(trace, request), u64::from(trace));
        store.refresh(u64::from(trace));
        first = first.or_else(|| store.requests().next().map(|(key, _)| key));
        store.pin(first);
        assert!(store.memory() <= 60_000, "{}", store.memory());
    }
    assert!(store.facts(first.unwrap()).is_some());
    let counts = store.counts();
    assert_eq!(counts.spans_kept, counts.spans_evicted + store.spans().count() as u64);
    assert_eq!(counts.requests_evicted + store.len() as u64, 200);
    store.pin(None);
    store.limits.memory = 0;
    store.refresh(300);
    assert_eq!((store.memory(), store.len(), store.spans().count()), (0, 0, 0));
    assert!(
        store.by_trace.is_empty() && store.by_rid.is_empty() && store.aliases.is_empty() && store.in_flight.is_empty()
    );
    assert_eq!(store.standing(), super::Standing::default());
}

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
            (facts.request_id.to_string(), format!("{facts:?} {tree:?}"))
        })
        .collect();
    all.sort();
    all
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

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
}
