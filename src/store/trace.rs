//! One trace as kept: its spans as rows, their bodies in one run of bytes, and which request each row belongs to.

use compact_str::CompactString;
use hashbrown::HashMap;

use super::interner::NONE;
use crate::lifecycle::ids::{SpanId, TraceId};
use crate::lifecycle::request::RequestKey;
use crate::lifecycle::stage::Stage;

/// From how many spans on a trace keeps an index of its span ids; below, looking at each is faster.
const INDEXED_FROM: usize = 48;

/// A span as kept.
#[derive(Clone, Copy, Debug)]
pub struct Row {
    pub id: SpanId,
    pub parent: Option<SpanId>,
    pub start_ns: u64,
    pub end_ns: u64,
    /// Text piece of its name.
    pub name: u32,
    /// Context pieces.
    pub resource: u32,
    pub scope: u32,
    /// Where its body begins in [`Trace::bodies`].
    pub body: u32,
    /// Attribute piece of the request id it carries, or [`NONE`].
    pub rid: u32,
    pub kind: i32,
    pub stage: Stage,
    /// Index into [`Trace::groups`].
    pub group: u16,
}

/// The rows of a trace that belong to one request.
#[derive(Clone, Debug)]
pub struct Group {
    /// The request id they carry; empty when none does.
    pub rid: CompactString,
    /// The request.
    pub key: RequestKey,
    /// Whether an `http-request` or a root is among them.
    pub anchored: bool,
    /// The earliest start among them, for joins.
    pub start_ns: u64,
    /// Its rows, in a trace of several groups; the only group of a trace has all of them.
    pub rows: Vec<u32>,
    /// Sums up which rows it has, and whose parents are there: the same sum, the same facts.
    pub sum: u64,
}

/// The group of a row that came after its trace was grouped last.
pub const UNGROUPED: u16 = u16::MAX;

/// A trace.
#[derive(Debug)]
pub struct Trace {
    pub id: TraceId,
    pub rows: Vec<Row>,
    pub bodies: Vec<u8>,
    index: Option<HashMap<SpanId, u32, foldhash::fast::RandomState>>,
    groups: Vec<Group>,
    /// Which groups each request has, by key.
    by_key: Vec<(RequestKey, u16)>,
    /// Request ids that logs have named for this trace before its spans did.
    pub hints: Vec<CompactString>,
    /// Waiting to be grouped.
    pub dirty: bool,
    /// Rows when it was last grouped.
    pub grouped: usize,
    /// When that was.
    pub grouped_ns: u64,
    /// Whether it was listed as control traffic.
    pub grouped_as_control: bool,
    /// Bytes accounted for it.
    pub accounted: usize,
}

impl Trace {
    pub fn new(id: TraceId) -> Self {
        Self {
            id,
            rows: Vec::new(),
            bodies: Vec::new(),
            index: None,
            groups: Vec::new(),
            by_key: Vec::new(),
            hints: Vec::new(),
            dirty: false,
            grouped: 0,
            grouped_ns: 0,
            grouped_as_control: false,
            accounted: 0,
        }
    }

    /// The row of a span.
    #[inline]
    pub fn find(&self, id: SpanId) -> Option<usize> {
        match &self.index {
            Some(index) => index.get(&id).map(|row| *row as usize),
            None => self.rows.iter().position(|row| row.id == id),
        }
    }

    /// Adds a row whose span is not there yet.
    #[inline]
    pub fn push(&mut self, row: Row) {
        let at = self.rows.len() as u32;
        if let Some(index) = &mut self.index {
            index.insert(row.id, at);
        }
        self.rows.push(row);
        if self.index.is_none() && self.rows.len() >= INDEXED_FROM {
            self.index = Some(self.rows.iter().enumerate().map(|(at, row)| (row.id, at as u32)).collect());
        }
    }

    /// Its groups.
    pub fn groups(&self) -> &[Group] {
        &self.groups
    }

    /// Whether several requests share it.
    pub fn is_shared(&self) -> bool {
        self.groups.len() > 1
    }

    /// Takes the groups away, to make others.
    pub fn take_groups(&mut self) -> Vec<Group> {
        self.by_key.clear();
        std::mem::take(&mut self.groups)
    }

    /// Sets the groups that rows point to.
    pub fn set_groups(&mut self, groups: Vec<Group>) {
        self.groups = groups;
        self.index_groups();
    }

