//! `reqtop export`: spans as OTLP JSON lines, one export request per trace.

use crate::lifecycle::request::SpanView;
use crate::query::Query;
use crate::store::Store;
use crate::view::otlp_json;

/// Everything the store holds, or the spans of the requests that match, as OTLP JSON lines: what came in, in meaning.
pub fn json_lines(store: &Store, filter: Option<&Query>) -> String {
    let mut out = String::new();
    match filter {
        None => {
            let spans: Vec<SpanView<'_>> = store.spans().collect();
            for of_trace in spans.chunk_by(|one, other| one.trace == other.trace) {
                otlp_json::line(&mut out, of_trace);
            }
        }
        Some(query) => {
            for (key, _) in store.requests() {
                if store.matches(query, key)
                    && let Some(request) = store.request(key)
                    && !request.spans.is_empty()
                {
                    otlp_json::line(&mut out, &request.spans);
                }
            }
        }
    }
    out
}
