//! What is large or many: costs stay bounded, what is cut short says so, every byte comes back.

use std::collections::{BTreeMap, BTreeSet};

use super::*;
use crate::checks::{Answer, CheckId, Level, Why};
use crate::demo;
use crate::lifecycle::work;
use crate::source::intake::Signal;
use crate::source::otlp::wire;
use crate::store::check::{CheckCounts, Violation};

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
    // What went was asked before it went, what stayed is asked in the end.
    store.check_all();
    for check in CheckId::all() {
        let CheckCounts { holds, violated, unknown } = store.checked().said().counts(check);
        assert_eq!(holds + violated + unknown, 200, "{}", check.check().id);
    }
    assert!(store.checked().said().counts(CheckId::of("root.unique").unwrap()).holds == 200);
    store.pin(None);
    store.limits.memory = 0;
    store.refresh(300);
    assert_eq!((store.memory(), store.len(), store.spans().count()), (0, 0, 0));
    assert!(
        store.traces.is_empty() && store.by_rid.is_empty() && store.aliases.is_empty() && store.in_flight.is_empty()
    );
    assert_eq!(store.standing(), Standing::default());
}

/// A request with a root and this many spans of a name.
fn request_of(trace: u16, many: u64, name: &'static str) -> Vec<Spec> {
    let mut specs = base_request(trace, "r1");
    let (root, first) = (specs[1].id, specs[6].id);
    specs.extend((1..=many).map(|at| span(trace, first + at, root, name, 10, 20)));
    specs
}

/// The only request of a store that was asked everything, with what the checks said of it.
fn asked(specs: &[Spec]) -> Store {
    let mut store = store();
    specs.chunks(512).for_each(|chunk| send(&mut store, chunk, 1));
    store.finish(1);
    store.check_all();
    assert_eq!(store.len(), 1);
    store
}

#[test]
fn a_large_request_is_asked_like_any_other() {
    let store = asked(&request_of(1, 5_000, "step"));
    let (key, facts) = all(&store)[0];
    assert_eq!((facts.spans, facts.marks.has(Marks::CUT_SHORT)), (5_007, false));
    let answers = store.answers(key).unwrap();
    assert_eq!(answers.of(CheckId::of("root.unique").unwrap()), Answer::Holds);
    assert!(answers.iter().all(|(_, answer)| answer != Answer::Unknown(Why::TooLarge)));
}

#[test]
fn a_request_too_large_to_be_checked_is_unknown_to_every_check_that_applies() {
    let store = asked(&request_of(1, 10_000, "step"));
    let (key, facts) = all(&store)[0];
    assert_eq!((facts.spans, facts.marks.has(Marks::CUT_SHORT)), (10_007, false), "its facts are read whole");
    let answers = store.answers(key).unwrap();
    for (check, answer) in answers.iter() {
        let why = match answer {
            Answer::Unknown(why @ (Why::TooLarge | Why::Layout | Why::Mode)) => why,
            other => panic!("{}: {other:?}", check.check().id),
        };
        assert_eq!(why == Why::Layout, !check.check().layouts.contains(&facts.layout));
        assert_eq!(store.checked().said().counts(check).unknown, 1);
    }
    let [note] = answers.findings() else { panic!() };
    assert_eq!(note.to_string(), "tree.span-count (note): request r1: 10007 spans are too many to be checked");
    assert!(!answers.violated());
}

#[test]
fn facts_that_are_cut_short_say_so_and_are_not_checked() {
    let short = |specs: &[Spec]| {
        let store = asked(specs);
        let (key, facts) = all(&store)[0];
        let unknown = store.answers(key).unwrap().iter().all(|(_, answer)| matches!(answer, Answer::Unknown(_)));
        assert_eq!(facts.marks.has(Marks::CUT_SHORT), unknown);
        (facts.spans, facts.outcome, unknown)
    };
    let success = Some(Outcome::Success);
    assert_eq!(short(&request_of(1, 1_000, "request.dispatch")), (1_007, success, false));
    assert_eq!(short(&request_of(1, 1_200, "request.dispatch")), (1_207, success, true), "legs beyond the most");
    let mut late_root = request_of(1, 17_000, "step");
    late_root[1].start_ms = 50;
    assert_eq!(short(&late_root), (17_007, success, true), "a root that begins after all that is read is read still");
}

#[test]
fn attempts_are_paired_with_what_hangs_below_them_in_steps_that_grow_with_their_number() {
    work::taken();
    for many in [250, 1_000] {
        let mut store = store();
        let mut specs = base_request(1, "r1");
        let root = specs[1].id;
        for at in 0..many {
            let id = root + 100 + at * 3;
            let begun = 10 + at;
            let attempt = |spec: Spec| spec.with("request.attempt", at);
            let dispatch = span(1, id, root, "request.dispatch", begun, begun + 1);
            specs.push(attempt(dispatch.with("dynamo.dispatch.phase", "decode")));
            specs.push(attempt(
                span(1, id + 1, id, "kv_router.route_request", begun, begun + 1).with("phase", "decode"),
            ));
            specs.push(attempt(span(1, id + 2, id + 1, "worker.admission", begun, begun + 1).of("dynamo-worker")));
        }
        send(&mut store, &specs, 1);
        store.finish(1);
        let [(_, facts)] = all(&store)[..] else { panic!() };
        let paired = facts.legs.iter().filter(|leg| leg.dispatch.is_some() && leg.admission.is_some()).count();
        assert!(paired as u64 >= many - 1, "{paired} of {many}");
        let steps = work::taken();
        assert!(steps < 10 * many, "{steps} steps for {many} attempts");
    }
}

