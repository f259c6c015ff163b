//! One trace as kept: its spans as rows, their bodies in one run of bytes, and which request each row belongs to.

use hashbrown::HashMap;

use super::Rid;
use super::rows::{self, Packed, Row, Rows};
use crate::lifecycle::account::{chunk, chunk_of, entry};
use crate::lifecycle::assemble::Told;
use crate::lifecycle::batch::Sign;
use crate::lifecycle::ids::{SpanId, TraceId};
use crate::lifecycle::request::RequestKey;
use crate::lifecycle::stage::Stage;
use crate::lifecycle::work;

/// From how many spans on a trace keeps an index of its span ids; below, looking at each is faster.
const INDEXED_FROM: usize = 48;

/// The rows of a trace that belong to one request.
#[derive(Clone, Debug)]
pub struct Group {
    /// The request id they carry; empty when none does.
    pub rid: Rid,
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

/// What logs have told of a request in a trace.
#[derive(Debug)]
pub struct Hint {
    /// The request id they name.
    pub rid: Rid,
    pub told: Told,
    /// The group it belongs to.
    pub group: u16,
}

/// The most requests of a trace that logs are heard of.
const MOST_HINTS: usize = 64;

/// The group of a row that came after its trace was grouped last.
pub const UNGROUPED: u16 = u16::MAX;

/// The group of a row whose request is gone; it stays in place until there are enough of them.
const GONE: u16 = UNGROUPED - 1;

/// The most groups a trace may have.
pub const MOST_GROUPS: usize = GONE as usize;

/// Rows that are gone are swept away when they are more than one in so many: what a request's going costs is what it had,
/// not what the trace has.
const SWEPT_AT: usize = 8;

/// A trace.
#[derive(Debug)]
pub struct Trace {
    pub id: TraceId,
    /// Its rows while it is open; empty while it is packed.
    pub rows: Vec<Row>,
    packed: Packed,
    pub bodies: Vec<u8>,
    index: Option<Box<HashMap<SpanId, u32, foldhash::fast::RandomState>>>,
    groups: Vec<Group>,
    /// Bytes of the lists of rows in `groups`, so that nobody counts them one by one.
    listed: usize,
    /// Which groups each request has, by key; empty while there is one group at most.
    by_key: Vec<(RequestKey, u16)>,
    /// What logs have told of its requests; at most [`MOST_HINTS`].
    hints: Box<[Hint]>,
    /// Waiting to be grouped.
    pub dirty: bool,
    /// Rows that were there when it was last grouped, and still are.
    pub grouped: usize,
    /// Rows that are gone and have not been swept away.
    gone: usize,
    /// When that was.
    pub grouped_ns: u64,
    /// When a span of it last came.
    pub heard_ns: u64,
    /// How often the store had been held when its last span came, and how many rows it had when that began.
    hold: u32,
    held_rows: u32,
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
            packed: Packed::default(),
            bodies: Vec::new(),
            index: None,
            groups: Vec::new(),
            listed: 0,
            by_key: Vec::new(),
            hints: Box::default(),
            dirty: false,
            grouped: 0,
            gone: 0,
            grouped_ns: 0,
            heard_ns: 0,
            hold: 0,
            held_rows: 0,
            grouped_as_control: false,
            accounted: 0,
        }
    }

    /// How many spans it has.
    pub fn len(&self) -> usize {
        self.rows.len() - self.gone + self.packed.len()
    }

    /// Which of its rows are spans that are still there.
    pub fn live<'r>(&self, rows: &'r [Row]) -> impl Iterator<Item = usize> + 'r {
        rows.iter().enumerate().filter(|(_, row)| row.group != GONE).map(|(at, _)| at)
    }

    /// Its rows, whichever form they are in.
    pub fn rows(&self) -> Rows<'_> {
        if self.packed.len() > 0 { Rows::Owned(self.packed.unpack()) } else { Rows::Borrowed(&self.rows) }
    }

    /// Packs its rows: nothing more is expected.
    pub fn pack(&mut self) {
        if self.rows.is_empty() {
            return;
        }
        self.sweep();
        let packed = rows::pack(&self.rows, self.bodies.len(), |id| self.find(id));
        self.packed = packed;
        self.rows = Vec::new();
        self.index = None;
        self.bodies.shrink_to_fit();
    }

    /// Opens its rows again; says whether they were packed.
    #[inline]
    pub fn open(&mut self) -> bool {
        let packed = self.packed.len() > 0;
        if packed {
            self.rows = std::mem::take(&mut self.packed).unpack();
            if self.rows.len() >= INDEXED_FROM {
                self.index_rows();
            }
        }
        packed
    }

    fn index_rows(&mut self) {
        self.index = Some(Box::new(self.rows.iter().enumerate().map(|(at, row)| (row.id, at as u32)).collect()));
    }

    /// The row of a span, while it is open.
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
            self.index_rows();
        }
    }

    /// Notes, before a row is added, what there was when the store was held for the so many'th time.
    #[inline]
    pub fn note_hold(&mut self, hold: u32) {
        if self.hold != hold {
            (self.hold, self.held_rows) = (hold, self.rows.len() as u32);
        }
    }

    /// How many rows, the first ones, had come when the store was held for the so many'th time, the last one.
    pub fn rows_before(&self, hold: u32) -> usize {
        if self.hold == hold { self.held_rows as usize } else { usize::MAX }
    }

    /// What logs have told of its requests.
    pub fn hints(&self) -> &[Hint] {
        &self.hints
    }

    /// The same, to say which groups they belong to.
    pub fn hints_mut(&mut self) -> &mut [Hint] {
        &mut self.hints
    }

    /// Takes in what a log tells; false when it has heard of as many requests as it may.
    pub fn hear(&mut self, rid: &Rid, sign: &Sign) -> bool {
        if let Some(hint) = self.hints.iter_mut().find(|hint| hint.rid == *rid) {
            hint.told.hear(sign);
            return true;
        }
        if self.hints.len() >= MOST_HINTS {
            return false;
        }
        let mut hint = Hint { rid: rid.clone(), told: Told::default(), group: UNGROUPED };
        hint.told.hear(sign);
        let hints = std::mem::take(&mut self.hints).into_iter().chain([hint]);
        self.hints = hints.collect();
        true
    }

    /// What logs have told of a request.
    pub fn told_of(&self, key: RequestKey) -> impl Iterator<Item = &Told> {
        let of_key = move |hint: &&Hint| self.groups.get(usize::from(hint.group)).is_some_and(|group| group.key == key);
        self.hints.iter().filter(of_key).map(|hint| &hint.told)
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
        self.listed = 0;
        std::mem::take(&mut self.groups)
    }

    /// Sets the groups that rows point to.
    pub fn set_groups(&mut self, groups: Vec<Group>) {
        self.groups = groups;
        self.count_lists();
        self.index_groups();
    }

    fn count_lists(&mut self) {
        let listed = self.groups.iter().inspect(|_| work::step());
        self.listed = listed.map(|group| chunk_of::<u32>(group.rows.capacity())).sum();
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
        if !self.is_shared() {
            return;
        }
        self.by_key.extend(self.groups.iter().enumerate().map(|(at, group)| (group.key, at as u16)));
        self.by_key.sort_unstable();
    }

    /// The numbers of a request's groups.
    fn numbers_of(&self, key: RequestKey) -> impl Iterator<Item = u16> {
        let only = self.groups.first().filter(|group| !self.is_shared() && group.key == key).map(|_| 0);
        let from = self.by_key.partition_point(|(other, _)| *other < key);
        let listed = self.by_key[from..].iter().take_while(move |(other, _)| *other == key).map(|(_, number)| *number);
        only.into_iter().chain(listed)
    }

    /// The groups of a request.
    pub fn groups_of(&self, key: RequestKey) -> impl Iterator<Item = &Group> {
        self.numbers_of(key).map(|number| &self.groups[usize::from(number)])
    }

    /// Whether logs have told of another request of it, or of one that is not known yet.
    pub fn tells_of_others(&self, key: RequestKey) -> bool {
        let is_other = |hint: &Hint| self.groups.get(usize::from(hint.group)).is_none_or(|group| group.key != key);
        self.hints.iter().any(is_other)
    }

    /// The rows of a request. Costs what it has, not what the trace has.
    pub fn rows_of(&self, key: RequestKey) -> impl Iterator<Item = usize> {
        let all = match &self.groups[..] {
            [only] if only.key == key => 0..self.len(),
            _ => 0..0,
        };
        let listed = self.groups_of(key).filter(|_| self.is_shared());
        all.chain(listed.flat_map(|group| group.rows.iter().map(|row| *row as usize)))
    }

    /// How many rows a request has.
    pub fn count_of(&self, key: RequestKey) -> usize {
        match &self.groups[..] {
            [only] if only.key == key => self.len(),
            _ => self.groups_of(key).filter(|_| self.is_shared()).map(|group| group.rows.len()).sum(),
        }
    }

    /// Lets the rows of `key` go; for a trace shared by several requests. `gone` is given each row that goes, with the
    /// bytes of its body. Costs what the request has, and now and then what the trace has.
    pub fn remove_request(&mut self, key: RequestKey, mut gone: impl FnMut(&Row, &[u8])) {
        self.open();
        let numbers: Vec<u16> = self.numbers_of(key).collect();
        if self.hints.iter().any(|hint| numbers.contains(&hint.group)) {
            let hints = std::mem::take(&mut self.hints).into_iter();
            self.hints = hints.filter(|hint| !numbers.contains(&hint.group)).collect();
        }
        for number in numbers {
            let rows = std::mem::take(&mut self.groups[usize::from(number)].rows);
            self.listed -= chunk_of::<u32>(rows.capacity());
            for at in rows {
                let at = at as usize;
                work::step();
                gone(&self.rows[at], self.body(&self.rows, at));
                self.rows[at].group = GONE;
                if let Some(index) = &mut self.index {
                    index.remove(&self.rows[at].id);
                }
                self.gone += 1;
                self.grouped -= 1;
            }
        }
        // Without an index rows are looked at one by one, and there are few.
        if self.index.is_none() || self.gone * SWEPT_AT > self.rows.len() {
            self.sweep();
        }
    }

    /// Forgets what is needed to find and group its rows: they are about to go.
    pub fn forget_all_but_rows(&mut self) {
        self.index = None;
        self.groups = Vec::new();
        self.listed = 0;
        self.by_key = Vec::new();
        self.hints = Box::default();
    }

    /// Keeps the first `count` rows with their bodies.
    pub fn truncate(&mut self, count: usize) {
        let Some(first) = self.rows.get(count) else { return };
        self.bodies.truncate(first.body as usize);
        self.rows.truncate(count);
        // What is left of a large one is made smaller where it is.
        if self.rows.capacity() > count + count / 8 {
            self.rows.shrink_to_fit();
            self.bodies.shrink_to_fit();
        }
    }

    /// Makes room of the rows that are gone.
    pub fn sweep(&mut self) {
        if self.gone == 0 {
            return;
        }
        self.gone = 0;
        let old = std::mem::take(&mut self.rows);
        let bodies = std::mem::take(&mut self.bodies);
        self.index = None;
        self.groups.iter_mut().for_each(|group| group.rows.clear());
        let held_rows = self.held_rows as usize;
        for (at, row) in old.iter().enumerate() {
            work::step();
            if row.group == GONE {
                self.held_rows -= u32::from(at < held_rows);
                continue;
            }
            let end = old.get(at + 1).map_or(bodies.len(), |next| next.body as usize);
            let moved = Row { body: self.bodies.len() as u32, ..*row };
            self.bodies.extend_from_slice(&bodies[row.body as usize..end]);
            if let Some(group) = self.groups.get_mut(usize::from(row.group)) {
                group.rows.push(self.rows.len() as u32);
            }
            self.push(moved);
        }
        self.count_lists();
        self.rows.shrink_to_fit();
        self.bodies.shrink_to_fit();
    }

    /// The bytes of a row's body: to the next row's begin.
    pub fn body(&self, rows: &[Row], at: usize) -> &[u8] {
        let end = rows.get(at + 1).map_or(self.bodies.len(), |next| next.body as usize);
        &self.bodies[rows[at].body as usize..end]
    }

    /// Bytes it takes.
    pub fn size(&self) -> usize {
        chunk_of::<Self>(1)
            + size_of::<Box<Self>>() * 4 / 3
            + entry::<(TraceId, u32)>()
            + chunk_of::<Row>(self.rows.capacity())
            + self.packed.size()
            + chunk(self.bodies.capacity())
            + self.index.as_ref().map_or(0, |index| chunk_of::<(SpanId, u32)>(index.capacity() * 5 / 4))
            + chunk_of::<Group>(self.groups.capacity())
            + self.listed
            + chunk_of::<(RequestKey, u16)>(self.by_key.capacity())
            + chunk_of::<Hint>(self.hints.len())
            + self.hints.iter().map(|hint| chunk(16 + hint.rid.len()) + hint.told.heap_size()).sum::<usize>()
    }

    /// Control traffic between router and workers is no request (spec lifecycle-spans §6): whether this is all there is.
    pub fn is_control(&self, endpoint: impl Fn(&Self, usize) -> bool) -> bool {
        self.hints().is_empty()
            && !self.rows.is_empty()
            && (0..self.rows.len()).all(|row| self.rows[row].stage == Stage::Payload && endpoint(self, row))
    }
}
