//! Spans in the shape of OTLP's JSON, for the raw view and for export.
//!
//! Enums are numbers, 64-bit integers decimal strings, bytes base64, ids lower-case hex (OTLP specification, JSON
//! Protobuf encoding). What arrived leaves again: repeated keys, unknown enum numbers, empty lists, maps and texts, raw
//! times. Fields that hold protobuf's default are left out, as every encoder does. All of it is written while it is
//! walked, whatever its size. Owns: this form. Keeps out: files.

use std::collections::HashMap;
use std::io::{self, Write};

use base64::display::Base64Display;
use base64::engine::general_purpose::STANDARD as BASE64;
use serde::ser::{Serialize, SerializeMap, Serializer};

use crate::lifecycle::body::{Event, Link};
use crate::lifecycle::context::{Resource, Scope};
use crate::lifecycle::packed::Value;
use crate::lifecycle::record::{PayloadRecord, Record, RecordBody};
use crate::lifecycle::request::{RequestView, SpanView};

/// A span as an element of `spans`.
pub struct Span<'a, 'b>(pub &'b SpanView<'a>);

impl Serialize for Span<'_, '_> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let Self(span) = self;
        let head = span.body.head();
        let [dropped_attrs, dropped_events, dropped_links] = head.dropped;
        let mut out = to.serialize_map(None)?;
        out.serialize_entry("traceId", &span.trace.to_string())?;
        out.serialize_entry("spanId", &span.id.to_string())?;
        if let Some(parent) = span.parent {
            out.serialize_entry("parentSpanId", &parent.to_string())?;
        }
        text(&mut out, "traceState", span.body.trace_state())?;
        number(&mut out, "flags", head.flags)?;
        out.serialize_entry("name", span.name)?;
        out.serialize_entry("kind", &span.kind)?;
        out.serialize_entry("startTimeUnixNano", &span.start_ns.to_string())?;
        out.serialize_entry("endTimeUnixNano", &span.end_ns.to_string())?;
        out.serialize_entry("attributes", &List(|| span.body.attrs().map(|attr| Pair(attr.key, attr.value))))?;
        number(&mut out, "droppedAttributesCount", dropped_attrs)?;
        let events = span.body.events();
        list(&mut out, "events", || events.iter().map(|event| SpanEvent(span.start_ns, event)))?;
        number(&mut out, "droppedEventsCount", dropped_events)?;
        let links = span.body.links();
        list(&mut out, "links", || links.iter().map(SpanLink))?;
        number(&mut out, "droppedLinksCount", dropped_links)?;
        out.serialize_entry("status", &Status(head.status_code, span.body.status_message()))?;
        out.end()
    }
}

/// An event of a span that started then.
struct SpanEvent<'a, 'b>(u64, &'b Event<'a>);

impl Serialize for SpanEvent<'_, '_> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let Self(start_ns, event) = self;
        let mut out = to.serialize_map(None)?;
        out.serialize_entry("timeUnixNano", &start_ns.wrapping_add_signed(event.offset_ns).to_string())?;
        out.serialize_entry("name", event.name)?;
        out.serialize_entry("attributes", &List(|| event.attrs.map(|attr| Pair(attr.key, attr.value))))?;
        number(&mut out, "droppedAttributesCount", event.dropped)?;
        out.end()
    }
}

struct SpanLink<'a, 'b>(&'b Link<'a>);

impl Serialize for SpanLink<'_, '_> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let Self(link) = self;
        let mut out = to.serialize_map(None)?;
        out.serialize_entry("traceId", &hex(link.trace))?;
        out.serialize_entry("spanId", &hex(link.span))?;
        text(&mut out, "traceState", link.trace_state)?;
        number(&mut out, "flags", link.flags)?;
        out.serialize_entry("attributes", &List(|| link.attrs.map(|attr| Pair(attr.key, attr.value))))?;
        number(&mut out, "droppedAttributesCount", link.dropped)?;
        out.end()
    }
}

/// Code and message of a span's status.
struct Status<'a>(i32, &'a str);

impl Serialize for Status<'_> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let mut out = to.serialize_map(None)?;
        text(&mut out, "message", self.1)?;
        if self.0 != 0 {
            out.serialize_entry("code", &self.0)?;
        }
        out.end()
    }
}

impl Serialize for Resource<'_> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let mut out = to.serialize_map(None)?;
        out.serialize_entry("attributes", &List(|| self.attrs().map(|(key, value)| Pair(key, value))))?;
        number(&mut out, "droppedAttributesCount", self.dropped())?;
        out.end()
    }
}

impl Serialize for Scope<'_> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let mut out = to.serialize_map(None)?;
        text(&mut out, "name", self.name())?;
        text(&mut out, "version", self.version())?;
        list(&mut out, "attributes", || self.attrs().map(|(key, value)| Pair(key, value)))?;
        number(&mut out, "droppedAttributesCount", self.dropped())?;
        out.end()
    }
}

/// Spans that came together, by their places in a list.
struct Group<T> {
    /// One of them, to speak for all.
    first: usize,
    of: Vec<T>,
}

