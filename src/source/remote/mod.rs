//! Trace stores as a source: what a Jaeger or a Tempo keeps of a time range, and what comes in there from then on.
//!
//! A range is read from its beginning to its end in pages of traces; a page that is full, too long or too slow is asked
//! again as a shorter time. Following asks for the latest seconds again and again, for each trace that is not finished,
//! and now and then for requests that took longer than those seconds. Everything ends in the same OTLP payloads as from
//! the endpoint. Owns: paging, patience, what is asked again. Keeps out: HTTP ([`client`]), the stores' own APIs
//! (`jaeger`, `tempo`), which spans are news (`seen`), the clock (an argument).

use std::collections::HashSet;
use std::ops::ControlFlow;
use std::time::Duration;

use bytes::Bytes;
use http::HeaderMap;
use tokio::runtime::Runtime;

use super::intake::{Payload, Receipt, Refusal, Signal};
use crate::lifecycle::ids::TraceId;

pub mod client;
mod jaeger;
mod seen;
mod tempo;
#[cfg(test)]
mod tests;

use client::{Base, Client, Failure};
use jaeger::Jaeger;
use seen::Seen;
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

    /// Is told of something that is left out for good.
    fn left_out(&mut self, words: String);

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
    /// What could not be used.
    problems: Vec<String>,
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

    async fn trace(&mut self, client: &Client, id: TraceId) -> Result<Page, Failure> {
        match self {
            Self::Jaeger(jaeger) => jaeger.trace(client, id).await,
            Self::Tempo(tempo) => tempo.trace(client, id).await,
        }
    }
}

/// Why reading ended early.
enum End {
    /// The sink wants no more.
    Stopped,
    Failed(Failure),
}

impl From<Failure> for End {
    fn from(failure: Failure) -> Self {
        Self::Failed(failure)
    }
}

/// How often a question is asked before a failure that may pass is one, while a range is read.
const TRIES: u32 = 4;
/// Into how many parts a range is cut at first.
const PARTS: u64 = 16;
/// Unfinished traces asked for in one look for news.
const AGAIN: usize = 64;
/// Every how many looks long requests are looked for, and what there is to ask for is found out anew.
const SELDOM: u64 = 8;
/// How far back long requests are looked for, nanoseconds.
const LONG_NS: u64 = 3_600_000_000_000;

/// Asks once, so that what is wrong with the address can be told before there is a screen.
///
/// # Errors
/// What is wrong, in a sentence that says what to do.
pub fn probe(settings: &Settings) -> Result<(), String> {
    let (runtime, client, mut api) = open(settings)?;
    let asked = runtime.block_on(api.prepare(&client));
    asked.map(drop).map_err(|failure| failure.sentence(settings.kind, &settings.base))
}

fn open(settings: &Settings) -> Result<(Runtime, Client, Api), String> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| format!("cannot start the network: {error}"))?;
    let client = Client::new(settings.base.clone(), settings.headers.clone(), settings.limits);
    let api = match settings.kind {
        Kind::Jaeger => Api::Jaeger(Jaeger::new(settings.search.clone())),
        Kind::Tempo => Api::Tempo(Tempo::new(settings.search.clone())),
    };
    Ok((runtime, client, api))
}

/// Reads a store until its end, or until the sink wants no more.
///
/// # Errors
/// Why the range could not be read, in a sentence that says what to do. Failures while following are told to the sink.
pub fn read(settings: &Settings, clock: &dyn Fn() -> u64, sink: &mut dyn Sink) -> Result<Progress, String> {
    let (runtime, client, api) = open(settings)?;
    let mut reading =
        Reading { settings, client, api, seen: Seen::default(), progress: Progress::default(), clock, sink };
    match runtime.block_on(reading.all()) {
        Ok(()) | Err(End::Stopped) => Ok(reading.progress),
        Err(End::Failed(failure)) => Err(failure.sentence(settings.kind, &settings.base)),
    }
}

struct Reading<'a> {
    settings: &'a Settings,
    client: Client,
    api: Api,
    seen: Seen,
    progress: Progress,
    clock: &'a dyn Fn() -> u64,
    sink: &'a mut dyn Sink,
}

