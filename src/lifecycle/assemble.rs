//! From what has arrived of a request to its facts. Pure: the same spans and records give the same facts, in whatever
//! order they came. Owns: the reading of identity, ends, times and marks; `legs` pairs queue, selection and dispatch.
//! Keeps out: which spans belong to a request (`store`).

use compact_str::CompactString;

use super::body::Unread;
use super::catalogue::Field;
use super::facts::{Facts, Marks, Preprocessing, State, Stream};
use super::ids::Rid;
use super::legs;
use super::packed::Value;
use super::record::{Record, RecordBody};
use super::request::{SpanView, Up};
use super::stage::{Layout, Mode, Origin, Outcome, Stage};
pub use super::told::Told;

/// A time further than this from the request's start is taken for a fault of a clock, nanoseconds (a day).
const FAR_NS: u64 = 86_400_000_000_000;

/// What has arrived of a request.
pub struct Input<'a> {
    /// The id it is joined by; empty when nothing names one.
    pub request_id: &'a Rid,
    /// Its spans, by start then id, parents found.
    pub spans: &'a [SpanView<'a>],
    /// Its records.
    pub records: &'a [Record],
    /// What the frontend's logs told.
    pub told: &'a Told,
    /// Whether it has been silent for so long that its end counts as lost.
    pub lost: bool,
    /// Whether more of it may be on its way: something came a short while ago, from a sender who is listened to.
    pub arriving: bool,
    /// Marks that only the store can know.
    pub marks: Marks,
}

/// The facts of a request.
pub fn assemble(input: &Input<'_>) -> Facts {
    let mut facts = Facts {
        request_id: input.request_id.clone(),
        spans: input.spans.len() as u32,
        marks: input.marks,
        model: input.told.model.clone(),
        streaming: input.told.streaming,
        ..Facts::default()
    };
    let mut seen = Seen::default();
    // Of several `http-request`s (a proxy, a service called on the way) the outermost is the request's.
    let is_http = |span: &&SpanView<'_>| span.stage == Stage::Http;
    let http = input.spans.iter().filter(is_http).min_by_key(|span| matches!(span.up, Up::At(_)));
    if let Some(http) = http {
        read_http(&mut facts, &mut seen, http, http.body.attrs().unread());
    }
    for span in input.spans {
        read_span(&mut facts, &mut seen, span);
    }
    for record in input.records {
        read_record(&mut facts, &mut seen, record);
    }
    facts.layout = seen.layout();
    facts.legs = legs::legs(input.spans, input.records);
    if legs::is_cut(input.spans) {
        facts.marks.set(Marks::CUT_SHORT);
    }
    settle_times(&mut facts, &seen, input);
    settle_state(&mut facts, &seen, input);
    mark(&mut facts, input.spans);
    facts
}

/// What is noticed on the way and needed only at the end.
#[derive(Default)]
struct Seen {
    root: Option<(u64, u64)>,
    http: Option<(u64, u64)>,
    http_failed: bool,
    lifecycle: bool,
    earliest_ns: Option<u64>,
    /// The latest end of spans at the top of what this side of the wire does, for traces that are no request of the
    /// producer's.
    top_end_ns: Option<u64>,
    record_start_ns: Option<u64>,
    record_end_ns: Option<u64>,
    /// What only the evidence layout writes: a dispatch's phase, a wait that was dequeued.
    evidence: bool,
    /// What only drafts write: a wait that was admitted, a dispatch with a route and no phase.
    draft: bool,
    /// What reads like the evidence layout while nothing above has come.
    likely_evidence: bool,
    router: bool,
    /// A stage carries its state, which the base layout never records.
    staged: bool,
}

impl Seen {
    fn layout(&self) -> Layout {
        if self.evidence {
            return Layout::Evidence;
        }
        match (self.draft, self.likely_evidence, self.router) {
            (true, ..) => Layout::Draft,
            (false, true, _) => Layout::Evidence,
            (false, false, true) => Layout::Draft,
            // Refused before any router was asked, the stages alone tell.
            (false, false, false) if self.staged => Layout::Evidence,
            (false, false, false) => Layout::Base,
        }
    }

    fn start(&mut self, time_ns: u64) {
        if time_ns > 0 {
            self.earliest_ns = Some(self.earliest_ns.map_or(time_ns, |known| known.min(time_ns)));
        }
    }
}

/// The longest text that facts keep, bytes. They hold words and ids; the attribute keeps the whole.
const LONGEST: usize = 1024;

