//! Request-trace records (`dynamo.request.trace.v1`, spec request-trace.md), read from their JSON text.
//!
//! The typed parts are what panes and checks use; the text is kept whole beside them, so unknown event types and fields
//! are never lost.

use compact_str::CompactString;
use serde::Deserialize;

use super::account::{chunk, chunk_of};
use super::ids::Worker;
use super::stage::Phase;
use super::text;

/// One record.
#[derive(Clone, Debug)]
pub struct Record {
    /// The event type as written: `request_end`, `router_selection`, `tool_start`, … or one not known yet.
    pub event_type: CompactString,
    /// `event_time_unix_ms`.
    pub time_ms: u64,
    /// The request it belongs to; empty for tool events, which name only their session.
    pub request_id: CompactString,
    /// `agent_context.session_id`; empty without an agent context.
    pub session_id: CompactString,
    /// What the type adds.
    pub body: RecordBody,
    /// The whole record as it came, scrubbed JSON, without blanks between its parts: what was written anew by another program
    /// is the same record.
    pub raw: Box<str>,
    /// How often the store that keeps it had been held when it came (see `store::held`); 0 elsewhere.
    pub hold: u32,
}

/// What a record's type adds.
#[derive(Clone, Debug)]
pub enum RecordBody {
    /// `request_end`.
    End(Box<RequestEnd>),
    /// `router_selection`.
    Selection(SelectionRecord),
    /// `request_payload`, or the marker that stands for one that was dropped.
    Payload(PayloadRecord),
    /// `tool_start`, `tool_end`, `tool_error`.
    Tool,
    /// A type not known here; the text has it all.
    Other,
}

/// `request_end.request`: times in milliseconds, tokens as counted by the frontend.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
#[allow(missing_docs, reason = "the producer's names, described in spec request-trace.md")]
pub struct RequestEnd {
    #[serde(deserialize_with = "some")]
    pub x_request_id: Option<CompactString>,
    #[serde(deserialize_with = "some")]
    pub model: Option<CompactString>,
    pub input_tokens: Option<u64>,
    pub output_tokens: Option<u64>,
    pub cached_tokens: Option<u64>,
    pub reasoning_tokens: Option<u64>,
    pub request_received_ms: Option<u64>,
    pub prefill_wait_time_ms: Option<f64>,
    pub prefill_time_ms: Option<f64>,
    pub ttft_ms: Option<f64>,
    pub total_time_ms: Option<f64>,
    pub avg_itl_ms: Option<f64>,
    pub kv_hit_rate: Option<f64>,
    pub queue_depth: Option<u64>,
    pub worker: Option<EndWorkers>,
    pub replay: Option<Replay>,
    #[serde(rename = "finish_reason_metadata")]
    pub finish: Option<Finish>,
}

/// `request_end.request.worker`.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
#[allow(missing_docs, reason = "the producer's names")]
pub struct EndWorkers {
    pub prefill_worker_id: Option<u64>,
    pub prefill_dp_rank: Option<u32>,
    pub decode_worker_id: Option<u64>,
    pub decode_dp_rank: Option<u32>,
}

/// `request_end.request.replay`.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
#[allow(missing_docs, reason = "the producer's names")]
pub struct Replay {
    pub trace_block_size: Option<u64>,
    pub input_length: Option<u64>,
    pub input_sequence_hashes: Vec<u64>,
}

/// `request_end.request.finish_reason_metadata`.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
#[allow(missing_docs, reason = "the producer's names")]
pub struct Finish {
    #[serde(deserialize_with = "some")]
    pub finish_reason: Option<CompactString>,
    #[serde(deserialize_with = "some")]
    pub backend_finish_reason: Option<CompactString>,
}

/// `router_selection.selection`. It does not say which candidate was chosen.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SelectionRecord {
    /// `worker_type`: prefill or decode; aggregated pools also say decode.
    pub pool: Phase,
    /// Kept by session affinity.
    pub pinned: bool,
    /// How many candidates there were; the list may be cut to the best few.
    pub candidate_count: u64,
    /// Worker, rank and cost, ascending by cost.
    pub candidates: Vec<(Worker, f64)>,
}

/// A payload record or marker.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PayloadRecord {
    /// Whether the payload is all there.
    pub complete: bool,
    /// Why not, as the producer says it.
    pub drop_reason: CompactString,
    /// Whether only a marker came: the record's text is then what the log said, and no record.
    pub is_marker: bool,
}

