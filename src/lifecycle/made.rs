//! Batches made by hand, for tests: spans from keys and texts.

use super::batch::{Batch, ResourceIn, ScopeIn, SpanIn};
use super::ids::{SpanId, TraceId};
use super::packed::{self, Value};

/// A span to be sent.
pub struct Made<'a> {
    /// Its trace.
    pub trace: TraceId,
    /// Its id as a number.
    pub id: u64,
    /// Its parent's; 0 for none.
    pub parent: u64,
    /// Its name.
    pub name: &'a str,
    /// OTLP's kind number.
    pub kind: i32,
    /// Start, Unix nanoseconds.
    pub start_ns: u64,
    /// End, Unix nanoseconds.
    pub end_ns: u64,
    /// Attributes that the sender dropped.
    pub dropped: u32,
    /// Who sends it.
    pub resource: Vec<(&'a str, &'a str)>,
    /// What it carries.
    pub attrs: Vec<(&'a str, &'a str)>,
}

/// A batch of these spans, each with a resource of its own.
pub fn with_batch<T>(spans: &[Made<'_>], take: impl FnOnce(Batch<'_>) -> T) -> T {
    let pack = |list: &[(&str, &str)]| -> Vec<Vec<u8>> {
        list.iter().map(|(key, value)| packed::pack(key, Value::Str(value))).collect()
    };
    let packed: Vec<_> = spans.iter().map(|span| (pack(&span.resource), pack(&span.attrs))).collect();
    let mut batch = Batch { scopes: vec![ScopeIn::default()], ..Batch::default() };
    for (span, (resource, attrs)) in spans.iter().zip(&packed) {
        let from = batch.attrs.len() as u32;
        batch.attrs.extend(resource.iter().map(Vec::as_slice));
        let start = batch.attrs.len() as u32;
        batch.attrs.extend(attrs.iter().map(Vec::as_slice));
        batch.resources.push(ResourceIn { attrs: from..start, ..ResourceIn::default() });
        batch.spans.push(SpanIn {
            trace: span.trace,
            id: SpanId(span.id.to_be_bytes()),
            parent: (span.parent > 0).then(|| SpanId(span.parent.to_be_bytes())),
            name: span.name.as_bytes(),
            kind: span.kind,
            start_ns: span.start_ns,
            end_ns: span.end_ns,
            attrs: start..batch.attrs.len() as u32,
            events: 0..0,
            links: 0..0,
            resource: batch.resources.len() as u32 - 1,
            scope: 0,
            status_code: 0,
            status_message: b"",
            trace_state: b"",
            flags: 257,
            dropped: [span.dropped, 0, 0],
        });
    }
    take(batch)
}
