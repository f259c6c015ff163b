//! Exporters of the simulated processes: spans and logs as OTLP, each process flushing on its own clock.
//!
//! Owns: processes, their buffers, the batches that leave them, and the bookkeeping that tells the ledger what has been
//! handed over. Keeps out: what happens and when (`sim`), the network (`export`).

mod frontend;
mod record;
mod router;
pub(super) mod span;
mod worker;

use std::collections::{BTreeMap, HashMap};

use opentelemetry_proto::tonic::collector::logs::v1::ExportLogsServiceRequest;
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::{InstrumentationScope, KeyValue};
use opentelemetry_proto::tonic::logs::v1::{LogRecord, ResourceLogs, ScopeLogs};
use opentelemetry_proto::tonic::resource::v1::Resource;
use opentelemetry_proto::tonic::trace::v1::{ResourceSpans, ScopeSpans, Span};
use prost::Message;

use crate::lifecycle::stage::{Mode, Stage};

use super::fault::{Fault, Faults, Telling};
use super::ledger::{Ledger, RequestTruth, Witness};
use super::sim::chance::Chance;
use super::sim::request::{Ident, Request};
use super::{Delivery, Settings, Signal};
pub use frontend::Ending;
pub use worker::{Leaving, WorkerEnd};

/// Between two flushes of a process's spans and of its logs: the settings recommended to users (spec §6).
const SPAN_FLUSH_NS: u64 = 500_000_000;
const LOG_FLUSH_NS: u64 = 300_000_000;
/// Spans or logs in one export.
const BATCH: usize = 64;

struct Process {
    service: &'static str,
    instance: String,
    epoch: String,
    threads: (i64, i64),
    spans: BTreeMap<(u64, u64), Item<Span>>,
    logs: BTreeMap<(u64, u64), Item<(&'static str, LogRecord)>>,
    retired: bool,
}

struct Item<T> {
    body: T,
    request: u64,
    witness: Witness,
}

#[derive(Default)]
struct Open {
    begun: bool,
    outstanding: u32,
    fault: Fault,
    truth: Option<Box<RequestTruth>>,
}

/// All exporters, and the ledger of what has left them.
pub struct Emitter {
    mode: Mode,
    model: String,
    chance: Chance,
    processes: Vec<Process>,
    seq: u64,
    open: HashMap<u64, Open>,
    faults: Option<Faults>,
    /// What has been handed over.
    pub ledger: Ledger,
}

impl Emitter {
    /// Exporters without processes.
    pub fn new(settings: &Settings, model: &str) -> Self {
        Self {
            mode: settings.mode,
            model: model.to_owned(),
            chance: Chance::new(settings.seed, 2),
            processes: Vec::new(),
            seq: 0,
            open: HashMap::new(),
            faults: (!settings.faults.is_empty()).then(|| Faults::new(&settings.faults, settings.seed)),
            ledger: Ledger::default(),
        }
    }

    /// Starts a process's exporter; its index names it from now on.
    pub fn start(&mut self, service: &'static str, instance: String) -> usize {
        let pid = 11_000 + self.processes.len() as u64 * 7 + self.chance.between(0, 6);
        let first = self.chance.between(4, 9) as i64;
        self.processes.push(Process {
            service,
            instance,
            epoch: format!("{pid}:{}", self.chance.uuid()),
            threads: (first, first + 5),
            spans: BTreeMap::new(),
            logs: BTreeMap::new(),
            retired: false,
        });
        self.processes.len() - 1
    }

    /// When a process flushes first: its own phase of the period.
    pub fn first_flush(&mut self, signal: Signal, now_ns: u64) -> u64 {
        now_ns + self.chance.between(1, period(signal))
    }

    /// Ends a process: it flushes what it has and no more. Gives the time of that flush.
    pub fn retire(&mut self, process: usize, now_ns: u64) -> u64 {
        let process = &mut self.processes[process];
        process.retired = true;
        let spans = process.spans.keys().next_back().map_or(0, |(at, _)| *at);
        let logs = process.logs.keys().next_back().map_or(0, |(at, _)| *at);
        now_ns.max(spans).max(logs)
    }

    /// Whether a process has anything left to say.
    pub fn idle(&self) -> bool {
        self.processes.iter().all(|process| process.spans.is_empty() && process.logs.is_empty())
    }

