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
    let mut records = store.records().peekable();
    while records.peek().is_some() {
        let mut of_line: Vec<&Record> = records.by_ref().take(RECORDS).collect();
        // What was written twice stands in one export, or it would have come again.
        while let Some(again) = records.next_if(|next| of_line.last().is_some_and(|last| last.raw == next.raw)) {
            of_line.push(again);
        }
        otlp_json::records_line(out, &of_line)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lifecycle::batch::Batch;
    use crate::lifecycle::ids::TraceId;
    use crate::lifecycle::made::{Made, with_batch};
    use crate::source::decode;
    use crate::source::intake::{Payload, Signal};
    use crate::source::otlp::json::{Shape, transcode};
    use crate::store::Limits;

    /// B45: what the producer could not send whole is told whoever reads the export, too.
    #[test]
    fn what_records_lack_is_exported_with_them() {
        let attr = |key: &str, value: &str| format!(r#"{{"key":"{key}","value":{value}}}"#);
        let text = |text: &str| serde_json::json!({ "stringValue": text }).to_string();
        let no = r#"{"boolValue":false}"#;
        let log = |body: &str, attrs: &[String]| {
            format!(
                r#"{{"timeUnixNano":"5000000","body":{{"stringValue":"{body}"}},"attributes":[{}]}}"#,
                attrs.join(",")
            )
        };
        let payload = r#"{"event_type":"request_payload","event_time_unix_ms":5,"payload":{"request_id":"whole"}}"#;
        let logs = [
            log(
                "request_payload",
                &[
                    attr("event_type", &text("request_payload")),
                    attr("rid", &text("gone")),
                    attr("payload_complete", no),
                    attr("payload_drop_reason", &text("too_large")),
                    attr("more", r#"{"intValue":"7"}"#),
                ],
            ),
            log("request_end", &[attr("rid", &text("end"))]),
            log("request_payload", &[attr("rid", &text("empty")), attr("payload", &text(""))]),
            log(
                "request_payload",
                &[
                    attr("payload", &text(payload)),
                    attr("payload_complete", no),
                    attr("payload_drop_reason", &text("cut")),
                ],
            ),
        ];
        let sent = format!(
            r#"{{"resourceLogs":[{{"scopeLogs":[{{"scope":{{"name":"dynamo.request_trace"}},"logRecords":[{}]}}]}}]}}"#,
            logs.join(",")
        );
        let exported = |lines: &str| {
            let mut store = Store::new(Limits::default());
            for line in lines.lines() {
                let mut bytes = Vec::new();
                let tally = transcode(Shape::Request(Signal::Logs), line.as_bytes(), &mut bytes).unwrap();
                let mut payload = Payload { tally, ..Payload::otlp(Signal::Logs, bytes) };
                store.ingest(&decode(&mut payload).unwrap(), 5_000_000);
            }
            store.finish(5_000_000);
            assert_eq!((store.counts().records_held(), store.counts().records_bad), (4, 0), "{lines}");
            let mut out = Vec::new();
            json_lines(&store, None, &mut out).unwrap();
            let bodies = store.records().map(|record| (record.request_id.clone(), format!("{:?}", record.body)));
            (String::from_utf8(out).unwrap(), bodies.collect::<std::collections::BTreeMap<_, _>>())
        };
        let (once, first) = exported(&sent);
        let (twice, second) = exported(&once);
        assert_eq!(first, second);
        assert_eq!(once, twice);
        assert!(first["whole"].contains("complete: false") && first["whole"].contains("cut"), "{first:?}");
        assert!(once.contains(r#"{"key":"more","value":{"intValue":"7"}}"#), "{once}");
    }

    /// Wherever it stands among the others: what was written twice is still so when it is read again.
    #[test]
    fn what_was_written_twice_stays_in_one_line() {
        for before in [RECORDS - 2, RECORDS - 1, RECORDS] {
            let mut store = Store::new(Limits::default());
            let raw = |at: usize| format!(r#"{{"rid":"r{at:04}"}}"#).into();
            let record = |at: usize| Record::payload_marker("r", at as u64, "", raw(at));
            let records = (0..=before).chain([before]).map(record).collect();
            store.ingest(&Batch { records, ..Batch::default() }, 1);
            store.finish(1);
            let mut lines = Vec::new();
            json_lines(&store, None, &mut lines).unwrap();
            let with_it = String::from_utf8(lines).unwrap();
            let again = format!("r{before:04}");
            let counts: Vec<usize> =
                with_it.lines().map(|line| line.matches(&again).count()).filter(|n| *n > 0).collect();
            assert_eq!(counts, [2], "{before}");
        }
    }

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
