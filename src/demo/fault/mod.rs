//! Faults on purpose: evidence that contradicts itself, told of a share of the requests, so that every check can be seen
//! to answer.
//!
//! Owns: the table of kinds (what each does, which checks must answer violated) and the choice of requests. A kind changes,
//! drops or repeats what a request's spans and records *say* where they pass into the exporters' buffers. Keeps out:
//! what happens in the cluster: with and without faults the same things happen, and the tally stays the truth.
//!
//! - A request has one fault at most, chosen by the seed and its number alone.
//! - A fault counts once it contradicts what else was told: one that its request never came to is no fault.

mod attempt;
mod record;
mod request;
mod router;

use opentelemetry_proto::tonic::common::v1::KeyValue;
use opentelemetry_proto::tonic::trace::v1::Span;
use serde_json::Value as Json;

use crate::lifecycle::stage::{Mode, Outcome, Stage};

use super::emit::span;
use super::ledger::{RequestTruth, Witness};
use super::sim::chance::mix;

/// Of the requests that a common kind is chosen for, one in so many gets it; a rare kind takes all it can.
const ONE_IN: u64 = 4;
/// What the choice draws from, so that it shifts nothing else that is drawn from the seed.
const PURPOSE: u64 = 0xfa17;

/// One kind of fault.
pub struct Kind {
    /// Its name on the command line.
    pub name: &'static str,
    /// What it does, in one line.
    pub what: &'static str,
    /// The checks that must answer violated, for each request that has it.
    pub checks: &'static [&'static str],
    /// Checks that it also violates on some requests, because it cannot be told otherwise.
    pub also: &'static [&'static str],
    /// The only mode it can be told in.
    pub mode: Option<Mode>,
    /// Whether it needs two pools.
    pub disaggregated: bool,
    /// Whether few requests come to it; each of those that it is chosen for gets it.
    pub rare: bool,
    edit: Edit,
}

/// How a kind falsifies what is told.
#[derive(Clone, Copy)]
enum Edit {
    Span(fn(&mut Span, &Scene<'_>) -> Effect),
    /// The payload of a `request_end` record.
    End(fn(&mut Json, &Scene<'_>) -> Effect),
}

/// What an edit did.
enum Effect {
    /// Nothing: this piece is not the one.
    None,
    /// A part of the fault, which contradicts nothing yet.
    Begun,
    /// The same, by not telling this piece.
    BegunUntold,
    /// The fault is there.
    Done,
    /// The fault is there, by not telling this piece.
    Untold,
    /// The fault is there, by telling this besides.
    And(Box<Span>),
    /// The fault is there, by telling the record twice.
    Twice,
}

/// What an edit may look at besides the piece itself.
struct Scene<'a> {
    witness: &'a Witness,
    truth: &'a RequestTruth,
    before: &'a Before,
    stage: Stage,
    /// The process serves prompts only.
    prefill: bool,
}

/// What was told of a request before.
#[derive(Clone, Debug, Default)]
struct Before {
    /// The first dispatch's time.
    dispatched: Option<(u64, u64)>,
    /// What the last dispatch answered.
    answer: &'static str,
    /// How the last wait ended.
    wait: &'static str,
    /// A worker was lost after it had admitted: spans of the request are missing, and what is missing is no finding.
    lost: bool,
    /// Lifecycle spans.
    lifecycle: u32,
    /// A part of the fault was told already.
    begun: bool,
}

impl Kind {
    const fn span(
        name: &'static str,
        what: &'static str,
        checks: &'static [&'static str],
        edit: fn(&mut Span, &Scene<'_>) -> Effect,
    ) -> Self {
        Self { name, what, checks, also: &[], mode: None, disaggregated: false, rare: false, edit: Edit::Span(edit) }
    }

    const fn end(
        name: &'static str,
        what: &'static str,
        checks: &'static [&'static str],
        edit: fn(&mut Json, &Scene<'_>) -> Effect,
    ) -> Self {
        Self { name, what, checks, also: &[], mode: None, disaggregated: false, rare: false, edit: Edit::End(edit) }
    }

    const fn also(mut self, checks: &'static [&'static str]) -> Self {
        self.also = checks;
        self
    }

    const fn rare(mut self) -> Self {
        self.rare = true;
        self
    }

    const fn only(mut self, mode: Mode) -> Self {
        self.mode = Some(mode);
        self
    }

    const fn disaggregated(mut self) -> Self {
        self.disaggregated = true;
        self
    }

    /// Every kind, by check family.
    pub fn all() -> impl Iterator<Item = &'static Self> {
        [&request::KINDS[..], &router::KINDS, &attempt::KINDS, &record::KINDS].into_iter().flatten()
    }

    /// The kind of this name.
    pub fn of(name: &str) -> Option<&'static Self> {
        Self::all().find(|kind| kind.name == name)
    }

