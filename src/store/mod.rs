//! The request store: spans, records and logs → request trees with their facts. Synchronous, one writer, bounded in bytes.
//!
//! Two steps: [`Store::ingest`] keeps what came at the cost of the batch (`ingest`); [`Store::refresh`] brings the
//! requests up to date at the cost of what changed: which rows of a trace belong to which request (`group`), which
//! requests are one (`join`), their facts (`settle`), and what must go (`evict`). Owns: everything kept, and the
//! account of its bytes. Keeps out: sources, clocks (time is an argument), screens.

mod asking;
mod attrs;
mod check;
mod evict;
mod gone;
mod group;
mod held;
mod ingest;
mod interner;
mod join;
mod lens;
mod missing;
mod past;
mod read;
mod records;
pub mod rollup;
mod rows;
mod settle;
mod slots;
#[cfg(test)]
mod tests;
mod trace;
mod traces;

use std::collections::{BTreeMap, VecDeque};

use compact_str::CompactString;
use hashbrown::{HashMap, HashSet};

use crate::lifecycle::assemble::Told;
use crate::lifecycle::body::{Attr, Pieces};
use crate::lifecycle::catalogue::Field;
use crate::lifecycle::facts::{Facts, Marks};
use crate::lifecycle::ids::Rid;
use crate::lifecycle::packed::{self, Value};
use crate::lifecycle::record::Record;
use crate::lifecycle::request::RequestKey;
pub use check::{CheckCounts, Checked, GRACE_NS, Said, Violation};
pub use held::Before;
use interner::Interner;
pub use lens::{Lens, is_within, time_of};
pub use missing::{Coming, Lack, Unseen};
pub use past::Past;
use slots::Slots;
use smallvec::SmallVec;
use trace::Trace;
use traces::Traces;

/// A map with a fast hash that outsiders cannot predict.
type Map<K, V> = HashMap<K, V, foldhash::fast::RandomState>;

/// The requests with one id: nearly always a single one.
type Twins = SmallVec<[RequestKey; 2]>;

/// Likewise a set.
type Set<K> = HashSet<K, foldhash::fast::RandomState>;

/// What the store may hold.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Bytes over everything kept.
    pub memory: usize,
    /// After how long without news a request in flight counts as lost, nanoseconds.
    pub lost_after_ns: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self { memory: 512 << 20, lost_after_ns: 600_000_000_000 }
    }
}

/// What one batch came to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Ingested {
    /// Spans kept.
    pub kept: u64,
    /// Spans that were there already (same trace and span id).
    pub duplicates: u64,
    /// Spans not taken because the memory is full of what may not go.
    pub shed: u64,
}

/// Everything counted since the start: received = kept + duplicate + refused + shed, and kept = held + evicted; for
/// records likewise, where a record that cannot be read is a bad one and none is shed.
#[derive(Clone, Debug, Default)]
pub struct Counts {
    /// Spans received, good or bad.
    pub spans_received: u64,
    /// Spans kept at first, whether or not they are still held.
    pub spans_kept: u64,
    /// Spans that were there already.
    pub spans_duplicate: u64,
    /// Spans refused for themselves.
    pub spans_refused: u64,
    /// Spans not taken because the memory was full of what may not go.
    pub spans_shed: u64,
    /// Spans given up to stay within the limit.
    pub spans_evicted: u64,
    /// Requests given up to stay within the limit.
    pub requests_evicted: u64,
    /// Records received, good or bad.
    pub records_received: u64,
    /// Records kept by event type, whether or not they are still held.
    pub records_by_type: BTreeMap<CompactString, u64>,
    /// Records that were there already.
    pub records_duplicate: u64,
    /// Records that could not be read.
    pub records_bad: u64,
    /// Records given up to stay within the limit.
    pub records_evicted: u64,
    /// Log records that are neither records nor signs.
    pub other_logs: u64,
    /// Frontend logs that told of a request.
    pub signs: u64,
    /// Metric data points.
    pub metric_points: u64,
    /// Texts in which invalid UTF-8 or control characters were replaced.
    pub texts_cleaned: u64,
}

impl Counts {
    /// Records kept, of all types.
    pub fn records_kept(&self) -> u64 {
        self.records_by_type.values().sum()
    }

    /// Records held: kept and not given up.
    pub fn records_held(&self) -> u64 {
        self.records_kept() - self.records_evicted
    }