/// A text value; empty for any other kind.
pub(super) fn text(value: Value<'_>) -> CompactString {
    match value {
        Value::Str(text) if text.len() > LONGEST => {
            let end = (0..=LONGEST).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0);
            compact_str::format_compact!("{}…", &text[..end])
        }
        Value::Str(text) => text.into(),
        Value::Int(number) => compact_str::format_compact!("{number}"),
        _ => CompactString::default(),
    }
}

/// An id that may well be the one already `known`: then it shares its bytes.
fn id(known: &Rid, value: Value<'_>) -> Rid {
    match value.as_str() {
        Some(same) if same == &**known && same.len() <= LONGEST => known.clone(),
        _ => same_or_new(known, &text(value)),
    }
}

fn same_or_new(known: &Rid, id: &str) -> Rid {
    if *id == **known { known.clone() } else { id.into() }
}

fn fill(slot: &mut CompactString, value: Value<'_>) {
    if slot.is_empty() {
        *slot = text(value);
    }
}

/// Whether nothing on this side of the wire is above a span: it names no parent, or one that did not arrive and is
/// another process's (a caller that exports nothing, or not to here), as its kind or OTLP's remote flag says.
fn is_local_top(span: &SpanView<'_>) -> bool {
    /// `SPAN_KIND_SERVER` and `SPAN_KIND_CONSUMER`.
    const CALLED: [i32; 2] = [2, 5];
    /// `SPAN_FLAGS_CONTEXT_IS_REMOTE_MASK`.
    const REMOTE: u32 = 0x200;
    match span.up {
        Up::Top => true,
        Up::Missing => CALLED.contains(&span.kind) || span.body.head().flags & REMOTE != 0,
        _ => false,
    }
}

fn read_span(facts: &mut Facts, seen: &mut Seen, span: &SpanView<'_>) {
    seen.start(span.start_ns);
    if is_local_top(span) && span.end_ns > 0 {
        seen.top_end_ns = seen.top_end_ns.max(Some(span.end_ns));
    }
    if span.stage.is_lifecycle() {
        seen.lifecycle = true;
        if facts.mode == Mode::Unsaid {
            facts.mode = Mode::of(span.text(Field::Mode));
        }
    }
    let attrs = || span.body.attrs().unread();
    match span.stage {
        Stage::Root => read_root(facts, seen, span, attrs()),
        Stage::Preprocessing => {
            let mut read = Preprocessing {
                span: span.id,
                duration_ns: span.duration_ns(),
                checkpoint: CompactString::default(),
                outcome: CompactString::default(),
            };
            for attr in attrs() {
                match attr.field {
                    Field::Checkpoint => read.checkpoint = text(attr.value()),
                    Field::StageOutcome => read.outcome = text(attr.value()),
                    _ => {}
                }
            }
            seen.staged |= !read.outcome.is_empty() || !read.checkpoint.is_empty();
            facts.preprocessing.get_or_insert(read);
        }
        Stage::Streaming => {
            let mut read = Stream {
                span: span.id,
                start_ns: span.start_ns,
                duration_ns: span.duration_ns(),
                events: None,
                outcome: CompactString::default(),
            };
            for attr in attrs() {
                match attr.field {
                    Field::StreamEvents => read.events = attr.value().as_count(),
                    Field::StageOutcome => read.outcome = text(attr.value()),
                    _ => {}
                }
            }
            seen.staged |= !read.outcome.is_empty() || read.events.is_some();
            facts.streaming = Some(true);
            facts.stream.get_or_insert_with(|| Box::new(read));
        }
        Stage::Engine if facts.model.is_empty() => {
            fill(&mut facts.model, span.get(Field::Model).unwrap_or(Value::Empty))
        }
        Stage::Queue => {
            seen.router = true;
            // A draft says admitted; so does nobody else. Inside the request's trace it is the evidence layout.
            let outcome = span.text(Field::QueueOutcome);
            seen.evidence |= outcome == "dequeued";
            seen.draft |= outcome == "admitted";
            seen.likely_evidence |= outcome != "admitted" && matches!(span.up, Up::At(_));
        }
        Stage::Selection => {
            seen.router = true;
            // Drafts had no policy filter; a later one that has it still says admitted.
            seen.likely_evidence |= span.get(Field::FilteredPolicy).is_some();
        }
        Stage::Dispatch if span.get(Field::DispatchPhase).is_some() => seen.evidence = true,
        // The base layout's has no fields of its own.
        Stage::Dispatch => seen.draft |= span.get(Field::DispatchRoute).is_some(),
        _ => {}
    }
    if facts.trace.is_none() {
        facts.trace = Some(span.trace);
    }
}