#[derive(Deserialize)]
struct Raw<'a> {
    #[serde(borrow, default)]
    event: Option<&'a serde_json::value::RawValue>,
    #[serde(default, deserialize_with = "text_or_empty")]
    event_type: CompactString,
    #[serde(default)]
    event_time_unix_ms: Option<u64>,
    #[serde(default)]
    agent_context: Option<AgentContext>,
    #[serde(borrow, default)]
    request: Option<&'a serde_json::value::RawValue>,
    #[serde(default)]
    selection: Option<RawSelection>,
    #[serde(default)]
    payload: Option<RawPayload>,
}

#[derive(Deserialize)]
struct AgentContext {
    #[serde(default, deserialize_with = "text_or_empty")]
    session_id: CompactString,
}

#[derive(Deserialize)]
struct WithId {
    #[serde(default, deserialize_with = "text_or_empty")]
    request_id: CompactString,
}

#[derive(Deserialize)]
struct RawSelection {
    #[serde(default, deserialize_with = "text_or_empty")]
    request_id: CompactString,
    #[serde(default, deserialize_with = "text_or_empty")]
    worker_type: CompactString,
    #[serde(default)]
    pinned: bool,
    #[serde(default)]
    candidate_count: u64,
    #[serde(default)]
    candidates: Vec<(u64, u32, f64)>,
}

#[derive(Deserialize)]
struct RawPayload {
    #[serde(default, deserialize_with = "text_or_empty")]
    request_id: CompactString,
    #[serde(default)]
    payload_complete: Option<bool>,
    #[serde(default, deserialize_with = "text_or_empty")]
    payload_drop_reason: CompactString,
}

fn text_or_empty<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<CompactString, D::Error> {
    some(deserializer).map(Option::unwrap_or_default)
}

fn some<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Option<CompactString>, D::Error> {
    let read: Option<std::borrow::Cow<'de, str>> = Option::deserialize(deserializer)?;
    Ok(read.map(|read| CompactString::from(text::scrub(read.as_bytes()))))
}

impl Record {
    /// Reads one record: bare, or wrapped as `{"timestamp": …, "event": RECORD}` as Dynamo's file sink writes it.
    ///
    /// # Errors
    /// A sentence saying what was expected and what came, for the report of bad input.
    pub fn from_json(json: &[u8]) -> Result<Self, String> {
        let json = text::scrub(json);
        let read = |text: &str| -> Result<Self, String> {
            let raw: Raw<'_> = serde_json::from_str(text).map_err(|error| format!("not a trace record: {error}"))?;
            Self::from_raw(raw, text)
        };
        let outer: Raw<'_> = serde_json::from_str(&json).map_err(|error| format!("not a trace record: {error}"))?;
        match outer.event {
            // A record may have a field of that name, too.
            Some(event) if outer.event_type.is_empty() => read(event.get()),
            _ => Self::from_raw(outer, &json),
        }
    }

    fn from_raw(raw: Raw<'_>, text: &str) -> Result<Self, String> {
        if raw.event_type.is_empty() {
            return Err("not a trace record: expected a field \"event_type\", found none".into());
        }
        let mut request_id = CompactString::default();
        let body = match raw.event_type.as_str() {
            "request_end" => {
                let request = raw.request.ok_or("request_end without a \"request\" object")?.get();
                let id: WithId = serde_json::from_str(request).map_err(|error| format!("request_end: {error}"))?;
                request_id = id.request_id;
                RecordBody::End(serde_json::from_str(request).map_err(|error| format!("request_end: {error}"))?)
            }
            "router_selection" => {
                let selection = raw.selection.ok_or("router_selection without a \"selection\" object")?;
                request_id = selection.request_id;
                RecordBody::Selection(SelectionRecord {
                    pool: Phase::of(&selection.worker_type),
                    pinned: selection.pinned,
                    candidate_count: selection.candidate_count,
                    candidates: selection
                        .candidates
                        .into_iter()
                        .map(|(id, rank, cost)| (Worker { id, rank: Some(rank) }, cost))
                        .collect(),
                })
            }
            "request_payload" => {
                let payload = raw.payload.unwrap_or(RawPayload {
                    request_id: CompactString::default(),
                    payload_complete: Some(false),
                    payload_drop_reason: CompactString::default(),
                });
                request_id = payload.request_id;
                RecordBody::Payload(PayloadRecord {
                    complete: payload.payload_complete.unwrap_or(true),
                    drop_reason: payload.payload_drop_reason,
                    is_marker: false,
                })
            }
            "tool_start" | "tool_end" | "tool_error" => RecordBody::Tool,
            _ => {
                if let Some(id) = raw.request.and_then(|request| serde_json::from_str::<WithId>(request.get()).ok()) {
                    request_id = id.request_id;
                }
                RecordBody::Other
            }
        };
        Ok(Self {
            event_type: raw.event_type,
            time_ms: raw.event_time_unix_ms.unwrap_or(0),
            request_id,
            session_id: raw.agent_context.map(|context| context.session_id).unwrap_or_default(),
            body,
            raw: text::without_blanks(text).into(),
            hold: 0,
        })
    }

