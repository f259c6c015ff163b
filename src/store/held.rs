//! What is held while a screen stands still or looks back: the requests there were, as they were.
//!
//! Nothing is copied when the screen stops. A request that changes meanwhile is kept as it was when it first does; of spans,
//! each trace notes how many it had when the first came since ([`Trace::note_hold`]); a record knows how often the store
//! had been held when it came. Owns: what was there then. Keeps out: who looks at it (`lens`, `view`).
//!
//! Which spans and records are one request is as known now: two that turn out to be one meanwhile have the same tree.

use std::sync::Arc;

use super::past::known_ns;
use super::rows::Row;
use super::trace::Trace;
use super::{Map, Past, Request, Store};
use crate::checks::Answers;
use crate::lifecycle::account::entry;
use crate::lifecycle::facts::Facts;
use crate::lifecycle::record::Record;
use crate::lifecycle::request::RequestKey;

/// Which spans and records are looked at.
#[derive(Clone, Copy, Debug)]
pub(super) enum Until {
    /// All.
    Now,
    /// Those known by a time, nanoseconds since the epoch.
    Time(u64),
    /// Those that had come when the store was held for the so many'th time.
    Hold(u32),
}

impl Until {
    /// Whether a row of a trace is looked at.
    #[inline]
    pub(super) fn knows(self, trace: &Trace, row: &Row, at: usize) -> bool {
        match self {
            Self::Now => true,
            Self::Time(until_ns) => known_ns(row) <= until_ns,
            Self::Hold(hold) => at < trace.rows_before(hold),
        }
    }

    /// Whether a record is looked at.
    pub(super) fn knows_record(self, record: &Record) -> bool {
        match self {
            Self::Now => true,
            Self::Time(until_ns) => record.written_ns() <= until_ns,
            Self::Hold(hold) => record.hold < hold,
        }
    }
}

/// A request as it was when it was held.
#[derive(Clone, Debug)]
pub struct Before {
    /// Its facts.
    pub facts: Facts,
    /// What the checks had said; `None` when they had not been asked.
    pub answers: Option<Answers>,
}

impl Before {
    fn of(facts: &Facts, request: &Request) -> Self {
        Self { facts: facts.clone(), answers: request.asked.answers.clone() }
    }

    fn size(&self) -> usize {
        entry::<(RequestKey, Self)>() + self.facts.heap_size() + self.answers.as_ref().map_or(0, Answers::heap_size)
    }
}

/// The requests there were, as they were.
pub(super) struct Held {
    past: Arc<Past>,
    /// Requests from this key on came later.
    pub before: RequestKey,
    /// How often the store had been held, this time included.
    hold: u32,
    /// Those that have changed since, as they were.
    changed: Map<RequestKey, Before>,
    /// Bytes of them.
    size: usize,
    /// Whether a request went since: the numbers of it cannot be taken out any more.
    pub is_worn: bool,
}

impl Held {
    fn new(past: &Arc<Past>, hold: u32) -> Self {
        let before = past.keys().first().map_or(RequestKey(0), |newest| RequestKey(newest.0 + 1));
        Self { past: Arc::clone(past), before, hold, changed: Map::default(), size: 0, is_worn: false }
    }

    /// The moment.
    pub fn past(&self) -> &Arc<Past> {
        &self.past
    }

    /// Which spans and records there were.
    pub fn until(&self) -> Until {
        if self.past.looks_back() { Until::Time(self.past.at_ns()) } else { Until::Hold(self.hold) }
    }

    /// The facts of a request as they were; `None` when it was not there.
    pub fn facts<'a>(&'a self, key: RequestKey, request: &'a Request) -> Option<&'a Facts> {
        if key >= self.before {
            return None;
        }
        let is_there = || !self.past.looks_back() || request.heard.first_ns <= self.past.at_ns();
        let changed = self.past.changed(key).or_else(|| self.changed.get(&key).map(|before| &before.facts));
        changed.or_else(|| is_there().then_some(&request.facts))
    }

    /// What the checks had said of a request.
    pub fn answers<'a>(&'a self, key: RequestKey, request: &'a Request) -> Option<&'a Answers> {
        match self.changed.get(&key) {
            Some(before) => before.answers.as_ref(),
            None => request.asked.answers.as_ref(),
        }
    }

    /// A request is about to change, or just has: `was` are its facts so far, and its answers are still those so far.
    pub fn keep(&mut self, key: RequestKey, was: &Facts, request: &Request) {
        // What was not there then does not come in because it has changed since.
        if self.past.has(key) && self.past.changed(key).is_none() && !self.changed.contains_key(&key) {
            let before = Before::of(was, request);
            self.size += before.size();
            self.changed.insert(key, before);
        }
    }

    /// A request goes, and is not shown any more.
    pub fn forget(&mut self, key: RequestKey) {
        if let Some(before) = self.changed.remove(&key) {
            self.size -= before.size();
        }
    }

    /// Bytes of what it keeps.
    pub fn size(&self) -> usize {
        self.size
    }
}

impl Store {
    /// What is held at the moment.
    pub fn held(&self) -> Option<&Arc<Past>> {
        self.lens.held().map(Held::past)
    }

    /// A request as it was when this was held, where it has changed since; `None` for one that has not.
    pub fn before(&self, past: &Arc<Past>, key: RequestKey) -> Option<&Before> {
        self.lens.held().filter(|held| Arc::ptr_eq(held.past(), past))?.changed.get(&key)
    }

    /// What a moment that is about to be held leaves out.
    pub(super) fn hold_at(&mut self, past: &Arc<Past>) -> Held {
        self.holds += u32::from(!past.looks_back());
        Held::new(past, self.holds)
    }

    /// Which spans and records there were at a moment. One that stands still and is not held yet was made just now.
    pub(super) fn until(&self, past: &Past) -> Until {
        match self.lens.held().filter(|held| std::ptr::eq(&**held.past(), past)) {
            Some(held) => held.until(),
            None if past.looks_back() => Until::Time(past.at_ns()),
            None => Until::Now,
        }
    }
}
