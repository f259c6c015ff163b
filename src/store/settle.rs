//! Bringing facts, standing and accounts up to date with what changed.

use super::check::GRACE_NS;
use super::gone::Gone;
use super::group::LARGE;
use super::held::Until;
use super::past::Heard;
use super::read::spans_of;
use super::rollup::Rollup;
use super::trace::Trace;
use super::{Request, Rid, Standing, Store, Traces, Twins};
use crate::lifecycle::account::{chunk, chunk_of, entry};
use crate::lifecycle::assemble::{Input, Told, assemble};
use crate::lifecycle::facts::{Facts, Marks, State};
use crate::lifecycle::record::Record;
use crate::lifecycle::request::RequestKey;
use crate::lifecycle::stage::Outcome;

/// From how many spans the facts of a request are read, at most, beside those that tell of it as a whole: nobody is kept
/// waiting by one trace that has gone wrong.
pub(super) const MOST_READ: usize = 16_384;

/// What began longer before anybody listened is taken for the work of a clock that is behind.
const LONGEST_NS: u64 = 600_000_000_000;

/// How often requests in flight are looked at for having gone silent.
pub(super) const LOST_CHECK_NS: u64 = 1_000_000_000;

impl Store {
    /// Assembles the facts of every request that changed. `all` leaves no silent one for the next look at them.
    pub(super) fn settle(&mut self, now_ns: u64, all: bool) {
        self.place_moved_records(now_ns);
        if all || now_ns.abs_diff(self.lost_checked_ns) >= LOST_CHECK_NS {
            self.find_lost(now_ns);
            self.find_ended(now_ns, all);
        }
        let dirty = std::mem::take(&mut self.dirty_requests);
        self.version += u64::from(!dirty.is_empty());
        for key in dirty {
            self.settle_request(key, now_ns, all);
        }
    }

    /// `all`: nothing more is expected of it.
    fn settle_request(&mut self, key: RequestKey, now_ns: u64, all: bool) {
        let Some(request) = self.requests.get(&key) else { return };
        let spans = self.spans_in(key, request);
        let marks = self.marks_of(request, spans);
        let told = self.told_of(key, request);
        let Some(request) = self.requests.get_mut(&key) else { return };
        request.dirty = false;
        let read = spans_of(&self.tables, &self.traces, key, request, MOST_READ, Until::Now);
        request.heard = Heard::of(&read, &request.records, Some(&told));
        let lost = now_ns.saturating_sub(request.news_ns()) >= self.limits.lost_after_ns;
        let arriving = !all && !self.whole && is_arriving(request, now_ns);
        let mut facts = assemble(&Input {
            request_id: &request.rid,
            spans: &read,
            records: &request.records,
            told: &told,
            lost,
            arriving,
            marks,
        });
        drop(read);
        facts.spans = spans as u32;
        // Once known it stays: what went is remembered for a while only.
        if !request.part.has(Marks::LATE_PART) && is_late_part(&self.gone, &self.traces, request, &facts) {
            request.part.set(Marks::LATE_PART);
        }
        if began_before(self.listening_ns, request, &facts) {
            request.part.set(Marks::EARLY);
        }
        facts.marks.set(request.part);
        let was = request.counted.then(|| std::mem::take(&mut request.facts));
        request.facts = facts;
        request.counted = true;
        let size = size_of_request(request);
        self.accounted = self.accounted + size - request.accounted;
        request.accounted = size;
        self.lens.change(key, was.as_ref(), &self.tables, &self.traces, request);
        let is = &request.facts;
        if let Some(was) = &was {
            count(&mut self.standing, was, false);
        }
        count(&mut self.standing, is, true);
        let (was_open, is_open) = (was.as_ref().is_none_or(|was| was.state != State::Ended), is.state != State::Ended);
        match is.state {
            State::InFlight => _ = self.in_flight.insert(key),
            _ => _ = self.in_flight.remove(&key),
        }
        match is.state {
            State::Ending => _ = self.ending.insert(key),
            _ => _ = self.ending.remove(&key),
        }
        if was_open && !is_open {
            self.ended.push_back(key);
        }
        if !is_open {
            for slot in request.traces.iter() {
                let trace = &mut self.traces[slot];
                if trace.rows.len() <= LARGE && !trace.is_shared() {
                    trace.pack();
                }
            }
        }
        for slot in request.traces.iter() {
            account(&mut self.traces[slot], &mut self.accounted);
        }
        self.plan_checks(key, now_ns);
    }

    /// How many spans of a request are held.
    pub(super) fn spans_in(&self, key: RequestKey, request: &Request) -> usize {
        request.traces.iter().map(|slot| self.traces[slot].count_of(key)).sum()
    }

    /// The marks that only the store can know of a request with so many spans.
    pub(super) fn marks_of(&self, request: &Request, spans: usize) -> Marks {
        let mut marks = request.part;
        for (set, mark) in [
            (spans > MOST_READ, Marks::CUT_SHORT),
            (request.inferred && request.traces.len() > 1, Marks::INFERRED_JOIN),
            (self.by_rid.get(&request.rid).is_some_and(|keys| keys.len() > 1), Marks::SHARED_ID),
            (request.traces.iter().any(|slot| self.traces[slot].is_shared()), Marks::SHARED_TRACE),
        ] {
            if set {
                marks.set(mark);
            }
        }
        marks
    }

