//! What is not there and may be for all that: on its way when everything is asked at last, or lost.
//!
//! Owns: how long something may be on its way, what was lost and to whom, and asking everything at the end with that in mind.
//! Keeps out: when requests are asked while more comes (`check`), what a check makes of it (`checks`).

use super::check::{Asked, Checked, GRACE_NS, most_spans};
use super::held::Until;
use super::{Request, Store, read};
use crate::checks::{self, Answer, Answers, Moment, Why};
use crate::lifecycle::batch::Batch;
use crate::lifecycle::request::RequestKey;

/// What may still be on its way when everything is asked at last.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Coming {
    /// Nothing: what is in files is all there is.
    #[default]
    Nothing,
    /// What belongs to requests of which something arrived within the grace before this time, the last that a recording
    /// tells of; nanoseconds since the epoch. What nobody noted the arrival of is all there is.
    Recorded(u64),
    /// What belongs to requests of which something arrived within the grace before the end: senders were listened to.
    /// Nanoseconds since the epoch.
    Arrivals {
        /// From when on; what is older is from files.
        since_ns: u64,
        /// Until when.
        until_ns: u64,
    },
    /// What belongs to requests that went on within the grace before this time: a store of traces was asked then.
    Writing(u64),
}

impl Coming {
    /// Whether nothing more is expected of a request.
    pub(super) fn is_settled(self, request: &Request) -> bool {
        let (last_ns, now_ns) = match self {
            Self::Nothing => return true,
            Self::Recorded(_) if request.arrived_ns == 0 => return true,
            Self::Recorded(until_ns) => (request.arrived_ns, until_ns),
            Self::Arrivals { since_ns, .. } if request.news_ns() < since_ns => return true,
            Self::Arrivals { until_ns, .. } => (request.news_ns(), until_ns),
            Self::Writing(now_ns) => (request.heard.last_ns, now_ns),
        };
        last_ns.saturating_add(GRACE_NS) <= now_ns
    }

    /// Whether requests that nobody has heard of may have been on their way: something arrived a short while ago.
    fn is_open(self, delivered_ns: u64) -> bool {
        let is_recent = |until_ns| delivered_ns > 0 && delivered_ns.saturating_add(GRACE_NS) > until_ns;
        match self {
            Self::Nothing => false,
            Self::Writing(_) => true,
            Self::Recorded(until_ns) => is_recent(until_ns),
            Self::Arrivals { since_ns, until_ns } => delivered_ns >= since_ns && is_recent(until_ns),
        }
    }
}

/// What may be missing of what came.
#[derive(Default)]
pub(super) struct Missing {
    unsettled: Vec<RequestKey>,
    /// What may still come when requests are asked at last.
    pub(super) coming: Coming,
    /// Whether what requests lack that nobody has heard of may have been on its way.
    is_open: bool,
    /// Parts refused that named no trace.
    unplaced: u64,
}

impl Checked {
    /// Requests that were over and of which something may still have been on its way when everything was asked, so that
    /// checks could not tell.
    pub fn unsettled(&self) -> &[RequestKey] {
        &self.missing.unsettled
    }

    fn may_lack(&self, requests: u64) -> bool {
        self.missing.is_open || self.run.may_lack(requests)
    }
}

/// How many requests somebody saw of which there is no root.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Unseen {
    /// All.
    pub requests: u64,
    /// Those that ended well, each of which leaves a record.
    pub successes: u64,
}

impl Unseen {
    /// The same and so many more of one outcome.
    #[must_use]
    pub fn and(self, requests: u64, succeeded: bool) -> Self {
        let successes = if succeeded { requests } else { 0 };
        Self { requests: self.requests + requests, successes: self.successes + successes }
    }
}

/// Which of the requests that somebody saw may be missing for all that.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lack {
    /// None.
    None,
    /// All: they were lost or let go, or may have been on their way.
    Lost,
    /// All: their spans may have been sampled out.
    SampledOut,
    /// Any of them, but not all: so many are too many.
    AllBut(u64),
}

