//! OTLP protobuf → a batch, in one pass over borrowed bytes, without the generated structs.
//!
//! Field numbers are those of opentelemetry-proto 1.x. Unknown fields are skipped. A message that is not protobuf, or a
//! field whose wire type is not its own, costs the request; a span with bad ids costs only itself. Owns: the walk and
//! the validation of ids. Keeps out: text (the store cleans what it keeps), trace records and logs (`logs`).

use crate::lifecycle::batch::{Batch, EventIn, LinkIn, ResourceIn, ScopeIn, Slice, SpanIn};
use crate::lifecycle::ids::{SpanId, TraceId};
use crate::lifecycle::packed::{Fields, Wire};

/// Why a message is refused: what was expected, where.
pub type Malformed = String;

/// Walks the fields of a message and checks that all of it was read.
pub(super) fn each<'a>(
    bytes: &'a [u8],
    what: &str,
    mut take: impl FnMut(u32, Wire<'a>) -> Result<(), Malformed>,
) -> Result<(), Malformed> {
    let mut fields = Fields(bytes);
    for (number, field) in fields.by_ref() {
        take(number, field)?;
    }
    if fields.rest().is_empty() {
        Ok(())
    } else {
        let at = bytes.len() - fields.rest().len();
        Err(format!("malformed protobuf: expected a field of {what} at byte {at} of {}, found none", bytes.len()))
    }
}

/// The bytes of a length-delimited field.
pub(super) fn message<'a>(field: Wire<'a>, what: &str) -> Result<&'a [u8], Malformed> {
    match field {
        Wire::Bytes(bytes) => Ok(bytes),
        other => Err(format!("malformed protobuf: expected {what} as bytes, found {}", kind(other))),
    }
}

fn kind(field: Wire<'_>) -> &'static str {
    match field {
        Wire::Number(_) => "a number",
        Wire::Fixed64(_) => "eight fixed bytes",
        Wire::Fixed32(_) => "four fixed bytes",
        Wire::Bytes(_) => "bytes",
    }
}

/// The number of a scalar field, however its integer was written.
pub(super) fn number(field: Wire<'_>) -> u64 {
    match field {
        Wire::Number(number) | Wire::Fixed64(number) => number,
        Wire::Fixed32(number) => u64::from(number),
        Wire::Bytes(_) => 0,
    }
}

/// Reads an `ExportTraceServiceRequest` into the batch.
///
/// # Errors
/// When the bytes are no such message; what was read before stays in the batch and must be thrown away.
pub fn traces<'a>(bytes: &'a [u8], batch: &mut Batch<'a>) -> Result<(), Malformed> {
    each(bytes, "ExportTraceServiceRequest", |number, field| match number {
        1 => resource_spans(message(field, "resource_spans")?, batch),
        _ => Ok(()),
    })
}

fn resource_spans<'a>(bytes: &'a [u8], batch: &mut Batch<'a>) -> Result<(), Malformed> {
    let at = batch.resources.len() as u32;
    batch.resources.push(ResourceIn::default());
    each(bytes, "ResourceSpans", |number, field| match number {
        1 => {
            let resource = message(field, "resource")?;
            let start = batch.attrs.len() as u32;
            let mut dropped = 0;
            each(resource, "Resource", |number, field| {
                match number {
                    1 => batch.attrs.push(message(field, "attributes")?),
                    2 => dropped = self::number(field) as u32,
                    _ => {}
                }
                Ok(())
            })?;
            let attrs = start..batch.attrs.len() as u32;
            let resource = &mut batch.resources[at as usize];
            (resource.attrs, resource.dropped) = (attrs, dropped);
            Ok(())
        }
        2 => scope_spans(message(field, "scope_spans")?, at, batch),
        3 => {
            batch.resources[at as usize].schema_url = message(field, "schema_url")?;
            Ok(())
        }
        _ => Ok(()),
    })
}

