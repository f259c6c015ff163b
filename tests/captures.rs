//! Real captures of a real Dynamo give the numbers that a right reading gives (the table of their README), from files and
//! through the live endpoint, over gRPC and HTTP, in protobuf and JSON, in any order of arrival.

mod common;

use std::collections::BTreeMap;

use bytes::Bytes;
use common::{Listening, binary, count, fixture, inflated, post_json, report};
use opentelemetry_proto::tonic::collector::logs::v1::ExportLogsServiceRequest;
use opentelemetry_proto::tonic::collector::logs::v1::logs_service_client::LogsServiceClient;
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::collector::trace::v1::trace_service_client::TraceServiceClient;
use prost::Message;
use serde_json::Value as Json;

/// scenario, spans, traces, http-request, roots, streams, routes, handle_payload, operations, outcomes, request_end,
/// router_selection
type Row = (&'static str, [u64; 8], &'static [(&'static str, u64)], u64, u64);

const TABLE: &[Row] = &[
    ("agg-kv-core", [529, 52, 50, 50, 27, 50, 52, 0], &[("success", 50)], 50, 50),
    ("agg-kv-investigation", [529, 52, 50, 50, 27, 50, 52, 0], &[("success", 50)], 50, 50),
    ("agg-kv-http", [529, 52, 50, 50, 27, 50, 52, 0], &[("success", 50)], 50, 50),
    ("round-robin", [166, 30, 30, 30, 16, 30, 30, 0], &[("success", 30)], 30, 0),
    ("disagg-mocker", [528, 32, 30, 30, 16, 60, 62, 0], &[("success", 30)], 30, 60),
    ("abort", [136, 10, 8, 8, 6, 8, 10, 8], &[("cancelled", 8)], 8, 8),
    ("invalid", [50, 12, 10, 10, 0, 2, 4, 2], &[("rejected", 8), ("success", 2)], 2, 2),
    ("queue", [212, 26, 24, 24, 6, 6, 8, 0], &[("rejected", 18), ("success", 6)], 6, 6),
    ("queue-wait", [266, 26, 24, 24, 24, 24, 26, 0], &[("success", 24)], 24, 24),
    ("busy-threshold", [248, 32, 30, 30, 2, 2, 4, 0], &[("rejected", 28), ("success", 2)], 2, 2),
    ("migration", [131, 8, 7, 7, 6, 9, 8, 7], &[("success", 7)], 7, 9),
    // Workers killed under load in three clusters of prefill and decode workers; only the requests that were moved.
    ("disagg-migration", [638, 17, 17, 17, 14, 55, 38, 38], &[("rejected", 12), ("success", 5)], 17, 55),
    ("worker-killed", [98, 8, 7, 7, 6, 7, 5, 4], &[("rejected", 3), ("success", 4)], 7, 7),
    ("timeout", [23, 4, 2, 2, 1, 2, 4, 0], &[("timed_out", 2)], 2, 2),
    ("completions", [122, 12, 10, 0, 0, 10, 12, 0], &[], 10, 10),
    ("sessions", [246, 26, 24, 24, 4, 24, 26, 0], &[("success", 24)], 24, 24),
    ("tools", [22, 4, 2, 2, 0, 2, 4, 0], &[("success", 2)], 2, 2),
    ("lifecycle-off", [122, 17, 15, 0, 0, 15, 17, 0], &[], 15, 15),
    ("fast-flush", [917, 58, 56, 56, 19, 56, 58, 56], &[("cancelled", 6), ("success", 50)], 56, 56),
    ("no-workers", [13, 5, 5, 1, 0, 1, 0, 0], &[("success", 1)], 1, 1),
    ("metrics", [664, 42, 40, 40, 22, 40, 42, 40], &[("success", 40)], 40, 40),
    ("dev-mocker", [796, 82, 80, 77, 28, 76, 78, 0], &[("cancelled", 6), ("rejected", 4), ("success", 67)], 76, 76),
    ("dev-sim", [1167, 83, 80, 77, 28, 76, 79, 73], &[("cancelled", 6), ("rejected", 4), ("success", 67)], 76, 76),
    (
        "dev-sim-disagg-http",
        [1542, 60, 58, 56, 15, 114, 116, 110],
        &[("cancelled", 3), ("rejected", 1), ("success", 52)],
        57,
        114,
    ),
];

#[test]
fn every_capture_gives_the_numbers_of_its_readme() {
    for (name, numbers, outcomes, ends, selections) in TABLE {
        let files = ["traces", "request_trace"].map(|kind| fixture(&format!("{name}.{kind}.jsonl.gz")));
        let report = report(&files);
        assert_eq!(report["schema"], "reqtop.report.v1");
        let named = |names: &[&str]| names.iter().map(|name| count(&report, &["spans", "by_name", name])).sum::<u64>();
        let read = [
            count(&report, &["spans", "total"]),
            count(&report, &["traces", "total"]),
            named(&["http-request"]),
            named(&["request.lifecycle"]),
            named(&["response.streaming"]),
            named(&["kv_router.route_request", "router.route_request"]),
            named(&["handle_payload"]),
            named(&["worker.operation", "worker.operation.prefill", "worker.operation.decode"]),
        ];
        assert_eq!(read, *numbers, "{name}");
        for outcome in ["success", "cancelled", "rejected", "timed_out", "failed", "unknown"] {
            let wanted = outcomes.iter().find(|(other, _)| *other == outcome).map_or(0, |(_, count)| *count);
            assert_eq!(count(&report, &["requests", "by_outcome", outcome]), wanted, "{name}: {outcome}");
        }
        assert_eq!(count(&report, &["records", "by_type", "request_end"]), *ends, "{name}");
        assert_eq!(count(&report, &["records", "by_type", "router_selection"]), *selections, "{name}");
        let with_roots: u64 = outcomes.iter().map(|(_, count)| count).sum();
        assert_eq!(count(&report, &["requests", "total"]), numbers[2], "{name}: one request per http-request");
        assert_eq!(count(&report, &["requests", "without_root"]), numbers[2] - with_roots, "{name}");
        for zero in [["requests", "in_flight"], ["spans", "duplicates"], ["spans", "rejected"], ["input", "bad_lines"]]
        {
            assert_eq!(count(&report, &zero), 0, "{name}: {zero:?}");
        }
    }
}

#[test]
fn what_a_layout_does_not_record_is_not_said_to_be_none() {
    let base = report(&[fixture("aiperf-queue.traces.jsonl.gz")]);
    let evidence = report(&[fixture("evidence-agg.traces.jsonl.gz")]);
    assert_eq!(count(&base, &["queue", "inferred", "spans"]), 164);
    for unsaid in ["deferred", "rejected", "cancelled"] {
        assert_eq!(base["queue"]["inferred"][unsaid], Json::Null, "{unsaid}");
        assert_eq!(count(&evidence, &["queue", unsaid]), 0, "{unsaid}");
    }
}

#[test]
fn protobuf_files_and_json_files_read_alike() {
    for name in ["dev-sim", "dev-sim-disagg-http", "fast-flush"] {
        let mut json = report(&[fixture(&format!("{name}.traces.jsonl.gz"))]);
        let mut protobuf = report(&[fixture(&format!("{name}.traces.pb.gz"))]);
        for report in [&mut json, &mut protobuf] {
            report["input"] = Json::Null;
        }
        assert_eq!(json, protobuf, "{name}");
    }
}

/// The export requests of a length-delimited capture.
fn messages(name: &str) -> Vec<Bytes> {
    let bytes = Bytes::from(inflated(name));
    let (mut at, mut messages) = (0, Vec::new());
    while at < bytes.len() {
        let mut rest = &bytes[at..];
        let length = prost::encoding::decode_varint(&mut rest).unwrap() as usize;
        let start = bytes.len() - rest.len();
        messages.push(bytes.slice(start..start + length));
        at = start + length;
    }
    messages
}

/// What must not depend on how and in which order things came.
fn comparable(mut report: Json) -> Json {
    report["input"] = Json::Null;
    report
}

#[test]
fn the_live_endpoint_gives_the_same_report_in_any_order() {
    for (seed, name) in ["dev-sim", "dev-sim-disagg-http", "fast-flush"].into_iter().enumerate() {
        let files = ["traces", "logs"].map(|kind| fixture(&format!("{name}.{kind}.pb.gz")));
        let wanted = comparable(report(&files));
        let mut rng = fastrand::Rng::with_seed(seed as u64);
        let mut all: Vec<(&str, Bytes)> = Vec::new();
        for kind in ["traces", "logs"] {
            all.extend(messages(&format!("{name}.{kind}.pb.gz")).into_iter().map(|message| (kind, message)));
        }
        for way in ["grpc", "http protobuf", "http json"] {
            rng.shuffle(&mut all);
            let listening = Listening::report();
            match way {
                "grpc" => {
                    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
                    runtime.block_on(async {
                        let url = format!("http://{}", listening.grpc);
                        let mut traces = TraceServiceClient::connect(url.clone()).await.unwrap();
                        let mut logs = LogsServiceClient::connect(url).await.unwrap();
                        for (kind, message) in &all {
                            if *kind == "traces" {
                                let request = ExportTraceServiceRequest::decode(message.clone()).unwrap();
                                let answer = traces.export(request).await.unwrap().into_inner();
                                assert_eq!(answer.partial_success, None);
                            } else {
                                let request = ExportLogsServiceRequest::decode(message.clone()).unwrap();
                                logs.export(request).await.unwrap();
                            }
                        }
                    });
                }
                "http protobuf" => {
                    for (kind, message) in &all {
                        let path = format!("/v1/{kind}");
                        let answer = common::post(listening.http, &path, "application/x-protobuf", message);
                        assert!(answer.status == 200 && answer.body.is_empty(), "all was taken: {answer:?}");
                    }
                }
                _ => {
                    for kind in ["traces", "logs"] {
                        let text = json_lines(name, kind);
                        let mut lines: Vec<&str> = text.lines().collect();
                        rng.shuffle(&mut lines);
                        for line in lines {
                            let path = format!("/v1/{kind}");
                            let answer = common::post(listening.http, &path, "application/json", line.as_bytes());
                            assert!(answer.status == 200 && answer.body == b"{}", "all was taken: {answer:?}");
                        }
                    }
                }
            }
            assert_eq!(comparable(listening.json()), wanted, "{name} over {way}");
        }
    }
}

/// The JSON lines of a capture; its logs are only in protobuf for the larger ones, so they are written from there.
fn json_lines(name: &str, kind: &str) -> String {
    if kind == "traces" {
        return String::from_utf8(inflated(&format!("{name}.traces.jsonl.gz"))).unwrap();
    }
    let mut lines = String::new();
    for message in messages(&format!("{name}.logs.pb.gz")) {
        lines.push_str(&logs_json(&ExportLogsServiceRequest::decode(message).unwrap()).to_string());
        lines.push('\n');
    }
    lines
}

/// The parts of logs that matter here, as OTLP JSON.
fn logs_json(request: &ExportLogsServiceRequest) -> Json {
    use opentelemetry_proto::tonic::common::v1::any_value::Value;
    let value = |value: &Option<opentelemetry_proto::tonic::common::v1::AnyValue>| match value
        .as_ref()
        .and_then(|value| value.value.as_ref())
    {
        Some(Value::StringValue(text)) => serde_json::json!({ "stringValue": text }),
        Some(Value::BoolValue(is)) => serde_json::json!({ "boolValue": is }),
        Some(Value::IntValue(number)) => serde_json::json!({ "intValue": number.to_string() }),
        Some(Value::DoubleValue(number)) => serde_json::json!({ "doubleValue": number }),
        _ => serde_json::json!({}),
    };
    let hex = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    let record = |log: &opentelemetry_proto::tonic::logs::v1::LogRecord| {
        serde_json::json!({
            "timeUnixNano": log.time_unix_nano.to_string(),
            "observedTimeUnixNano": log.observed_time_unix_nano.to_string(),
            "severityNumber": log.severity_number,
            "body": value(&log.body),
            "traceId": hex(&log.trace_id),
            "spanId": hex(&log.span_id),
            "attributes": log.attributes.iter().map(|attr| serde_json::json!({ "key": attr.key, "value": value(&attr.value) })).collect::<Vec<_>>(),
        })
    };
    let resources: Vec<Json> = request
        .resource_logs
        .iter()
        .map(|resource| {
            let scopes: Vec<Json> = resource
                .scope_logs
                .iter()
                .map(|scope| {
                    serde_json::json!({
                        "scope": { "name": scope.scope.as_ref().map_or("", |scope| &scope.name) },
                        "logRecords": scope.log_records.iter().map(record).collect::<Vec<_>>(),
                    })
                })
                .collect();
            serde_json::json!({ "scopeLogs": scopes })
        })
        .collect();
    serde_json::json!({ "resourceLogs": resources })
}

#[test]
fn exported_lines_read_back_to_the_same_report_spans_and_records() {
    for name in ["dev-sim-disagg-http", "migration", "sessions"] {
        let files = ["traces", "request_trace"].map(|kind| fixture(&format!("{name}.{kind}.jsonl.gz")));
        let folder = tempfile::tempdir().unwrap();
        let read_back = |filter: &[&str]| {
            let output = binary().arg("export").args(filter).args(&files).output().unwrap();
            assert!(output.status.success(), "{output:?}");
            let copy = folder.path().join("copy.jsonl");
            std::fs::write(&copy, &output.stdout).unwrap();
            (output, comparable(report(std::slice::from_ref(&copy))))
        };
        let whole = comparable(report(&files));
        assert!(count(&whole, &["records", "by_type", "request_end"]) > 0, "{name}");
        // Its own account of a request is among what matches, as it is on the screen.
        let (_, some) = read_back(&["--filter", "outcome:success"]);
        let successes = count(&whole, &["requests", "by_outcome", "success"]);
        assert_eq!(count(&some, &["requests", "total"]), successes, "{name}");
        assert_eq!(count(&some, &["records", "by_type", "request_end"]), successes, "{name}");
        let (output, all) = read_back(&[]);
        assert_eq!(all, whole, "{name}");
        let original = inflated(&format!("{name}.traces.jsonl.gz"));
        let spans_of = |text: &[u8]| -> BTreeMap<String, Json> {
            let mut spans = BTreeMap::new();
            for line in String::from_utf8_lossy(text).lines() {
                let request: Json = serde_json::from_str(line).unwrap();
                for resource in request["resourceSpans"].as_array().into_iter().flatten() {
                    for scope in resource["scopeSpans"].as_array().unwrap() {
                        for span in scope["spans"].as_array().unwrap() {
                            let mut whole = canonical(span);
                            whole["resource"] = resource["resource"].clone();
                            whole["scope"] = scope["scope"].clone();
                            spans.insert(span["spanId"].as_str().unwrap().to_owned(), whole);
                        }
                    }
                }
            }
            spans
        };
        let (sent, kept) = (spans_of(&original), spans_of(&output.stdout));
        assert_eq!(sent.len(), kept.len(), "{name}");
        for (id, span) in &sent {
            assert_eq!(kept[id], *span, "{name} {id}");
        }
    }
}

/// A span without the fields that hold protobuf's default, which encoders may leave out.
fn canonical(span: &Json) -> Json {
    let mut span = span.clone();
    let fields = span.as_object_mut().unwrap();
    fields.retain(|_, value| {
        !matches!(value, Json::Null)
            && *value != serde_json::json!({})
            && *value != serde_json::json!([])
            && *value != serde_json::json!("")
    });
    for list in ["events", "links"] {
        for item in fields.get_mut(list).and_then(Json::as_array_mut).into_iter().flatten() {
            item.as_object_mut().unwrap().retain(|_, value| *value != serde_json::json!([]));
        }
    }
    span
}

/// The frontend says at each move why; in a disaggregated cluster the route span of the prefill does not, and the decode may
/// never come.
#[test]
fn every_move_is_counted_with_its_reason() {
    for (name, moves) in [("migration", 2), ("disagg-migration", 17)] {
        let files = ["traces", "request_trace"].map(|kind| fixture(&format!("{name}.{kind}.jsonl.gz")));
        let mut said = BTreeMap::<String, u64>::new();
        let text = String::from_utf8(inflated(&format!("{name}.traces.jsonl.gz"))).unwrap();
        for event in text.split("\"migration retry scheduled\"").skip(1) {
            let (_, reason) = event.split_once("\"migration.reason\"").unwrap();
            let (_, reason) = reason.split_once("\"stringValue\":\"").unwrap();
            *said.entry(reason.split('"').next().unwrap().to_owned()).or_default() += 1;
        }
        assert_eq!(said.values().sum::<u64>(), moves, "{name}");
        assert_eq!(report(&files)["dispatch"]["inferred"]["migrations"], serde_json::json!(said), "{name}");
    }
}

/// Tokens and choices are told by records in the base layout: without them there is none, not 0.
#[test]
fn what_only_records_tell_is_null_without_them() {
    let files = ["traces", "request_trace"].map(|kind| fixture(&format!("sessions.{kind}.jsonl.gz")));
    let (whole, alone) = (report(&files), report(&files[..1]));
    let of = |report: &Json, key: &str| report["sessions"]["sessions"][0][key].clone();
    let told = |report: &Json| ["input_tokens", "output_tokens", "cached_tokens"].map(|key| of(report, key).as_u64());
    assert_eq!((of(&whole, "turns"), of(&whole, "turns_with_input")), (of(&alone, "turns"), of(&whole, "turns")));
    assert!(told(&whole).iter().all(Option::is_some));
    assert_eq!((told(&alone), of(&alone, "turns_with_input").as_u64()), ([None; 3], Some(0)));
    for key in ["selected", "share"] {
        assert!(whole["ranks"][0][key].is_number() && alone["ranks"][0][key].is_null(), "{key}");
    }
    // Records alone tell of no attempts.
    let records = report(&files[1..]);
    assert!(records["ranks"][0]["attempts"].is_null() && whole["ranks"][0]["attempts"].is_number());
}

/// B38: a worker's clock that is wrong either way is marked, on whatever tells of it: behind, its spans start before those
/// that asked for them; ahead, after whoever asked had the whole answer.
#[test]
fn a_clock_is_marked_that_is_behind_or_ahead() {
    let text = String::from_utf8(inflated("evidence-disagg.traces.jsonl.gz")).unwrap();
    for (seconds, marked) in [(0_i64, 0), (-5, 57), (5, 52)] {
        let listening = Listening::report();
        for line in text.lines() {
            let mut export: Json = serde_json::from_str(line).unwrap();
            for of in export["resourceSpans"].as_array_mut().unwrap() {
                if !of["resource"].to_string().contains("decode") {
                    continue;
                }
                for span in of["scopeSpans"][0]["spans"].as_array_mut().unwrap() {
                    for key in ["startTimeUnixNano", "endTimeUnixNano"] {
                        let time: i64 = span[key].as_str().unwrap().parse().unwrap();
                        span[key] = (time + seconds * 1_000_000_000).to_string().into();
                    }
                }
            }
            post_json(listening.http, &export);
        }
        let report = listening.json();
        assert_eq!(count(&report, &["requests", "by_mark", "clock skew"]), marked, "{seconds} s");
    }
}
