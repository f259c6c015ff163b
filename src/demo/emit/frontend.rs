//! The frontend's own spans: preprocessing, dispatch and its route, the stream, the root and the HTTP request.

use crate::demo::ledger::Witness;
use crate::demo::sim::request::{Leg, Note, Request};
use crate::lifecycle::stage::{Outcome, Phase};

use super::span::{Code, Draft, Frame, Kind, flag, number, telemetry, text};
use super::{Emitter, Who, detail};

const SERVICE: Code =
    Code { file: "llm/src/http/service/service_v2.rs", module: "dynamo_llm::http::service::service_v2", line: 1404 };
const MIGRATION: Code = Code { file: "llm/src/migration.rs", module: "dynamo_llm::migration", line: 733 };
const FAILURE: Code =
    Code { file: "llm/src/http/service/service_v2.rs", module: "tower_http::trace::on_failure", line: 208 };
const ROUTE: Code = Code {
    file: "runtime/src/pipeline/network/egress/route_span.rs",
    module: "dynamo_runtime::pipeline::network::egress::route_span",
    line: 279,
};
const ROUTING: Code =
    Code { file: "llm/src/kv_router/routing_host/kv.rs", module: "dynamo_llm::kv_router::routing_host::kv", line: 560 };
pub(super) const METRICS: Code =
    Code { file: "llm/src/http/service/metrics.rs", module: "dynamo_llm::http::service::metrics", line: 2142 };
/// Where `request completed` is written.
pub(super) const COMPLETED_LINE: i64 = 2276;

