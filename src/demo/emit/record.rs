//! The frontend's logs: trace records as OTLP (spec request-trace) and the application's own `request received` and
//! `request completed`.

use opentelemetry_proto::tonic::common::v1::{AnyValue, KeyValue, any_value::Value};
use opentelemetry_proto::tonic::logs::v1::LogRecord;
use serde_json::{Map, json};

use crate::demo::ledger::Witness;
use crate::demo::sim::load::BLOCK;
use crate::demo::sim::pool::Choice;
use crate::demo::sim::request::{Leg, Request};
use crate::lifecycle::stage::Outcome;

use super::Emitter;
use super::frontend::{COMPLETED_LINE, Ending, METRICS};
use super::span::{flag, number, text};

const SCHEMA: &str = "dynamo.request.trace.v1";

/// The payload of a `request_end` record.
pub(super) fn payload<'a>(log: &'a mut LogRecord, witness: &Witness) -> Option<&'a mut String> {
    if !matches!(witness, Witness::RequestEnd { .. }) {
        return None;
    }
    let attribute = log.attributes.iter_mut().find(|attribute| attribute.key == "payload")?;
    match attribute.value.as_mut()?.value.as_mut()? {
        Value::StringValue(payload) => Some(payload),
        _ => None,
    }
}

impl Request {
    /// Milliseconds between two tokens on average, of an answer that ended at `end_ns`.
    pub(super) fn itl_ms(&self, end_ns: u64) -> Option<f64> {
        let (first, tokens) = (self.first_token_ns?, self.truth.output_tokens);
        (tokens > 1).then(|| end_ns.saturating_sub(first) as f64 / 1e6 / (tokens - 1) as f64)
    }
}

impl Emitter {
    /// The frontend logs that a request arrived.
    pub fn received(&mut self, request: &Request) {
        let at_ns = request.root_ns + 115_000;
        let asked = self.asked(request);
        self.application(request, "request received", at_ns, METRICS.line, asked, Witness::Received);
    }

    /// The frontend logs that a request ended, and writes its record when there is one.
    pub fn completed(&mut self, request: &Request, ending: Ending) {
        if let (Some(told), Some((status, _))) = (self.told(request, ending), ending.told) {
            let witness = Witness::Completed(status);
            self.application(request, "request completed", ending.at_ns + 2_000, COMPLETED_LINE, told, witness);
        }
    }

    /// What `request received` says.
    pub(super) fn asked(&self, request: &Request) -> Vec<KeyValue> {
        vec![
            text("request_id", request.ident.request_id.as_str()),
            text("model", self.model.as_str()),
            text("endpoint", "chat_completions"),
            text("request_type", if request.plan.streaming { "stream" } else { "unary" }),
        ]
    }

    /// What `request completed` says.
    pub(super) fn told(&self, request: &Request, ending: Ending) -> Option<Vec<KeyValue>> {
        let (status, error) = ending.told?;
        let mut told = self.asked(request);
        told.push(text("status", status));
        if let Some((kind, detail)) = error {
            told.push(text("error_type", kind));
            told.push(text("error_detail", detail));
        }
        told.push(number("elapsed_ms", (ending.at_ns - request.root_ns) / 1_000_000));
        Some(told)
    }

    fn application(
        &mut self,
        request: &Request,
        body: &str,
        at_ns: u64,
        line: i64,
        attributes: Vec<KeyValue>,
        witness: Witness,
    ) {
        let log = LogRecord {
            observed_time_unix_nano: at_ns,
            severity_number: 9,
            severity_text: "INFO".to_owned(),
            body: Some(AnyValue { value: Some(Value::StringValue(body.to_owned())) }),
            attributes,
            flags: 1,
            trace_id: request.ident.trace.to_vec(),
            span_id: request.ident.root.to_vec(),
            event_name: format!("event /opt/dynamo/lib/{}:{line}", METRICS.file),
            ..LogRecord::default()
        };
        self.push_log(0, (request.ident.number, &request.truth), METRICS.module, log, witness);
    }

    /// A `router_selection` record.
    pub(super) fn selection_record(&mut self, request: &Request, leg: &Leg, choice: &Choice, at_ns: u64) {
        let candidates: Vec<_> = choice
            .candidates
            .iter()
            .map(|one| json!([one.worker.id, one.worker.rank.unwrap_or(0), one.score]))
            .collect();
        let payload = json!({
            "schema": SCHEMA,
            "event_type": "router_selection",
            "event_time_unix_ms": at_ns / 1_000_000,
            "event_source": "dynamo",
            "selection": {
                "request_id": request.ident.request_id,
                "worker_type": leg.role.word(),
                "pinned": false,
                "candidate_count": choice.candidates.len(),
                "candidates": candidates,
            },
        });
        self.record(request, "router_selection", at_ns, payload.to_string(), Witness::SelectionRecord);
    }

