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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lifecycle::ids::TraceId;
    use crate::lifecycle::made::{Made, with_batch};
    use crate::store::Limits;

    #[test]
    fn a_trace_of_very_many_senders_is_a_line_with_each_sender_once() {
        let names: Vec<String> = (0..1_500).map(|sender| format!("sender-{sender}")).collect();
        let made: Vec<Made<'_>> = (0..3_000)
            .map(|at| Made {
                trace: TraceId([1; 16]),
                id: at + 1,
                parent: 0,
                name: "step",
                kind: 1,
                start_ns: at,
                end_ns: at + 1,
                dropped: 0,
                resource: vec![("service.name", names[at as usize % names.len()].as_str())],
                attrs: Vec::new(),
            })
            .collect();
        let mut store = Store::new(Limits::default());
        with_batch(&made, |batch| store.ingest(&batch, 1));
        store.finish(1);
        let lines = json_lines(&store, None);
        let request: serde_json::Value = serde_json::from_str(&lines).unwrap();
        let resources = request["resourceSpans"].as_array().unwrap();
        assert_eq!(resources.len(), names.len());
        for (resource, name) in resources.iter().zip(&names) {
            assert_eq!(resource["resource"]["attributes"][0]["value"]["stringValue"], name.as_str());
            assert_eq!(resource["scopeSpans"][0]["spans"].as_array().unwrap().len(), 2);
        }
    }
}