/// How a request ended, as the frontend tells it.
#[derive(Clone, Copy, Debug)]
pub struct Ending {
    /// The outcome.
    pub outcome: Outcome,
    /// When it was observed.
    pub at_ns: u64,
    /// `status`, `error_type` and `error_detail` of `request completed`; none when the request never got that far.
    pub told: Option<(&'static str, Option<(&'static str, &'static str)>)>,
    /// Whether the root's status is an error.
    pub root_error: bool,
    /// Whether the HTTP span's status is an error.
    pub http_error: bool,
    /// The stream's beginning and its own word for its end, when there was one.
    pub stream: Option<(u64, &'static str, u64)>,
}

impl Emitter {
    /// Preprocessing ended at `end_ns`, at this checkpoint and with this outcome.
    pub fn preprocessing(&mut self, request: &mut Request, end_ns: u64, (checkpoint, outcome): (&str, &str)) {
        let time = (request.prepare_ns, end_ns);
        let mut draft =
            self.lifecycle(0, "request.preprocessing", request, request.ident.root, time, ("frontend", 203));
        if self.investigates() {
            draft = draft.with([text("dynamo.stage.checkpoint", checkpoint), text("dynamo.stage.outcome", outcome)]);
        }
        self.frontend_span(request, draft, 130_000, Witness::Other);
    }

    /// A dispatch was answered, given up or cancelled at `end_ns`.
    pub fn dispatch(&mut self, request: &mut Request, leg: &Leg, result: &'static str, end_ns: u64) {
        let Some(worker) = leg.worker() else { return };
        let thread = self.thread(0);
        let frame = Frame {
            name: "request.dispatch",
            trace: &request.ident.trace,
            id: leg.dispatch,
            parent: Some(request.ident.root),
            time: (leg.dispatch_ns, end_ns),
        };
        let who = Who { operation: &request.ident.operation_id, role: "frontend", component: "frontend" };
        let draft = Draft::new(frame, Kind::Internal, telemetry(241), "dynamo.request_lifecycle", thread)
            .with(self.common(0, &request.ident, who))
            .with(detail(leg.attempt, "dispatch.v1"))
            .with([
                text("dynamo.dispatch.route", "kv"),
                text("dynamo.dispatch.phase", leg.phase.word()),
                number("dynamo.dispatch.destination.worker.id", worker.id),
                number("dynamo.dispatch.destination.dp.rank", worker.rank.unwrap_or(0)),
                text("dynamo.dispatch.result", result),
            ]);
        request.truth.attempts = request.truth.attempts.max(leg.attempt + 1);
        let line = format!("{}#{} {}:{}", leg.phase.word(), leg.attempt, worker.id, worker.rank.unwrap_or(0));
        request.truth.dispatched.push(line);
        let witness = Witness::Dispatch { phase: leg.phase, result, attempt: leg.attempt, worker };
        self.frontend_span(request, draft, 30_000, witness);
    }

    /// A leg's route ended at `end_ns` with `request.outcome` and, when it failed, `error.type`.
    pub fn route(
        &mut self,
        request: &mut Request,
        leg: &Leg,
        end_ns: u64,
        (outcome, error): (&'static str, Option<&'static str>),
    ) {
        let Some(worker) = leg.worker() else { return };
        let thread = self.thread(0);
        let frame = Frame {
            name: "kv_router.route_request",
            trace: &request.ident.trace,
            id: leg.route,
            parent: Some(leg.dispatch),
            time: (leg.dispatch_ns + 4_000, end_ns),
        };
        let phase = match leg.phase {
            Phase::Prefill => "Prefill",
            Phase::Decode => "Decode",
            _ => "Aggregated",
        };
        let mut draft = Draft::new(frame, Kind::Client, ROUTING, "request_span", thread).with([
            text("request_id", request.ident.request_id.as_str()),
            number("dp_rank", worker.rank.unwrap_or(0)),
            number("overlap_blocks", leg.overlap()),
            text("phase", phase),
            number("worker_id", worker.id),
            number("request.attempt", leg.attempt),
            flag("migration.is_retry", leg.attempt > 0),
        ]);
        // What a migration carries is told once, by the leg that goes on generating.
        let mut migration = None;
        if leg.phase != Phase::Prefill {
            let carried = leg.replaces.map_or(0, |(_, tokens)| tokens);
            draft = draft.with([number("migration.tokens_completed", carried)]);
            if let Some((from, tokens)) = leg.replaces {
                draft =
                    draft.with([text("migration.reason", "disconnected"), number("migration.from_worker_id", from)]);
                request.truth.carried.push(tokens);
                migration = Some(("disconnected", tokens));
            }
        }
        draft = draft.with([text("request.outcome", outcome)]);
        draft = match (outcome, error) {
            ("cancelled", _) => draft.with([text("cancellation.signal", "stream_drop")]).event(
                "route request cancelled",
                end_ns - 60_000,
                "INFO",
                ("request_span", Code { line: 290, ..ROUTE }),
                [text("request.outcome", outcome), text("cancellation.signal", "stream_drop")],
            ),
            (_, Some(error)) => draft.with([text("error.type", error)]).error(error).event(
                "route request failed",
                end_ns - 30_000,
                "WARN",
                ("request_span", Code { line: 308, ..ROUTE }),
                [text("request.outcome", outcome), text("error.type", error)],
            ),
            _ => draft.event(
                "route request completed",
                end_ns - 20_000,
                "INFO",
                ("request_span", ROUTE),
                [text("request.outcome", outcome)],
            ),
        };
        let witness = Witness::Route { phase: leg.phase, outcome, migration, retry: leg.attempt > 0 };
        self.frontend_span(request, draft, 120_000, witness);
    }

    /// The request ended: its stream, root and HTTP span, in the order in which they end.
    pub fn ending(&mut self, request: &mut Request, ending: Ending) {
        let at = ending.at_ns;
        if let Some((from, word, events)) = ending.stream {
            let mut draft = self.lifecycle(
                0,
                "response.streaming",
                request,
                request.ident.root,
                (from, at + 21_000),
                ("frontend", 210),
            );
            if self.investigates() {
                draft = draft.with([number("dynamo.stream.events", events), text("dynamo.stage.outcome", word)]);
            }
            request.truth.events = Some(events);
            request.truth.abandoned = word == "abandoned";
            let duration_ns = at + 21_000 - from;
            let witness = Witness::Stream { events, outcome: word, duration_ns, root: ending.outcome };
            self.frontend_span(request, draft, 0, witness);
        }
        self.root(request, ending);
        self.http(request, ending);
    }

    fn root(&mut self, request: &mut Request, ending: Ending) {
        let ident = &request.ident;
        let end_ns = ending.at_ns + 14_000;
        let time = (request.root_ns, end_ns);
        let thread = self.thread(0);
        let frame =
            Frame { name: "request.lifecycle", trace: &ident.trace, id: ident.root, parent: Some(ident.http), time };
        let session = |id: &str, source: &str| [text("dynamo.session.id", id), text("dynamo.session.source", source)];
        let who = Who { operation: &ident.operation_id, role: "frontend", component: "frontend" };
        let mut draft = Draft::new(frame, Kind::Internal, telemetry(185), "dynamo.request_lifecycle", thread)
            .with(self.common(0, ident, who))
            .with(session(&ident.request_id, "request_id_fallback"))
            .with(match &ident.session_id {
                Some(id) => session(id, "agent_context"),
                None => session(&ident.request_id, "request_id_fallback"),
            })
            .with([
                number("dynamo.request.terminal.timestamp_unix_ns", ending.at_ns + 3_000),
                text("dynamo.request.terminal.outcome", ending.outcome.word()),
                flag("dynamo.request.terminal.error", ending.outcome != Outcome::Success),
            ]);
        if ending.root_error {
            draft = draft.error("");
        }
        if ending.told.is_some() {
            let asked = self.asked(request);
            let received = ("dynamo_llm::http::service::metrics", METRICS);
            draft = draft.event("request received", request.root_ns + 110_000, "INFO", received, asked);
            if let Some(told) = self.told(request, ending) {
                let level = if ending.outcome == Outcome::Success { "INFO" } else { "ERROR" };
                let completed = (METRICS.module, Code { line: COMPLETED_LINE, ..METRICS });
                draft = draft.event("request completed", ending.at_ns, level, completed, told);
            }
        }
        let witness = Witness::Root {
            outcome: ending.outcome,
            duration_ns: end_ns - request.root_ns,
            session: ident.session_id.clone(),
        };
        request.truth.outcome = ending.outcome.word().to_owned();
        request.truth.root_ns = end_ns - request.root_ns;
        request.truth.ttft_ns = request.ttft_ns();
        self.frontend_span(request, draft, 1_100_000, witness);
    }

    fn http(&mut self, request: &mut Request, ending: Ending) {
        let ident = &request.ident;
        let thread = self.thread(0);
        let time = (request.received_ns, ending.at_ns + 40_000);
        let frame = Frame { name: "http-request", trace: &ident.trace, id: ident.http, parent: None, time };
        let at = Code { file: "runtime/src/logging.rs", module: "dynamo_runtime::logging", line: 636 };
        let mut draft = Draft::new(frame, Kind::Internal, at, "request_span", thread)
            .with([text("method", "POST"), text("uri", "/v1/chat/completions"), text("version", "HTTP/1.1")])
            .with(ident.x_request_id.as_ref().map(|id| text("x_request_id", id.as_str())))
            .with([text("request_id", ident.request_id.as_str())]);
        let mut witness = Witness::Http { ttft_ms: None, tokens: None };
        // Only streams that ran to an end of their own carry these; a dropped one does not.
        let ran = ending.stream.is_some_and(|(_, word, _)| word != "abandoned");
        if ran && request.first_token_ns.is_none() {
            draft = draft.with([number("input_tokens", 0), number("output_tokens", 0)]);
            witness = Witness::Http { ttft_ms: None, tokens: Some((0, 0)) };
        } else if let (true, Some(ttft)) = (ran, request.ttft_ns()) {
            let (input, output) = (request.plan.input, request.truth.output_tokens);
            let ttft = format!("{:.2}", ttft as f64 / 1e6);
            witness = Witness::Http { ttft_ms: ttft.parse().ok(), tokens: Some((input, output)) };
            draft = draft.with([
                number("input_tokens", input),
                number("output_tokens", output),
                number("image_count", 0),
                number("video_count", 0),
                number("audio_count", 0),
                text("ttft_ms", ttft),
            ]);
            draft = draft.with(request.itl_ms(ending.at_ns).map(|itl| text("avg_itl_ms", format!("{itl:.2}"))));
            let (prefill, decode) = request.served;
            draft = draft.with(prefill.map(|worker| number("prefill_worker_id", worker.id)));
            draft = draft.with(decode.map(|worker| number("decode_worker_id", worker.id)));
        }
        if ending.http_error {
            draft = draft.error("");
        }
        let notes = std::mem::take(&mut request.notes);
        draft = notes.into_iter().fold(draft, note);
        self.frontend_span(request, draft, 1_600_000, witness);
    }
}

/// Adds what `http-request` noticed as events.
fn note(draft: Draft, note: Note) -> Draft {
    let retry = |attempt: u32, reason: &str, from: u64, tokens: u64| {
        [
            number("request.attempt", attempt),
            flag("migration.is_retry", true),
            text("migration.reason", reason),
            number("migration.from_worker_id", from),
            number("migration.tokens_completed", tokens),
        ]
    };
    let again = |draft: Draft, at_ns: u64, reason: &str| {
        let error = match reason {
            "response_timeout" => "DeadlineExceeded: backend response inactivity timeout",
            _ => "Unavailable: Stream ended before generation completed",
        };
        let at = (MIGRATION.module, Code { line: 494, ..MIGRATION });
        draft.event("Stream disconnected, recreating stream", at_ns + 10_000, "WARN", at, [text("error", error)])
    };
    match note {
        Note::Sent(at_ns, status) => {
            let latency_ms = at_ns.saturating_sub(draft.0.start_time_unix_nano) / 1_000_000;
            let level = if status < 400 { "INFO" } else { "ERROR" };
            let told = [number("status", status), number("latency_ms", latency_ms)];
            draft.event("http response sent", at_ns, level, (SERVICE.module, SERVICE), told)
        }
        Note::Failed(at_ns, classification) => draft.event(
            "response failed",
            at_ns,
            "ERROR",
            (FAILURE.module, FAILURE),
            [text("classification", classification), text("latency", "2 ms")],
        ),
        Note::Migrates { at_ns, attempt, from, tokens } => {
            let at = ("request_span", MIGRATION);
            let told = retry(attempt, "disconnected", from, tokens);
            again(draft.event("migration retry scheduled", at_ns, "WARN", at, told), at_ns, "disconnected")
        }
        Note::Exhausted { at_ns, attempt, from, tokens, reason } => {
            let at = ("request_span", MIGRATION);
            let told = retry(attempt, reason, from, tokens);
            let draft = again(draft.event("migration retries exhausted", at_ns, "WARN", at, told), at_ns, reason);
            let at = (MIGRATION.module, Code { line: 501, ..MIGRATION });
            let error = [text("error", "Migration limit exhausted")];
            draft.event("Cannot recreate stream", at_ns + 60_000, "WARN", at, error)
        }
    }
}