    /// Spans held: kept and not given up.
    pub fn spans_held(&self) -> u64 {
        self.spans_kept - self.spans_evicted
    }
}

/// How the held requests stand, by what their roots say. Kept up to date as facts change, never by walking.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Standing {
    /// In the order of [`crate::lifecycle::stage::Outcome::ALL`].
    pub by_outcome: [u64; 6],
    /// Not ended yet.
    pub in_flight: u64,
    /// Over as told, with a root that may be on its way.
    pub ending: u64,
    /// End missing although expected.
    pub lost: u64,
    /// Without a root, in flight or not.
    pub without_root: u64,
    /// All.
    pub total: u64,
}

/// The pieces that rows and bodies point to.
#[derive(Default)]
struct Tables {
    attrs: Interner,
    texts: Interner,
    contexts: Interner,
}

impl Pieces for Tables {
    #[inline]
    fn attr(&self, piece: u32) -> Attr<'_> {
        let (key, value) = packed::read(self.attrs.get(piece));
        Attr { field: self.attrs.field(piece), key, value }
    }

    #[inline]
    fn field(&self, piece: u32) -> Field {
        self.attrs.field(piece)
    }

    #[inline]
    fn value(&self, piece: u32) -> Value<'_> {
        packed::value(self.attrs.get(piece))
    }

    #[inline]
    fn text(&self, piece: u32) -> &str {
        self.texts.text(piece)
    }
}

/// A request as kept.
struct Request {
    /// The id it is joined by; empty for a trace that names none.
    rid: Rid,
    /// The traces with rows of it.
    traces: Slots,
    records: records::Records,
    /// What logs told that name no trace; those of its traces are kept there.
    told: Option<Box<Told>>,
    facts: Facts,
    asked: check::Asked,
    /// Keys of requests that were joined into it.
    aliases: Vec<RequestKey>,
    /// Joined from several traces by its id alone.
    inferred: bool,
    /// Why there may have been more of it than came, once that is known: [`Marks::is_part`].
    part: Marks,
    dirty: bool,
    /// Whether its facts are part of the standing.
    counted: bool,
    /// When something last came for it; 0 when nobody noted that.
    arrived_ns: u64,
    /// When it was heard of, by its own times.
    heard: past::Heard,
    /// Bytes accounted for it.
    accounted: usize,
}

impl Request {
    /// When there last was news of it: as it came, else by its own times.
    fn news_ns(&self) -> u64 {
        if self.arrived_ns == 0 { self.heard.last_ns } else { self.arrived_ns }
    }
}

/// The request store.
pub struct Store {
    limits: Limits,
    counts: Counts,
    standing: Standing,
    version: u64,
    arrived_ns: u64,
    /// When the last delivery came that brought anything, where that was noted.
    delivered_ns: u64,
    /// Since when somebody listened to senders; 0 when nobody did.
    listening_ns: u64,
    /// The same of what comes next, when that is another time.
    opening_ns: u64,
    /// Whether all has come that will.
    whole: bool,
    /// The moment of the last refresh.
    refreshed_ns: u64,
    tables: Tables,
    memory: ingest::Memory,
    traces: Traces,
    /// Large traces whose requests are gone: their spans are given back as room is needed.
    doomed: Vec<Trace>,
    requests: BTreeMap<RequestKey, Box<Request>>,
    next_key: u64,
    by_rid: Map<Rid, Twins>,
    aliases: Map<RequestKey, RequestKey>,
    dirty_traces: Vec<u32>,
    dirty_requests: Vec<RequestKey>,
    /// Records on their way from one request to another with the same id, each with the one it comes from.
    moved_records: Vec<(RequestKey, Record)>,
    in_flight: Set<RequestKey>,
    ending: Set<RequestKey>,
    /// Requests in the order they ended: the first to go.
    ended: VecDeque<RequestKey>,
    /// Traces that belong to no request (control traffic), oldest first.
    control: VecDeque<u32>,
    /// Records that belong to no request (tool events).
    loose: records::Loose,
    /// Bytes of traces, requests and loose records.
    accounted: usize,
    gone: gone::Gone,
    pinned: Option<RequestKey>,
    full: bool,
    lost_checked_ns: u64,
    /// How often it has been held so that a screen stood still.
    holds: u32,
    lens: Lens,
    checked: Checked,
}

