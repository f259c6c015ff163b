//! No check holds without what it compares: every attribute of whole requests is changed, taken away, garbled and dropped,
//! and what the checks say then is compared with what they said.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::json;

use super::fixture::Scene;
use super::{Answer, CheckId};
use crate::lifecycle::catalogue::Field;

/// What a value may be instead: of its kind, and different from any.
fn others(value: &str) -> &'static [&'static str] {
    if value.parse::<f64>().is_ok() {
        &["0", "1", "7", "-1", "99999"]
    } else if value.parse::<bool>().is_ok() {
        &["true", "false"]
    } else {
        &["rejected", "failed", "abandoned", "prefill", "core", "7"]
    }
}

/// No number, no truth value and no word of any field.
const GARBLED: &str = "abc";

fn scenes() -> [Scene; 5] {
    [Scene::disaggregated(), Scene::migrated(), Scene::rejected(), Scene::base(), Scene::draft()]
}

/// What other evidence says as well: without it these checks still have what they compare.
const SAID_ELSEWHERE: [(&str, Field, &str); 9] = [
    ("dispatch.one-to-one", Field::DispatchRoute, "a dispatch of an attempt that asked a router is one of KV routing"),
    ("dispatch.one-to-one", Field::QueueOutcome, "the selection beside a wait says that it was left"),
    ("record.workers", Field::DestinationWorker, "the route span below the dispatch names the worker"),
    ("dispatch.attempts", Field::DispatchPhase, "the route span below the dispatch names the phase"),
    ("dispatch.one-to-one", Field::DispatchPhase, "the route span below the dispatch names the phase"),
    ("dispatch.selection", Field::DispatchPhase, "the route span below the dispatch names the phase"),
    ("dispatch.one-to-one", Field::RoutePhase, "the worker's spans and whom the router chose name the phase"),
    ("dispatch.selection", Field::RoutePhase, "the worker's spans and whom the router chose name the phase"),
    ("dispatch.one-to-one", Field::Pool, "a selection is of the leg of the dispatch that went where it chose"),
];

fn is_said_elsewhere(check: CheckId, key: &str) -> bool {
    SAID_ELSEWHERE.iter().any(|(id, field, why)| *id == check.check().id && *field == Field::of(key) && !why.is_empty())
}

/// The checks of a scene that answer so.
fn is(scene: &Scene, answer: Answer) -> BTreeSet<CheckId> {
    scene
        .told()
        .into_iter()
        .flat_map(|answers| answers.iter().collect::<Vec<_>>())
        .filter(|(_, its)| *its == answer)
        .map(|(check, _)| check)
        .collect()
}

fn plain(span: &str) -> &str {
    span.split('#').next().unwrap()
}

fn names(field: &str) -> Vec<&str> {
    match Field::of(field).row() {
        Some(row) => row.names.to_vec(),
        None => vec![field],
    }
}

#[test]
fn no_check_holds_without_what_it_compares() {
    let mut wrong = BTreeSet::new();
    for scene in scenes() {
        let held = is(&scene, Answer::Holds);
        let mut compared: BTreeMap<String, BTreeSet<CheckId>> = BTreeMap::new();
        for (span, key, value) in scene.attributes() {
            let with = |value: &str| scene.clone().set(&span, &key, value);
            // What a wrong value violates is compared.
            let compares: BTreeSet<CheckId> = others(&value)
                .iter()
                .flat_map(|other| is(&with(other), Answer::Violated))
                .filter(|it| held.contains(it) && !is_said_elsewhere(*it, &key))
                .collect();
            let gone = is(&scene.clone().without(&span, &key), Answer::Holds);
            let garbled = is(&with(GARBLED), Answer::Holds);
            for check in &compares {
                let id = check.check().id;
                if gone.contains(check) {
                    wrong.insert(format!("{id} without {key} of {}", plain(&span)));
                }
                if garbled.contains(check) {
                    wrong.insert(format!("{id} with {key} garbled of {}", plain(&span)));
                }
            }
            compared.entry(key).or_default().extend(compares);
        }
        for (key, compares) in compared {
            let left = scene.clone().without_all(&names(&key));
            for check in is(&left, Answer::Holds).intersection(&compares) {
                wrong.insert(format!("{} without {key} everywhere", check.check().id));
            }
        }
    }
    assert!(wrong.is_empty(), "{} hold:\n{}", wrong.len(), wrong.into_iter().collect::<Vec<_>>().join("\n"));
}

