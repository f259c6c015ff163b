//! The router's spans of a leg: hashing, `router.queue`, `router.selection`, and the spans that hold them.

use serde_json::json;

use crate::demo::ledger::Witness;
use crate::demo::sim::load::BLOCK;
use crate::demo::sim::pool::{Candidate, Choice};
use crate::demo::sim::queue::Policy;
use crate::demo::sim::request::{Leg, Request};

use super::span::{Code, Draft, Frame, Kind, flag, number, real, telemetry, text};
use super::{Emitter, Who, detail};

const INPUT: &str = "dynamo_kv_router::services::selection::input";
const RUN: &str = "dynamo_kv_router::services::selection::core::run";
const KV: &str = "dynamo_llm::kv_router::routing_host::kv";

/// The rows of `top_k` at most.
const TOP_K: usize = 4;

impl Emitter {
    /// A leg left the router's queue at `end_ns`, one way or another.
    pub fn queue(
        &mut self,
        request: &mut Request,
        leg: &Leg,
        end_ns: u64,
        (outcome, reason): (&'static str, Option<&'static str>),
        depth_out: u64,
    ) {
        let class = request.plan.class;
        let deferred = leg.deferral.is_some();
        let mut draft = self
            .lifecycle(0, "router.queue", request, leg.schedule, (leg.queued_ns, end_ns), ("router", 211))
            .with(detail(leg.attempt, "router_queue.v1"))
            .with([
                text("dynamo.router.queue.class", class.word()),
                text("dynamo.router.queue.policy", Policy::of(class).word()),
                number("dynamo.router.queue.depth.in", leg.depth_in),
                number("dynamo.router.queue.depth.out", depth_out),
                flag("dynamo.router.queue.deferred", deferred),
                text("dynamo.router.queue.outcome", outcome),
            ]);
        draft = draft.with(reason.map(|reason| text("dynamo.router.queue.reason", reason)));
        let witness = Witness::Queue {
            pool: leg.role,
            class: class.word(),
            outcome,
            reason,
            deferred,
            depth: (leg.depth_in, depth_out),
            wait_ns: end_ns - leg.queued_ns,
        };
        request.truth.waits_ns.push(end_ns - leg.queued_ns);
        self.frontend_span(request, draft, 20_000, witness);
    }

    /// A rank was chosen between `time.0` and `time.1`.
    pub fn selection(&mut self, request: &mut Request, leg: &Leg, choice: &Choice, time: (u64, u64)) {
        let (chosen, best) = (choice.chosen(), choice.best());
        let part = |name: &str, n: u64| number(&format!("dynamo.router.candidate.filtered.{name}"), n);
        let filtered = choice.filtered;
        let mut draft = self
            .lifecycle(0, "router.selection", request, leg.schedule, time, ("router", 232))
            .with(detail(leg.attempt, "router_selection.v1"))
            .with([
                number("dynamo.router.candidate.count", choice.candidates.len()),
                number("dynamo.router.candidate.eligible.count", choice.eligible()),
                part("count", filtered.iter().sum()),
            ])
            .with(crate::demo::ledger::FILTERS.iter().zip(filtered).map(|(name, n)| part(name, n)))
            .with([
                text("dynamo.router.algorithm.id", "composed"),
                text("dynamo.router.algorithm.version", "v1"),
                text("dynamo.router.decision.schema", "selection.v1"),
                text("dynamo.router.selection.policy", "composed"),
                text("dynamo.router.pool.role", leg.role.word()),
                number("dynamo.router.selected.worker.id", chosen.worker.id),
                number("dynamo.router.selected.dp.rank", chosen.worker.rank.unwrap_or(0)),
                real("dynamo.router.selected.score", chosen.score),
                number("dynamo.router.best.worker.id", best.worker.id),
                number("dynamo.router.best.dp.rank", best.worker.rank.unwrap_or(0)),
                real("dynamo.router.best.score", best.score),
                real("dynamo.router.best.margin", choice.margin()),
            ]);
        if self.investigates() {
            draft = draft.with([
                text("dynamo.router.candidates.detail_schema", "selection.v1"),
                text("dynamo.router.candidates.top_k", top_k(choice)),
            ]);
        }
        let witness = Witness::Selection {
            pool: leg.role,
            candidates: choice.candidates.len() as u64,
            eligible: choice.eligible(),
            filtered,
            chosen: (chosen.worker, chosen.score),
            best: (best.worker, best.score),
            margin: choice.margin(),
        };
        self.frontend_span(request, draft, 8_000, witness);
        self.selection_record(request, leg, choice, time.1);
    }

