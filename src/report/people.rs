//! The report's sections on workers, by phase and over all phases, and on agent sessions, from a rollup.

use std::collections::BTreeMap;

use serde::Serialize;

use super::quantiles::Quantiles;
use super::sections::word;
use crate::lifecycle::ids::Worker;
use crate::lifecycle::stage::Origin;
use crate::store::rollup::{Rank, Rollup, Selections};

/// Sessions listed by [`SessionsSection`]; all of them are counted.
const LISTED: usize = 1000;

/// What nothing tells of is a dash.
pub(super) fn told(number: Option<u64>) -> String {
    number.map_or("–".into(), |number| number.to_string())
}

/// One worker's rank.
#[derive(Clone, Debug, Serialize)]
pub struct RankRow {
    /// Worker id; a string, for it exceeds what JSON readers keep exactly.
    pub worker: String,
    /// Data-parallel rank.
    pub rank: Option<u32>,
    /// Requests with a leg to it.
    pub requests: u64,
    /// Requests in flight whose newest leg went to it; none where there are some of which nobody knows yet where they are.
    pub in_flight: Option<u64>,
    /// Times chosen, as spans record it; none, as the share, where neither spans nor records tell of choices.
    pub selected: Option<u64>,
    /// Times chosen, as records tell where no span does.
    pub selected_by_records: u64,
    /// Its share of the choices made in the pools that chose it, from 0 to 1.
    pub share: Option<f64>,
    /// Mean margin of the choices it won as the best.
    pub margin_won_mean: Option<f64>,
    /// Times it was the best and another was chosen.
    pub passed_over: u64,
    /// Mean regret of those choices.
    pub regret_lost_mean: Option<f64>,
    /// Mean regret of the choices it was given although another was better.
    pub regret_paid_mean: Option<f64>,
    /// Attempts that went to it; none, as the next two, where records alone tell of requests.
    pub attempts: Option<u64>,
    /// Attempts that failed: the hand-over, or where no layout tells of that the attempt.
    pub failed: Option<u64>,
    /// Attempts in which it was lost.
    pub lost: Option<u64>,
    /// Admissions by result, of known attempts.
    pub admissions: BTreeMap<String, u64>,
    /// Payloads it admitted or refused.
    pub payload_bytes: Quantiles<u64>,
    /// Times to first token of requests that it took a leg of.
    pub ttft_ns: Quantiles<u64>,
    /// When it was last heard of, since the epoch, to a tenth of a second.
    pub last_seen_ns: Option<u64>,
    /// Found lost, and not heard of since.
    pub vanished: bool,
}

impl RankRow {
    /// Every worker and rank.
    pub fn all(rollup: &Rollup) -> Vec<Self> {
        rollup.ranks().into_iter().map(Self::of).collect()
    }

    /// Times chosen, whoever tells.
    pub fn chosen(&self) -> Option<u64> {
        self.selected.map(|by_spans| by_spans + self.selected_by_records)
    }

    fn of(of: Rank<'_>) -> Self {
        Self {
            worker: of.worker.id.to_string(),
            rank: of.worker.rank,
            requests: of.requests,
            in_flight: of.in_flight,
            selected: of.chosen.map(|chosen| chosen.by_spans),
            selected_by_records: of.chosen.map_or(0, |chosen| chosen.by_records),
            share: of.chosen.map(|chosen| chosen.share),
            margin_won_mean: of.won_by,
            passed_over: of.passed_over,
            regret_lost_mean: of.lost_by,
            regret_paid_mean: of.paid,
            attempts: of.attempts,
            failed: of.failed,
            lost: of.lost,
            admissions: of.admissions.iter().map(|(result, count)| (word(result), count)).collect(),
            payload_bytes: (&of.payloads).into(),
            ttft_ns: (&of.ttft).into(),
            last_seen_ns: of.last_seen_ns,
            vanished: of.vanished,
        }
    }
}

/// Agent sessions. The producer's stand-in for a session (the request's own id) is none.
#[derive(Clone, Debug, Default, Serialize)]
pub struct SessionsSection {
    /// How many.
    pub total: u64,
    /// Requests of all of them.
    pub turns: u64,
    /// Turns that went to the worker and rank of the turn before.
    pub affinity_kept: u64,
    /// Turns that went to another.
    pub affinity_broken: u64,
    /// The ones with the newest turns, newest first; a thousand at most.
    pub sessions: Vec<SessionRow>,
}

/// One session.
#[derive(Clone, Debug, Serialize)]
pub struct SessionRow {
    /// Its id.
    pub session: String,
    /// Requests.
    pub turns: u64,
    /// Not ended.
    pub in_flight: u64,
    /// By how they ended, or stand without a root.
    pub outcomes: BTreeMap<String, u64>,
    /// Prompt tokens of the turns that tell of them; like the next two none where no turn does.
    pub input_tokens: Option<u64>,
    /// Generated tokens of the turns that tell of them.
    pub output_tokens: Option<u64>,
    /// Prompt tokens found in the cache.
    pub cached_tokens: Option<u64>,
    /// Turns that tell of prompt tokens.
    pub turns_with_input: u64,
    /// Turns that tell of generated tokens.
    pub turns_with_output: u64,
    /// Their share of the prompts that say so, from 0 to 1.
    pub cached_share: Option<f64>,
    /// Turns that went to the worker and rank of the turn before.
    pub affinity_kept: u64,
    /// Turns that went to another.
    pub affinity_broken: u64,
    /// The worker that read the newest prompt, as `id:rank`.
    pub worker: Option<String>,
    /// When the newest turn began, since the epoch.
    pub newest_turn_ns: u64,
}