impl Store {
    /// Whether what a load generator saw may be missing because it was let go for room, what came of it was lost, or had not
    /// come yet; or because its spans were sampled out. Then records stand alone, as many as successes are missing; they do
    /// not have the client's id, and what failed before its stream leaves none (spec lifecycle-spans §6, request-trace §2).
    pub fn may_lack(&self, unseen: Unseen) -> Lack {
        if unseen.requests == 0 {
            return Lack::None;
        }
        if self.counts.requests_evicted > 0 || self.checked.may_lack(unseen.requests) {
            return Lack::Lost;
        }
        let alone = self.requests.values().filter(|request| request.facts.has_record && request.facts.spans == 0);
        match alone.count() as u64 {
            0 => Lack::None,
            recorded if recorded < unseen.successes => Lack::AllBut(unseen.successes - recorded),
            _ => Lack::SampledOut,
        }
    }

    /// Notes what a delivery brought and what is not kept of it: what is missing of these traces, and which records, is
    /// not known any more.
    pub(super) fn note_refused(&mut self, batch: &Batch<'_>) {
        batch.tally.torn.iter().for_each(|trace| self.checked.run.note_torn(*trace));
        // What came as part of another signal's export is not read, whatever it held.
        let nameless = batch.tally.refused_spans.saturating_sub(batch.tally.torn.len() as u64);
        self.checked.missing.unplaced += nameless + batch.tally.misplaced;
        if batch.tally.bad_records + batch.tally.misplaced > 0 {
            self.checked.run.note_lost_records();
        }
    }

    /// Notes that more has come than could be read, of requests that nobody can name; every request is asked anew when it is
    /// next to be.
    pub fn note_losses(&mut self) {
        self.checked.run.note_lost_spans();
        self.checked.run.note_lost_records();
        self.ask_later(|asked| asked.answers.is_some());
    }

    /// Has every request asked that was not yet, those in flight too: no more comes than this, and what is wrong with what
    /// there is can be told.
    pub fn ask_the_rest(&mut self, coming: Coming) {
        self.checked.missing.coming = coming;
        self.ask_later(|asked| asked.answers.is_none());
    }

    /// Has these requests asked the next time that the checks are.
    fn ask_later(&mut self, which: impl Fn(&Asked) -> bool) {
        for (key, request) in self.requests.iter_mut().filter(|(_, request)| which(&request.asked)) {
            if !std::mem::replace(&mut request.asked.later, true) {
                self.checked.later.push_back((0, *key));
            }
        }
    }

    /// What came and was not read, of traces that nobody can name: spans refused, parts of another signal's export.
    pub fn unplaced(&self) -> u64 {
        self.checked.missing.unplaced
    }

    /// Asks every request as settled: nothing more comes.
    pub fn check_all(&mut self) {
        self.check_what_came(Coming::Nothing);
    }

    /// Asks every request of which nothing more is expected as settled, the others as they are, having learned from all of
    /// them first: what a report of everything needs. Call it after [`Store::finish`].
    pub fn check_what_came(&mut self, coming: Coming) {
        self.checked.soon = Default::default();
        self.checked.later = Default::default();
        let keys: Vec<RequestKey> = self.requests.keys().copied().collect();
        for key in &keys {
            let Self { requests, tables, traces, checked, .. } = self;
            if let Some(request) = requests.get_mut(key) {
                (request.asked.soon, request.asked.later) = (false, false);
                let mut learned = request.asked.learned;
                let view = read::view(tables, traces, *key, request, &request.facts, most_spans(request), Until::Now);
                checked.run.learn(&view, &mut learned);
                request.asked.learned = learned;
            }
        }
        self.checked.missing.unsettled.clear();
        self.checked.missing.is_open = coming.is_open(self.delivered_ns);
        for key in keys {
            if self.requests.get(&key).is_some_and(|request| coming.is_settled(request)) {
                self.ask(key, Moment::Settled);
                continue;
            }
            self.ask(key, Moment::Arriving);
            let asked = self.requests.get(&key).filter(|request| checks::is_over(&request.facts));
            let mut answers =
                asked.and_then(|request| request.asked.answers.as_ref()).into_iter().flat_map(Answers::iter);
            if answers.any(|(_, answer)| answer == Answer::Unknown(Why::Arriving)) {
                self.checked.missing.unsettled.push(key);
            }
        }
    }
}