    /// Makes the groups of one request those of another.
    pub fn rename_groups(&mut self, from: RequestKey, into: RequestKey) {
        for group in self.groups.iter_mut().filter(|group| group.key == from) {
            group.key = into;
        }
        self.index_groups();
    }

    fn index_groups(&mut self) {
        self.by_key.clear();
        self.by_key.extend(self.groups.iter().enumerate().map(|(at, group)| (group.key, at as u16)));
        self.by_key.sort_unstable();
    }

    /// The numbers of a request's groups.
    fn numbers_of(&self, key: RequestKey) -> impl Iterator<Item = u16> {
        let from = self.by_key.partition_point(|(other, _)| *other < key);
        self.by_key[from..].iter().take_while(move |(other, _)| *other == key).map(|(_, number)| *number)
    }

    /// The groups of a request.
    pub fn groups_of(&self, key: RequestKey) -> impl Iterator<Item = &Group> {
        self.numbers_of(key).map(|number| &self.groups[usize::from(number)])
    }

    /// The rows of a request. Costs what it has, not what the trace has.
    pub fn rows_of(&self, key: RequestKey) -> impl Iterator<Item = usize> {
        let all = match &self.groups[..] {
            [only] if only.key == key => 0..self.rows.len(),
            _ => 0..0,
        };
        let listed = self.groups_of(key).filter(|_| self.is_shared());
        all.chain(listed.flat_map(|group| group.rows.iter().map(|row| *row as usize)))
    }

    /// Keeps only the rows of other requests than `key`, with their bodies; for a trace shared by several requests.
    /// `gone` is given each row that goes, with the bytes of its body.
    pub fn remove_request(&mut self, key: RequestKey, mut gone: impl FnMut(&Row, &[u8])) {
        let numbers: Vec<u16> = self.numbers_of(key).collect();
        numbers.into_iter().for_each(|number| self.remove_group(number, &mut gone));
        self.groups.iter_mut().for_each(|group| group.rows.clear());
        for (at, row) in self.rows.iter().enumerate() {
            if let Some(group) = self.groups.get_mut(usize::from(row.group)) {
                group.rows.push(at as u32);
            }
        }
    }

    fn remove_group(&mut self, group: u16, gone: &mut impl FnMut(&Row, &[u8])) {
        let old = std::mem::take(&mut self.rows);
        let bodies = std::mem::take(&mut self.bodies);
        self.index = None;
        for (at, row) in old.iter().enumerate() {
            let end = old.get(at + 1).map_or(bodies.len(), |next| next.body as usize);
            let body = &bodies[row.body as usize..end];
            if row.group == group {
                gone(row, body);
            } else {
                let moved = Row { body: self.bodies.len() as u32, ..*row };
                self.bodies.extend_from_slice(body);
                self.push(moved);
            }
        }
        self.rows.shrink_to_fit();
        self.bodies.shrink_to_fit();
    }

    /// The bytes of a row's body, to the end of the next row's begin; a body reads itself to its end.
    pub fn body(&self, row: usize) -> &[u8] {
        let end = self.rows.get(row + 1).map_or(self.bodies.len(), |next| next.body as usize);
        &self.bodies[self.rows[row].body as usize..end]
    }

    /// Bytes it takes.
    pub fn size(&self) -> usize {
        size_of::<Self>()
            + self.rows.capacity() * size_of::<Row>()
            + self.bodies.capacity()
            + self.index.as_ref().map_or(0, |index| index.capacity() * (size_of::<(SpanId, u32)>() + 2))
            + self.groups.capacity() * (size_of::<Group>() + size_of::<(RequestKey, u16)>())
            + if self.is_shared() { self.rows.len() * size_of::<u32>() } else { 0 }
            + self.hints.capacity() * size_of::<CompactString>()
    }

    /// Control traffic between router and workers is no request (spec lifecycle-spans §6): whether this is all there is.
    pub fn is_control(&self, endpoint: impl Fn(&Self, usize) -> bool) -> bool {
        self.hints.is_empty()
            && !self.rows.is_empty()
            && (0..self.rows.len()).all(|row| self.rows[row].stage == Stage::Payload && endpoint(self, row))
    }
}

impl Row {
    /// Whether it carries a request id.
    pub fn has_rid(&self) -> bool {
        self.rid != NONE
    }
}
