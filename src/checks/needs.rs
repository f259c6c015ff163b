//! No check holds without what it compares: every attribute of whole requests is changed, taken away, garbled and dropped,
//! and what the checks say then is compared with what they said.

use std::collections::{BTreeMap, BTreeSet};

use super::fixture::Scene;
use super::{Answer, CheckId};
use crate::lifecycle::catalogue::Field;

/// What a value may be instead: of the two, one differs from any.
const OTHERS: [&str; 12] =
    ["0", "1", "7", "-1", "99999", "false", "true", "rejected", "failed", "abandoned", "prefill", "core"];
/// No number, no truth value and no word of any field.
const GARBLED: &str = "abc";

fn scenes() -> [Scene; 4] {
    [Scene::aggregated(), Scene::disaggregated(), Scene::migrated(), Scene::rejected()]
}

/// What other evidence says as well: without it these checks still have what they compare.
const SAID_ELSEWHERE: [(&str, Field, &str); 3] = [
    ("dispatch.one-to-one", Field::DispatchRoute, "a dispatch of an attempt that asked a router is one of KV routing"),
    ("dispatch.one-to-one", Field::QueueOutcome, "the selection beside a wait says that it was left"),
    ("record.workers", Field::DestinationWorker, "the route span below the dispatch names the worker"),
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
        for (span, key) in scene.attributes() {
            let with = |value: &str| scene.clone().set(&span, &key, value);
            // What a wrong value violates is compared.
            let compares: BTreeSet<CheckId> = OTHERS
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
fn what_a_sender_dropped_violates_nothing() {
    let limit = CheckId::of("attr.limit").unwrap();
    let mut wrong = BTreeSet::new();
    for scene in scenes() {
        let before = is(&scene, Answer::Violated);
        for (span, key) in scene.attributes() {
            let left = scene.clone().without(&span, &key).dropped(&span, 1);
            for check in is(&left, Answer::Violated).difference(&before).filter(|check| **check != limit) {
                wrong.insert(format!("{} where {key} of {} was dropped", check.check().id, plain(&span)));
            }
        }
    }
    assert!(wrong.is_empty(), "{} violated:\n{}", wrong.len(), wrong.into_iter().collect::<Vec<_>>().join("\n"));
}
