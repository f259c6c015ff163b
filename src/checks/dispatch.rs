//! The way to the workers: what a dispatch says, the selection it follows, the attempts and legs it belongs to.

use std::collections::BTreeMap;

use super::case::{Asked, Case, Span, both, named, one_worker, said, word};
use super::queue::{left, pool_of};
use super::selection::made;
use super::{ANY_LAYOUT, ANY_MODE, Check, DETAILED, EVIDENCE, Level, Why};
use crate::lifecycle::catalogue::Field;
use crate::lifecycle::ids::Worker;
use crate::lifecycle::request::Up;
use crate::lifecycle::stage::{Layout, Outcome, Phase, Stage};

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

fn is_kv(dispatch: Span<'_>) -> bool {
    dispatch.text(Field::DispatchRoute) == "kv"
}

/// Whether both belong to one attempt; `None` when one does not say.
fn one_attempt(one: Span<'_>, other: Span<'_>) -> Option<bool> {
    Some(one.number(Field::Attempt)? == other.number(Field::Attempt)?)
}

fn selection(case: &Case<'_>, asked: &mut Asked<'_, '_>) {
    let draft = case.facts.layout == Layout::Draft;
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
        let phase = dispatch.phase();
        // Of its leg, as far as both say so; drafts name no phase.
        let of_leg = |span: Span<'_>| {
            let said = draft || (dispatch.says(Field::DispatchPhase) && span.says(Field::Pool));
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
                let to = named(Some(destination));
                match last {
                    Some(last) => format!(
                        "went to {to} for {}, router.selection {} chose {} from pool {}: expected one worker",
                        phase.word(),
                        last.view.id,
                        named(last.selected()),
                        last.pool().word()
                    ),
                    None => format!(
                        "went to {to} without an earlier selection, expected one of attempt {}",
                        dispatch.attempt()
                    ),
                }
            };
            // The fitting one may be on its way, or lost.
            match fitting().next() {
                Some(_) => asked.expect(dispatch, false, say),
                None => asked.expect_there(Some(dispatch), false, say),
            }
        }
    }
}

pub(super) const ONE_TO_ONE: Check = Check {
    id: "dispatch.one-to-one",
    level: Level::Error,
    what: "queue exits, made selections and dispatches are equal per leg and attempt (cancelled: a warning)",
    layouts: DETAILED,
    modes: ANY_MODE,
    ask: one_to_one,
};

/// How many there are of one leg and attempt.
#[derive(Default)]
struct Counts {
    exits: u32,
    selections: u32,
    dispatches: u32,
}

/// The pool of a phase: aggregated pools also say decode.
fn pool(phase: Phase) -> Phase {
    if phase == Phase::Aggregated { Phase::Decode } else { phase }
}

