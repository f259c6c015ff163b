//! Small hand-made requests for the unit tests of the checks, read through the store as real ones are.

use std::fmt::Write;

use serde_json::{Value as Json, json};

use super::{Answer, Answers, CheckId, Level, Moment, Nothing, Surroundings, Why};
use crate::lifecycle::batch::Batch;
use crate::lifecycle::ids::TraceId;
use crate::lifecycle::made::{Made, with_batch};
use crate::lifecycle::record::Record;
use crate::lifecycle::request::RequestView;
use crate::store::{Limits, Store};

/// The request of every scene.
pub const REQUEST: &str = "59abfef0-c4f4-4909-9c9c-56718d83180a";
/// The worker of the aggregated scene, and the decode worker of the disaggregated one.
pub const WORKER: u64 = 10_075_825_329_253_151_357;
/// The prefill worker of the disaggregated scene.
pub const PREFILL: u64 = 9_478_560_655_699_257_694;
const EPOCH_US: u64 = 1_796_003_545_000_000;

/// A span to be sent; times in microseconds after the request's start.
#[derive(Clone, Debug)]
pub struct Spec {
    name: String,
    id: u64,
    parent: u64,
    trace: u8,
    start_us: i64,
    end_us: i64,
    service: &'static str,
    attrs: Vec<(String, String)>,
    dropped: u32,
}

/// A request as it would arrive.
#[derive(Clone, Debug, Default)]
pub struct Scene {
    spans: Vec<Spec>,
    records: Vec<Json>,
    host: Option<&'static str>,
}

/// Who writes a span of the lifecycle schema.
struct Writer {
    component: &'static str,
    role: &'static str,
    operation: &'static str,
    epoch: &'static str,
}

const FRONTEND: Writer = Writer { component: "frontend", role: "frontend", operation: "op-f", epoch: "1:f" };
const ROUTER: Writer = Writer { component: "router", ..FRONTEND };

fn worker(role: &'static str) -> Writer {
    let (operation, epoch) = if role == "prefill" { ("op-p", "2:p") } else { ("op-d", "3:d") };
    Writer { component: "worker", role, operation, epoch }
}

impl Scene {
    /// One leg on one worker, streamed, investigation mode, evidence layout, with its records.
    pub fn aggregated() -> Self {
        Self::frontend().leg("aggregated", WORKER, 100, 1_000).end(WORKER, WORKER)
    }

    /// Prefill, then decode.
    pub fn disaggregated() -> Self {
        Self::frontend().leg("prefill", PREFILL, 100, 1_000).leg("decode", WORKER, 200, 3_000).end(PREFILL, WORKER)
    }

    /// The aggregated scene as today's base layout tells it.
    pub fn base() -> Self {
        let mut scene = Self::aggregated().drop("router.queue").drop("router.selection").lift("request.dispatch");
        for span in &mut scene.spans {
            let plain = !["request.lifecycle", "http-request", "kv_router.route_request"].contains(&&*span.name);
            span.attrs.retain(|(key, _)| {
                let detail =
                    ["dispatch.", "stage.", "stream.", "worker.admission.", "request.attempt", "detail_schema"];
                !(plain && detail.iter().any(|part| key.strip_prefix("dynamo.").is_some_and(|key| key.contains(part))))
            });
        }
        scene
    }

    /// The aggregated scene as drafts told it.
    pub fn draft() -> Self {
        Self::aggregated().drafted()
    }

    /// The disaggregated scene as drafts told it.
    pub fn draft_disaggregated() -> Self {
        Self::disaggregated().drafted()
    }

    /// The same as drafts would have told it (spec lifecycle-spans §1, §3).
    pub fn drafted(mut self) -> Self {
        for at in 1..=self.count("request.dispatch") {
            let [queue, selection, dispatch] =
                ["router.queue", "router.selection", "request.dispatch"].map(|name| format!("{name}#{at}"));
            self = self
                .set(&queue, "dynamo.router.queue.outcome", "admitted")
                .set(&queue, "dynamo.router.queue.deferred", true)
                .without(&dispatch, "dynamo.dispatch.phase")
                .set(&selection, "dynamo.router.candidate.eligible.count", 2)
                .set(&selection, "dynamo.router.candidate.filtered.count", 1)
                .without(&selection, "dynamo.router.candidate.filtered.policy")
                .set(&selection, "dynamo.router.selection.policy", "kv_aware")
                .set(&selection, "dynamo.router.candidates.detail_schema", "kv_aware.v1")
                .set(&selection, "dynamo.router.candidates.top_k", DRAFT_ROWS);
        }
        self
    }

