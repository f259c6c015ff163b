//! Faults of the `request_end` record.

use serde_json::{Value as Json, json};

use crate::lifecycle::stage::Outcome;

use super::{Effect, Kind, Scene, only_if};

fn succeeded(scene: &Scene<'_>) -> bool {
    scene.truth.outcome == Outcome::Success.word()
}

fn number<'a>(payload: &'a mut Json, field: &str) -> Option<(u64, &'a mut Json)> {
    let value = payload.pointer_mut(field)?;
    Some((value.as_u64()?, value))
}

/// Adds to a number.
fn add(payload: &mut Json, field: &str, more: u64) -> Effect {
    let Some((known, value)) = number(payload, field) else { return Effect::None };
    *value = json!(known.wrapping_add(more));
    Effect::Done
}

pub(super) static KINDS: [Kind; 7] = [
    Kind::end("second-record", "a request_end record is written twice", &["record.unique"], |payload, _| {
        // A millisecond later: the same bytes again would be a repeated delivery.
        add(payload, "/event_time_unix_ms", 1);
        Effect::Twice
    }),
    Kind::end("lost-record", "a success comes without its request_end record", &["record.present"], |_, scene| {
        only_if!(succeeded(scene));
        Effect::Untold
    }),
    Kind::end("miscounted-tokens", "the record counts one input token too many", &["record.tokens"], |payload, _| {
        add(payload, "/request/input_tokens", 1)
    }),
    Kind::end("missing-hash", "the record has one hash too few", &["record.hashes"], |payload, _| {
        let hashes = payload.pointer_mut("/request/replay/input_sequence_hashes").and_then(Json::as_array_mut);
        hashes.and_then(Vec::pop).map_or(Effect::None, |_| Effect::Done)
    }),
    Kind::end("late-token", "the record's first token comes after its total time", &["record.times"], |payload, _| {
        let total = payload.pointer("/request/total_time_ms").and_then(Json::as_f64);
        let (Some(total), Some(ttft)) = (total, payload.pointer_mut("/request/ttft_ms")) else { return Effect::None };
        *ttft = json!(total + 5.0);
        Effect::Done
    }),
    Kind::end("unfinished", "an agent's success has no finish reason", &["record.finish"], |payload, scene| {
        only_if!(succeeded(scene));
        let end = payload.pointer_mut("/request").and_then(Json::as_object_mut);
        end.and_then(|end| end.remove("finish_reason_metadata")).map_or(Effect::None, |_| Effect::Done)
    }),
    Kind::end(
        "misnamed-worker",
        "the record names a worker nothing was dispatched to",
        &["record.workers"],
        |payload, scene| {
            only_if!(scene.truth.attempts == 1);
            add(payload, "/request/worker/decode_worker_id", 1)
        },
    ),
];
