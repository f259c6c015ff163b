//! The router's choice: its counts, its completeness, its arithmetic. A score is a cost: lower is better.

use std::borrow::Cow;

use serde::Deserialize;

use super::case::{Asked, Case, Span, both, brief, named, one_worker, said};
use super::{ANY_MODE, Check, DETAILED, Level};
use crate::lifecycle::catalogue::Field;
use crate::lifecycle::facts::FILTER_PARTS;
use crate::lifecycle::ids::Worker;
use crate::lifecycle::stage::{Layout, Mode, Phase, Stage};

/// How far two costs may differ and still be the same number, relative to their size: they pass through decimal text.
const SAME_COST: f64 = 1e-6;
/// The tolerance of the drafts' score = base × multiplier (spec checks.md).
const PRODUCT: f64 = 1e-5;
/// The most candidates that are recorded (spec lifecycle-spans §3).
const MOST_ROWS: usize = 4;

const PARTS: [Field; 5] = [
    Field::FilteredNotAllowed,
    Field::FilteredConstraints,
    Field::FilteredOverloaded,
    Field::FilteredUnavailable,
    Field::FilteredPolicy,
];

const RESULT: [(Field, &str); 7] = [
    (Field::SelectedWorker, "selected.worker.id"),
    (Field::SelectedRank, "selected.dp.rank"),
    (Field::SelectedScore, "selected.score"),
    (Field::BestWorker, "best.worker.id"),
    (Field::BestRank, "best.dp.rank"),
    (Field::BestScore, "best.score"),
    (Field::Margin, "best.margin"),
];

const STATIC: [(Field, &str); 4] = [
    (Field::Algorithm, "algorithm.id"),
    (Field::AlgorithmVersion, "algorithm.version"),
    (Field::SelectionPolicy, "selection.policy"),
    (Field::DecisionSchema, "decision.schema"),
];

fn same_cost(one: f64, other: f64) -> bool {
    (one - other).abs() <= SAME_COST * one.abs().max(other.abs()).max(1.0)
}

/// Whether a choice was made: some of its result is there.
pub(super) fn made(span: Span<'_>) -> bool {
    RESULT.iter().any(|(field, _)| span.has(*field))
}

pub(super) const ACCOUNTING: Check = Check {
    id: "selection.accounting",
    level: Level::Error,
    what: "filtered.count is the sum of its parts",
    layouts: DETAILED,
    modes: ANY_MODE,
    ask: accounting,
};

fn accounting(case: &Case<'_>, asked: &mut Asked<'_, '_>) {
    for span in case.spans(Stage::Selection) {
        let Some(count) = span.counted(Field::Filtered) else {
            asked.unsaid();
            continue;
        };
        let mut parts = [None; PARTS.len()];
        let mut counts = true;
        for ((field, name), part) in PARTS.into_iter().zip(FILTER_PARTS).zip(&mut parts) {
            *part = span.counted(field);
            if part.is_none() && span.has(field) {
                counts = false;
                asked.expect(span, false, || {
                    let found = said(span.get(field).map(brief));
                    format!("has filtered.{name} {found:?}, expected a count")
                });
            }
        }
        if !counts {
            continue;
        }
        let sum: u64 = parts.iter().flatten().sum();
        // Drafts had no policy filter.
        let all = parts
            .iter()
            .zip(FILTER_PARTS)
            .all(|(part, name)| part.is_some() || (name == "policy" && case.facts.layout == Layout::Draft));
        // What was not recorded may be what lacks.
        if sum <= count && !all {
            asked.unsaid();
            continue;
        }
        asked.expect(span, sum == count, || {
            let parts: Vec<_> =
                FILTER_PARTS.iter().zip(parts).map(|(name, part)| format!("{name} {}", part.unwrap_or(0))).collect();
            format!("has filtered.count {count}, expected the sum {sum} of {}", parts.join(", "))
        });
    }
}

