//! A worker's spans of a leg: its ingress, admission, operation, engine and stream.

use crate::demo::ledger::Witness;
use crate::demo::sim::request::{Leg, Request};
use crate::lifecycle::stage::Phase;

use super::span::{Code, Draft, Frame, Kind, flag, number, telemetry, text};
use super::{Emitter, Who, detail};

const LOGGING: Code = Code { file: "runtime/src/logging.rs", module: "dynamo_runtime::logging", line: 778 };
const INGRESS: Code = Code {
    file: "runtime/src/pipeline/network/ingress/push_handler.rs",
    module: "dynamo_runtime::pipeline::network::ingress::push_handler",
    line: 839,
};
const UPSTREAM: Code = Code {
    file: "runtime/src/pipeline/network/tcp/client.rs",
    module: "dynamo_runtime::pipeline::network::tcp::client",
    line: 37,
};
const ADAPTER: Code =
    Code { file: "backend-common/src/adapter.rs", module: "dynamo_backend_common::adapter", line: 244 };

/// How a worker's work on a leg ended.
#[derive(Clone, Copy, Debug)]
pub struct WorkerEnd {
    /// When the worker was done.
    pub at_ns: u64,
    /// Tokens it generated.
    pub tokens: u64,
    /// Whether, and when, it was told to stop.
    pub leaving: Leaving,
}

/// Whether a worker finished or was told to stop.
#[derive(Clone, Copy, Debug)]
pub enum Leaving {
    /// It finished.
    Finished,
    /// It was cancelled from upstream at this time.
    Cancelled(u64),
}

/// The words of a phase on the worker's side: role, operation, stream, component and `disagg_role`.
fn words(phase: Phase) -> (&'static str, &'static str, &'static str, &'static str, &'static str) {
    match phase {
        Phase::Prefill => ("prefill", "worker.operation.prefill", "response.streaming.prefill", "prefill", "prefill"),
        Phase::Decode => ("decode", "worker.operation.decode", "response.streaming.decode", "backend", "decode"),
        _ => ("worker", "worker.operation", "response.streaming.worker", "backend", "agg"),
    }
}

impl Emitter {
    /// A worker let a leg in, or turned its payload away.
    pub fn admission(&mut self, request: &mut Request, leg: &Leg, result: &'static str) {
        let Some(worker) = leg.worker() else { return };
        let transport = "tcp";
        let (role, ..) = words(leg.phase);
        let id = self.chance.span_id();
        let thread = self.thread(leg.process);
        let frame = Frame {
            name: "worker.admission",
            trace: &request.ident.trace,
            id,
            parent: Some(leg.payload),
            time: leg.admission_ns,
        };
        let who = Who { operation: &leg.worker_operation_id, role, component: "worker" };
        let draft = Draft::new(frame, Kind::Internal, telemetry(204), "dynamo.request_lifecycle", thread)
            .with(self.common(leg.process, &request.ident, who))
            .with(detail(leg.attempt, "admission.v1"))
            .with([
                text("dynamo.worker.admission.transport", transport),
                number("dynamo.worker.admission.payload.bytes", leg.payload_bytes),
                text("dynamo.worker.admission.result", result),
            ]);
        let witness = Witness::Admission { worker: worker.id, result, transport, payload_bytes: leg.payload_bytes };
        self.worker_span(request, leg, draft, 0, witness);
    }

    /// A worker turned a leg away at `end_ns`, before or after admission: only its ingress tells.
    pub fn turned_away(&mut self, request: &mut Request, leg: &Leg, end_ns: u64) {
        let draft = self.ingress(request, leg, end_ns);
        self.worker_span(request, leg, draft, 400_000, Witness::Other);
    }

    /// A worker's work on a leg ended.
    pub fn worker(&mut self, request: &mut Request, leg: &Leg, end: WorkerEnd) {
        let (role, operation, streaming, ..) = words(leg.phase);
        let begun_ns = leg.admission_ns.1 + 4_000;
        let engine_ns = begun_ns + 30_000;
        let engine_end_ns = engine_ns + self.chance.between(300_000, 560_000);
        let who = Who { operation: &leg.worker_operation_id, role, component: "worker" };
        let lifecycle =
            |emitter: &mut Self, name, id, parent, time, line| {
                let thread = emitter.thread(leg.process);
                let frame = Frame { name, trace: &request.ident.trace, id, parent: Some(parent), time };
                Draft::new(frame, Kind::Internal, telemetry(line), "dynamo.request_lifecycle", thread)
                    .with(emitter.common(leg.process, &request.ident, who))
            };
        let (id, from) = (self.chance.span_id(), (engine_end_ns + 40_000).min(end.at_ns - 5_000));
        let stream = lifecycle(self, streaming, id, leg.operation, (from, end.at_ns - 4_000), 213);
        let work = lifecycle(self, operation, leg.operation, leg.payload, (begun_ns, end.at_ns), 209);
        let engine = self.engine(request, leg, end, (engine_ns, engine_end_ns.min(end.at_ns - 6_000)));
        let ingress = self.ingress(request, leg, end.at_ns + 110_000);
        let ingress = match end.leaving {
            Leaving::Finished => ingress,
            Leaving::Cancelled(at_ns) => ingress.event(
                "request cancellation received",
                at_ns,
                "INFO",
                ("request_span", UPSTREAM),
                [
                    text("request_id", request.ident.request_id.as_str()),
                    text("cancellation.signal", "kill"),
                    text("cancellation.source", "upstream"),
                ],
            ),
        };
        self.worker_span(request, leg, engine, 40_000, Witness::Other);
        self.worker_span(request, leg, stream, 900_000, Witness::Other);
        self.worker_span(request, leg, work, 1_100_000, Witness::Other);
        let done = [text("request_id", request.ident.request_id.as_str())];
        let at = (INGRESS.module, Code { line: 141, ..INGRESS });
        let ingress = ingress.event("request completed", end.at_ns + 20_000, "INFO", at, done);
        self.worker_span(request, leg, ingress, 1_400_000, Witness::Other);
    }

