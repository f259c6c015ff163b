//! What is known of one request: the digest that lists, filters, panes and reports read.
//!
//! Every fact says where it comes from when that is not a span of its own. Times are nanoseconds since the Unix epoch as
//! received, durations nanoseconds; scores are costs (lower is better, spec lifecycle-spans §3). Built by
//! `assemble`, never changed afterwards.

use compact_str::CompactString;

use super::account::{chunk, chunk_of};
use super::ids::{Rid, SpanId, TraceId, Worker};
pub use super::marks::Marks;
use super::stage::{Layout, Mode, Origin, Outcome, Phase};

/// The digest of one request.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Facts {
    /// The request id; empty when nothing that arrived names one (the trace id stands in for it on screen).
    pub request_id: Rid,
    /// The client's own id; empty when not said.
    pub x_request_id: Rid,
    /// The session; empty when not said.
    pub session_id: Rid,
    /// Whether the session is the producer's fallback (the request id itself) and so no session at all.
    pub session_fallback: bool,
    /// The model; empty when not said.
    pub model: CompactString,
    /// The trace with the root, else the first seen; `None` for a request known from records alone.
    pub trace: Option<TraceId>,
    /// Where it stands.
    pub state: State,
    /// The outcome as the root says; `None` without a root.
    pub outcome: Option<Outcome>,
    /// The root's own word, when it is none of the six.
    pub outcome_word: CompactString,
    /// Whether a root (`request.lifecycle`) has arrived.
    pub has_root: bool,
    /// Whether an `http-request` has arrived.
    pub has_http: bool,
    /// `/v1/chat/completions`, …; empty when not said.
    pub endpoint: CompactString,
    /// Whether the client streams; `None` when nothing says.
    pub streaming: Option<bool>,
    /// Earliest known moment: the root's start, else the earliest of spans, records and signs. 0 when none has a time.
    pub start_ns: u64,
    /// The end: the root's, else `http-request`'s, else the record's; `None` in flight.
    pub end_ns: Option<u64>,
    /// `dynamo.request.terminal.timestamp_unix_ns`.
    pub terminal_ns: Option<u64>,
    /// The producer's layout.
    pub layout: Layout,
    /// The producer's mode.
    pub mode: Mode,
    /// Its legs: one per phase and attempt, in the order they began.
    pub legs: Vec<Leg>,
    /// Its frontend stream; `None` when no `response.streaming` has arrived.
    pub stream: Option<Box<Stream>>,
    /// Preprocessing's state.
    pub preprocessing: Option<Preprocessing>,
    /// Time to first token, nanoseconds, and where it comes from (`http-request` before the record).
    pub ttft_ns: Option<(u64, Origin)>,
    /// Time to first token by the record, nanoseconds.
    pub record_ttft_ns: Option<u64>,
    /// Total time by the record, nanoseconds.
    pub record_total_ns: Option<u64>,
    /// Input tokens.
    pub input_tokens: Option<u64>,
    /// Output tokens.
    pub output_tokens: Option<u64>,
    /// Prompt tokens found in the cache, by the record.
    pub cached_tokens: Option<u64>,
    /// Whether its `request_end` record has arrived.
    pub has_record: bool,
    /// Spans it has.
    pub spans: u32,
    /// Those of them whose parent is named and has not arrived.
    pub orphans: u32,
    /// What is odd about it.
    pub marks: Marks,
    /// Largest time by which a child of another process starts before its parent, nanoseconds.
    pub skew_ns: u64,
}

/// Where a request stands.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Hash)]
pub enum State {
    /// Something has arrived, its end has not.
    #[default]
    InFlight,
    /// Its end has arrived: a root, or what ends a request that has none.
    Ended,
    /// Nothing came for a long time and the end is missing although expected.
    Lost,
}

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

/// The frontend's stream (`response.streaming`).
#[derive(Clone, PartialEq, Debug)]
pub struct Stream {
    /// The span, for drill-down.
    pub span: SpanId,
    /// When it began.
    pub start_ns: u64,
    /// How long it took, nanoseconds.
    pub duration_ns: u64,
    /// Items yielded; only investigation mode records them.
    pub events: Option<u64>,
    /// The terminal outcome or `abandoned`; empty when not recorded.
    pub outcome: CompactString,
}

/// Preprocessing (`request.preprocessing`).
#[derive(Clone, Debug, PartialEq)]
pub struct Preprocessing {
    /// The span, for drill-down.
    pub span: SpanId,
    /// How long it took, nanoseconds.
    pub duration_ns: u64,
    /// The last checkpoint passed; empty when not recorded.
    pub checkpoint: CompactString,
    /// Its outcome; empty when not recorded.
    pub outcome: CompactString,
}

