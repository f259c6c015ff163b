//! The router's queue: its facts, its reasons, and what follows each outcome.

use super::case::{Asked, Case, Span, word};
use super::{ANY_MODE, Check, DETAILED, EVIDENCE, Level};
use crate::lifecycle::catalogue::Field;
use crate::lifecycle::stage::{Outcome, Stage};

const REJECTED: [&str; 3] = ["request_limit", "raw_isl_token_limit", "cached_token_limit"];
const CANCELLED: [&str; 1] = ["request_lifecycle_ended_before_admission"];
const DEFERRED: [&str; 2] = ["prefill_capacity", "class_backlog"];

/// Whether the wait ended with a worker to be chosen; drafts say admitted.
pub(super) fn left(span: Span<'_>) -> bool {
    matches!(span.text(Field::QueueOutcome), "dequeued" | "admitted")
}

/// The waits that ended so. Of one that does not say how it ended, nothing can be told.
fn waits<'c>(case: &'c Case<'_>, asked: &mut Asked<'_, '_>, ended: impl Fn(Span<'c>) -> bool) -> Vec<Span<'c>> {
    case.spans(Stage::Queue).filter(|span| asked.compares(*span, &[Field::QueueOutcome]) && ended(*span)).collect()
}

/// Whether the wait ended with this word.
fn is(outcome: &'static str) -> impl Fn(Span<'_>) -> bool {
    move |span| span.text(Field::QueueOutcome) == outcome
}

pub(super) const FACTS: Check = Check {
    id: "queue.facts",
    level: Level::Error,
    what: "class, policy, depth.in, deferred and outcome are there; depth.out when dequeued or rejected",
    layouts: DETAILED,
    modes: ANY_MODE,
    ask: facts,
};

/// What every wait says; the last only one that was left or refused.
const SAID: [(Field, &str); 6] = [
    (Field::QueueClass, "class"),
    (Field::QueuePolicy, "policy"),
    (Field::DepthIn, "depth.in"),
    (Field::Deferred, "deferred"),
    (Field::QueueOutcome, "outcome"),
    (Field::DepthOut, "depth.out"),
];

fn facts(case: &Case<'_>, asked: &mut Asked<'_, '_>) {
    for queue in case.spans(Stage::Queue) {
        let out = left(queue) || queue.text(Field::QueueOutcome) == "rejected";
        let missing = queue.unsaid(if out { &SAID } else { &SAID[..5] });
        asked.expect(queue, missing.is_empty(), || {
            format!("has no dynamo.router.queue.{}, expected on every wait", missing.join(", ."))
        });
    }
}

pub(super) const REASON: Check = Check {
    id: "queue.reason",
    level: Level::Error,
    what: "rejected, cancelled and failed carry a reason of their set; dequeued at once carries none",
    layouts: EVIDENCE,
    modes: ANY_MODE,
    ask: reason,
};

fn reason(case: &Case<'_>, asked: &mut Asked<'_, '_>) {
    for queue in case.spans(Stage::Queue) {
        let (outcome, reason) = (queue.text(Field::QueueOutcome), queue.text(Field::QueueReason));
        let of = |set: &[&str]| (set.contains(&reason), set.join(" or "));
        let (fits, expected) = match (outcome, queue.flag(Field::Deferred)) {
            ("rejected", _) => of(&REJECTED),
            ("cancelled", _) => of(&CANCELLED),
            // The set is open (spec lifecycle-spans §3).
            ("failed", _) => (!reason.is_empty(), "a reason such as subscriber_shutdown".to_owned()),
            ("dequeued", Some(false)) => (!queue.has(Field::QueueReason), "none".to_owned()),
            // That is queue.deferral's matter.
            ("dequeued", Some(true)) => continue,
            // Neither a wait without a word nor a word that nobody documents says which reasons fit.
            _ => {
                asked.unsaid();
                continue;
            }
        };
        asked.expect(queue, fits, || format!("is {outcome} with reason {}, expected {expected}", word(reason)));
    }
}

pub(super) const DEFERRAL: Check = Check {
    id: "queue.deferral",
    level: Level::Error,
    what: "deferred and dequeued means prefill_capacity or class_backlog",
    layouts: EVIDENCE,
    modes: ANY_MODE,
    ask: deferral,
};

fn deferral(case: &Case<'_>, asked: &mut Asked<'_, '_>) {
    for queue in waits(case, asked, is("dequeued")) {
        if !asked.compares(queue, &[Field::Deferred]) || queue.flag(Field::Deferred) == Some(false) {
            continue;
        }
        let reason = queue.text(Field::QueueReason);
        asked.expect(queue, DEFERRED.contains(&reason), || {
            format!("was deferred with reason {}, expected {}", word(reason), DEFERRED.join(" or "))
        });
    }
}

pub(super) const REJECT_DEPTH: Check = Check {
    id: "queue.reject-depth",
    level: Level::Error,
    what: "rejected means not deferred, and depth.out = depth.in",
    layouts: DETAILED,
    modes: ANY_MODE,
    ask: reject_depth,
};

