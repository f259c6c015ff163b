//! JSON as the field sends it: each case by its number in the list of known field cases.

use std::borrow::Cow;

use opentelemetry_proto::tonic::collector::logs::v1::ExportLogsServiceRequest;
use opentelemetry_proto::tonic::collector::metrics::v1::ExportMetricsServiceRequest;
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::metrics::v1::metric::Data;
use opentelemetry_proto::tonic::trace::v1::Span;
use prost::Message as _;

use super::*;
use crate::lifecycle::batch::Batch;
use crate::lifecycle::packed::{self, Value};
use crate::lifecycle::work;
use crate::source::otlp::tests::{lines, messages};
use crate::source::otlp::wire;

const TRACES: Shape = Shape::Request(Signal::Traces);

/// The shared span of the cases, some of its fields replaced or added.
fn span(fields: &str) -> String {
    let all = [
        r#""traceId":"0123456789abcdef0123456789abcdef""#,
        r#""spanId":"00000000000000a1""#,
        r#""parentSpanId":"""#,
        r#""name":"http-request""#,
        r#""kind":2"#,
        r#""startTimeUnixNano":"1760000000000000000""#,
        r#""endTimeUnixNano":"1760000000120000000""#,
        r#""status":{}"#,
    ];
    let replaced = |field: &&&str| !fields.contains(&field[..field.find(':').unwrap() + 1]);
    let kept = all.iter().filter(replaced).map(|field| (*field).to_owned());
    format!("{{{}}}", kept.chain((!fields.is_empty()).then(|| fields.to_owned())).collect::<Vec<_>>().join(","))
}

fn wrap(spans: &[String]) -> String {
    format!(
        r#"{{"resourceSpans":[{{"resource":{{"attributes":[{{"key":"service.name","value":{{"stringValue":"dynamo-frontend"}}}}]}},"scopeSpans":[{{"spans":[{}]}}]}}]}}"#,
        spans.join(",")
    )
}

fn read(json: &str) -> Result<(Vec<Span>, Tally), String> {
    let mut out = b"before".to_vec();
    let tally = transcode(TRACES, json.as_bytes(), &mut out);
    assert!(out.starts_with(b"before") && (tally.is_ok() || out.len() == 6));
    let request = ExportTraceServiceRequest::decode(&out[6..]).unwrap();
    let scopes = request.resource_spans.into_iter().flat_map(|resource| resource.scope_spans);
    Ok((scopes.flat_map(|scope| scope.spans).collect(), tally?))
}

fn one(fields: &str) -> Span {
    let (mut spans, tally) = read(&wrap(&[span(fields)])).unwrap();
    assert_eq!(tally.refused_spans, 0, "{:?}", tally.refusal);
    spans.remove(0)
}

fn error(fields: &str) -> String {
    read(&wrap(&[span(fields)])).unwrap_err()
}

