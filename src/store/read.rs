//! Reading: requests in order, their facts, their whole view.

use std::collections::BTreeMap;

use super::held::Until;
use super::interner::NONE;
use super::rows::{Row, Rows};
use super::trace::Trace;
use super::traces::Traces;
use super::{Request, Store, Tables};
use crate::lifecycle::body::{Body, Pieces};
use crate::lifecycle::context::{Resource, Scope};
use crate::lifecycle::facts::Facts;
use crate::lifecycle::ids::SpanId;
use crate::lifecycle::record::Record;
use crate::lifecycle::request::{RequestKey, RequestView, SpanView, Up};
use crate::lifecycle::stage::Stage;

impl Store {
    /// Requests held, in the order of their first sign (oldest first); iterate in reverse for newest first.
    pub fn requests(&self) -> impl DoubleEndedIterator<Item = (RequestKey, &Facts)> {
        self.requests.iter().map(|(key, request)| (*key, &request.facts))
    }

    /// How many requests are held.
    pub fn len(&self) -> usize {
        self.requests.len()
    }

    /// Whether no request is held.
    pub fn is_empty(&self) -> bool {
        self.requests.is_empty()
    }

    /// The facts of a request; follows requests that were joined into others.
    pub fn facts(&self, key: RequestKey) -> Option<&Facts> {
        self.requests.get(&self.resolve(key)?).map(|request| &request.facts)
    }

    /// The whole view of a request; follows requests that were joined into others.
    pub fn request(&self, key: RequestKey) -> Option<RequestView<'_>> {
        let key = self.resolve(key)?;
        let request = self.requests.get(&key)?;
        Some(view(&self.tables, &self.traces, key, request, &request.facts, usize::MAX, Until::Now))
    }

    /// The request that this key means now, after joins; `None` when it is gone.
    pub fn resolve(&self, key: RequestKey) -> Option<RequestKey> {
        if self.requests.contains_key(&key) {
            return Some(key);
        }
        self.aliases.get(&key).copied().filter(|key| self.requests.contains_key(key))
    }

    /// When there last was news of a request.
    pub fn news_ns(&self, key: RequestKey) -> Option<u64> {
        self.requests.get(&self.resolve(key)?).map(|request| request.news_ns())
    }

    /// Every span held, one after the other, control traffic too: for exports and reports of everything.
    pub fn spans(&self) -> impl Iterator<Item = SpanView<'_>> {
        self.traces.iter().flat_map(move |trace| {
            let rows = trace.rows();
            let live: Vec<usize> = trace.live(&rows).collect();
            live.into_iter().map(move |at| view_of(&self.tables, trace, &rows, at, Up::Elsewhere))
        })
    }

    /// Records held, of requests and of none. Walks the store.
    pub fn records(&self) -> impl Iterator<Item = &Record> {
        let moved = self.moved_records.iter().map(|(_, record)| record);
        self.requests.values().flat_map(|request| request.records.iter()).chain(moved).chain(self.loose.iter())
    }

    /// Spans held by name. Walks the store.
    pub fn spans_by_name(&self) -> BTreeMap<&str, u64> {
        let mut counts: BTreeMap<u32, u64> = BTreeMap::new();
        for trace in self.traces.iter() {
            let rows = trace.rows();
            for at in trace.live(&rows) {
                *counts.entry(rows[at].name).or_default() += 1;
            }
        }
        counts.into_iter().map(|(name, count)| (self.tables.text(name), count)).collect()
    }

    /// Traces held that have spans. Walks the store.
    pub fn traces(&self) -> u64 {
        self.traces.iter().filter(|trace| trace.len() > 0).count() as u64
    }

    /// Records that belong to no request, such as tool events.
    pub fn loose_records(&self) -> impl Iterator<Item = &Record> {
        self.loose.iter()
    }
}

/// A request as it is read, by these facts, with `most` of its spans or about so many.
pub(super) fn view<'a>(
    tables: &'a Tables,
    traces: &'a Traces,
    key: RequestKey,
    request: &'a Request,
    facts: &'a Facts,
    most: usize,
    until: Until,
) -> RequestView<'a> {
    let spans = if most == 0 { Vec::new() } else { spans_of(tables, traces, key, request, most, until) };
    let records = request.records.iter().filter(|record| until.knows_record(record)).collect();
    RequestView { key, facts, spans, records }
}

