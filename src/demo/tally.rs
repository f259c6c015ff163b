//! The sums of what was handed over: every number that a pane or a report shows, counted from its cause.
//!
//! Owns: the counters and how each witness moves them. Keeps out: whole requests and when they are counted (`ledger`).

use std::collections::BTreeMap;

use serde::Serialize;

use super::ledger::{FILTERS, Witness};
use crate::lifecycle::ids::Worker;

/// Values kept of each measured quantity; later ones are counted and summed only, so that a demo of days does not grow.
pub const VALUES_KEPT: usize = 100_000;
/// Agent sessions whose turns are counted each for itself; later ones are not.
pub const SESSIONS_KEPT: usize = 100_000;

/// Sums of witnesses. Keys that join several words use `|`, as the captures' truth files do.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Tally {
    /// Spans handed over, by name.
    pub spans_by_name: BTreeMap<String, u64>,
    /// All spans handed over.
    pub spans: u64,
    /// Trace records handed over, by type.
    pub records_by_type: BTreeMap<String, u64>,
    /// Frontend logs `request received`.
    pub received: u64,
    /// Frontend logs `request completed`, by status.
    pub completed: BTreeMap<String, u64>,
    /// Roots by outcome.
    pub outcomes: BTreeMap<String, u64>,
    /// Durations of roots, nanoseconds, by outcome.
    pub root_ns: BTreeMap<String, Samples>,
    /// Requests with a root by agent session; of many sessions, the first [`SESSIONS_KEPT`].
    pub session_turns: BTreeMap<String, u64>,
    /// Queues by `pool|class`.
    pub queues: BTreeMap<String, QueueTally>,
    /// Selections over both pools.
    pub selection: SelectionTally,
    /// Dispatches by `phase|result|attempt`.
    pub dispatches: BTreeMap<String, u64>,
    /// Dispatches by `phase|worker`.
    pub dispatches_by_worker: BTreeMap<String, u64>,
    /// Route spans by `phase|outcome`.
    pub routes: BTreeMap<String, u64>,
    /// Route spans that say they are a retry.
    pub retries: u64,
    /// Migrations by reason.
    pub migrations: BTreeMap<String, u64>,
    /// Tokens carried over by each migration, in the order handed over.
    pub tokens_carried: Vec<u64>,
    /// Admissions by `result|transport`.
    pub admissions: BTreeMap<String, u64>,
    /// Admissions by worker.
    pub admissions_by_worker: BTreeMap<String, u64>,
    /// Payload sizes of admissions, bytes.
    pub payload_bytes: Samples,
    /// Frontend streams by how they ended.
    pub streams: BTreeMap<String, u64>,
    /// Outcomes of the roots of abandoned streams.
    pub abandoned_roots: BTreeMap<String, u64>,
    /// Events of every stream.
    pub events: Samples,
    /// Events of abandoned streams at leaving.
    pub events_at_leaving: Samples,
    /// Nanoseconds from the first event to leaving.
    pub leaving_after_ns: Samples,
    /// TTFT as written on `http-request` (two decimals), milliseconds.
    pub ttft_ms: Samples,
    /// Prompt and generated tokens as written on `http-request`.
    pub http_tokens: (u64, u64),
    /// Prompt, generated and cached tokens as written in `request_end`.
    pub record_tokens: (u64, u64, u64),
}

/// What one class of one router's queue came to.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct QueueTally {
    /// Queue spans.
    pub spans: u64,
    /// By outcome.
    pub outcomes: BTreeMap<String, u64>,
    /// By reason, whatever the outcome.
    pub reasons: BTreeMap<String, u64>,
    /// Those that were deferred and then dequeued, by reason.
    pub deferred: BTreeMap<String, u64>,
    /// Largest depth before entering.
    pub max_depth_in: u64,
    /// Largest depth after leaving.
    pub max_depth_out: u64,
    /// Largest depth with one that waited then, itself included.
    pub max_waiting: u64,
    /// Waits, nanoseconds: the spans' durations.
    pub waits_ns: Samples,
    /// Waits of the deferred and dequeued, nanoseconds.
    pub deferred_waits_ns: Samples,
}

/// What all selections came to.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct SelectionTally {
    /// Selections made, by pool.
    pub by_pool: BTreeMap<String, u64>,
    /// With one candidate.
    pub single: u64,
    /// With two or more candidates and margin 0.
    pub ties: u64,
    /// With two or more candidates and a margin above 0 and below 0.1.
    pub near_ties: u64,
    /// Chosen is not the one reported best.
    pub not_best: u64,
    /// Chosen cost minus best cost, of those where it is greater.
    pub regret: Samples,
    /// Margins where there were two or more candidates.
    pub margins: Samples,
    /// Sum of candidates.
    pub candidates: u64,
    /// Sum of eligible ranks.
    pub eligible: u64,
    /// Filtered ranks by part.
    pub filtered: BTreeMap<String, u64>,
    /// Chosen, by worker.
    pub by_worker: BTreeMap<String, u64>,
    /// Chosen, by `worker:rank`.
    pub by_rank: BTreeMap<String, u64>,
}

/// The values of a measured quantity, in the order they were handed over.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Samples {
    /// How many, kept or not.
    pub n: u64,
    /// Their sum.
    pub sum: f64,
    /// The first [`VALUES_KEPT`] values.
    pub values: Vec<f64>,
}

impl Samples {
    fn add(&mut self, value: f64) {
        self.n += 1;
        self.sum += value;
        if self.values.len() < VALUES_KEPT {
            self.values.push(value);
        }
    }

