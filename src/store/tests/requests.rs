//! What requests come to: joined, shared, in flight, lost, from records alone.

use super::*;
use crate::lifecycle::request::Node;

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

/// Disaggregated, in flight: the route span of the decode comes when it ends. The wait, the choice that a record tells and the
/// worker's admission are of one leg all the same.
#[test]
fn a_leg_whose_attempt_is_still_to_come_is_one_leg() {
    let specs = [
        span(1, 4, 2, "kv_router.select_worker", 1, 9),
        span(1, 5, 4, "kv_router.schedule", 1, 8),
        span(1, 6, 2, "kv_router.route_request", 9, 20)
            .with("request_id", "r1")
            .with("worker_id", "77")
            .with("phase", "Prefill")
            .with("request.outcome", "success"),
        span(1, 8, 2, "kv_router.select_worker", 21, 29),
        span(1, 9, 8, "kv_router.schedule", 21, 28),
        span(1, 10, 11, "worker.admission", 30, 31)
            .with("dynamo.request.id", "r1")
            .with("dynamo.operation.role", "decode")
            .with("dynamo.worker.admission.result", "accepted")
            .of("dynamo-worker"),
    ];
    let chose = |pool: &str, at_ms: u64| {
        format!(
            r#"{{"event_type":"router_selection","event_time_unix_ms":{},"selection":{{"request_id":"r1","worker_type":"{pool}","candidate_count":1,"candidates":[[77,0,1.5]]}}}}"#,
            EPOCH_MS + at_ms
        )
    };
    for turned in [false, true] {
        let mut store = store();
        let mut parts: Vec<_> = specs.chunks(1).collect();
        if turned {
            parts.reverse();
        }
        sign(&mut store, 1, "r1", SignKind::Received);
        parts.into_iter().for_each(|part| send(&mut store, part, 1));
        for (pool, at_ms) in [("prefill", 9), ("decode", 29)] {
            record(&mut store, &chose(pool, at_ms));
        }
        store.refresh(1);
        let [(_, facts)] = all(&store)[..] else { panic!("{:?}", all(&store)) };
        let legs: Vec<_> = facts
            .legs
            .iter()
            .map(|leg| (leg.phase, leg.queue.is_some(), leg.selection.is_some(), leg.admission.is_some()))
            .collect();
        assert_eq!(legs, [(Phase::Prefill, true, true, false), (Phase::Decode, true, true, true)]);
        assert_eq!(facts.state, State::InFlight);
    }
}

