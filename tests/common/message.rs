//! What the senders of a test send.

use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::trace::v1::{ResourceSpans, ScopeSpans, Span};

/// An export of one trace: spans of this sender that nobody else has.
pub fn message(sender: u64, export: u64, spans: u64) -> ExportTraceServiceRequest {
    let trace_id = [(sender + 1).to_be_bytes(), (export + 1).to_be_bytes()].concat();
    let span = |number: u64| Span {
        trace_id: trace_id.clone(),
        span_id: (number + 1).to_be_bytes().to_vec(),
        name: "engine.generate".into(),
        start_time_unix_nano: 1_000,
        end_time_unix_nano: 2_000,
        ..Span::default()
    };
    let scope_spans = vec![ScopeSpans { spans: (0..spans).map(span).collect(), ..ScopeSpans::default() }];
    ExportTraceServiceRequest { resource_spans: vec![ResourceSpans { scope_spans, ..ResourceSpans::default() }] }
}
