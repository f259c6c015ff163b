//! Tests of the language as a whole, and the requests they ask.

mod complete;
mod eval;
mod laws;
mod parse;

use super::eval::{Answer, Lazy};
use super::{Error, Query};
use crate::lifecycle::body::{Attr, Body, Code, Head, Pieces, Writer};
use crate::lifecycle::catalogue::Field;
use crate::lifecycle::context::{Resource, Scope};
use crate::lifecycle::facts::{
    Admission, Choice, Dispatch, Facts, Leg, Marks, Preprocessing, Queue, Selection, State, Stream,
};
use crate::lifecycle::ids::{SpanId, TraceId, Worker};
use crate::lifecycle::packed::{self, Value};
use crate::lifecycle::request::{RequestKey, RequestView, SpanView, Up};
use crate::lifecycle::stage::{Layout, Mode, Origin, Outcome, Phase, Stage};

/// The pieces of made-up spans.
#[derive(Default)]
pub struct Kept {
    attrs: Vec<Vec<u8>>,
    texts: Vec<String>,
}

impl Pieces for Kept {
    fn attr(&self, piece: u32) -> Attr<'_> {
        let (key, value) = packed::read(&self.attrs[piece as usize]);
        Attr { field: Field::of(key), key, value }
    }

    fn text(&self, piece: u32) -> &str {
        &self.texts[piece as usize]
    }
}

/// A request of one span with one event, by their attributes.
pub struct OneSpan {
    kept: Kept,
    body: Vec<u8>,
    resource: Vec<u8>,
    name: String,
}

impl OneSpan {
    pub fn new(name: &str, attrs: &[(&str, Value<'_>)], event: (&str, &[(&str, Value<'_>)])) -> Self {
        let mut kept = Kept::default();
        let mut codes = |attrs: &[(&str, Value<'_>)]| -> Vec<Code<'static>> {
            let keep = |(key, value): &(&str, Value<'_>)| {
                kept.attrs.push(packed::pack(key, *value));
                Code::Piece(kept.attrs.len() as u32 - 1)
            };
            attrs.iter().map(keep).collect()
        };
        let (own, of_event) = (codes(attrs), codes(event.1));
        kept.texts = vec![event.0.into(), "boom: status".into()];
        let mut body = Vec::new();
        let mut writer = Writer(&mut body);
        writer.head(&Head { status_message: Some(1), ..Head::default() }, true, false);
        writer.attrs(&own);
        writer.count(1);
        writer.event(0, 0, 0, &of_event);
        let mut resource = Vec::new();
        let service = packed::pack("service.name", Value::Str("dynamo-frontend"));
        crate::lifecycle::context::write(&mut resource, 0, &[b""], &[&service]);
        Self { kept, body, resource, name: name.into() }
    }

    pub fn view<'a>(&'a self, facts: &'a Facts) -> RequestView<'a> {
        let span = SpanView {
            trace: TraceId([0xab; 16]),
            id: SpanId([1; 8]),
            parent: None,
            up: Up::Top,
            name: &self.name,
            stage: Stage::of(&self.name),
            kind: 1,
            start_ns: 1,
            end_ns: 2,
            body: Body::new(&self.body, &self.kept),
            resource: Resource(&self.resource),
            scope: Scope(&[]),
        };
        RequestView { key: RequestKey(1), facts, spans: vec![span], records: Vec::new() }
    }
}

/// A view and the answers of checks.
pub struct Given<'a> {
    pub view: RequestView<'a>,
    pub checks: &'a [(&'a str, Answer)],
}

impl Lazy for Given<'_> {
    fn view(&self) -> Option<&RequestView<'_>> {
        Some(&self.view)
    }

    fn any_check(&self, wanted: &mut dyn FnMut(&str, Answer) -> bool) -> bool {
        self.checks.iter().any(|(id, answer)| wanted(id, *answer))
    }
}

/// Must never be asked.
pub struct Untouched;

impl Lazy for Untouched {
    fn view(&self) -> Option<&RequestView<'_>> {
        panic!("spans were asked for")
    }

    fn any_check(&self, _: &mut dyn FnMut(&str, Answer) -> bool) -> bool {
        panic!("checks were asked for")
    }
}

pub fn parse(text: &str) -> Query {
    Query::parse(text).unwrap_or_else(|error| panic!("{text}: {error}"))
}

