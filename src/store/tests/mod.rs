//! The store under any order of arrival, repetition, eviction: the same trees, nothing lost uncounted, every byte back.

mod bounds;
mod chaos;
mod order;
mod requests;

use super::{Limits, Standing, Store};
use crate::lifecycle::batch::{Batch, ResourceIn, ScopeIn, Sign, SignKind, SpanIn};
use crate::lifecycle::facts::{Facts, Marks, State};
use crate::lifecycle::ids::{SpanId, TraceId};
use crate::lifecycle::packed::{self, Value};
use crate::lifecycle::record::Record;
use crate::lifecycle::request::RequestKey;
use crate::lifecycle::stage::{Outcome, Phase};

/// A span to be sent.
#[derive(Clone, Debug)]
struct Spec {
    trace: u16,
    id: u64,
    parent: u64,
    name: &'static str,
    kind: i32,
    start_ms: u64,
    end_ms: u64,
    service: &'static str,
    attrs: Vec<(&'static str, String)>,
}

const EPOCH_MS: u64 = 1_796_003_500_000;

fn span(trace: u16, id: u64, parent: u64, name: &'static str, start_ms: u64, end_ms: u64) -> Spec {
    Spec { trace, id, parent, name, kind: 1, start_ms, end_ms, service: "dynamo-frontend", attrs: Vec::new() }
}

impl Spec {
    fn with(mut self, key: &'static str, value: impl ToString) -> Self {
        self.attrs.push((key, value.to_string()));
        self
    }

    fn of(self, service: &'static str) -> Self {
        Self { service, ..self }
    }
}

fn trace_id(trace: u16) -> TraceId {
    TraceId(std::array::from_fn(|at| trace.to_be_bytes()[1 - at % 2]))
}

fn send(store: &mut Store, specs: &[Spec], now_ns: u64) {
    let packed: Vec<Vec<Vec<u8>>> = specs
        .iter()
        .map(|spec| spec.attrs.iter().map(|(key, value)| packed::pack(key, Value::Str(value))).collect())
        .collect();
    let services: Vec<Vec<u8>> =
        specs.iter().map(|spec| packed::pack("service.name", Value::Str(spec.service))).collect();
    let mut batch = Batch { scopes: vec![ScopeIn::default()], ..Batch::default() };
    for ((spec, attrs), service) in specs.iter().zip(&packed).zip(&services) {
        let at = batch.attrs.len() as u32;
        batch.attrs.push(service);
        batch.resources.push(ResourceIn { attrs: at..at + 1, ..ResourceIn::default() });
        let start = batch.attrs.len() as u32;
        batch.attrs.extend(attrs.iter().map(Vec::as_slice));
        batch.spans.push(SpanIn {
            trace: trace_id(spec.trace),
            id: SpanId(spec.id.to_be_bytes()),
            parent: (spec.parent > 0).then(|| SpanId(spec.parent.to_be_bytes())),
            name: spec.name.as_bytes(),
            kind: spec.kind,
            start_ns: (EPOCH_MS + spec.start_ms) * 1_000_000,
            end_ns: (EPOCH_MS + spec.end_ms) * 1_000_000,
            attrs: start..batch.attrs.len() as u32,
            events: 0..0,
            links: 0..0,
            resource: batch.resources.len() as u32 - 1,
            scope: 0,
            status_code: 0,
            status_message: b"",
            trace_state: b"",
            flags: 257,
            dropped: [0; 3],
        });
    }
    store.ingest(&batch, now_ns);
}

fn record(store: &mut Store, json: &str) {
    let batch = Batch { records: vec![Record::from_json(json.as_bytes()).unwrap()], ..Batch::default() };
    store.ingest(&batch, 1);
}

fn sign(store: &mut Store, trace: u16, request: &str, kind: SignKind) {
    let sign = Sign {
        trace: Some(trace_id(trace)),
        request_id: request.into(),
        time_ns: EPOCH_MS * 1_000_000,
        model: "m".into(),
        endpoint: "chat_completions".into(),
        streaming: Some(true),
        kind,
    };
    store.ingest(&Batch { signs: vec![sign], ..Batch::default() }, 1);
}

fn store() -> Store {
    Store::new(Limits::default())
}

/// An aggregated request of the base layout.
fn base_request(trace: u16, request: &'static str) -> Vec<Spec> {
    let id = u64::from(trace) << 32;
    vec![
        span(trace, id + 1, 0, "http-request", 0, 99).with("request_id", request).with("ttft_ms", "21.50"),
        span(trace, id + 2, id + 1, "request.lifecycle", 0, 100)
            .with("dynamo.request.id", request)
            .with("dynamo.request.terminal.outcome", "success"),
        span(trace, id + 3, id + 2, "request.preprocessing", 0, 1).with("dynamo.request.id", request),
        span(trace, id + 4, id + 2, "kv_router.select_worker", 1, 9),
        span(trace, id + 5, id + 4, "kv_router.schedule", 1, 8),
        span(trace, id + 6, id + 2, "kv_router.route_request", 9, 98)
            .with("request_id", request)
            .with("worker_id", "10075825329253151357")
            .with("dp_rank", 0)
            .with("phase", "Aggregated")
            .with("request.attempt", 0)
            .with("request.outcome", "success"),
        span(trace, id + 7, id + 6, "handle_payload", 10, 97).with("request_id", request).of("dynamo-worker"),
    ]
}

fn all(store: &Store) -> Vec<(RequestKey, &Facts)> {
    store.requests().collect()
}
