//! Which requests are one: fragments, records and logs that meet by request id alone.
//!
//! A fragment without an `http-request` or root joins the request with its id that began last before it; two requests that
//! both have one are two, however equal their public ids (spec lifecycle-spans §4).

use super::group::Part;
use super::slots::Slots;
use super::trace::Group;
use super::{Map, Request, Rid, Set, Store, Twins};
use crate::lifecycle::assemble::Told;
use crate::lifecycle::batch::Sign;
use crate::lifecycle::facts::{Facts, Marks};
use crate::lifecycle::record::{Record, RecordBody};
use crate::lifecycle::request::RequestKey;
use crate::lifecycle::work;

/// Records carry milliseconds; a request that began within this after one may still be its own.
const SLACK_NS: u64 = 2_000_000;

/// The most requests with one id that fragments and records are told apart between. A client that gives the same id to
/// all it sends has no ids; the newest are then the likeliest.
const MOST_TWINS: usize = 64;

/// The most traces that are joined by an id alone; a fragment beyond begins another request with that id.
const MOST_JOINED: usize = 256;

/// The most records of one request; further ones begin another request with that id.
const MOST_RECORDS: usize = 1024;

/// The most event types counted by name.
const MOST_TYPES: usize = 64;
/// What further ones are counted as.
const OTHER: &str = "other";

impl Store {
    /// The request that a part of a trace belongs to, made when there is none. `old` are the trace's groups so far by
    /// their ids, `taken` the requests of the parts before this one.
    pub(super) fn request_for(
        &mut self,
        part: &Part,
        slot: usize,
        old: &Map<&str, &Group>,
        taken: &Set<RequestKey>,
        now_ns: u64,
    ) -> RequestKey {
        let alive = |rid: &str| {
            let key = old.get(rid)?.key;
            (self.requests.contains_key(&key) && !taken.contains(&key)).then_some(key)
        };
        let kept = alive(&part.rid).or_else(|| alive(""));
        if part.rid.is_empty() {
            return kept.unwrap_or_else(|| self.new_request(Rid::default(), now_ns));
        }
        if let Some(kept) = kept {
            self.name_request(kept, &part.rid);
        }
        let others: &[RequestKey] = self.by_rid.get(&part.rid).map_or(&[], Twins::as_slice);
        // Nearly always: the request of this trace, and no other has its id.
        if let (Some(kept), [only]) = (kept, others)
            && *only == kept
            && !(part.anchored && self.anchor_start(kept, Some(slot)).is_some())
        {
            return kept;
        }
        let others = others.to_vec();
        let (anchored, loose): (Vec<_>, Vec<_>) = others
            .into_iter()
            .filter(|key| !taken.contains(key))
            .partition(|key| self.anchor_start(*key, Some(slot)).is_some());
        if !part.anchored {
            let has_room = |key: &RequestKey| {
                let traces = self.requests.get(key).map(|request| &request.traces);
                traces.is_some_and(|traces| traces.len() < MOST_JOINED || traces.has(slot))
            };
            let nearest = self.nearest(&anchored, part.start_ns).filter(has_room);
            let chosen = nearest.or_else(|| loose.iter().copied().find(has_room));
            let chosen = chosen.unwrap_or_else(|| self.new_request(part.rid.clone(), now_ns));
            return match kept {
                Some(kept) if kept != chosen && !self.has_others(kept, slot) => self.absorb(kept, chosen),
                _ => chosen,
            };
        }
        let own = kept.filter(|key| !anchored.contains(key));
        let key = match (own, loose.iter().copied().find(|key| Some(*key) != own)) {
            (Some(own), Some(other)) => self.absorb(other, own),
            (Some(key), None) | (None, Some(key)) => key,
            (None, None) => self.new_request(part.rid.clone(), now_ns),
        };
        let known = old.get(&*part.rid).is_some_and(|group| group.anchored && group.start_ns == part.start_ns);
        if !known || own != Some(key) {
            self.reconsider(key, part);
        }
        key
    }

