//! Headless outputs: the same numbers as the screens, from the same data.
//!
//! Owns: the shapes of `reqtop report` and `reqtop export`, as data and as text. Keeps out: how data came in, and
//! counting (`store::rollup`).

pub mod check;
pub mod export;
mod lines;
mod markdown;
mod people;
mod quantiles;
mod sections;
mod text;

use std::collections::BTreeMap;

use serde::Serialize;

use crate::lifecycle::stage::Outcome;
use crate::query::Query;
use crate::store::rollup::Rollup;
use crate::store::{Counts, Store};
use crate::store::{is_within, time_of};
use crate::view::account::Account;
pub use people::{RankRow, SessionRow, SessionsSection, WorkerRow};
pub use sections::{DispatchSection, LatencySection, QueueSection, SelectionSection, StreamingSection};

/// The version of the report's JSON.
pub const SCHEMA: &str = "reqtop.report.v1";

/// What the sources saw that never became a batch.
#[derive(Clone, Debug, Default, Serialize)]
pub struct InputSection {
    /// Files read.
    pub files: u64,
    /// Lines, messages, and traces or answers of a trace store, that could not be read or had whole.
    pub bad_lines: u64,
    /// How many of these, and of the exports that were turned away, held what may be missed now.
    #[serde(skip)]
    pub losses: u64,
    /// The first of them, with file, line and reason.
    pub problems: Vec<String>,
    /// Requests of senders that were turned away for good, each with all it held.
    pub requests_refused: u64,
    /// Requests answered with *busy*, one for each answer; their senders were told to come again.
    pub requests_busy: u64,
    /// Log records that are neither trace records nor a frontend's word on a request.
    pub other_logs: u64,
    /// A frontend's logs on its requests.
    pub request_logs: u64,
    /// Metric data points.
    pub metric_points: u64,
    /// Texts in which control characters or invalid UTF-8 were replaced.
    pub texts_cleaned: u64,
    /// What was recorded on the way.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub recording: Option<RecordingSection>,
    /// What was passed on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub forwarding: Option<ForwardingSection>,
}

impl InputSection {
    /// Whether spans or records came that could not be read, of requests that nobody can name.
    pub fn has_losses(&self, store: &Store) -> bool {
        self.losses > 0 || store.unplaced() > 0
    }

    /// What came and is not held though nothing was let go, by its kind: a sentence each.
    pub fn left_out(&self, counts: &Counts) -> impl Iterator<Item = String> {
        let kinds = [
            (self.bad_lines, "lines or traces in all could not be read whole or hold nothing that is read here"),
            (counts.spans_refused, "spans were rejected for what they are"),
            (counts.records_bad, "records could not be read"),
            (counts.spans_shed, "spans found no room (--max-memory)"),
            (self.requests_refused, "exports of senders were turned away"),
        ];
        kinds.into_iter().filter(|(count, _)| *count > 0).map(|(count, what)| format!("{count} {what}"))
    }
}

/// What was passed on to another endpoint; exports are counted.
#[derive(Clone, Debug, Default, Serialize)]
pub struct ForwardingSection {
    /// The endpoint.
    pub target: String,
    /// Taken there.
    pub forwarded: u64,
    /// Times that one was sent again.
    pub retried: u64,
    /// Without room in the queue, or given up.
    pub dropped: u64,
    /// Refused there for good.
    pub refused: u64,
    /// Passed on from here before and come back; not sent a second time.
    pub came_back: u64,
    /// Spans and records refused there within exports that were taken.
    pub rejected: u64,
    /// Still waiting at the end.
    pub waiting: u64,
    /// What was wrong last.
    pub trouble: Option<String>,
}

impl std::fmt::Display for ForwardingSection {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { target, forwarded, retried, dropped, refused, came_back, rejected, waiting, trouble } = self;
        write!(f, "{forwarded} exports to {target}, {retried} sent again")?;
        for (count, what) in [
            (waiting, "not sent at the end"),
            (dropped, "dropped"),
            (refused, "refused there"),
            (came_back, "came back from there"),
            (rejected, "spans or records rejected there"),
        ] {
            if *count > 0 {
                write!(f, "; {count} {what}")?;
            }
        }
        trouble.as_ref().map_or(Ok(()), |why| write!(f, "; last trouble: {why}"))
    }
}

/// A recording of what was received.
#[derive(Clone, Debug, Default, Serialize)]
pub struct RecordingSection {
    /// The file.
    pub file: String,
    /// Export requests written.
    pub requests: u64,
    /// Bytes written.
    pub bytes: u64,
    /// Export requests that were not recorded: the disk could not keep up, or the recording had ended.
    pub lost: u64,
    /// Export requests that went with the oldest files, for no more are kept.
    pub removed: u64,
    /// Values nested too deeply, recorded as a note.
    pub too_deep: u64,
    /// Why it ended early.
    pub ended: Option<String>,
}

