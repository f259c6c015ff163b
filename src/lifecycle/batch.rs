//! The batch in which every source ends: what one delivery brought, borrowed from its bytes.
//!
//! Names and packed attributes are the bytes as they came. The store cleans each distinct one once, when it first keeps
//! it (`packed::clean`, `text::scrub`), so nothing is scanned twice and nothing unscrubbed is ever shown.

use std::ops::Range;

use compact_str::CompactString;

use super::ids::{SpanId, TraceId};
use super::record::Record;

/// What one delivery brought.
#[derive(Default, Debug)]
pub struct Batch<'a> {
    /// The resources that spans point to.
    pub resources: Vec<ResourceIn<'a>>,
    /// The instrumentation scopes that spans point to.
    pub scopes: Vec<ScopeIn<'a>>,
    /// The spans that passed validation.
    pub spans: Vec<SpanIn<'a>>,
    /// Packed attributes; spans, events, links, resources and scopes hold ranges of this list.
    pub attrs: Vec<&'a [u8]>,
    /// Events; spans hold ranges of this list.
    pub events: Vec<EventIn<'a>>,
    /// Links; spans hold ranges of this list.
    pub links: Vec<LinkIn<'a>>,
    /// Request-trace records, from logs or files.
    pub records: Vec<Record>,
    /// What a record is that stands among them once more.
    pub repeats: Repeats,
    /// Application logs that tell of a request before its spans do.
    pub signs: Vec<Sign>,
    /// What was not taken, and what was counted only.
    pub tally: Tally,
}

/// What a record is that equals another one of the same delivery byte for byte. In another delivery it came again.
#[derive(Clone, Copy, Default, Debug, PartialEq, Eq)]
pub enum Repeats {
    /// Written twice: they are of one export, which its sender put together.
    #[default]
    Written,
    /// One that came again: they are lines of files, each a delivery of its own, however many are handed on at once.
    Came,
}

/// The most spans refused of one delivery whose traces are noted.
pub const MOST_TORN: usize = 256;

/// A range of one of the batch's lists.
pub type Slice = Range<u32>;

/// A resource as it came.
#[derive(Clone, Default, Debug)]
pub struct ResourceIn<'a> {
    /// Its packed attributes.
    pub attrs: Slice,
    /// `dropped_attributes_count`.
    pub dropped: u32,
    /// The `schema_url` of the resource's spans.
    pub schema_url: &'a [u8],
}

/// An instrumentation scope as it came.
#[derive(Clone, Default, Debug)]
pub struct ScopeIn<'a> {
    /// Its name.
    pub name: &'a [u8],
    /// Its version.
    pub version: &'a [u8],
    /// Its packed attributes.
    pub attrs: Slice,
    /// `dropped_attributes_count`.
    pub dropped: u32,
    /// The scope's `schema_url`.
    pub schema_url: &'a [u8],
}

/// A span as it came, with valid ids.
#[derive(Clone, Debug)]
pub struct SpanIn<'a> {
    /// The trace it belongs to.
    pub trace: TraceId,
    /// Its id.
    pub id: SpanId,
    /// Its parent; `None` for a root (an empty or all-zero id on the wire).
    pub parent: Option<SpanId>,
    /// Its name, unscrubbed.
    pub name: &'a [u8],
    /// OTLP's span kind number; unknown numbers are kept.
    pub kind: i32,
    /// Start, nanoseconds since the epoch; 0 when not known.
    pub start_ns: u64,
    /// End, nanoseconds since the epoch; 0 when not ended.
    pub end_ns: u64,
    /// Its packed attributes.
    pub attrs: Slice,
    /// Its events.
    pub events: Slice,
    /// Its links.
    pub links: Slice,
    /// Index into [`Batch::resources`].
    pub resource: u32,
    /// Index into [`Batch::scopes`].
    pub scope: u32,
    /// OTLP's status code number; unknown numbers are kept.
    pub status_code: i32,
    /// The status message, unscrubbed.
    pub status_message: &'a [u8],
    /// W3C trace state, unscrubbed.
    pub trace_state: &'a [u8],
    /// W3C trace flags and OTLP's context bits.
    pub flags: u32,
    /// How many attributes, events and links the sender says it dropped.
    pub dropped: [u32; 3],
}

/// An event of a span as it came.
#[derive(Clone, Debug)]
pub struct EventIn<'a> {
    /// When, nanoseconds since the epoch.
    pub time_ns: u64,
    /// Its name, unscrubbed.
    pub name: &'a [u8],
    /// Its packed attributes.
    pub attrs: Slice,
    /// `dropped_attributes_count`.
    pub dropped: u32,
}

/// A link of a span as it came. Ids are not validated: a link may point anywhere.
#[derive(Clone, Debug)]
pub struct LinkIn<'a> {
    /// The linked trace id's bytes.
    pub trace: &'a [u8],
    /// The linked span id's bytes.
    pub span: &'a [u8],
    /// Its trace state, unscrubbed.
    pub trace_state: &'a [u8],
    /// Its flags.
    pub flags: u32,
    /// Its packed attributes.
    pub attrs: Slice,
    /// `dropped_attributes_count`.
    pub dropped: u32,
}

