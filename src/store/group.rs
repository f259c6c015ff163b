//! Which rows of a trace belong to which request.
//!
//! Most traces hold one request and are done in one pass. In a trace that several requests share (an agent session
//! with its own trace context), the outermost `http-request` or root above a span decides, but for a request that another
//! one makes: an `http-request` below with an id of its own decides for what is below it. A fragment without one goes by the
//! request id it carries, and one without any id to the trace's first request until its parents arrive.

use super::trace::{Group, MOST_GROUPS, Trace};
use super::{Map, Rid, Set, Store, Tables};
use crate::lifecycle::assemble::Told;
use crate::lifecycle::catalogue::Field;
use crate::lifecycle::ids::SpanId;
use crate::lifecycle::packed::Value;
use crate::lifecycle::request::RequestKey;
use crate::lifecycle::stage::Stage;

/// From how many rows on a trace is regrouped only when it has grown by an eighth or [`REGROUP_NS`] have passed.
pub(super) const LARGE: usize = 4096;

/// How long a very large trace waits at most for what came to be shown, nanoseconds.
pub(super) const REGROUP_NS: u64 = 1_000_000_000;

/// The rows of one request within a trace, before it is known which request of the store that is.
#[derive(Clone, Debug, Default)]
pub(super) struct Part {
    pub rid: Rid,
    pub anchored: bool,
    pub start_ns: u64,
    /// As in [`Group`].
    pub rows: Vec<u32>,
    pub sum: u64,
}

impl Store {
    /// Groups the rows of every trace that changed; very large traces only now and then, unless `all`.
    pub(super) fn regroup(&mut self, now_ns: u64, all: bool) {
        let mut later = Vec::new();
        // A second pass serves fragments that must move because a twin with their request id appeared.
        for _ in 0..2 {
            for slot in std::mem::take(&mut self.dirty_traces) {
                if !self.traces[slot as usize].dirty {
                    continue;
                }
                let trace = &mut self.traces[slot as usize];
                trace.open();
                let grown = trace.len() - trace.grouped.min(trace.len());
                let recent = now_ns.abs_diff(trace.grouped_ns) < REGROUP_NS;
                if !all && trace.rows.len() > LARGE && grown < trace.rows.len() / 8 && recent {
                    later.push(slot);
                } else {
                    trace.dirty = false;
                    trace.sweep();
                    trace.grouped = trace.rows.len();
                    trace.grouped_ns = now_ns;
                    self.group(slot as usize);
                }
                self.account_trace(slot as usize);
            }
        }
        self.dirty_traces.append(&mut later);
    }

    fn group(&mut self, slot: usize) {
        let trace = &mut self.traces[slot];
        // Not now: how long something has been silent does not depend on when it is looked at.
        let heard_ns = trace.heard_ns;
        let old = trace.take_groups();
        if trace.is_control(|trace, row| is_control_endpoint(&self.tables, trace, row)) {
            if trace.grouped_as_control {
                trace.pack();
                return;
            }
            trace.grouped_as_control = true;
            self.control.push_back(slot as u32);
            trace.pack();
            self.drop_groups(slot, &old, &Set::default(), None);
            return;
        }
        let parts = parts(&self.tables, trace);
        let mut former: Map<&str, &Group> = Map::default();
        old.iter().for_each(|group| _ = former.entry(&group.rid).or_insert(group));
        let mut groups: Vec<Group> = Vec::with_capacity(parts.len());
        let mut taken: Set<RequestKey> = Set::default();
        for part in parts {
            let key = self.request_for(&part, slot, &former, &taken, heard_ns);
            taken.insert(key);
            let Part { rid, anchored, start_ns, rows, sum } = part;
            groups.push(Group { rid, key, anchored, start_ns, rows, sum });
        }
        let shared = groups.len() > 1 && old.len() > 1;
        for group in &groups {
            let before = former.get(&*group.rid).filter(|before| before.key == group.key);
            if shared && before.is_some_and(|before| before.sum == group.sum) {
                continue;
            }
            if let Some(request) = self.requests.get_mut(&group.key) {
                request.traces.put(slot, group.anchored);
                request.inferred |= request.traces.len() > 1;
                request.arrived_ns = request.arrived_ns.max(heard_ns);
            }
            self.touch_request(group.key);
        }
        let heir = groups.first().map(|group| group.key);
        self.traces[slot].set_groups(groups);
        self.drop_groups(slot, &old, &taken, heir);
    }

