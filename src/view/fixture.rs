//! Requests built by hand, for the tests of views and screens: a small store without ingest.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::Arc;

use super::data::{Data, Seen};
use crate::checks::Answers;
use crate::lifecycle::body::{Attr, Code, Head, Pieces, Writer};
use crate::lifecycle::catalogue::Field;
use crate::lifecycle::context::{self, Resource, Scope};
use crate::lifecycle::facts::*;
use crate::lifecycle::ids::{SpanId, TraceId, Worker};
use crate::lifecycle::packed::{self, Value};
use crate::lifecycle::record::Record;
use crate::lifecycle::request::{RequestKey, RequestView, SpanView, Up};
use crate::lifecycle::stage::*;
use crate::query::{OnDemand, Query};
use crate::store::rollup::Rollup;
use crate::store::{Before, Checked, Counts, Past, Said, Standing};

pub const MS: u64 = 1_000_000;
/// The fixture's present.
pub const NOW: u64 = 1_796_003_600_000_000_000;
pub const PREFILL: Worker = Worker { id: 9_079_256_848_778_952_192, rank: Some(0) };
pub const DECODE: Worker = Worker { id: 9_167_075_440_562_241_335, rank: Some(0) };
pub const OTHER: Worker = Worker { id: 10_503_702_211_265_597_892, rank: Some(0) };

#[derive(Default)]
struct Pool {
    attrs: Vec<Vec<u8>>,
    texts: Vec<String>,
}

impl Pieces for Pool {
    fn attr(&self, piece: u32) -> Attr<'_> {
        let (key, value) = packed::read(&self.attrs[piece as usize]);
        Attr { field: Field::of(key), key, value }
    }
    fn text(&self, piece: u32) -> &str {
        &self.texts[piece as usize]
    }
}

type Pairs<'a> = Vec<(&'a str, Value<'a>)>;

/// A span to be kept.
#[derive(Clone)]
pub struct Def<'a> {
    pub id: u64,
    pub parent: u64,
    pub name: &'a str,
    pub start_ns: u64,
    pub end_ns: u64,
    pub attrs: Pairs<'a>,
    pub events: Vec<(i64, &'a str, Pairs<'a>)>,
    pub service: &'a str,
    pub dropped: [u32; 3],
}

/// A span of the frontend; times in milliseconds after `NOW - 2 s`.
pub fn def<'a>(id: u64, parent: u64, name: &'a str, start_ms: f64, end_ms: f64) -> Def<'a> {
    let at = |ms: f64| (NOW - 2000 * MS).wrapping_add_signed((ms * 1e6) as i64);
    Def {
        id,
        parent,
        name,
        start_ns: at(start_ms),
        end_ns: at(end_ms),
        attrs: Vec::new(),
        events: Vec::new(),
        service: "dynamo-frontend",
        dropped: [0; 3],
    }
}

impl<'a> Def<'a> {
    pub fn with(mut self, attrs: &[(&'a str, Value<'a>)]) -> Self {
        self.attrs.extend_from_slice(attrs);
        self
    }
    pub fn on(mut self, service: &'a str) -> Self {
        self.service = service;
        self
    }
}

struct Kept {
    id: SpanId,
    parent: Option<SpanId>,
    name: String,
    start_ns: u64,
    end_ns: u64,
    body: Vec<u8>,
    resource: Vec<u8>,
}

#[derive(Default)]
struct Request {
    facts: Facts,
    spans: Vec<Kept>,
    records: Vec<Record>,
}

/// A small store.
pub struct Fixture {
    pool: Pool,
    scope: Vec<u8>,
    requests: HashMap<RequestKey, Request>,
    order: Vec<RequestKey>,
    pub version: u64,
    pub counts: Counts,
    /// The numbers and the requests as they were when it was held.
    held: Option<(Rollup, HashMap<RequestKey, Before>)>,
    checked: Checked,
}

