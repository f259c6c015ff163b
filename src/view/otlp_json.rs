//! One span in the shape of OTLP's JSON, for the raw view and for export.
//!
//! Enums are numbers, 64-bit integers decimal strings, bytes base64, ids lower-case hex (OTLP specification, JSON
//! Protobuf encoding). What arrived leaves again: repeated keys, unknown enum numbers, empty lists, maps and texts, raw
//! times. Fields that hold protobuf's default are left out, as every encoder does. Owns: this form. Keeps out: files.

use std::collections::HashMap;
use std::fmt::Write;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use serde_json::{Map, Value as Json, json};

use crate::lifecycle::body::Attrs;
use crate::lifecycle::context::{Resource, Scope};
use crate::lifecycle::packed::Value;
use crate::lifecycle::record::Record;
use crate::lifecycle::request::{RequestView, SpanView};

/// A span as an element of `spans`.
pub fn span(span: &SpanView<'_>) -> Json {
    let head = span.body.head();
    let mut out = Map::new();
    out.insert("traceId".into(), span.trace.to_string().into());
    out.insert("spanId".into(), span.id.to_string().into());
    if let Some(parent) = span.parent {
        out.insert("parentSpanId".into(), parent.to_string().into());
    }
    out.insert("name".into(), span.name.into());
    out.insert("kind".into(), span.kind.into());
    out.insert("startTimeUnixNano".into(), span.start_ns.to_string().into());
    out.insert("endTimeUnixNano".into(), span.end_ns.to_string().into());
    put_text(&mut out, "traceState", span.body.trace_state());
    put_number(&mut out, "flags", head.flags);
    out.insert("attributes".into(), attrs(span.body.attrs()));
    put_number(&mut out, "droppedAttributesCount", head.dropped[0]);
    let events: Vec<Json> = span
        .body
        .events()
        .into_iter()
        .map(|event| {
            let mut out = Map::new();
            let time = span.start_ns.wrapping_add_signed(event.offset_ns);
            out.insert("timeUnixNano".into(), time.to_string().into());
            out.insert("name".into(), event.name.into());
            out.insert("attributes".into(), attrs(event.attrs));
            put_number(&mut out, "droppedAttributesCount", event.dropped);
            Json::Object(out)
        })
        .collect();
    put_list(&mut out, "events", events);
    put_number(&mut out, "droppedEventsCount", head.dropped[1]);
    let links: Vec<Json> = span
        .body
        .links()
        .into_iter()
        .map(|link| {
            let mut out = Map::new();
            out.insert("traceId".into(), hex(link.trace).into());
            out.insert("spanId".into(), hex(link.span).into());
            put_text(&mut out, "traceState", link.trace_state);
            put_number(&mut out, "flags", link.flags);
            out.insert("attributes".into(), attrs(link.attrs));
            put_number(&mut out, "droppedAttributesCount", link.dropped);
            Json::Object(out)
        })
        .collect();
    put_list(&mut out, "links", links);
    put_number(&mut out, "droppedLinksCount", head.dropped[2]);
    let mut status = Map::new();
    if head.status_code != 0 {
        status.insert("code".into(), head.status_code.into());
    }
    put_text(&mut status, "message", span.body.status_message());
    out.insert("status".into(), Json::Object(status));
    Json::Object(out)
}

/// A resource as the value of `resource`.
pub fn resource(resource: Resource<'_>) -> Json {
    let mut out = Map::new();
    out.insert("attributes".into(), pairs(resource.attrs()));
    put_number(&mut out, "droppedAttributesCount", resource.dropped());
    Json::Object(out)
}

/// A scope as the value of `scope`.
pub fn scope(scope: Scope<'_>) -> Json {
    let mut out = Map::new();
    put_text(&mut out, "name", scope.name());
    put_text(&mut out, "version", scope.version());
    put_list(&mut out, "attributes", list(scope.attrs()));
    put_number(&mut out, "droppedAttributesCount", scope.dropped());
    Json::Object(out)
}

/// A whole export request with this one span: what a file line or a repeated export would hold.
pub fn request(of: &SpanView<'_>) -> Json {
    let mut scope_spans = Map::new();
    scope_spans.insert("scope".into(), scope(of.scope));
    scope_spans.insert("spans".into(), json!([span(of)]));
    put_text(&mut scope_spans, "schemaUrl", of.scope.schema_url());
    let mut resource_spans = Map::new();
    resource_spans.insert("resource".into(), resource(of.resource));
    resource_spans.insert("scopeSpans".into(), json!([scope_spans]));
    put_text(&mut resource_spans, "schemaUrl", of.resource.schema_url());
    json!({ "resourceSpans": [resource_spans] })
}

/// The spans of a scope, the first of them to speak for it.
type OfScope<'a, 'b> = (&'b SpanView<'a>, Vec<Json>);