/// Writes one export request as a line: spans grouped by who sent them.
///
/// # Errors
/// When it cannot be written.
pub fn line(out: &mut impl Write, spans: &[SpanView<'_>]) -> io::Result<()> {
    let mut resources: Vec<Group<Group<usize>>> = Vec::new();
    // Where each resource stands, and each scope of it: a trace may have as many as spans.
    let mut of_resource: HashMap<Resource<'_>, usize> = HashMap::new();
    let mut of_scope: HashMap<(usize, Scope<'_>), usize> = HashMap::new();
    for (at, span) in spans.iter().enumerate() {
        let resource = *of_resource.entry(span.resource).or_insert_with(|| {
            resources.push(Group { first: at, of: Vec::new() });
            resources.len() - 1
        });
        let scopes = &mut resources[resource].of;
        let scope = *of_scope.entry((resource, span.scope)).or_insert_with(|| {
            scopes.push(Group { first: at, of: Vec::new() });
            scopes.len() - 1
        });
        scopes[scope].of.push(at);
    }
    serde_json::to_writer(&mut *out, &Request { spans, resources: &resources })?;
    out.write_all(b"\n")
}

/// An export request.
struct Request<'a, 'b> {
    spans: &'b [SpanView<'a>],
    resources: &'b [Group<Group<usize>>],
}

impl Serialize for Request<'_, '_> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let mut out = to.serialize_map(Some(1))?;
        let resources = || self.resources.iter().map(|group| ResourceSpans(self.spans, group));
        out.serialize_entry("resourceSpans", &List(resources))?;
        out.end()
    }
}

/// An element of `resourceSpans`.
struct ResourceSpans<'a, 'b>(&'b [SpanView<'a>], &'b Group<Group<usize>>);

impl Serialize for ResourceSpans<'_, '_> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let Self(spans, group) = self;
        let resource = spans[group.first].resource;
        let mut out = to.serialize_map(None)?;
        out.serialize_entry("resource", &resource)?;
        out.serialize_entry("scopeSpans", &List(|| group.of.iter().map(|scope| ScopeSpans(spans, scope))))?;
        text(&mut out, "schemaUrl", resource.schema_url())?;
        out.end()
    }
}

/// An element of `scopeSpans`.
struct ScopeSpans<'a, 'b>(&'b [SpanView<'a>], &'b Group<usize>);

impl Serialize for ScopeSpans<'_, '_> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let Self(spans, group) = self;
        let scope = spans[group.first].scope;
        let mut out = to.serialize_map(None)?;
        out.serialize_entry("scope", &scope)?;
        out.serialize_entry("spans", &List(|| group.of.iter().map(|at| Span(&spans[*at]))))?;
        text(&mut out, "schemaUrl", scope.schema_url())?;
        out.end()
    }
}

/// Writes all that is known of a request: its spans, then its trace records.
///
/// # Errors
/// When it cannot be written.
pub fn whole_request(out: &mut impl Write, request: &RequestView<'_>) -> io::Result<()> {
    if !request.spans.is_empty() {
        line(out, &request.spans)?;
    }
    records_line(out, &request.records)
}

/// Writes trace records, if there are any, as one export request of logs, as their producer sends them.
///
/// # Errors
/// When it cannot be written.
pub fn records_line(out: &mut impl Write, records: &[&Record]) -> io::Result<()> {
    if records.is_empty() {
        return Ok(());
    }
    out.write_all(br#"{"resourceLogs":[{"scopeLogs":[{"scope":{"name":"dynamo.request_trace"},"logRecords":"#)?;
    serde_json::to_writer(&mut *out, &List(|| records.iter().map(|record| Log(record))))?;
    out.write_all(b"}]}]}\n")
}

/// A trace record as an element of `logRecords`. What its producer said beside the payload, or in place of one, is said
/// again.
struct Log<'a>(&'a Record);

impl Serialize for Log<'_> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let Self(record) = self;
        let time = record.time_ms.saturating_mul(1_000_000).to_string();
        let mut out = to.serialize_map(None)?;
        out.serialize_entry("timeUnixNano", &time)?;
        out.serialize_entry("observedTimeUnixNano", &time)?;
        out.serialize_entry("body", &Any(Value::Str(&record.event_type)))?;
        let payload = if let RecordBody::Payload(payload) = &record.body { Some(payload) } else { None };
        let mut attrs = Vec::new();
        let said: serde_json::Map<String, serde_json::Value>;
        if payload.is_some_and(|payload| payload.is_marker) {
            said = serde_json::from_str(&record.raw).unwrap_or_default();
            attrs.extend(said.iter().map(|(key, value)| Pair(key, plain(value))));
        } else {
            attrs.push(Pair("event_type", Value::Str(&record.event_type)));
            attrs.push(Pair("payload", Value::Str(&record.raw)));
            if let Some(PayloadRecord { complete: false, drop_reason, .. }) = payload {
                attrs.push(Pair("payload_complete", Value::Bool(false)));
                attrs.push(Pair("payload_drop_reason", Value::Str(drop_reason)));
            }
        }
        out.serialize_entry("attributes", &attrs)?;
        out.end()
    }
}