impl Default for Fixture {
    fn default() -> Self {
        let mut scope = Vec::new();
        context::write(&mut scope, 0, &[b"dynamo-frontend", b"1.7.0", b""], &[]);
        Self {
            pool: Pool::default(),
            scope,
            requests: HashMap::new(),
            order: Vec::new(),
            version: 1,
            held: None,
            counts: Counts::default(),
            checked: Checked::beside(1 << 20),
        }
    }
}

impl Fixture {
    pub fn add(&mut self, facts: Facts) -> RequestKey {
        let key = RequestKey(self.order.last().map_or(1, |newest| newest.0 + 1));
        self.order.push(key);
        self.requests.insert(key, Request { facts, ..Request::default() });
        self.version += 1;
        key
    }

    fn rollup(&self) -> Rollup {
        let mut rollup = Rollup::default();
        self.requests.values().for_each(|request| rollup.add(&request.facts));
        rollup
    }

    /// Holds the numbers of its panes and the facts of its requests, or lets them go on. Trees go on.
    pub fn hold(&mut self, held: bool) {
        if held && self.held.is_none() {
            let facts = |request: &Request| Before { facts: request.facts.clone(), answers: None };
            let requests = self.requests.iter().map(|(key, request)| (*key, facts(request))).collect();
            self.held = Some((self.rollup(), requests));
        } else if !held {
            self.held = None;
        }
    }

    pub fn facts_mut(&mut self, key: RequestKey) -> &mut Facts {
        self.version += 1;
        &mut self.requests.get_mut(&key).unwrap().facts
    }

    /// Lets a request go.
    pub fn remove(&mut self, key: RequestKey) {
        self.version += 1;
        self.counts.requests_evicted += 1;
        self.requests.remove(&key);
        self.order.retain(|other| *other != key);
    }

    pub fn record(&mut self, key: RequestKey, json: &str) {
        self.requests.get_mut(&key).unwrap().records.push(Record::from_json(json.as_bytes()).unwrap());
    }

