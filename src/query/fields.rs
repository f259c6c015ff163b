//! The fields one can filter by: one row each, read by parsing, evaluating, completing and the reference.
//!
//! Fields of the evidence catalogue that have no row here are asked of the spans themselves, by their catalogue id;
//! any attribute by its name.

use crate::lifecycle::catalogue::{self, Unit as CatalogueUnit};
use crate::lifecycle::facts::{Dispatch, Facts, Leg, Marks, Queue, Selection, State};
use crate::lifecycle::ids::Worker;
use crate::lifecycle::stage::{Layout, Mode, Origin, Outcome, Phase};

use super::number::{Measure, Unit};

/// One field.
#[derive(Debug)]
pub struct Row {
    /// Its name.
    pub id: &'static str,
    /// Other names for it.
    pub aliases: &'static [&'static str],
    /// What it is, for help.
    pub doc: &'static str,
    /// Words its producer is known to use, for completion; others are possible.
    pub(super) hints: &'static [&'static str],
    pub(super) get: Get,
}

impl PartialEq for Row {
    fn eq(&self, other: &Self) -> bool {
        self.id == other.id
    }
}

/// How a request answers, and so what can be asked.
#[derive(Debug)]
pub(super) enum Get {
    /// A text of the request; empty when not said.
    Text(fn(&Facts) -> &str),
    /// An id of the request: found by its beginning too.
    Id(fn(&Facts) -> &str),
    Words(fn() -> Vec<&'static str>, fn(&Facts) -> &str),
    Number(Measure, fn(&Facts) -> Option<f64>),
    Flag(fn(&Facts) -> Option<bool>),
    LegText(fn(&Leg) -> &str),
    LegWords(fn() -> Vec<&'static str>, fn(&Leg) -> &str),
    LegNumber(Measure, fn(&Leg) -> Option<f64>),
    LegFlag(fn(&Leg) -> Option<bool>),
    LegWorker(fn(&Leg) -> Option<Worker>),
    Worker(fn(&Facts) -> Option<Worker>),
    /// How it stands: the outcome and the root's own word.
    Outcome,
    /// The words of its marks.
    Marks,
    /// Its traces.
    Trace,
    /// Its checks' answers.
    Checks,
    /// What stands in its spans.
    Spans(Of),
}

/// What is asked of spans.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) enum Of {
    Name,
    Event,
    Service,
    Host,
    Status,
}

/// What values of a field look like.
#[derive(Clone, Copy, Debug)]
pub(super) enum Kind {
    Text,
    Id,
    Words(fn() -> Vec<&'static str>),
    Number(Measure),
    Flag,
    Worker,
    Check,
    /// Whatever an attribute holds.
    Attribute(Measure),
}

/// What a term asks about.
#[derive(Clone)]
pub(super) enum Target {
    Field(&'static Row),
    /// A field of the evidence catalogue, asked of the spans.
    Evidence(&'static catalogue::Row),
    Attribute(Box<str>),
}

impl PartialEq for Target {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Field(a), Self::Field(b)) => a == b,
            (Self::Evidence(a), Self::Evidence(b)) => a.field == b.field,
            (Self::Attribute(a), Self::Attribute(b)) => a == b,
            _ => false,
        }
    }
}

impl std::fmt::Debug for Target {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Field(row) => write!(f, "field {}", row.id),
            Self::Evidence(row) => write!(f, "evidence {}", row.id),
            Self::Attribute(name) => write!(f, "attribute {name:?}"),
        }
    }
}

impl Target {
    /// What an unquoted name means. Every name means something: what is no field is an attribute.
    pub fn of(name: &str) -> Self {
        if let Some(row) = row(name) {
            return Self::Field(row);
        }
        match catalogue::ROWS.iter().find(|row| row.id == name) {
            Some(row) => Self::Evidence(row),
            None => Self::Attribute(name.into()),
        }
    }