impl Reading<'_> {
    async fn all(&mut self) -> Result<(), End> {
        let mut tries = 1;
        let odd = loop {
            match self.api.prepare(&self.client).await {
                Err(failure) if failure.passes() && tries < TRIES => wait(&mut tries).await,
                prepared => break prepared?,
            }
        };
        if let Some(odd) = odd {
            self.sink.problem(odd);
        }
        let until_ns = match self.settings.until {
            Until::At(ns) => ns,
            Until::Now | Until::Ever => (self.clock)(),
        };
        let since_ns = self.settings.since_ns.min(until_ns);
        self.progress.of_ns = until_ns - since_ns;
        let read = self.range(since_ns, until_ns, None, Some(since_ns)).await;
        match (self.settings.until, read) {
            (Until::Ever, Err(End::Failed(failure))) => {
                self.sink.problem(failure.sentence(self.settings.kind, &self.settings.base));
                self.follow(until_ns).await
            }
            (Until::Ever, Ok(_)) => self.follow(until_ns).await,
            (_, read) => read.map(drop),
        }
    }

    /// Reads a range page by page. With `began`, tells how far it has come since then. Gives the traces that were in it.
    async fn range(
        &mut self,
        from_ns: u64,
        to_ns: u64,
        longer_ns: Option<u64>,
        began: Option<u64>,
    ) -> Result<HashSet<TraceId>, End> {
        let (least, Limits { page, most, .. }) = (self.api.least_ns(), self.settings.limits);
        let (mut at, mut step, mut limit) = (from_ns, (to_ns.saturating_sub(from_ns) / PARTS).max(least), page);
        let mut read = HashSet::new();
        while at < to_ns {
            let end = to_ns.min(at.saturating_add(step));
            let width = end - at;
            let ask = Ask { from_ns: at, to_ns: end, longer_ns, limit, last: width <= least && limit >= most };
            let answer = match self.ask(ask, began.is_some()).await {
                Ok(answer) => answer,
                Err(End::Failed(Failure::TooLarge(_) | Failure::Slow(_))) if width > least => {
                    step = (width / 2).max(least);
                    continue;
                }
                Err(End::Failed(failure @ Failure::TooLarge(_))) => {
                    let what = failure.sentence(self.settings.kind, &self.settings.base);
                    self.sink.left_out(format!("{what}: what began at {} is left out", moment(at)));
                    at = ask.to_ns;
                    continue;
                }
                Err(end) => return Err(end),
            };
            if answer.full && width > least {
                step = (width / 2).max(least);
                continue;
            }
            if answer.full && limit < most {
                limit = (limit * 4).min(most);
                continue;
            }
            if answer.full {
                self.sink.left_out(format!("more than {limit} traces began at {}: the rest is left out", moment(at)));
            }
            let traces = self.deliver(answer)?;
            if traces.len() * 4 < page {
                step = step.saturating_mul(2);
            }
            read.extend(traces);
            (at, limit) = (ask.to_ns, page);
            if let Some(began) = began {
                self.progress.done_ns = at - began;
                self.tell()?;
            }
        }
        Ok(read)
    }

    async fn ask(&mut self, ask: Ask, patiently: bool) -> Result<Page, End> {
        let mut tries = if patiently { 1 } else { TRIES };
        loop {
            match self.api.page(&self.client, ask).await {
                Err(Failure::Unreachable(_) | Failure::Busy(_)) if tries < TRIES => wait(&mut tries).await,
                answer => return Ok(answer?),
            }
        }
    }

    fn deliver(&mut self, page: Page) -> Result<HashSet<TraceId>, End> {
        let mut traces = HashSet::new();
        for problem in page.problems {
            self.sink.left_out(problem);
        }
        for request in page.requests {
            let news = match self.seen.news(request, (self.clock)()) {
                Ok(news) => news,
                Err(reason) => {
                    self.sink.left_out(reason);
                    continue;
                }
            };
            self.progress.traces += news.begun;
            traces.extend(news.traces);
            let Some(request) = news.request else { continue };
            self.progress.bytes += request.len() as u64;
            match self.sink.payload(Payload::otlp(Signal::Traces, request)) {
                Ok(_) => {}
                Err(Refusal::Malformed(reason)) => self.sink.left_out(reason),
                Err(Refusal::Busy | Refusal::Closed) => return Err(End::Stopped),
            }
        }
        Ok(traces)
    }

    fn tell(&mut self) -> Result<(), End> {
        match self.sink.progress(self.progress) {
            ControlFlow::Continue(()) => Ok(()),
            ControlFlow::Break(()) => Err(End::Stopped),
        }
    }

    /// Asks for what is new until the sink wants no more. A store that is away is asked again; that is told once.
    async fn follow(&mut self, mut read_ns: u64) -> Result<(), End> {
        let mut trouble = None;
        for look in 1_u64.. {
            tokio::time::sleep(self.settings.limits.pause).await;
            let now_ns = (self.clock)();
            match self.look(read_ns, now_ns, look).await {
                Ok(()) => {
                    read_ns = now_ns;
                    if trouble.take().is_some() {
                        self.sink.problem(format!("{} answers again", self.settings.name()));
                    }
                }
                Err(End::Stopped) => return Err(End::Stopped),
                Err(End::Failed(failure)) => {
                    let sentence = failure.sentence(self.settings.kind, &self.settings.base);
                    if trouble.as_ref() != Some(&sentence) {
                        self.sink.problem(sentence.clone());
                        trouble = Some(sentence);
                    }
                }
            }
            self.progress.of_ns = now_ns.saturating_sub(self.settings.since_ns);
            self.progress.done_ns = self.progress.of_ns;
            self.tell()?;
        }
        Ok(())
    }

    async fn look(&mut self, read_ns: u64, now_ns: u64, look: u64) -> Result<(), End> {
        let overlap_ns = self.settings.limits.overlap_ns;
        if look.is_multiple_of(SELDOM) || self.api.is_idle() {
            // What is odd about it was told at first.
            self.api.prepare(&self.client).await?;
        }
        let from_ns = read_ns.saturating_sub(overlap_ns);
        let mut read = self.range(from_ns, now_ns, None, None).await?;
        if look.is_multiple_of(SELDOM) {
            let longer_ns = Some(overlap_ns / 2);
            let from_ns = now_ns.saturating_sub(LONG_NS).max(self.settings.since_ns.min(now_ns));
            read.extend(self.range(from_ns, now_ns, longer_ns, None).await?);
        }
        for id in self.seen.unfinished(&read, AGAIN, now_ns) {
            let page = self.api.trace(&self.client, id).await?;
            self.deliver(page)?;
        }
        Ok(())
    }
}

/// Waits a quarter of a second, then twice as long with every try.
async fn wait(tries: &mut u32) {
    tokio::time::sleep(Duration::from_millis(125 << *tries)).await;
    *tries += 1;
}

/// A moment as both stores read it, RFC 3339 with nanoseconds.
fn moment(ns: u64) -> String {
    jiff::Timestamp::from_nanosecond(i128::from(ns)).map_or_else(|_| ns.to_string(), |time| format!("{time:.9}"))
}