fn reject_depth(case: &Case<'_>, asked: &mut Asked<'_, '_>) {
    for queue in waits(case, asked, is("rejected")) {
        match queue.flag(Field::Deferred) {
            Some(deferred) => asked.expect(queue, !deferred, || {
                "is rejected and deferred, expected deferred=false: it never waited".to_owned()
            }),
            None => asked.unsaid(),
        }
        match (queue.counted(Field::DepthIn), queue.counted(Field::DepthOut)) {
            (Some(depth_in), Some(depth_out)) => asked.expect(queue, depth_in == depth_out, || {
                format!("is rejected with depth.in {depth_in} and depth.out {depth_out}, expected them equal")
            }),
            _ => asked.unsaid(),
        }
    }
}

pub(super) const REJECT_END: Check = Check {
    id: "queue.reject-end",
    level: Level::Error,
    what: "rejected in the queue ends the request rejected, with nothing selected or dispatched in that leg",
    layouts: DETAILED,
    modes: ANY_MODE,
    ask: reject_end,
};

/// Expects the root to end a wait as it should.
fn ends_as(case: &Case<'_>, asked: &mut Asked<'_, '_>, queue: Span<'_>, level: impl Fn(Outcome) -> Option<Level>) {
    match case.outcome() {
        Some(outcome) => {
            let level = level(outcome);
            asked.expect_at(level.unwrap_or(Level::Error), Some(queue), level.is_none(), || {
                let word = queue.text(Field::QueueOutcome);
                format!("is {word} in the queue, the root ended {}: expected {word}", outcome.word())
            });
        }
        None => asked.unknown(case.no_outcome()),
    }
}

fn reject_end(case: &Case<'_>, asked: &mut Asked<'_, '_>) {
    for queue in waits(case, asked, is("rejected")) {
        ends_as(case, asked, queue, |outcome| (outcome != Outcome::Rejected).then_some(Level::Error));
        let later = |span: &Span<'_>| span.view.start_ns >= queue.view.end_ns.max(queue.view.start_ns);
        // Whether it followed in this attempt or in another.
        let said = |span: Span<'_>| span.says(Field::Attempt) && queue.says(Field::Attempt);
        if case.spans(Stage::Selection).chain(case.dispatches()).any(|span| later(&span) && !said(span)) {
            asked.unsaid();
        }
        let after = |span: &Span<'_>| said(*span) && span.attempt() == queue.attempt() && later(span);
        let next = case.siblings(queue, Stage::Selection).next();
        let next = next.or_else(|| case.spans(Stage::Selection).find(after)).or_else(|| case.dispatches().find(after));
        asked.expect(queue, next.is_none(), || {
            let (name, id) = next.map_or_else(Default::default, |next| (next.view.name, next.view.id.to_string()));
            format!("is rejected, yet {name} {id} followed in attempt {}: expected nothing after it", queue.attempt())
        });
    }
}

pub(super) const CANCEL_END: Check = Check {
    id: "queue.cancel-end",
    level: Level::Error,
    what: "cancelled in the queue ends the request cancelled (timed out: a warning)",
    layouts: DETAILED,
    modes: ANY_MODE,
    ask: cancel_end,
};

fn cancel_end(case: &Case<'_>, asked: &mut Asked<'_, '_>) {
    for queue in waits(case, asked, is("cancelled")) {
        ends_as(case, asked, queue, |outcome| match outcome {
            Outcome::Cancelled => None,
            Outcome::TimedOut => Some(Level::Warning),
            _ => Some(Level::Error),
        });
    }
}

pub(super) const THEN_SELECTION: Check = Check {
    id: "queue.then-selection",
    level: Level::Error,
    what: "dequeued is followed by a selection in the same schedule span, not before the wait ended",
    layouts: EVIDENCE,
    modes: ANY_MODE,
    ask: then_selection,
};

fn then_selection(case: &Case<'_>, asked: &mut Asked<'_, '_>) {
    for queue in waits(case, asked, left) {
        let left_ns = queue.view.end_ns;
        let mut beside = case.siblings(queue, Stage::Selection).peekable();
        if beside.peek().is_none() {
            // A selection in another place speaks louder than spans lost elsewhere.
            let elsewhere = case.settled && case.spans(Stage::Selection).any(|span| span.view.parent.is_none());
            let say = || "is dequeued without a router.selection beside it, expected one".to_owned();
            if elsewhere {
                asked.expect(queue, false, say);
            } else {
                asked.expect_there(Some(queue), false, say);
            }
            continue;
        }
        let timeless = |span: Span<'_>| span.view.start_ns == 0;
        if left_ns == 0 || case.siblings(queue, Stage::Selection).any(timeless) {
            asked.unsaid();
            continue;
        }
        let early = beside.find(|selection| selection.view.start_ns < left_ns && left_ns >= queue.view.start_ns);
        asked.expect(queue, early.is_none(), || {
            let (id, ahead) = early.map_or_else(Default::default, |early| {
                (early.view.id.to_string(), (left_ns - early.view.start_ns) as f64 / 1e6)
            });
            format!("was left {ahead:.3} ms after router.selection {id} began, expected the selection afterwards")
        });
    }
}

