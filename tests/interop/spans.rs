//! Spans for comparing: as reqtop exports them, in an order and a form that does not depend on who carried them.

use std::collections::BTreeMap;

use serde_json::{Value as Json, json};

/// Spans by trace and span id, each with its resource and scope; attributes by key.
pub type Spans = BTreeMap<(String, String), Json>;

/// Reads OTLP JSON lines as reqtop exports them.
pub fn of_lines(lines: &[u8]) -> Spans {
    let mut spans = Spans::new();
    for line in String::from_utf8_lossy(lines).lines().filter(|line| !line.is_empty()) {
        let request: Json = serde_json::from_str(line).unwrap();
        for resource in list(&request["resourceSpans"]) {
            for scope in list(&resource["scopeSpans"]) {
                for span in list(&scope["spans"]) {
                    let id = |key: &str| span[key].as_str().unwrap_or("").to_owned();
                    let whole = json!({
                        "span": in_order(span),
                        "resource": in_order(&resource["resource"]),
                        "scope": in_order(&scope["scope"]),
                    });
                    spans.insert((id("traceId"), id("spanId")), whole);
                }
            }
        }
    }
    spans
}

fn list(json: &Json) -> &[Json] {
    json.as_array().map_or(&[], Vec::as_slice)
}

/// Attributes in the order of their keys, at every level; the order of other lists says something.
fn in_order(json: &Json) -> Json {
    match json {
        Json::Object(fields) => fields
            .iter()
            .map(|(key, value)| {
                let mut value = in_order(value);
                if key == "attributes"
                    && let Json::Array(attributes) = &mut value
                {
                    attributes.sort_by_key(|attribute| attribute["key"].to_string());
                }
                (key.clone(), value)
            })
            .collect(),
        Json::Array(items) => items.iter().map(in_order).collect(),
        other => other.clone(),
    }
}

/// Fails with the first difference.
pub fn assert_same(what: &str, found: &Spans, expected: &Spans) {
    for (id, span) in expected {
        match found.get(id) {
            None => panic!("{what}: span {id:?} is missing; {} of {} came", found.len(), expected.len()),
            Some(other) => assert_eq!(other, span, "{what}: span {id:?} (found, then expected)"),
        }
    }
    assert_eq!(found.len(), expected.len(), "{what}: more came than was sent");
}

/// Spans of every odd value that OTLP can say, as one request in OTLP JSON.
pub fn odd() -> Json {
    let text = |key: &str, value: &str| json!({"key": key, "value": {"stringValue": value}});
    let attributes = json!([
        text("text.empty", ""),
        text("text.unicode", "推理服务 👩‍🔬 \u{7f} é"),
        text("text.lines", "one\ntwo\ttab \"quoted\" \\"),
        text("text.long", &"x".repeat(5000)),
        {"key": "int.least", "value": {"intValue": "-9223372036854775808"}},
        {"key": "int.most", "value": {"intValue": "9223372036854775807"}},
        {"key": "double.third", "value": {"doubleValue": 0.333_333_333_333_333_3}},
        {"key": "double.tiny", "value": {"doubleValue": 5e-324}},
        {"key": "double.huge", "value": {"doubleValue": 1.797_693_134_862_315_7e308}},
        {"key": "double.infinite", "value": {"doubleValue": "-Infinity"}},
        {"key": "double.nan", "value": {"doubleValue": "NaN"}},
        {"key": "truth", "value": {"boolValue": false}},
        {"key": "bytes", "value": {"bytesValue": "AAEC/f7/"}},
        {"key": "list.mixed", "value": {"arrayValue": {"values": [
            {"intValue": "1"}, {"stringValue": "two"}, {"doubleValue": 3.5}, {"boolValue": true}
        ]}}},
        {"key": "list.empty", "value": {"arrayValue": {}}},
        {"key": "map", "value": {"kvlistValue": {"values": [
            text("inner", "x"), {"key": "deeper", "value": {"kvlistValue": {"values": [text("innermost", "y")]}}}
        ]}}},
    ]);
    let span = |id: u64, parent: &str, name: &str| {
        json!({
            "traceId": "5b8efff798038103d269b633813fc60c", "spanId": format!("{id:016x}"), "parentSpanId": parent,
            "name": name, "kind": id % 6, "startTimeUnixNano": "1544712660000000001",
            "endTimeUnixNano": "1544712661999999999", "attributes": attributes, "traceState": "a=1,b=2", "flags": 257,
            "droppedAttributesCount": 3,
            "events": [
                {"timeUnixNano": "1544712660500000001", "name": "", "attributes": [text("a", "b")]},
                {"timeUnixNano": "1544712660500000002", "name": "事件", "droppedAttributesCount": 1},
            ],
            "droppedEventsCount": 1,
            "links": [{"traceId": "5b8efff798038103d269b633813fc60d", "spanId": "eee19b7ec3c1b174", "traceState": "x=y",
                "attributes": [text("why", "retry")], "flags": 1}],
            "droppedLinksCount": 2,
            "status": {"code": id % 3, "message": if id % 3 == 2 { "it broke" } else { "" }},
        })
    };
    json!({"resourceSpans": [{
        "resource": {"attributes": [text("service.name", "odd 服务"), text("host.name", "h")], "droppedAttributesCount": 1},
        "schemaUrl": "https://opentelemetry.io/schemas/1.30.0",
        "scopeSpans": [{
            "scope": {"name": "odd", "version": "0.1", "attributes": [text("scope.a", "b")]},
            "schemaUrl": "https://opentelemetry.io/schemas/1.31.0",
            "spans": [span(1, "", "request.lifecycle"), span(2, "0000000000000001", "名前"), span(5, "0000000000000001", "")],
        }],
    }]})
}