impl Store {
    /// An empty store.
    pub fn new(limits: Limits) -> Self {
        Self {
            limits,
            counts: Counts::default(),
            standing: Standing::default(),
            version: 0,
            arrived_ns: 0,
            delivered_ns: 0,
            listening_ns: 0,
            opening_ns: 0,
            whole: false,
            refreshed_ns: 0,
            tables: Tables::default(),
            memory: ingest::Memory::default(),
            traces: Traces::default(),
            doomed: Vec::new(),
            requests: BTreeMap::new(),
            next_key: 0,
            by_rid: Map::default(),
            aliases: Map::default(),
            dirty_traces: Vec::new(),
            dirty_requests: Vec::new(),
            moved_records: Vec::new(),
            in_flight: HashSet::default(),
            ending: HashSet::default(),
            ended: VecDeque::new(),
            control: VecDeque::new(),
            loose: records::Loose::default(),
            accounted: 0,
            gone: gone::Gone::beside(limits.memory),
            pinned: None,
            full: false,
            lost_checked_ns: 0,
            holds: 0,
            lens: Lens::default(),
            checked: Checked::beside(limits.memory),
        }
    }

    /// From this moment on senders are listened to, by the clock of arrivals: what they sent before did not come.
    pub fn listens_from(&mut self, now_ns: u64) {
        self.opening_ns = now_ns;
    }

    /// Brings every request up to date with what arrived, settles and evicts. Costs what changed since the last call.
    /// `now_ns` is the clock by which arrivals are counted.
    pub fn refresh(&mut self, now_ns: u64) {
        self.refreshed_ns = now_ns;
        self.regroup(now_ns, false);
        self.settle(now_ns, false);
        self.evict();
    }

    /// Like [`Store::refresh`], leaving nothing for later: what a report of everything needs. Very large traces are
    /// otherwise regrouped only as they grow.
    pub fn finish(&mut self, now_ns: u64) {
        self.whole = true;
        self.refreshed_ns = now_ns;
        self.regroup(now_ns, true);
        self.settle(now_ns, true);
        self.evict();
    }

    /// The moment that is shown: that of the last refresh, or the one that is held. Nanoseconds since the epoch.
    pub fn shown_ns(&self) -> u64 {
        self.held().map_or(self.refreshed_ns, |past| past.at_ns())
    }

    /// What was counted.
    pub fn counts(&self) -> &Counts {
        &self.counts
    }

    /// How the held requests stand, as of the last refresh.
    pub fn standing(&self) -> Standing {
        self.standing
    }

    /// Bytes held, over everything kept.
    pub fn memory(&self) -> usize {
        let tables = self.tables.attrs.memory() + self.tables.texts.memory() + self.tables.contexts.memory();
        let sessions = self.lens.rollup().sessions.memory();
        let held = self.lens.held().map_or(0, held::Held::size);
        self.accounted + tables + self.gone.memory() + self.memory.size() + self.checked.memory() + sessions + held
    }

    /// The limits it was made with.
    pub fn limits(&self) -> Limits {
        self.limits
    }

    /// Grows whenever anything that can be seen changes.
    pub fn version(&self) -> u64 {
        self.version
    }

    /// When the last batch arrived, nanoseconds since the epoch; 0 before the first. Of what nobody noted that of, the last
    /// moment that it tells of.
    pub fn arrived_ns(&self) -> u64 {
        self.arrived_ns
    }

    /// When the last batch arrived, as far as arrivals are noted; 0 where none are.
    pub fn noted_ns(&self) -> u64 {
        if self.delivered_ns > 0 { self.arrived_ns } else { 0 }
    }

    /// Nothing came until then, nanoseconds since the epoch: whoever listened knows, and a recording tells.
    pub fn heard_nothing_until(&mut self, now_ns: u64) {
        self.arrived_ns = self.arrived_ns.max(now_ns);
    }

    /// Keeps this request from eviction while somebody looks at it.
    pub fn pin(&mut self, key: Option<RequestKey>) {
        self.pinned = key.and_then(|key| self.resolve(key));
    }

    fn touch_trace(&mut self, slot: usize) {
        if !self.traces[slot].dirty {
            self.traces[slot].dirty = true;
            self.dirty_traces.push(slot as u32);
        }
    }

    fn touch_request(&mut self, key: RequestKey) {
        if let Some(request) = self.requests.get_mut(&key)
            && !request.dirty
        {
            request.dirty = true;
            self.dirty_requests.push(key);
        }
    }
}