pub(super) const ELIGIBLE: Check = Check {
    id: "selection.eligible",
    level: Level::Error,
    what: "eligible = candidates + filtered by policy (draft: eligible = candidates)",
    layouts: DETAILED,
    modes: ANY_MODE,
    ask: eligible,
};

fn eligible(case: &Case<'_>, asked: &mut Asked<'_, '_>) {
    let draft = case.facts.layout == Layout::Draft;
    for span in case.spans(Stage::Selection) {
        let policy = if draft { Some(0) } else { span.counted(Field::FilteredPolicy) };
        let (Some(eligible), Some(candidates), Some(policy)) =
            (span.counted(Field::Eligible), span.counted(Field::Candidates), policy)
        else {
            asked.unsaid();
            continue;
        };
        asked.expect(span, candidates.checked_add(policy) == Some(eligible), || {
            if draft {
                format!("has eligible.count {eligible} and candidate.count {candidates}, expected them equal (draft)")
            } else {
                let sum = candidates.saturating_add(policy);
                format!("has eligible.count {eligible}, expected {sum} = candidate.count {candidates} + filtered.policy {policy}")
            }
        });
    }
}

pub(super) const COMPLETE: Check = Check {
    id: "selection.complete",
    level: Level::Error,
    what: "a made selection carries selected, best, algorithm, policy and schema; a failed one neither selected nor best",
    layouts: DETAILED,
    modes: ANY_MODE,
    ask: complete,
};

fn complete(case: &Case<'_>, asked: &mut Asked<'_, '_>) {
    for span in case.spans(Stage::Selection) {
        let result = span.get(Field::SelectionResult).and_then(|value| value.as_str());
        let failed = result.is_some_and(|result| result != "selected") || span.counted(Field::Candidates) == Some(0);
        // A dispatch that was accepted in this leg had a worker to go to.
        let dispatches = || {
            case.dispatches().filter(|dispatch| {
                dispatch.attempt() == span.attempt()
                    && dispatch.text(Field::DispatchResult) == "accepted"
                    && dispatch.text(Field::DispatchRoute) == "kv"
                    && case.phase(*dispatch).fits_pool(span.pool())
                    && dispatch.view.start_ns >= span.view.start_ns
            })
        };
        let both_said = |dispatch| ![case.phase(dispatch), span.pool()].contains(&Phase::Unknown);
        let dispatched = || dispatches().any(both_said);
        if failed {
            let odd = RESULT.iter().find(|(field, _)| span.has(*field)).map(|(_, name)| *name);
            asked.expect(span, odd.is_none(), || {
                let odd = odd.unwrap_or_default();
                format!("failed ({}) and carries dynamo.router.{odd}, expected none", result.unwrap_or("no candidates"))
            });
        } else if made(span) || result == Some("selected") || dispatched() {
            // Whether there was any candidate is what tells a made one from a failed one.
            if result.is_none() {
                asked.compares(span, &[Field::Candidates]);
            }
            let missing = [span.unsaid(&RESULT), span.unsaid(&STATIC)].concat();
            asked.expect(span, missing.is_empty(), || {
                format!("made a choice without dynamo.router.{}, expected it there", missing.join(", "))
            });
        } else if dispatches().next().is_some() {
            // Whether that was this leg's is not said.
            asked.unsaid();
        }
    }
}

pub(super) const BEST: Check = Check {
    id: "selection.best",
    level: Level::Error,
    what: "the best costs no more than the chosen one, the margin is not negative, and 0 with one candidate",
    layouts: DETAILED,
    modes: ANY_MODE,
    ask: best,
};

fn best(case: &Case<'_>, asked: &mut Asked<'_, '_>) {
    for span in case.spans(Stage::Selection).filter(|span| made(*span)) {
        match (span.float(Field::BestScore), span.float(Field::SelectedScore)) {
            (Some(best), Some(selected)) => asked.expect(span, best <= selected || same_cost(best, selected), || {
                format!("has best.score {best} above selected.score {selected}, expected the best to cost no more")
            }),
            _ => asked.unsaid(),
        }
        let Some(margin) = span.float(Field::Margin) else {
            asked.unsaid();
            continue;
        };
        asked.expect(span, margin >= 0.0, || format!("has best.margin {margin}, expected 0 or more"));
        if margin > 0.0 {
            let several = span.counted(Field::Candidates).map(|candidates| candidates != 1);
            let say = || format!("has best.margin {margin} with one candidate, expected 0");
            asked.expect_if_told(Some(span), several, say);
        }
    }
}

