//! Each worker's rank over all phases, put together from choices, attempts and signs of life: what panes and reports show
//! in one row.

use std::collections::BTreeSet;

use compact_str::CompactString;

use super::values::Together;
use super::{Life, Rollup, Tally, WorkerSelections};
use crate::lifecycle::ids::Worker;
use crate::lifecycle::stage::Phase;

/// One worker's rank.
#[derive(Clone, Debug, PartialEq)]
pub struct Rank<'a> {
    /// Which.
    pub worker: Worker,
    /// The phases it was sent legs of.
    pub phases: Vec<Phase>,
    /// Requests with a leg to it.
    pub requests: u64,
    /// Requests in flight whose newest leg went to it; none where this is no more than those of which nobody knows yet
    /// where they are.
    pub in_flight: Option<u64>,
    /// Times chosen; none where nothing tells of choices at all.
    pub chosen: Option<Chosen>,
    /// Mean margin of the choices it won as the best; like the other costs by spans or, where there are none, by records.
    pub won_by: Option<f64>,
    /// Times it was the best and another was chosen.
    pub passed_over: u64,
    /// Mean regret of those choices.
    pub lost_by: Option<f64>,
    /// Mean regret of the choices it was given although another was better.
    pub paid: Option<f64>,
    /// Attempts that went to it; none, like the next two, where records alone tell of requests, for they tell of no
    /// hand-over.
    pub attempts: Option<u64>,
    /// Attempts that failed: the hand-over, or where no layout tells of that the attempt.
    pub failed: Option<u64>,
    /// Attempts in which it was lost or could not be reached.
    pub lost: Option<u64>,
    /// Admissions that accepted; none where nothing tells of their results either.
    pub admitted: Option<u64>,
    /// Admissions by result, of known attempts.
    pub admissions: Tally<CompactString>,
    /// Payloads, bytes.
    pub payloads: Together<'a>,
    /// Times to first token of requests that it took a leg of, nanoseconds.
    pub ttft: Together<'a>,
    /// When it was last heard of, nanoseconds since the epoch, to a tenth of a second.
    pub last_seen_ns: Option<u64>,
    /// Found lost, and not heard of since.
    pub vanished: bool,
}

/// How often a rank was chosen.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Chosen {
    /// As spans record it.
    pub by_spans: u64,
    /// As records tell where no span does.
    pub by_records: u64,
    /// Its share of the choices made in the pools that chose it, from 0 to 1.
    pub share: f64,
}

impl Chosen {
    /// Whoever tells.
    pub fn count(&self) -> u64 {
        self.by_spans + self.by_records
    }
}

impl Rollup {
    /// Whether spans or records tell of any choice.
    pub fn tells_of_choices(&self) -> bool {
        self.selection.count + self.selection_records.count > 0
    }

    /// Whether results of admissions are told: by an admission, or by the dispatches of layouts that record both.
    pub fn tells_of_admissions(&self) -> bool {
        let mut admissions = [&self.dispatch, &self.dispatch_inferred].into_iter().flat_map(|of| of.admissions.iter());
        self.dispatch.count > 0 || admissions.any(|((result, _), _)| !result.is_empty())
    }

    /// How often a rank was chosen.
    pub fn chosen(&self, worker: Worker) -> Chosen {
        let both = [&self.selection, &self.selection_records];
        let mine = both.map(|selections| selections.by_worker.get(&worker));
        let [by_spans, by_records] = mine.map(|mine| mine.map_or(0, |mine| mine.chosen));
        // Its pools, whichever told of them: the choices of both are made in each.
        let pools: BTreeSet<_> =
            mine.into_iter().flatten().flat_map(|mine| mine.pools.iter()).map(|(pool, _)| pool).collect();
        let made = |pool: &Phase| both.map(|of| of.by_pool.get(pool) - of.failed_by_pool.get(pool));
        let rivals: u64 = pools.into_iter().flat_map(made).sum();
        let share = if rivals > 0 { (by_spans + by_records) as f64 / rivals as f64 } else { 0.0 };
        Chosen { by_spans, by_records, share }
    }

    /// Every worker and rank that was chosen, passed over or sent to; those that are there first, by phase.
    pub fn ranks(&self) -> Vec<Rank<'_>> {
        let mut workers: BTreeSet<Worker> = self.workers.iter().map(|(worker, _)| worker).collect();
        workers.extend(self.selection.by_worker.keys().chain(self.selection_records.by_worker.keys()));
        let mut ranks: Vec<Rank<'_>> = workers.into_iter().map(|worker| self.rank(worker)).collect();
        ranks.sort_by(|one, other| {
            (one.vanished, &one.phases, one.worker).cmp(&(other.vanished, &other.phases, other.worker))
        });
        ranks
    }

    fn rank(&self, worker: Worker) -> Rank<'_> {
        let default = WorkerSelections::default();
        let both = [&self.selection, &self.selection_records];
        let [spans, records] = both.map(|selections| selections.by_worker.get(&worker).unwrap_or(&default));
        let shown = if spans.chosen + spans.passed_over > 0 { spans } else { records };
        let life = self.workers.get(worker);
        let mut ttft = Together::default();
        life.iter().for_each(|life| ttft.join(&life.ttft));
        let in_flight = life.map_or(0, |life| life.in_flight);
        let [mut attempts, mut failed, mut lost] = [0; 3];
        let mut rank = Rank {
            worker,
            phases: Vec::new(),
            requests: life.map_or(0, |life| life.requests),
            in_flight: (in_flight > 0 || self.workers.unplaced() == 0).then_some(in_flight),
            chosen: self.tells_of_choices().then(|| self.chosen(worker)),
            won_by: shown.margins.mean(),
            passed_over: shown.passed_over,
            lost_by: shown.passed_regrets.mean(),
            paid: shown.regrets.mean(),
            attempts: None,
            failed: None,
            lost: None,
            admitted: None,
            admissions: Tally::default(),
            payloads: Together::default(),
            last_seen_ns: life.and_then(Life::last_seen_ns),
            vanished: life.is_some_and(Life::has_vanished),
            ttft,
        };
        for phase in Phase::ALL {
            for dispatches in [&self.dispatch, &self.dispatch_inferred] {
                let Some(of) = dispatches.by_worker.get(&(phase, worker)) else { continue };
                if rank.phases.last() != Some(&phase) {
                    rank.phases.push(phase);
                }
                attempts += of.count;
                failed += of.failed;
                lost += of.lost;
                rank.admissions.merge(&of.admissions);
                rank.payloads.join(&of.payloads);
            }
        }
        let told = |count: u64| (count > 0 || self.requests.told > 0).then_some(count);
        let admitted = told(rank.admissions.get("accepted")).filter(|_| self.tells_of_admissions());
        Rank { attempts: told(attempts), failed: told(failed), lost: told(lost), admitted, ..rank }
    }
}
