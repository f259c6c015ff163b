//! That each leg has one wait, one choice and one dispatch. Owns: which leg a router span belongs to, as far as that is
//! known. What may be of either leg is counted as such and decides nothing.

use std::collections::BTreeMap;

use super::case::{Asked, Case, Span};
use super::dispatch::is_kv;
use super::queue::left;
use super::selection::made;
use super::{ANY_MODE, Check, DETAILED, Level, Why};
use crate::lifecycle::catalogue::Field;
use crate::lifecycle::facts::Leg;
use crate::lifecycle::stage::{Outcome, Phase, Stage};

pub(super) const ONE_TO_ONE: Check = Check {
    id: "dispatch.one-to-one",
    level: Level::Error,
    what: "queue exits, made selections and dispatches are equal per leg and attempt (cancelled: a warning)",
    layouts: DETAILED,
    modes: ANY_MODE,
    ask: one_to_one,
};

/// How many queue exits, made selections and dispatches there are, in this order.
type Counts = [u32; 3];
const EXITS: usize = 0;
const SELECTIONS: usize = 1;
const DISPATCHES: usize = 2;

/// What belongs to one attempt.
#[derive(Default)]
struct Attempt {
    legs: BTreeMap<Phase, Counts>,
    /// Of a leg that is not known.
    of_either: Counts,
}

impl Attempt {
    fn count(&mut self, leg: Option<Phase>, kind: usize) {
        let counts = leg.map_or(&mut self.of_either, |leg| self.legs.entry(leg).or_default());
        counts[kind] += 1;
    }

    /// What is unequal whichever leg the rest belongs to, with its leg; the whole attempt has none.
    fn unequal(&self) -> Vec<(Option<Phase>, Counts)> {
        let short = |counts: &Counts| {
            let most = counts.iter().max().copied().unwrap_or(0);
            counts.iter().zip(self.of_either).any(|(count, more)| count + more < most)
        };
        let all = [EXITS, SELECTIONS, DISPATCHES]
            .map(|kind| self.of_either[kind] + self.legs.values().map(|counts| counts[kind]).sum::<u32>());
        if self.of_either != Counts::default() && all != [all[0]; 3] {
            return vec![(None, all)];
        }
        self.legs.iter().filter(|(_, counts)| short(counts)).map(|(leg, counts)| (Some(*leg), *counts)).collect()
    }
}

/// The leg of a phase or pool: aggregated pools also say decode. `None` when it is not known.
fn leg_of(phase: Phase) -> Option<Phase> {
    match phase {
        Phase::Aggregated => Some(Phase::Decode),
        Phase::Unknown => None,
        phase => Some(phase),
    }
}

/// The leg of a selection: its pool's, else that of the dispatch it was made for, which went where it chose.
fn leg_of_selection(case: &Case<'_>, span: Span<'_>) -> Option<Phase> {
    let went = |leg: &&Leg| {
        let is_its = leg.selection.as_ref().is_some_and(|selection| selection.span == Some(span.view.id));
        let worker = || leg.dispatch.as_ref()?.worker;
        is_its && span.selected().zip(worker()).is_some_and(|(chosen, worker)| chosen.agrees(worker))
    };
    leg_of(span.pool()).or_else(|| leg_of(case.facts.legs.iter().find(went)?.phase))
}

/// The leg of a wait: that of the selection beside it. Alone, as drafts wrote it, that of the next selection of its attempt,
/// when no other wait may have led to that.
fn leg_of_wait(case: &Case<'_>, queue: Span<'_>) -> Option<Phase> {
    if let Some(beside) = case.siblings(queue, Stage::Selection).next() {
        return leg_of_selection(case, beside);
    }
    let ended = queue.view.end_ns;
    if ended < queue.view.start_ns {
        return None;
    }
    let after = |span: &Span<'_>| span.attempt() == queue.attempt() && span.view.start_ns >= ended && made(*span);
    let next = case.spans(Stage::Selection).find(after)?;
    let between = |other: Span<'_>| {
        other.at != queue.at
            && other.attempt() == queue.attempt()
            && (ended..=next.view.start_ns).contains(&other.view.end_ns)
    };
    let anothers = case.siblings(next, Stage::Queue).next().is_some() || case.spans(Stage::Queue).any(between);
    if anothers { None } else { leg_of_selection(case, next) }
}