    /// Whether it can be told in this mode and shape.
    pub fn fits(&self, mode: Mode, aggregated: bool) -> bool {
        self.mode.is_none_or(|only| only == mode) && !(self.disaggregated && aggregated)
    }

    /// The line that help prints: what it does and what must answer.
    pub fn line(&self) -> String {
        let only = match (self.mode, self.disaggregated) {
            (Some(mode), _) => format!(" ({} mode only)", mode.word()),
            (None, true) => " (not with --aggregated)".to_owned(),
            (None, false) => String::new(),
        };
        let also = if self.also.is_empty() { String::new() } else { format!(", at times {}", self.also.join(", ")) };
        format!("{}{only} → {}{also}", self.what, self.checks.join(", "))
    }
}

impl std::fmt::Debug for Kind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name)
    }
}

impl PartialEq for Kind {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

/// The kinds asked for, and whom they befall.
pub(super) struct Faults {
    kinds: Vec<&'static Kind>,
    seed: u64,
}

/// The fault of one request so far.
#[derive(Clone, Debug, Default)]
pub(super) struct Fault {
    before: Before,
    done: Option<&'static Kind>,
}

/// What becomes of a piece.
pub(super) enum Telling<T> {
    /// It is told.
    Once,
    /// It is not told.
    Never,
    /// This is told besides.
    And(T),
}

impl Fault {
    /// The fault that this request's evidence has.
    pub fn kind(&self) -> Option<&'static Kind> {
        self.done
    }
}

impl Faults {
    /// Nothing is chosen when no kind is asked for.
    pub fn new(kinds: &[&'static Kind], seed: u64) -> Self {
        Self { kinds: kinds.to_vec(), seed }
    }

    fn chosen(&self, number: u64) -> Option<&'static Kind> {
        let drawn = mix(self.seed ^ mix(number ^ PURPOSE));
        let kind = *self.kinds.get((drawn % self.kinds.len().max(1) as u64) as usize)?;
        (kind.rare || (drawn >> 32).is_multiple_of(ONE_IN)).then_some(kind)
    }

    /// A span of request `number` is about to be told.
    pub fn span(
        &self,
        fault: &mut Fault,
        number: u64,
        span: &mut Span,
        (witness, truth): (&Witness, &RequestTruth),
        service: &str,
    ) -> Telling<Box<Span>> {
        let Some(kind) = self.chosen(number) else { return Telling::Once };
        let stage = Stage::of(&span.name);
        let time = (span.start_time_unix_nano, span.end_time_unix_nano);
        let effect = match (fault.done, kind.edit) {
            (None, Edit::Span(edit)) => {
                let prefill = service == "dynamo-prefill";
                edit(span, &Scene { witness, truth, before: &fault.before, stage, prefill })
            }
            _ => Effect::None,
        };
        fault.before.note(witness, stage, time);
        match fault.take(kind, effect) {
            Effect::BegunUntold | Effect::Untold => Telling::Never,
            Effect::And(more) => Telling::And(more),
            _ => Telling::Once,
        }
    }