    fn codes(pool: &mut Pool, attrs: &[(&str, Value<'_>)]) -> Vec<Code<'static>> {
        attrs
            .iter()
            .map(|(key, value)| {
                pool.attrs.push(packed::pack(key, *value));
                let piece = pool.attrs.len() as u32 - 1;
                if let Value::Int(number) = value { Code::Int(piece, *number) } else { Code::Piece(piece) }
            })
            .collect()
    }

    pub fn span(&mut self, key: RequestKey, def: Def<'_>) {
        let codes = Self::codes(&mut self.pool, &def.attrs);
        let mut body = Vec::new();
        let mut writer = Writer(&mut body);
        writer.head(&Head { flags: 257, dropped: def.dropped, ..Head::default() }, !def.events.is_empty(), false);
        writer.attrs(&codes);
        if !def.events.is_empty() {
            writer.count(def.events.len());
            for (offset, name, attrs) in &def.events {
                let codes = Self::codes(&mut self.pool, attrs);
                self.pool.texts.push((*name).to_owned());
                writer.event(*offset, self.pool.texts.len() as u32 - 1, 0, &codes);
            }
        }
        let mut resource = Vec::new();
        context::write(&mut resource, 0, &[b""], &[&packed::pack("service.name", Value::Str(def.service))]);
        let request = self.requests.get_mut(&key).unwrap();
        let parent = SpanId::from_bytes(&def.parent.to_be_bytes());
        let id = SpanId(def.id.to_be_bytes());
        let (start_ns, end_ns, name) = (def.start_ns, def.end_ns, def.name.to_owned());
        request.spans.push(Kept { id, parent, name, start_ns, end_ns, body, resource });
        request.spans.sort_by_key(|span| (span.start_ns, span.id));
        request.facts.spans = request.spans.len() as u32;
        self.version += 1;
    }
}

impl Data for Fixture {
    fn still(&self, now_ns: u64) -> Arc<Past> {
        Arc::new(Past::still(self.newest().map(|(key, _)| key), self.standing(), now_ns))
    }
    fn past(&self, at_ns: u64) -> Arc<Past> {
        let there: Vec<(RequestKey, Facts)> = self
            .newest()
            .filter(|(_, facts)| facts.start_ns <= at_ns)
            .map(|(key, facts)| match facts.end_ns {
                Some(end_ns) if end_ns <= at_ns => (key, facts.clone()),
                _ => (key, Facts { state: State::InFlight, outcome: None, end_ns: None, ..facts.clone() }),
            })
            .collect();
        let total = there.len() as u64;
        Arc::new(Past::back(there, Standing { total, ..Default::default() }, at_ns))
    }
    fn heard(&self) -> Option<(u64, u64)> {
        let first = self.newest().map(|(_, facts)| facts.start_ns).min()?;
        let last = self.newest().map(|(_, facts)| facts.end_ns.unwrap_or(facts.start_ns)).max()?;
        Some((first, last))
    }
    fn request_at(&self, key: RequestKey, _: &Past) -> Option<RequestView<'_>> {
        self.request(key)
    }
    fn matches(&self, query: &Query, key: RequestKey) -> bool {
        self.facts(key).is_some_and(|facts| query.matches(facts, &OnDemand::new(|| self.request(key))))
    }
    fn answers(&self, _: RequestKey) -> Option<&Answers> {
        None
    }
    fn before(&self, _: &Arc<Past>, key: RequestKey) -> Option<&Before> {
        self.held.as_ref()?.1.get(&key)
    }
    fn said(&self) -> &Said {
        self.checked.said()
    }
    fn version(&self) -> u64 {
        self.version
    }
    fn standing(&self) -> Standing {
        let mut standing = Standing { total: self.order.len() as u64, ..Standing::default() };
        for request in self.requests.values() {
            match request.facts.outcome {
                Some(outcome) => {
                    standing.by_outcome[Outcome::ALL.iter().position(|other| *other == outcome).unwrap()] += 1;
                }
                None => standing.without_root += 1,
            }
            standing.in_flight += u64::from(request.facts.state == State::InFlight);
            standing.lost += u64::from(request.facts.state == State::Lost);
        }
        standing
    }
    fn counts(&self) -> &Counts {
        &self.counts
    }
    fn memory(&self) -> (usize, usize) {
        (82 << 20, 512 << 20)
    }
    fn newest(&self) -> Box<dyn Iterator<Item = (RequestKey, &Facts)> + '_> {
        Box::new(self.order.iter().rev().map(|key| (*key, &self.requests[key].facts)))
    }
    fn seen(&self) -> Seen<'_> {
        let newest = Box::new(self.order.iter().rev().copied());
        let rollup = self.held.as_ref().map_or_else(|| Cow::Owned(self.rollup()), |(rollup, _)| Cow::Borrowed(rollup));
        Seen {
            rollup,
            window_ns: None,
            until_ns: NOW,
            now_ns: NOW,
            is_now: self.held.is_none(),
            whole: true,
            filtered: false,
            newest,
        }
    }
    fn facts(&self, key: RequestKey) -> Option<&Facts> {
        self.requests.get(&key).map(|request| &request.facts)
    }
    fn request(&self, key: RequestKey) -> Option<RequestView<'_>> {
        let request = self.requests.get(&key)?;
        let trace = request.facts.trace.unwrap_or(TraceId([9; 16]));
        let spans = &request.spans;
        let views = spans.iter().map(|span| SpanView {
            trace,
            id: span.id,
            parent: span.parent,
            up: match span.parent {
                None => Up::Top,
                Some(parent) if parent == span.id => Up::Cycle,
                Some(parent) => {
                    spans.iter().position(|other| other.id == parent).map_or(Up::Missing, |at| Up::At(at as u32))
                }
            },
            name: &span.name,
            stage: Stage::of(&span.name),
            kind: 1,
            start_ns: span.start_ns,
            end_ns: span.end_ns,
            body: crate::lifecycle::body::Body::new(&span.body, &self.pool),
            resource: Resource(&span.resource),
            scope: Scope(&self.scope),
        });
        let records = request.records.iter().collect();
        Some(RequestView { key, facts: &request.facts, spans: views.collect(), records })
    }
    fn resolve(&self, key: RequestKey) -> Option<RequestKey> {
        self.requests.contains_key(&key).then_some(key)
    }
}