    /// Takes the trace away from requests that are not `kept` in it; one that has nothing left goes on as `heir`.
    fn drop_groups(&mut self, slot: usize, old: &[Group], kept: &Set<RequestKey>, heir: Option<RequestKey>) {
        for group in old {
            if kept.contains(&group.key) {
                continue;
            }
            let Some(request) = self.requests.get_mut(&group.key) else { continue };
            request.traces.remove(slot);
            if request.traces.is_empty()
                && request.records.is_empty()
                && !request.told.as_ref().is_some_and(|told| told.any())
            {
                self.forget_request(group.key, heir);
            } else {
                self.touch_request(group.key);
            }
        }
    }
}

/// The parts of a trace, its rows' group numbers set to match.
fn parts(tables: &Tables, trace: &mut Trace) -> Vec<Part> {
    let mut ids: Vec<&str> = Vec::new();
    for hint in trace.hints() {
        if !ids.contains(&&*hint.rid) {
            ids.push(&hint.rid);
        }
    }
    let mut last = None;
    for row in trace.rows.iter().filter(|row| row.has_rid()) {
        if ids.len() > 1 {
            break;
        }
        if last.replace(row.rid) == Some(row.rid) {
            continue;
        }
        if let Some(id) = tables.rid(row)
            && !ids.contains(&id)
        {
            ids.push(id);
        }
    }
    if ids.len() > 1 {
        return several(tables, trace);
    }
    let rid = match trace.hints() {
        [hint] => hint.rid.clone(),
        _ => ids.first().map_or_else(Rid::default, |id| Rid::from(*id)),
    };
    trace.rows.iter_mut().for_each(|row| row.group = 0);
    trace.hints_mut().iter_mut().for_each(|hint| hint.group = 0);
    let starts = trace.rows.iter().map(|row| row.start_ns).filter(|start| *start > 0);
    let told = trace.hints().iter().filter_map(|hint| hint.told.first_ns());
    vec![Part {
        rid,
        anchored: trace.rows.iter().any(|row| is_anchor(row.stage)),
        start_ns: starts.min().or(told.min()).unwrap_or(0),
        ..Part::default()
    }]
}

fn is_anchor(stage: Stage) -> bool {
    matches!(stage, Stage::Http | Stage::Root)
}

/// A fragment: the rows below one anchor, or below one top without an anchor.
struct Fragment {
    rid: Rid,
    /// How good a word `rid` is: the root's before `http-request`'s before any other's; of equal ones the first to start,
    /// whatever the order in which they came.
    rank: (u8, u64, SpanId),
    anchored: bool,
    start_ns: u64,
}