    /// Every router span is a trace of its own, with an operation of its own, as some drafts wrote them.
    pub fn router_apart(mut self) -> Self {
        let parts = self.spans.iter_mut().filter(|span| ["router.queue", "router.selection"].contains(&&*span.name));
        for (span, trace) in parts.zip(20..) {
            (span.trace, span.parent) = (trace, 0);
            span.attrs.retain(|(key, _)| key != "dynamo.operation.id");
            span.attrs.push(("dynamo.operation.id".to_owned(), format!("op-{trace}")));
        }
        self
    }

    /// Only dispatches and selections tell of legs: no route span says a phase, no worker exports spans.
    pub fn without_words(mut self) -> Self {
        for span in &mut self.spans {
            span.attrs.retain(|(key, _)| key != "phase");
        }
        self.spans.retain(|span| !matches!(span.service, "dynamo-prefill" | "dynamo-worker"));
        self
    }

    /// The n-th dispatch and its route span name no worker.
    pub fn unaddressed(self, nth: usize) -> Self {
        let (dispatch, route) = (format!("request.dispatch#{nth}"), format!("kv_router.route_request#{nth}"));
        self.without(&dispatch, "dynamo.dispatch.destination.worker.id").without(&route, "worker_id")
    }

    fn count(&self, name: &str) -> usize {
        self.spans.iter().filter(|span| span.name == name).count()
    }

    /// A request refused in the queue.
    pub fn rejected() -> Self {
        let scene = Self::aggregated().drop("router.selection").drop("request.dispatch").drop("response.streaming");
        let mut scene = scene
            .set("router.queue", "dynamo.router.queue.outcome", "rejected")
            .set("router.queue", "dynamo.router.queue.reason", "request_limit")
            .ended("rejected");
        scene.records.clear();
        scene
    }

    /// A second attempt after the first worker was lost; the record still names the first.
    pub fn migrated() -> Self {
        let lost = Self::frontend().leg("aggregated", PREFILL, 100, 1_000).drop("handle_payload");
        lost.set("kv_router.route_request", "request.outcome", "worker_disconnected")
            .leg("aggregated", WORKER, 300, 5_000)
            .set("router.queue#2", "dynamo.request.attempt", 1)
            .set("router.selection#2", "dynamo.request.attempt", 1)
            .set("request.dispatch#2", "dynamo.request.attempt", 1)
            .set("worker.admission", "dynamo.request.attempt", 1)
            .set("kv_router.route_request#2", "request.attempt", 1)
            .set("kv_router.route_request#2", "migration.is_retry", true)
            .end(PREFILL, PREFILL)
    }

    fn frontend() -> Self {
        let mut scene = Self::default();
        scene.push("http-request", 1, 0, (0, 99_000), "dynamo-frontend", None);
        let scene = scene
            .set("http-request", "request_id", REQUEST)
            .set("http-request", "uri", "/v1/chat/completions")
            .set("http-request", "input_tokens", 33)
            .set("http-request", "output_tokens", 8)
            .set("http-request", "ttft_ms", "24.17");
        let scene = scene.lifecycle("request.lifecycle", 2, 1, (50, 98_900), &FRONTEND);
        let mut scene = scene
            .set("request.lifecycle", "dynamo.session.id", "fallback")
            .set("request.lifecycle", "dynamo.session.source", "request_id_fallback")
            .ended("success");
        let terminal = (EPOCH_US + 98_500) * 1_000;
        for (key, value) in [
            ("dynamo.session.id", REQUEST.to_owned()),
            ("dynamo.session.source", "request_id_fallback".to_owned()),
            ("dynamo.request.terminal.timestamp_unix_ns", terminal.to_string()),
        ] {
            scene.find("request.lifecycle").attrs.push((key.to_owned(), value));
        }
        scene
            .lifecycle("request.preprocessing", 3, 2, (200, 700), &FRONTEND)
            .set("request.preprocessing", "dynamo.stage.checkpoint", "ready")
            .set("request.preprocessing", "dynamo.stage.outcome", "success")
            .lifecycle("response.streaming", 4, 2, (24_400, 98_800), &FRONTEND)
            .set("response.streaming", "dynamo.stream.events", 10)
            .set("response.streaming", "dynamo.stage.outcome", "success")
    }