fn read_root<'a>(facts: &mut Facts, seen: &mut Seen, span: &SpanView<'a>, attrs: impl Iterator<Item = Unread<'a>>) {
    if facts.has_root {
        return;
    }
    facts.has_root = true;
    facts.trace = Some(span.trace);
    seen.root = Some((span.start_ns, span.end_ns));
    facts.outcome = Some(Outcome::Unknown);
    for attr in attrs {
        match attr.field {
            Field::Outcome => {
                let word = text(attr.value());
                let outcome = Outcome::of(&word);
                facts.outcome = Some(outcome);
                facts.outcome_word = if outcome.word() == word { CompactString::default() } else { word };
            }
            Field::TerminalTime => facts.terminal_ns = attr.value().as_u64(),
            Field::SessionId => facts.session_id = id(&facts.request_id, attr.value()),
            Field::SessionSource => facts.session_fallback = attr.value().as_str() == Some("request_id_fallback"),
            Field::Mode => facts.mode = Mode::of(attr.value().as_str().unwrap_or("")),
            Field::RequestId if facts.request_id.is_empty() => facts.request_id = text(attr.value()).as_str().into(),
            _ => {}
        }
    }
}

fn read_http<'a>(facts: &mut Facts, seen: &mut Seen, span: &SpanView<'a>, attrs: impl Iterator<Item = Unread<'a>>) {
    facts.has_http = true;
    facts.trace = Some(span.trace);
    seen.http = Some((span.start_ns, span.end_ns));
    seen.http_failed = span.body.head().status_code == 2;
    for attr in attrs {
        match attr.field {
            Field::XRequestId => facts.x_request_id = id(&facts.request_id, attr.value()),
            Field::Uri => facts.endpoint = text(attr.value()),
            Field::Model => facts.model = text(attr.value()),
            Field::InputTokens => facts.input_tokens = attr.value().as_count(),
            Field::OutputTokens => facts.output_tokens = attr.value().as_count(),
            Field::Ttft => {
                // Only streams carry it here (spec lifecycle-spans §4).
                facts.ttft_ns = attr.value().as_f64().and_then(nanos).map(|ttft_ns| (ttft_ns, Origin::Span));
                facts.streaming = Some(true);
            }
            _ => {}
        }
    }
}

/// Milliseconds as nanoseconds; what is negative or past all time is no time.
fn nanos(millis: f64) -> Option<u64> {
    let nanos = (millis * 1e6).round();
    (0.0..=i64::MAX as f64).contains(&nanos).then_some(nanos as u64)
}

fn read_record(facts: &mut Facts, seen: &mut Seen, record: &Record) {
    let time_ns = record.time_ms.saturating_mul(1_000_000);
    if !record.session_id.is_empty() && (facts.session_id.is_empty() || facts.session_fallback) {
        facts.session_id = same_or_new(&facts.request_id, &record.session_id);
        facts.session_fallback = false;
    }
    match &record.body {
        RecordBody::End(end) => {
            facts.has_record = true;
            seen.record_end_ns = Some(time_ns);
            let total = end.total_time_ms.and_then(nanos).unwrap_or(0);
            let received = end.request_received_ms.map(|millis| millis.saturating_mul(1_000_000));
            seen.record_start_ns = received.or_else(|| time_ns.checked_sub(total));
            facts.record_ttft_ns = end.ttft_ms.and_then(nanos);
            facts.record_total_ns = end.total_time_ms.and_then(nanos);
            facts.ttft_ns = facts.ttft_ns.or(facts.record_ttft_ns.map(|ttft_ns| (ttft_ns, Origin::Record)));
            // What `http-request` counts is of the request where it was answered whole, else of an attempt (checks.md,
            // record.tokens).
            let is_whole = facts.outcome.is_none_or(|outcome| outcome == Outcome::Success);
            for (tokens, told) in
                [(&mut facts.input_tokens, end.input_tokens), (&mut facts.output_tokens, end.output_tokens)]
            {
                *tokens = if is_whole { tokens.or(told) } else { told.or(*tokens) };
            }
            facts.cached_tokens = end.cached_tokens;
            if let (true, Some(model)) = (facts.model.is_empty(), &end.model) {
                facts.model = model.clone();
            }
            if let (true, Some(id)) = (facts.x_request_id.is_empty(), &end.x_request_id) {
                facts.x_request_id = same_or_new(&facts.request_id, id);
            }
        }
        RecordBody::Payload(payload) if !payload.complete => facts.marks.set(Marks::INCOMPLETE_PAYLOAD),
        _ => {}
    }
    seen.start(time_ns);
}

