//! What is known of one request: the digest that lists, filters, panes and reports read.
//!
//! Every fact says where it comes from when that is not a span of its own. Times are nanoseconds since the Unix epoch as
//! received, durations nanoseconds; scores are costs (lower is better, spec lifecycle-spans §3). Built by
//! `assemble`, never changed afterwards.

mod leg;

use compact_str::CompactString;

use super::account::{chunk, chunk_of};
use super::ids::{Rid, SpanId, TraceId};
pub use super::marks::Marks;
use super::stage::{Layout, Mode, Origin, Outcome, Phase};
pub use leg::{Admission, Choice, Closeness, Dispatch, FILTER_PARTS, Leg, NEAR_TIE, Queue, Selection};

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
    /// Largest time by which a child of another process starts before its parent or, served by a worker for a parent that
    /// waited, after its end, nanoseconds.
    pub skew_ns: u64,
}

/// Where a request stands.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Hash)]
pub enum State {
    /// Something has arrived, its end has not.
    #[default]
    InFlight,
    /// A record or a log has told that it is over; its spans, and with them its root, may be on their way.
    Ending,
    /// Its end has arrived: a root, or what ends a request that has none.
    Ended,
    /// Nothing came for a long time and the end is missing although expected.
    Lost,
}

impl State {
    /// Every state.
    pub const ALL: [Self; 4] = [Self::InFlight, Self::Ending, Self::Ended, Self::Lost];

    /// The word for a request of which no root tells how it ended.
    pub fn rootless_word(self) -> &'static str {
        match self {
            Self::InFlight => "in flight",
            Self::Ending => "ending",
            Self::Ended => "no root",
            Self::Lost => "end missing",
        }
    }
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
            (None, state) => state.rootless_word(),
        }
    }

    /// The bytes it takes in memory beside its own size, for accounting.
    pub fn heap_size(&self) -> usize {
        let own = [&self.model, &self.outcome_word, &self.endpoint];
        // The request id's own bytes are the store's; ids that are the same share them.
        let of_id =
            |id: &Rid| if id.is_empty() || Rid::ptr_eq(id, &self.request_id) { 0 } else { chunk(16 + id.len()) };
        let stages = self.stream.iter().map(|stream| long(&stream.outcome)).chain(
            self.preprocessing
                .iter()
                .map(|preprocessing| long(&preprocessing.checkpoint) + long(&preprocessing.outcome)),
        );
        self.stream.as_ref().map_or(0, |_| chunk_of::<Stream>(1))
            + chunk_of::<Leg>(self.legs.capacity())
            + own.into_iter().map(long).sum::<usize>()
            + of_id(&self.x_request_id)
            + of_id(&self.session_id)
            + stages.sum::<usize>()
            + self.legs.iter().map(Leg::heap_size).sum::<usize>()
    }
}

/// The bytes a text takes beside its own size.
fn long(text: &CompactString) -> usize {
    if text.is_heap_allocated() { chunk(text.capacity()) } else { 0 }
}