/// Appends one export request as a line: spans grouped by who sent them.
pub fn line(out: &mut String, spans: &[SpanView<'_>]) {
    let mut resources: Vec<(&SpanView<'_>, Vec<OfScope<'_, '_>>)> = Vec::new();
    // Where each resource stands, and each scope of it: a trace may have as many as spans.
    let mut of_resource: HashMap<Resource<'_>, usize> = HashMap::new();
    let mut of_scope: HashMap<(usize, Scope<'_>), usize> = HashMap::new();
    for span in spans {
        let resource = *of_resource.entry(span.resource).or_insert_with(|| {
            resources.push((span, Vec::new()));
            resources.len() - 1
        });
        let scopes = &mut resources[resource].1;
        let scope = *of_scope.entry((resource, span.scope)).or_insert_with(|| {
            scopes.push((span, Vec::new()));
            scopes.len() - 1
        });
        scopes[scope].1.push(self::span(span));
    }
    let resource_spans = resources.into_iter().map(|(of, scopes)| {
        let scope_spans = scopes.into_iter().map(|(of, spans)| {
            let mut out = Map::new();
            out.insert("scope".into(), scope(of.scope));
            out.insert("spans".into(), Json::Array(spans));
            put_text(&mut out, "schemaUrl", of.scope.schema_url());
            Json::Object(out)
        });
        let mut out = Map::new();
        out.insert("resource".into(), resource(of.resource));
        out.insert("scopeSpans".into(), Json::Array(scope_spans.collect()));
        put_text(&mut out, "schemaUrl", of.resource.schema_url());
        Json::Object(out)
    });
    let request = Json::Array(resource_spans.collect());
    let _ = writeln!(out, "{{\"resourceSpans\":{request}}}");
}

/// Appends all that is known of a request: its spans, then its trace records.
pub fn whole_request(out: &mut String, request: &RequestView<'_>) {
    if !request.spans.is_empty() {
        line(out, &request.spans);
    }
    records_line(out, &request.records);
}

/// Appends trace records as one export request of logs, as their producer sends them.
pub fn records_line(out: &mut String, records: &[&Record]) {
    if records.is_empty() {
        return;
    }
    let text = |key: &str, text: &str| json!({ "key": key, "value": { "stringValue": text } });
    let logs = records.iter().map(|record| {
        let time = record.time_ms.saturating_mul(1_000_000).to_string();
        json!({
            "timeUnixNano": time,
            "observedTimeUnixNano": time,
            "body": { "stringValue": record.event_type.as_str() },
            "attributes": [text("event_type", &record.event_type), text("payload", &record.raw)],
        })
    });
    let logs: Vec<Json> = logs.collect();
    let scope_logs = json!([{ "scope": { "name": "dynamo.request_trace" }, "logRecords": logs }]);
    let _ = writeln!(out, "{}", json!({ "resourceLogs": [{ "scopeLogs": scope_logs }] }));
}

/// One value as an `AnyValue`.
pub fn value(value: Value<'_>) -> Json {
    match value {
        Value::Empty => json!({}),
        Value::Str(text) => json!({ "stringValue": text }),
        Value::Bool(value) => json!({ "boolValue": value }),
        Value::Int(number) => json!({ "intValue": number.to_string() }),
        Value::Double(number) if number.is_finite() => json!({ "doubleValue": number }),
        Value::Double(number) if number.is_nan() => json!({ "doubleValue": "NaN" }),
        Value::Double(number) => json!({ "doubleValue": if number > 0.0 { "Infinity" } else { "-Infinity" } }),
        Value::Bytes(bytes) => json!({ "bytesValue": BASE64.encode(bytes) }),
        Value::Array(_) => {
            let mut inner = Map::new();
            put_list(&mut inner, "values", value.items().map(self::value).collect());
            json!({ "arrayValue": inner })
        }
        Value::Map(_) => {
            let mut inner = Map::new();
            put_list(&mut inner, "values", list(value.entries()));
            json!({ "kvlistValue": inner })
        }
    }
}

fn attrs(attrs: Attrs<'_>) -> Json {
    pairs(attrs.map(|attr| (attr.key, attr.value)))
}

fn pairs<'a>(pairs: impl Iterator<Item = (&'a str, Value<'a>)>) -> Json {
    Json::Array(list(pairs))
}

fn list<'a>(pairs: impl Iterator<Item = (&'a str, Value<'a>)>) -> Vec<Json> {
    pairs.map(|(key, of)| json!({ "key": key, "value": value(of) })).collect()
}

fn put_text(out: &mut Map<String, Json>, field: &str, text: &str) {
    if !text.is_empty() {
        out.insert(field.into(), text.into());
    }
}

fn put_number(out: &mut Map<String, Json>, field: &str, number: u32) {
    if number != 0 {
        out.insert(field.into(), number.into());
    }
}

fn put_list(out: &mut Map<String, Json>, field: &str, list: Vec<Json>) {
    if !list.is_empty() {
        out.insert(field.into(), Json::Array(list));
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lifecycle::packed::{pack, put_bytes, put_value, read};

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
            assert_eq!(value(read(&packed).1), expected);
        }
    }
}