    pub fn kind(&self) -> Kind {
        match self {
            Self::Field(row) => row.get.kind(),
            Self::Evidence(row) => match row.unit {
                CatalogueUnit::Count | CatalogueUnit::Cost | CatalogueUnit::Tokens | CatalogueUnit::UnixNanos => {
                    Kind::Attribute(Measure::PLAIN)
                }
                CatalogueUnit::Millis => Kind::Attribute(Measure::MILLIS),
                CatalogueUnit::Bytes => Kind::Attribute(Measure::BYTES),
                CatalogueUnit::Text | CatalogueUnit::Flag | CatalogueUnit::Json => Kind::Attribute(Measure::PLAIN),
            },
            Self::Attribute(name) => Kind::Attribute(measure_of(name)),
        }
    }

    /// The name of the attribute it is, when it is no field.
    pub fn attribute(&self) -> Option<&str> {
        match self {
            Self::Attribute(name) => Some(name),
            Self::Field(_) | Self::Evidence(_) => None,
        }
    }

    pub fn asks_checks(&self) -> bool {
        matches!(self, Self::Field(row) if matches!(row.get, Get::Checks))
    }

    pub fn lazy(&self) -> bool {
        match self {
            Self::Field(row) => matches!(row.get, Get::Trace | Get::Checks | Get::Spans(_)),
            Self::Evidence(_) | Self::Attribute(_) => true,
        }
    }
}

/// What an attribute's number counts, by the ending of its name.
fn measure_of(name: &str) -> Measure {
    let time = |plain| Measure { unit: Unit::Time, plain };
    match name.rsplit(['_', '.']).next() {
        Some("ms") => time(1e6),
        Some("us") => time(1e3),
        Some("ns") => time(1.0),
        Some("bytes") => Measure::BYTES,
        _ => Measure::PLAIN,
    }
}

impl Get {
    pub fn kind(&self) -> Kind {
        match self {
            Self::Text(_) | Self::LegText(_) | Self::Spans(_) => Kind::Text,
            Self::Id(_) | Self::Trace => Kind::Id,
            Self::Words(words, _) | Self::LegWords(words, _) => Kind::Words(*words),
            Self::Outcome => Kind::Words(outcomes),
            Self::Marks => Kind::Words(|| Marks::ALL.map(|(.., word)| word).to_vec()),
            Self::Number(measure, _) | Self::LegNumber(measure, _) => Kind::Number(*measure),
            Self::Flag(_) | Self::LegFlag(_) => Kind::Flag,
            Self::LegWorker(_) | Self::Worker(_) => Kind::Worker,
            Self::Checks => Kind::Check,
        }
    }
}

impl Kind {
    fn word(self) -> &'static str {
        match self {
            Self::Text => "text",
            Self::Id => "id, or its first 8 digits",
            Self::Words(_) => "word",
            Self::Number(measure) => measure.unit.word(),
            Self::Flag => "true, false",
            Self::Worker => "worker, with or without :rank",
            Self::Check => "violated, unknown, holds; check id",
            Self::Attribute(_) => "any",
        }
    }
}

/// The row of a name or alias, in any case.
pub(super) fn row(name: &str) -> Option<&'static Row> {
    ROWS.iter().find(|row| {
        row.id.eq_ignore_ascii_case(name) || row.aliases.iter().any(|alias| alias.eq_ignore_ascii_case(name))
    })
}