/// A frontend's application log about a request: `request received` or `request completed`
/// (spec lifecycle-spans §6: within a second, the earliest sign of a request in flight).
#[derive(Clone, Debug, PartialEq)]
pub struct Sign {
    /// The trace the log was written in, when it names one.
    pub trace: Option<TraceId>,
    /// The request.
    pub request_id: CompactString,
    /// When it was written, nanoseconds since the epoch.
    pub time_ns: u64,
    /// The model asked for.
    pub model: CompactString,
    /// `chat_completions`, `completions`, …
    pub endpoint: CompactString,
    /// Whether the client asked for a stream; `None` when the log does not say.
    pub streaming: Option<bool>,
    /// What it tells.
    pub kind: SignKind,
}

/// What a [`Sign`] tells.
#[derive(Clone, Debug, PartialEq)]
pub enum SignKind {
    /// The request arrived.
    Received,
    /// The request ended, with the log's own word for how (`success`, `error`, `cancelled`).
    Completed {
        /// The log's word; not an outcome: the root decides.
        status: CompactString,
    },
}

/// What was not taken and what was only counted. Nothing vanishes without a count (design §1.5).
#[derive(Clone, Default, Debug, PartialEq, Eq)]
pub struct Tally {
    /// Spans refused for themselves (ids), with the first reason.
    pub refused_spans: u64,
    /// The traces of these, as far as they name one: each once for a span, at most [`MOST_TORN`].
    pub torn: Vec<TraceId>,
    /// The first reason something was left out: what was expected and what came.
    pub refusal: Option<String>,
    /// Log records that are neither records nor signs.
    pub other_logs: u64,
    /// Metric data points.
    pub metric_points: u64,
    /// Log records that could not be read.
    pub bad_records: u64,
    /// Parts of JSON above spans and log records that are not what they should be, such as an attribute of a resource.
    pub passed_over: u64,
    /// Keys of JSON that belong to another request than the one that was read.
    pub misplaced: u64,
    /// Texts in which invalid UTF-8 was replaced.
    pub bad_texts: u64,
    /// Fields spelled in snake_case where lowerCamelCase is OTLP's JSON form; accepted, and worth telling.
    pub snake_case: u64,
}

impl Tally {
    /// Counts a refused span, of this trace when it names one.
    pub fn refuse_span(&mut self, trace: Option<TraceId>) {
        self.refused_spans += 1;
        self.torn.extend(trace.filter(|_| self.torn.len() < MOST_TORN));
    }

    /// Adds what another one counted; the first reason stays.
    pub fn add(&mut self, more: Self) {
        let Self { refused_spans, refusal, other_logs, metric_points, .. } = more;
        let Self { bad_records, passed_over, misplaced, bad_texts, snake_case, torn, .. } = more;
        let room = MOST_TORN.saturating_sub(self.torn.len());
        self.torn.extend(torn.into_iter().take(room));
        self.refusal = self.refusal.take().or(refusal);
        for (mine, others) in [
            (&mut self.refused_spans, refused_spans),
            (&mut self.other_logs, other_logs),
            (&mut self.metric_points, metric_points),
            (&mut self.bad_records, bad_records),
            (&mut self.passed_over, passed_over),
            (&mut self.misplaced, misplaced),
            (&mut self.bad_texts, bad_texts),
            (&mut self.snake_case, snake_case),
        ] {
            *mine += others;
        }
    }

    /// What was left out, in words; `None` when nothing was.
    pub fn left_out(&self) -> Option<String> {
        let counts = [
            (self.refused_spans, "span"),
            (self.bad_records, "log record"),
            (self.passed_over + self.misplaced, "part"),
        ];
        let counts: Vec<String> = counts
            .iter()
            .filter(|(count, _)| *count > 0)
            .map(|(count, what)| format!("{count} {what}{}", if *count == 1 { "" } else { "s" }))
            .collect();
        let reason = self.refusal.as_deref().unwrap_or("no reason was given");
        (!counts.is_empty()).then(|| format!("left out {}: {reason}", counts.join(", ")))
    }
}

impl<'a> Batch<'a> {
    /// The packed attributes of a range.
    pub fn attrs(&self, range: &Slice) -> &[&'a [u8]] {
        &self.attrs[range.start as usize..range.end as usize]
    }

    /// The events of a range.
    pub fn events(&self, range: &Slice) -> &[EventIn<'a>] {
        &self.events[range.start as usize..range.end as usize]
    }

    /// The links of a range.
    pub fn links(&self, range: &Slice) -> &[LinkIn<'a>] {
        &self.links[range.start as usize..range.end as usize]
    }

    /// When the last thing was that it tells of, nanoseconds since the epoch; `None` when it tells of none.
    pub fn told_ns(&self) -> Option<u64> {
        let spans = self.spans.iter().map(|span| span.start_ns.max(span.end_ns));
        let signs = self.signs.iter().map(|sign| sign.time_ns);
        spans.chain(self.records.iter().map(Record::written_ns)).chain(signs).max()
    }
}