    /// Adds a leg: span ids from `id`, times from `at`.
    fn leg(mut self, phase: &'static str, to: u64, id: u64, at: i64) -> Self {
        let role = if phase == "aggregated" { "worker" } else { phase };
        let nth = |name: &str, scene: &Self| format!("{name}#{}", scene.count(name) + 1);
        self.push("kv_router.select_worker", id, 2, (at, at + 180), "dynamo-frontend", None);
        self.push("kv_router.schedule", id + 1, id, (at + 50, at + 170), "dynamo-frontend", None);
        let (queue, selection, dispatch) =
            (nth("router.queue", &self), nth("router.selection", &self), nth("request.dispatch", &self));
        let mut scene = self
            .lifecycle("router.queue", id + 2, id + 1, (at + 60, at + 100), &ROUTER)
            .lifecycle("router.selection", id + 3, id + 1, (at + 100, at + 160), &ROUTER)
            .lifecycle("request.dispatch", id + 4, 2, (at + 200, at + 1_500), &FRONTEND);
        for (key, value) in [
            ("detail_schema", "dynamo.lifecycle.detail_schema=router_queue.v1"),
            ("class", "dynamo.router.queue.class=default"),
            ("policy", "dynamo.router.queue.policy=fcfs"),
            ("in", "dynamo.router.queue.depth.in=0"),
            ("out", "dynamo.router.queue.depth.out=0"),
            ("deferred", "dynamo.router.queue.deferred=false"),
            ("outcome", "dynamo.router.queue.outcome=dequeued"),
            ("attempt", "dynamo.request.attempt=0"),
        ]
        .map(|(_, pair)| pair.split_once('=').unwrap())
        {
            scene = scene.set(&queue, key, value);
        }
        let pool = if phase == "prefill" { "prefill" } else { "decode" };
        for pair in [
            "dynamo.lifecycle.detail_schema=router_selection.v1",
            "dynamo.request.attempt=0",
            "dynamo.router.candidate.count=2",
            "dynamo.router.candidate.eligible.count=3",
            "dynamo.router.candidate.filtered.count=2",
            "dynamo.router.candidate.filtered.not_allowed=0",
            "dynamo.router.candidate.filtered.constraints=0",
            "dynamo.router.candidate.filtered.overloaded=1",
            "dynamo.router.candidate.filtered.unavailable=0",
            "dynamo.router.candidate.filtered.policy=1",
            "dynamo.router.algorithm.id=composed",
            "dynamo.router.algorithm.version=v1",
            "dynamo.router.decision.schema=selection.v1",
            "dynamo.router.selection.policy=composed",
            "dynamo.router.selected.dp.rank=0",
            "dynamo.router.selected.score=17.5",
            "dynamo.router.best.dp.rank=0",
            "dynamo.router.best.score=17.5",
            "dynamo.router.best.margin=4.5",
            "dynamo.router.candidates.detail_schema=selection.v1",
        ] {
            let (key, value) = pair.split_once('=').unwrap();
            scene = scene.set(&selection, key, value);
        }
        let rows = json!([
            {"worker_id": to, "dp_rank": 0, "selected": true, "score": 17.5},
            {"worker_id": to - 1, "dp_rank": 0, "selected": false, "score": 22.0},
        ]);
        let mut scene = scene
            .set(&selection, "dynamo.router.pool.role", pool)
            .set(&selection, "dynamo.router.selected.worker.id", to)
            .set(&selection, "dynamo.router.best.worker.id", to)
            .set(&selection, "dynamo.router.candidates.top_k", rows)
            .set(&dispatch, "dynamo.lifecycle.detail_schema", "dispatch.v1")
            .set(&dispatch, "dynamo.request.attempt", 0)
            .set(&dispatch, "dynamo.dispatch.route", "kv")
            .set(&dispatch, "dynamo.dispatch.phase", phase)
            .set(&dispatch, "dynamo.dispatch.destination.worker.id", to)
            .set(&dispatch, "dynamo.dispatch.destination.dp.rank", 0)
            .set(&dispatch, "dynamo.dispatch.result", "accepted");
        let route = nth("kv_router.route_request", &scene);
        let payload = nth("handle_payload", &scene);
        let admission = nth("worker.admission", &scene);
        let service = if phase == "prefill" { "dynamo-prefill" } else { "dynamo-worker" };
        let done = if phase == "prefill" { at + 1_900 } else { 98_000 };
        scene.push("kv_router.route_request", id + 5, id + 4, (at + 205, done), "dynamo-frontend", None);
        scene.push("handle_payload", id + 6, id + 5, (at + 300, done - 10), service, None);
        let suffix = if role == "worker" { String::new() } else { format!(".{role}") };
        scene
            .set(&route, "request_id", REQUEST)
            .set(&route, "worker_id", to)
            .set(&route, "dp_rank", 0)
            .set(&route, "phase", phase)
            .set(&route, "request.attempt", 0)
            .set(&route, "migration.is_retry", false)
            .set(&route, "request.outcome", "success")
            .set(&payload, "request_id", REQUEST)
            .set(&payload, "instance_id", to)
            .lifecycle("worker.admission", id + 7, id + 6, (at + 310, at + 400), &worker(role))
            .set(&admission, "dynamo.lifecycle.detail_schema", "admission.v1")
            .set(&admission, "dynamo.request.attempt", 0)
            .set(&admission, "dynamo.worker.admission.transport", "tcp")
            .set(&admission, "dynamo.worker.admission.payload.bytes", 2_447)
            .set(&admission, "dynamo.worker.admission.result", "accepted")
            .lifecycle(&format!("worker.operation{suffix}"), id + 8, id + 6, (at + 405, done - 20), &worker(role))
            .lifecycle(&format!("response.streaming.{role}"), id + 9, id + 8, (at + 500, done - 30), &worker(role))
    }