fn scope_spans<'a>(bytes: &'a [u8], resource: u32, batch: &mut Batch<'a>) -> Result<(), Malformed> {
    let at = batch.scopes.len() as u32;
    batch.scopes.push(ScopeIn::default());
    each(bytes, "ScopeSpans", |number, field| match number {
        1 => {
            let read = scope(message(field, "scope")?, batch)?;
            let schema_url = batch.scopes[at as usize].schema_url;
            batch.scopes[at as usize] = ScopeIn { schema_url, ..read };
            Ok(())
        }
        2 => span(message(field, "spans")?, resource, at, batch),
        3 => {
            batch.scopes[at as usize].schema_url = message(field, "schema_url")?;
            Ok(())
        }
        _ => Ok(()),
    })
}

/// Reads an `InstrumentationScope`.
pub(super) fn scope<'a>(bytes: &'a [u8], batch: &mut Batch<'a>) -> Result<ScopeIn<'a>, Malformed> {
    let start = batch.attrs.len() as u32;
    let mut read = ScopeIn::default();
    each(bytes, "InstrumentationScope", |number, field| {
        match number {
            1 => read.name = message(field, "name")?,
            2 => read.version = message(field, "version")?,
            3 => batch.attrs.push(message(field, "attributes")?),
            4 => read.dropped = self::number(field) as u32,
            _ => {}
        }
        Ok(())
    })?;
    read.attrs = start..batch.attrs.len() as u32;
    Ok(read)
}

fn span<'a>(bytes: &'a [u8], resource: u32, scope: u32, batch: &mut Batch<'a>) -> Result<(), Malformed> {
    let (attrs, events, links) = (batch.attrs.len(), batch.events.len(), batch.links.len());
    let (mut trace, mut id, mut parent) = (&[][..], &[][..], &[][..]);
    let mut read = SpanIn {
        trace: TraceId([0; 16]),
        id: SpanId([0; 8]),
        parent: None,
        name: &[],
        kind: 0,
        start_ns: 0,
        end_ns: 0,
        attrs: 0..0,
        events: 0..0,
        links: 0..0,
        resource,
        scope,
        status_code: 0,
        status_message: &[],
        trace_state: &[],
        flags: 0,
        dropped: [0; 3],
    };
    // Events and links bring attributes of their own; those of the span must stand together, so both wait.
    let mut later = false;
    let mut fields = Fields(bytes);
    for (number, field) in fields.by_ref() {
        match (number, field) {
            (9, Wire::Bytes(bytes)) => batch.attrs.push(bytes),
            (1, Wire::Bytes(bytes)) => trace = bytes,
            (2, Wire::Bytes(bytes)) => id = bytes,
            (3, Wire::Bytes(bytes)) => read.trace_state = bytes,
            (4, Wire::Bytes(bytes)) => parent = bytes,
            (5, Wire::Bytes(bytes)) => read.name = bytes,
            (6, Wire::Number(kind)) => read.kind = kind as i32,
            (7, Wire::Fixed64(time)) => read.start_ns = time,
            (8, Wire::Fixed64(time)) => read.end_ns = time,
            (10, Wire::Number(count)) => read.dropped[0] = count as u32,
            (11 | 13, Wire::Bytes(_)) => later = true,
            (12, Wire::Number(count)) => read.dropped[1] = count as u32,
            (14, Wire::Number(count)) => read.dropped[2] = count as u32,
            (15, Wire::Bytes(status)) => each(status, "Status", |number, field| {
                match (number, field) {
                    (2, Wire::Bytes(message)) => read.status_message = message,
                    (3, Wire::Number(code)) => read.status_code = code as i32,
                    _ => {}
                }
                Ok(())
            })?,
            (16, Wire::Fixed32(flags)) => read.flags = flags,
            (1..=16, other) => {
                return Err(format!("malformed protobuf: field {number} of Span cannot be {}", kind(other)));
            }
            _ => {}
        }
    }
    if !fields.rest().is_empty() {
        return Err(format!(
            "malformed protobuf: expected a field of Span at byte {} of {}",
            bytes.len() - fields.rest().len(),
            bytes.len()
        ));
    }
    let valid = (|| {
        read.trace = TraceId::from_bytes(trace).ok_or_else(|| bad_id("traceId", 16, trace))?;
        read.id = SpanId::from_bytes(id).ok_or_else(|| bad_id("spanId", 8, id))?;
        read.parent = match parent {
            [] | [0, 0, 0, 0, 0, 0, 0, 0] => None,
            parent => Some(SpanId::from_bytes(parent).ok_or_else(|| bad_id("parentSpanId", 8, parent))?),
        };
        Ok(())
    })();
    if let Err(reason) = valid {
        batch.attrs.truncate(attrs);
        batch.tally.refused_spans += 1;
        batch.tally.refusal.get_or_insert(reason);
        return Ok(());
    }
    read.attrs = range(attrs, batch.attrs.len());
    if later {
        for (number, field) in Fields(bytes) {
            match (number, field) {
                (11, Wire::Bytes(event)) => self::event(event, batch)?,
                (13, Wire::Bytes(link)) => self::link(link, batch)?,
                _ => {}
            }
        }
        read.events = range(events, batch.events.len());
        read.links = range(links, batch.links.len());
    }
    batch.spans.push(read);
    Ok(())
}