fn one_to_one(case: &Case<'_>, asked: &mut Asked<'_, '_>) {
    // What does not say its attempt counts nowhere.
    let all = [Stage::Selection, Stage::Dispatch, Stage::Queue].map(|stage| case.spans(stage));
    let mut all = all.into_iter().flatten().filter(|span| span.view.stage != Stage::Selection || made(*span));
    if !all.all(|span| asked.compares(span, &[Field::Attempt])) {
        return;
    }
    let mut attempts: BTreeMap<u64, Attempt> = BTreeMap::new();
    let advisory = |span: Span<'_>| case.up(span).is_some_and(|above| above.view.stage == Stage::Advisory);
    for span in case.spans(Stage::Selection).filter(|span| made(*span) && !advisory(*span)) {
        attempts.entry(span.attempt()).or_default().count(leg_of_selection(case, span), SELECTIONS);
    }
    // Without a route it counts as KV where a router was asked.
    let asked_router = !attempts.is_empty() || case.spans(Stage::Queue).next().is_some();
    let routed = |span: &Span<'_>| is_kv(*span) || (asked_router && !span.says(Field::DispatchRoute));
    for span in case.dispatches().filter(routed) {
        attempts.entry(span.attempt()).or_default().count(leg_of(case.phase(span)), DISPATCHES);
    }
    // A wait without an outcome was left when a selection stands beside it.
    let exits = |span: &Span<'_>| {
        left(*span) || (!span.has(Field::QueueOutcome) && case.siblings(*span, Stage::Selection).next().is_some())
    };
    // Where the choice beside it failed (spec lifecycle-spans §3), there is nobody to dispatch to.
    let failed = |span: &Span<'_>| {
        let mut beside = case.siblings(*span, Stage::Selection).peekable();
        beside.peek().is_some() && !beside.any(made)
    };
    for span in case.spans(Stage::Queue).filter(|span| exits(span) && !failed(span)) {
        attempts.entry(span.attempt()).or_default().count(leg_of_wait(case, span), EXITS);
    }
    if case.missed.lately() {
        // Whether a choice was made may be among what its sender dropped.
        return asked.unsaid();
    }
    let cancelled = case.outcome() == Some(Outcome::Cancelled);
    let level = if cancelled { Level::Warning } else { Level::Error };
    let any = case
        .dispatches()
        .next()
        .or_else(|| case.spans(Stage::Selection).next())
        .or_else(|| case.spans(Stage::Queue).next());
    for (number, attempt) in attempts {
        let unequal = attempt.unequal();
        if unequal.is_empty() {
            if attempt.of_either == Counts::default() {
                asked.expect_at(level, any, true, String::new);
            } else {
                asked.unknown(Why::Unsaid);
            }
        } else if !case.settled {
            asked.unknown(Why::Arriving);
        } else if case.lost {
            asked.unknown(Why::Lost);
        } else {
            for (leg, [exits, selections, dispatches]) in unequal {
                asked.expect_at(level, any, false, || {
                    let of = leg.map_or_else(String::new, |leg| format!("of the {} leg ", leg.word()));
                    let more: u32 = leg.map_or(0, |_| attempt.of_either.iter().sum());
                    let besides = if more > 0 { format!(" (and {more} of a leg not known)") } else { String::new() };
                    format!(
                        "belongs to {exits} queue exits, {selections} made selections and {dispatches} dispatches \
                         {of}in attempt {number}{besides}, expected as many of each"
                    )
                });
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::fixture::Scene;
    use super::*;
    use crate::lifecycle::stage::{Layout, Origin};

    const DISPATCH: &str = "request.dispatch";

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
        // A choice that failed makes no dispatch; one of which nothing says that it was made, and a dispatch, do not fit.
        let result = ["selected.worker.id", "selected.dp.rank", "selected.score", "best.worker.id", "best.dp.rank"];
        let result = result.into_iter().chain(["best.score", "best.margin"]);
        let without = |scene: Scene, key: &str| scene.without("router.selection", &format!("dynamo.router.{key}"));
        let unmade = result.fold(Scene::aggregated(), without);
        unmade.violates(id, "0 queue exits, 0 made selections and 1 dispatches");
        unmade.drop(DISPATCH).ended("rejected").unknown(id, Why::NotHere);
    }

    #[test]
    fn one_to_one_of_drafts() {
        let id = "dispatch.one-to-one";
        let (to, chosen) = ("dynamo.dispatch.destination.worker.id", "dynamo.router.selected.worker.id");
        let draft = Scene::draft_disaggregated();
        for healthy in [draft.clone(), draft.clone().without_words()] {
            healthy.holds(id);
            healthy.clone().router_apart().holds(id);
            healthy.is_clean();
            healthy.router_apart().is_clean();
        }
        // The route span says which leg.
        let twice = draft.clone().set("kv_router.route_request#2", "phase", "prefill");
        twice.violates_at(id, Level::Warning, "2 dispatches of the prefill leg in attempt 0");
        // Whichever leg they belong to, there are too few.
        let fewer = draft.clone().without_words().drop("request.dispatch#2");
        fewer.violates_at(id, Level::Warning, "0 dispatches of the decode leg in attempt 0");
        let fewer = draft.clone().without_words().unaddressed(1).drop("request.dispatch#2");
        fewer.violates_at(id, Level::Warning, "2 queue exits, 2 made selections and 1 dispatches in attempt 0");
        // Nothing says which leg a dispatch is of, or a selection, or a wait.
        draft.clone().without_words().unaddressed(2).unknown(id, Why::Unsaid);
        draft.clone().without_words().set("request.dispatch#2", to, 7).unknown(id, Why::Unsaid);
        let pool = "dynamo.router.pool.role";
        draft.clone().without_words().without("router.selection", pool).unknown(id, Why::Unsaid);
        let late =
            draft.clone().router_apart().times("router.queue", 1_060, 3_090).times("router.queue#2", 3_060, 3_095);
        late.unknown(id, Why::Unsaid);
        // A selection that names no pool was made for the dispatch that went where it chose.
        let evidence = Scene::disaggregated().without("router.selection", pool);
        evidence.holds(id);
        evidence.set("router.selection", chosen, 7).unknown(id, Why::Unsaid);
    }

    #[test]
    fn drafts_are_clean() {
        let drafts = [Scene::draft(), Scene::draft_disaggregated(), Scene::migrated().drafted()];
        for draft in drafts.into_iter().flat_map(|draft| [draft.clone(), draft.router_apart()]) {
            draft.is_clean();
            draft.clone().without_words().is_clean();
            // What one draft had of the policy filter makes it no other layout.
            draft.set("router.selection", "dynamo.router.candidate.filtered.policy", 0).is_clean();
        }
    }

    #[test]
    fn a_leg_is_what_is_said_of_it_and_is_marked_where_it_is_inferred() {
        use Origin::{Inferred, Span};
        use Phase::{Aggregated, Decode, Prefill, Unknown};
        let legs = |scene: Scene| {
            scene.with_view(|view| {
                let legs = view.facts.legs.iter().map(|leg| (leg.phase, leg.phase_origin)).collect::<Vec<_>>();
                (view.facts.layout, legs)
            })
        };
        let draft = Scene::draft_disaggregated();
        let (said, inferred) = (vec![(Prefill, Span), (Decode, Span)], vec![(Prefill, Inferred), (Decode, Inferred)]);
        assert_eq!(legs(Scene::disaggregated()), (Layout::Evidence, said.clone()));
        assert_eq!(legs(draft.clone()), (Layout::Draft, said.clone()));
        assert_eq!(legs(draft.clone().router_apart()), (Layout::Draft, said.clone()));
        let beside = ["", "#2"].into_iter().fold(draft.clone(), |scene, nth| {
            scene.under(&format!("kv_router.route_request{nth}"), "request.lifecycle")
        });
        assert_eq!(legs(beside.clone()), (Layout::Draft, said.clone()));
        // Beside it and to nobody, which of them was routed so is not known.
        let unclear = beside.unaddressed(1).unaddressed(2);
        assert_eq!(legs(unclear).1, [(Unknown, Span); 2]);
        // The worker's own spans say it, too.
        let routed = ["", "#2"]
            .into_iter()
            .fold(draft.clone(), |scene, nth| scene.without(&format!("kv_router.route_request{nth}"), "phase"));
        assert_eq!(legs(routed), (Layout::Draft, said));
        let wordless = draft.without_words();
        assert_eq!(legs(wordless.clone()), (Layout::Draft, inferred.clone()));
        assert_eq!(legs(wordless.clone().router_apart()), (Layout::Draft, inferred));
        assert_eq!(legs(wordless.clone().unaddressed(1)).1, [(Unknown, Span), (Decode, Inferred)]);
        let poolless = wordless.without("router.selection", "dynamo.router.pool.role");
        assert_eq!(legs(poolless).1, [(Unknown, Span), (Aggregated, Inferred)]);
        assert_eq!(legs(Scene::draft().without_words()).1, [(Aggregated, Inferred)]);
        // A word that is not known is no reason to look for another.
        let encode = Scene::disaggregated().set("request.dispatch", "dynamo.dispatch.phase", "encode");
        assert_eq!(legs(encode), (Layout::Evidence, vec![(Unknown, Span), (Decode, Span)]));
    }

    #[test]
    fn admitted_is_a_drafts_word_whatever_else_there_is() {
        let layout = |scene: Scene| scene.with_view(|view| view.facts.layout);
        let part = "dynamo.router.candidate.filtered.policy";
        let draft = Scene::draft_disaggregated().set("router.selection", part, 0);
        assert_eq!(layout(draft.clone()), Layout::Draft);
        assert_eq!(layout(draft.clone().drop("router.queue").drop("router.queue")), Layout::Draft, "no phase");
        let undispatched = draft.drop("request.dispatch").drop("request.dispatch");
        assert_eq!(layout(undispatched.clone()), Layout::Draft);
        assert_eq!(layout(undispatched.drop("router.queue").drop("router.queue")), Layout::Evidence);
        let odd = Scene::disaggregated().set("router.queue", "dynamo.router.queue.outcome", "admitted");
        assert_eq!(layout(odd), Layout::Evidence, "its dispatches name phases");
    }
}
