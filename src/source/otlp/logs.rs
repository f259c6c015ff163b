//! OTLP logs → trace records and signs; everything else is counted.
//!
//! Dynamo writes its trace records as logs of the scope `dynamo.request_trace` (spec request-trace.md), and its frontend logs
//! `request received` and `request completed` with a request id (spec lifecycle-spans §6). Owns: telling these apart.
//! Keeps out: what a record holds (`lifecycle::record`).

use compact_str::CompactString;

use super::wire::{Malformed, each, message, number};
use crate::lifecycle::batch::{Batch, Sign, SignKind};
use crate::lifecycle::ids::TraceId;
use crate::lifecycle::packed::{self, Value};
use crate::lifecycle::record::Record;
use crate::lifecycle::text;

/// The schema that every trace record names.
const RECORD_SCHEMA: &str = "dynamo.request.trace.v1";

/// Reads an `ExportLogsServiceRequest` into the batch.
///
/// # Errors
/// When the bytes are no such message.
pub fn logs<'a>(bytes: &'a [u8], batch: &mut Batch<'a>) -> Result<(), Malformed> {
    // LogsData.resource_logs, ResourceLogs.scope_logs, ScopeLogs {scope, log_records}.
    each(bytes, "ExportLogsServiceRequest", |field_number, field| {
        if field_number != 1 {
            return Ok(());
        }
        each(message(field, "resource_logs")?, "ResourceLogs", |field_number, field| {
            if field_number != 2 {
                return Ok(());
            }
            each(message(field, "scope_logs")?, "ScopeLogs", |field_number, field| match field_number {
                2 => log_record(message(field, "log_records")?, batch),
                _ => Ok(()),
            })
        })
    })
}

/// The parts of a log record that tell what it is.
#[derive(Default)]
struct Log<'a> {
    time_ns: u64,
    observed_ns: u64,
    body: &'a [u8],
    attrs: Vec<&'a [u8]>,
    trace: &'a [u8],
}

impl<'a> Log<'a> {
    /// The last value of an attribute.
    fn attr(&self, key: &str) -> Option<Value<'a>> {
        self.attrs
            .iter()
            .map(|attr| packed::read(attr))
            .filter(|(other, _)| *other == key)
            .last()
            .map(|(_, value)| value)
    }

    /// The text of an attribute, scrubbed; empty when absent.
    fn text(&self, key: &str) -> CompactString {
        match self.attr(key) {
            Some(Value::Str(text)) => text::scrub(text.as_bytes()).into(),
            Some(other) => other.display().into(),
            None => CompactString::default(),
        }
    }

    /// When it was written, or else observed, nanoseconds since the epoch.
    fn moment_ns(&self) -> u64 {
        if self.time_ns > 0 { self.time_ns } else { self.observed_ns }
    }
}

fn log_record<'a>(bytes: &'a [u8], batch: &mut Batch<'a>) -> Result<(), Malformed> {
    let mut log = Log::default();
    each(bytes, "LogRecord", |field_number, field| {
        match field_number {
            1 => log.time_ns = number(field),
            5 => log.body = message(field, "body")?,
            6 => log.attrs.push(message(field, "attributes")?),
            9 => log.trace = message(field, "trace_id")?,
            11 => log.observed_ns = number(field),
            _ => {}
        }
        Ok(())
    })?;
    if log.attr("schema").and_then(Value::as_str) == Some(RECORD_SCHEMA)
        || log.attr("rid").is_some() && log.attr("event_type").is_some()
    {
        trace_record(&log, batch);
    } else if let Some(sign) = sign(&log) {
        batch.signs.push(sign);
    } else {
        batch.tally.other_logs += 1;
    }
    Ok(())
}

