//! What a log record tells: a trace record, a sign of a request, or nothing that is used here.
//!
//! Owns: recognising Dynamo's trace records (spec request-trace.md, "How they arrive") and its frontend's application logs
//! (spec lifecycle-spans §6). Keeps out: the wire (`wire`), what a record says (`lifecycle::record`).

use std::borrow::Cow;

use compact_str::CompactString;

use crate::lifecycle::batch::{Batch, Sign, SignKind};
use crate::lifecycle::ids::TraceId;
use crate::lifecycle::packed::{self, Value};
use crate::lifecycle::record::{Record, RecordBody};
use crate::lifecycle::text;

/// The scope of trace records.
const RECORD_SCOPE: &[u8] = b"dynamo.request_trace";
/// What the attribute `schema` of a trace record begins with; the version follows.
const RECORD_SCHEMA: &str = "dynamo.request.trace.v";

/// A log record as it came.
#[derive(Default)]
pub(super) struct LogIn<'a> {
    /// When it was written or, when that is not told, observed; nanoseconds since the epoch.
    pub time_ns: u64,
    /// The packed body.
    pub body: &'a [u8],
    /// The trace id's bytes.
    pub trace: &'a [u8],
}

/// Takes one log record into the batch, or counts it.
pub(super) fn take(scope: &[u8], log: &LogIn<'_>, attrs: &[&[u8]], batch: &mut Batch<'_>) {
    if scope == RECORD_SCOPE || text_of(attrs, "schema").is_some_and(|schema| schema.starts_with(RECORD_SCHEMA)) {
        match record(log, attrs) {
            Ok(record) => batch.records.push(record),
            Err(reason) => {
                batch.tally.bad_records += 1;
                batch.tally.refusal.get_or_insert(reason);
            }
        }
        return;
    }
    match sign(log, attrs) {
        Some(sign) => batch.signs.push(sign),
        None => batch.tally.other_logs += 1,
    }
}

fn record(log: &LogIn<'_>, attrs: &[&[u8]]) -> Result<Record, String> {
    let complete = value(attrs, "payload_complete").and_then(Value::as_bool);
    let drop_reason = text_of(attrs, "payload_drop_reason").unwrap_or_default();
    let payload = match value(attrs, "payload") {
        // Text that is not UTF-8 reads as bytes; the record scrubs it.
        Some(Value::Str(text)) => Some(text.as_bytes()),
        Some(Value::Bytes(bytes)) => Some(bytes),
        _ => None,
    };
    let read = payload.filter(|payload| !payload.is_empty()).map(Record::from_json);
    match read {
        Some(Ok(mut record)) => {
            if let (RecordBody::Payload(payload), Some(false)) = (&mut record.body, complete) {
                payload.complete = false;
                if payload.drop_reason.is_empty() {
                    payload.drop_reason = text::scrub(drop_reason.as_bytes()).into();
                }
            }
            Ok(record)
        }
        Some(Err(reason)) if complete != Some(false) => Err(reason),
        _ => Ok(marker(log, attrs, &drop_reason)),
    }
}

/// The record that stands for a dropped payload: labelled incomplete, with the reason (field case B45).
fn marker(log: &LogIn<'_>, attrs: &[&[u8]], drop_reason: &str) -> Record {
    let clean = |name| compact(attrs, name);
    let raw: serde_json::Map<String, serde_json::Value> = attrs
        .iter()
        .map(|attr| packed::read(attr))
        .map(|(key, value)| {
            let value = match value {
                Value::Empty => serde_json::Value::Null,
                Value::Bool(value) => value.into(),
                Value::Int(value) => value.into(),
                Value::Double(value) => value.into(),
                other => text::scrub(other.display().as_bytes()).into_owned().into(),
            };
            (text::scrub(key.as_bytes()).into_owned(), value)
        })
        .collect();
    let raw = serde_json::Value::Object(raw).to_string().into_boxed_str();
    let drop_reason = text::scrub(drop_reason.as_bytes());
    let mut record = Record::payload_marker(&clean("rid"), log.time_ns / 1_000_000, &drop_reason, raw);
    let body = packed::value_of(log.body);
    let event_type = text_of(attrs, "event_type").or(body.as_str().map(Cow::from)).unwrap_or_default();
    if !event_type.is_empty() {
        record.event_type = text::scrub(event_type.as_bytes()).into();
    }
    record
}

/// The frontend's log about a request. The worker's ingress logs the same words without a request type.
fn sign(log: &LogIn<'_>, attrs: &[&[u8]]) -> Option<Sign> {
    let kind = match packed::value_of(log.body) {
        Value::Str("request received") => SignKind::Received,
        Value::Str("request completed") => SignKind::Completed { status: compact(attrs, "status") },
        _ => return None,
    };
    let request_type = text_of(attrs, "request_type")?;
    text_of(attrs, "request_id").filter(|id| !id.is_empty())?;
    Some(Sign {
        trace: TraceId::from_bytes(log.trace),
        request_id: compact(attrs, "request_id"),
        time_ns: log.time_ns,
        model: compact(attrs, "model"),
        endpoint: compact(attrs, "endpoint"),
        streaming: match &*request_type {
            "stream" => Some(true),
            "unary" => Some(false),
            _ => None,
        },
        kind,
    })
}

/// The value of the last attribute with this key: a repeated key's last value holds (field case B10).
fn value<'a>(attrs: &[&'a [u8]], key: &str) -> Option<Value<'a>> {
    attrs.iter().rev().map(|attr| packed::read(attr)).find(|(name, _)| *name == key).map(|(_, value)| value)
}

/// A text; one that is not UTF-8 reads as bytes, and is a text all the same (field case B13).
fn text_of<'a>(attrs: &[&'a [u8]], key: &str) -> Option<Cow<'a, str>> {
    match value(attrs, key)? {
        Value::Str(text) => Some(text.into()),
        Value::Bytes(bytes) => Some(String::from_utf8_lossy(bytes)),
        _ => None,
    }
}

fn compact(attrs: &[&[u8]], key: &str) -> CompactString {
    text::scrub(text_of(attrs, key).unwrap_or_default().as_bytes()).into()
}