    /// Whether a request has more than the rows of one trace.
    fn has_others(&self, key: RequestKey, slot: usize) -> bool {
        self.requests.get(&key).is_some_and(|request| request.traces.has_others(slot))
    }

    /// When the request's `http-request` or root began, if it has one outside the trace `except`.
    fn anchor_start(&self, key: RequestKey, except: Option<usize>) -> Option<u64> {
        let request = self.requests.get(&key)?;
        let slots = request.traces.anchored().filter(|slot| Some(*slot) != except);
        slots
            .flat_map(|slot| self.traces[slot].groups_of(key))
            .inspect(|_| work::step())
            .filter(|group| group.anchored)
            .map(|group| group.start_ns)
            .min()
    }

    /// Of these requests the one that began last before `time_ns`, else the first to begin.
    fn nearest(&self, keys: &[RequestKey], time_ns: u64) -> Option<RequestKey> {
        let begun = |key: &RequestKey| self.anchor_start(*key, None).unwrap_or(0);
        let before =
            keys.iter().filter(|key| begun(key) <= time_ns.saturating_add(SLACK_NS)).max_by_key(|key| begun(key));
        before.or_else(|| keys.iter().min_by_key(|key| begun(key))).copied()
    }

    fn new_request(&mut self, rid: Rid, now_ns: u64) -> RequestKey {
        let key = RequestKey(self.next_key);
        self.next_key += 1;
        self.list(key, &rid);
        let request = Request {
            rid,
            traces: Slots::default(),
            records: super::records::Records::default(),
            told: None,
            facts: Facts::default(),
            asked: super::check::Asked::default(),
            aliases: Vec::new(),
            inferred: false,
            part: Marks::default(),
            dirty: false,
            counted: false,
            arrived_ns: now_ns,
            heard: super::past::Heard::default(),
            accounted: 0,
        };
        self.requests.insert(key, Box::new(request));
        key
    }

    /// Gives a request its id, or another one when its root says so.
    fn name_request(&mut self, key: RequestKey, rid: &Rid) {
        let Some(request) = self.requests.get_mut(&key).filter(|request| request.rid != *rid) else { return };
        let old = std::mem::replace(&mut request.rid, rid.clone());
        self.unlist(key, &old);
        self.list(key, rid);
    }

    fn list(&mut self, key: RequestKey, rid: &Rid) {
        if rid.is_empty() {
            return;
        }
        let keys = self.by_rid.entry(rid.clone()).or_default();
        if keys.len() >= MOST_TWINS {
            keys.remove(0);
        }
        keys.push(key);
        // From the second on they know of each other.
        if let [first, _] = keys[..] {
            self.touch_request(first);
        }
    }

    fn unlist(&mut self, key: RequestKey, rid: &Rid) {
        if let Some(keys) = self.by_rid.get_mut(rid) {
            keys.retain(|other| *other != key);
            if keys.is_empty() {
                self.by_rid.remove(rid);
            }
        }
    }

    /// Makes two requests one, under the older key.
    fn absorb(&mut self, one: RequestKey, other: RequestKey) -> RequestKey {
        let (into, from) = (one.min(other), one.max(other));
        let Some(mut gone) = self.take_request(from, Some(into)) else { return into };
        self.uncount_answers(&gone);
        for slot in gone.traces.iter() {
            self.traces[slot].rename_groups(from, into);
        }
        let mut duplicates = Vec::new();
        if let Some(request) = self.requests.get_mut(&into) {
            request.traces.append(&gone.traces);
            request.inferred |= request.traces.len() > 1;
            request.part.set(gone.part);
            duplicates = request.records.merge(std::mem::take(&mut gone.records).into_vec());
            match (&mut request.told, gone.told.take()) {
                (Some(told), Some(other)) => told.merge(*other),
                (told, other) => *told = told.take().or(other),
            }
        }
        self.recount_duplicates(duplicates);
        self.touch_request(into);
        into
    }