    /// Requests in flight that have been silent for too long count as lost.
    fn find_lost(&mut self, now_ns: u64) {
        self.lost_checked_ns = now_ns;
        let limit = self.limits.lost_after_ns;
        let silent = |key: &&RequestKey| {
            self.requests.get(key).is_some_and(|request| now_ns.saturating_sub(request.news_ns()) >= limit)
        };
        let lost: Vec<RequestKey> = self.in_flight.iter().filter(silent).copied().collect();
        for key in lost {
            self.touch_request(key);
        }
    }

    /// Requests of which all has come that may come, or that is waited for, have ended.
    fn find_ended(&mut self, now_ns: u64, all: bool) {
        let whole =
            |key: &&RequestKey| all || self.requests.get(key).is_some_and(|request| !is_arriving(request, now_ns));
        let ended: Vec<RequestKey> = self.ending.iter().filter(whole).copied().collect();
        for key in ended {
            self.touch_request(key);
        }
    }

    /// Takes a request out of the standing: it goes, or was joined into another.
    pub(super) fn uncount(&mut self, key: RequestKey, request: &Request, is_joined: bool) {
        if request.counted {
            count(&mut self.standing, &request.facts, false);
            self.lens.leave(key, request, is_joined);
        }
        self.in_flight.remove(&key);
        self.ending.remove(&key);
    }

    pub(super) fn account_trace(&mut self, slot: usize) {
        account(&mut self.traces[slot], &mut self.accounted);
    }
}

/// Whether more of a request may be on its way; of what nobody noted the arrival of, all is there.
fn is_arriving(request: &Request, now_ns: u64) -> bool {
    request.arrived_ns > 0 && now_ns.saturating_sub(request.arrived_ns) < GRACE_NS
}

/// Whether a request, of which these are the new facts, is what came of one after it had been let go: by its traces, by its
/// id where no trace can tell, or by its time when it was not known before.
fn is_late_part(gone: &Gone, traces: &Traces, request: &Request, facts: &Facts) -> bool {
    let mut slots = request.traces.iter();
    let by_id = || request.traces.iter().all(|slot| traces[slot].is_shared()) && gone.has_rid(&request.rid, false);
    let by_time = || !request.counted && gone.may_have(facts.start_ns);
    slots.any(|slot| gone.has_trace(traces[slot].id)) || gone.has_rid(&request.rid, true) || by_id() || by_time()
}

/// Whether a request, of which these are the new facts, began before anybody listened. Its own times alone do not say so: a
/// clock that is behind would have all begin before. So something of it must have come soon, or have ended since.
fn began_before(listening_ns: u64, request: &Request, facts: &Facts) -> bool {
    let before = facts.start_ns > 0 && facts.start_ns < listening_ns && request.arrived_ns >= listening_ns;
    let is_soon = request.arrived_ns < listening_ns.saturating_add(GRACE_NS);
    before && listening_ns - facts.start_ns <= LONGEST_NS && (is_soon || request.heard.last_ns >= listening_ns)
}

/// Brings what is accounted up to date with a trace.
pub(super) fn account(trace: &mut Trace, accounted: &mut usize) {
    let size = trace.size();
    *accounted = *accounted + size - trace.accounted;
    trace.accounted = size;
}

/// What a request costs in the maps that know it by its key: the store's own, which is a little more than half full as
/// keys come in order, and those of requests in flight, ended, and shown.
const PLACES: usize = 2 * size_of::<(RequestKey, Box<Request>)>() + 3 * size_of::<RequestKey>();

/// The bytes of a request beside its traces: itself, its place in the maps, its id, its facts and records.
fn size_of_request(request: &Request) -> usize {
    let id = if request.rid.is_empty() { 0 } else { chunk(16 + request.rid.len()) + entry::<(Rid, Twins)>() };
    let told = request.told.as_ref().map_or(0, |told| chunk_of::<Told>(1) + told.heap_size());
    let aliases = request.aliases.len() * entry::<(RequestKey, RequestKey)>();
    chunk_of::<Request>(1)
        + PLACES
        + id
        + told
        + aliases
        + request.traces.heap_size()
        + chunk_of::<RequestKey>(request.aliases.capacity())
        + chunk_of::<Record>(request.records.capacity())
        + request.facts.heap_size()
        + Rollup::size_for(&request.facts)
        + request.asked.size()
        + request.records.iter().map(Record::heap_size).sum::<usize>()
}

pub(super) fn count(standing: &mut Standing, facts: &Facts, add: bool) {
    let step = |count: &mut u64| *count = if add { *count + 1 } else { *count - 1 };
    step(&mut standing.total);
    match facts.outcome.and_then(|outcome| Outcome::ALL.iter().position(|other| *other == outcome)) {
        Some(at) => step(&mut standing.by_outcome[at]),
        None => step(&mut standing.without_root),
    }
    match facts.state {
        State::InFlight => step(&mut standing.in_flight),
        State::Lost => step(&mut standing.lost),
        State::Ending => step(&mut standing.ending),
        State::Ended => {}
    }
}