    /// Adds the `request_end` record.
    fn end(mut self, prefill: u64, decode: u64) -> Self {
        self.records.push(json!({
            "event_type": "request_end",
            "event_time_unix_ms": EPOCH_US / 1_000 + 99,
            "agent_context": {"session_id": "s"},
            "request": {
                "request_id": REQUEST,
                "input_tokens": 33, "output_tokens": 8, "cached_tokens": 16, "reasoning_tokens": 2,
                "request_received_ms": EPOCH_US / 1_000, "ttft_ms": 24.0, "total_time_ms": 98.5,
                "worker": {"prefill_worker_id": prefill, "prefill_dp_rank": 0,
                    "decode_worker_id": decode, "decode_dp_rank": 0},
                "replay": {"trace_block_size": 16, "input_length": 33, "input_sequence_hashes": [u64::MAX, 2, 3]},
                "finish_reason_metadata": {"finish_reason": "length"},
            },
        }));
        self
    }

    fn push(
        &mut self,
        name: &str,
        id: u64,
        parent: u64,
        (start_us, end_us): (i64, i64),
        service: &'static str,
        writer: Option<&Writer>,
    ) {
        let attrs = writer.map_or_else(Vec::new, |writer| {
            [
                ("dynamo.request.id", REQUEST),
                ("dynamo.operation.id", writer.operation),
                ("dynamo.operation.role", writer.role),
                ("dynamo.lifecycle.schema", "v1"),
                ("dynamo.lifecycle.mode", "investigation"),
                ("dynamo.component", writer.component),
                ("dynamo.process.epoch", writer.epoch),
                ("dynamo.lifecycle.identity.state", "complete"),
            ]
            .map(|(key, value)| (key.to_owned(), value.to_owned()))
            .to_vec()
        });
        let name = name.to_owned();
        self.spans.push(Spec { name, id, parent, trace: 1, start_us, end_us, service, attrs, dropped: 0 });
    }