    /// Hands over what a process has ended by `now_ns`, and tells when it flushes next; `None` when it has retired.
    pub fn flush(&mut self, process: usize, signal: Signal, now_ns: u64, out: &mut Vec<Delivery>) -> Option<u64> {
        match signal {
            Signal::Traces => self.flush_spans(process, now_ns, out),
            Signal::Logs => self.flush_logs(process, now_ns, out),
        }
        (!self.processes[process].retired).then(|| now_ns + period(signal))
    }

    fn flush_spans(&mut self, process: usize, now_ns: u64, out: &mut Vec<Delivery>) {
        let ended = ended(&mut self.processes[process].spans, now_ns);
        for chunk in chunks(ended) {
            let mut spans = Vec::with_capacity(chunk.len());
            for item in chunk {
                self.ledger.tally.span(&item.body.name);
                self.hand_over(item.request, &item.witness);
                spans.push(item.body);
            }
            let from = &self.processes[process];
            let resource_spans = vec![ResourceSpans {
                resource: Some(from.resource()),
                scope_spans: vec![ScopeSpans { scope: Some(scope(from.service)), spans, ..ScopeSpans::default() }],
                ..ResourceSpans::default()
            }];
            let body = ExportTraceServiceRequest { resource_spans }.encode_to_vec();
            out.push(Delivery {
                at_ns: now_ns,
                process: from.instance.clone(),
                signal: Signal::Traces,
                body: body.into(),
            });
        }
    }

    fn flush_logs(&mut self, process: usize, now_ns: u64, out: &mut Vec<Delivery>) {
        let ended = ended(&mut self.processes[process].logs, now_ns);
        for chunk in chunks(ended) {
            let mut scopes: BTreeMap<&str, Vec<LogRecord>> = BTreeMap::new();
            for item in chunk {
                self.hand_over(item.request, &item.witness);
                scopes.entry(item.body.0).or_default().push(item.body.1);
            }
            let from = &self.processes[process];
            let scope_logs = scopes
                .into_iter()
                .map(|(name, log_records)| ScopeLogs { scope: Some(scope(name)), log_records, ..ScopeLogs::default() })
                .collect();
            let resource_logs =
                vec![ResourceLogs { resource: Some(from.resource()), scope_logs, ..ResourceLogs::default() }];
            let body = ExportLogsServiceRequest { resource_logs }.encode_to_vec();
            out.push(Delivery {
                at_ns: now_ns,
                process: from.instance.clone(),
                signal: Signal::Logs,
                body: body.into(),
            });
        }
    }

    fn hand_over(&mut self, request: u64, witness: &Witness) {
        self.ledger.tally.count(witness);
        let open = self.open.entry(request).or_default();
        open.outstanding -= 1;
        if !open.begun {
            open.begun = true;
            self.ledger.begun += 1;
        }
        self.close_if_whole(request);
    }

    /// Says that nothing more will be written about a request.
    pub fn end(&mut self, request: &Request) {
        self.open.entry(request.ident.number).or_default().truth = Some(Box::new(request.truth.clone()));
        self.close_if_whole(request.ident.number);
    }

    fn close_if_whole(&mut self, request: u64) {
        if let Some(open) = self.open.get_mut(&request)
            && open.outstanding == 0
            && let Some(mut truth) = open.truth.take()
        {
            if let Some(kind) = open.fault.kind() {
                truth.fault = Some(kind.name);
                self.ledger.injected(kind, &truth.request_id);
            }
            self.open.remove(&request);
            self.ledger.finish(*truth);
        }
    }

    /// Every span passes here: where faults are injected, and where it is kept for its process's next flush.
    fn push_span(&mut self, process: usize, truth: &mut RequestTruth, number: u64, mut span: Span, witness: Witness) {
        if let Some(faults) = &self.faults {
            let service = self.processes[process].service;
            let fault = &mut self.open.entry(number).or_default().fault;
            match faults.span(fault, number, &mut span, (&witness, truth), service) {
                Telling::Once => {}
                Telling::Never => return,
                Telling::And(more) => self.keep_span(process, truth, number, *more, Witness::Other),
            }
        }
        self.keep_span(process, truth, number, span, witness);
    }

