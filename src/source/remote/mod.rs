//! Trace stores as a source: what a Jaeger or a Tempo keeps of a time range, and what comes in there from then on.
//!
//! A range is read from its beginning to its end in pages of traces; a page that is full, too long or too slow is asked
//! again as a shorter time. Following asks for the latest seconds again and again, for each trace that is not finished,
//! and now and then for requests that took longer than those seconds. Everything ends in the same OTLP payloads as from
//! the endpoint. Owns: what can be asked of a store and what it answers. Keeps out: HTTP ([`client`]), the stores' own APIs
//! (`jaeger`, `tempo`), in which order and how often to ask (`reading`), which spans are news (`seen`).

use std::ops::ControlFlow;
use std::path::PathBuf;
use std::time::Duration;

use bytes::Bytes;
use http::HeaderMap;

use super::intake::{Payload, Receipt, Refusal};
use crate::lifecycle::batch::Tally;
use crate::lifecycle::ids::TraceId;
use crate::lifecycle::must::Must;

pub mod client;
mod jaeger;
mod reading;
mod seen;
mod tempo;
#[cfg(test)]
mod tests;

use client::{Base, Client, Failure};
use jaeger::Jaeger;
pub use reading::{probe, read};
use tempo::Tempo;

/// The stores that can be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Jaeger 2 and 1.x, by its query API v3 over HTTP.
    Jaeger,
    /// Grafana Tempo, by its HTTP API.
    Tempo,
}

impl Kind {
    /// All of them with the word of the command line.
    pub const ALL: [(Self, &str); 2] = [(Self::Jaeger, "jaeger"), (Self::Tempo, "tempo")];

    /// As people write it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Jaeger => "Jaeger",
            Self::Tempo => "Tempo",
        }
    }

    fn usual(self) -> &'static str {
        match self {
            Self::Jaeger => "http://HOST:16686",
            Self::Tempo => "http://HOST:3200",
        }
    }

    fn api(self) -> &'static str {
        match self {
            Self::Jaeger => "Jaeger's query API v3",
            Self::Tempo => "Tempo's HTTP API",
        }
    }
}

/// What one span of a trace must be, for the store to give the trace.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Search {
    /// Of one of these services; with none, of those that begin requests.
    pub services: Vec<String>,
    /// Of this name.
    pub operation: Option<String>,
    /// At least this long, nanoseconds.
    pub longer_ns: Option<u64>,
    /// At most this long, nanoseconds.
    pub shorter_ns: Option<u64>,
    /// With these attributes, of the span or its resource (Tempo only).
    pub attributes: Vec<(String, String)>,
    /// Instead of all that: a TraceQL query (Tempo only).
    pub traceql: Option<String>,
    /// What a trace that is wanted has beside that, whichever of its spans: the store may give more.
    pub must: Vec<Must>,
}

impl Search {
    /// The traces that are wanted, when they are known.
    fn traces(&self) -> Option<&[TraceId]> {
        self.must.iter().find_map(|must| match must {
            Must::Be(traces) => Some(&traces[..]),
            Must::Service(_) | Must::Span(_) => None,
        })
    }
}

/// Until when to read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Until {
    /// This moment, nanoseconds since the epoch.
    At(u64),
    /// The moment at which reading begins.
    Now,
    /// Go on with what comes in.
    Ever,
}

/// What may be asked for at once, and how often.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// The longest answer, bytes, before and after decoding.
    pub answer: usize,
    /// Traces in an answer; a full one is asked again as a shorter time.
    pub page: usize,
    /// Traces in an answer when even the shortest time that can be asked for holds more than a page.
    pub most: usize,
    /// How long an answer may take.
    pub patience: Duration,
    /// How long to wait before asking for what is new.
    pub pause: Duration,
    /// How far back that looks, nanoseconds: senders and stores hold spans for some seconds.
    pub overlap_ns: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            answer: 64 << 20,
            page: 200,
            most: 10_000,
            patience: Duration::from_secs(30),
            pause: Duration::from_secs(2),
            overlap_ns: 30_000_000_000,
        }
    }
}

/// Which store to read, what of it, and how.
#[derive(Clone, Debug)]
pub struct Settings {
    /// What it is.
    pub kind: Kind,
    /// Where it is.
    pub base: Base,
    /// Sent with everything asked, never printed.
    pub headers: HeaderMap,
    /// A file of the certificates that https is checked against instead of the system's (PEM).
    pub authority: Option<PathBuf>,
    /// What to search for.
    pub search: Search,
    /// The beginning, nanoseconds since the epoch.
    pub since_ns: u64,
    /// The end.
    pub until: Until,
    /// How much at once.
    pub limits: Limits,
}

