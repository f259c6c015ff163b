//! The ledger: what truly happened in the simulated cluster, counted piece by piece as the exporters hand it over.
//!
//! Owns: the witnesses (one per exported span, log or record that says something), the tally they add up to, and one
//! line per request whose evidence has been handed over whole. At any pause the tally equals what a receiver that has
//! read every delivery can know. Keeps out: spans and wire formats (`emit`), the causes (`sim`).

use std::collections::{BTreeMap, VecDeque};

use serde::Serialize;

use super::fault::Kind;
pub use super::tally::{QueueTally, Samples, SelectionTally, Tally};
use crate::lifecycle::ids::Worker;
use crate::lifecycle::stage::{Outcome, Phase};

/// Lines of whole requests kept, newest last; older ones are counted in [`Ledger::forgotten`].
pub const REQUESTS_KEPT: usize = 20_000;

/// What truly happened, as far as it has been handed to the exporter's other side.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Ledger {
    /// Requests of which at least one span, log or record was handed over.
    pub begun: u64,
    /// Requests whose every span, log and record was handed over.
    pub finished: u64,
    /// What all handed-over evidence says.
    pub tally: Tally,
    /// The finished requests, in the order they became whole.
    pub requests: VecDeque<RequestTruth>,
    /// Finished requests whose line was given up (only counted).
    pub forgotten: u64,
    /// The faults that were injected into the finished requests, by kind.
    pub faults: BTreeMap<&'static str, Injected>,
}

/// What was injected of one kind of fault. The tally stays the truth: a fault changes only what is told.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Injected {
    /// How many requests have it.
    pub count: u64,
    /// The checks that must answer violated for each of them.
    pub checks: &'static [&'static str],
    /// Checks that it also violates on some of them.
    pub also: &'static [&'static str],
    /// Their request ids; of many, the first [`REQUESTS_KEPT`].
    pub requests: Vec<String>,
}

/// One request's whole life.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct RequestTruth {
    /// `dynamo.request.id`.
    pub request_id: String,
    /// The trace, in hex.
    pub trace_id: String,
    /// The session; the request's own id when it belongs to none.
    pub session_id: String,
    /// Turn within the session, from 0.
    pub turn: u32,
    /// Policy class of the router's queue.
    pub class: String,
    /// Whether the client asked for a stream.
    pub streaming: bool,
    /// `dynamo.request.terminal.outcome`.
    pub outcome: String,
    /// Dispatch attempts: the highest attempt number of any leg plus one; 0 when nothing was dispatched.
    pub attempts: u32,
    /// The fault injected into what is told of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fault: Option<&'static str>,
    /// Spans exported.
    pub spans: u32,
    /// Spans of the lifecycle schema among them.
    pub lifecycle_spans: u32,
    /// Queue waits of its legs in order, nanoseconds.
    pub waits_ns: Vec<u64>,
    /// `phase#attempt worker:rank` of each dispatch, in order.
    pub dispatched: Vec<String>,
    /// Tokens that migrations carried over, in order.
    pub carried: Vec<u64>,
    /// Prompt tokens.
    pub input_tokens: u64,
    /// Tokens generated before the end.
    pub output_tokens: u64,
    /// Prompt tokens found in the prefix cache of the first leg.
    pub cached_tokens: u64,
    /// Time to the first token from arrival, nanoseconds.
    pub ttft_ns: Option<u64>,
    /// Duration of the root span, nanoseconds.
    pub root_ns: u64,
    /// Events of the frontend's stream; absent when there was none.
    pub events: Option<u64>,
    /// Whether the client dropped the stream.
    pub abandoned: bool,
}

