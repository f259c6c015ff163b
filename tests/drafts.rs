//! Real requests, told as drafts of the evidence change told them (spec lifecycle-spans §1), are as healthy as they were:
//! with their route spans below or beside the dispatches, with router spans in traces of their own, and with nothing that
//! says which leg a dispatch is of.

mod common;

use std::collections::HashMap;
use std::path::PathBuf;

use common::{binary, fixture, inflated};
use serde_json::{Value as Json, json};

/// How a draft differed from others.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Way {
    /// The route span stands below its dispatch.
    Nested,
    /// The route span stands beside its dispatch.
    Beside,
    /// Queue and selection spans are one-span traces with operations of their own.
    Apart,
    /// The same, and no span but the selection's says prefill or decode.
    Wordless,
    /// The same, and the selections do not, either.
    Poolless,
}

const WAYS: [Way; 5] = [Way::Nested, Way::Beside, Way::Apart, Way::Wordless, Way::Poolless];

fn attributes(span: &mut Json) -> &mut Vec<Json> {
    span["attributes"].as_array_mut().unwrap()
}

fn get(span: &Json, key: &str) -> Option<Json> {
    let found = span["attributes"].as_array()?.iter().find(|attribute| attribute["key"] == key)?;
    found["value"].as_object()?.values().next().cloned()
}

fn number(span: &Json, key: &str) -> u64 {
    let value = get(span, key).unwrap();
    value.as_u64().or_else(|| value.as_str()?.parse().ok()).unwrap()
}

fn unset(span: &mut Json, key: &str) {
    attributes(span).retain(|attribute| attribute["key"] != key);
}

fn set(span: &mut Json, key: &str, value: Json) {
    unset(span, key);
    attributes(span).push(json!({"key": key, "value": value}));
}

fn text(value: impl ToString) -> Json {
    json!({"stringValue": value.to_string()})
}

/// The spans of an export line.
fn spans(line: &mut Json) -> impl Iterator<Item = &mut Json> {
    line["resourceSpans"]
        .as_array_mut()
        .unwrap()
        .iter_mut()
        .flat_map(|resource| resource["scopeSpans"].as_array_mut().unwrap())
        .flat_map(|scope| scope["spans"].as_array_mut().unwrap())
}

/// One span as a draft told it.
fn draft(span: &mut Json, way: Way, beside: &HashMap<String, Json>, apart: &mut u32) {
    let name = span["name"].as_str().unwrap().to_owned();
    match &*name {
        "request.dispatch" => unset(span, "dynamo.dispatch.phase"),
        "router.queue" => {
            if get(span, "dynamo.router.queue.outcome") == Some(json!("dequeued")) {
                set(span, "dynamo.router.queue.outcome", text("admitted"));
            }
            set(span, "dynamo.router.queue.deferred", json!({"boolValue": true}));
        }
        "router.selection" => {
            let part = |name: &str| format!("dynamo.router.candidate.{name}");
            let filtered = number(span, &part("filtered.count")) - number(span, &part("filtered.policy"));
            let candidates = number(span, &part("count"));
            set(span, &part("filtered.count"), text(filtered));
            set(span, &part("eligible.count"), text(candidates));
            unset(span, &part("filtered.policy"));
            set(span, "dynamo.router.selection.policy", text("kv_aware"));
            if let Some(rows) = get(span, "dynamo.router.candidates.top_k") {
                let mut rows: Json = serde_json::from_str(rows.as_str().unwrap()).unwrap();
                for row in rows.as_array_mut().unwrap() {
                    row.as_object_mut().unwrap().remove("selected");
                    row["base_score"] = row["score"].clone();
                }
                set(span, "dynamo.router.candidates.top_k", text(rows));
                set(span, "dynamo.router.candidates.detail_schema", text("kv_aware.v1"));
            }
            if way == Way::Poolless {
                unset(span, "dynamo.router.pool.role");
            }
        }
        "kv_router.route_request" if way == Way::Beside => {
            if let Some(parent) = beside.get(span["parentSpanId"].as_str().unwrap()) {
                span["parentSpanId"] = parent.clone();
            }
        }
        "kv_router.route_request" if matches!(way, Way::Wordless | Way::Poolless) => unset(span, "phase"),
        _ => {}
    }
    if name.starts_with("router.") && !matches!(way, Way::Nested | Way::Beside) {
        *apart += 1;
        span["traceId"] = json!(format!("{:032x}", 0xabc000 + *apart));
        span.as_object_mut().unwrap().remove("parentSpanId");
        set(span, "dynamo.operation.id", text(format!("apart-{apart}")));
    }
}

/// A capture as a draft told it.
fn drafted(capture: &str, way: Way) -> PathBuf {
    let text = String::from_utf8(inflated(&format!("{capture}.traces.jsonl.gz"))).unwrap();
    let mut lines: Vec<Json> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let dispatches = lines.iter_mut().flat_map(spans).filter(|span| span["name"] == "request.dispatch");
    let beside: HashMap<String, Json> =
        dispatches.map(|span| (span["spanId"].as_str().unwrap().to_owned(), span["parentSpanId"].clone())).collect();
    let mut apart = 0;
    lines.iter_mut().flat_map(spans).for_each(|span| draft(span, way, &beside, &mut apart));
    if matches!(way, Way::Wordless | Way::Poolless) {
        let of_worker = |name: &str| {
            name == "engine.generate" || name.starts_with("worker.") || name.starts_with("response.streaming.")
        };
        for line in &mut lines {
            for resource in line["resourceSpans"].as_array_mut().unwrap() {
                for scope in resource["scopeSpans"].as_array_mut().unwrap() {
                    let spans = scope["spans"].as_array_mut().unwrap();
                    spans.retain(|span| !of_worker(span["name"].as_str().unwrap()));
                }
            }
        }
    }
    let file = std::env::temp_dir().join(format!("reqtop-draft-{}-{capture}-{way:?}.jsonl", std::process::id()));
    std::fs::write(&file, lines.iter().map(|line| format!("{line}\n")).collect::<String>()).unwrap();
    file
}

#[test]
fn healthy_requests_are_healthy_as_drafts_told_them() {
    for capture in ["evidence-disagg", "evidence-agg", "evidence-abort"] {
        for way in WAYS {
            let traces = drafted(capture, way);
            let records = fixture(&format!("{capture}.request_trace.jsonl.gz"));
            let output = binary()
                .arg("check")
                .args([&traces, &records])
                .args(["--strict", "--format", "json"])
                .output()
                .unwrap();
            std::fs::remove_file(&traces).unwrap();
            let said = String::from_utf8_lossy(&output.stderr);
            let check: Json = serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {said}"));
            let checks = check["checks"].as_array().unwrap();
            let violations: Vec<&Json> =
                checks.iter().flat_map(|check| check["violations"].as_array().unwrap()).collect();
            assert!(violations.is_empty(), "{capture} {way:?}: {violations:#?}");
            assert!(output.status.success(), "{capture} {way:?}: {said}");
            // What tells the legs is told apart from what does not.
            let holds = |id: &str| {
                checks.iter().find(|check| check["id"] == id).map_or(0, |check| check["holds"].as_u64().unwrap())
            };
            let told = way != Way::Poolless;
            for id in ["dispatch.one-to-one", "dispatch.selection"] {
                assert_eq!(holds(id) > 0, told, "{capture} {way:?}: {id}");
            }
        }
    }
}
