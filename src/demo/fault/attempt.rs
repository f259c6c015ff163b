//! Faults of a leg's attempt: its dispatch, the worker's admission and work, and the frontend's stages.

use crate::demo::emit::span::{flag, number, text};
use crate::demo::ledger::Witness;
use crate::lifecycle::stage::{Mode, Outcome, Phase, Stage};

use super::{Effect, Kind, Scene, add, only_if, remove, set, text_of};

const ATTEMPT: &str = "dynamo.request.attempt";
const RETRY: &str = "migration.is_retry";
const RESULT: &str = "dynamo.dispatch.result";
const STAGE_OUTCOME: &str = "dynamo.stage.outcome";

fn accepted(scene: &Scene<'_>) -> bool {
    matches!(scene.witness, Witness::Dispatch { result: "accepted", .. })
}

/// A worker admits.
fn admits(scene: &Scene<'_>) -> bool {
    matches!(scene.witness, Witness::Admission { result: "accepted", .. })
}

pub(super) static KINDS: [Kind; 17] = [
    Kind::span("nameless-route", "a dispatch names no route", &["dispatch.facts"], |span, scene| {
        only_if!(scene.stage == Stage::Dispatch);
        remove(span, "dynamo.dispatch.route")
    }),
    Kind::span(
        "wrong-worker",
        "a dispatch goes to a worker that was not selected",
        &["dispatch.selection"],
        |span, scene| {
            only_if!(accepted(scene));
            add(span, "dynamo.dispatch.destination.worker.id", 1)
        },
    )
    // Its route and its record still name the selected one.
    .also(&["tree.route-nesting", "record.workers"]),
    Kind::span("hasty-dispatch", "a dispatch starts before its selection", &["dispatch.selection"], |span, scene| {
        // In the first leg: a second one could take the first one's selection for its own.
        if accepted(scene) && !matches!(scene.witness, Witness::Dispatch { phase: Phase::Decode, .. }) {
            span.start_time_unix_nano -= 150_000;
            return Effect::Begun;
        }
        only_if!(scene.closes_begun() && !scene.before.lost);
        Effect::Done
    }),
    Kind::span("lost-wait", "a selection comes without its queue span", &["dispatch.one-to-one"], |_, scene| {
        if matches!(scene.witness, Witness::Queue { outcome: "dequeued", .. }) {
            return Effect::BegunUntold;
        }
        only_if!(scene.closes_begun() && !scene.before.lost);
        Effect::Done
    })
    .also(&["tree.span-count"]),
    Kind::span("lost-prefill", "a selected prefill is never dispatched", &["dispatch.one-to-one"], |_, scene| {
        let of_prefill = scene.prefill
            || matches!(
                scene.witness,
                Witness::Dispatch { phase: Phase::Prefill, .. } | Witness::Route { phase: Phase::Prefill, .. }
            );
        if of_prefill {
            return Effect::BegunUntold;
        }
        only_if!(scene.closes_begun() && !scene.before.lost);
        Effect::Done
    })
    .also(&["dispatch.legs", "tree.span-count"])
    .disaggregated(),
    Kind::span(
        "missing-attempt",
        "attempt 0 never comes: the first is told as attempt 1",
        &["dispatch.attempts"],
        |span, scene| {
            // On every span of every attempt, so that nothing else contradicts.
            for key in [ATTEMPT, "request.attempt"] {
                if matches!(add(span, key, 1), Effect::Done) {
                    if scene.stage == Stage::Route {
                        set(span, flag(RETRY, true));
                    }
                    return Effect::Begun;
                }
            }
            only_if!(scene.closes_begun() && scene.before.dispatched.is_some() && !scene.before.lost);
            Effect::Done
        },
    ),
    Kind::span(
        "unmarked-retry",
        "a retry's route does not say that it is one",
        &["dispatch.attempts"],
        |span, scene| {
            only_if!(matches!(scene.witness, Witness::Route { retry: true, .. }));
            set(span, flag(RETRY, false))
        },
    )
    .rare(),
    Kind::span(
        "failed-yet-success",
        "the last dispatch failed, and the request succeeds",
        &["dispatch.success"],
        |span, scene| {
            if accepted(scene) && !matches!(scene.witness, Witness::Dispatch { phase: Phase::Prefill, .. }) {
                set(span, text(RESULT, "failed"));
                return Effect::Begun;
            }
            only_if!(scene.is_root_of(Outcome::Success) && scene.before.begun);
            Effect::Done
        },
    ),
    Kind::span("empty-payload", "a worker admits an empty payload", &["admission.result"], |span, scene| {
        only_if!(admits(scene));
        set(span, number("dynamo.worker.admission.payload.bytes", 0))
    }),
    Kind::span(
        "unadmitted",
        "a dispatch is accepted that its worker rejects",
        &["admission.witness"],
        |span, scene| {
            if admits(scene) {
                set(span, text("dynamo.worker.admission.result", "rejected"));
                return Effect::Begun;
            }
            let Witness::Route { outcome, .. } = scene.witness else { return Effect::None };
            only_if!(scene.before.begun && scene.before.answer == "accepted" && *outcome != "worker_disconnected");
            Effect::Done
        },
    ),
    Kind::span("late-admission", "an admission ends after its operation began", &["worker.order"], |span, scene| {
        if admits(scene) {
            span.end_time_unix_nano += 1_000_000;
            return Effect::Begun;
        }
        only_if!(scene.stage == Stage::Operation && scene.before.begun);
        Effect::Done
    }),
    Kind::span("unready", "preprocessing succeeds before it is ready", &["stage.preprocessing"], |span, scene| {
        only_if!(text_of(span, "dynamo.stage.checkpoint") == Some("ready") && scene.stage == Stage::Preprocessing);
        set(span, text("dynamo.stage.checkpoint", "routing"))
    })
    .only(Mode::Investigation),
    Kind::span("empty-stream", "a stream yields nothing", &["stage.streaming"], |span, scene| {
        only_if!(scene.stage == Stage::Streaming);
        set(span, number("dynamo.stream.events", 0))
    })
    .only(Mode::Investigation),
    Kind::span(
        "abandoned-success",
        "a stream is abandoned, and the root says success",
        &["stage.abandoned"],
        |span, scene| {
            only_if!(matches!(scene.witness, Witness::Stream { root: Outcome::Success, .. }));
            set(span, text(STAGE_OUTCOME, "abandoned"))
        },
    )
    .only(Mode::Investigation),
    Kind::span("early-stream", "the stream starts before the first dispatch ended", &["stage.order"], |span, scene| {
        let (Stage::Streaming, Some((start_ns, _))) = (scene.stage, scene.before.dispatched) else {
            return Effect::None;
        };
        span.start_time_unix_nano = start_ns;
        Effect::Done
    }),
    Kind::span("end-before-start", "preprocessing ends before it starts", &["time.order"], |span, scene| {
        only_if!(scene.stage == Stage::Preprocessing);
        span.end_time_unix_nano = span.start_time_unix_nano - 1_000_000;
        Effect::Done
    }),
    Kind::span("early-child", "find_matches starts before select_worker, its parent", &["time.order"], |span, _| {
        only_if!(span.name == "kv_router.find_matches");
        span.start_time_unix_nano -= 1_000_000;
        Effect::Done
    }),
];