/// The spans of a request from all its traces, by start then id, with their parents found. Of more than `most` those
/// that came first and those that tell of the request as a whole. Spans that came or were known later than `until` are left out.
pub(super) fn spans_of<'a>(
    tables: &'a Tables,
    traces: &'a Traces,
    key: RequestKey,
    request: &Request,
    most: usize,
    until: Until,
) -> Vec<SpanView<'a>> {
    let all: Vec<(&Trace, Rows<'_>)> = request
        .traces
        .iter()
        .map(|slot| {
            let trace: &Trace = &traces[slot];
            (trace, trace.rows())
        })
        .collect();
    // Start, and which row of which trace.
    let mut order: Vec<(u64, u32, u32)> = Vec::new();
    for (number, (trace, rows)) in all.iter().enumerate() {
        let known = trace.rows_of(key).filter(|at| until.knows(trace, &rows[*at], *at));
        order.extend(known.map(|at| (rows[at].start_ns, number as u32, at as u32)));
    }
    if order.len() > most {
        let tells = |at: &(u64, u32, u32)| {
            let stage = all[at.1 as usize].1[at.2 as usize].stage;
            matches!(stage, Stage::Http | Stage::Root | Stage::Preprocessing | Stage::Streaming)
        };
        let rest = order.split_off(most);
        order.extend(rest.into_iter().filter(tells).take(most));
    }
    let ids = |number: u32, at: u32| {
        let (trace, rows) = &all[number as usize];
        (trace.id, rows[at as usize].id)
    };
    order.sort_unstable_by(|a, b| a.0.cmp(&b.0).then_with(|| ids(a.1, a.2).cmp(&ids(b.1, b.2))));
    // Where each row now stands, to turn parent rows into indexes of the view.
    let mut place: Vec<(u32, u32, u32)> =
        order.iter().enumerate().map(|(index, (_, number, at))| (*number, *at, index as u32)).collect();
    place.sort_unstable();
    let finders: Vec<Finder<'_>> = all.iter().map(|(trace, rows)| Finder::new(trace, rows)).collect();
    let mut spans: Vec<SpanView<'a>> = Vec::with_capacity(order.len());
    for (_, number, at) in order {
        let (trace, rows) = &all[number as usize];
        let up = match rows[at as usize].parent {
            None => Up::Top,
            Some(parent) => match finders[number as usize].find(parent) {
                None => Up::Missing,
                Some(above) if !until.knows(trace, &rows[above], above) => Up::Missing,
                Some(above) => {
                    match place.binary_search_by_key(&(number, above as u32), |(number, at, _)| (*number, *at)) {
                        Ok(found) => Up::At(place[found].2),
                        Err(_) => Up::Elsewhere,
                    }
                }
            },
        };
        spans.push(view_of(tables, trace, rows, at as usize, up));
    }
    cut_cycles(&mut spans);
    spans
}

/// Finds rows by span id in whichever form a trace is.
enum Finder<'a> {
    /// Open: the trace knows.
    Open(&'a Trace),
    /// Few rows: looking at each is fastest.
    Few(&'a [Row]),
    /// Packed and many: sorted here.
    Sorted(Vec<(SpanId, u32)>),
}

impl<'a> Finder<'a> {
    fn new(trace: &'a Trace, rows: &'a [Row]) -> Self {
        if trace.rows.len() == rows.len() {
            return Self::Open(trace);
        }
        if rows.len() < 48 {
            return Self::Few(rows);
        }
        let mut sorted: Vec<_> = rows.iter().enumerate().map(|(at, row)| (row.id, at as u32)).collect();
        sorted.sort_unstable();
        Self::Sorted(sorted)
    }

    fn find(&self, id: SpanId) -> Option<usize> {
        match self {
            Self::Open(trace) => trace.find(id),
            Self::Few(rows) => rows.iter().position(|row| row.id == id),
            Self::Sorted(sorted) => {
                sorted.binary_search_by_key(&id, |(id, _)| *id).ok().map(|found| sorted[found].1 as usize)
            }
        }
    }
}

/// Makes every chain of parents end: the span at which a walk returns to itself stands on top, marked.
fn cut_cycles(spans: &mut [SpanView<'_>]) {
    // 0: not walked; otherwise the number of the walk that passed here.
    let mut walked = vec![0u32; spans.len()];
    for start in 0..spans.len() {
        let walk = start as u32 + 1;
        let mut at = start;
        while walked[at] == 0 {
            walked[at] = walk;
            let Up::At(parent) = spans[at].up else { break };
            if walked[parent as usize] == walk {
                spans[at].up = Up::Cycle;
                break;
            }
            at = parent as usize;
        }
    }
}

fn view_of<'a>(tables: &'a Tables, trace: &'a Trace, rows: &[Row], at: usize, up: Up) -> SpanView<'a> {
    let row = &rows[at];
    SpanView {
        trace: trace.id,
        id: row.id,
        parent: row.parent,
        up,
        name: tables.texts.text(row.name),
        stage: row.stage,
        kind: row.kind,
        start_ns: row.start_ns,
        end_ns: row.end_ns,
        body: Body::new(trace.body(rows, at), tables),
        resource: Resource(tables.contexts.get(row.resource)),
        scope: Scope(tables.contexts.get(row.scope)),
    }
}

impl Tables {
    /// The request id that a row carries; `None` when it carries none, or the producer's word for none.
    pub(super) fn rid(&self, row: &Row) -> Option<&str> {
        if row.rid == NONE {
            return None;
        }
        self.attr(row.rid).value.as_str().filter(|id| !id.is_empty() && *id != "unknown")
    }
}