/// A leg with all its evidence.
pub fn leg(phase: Phase, attempt: u32, wait_ms: f64, reason: &str, to: Worker, margin: f64) -> Leg {
    Leg {
        phase,
        phase_origin: Origin::Span,
        attempt,
        queue: Some(Queue {
            span: SpanId([attempt as u8 + 1; 8]),
            start_ns: NOW - 1900 * MS,
            wait_ns: (wait_ms * 1e6) as u64,
            class: "std-short".into(),
            policy: "fcfs".into(),
            depth_in: Some(9),
            depth_out: Some(4),
            deferred: Some(!reason.is_empty()),
            outcome: "dequeued".into(),
            reason: reason.into(),
            origin: Origin::Span,
        }),
        selection: Some(Box::new(Selection {
            span: None,
            time_ns: NOW - 1860 * MS,
            pool: phase,
            candidates: Some(3),
            eligible: Some(3),
            filtered: Some(1),
            filtered_parts: [Some(0), Some(0), Some(1), Some(0), Some(0)],
            selected: Some(Choice { worker: to, cost: Some(12.5) }),
            best: Some(Choice { worker: to, cost: Some(12.5) }),
            margin: Some(margin),
            pinned: None,
            policy: "composed".into(),
            origin: Origin::Span,
        })),
        dispatch: Some(Dispatch {
            span: SpanId([attempt as u8 + 1; 8]),
            start_ns: NOW - 1850 * MS,
            duration_ns: 20 * MS,
            route: "kv".into(),
            worker: Some(to),
            result: "accepted".into(),
            attempt_outcome: "success".into(),
            error: "".into(),
            retry: Some(attempt > 0),
            migration_reason: "".into(),
            from_worker: None,
            tokens_carried: None,
            origin: Origin::Span,
        }),
        admission: None,
    }
}

fn facts(id: &str, age_ms: u64, outcome: Option<Outcome>, total_ms: u64, legs: Vec<Leg>) -> Facts {
    let start_ns = NOW - age_ms * MS;
    Facts {
        request_id: id.into(),
        session_id: "s-30942".into(),
        model: "Qwen/Qwen3-0.6B".into(),
        trace: TraceId::from_hex(&format!("8f1c{:0>28}", &id[..8])),
        state: if outcome.is_some() { State::Ended } else { State::InFlight },
        outcome,
        has_root: outcome.is_some(),
        spans: 12,
        has_http: true,
        streaming: Some(true),
        start_ns,
        end_ns: outcome.map(|_| start_ns + total_ms * MS),
        layout: Layout::Evidence,
        mode: Mode::Investigation,
        legs,
        has_record: outcome.is_some(),
        ..Facts::default()
    }
}

fn stream(events: Option<u64>) -> Option<Stream> {
    let outcome = "success".into();
    Some(Stream { span: SpanId([7; 8]), start_ns: NOW - 1800 * MS, duration_ns: 100 * MS, events, outcome })
}

