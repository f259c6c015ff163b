//! Reading a store: a range from its beginning to its end in pages, then what is new.
//!
//! Owns: paging, patience, what is asked again. Keeps out: the stores' own APIs, which spans are news (`seen`), the clock (an
//! argument).

use std::collections::HashSet;
use std::ops::ControlFlow;
use std::time::Duration;

use bytes::Bytes;
use tokio::runtime::Runtime;

use super::client::{Client, Failure, lasting};
use super::jaeger::Jaeger;
use super::seen::Seen;
use super::tempo::Tempo;
use super::{Api, Ask, Kind, Lack, Limits, Page, Progress, Settings, Sink, Until, moment};
use crate::lifecycle::ids::TraceId;
use crate::source::intake::{Payload, Refusal, Signal};

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
/// After so many ranges in a row without an answer, each half as long as the one before, it is given up: a store that was
/// only asked for too much would have answered.
const SLOW: u32 = 3;
/// After so many of the shortest ranges in a row that are too much for one answer, too: most of the range would be left out.
const LARGE: u32 = 16;
/// How many ranges without an answer are told one by one while a range is read.
const TOLD: u32 = 8;
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
    let client =
        Client::new(settings.base.clone(), settings.headers.clone(), settings.authority.as_deref(), settings.limits)?;
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
        let settings = self.settings;
        if let Some(traces) = settings.search.traces() {
            return self.traces(traces).await;
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

    /// Reads traces that are known, whenever they were.
    async fn traces(&mut self, ids: &[TraceId]) -> Result<(), End> {
        let mut refused = Vec::new();
        for id in ids {
            let mut tries = 1;
            let page = loop {
                match self.api.trace(&self.client, *id).await {
                    Err(failure) if failure.passes() && tries < TRIES => wait(&mut tries).await,
                    page => break page,
                }
            };
            match page {
                Ok(Some(page)) => drop(self.deliver(page)?),
                Ok(None) => self.sink.problem(format!("{} has no trace {id}", self.settings.kind.name())),
                Err(failure) if failure.of_one_trace().is_some() => refused.push((*id, failure)),
                Err(failure) => return Err(failure.into()),
            }
        }
        let all = refused.len() == ids.len();
        for (id, failure) in refused {
            match Lack::refused(self.settings.kind, id, &failure) {
                Some(lack) if !all => self.lack(lack)?,
                _ => return Err(failure.into()),
            }
        }
        self.tell()
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
        let mut unanswered = Unanswered::default();
        while at < to_ns {
            let end = to_ns.min(at.saturating_add(step));
            let width = end - at;
            let ask = Ask { from_ns: at, to_ns: end, longer_ns, limit, last: width <= least && limit >= most };
            let answer = match self.ask(ask, began.is_some()).await {
                Ok(answer) => answer,
                Err(End::Failed(failure @ (Failure::TooLarge(_) | Failure::Slow(_)))) => {
                    let shortest = width <= least;
                    if unanswered.is_enough(&failure, shortest) {
                        let times = unanswered.in_a_row();
                        return Err(End::Failed(Failure::Over { last: Box::new(failure), times, width_ns: width }));
                    }
                    let is_slow = matches!(failure, Failure::Slow(_));
                    let what = failure.sentence(self.settings.kind, &self.settings.base);
                    if shortest {
                        self.lose(began.is_some(), format!("{what}: what began at {} is left out", moment(at)));
                        at = ask.to_ns;
                    } else {
                        step = (width / 2).max(least);
                        // A look for news tells by itself what keeps it from them.
                        if is_slow && began.is_some() && unanswered.told < TOLD {
                            unanswered.told += 1;
                            let (width, step) = (lasting(width), lasting(step));
                            self.sink.problem(format!("{what}: asked for {width}, asking for {step} now"));
                        }
                    }
                    continue;
                }
                Err(end) => return Err(end),
            };
            unanswered.end();
            if answer.full && width > least {
                step = (width / 2).max(least);
                continue;
            }
            if answer.full && limit < most {
                limit = (limit * 4).min(most);
                continue;
            }
            if answer.full {
                let what = format!("more than {limit} traces began at {}: the rest is left out", moment(at));
                self.lose(began.is_some(), what);
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

    /// Tells what is left out. A look for news meets the same again and again: that is no more of it.
    fn lose(&mut self, is_first: bool, words: String) {
        if is_first { self.sink.left_out(words, false) } else { self.sink.problem(words) }
    }

    /// Tells what a store does not give, once: of which traces that is, so that what is missing of them is not held against
    /// them, and in words. Spans that were refused for themselves are counted where the others are.
    fn lack(&mut self, lack: Lack) -> Result<(), End> {
        let Lack { key, tally, words } = lack;
        if !self.seen.insert(key) {
            return Ok(());
        }
        let is_counted = tally.left_out().is_some();
        let is_named = !tally.torn.is_empty();
        if is_counted || is_named {
            self.take(Payload { tally, ..Payload::otlp(Signal::Traces, Bytes::new()) })?;
        }
        if is_counted {
            self.sink.problem(words)
        } else {
            self.sink.left_out(words, is_named)
        }
        Ok(())
    }

    fn take(&mut self, payload: Payload) -> Result<(), End> {
        match self.sink.payload(payload) {
            Ok(_) => {}
            Err(Refusal::Malformed(reason)) => self.sink.left_out(reason, false),
            Err(Refusal::Busy | Refusal::Closed) => return Err(End::Stopped),
        }
        Ok(())
    }

    async fn ask(&mut self, ask: Ask, patiently: bool) -> Result<Page, End> {
        let mut tries = if patiently { 1 } else { TRIES };
        loop {
            match self.api.page(&self.client, ask).await {
                Err(Failure::Unreachable(_) | Failure::Busy(_) | Failure::Broken(_)) if tries < TRIES => {
                    wait(&mut tries).await;
                }
                answer => return Ok(answer?),
            }
        }
    }

    fn deliver(&mut self, page: Page) -> Result<HashSet<TraceId>, End> {
        let mut traces = HashSet::new();
        // Before the spans of the same traces: whoever asks checks of those knows then what is missing.
        for lack in page.lacks {
            self.lack(lack)?;
        }
        for request in page.requests {
            let news = match self.seen.news(request.clone(), (self.clock)()) {
                Ok(news) => news,
                Err(reason) => {
                    self.lack(Lack::unknown(&request, reason))?;
                    continue;
                }
            };
            self.progress.traces += news.begun;
            traces.extend(news.traces);
            let Some(request) = news.request else { continue };
            self.progress.bytes += request.len() as u64;
            self.take(Payload::otlp(Signal::Traces, request))?;
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
                    let cause = failure.cause().sentence(self.settings.kind, &self.settings.base);
                    if trouble.as_ref() != Some(&cause) {
                        self.sink.problem(failure.sentence(self.settings.kind, &self.settings.base));
                        trouble = Some(cause);
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
            match self.api.trace(&self.client, id).await {
                Ok(Some(page)) => drop(self.deliver(page)?),
                Ok(None) => {
                    let words = format!("{} gives trace {id} no more", self.settings.kind.name());
                    self.lack(Lack::of_trace(id, words))?;
                }
                Err(failure) => match Lack::refused(self.settings.kind, id, &failure) {
                    Some(lack) => self.lack(lack)?,
                    None => return Err(failure.into()),
                },
            }
        }
        Ok(())
    }
}

/// Ranges in a row that brought no answer that can be used.
#[derive(Default)]
struct Unanswered {
    /// Without any answer in time.
    slow: u32,
    /// The shortest ones, and still too large.
    large: u32,
    /// How many were told since reading began.
    told: u32,
}

impl Unanswered {
    /// Counts one more; whether it is to be given up.
    fn is_enough(&mut self, failure: &Failure, shortest: bool) -> bool {
        match failure {
            Failure::Slow(_) => self.slow += 1,
            _ if shortest => self.large += 1,
            _ => {}
        }
        self.slow >= SLOW || self.large >= LARGE || (shortest && matches!(failure, Failure::Slow(_)))
    }

    fn in_a_row(&self) -> u32 {
        self.slow + self.large
    }

    /// An answer came.
    fn end(&mut self) {
        (self.slow, self.large) = (0, 0);
    }
}

/// Waits a quarter of a second, then twice as long with every try.
async fn wait(tries: &mut u32) {
    tokio::time::sleep(Duration::from_millis(125 << *tries)).await;
    *tries += 1;
}
