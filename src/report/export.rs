//! `reqtop export`: what is held as OTLP JSON lines, one export request per trace or per request that matches, and their
//! trace records.
//!
//! Written while the store is walked: an export takes about as much memory as the largest trace's list of spans.

use std::io::{self, Write};

use crate::lifecycle::record::Record;
use crate::lifecycle::request::SpanView;
use crate::query::Query;
use crate::store::Store;
use crate::view::otlp_json;

/// Records in a line, when everything is written.
const RECORDS: usize = 512;

/// Everything the store holds, or all of the requests that match, as OTLP JSON lines: what came in, in meaning. Logs but
/// trace records are not among it: of those the store keeps what they tell, not their texts.
///
/// # Errors
/// When it cannot be written.
pub fn json_lines(store: &Store, filter: Option<&Query>, out: &mut impl Write) -> io::Result<()> {
    let Some(query) = filter else { return everything(store, out) };
    for (key, _) in store.requests() {
        if store.matches(query, key)
            && let Some(request) = store.request(key)
        {
            otlp_json::whole_request(out, &request)?;
        }
    }
    Ok(())
}

fn everything(store: &Store, out: &mut impl Write) -> io::Result<()> {
    let mut spans = store.spans().peekable();
    let mut of_trace: Vec<SpanView<'_>> = Vec::new();
    while let Some(span) = spans.next() {
        let last = spans.peek().is_none_or(|next| next.trace != span.trace);
        of_trace.push(span);
        if last {
            otlp_json::line(out, &of_trace)?;
            of_trace.clear();
        }
    }
    let mut records = store.records();
    loop {
        let of_line: Vec<&Record> = records.by_ref().take(RECORDS).collect();
        if of_line.is_empty() {
            return Ok(());
        }
        otlp_json::records_line(out, &of_line)?;
    }
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
        let mut lines = Vec::new();
        json_lines(&store, None, &mut lines).unwrap();
        let request: serde_json::Value = serde_json::from_slice(&lines).unwrap();
        let resources = request["resourceSpans"].as_array().unwrap();
        assert_eq!(resources.len(), names.len());
        for (resource, name) in resources.iter().zip(&names) {
            assert_eq!(resource["resource"]["attributes"][0]["value"]["stringValue"], name.as_str());
            assert_eq!(resource["scopeSpans"][0]["spans"].as_array().unwrap().len(), 2);
        }
    }
}
