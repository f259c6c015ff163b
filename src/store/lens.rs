//! A lens: the requests that match a filter within a window of time, and their rollup, kept up to date as facts change.
//!
//! A new filter is answered from the newest request backwards, a slice at each refresh, so the first screen never waits
//! for the whole store; [`Lens::is_whole`] says when nothing is left to ask. Owns: which requests are in the set. Keeps
//! out: what the filter means (`query`), what is counted (`rollup`).

use std::collections::BTreeSet;
use std::sync::Arc;

use super::asking::{Asked, Asking, Slice};
use super::held::{Held, Until};
use super::rollup::Rollup;
use super::traces::Traces;
use super::{Map, Past, Request, Store, Tables, read};
use crate::checks::Answers;
use crate::heap;
use crate::lifecycle::facts::Facts;
use crate::lifecycle::request::RequestKey;
use crate::query::Query;

/// How many requests may differ when a held lens is moved: taking one out and in again costs up to a hundred microseconds
/// among a hundred thousand, and a key is to be answered within 300 ms.
const MOST_TURNED: usize = 2_500;

/// The requests that match a filter within a window.
#[derive(Default)]
pub struct Lens {
    query: Query,
    /// Length of the window, nanoseconds; `None` for everything.
    window_ns: Option<u64>,
    /// The end of the window, nanoseconds since the epoch.
    until_ns: u64,
    rollup: Rollup,
    members: BTreeSet<RequestKey>,
    passing: Passing,
    /// Requests with this key and newer ones have been asked; `None` when all have.
    asked_from: Option<RequestKey>,
    held: Option<Held>,
}

/// Members by the time that the window goes by; only while there is one.
#[derive(Default)]
struct Passing {
    by_time: BTreeSet<(u64, RequestKey)>,
    times: Map<RequestKey, u64>,
}

impl Passing {
    fn note(&mut self, key: RequestKey, facts: &Facts) {
        if facts.end_ns.is_some() {
            let time = time_of(facts);
            self.times.insert(key, time);
            self.by_time.insert((time, key));
        }
    }

    fn forget(&mut self, key: RequestKey) {
        if let Some(time) = self.times.remove(&key) {
            self.by_time.remove(&(time, key));
        }
    }

    /// Takes out the first that a window from this moment on has gone by.
    fn pop_before(&mut self, from_ns: u64) -> Option<RequestKey> {
        let (_, key) = self.by_time.first().copied().filter(|(time, _)| *time <= from_ns)?;
        self.forget(key);
        Some(key)
    }
}

/// The time that a window goes by: the end, or while there is none the start.
pub fn time_of(facts: &Facts) -> u64 {
    facts.end_ns.unwrap_or(facts.start_ns)
}

/// Whether a request lies within a window of this length that ends at `until_ns`; without a length all do. What is in
/// flight is happening now, however long ago it began.
pub fn is_within(facts: &Facts, window_ns: Option<u64>, until_ns: u64) -> bool {
    window_ns.is_none_or(|window_ns| facts.end_ns.is_none() || time_of(facts).saturating_add(window_ns) > until_ns)
}

impl Lens {
    /// The numbers of the set.
    pub fn rollup(&self) -> &Rollup {
        &self.rollup
    }