impl std::fmt::Display for RecordingSection {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { file, requests, bytes, lost, removed, too_deep, ended } = self;
        write!(f, "{requests} exports, {}, in {file}", crate::view::format::bytes(*bytes))?;
        let counts =
            [(lost, "not recorded"), (removed, "removed with the oldest files"), (too_deep, "deep values cut")];
        for (count, what) in counts {
            if *count > 0 {
                write!(f, "; {count} {what}")?;
            }
        }
        ended.as_ref().map_or(Ok(()), |why| write!(f, "; STOPPED: {why}"))
    }
}

/// Traces held.
#[derive(Clone, Debug, Default, Serialize)]
pub struct TracesSection {
    /// With at least one span.
    pub total: u64,
}

/// Spans: received = total + duplicates + rejected + shed, total = held + evicted.
#[derive(Clone, Debug, Default, Serialize)]
pub struct SpansSection {
    /// All that came, good or bad.
    pub received: u64,
    /// Distinct spans kept, whether or not they are still held.
    pub total: u64,
    /// Those held, as counted one by one.
    pub held: u64,
    /// Those that had come before (same trace and span id).
    pub duplicates: u64,
    /// Those refused for themselves.
    pub rejected: u64,
    /// Those not taken because memory was full of what may not go.
    pub shed: u64,
    /// Those given up to stay within the memory limit.
    pub evicted: u64,
    /// Spans whose parent is named and has not arrived.
    pub orphans: u64,
    /// Spans held by name.
    pub by_name: BTreeMap<String, u64>,
}

/// Requests. `by_outcome` and `without_root` add up to `total`.
#[derive(Clone, Debug, Default, Serialize)]
pub struct RequestsSection {
    /// All that are listed, from spans, records or logs.
    pub total: u64,
    /// Not ended.
    pub in_flight: u64,
    /// Ended, as far as one can tell, without a sign of it.
    pub lost: u64,
    /// By what their roots say.
    pub by_outcome: BTreeMap<&'static str, u64>,
    /// With a root.
    pub with_root: u64,
    /// Without a root (completions, records alone, in flight, …).
    pub without_root: u64,
    /// With an `http-request` span.
    pub http_requests: u64,
    /// With an `http-request` span and no root.
    pub http_requests_without_root: u64,
    /// With a root and a frontend stream.
    pub streaming: u64,
    /// With more than one attempt.
    pub with_more_than_one_attempt: u64,
    /// Given up to stay within the memory limit.
    pub evicted: u64,
    /// By what is odd about them.
    pub by_mark: BTreeMap<&'static str, u64>,
    /// By producer layout, of those with a root.
    pub by_layout: BTreeMap<&'static str, u64>,
    /// By producer mode, of those with a root.
    pub by_mode: BTreeMap<&'static str, u64>,
}

/// Request-trace records: received = total + duplicates + bad, total = held + evicted.
#[derive(Clone, Debug, Default, Serialize)]
pub struct RecordsSection {
    /// All that came, good or bad.
    pub received: u64,
    /// Distinct records kept, whether or not they are still held.
    pub total: u64,
    /// Those held, as counted one by one.
    pub held: u64,
    /// By event type.
    pub by_type: BTreeMap<String, u64>,
    /// Those that had come before.
    pub duplicates: u64,
    /// Those that could not be read.
    pub bad: u64,
    /// Given up to stay within the memory limit.
    pub evicted: u64,
    /// `request_end` of requests with a root.
    pub request_end_with_root: u64,
    /// `request_end` of requests without one.
    pub request_end_without_root: u64,
    /// Roots without a `request_end`.
    pub roots_without_record: u64,
}

/// A stretch of time, nanoseconds.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct WindowSection {
    /// Its length.
    pub length_ns: u64,
    /// Its end, since the epoch: the last moment of all that is held.
    pub until_ns: u64,
}

/// The whole report.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    /// [`SCHEMA`].
    pub schema: &'static str,
    /// The filter it was made under; absent for everything.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub filter: Option<String>,
    /// The window it was made within; absent for everything.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub window: Option<WindowSection>,
    /// Traces.
    pub traces: TracesSection,
    /// Spans.
    pub spans: SpansSection,
    /// Requests.
    pub requests: RequestsSection,
    /// Waits in the queue.
    pub queue: QueueSection,
    /// Choices.
    pub selection: SelectionSection,
    /// Attempts.
    pub dispatch: DispatchSection,
    /// Streams.
    pub streaming: StreamingSection,
    /// Times.
    pub latency: LatencySection,
    /// Workers and ranks, as dispatched to.
    pub workers: Vec<WorkerRow>,
    /// Workers and ranks over all phases: choices, requests in flight, signs of life.
    pub ranks: Vec<RankRow>,
    /// Agent sessions.
    pub sessions: SessionsSection,
    /// Records.
    pub records: RecordsSection,
    /// What came in.
    pub input: InputSection,
}