#[test]
fn no_check_holds_without_the_times_it_compares() {
    let mut wrong = BTreeSet::new();
    for scene in scenes() {
        let held = is(&scene, Answer::Holds);
        for (span, start, end) in scene.timed() {
            for (what, none) in [("start", (Scene::NO_TIME, end)), ("end", (start, Scene::NO_TIME))] {
                // Long before and long after.
                let violated = [start - 50_000, end + 500_000].into_iter().flat_map(|time| {
                    let (start, end) = if what == "start" { (time, end) } else { (start, time) };
                    is(&scene.clone().times(&span, start, end), Answer::Violated)
                });
                let compares: BTreeSet<CheckId> = violated.filter(|it| held.contains(it)).collect();
                let left = is(&scene.clone().times(&span, none.0, none.1), Answer::Holds);
                for check in left.intersection(&compares) {
                    wrong.insert(format!("{} without the {what} of {}", check.check().id, plain(&span)));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{} hold:\n{}", wrong.len(), wrong.into_iter().collect::<Vec<_>>().join("\n"));
}

/// The fields of a `request_end` record, as [`Scene::record`] takes them.
const RECORD: [&str; 15] = [
    "/input_tokens",
    "/output_tokens",
    "/cached_tokens",
    "/request_received_ms",
    "/ttft_ms",
    "/total_time_ms",
    "/worker/prefill_worker_id",
    "/worker/prefill_dp_rank",
    "/worker/decode_worker_id",
    "/worker/decode_dp_rank",
    "/replay/trace_block_size",
    "/replay/input_length",
    "/replay/input_sequence_hashes",
    "/finish_reason_metadata/finish_reason",
    "//event_time_unix_ms",
];

#[test]
fn no_check_holds_without_what_it_compares_of_a_record() {
    let mut wrong = BTreeSet::new();
    let scene = Scene::disaggregated();
    let held = is(&scene, Answer::Holds);
    for field in RECORD {
        let others = [json!(0), json!(1), json!(7), json!(9_999_999), json!(""), json!([1])];
        let violated = others
            .into_iter()
            .filter_map(|other| scene.with_record(field, other))
            .flat_map(|scene| is(&scene, Answer::Violated));
        let compares: BTreeSet<CheckId> = violated.filter(|it| held.contains(it)).collect();
        let left = is(&scene.clone().record(field, json!(null)), Answer::Holds);
        assert!(!compares.is_empty(), "nothing compares {field}");
        wrong.extend(left.intersection(&compares).map(|check| format!("{} without {field}", check.check().id)));
    }
    assert!(wrong.is_empty(), "{} hold:\n{}", wrong.len(), wrong.into_iter().collect::<Vec<_>>().join("\n"));
}

#[test]
fn what_is_wrong_violates_although_something_was_dropped() {
    let dropped = |span: &str, key: &str, value: &str| Scene::aggregated().set(span, key, value).dropped(span, 1);
    dropped("router.selection", "dynamo.router.best.score", "18").violates("selection.best", "above selected.score");
    dropped("worker.admission", "dynamo.worker.admission.result", "ok").violates("admission.result", "result ok");
    // What one span lacks says nothing of another.
    let other = Scene::disaggregated().dropped("router.queue", 1).without("router.queue", "dynamo.router.queue.class");
    other
        .without("router.queue#2", "dynamo.router.queue.class")
        .violates("queue.facts", "no dynamo.router.queue.class");
}

#[test]
fn what_a_sender_dropped_violates_nothing() {
    let limit = CheckId::of("attr.limit").unwrap();
    let mut wrong = BTreeSet::new();
    for scene in scenes() {
        let before = is(&scene, Answer::Violated);
        for (span, key, _) in scene.attributes() {
            let left = scene.clone().without(&span, &key).dropped(&span, 1);
            for check in is(&left, Answer::Violated).difference(&before).filter(|check| **check != limit) {
                wrong.insert(format!("{} where {key} of {} was dropped", check.check().id, plain(&span)));
            }
        }
    }
    assert!(wrong.is_empty(), "{} violated:\n{}", wrong.len(), wrong.into_iter().collect::<Vec<_>>().join("\n"));
}