    fn lifecycle(mut self, name: &str, id: u64, parent: u64, times: (i64, i64), writer: &Writer) -> Self {
        let service = match writer.role {
            "frontend" => "dynamo-frontend",
            "prefill" => "dynamo-prefill",
            _ => "dynamo-worker",
        };
        self.push(name, id, parent, times, service, Some(writer));
        self
    }

    /// The span `name`, or the n-th of that name as `name#n`.
    fn find(&mut self, name: &str) -> &mut Spec {
        let (plain, nth) = name.split_once('#').map_or((name, 1), |(name, nth)| (name, nth.parse().unwrap()));
        self.spans.iter_mut().filter(|span| span.name == plain).nth(nth - 1).unwrap_or_else(|| panic!("no {name}"))
    }

    /// Sets an attribute (the last one of that key).
    pub fn set(mut self, span: &str, key: &str, value: impl ToString) -> Self {
        let value = value.to_string();
        let attrs = &mut self.find(span).attrs;
        match attrs.iter_mut().rev().find(|(other, _)| other == key) {
            Some((_, known)) => *known = value,
            None => attrs.push((key.to_owned(), value)),
        }
        self
    }

    /// Sets an attribute on every lifecycle span.
    pub fn set_all(mut self, key: &str, value: &str) -> Self {
        for span in &mut self.spans {
            for (_, known) in span.attrs.iter_mut().filter(|(other, _)| other == key) {
                *known = value.to_owned();
            }
        }
        self
    }

    /// Takes an attribute away.
    pub fn without(mut self, span: &str, key: &str) -> Self {
        self.find(span).attrs.retain(|(other, _)| other != key);
        self
    }

    /// Every attribute there is, as its span (`name#n`), key and value.
    pub fn attributes(&self) -> Vec<(String, String, String)> {
        let mut all = Vec::new();
        for (span, (name, ..)) in self.spans.iter().zip(self.timed()) {
            let mut attrs: Vec<_> = span.attrs.iter().map(|(key, value)| (key.clone(), value.clone())).collect();
            attrs.sort_unstable();
            attrs.dedup_by(|one, other| one.0 == other.0);
            all.extend(attrs.into_iter().map(|(key, value)| (name.clone(), key, value)));
        }
        all
    }

    /// Every span with its times, microseconds.
    pub fn timed(&self) -> Vec<(String, i64, i64)> {
        let mut met: Vec<&str> = Vec::new();
        let timed = self.spans.iter().map(|span| {
            met.push(&span.name);
            let nth = met.iter().filter(|name| **name == span.name).count();
            (format!("{}#{nth}", span.name), span.start_us, span.end_us)
        });
        timed.collect()
    }

    /// The time that stands for none.
    pub const NO_TIME: i64 = -(EPOCH_US as i64);

    /// Takes these attributes away from every span.
    pub fn without_all(mut self, keys: &[&str]) -> Self {
        self.spans.iter_mut().for_each(|span| span.attrs.retain(|(key, _)| !keys.contains(&&**key)));
        self
    }

    /// Carries an attribute once more.
    pub fn repeat(mut self, span: &str, key: &str, value: &str) -> Self {
        self.find(span).attrs.push((key.to_owned(), value.to_owned()));
        self
    }

    /// Gives a span many more attributes.
    pub fn crowd(mut self, span: &str, count: usize) -> Self {
        let attrs = &mut self.find(span).attrs;
        attrs.extend((0..count).map(|at| (format!("extra.{at}"), "x".to_owned())));
        self
    }

    /// Attributes that the sender dropped.
    pub fn dropped(mut self, span: &str, count: u32) -> Self {
        self.find(span).dropped = count;
        self
    }

    /// A span and everything below it never came.
    pub fn drop(mut self, span: &str) -> Self {
        let mut gone = vec![self.find(span).id];
        while let Some(id) = gone.pop() {
            gone.extend(self.spans.iter().filter(|span| span.parent == id).map(|span| span.id));
            self.spans.retain(|span| span.id != id);
        }
        self
    }

    /// A span alone never came: what is below it names a parent that is missing.
    pub fn lose(mut self, span: &str) -> Self {
        let id = self.find(span).id;
        self.spans.retain(|span| span.id != id);
        self
    }