    /// A `request_end` record with this payload is about to be told.
    pub fn end(
        &self,
        fault: &mut Fault,
        number: u64,
        payload: &mut String,
        (witness, truth): (&Witness, &RequestTruth),
    ) -> Telling<String> {
        let Some(kind) = self.chosen(number) else { return Telling::Once };
        let (None, Edit::End(edit)) = (fault.done, kind.edit) else { return Telling::Once };
        let Ok(mut json) = serde_json::from_str(payload) else { return Telling::Once };
        let scene = Scene { witness, truth, before: &fault.before, stage: Stage::Other, prefill: false };
        let effect = edit(&mut json, &scene);
        match fault.take(kind, effect) {
            Effect::BegunUntold | Effect::Untold => Telling::Never,
            Effect::Twice => Telling::And(json.to_string()),
            Effect::Done | Effect::Begun => {
                *payload = json.to_string();
                Telling::Once
            }
            Effect::None | Effect::And(_) => Telling::Once,
        }
    }
}

impl Fault {
    fn take(&mut self, kind: &'static Kind, effect: Effect) -> Effect {
        match effect {
            Effect::None => {}
            Effect::Begun | Effect::BegunUntold => self.before.begun = true,
            Effect::Done | Effect::Untold | Effect::And(_) | Effect::Twice => self.done = Some(kind),
        }
        effect
    }
}

impl Before {
    fn note(&mut self, witness: &Witness, stage: Stage, time: (u64, u64)) {
        self.lifecycle += u32::from(stage.is_lifecycle());
        match witness {
            Witness::Dispatch { result, .. } => {
                self.dispatched.get_or_insert(time);
                self.answer = result;
            }
            Witness::Queue { outcome, .. } => self.wait = outcome,
            Witness::Route { outcome, .. } => self.lost |= *outcome == "worker_disconnected",
            _ => {}
        }
    }
}

impl Scene<'_> {
    /// The last span of a request of which a part of the fault was told.
    fn closes_begun(&self) -> bool {
        self.stage == Stage::Http && self.before.begun
    }

    /// The root of a request that ended so.
    fn is_root_of(&self, outcome: Outcome) -> bool {
        matches!(self.witness, Witness::Root { outcome: of, .. } if *of == outcome)
    }
}

/// Gives an attribute another value.
fn set(on: &mut Span, attribute: KeyValue) -> Effect {
    match on.attributes.iter_mut().rev().find(|other| other.key == attribute.key) {
        Some(there) => *there = attribute,
        None => on.attributes.push(attribute),
    }
    Effect::Done
}

/// Takes an attribute away.
fn remove(on: &mut Span, key: &str) -> Effect {
    let before = on.attributes.len();
    on.attributes.retain(|attribute| attribute.key != key);
    if on.attributes.len() < before { Effect::Done } else { Effect::None }
}

/// The last value of a text attribute.
fn text_of<'a>(on: &'a Span, key: &str) -> Option<&'a str> {
    use opentelemetry_proto::tonic::common::v1::any_value::Value;
    let attribute = on.attributes.iter().rev().find(|attribute| attribute.key == key)?;
    match attribute.value.as_ref()?.value.as_ref()? {
        Value::StringValue(text) => Some(text),
        _ => None,
    }
}

/// Adds to a number that is written as text.
fn add(on: &mut Span, key: &str, more: u64) -> Effect {
    let Some(number) = text_of(on, key).and_then(|text| text.parse::<u64>().ok()) else { return Effect::None };
    set(on, span::number(key, number.wrapping_add(more)))
}

/// An id that nothing else has, the same in every run.
fn another(id: &[u8]) -> Vec<u8> {
    let number = id.iter().fold(0, |sum: u64, byte| sum << 8 | u64::from(*byte));
    mix(number ^ PURPOSE).max(1).to_be_bytes().to_vec()
}

/// Whether this is one of them, as an edit's guard: nothing is done elsewhere.
macro_rules! only_if {
    ($holds:expr) => {
        if !$holds {
            return $crate::demo::fault::Effect::None;
        }
    };
}
use only_if;