fn range(start: usize, end: usize) -> Slice {
    start as u32..end as u32
}

fn bad_id(field: &str, length: usize, found: &[u8]) -> String {
    match found {
        [] => format!("{field}: expected {length} bytes, found none"),
        found if found.len() == length => format!("{field}: expected {length} bytes that are not all zero"),
        found => format!("{field}: expected {length} bytes, found {}", found.len()),
    }
}

fn event<'a>(bytes: &'a [u8], batch: &mut Batch<'a>) -> Result<(), Malformed> {
    let start = batch.attrs.len();
    let mut read = EventIn { time_ns: 0, name: &[], attrs: 0..0, dropped: 0 };
    each(bytes, "Event", |number, field| {
        match number {
            1 => read.time_ns = self::number(field),
            2 => read.name = message(field, "name")?,
            3 => batch.attrs.push(message(field, "attributes")?),
            4 => read.dropped = self::number(field) as u32,
            _ => {}
        }
        Ok(())
    })?;
    read.attrs = range(start, batch.attrs.len());
    batch.events.push(read);
    Ok(())
}

fn link<'a>(bytes: &'a [u8], batch: &mut Batch<'a>) -> Result<(), Malformed> {
    let start = batch.attrs.len();
    let mut read = LinkIn { trace: &[], span: &[], trace_state: &[], flags: 0, attrs: 0..0, dropped: 0 };
    each(bytes, "Link", |number, field| {
        match number {
            1 => read.trace = message(field, "trace_id")?,
            2 => read.span = message(field, "span_id")?,
            3 => read.trace_state = message(field, "trace_state")?,
            4 => batch.attrs.push(message(field, "attributes")?),
            5 => read.dropped = self::number(field) as u32,
            6 => read.flags = self::number(field) as u32,
            _ => {}
        }
        Ok(())
    })?;
    read.attrs = range(start, batch.attrs.len());
    batch.links.push(read);
    Ok(())
}

/// Counts the data points of an `ExportMetricsServiceRequest`.
///
/// # Errors
/// When the bytes are no such message.
pub fn metrics(bytes: &[u8], batch: &mut Batch<'_>) -> Result<(), Malformed> {
    // ResourceMetrics.scope_metrics, ScopeMetrics.metrics, then one of the kinds of Metric with its data points.
    let mut points = 0;
    each(bytes, "ExportMetricsServiceRequest", |number, field| {
        if number != 1 {
            return Ok(());
        }
        each(message(field, "resource_metrics")?, "ResourceMetrics", |number, field| {
            if number != 2 {
                return Ok(());
            }
            each(message(field, "scope_metrics")?, "ScopeMetrics", |number, field| {
                if number != 2 {
                    return Ok(());
                }
                each(message(field, "metrics")?, "Metric", |number, field| match (number, field) {
                    (5 | 7 | 9 | 10 | 11, Wire::Bytes(data)) => each(data, "a metric's data", |number, _| {
                        points += u64::from(number == 1);
                        Ok(())
                    }),
                    _ => Ok(()),
                })
            })
        })
    })?;
    batch.tally.metric_points += points;
    Ok(())
}
