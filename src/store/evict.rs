//! Staying within the limit: whole requests go, oldest finished first, never the one being looked at.

use super::Store;
use super::Tables;
use super::rows::Row;
use super::settle::account;
use crate::lifecycle::body::Reader;
use crate::lifecycle::facts::Marks;
use crate::lifecycle::request::RequestKey;

/// How many spans are given back at once, about: a tenth of a millisecond each hundred.
const SLICE: usize = 2048;

impl Store {
    /// Lets go until everything held fits the limit: control traffic, then tool records, then ended requests in the order
    /// they ended, then the oldest that have not.
    pub(super) fn evict(&mut self) {
        self.full = false;
        // What the hot path remembers only saves time: it goes before any request when it takes more than its share.
        if self.memory() > self.limits.memory && self.memory.size() > self.limits.memory / 16 {
            self.memory.forget(&mut self.tables);
        }
        let mut spared = None;
        while self.memory() > self.limits.memory {
            if self.bury() {
                // Room was made without anything more going.
            } else if let Some(slot) = self.control.pop_front() {
                if self.traces[slot as usize].grouped_as_control && self.traces[slot as usize].groups().is_empty() {
                    self.free_trace(slot as usize);
                }
            } else if let Some(size) = self.loose.drop_first() {
                self.accounted -= size;
                self.counts.records_evicted += 1;
            } else if let Some(key) = self.ended.pop_front() {
                if Some(key) == self.pinned {
                    spared = Some(key);
                } else if self.requests.contains_key(&key) {
                    self.evict_request(key);
                }
            } else if let Some(key) = self.requests.keys().copied().find(|key| Some(*key) != self.pinned) {
                self.evict_request(key);
            } else {
                // What is left is being looked at, or only remembered.
                self.memory.forget(&mut self.tables);
                self.gone.forget();
                self.checked.forget_all();
                self.full = self.memory() > self.limits.memory;
                break;
            }
            self.version += 1;
        }
        if let Some(key) = spared {
            self.ended.push_front(key);
        }
    }

    pub(super) fn evict_request(&mut self, key: RequestKey) {
        self.last_word(key);
        let Some(gone) = self.take_request(key, None) else { return };
        self.keep_violations(key, &gone);
        self.counts.requests_evicted += 1;
        self.counts.records_evicted += gone.records.len() as u64;
        // By clocks that run ahead nothing begins later than it is heard of. An unlikely time is none to go by.
        let is_odd = gone.facts.marks.has(Marks::BAD_TIME);
        let begun_ns = if is_odd { 0 } else { gone.facts.start_ns.min(gone.news_ns()) };
        self.gone.note_rid(&gone.rid, gone.traces.is_empty(), begun_ns);
        for slot in gone.traces.iter() {
            let trace = &self.traces[slot];
            if trace.count_of(key) >= trace.grouped && !trace.tells_of_others(key) {
                self.gone.note_trace(trace.id, begun_ns);
                self.free_trace(slot);
                continue;
            }
            let Self { traces, tables, counts, .. } = self;
            let trace = &mut traces[slot];
            trace.remove_request(key, |row, body| {
                release(tables, row, body);
                counts.spans_evicted += 1;
            });
            self.account_trace(slot);
        }
    }

    /// Gives back everything a trace holds; a large one bit by bit, so that nobody waits for it.
    fn free_trace(&mut self, slot: usize) {
        let Some(mut trace) = self.traces.take(slot) else { return };
        self.counts.spans_evicted += trace.len() as u64;
        if trace.len() > SLICE {
            trace.open();
            trace.forget_all_but_rows();
            account(&mut trace, &mut self.accounted);
            self.doomed.push(*trace);
            return;
        }
        let rows = trace.rows();
        for at in trace.live(&rows) {
            release(&mut self.tables, &rows[at], trace.body(&rows, at));
        }
        self.accounted -= trace.accounted;
    }

    /// Gives back a slice of a doomed trace; says whether there was one.
    fn bury(&mut self) -> bool {
        let Some(mut trace) = self.doomed.pop() else { return false };
        let from = trace.rows.len().saturating_sub(SLICE);
        for at in trace.live(&trace.rows[from..]) {
            release(&mut self.tables, &trace.rows[from + at], trace.body(&trace.rows, from + at));
        }
        trace.truncate(from);
        account(&mut trace, &mut self.accounted);
        if from > 0 {
            self.doomed.push(trace);
        } else {
            self.accounted -= trace.accounted;
        }
        true
    }
}

fn release(tables: &mut Tables, row: &Row, body: &[u8]) {
    let Tables { attrs, texts, contexts } = tables;
    texts.release(row.name);
    contexts.release(row.resource);
    contexts.release(row.scope);
    Reader::new(body).pieces(|piece| attrs.release(piece), |piece| texts.release(piece));
}