pub fn error(text: &str) -> Error {
    match Query::parse(text) {
        Ok(query) => panic!("{text:?} is {query}"),
        Err(error) => error,
    }
}

/// A disaggregated request that migrated: three legs, cancelled while streaming.
pub fn request() -> Facts {
    let seven = Worker { id: 9_182_000_000_000_032_621, rank: Some(0) };
    let leg = |phase, attempt, id: u64, result: &str, wait_ns, margin, reason: &str| Leg {
        phase,
        phase_origin: Origin::Span,
        attempt,
        queue: Some(Queue {
            span: SpanId([2; 8]),
            start_ns: 1_000_000,
            wait_ns,
            class: "latency".into(),
            policy: "fcfs".into(),
            depth_in: Some(7),
            depth_out: Some(6),
            deferred: Some(!reason.is_empty()),
            outcome: "dequeued".into(),
            reason: reason.into(),
            origin: Origin::Span,
        }),
        selection: Some(Box::new(Selection {
            span: Some(SpanId([7; 8])),
            time_ns: 2_000_000,
            pool: phase,
            candidates: Some(4),
            eligible: Some(4),
            filtered: Some(2),
            filtered_parts: [Some(0), Some(0), Some(2), Some(0), None],
            selected: Some(Choice { worker: Worker { id, rank: Some(0) }, cost: Some(12.5) }),
            best: Some(Choice { worker: Worker { id, rank: Some(0) }, cost: Some(12.5) }),
            margin: Some(margin),
            pinned: None,
            policy: "kv_aware".into(),
            origin: Origin::Span,
        })),
        dispatch: Some(Dispatch {
            span: SpanId([3; 8]),
            start_ns: 3_000_000,
            duration_ns: 1_000_000,
            route: "kv".into(),
            worker: Some(Worker { id, rank: Some(0) }),
            result: result.into(),
            attempt_outcome: String::new().into(),
            error: "worker_gone".into(),
            retry: Some(attempt > 0),
            migration_reason: if attempt > 0 { "disconnected".into() } else { "".into() },
            from_worker: (attempt > 0).then_some(7_587_891),
            tokens_carried: (attempt > 0).then_some(61),
            origin: Origin::Span,
        }),
        admission: Some(Box::new(Admission {
            span: SpanId([4; 8]),
            transport: "tcp".into(),
            payload_bytes: Some(4096),
            result: "accepted".into(),
        })),
    };
    let mut marks = Marks::default();
    marks.set(Marks::SKEW);
    Facts {
        request_id: "55307ac2-dc7d-4855-9767-a4d62fd45968".into(),
        x_request_id: "client-7".into(),
        session_id: "s-30942".into(),
        model: "Qwen/Qwen3-0.6B".into(),
        trace: TraceId::from_hex("8f1c00000000000000000000000053ab"),
        state: State::Ended,
        outcome: Some(Outcome::Cancelled),
        has_root: true,
        endpoint: "/v1/chat/completions".into(),
        streaming: Some(true),
        start_ns: 1_000_000,
        end_ns: Some(1_901_000_000),
        layout: Layout::Evidence,
        mode: Mode::Investigation,
        legs: vec![
            leg(Phase::Prefill, 0, 7_587_890, "accepted", 412_000_000, 1.25, "prefill_capacity"),
            leg(Phase::Decode, 0, 7_587_891, "failed", 100_000, 0.0, ""),
            leg(Phase::Decode, 1, seven.id, "accepted", 2_000_000, 0.04, "class_backlog"),
        ],
        stream: Some(Box::new(Stream {
            span: SpanId([5; 8]),
            start_ns: 5_000_000,
            duration_ns: 96_000_000,
            events: Some(31),
            outcome: "abandoned".into(),
        })),
        preprocessing: Some(Preprocessing {
            span: SpanId([6; 8]),
            duration_ns: 1_000_000,
            checkpoint: "ready".into(),
            outcome: "success".into(),
        }),
        ttft_ns: Some((19_000_000, Origin::Span)),
        input_tokens: Some(200),
        output_tokens: Some(31),
        cached_tokens: Some(100),
        spans: 17,
        marks,
        skew_ns: 200_000,
        ..Facts::default()
    }
}