/// What JSON says in a word; texts hold whatever a marker had of lists and maps.
fn plain(value: &serde_json::Value) -> Value<'_> {
    match value {
        serde_json::Value::Bool(value) => Value::Bool(*value),
        serde_json::Value::String(text) => Value::Str(text),
        serde_json::Value::Number(number) => match number.as_i64() {
            Some(number) => Value::Int(number),
            None => number.as_f64().map_or(Value::Empty, Value::Double),
        },
        _ => Value::Empty,
    }
}

/// One value as an `AnyValue`.
struct Any<'a>(Value<'a>);

impl Serialize for Any<'_> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let value = self.0;
        let mut out = to.serialize_map(None)?;
        match value {
            Value::Empty => {}
            Value::Str(text) => out.serialize_entry("stringValue", text)?,
            Value::Bool(value) => out.serialize_entry("boolValue", &value)?,
            Value::Int(number) => out.serialize_entry("intValue", &number.to_string())?,
            Value::Double(number) if number.is_finite() => out.serialize_entry("doubleValue", &number)?,
            Value::Double(number) if number.is_nan() => out.serialize_entry("doubleValue", "NaN")?,
            Value::Double(number) => {
                out.serialize_entry("doubleValue", if number > 0.0 { "Infinity" } else { "-Infinity" })?;
            }
            Value::Bytes(bytes) => {
                out.serialize_entry("bytesValue", &Base64Display::new(bytes, &BASE64).to_string())?;
            }
            Value::Array(_) => out.serialize_entry("arrayValue", &Values(|| value.items().map(Any)))?,
            Value::Map(_) => {
                let pairs = || value.entries().map(|(key, value)| Pair(key, value));
                out.serialize_entry("kvlistValue", &Values(pairs))?;
            }
        }
        out.end()
    }
}

/// A key and its value.
struct Pair<'a>(&'a str, Value<'a>);

impl Serialize for Pair<'_> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let mut out = to.serialize_map(Some(2))?;
        out.serialize_entry("key", self.0)?;
        out.serialize_entry("value", &Any(self.1))?;
        out.end()
    }
}

/// What an `ArrayValue` or a `KeyValueList` holds.
struct Values<F>(F);

impl<F: Fn() -> I, I: Iterator<Item: Serialize>> Serialize for Values<F> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let mut out = to.serialize_map(None)?;
        list(&mut out, "values", &self.0)?;
        out.end()
    }
}

/// A list, written while it is walked.
struct List<F>(F);

impl<F: Fn() -> I, I: Iterator<Item: Serialize>> Serialize for List<F> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_seq((self.0)())
    }
}

fn text<M: SerializeMap>(out: &mut M, field: &str, text: &str) -> Result<(), M::Error> {
    if text.is_empty() { Ok(()) } else { out.serialize_entry(field, text) }
}

fn number<M: SerializeMap>(out: &mut M, field: &str, number: u32) -> Result<(), M::Error> {
    if number == 0 { Ok(()) } else { out.serialize_entry(field, &number) }
}

fn list<M, I>(out: &mut M, field: &str, list: impl Fn() -> I) -> Result<(), M::Error>
where
    M: SerializeMap,
    I: Iterator<Item: Serialize>,
{
    if list().next().is_none() { Ok(()) } else { out.serialize_entry(field, &List(list)) }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lifecycle::packed::{pack, put_bytes, put_value, read};
    use serde_json::json;

    #[test]
    fn every_kind_of_value_is_written_as_it_came() {
        let (mut items, mut entries, mut one) = (Vec::new(), Vec::new(), Vec::new());
        for item in [Value::Int(1), Value::Str("z"), Value::Empty] {
            one.clear();
            put_value(&mut one, item);
            put_bytes(&mut items, 1, &one);
        }
        put_bytes(&mut entries, 1, &pack("k", Value::Bool(false)));
        let cases = [
            (Value::Bytes(&[0, 255]), json!({"bytesValue": "AP8="})),
            (Value::Array(&items), json!({"arrayValue": {"values": [{"intValue": "1"}, {"stringValue": "z"}, {}]}})),
            (Value::Map(&entries), json!({"kvlistValue": {"values": [{"key": "k", "value": {"boolValue": false}}]}})),
            (Value::Array(&[]), json!({"arrayValue": {}})),
            (Value::Map(&[]), json!({"kvlistValue": {}})),
            (Value::Str(""), json!({"stringValue": ""})),
            (Value::Int(i64::MIN), json!({"intValue": "-9223372036854775808"})),
            (Value::Double(f64::NAN), json!({"doubleValue": "NaN"})),
            (Value::Double(0.5), json!({"doubleValue": 0.5})),
        ];
        for (given, expected) in cases {
            let packed = pack("key", given);
            assert_eq!(serde_json::to_value(Any(read(&packed).1)).unwrap(), expected);
        }
    }
}