    /// A span goes, what is below it moves up.
    pub fn lift(mut self, span: &str) -> Self {
        let Spec { id, parent, .. } = *self.find(span);
        for below in self.spans.iter_mut().filter(|span| span.parent == id) {
            below.parent = parent;
        }
        self.spans.retain(|span| span.id != id);
        self
    }

    /// A span comes twice, with an id of its own.
    pub fn again(mut self, span: &str) -> Self {
        let mut copy = self.find(span).clone();
        copy.id += 5_000;
        self.spans.push(copy);
        self
    }

    /// Moves a span, microseconds.
    pub fn times(mut self, span: &str, start_us: i64, end_us: i64) -> Self {
        let span = self.find(span);
        (span.start_us, span.end_us) = (start_us, end_us);
        self
    }

    /// Hangs a span under another; 0 for none.
    pub fn under(mut self, span: &str, parent: &str) -> Self {
        let parent = if parent.is_empty() { 0 } else { self.find(parent).id };
        self.find(span).parent = parent;
        self
    }

    /// The client sent a `traceparent`, and exports nothing here.
    pub fn called_from_afar(mut self) -> Self {
        self.find("http-request").parent = 0xfa5;
        self
    }

    /// Moves a span into a trace of its own.
    pub fn alone(mut self, span: &str) -> Self {
        let span = self.find(span);
        (span.trace, span.parent) = (9, 0);
        self
    }

    /// The worker side's `request.dispatch` of the base layout.
    pub fn with_worker_dispatch(self) -> Self {
        self.lifecycle("request.dispatch", 900, 108, (1_405, 1_700), &worker("worker"))
    }

    /// A worker that encodes the prompt, before everything else; the frontend has no span of it.
    pub fn with_encoding(self) -> Self {
        let encode = worker("encode");
        self.lifecycle("worker.admission", 910, 0, (1_100, 1_110), &encode)
            .lifecycle("worker.operation.encode", 911, 0, (1_120, 1_200), &encode)
            .lifecycle("response.streaming.encode", 912, 911, (1_130, 1_190), &encode)
    }

    /// How the root ends.
    pub fn ended(self, outcome: &str) -> Self {
        self.set("request.lifecycle", "dynamo.request.terminal.outcome", outcome).set(
            "request.lifecycle",
            "dynamo.request.terminal.error",
            outcome != "success",
        )
    }

    /// All processes run on a host of this name.
    pub fn on_host(mut self, host: &'static str) -> Self {
        self.host = Some(host);
        self
    }

    /// All processes bear one service name.
    pub fn of_service(mut self, service: &'static str) -> Self {
        self.spans.iter_mut().for_each(|span| span.service = service);
        self
    }

    /// Changes the `request_end` record at a JSON pointer below `request`; null takes the field away.
    pub fn record(mut self, pointer: &str, value: Json) -> Self {
        let end = &mut self.records[0];
        let pointer = if pointer.starts_with("//") { pointer[1..].to_owned() } else { format!("/request{pointer}") };
        let (above, field) = pointer.rsplit_once('/').unwrap();
        let above = end.pointer_mut(above).unwrap().as_object_mut().unwrap();
        if value.is_null() {
            drop(above.remove(field))
        } else {
            drop(above.insert(field.to_owned(), value))
        }
        self
    }

    /// Changes the record so, as long as it can still be read.
    pub fn with_record(&self, pointer: &str, value: Json) -> Option<Self> {
        let changed = self.clone().record(pointer, value);
        Record::from_json(changed.records[0].to_string().as_bytes()).is_ok().then_some(changed)
    }

    /// The `request_end` record comes again, a little later.
    pub fn record_again(mut self) -> Self {
        let mut again = self.records[0].clone();
        again["event_time_unix_ms"] = json!(EPOCH_US / 1_000 + 100);
        self.records.push(again);
        self
    }

    /// No records.
    pub fn without_records(mut self) -> Self {
        self.records.clear();
        self
    }

    /// No spans.
    pub fn records_only(mut self) -> Self {
        self.spans.clear();
        self
    }

