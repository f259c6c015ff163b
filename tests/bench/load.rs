//! Real captured spans, multiplied: each copy has ids, times and measured numbers of its own.

use std::io::Read;

use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::any_value::Value;
use prost::Message;

/// Seconds between two copies.
const APART_NS: u64 = 1_000_000_000;

/// A fixture, inflated.
pub fn fixture(name: &str) -> Vec<u8> {
    let path = format!("{}/tests/fixtures/{name}.gz", env!("CARGO_MANIFEST_DIR"));
    let file = std::fs::File::open(&path).unwrap_or_else(|error| panic!("{path}: {error}"));
    let mut bytes = Vec::new();
    flate2::read::MultiGzDecoder::new(file).read_to_end(&mut bytes).unwrap();
    bytes
}

/// The export requests of a capture, as they came.
pub fn capture(name: &str) -> Vec<ExportTraceServiceRequest> {
    let bytes = fixture(&format!("{name}.traces.pb"));
    let mut rest = &bytes[..];
    let mut requests = Vec::new();
    while !rest.is_empty() {
        requests.push(ExportTraceServiceRequest::decode_length_delimited(&mut rest).unwrap());
    }
    requests
}

/// Attributes that name something of one request only.
const IDS: [&str; 8] = [
    "request_id",
    "x_request_id",
    "dynamo.request.id",
    "dynamo.operation.id",
    "dynamo.session.id",
    "trace_id",
    "parent_id",
    "migration_trace_id",
];

/// Attributes that are measured anew for each request, as decimal text.
const MEASURED: [&str; 8] =
    ["ttft_ms", "avg_itl_ms", "itl_max_ms", "itl_p50_ms", "itl_p99_ms", "elapsed_ms", "latency_ms", "busy_ns"];

/// When a request ended, Unix nanoseconds as text.
const TERMINAL: &str = "dynamo.request.terminal.timestamp_unix_ns";

/// One copy of a capture: ids, times and measured numbers differ, everything else is as captured.
pub fn fresh(requests: &[ExportTraceServiceRequest], copy: u32) -> Vec<ExportTraceServiceRequest> {
    let mark = copy.to_be_bytes();
    let mix = |id: &mut Vec<u8>| id.iter_mut().zip(mark).for_each(|(byte, mark)| *byte ^= mark);
    let later = u64::from(copy) * APART_NS;
    let mut requests = requests.to_vec();
    for span in requests
        .iter_mut()
        .flat_map(|request| &mut request.resource_spans)
        .flat_map(|resource| &mut resource.scope_spans)
        .flat_map(|scope| &mut scope.spans)
    {
        mix(&mut span.trace_id);
        mix(&mut span.span_id);
        if !span.parent_span_id.is_empty() {
            mix(&mut span.parent_span_id);
        }
        span.start_time_unix_nano += later;
        span.end_time_unix_nano += later;
        span.events.iter_mut().for_each(|event| event.time_unix_nano += later);
        let attributes =
            span.attributes.iter_mut().chain(span.events.iter_mut().flat_map(|event| &mut event.attributes));
        for attribute in attributes {
            let Some(Value::StringValue(text)) = attribute.value.as_mut().and_then(|value| value.value.as_mut()) else {
                continue;
            };
            if IDS.contains(&attribute.key.as_str()) {
                *text = format!("{copy:08x}{}", text.get(8..).unwrap_or(""));
            } else if attribute.key == TERMINAL {
                // A moment of the request: it moves with its spans, or each copy would contradict itself.
                *text = text.parse::<u64>().map_or_else(|_| text.clone(), |time| (time + later).to_string());
            } else if MEASURED.contains(&attribute.key.as_str()) {
                *text = other_digits(text, copy);
            }
        }
    }
    requests
}

/// The same number with its last four digits turned by the copy's number.
fn other_digits(text: &str, copy: u32) -> String {
    let mut turn = copy.wrapping_mul(2_654_435_761);
    let mut left = 4;
    let mut digits: Vec<u8> = text.bytes().collect();
    for digit in digits.iter_mut().rev().filter(|digit| digit.is_ascii_digit()) {
        if left == 0 {
            break;
        }
        *digit = b'0' + (*digit - b'0' + (turn % 10) as u8) % 10;
        (turn, left) = (turn / 10, left - 1);
    }
    String::from_utf8(digits).unwrap()
}

/// The messages of one copy, encoded.
pub fn messages(requests: &[ExportTraceServiceRequest], copy: u32) -> Vec<Vec<u8>> {
    fresh(requests, copy).iter().map(Message::encode_to_vec).collect()
}

/// How many spans a capture has.
pub fn spans(requests: &[ExportTraceServiceRequest]) -> usize {
    let of = |request: &ExportTraceServiceRequest| -> usize {
        request.resource_spans.iter().flat_map(|resource| &resource.scope_spans).map(|scope| scope.spans.len()).sum()
    };
    requests.iter().map(of).sum()
}