pub(super) const TIE: Check = Check {
    id: "selection.tie",
    level: Level::Error,
    what: "when chosen and best cost the same, the chosen one is reported as best",
    layouts: DETAILED,
    modes: ANY_MODE,
    ask: tie,
};

fn best_worker(span: Span<'_>) -> Option<Worker> {
    span.worker(Field::BestWorker, Field::BestRank)
}

fn tie(case: &Case<'_>, asked: &mut Asked<'_, '_>) {
    for span in case.spans(Stage::Selection).filter(|span| made(*span)) {
        let (Some(selected), Some(best)) = (span.float(Field::SelectedScore), span.float(Field::BestScore)) else {
            asked.unsaid();
            continue;
        };
        // Exactly equal: a near tie is none.
        if selected == best {
            let (Some(chosen), Some(cheapest)) = (span.selected(), best_worker(span)) else {
                asked.unsaid();
                continue;
            };
            asked.expect_if_told(Some(span), one_worker(chosen, cheapest), || {
                let (chosen, cheapest) = (named(Some(chosen)), named(Some(cheapest)));
                format!(
                    "chose {chosen} at the least cost {best} and reports {cheapest} as best, expected the chosen one"
                )
            });
        }
    }
}

pub(super) const TOP_K: Check = Check {
    id: "selection.top-k",
    level: Level::Error,
    what: "the candidates are valid JSON, at most 4, ascending, with one selected row that agrees with the selection",
    layouts: DETAILED,
    modes: &[Mode::Investigation],
    ask: top_k,
};

/// A candidate; what else a row carries is for the request screen.
#[derive(Deserialize)]
struct Row<'a> {
    #[serde(borrow)]
    worker_id: Id<'a>,
    dp_rank: Option<u32>,
    selected: Option<bool>,
    score: f64,
    base_score: Option<f64>,
    preferred_taint_multiplier: Option<f64>,
}

/// Worker ids come as numbers and as texts (spec lifecycle-spans §2).
#[derive(Deserialize)]
#[serde(untagged)]
enum Id<'a> {
    Number(u64),
    #[serde(borrow)]
    Text(Cow<'a, str>),
}

impl Row<'_> {
    fn worker(&self) -> Option<Worker> {
        let id = match &self.worker_id {
            Id::Number(id) => Some(*id),
            Id::Text(text) => text.parse().ok(),
        };
        Some(Worker { id: id?, rank: self.dp_rank })
    }
}

fn top_k(case: &Case<'_>, asked: &mut Asked<'_, '_>) {
    for span in case.spans(Stage::Selection) {
        let Some(text) = span.get(Field::TopK).and_then(|value| value.as_str()) else {
            if made(span) {
                asked.unsaid();
            }
            continue;
        };
        let draft = span.text(Field::TopKSchema) == "kv_aware.v1";
        match serde_json::from_str::<Vec<Row<'_>>>(text) {
            Ok(rows) => self::rows(asked, span, &rows, draft),
            Err(error) => asked.expect(span, false, || {
                format!(
                    "has a top_k that is no list of candidates ({error}), expected JSON rows with worker_id and score"
                )
            }),
        }
    }
}