/// The attribute as it is packed, and that it is canonical.
fn attribute(json: &str) -> Vec<u8> {
    let text = wrap(&[span(&format!(r#""attributes":[{json}]"#))]);
    let mut out = Vec::new();
    transcode(TRACES, text.as_bytes(), &mut out).unwrap();
    let mut batch = Batch::default();
    wire::traces(&out, &mut batch).unwrap();
    let attribute = batch.attrs(&batch.spans[0].attrs)[0];
    assert!(matches!(packed::clean(attribute), Cow::Borrowed(_)), "{json}: {attribute:?}");
    attribute.to_vec()
}

#[test]
fn captures_mean_what_their_protobuf_says() {
    let pairs = lines("dev-sim.traces.jsonl.gz").into_iter().zip(messages("dev-sim.traces.pb.gz"));
    for (line, message) in pairs {
        let mut out = Vec::new();
        assert_eq!(transcode(TRACES, &line, &mut out), Ok(Tally::default()));
        let decode = |bytes: &[u8]| ExportTraceServiceRequest::decode(bytes).unwrap();
        assert_eq!(decode(&out), decode(&message));
        let (mut ours, mut theirs) = (Batch::default(), Batch::default());
        wire::traces(&out, &mut ours).unwrap();
        wire::traces(&message, &mut theirs).unwrap();
        // The same attributes are the same bytes, whichever way they came.
        assert_eq!(ours.attrs, theirs.attrs);
    }
    for (line, message) in lines("dev-sim.logs.jsonl.gz").into_iter().zip(messages("dev-sim.logs.pb.gz")) {
        let mut out = Vec::new();
        transcode(Shape::Request(Signal::Logs), &line, &mut out).unwrap();
        let decode = |bytes: &[u8]| ExportLogsServiceRequest::decode(bytes).unwrap();
        assert_eq!(decode(&out), decode(&message));
    }
}

#[test]
fn metrics_are_written_whole_and_counted_from_that() {
    let (mut points, mut expected) = (0, 0);
    for line in lines("metrics.metrics.jsonl.gz") {
        let mut out = Vec::new();
        assert_eq!(transcode(Shape::Request(Signal::Metrics), &line, &mut out).unwrap(), Tally::default());
        let mut batch = Batch::default();
        wire::metrics(&out, &mut batch).unwrap();
        points += batch.tally.metric_points;
        expected += String::from_utf8_lossy(&line).matches("\"timeUnixNano\"").count() as u64;
    }
    assert_eq!(points, expected);
}

#[test]
fn lists_of_numbers_are_read_however_they_are_written() {
    let point =
        r#"{"bucketCounts":["1",2,null,"18446744073709551615"],"explicitBounds":[1,"2.5","Infinity"],"flags":null}"#;
    let text = format!(
        r#"{{"resourceMetrics":[{{"scopeMetrics":[{{"metrics":[{{"histogram":{{"dataPoints":[{point}]}}}}]}}]}}]}}"#
    );
    let mut out = Vec::new();
    transcode(Shape::Request(Signal::Metrics), text.as_bytes(), &mut out).unwrap();
    let request = ExportMetricsServiceRequest::decode(&out[..]).unwrap();
    let Some(Data::Histogram(histogram)) = &request.resource_metrics[0].scope_metrics[0].metrics[0].data else {
        panic!()
    };
    let point = &histogram.data_points[0];
    assert_eq!(point.bucket_counts, [1, 2, 0, u64::MAX]);
    assert_eq!(point.explicit_bounds, [1.0, 2.5, f64::INFINITY]);
    let bad = text.replace("\"2.5\"", "{}");
    assert!(
        transcode(Shape::Request(Signal::Metrics), bad.as_bytes(), &mut out).unwrap_err().contains("explicitBounds")
    );
}

#[test]
fn b01_hex_of_any_case_and_nothing_else() {
    let (spans, _) = read(&wrap(&[
        span(r#""traceId":"0123456789ABCDEF0123456789ABCDEF""#),
        span(r#""spanId":"00000000000000A2","parentSpanId":"00000000000000A1""#),
    ]))
    .unwrap();
    assert_eq!(spans[0].trace_id, spans[1].trace_id);
    assert_eq!(spans[0].span_id, spans[1].parent_span_id);
    for (field, wrong) in [
        ("traceId", r#""ASNFZ4mrze8BI0VniavN7w==""#),
        ("spanId", "7"),
        ("parentSpanId", "[1]"),
        ("traceId", r#"{"a":1}"#),
    ] {
        let good = span(r#""name":"good""#);
        let (spans, tally) = read(&wrap(&[good.clone(), span(&format!("\"{field}\":{wrong}")), good])).unwrap();
        assert_eq!((spans.len(), tally.refused_spans), (2, 1));
        let reason = tally.refusal.unwrap();
        assert!(reason.contains(field) && reason.contains("hex"), "{reason}");
    }
}

#[test]
fn b02_64_bit_numbers_as_numbers_or_text() {
    for time in ["1760000000000000000", "\"1760000000000000000\"", "1.76e18", "\"1.76e18\"", "1760000000000000000.0"] {
        assert_eq!(one(&format!("\"startTimeUnixNano\":{time}")).start_time_unix_nano, 1_760_000_000_000_000_000);
    }
    for wrong in [r#"{"low":1,"high":2}"#, "[1]", "-1", "1.5", "\"soon\"", "true", "1e30"] {
        let error = error(&format!("\"startTimeUnixNano\":{wrong}"));
        assert!(error.contains("startTimeUnixNano") && error.contains("64-bit"), "{wrong}: {error}");
    }
    for (number, value) in [
        ("\"-5\"", -5),
        ("-5", -5),
        ("9007199254740993", 9_007_199_254_740_993),
        ("\"10043354564431127207\"", 10_043_354_564_431_127_207_u64 as i64),
    ] {
        let packed = attribute(&format!(r#"{{"key":"k","value":{{"intValue":{number}}}}}"#));
        assert_eq!(packed::read(&packed), ("k", Value::Int(value)));
    }
    assert_eq!(one(r#""flags":"257","droppedAttributesCount":"7""#).flags, 257);
    assert!(error(r#""droppedAttributesCount":4294967296"#).contains("droppedAttributesCount"));
}

#[test]
fn b04_enums_by_number_and_by_name() {
    for (kind, number) in [("1", 1), ("5", 5), ("\"SPAN_KIND_SERVER\"", 2), ("99", 99), ("\"3\"", 3), ("null", 0)] {
        assert_eq!(one(&format!("\"kind\":{kind}")).kind, number);
    }
    for (code, number) in [("0", 0), ("1", 1), ("2", 2), ("\"STATUS_CODE_ERROR\"", 2), ("7", 7)] {
        let status = one(&format!(r#""status":{{"code":{code},"message":"m"}}"#)).status.unwrap();
        assert_eq!((status.code, &*status.message), (number, "m"));
    }
    assert_eq!(one(r#""kind":"SPAN_KIND_OF_TOMORROW""#).kind, 0);
}

#[test]
fn b05_unknown_fields_are_skipped_at_every_level() {
    let zzz = r#""zzz":{"a":[1,{"b":null}]}"#;
    let attribute = format!(r#"{{"key":"k","value":{{"stringValue":"v",{zzz}}},{zzz}}}"#);
    let span = span(&format!(
        r#"{zzz},"status":{{"code":1,{zzz}}},"events":[{{"name":"e",{zzz}}}],"attributes":[{attribute}]"#
    ));
    let text = format!(
        r#"{{{zzz},"resourceSpans":[{{{zzz},"resource":{{{zzz}}},"scopeSpans":[{{"scope":{{{zzz}}},{zzz},"spans":[{span}]}}]}}]}}"#
    );
    let (spans, tally) = read(&text).unwrap();
    assert_eq!((spans.len(), tally), (1, Tally::default()));
    assert_eq!((spans[0].events[0].name.as_str(), spans[0].attributes[0].key.as_str()), ("e", "k"));
}

#[test]
fn b06_snake_case_is_taken_and_told() {
    let (spans, tally) = read(
        r#"{"resource_spans":[{"scope_spans":[{"spans":[{"trace_id":"0123456789abcdef0123456789abcdef","span_id":"00000000000000a1","name":"x","start_time_unix_nano":"1760000000000000000"}]}]}]}"#,
    )
    .unwrap();
    assert_eq!((spans[0].name.as_str(), spans[0].start_time_unix_nano), ("x", 1_760_000_000_000_000_000));
    assert_eq!(tally.snake_case, 5);
}

#[test]
fn b08_every_kind_of_value() {
    let any = |json: &str| attribute(&format!(r#"{{"key":"k","value":{json}}}"#));
    assert_eq!(packed::read(&any(r#"{"bytesValue":"AP8="}"#)).1, Value::Bytes(&[0, 255]));
    assert_eq!(packed::read(&any(r#"{"bytesValue":"AP8"}"#)).1, Value::Bytes(&[0, 255]));
    assert_eq!(packed::read(&any(r#"{"bytesValue":"-_8="}"#)).1, Value::Bytes(&[0xfb, 0xff]));
    assert_eq!(packed::read(&any(r#"{"stringValue":""}"#)).1, Value::Str(""));
    assert_eq!(packed::read(&any(r#"{"arrayValue":{}}"#)).1, Value::Array(&[]));
    assert_eq!(packed::read(&any(r#"{"kvlistValue":{}}"#)).1, Value::Map(&[]));
    assert_eq!(packed::read(&any(r#"{"boolValue":false}"#)).1, Value::Bool(false));
    assert_eq!(packed::read(&any(r#"{"doubleValue":"-Infinity"}"#)).1, Value::Double(f64::NEG_INFINITY));
    assert_eq!(packed::read(&any(r#"{"doubleValue":3}"#)).1, Value::Double(3.0));
    // To the last bit: what is exported and read again is the same.
    let tiny = 7.713_969_783_161_324e-90;
    assert_eq!(packed::read(&any(r#"{"doubleValue":7.713969783161324e-90}"#)).1, Value::Double(tiny));
    assert_eq!(packed::read(&any("{}")).1, Value::Empty);
    assert_eq!(packed::read(&any("null")).1, Value::Empty);
    let list = any(r#"{"arrayValue":{"values":[{"intValue":"1"},{"stringValue":"z"},{},null]}}"#);
    let items: Vec<_> = packed::read(&list).1.items().collect();
    assert_eq!(items, [Value::Int(1), Value::Str("z"), Value::Empty, Value::Empty]);
    let map = any(r#"{"kvlistValue":{"values":[{"key":"k","value":{"boolValue":false}}]}}"#);
    assert_eq!(packed::read(&map).1.entries().collect::<Vec<_>>(), [("k", Value::Bool(false))]);
    assert!(error(r#""attributes":[{"key":"k","value":{"bytesValue":"!"}}]"#).contains("bytesValue"));
}

#[test]
fn attributes_are_canonical_whatever_their_order() {
    let long = "x".repeat(300);
    let straight = attribute(&format!(r#"{{"key":"k","value":{{"stringValue":"{long}"}}}}"#));
    let reversed = attribute(&format!(r#"{{"value":{{"stringValue":"{long}"}},"zzz":[],"key":"k"}}"#));
    assert_eq!(straight, packed::pack("k", Value::Str(&long)));
    assert_eq!(straight, reversed);
}

#[test]
fn b10_repeated_attributes_stay_and_repeated_keys_end_with_the_last() {
    let attribute = r#"{"key":"worker_id","value":{"stringValue":"1"}}"#;
    assert_eq!(one(&format!(r#""attributes":[{attribute},{attribute}]"#)).attributes.len(), 2);
    let text = format!(r#""name":"first","name":"last","attributes":[{attribute}],"attributes":[{attribute}]"#);
    let read = one(&text);
    assert_eq!((read.name.as_str(), read.attributes.len()), ("last", 1));
}

#[test]
fn repeated_lists_of_spans_and_records_are_joined() {
    let span = |id: u8, more: &str| format!(r#"{{"traceId":"{:032x}","spanId":"{id:016x}"{more}}}"#, 1);
    let scope = |id: u8, more: &str| format!(r#"{{"spans":[{}]}}"#, span(id, more));
    let resource = |id: u8, more: &str| format!(r#"{{"scopeSpans":[{}]}}"#, scope(id, more));
    let ids = |text: &str| {
        let spans = read(text).unwrap().0;
        spans.iter().map(|span| (span.span_id[7], span.name.clone())).collect::<Vec<_>>()
    };
    let (one, two) = ((1, String::new()), (2, String::new()));
    // With another key that comes twice, a tree is made of it: it joins them, too.
    let named = r#","name":"first","name":"last""#;
    for (more, two) in [("", two), (named, (2, "last".to_owned()))] {
        let both = [one.clone(), two];
        for text in [
            format!(r#"{{"resourceSpans":[{}],"resourceSpans":[{}]}}"#, resource(1, ""), resource(2, more)),
            format!(r#"{{"resourceSpans":[{{"scopeSpans":[{}],"scopeSpans":[{}]}}]}}"#, scope(1, ""), scope(2, more)),
            format!(
                r#"{{"resource_spans":[{{"scope_spans":[{{"spans":[{}],"spans":[{}],"spans":null}}]}}]}}"#,
                span(1, ""),
                span(2, more)
            ),
        ] {
            assert_eq!(ids(&text), both, "{text}");
        }
    }
    let log = r#"{"body":{"stringValue":"x","stringValue":"y"}}"#;
    let mut out = Vec::new();
    let text = format!(r#"{{"resourceLogs":[{{"scopeLogs":[{{"logRecords":[{log}],"logRecords":[{log}]}}]}}]}}"#);
    transcode(Shape::Request(Signal::Logs), text.as_bytes(), &mut out).unwrap();
    let text = format!(r#"{{"resourceLogs":[{{"scopeLogs":[{{"logRecords":[{log},{log}]}}]}}]}}"#);
    let mut straight = Vec::new();
    transcode(Shape::Request(Signal::Logs), text.as_bytes(), &mut straight).unwrap();
    assert!(out == straight);
}

#[test]
fn nothing_is_told_in_many_ways() {
    for text in ["{}", "null", r#"{"resourceSpans":null}"#, r#"{"resourceSpans":[]}"#, r#"{"resourceSpans":[null]}"#] {
        assert_eq!(read(text).unwrap(), (Vec::new(), Tally::default()), "{text}");
    }
    let read = one(r#""attributes":null,"events":null,"links":null,"status":null,"kind":null"#);
    assert_eq!((read.attributes.len(), read.status, read.kind), (0, None, 0));
}

#[test]
fn wrong_shapes_name_their_field() {
    for (fields, name) in [
        (r#""name":5"#, "name"),
        (r#""attributes":{}"#, "attributes"),
        (r#""attributes":[5]"#, "attributes"),
        (r#""status":[]"#, "status"),
        (r#""attributes":[{"key":"k","value":"bare"}]"#, "value"),
    ] {
        let error = error(fields);
        assert!(error.contains(name) && error.contains("expected"), "{fields}: {error}");
    }
    for text in ["", "{", "[]", "7", "{\"resourceSpans\":[]} x"] {
        assert!(read(text).unwrap_err().starts_with("not OTLP/JSON"), "{text}");
    }
}

#[test]
fn one_bad_span_or_log_record_costs_only_itself() {
    let good = span(r#""name":"good""#);
    for (fields, reason) in [
        (r#""startTimeUnixNano":{"low":1,"high":2}"#, "startTimeUnixNano: expected an unsigned 64-bit number"),
        (r#""attributes":[5]"#, "attributes: expected objects in the list, found integer"),
        (r#""attributes":[{"key":"k","value":{"arrayValue":{"values":[{"intValue":"x"}]}}}]"#, "intValue: expected"),
        (r#""events":[{"timeUnixNano":-1}]"#, "timeUnixNano: expected"),
        (r#""status":[]"#, "status: expected an object, found sequence"),
        (r#""startTimeUnixNano":1e999"#, "startTimeUnixNano: expected an unsigned 64-bit number"),
        (r#""traceId":"00000000000000000000000000000000""#, "traceId: expected hex digits, not all zero"),
        (r#""spanId":null"#, "spanId: expected hex digits, not all zero"),
    ] {
        let bad = span(&format!(r#"{fields},"name":"bad""#));
        let (spans, tally) = read(&wrap(&[good.clone(), bad, good.clone()])).unwrap();
        assert_eq!((spans.len(), tally.refused_spans, tally.passed_over), (2, 1, 0), "{fields}");
        // Whose it was is known where it says so.
        assert_eq!(tally.torn.len(), usize::from(!fields.contains("traceId")), "{fields}");
        assert!(spans.iter().all(|span| span.name == "good"));
        let told = tally.left_out().unwrap();
        assert!(told.starts_with(&format!("left out 1 span: span \"bad\": {reason}")), "{told}");
    }
    let (spans, tally) = read(&wrap(&["7".into(), good.clone(), "[[]]".into()])).unwrap();
    assert_eq!((spans.len(), tally.refused_spans), (1, 2));
    let log = |logs: &str| format!(r#"{{"resourceLogs":[{{"scopeLogs":[{{"logRecords":[{logs}]}}]}}]}}"#);
    let mut out = Vec::new();
    let text = log(r#"{"body":{"stringValue":"a"}},{"body":5},{"traceId":"odd","body":{"stringValue":"b"}},true"#);
    let tally = transcode(Shape::Request(Signal::Logs), text.as_bytes(), &mut out).unwrap();
    let request = ExportLogsServiceRequest::decode(&out[..]).unwrap();
    assert_eq!((request.resource_logs[0].scope_logs[0].log_records.len(), tally.bad_records), (2, 2));
    assert_eq!(tally.refusal.unwrap(), "body: expected an object, found integer `5`");
}

#[test]
fn what_is_wrong_above_spans_costs_no_span() {
    let attributes = r#"{"key":"a","value":{"intValue":"1"}},{"key":"b","value":{"intValue":"x"}},7"#;
    let text = format!(
        r#"{{"resourceSpans":[5,{{"resource":{{"attributes":[{attributes}],"droppedAttributesCount":"y"}},"scopeSpans":[{{"scope":{{"name":[1],"version":"2"}},"schemaUrl":1,"spans":[{}]}},"z"],"resourceSpans":[{{}}]}}]}}"#,
        span("")
    );
    let mut out = Vec::new();
    let tally = transcode(TRACES, text.as_bytes(), &mut out).unwrap();
    let request = ExportTraceServiceRequest::decode(&out[..]).unwrap();
    let [only] = &request.resource_spans[..] else { panic!("{request:?}") };
    let attributes = &only.resource.as_ref().unwrap().attributes;
    assert_eq!((attributes.len(), attributes[0].key.as_str()), (1, "a"));
    let scope = &only.scope_spans[0];
    assert_eq!((scope.spans.len(), scope.scope.as_ref().unwrap().version.as_str()), (1, "2"));
    assert_eq!((tally.refused_spans, tally.passed_over), (0, 8));
    let told = tally.left_out().unwrap();
    assert_eq!(told, "left out 8 parts: resourceSpans: expected objects in the list, found integer `5`");
}

#[test]
fn keys_of_another_signal_are_told_and_cost_nothing_else() {
    let whole = wrap(&[span("")]);
    let mixed = format!(r#"{{"resourceLogs":[{{"scopeLogs":[]}}],{}"#, &whole[1..]);
    let (spans, tally) = read(&mixed).unwrap();
    assert_eq!((spans.len(), tally.misplaced), (1, 1));
    assert!(tally.refusal.unwrap().contains("\"resourceLogs\" does not belong here, expected \"resourceSpans\""));
    assert_eq!(shapes(mixed.as_bytes()), [Shape::Request(Signal::Logs), TRACES]);
    // With nothing but those it is refused.
    let lost = read(r#"{"resourceLogs":[{"scopeLogs":[]}]}"#).unwrap_err();
    assert!(lost.contains("send each signal to its own path"), "{lost}");
}

#[test]
fn numbers_beyond_all_bounds_are_infinite() {
    for (number, value) in [("1e999", f64::INFINITY), ("-1E+400", f64::NEG_INFINITY), ("0e999", 0.0)] {
        let packed = attribute(&format!(r#"{{"key":"1e999","value":{{"doubleValue":{number}}}}}"#));
        assert_eq!(packed::read(&packed), ("1e999", Value::Double(value)));
    }
}

#[test]
fn deep_nesting_is_noted_or_skipped_without_harm() {
    let deep = format!("{}{}", "[".repeat(200_000), "]".repeat(200_000));
    assert_eq!(one(&format!("\"zzz\":{deep}")).name, "http-request");
    let mut value = r#"{"stringValue":"bottom"}"#.to_owned();
    for _ in 0..5_000 {
        value = format!(r#"{{"arrayValue":{{"values":[{value}]}}}}"#);
    }
    let fields = format!(r#""attributes":[{{"key":"k","value":{value}}},{{"key":"z","value":{{"intValue":1}}}}]"#);
    let (spans, tally) = read(&wrap(&[span(&fields), span("")])).unwrap();
    assert_eq!((spans.len(), spans[0].attributes.len(), tally.bad_texts, tally.refused_spans), (2, 2, 1, 0));
    assert!(format!("{:?}", spans[0].attributes[0]).contains(packed::TOO_DEEP));
    // A repeated key beside it is read as protobuf reads it: the tree that would drop it cannot be that deep.
    let twice = one(&format!(r#"{fields},"name":"first","name":"last""#));
    assert_eq!((twice.name.as_str(), twice.attributes.len()), ("last", 2));
}

#[test]
fn b13_what_is_not_unicode_is_replaced() {
    let (spans, tally) = read(&wrap(&[span(r#""name":"a\ud800b\udc00\ud83d\ude00\\ud800""#)])).unwrap();
    assert_eq!(spans[0].name, "a\u{fffd}b\u{fffd}😀\\ud800");
    assert_eq!(tally.bad_texts, 2);
    let mut text = wrap(&[span(r#""name":"ab?cd""#)]).into_bytes();
    let at = text.iter().position(|byte| *byte == b'?').unwrap();
    text[at] = 0xff;
    let mut out = Vec::new();
    assert_eq!(transcode(TRACES, &text, &mut out).unwrap().bad_texts, 1);
    let request = ExportTraceServiceRequest::decode(&out[..]).unwrap();
    assert_eq!(request.resource_spans[0].scope_spans[0].spans[0].name, "ab\u{fffd}cd");
}

#[test]
fn a_bare_resource_is_a_request_of_one() {
    let whole = wrap(&[span("")]);
    let bare = &whole[r#"{"resourceSpans":["#.len()..whole.len() - 2];
    assert_eq!(first_key(bare.as_bytes(), Shape::of_key), Some(Shape::Resource(Signal::Traces)));
    assert_eq!(first_key(whole.as_bytes(), Shape::of_key), Some(TRACES));
    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    transcode(Shape::Resource(Signal::Traces), bare.as_bytes(), &mut ours).unwrap();
    transcode(TRACES, whole.as_bytes(), &mut theirs).unwrap();
    assert_eq!(ours, theirs);
}

#[test]
fn a_key_that_comes_again_and_again_moves_its_value_once() {
    let again = r#""key":"k","#.repeat(1_000);
    work::taken();
    let packed = attribute(&format!(r#"{{"value":{{"stringValue":"{}"}},{again}"key":"last"}}"#, "x".repeat(300)));
    assert_eq!(packed::read(&packed).0, "last");
    assert!(work::taken() < 3);
}
