//! Reading: requests in order, their facts, their whole view.

use std::collections::BTreeMap;

use super::interner::NONE;
use super::trace::{Row, Trace};
use super::{Request, Store, Tables};
use crate::lifecycle::body::{Body, Pieces};
use crate::lifecycle::context::{Resource, Scope};
use crate::lifecycle::facts::Facts;
use crate::lifecycle::record::Record;
use crate::lifecycle::request::{RequestKey, RequestView, SpanView, Up};

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
        Some(RequestView {
            key,
            facts: &request.facts,
            spans: spans_of(&self.tables, &self.traces, key, request),
            records: request.records.iter().collect(),
        })
    }

    /// The request that this key means now, after joins; `None` when it is gone.
    pub fn resolve(&self, key: RequestKey) -> Option<RequestKey> {
        if self.requests.contains_key(&key) {
            return Some(key);
        }
        self.aliases.get(&key).copied().filter(|key| self.requests.contains_key(key))
    }

    /// When something last came for a request.
    pub fn news_ns(&self, key: RequestKey) -> Option<u64> {
        self.requests.get(&self.resolve(key)?).map(|request| request.news_ns)
    }

    /// Every span held, one after the other, control traffic too: for exports and reports of everything.
    pub fn spans(&self) -> impl Iterator<Item = SpanView<'_>> {
        self.traces.iter().flat_map(move |trace| {
            (0..trace.rows.len()).map(move |row| view_of(&self.tables, trace, row, Up::Elsewhere))
        })
    }

    /// Spans held by name. Walks the store.
    pub fn spans_by_name(&self) -> BTreeMap<&str, u64> {
        let mut counts: BTreeMap<u32, u64> = BTreeMap::new();
        for row in self.traces.iter().flat_map(|trace| &trace.rows) {
            *counts.entry(row.name).or_default() += 1;
        }
        counts.into_iter().map(|(name, count)| (self.tables.text(name), count)).collect()
    }

    /// Traces held that have spans. Walks the store.
    pub fn traces(&self) -> u64 {
        self.traces.iter().filter(|trace| !trace.rows.is_empty()).count() as u64
    }

    /// Records that belong to no request, such as tool events.
    pub fn loose_records(&self) -> impl Iterator<Item = &Record> {
        self.loose.iter()
    }
}

/// The spans of a request from all its traces, by start then id, with their parents found.
pub(super) fn spans_of<'a>(
    tables: &'a Tables,
    traces: &'a [Trace],
    key: RequestKey,
    request: &Request,
) -> Vec<SpanView<'a>> {
    let mut spans: Vec<(SpanView<'a>, u32, u32)> = Vec::new();
    for slot in &request.traces {
        let trace = &traces[*slot as usize];
        spans.extend(trace.rows_of(key).map(|at| (view_of(tables, trace, at, Up::Top), *slot, at as u32)));
    }
    spans.sort_unstable_by_key(|(span, ..)| (span.start_ns, span.trace, span.id));
    // Where each row now stands, to turn parent rows into indexes of the view.
    let mut place: Vec<(u32, u32, u32)> =
        spans.iter().enumerate().map(|(index, (_, slot, at))| (*slot, *at, index as u32)).collect();
    place.sort_unstable();
    for (span, slot, at) in &mut spans {
        let trace = &traces[*slot as usize];
        let row: &Row = &trace.rows[*at as usize];
        span.up = match row.parent {
            None => Up::Top,
            Some(parent) => match trace.find(parent) {
                None => Up::Missing,
                Some(above) => match place.binary_search_by_key(&(*slot, above as u32), |(slot, at, _)| (*slot, *at)) {
                    Ok(found) => Up::At(place[found].2),
                    Err(_) => Up::Elsewhere,
                },
            },
        };
    }
    let mut spans: Vec<SpanView<'a>> = spans.into_iter().map(|(span, ..)| span).collect();
    cut_cycles(&mut spans);
    spans
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

fn view_of<'a>(tables: &'a Tables, trace: &'a Trace, at: usize, up: Up) -> SpanView<'a> {
    let row = &trace.rows[at];
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
        body: Body::new(trace.body(at), tables),
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