    /// A `request_end` record. Before the prompt was routed there is none.
    pub fn request_end(&mut self, request: &Request, ending: Ending) {
        let ms = |ns: u64| ns as f64 / 1e6;
        let (input, output) = (request.plan.input, request.truth.output_tokens);
        let received_ms = request.received_ns / 1_000_000;
        let mut end = Map::new();
        let mut put = |key: &str, value: serde_json::Value| {
            end.insert(key.to_owned(), value);
        };
        put("request_id", json!(request.ident.request_id));
        if let Some(id) = &request.ident.x_request_id {
            put("x_request_id", json!(id));
            put("model", json!(self.model));
        }
        let mut cached = 0;
        if let Some(dispatched) = request.first_dispatch_ns {
            cached = request.truth.cached_tokens;
            put("input_tokens", json!(input));
            put("cached_tokens", json!(cached));
            put("prefill_wait_time_ms", json!(ms(dispatched - request.received_ns)));
            put("kv_hit_rate", json!(cached as f64 / input as f64));
            put("queue_depth", json!(request.queue_depth));
            let mut worker = Map::new();
            for (name, served) in [("prefill", request.served.0), ("decode", request.served.1)] {
                if let Some(served) = served {
                    worker.insert(format!("{name}_worker_id"), json!(served.id));
                    worker.insert(format!("{name}_dp_rank"), json!(served.rank.unwrap_or(0)));
                }
            }
            put("worker", worker.into());
            if let Some(first) = request.first_token_ns {
                put("prefill_time_ms", json!(ms(first - dispatched)));
                put("ttft_ms", json!(ms(first - request.received_ns)));
            }
        }
        put("output_tokens", json!(output));
        put("request_received_ms", json!(received_ms));
        put("total_time_ms", json!(ms(ending.at_ns - request.received_ns)));
        if let Some(itl) = request.itl_ms(ending.at_ns) {
            put("avg_itl_ms", json!(itl));
        }
        if let Some(transfer) = request.transfer_ns {
            put("kv_transfer_estimated_latency_ms", json!(ms(transfer)));
        }
        put(
            "replay",
            json!({
                "trace_block_size": BLOCK,
                "input_length": input,
                "input_sequence_hashes": request.plan.blocks,
            }),
        );
        if request.ident.session_id.is_some() && ending.outcome == Outcome::Success {
            put(
                "finish_reason_metadata",
                json!({
                    "finish_reason": "length",
                    "backend_finish_reason": "length",
                    "choices": [{ "choice_index": 0, "finish_reason": "length", "backend_finish_reason": "length" }],
                }),
            );
        }
        let mut payload = Map::new();
        payload.insert("schema".to_owned(), json!(SCHEMA));
        payload.insert("event_type".to_owned(), json!("request_end"));
        payload.insert("event_time_unix_ms".to_owned(), json!(ending.at_ns / 1_000_000));
        if let Some(session) = &request.ident.session_id {
            payload.insert("event_source".to_owned(), json!("dynamo"));
            payload
                .insert("agent_context".to_owned(), json!({ "session_id": session, "input_trigger": "user_message" }));
        }
        payload.insert("request".to_owned(), end.into());
        let payload = serde_json::Value::from(payload).to_string();
        let input = if request.first_dispatch_ns.is_some() { input } else { 0 };
        let witness = Witness::RequestEnd { tokens: (input, output, cached) };
        self.record(request, "request_end", ending.at_ns, payload, witness);
    }

    fn record(&mut self, request: &Request, kind: &str, at_ns: u64, payload: String, witness: Witness) {
        let log = LogRecord {
            time_unix_nano: at_ns / 1_000_000 * 1_000_000,
            observed_time_unix_nano: at_ns,
            severity_number: 9,
            severity_text: "INFO".to_owned(),
            body: Some(AnyValue { value: Some(Value::StringValue(kind.to_owned())) }),
            attributes: vec![
                text("schema", SCHEMA),
                text("event_type", kind),
                text("rid", request.ident.request_id.as_str()),
                flag("payload_complete", true),
                text("payload", payload),
            ],
            ..LogRecord::default()
        };
        self.push_log(0, (request.ident.number, &request.truth), "dynamo.request_trace", log, witness);
    }
}