fn settle_times(facts: &mut Facts, seen: &Seen, input: &Input<'_>) {
    let known = |time: Option<u64>| time.filter(|time| *time > 0);
    let anchor_start = known(seen.root.map(|root| root.0)).or(known(seen.http.map(|http| http.0)));
    let told = [seen.earliest_ns, input.told.received_ns, seen.record_start_ns].into_iter().flatten().min();
    facts.start_ns = anchor_start.or(told).or(input.told.completed_ns).unwrap_or(0);
    let root_end = known(seen.root.map(|root| root.1)).or(seen.root.and(facts.terminal_ns));
    let http_end = known(seen.http.map(|http| http.1));
    facts.end_ns = root_end.or(http_end).or(seen.record_end_ns).or(input.told.completed_ns);
    if facts.end_ns.is_none() && !seen.lifecycle && input.request_id.is_empty() {
        facts.end_ns = seen.top_end_ns;
    }
    if facts.streaming.is_none() && facts.has_root && facts.outcome == Some(Outcome::Success) {
        facts.streaming = Some(false);
    }
    if facts.endpoint.is_empty() {
        facts.endpoint = input.told.endpoint.clone();
    }
}

fn settle_state(facts: &mut Facts, seen: &Seen, input: &Input<'_>) {
    // A root decides. Without one: the record or the log of its end; an `http-request` that failed before anything began,
    // or whose endpoint makes no root (no lifecycle span below it); for other traces, a top span that ended.
    let http_ended = seen.http.is_some_and(|http| http.1 > 0);
    let told = facts.has_record || input.told.completed_ns.is_some();
    let ended = facts.has_root
        || (http_ended && (!seen.lifecycle || seen.http_failed))
        || (!told && seen.http.is_none() && !seen.lifecycle && facts.end_ns.is_some());
    // Chats have a root, and spans come seconds after the word that all is over (spec lifecycle-spans §6).
    let may_have_root = facts.endpoint.is_empty() || facts.endpoint.contains("chat");
    facts.state = match (ended, told) {
        (true, _) => State::Ended,
        (false, true) if input.arriving && may_have_root => State::Ending,
        (false, true) => State::Ended,
        (false, false) if input.lost => State::Lost,
        (false, false) => State::InFlight,
    };
    if matches!(facts.state, State::InFlight | State::Lost) {
        facts.end_ns = None;
    }
}

fn mark(facts: &mut Facts, spans: &[SpanView<'_>]) {
    // What a worker does for a caller that waits for it begins while the caller waits; an attempt that was given up may be
    // begun later.
    let was_waited_for = facts.outcome == Some(Outcome::Success) && facts.legs.iter().all(|leg| leg.attempt == 0);
    for span in spans {
        match span.up {
            Up::Missing => {
                facts.orphans += 1;
                // An `http-request` may have a remote parent that never arrives (spec lifecycle-spans §6); and while a
                // request is in flight, what is in flight has simply not arrived yet.
                if span.stage != Stage::Http && !matches!(facts.state, State::InFlight | State::Ending) {
                    facts.marks.set(Marks::MISSING_PARENT);
                }
            }
            Up::Cycle => facts.marks.set(Marks::CYCLE),
            Up::At(parent) => {
                let parent = &spans[parent as usize];
                let early = parent.start_ns.saturating_sub(span.start_ns);
                let is_late = was_waited_for && span.stage.is_worker_side() && parent.end_ns > 0;
                let late = if is_late { span.start_ns.saturating_sub(parent.end_ns) } else { 0 };
                let apart = early.max(late);
                if apart > 0 && span.start_ns > 0 && apart < FAR_NS && span.resource != parent.resource {
                    facts.marks.set(Marks::SKEW);
                    facts.skew_ns = facts.skew_ns.max(apart);
                }
            }
            _ => {}
        }
        if span.end_ns > 0 && span.end_ns < span.start_ns {
            facts.marks.set(Marks::END_BEFORE_START);
        }
        let far = |time: u64| facts.start_ns > 0 && time.abs_diff(facts.start_ns) > FAR_NS;
        if span.start_ns == 0 || span.end_ns == 0 || far(span.start_ns) || far(span.end_ns) {
            facts.marks.set(Marks::BAD_TIME);
        }
        if span.body.head().dropped != [0; 3] {
            facts.marks.set(Marks::DROPPED);
        }
    }
}