fn one_to_one(case: &Case<'_>, asked: &mut Asked<'_, '_>) {
    // What does not say its leg or attempt counts nowhere. Drafts name no phase.
    let phased = case.facts.layout == Layout::Evidence;
    let of_leg = [Field::Attempt, if phased { Field::DispatchPhase } else { Field::Attempt }];
    let choices = case.spans(Stage::Selection).filter(|span| made(*span));
    if !choices.into_iter().all(|span| asked.compares(span, &[Field::Attempt, Field::Pool]))
        || !case.dispatches().all(|span| asked.compares(span, &of_leg))
        || !case.spans(Stage::Queue).all(|span| asked.compares(span, &[Field::Attempt]))
    {
        return;
    }
    let mut legs: BTreeMap<(u64, Phase), Counts> = BTreeMap::new();
    let advisory = |span: Span<'_>| case.up(span).is_some_and(|above| above.view.stage == Stage::Advisory);
    for span in case.spans(Stage::Selection).filter(|span| made(*span) && !advisory(*span)) {
        legs.entry((span.attempt(), pool(span.pool()))).or_default().selections += 1;
    }
    // Without a route it counts as KV where a router was asked.
    let asked_router = !legs.is_empty() || case.spans(Stage::Queue).next().is_some();
    let routed = |span: &Span<'_>| is_kv(*span) || (asked_router && !span.has(Field::DispatchRoute));
    for span in case.dispatches().filter(routed) {
        // Drafts name no phase: the selection of the attempt says which leg.
        let phase = match pool(span.phase()) {
            Phase::Unknown if !span.has(Field::DispatchPhase) => {
                legs.keys().find(|(attempt, _)| *attempt == span.attempt()).map_or(Phase::Decode, |leg| leg.1)
            }
            phase => phase,
        };
        legs.entry((span.attempt(), phase)).or_default().dispatches += 1;
    }
    // A wait without an outcome was left when a selection stands beside it.
    let exits = |span: &Span<'_>| {
        left(*span) || (!span.has(Field::QueueOutcome) && case.siblings(*span, Stage::Selection).next().is_some())
    };
    for span in case.spans(Stage::Queue).filter(exits) {
        let attempt = span.attempt();
        // Alone, a wait belongs to the leg of its attempt that lacks one.
        let lacking = || legs.iter().find(|(leg, counts)| leg.0 == attempt && counts.exits == 0).map(|(leg, _)| leg.1);
        let phase = pool_of(case, span).map(pool).or_else(lacking).unwrap_or(Phase::Decode);
        legs.entry((attempt, phase)).or_default().exits += 1;
    }
    // How it ended matters only to what is unequal.
    let cancelled = || case.outcome() == Some(Outcome::Cancelled);
    let any = case
        .dispatches()
        .next()
        .or_else(|| case.spans(Stage::Selection).next())
        .or_else(|| case.spans(Stage::Queue).next());
    for ((attempt, phase), Counts { exits, selections, dispatches }) in legs {
        let equal = exits == selections && selections == dispatches;
        if !equal && !case.settled {
            asked.unknown(Why::Arriving);
        } else if !equal && case.lost {
            asked.unknown(Why::Lost);
        } else {
            let level = if !equal && cancelled() { Level::Warning } else { Level::Error };
            asked.expect_at(level, any, equal, || {
                let phase = phase.word();
                format!(
                    "belongs to {exits} queue exits, {selections} made selections and {dispatches} dispatches of the \
                     {phase} leg in attempt {attempt}, expected as many of each"
                )
            });
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
    let phase = |span: Span<'_>| if base { Phase::of(span.text(Field::RoutePhase)) } else { span.phase() };
    // One that does not say its number may be any, and fill any gap.
    let all = tries.len();
    let tries: Vec<Span<'_>> = tries.into_iter().filter(|span| asked.compares(*span, &[Field::Attempt])).collect();
    let mut numbers: Vec<u64> = tries.iter().map(|span| span.attempt()).collect();
    numbers.sort_unstable();
    numbers.dedup();
    if let (Some(last), Some((gap, _))) = (
        tries.last().filter(|_| tries.len() == all),
        numbers.iter().enumerate().find(|(expected, number)| *expected as u64 != **number),
    ) {
        asked.expect_there(Some(*last), false, || {
            format!("is attempt {}, attempt {gap} never came: expected 0 to the last without a gap", last.attempt())
        });
    }
    for (index, span) in tries.iter().enumerate() {
        let (number, of) = (span.attempt(), phase(*span));
        let before = tries[..index]
            .iter()
            .find(|other| of != Phase::Unknown && other.attempt() == number && phase(**other) == of);
        let unphased = |other: &Span<'_>| of == Phase::Unknown || phase(*other) == Phase::Unknown;
        if tries[..index].iter().any(|other| other.attempt() == number && unphased(other)) {
            asked.unsaid();
        }
        asked.expect(*span, before.is_none(), || {
            let before = said(before.map(|before| before.view.id));
            format!("is attempt {number} for {}, so is {before}: expected one per phase", of.word())
        });
        if number == 0 {
            continue;
        }
        let route = if base { Some(*span) } else { routes().find(|route| route.view.up == Up::At(span.at)) };
        let beside = || routes().find(|route| route.number(Field::Attempt) == Some(number));
        match route.or_else(beside) {
            Some(route) => {
                let retry = route.flag(Field::IsRetry);
                asked.expect(route, retry == Some(true), || {
                    format!("has migration.is_retry {} in attempt {number}, expected true", said(retry))
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
        if !asked.compares(decode, &[Field::DispatchPhase, Field::Attempt]) || decode.phase() != Phase::Decode {
            continue;
        }
        let attempt = decode.attempt();
        let of_prefill = |span: Span<'_>, said: Field, phase: Phase| {
            let fits = span.says(said).then_some(phase == Phase::Prefill);
            both(fits, one_attempt(span, decode))
        };
        let dispatched: Vec<_> =
            case.dispatches().map(|span| of_prefill(span, Field::DispatchPhase, span.phase())).collect();
        let prefill = dispatched.contains(&Some(true));
        // What does not say its phase or attempt may be the prefill of this one.
        if !prefill && dispatched.contains(&None) {
            asked.unsaid();
            continue;
        }
        // Conditional disaggregation never asks for a prefill worker.
        let selected: Vec<_> =
            case.spans(Stage::Selection).map(|span| of_prefill(span, Field::Pool, span.pool())).collect();
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
    // Drafts name no phase.
    if case.facts.layout == Layout::Evidence
        && !case.dispatches().all(|span| asked.compares(span, &[Field::DispatchPhase]))
    {
        return;
    }
    let last = case.dispatches().filter(|span| span.phase() != Phase::Prefill).last();
    let Some(last) = last else { return };
    match last.text(Field::DispatchResult) {
        "" => asked.unsaid(),
        result => asked.expect(last, result == "accepted", || {
            let to: Option<Worker> = last.destination();
            format!("to {} is {result} in a successful request, expected its last dispatch accepted", named(to))
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::super::fixture::Scene;
    use super::*;

    const DISPATCH: &str = "request.dispatch";
    const RESULT: &str = "dynamo.dispatch.result";

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
    }

    #[test]
    fn one_to_one() {
        let id = "dispatch.one-to-one";
        Scene::disaggregated().holds(id);
        Scene::migrated().holds(id);
        Scene::draft().holds(id);
        Scene::aggregated().alone("router.selection").holds(id);
        // What other checks report about a leg does not miscount it.
        Scene::aggregated().without("router.queue", "dynamo.router.queue.outcome").holds(id);
        Scene::aggregated().without(DISPATCH, "dynamo.dispatch.route").holds(id);
        Scene::aggregated().again("router.queue").violates(id, "2 queue exits, 1 made selections and 1 dispatches");
        let undispatched = Scene::disaggregated().drop(DISPATCH);
        undispatched.violates(id, "1 made selections and 0 dispatches of the prefill leg in attempt 0");
        undispatched.ended("cancelled").violates_at(id, Level::Warning, "prefill leg");
        Scene::aggregated().drop("router.queue").lose("kv_router.schedule").unknown(id, Why::Lost);
        Scene::rejected().unknown(id, Why::NotHere);
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
    }

    #[test]
    fn legs() {
        let id = "dispatch.legs";
        Scene::disaggregated().holds(id);
        Scene::disaggregated().drop(DISPATCH).violates(id, "without a prefill dispatch");
        Scene::disaggregated().drop(DISPATCH).drop("kv_router.select_worker").unknown(id, Why::NotHere);
        Scene::aggregated().unknown(id, Why::NotHere);
        Scene::draft().unknown(id, Why::Layout);
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
    }
}