    /// A marker that stands for a payload which the producer dropped (`payload_complete=false` in an OTLP log without
    /// its payload; field case B45). `raw` is a JSON text of what did come.
    pub fn payload_marker(request_id: &str, time_ms: u64, drop_reason: &str, raw: Box<str>) -> Self {
        Self {
            event_type: "request_payload".into(),
            time_ms,
            request_id: request_id.into(),
            session_id: CompactString::default(),
            body: RecordBody::Payload(PayloadRecord {
                complete: false,
                drop_reason: drop_reason.into(),
                is_marker: true,
            }),
            raw,
            hold: 0,
        }
    }

    /// When it was written, nanoseconds since the epoch.
    pub fn written_ns(&self) -> u64 {
        self.time_ms.saturating_mul(1_000_000)
    }

    /// The bytes it takes in memory, for accounting.
    pub fn size(&self) -> usize {
        size_of::<Self>() + self.heap_size()
    }

    /// The bytes it takes in memory beside its own size.
    pub fn heap_size(&self) -> usize {
        let body = match &self.body {
            RecordBody::End(end) => {
                let hashes = |replay: &Replay| chunk_of::<u64>(replay.input_sequence_hashes.capacity());
                chunk_of::<RequestEnd>(1) + end.replay.as_ref().map_or(0, hashes)
            }
            RecordBody::Selection(selection) => chunk_of::<(Worker, f64)>(selection.candidates.capacity()),
            _ => 0,
        };
        let long = |text: &CompactString| if text.is_heap_allocated() { chunk(text.capacity()) } else { 0 };
        chunk(self.raw.len()) + body + long(&self.request_id) + long(&self.session_id)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wrapped_and_bare_records_read_alike() {
        let bare = r#"{"schema":"dynamo.request.trace.v1","event_type":"request_end","event_time_unix_ms":7,"agent_context":{"session_id":"s"},"request":{"request_id":"r","output_tokens":3,"replay":{"trace_block_size":16,"input_length":17,"input_sequence_hashes":[18446744073709551615,2]},"zzz":[1]}}"#;
        let wrapped = format!(r#"{{"timestamp":5,"event":{bare}}}"#);
        for text in [bare, &wrapped] {
            let record = Record::from_json(text.as_bytes()).unwrap();
            assert_eq!((&*record.request_id, &*record.session_id, record.time_ms, &*record.raw), ("r", "s", 7, bare));
            let RecordBody::End(end) = record.body else { panic!("{record:?}") };
            assert_eq!(end.output_tokens, Some(3));
            assert_eq!(end.replay.unwrap().input_sequence_hashes, [u64::MAX, 2]);
        }
    }

    #[test]
    fn unknown_types_are_kept_and_nonsense_is_named() {
        let record = Record::from_json(br#"{"event_type":"new_thing","request":{"request_id":"r"}}"#).unwrap();
        assert!(matches!(record.body, RecordBody::Other) && record.request_id == "r");
        assert!(Record::from_json(b"{\"a\":1}").unwrap_err().contains("event_type"));
        assert!(Record::from_json(b"[").is_err());
        assert!(Record::from_json(br#"{"event_type":"request_end"}"#).is_err());
    }

    #[test]
    fn a_selection_keeps_ids_above_2_to_53() {
        let record = Record::from_json(
            br#"{"event_type":"router_selection","selection":{"request_id":"r","worker_type":"decode","candidate_count":2,"candidates":[[14970196951857470268,0,10.09375]]}}"#,
        )
        .unwrap();
        let RecordBody::Selection(selection) = record.body else { panic!() };
        assert_eq!(selection.candidates, [(Worker { id: 14_970_196_951_857_470_268, rank: Some(0) }, 10.09375)]);
        assert_eq!(selection.pool, Phase::Decode);
    }
}