impl Report {
    /// The report of what the store holds, after [`Store::finish`]. `filter` says which requests count; traces, spans and
    /// records are always those of everything.
    pub fn of(store: &Store, input: InputSection, filter: Option<&Query>) -> Self {
        Self::within(store, input, filter, None)
    }

    /// The same of the requests that ended within a window before the last moment of all that is held, or have not ended: the
    /// last arrival, else the last that any request tells of.
    pub fn within(store: &Store, input: InputSection, filter: Option<&Query>, window_ns: Option<u64>) -> Self {
        let until_ns = store.requests().map(|(_, facts)| time_of(facts)).max().unwrap_or(0).max(store.noted_ns());
        let mut rollup = Rollup::default();
        let mut requests = RequestsSection::default();
        let mut orphans = 0;
        for (key, facts) in store.requests() {
            orphans += u64::from(facts.orphans);
            if !is_within(facts, window_ns, until_ns) || filter.is_some_and(|query| !store.matches(query, key)) {
                continue;
            }
            rollup.add(facts);
            for word in facts.marks.words() {
                *requests.by_mark.entry(word).or_default() += 1;
            }
            if facts.has_root {
                *requests.by_layout.entry(facts.layout.word()).or_default() += 1;
                *requests.by_mode.entry(facts.mode.word()).or_default() += 1;
            }
        }
        let by_name: BTreeMap<String, u64> =
            store.spans_by_name().into_iter().map(|(name, count)| (name.to_owned(), count)).collect();
        let counts = store.counts();
        let of = &rollup.requests;
        requests.total = of.total;
        requests.in_flight = of.in_flight;
        requests.lost = of.lost;
        requests.by_outcome =
            Outcome::ALL.iter().zip(of.by_outcome).map(|(outcome, count)| (outcome.word(), count)).collect();
        requests.without_root = of.without_root;
        requests.with_root = of.total - of.without_root;
        requests.http_requests = of.with_http;
        requests.http_requests_without_root = of.http_without_root;
        requests.streaming = of.streaming;
        requests.with_more_than_one_attempt = of.retried;
        requests.evicted = counts.requests_evicted;
        Self {
            schema: SCHEMA,
            filter: filter.map(Query::to_string),
            window: window_ns.map(|length_ns| WindowSection { length_ns, until_ns }),
            traces: TracesSection { total: store.traces() },
            spans: SpansSection {
                received: counts.spans_received,
                total: counts.spans_kept,
                held: by_name.values().sum(),
                duplicates: counts.spans_duplicate,
                rejected: counts.spans_refused,
                shed: counts.spans_shed,
                evicted: counts.spans_evicted,
                orphans,
                by_name,
            },
            queue: QueueSection::of(&rollup),
            selection: SelectionSection::of(&rollup),
            dispatch: DispatchSection::of(&rollup),
            streaming: StreamingSection::of(&rollup),
            latency: LatencySection::of(&rollup),
            workers: WorkerRow::all(&rollup),
            ranks: RankRow::all(&rollup),
            sessions: SessionsSection::of(&rollup),
            records: RecordsSection {
                received: counts.records_received,
                total: counts.records_kept(),
                held: store.records().count() as u64,
                by_type: counts.records_by_type.iter().map(|(kind, count)| (kind.to_string(), *count)).collect(),
                duplicates: counts.records_duplicate,
                bad: counts.records_bad,
                evicted: counts.records_evicted,
                request_end_with_root: of.record_with_root,
                request_end_without_root: of.record_without_root,
                roots_without_record: of.root_without_record,
            },
            requests,
            input: InputSection {
                other_logs: counts.other_logs,
                request_logs: counts.signs,
                metric_points: counts.metric_points,
                texts_cleaned: counts.texts_cleaned,
                ..input
            },
        }
    }

    /// What became of the spans, and of the records.
    pub fn accounts(&self) -> [(&'static str, Account); 2] {
        let Self { spans, records, .. } = self;
        let spans = Account {
            received: spans.received,
            held: spans.held,
            gone: [
                ("duplicate", spans.duplicates),
                ("rejected", spans.rejected),
                ("shed", spans.shed),
                ("evicted", spans.evicted),
            ],
        };
        let records = Account {
            received: records.received,
            held: records.held,
            gone: [("duplicate", records.duplicates), ("bad", records.bad), ("shed", 0), ("evicted", records.evicted)],
        };
        [("spans", spans), ("records", records)]
    }

    /// The report as JSON, indented.
    pub fn to_json(&self) -> String {
        serde_json::to_string_pretty(self).unwrap_or_else(|error| format!("{{\"error\": \"{error}\"}}"))
    }
}
