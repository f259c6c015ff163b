//! Faults of the router: its queue and its selections.

use serde_json::Value as Json;

use crate::demo::emit::span::{number, real, text};
use crate::demo::ledger::Witness;
use crate::lifecycle::stage::{Mode, Outcome, Stage};

use super::{Effect, Kind, Scene, add, only_if, remove, set, text_of};

const REASON: &str = "dynamo.router.queue.reason";
const OUTCOME: &str = "dynamo.request.terminal.outcome";
const TOP_K: &str = "dynamo.router.candidates.top_k";

/// A wait that ended so, deferred or not.
fn waited(scene: &Scene<'_>, as_said: &str, late: bool) -> bool {
    matches!(scene.witness, Witness::Queue { outcome, deferred, .. } if *outcome == as_said && *deferred == late)
}

pub(super) static KINDS: [Kind; 15] = [
    Kind::span("classless-wait", "a queue span names no class", &["queue.facts"], |span, scene| {
        only_if!(scene.stage == Stage::Queue);
        remove(span, "dynamo.router.queue.class")
    }),
    Kind::span("reasonless-rejection", "the queue rejects without a reason", &["queue.reason"], |span, scene| {
        only_if!(waited(scene, "rejected", false));
        remove(span, REASON)
    })
    .rare(),
    Kind::span("needless-reason", "a wait that was not deferred has a reason", &["queue.reason"], |span, scene| {
        only_if!(waited(scene, "dequeued", false));
        set(span, text(REASON, "class_backlog"))
    }),
    Kind::span("odd-deferral", "a wait is deferred for a reason that is none", &["queue.deferral"], |span, scene| {
        only_if!(waited(scene, "dequeued", true));
        set(span, text(REASON, "policy_ordering"))
    }),
    Kind::span(
        "deeper-after-rejection",
        "a rejection leaves the queue deeper",
        &["queue.reject-depth"],
        |span, scene| {
            only_if!(waited(scene, "rejected", false));
            add(span, "dynamo.router.queue.depth.out", 1)
        },
    )
    .rare(),
    Kind::span(
        "rejected-then-failed",
        "the queue rejects, and the root says failed",
        &["queue.reject-end"],
        |span, scene| {
            only_if!(scene.stage == Stage::Root && scene.before.wait == "rejected" && scene.truth.events.is_none());
            set(span, text(OUTCOME, Outcome::Failed.word()))
        },
    )
    .rare(),
    Kind::span(
        "cancelled-then-failed",
        "cancelled in the queue, and the root says failed",
        &["queue.cancel-end"],
        |span, scene| {
            only_if!(scene.stage == Stage::Root && scene.before.wait == "cancelled");
            set(span, text(OUTCOME, Outcome::Failed.word()))
        },
    )
    .rare(),
    Kind::span("late-exit", "a wait ends after the selection began", &["queue.then-selection"], |span, scene| {
        only_if!(waited(scene, "dequeued", true) || waited(scene, "dequeued", false));
        span.end_time_unix_nano += 5_000;
        Effect::Done
    }),
    Kind::span(
        "miscounted-filter",
        "filtered.count is not the sum of its parts",
        &["selection.accounting"],
        |span, scene| {
            only_if!(scene.stage == Stage::Selection);
            add(span, "dynamo.router.candidate.filtered.count", 1)
        },
    ),
    Kind::span("miscounted-eligible", "eligible.count counts one too many", &["selection.eligible"], |span, scene| {
        only_if!(scene.stage == Stage::Selection);
        add(span, "dynamo.router.candidate.eligible.count", 1)
    }),
    Kind::span(
        "nameless-algorithm",
        "a selection does not name its algorithm",
        &["selection.complete"],
        |span, scene| {
            only_if!(scene.stage == Stage::Selection);
            remove(span, "dynamo.router.algorithm.id")
        },
    ),
    Kind::span("wrong-best", "the reported best costs more than the chosen one", &["selection.best"], |span, scene| {
        let Witness::Selection { chosen, .. } = scene.witness else { return Effect::None };
        set(span, real("dynamo.router.best.score", chosen.1 + 1.0))
    })
    .also(&["selection.top-k"]),
    Kind::span("negative-margin", "the best has a margin below 0", &["selection.best"], |span, scene| {
        only_if!(scene.stage == Stage::Selection);
        set(span, real("dynamo.router.best.margin", -0.5))
    }),
    Kind::span(
        "unfair-tie",
        "the chosen one costs the least, and another is reported best",
        &["selection.tie"],
        |span, scene| {
            let Witness::Selection { chosen, best, .. } = scene.witness else { return Effect::None };
            only_if!(chosen.1 == best.1);
            set(span, number("dynamo.router.best.worker.id", best.0.id ^ 1))
        },
    ),
    Kind::span(
        "descending-top-k",
        "the candidates stand in falling order of cost",
        &["selection.top-k"],
        |span, scene| {
            only_if!(scene.stage == Stage::Selection);
            let rows = text_of(span, TOP_K).and_then(|text| serde_json::from_str::<Vec<Json>>(text).ok());
            let Some(mut rows) = rows else { return Effect::None };
            let cost = |row: &Json| row["score"].as_f64();
            only_if!(rows.first().map(cost) != rows.last().map(cost));
            rows.reverse();
            set(span, text(TOP_K, Json::from(rows).to_string()))
        },
    )
    .only(Mode::Investigation),
];
