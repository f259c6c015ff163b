//! The borrowed view of a request: its spans as a tree, its records, its facts. What checks, filters and panes read.

use std::collections::HashMap;

use super::body::{Attr, Body, Event};
use super::catalogue::Field;
use super::context::{Resource, Scope};
use super::facts::Facts;
use super::ids::{SpanId, TraceId};
use super::packed::Value;
use super::record::Record;
use super::stage::Stage;

/// The store's name for a request: stable for as long as the request is kept, never used again.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct RequestKey(pub u64);

/// A kept span, borrowed.
#[derive(Clone, Copy)]
pub struct SpanView<'a> {
    /// Its trace.
    pub trace: TraceId,
    /// Its id.
    pub id: SpanId,
    /// The parent it names.
    pub parent: Option<SpanId>,
    /// Where that parent is.
    pub up: Up,
    /// Its name.
    pub name: &'a str,
    /// What it is evidence of.
    pub stage: Stage,
    /// OTLP's span kind number.
    pub kind: i32,
    /// Start as received; 0 when not known.
    pub start_ns: u64,
    /// End as received; 0 when not ended.
    pub end_ns: u64,
    /// Everything else.
    pub body: Body<'a>,
    /// Who sent it.
    pub resource: Resource<'a>,
    /// Which instrumentation made it.
    pub scope: Scope<'a>,
}

/// Where a span's parent is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Up {
    /// It names none.
    Top,
    /// The span at this index of [`RequestView::spans`].
    At(u32),
    /// Named, and not arrived.
    Missing,
    /// In the same trace, in another request or in none.
    Elsewhere,
    /// Following parents leads back to this span; drawn as if at the top.
    Cycle,
}

impl<'a> SpanView<'a> {
    /// The last value of a field, as the spec's rule for repeated keys says.
    pub fn get(&self, field: Field) -> Option<Value<'a>> {
        self.body.attrs().unread().filter(|attr| attr.field == field).last().map(|attr| attr.value())
    }

    /// The last text of a field; empty when absent or not text.
    pub fn text(&self, field: Field) -> &'a str {
        self.get(field).and_then(Value::as_str).unwrap_or("")
    }

    /// The last number of a field, however it was written.
    pub fn number(&self, field: Field) -> Option<u64> {
        self.get(field).and_then(Value::as_u64)
    }

    /// The last count of a field.
    pub fn counted(&self, field: Field) -> Option<u64> {
        self.get(field).and_then(Value::as_count)
    }

    /// The value of an attribute by name, last one first.
    pub fn attr(&self, key: &str) -> Option<Attr<'a>> {
        self.body.attrs().filter(|attr| attr.key == key).last()
    }

    /// The first event of a name.
    pub fn event(&self, name: &str) -> Option<Event<'a>> {
        self.body.events().into_iter().find(|event| event.name == name)
    }

    /// Its duration, nanoseconds: 0 when it ends before it starts, or when one of its times is not known.
    pub fn duration_ns(&self) -> u64 {
        if self.start_ns == 0 {
            return 0;
        }
        self.end_ns.saturating_sub(self.start_ns)
    }

    /// The process it came from: service and, within the lifecycle schema, the process epoch.
    pub fn process(&self) -> (&'a str, &'a str) {
        (self.resource.service(), self.text(Field::Epoch))
    }
}

/// A request, borrowed from the store.
pub struct RequestView<'a> {
    /// The store's name for it.
    pub key: RequestKey,
    /// Its digest.
    pub facts: &'a Facts,
    /// Its spans, by start then id.
    pub spans: Vec<SpanView<'a>>,
    /// Its records, in the order they arrived.
    pub records: Vec<&'a Record>,
}

/// A row of the tree.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TreeRow {
    /// What stands there.
    pub node: Node,
    /// How deep.
    pub depth: u32,
    /// How many rows below belong to it.
    pub below: u32,
}

/// What a row of the tree stands for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Node {
    /// The span at this index of [`RequestView::spans`].
    Span(u32),
    /// A parent that is named and has not arrived.
    Missing(SpanId),
}

/// The event with which a frontend says that its answer has begun, and with which HTTP status (spec lifecycle-spans §6).
const ANSWERED: &str = "http response sent";

impl RequestView<'_> {
    /// The HTTP status that it was answered with; `None` when no span says.
    pub fn http_status(&self) -> Option<u64> {
        let frontend = self.spans.iter().filter(|span| span.stage == Stage::Http);
        let mut answers = frontend.filter_map(|span| span.event(ANSWERED));
        answers.find_map(|event| event.attrs.clone().find(|attr| attr.key == "status")?.value.as_u64())
    }

    /// The tree in reading order: parents before children, siblings by start. Spans whose parent has not arrived stand
    /// below a row that names it. Works on chains of any depth.
    pub fn tree(&self) -> Vec<TreeRow> {
        let mut children: Vec<Vec<u32>> = vec![Vec::new(); self.spans.len()];
        let mut missing: HashMap<SpanId, Vec<u32>> = HashMap::new();
        let mut stack: Vec<(Node, u32)> = Vec::new();
        for (index, span) in self.spans.iter().enumerate() {
            let index = index as u32;
            match (span.up, span.parent) {
                (Up::At(parent), _) => children[parent as usize].push(index),
                (Up::Missing, Some(parent)) => {
                    let below = missing.entry(parent).or_default();
                    if below.is_empty() {
                        stack.push((Node::Missing(parent), 0));
                    }
                    below.push(index);
                }
                _ => stack.push((Node::Span(index), 0)),
            }
        }
        stack.reverse();
        let mut rows: Vec<TreeRow> = Vec::with_capacity(self.spans.len() + missing.len());
        while let Some((node, depth)) = stack.pop() {
            rows.push(TreeRow { node, depth, below: 0 });
            let below: &[u32] = match node {
                Node::Span(index) => &children[index as usize],
                Node::Missing(id) => missing.get(&id).map_or(&[], Vec::as_slice),
            };
            stack.extend(below.iter().rev().map(|index| (Node::Span(*index), depth + 1)));
        }
        let mut open: Vec<usize> = Vec::new();
        for index in 0..=rows.len() {
            let depth = rows.get(index).map_or(0, |row| row.depth) as usize;
            while open.len() > depth {
                if let Some(above) = open.pop() {
                    rows[above].below = (index - above - 1) as u32;
                }
            }
            open.push(index);
        }
        rows
    }
}