    fn keep_span(&mut self, process: usize, truth: &mut RequestTruth, number: u64, span: Span, witness: Witness) {
        truth.spans += 1;
        truth.lifecycle_spans += u32::from(Stage::of(&span.name).is_lifecycle());
        self.open.entry(number).or_default().outstanding += 1;
        self.seq += 1;
        let key = (span.end_time_unix_nano, self.seq);
        self.processes[process].spans.insert(key, Item { body: span, request: number, witness });
    }

    /// Every log passes here, likewise.
    fn push_log(
        &mut self,
        process: usize,
        (number, truth): (u64, &RequestTruth),
        scope: &'static str,
        mut log: LogRecord,
        witness: Witness,
    ) {
        if let (Some(faults), Some(payload)) = (&self.faults, record::payload(&mut log, &witness)) {
            let fault = &mut self.open.entry(number).or_default().fault;
            match faults.end(fault, number, payload, (&witness, truth)) {
                Telling::Once => {}
                Telling::Never => return,
                Telling::And(more) => {
                    let mut again = log.clone();
                    if let Some(payload) = record::payload(&mut again, &witness) {
                        *payload = more;
                    }
                    self.keep_log(process, number, scope, again, Witness::Other);
                }
            }
        }
        self.keep_log(process, number, scope, log, witness);
    }

    fn keep_log(&mut self, process: usize, number: u64, scope: &'static str, log: LogRecord, witness: Witness) {
        self.open.entry(number).or_default().outstanding += 1;
        self.seq += 1;
        let key = (log.observed_time_unix_nano, self.seq);
        self.processes[process].logs.insert(key, Item { body: (scope, log), request: number, witness });
    }

    /// The common attributes of lifecycle spans (spec §2).
    fn common(&self, process: usize, ident: &Ident, who: Who<'_>) -> [KeyValue; 10] {
        let process = &self.processes[process];
        [
            span::text("dynamo.request.id", ident.request_id.as_str()),
            span::text("dynamo.operation.id", who.operation),
            span::text("dynamo.operation.role", who.role),
            span::text("dynamo.lifecycle.schema", "v1"),
            span::text("dynamo.lifecycle.profile", "generic.v1"),
            span::text("dynamo.lifecycle.mode", self.mode.word()),
            span::text("dynamo.component", who.component),
            span::text("dynamo.instance.id", process.instance.as_str()),
            span::text("dynamo.process.epoch", process.epoch.as_str()),
            span::text("dynamo.lifecycle.identity.state", "complete"),
        ]
    }

    fn thread(&mut self, process: usize) -> i64 {
        let (first, last) = self.processes[process].threads;
        self.chance.between(first as u64, last as u64) as i64
    }

    fn investigates(&self) -> bool {
        self.mode == Mode::Investigation
    }
}

/// Who a lifecycle span says it is.
#[derive(Clone, Copy)]
struct Who<'a> {
    operation: &'a str,
    role: &'a str,
    component: &'a str,
}

/// The three more attributes of queue, selection, admission and dispatch spans (spec §2).
fn detail(attempt: u32, schema: &str) -> [KeyValue; 3] {
    [
        span::number("dynamo.request.attempt", attempt),
        span::text("dynamo.lifecycle.capture.state", "recorded"),
        span::text("dynamo.lifecycle.detail_schema", schema),
    ]
}

impl Process {
    fn resource(&self) -> Resource {
        Resource { attributes: vec![span::text("service.name", self.service)], ..Resource::default() }
    }
}

fn scope(name: &str) -> InstrumentationScope {
    InstrumentationScope { name: name.to_owned(), ..InstrumentationScope::default() }
}

fn period(signal: Signal) -> u64 {
    match signal {
        Signal::Traces => SPAN_FLUSH_NS,
        Signal::Logs => LOG_FLUSH_NS,
    }
}

fn ended<T>(buffer: &mut BTreeMap<(u64, u64), T>, now_ns: u64) -> Vec<T> {
    let later = buffer.split_off(&(now_ns + 1, 0));
    std::mem::replace(buffer, later).into_values().collect()
}

fn chunks<T>(items: Vec<T>) -> impl Iterator<Item = Vec<T>> {
    let mut items = items.into_iter().peekable();
    std::iter::from_fn(move || items.peek().is_some().then(|| items.by_ref().take(BATCH).collect()))
}
