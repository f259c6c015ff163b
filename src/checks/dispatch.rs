//! The way to the workers: what a dispatch says, the selection it follows, the attempts and legs it belongs to. Keeps out:
//! that each leg has one of each (`legs`).

use std::collections::HashMap;

use super::case::{Asked, Case, Span, both, named, one_worker, said, word};
use super::selection::made;
use super::{ANY_LAYOUT, ANY_MODE, Check, DETAILED, EVIDENCE, Level, Why};
use crate::lifecycle::catalogue::Field;
use crate::lifecycle::ids::{SpanId, Worker};
use crate::lifecycle::request::Up;
use crate::lifecycle::stage::{Layout, Phase, Stage};

pub(super) const FACTS: Check = Check {
    id: "dispatch.facts",
    level: Level::Error,
    what: "route, destination worker and component frontend are there (a missing result: a warning)",
    layouts: DETAILED,
    modes: ANY_MODE,
    ask: facts,
};

fn facts(case: &Case<'_>, asked: &mut Asked<'_, '_>) {
    for dispatch in case.dispatches() {
        let result = dispatch.text(Field::DispatchResult);
        let component = dispatch.text(Field::Component);
        asked.expect(dispatch, dispatch.has(Field::DispatchRoute), || {
            "names no dynamo.dispatch.route, expected one such as kv".to_owned()
        });
        asked.expect(dispatch, component == "frontend", || {
            format!("has component {}, expected frontend", word(component))
        });
        if dispatch.number(Field::DestinationWorker).is_none() {
            // Cancelled or failed before a target was tried, it has none to name.
            if matches!(result, "cancelled" | "failed") {
                asked.unsaid();
            } else {
                asked.expect(dispatch, false, || {
                    "names no dynamo.dispatch.destination.worker.id, expected the worker it went to".to_owned()
                });
            }
        }
        asked.expect_at(Level::Warning, Some(dispatch), !result.is_empty(), || {
            "has no dynamo.dispatch.result (its future was dropped), expected accepted, cancelled or failed".to_owned()
        });
    }
}

pub(super) const SELECTION: Check = Check {
    id: "dispatch.selection",
    level: Level::Error,
    what: "an accepted KV dispatch goes to the worker and rank that an earlier selection of its pool chose",
    layouts: DETAILED,
    modes: ANY_MODE,
    ask: selection,
};

pub(super) fn is_kv(dispatch: Span<'_>) -> bool {
    dispatch.text(Field::DispatchRoute) == "kv"
}

/// Whether both belong to one attempt; `None` when one does not say.
fn one_attempt(one: Span<'_>, other: Span<'_>) -> Option<bool> {
    Some(one.number(Field::Attempt)? == other.number(Field::Attempt)?)
}

fn selection(case: &Case<'_>, asked: &mut Asked<'_, '_>) {
    for dispatch in case.dispatches() {
        if !asked.compares(dispatch, &[Field::DispatchRoute, Field::DispatchResult])
            || !is_kv(dispatch)
            || dispatch.text(Field::DispatchResult) != "accepted"
        {
            continue;
        }
        let Some(destination) = dispatch.destination() else {
            asked.unsaid();
            continue;
        };
        let phase = case.phase(dispatch);
        // Of its leg, as far as both say so.
        let of_leg = |span: Span<'_>| {
            let said = phase != Phase::Unknown && span.pool() != Phase::Unknown;
            let fits = Some(phase.fits_pool(span.pool())).filter(|fits| said || !fits);
            both(one_attempt(span, dispatch), fits)
        };
        let earlier = || {
            case.spans(Stage::Selection)
                .filter(|span| span.view.start_ns <= dispatch.view.start_ns && span.attempt() == dispatch.attempt())
        };
        let fitting = || earlier().filter(|span| phase.fits_pool(span.pool()));
        let chose = |span: Span<'_>| match span.selected() {
            Some(selected) => one_worker(selected, destination),
            None => (!made(span)).then_some(false),
        };
        let before = |span: Span<'_>| {
            let (one, other) = (span.view.start_ns, dispatch.view.start_ns);
            (one > 0 && other > 0).then_some(one <= other)
        };
        let choices = case.spans(Stage::Selection);
        let fits: Vec<_> = choices.map(|span| both(before(span), both(of_leg(span), chose(span)))).collect();
        if fits.contains(&Some(true)) {
            asked.expect(dispatch, true, String::new);
        } else if fits.contains(&None) {
            asked.unsaid();
        } else {
            let last = fitting().last().or_else(|| earlier().last());
            let say = || {
                let (to, number) = (named(Some(destination)), dispatch.attempt());
                match last.map(|last| (last.view.id, named(last.selected()), last.pool().word())) {
                    Some((id, chosen, _)) if phase == Phase::Unknown => format!(
                        "went to {to}, which no earlier router.selection of attempt {number} chose (the last, {id}, \
                         chose {chosen}): expected one that did"
                    ),
                    Some((id, chosen, pool)) => format!(
                        "went to {to} for {}, router.selection {id} chose {chosen} from pool {pool}: expected one worker",
                        phase.word()
                    ),
                    None => format!("went to {to} without an earlier selection, expected one of attempt {number}"),
                }
            };
            // The fitting one may be on its way, or lost.
            if fitting().any(|span| phase != Phase::Unknown && span.pool() != Phase::Unknown) {
                asked.expect(dispatch, false, say);
            } else {
                asked.expect_there(Some(dispatch), false, say);
            }
        }
    }
}

