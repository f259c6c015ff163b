//! The requests as they were at a moment: what a screen shows that stands still, or looks back.
//!
//! A span is known from its end on, a record and a log from when they were written. At a moment, a request is there when
//! anything of it was known by then, and its facts are those of what was known: what had ended had ended, what was in
//! flight is in flight. Requests that had nothing more to come are as they are now; the few others are assembled anew.
//! Owns: that rule. Keeps out: panes and lists over it (`lens`, `view`).
//!
//! What differs from a screen that stood there at the time: spans come some seconds after their end, and are taken here as
//! if they came at once; which spans and records are one request is as known now; counts of what was received or lost, and
//! what the checks say, are today's.

use std::sync::Arc;

use super::check::GRACE_NS;
use super::held::Until;
use super::read::{spans_of, view};
use super::rows::Row;
use super::settle::{MOST_READ, count};
use super::{Map, Request, Standing, Store};
use crate::lifecycle::assemble::{Input, Told, assemble};
use crate::lifecycle::facts::{Facts, State};
use crate::lifecycle::record::Record;
use crate::lifecycle::request::{RequestKey, RequestView, SpanView};

/// When a request was heard of first and last, by what was known of it; nanoseconds since the epoch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Heard {
    pub first_ns: u64,
    pub last_ns: u64,
}

impl Heard {
    /// Of what a request has.
    pub fn of(spans: &[SpanView<'_>], records: &[Record], told: Option<&Told>) -> Self {
        let spans = spans.iter().map(|span| span.start_ns.max(span.end_ns));
        let signs = told.into_iter().flat_map(|told| [told.received_ns, told.completed_ns]).flatten();
        let all = spans.chain(records.iter().map(Record::written_ns)).chain(signs);
        let ends = all.fold(None, |ends: Option<(u64, u64)>, time| match ends {
            Some((first, last)) => Some((first.min(time), last.max(time))),
            None => Some((time, time)),
        });
        let (first_ns, last_ns) = ends.unwrap_or_default();
        Self { first_ns, last_ns }
    }
}

/// From when on a span is known.
pub(super) fn known_ns(row: &Row) -> u64 {
    row.start_ns.max(row.end_ns)
}

/// The requests as they were at a moment.
#[derive(Debug, Default)]
pub struct Past {
    /// The moment, nanoseconds since the epoch.
    at_ns: u64,
    /// Whether what became known later is left out; otherwise what came later is.
    looks_back: bool,
    /// The requests there were, newest first.
    keys: Vec<RequestKey>,
    /// Those whose facts were other ones when it was made; only of one that looks back.
    changed: Map<RequestKey, Facts>,
    standing: Standing,
}

impl Past {
    /// What stands still: these requests, newest first.
    pub fn still(requests: impl Iterator<Item = RequestKey>, standing: Standing, at_ns: u64) -> Self {
        Self { at_ns, standing, keys: requests.collect(), ..Self::default() }
    }

    /// What looks back, put together from its parts: requests with their facts, newest first.
    #[cfg(test)]
    pub(crate) fn back(requests: Vec<(RequestKey, Facts)>, standing: Standing, at_ns: u64) -> Self {
        let keys = requests.iter().map(|(key, _)| *key).collect();
        Self { at_ns, looks_back: true, keys, changed: requests.into_iter().collect(), standing }
    }

    /// The moment, nanoseconds since the epoch.
    pub fn at_ns(&self) -> u64 {
        self.at_ns
    }

    /// Whether it looks back, and does not only stand still.
    pub fn looks_back(&self) -> bool {
        self.looks_back
    }

    /// The requests there were, newest first.
    pub fn keys(&self) -> &[RequestKey] {
        &self.keys
    }

    /// How they stood.
    pub fn standing(&self) -> Standing {
        self.standing
    }

    /// Whether a request was there.
    pub fn has(&self, key: RequestKey) -> bool {
        self.keys.binary_search_by(|other| key.cmp(other)).is_ok()
    }

    /// Facts that are not those of now.
    pub fn changed(&self, key: RequestKey) -> Option<&Facts> {
        self.changed.get(&key)
    }
}

impl Store {
    /// The requests as they are now, to be held.
    pub fn still(&self, now_ns: u64) -> Arc<Past> {
        Arc::new(Past::still(self.requests().rev().map(|(key, _)| key), self.standing(), now_ns))
    }

    /// The requests as they were at a moment. Costs a look at every request, and assembling those that were in flight.
    pub fn past(&self, at_ns: u64) -> Arc<Past> {
        let mut past = Past { at_ns, looks_back: true, ..Past::default() };
        for (key, request) in self.requests.iter().rev() {
            if !request.counted || request.heard.first_ns > at_ns {
                continue;
            }
            past.keys.push(*key);
            let was_waited_for = !request.facts.has_root && self.waited_for_more(request, request.heard.last_ns, at_ns);
            if request.heard.last_ns <= at_ns && request.facts.state == State::Ended && !was_waited_for {
                count(&mut past.standing, &request.facts, true);
            } else {
                let facts = self.facts_at(*key, request, at_ns);
                count(&mut past.standing, &facts, true);
                past.changed.insert(*key, facts);
            }
        }
        Arc::new(past)
    }

    /// Whether more of a request was waited for at a moment, when it was last heard of then. Back in time everything came
    /// when it ended.
    fn waited_for_more(&self, request: &Request, last_ns: u64, at_ns: u64) -> bool {
        !self.whole && request.arrived_ns > 0 && at_ns.saturating_sub(last_ns) < GRACE_NS
    }

    /// When anything that is held was heard of first and last, nanoseconds since the epoch; `None` when nothing is.
    pub fn heard(&self) -> Option<(u64, u64)> {
        let heard = self.requests.values().filter(|request| request.counted).map(|request| request.heard);
        let ends = heard.map(|heard| (heard.first_ns, heard.last_ns));
        ends.reduce(|(first, last), (other_first, other_last)| (first.min(other_first), last.max(other_last)))
    }

    /// The whole view of a request as far as it was there, but with the facts of now; follows requests that were joined into others.
    pub fn request_at(&self, key: RequestKey, past: &Past) -> Option<RequestView<'_>> {
        let key = self.resolve(key)?;
        let request = self.requests.get(&key)?;
        Some(view(&self.tables, &self.traces, key, request, &request.facts, usize::MAX, self.until(past)))
    }

    /// The facts of what was known of a request by a moment.
    fn facts_at(&self, key: RequestKey, request: &Request, at_ns: u64) -> Facts {
        let until = Until::Time(at_ns);
        let spans = spans_of(&self.tables, &self.traces, key, request, MOST_READ, until);
        let records: Vec<Record> =
            request.records.iter().filter(|record| until.knows_record(record)).cloned().collect();
        let told = self.told_of(key, request).by(at_ns);
        let last_ns = Heard::of(&spans, &records, Some(&told)).last_ns;
        assemble(&Input {
            request_id: &request.rid,
            spans: &spans,
            records: &records,
            told: &told,
            lost: at_ns.saturating_sub(last_ns) >= self.limits.lost_after_ns,
            arriving: self.waited_for_more(request, last_ns, at_ns),
            marks: self.marks_of(request, self.spans_in(key, request)),
        })
    }
}