#[test]
fn fragments_without_end_under_one_id_are_joined_in_steps_that_do_not_grow() {
    let mut store = store();
    let mut steps = Vec::new();
    work::taken();
    for turn in 0..8_000u16 {
        let fragment = [span(turn + 1, 1, 0, "worker.operation", u64::from(turn), 9_000).with("request_id", "test")];
        send(&mut store, &fragment, 1);
        if turn % 100 == 99 {
            store.refresh(1);
        }
        if turn % 2_000 == 1_999 {
            steps.push(work::taken());
        }
    }
    let spans: u32 = all(&store).iter().map(|(_, facts)| facts.spans).sum();
    assert_eq!(spans, 8_000);
    assert!(store.len() < 40, "joined, up to a bound: {}", store.len());
    assert!(steps.iter().all(|taken| *taken < 2_000 * 10), "{steps:?}");
    // A root under that id takes some of them in, and no more than it may.
    send(&mut store, &base_request(9_000, "test"), 1);
    store.finish(1);
    assert!(work::taken() < 30_000);
    assert_eq!(all(&store).iter().map(|(_, facts)| facts.spans).sum::<u32>(), 8_007);
    assert_eq!(store.standing().by_outcome[0], 1);
}

#[test]
fn an_id_that_is_used_forever_costs_each_request_the_same() {
    let mut store = store();
    let mut steps = Vec::new();
    work::taken();
    for turn in 1..=1_000u16 {
        let mut specs = base_request(turn, "test");
        specs.iter_mut().for_each(|spec| {
            spec.start_ms += u64::from(turn) * 200;
            spec.end_ms += u64::from(turn) * 200;
        });
        send(&mut store, &specs, 1);
        let time = EPOCH_MS + u64::from(turn) * 200;
        let end = format!(
            r#"{{"event_type":"request_end","event_time_unix_ms":{},"request":{{"request_id":"test","request_received_ms":{time}}}}}"#,
            time + 100,
        );
        store.refresh(1);
        record(&mut store, &end);
        store.refresh(1);
        if turn % 250 == 0 {
            steps.push(work::taken());
        }
    }
    assert!(all(&store).iter().all(|(_, facts)| facts.spans == 7 && facts.has_record), "each has its own");
    assert!(steps.iter().all(|taken| *taken < 250 * 1_000), "{steps:?}");
}