pub(super) const ATTEMPTS: Check = Check {
    id: "dispatch.attempts",
    level: Level::Error,
    what: "attempts count from 0 without a gap, one per phase, and later ones are retries by their route span",
    layouts: ANY_LAYOUT,
    modes: ANY_MODE,
    ask: attempts,
};

fn attempts(case: &Case<'_>, asked: &mut Asked<'_, '_>) {
    // In the base layout the route span is the attempt.
    let base = case.facts.layout == Layout::Base;
    let routes = || case.spans(Stage::Route);
    let tries: Vec<Span<'_>> = if base { routes().collect() } else { case.dispatches().collect() };
    let phase = |span: Span<'_>| if base { Phase::of(span.text(Field::RoutePhase)) } else { case.phase(span) };
    // There every prefill says 0, and the leg knows which attempt it is of.
    let prefills = case.facts.legs.iter().filter(|leg| base && leg.phase == Phase::Prefill);
    let numbered: HashMap<SpanId, u32> =
        prefills.filter_map(|leg| Some((leg.dispatch.as_ref()?.span, leg.attempt))).collect();
    let number =
        |span: Span<'_>| numbered.get(&span.view.id).map_or_else(|| span.attempt(), |number| u64::from(*number));
    // One that does not say its number may be any, and fill any gap.
    let all = tries.len();
    let tries: Vec<Span<'_>> = tries.into_iter().filter(|span| asked.compares(*span, &[Field::Attempt])).collect();
    let mut numbers: Vec<u64> = tries.iter().map(|span| number(*span)).collect();
    numbers.sort_unstable();
    numbers.dedup();
    if let (Some(last), Some((gap, _))) = (
        tries.last().filter(|_| tries.len() == all),
        numbers.iter().enumerate().find(|(expected, number)| *expected as u64 != **number),
    ) {
        asked.expect_there(Some(*last), false, || {
            format!("is attempt {}, attempt {gap} never came: expected 0 to the last without a gap", number(*last))
        });
    }
    // A failure that was not said may be what made a prefill one of a migration.
    let all_say = tries.iter().all(|other| other.says(Field::RouteOutcome));
    for (index, span) in tries.iter().enumerate() {
        let (own, of) = (number(*span), phase(*span));
        let alike = || tries[..index].iter().filter(|other| number(**other) == own);
        let before = alike().find(|other| of != Phase::Unknown && phase(**other) == of);
        let may_be_moved = base && of == Phase::Prefill && !all_say;
        // Of two of one number, one may serve the phase of the other.
        if before.is_none() && alike().any(|other| of == Phase::Unknown || phase(*other) == Phase::Unknown)
            || before.is_some() && may_be_moved
        {
            asked.unsaid();
        } else {
            asked.expect(*span, before.is_none(), || {
                let before = said(before.map(|before| before.view.id));
                format!("is attempt {own} for {}, so is {before}: expected one per phase", of.word())
            });
        }
        if span.attempt() == 0 {
            continue;
        }
        let route = if base { Some(*span) } else { routes().find(|route| route.view.up == Up::At(span.at)) };
        let beside = || routes().find(|route| route.number(Field::Attempt) == Some(own));
        match route.or_else(beside) {
            Some(route) => {
                let retry = route.flag(Field::IsRetry);
                asked.expect(route, retry == Some(true), || {
                    format!("has migration.is_retry {} in attempt {own}, expected true", said(retry))
                });
            }
            None => asked.unknown(if case.settled { Why::Lost } else { Why::Arriving }),
        }
    }
}