    /// The store that has it, and its view.
    pub fn with_view<T>(&self, look: impl FnOnce(&RequestView<'_>) -> T) -> T {
        self.with_one(look).expect("one request")
    }

    /// The view of it, as long as it is one request.
    fn with_one<T>(&self, look: impl FnOnce(&RequestView<'_>) -> T) -> Option<T> {
        let mut store = Store::new(Limits::default());
        self.send(&mut store);
        store.finish(1);
        let keys: Vec<_> = store.requests().map(|(key, _)| key).collect();
        let [key] = keys[..] else { return None };
        Some(look(&store.request(key).unwrap()))
    }

    fn send(&self, store: &mut Store) {
        let time = |us: i64| EPOCH_US.checked_add_signed(us).unwrap() * 1_000;
        let made: Vec<Made<'_>> = self
            .spans
            .iter()
            .map(|spec| Made {
                trace: TraceId([spec.trace; 16]),
                id: spec.id,
                parent: spec.parent,
                name: &spec.name,
                kind: 1,
                start_ns: time(spec.start_us),
                end_ns: time(spec.end_us),
                dropped: spec.dropped,
                resource: [("service.name", spec.service)]
                    .into_iter()
                    .chain(self.host.map(|host| ("host.name", host)))
                    .collect(),
                attrs: spec.attrs.iter().map(|(key, value)| (&**key, &**value)).collect(),
            })
            .collect();
        let records = self.records.iter().map(|record| Record::from_json(record.to_string().as_bytes()).unwrap());
        with_batch(&made, |batch| store.ingest(&Batch { records: records.collect(), ..batch }, 1));
    }

    /// What every check says.
    pub fn answers(&self, around: &dyn Surroundings, moment: Moment) -> Answers {
        self.with_view(|view| super::answer(view, around, moment))
    }

    /// What every check says in the end, as long as it is one request.
    pub fn told(&self) -> Option<Answers> {
        self.with_one(|view| super::answer(view, &Nothing, Moment::Settled))
    }

    fn settled(&self, id: &str) -> (Answer, Answers) {
        let answers = self.answers(&Nothing, Moment::Settled);
        (answers.of(CheckId::of(id).unwrap()), answers)
    }

    /// Expects a check to hold.
    pub fn holds(&self, id: &str) {
        let (answer, answers) = self.settled(id);
        assert_eq!(answer, Answer::Holds, "{id}: {}", said(&answers));
    }

    /// Expects a check to be violated, at its own level, in a sentence that names the request and says this.
    pub fn violates(&self, id: &str, say: &str) {
        self.violates_at(id, CheckId::of(id).unwrap().check().level, say);
    }

    /// Expects a check to be violated at a level of its own.
    pub fn violates_at(&self, id: &str, level: Level, say: &str) {
        let (answer, answers) = self.settled(id);
        violates(answer, &answers, id, level, say);
    }

    /// Expects a check not to be tellable, for this reason.
    pub fn unknown(&self, id: &str, why: Why) {
        let (answer, answers) = self.settled(id);
        assert_eq!(answer, Answer::Unknown(why), "{id}: {}", said(&answers));
    }

    /// Expects nothing at all to be violated.
    pub fn is_clean(&self) {
        let answers = self.answers(&Nothing, Moment::Settled);
        assert!(!answers.violated(), "{}", said(&answers));
    }
}

/// Expects a violation in a sentence that names the request and says this.
pub fn violates(answer: Answer, answers: &Answers, id: &str, level: Level, say: &str) {
    assert_eq!(answer, Answer::Violated, "{id}: {}", said(answers));
    let mut found = answers.findings().iter().filter(|finding| finding.check.check().id == id);
    let fits = found.any(|finding| {
        let names = finding.message.contains(REQUEST) && finding.message.contains("expected");
        let named = finding.span.is_none_or(|span| finding.message.contains(&span.to_string()));
        finding.level == level && finding.message.contains(say) && names && named
    });
    assert!(fits, "{id} at {level:?} with {say:?}: {}", said(answers));
}

fn said(answers: &Answers) -> String {
    answers.findings().iter().fold(String::new(), |mut text, finding| {
        let _ = write!(text, "\n  {finding}");
        text
    })
}

const DRAFT_ROWS: &str = r#"[{"worker_id":10075825329253151357,"dp_rank":0,"score":17.5,"base_score":35.0,"preferred_taint_multiplier":0.5},{"worker_id":7,"dp_rank":0,"score":22.0}]"#;