    /// The requests of the set, oldest first.
    pub fn members(&self) -> impl DoubleEndedIterator<Item = RequestKey> + '_ {
        self.members.iter().copied()
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.members.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.members.is_empty()
    }

    /// Whether a request is in the set.
    pub fn has(&self, key: RequestKey) -> bool {
        self.members.contains(&key)
    }

    /// Whether every request held has been asked.
    pub fn is_whole(&self) -> bool {
        self.asked_from.is_none()
    }

    /// The filter.
    pub fn query(&self) -> &Query {
        &self.query
    }

    /// The window's length, nanoseconds.
    pub fn window_ns(&self) -> Option<u64> {
        self.window_ns
    }

    /// The window's end, nanoseconds since the epoch.
    pub fn until_ns(&self) -> u64 {
        self.until_ns
    }

    /// What it is held at.
    pub(super) fn held(&self) -> Option<&Held> {
        self.held.as_ref()
    }

    /// Whether it is held; see [`Store::hold`].
    pub fn is_held(&self) -> bool {
        self.held.is_some()
    }

    /// Whether a request of this key has been asked, so that a change of it matters.
    fn has_asked(&self, key: RequestKey) -> bool {
        self.asked_from.is_none_or(|from| key >= from)
    }

    /// A request changed: `was` are the facts by which it was counted.
    pub(super) fn change(
        &mut self,
        key: RequestKey,
        was: Option<&Facts>,
        tables: &Tables,
        traces: &Traces,
        request: &Request,
    ) {
        if let Some(held) = &mut self.held {
            if let Some(was) = was {
                held.keep(key, was, request);
            }
            return;
        }
        match was.filter(|_| self.members.contains(&key)) {
            Some(was) if self.means(key, tables, traces, request).is_meant => {
                self.rollup.change(was, &request.facts);
                self.passing.forget(key);
                if self.window_ns.is_some() {
                    self.passing.note(key, &request.facts);
                }
            }
            Some(was) => self.drop_member(key, was),
            None if self.has_asked(key) => _ = self.ask(key, tables, traces, request),
            None => {}
        }
    }

    /// What the checks say of a request is about to change.
    pub(super) fn about_to_answer(&mut self, key: RequestKey, request: &Request) {
        if let Some(held) = &mut self.held {
            held.keep(key, &request.facts, request);
        }
    }

    /// What the checks say of a request changed, its facts did not.
    pub(super) fn answered(&mut self, key: RequestKey, tables: &Tables, traces: &Traces, request: &Request) {
        if self.query.needs_spans() && self.held.is_none() {
            self.change(key, Some(&request.facts), tables, traces, request);
        }
    }

    /// A request goes: for good, or because it was joined into another.
    pub(super) fn leave(&mut self, key: RequestKey, request: &Request, is_joined: bool) {
        match &mut self.held {
            Some(held) => {
                held.is_worn |= key < held.before;
                if is_joined { held.keep(key, &request.facts, request) } else { held.forget(key) }
            }
            None => self.drop_member(key, &request.facts),
        }
    }

    fn drop_member(&mut self, key: RequestKey, facts: &Facts) {
        if self.members.remove(&key) {
            self.rollup.remove(facts);
            self.passing.forget(key);
        }
    }

    /// Whether window and filter mean a request.
    fn means(&self, key: RequestKey, tables: &Tables, traces: &Traces, request: &Request) -> Asked {
        match facts_of(&self.held, key, request) {
            Some(facts) if is_within(facts, self.window_ns, self.until_ns) => {
                self.put(&self.query, facts, key, tables, traces, request)
            }
            _ => Asked::default(),
        }
    }

    /// Asks a request of these facts whether a filter means it.
    fn put(
        &self,
        query: &Query,
        facts: &Facts,
        key: RequestKey,
        tables: &Tables,
        traces: &Traces,
        request: &Request,
    ) -> Asked {
        let until = self.held.as_ref().map_or(Until::Now, Held::until);
        let make = || Some(read::view(tables, traces, key, request, facts, usize::MAX, until));
        let asking = Asking::new(make, answers_of(&self.held, key, request));
        let is_meant = query.matches(facts, &asking);
        Asked { is_meant, looks: asking.looks(query) }
    }

    /// Takes a request in if it is meant and not in already; says what came of it.
    fn ask(&mut self, key: RequestKey, tables: &Tables, traces: &Traces, request: &Request) -> Asked {
        let asked = self.means(key, tables, traces, request);
        let joins = asked.is_meant && self.members.insert(key);
        if let Some(facts) = facts_of(&self.held, key, request).filter(|_| joins) {
            self.rollup.add(facts);
            if self.window_ns.is_some() {
                self.passing.note(key, facts);
            }
        }
        asked
    }
}

/// The facts by which a request was seen before a lens was moved: as it was held then, or as it is.
fn seen_before<'a>(was: Option<&'a Held>, key: RequestKey, request: &'a Request) -> Option<&'a Facts> {
    was.map_or(Some(&request.facts), |was| was.facts(key, request))
}

/// The facts by which a request is seen: those of when the lens was held, while it is; `None` when it was not there.
fn facts_of<'a>(held: &'a Option<Held>, key: RequestKey, request: &'a Request) -> Option<&'a Facts> {
    held.as_ref().map_or(Some(&request.facts), |held| held.facts(key, request))
}

/// What the checks say of a request, likewise.
fn answers_of<'a>(held: &'a Option<Held>, key: RequestKey, request: &'a Request) -> Option<&'a Answers> {
    held.as_ref().map_or(request.asked.answers.as_ref(), |held| held.answers(key, request))
}

impl Store {
    /// Whether a filter means this request, as it was while it is held; it may ask for spans, records and checks.
    pub fn matches(&self, query: &Query, key: RequestKey) -> bool {
        let Some(key) = self.resolve(key) else { return false };
        let Some(request) = self.requests.get(&key) else { return false };
        let facts = facts_of(&self.lens.held, key, request);
        facts.is_some_and(|facts| self.lens.put(query, facts, key, &self.tables, &self.traces, request).is_meant)
    }

    /// The lens.
    pub fn lens(&self) -> &Lens {
        &self.lens
    }