pub(super) const LEGS: Check = Check {
    id: "dispatch.legs",
    level: Level::Warning,
    what: "a decode dispatch has a prefill dispatch of the same attempt, unless no prefill was selected (conditional disaggregation)",
    layouts: EVIDENCE,
    modes: ANY_MODE,
    ask: legs,
};

fn legs(case: &Case<'_>, asked: &mut Asked<'_, '_>) {
    for decode in case.dispatches() {
        let phase = case.phase(decode);
        if phase == Phase::Unknown {
            asked.unsaid();
        }
        if phase != Phase::Decode || !asked.compares(decode, &[Field::Attempt]) {
            continue;
        }
        let attempt = decode.attempt();
        let of_prefill = |phase: Phase, span: Span<'_>| {
            both((phase != Phase::Unknown).then_some(phase == Phase::Prefill), one_attempt(span, decode))
        };
        let dispatched: Vec<_> = case.dispatches().map(|span| of_prefill(case.phase(span), span)).collect();
        let prefill = dispatched.contains(&Some(true));
        // What does not say its phase or attempt may be the prefill of this one.
        if !prefill && dispatched.contains(&None) {
            asked.unsaid();
            continue;
        }
        // Conditional disaggregation never asks for a prefill worker.
        let selected: Vec<_> = case.spans(Stage::Selection).map(|span| of_prefill(span.pool(), span)).collect();
        if !prefill && selected.contains(&None) {
            asked.unsaid();
            continue;
        }
        if !prefill && !selected.contains(&Some(true)) {
            asked.unknown(Why::NotHere);
            continue;
        }
        asked.expect_there(Some(decode), prefill, || {
            format!("dispatches decode in attempt {attempt} without a prefill dispatch, expected one before it")
        });
    }
}

pub(super) const SUCCESS: Check = Check {
    id: "dispatch.success",
    level: Level::Error,
    what: "a successful request's last decode or aggregated dispatch was accepted",
    layouts: DETAILED,
    modes: ANY_MODE,
    ask: success,
};

