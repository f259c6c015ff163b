//! The store under any order of arrival, repetition, eviction: the same trees, nothing lost uncounted, every byte back.

mod asked;
mod bounds;
mod chaos;
mod held;
mod lens;
mod order;
mod requests;

use super::{Limits, Standing, Store};
use crate::lifecycle::batch::{Batch, Sign, SignKind};
use crate::lifecycle::facts::{Facts, Marks, State};
use crate::lifecycle::ids::{SpanId, TraceId};
use crate::lifecycle::made::{Made, with_batch};
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

    fn made(&self) -> Made<'_> {
        Made {
            trace: trace_id(self.trace),
            id: self.id,
            parent: self.parent,
            name: self.name,
            kind: self.kind,
            start_ns: (EPOCH_MS + self.start_ms) * 1_000_000,
            end_ns: (EPOCH_MS + self.end_ms) * 1_000_000,
            dropped: 0,
            resource: vec![("service.name", self.service)],
            attrs: self.attrs.iter().map(|(key, value)| (*key, value.as_str())).collect(),
        }
    }
}

fn trace_id(trace: u16) -> TraceId {
    TraceId(std::array::from_fn(|at| trace.to_be_bytes()[1 - at % 2]))
}

fn send(store: &mut Store, specs: &[Spec], now_ns: u64) {
    let made: Vec<Made<'_>> = specs.iter().map(Spec::made).collect();
    with_batch(&made, |batch| store.ingest(&batch, now_ns));
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