/// Every field with what it is and what its values look like, for help and documentation: first those with a row here,
/// then the rest of the evidence catalogue.
pub fn reference() -> impl Iterator<Item = (&'static str, &'static str, &'static str)> {
    let evidence = catalogue::ROWS.iter().filter(|evidence| row(evidence.id).is_none()).map(|evidence| {
        let unit = match evidence.unit {
            CatalogueUnit::Text | CatalogueUnit::Json => "text",
            CatalogueUnit::Flag => "true, false",
            CatalogueUnit::Count | CatalogueUnit::Cost | CatalogueUnit::Tokens => Unit::Plain.word(),
            CatalogueUnit::UnixNanos => "nanoseconds since 1970",
            CatalogueUnit::Millis => Unit::Time.word(),
            CatalogueUnit::Bytes => Unit::Bytes.word(),
        };
        (evidence.id, evidence.label, unit)
    });
    ROWS.iter().map(|row| (row.id, row.doc, row.get.kind().word())).chain(evidence)
}

fn outcomes() -> Vec<&'static str> {
    let mut words = Outcome::ALL.map(Outcome::word).to_vec();
    words.extend(State::ALL.map(State::rootless_word));
    words
}

fn phases() -> Vec<&'static str> {
    Phase::ALL.map(Phase::word).to_vec()
}

fn states() -> Vec<&'static str> {
    State::ALL.map(state).to_vec()
}

fn layouts() -> Vec<&'static str> {
    [Layout::Base, Layout::Draft, Layout::Evidence].map(Layout::word).to_vec()
}

fn modes() -> Vec<&'static str> {
    [Mode::Core, Mode::Investigation].map(Mode::word).to_vec()
}

fn origins() -> Vec<&'static str> {
    [Origin::Span, Origin::Record, Origin::Inferred].map(Origin::word).to_vec()
}

fn state(state: State) -> &'static str {
    match state {
        State::InFlight => "in_flight",
        State::Ending => "ending",
        State::Ended => "ended",
        State::Lost => "lost",
    }
}

fn queue<'a, T>(leg: &'a Leg, get: impl Fn(&'a Queue) -> Option<T>) -> Option<T> {
    leg.queue.as_ref().and_then(get)
}

fn selection<'a, T>(leg: &'a Leg, get: impl Fn(&'a Selection) -> Option<T>) -> Option<T> {
    leg.selection.as_deref().and_then(get)
}

fn dispatch<'a, T>(leg: &'a Leg, get: impl Fn(&'a Dispatch) -> Option<T>) -> Option<T> {
    leg.dispatch.as_ref().and_then(get)
}

fn float(number: Option<u64>) -> Option<f64> {
    number.map(|number| number as f64)
}

/// From the choice of a worker, as a span records it, to the end of its accepted dispatch.
fn acceptance(leg: &Leg) -> Option<f64> {
    let (selection, dispatch) = (leg.selection.as_ref()?, leg.dispatch.as_ref()?);
    selection.span.filter(|_| dispatch.result == "accepted")?;
    let end = dispatch.start_ns.saturating_add(dispatch.duration_ns);
    Some(end.saturating_sub(selection.time_ns) as f64)
}

macro_rules! rows {
    (@) => { &[] };
    (@ $hints:expr) => { $hints };
    ($($id:literal $aliases:tt $doc:literal $($hints:expr)?, $get:expr;)+) => {
        &[$(Row { id: $id, aliases: &$aliases, doc: $doc, hints: rows!(@ $($hints)?), get: $get }),+]
    };
}