impl Facts {
    /// How many attempts it took: the number of distinct attempt counters among dispatched legs.
    pub fn attempts(&self) -> u32 {
        self.legs.iter().filter(|leg| leg.dispatch.is_some()).map(|leg| leg.attempt + 1).max().unwrap_or(0)
    }

    /// The summed queue wait of all legs, nanoseconds; `None` when no leg has one.
    pub fn queue_wait_ns(&self) -> Option<u64> {
        let mut waits = self.legs.iter().filter_map(|leg| Some(leg.queue.as_ref()?.wait_ns));
        let first = waits.next()?;
        Some(waits.fold(first, u64::saturating_add))
    }

    /// The first deferral, rejection or cancellation reason of its legs.
    pub fn reason(&self) -> Option<&str> {
        self.legs
            .iter()
            .filter_map(|leg| leg.queue.as_ref())
            .map(|queue| queue.reason.as_str())
            .find(|reason| !reason.is_empty())
    }

    /// Whether any leg was deferred; `None` when no leg says.
    pub fn deferred(&self) -> Option<bool> {
        let mut said = self.legs.iter().filter_map(|leg| leg.queue.as_ref()?.deferred);
        let first = said.next()?;
        Some(first || said.any(|deferred| deferred))
    }

    /// The smallest margin of its selections: the closest decision.
    pub fn margin(&self) -> Option<f64> {
        self.legs.iter().filter_map(|leg| leg.selection.as_ref()?.margin).min_by(f64::total_cmp)
    }

    /// The last leg of a phase (`Decode` also finds an aggregated one).
    pub fn last_leg(&self, phase: Phase) -> Option<&Leg> {
        self.legs
            .iter()
            .rev()
            .find(|leg| leg.phase == phase || (phase == Phase::Decode && leg.phase == Phase::Aggregated))
    }

    /// From start to end, nanoseconds; `None` in flight and when no start is known. An end before the start is 0.
    pub fn total_ns(&self) -> Option<u64> {
        let end_ns = self.end_ns.filter(|_| self.start_ns > 0)?;
        Some(end_ns.saturating_sub(self.start_ns))
    }

    /// The word shown for how it stands: the root's outcome, or what is known without a root.
    pub fn outcome_text(&self) -> &str {
        match (self.outcome, self.state) {
            (Some(_), _) if !self.outcome_word.is_empty() => &self.outcome_word,
            (Some(outcome), _) => outcome.word(),
            (None, State::InFlight) => "in flight",
            (None, State::Ended) => "no root",
            (None, State::Lost) => "end missing",
        }
    }

    /// The bytes it takes in memory beside its own size, for accounting.
    pub fn heap_size(&self) -> usize {
        let long = |text: &CompactString| if text.is_heap_allocated() { chunk(text.capacity()) } else { 0 };
        let own = [&self.model, &self.outcome_word, &self.endpoint];
        // The request id's own bytes are the store's; ids that are the same share them.
        let of_id =
            |id: &Rid| if id.is_empty() || Rid::ptr_eq(id, &self.request_id) { 0 } else { chunk(16 + id.len()) };
        let stages = self.stream.iter().map(|stream| long(&stream.outcome)).chain(
            self.preprocessing
                .iter()
                .map(|preprocessing| long(&preprocessing.checkpoint) + long(&preprocessing.outcome)),
        );
        let of_leg = |leg: &Leg| {
            let queue = leg.queue.iter().flat_map(|queue| [&queue.class, &queue.policy, &queue.outcome, &queue.reason]);
            let selection = leg.selection.iter().map(|selection| &selection.policy);
            let dispatch = leg.dispatch.iter().flat_map(|dispatch| {
                [
                    &dispatch.route,
                    &dispatch.result,
                    &dispatch.attempt_outcome,
                    &dispatch.error,
                    &dispatch.migration_reason,
                ]
            });
            let admission = leg.admission.iter().flat_map(|admission| [&admission.transport, &admission.result]);
            queue.chain(selection).chain(dispatch).chain(admission).map(long).sum::<usize>()
        };
        let boxed = |leg: &Leg| {
            leg.selection.as_ref().map_or(0, |_| chunk_of::<Selection>(1))
                + leg.admission.as_ref().map_or(0, |_| chunk_of::<Admission>(1))
        };
        self.stream.as_ref().map_or(0, |_| chunk_of::<Stream>(1))
            + chunk_of::<Leg>(self.legs.capacity())
            + self.legs.iter().map(boxed).sum::<usize>()
            + own.into_iter().map(long).sum::<usize>()
            + of_id(&self.x_request_id)
            + of_id(&self.session_id)
            + stages.sum::<usize>()
            + self.legs.iter().map(of_leg).sum::<usize>()
    }
}