/// Requests of every kind, the migrated one with its spans and records.
pub fn cluster() -> Fixture {
    let mut fixture = Fixture::default();
    fixture.counts.spans_received = 14_000;
    fixture.counts.spans_kept = 13_990;
    fixture.counts.spans_refused = 3;
    let two = |wait: f64, reason: &str, margin: f64| {
        vec![leg(Phase::Prefill, 0, wait, reason, PREFILL, 9.0), leg(Phase::Decode, 0, 0.1, "", DECODE, margin)]
    };
    let mut base = facts("0ba5e000-0000-4000-8000-000000000001", 9_000, Some(Outcome::Success), 640, two(0.1, "", 1.0));
    base.layout = Layout::Base;
    base.mode = Mode::Core;
    base.output_tokens = Some(24);
    base.ttft_ns = Some((31 * MS, Origin::Record));
    for leg in &mut base.legs {
        leg.selection = None;
        leg.dispatch.as_mut().unwrap().origin = Origin::Inferred;
        leg.queue.as_mut().unwrap().origin = Origin::Inferred;
        leg.queue.as_mut().unwrap().deferred = None;
    }
    fixture.add(base);
    let mut lost = facts("10570000-0000-4000-8000-000000000002", 8_000, None, 0, two(0.1, "", 3.75));
    lost.state = State::Lost;
    lost.marks.set(Marks::MISSING_PARENT);
    fixture.add(lost);
    let mut failed =
        facts("66b9a331-0000-4000-8000-000000000003", 7_000, Some(Outcome::Failed), 5_000, two(0.1, "", 9.0));
    failed.marks.set(Marks::SKEW);
    failed.stream = stream(None).map(Box::new);
    failed.mode = Mode::Core;
    fixture.add(failed);
    let mut rejected = facts("de4036f9-0000-4000-8000-000000000004", 6_000, Some(Outcome::Rejected), 2, Vec::new());
    rejected.legs.push(Leg {
        queue: leg(Phase::Prefill, 0, 0.0, "request_limit", PREFILL, 0.0).queue.map(|mut queue| {
            queue.outcome = "rejected".into();
            queue.deferred = Some(false);
            queue
        }),
        ..Leg::default()
    });
    fixture.add(rejected);
    let migrated = migrated(&mut fixture);
    let mut cancelled =
        facts("9b9f5578-0000-4000-8000-000000000005", 1_100, Some(Outcome::Cancelled), 96, two(0.1, "", 0.0));
    cancelled.ttft_ns = Some((21 * MS, Origin::Span));
    cancelled.stream = stream(Some(31)).map(Box::new);
    cancelled.session_fallback = true;
    fixture.add(cancelled);
    let mut good = facts("b09a9330-0000-4000-8000-000000000006", 900, Some(Outcome::Success), 188, two(0.1, "", 3.75));
    good.ttft_ns = Some((19 * MS, Origin::Span));
    good.stream = stream(Some(128)).map(Box::new);
    good.model = "推理服务 👩‍🔬".into();
    fixture.add(good);
    let running = facts("e5149c65-0000-4000-8000-000000000007", 400, None, 0, two(412.0, "prefill_capacity", 1.25));
    fixture.add(running);
    assert_eq!(migrated, RequestKey(5));
    fixture
}