impl SessionRow {
    /// Prompt and generated tokens in words: at least as many where not every turn tells of them.
    pub(super) fn tokens(&self) -> [String; 2] {
        let sums = [(self.input_tokens, self.turns_with_input), (self.output_tokens, self.turns_with_output)];
        sums.map(|(sum, turns)| if 0 < turns && turns < self.turns { format!("≥{}", told(sum)) } else { told(sum) })
    }
}

impl SessionsSection {
    /// From a rollup.
    pub fn of(rollup: &Rollup) -> Self {
        let sessions = &rollup.sessions;
        let named = |worker: Worker| match worker.rank {
            Some(rank) => format!("{}:{rank}", worker.id),
            None => worker.id.to_string(),
        };
        Self {
            total: sessions.len() as u64,
            turns: sessions.turns,
            affinity_kept: sessions.affinity.kept,
            affinity_broken: sessions.affinity.broken,
            sessions: sessions
                .newest()
                .take(LISTED)
                .map(|(id, session)| SessionRow {
                    session: id.to_string(),
                    turns: session.count,
                    in_flight: session.in_flight,
                    outcomes: session.outcomes.iter().map(|(outcome, count)| (outcome.to_string(), count)).collect(),
                    input_tokens: (session.turns_of_input > 0).then_some(session.input_tokens),
                    output_tokens: (session.turns_of_output > 0).then_some(session.output_tokens),
                    cached_tokens: (session.input_of_cached > 0).then_some(session.cached_tokens),
                    turns_with_input: session.turns_of_input,
                    turns_with_output: session.turns_of_output,
                    cached_share: (session.input_of_cached > 0)
                        .then(|| session.cached_tokens as f64 / session.input_of_cached as f64),
                    affinity_kept: session.affinity.kept,
                    affinity_broken: session.affinity.broken,
                    worker: session.worker().map(named),
                    newest_turn_ns: session.newest_ns(),
                })
                .collect(),
        }
    }
}

/// One worker's rank in one phase.
#[derive(Clone, Debug, Serialize)]
pub struct WorkerRow {
    /// Worker id; a string, for it exceeds what JSON readers keep exactly.
    pub worker: String,
    /// Data-parallel rank.
    pub rank: Option<u32>,
    /// Phase.
    pub phase: &'static str,
    /// `span`, or `inferred` from route spans.
    pub origin: &'static str,
    /// Attempts that went to it.
    pub dispatched: u64,
    /// By result.
    pub results: BTreeMap<String, u64>,
    /// Retries that went to it.
    pub retries: u64,
    /// Attempts in which it was lost.
    pub lost: u64,
    /// Times it was chosen, as spans and records tell; of a worker with a row of each origin, as spans do and as records do.
    /// None where neither tells of any choice.
    pub selected: Option<u64>,
    /// Payloads it admitted or refused.
    pub payload_bytes: Quantiles<u64>,
}

impl WorkerRow {
    /// Every worker and rank, by phase.
    pub fn all(rollup: &Rollup) -> Vec<Self> {
        let mut rows = Vec::new();
        let tells = rollup.tells_of_choices();
        for (dispatches, origin) in [(&rollup.dispatch, Origin::Span), (&rollup.dispatch_inferred, Origin::Inferred)] {
            for ((phase, worker), of_worker) in &dispatches.by_worker {
                let chosen = |selections: &Selections| -> u64 {
                    let of = selections.by_worker.get(worker);
                    of.map_or(0, |of| of.pools.iter().filter(|(pool, _)| phase.fits_pool(**pool)).map(|(_, n)| n).sum())
                };
                let [by_spans, by_records] = [&rollup.selection, &rollup.selection_records].map(chosen);
                let other = if origin == Origin::Span { &rollup.dispatch_inferred } else { &rollup.dispatch };
                // Of a worker that has two rows each tells of its own.
                let selected = match (other.by_worker.contains_key(&(*phase, *worker)), origin) {
                    (false, _) => by_spans + by_records,
                    (true, Origin::Span) => by_spans,
                    (true, _) => by_records,
                };
                rows.push(Self {
                    worker: worker.id.to_string(),
                    rank: worker.rank,
                    phase: phase.word(),
                    origin: origin.word(),
                    dispatched: of_worker.count,
                    results: of_worker.results.iter().map(|(result, count)| (word(result), count)).collect(),
                    retries: of_worker.retries,
                    lost: of_worker.lost,
                    selected: tells.then_some(selected),
                    payload_bytes: (&of_worker.payloads).into(),
                });
            }
        }
        rows
    }
}
