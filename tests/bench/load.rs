//! Real captured spans, multiplied with fresh ids.

use std::io::Read;

use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::any_value::Value;
use prost::Message;

/// The export requests of a capture, as they came.
pub fn capture(name: &str) -> Vec<ExportTraceServiceRequest> {
    let path = format!("{}/tests/fixtures/{name}.traces.pb.gz", env!("CARGO_MANIFEST_DIR"));
    let file = std::fs::File::open(&path).unwrap_or_else(|error| panic!("{path}: {error}"));
    let mut bytes = Vec::new();
    flate2::read::MultiGzDecoder::new(file).read_to_end(&mut bytes).unwrap();
    let mut rest = &bytes[..];
    let mut requests = Vec::new();
    while !rest.is_empty() {
        requests.push(ExportTraceServiceRequest::decode_length_delimited(&mut rest).unwrap());
    }
    requests
}

/// One copy of a capture with ids of its own: trace, span and request ids differ, everything else is as captured.
pub fn fresh(requests: &[ExportTraceServiceRequest], copy: u32) -> Vec<ExportTraceServiceRequest> {
    let mark = copy.to_be_bytes();
    let mix = |id: &mut Vec<u8>| id.iter_mut().zip(mark).for_each(|(byte, mark)| *byte ^= mark);
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
        let attributes =
            span.attributes.iter_mut().chain(span.events.iter_mut().flat_map(|event| &mut event.attributes));
        for attribute in attributes {
            let id = matches!(
                attribute.key.as_str(),
                "request_id"
                    | "dynamo.request.id"
                    | "dynamo.operation.id"
                    | "dynamo.session.id"
                    | "trace_id"
                    | "parent_id"
            );
            if let (true, Some(Value::StringValue(text))) =
                (id, attribute.value.as_mut().and_then(|value| value.value.as_mut()))
            {
                *text = format!("{copy:08x}{}", text.get(8..).unwrap_or(""));
            }
        }
    }
    requests
}