fn migrated(fixture: &mut Fixture) -> RequestKey {
    let legs = vec![
        leg(Phase::Prefill, 0, 34.0, "class_backlog", PREFILL, 0.04),
        leg(Phase::Decode, 0, 0.1, "", OTHER, 9.0),
        leg(Phase::Decode, 1, 0.1, "", DECODE, 2.75),
    ];
    let id = "55307ac2-dc7d-4855-9767-a4d62fd45968";
    let mut about = facts(id, 2_000, Some(Outcome::Success), 1_900, legs);
    about.ttft_ns = Some((28 * MS, Origin::Span));
    about.stream = stream(Some(512)).map(Box::new);
    about.skew_ns = MS / 5;
    let key = fixture.add(about);
    let text = Value::Str;
    let bridge =
        [("code.file.path", text("/opt/dynamo/lib/runtime/src/telemetry.rs")), ("busy_ns", Value::Int(229_846))];
    let common = [
        ("dynamo.request.id", text(id)),
        ("dynamo.instance.id", text("frontend-0")),
        ("dynamo.process.epoch", text("11254:05ea6cf5")),
        ("dynamo.lifecycle.mode", text("investigation")),
    ];
    let top_k = r#"[{"worker_id":9167075440562241335,"dp_rank":0,"selected":true,"score":41.5,"cached_tokens":128,"active_requests":4},{"worker_id":9079256848778952192,"dp_rank":0,"selected":false,"score":44.25,"cached_tokens":64,"active_requests":9}]"#;
    let mut root = def(2, 1, "request.lifecycle", 1.0, 1900.0).with(&bridge).with(&common).with(&[
        ("dynamo.request.terminal.outcome", text("success")),
        ("dynamo.request.terminal.error", text("false")),
        ("dynamo.request.terminal.timestamp_unix_ns", text("1796003599900000000")),
    ]);
    root.events.push((
        1_899 * MS as i64,
        "request completed",
        vec![("status", text("success")), ("elapsed_ms", text("1899"))],
    ));
    let spans = vec![
        def(1, 0, "http-request", 0.0, 500.0).with(&bridge).with(&[("method", text("POST"))]),
        root,
        def(3, 2, "request.preprocessing", 1.0, 2.0).with(&common).with(&[("dynamo.stage.outcome", text("success"))]),
        def(4, 2, "router.queue", 2.0, 36.0).with(&common).with(&[
            ("dynamo.router.queue.class", text("std-short")),
            ("dynamo.router.queue.policy", text("fcfs")),
            ("dynamo.router.queue.depth.in", text("9")),
            ("dynamo.router.queue.depth.out", text("4")),
            ("dynamo.router.queue.deferred", text("true")),
            ("dynamo.router.queue.outcome", text("dequeued")),
            ("dynamo.router.queue.reason", text("class_backlog")),
        ]),
        def(5, 4, "router.selection", 36.0, 36.2).with(&common).with(&[
            ("dynamo.router.pool.role", text("decode")),
            ("dynamo.router.candidate.count", text("2")),
            ("dynamo.router.candidate.eligible.count", Value::Int(3)),
            ("dynamo.router.selected.worker.id", text("9167075440562241335")),
            ("dynamo.router.selected.dp.rank", text("0")),
            ("dynamo.router.selected.score", text("41.5")),
            ("dynamo.router.best.worker.id", text("9167075440562241335")),
            ("dynamo.router.best.dp.rank", text("0")),
            ("dynamo.router.best.margin", Value::Double(2.75)),
            ("dynamo.router.candidates.top_k", text(top_k)),
        ]),
        def(6, 2, "request.dispatch", 37.0, 62.0).with(&[
            ("dynamo.dispatch.phase", text("prefill")),
            ("dynamo.dispatch.destination.worker.id", text("9079256848778952192")),
            ("dynamo.dispatch.result", text("accepted")),
            ("dynamo.request.attempt", text("0")),
        ]),
        def(7, 6, "worker.operation.prefill", 38.0, 61.0).on("dynamo-worker"),
        def(8, 2, "request.dispatch", 63.0, 400.0).with(&[
            ("dynamo.dispatch.phase", text("decode")),
            ("dynamo.dispatch.destination.worker.id", text("10503702211265597892")),
            ("dynamo.dispatch.result", text("failed")),
            ("dynamo.request.attempt", text("0")),
        ]),
        def(10, 99, "worker.admission", 64.0, 64.5).on("dynamo-worker"),
        def(9, 2, "request.dispatch", 410.0, 1890.0).with(&[
            ("dynamo.dispatch.phase", text("decode")),
            ("dynamo.dispatch.result", text("accepted")),
            ("dynamo.request.attempt", text("1")),
        ]),
        def(11, 2, "response.streaming", 60.0, 1900.1)
            .with(&[("dynamo.stream.events", text("512")), ("dynamo.stage.outcome", text("success"))]),
    ];
    for span in spans {
        fixture.span(key, span);
    }
    fixture.record(
        key,
        r#"{"event_type":"request_end","event_time_unix_ms":1796003599900,"request":{"request_id":"55307ac2","model":"Qwen/Qwen3-0.6B","input_tokens":640,"output_tokens":512,"cached_tokens":128,"ttft_ms":28.1,"total_time_ms":1899.2}}"#,
    );
    fixture.record(
        key,
        r#"{"event_type":"router_selection","event_time_unix_ms":1796003598040,"selection":{"request_id":"55307ac2","worker_type":"decode","candidate_count":2,"candidates":[[9167075440562241335,0,41.5],[9079256848778952192,0,44.25]]}}"#,
    );
    key
}
