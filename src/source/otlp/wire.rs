//! OTLP protobuf → batch: one pass over borrowed bytes, no generated structs, no work on text.
//!
//! Owns: the structure of export requests, the validation of ids, the counting of metric points; in its rooms, log records
//! and the telling of signals. Keeps out: what log records mean (`super::logs`), the inside of attributes
//! (`lifecycle::packed`, cleaned by the store), transport.
//! Nesting is bounded by construction: the walk knows its levels and never recurses; attribute values stay packed.
//! Known fields with another wire type are skipped like unknown ones, as protobuf's own parsers do.

mod apart;
mod records;
mod telling;

use crate::lifecycle::batch::{Batch, EventIn, LinkIn, ResourceIn, ScopeIn, Slice, SpanIn, Tally};
use crate::lifecycle::ids::{SpanId, TraceId};
use crate::lifecycle::text;
use crate::source::intake::Signal;

use super::walk::*;
pub use apart::{each_resource, unwrapped};
pub(super) use records::is_foreign;
pub use telling::signal_of;

/// Bytes a real span takes on the wire at least (spec lifecycle-spans: 0.7–1 kB): how much room a batch starts with.
const SPAN_BYTES: usize = 600;
/// Bytes a real attribute takes on the wire.
const ATTRIBUTE_BYTES: usize = 36;

/// Decodes an export request of any signal into `batch`.
///
/// # Errors
/// When the bytes are not well-formed protobuf: what was expected, in which message and field.
pub fn decode<'a>(signal: Signal, bytes: &'a [u8], batch: &mut Batch<'a>) -> Result<(), String> {
    match signal {
        Signal::Traces => traces(bytes, batch),
        Signal::Logs => logs(bytes, batch),
        Signal::Metrics => metrics(bytes, batch),
    }
}

/// Decodes an `ExportTraceServiceRequest`. A span with a bad id costs only itself: it is counted in the tally, with the
/// first reason.
///
/// # Errors
/// When the bytes are not well-formed protobuf: what was expected, in which message and field.
pub fn traces<'a>(bytes: &'a [u8], batch: &mut Batch<'a>) -> Result<(), String> {
    batch.spans.reserve(bytes.len() / SPAN_BYTES + 1);
    batch.attrs.reserve(bytes.len() / ATTRIBUTE_BYTES + 1);
    let mut spans = Spans { batch, events: Vec::new(), links: Vec::new(), most: SMALL + TIMES_ITS_SIZE * bytes.len() };
    let mut walk = Walk::over("ExportTraceServiceRequest", bytes);
    while let Some(tag) = walk.tag()? {
        match tag {
            LEN_1 => spans.resource_spans(walk.bytes(tag)?)?,
            _ => walk.skip(tag)?,
        }
    }
    Ok(())
}

/// Decodes an `ExportLogsServiceRequest`: trace records and signs are taken, everything else is counted.
///
/// # Errors
/// When the bytes are not well-formed protobuf: what was expected, in which message and field.
pub fn logs<'a>(bytes: &'a [u8], batch: &mut Batch<'a>) -> Result<(), String> {
    let mut attrs = Vec::new();
    let mut walk = Walk::over("ExportLogsServiceRequest", bytes);
    while let Some(tag) = walk.tag()? {
        match tag {
            LEN_1 => records::resource_logs(walk.bytes(tag)?, &mut attrs, batch)?,
            _ => walk.skip(tag)?,
        }
    }
    Ok(())
}

/// Counts the data points of an `ExportMetricsServiceRequest`.
///
/// # Errors
/// When the bytes are not well-formed protobuf: what was expected, in which message and field.
pub fn metrics(bytes: &[u8], batch: &mut Batch<'_>) -> Result<(), String> {
    batch.tally.metric_points += points(0, bytes)?;
    Ok(())
}

/// The walk over spans, with scratch lists for what must be read after a span's own attributes.
struct Spans<'a, 'b> {
    batch: &'b mut Batch<'a>,
    events: Vec<&'a [u8]>,
    links: Vec<&'a [u8]>,
    /// How many bytes the parts may take; see [`TIMES_ITS_SIZE`].
    most: usize,
}