    /// Looks through another filter and window from now on. `until_ns` is the window's end and moves on with
    /// [`Store::refresh_lens`]. Nothing happens when they are those already.
    pub fn look(&mut self, query: &Query, window_ns: Option<u64>, until_ns: u64) {
        if self.lens.query == *query && self.lens.window_ns == window_ns && self.lens.until_ns <= until_ns {
            return;
        }
        self.lens.query = query.clone();
        (self.lens.window_ns, self.lens.until_ns) = (window_ns, until_ns);
        self.ask_anew();
        self.version += 1;
    }

    /// Holds what there is: until [`Store::release`], it looks at the requests as they were then, through whatever filter and
    /// window. What is held already is moved to where it differs.
    pub fn hold(&mut self, past: &Arc<Past>) {
        if self.held().is_some_and(|held| Arc::ptr_eq(held, past)) {
            return;
        }
        let held = self.hold_at(past);
        let (was, until_ns) = (self.lens.held.replace(held), self.lens.until_ns);
        self.lens.until_ns = past.at_ns();
        let stands_still = was.is_none() && !past.looks_back();
        if stands_still {
            return;
        }
        let is_worn = was.as_ref().is_some_and(|was| was.is_worn);
        if is_worn || self.lens.asked_from.is_some() {
            self.ask_anew();
        } else {
            self.turn(was.as_ref(), until_ns);
        }
        self.version += 1;
    }

    /// Empties the lens and asks everything again.
    fn ask_anew(&mut self) {
        let Lens { query, window_ns, until_ns, held, rollup, members, passing, .. } = std::mem::take(&mut self.lens);
        let asked_from = Some(held.as_ref().map_or(RequestKey(self.next_key), |held| held.before));
        self.lens = Lens { query, window_ns, until_ns, held, asked_from, ..Lens::default() };
        heap::give_up(members.len(), (rollup, members, passing));
    }

    /// Moves a whole lens from what it was held at, or from now, to what it is held at. Costs a look at every request, and
    /// asking those that differ; when they are too many for one frame, all are asked anew, a slice at a time.
    fn turn(&mut self, was: Option<&Held>, was_until_ns: u64) {
        let Self { lens, requests, tables, traces, .. } = self;
        let Some(held) = &lens.held else { return };
        let inside =
            |facts: Option<&Facts>, until_ns| facts.is_some_and(|facts| is_within(facts, lens.window_ns, until_ns));
        let mut turned = Vec::new();
        for (key, request) in requests.iter().filter(|(_, request)| request.counted) {
            let before = seen_before(was, *key, request);
            let after = held.facts(*key, request);
            let (was_in, is_in) = (inside(before, was_until_ns), inside(after, lens.until_ns));
            let is_same = match (before, after) {
                // What was in flight at both moments is assembled for each, and mostly the same.
                (Some(before), Some(after)) => std::ptr::eq(before, after) || before == after,
                (before, after) => before.is_none() && after.is_none(),
            };
            if !(is_same && was_in == is_in) && (was_in || is_in) {
                turned.push((*key, is_in));
                if turned.len() > MOST_TURNED {
                    return self.ask_anew();
                }
            }
        }
        let mut slice = Slice::of(&lens.query);
        for (key, is_in) in turned {
            if slice.is_long() {
                return self.ask_anew();
            }
            let Some(request) = requests.get(&key) else { continue };
            if let Some(before) = seen_before(was, key, request) {
                // Borrowed from what was held, or from the request: not from the lens.
                lens.drop_member(key, before);
            }
            if is_in {
                slice.pay(lens.ask(key, tables, traces, request));
            }
        }
    }

    /// Lets a held lens go on.
    pub fn release(&mut self) {
        if self.lens.held.take().is_some() {
            self.ask_anew();
            self.version += 1;
        }
    }

    /// Moves the window's end, and asks the next slice of requests that a new filter has not been asked of.
    pub fn refresh_lens(&mut self, until_ns: u64) {
        let Self { lens, requests, tables, traces, version, .. } = self;
        if !lens.is_held() {
            lens.until_ns = lens.until_ns.max(until_ns);
        }
        if let Some(window_ns) = lens.window_ns {
            let from = lens.until_ns.saturating_sub(window_ns);
            // While it is held its window stands still, and nothing comes here.
            while let Some(key) = lens.passing.pop_before(from) {
                if let (true, Some(request)) = (lens.members.remove(&key), requests.get(&key)) {
                    lens.rollup.remove(&request.facts);
                }
                *version += 1;
            }
        }
        let Some(from) = lens.asked_from else { return };
        let mut slice = Slice::of(&lens.query);
        lens.asked_from = None;
        for (key, request) in requests.range(..from).rev() {
            if slice.is_spent() {
                break;
            }
            slice.pay(if request.counted { lens.ask(*key, tables, traces, request) } else { Asked::default() });
            lens.asked_from = Some(*key);
        }
        // Asked to the end: nothing older is left.
        if !slice.is_spent() {
            lens.asked_from = None;
        }
        *version += 1;
    }
}