/// Records may be missing: one that is left is of the attempt that its choice led to.
#[test]
fn a_choice_is_of_the_attempt_that_followed_it() {
    let attempt = |id: u64, number: u32, worker: &str, at_ms: u64, outcome: &str| {
        span(1, id, 2, "kv_router.route_request", at_ms, at_ms + 5)
            .with("request_id", "r1")
            .with("worker_id", worker)
            .with("dp_rank", 0)
            .with("phase", "Aggregated")
            .with("request.attempt", number)
            .with("request.outcome", outcome)
    };
    let specs = [attempt(6, 0, "77", 10, "worker_disconnected"), attempt(7, 1, "88", 500, "success")];
    let chose = |at_ms: u64, candidates: &str| {
        let count = candidates.matches(']').count();
        format!(
            r#"{{"event_type":"router_selection","event_time_unix_ms":{},"selection":{{"request_id":"r1","worker_type":"decode","candidate_count":{count},"candidates":[{candidates}]}}}}"#,
            EPOCH_MS + at_ms
        )
    };
    let (first, second) = (chose(9, "[77,0,1.5],[88,0,2.5]"), chose(499, "[88,0,3.5]"));
    // A clock that is ahead, and a worker who is no candidate of the other.
    let late = chose(600, "[88,0,3.5]");
    for (records, expected) in [
        (vec![&first, &second], [Some(1.5), Some(3.5)]),
        (vec![&second], [None, Some(3.5)]),
        (vec![&first], [Some(1.5), None]),
        (vec![&late], [None, Some(3.5)]),
    ] {
        let mut store = store();
        send(&mut store, &specs, 1);
        records.into_iter().for_each(|json| record(&mut store, json));
        store.refresh(1);
        let [(_, facts)] = all(&store)[..] else { panic!("{:?}", all(&store)) };
        let costs: Vec<_> =
            facts.legs.iter().map(|leg| leg.selection.as_ref().and_then(|choice| choice.selected?.cost)).collect();
        assert_eq!(costs, expected);
    }
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

/// A frontend behind a frontend, or behind a gateway whose span has the same name: what an `http-request` with an id of its
/// own stands above is its own request, whatever stands above that, and whether or not it has come.
#[test]
fn a_request_that_another_one_makes_is_its_own() {
    let inner = |at: u64, request: &'static str| -> Vec<Spec> {
        let mut specs = base_request(1, request);
        specs.iter_mut().for_each(|spec| {
            spec.id += at;
            spec.parent += if spec.parent > 0 { at } else { 0 };
        });
        specs
    };
    let gateway = || span(1, 77, 0, "http-request", 0, 120);
    for (above, expected) in [
        (vec![gateway()], 2),
        (Vec::new(), 2),
        (vec![gateway().with("request_id", "r0")], 3),
        (
            vec![
                gateway().with("request_id", "r0"),
                span(1, 78, 77, "request.lifecycle", 0, 119).with("dynamo.request.id", "r0"),
            ],
            3,
        ),
    ] {
        for turned in [false, true] {
            let mut specs = [inner(100, "r1"), inner(200, "r2")].concat();
            specs.iter_mut().filter(|spec| spec.parent == 0).for_each(|spec| spec.parent = 77);
            specs.extend(above.iter().cloned());
            if turned {
                specs.reverse();
            }
            let mut store = store();
            specs.chunks(3).for_each(|part| {
                send(&mut store, part, 1);
                store.refresh(1);
            });
            let mut ids: Vec<_> =
                store.requests().map(|(_, facts)| (facts.request_id.to_string(), facts.outcome)).collect();
            ids.sort();
            let success = Some(Outcome::Success);
            assert_eq!(ids.len(), expected, "{ids:?}");
            assert_eq!(ids[expected - 2..], [("r1".to_owned(), success), ("r2".to_owned(), success)]);
        }
    }
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

/// The record comes within a second, the spans after five: until they may have come, nothing says that there is no root.
#[test]
fn what_a_record_ends_is_ending_while_its_root_may_be_on_its_way() {
    let end = format!(
        r#"{{"event_type":"request_end","event_time_unix_ms":{},"request":{{"request_id":"r1"}}}}"#,
        EPOCH_MS + 100
    );
    let second = 1_000_000_000;
    let at = |store: &mut Store, now_ns: u64| {
        store.refresh(now_ns);
        let [(_, facts)] = all(store)[..] else { panic!("{:?}", all(store)) };
        let standing = store.standing();
        assert_eq!((standing.in_flight, standing.ending), (0, u64::from(facts.state == State::Ending)));
        (facts.state, facts.outcome, facts.outcome_text().to_owned())
    };
    let ending = (State::Ending, None, "ending".to_owned());
    let mut with_root = store();
    record(&mut with_root, &end);
    assert_eq!(at(&mut with_root, 1), ending);
    assert_eq!(with_root.next_check_ns(), Some(0));
    send(&mut with_root, &base_request(1, "r1"), 5 * second);
    assert_eq!(at(&mut with_root, 5 * second).1, Some(Outcome::Success));
    let mut alone = store();
    record(&mut alone, &end);
    assert_eq!(at(&mut alone, 1), ending);
    assert_eq!(at(&mut alone, 14 * second), ending);
    let ended = (State::Ended, None, "no root".to_owned());
    assert_eq!(at(&mut alone, 16 * second), ended);
    // So it was then, whenever one looks back.
    let ended_ns = (EPOCH_MS + 100) * 1_000_000;
    for (after_s, state) in [(0, State::Ending), (14, State::Ending), (16, State::Ended)] {
        let past = alone.past(ended_ns + after_s * second);
        let key = past.keys()[0];
        let facts = past.changed(key).or(alone.facts(key)).unwrap();
        assert_eq!((facts.state, past.standing().ending), (state, u64::from(state == State::Ending)), "{after_s} s");
    }
    // When nothing more comes, nothing is on its way.
    let mut whole = store();
    record(&mut whole, &end);
    whole.finish(1);
    assert_eq!(all(&whole)[0].1.state, State::Ended);
}

/// `http-request` of a stream that broke counts an attempt (checks.md, record.tokens), the record the request.
#[test]
fn tokens_of_what_was_not_answered_whole_are_the_records() {
    let end = r#"{"event_type":"request_end","event_time_unix_ms":1796003500100,"request":{"request_id":"r1","input_tokens":288,"output_tokens":9}}"#;
    for (outcome, expected) in [("timed_out", (Some(288), Some(9))), ("success", (Some(0), Some(9)))] {
        let mut specs = base_request(1, "r1");
        specs[0] = specs[0].clone().with("input_tokens", 0);
        specs[1].attrs.retain(|(key, _)| *key != "dynamo.request.terminal.outcome");
        specs[1] = specs[1].clone().with("dynamo.request.terminal.outcome", outcome);
        let mut store = store();
        send(&mut store, &specs, 1);
        record(&mut store, end);
        store.refresh(1);
        let [(_, facts)] = all(&store)[..] else { panic!("{:?}", all(&store)) };
        assert_eq!((facts.input_tokens, facts.output_tokens), expected, "{outcome}");
    }
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

/// Lines are deliveries of their own, in whatever groups they are handed on.
#[test]
fn a_line_that_comes_again_is_a_duplicate_however_lines_are_grouped() {
    let end = |time: u64| {
        let json =
            format!(r#"{{"event_type":"request_end","event_time_unix_ms":{time},"request":{{"request_id":"r1"}}}}"#);
        Record::from_json(json.as_bytes()).unwrap()
    };
    let tool = |number: u64| {
        let json = format!(r#"{{"event_type":"tool_start","event_time_unix_ms":{number},"tool":{{"name":"a"}}}}"#);
        Record::from_json(json.as_bytes()).unwrap()
    };
    let mut lines: Vec<Record> = [1, 2, 1].map(end).into_iter().chain((0..400).map(tool)).collect();
    lines.extend(lines.clone());
    for size in [1, 2, 3, 700, 900] {
        let mut store = store();
        for group in lines.chunks(size) {
            let repeats = crate::lifecycle::batch::Repeats::Came;
            store.ingest(&Batch { records: group.to_vec(), repeats, ..Batch::default() }, 1);
        }
        store.refresh(1);
        assert_eq!((store.counts().records_held(), store.counts().records_duplicate), (402, 404), "{size}");
    }
}

/// What an export held twice it held twice, whatever its records have in common.
#[test]
fn an_export_that_comes_again_adds_nothing() {
    let mut store = store();
    let marker = |time_ms| Record::payload_marker("r1", time_ms, "", "{}".into());
    let records = || vec![marker(1), marker(2), marker(2)];
    for _ in 0..2 {
        store.ingest(&Batch { records: records(), ..Batch::default() }, 1);
    }
    assert_eq!((store.counts().records_held(), store.counts().records_duplicate), (3, 3));
}

#[test]
fn a_time_to_first_token_that_is_no_time_is_none() {
    for (said, ttft_ns) in [("21.5", Some(21_500_000)), ("0", Some(0)), ("-1", None), ("1e300", None), ("NaN", None)] {
        let mut store = store();
        send(&mut store, &[span(1, 1, 0, "http-request", 0, 99).with("ttft_ms", said)], 1);
        store.finish(1);
        let facts = all(&store)[0].1;
        assert_eq!((facts.ttft_ns.map(|(ttft_ns, _)| ttft_ns), facts.streaming), (ttft_ns, Some(true)), "{said}");
    }
}

#[test]
fn what_nobody_noted_the_arrival_of_is_silent_since_its_own_times() {
    let mut store = Store::new(Limits { lost_after_ns: 5_000_000_000, ..Limits::default() });
    let at = |ms: u64| (EPOCH_MS + ms) * 1_000_000;
    let early = base_request(1, "r1");
    let late: Vec<Spec> = base_request(2, "r2")
        .into_iter()
        .map(|spec| Spec { start_ms: spec.start_ms + 60_000, end_ms: spec.end_ms + 60_000, ..spec })
        .collect();
    let last_ms = late[2..4].iter().map(|spec| spec.end_ms).max().unwrap();
    for specs in [&late[2..4], &early[2..4]] {
        let made: Vec<Made<'_>> = specs.iter().map(Spec::made).collect();
        with_batch(&made, |batch| store.ingest_undated(&batch, u64::MAX));
    }
    assert_eq!(store.arrived_ns(), at(last_ms));
    store.finish(store.arrived_ns());
    assert_eq!((store.standing().in_flight, store.standing().lost), (1, 1));
    // What arrives is heard of then.
    send(&mut store, &early[..1], at(last_ms));
    store.finish(at(last_ms));
    assert_eq!((store.standing().in_flight, store.standing().lost), (2, 0));
}