    /// Counts records as duplicates that turned out to be some when their requests became one.
    fn recount_duplicates(&mut self, records: Vec<Record>) {
        for record in records {
            let types = &mut self.counts.records_by_type;
            let name = if types.contains_key(&record.event_type) { record.event_type.as_str() } else { OTHER };
            if let Some(count) = types.get_mut(name) {
                *count -= 1;
            }
            types.retain(|_, count| *count > 0);
            self.counts.records_duplicate += 1;
        }
    }

    /// Lets a request go without eviction: it was joined into `heir`, or nothing of it is left.
    pub(super) fn forget_request(&mut self, key: RequestKey, heir: Option<RequestKey>) {
        if let Some(gone) = self.take_request(key, heir) {
            self.uncount_answers(&gone);
        }
    }

    /// Takes a request out of every index. Its rows stay where they are.
    pub(super) fn take_request(&mut self, key: RequestKey, heir: Option<RequestKey>) -> Option<Box<Request>> {
        let mut gone = self.requests.remove(&key)?;
        self.uncount(key, &gone, heir.is_some());
        self.accounted -= gone.accounted;
        self.unlist(key, &gone.rid);
        self.checked.run.forget(key, &gone.rid);
        let aliases = std::mem::take(&mut gone.aliases);
        for alias in aliases.into_iter().chain([key]) {
            match heir.and_then(|heir| Some((heir, self.requests.get_mut(&heir)?))) {
                Some((heir, request)) => {
                    self.aliases.insert(alias, heir);
                    request.aliases.push(alias);
                }
                None => {
                    self.aliases.remove(&alias);
                }
            }
        }
        if self.pinned == Some(key) {
            self.pinned = heir;
        }
        Some(gone)
    }

    /// Another request with the id of this part has begun: fragments and records of the others that are nearer to it move.
    fn reconsider(&mut self, new: RequestKey, part: &Part) {
        let keys = self.by_rid.get(&part.rid).cloned().unwrap_or_default();
        for key in keys.into_iter().filter(|key| *key != new) {
            let Some(begun) = self.anchor_start(key, None) else { continue };
            // As `nearest` has it: the one that began last before, else the first to begin.
            let is_nearer = |time_ns: u64| part.start_ns <= time_ns.saturating_add(SLACK_NS) || part.start_ns < begun;
            let Some(request) = self.requests.get_mut(&key) else { continue };
            let moving = request.records.extract(|record| is_nearer(time_of(record)));
            let moved = !moving.is_empty();
            self.moved_records.extend(moving.into_iter().map(|record| (key, record)));
            for at in 0..request.traces.len() {
                let Some(slot) = self.requests.get(&key).and_then(|request| request.traces.get(at)) else { break };
                work::step();
                let is_loose = |group: &Group| !group.anchored && is_nearer(group.start_ns);
                if self.traces[slot].groups_of(key).any(is_loose) {
                    self.touch_trace(slot);
                }
            }
            if moved {
                self.touch_request(key);
            }
        }
    }

    /// Gives records that [`Store::reconsider`] took back to the requests they are nearest to.
    pub(super) fn place_moved_records(&mut self, now_ns: u64) {
        let mut placed: Map<(RequestKey, RequestKey), Vec<Record>> = Map::default();
        for (from, record) in std::mem::take(&mut self.moved_records) {
            // Its request may go by another id since its root has come; the record then stands for itself.
            let key = match self.request_of(&record) {
                Some(key) => key,
                None => self.new_request(record.request_id.as_str().into(), now_ns),
            };
            placed.entry((from, key)).or_default().push(record);
        }
        for ((_, key), records) in placed {
            if let Some(request) = self.requests.get_mut(&key) {
                let duplicates = request.records.merge(records);
                self.recount_duplicates(duplicates);
                self.touch_request(key);
            }
        }
    }