fn success(case: &Case<'_>, asked: &mut Asked<'_, '_>) {
    if case.root().is_none() {
        return asked.unknown(Why::NoRoot);
    }
    if !case.succeeded() {
        return;
    }
    let last = case.dispatches().filter(|span| !matches!(case.phase(*span), Phase::Prefill | Phase::Unknown)).last();
    // What came after it, or instead of it, and may have been for decode.
    let from = last.map_or(0, |last| last.view.start_ns);
    let mut maybe = case.dispatches().filter(|span| case.phase(*span) == Phase::Unknown && span.view.start_ns >= from);
    let Some(last) = last else {
        if maybe.next().is_some() {
            asked.unsaid();
        }
        return;
    };
    let result = last.text(Field::DispatchResult);
    if maybe.any(|span| result != "accepted" || span.text(Field::DispatchResult) != result) {
        return asked.unsaid();
    }
    match result {
        "" => asked.unsaid(),
        // A later one may be on its way, or lost.
        result => asked.expect_there(Some(last), result == "accepted", || {
            let to: Option<Worker> = last.destination();
            format!("to {} is {result} in a successful request, expected its last dispatch accepted", named(to))
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::super::fixture::{PREFILL, Scene};
    use super::*;

    const DISPATCH: &str = "request.dispatch";
    const RESULT: &str = "dynamo.dispatch.result";
    const TO: &str = "dynamo.dispatch.destination.worker.id";

    #[test]
    fn facts() {
        let id = "dispatch.facts";
        Scene::disaggregated().holds(id);
        Scene::aggregated().without(DISPATCH, "dynamo.dispatch.route").violates(id, "no dynamo.dispatch.route");
        let worker = "dynamo.dispatch.destination.worker.id";
        Scene::aggregated().without(DISPATCH, worker).violates(id, worker);
        for component in ["router", "worker"] {
            Scene::aggregated().set(DISPATCH, "dynamo.component", component).violates(id, component);
        }
        Scene::aggregated().without(DISPATCH, RESULT).violates_at(id, Level::Warning, "no dynamo.dispatch.result");
        let cancelled = Scene::aggregated().set(DISPATCH, RESULT, "cancelled").ended("cancelled");
        cancelled.without(DISPATCH, worker).unknown(id, Why::Unsaid);
        Scene::base().unknown(id, Why::Layout);
    }

    #[test]
    fn selection() {
        let (id, rank) = ("dispatch.selection", "dynamo.dispatch.destination.dp.rank");
        Scene::disaggregated().holds(id);
        Scene::disaggregated().set("request.dispatch#2", rank, 1).violates(id, ":1 for decode, router.selection");
        Scene::aggregated()
            .set("router.selection", "dynamo.router.pool.role", "prefill")
            .violates(id, "from pool prefill");
        Scene::aggregated().times("router.selection", 1_300, 1_350).violates(id, "without an earlier selection");
        Scene::aggregated().drop("router.selection").violates(id, "without an earlier selection");
        Scene::aggregated().without("router.selection", "dynamo.router.selected.worker.id").unknown(id, Why::Unsaid);
        Scene::aggregated().set(DISPATCH, RESULT, "failed").ended("rejected").unknown(id, Why::NotHere);
        // A pool that is not said fits no phase for sure.
        Scene::aggregated().without("router.selection", "dynamo.router.pool.role").unknown(id, Why::Unsaid);
    }

    #[test]
    fn selection_of_drafts() {
        let id = "dispatch.selection";
        let draft = Scene::draft_disaggregated();
        for healthy in [draft.clone(), draft.clone().without_words(), draft.clone().router_apart()] {
            healthy.holds(id);
        }
        // Its route span says which leg it is: it went where the other leg's selection chose.
        let astray = draft.clone().set("request.dispatch#2", TO, PREFILL);
        astray.violates_at(id, Level::Warning, "for decode, router.selection");
        astray.without_words().unknown(id, Why::Unsaid);
        // Whichever leg it is, nobody chose its worker.
        let nowhere = draft.without_words().set("request.dispatch#2", TO, 7);
        nowhere.violates_at(id, Level::Warning, "which no earlier router.selection of attempt 0 chose");
        nowhere.lose("kv_router.schedule").unknown(id, Why::Lost);
    }

    #[test]
    fn attempts() {
        let (id, retry) = ("dispatch.attempts", "migration.is_retry");
        Scene::migrated().holds(id);
        Scene::migrated().set("kv_router.route_request#2", retry, false).violates(id, "is_retry false in attempt 1");
        Scene::migrated().drop("kv_router.select_worker").drop(DISPATCH).violates(id, "attempt 0 never came");
        Scene::migrated().set("request.dispatch#2", "dynamo.request.attempt", 0).violates(id, "expected one per phase");
        Scene::base().holds(id);
        Scene::migrated().lose("kv_router.route_request#2").unknown(id, Why::Lost);
        Scene::rejected().unknown(id, Why::NotHere);
        let draft = Scene::draft_disaggregated();
        draft.holds(id);
        draft.clone().without_words().holds(id);
        let twice = draft.clone().set("kv_router.route_request#2", "phase", "prefill");
        twice.violates_at(id, Level::Warning, "is attempt 0 for prefill, so is");
        draft.without_words().unaddressed(2).unknown(id, Why::Unsaid);
    }

    #[test]
    fn legs() {
        let id = "dispatch.legs";
        Scene::disaggregated().holds(id);
        Scene::disaggregated().drop(DISPATCH).violates(id, "without a prefill dispatch");
        Scene::disaggregated().drop(DISPATCH).drop("kv_router.select_worker").unknown(id, Why::NotHere);
        Scene::aggregated().unknown(id, Why::NotHere);
        Scene::draft().unknown(id, Why::Layout);
        let unsaid = Scene::disaggregated().without_words().without(DISPATCH, "dynamo.dispatch.phase");
        unsaid.holds(id);
        unsaid.unaddressed(1).unknown(id, Why::Unsaid);
    }

    #[test]
    fn success() {
        let id = "dispatch.success";
        Scene::disaggregated().holds(id);
        Scene::disaggregated()
            .set("request.dispatch#2", RESULT, "failed")
            .violates(id, "is failed in a successful request");
        Scene::disaggregated().set(DISPATCH, RESULT, "failed").holds(id);
        Scene::aggregated().without(DISPATCH, RESULT).unknown(id, Why::Unsaid);
        Scene::aggregated().ended("cancelled").unknown(id, Why::NotHere);
        let draft = Scene::draft_disaggregated();
        draft.holds(id);
        draft.clone().without_words().set(DISPATCH, RESULT, "failed").holds(id);
        let failed = draft.set("request.dispatch#2", RESULT, "failed").without_words();
        failed.violates_at(id, Level::Warning, "is failed in a successful request");
        failed.unaddressed(2).unknown(id, Why::Unsaid);
    }
}