#[test]
fn records_without_end_under_one_id_are_kept_and_bounded() {
    let mut store = store();
    for turn in 0..3_000 {
        record(
            &mut store,
            &format!(r#"{{"event_type":"request_end","event_time_unix_ms":{turn},"request":{{"request_id":"test"}}}}"#),
        );
    }
    store.refresh(1);
    assert_eq!((store.len(), store.counts().records_kept()), (3, 3_000));
}

/// A trace of this many requests, two spans each.
fn session(trace: u16, requests: u64) -> Vec<Spec> {
    let turn = |turn: u64| {
        let id = format!("r{turn}");
        [
            span(trace, 2 * turn + 1, 0, "http-request", turn, turn + 1).with("request_id", &*id),
            span(trace, 2 * turn + 2, 2 * turn + 1, "request.lifecycle", turn, turn + 1)
                .with("dynamo.request.id", &*id)
                .with("padding", "x".repeat(40) + &id),
        ]
    };
    (0..requests).flat_map(turn).collect()
}

#[test]
fn the_requests_of_a_shared_trace_come_at_the_cost_of_what_each_has() {
    work::taken();
    for many in [500, 4_000] {
        let mut store = store();
        send(&mut store, &session(1, many), 1);
        store.finish(1);
        assert_eq!(store.len() as u64, many);
        let steps = work::taken();
        assert!(steps < 2 * many * 10, "{steps} steps for {} rows", 2 * many);
    }
}

#[test]
fn the_requests_of_a_shared_trace_go_at_the_cost_of_what_each_has() {
    const MANY: u64 = 1_500;
    let mut store = store();
    session(1, MANY).chunks(500).for_each(|chunk| send(&mut store, chunk, 1));
    store.finish(1);
    assert_eq!(store.len() as u64, MANY);
    let full = store.memory();
    work::taken();
    let mut least = usize::MAX;
    for left in (0..full).rev().step_by(full / 60) {
        store.limits.memory = left;
        store.refresh(1);
        assert!(store.memory() <= left && store.memory() <= least);
        least = store.memory();
        let counts = store.counts();
        assert_eq!(counts.spans_kept, counts.spans_evicted + store.spans().count() as u64);
        assert_eq!(store.spans().count(), 2 * store.len());
        assert!(store.requests().all(|(key, facts)| store.request(key).unwrap().spans.len() == facts.spans as usize));
    }
    store.limits.memory = 0;
    store.refresh(1);
    assert_eq!((store.memory(), store.len()), (0, 0));
    let steps = work::taken();
    assert!(steps < 2 * MANY * 40, "{steps} steps for {} rows", 2 * MANY);
}

/// Everything that a seeded cluster sends in its first seconds.
fn sent_by_a_cluster(aggregated: bool) -> Vec<demo::Delivery> {
    let start_ns = EPOCH_MS * 1_000_000;
    let settings = demo::Settings { aggregated, ..demo::Settings::default() };
    demo::Cluster::new(&settings, start_ns).advance(start_ns + 12_000_000_000)
}

/// Takes in a share of the spans of deliveries, and the records that come with it.
fn take_share(store: &mut Store, deliveries: &[demo::Delivery], mut is_in: impl FnMut(u64) -> bool) {
    for delivery in deliveries {
        let signal = match delivery.signal {
            demo::Signal::Traces => Signal::Traces,
            demo::Signal::Logs => Signal::Logs,
        };
        let mut batch = Batch::default();
        wire::decode(signal, &delivery.body, &mut batch).unwrap();
        batch.spans.retain(|span| is_in(u64::from_be_bytes(span.id.0)));
        if !batch.records.is_empty() && !is_in(batch.records[0].time_ms) {
            batch.records.clear();
        }
        store.ingest(&batch, delivery.at_ns);
    }
}

/// What is violated, by request, with what is said of it; notes are no violations.
fn violated(store: &Store) -> BTreeMap<(String, &'static str), String> {
    let violations = store.violations().filter(|violation| violation.finding.level > Level::Note);
    let of = |violation: Violation| {
        ((violation.request_id.to_string(), violation.finding.check.check().id), violation.finding.message.into())
    };
    violations.map(of).collect()
}

#[test]
fn what_comes_after_a_request_was_let_go_is_a_part_and_no_violation() {
    for aggregated in [false, true] {
        let deliveries = sent_by_a_cluster(aggregated);
        let end_ns = deliveries.last().unwrap().at_ns;
        let mut whole = store();
        take_share(&mut whole, &deliveries, |_| true);
        whole.finish(end_ns);
        whole.check_all();
        let known = violated(&whole);
        for seed in 0..6 {
            let early = |number: u64| fastrand::Rng::with_seed(number ^ seed).u8(..4) > seed as u8 % 3;
            let mut store = store();
            take_share(&mut store, &deliveries, early);
            store.finish(end_ns);
            for key in store.requests().map(|(key, _)| key).collect::<Vec<_>>() {
                store.evict_request(key);
            }
            if seed >= 4 {
                // Too long ago to be known by their ids.
                store.gone.forget();
            }
            take_share(&mut store, &deliveries, |number| !early(number));
            store.finish(end_ns);
            store.check_all();
            let late = store.requests().filter(|(_, facts)| facts.marks.has(Marks::LATE_PART));
            let late: BTreeSet<String> = late.map(|(_, facts)| facts.request_id.to_string()).collect();
            assert!(late.len() > 20);
            let mut found = violated(&store);
            found.retain(|violation, _| late.contains(&violation.0) && !known.contains_key(violation));
            assert!(found.is_empty(), "seed {seed}: {found:#?}");
        }
    }
}

#[test]
fn spans_whose_record_was_let_go_before_they_came_are_a_part() {
    let mut store = store();
    record(&mut store, r#"{"event_type":"request_end","event_time_unix_ms":1,"request":{"request_id":"r1"}}"#);
    store.finish(1);
    let key = all(&store)[0].0;
    store.evict_request(key);
    send(&mut store, &base_request(1, "r1"), 2);
    send(&mut store, &base_request(2, "r2"), 2);
    store.finish(2);
    let late: Vec<_> = all(&store).iter().map(|(_, facts)| facts.marks.has(Marks::LATE_PART)).collect();
    assert_eq!(late, [true, false]);
}

#[test]
fn an_unlikely_end_makes_no_part_of_what_comes_later() {
    let mut store = store();
    let mut odd = base_request(1, "r1");
    odd[1].end_ms = 4 * 365 * 86_400_000;
    let now_ns = (EPOCH_MS + 5 * 365 * 86_400_000) * 1_000_000;
    send(&mut store, &odd, now_ns);
    store.finish(now_ns);
    let key = all(&store)[0].0;
    store.evict_request(key);
    store.gone.forget();
    let mut whole = base_request(2, "r2");
    whole.iter_mut().for_each(|span| (span.start_ms, span.end_ms) = (span.start_ms + 1_000, span.end_ms + 1_000));
    send(&mut store, &whole, now_ns);
    store.finish(now_ns);
    assert!(!all(&store)[0].1.marks.has(Marks::LATE_PART));
}