    fn ingress(&mut self, request: &Request, leg: &Leg, end_ns: u64) -> Draft {
        let (.., component, _) = words(leg.phase);
        let thread = self.thread(leg.process);
        let frame = Frame {
            name: "handle_payload",
            trace: &request.ident.trace,
            id: leg.payload,
            parent: Some(leg.route),
            time: (leg.payload_ns, end_ns),
        };
        let id = request.ident.request_id.as_str();
        Draft::new(frame, Kind::Server, LOGGING, "request_span", thread)
            .with([
                text("trace_id", super::span::hex(&request.ident.trace)),
                text("parent_id", super::span::hex(&leg.route)),
                text("trace_flags", "01"),
            ])
            .with(request.ident.x_request_id.as_ref().map(|id| text("x_request_id", id.as_str())))
            .with([
                text("request_id", id),
                text("component", component),
                text("endpoint", "generate"),
                text("namespace", "dynamo"),
                number("instance_id", leg.worker().map_or(0, |worker| worker.id)),
            ])
            .event(
                "request received",
                leg.payload_ns + 38_000,
                "INFO",
                (INGRESS.module, INGRESS),
                [text("request_id", id)],
            )
    }

    fn engine(&mut self, request: &Request, leg: &Leg, end: WorkerEnd, time: (u64, u64)) -> Draft {
        let (.., disagg_role) = words(leg.phase);
        let id = self.chance.span_id();
        let thread = self.thread(leg.process);
        let frame =
            Frame { name: "engine.generate", trace: &request.ident.trace, id, parent: Some(leg.operation), time };
        let carried = leg.replaces.map_or(0, |(_, tokens)| tokens);
        let mut draft = Draft::new(frame, Kind::Internal, ADAPTER, "request_span", thread).with([
            text("model", self.model.as_str()),
            number("input_tokens", request.plan.input + carried),
            text("disagg_role", disagg_role),
        ]);
        // A decode continues its prefill, a retry the attempt that was lost.
        let before = match leg.phase {
            Phase::Decode => request.prefill_route,
            Phase::Aggregated => request.lost_route,
            _ => None,
        };
        if let Some(span) = before {
            draft = draft
                .with([
                    text("migration_trace_id", super::span::hex(&request.ident.trace)),
                    text("migration_span_id", super::span::hex(&span)),
                ])
                .link(span);
        }
        let first = match leg.phase {
            Phase::Prefill => Some(end.at_ns - 200_000),
            _ => leg.first_token_ns.filter(|first| *first <= end.at_ns),
        };
        let ttft = first.map(|first| format!("{:.2}", first.saturating_sub(time.0) as f64 / 1e6));
        draft = draft.with(ttft.map(|ttft| text("ttft_ms", ttft)));
        match end.leaving {
            Leaving::Cancelled(_) => draft
                .with([flag("cancelled", true), text("finish_reason", "Dropped")])
                .error("stream dropped before terminal"),
            Leaving::Finished => {
                let draft = draft.with([
                    number("output_tokens", end.tokens),
                    text("finish_reason", "Length"),
                    flag("cancelled", false),
                ]);
                if leg.phase == Phase::Prefill || end.tokens < 2 {
                    return draft;
                }
                let itl = leg.itl_ns as f64 / 1e6;
                let keys = [("avg_itl_ms", 1.0), ("itl_p50_ms", 1.0), ("itl_p99_ms", 1.0), ("itl_max_ms", 1.0)];
                draft.with(keys.map(|(key, of)| text(key, format!("{:.2}", itl * of))))
            }
        }
    }

    fn worker_span(&mut self, request: &mut Request, leg: &Leg, draft: Draft, busy: u64, witness: Witness) {
        let busy = self.chance.between(busy / 2, busy * 3 / 2);
        let number = request.ident.number;
        self.push_span(leg.process, &mut request.truth, number, draft.finish(busy), witness);
    }
}