    /// The router is done with a leg at `end_ns`: the spans around queue and selection end.
    pub fn routed(&mut self, request: &mut Request, leg: &Leg, end_ns: u64) {
        let queued = leg.queued_ns;
        let inputs = [
            ("kv_router.compute_block_hashes", 203, INPUT, (queued - 42_000, queued - 38_000)),
            ("kv_router.compute_seq_hashes", 206, INPUT, (queued - 36_000, queued - 34_000)),
            ("kv_router.find_matches", 738, RUN, (queued - 30_000, queued - 14_000)),
        ];
        for (name, line, module, time) in inputs {
            let id = self.chance.span_id();
            self.plain(request, (name, id, leg.select), time, (module, line), 2_500);
        }
        let schedule = ("kv_router.schedule", leg.schedule, leg.select);
        self.plain(request, schedule, (queued - 6_000, end_ns), (RUN, 453), 16_000);
        let select = ("kv_router.select_worker", leg.select, request.ident.root);
        self.plain(request, select, (queued - 70_000, end_ns + 14_000), (KV, 53), 80_000);
    }

    fn plain(
        &mut self,
        request: &mut Request,
        (name, id, parent): (&'static str, [u8; 8], [u8; 8]),
        time: (u64, u64),
        (module, line): (&'static str, i64),
        busy: u64,
    ) {
        let thread = self.thread(0);
        let frame = Frame { name, trace: &request.ident.trace, id, parent: Some(parent), time };
        let at = Code { file: file_of(module), module, line };
        let draft = Draft::new(frame, Kind::Internal, at, module, thread);
        self.frontend_span(request, draft, busy, Witness::Other);
    }

    /// A lifecycle span of the frontend, with its common attributes and a new id.
    pub(super) fn lifecycle(
        &mut self,
        process: usize,
        name: &'static str,
        request: &Request,
        parent: [u8; 8],
        time: (u64, u64),
        (component, line): (&str, i64),
    ) -> Draft {
        let id = self.chance.span_id();
        let thread = self.thread(process);
        let frame = Frame { name, trace: &request.ident.trace, id, parent: Some(parent), time };
        let who = Who { operation: &request.ident.operation_id, role: "frontend", component };
        Draft::new(frame, Kind::Internal, telemetry(line), "dynamo.request_lifecycle", thread).with(self.common(
            process,
            &request.ident,
            who,
        ))
    }

    /// Keeps a frontend span; `busy` is about how long it was busy.
    pub(super) fn frontend_span(&mut self, request: &mut Request, draft: Draft, busy: u64, witness: Witness) {
        let busy = self.chance.between(busy / 2, busy * 3 / 2);
        let number = request.ident.number;
        self.push_span(0, &mut request.truth, number, draft.finish(busy), witness);
    }
}

fn file_of(module: &str) -> &'static str {
    match module {
        INPUT => "kv-router/src/services/selection/input.rs",
        RUN => "kv-router/src/services/selection/core/run.rs",
        _ => "llm/src/kv_router/routing_host/kv.rs",
    }
}

/// At most four rows, ascending, the chosen one always among them.
fn top_k(choice: &Choice) -> String {
    let mut shown: Vec<usize> = (0..choice.candidates.len().min(TOP_K)).collect();
    if choice.chosen >= TOP_K {
        shown[TOP_K - 1] = choice.chosen;
    }
    let rows: Vec<_> = shown.into_iter().map(|at| row(&choice.candidates[at], at == choice.chosen)).collect();
    json!(rows).to_string()
}

fn row(candidate: &Candidate, selected: bool) -> serde_json::Value {
    json!({
        "active_prefill_tokens": candidate.prefill_tokens,
        "active_requests": candidate.active,
        "cached_tokens": candidate.overlap * BLOCK,
        "decode_cost_blocks": candidate.decode_blocks,
        "device_overlap_blocks": candidate.overlap as f64,
        "disk_overlap_blocks": 0.0,
        "dp_rank": candidate.worker.rank.unwrap_or(0),
        "host_overlap_blocks": 0.0,
        "score": candidate.score,
        "selected": selected,
        "worker_id": candidate.worker.id,
    })
}