fn rows(asked: &mut Asked<'_, '_>, span: Span<'_>, rows: &[Row<'_>], draft: bool) {
    let count = rows.len();
    asked.expect(span, count <= MOST_ROWS, || format!("has {count} top_k rows, expected at most {MOST_ROWS}"));
    let candidates = span.counted(Field::Candidates);
    asked.expect_if_told(Some(span), candidates.map(|candidates| count as u64 <= candidates), || {
        let candidates = said(candidates);
        format!("has {count} top_k rows for {candidates} candidates, expected no more rows than candidates")
    });
    let descent = rows.windows(2).find(|pair| pair[0].score > pair[1].score);
    asked.expect(span, descent.is_none(), || {
        let (one, other) = descent.map_or((0.0, 0.0), |pair| (pair[0].score, pair[1].score));
        format!("has the cost {other} after {one} in top_k, expected ascending costs")
    });
    let least = rows.iter().map(|row| row.score).min_by(f64::total_cmp);
    if let Some(least) = least {
        let best = span.float(Field::BestScore);
        asked.expect_if_told(Some(span), best.map(|best| same_cost(least, best)), || {
            format!("has least cost {least} in top_k and best.score {}, expected them equal", said(best))
        });
    }
    if draft {
        for row in rows {
            if let (Some(base), Some(multiplier)) = (row.base_score, row.preferred_taint_multiplier) {
                let product = base * multiplier;
                asked.expect(span, (row.score - product).abs() <= PRODUCT, || {
                    format!("has score {} for {base} × {multiplier} in top_k, expected {product}", row.score)
                });
            }
        }
        return;
    }
    let marked: Vec<&Row<'_>> = rows.iter().filter(|row| row.selected == Some(true)).collect();
    let (Some(chosen), cost) = (span.selected(), span.float(Field::SelectedScore)) else {
        return asked.unsaid();
    };
    match marked[..] {
        [row] => {
            let worker = row.worker();
            let one = worker.map_or(Some(false), |worker| one_worker(worker, chosen));
            let fits = both(one, cost.map(|cost| same_cost(cost, row.score)));
            asked.expect_if_told(Some(span), fits, || {
                let (row_worker, chosen) = (named(worker), named(Some(chosen)));
                let (row_cost, cost) = (row.score, said(cost));
                format!("marks {row_worker} at {row_cost} as selected in top_k, expected {chosen} at {cost}")
            });
        }
        _ => asked.expect(span, false, || {
            format!("marks {} rows as selected in top_k, expected one: {}", marked.len(), named(Some(chosen)))
        }),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::Why;
    use super::super::fixture::{Scene, WORKER};
    use super::*;

    const SELECTION: &str = "router.selection";

    fn with(key: &str, value: impl ToString) -> Scene {
        Scene::aggregated().set(SELECTION, &format!("dynamo.router.{key}"), value)
    }

    fn without(key: &str) -> Scene {
        Scene::aggregated().without(SELECTION, &format!("dynamo.router.{key}"))
    }

    #[test]
    fn accounting() {
        let id = "selection.accounting";
        Scene::aggregated().holds(id);
        with("candidate.filtered.count", 3).violates(id, "filtered.count 3, expected the sum 2");
        with("candidate.filtered.overloaded", 5).violates(id, "overloaded 5");
        without("candidate.filtered.overloaded").unknown(id, Why::Unsaid);
        // What is no count is neither nothing nor counted past its end.
        with("candidate.filtered.overloaded", -3).violates(id, "filtered.overloaded \"-3\", expected a count");
        with("candidate.filtered.overloaded", u64::MAX).violates(id, "filtered.overloaded \"18446744073709551615\"");
        Scene::base().unknown(id, Why::Layout);
    }

    #[test]
    fn eligible() {
        let id = "selection.eligible";
        Scene::aggregated().holds(id);
        with("candidate.eligible.count", 2).violates(id, "expected 3 = candidate.count 2 + filtered.policy 1");
        let draft = Scene::draft();
        draft.holds(id);
        let key = "dynamo.router.candidate.count";
        draft.set(SELECTION, key, 4).violates_at(id, Level::Warning, "expected them equal");
        without("candidate.count").unknown(id, Why::Unsaid);
    }

    #[test]
    fn complete() {
        let id = "selection.complete";
        Scene::aggregated().holds(id);
        for key in ["selected.score", "best.worker.id", "best.margin", "selection.policy", "algorithm.id"] {
            without(key).violates(id, key);
        }
        let failed = |scene: Scene| scene.set(SELECTION, "dynamo.router.selection.result", "overloaded");
        failed(Scene::aggregated()).violates(id, "failed (overloaded) and carries dynamo.router.selected.worker.id");
        let bare =
            RESULT.iter().fold(Scene::aggregated().drop("request.dispatch").ended("rejected"), |scene, (_, name)| {
                scene.without(SELECTION, &format!("dynamo.router.{name}"))
            });
        failed(bare.clone()).holds(id);
        bare.unknown(id, Why::NotHere);
        let dispatched = RESULT
            .iter()
            .fold(Scene::aggregated(), |scene, (_, name)| scene.without(SELECTION, &format!("dynamo.router.{name}")));
        dispatched.violates(id, "made a choice without");
        // The route span says that the dispatch was this pool's; without it, it may be the other's.
        let draft = RESULT.iter().fold(Scene::draft_disaggregated(), |scene, (_, name)| {
            scene.without("router.selection#2", &format!("dynamo.router.{name}"))
        });
        draft.violates_at(id, Level::Warning, "made a choice without");
        draft.without_words().unknown(id, Why::Unsaid);
        Scene::draft_disaggregated().holds(id);
    }

    #[test]
    fn best() {
        let id = "selection.best";
        Scene::aggregated().holds(id);
        with("best.score", 18).violates(id, "best.score 18 above selected.score 17.5");
        with("best.margin", -1).violates(id, "best.margin -1, expected 0 or more");
        with("candidate.count", 1).violates(id, "with one candidate, expected 0");
        with("candidate.count", 1).set(SELECTION, "dynamo.router.best.margin", 0).holds(id);
        without("best.margin").unknown(id, Why::Unsaid);
    }

    #[test]
    fn tie() {
        let id = "selection.tie";
        Scene::aggregated().holds(id);
        with("best.worker.id", 7).violates(id, "reports 7:0 as best");
        let draft = Scene::draft().set(SELECTION, "dynamo.router.best.worker.id", 7);
        draft.violates_at(id, Level::Warning, "expected the chosen one");
        with("selected.score", 19).set(SELECTION, "dynamo.router.best.worker.id", 7).unknown(id, Why::NotHere);
    }

    #[test]
    fn top_k() {
        let id = "selection.top-k";
        let rows = |rows: serde_json::Value| with("candidates.top_k", rows);
        Scene::aggregated().holds(id);
        let row = |worker: u64, selected: bool, score: f64| json!({"worker_id": worker, "dp_rank": 0, "selected": selected, "score": score});
        let (chosen, other) = (row(WORKER, true, 17.5), row(7, false, 22.0));
        rows(json!([{"worker_id": WORKER.to_string(), "dp_rank": 0, "selected": true, "score": 17.5}])).holds(id);
        rows(json!([other, chosen])).violates(id, "17.5 after 22");
        rows(json!([chosen, other, other])).violates(id, "3 top_k rows for 2 candidates");
        rows(json!([chosen, other, other, other, other])).violates(id, "expected at most 4");
        rows(json!([row(WORKER, false, 17.5), row(7, true, 22.0)])).violates(id, "marks 7:0 at 22 as selected");
        rows(json!([row(WORKER, false, 17.5)])).violates(id, "marks 0 rows");
        rows(json!([row(WORKER, true, 17.0)])).violates(id, "least cost 17");
        with("candidates.top_k", "not json").violates(id, "no list of candidates");
        Scene::draft().holds(id);
        let product = r#"[{"worker_id":7,"score":17.5,"base_score":35.0,"preferred_taint_multiplier":0.6}]"#;
        let draft = Scene::draft().set(SELECTION, "dynamo.router.candidates.top_k", product);
        draft.violates_at(id, Level::Warning, "expected 21");
        without("candidates.top_k").unknown(id, Why::Unsaid);
        Scene::aggregated().set_all("dynamo.lifecycle.mode", "core").unknown(id, Why::Mode);
    }
}