    /// The nearest-rank quantile: value number ceil(q·n) of the ascending list; `None` when there are no values.
    pub fn quantile(&self, q: f64) -> Option<f64> {
        let mut sorted = self.values.clone();
        sorted.sort_by(f64::total_cmp);
        let rank = (q * sorted.len() as f64).ceil() as usize;
        sorted.get(rank.max(1) - 1).copied()
    }
}

fn count(map: &mut BTreeMap<String, u64>, key: impl Into<String>) {
    *map.entry(key.into()).or_default() += 1;
}

fn rank_name(worker: Worker) -> String {
    format!("{}:{}", worker.id, worker.rank.unwrap_or(0))
}

impl Tally {
    /// Counts a span by its name; its witness is counted apart.
    pub fn span(&mut self, name: &str) {
        self.spans += 1;
        match self.spans_by_name.get_mut(name) {
            Some(n) => *n += 1,
            None => count(&mut self.spans_by_name, name),
        }
    }

    /// Counts what one handed-over piece says.
    pub fn count(&mut self, witness: &Witness) {
        match witness {
            Witness::Root { outcome, duration_ns, session } => {
                count(&mut self.outcomes, outcome.word());
                self.root_ns.entry(outcome.word().to_owned()).or_default().add(*duration_ns as f64);
                if let Some(session) = session
                    && (self.session_turns.len() < SESSIONS_KEPT || self.session_turns.contains_key(session.as_str()))
                {
                    count(&mut self.session_turns, session.as_str());
                }
            }
            Witness::Http { ttft_ms, tokens } => {
                if let Some(ttft) = ttft_ms {
                    self.ttft_ms.add(*ttft);
                }
                if let Some((input, output)) = tokens {
                    self.http_tokens.0 += input;
                    self.http_tokens.1 += output;
                }
            }
            Witness::Queue { .. } => self.queue(witness),
            Witness::Selection { .. } => self.selection.add(witness),
            Witness::Dispatch { phase, result, attempt, worker } => {
                count(&mut self.dispatches, format!("{}|{result}|{attempt}", phase.word()));
                count(&mut self.dispatches_by_worker, format!("{}|{}", phase.word(), worker.id));
            }
            Witness::Route { phase, outcome, migration, retry } => {
                count(&mut self.routes, format!("{}|{outcome}", phase.word()));
                self.retries += u64::from(*retry);
                if let Some((reason, tokens)) = migration {
                    count(&mut self.migrations, *reason);
                    if self.tokens_carried.len() < VALUES_KEPT {
                        self.tokens_carried.push(*tokens);
                    }
                }
            }
            Witness::Admission { worker, result, transport, payload_bytes } => {
                count(&mut self.admissions, format!("{result}|{transport}"));
                count(&mut self.admissions_by_worker, worker.to_string());
                self.payload_bytes.add(*payload_bytes as f64);
            }
            Witness::Stream { events, outcome, duration_ns, root } => {
                count(&mut self.streams, *outcome);
                self.events.add(*events as f64);
                if *outcome == "abandoned" {
                    count(&mut self.abandoned_roots, root.word());
                    self.events_at_leaving.add(*events as f64);
                    self.leaving_after_ns.add(*duration_ns as f64);
                }
            }
            Witness::RequestEnd { tokens: (input, output, cached) } => {
                count(&mut self.records_by_type, "request_end");
                self.record_tokens.0 += input;
                self.record_tokens.1 += output;
                self.record_tokens.2 += cached;
            }
            Witness::SelectionRecord => count(&mut self.records_by_type, "router_selection"),
            Witness::Received => self.received += 1,
            Witness::Completed(status) => count(&mut self.completed, *status),
            Witness::Other => {}
        }
    }

    fn queue(&mut self, witness: &Witness) {
        let Witness::Queue { pool, class, outcome, reason, deferred, depth, wait_ns } = witness else { return };
        let tally = self.queues.entry(format!("{}|{class}", pool.word())).or_default();
        tally.spans += 1;
        count(&mut tally.outcomes, *outcome);
        if let Some(reason) = reason {
            count(&mut tally.reasons, *reason);
            if *deferred && *outcome == "dequeued" {
                count(&mut tally.deferred, *reason);
                tally.deferred_waits_ns.add(*wait_ns as f64);
            }
        }
        tally.max_depth_in = tally.max_depth_in.max(depth.0);
        tally.max_depth_out = tally.max_depth_out.max(depth.1);
        if *deferred {
            tally.max_waiting = tally.max_waiting.max(depth.0 + 1);
        }
        tally.waits_ns.add(*wait_ns as f64);
    }
}

impl SelectionTally {
    fn add(&mut self, witness: &Witness) {
        let Witness::Selection { pool, candidates, eligible, filtered, chosen, best, margin } = witness else { return };
        count(&mut self.by_pool, pool.word());
        self.candidates += candidates;
        self.eligible += eligible;
        for (part, n) in FILTERS.iter().zip(filtered) {
            *self.filtered.entry((*part).to_owned()).or_default() += n;
        }
        if *candidates == 1 {
            self.single += 1;
        } else {
            self.ties += u64::from(*margin == 0.0);
            self.near_ties += u64::from(*margin > 0.0 && *margin < 0.1);
            self.margins.add(*margin);
        }
        self.not_best += u64::from(chosen.0 != best.0);
        if chosen.1 > best.1 {
            self.regret.add(chosen.1 - best.1);
        }
        count(&mut self.by_worker, chosen.0.id.to_string());
        count(&mut self.by_rank, rank_name(chosen.0));
    }
}