    /// The request that a record belongs to; `None` when that has as many as it may have, or there is none.
    fn request_of(&self, record: &Record) -> Option<RequestKey> {
        let has_room =
            |key: &RequestKey| self.requests.get(key).is_some_and(|request| request.records.len() < MOST_RECORDS);
        let keys = self.by_rid.get(record.request_id.as_str())?;
        let nearest = self.nearest(keys, time_of(record)).filter(has_room);
        nearest.or_else(|| keys.iter().copied().find(|key| self.anchor_start(*key, None).is_none() && has_room(key)))
    }

    /// Takes in a record: joined to its request, which it may be the first sign of.
    /// `times` says how often it was written in this delivery so far: what comes again is a duplicate, a record that was
    /// written twice is kept twice. One of no request is kept once: nothing asks how often it was written.
    pub(super) fn take_record(&mut self, record: &Record, times: usize, now_ns: u64) {
        if record.request_id.is_empty() {
            if self.loose.has(record) {
                self.counts.records_duplicate += 1;
                return;
            }
            if matches!(record.body, RecordBody::End(_)) {
                // Whose it is nobody can say; it may be the one that is missing.
                self.checked.run.note_lost_records();
            }
            self.count_record(record);
            self.accounted += self.loose.push(record.clone());
            return;
        }
        let key = match self.request_of(record) {
            Some(key) => key,
            None => self.new_request(record.request_id.as_str().into(), now_ns),
        };
        let Some(request) = self.requests.get_mut(&key) else { return };
        if request.records.count(record) >= times {
            self.counts.records_duplicate += 1;
            return;
        }
        request.records.insert(Record { hold: self.holds, ..record.clone() });
        request.arrived_ns = request.arrived_ns.max(now_ns);
        self.count_record(record);
        self.touch_request(key);
    }

    fn count_record(&mut self, record: &Record) {
        let types = &mut self.counts.records_by_type;
        let known = types.contains_key(&record.event_type) || types.len() < MOST_TYPES;
        *types.entry(if known { record.event_type.clone() } else { OTHER.into() }).or_default() += 1;
    }

    /// Takes in what a frontend's log tells: of the trace it names, whose requests it then goes with; without one, of the
    /// request with its id that began last before it.
    pub(super) fn take_sign(&mut self, sign: &Sign, now_ns: u64) {
        self.counts.signs += 1;
        let listed = self.by_rid.get_key_value(sign.request_id.as_str());
        let rid = listed.map_or_else(|| sign.request_id.as_str().into(), |(rid, _)| rid.clone());
        if let Some(trace) = sign.trace {
            let slot = self.traces.slot(trace);
            if self.traces[slot].hear(&rid, sign) {
                self.traces[slot].heard_ns = self.traces[slot].heard_ns.max(now_ns);
                self.touch_trace(slot);
                return;
            }
        }
        let known = self.by_rid.get(&rid).and_then(|keys| self.nearest(keys, sign.time_ns));
        let key = known.unwrap_or_else(|| self.new_request(rid, now_ns));
        if let Some(request) = self.requests.get_mut(&key) {
            request.told.get_or_insert_default().hear(sign);
            request.arrived_ns = request.arrived_ns.max(now_ns);
        }
        self.touch_request(key);
    }

    /// What logs have told of a request.
    pub(super) fn told_of(&self, key: RequestKey, request: &Request) -> Told {
        let mut told = request.told.as_deref().cloned().unwrap_or_default();
        let of_traces = request.traces.iter().flat_map(|slot| self.traces[slot].told_of(key));
        of_traces.for_each(|more| told.merge(more.clone()));
        told
    }
}

/// The time by which a record is nearest to a request: when that was received, else when the record was written.
fn time_of(record: &Record) -> u64 {
    let received = match &record.body {
        RecordBody::End(end) => end.request_received_ms,
        _ => None,
    };
    received.unwrap_or(record.time_ms).saturating_mul(1_000_000)
}