fn several(tables: &Tables, trace: &mut Trace) -> Vec<Part> {
    let (tops, linked) = tops(tables, trace);
    let mut fragments: Vec<Option<Fragment>> = (0..trace.rows.len()).map(|_| None).collect();
    for (at, row) in trace.rows.iter().enumerate() {
        let top = tops[at];
        let fragment = fragments[top].get_or_insert_with(|| Fragment {
            rid: Rid::default(),
            rank: (u8::MAX, 0, SpanId([0; 8])),
            anchored: is_anchor(trace.rows[top].stage),
            start_ns: u64::MAX,
        });
        if row.start_ns > 0 {
            fragment.start_ns = fragment.start_ns.min(row.start_ns);
        }
        let stage = match row.stage {
            Stage::Root => 0,
            Stage::Http => 1,
            _ => 2,
        };
        let rank = (stage, row.start_ns, row.id);
        if rank < fragment.rank
            && let Some(id) = tables.rid(row)
        {
            fragment.rid = id.into();
            fragment.rank = rank;
        }
    }
    let mut parts: Vec<Part> = Vec::new();
    let mut by_rid: super::Map<Rid, usize> = super::Map::default();
    let mut part_of: Vec<Option<usize>> = vec![None; fragments.len()];
    let mut part_for = |parts: &mut Vec<Part>, rid: &Rid| {
        *by_rid.entry(rid.clone()).or_insert_with(|| {
            if parts.len() < MOST_GROUPS {
                parts.push(Part { rid: rid.clone(), start_ns: u64::MAX, ..Part::default() });
            }
            parts.len() - 1
        })
    };
    for (top, fragment) in fragments.iter().enumerate() {
        let Some(fragment) = fragment.as_ref().filter(|fragment| !fragment.rid.is_empty()) else { continue };
        let at = part_for(&mut parts, &fragment.rid);
        part_of[top] = Some(at);
        parts[at].anchored |= fragment.anchored;
        parts[at].start_ns = parts[at].start_ns.min(fragment.start_ns);
    }
    for hint in trace.hints_mut() {
        let at = part_for(&mut parts, &hint.rid);
        hint.group = at as u16;
        let Told { received_ns, completed_ns, .. } = hint.told;
        parts[at].sum = parts[at].sum.wrapping_add(scattered(received_ns.unwrap_or(0) ^ !completed_ns.unwrap_or(0)));
        if parts[at].start_ns == u64::MAX {
            parts[at].start_ns = hint.told.first_ns().unwrap_or(u64::MAX);
        }
    }
    let order = |at: &usize| (!parts[*at].anchored, parts[*at].start_ns, &parts[*at].rid);
    let first = (0..parts.len()).min_by_key(order).unwrap_or(0);
    for (at, row) in trace.rows.iter_mut().enumerate() {
        let part = part_of[tops[at]].unwrap_or(first);
        row.group = part as u16;
        parts[part].rows.push(at as u32);
        parts[part].sum = parts[part].sum.wrapping_add(mixed(row.id, linked[at]));
    }
    for part in &mut parts {
        part.start_ns = if part.start_ns == u64::MAX { 0 } else { part.start_ns };
    }
    parts
}

/// A number for a row that sums up well with those of others.
fn mixed(id: SpanId, linked: bool) -> u64 {
    scattered(u64::from_le_bytes(id.0) ^ u64::from(linked))
}

fn scattered(number: u64) -> u64 {
    let number = (number ^ (number >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    (number ^ (number >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb)
}

/// For each row, the row that decides for it: the outermost anchor at or above it or, below it, the `http-request` of a
/// request of its own; else the outermost row above it. And whether its parent is there.
fn tops(tables: &Tables, trace: &Trace) -> (Vec<usize>, Vec<bool>) {
    const UNKNOWN: usize = usize::MAX;
    const OPEN: usize = usize::MAX - 1;
    let mut tops = vec![UNKNOWN; trace.rows.len()];
    let mut linked = vec![false; trace.rows.len()];
    let mut path = Vec::new();
    let is_own = |at: usize, top: usize| {
        let [own, above] = [at, top].map(|at| tables.rid(&trace.rows[at]));
        trace.rows[at].stage == Stage::Http && own.is_some() && own != above
    };
    for start in 0..trace.rows.len() {
        let mut at = start;
        path.clear();
        // Up to a row that is decided, has no parent here, or closes a cycle.
        let mut above = loop {
            match tops[at] {
                UNKNOWN => {}
                OPEN => break None,
                decided => break Some(decided),
            }
            tops[at] = OPEN;
            path.push(at);
            match trace.rows[at].parent.and_then(|parent| trace.find(parent)) {
                Some(parent) => {
                    linked[at] = true;
                    at = parent;
                }
                None => break None,
            }
        };
        for at in path.drain(..).rev() {
            let decided = match above {
                Some(top) if is_anchor(trace.rows[top].stage) && is_own(at, top) => at,
                Some(top) if is_anchor(trace.rows[top].stage) || !is_anchor(trace.rows[at].stage) => top,
                _ => at,
            };
            tops[at] = decided;
            above = Some(decided);
        }
    }
    (tops, linked)
}

fn is_control_endpoint(tables: &Tables, trace: &Trace, row: usize) -> bool {
    crate::lifecycle::body::Body::new(trace.body(&trace.rows, row), tables)
        .attrs()
        .filter(|attr| attr.field == Field::PayloadEndpoint)
        .last()
        .is_some_and(|attr| matches!(attr.value, Value::Str(text) if text.starts_with("worker_kv_query_source")))
}