/// Every field, in the order of a request's life.
pub static ROWS: &[Row] = rows! {
    // The request
    "request" ["request_id", "id"] "its id", Get::Id(|facts| &facts.request_id);
    "x_request_id" ["x_request"] "the client's own id", Get::Id(|facts| &facts.x_request_id);
    "trace" ["trace_id"] "a trace it came in", Get::Trace;
    "session" ["session_id"] "its session; not the producer's stand-in for one",
        Get::Text(|facts| if facts.session_fallback { "" } else { &facts.session_id });
    "model" [] "the model asked for", Get::Text(|facts| &facts.model);
    "endpoint" [] "the path asked", Get::Text(|facts| &facts.endpoint);
    "outcome" [] "how it ended, as its root says, or how it stands without one", Get::Outcome;
    "state" [] "where it stands", Get::Words(states, |facts| state(facts.state));
    "attempts" [] "how many attempts it took", Get::Number(Measure::PLAIN, |facts| Some(f64::from(facts.attempts())));
    "total" ["duration"] "from start to end", Get::Number(Measure::MILLIS, |facts| float(facts.total_ns()));
    "ttft" [] "time to first token", Get::Number(Measure::MILLIS, |facts| Some(facts.ttft_ns?.0 as f64));
    "ttft.origin" [] "where the time to first token is known from",
        Get::Words(origins, |facts| facts.ttft_ns.map_or("", |(_, origin)| origin.word()));
    "tokens.in" ["input_tokens"] "input tokens", Get::Number(Measure::PLAIN, |facts| float(facts.input_tokens));
    "tokens.out" ["output_tokens"] "output tokens", Get::Number(Measure::PLAIN, |facts| float(facts.output_tokens));
    "tokens.cached" ["cached_tokens"] "prompt tokens found in the cache",
        Get::Number(Measure::PLAIN, |facts| float(facts.cached_tokens));
    "cached" [] "cached share of the input tokens", Get::Number(Measure::SHARE, |facts| {
        let input = facts.input_tokens.filter(|input| *input > 0)?;
        Some(facts.cached_tokens? as f64 / input as f64)
    });
    "streaming" [] "the client streams", Get::Flag(|facts| facts.streaming);
    "root" [] "its root has arrived", Get::Flag(|facts| Some(facts.has_root));
    "http" [] "its http-request span has arrived", Get::Flag(|facts| Some(facts.has_http));
    "record" [] "its request_end record has arrived", Get::Flag(|facts| Some(facts.has_record));
    "record.ttft" [] "time to first token by the record",
        Get::Number(Measure::MILLIS, |facts| float(facts.record_ttft_ns));
    "record.total" [] "total time by the record", Get::Number(Measure::MILLIS, |facts| float(facts.record_total_ns));
    "spans" [] "how many spans it has", Get::Number(Measure::PLAIN, |facts| Some(f64::from(facts.spans)));
    "layout" [] "the producer's layout", Get::Words(layouts, |facts| facts.layout.word());
    "mode" [] "how much the producer records", Get::Words(modes, |facts| match facts.mode {
        Mode::Unsaid => "",
        mode => mode.word(),
    });
    "mark" ["marks"] "what is odd about it", Get::Marks;
    "skew" [] "by how much a child starts before its parent in another process, or after a parent that waited for it",
        Get::Number(Measure::MILLIS, |facts| Some(facts.skew_ns as f64));
    "check" ["checks"] "a check's answer: violated, unknown, holds, or a check's id (violated) or id:answer",
        Get::Checks;
    // Preprocessing and streaming
    "preprocessing.time" [] "how long preprocessing took",
        Get::Number(Measure::MILLIS, |facts| Some(facts.preprocessing.as_ref()?.duration_ns as f64));
    "preprocessing.checkpoint" ["checkpoint"] "the last checkpoint passed"
        &["prepare", "preprocess_request", "tool_constraints", "validate_choices", "ready"],
        Get::Text(|facts| facts.preprocessing.as_ref().map_or("", |stage| &stage.checkpoint));
    "preprocessing.outcome" [] "how preprocessing ended"
        &["success", "rejected", "failed", "timed_out", "cancelled", "abandoned"],
        Get::Text(|facts| facts.preprocessing.as_ref().map_or("", |stage| &stage.outcome));
    "stream.time" [] "how long the frontend streamed",
        Get::Number(Measure::MILLIS, |facts| Some(facts.stream.as_ref()?.duration_ns as f64));
    "events" ["stream.events"] "items the frontend yielded",
        Get::Number(Measure::PLAIN, |facts| float(facts.stream.as_ref()?.events));
    "stream.rate" [] "items the frontend yielded a second", Get::Number(Measure::PLAIN, |facts| {
        let stream = facts.stream.as_ref().filter(|stream| stream.duration_ns > 0)?;
        Some(stream.events? as f64 * 1e9 / stream.duration_ns as f64)
    });
    "stream.outcome" [] "how the stream ended" &["success", "abandoned", "cancelled", "failed", "timed_out"],
        Get::Text(|facts| facts.stream.as_ref().map_or("", |stream| &stream.outcome));
    "abandoned" [] "the stream was dropped; not by itself a cancellation", Get::Flag(|facts| {
        let stream = facts.stream.as_ref().filter(|stream| !stream.outcome.is_empty())?;
        Some(stream.outcome == "abandoned")
    });
    // The legs
    "at" [] "the worker a request in flight is at: that of its newest leg", Get::Worker(|facts| {
        let newest = facts.legs.last().filter(|_| facts.state == State::InFlight)?;
        newest.worker()
    });
    "worker" ["dispatch.worker"] "a worker that a leg went to", Get::LegWorker(Leg::worker);
    "served" [] "a worker that a leg went to and that did not refuse it", Get::LegWorker(Leg::served_by);
    "phase" ["dispatch.phase"] "what a leg serves", Get::LegWords(phases, |leg| leg.phase.word());
    "attempt" [] "a leg's attempt, from 0", Get::LegNumber(Measure::PLAIN, |leg| Some(f64::from(leg.attempt)));
    "queue.wait" ["queued", "wait"] "wait in the router's queue",
        Get::LegNumber(Measure::MILLIS, |leg| queue(leg, |queue| Some(queue.wait_ns as f64)));
    "queue.entered" [] "when the queue was entered, since 1970; a plain number is milliseconds",
        Get::LegNumber(Measure::MILLIS, |leg| queue(leg, |queue| Some(queue.start_ns as f64)));
    "queue.left" [] "when the queue was left, since 1970; a plain number is milliseconds",
        Get::LegNumber(Measure::MILLIS, |leg| {
            queue(leg, |queue| Some(queue.start_ns.saturating_add(queue.wait_ns) as f64))
        });
    "queue.class" ["class"] "policy class" &["default"],
        Get::LegText(|leg| leg.queue.as_ref().map_or("", |queue| &queue.class));
    "queue.policy" [] "queue policy" &["fcfs", "lcfs", "wspt"],
        Get::LegText(|leg| leg.queue.as_ref().map_or("", |queue| &queue.policy));
    "queue.depth.in" ["depth"] "pending before entering",
        Get::LegNumber(Measure::PLAIN, |leg| queue(leg, |queue| float(queue.depth_in)));
    "queue.depth.out" [] "pending after leaving",
        Get::LegNumber(Measure::PLAIN, |leg| queue(leg, |queue| float(queue.depth_out)));
    "queue.deferred" ["deferred"] "left in a later router turn than it entered",
        Get::LegFlag(|leg| queue(leg, |queue| queue.deferred));
    "queue.outcome" [] "how the wait ended" &["dequeued", "rejected", "cancelled", "failed"],
        Get::LegText(|leg| leg.queue.as_ref().map_or("", |queue| &queue.outcome));
    "queue.reason" ["reason"] "why it was deferred, rejected, cancelled or failed"
        &["prefill_capacity", "class_backlog", "request_limit", "raw_isl_token_limit", "cached_token_limit",
          "request_lifecycle_ended_before_admission", "subscriber_shutdown"],
        Get::LegText(|leg| leg.queue.as_ref().map_or("", |queue| &queue.reason));
    "queue.origin" [] "where the wait is known from",
        Get::LegWords(origins, |leg| leg.queue.as_ref().map_or("", |queue| queue.origin.word()));
    "selection.pool" ["pool"] "the pool a worker was chosen from",
        Get::LegWords(phases, |leg| leg.selection.as_ref().map_or("", |selection| selection.pool.word()));
    "selection.candidates" ["candidates"] "ranks that could be chosen",
        Get::LegNumber(Measure::PLAIN, |leg| selection(leg, |selection| float(selection.candidates)));
    "selection.eligible" ["eligible"] "ranks eligible before the policy filter",
        Get::LegNumber(Measure::PLAIN, |leg| selection(leg, |selection| float(selection.eligible)));
    "selection.filtered" ["filtered"] "ranks filtered out",
        Get::LegNumber(Measure::PLAIN, |leg| selection(leg, |selection| float(selection.filtered)));
    "selection.filtered.not_allowed" ["filtered.not_allowed"] "ranks filtered: not allowed",
        Get::LegNumber(Measure::PLAIN, |leg| selection(leg, |selection| float(selection.filtered_parts[0])));
    "selection.filtered.constraints" ["filtered.constraints"] "ranks filtered: constraints",
        Get::LegNumber(Measure::PLAIN, |leg| selection(leg, |selection| float(selection.filtered_parts[1])));
    "selection.filtered.overloaded" ["filtered.overloaded"] "ranks filtered: overloaded",
        Get::LegNumber(Measure::PLAIN, |leg| selection(leg, |selection| float(selection.filtered_parts[2])));
    "selection.filtered.unavailable" ["filtered.unavailable"] "ranks filtered: unavailable",
        Get::LegNumber(Measure::PLAIN, |leg| selection(leg, |selection| float(selection.filtered_parts[3])));
    "selection.filtered.policy" ["filtered.policy"] "ranks filtered: by the policy",
        Get::LegNumber(Measure::PLAIN, |leg| selection(leg, |selection| float(selection.filtered_parts[4])));
    "selected.worker" ["selected"] "the worker chosen",
        Get::LegWorker(|leg| selection(leg, |selection| Some(selection.selected?.worker)));
    "selected.score" ["score"] "the cost of the one chosen; lower is better",
        Get::LegNumber(Measure::PLAIN, |leg| selection(leg, |selection| selection.selected?.cost));
    "best.worker" ["best"] "the worker of least cost",
        Get::LegWorker(|leg| selection(leg, |selection| Some(selection.best?.worker)));
    "best.score" [] "the least cost",
        Get::LegNumber(Measure::PLAIN, |leg| selection(leg, |selection| selection.best?.cost));
    "margin" [] "runner-up's cost minus the best's",
        Get::LegNumber(Measure::PLAIN, |leg| selection(leg, |selection| selection.margin));
    "regret" [] "the chosen one's cost minus the least",
        Get::LegNumber(Measure::PLAIN, |leg| selection(leg, Selection::regret));
    "selection.best" ["chose_best"] "the one chosen is the best", Get::LegFlag(|leg| {
        selection(leg, |selection| Some(selection.selected?.worker == selection.best?.worker))
    });
    "selection.pinned" ["pinned"] "kept by session affinity",
        Get::LegFlag(|leg| selection(leg, |selection| selection.pinned));
    "selection.policy" [] "the policy that chose",
        Get::LegText(|leg| leg.selection.as_ref().map_or("", |selection| &selection.policy));
    "selection.origin" [] "where the choice is known from",
        Get::LegWords(origins, |leg| leg.selection.as_ref().map_or("", |selection| selection.origin.word()));
    "dispatch.route" ["route"] "how the worker was found"
        &["kv", "round-robin", "random", "power-of-two-choices", "direct", "least-loaded", "device-aware-weighted"],
        Get::LegText(|leg| leg.dispatch.as_ref().map_or("", |dispatch| &dispatch.route));
    "dispatch.result" ["result"] "how the hand-over to the worker ended; where no layout says, the attempt's outcome"
        &["accepted", "cancelled", "failed"],
        Get::LegText(|leg| leg.dispatch.as_ref().map_or("", |dispatch| dispatch.result_word()));
    "dispatch.failed" [] "the hand-over to the worker failed; where no layout says, the attempt, other than by losing the worker",
        Get::LegFlag(|leg| dispatch(leg, |dispatch| Some(dispatch.failed())));
    "dispatch.lost" ["lost"] "the worker was lost or could not be reached",
        Get::LegFlag(|leg| dispatch(leg, |dispatch| Some(dispatch.lost_worker())));
    "dispatch.time" [] "how long the dispatch took",
        Get::LegNumber(Measure::MILLIS, |leg| dispatch(leg, |dispatch| Some(dispatch.duration_ns as f64)));
    "acceptance" [] "from the choice of a worker to the end of its accepted dispatch",
        Get::LegNumber(Measure::MILLIS, acceptance);
    "dispatch.origin" [] "where the dispatch is known from",
        Get::LegWords(origins, |leg| leg.dispatch.as_ref().map_or("", |dispatch| dispatch.origin.word()));
    "route.outcome" [] "how the attempt ended"
        &["success", "cancelled", "worker_disconnected", "connection_failed", "timeout", "rejected", "unavailable",
          "error"],
        Get::LegText(|leg| leg.dispatch.as_ref().map_or("", |dispatch| &dispatch.attempt_outcome));
    "route.error" ["error_type"] "the attempt's error",
        Get::LegText(|leg| leg.dispatch.as_ref().map_or("", |dispatch| &dispatch.error));
    "route.retry" ["retry"] "the attempt is a retry", Get::LegFlag(|leg| dispatch(leg, |dispatch| dispatch.retry));
    "migration.reason" [] "why the work moved",
        Get::LegText(|leg| leg.dispatch.as_ref().map_or("", |dispatch| &dispatch.migration_reason));
    "migration.from" [] "the worker it moved from",
        Get::LegWorker(|leg| dispatch(leg, |dispatch| Some(Worker { id: dispatch.from_worker?, rank: None })));
    "migration.tokens" [] "tokens carried over",
        Get::LegNumber(Measure::PLAIN, |leg| dispatch(leg, |dispatch| float(dispatch.tokens_carried)));
    "admission.result" ["admission"] "how the worker's admission ended" &["accepted", "rejected", "failed"],
        Get::LegText(|leg| leg.admission.as_ref().map_or("", |admission| &admission.result));
    "admission.transport" ["transport"] "how the payload came" &["tcp", "quic"],
        Get::LegText(|leg| leg.admission.as_ref().map_or("", |admission| &admission.transport));
    "admission.bytes" ["payload"] "the payload's size",
        Get::LegNumber(Measure::BYTES, |leg| float(leg.admission.as_ref()?.payload_bytes));
    "at_capacity" [] "admitted, then failed: the worker was at capacity when the request was rejected",
        Get::LegFlag(|leg| leg.admission.as_ref().map(|_| leg.at_capacity()));
    // What stands in the spans
    "span" [] "a span's name", Get::Spans(Of::Name);
    "event" [] "an event's name", Get::Spans(Of::Event);
    "service" [] "a span's service", Get::Spans(Of::Service);
    "host" [] "a span's host", Get::Spans(Of::Host);
    "status.message" [] "a span's status message; never the outcome", Get::Spans(Of::Status);
};

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn names_are_unique_and_written_as_they_are_read() {
        let mut names = HashSet::new();
        for row in ROWS {
            for name in std::iter::once(&row.id).chain(row.aliases) {
                assert!(names.insert(*name), "{name} twice");
                assert!(name.bytes().all(|byte| byte.is_ascii_lowercase() || matches!(byte, b'.' | b'_')), "{name}");
            }
        }
        let ids: Vec<_> = reference().map(|(id, ..)| id).collect();
        assert_eq!(ids.len(), ids.iter().collect::<HashSet<_>>().len());
        assert!(ids.contains(&"queue.wait") && ids.contains(&"route.overlap"));
    }
}