impl Settings {
    /// The store in a few words, for screens.
    pub fn name(&self) -> String {
        format!("{} {}", self.kind.name(), self.base)
    }
}

/// How far reading has come.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    /// Nanoseconds of the range that are read; the whole range while following.
    pub done_ns: u64,
    /// Nanoseconds of the range.
    pub of_ns: u64,
    /// Traces read.
    pub traces: u64,
    /// Bytes of them, as OTLP protobuf.
    pub bytes: u64,
}

/// Who takes what is read.
pub trait Sink {
    /// Takes a payload and tells what became of it.
    ///
    /// # Errors
    /// [`Refusal::Malformed`] is told as left out; any other refusal ends reading.
    fn payload(&mut self, payload: Payload) -> Result<Receipt, Refusal>;

    /// Is told of something worth knowing, such as that the store is away.
    fn problem(&mut self, words: String);

    /// Is told of something that is left out for good. When it `is_named`, a payload has said of which traces it is; otherwise
    /// nobody knows.
    fn left_out(&mut self, words: String, is_named: bool);

    /// Is told how far reading has come, after every page and every look for news; may end it.
    fn progress(&mut self, progress: Progress) -> ControlFlow<()>;
}

/// One question to a store: traces with a span that begins in this time.
#[derive(Clone, Copy, Debug)]
struct Ask {
    from_ns: u64,
    to_ns: u64,
    /// Only requests that took longer.
    longer_ns: Option<u64>,
    limit: usize,
    /// Whether a full answer is of use: otherwise it will be asked again as a shorter time, or with a higher limit.
    last: bool,
}

/// A store's answer.
#[derive(Debug, Default)]
struct Page {
    /// Export requests in protobuf.
    requests: Vec<Bytes>,
    /// Whether there may be more than was asked for.
    full: bool,
    /// What is not among them and should be.
    lacks: Vec<Lack>,
}

/// What a store has and does not give, or gives in a form that cannot be read.
#[derive(Debug)]
struct Lack {
    /// Equal for the same thing, however often the store is asked.
    key: u64,
    /// Of which traces it is, and how many spans were refused for themselves, as far as that is known.
    tally: Tally,
    /// It in words.
    words: String,
}

impl Lack {
    /// Some or all of this trace.
    fn of_trace(trace: TraceId, words: String) -> Self {
        Self { key: seen::hash((trace, &words)), tally: Tally { torn: vec![trace], ..Tally::default() }, words }
    }

    /// This trace, which the store has and will not give; `None` for a failure that concerns more than that.
    fn refused(kind: Kind, trace: TraceId, failure: &Failure) -> Option<Self> {
        let words = format!("{} cannot give trace {trace} ({}): it is left out", kind.name(), failure.of_one_trace()?);
        // Its words may be others each time.
        Some(Self { key: seen::hash((trace, "refused")), ..Self::of_trace(trace, words) })
    }

    /// Something of which nothing is known, told by what came instead.
    fn unknown(came: &[u8], words: String) -> Self {
        Self { key: seen::hash(came), tally: Tally::default(), words }
    }
}

/// The API of the store.
enum Api {
    Jaeger(Jaeger),
    Tempo(Tempo),
}

impl Api {
    /// The shortest time that can be asked for, nanoseconds.
    fn least_ns(&self) -> u64 {
        match self {
            Self::Jaeger(_) => 1_000_000,
            Self::Tempo(_) => 1_000_000_000,
        }
    }

    /// Whether there is nothing to ask for, yet.
    fn is_idle(&self) -> bool {
        matches!(self, Self::Jaeger(jaeger) if jaeger.is_idle())
    }

    /// Finds out what to ask for; what is odd about it in words.
    async fn prepare(&mut self, client: &Client) -> Result<Option<String>, Failure> {
        match self {
            Self::Jaeger(jaeger) => jaeger.prepare(client).await,
            Self::Tempo(tempo) => tempo.prepare(client).await,
        }
    }

    async fn page(&mut self, client: &Client, ask: Ask) -> Result<Page, Failure> {
        match self {
            Self::Jaeger(jaeger) => jaeger.page(client, ask).await,
            Self::Tempo(tempo) => tempo.page(client, ask).await,
        }
    }

    /// All of one trace; `None` when there is none.
    async fn trace(&mut self, client: &Client, id: TraceId) -> Result<Option<Page>, Failure> {
        match self {
            Self::Jaeger(jaeger) => jaeger.trace(client, id).await,
            Self::Tempo(tempo) => tempo.trace(client, id).await,
        }
    }
}

/// A moment as both stores read it, RFC 3339 with nanoseconds.
fn moment(ns: u64) -> String {
    jiff::Timestamp::from_nanosecond(i128::from(ns)).map_or_else(|_| ns.to_string(), |time| format!("{time:.9}"))
}