/// How many times its size a message's parts (attributes, events, links, scopes, resources) may take in memory; those of one
/// that means something take less than that once. One of nothing but empty parts, two bytes each, would take thirty times its size;
/// one that reopens a resource again and again, without limit.
const TIMES_ITS_SIZE: usize = 4;
/// What they may take however small the message is, bytes.
const SMALL: usize = 8 << 10;

impl<'a> Spans<'a, '_> {
    /// Whether the parts, with the events and links still to come, take no more than those of a message of this size can.
    #[inline]
    fn fits(&self, message: &'static str, events: usize, links: usize) -> Result<(), Bad> {
        let batch = &*self.batch;
        let kept = batch.resources.len() * size_of::<ResourceIn<'_>>()
            + batch.scopes.len() * size_of::<ScopeIn<'_>>()
            + batch.attrs.len() * size_of::<&[u8]>()
            + (batch.events.len() + events) * size_of::<EventIn<'_>>()
            + (batch.links.len() + links) * size_of::<LinkIn<'_>>();
        if kept <= self.most { Ok(()) } else { Err(Bad::hollow(message)) }
    }

    fn resource_spans(&mut self, bytes: &'a [u8]) -> Result<(), Bad> {
        let index = self.batch.resources.len();
        self.batch.resources.push(ResourceIn::default());
        self.fits("ResourceSpans", 0, 0)?;
        let mut walk = Walk::over("ResourceSpans", bytes);
        while let Some(tag) = walk.tag()? {
            match tag {
                LEN_1 => self.resource(index, walk.bytes(tag)?)?,
                LEN_2 => self.scope_spans(index as u32, walk.bytes(tag)?)?,
                LEN_3 => self.batch.resources[index].schema_url = walk.bytes(tag)?,
                _ => walk.skip(tag)?,
            }
        }
        Ok(())
    }

    fn resource(&mut self, index: usize, bytes: &'a [u8]) -> Result<(), Bad> {
        let from = self.reopen(self.batch.resources[index].attrs.clone())?;
        let mut walk = Walk::over("Resource", bytes);
        while let Some(tag) = walk.tag()? {
            match tag {
                LEN_1 => self.attr(walk.bytes(tag)?)?,
                VAR_2 => self.batch.resources[index].dropped = walk.number(tag)? as u32,
                _ => walk.skip(tag)?,
            }
        }
        self.batch.resources[index].attrs = self.attrs_since(from);
        Ok(())
    }

    fn scope_spans(&mut self, resource: u32, bytes: &'a [u8]) -> Result<(), Bad> {
        let index = self.batch.scopes.len();
        self.batch.scopes.push(ScopeIn::default());
        self.fits("ScopeSpans", 0, 0)?;
        let mut walk = Walk::over("ScopeSpans", bytes);
        while let Some(tag) = walk.tag()? {
            match tag {
                LEN_1 => self.scope(index, walk.bytes(tag)?)?,
                LEN_2 => self.span(resource, index as u32, walk.bytes(tag)?)?,
                LEN_3 => self.batch.scopes[index].schema_url = walk.bytes(tag)?,
                _ => walk.skip(tag)?,
            }
        }
        Ok(())
    }

    fn scope(&mut self, index: usize, bytes: &'a [u8]) -> Result<(), Bad> {
        let from = self.reopen(self.batch.scopes[index].attrs.clone())?;
        let mut walk = Walk::over("InstrumentationScope", bytes);
        while let Some(tag) = walk.tag()? {
            match tag {
                LEN_1 => self.batch.scopes[index].name = walk.bytes(tag)?,
                LEN_2 => self.batch.scopes[index].version = walk.bytes(tag)?,
                LEN_3 => self.attr(walk.bytes(tag)?)?,
                VAR_4 => self.batch.scopes[index].dropped = walk.number(tag)? as u32,
                _ => walk.skip(tag)?,
            }
        }
        self.batch.scopes[index].attrs = self.attrs_since(from);
        Ok(())
    }

    fn span(&mut self, resource: u32, scope: u32, bytes: &'a [u8]) -> Result<(), Bad> {
        const NONE: &[u8] = &[];
        let from = self.batch.attrs.len();
        self.events.clear();
        self.links.clear();
        let (mut trace, mut id, mut parent, mut name, mut trace_state) = (NONE, NONE, NONE, NONE, NONE);
        let (mut status_code, mut status_message) = (0, NONE);
        let (mut kind, mut start_ns, mut end_ns, mut flags, mut dropped) = (0, 0, 0, 0, [0; 3]);
        let mut walk = Walk::over("Span", bytes);
        while let Some(tag) = walk.tag()? {
            match tag {
                LEN_9 => self.attr(walk.bytes(tag)?)?,
                LEN_1 => trace = walk.bytes(tag)?,
                LEN_2 => id = walk.bytes(tag)?,
                LEN_3 => trace_state = walk.bytes(tag)?,
                LEN_4 => parent = walk.bytes(tag)?,
                LEN_5 => name = walk.bytes(tag)?,
                VAR_6 => kind = walk.number(tag)? as i32,
                F64_7 => start_ns = walk.fixed64(tag)?,
                F64_8 => end_ns = walk.fixed64(tag)?,
                VAR_10 => dropped[0] = walk.number(tag)? as u32,
                LEN_11 => {
                    self.to_come(self.events.len() == self.events.capacity())?;
                    self.events.push(walk.bytes(tag)?);
                }
                VAR_12 => dropped[1] = walk.number(tag)? as u32,
                LEN_13 => {
                    self.to_come(self.links.len() == self.links.capacity())?;
                    self.links.push(walk.bytes(tag)?);
                }
                VAR_14 => dropped[2] = walk.number(tag)? as u32,
                LEN_15 => {
                    let mut status = Walk::over("Status", walk.bytes(tag)?);
                    while let Some(tag) = status.tag()? {
                        match tag {
                            LEN_2 => status_message = status.bytes(tag)?,
                            VAR_3 => status_code = status.number(tag)? as i32,
                            _ => status.skip(tag)?,
                        }
                    }
                }
                F32_16 => flags = walk.fixed32(tag)?,
                _ => walk.skip(tag)?,
            }
        }
        let attrs = self.attrs_since(from);
        let (Some(trace), Some(id), Ok(parent)) =
            (TraceId::from_bytes(trace), SpanId::from_bytes(id), parent_of(parent))
        else {
            self.batch.attrs.truncate(from);
            refuse(&mut self.batch.tally, name, trace, id, parent);
            return Ok(());
        };
        self.fits("Span", self.events.len(), self.links.len())?;
        let events = self.batch.events.len() as u32;
        for index in 0..self.events.len() {
            self.event(self.events[index])?;
        }
        let links = self.batch.links.len() as u32;
        for index in 0..self.links.len() {
            self.link(self.links[index])?;
        }
        self.batch.spans.push(SpanIn {
            trace,
            id,
            parent,
            name,
            kind,
            start_ns,
            end_ns,
            attrs,
            events: events..self.batch.events.len() as u32,
            links: links..self.batch.links.len() as u32,
            resource,
            scope,
            status_code,
            status_message,
            trace_state,
            flags,
            dropped,
        });
        Ok(())
    }

    fn event(&mut self, bytes: &'a [u8]) -> Result<(), Bad> {
        let from = self.batch.attrs.len();
        let mut event = EventIn { time_ns: 0, name: &[], attrs: 0..0, dropped: 0 };
        let mut walk = Walk::over("Event", bytes);
        while let Some(tag) = walk.tag()? {
            match tag {
                F64_1 => event.time_ns = walk.fixed64(tag)?,
                LEN_2 => event.name = walk.bytes(tag)?,
                LEN_3 => self.attr(walk.bytes(tag)?)?,
                VAR_4 => event.dropped = walk.number(tag)? as u32,
                _ => walk.skip(tag)?,
            }
        }
        event.attrs = self.attrs_since(from);
        self.batch.events.push(event);
        Ok(())
    }

    fn link(&mut self, bytes: &'a [u8]) -> Result<(), Bad> {
        let from = self.batch.attrs.len();
        let mut link = LinkIn { trace: &[], span: &[], trace_state: &[], flags: 0, attrs: 0..0, dropped: 0 };
        let mut walk = Walk::over("Link", bytes);
        while let Some(tag) = walk.tag()? {
            match tag {
                LEN_1 => link.trace = walk.bytes(tag)?,
                LEN_2 => link.span = walk.bytes(tag)?,
                LEN_3 => link.trace_state = walk.bytes(tag)?,
                LEN_4 => self.attr(walk.bytes(tag)?)?,
                VAR_5 => link.dropped = walk.number(tag)? as u32,
                F32_6 => link.flags = walk.fixed32(tag)?,
                _ => walk.skip(tag)?,
            }
        }
        // An id that only points somewhere is left out when it is none, as in JSON.
        link.trace = if link.trace.len() == 16 { link.trace } else { &[] };
        link.span = if link.span.len() == 8 { link.span } else { &[] };
        link.attrs = self.attrs_since(from);
        self.batch.links.push(link);
        Ok(())
    }

    /// Looks at the bound before there is to be more room for the span's events and links.
    #[inline]
    fn to_come(&self, more: bool) -> Result<(), Bad> {
        if more { self.fits("Span", self.events.len(), self.links.len()) } else { Ok(()) }
    }

    /// Keeps an attribute; looks at the bound before there is to be more room for them.
    #[inline]
    fn attr(&mut self, bytes: &'a [u8]) -> Result<(), Bad> {
        if self.batch.attrs.len() == self.batch.attrs.capacity() {
            self.fits("attributes", 0, 0)?;
        }
        self.batch.attrs.push(bytes);
        Ok(())
    }

    fn attrs_since(&self, from: usize) -> Slice {
        from as u32..self.batch.attrs.len() as u32
    }

    /// Where a message's attributes start; those of an earlier part of the same message (protobuf allows one to come
    /// in pieces) are brought along, so that the range stays one piece.
    fn reopen(&mut self, earlier: Slice) -> Result<usize, Bad> {
        let from = self.batch.attrs.len();
        self.batch.attrs.extend_from_within(earlier.start as usize..earlier.end as usize);
        self.fits("Resource", 0, 0)?;
        Ok(from)
    }
}