#[cfg(test)]
mod tests {
    use super::super::Why;
    use super::super::fixture::Scene;
    use super::*;

    const QUEUE: &str = "router.queue";
    const OUTCOME: &str = "dynamo.router.queue.outcome";
    const DEFERRED_KEY: &str = "dynamo.router.queue.deferred";
    const REASON_KEY: &str = "dynamo.router.queue.reason";

    fn cancelled() -> Scene {
        Scene::rejected()
            .set(QUEUE, OUTCOME, "cancelled")
            .set(QUEUE, REASON_KEY, "request_lifecycle_ended_before_admission")
            .ended("cancelled")
    }

    #[test]
    fn legal_waits_are_clean() {
        Scene::rejected().is_clean();
        cancelled().is_clean();
        cancelled().set(QUEUE, DEFERRED_KEY, true).is_clean();
        Scene::draft().is_clean();
        Scene::migrated().is_clean();
        let expired = cancelled().set(QUEUE, OUTCOME, "expired").set(QUEUE, REASON_KEY, "deadline").ended("timed_out");
        expired.is_clean();
    }

    #[test]
    fn facts() {
        let id = "queue.facts";
        Scene::aggregated().holds(id);
        for key in ["class", "policy", "depth.in", "depth.out", "deferred", "outcome"] {
            Scene::aggregated().without(QUEUE, &format!("dynamo.router.queue.{key}")).violates(id, key);
        }
        cancelled().without(QUEUE, "dynamo.router.queue.depth.out").holds(id);
        Scene::base().unknown(id, Why::Layout);
    }

    #[test]
    fn reason() {
        let id = "queue.reason";
        Scene::aggregated().holds(id);
        Scene::rejected().holds(id);
        Scene::rejected().without(QUEUE, REASON_KEY).violates(id, "rejected with reason nothing");
        Scene::rejected().set(QUEUE, REASON_KEY, "because").violates(id, "expected request_limit or");
        Scene::aggregated().set(QUEUE, REASON_KEY, "class_backlog").violates(id, "expected none");
        cancelled().without(QUEUE, REASON_KEY).violates(id, "request_lifecycle_ended_before_admission");
        cancelled().set(QUEUE, OUTCOME, "failed").without(QUEUE, REASON_KEY).violates(id, "subscriber_shutdown");
        Scene::draft().unknown(id, Why::Layout);
        Scene::aggregated().drop(QUEUE).unknown(id, Why::NotHere);
    }

    #[test]
    fn deferral() {
        let id = "queue.deferral";
        let deferred = Scene::aggregated().set(QUEUE, DEFERRED_KEY, true);
        deferred.clone().set(QUEUE, REASON_KEY, "prefill_capacity").holds(id);
        deferred.violates(id, "reason nothing");
        deferred.set(QUEUE, REASON_KEY, "policy_ordering").violates(id, "reason policy_ordering");
        Scene::aggregated().unknown(id, Why::NotHere);
    }

    #[test]
    fn reject_depth() {
        let (id, out) = ("queue.reject-depth", "dynamo.router.queue.depth.out");
        Scene::rejected().holds(id);
        Scene::rejected().set(QUEUE, out, 7).violates(id, "depth.in 0 and depth.out 7");
        Scene::rejected().set(QUEUE, DEFERRED_KEY, true).violates(id, "deferred=false");
        Scene::rejected().without(QUEUE, out).unknown(id, Why::Unsaid);
        Scene::aggregated().unknown(id, Why::NotHere);
    }

    #[test]
    fn reject_end() {
        let id = "queue.reject-end";
        Scene::rejected().holds(id);
        Scene::rejected().ended("failed").violates(id, "the root ended failed");
        let followed = Scene::aggregated().set(QUEUE, OUTCOME, "rejected").ended("rejected");
        followed.violates(id, "yet router.selection");
        followed.drop("router.selection").violates(id, "yet request.dispatch");
        Scene::rejected().lose("request.lifecycle").unknown(id, Why::NoRoot);
        Scene::aggregated().unknown(id, Why::NotHere);
    }

    #[test]
    fn cancel_end() {
        let id = "queue.cancel-end";
        cancelled().holds(id);
        cancelled().ended("failed").violates(id, "the root ended failed");
        cancelled().ended("timed_out").violates_at(id, Level::Warning, "the root ended timed_out");
        cancelled().lose("request.lifecycle").unknown(id, Why::NoRoot);
        Scene::aggregated().unknown(id, Why::NotHere);
    }

    #[test]
    fn then_selection() {
        let id = "queue.then-selection";
        Scene::disaggregated().holds(id);
        Scene::aggregated().drop("router.selection").violates(id, "without a router.selection");
        Scene::aggregated().alone("router.selection").violates(id, "without a router.selection");
        Scene::aggregated().times("router.selection", 1_061, 1_160).violates(id, "0.039 ms after router.selection");
        Scene::aggregated().drop("router.selection").lose("kv_router.schedule").unknown(id, Why::Lost);
        Scene::rejected().unknown(id, Why::NotHere);
        Scene::draft().unknown(id, Why::Layout);
        Scene::draft_disaggregated().router_apart().unknown(id, Why::Layout);
    }
}
