//! What is known of one leg: its wait, the choice, the hand-over and the admission.

use compact_str::CompactString;

use super::long;
use crate::lifecycle::account::chunk_of;
use crate::lifecycle::ids::{SpanId, Worker};
use crate::lifecycle::stage::{Origin, Phase};

/// One leg: the way to one worker for one phase, in one attempt.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Leg {
    /// What it serves; unknown where nothing says it and nothing tells it for sure.
    pub phase: Phase,
    /// `Inferred` when only the pool of a selection tells its phase (drafts name none on their dispatches, spec
    /// lifecycle-spans §1), `Span` when it is said outright.
    pub phase_origin: Origin,
    /// 0, then the migration counter.
    pub attempt: u32,
    /// Its wait in the router's queue.
    pub queue: Option<Queue>,
    /// The router's choice.
    pub selection: Option<Box<Selection>>,
    /// The way to the worker.
    pub dispatch: Option<Dispatch>,
    /// The worker's admission.
    pub admission: Option<Box<Admission>>,
}

impl Leg {
    /// The worker it went to: the dispatch's, else the one selected.
    pub fn worker(&self) -> Option<Worker> {
        let dispatched = self.dispatch.as_ref().and_then(|dispatch| dispatch.worker);
        dispatched.or_else(|| self.selection.as_ref().and_then(|selection| Some(selection.selected?.worker)))
    }

    /// The worker it went to, unless that one is known not to have taken it.
    pub fn served_by(&self) -> Option<Worker> {
        self.worker().filter(|_| !self.dispatch.as_ref().is_some_and(Dispatch::refused))
    }

    /// The bytes it takes in memory beside its own size, for accounting.
    pub(super) fn heap_size(&self) -> usize {
        let queue = self.queue.iter().flat_map(|queue| [&queue.class, &queue.policy, &queue.outcome, &queue.reason]);
        let selection = self.selection.iter().map(|selection| &selection.policy);
        let dispatch = self.dispatch.iter().flat_map(|dispatch| {
            [&dispatch.route, &dispatch.result, &dispatch.attempt_outcome, &dispatch.error, &dispatch.migration_reason]
        });
        let admission = self.admission.iter().flat_map(|admission| [&admission.transport, &admission.result]);
        self.selection.as_ref().map_or(0, |_| chunk_of::<Selection>(1))
            + self.admission.as_ref().map_or(0, |_| chunk_of::<Admission>(1))
            + queue.chain(selection).chain(dispatch).chain(admission).map(long).sum::<usize>()
    }

    /// Admitted by the worker, then refused: its admission gate, when the root says rejected.
    pub fn at_capacity(&self) -> bool {
        self.admission.as_ref().is_some_and(|admission| admission.result == "accepted")
            && self.dispatch.as_ref().is_some_and(|dispatch| dispatch.result == "failed")
    }
}

/// A wait in the router's queue (`router.queue`, or inferred from `kv_router.schedule`).
#[derive(Clone, PartialEq, Debug)]
pub struct Queue {
    /// The span, for drill-down.
    pub span: SpanId,
    /// When it was entered.
    pub start_ns: u64,
    /// How long it took, nanoseconds.
    pub wait_ns: u64,
    /// Policy class; empty when not recorded.
    pub class: CompactString,
    /// Queue policy; empty when not recorded.
    pub policy: CompactString,
    /// Pending before entering, the whole router's.
    pub depth_in: Option<u64>,
    /// Pending after leaving.
    pub depth_out: Option<u64>,
    /// Left in a later router turn than it entered.
    pub deferred: Option<bool>,
    /// `dequeued`, `rejected`, `cancelled`, … as written; empty when not recorded.
    pub outcome: CompactString,
    /// Why it was deferred, rejected, cancelled or failed, as written; empty when none.
    pub reason: CompactString,
    /// `Span` or `Inferred`.
    pub origin: Origin,
}

impl Queue {
    /// How many waited when it had entered. What its span tells was pending before (spec lifecycle-spans §3); it waits beside
    /// that, unless it was served in the same turn of the router.
    pub fn entered_at(&self) -> Option<u64> {
        self.depth_in.map(|depth| depth.saturating_add(u64::from(self.deferred == Some(true))))
    }

    /// Whether it is said to have ended otherwise than on the way to a worker, by whatever word: `dequeued`, in drafts
    /// `admitted`, is that way.
    pub fn left_unserved(&self) -> bool {
        !matches!(self.outcome.as_str(), "" | "dequeued" | "admitted")
    }
}

/// A router's choice (`router.selection`, or a `router_selection` record).
#[derive(Clone, PartialEq, Debug)]
pub struct Selection {
    /// The span, for drill-down; `None` when it comes from a record.
    pub span: Option<SpanId>,
    /// When it was made.
    pub time_ns: u64,
    /// The pool it chose from, as written.
    pub pool: Phase,
    /// Ranks that could be chosen.
    pub candidates: Option<u64>,
    /// Ranks eligible before the policy filter.
    pub eligible: Option<u64>,
    /// Ranks filtered out, and the parts: not allowed, constraints, overloaded, unavailable, policy.
    pub filtered: Option<u64>,
    /// The parts of `filtered`, in the spec's order; see [`FILTER_PARTS`].
    pub filtered_parts: [Option<u64>; 5],
    /// The chosen rank and its cost.
    pub selected: Option<Choice>,
    /// The cheapest rank and its cost.
    pub best: Option<Choice>,
    /// Runner-up's cost minus the best's, as the producer gave it or, from a record, as its list says.
    pub margin: Option<f64>,
    /// Kept by session affinity; only records say.
    pub pinned: Option<bool>,
    /// Policy that chose; empty when not recorded.
    pub policy: CompactString,
    /// `Span` or `Record`.
    pub origin: Origin,
}