/// The parent a span names: none when the id is empty or all zero, wrong when it is neither that nor an id.
fn parent_of(bytes: &[u8]) -> Result<Option<SpanId>, ()> {
    if bytes.iter().all(|byte| *byte == 0) {
        return Ok(None);
    }
    SpanId::from_bytes(bytes).map(Some).ok_or(())
}

/// Counts a refused span and keeps the first reason.
#[cold]
fn refuse(tally: &mut Tally, name: &[u8], trace: &[u8], id: &[u8], parent: &[u8]) {
    tally.refuse_span(TraceId::from_bytes(trace));
    if tally.refusal.is_some() {
        return;
    }
    let (field, expected, found) = if TraceId::from_bytes(trace).is_none() {
        ("traceId", "16 bytes (32 hex digits), not all zero", trace)
    } else if SpanId::from_bytes(id).is_none() {
        ("spanId", "8 bytes (16 hex digits), not all zero", id)
    } else {
        ("parentSpanId", "8 bytes (16 hex digits) or none", parent)
    };
    let found = match found.len() {
        0 => "none".to_owned(),
        _ if found.iter().all(|byte| *byte == 0) => "only zeros".to_owned(),
        length => format!("{length} bytes"),
    };
    let name: String = text::scrub(name).chars().take(80).collect();
    tally.refusal = Some(format!("span {name:?}: {field}: expected {expected}, found {found}"));
}

/// Counts data points, level by level: request, resource, scope, metric, data.
fn points(level: usize, bytes: &[u8]) -> Result<u64, Bad> {
    const LEVELS: [&str; 5] = ["ExportMetricsServiceRequest", "ResourceMetrics", "ScopeMetrics", "Metric", "data"];
    let mut count = 0;
    let mut walk = Walk::over(LEVELS[level], bytes);
    while let Some(tag) = walk.tag()? {
        match (level, tag) {
            (0, LEN_1) | (1 | 2, LEN_2) | (3, LEN_5 | LEN_7 | LEN_9 | LEN_10 | LEN_11) => {
                count += points(level + 1, walk.bytes(tag)?)?;
            }
            (4, LEN_1) => {
                walk.skip(tag)?;
                count += 1;
            }
            _ => walk.skip(tag)?,
        }
    }
    Ok(count)
}

#[cfg(test)]
mod tests;
