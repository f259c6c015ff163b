//! A router's choices: margins, ties, regret, what was filtered, and each worker's share.

use std::collections::BTreeMap;

use super::values::Costs;
use super::{Sign, Tally};
use crate::lifecycle::facts::{Closeness, Selection};
use crate::lifecycle::ids::Worker;
use crate::lifecycle::stage::Phase;

/// Choices of one origin.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Selections {
    /// All, made or not.
    pub count: u64,
    /// Those that chose.
    pub made: u64,
    /// By pool.
    pub by_pool: Tally<Phase>,
    /// Those that chose nobody, by pool.
    pub failed_by_pool: Tally<Phase>,
    /// With one candidate.
    pub single: u64,
    /// Margin 0 among two candidates or more.
    pub ties: u64,
    /// Margin above 0 and below [`NEAR_TIE`].
    pub near_ties: u64,
    /// Where the chosen is not the best.
    pub not_best: u64,
    /// Where the chosen costs more than the best.
    pub costs_more: u64,
    /// Regrets of all that have both costs.
    pub regrets: Costs,
    /// Margins.
    pub margins: Costs,
    /// Margins among two candidates or more.
    pub contested_margins: Costs,
    /// Candidates, summed.
    pub candidates: u64,
    /// Filtered ranks, summed.
    pub filtered: u64,
    /// The parts, summed, in the order of [`crate::lifecycle::facts::FILTER_PARTS`].
    pub filtered_parts: [u64; 5],
    /// Choices in which at least one rank was filtered by that part, in the same order.
    pub filtered_in: [u64; 5],
    /// Those that say whether anything was filtered.
    pub says_filtered: u64,
    /// By worker and rank, chosen or passed over.
    pub by_worker: BTreeMap<Worker, WorkerSelections>,
}

/// What one rank won.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct WorkerSelections {
    /// Times chosen.
    pub chosen: u64,
    /// By pool.
    pub pools: Tally<Phase>,
    /// Margins of the choices it won as the best.
    pub margins: Costs,
    /// Regrets of the choices it was given although another was better.
    pub regrets: Costs,
    /// Times it was the best and another was chosen.
    pub passed_over: u64,
    /// What those choices paid, as far as both costs are known.
    pub passed_regrets: Costs,
}

impl Selections {
    pub(super) fn apply(&mut self, selection: &Selection, sign: Sign) {
        sign.step(&mut self.count);
        self.by_pool.step(selection.pool, sign);
        if selection.chose_none() {
            self.failed_by_pool.step(selection.pool, sign);
        }
        sign.by(&mut self.candidates, selection.candidates.unwrap_or(0));
        sign.by(&mut self.filtered, selection.filtered.unwrap_or(0));
        if selection.filtered.is_some() {
            sign.step(&mut self.says_filtered);
        }
        for (at, part) in selection.filtered_parts.iter().enumerate() {
            sign.by(&mut self.filtered_parts[at], part.unwrap_or(0));
            sign.by(&mut self.filtered_in[at], u64::from(part.is_some_and(|part| part > 0)));
        }
        let single = selection.candidates == Some(1);
        if single {
            sign.step(&mut self.single);
        }
        if let Some(margin) = selection.margin {
            sign.cost(&mut self.margins, margin);
            if !single {
                sign.cost(&mut self.contested_margins, margin);
            }
            match Closeness::of(margin, selection.candidates) {
                Closeness::Tie => sign.step(&mut self.ties),
                Closeness::Near => sign.step(&mut self.near_ties),
                Closeness::Only | Closeness::Clear => {}
            }
        }
        let regret = selection.regret();
        if let Some(regret) = regret {
            sign.cost(&mut self.regrets, regret);
            if regret > 0.0 {
                sign.step(&mut self.costs_more);
            }
        }
        let Some(selected) = selection.selected else { return };
        sign.step(&mut self.made);
        let is_best = selection.best.is_none_or(|best| best.worker == selected.worker);
        if !is_best {
            sign.step(&mut self.not_best);
        }
        self.of_worker(selected.worker, |worker| {
            sign.step(&mut worker.chosen);
            worker.pools.step(selection.pool, sign);
            if let (true, Some(margin)) = (is_best, selection.margin) {
                sign.cost(&mut worker.margins, margin);
            }
            if let (false, Some(regret)) = (is_best, regret) {
                sign.cost(&mut worker.regrets, regret);
            }
        });
        if let (false, Some(best)) = (is_best, selection.best) {
            self.of_worker(best.worker, |worker| {
                sign.step(&mut worker.passed_over);
                if let Some(regret) = regret {
                    sign.cost(&mut worker.passed_regrets, regret);
                }
            });
        }
    }

    fn of_worker(&mut self, worker: Worker, change: impl FnOnce(&mut WorkerSelections)) {
        let of = self.by_worker.entry(worker).or_default();
        change(of);
        if of.chosen == 0 && of.passed_over == 0 {
            self.by_worker.remove(&worker);
        }
    }
}