fn trace_record(log: &Log<'_>, batch: &mut Batch<'_>) {
    let payload = log.attr("payload").and_then(Value::as_str);
    let incomplete = log.attr("payload_complete").and_then(Value::as_bool) == Some(false);
    match payload.map(|payload| Record::from_json(payload.as_bytes())) {
        Some(Ok(record)) => batch.records.push(record),
        Some(Err(_)) if !incomplete => batch.tally.bad_records += 1,
        // The payload was dropped or cut: the log itself is what is left of it.
        _ => {
            let mut left = serde_json::Map::new();
            for key in ["schema", "event_type", "rid", "model", "endpoint", "payload_drop_reason"] {
                left.insert(key.into(), log.text(key).as_str().into());
            }
            left.insert("payload_complete".into(), (!incomplete).into());
            let raw = serde_json::Value::Object(left).to_string().into_boxed_str();
            let time_ms = log.moment_ns() / 1_000_000;
            batch.records.push(Record::payload_marker(
                &log.text("rid"),
                time_ms,
                &log.text("payload_drop_reason"),
                raw,
            ));
        }
    }
}

/// A frontend's word on a request. Workers log the same words about their own ingress, control traffic included; only the
/// frontend names the kind of request.
fn sign(log: &Log<'_>) -> Option<Sign> {
    let kind = match packed::value_of(log.body) {
        Value::Str("request received") => SignKind::Received,
        Value::Str("request completed") => SignKind::Completed { status: log.text("status") },
        _ => return None,
    };
    let request_type = log.attr("request_type")?;
    let request_id = log.text("request_id");
    (!request_id.is_empty()).then(|| Sign {
        trace: TraceId::from_bytes(log.trace),
        request_id,
        time_ns: log.moment_ns(),
        model: log.text("model"),
        endpoint: log.text("endpoint"),
        streaming: request_type.as_str().map(|kind| kind == "stream"),
        kind,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn nest(number: u32, inner: &[u8]) -> Vec<u8> {
        let mut out = Vec::new();
        packed::put_bytes(&mut out, number, inner);
        out
    }

    fn export(body: &str, attrs: &[(&str, Value<'_>)]) -> Vec<u8> {
        let (mut record, mut value) = (Vec::new(), Vec::new());
        packed::put_fixed64(&mut record, 11, 5_000_000);
        packed::put_value(&mut value, Value::Str(body));
        packed::put_bytes(&mut record, 5, &value);
        for (key, value) in attrs {
            packed::put_bytes(&mut record, 6, &packed::pack(key, *value));
        }
        packed::put_bytes(&mut record, 9, &[7; 16]);
        nest(1, &nest(2, &nest(2, &record)))
    }

    fn read(bytes: &[u8]) -> Batch<'_> {
        let mut batch = Batch::default();
        logs(bytes, &mut batch).unwrap();
        batch
    }

    #[test]
    fn a_record_is_read_from_its_payload() {
        let payload = r#"{"schema":"dynamo.request.trace.v1","event_type":"request_end","request":{"request_id":"r"}}"#;
        let bytes = export("request_end", &[("schema", Value::Str(RECORD_SCHEMA)), ("payload", Value::Str(payload))]);
        assert_eq!(read(&bytes).records[0].request_id, "r");
        let bad = export("x", &[("schema", Value::Str(RECORD_SCHEMA)), ("payload", Value::Str("{"))]);
        assert_eq!(read(&bad).tally.bad_records, 1);
    }

    #[test]
    fn a_dropped_payload_leaves_its_marker() {
        let reason = "otel_payload_too_large:max_bytes=392:actual_bytes=393";
        let bytes = export(
            "request_payload",
            &[
                ("event_type", Value::Str("request_payload")),
                ("rid", Value::Str("r-c")),
                ("payload_complete", Value::Bool(false)),
                ("payload_drop_reason", Value::Str(reason)),
            ],
        );
        let batch = read(&bytes);
        let crate::lifecycle::record::RecordBody::Payload(payload) = &batch.records[0].body else { panic!() };
        assert_eq!((payload.complete, &*payload.drop_reason, &*batch.records[0].request_id), (false, reason, "r-c"));
    }

    #[test]
    fn a_frontend_log_is_a_sign_and_a_workers_is_not() {
        let front =
            export("request received", &[("request_id", Value::Str("r")), ("request_type", Value::Str("stream"))]);
        let batch = read(&front);
        assert_eq!((batch.signs[0].streaming, batch.signs[0].time_ns), (Some(true), 5_000_000));
        assert_eq!(batch.signs[0].trace, Some(TraceId([7; 16])));
        let bytes = export("request received", &[("request_id", Value::Str("r"))]);
        assert_eq!((read(&bytes).signs.len(), read(&bytes).tally.other_logs), (0, 1));
    }
}