/// One piece of evidence, as it is counted when it is handed over.
#[derive(Clone, Debug, PartialEq)]
pub enum Witness {
    /// A root: its outcome, duration in nanoseconds, session turn.
    Root {
        /// How the request ended.
        outcome: Outcome,
        /// The root's duration.
        duration_ns: u64,
        /// The agent session, when the request belongs to one.
        session: Option<String>,
    },
    /// An `http-request` with what a completed stream records on it.
    Http {
        /// Milliseconds to the first token, as written on the span.
        ttft_ms: Option<f64>,
        /// Prompt and generated tokens, when written.
        tokens: Option<(u64, u64)>,
    },
    /// A `router.queue`.
    Queue {
        /// The pool whose router it was.
        pool: Phase,
        /// The policy class.
        class: &'static str,
        /// `dequeued`, `rejected` or `cancelled`.
        outcome: &'static str,
        /// Why it was deferred, rejected or cancelled.
        reason: Option<&'static str>,
        /// Whether it left in a later router turn than it entered.
        deferred: bool,
        /// Waiting in that router before it entered and after it left.
        depth: (u64, u64),
        /// The span's duration.
        wait_ns: u64,
    },
    /// A `router.selection`.
    Selection {
        /// The pool chosen from.
        pool: Phase,
        /// Ranks that could be chosen.
        candidates: u64,
        /// Ranks before the policy filter.
        eligible: u64,
        /// Filtered ranks by [`FILTERS`].
        filtered: [u64; 5],
        /// Who was chosen, at what cost.
        chosen: (Worker, f64),
        /// Who was reported best, at what cost.
        best: (Worker, f64),
        /// Runner-up minus best.
        margin: f64,
    },
    /// A frontend-side `request.dispatch`.
    Dispatch {
        /// The leg's phase.
        phase: Phase,
        /// `accepted`, `cancelled` or `failed`.
        result: &'static str,
        /// The attempt.
        attempt: u32,
        /// Where it went.
        worker: Worker,
    },
    /// A `kv_router.route_request`.
    Route {
        /// The leg's phase.
        phase: Phase,
        /// `request.outcome`.
        outcome: &'static str,
        /// What a migration carried over, on the leg that says so.
        migration: Option<(&'static str, u64)>,
        /// Whether it says it is a retry.
        retry: bool,
    },
    /// A `worker.admission`.
    Admission {
        /// Who admitted.
        worker: u64,
        /// `accepted` or `rejected`.
        result: &'static str,
        /// `tcp` or `quic`.
        transport: &'static str,
        /// Size of the whole envelope.
        payload_bytes: u64,
    },
    /// A frontend `response.streaming`.
    Stream {
        /// Items the frontend yielded.
        events: u64,
        /// Its end: an outcome, or `abandoned`.
        outcome: &'static str,
        /// The span's duration.
        duration_ns: u64,
        /// How the root of this request ended.
        root: Outcome,
    },
    /// A `request_end` record.
    RequestEnd {
        /// Prompt, generated and cached tokens.
        tokens: (u64, u64, u64),
    },
    /// A `router_selection` record.
    SelectionRecord,
    /// `request received`, of the frontend.
    Received,
    /// `request completed`, of the frontend, with its status word.
    Completed(&'static str),
    /// Any other span.
    Other,
}

/// The parts of `filtered.count`, in the order of [`Witness::Selection`].
pub const FILTERS: [&str; 5] = ["not_allowed", "constraints", "overloaded", "unavailable", "policy"];

impl Ledger {
    /// Takes the line of a request that has been handed over whole.
    pub fn finish(&mut self, truth: RequestTruth) {
        self.finished += 1;
        if self.requests.len() == REQUESTS_KEPT {
            self.requests.pop_front();
            self.forgotten += 1;
        }
        self.requests.push_back(truth);
    }

    /// Takes in that a finished request has a fault.
    pub fn injected(&mut self, kind: &'static Kind, request_id: &str) {
        let of = self.faults.entry(kind.name).or_default();
        (of.checks, of.also) = (kind.checks, kind.also);
        of.count += 1;
        if of.requests.len() < REQUESTS_KEPT {
            of.requests.push(request_id.to_owned());
        }
    }

    /// Finished and unfinished requests that were begun.
    pub fn in_flight(&self) -> u64 {
        self.begun - self.finished
    }

    /// Roots handed over with this outcome.
    pub fn outcome(&self, outcome: Outcome) -> u64 {
        self.tally.outcomes.get(outcome.word()).copied().unwrap_or(0)
    }
}