/// The names of [`Selection::filtered_parts`].
pub const FILTER_PARTS: [&str; 5] = ["not_allowed", "constraints", "overloaded", "unavailable", "policy"];

impl Selection {
    /// The chosen one's cost minus the least: what the policy or temperature paid. `None` unless both are known.
    pub fn regret(&self) -> Option<f64> {
        Some(self.selected?.cost? - self.best?.cost?)
    }

    /// Whether its span tells of no choice: it failed (spec lifecycle-spans §3). A record does not say which of its candidates
    /// was chosen (spec request-trace.md).
    pub fn chose_none(&self) -> bool {
        self.selected.is_none() && self.origin != Origin::Record
    }
}

/// A margin above 0 and below this is a near tie; costs.
pub const NEAR_TIE: f64 = 0.1;

/// How close a choice was.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Closeness {
    /// There was one candidate.
    Only,
    /// The two best cost the same.
    Tie,
    /// Their costs differ by less than [`NEAR_TIE`].
    Near,
    /// They differ by more.
    Clear,
}

impl Closeness {
    /// Of a margin among so many candidates, when that is known.
    pub fn of(margin: f64, candidates: Option<u64>) -> Self {
        match candidates {
            Some(1) => Self::Only,
            _ if margin <= 0.0 => Self::Tie,
            _ if margin < NEAR_TIE => Self::Near,
            _ => Self::Clear,
        }
    }
}

/// A rank and its cost.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Choice {
    /// Worker and rank.
    pub worker: Worker,
    /// The cost; `None` when not recorded.
    pub cost: Option<f64>,
}

/// An attempt to hand the leg to a worker (`request.dispatch` and the route span below it; in the base layout the route
/// span alone).
#[derive(Clone, PartialEq, Debug)]
pub struct Dispatch {
    /// The span, for drill-down.
    pub span: SpanId,
    /// When it began.
    pub start_ns: u64,
    /// How long the dispatch took, nanoseconds.
    pub duration_ns: u64,
    /// `kv`, `round-robin`, …; empty when not recorded.
    pub route: CompactString,
    /// Destination.
    pub worker: Option<Worker>,
    /// `accepted`, `cancelled`, `failed` as written; in the base layout inferred from the attempt's outcome. Empty when
    /// absent (the future was dropped).
    pub result: CompactString,
    /// The route span's `request.outcome`; empty when there is none.
    pub attempt_outcome: CompactString,
    /// The route span's `error.type`.
    pub error: CompactString,
    /// Whether the route span says this is a retry.
    pub retry: Option<bool>,
    /// Why the work moved here; empty when it did not.
    pub migration_reason: CompactString,
    /// The worker it moved from.
    pub from_worker: Option<u64>,
    /// Tokens carried over from the attempt before.
    pub tokens_carried: Option<u64>,
    /// `Span` for a dispatch span, `Inferred` from a route span.
    pub origin: Origin,
}

impl Dispatch {
    /// The result, or in layouts without one the outcome of the attempt: both as written. Empty when neither is.
    pub fn result_word(&self) -> &CompactString {
        if self.result.is_empty() && self.origin == Origin::Inferred { &self.attempt_outcome } else { &self.result }
    }

    /// Whether the worker is known to have taken it: the dispatch says so, or without one the attempt (spec lifecycle-spans
    /// §3). `response_timeout`: it was connected and then silent (seen with a stopped worker).
    pub fn taken(&self) -> bool {
        match (self.result.as_str(), self.attempt_outcome.as_str()) {
            ("", "timeout") => self.error == "response_timeout",
            ("", outcome) => matches!(outcome, "success" | "cancelled" | "worker_disconnected"),
            (result, _) => result == "accepted",
        }
    }

    /// Whether the worker is known not to have taken it. An attempt that ended in an error or in a word nobody knows may have
    /// been served.
    pub fn refused(&self) -> bool {
        match (self.result.as_str(), self.attempt_outcome.as_str()) {
            ("", "timeout") => self.error == "connection_timeout",
            ("", outcome) => matches!(outcome, "connection_failed" | "rejected" | "unavailable"),
            (result, _) => matches!(result, "cancelled" | "failed"),
        }
    }

    /// Whether the hand-over failed, or without a result of its own the attempt; not when the worker was lost after it had
    /// taken it ([`Self::lost_worker`]).
    pub fn failed(&self) -> bool {
        match self.result.as_str() {
            "" => matches!(
                self.attempt_outcome.as_str(),
                "connection_failed" | "timeout" | "rejected" | "unavailable" | "error"
            ),
            result => result == "failed",
        }
    }

    /// Whether the route span says that the worker was lost or could not be reached.
    pub fn lost_worker(&self) -> bool {
        matches!(self.attempt_outcome.as_str(), "worker_disconnected" | "connection_failed" | "unavailable")
    }
}

/// A worker's admission (`worker.admission`).
#[derive(Clone, PartialEq, Debug)]
pub struct Admission {
    /// The span, for drill-down.
    pub span: SpanId,
    /// `tcp`, `quic`; empty when not recorded.
    pub transport: CompactString,
    /// The whole envelope's size.
    pub payload_bytes: Option<u64>,
    /// `accepted`, `rejected`, `failed`; empty when not recorded.
    pub result: CompactString,
}
