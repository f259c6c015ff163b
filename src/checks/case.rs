//! A request as the checks ask it: every attribute read once, spans by stage, the way up the tree; and how an answer is
//! put together from many small expectations.

use std::cell::OnceCell;
use std::fmt::Display;

use super::around::Surroundings;
use super::{Answer, CheckId, Finding, Level, Moment, Why};
use crate::lifecycle::body::Attr;
use crate::lifecycle::catalogue::Field;
use crate::lifecycle::facts::{Facts, Leg, Marks, State};
use crate::lifecycle::ids::Worker;
use crate::lifecycle::packed::Value;
use crate::lifecycle::record::{Record, RecordBody, RequestEnd};
use crate::lifecycle::request::{Node, RequestView, SpanView, Up};
use crate::lifecycle::stage::{Layout, Outcome, Phase, Stage};

/// A request with what all checks read of it.
pub(super) struct Case<'a> {
    pub view: &'a RequestView<'a>,
    pub facts: &'a Facts,
    pub around: &'a dyn Surroundings,
    /// Whether what is missing now will not come any more.
    pub settled: bool,
    /// Whether spans are known to be lost that may be of this request.
    pub spans_lost: bool,
    /// Whether something of this request may be lost: spans that are known to be, or a parent that is named and not there.
    pub lost: bool,
    attrs: Vec<(Field, Value<'a>)>,
    /// Where the attributes of each span end in `attrs`, and how many it carries in all.
    ends: Vec<(u32, u32)>,
    /// Repeated keys, by span.
    pub repeats: Vec<Repeat<'a>>,
    /// The spans by stage, by index, and where each stage ends: asking for a stage costs what it has.
    by_stage: Vec<u32>,
    stage_ends: [u32; Stage::ALL.len()],
    /// For each span its place in the tree's reading order and that of the last one below it; made when first asked for.
    places: OnceCell<Vec<(u32, u32)>>,
    /// The spans of the lifecycle schema, by index.
    lifecycle: Vec<u32>,
    /// The frontend's dispatches, by index.
    dispatches: Vec<u32>,
}

/// A key that one span carries more than once.
pub(super) struct Repeat<'a> {
    pub at: u32,
    pub key: &'a str,
    pub times: usize,
}

/// Up to how many attributes of a span each is compared with those before it; beyond, they are sorted.
const FEW: usize = 64;

/// One span of a case.
#[derive(Clone, Copy)]
pub(super) struct Span<'c> {
    pub at: u32,
    pub view: &'c SpanView<'c>,
    /// How many attributes it carries.
    pub count: u32,
    attrs: &'c [(Field, Value<'c>)],
}

/// Where a way up the tree leads.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Way {
    /// To the stage looked for.
    There,
    /// To a top that is another.
    Elsewhere,
    /// To a parent that has not arrived.
    Broken,
}

impl<'a> Case<'a> {
    pub fn new(view: &'a RequestView<'a>, around: &'a dyn Surroundings, moment: Moment) -> Self {
        let spans_lost = around.spans_lost(view) || view.facts.marks.has(Marks::LATE_PART);
        let mut case = Self {
            view,
            facts: view.facts,
            around,
            settled: moment == Moment::Settled && is_over(view.facts),
            spans_lost,
            lost: spans_lost || view.facts.marks.has(Marks::MISSING_PARENT),
            attrs: Vec::with_capacity(view.spans.len() * 16),
            ends: Vec::with_capacity(view.spans.len()),
            repeats: Vec::new(),
            by_stage: (0..view.spans.len() as u32).collect(),
            stage_ends: [0; Stage::ALL.len()],
            places: OnceCell::new(),
            lifecycle: Vec::new(),
            dispatches: Vec::new(),
        };
        case.by_stage.sort_by_key(|at| view.spans[*at as usize].stage as u8);
        for (at, span) in view.spans.iter().enumerate() {
            case.stage_ends[span.stage as usize..].iter_mut().for_each(|end| *end += 1);
            if span.stage.is_lifecycle() {
                case.lifecycle.push(at as u32);
            }
            case.read(at as u32, span);
        }
        let dispatches = case.spans(Stage::Dispatch).filter(|span| !case.is_worker_side(*span));
        case.dispatches = dispatches.map(|span| span.at).collect();
        case
    }

    fn read(&mut self, at: u32, span: &'a SpanView<'a>) {
        let few = span.body.attrs().len() <= FEW;
        let mut repeated = !few;
        // A bit per hash of a key: only a key that may have come before is compared with the others.
        let mut seen = [0u64; 4];
        for (index, attr) in span.body.attrs().enumerate() {
            let Attr { field, key, value } = attr;
            let hash = sketch(key);
            let (word, bit) = ((hash >> 6 & 3) as usize, 1 << (hash & 63));
            repeated |= few && seen[word] & bit != 0 && span.body.attrs().take(index).any(|other| other.key == key);
            seen[word] |= bit;
            if !matches!(field, Field::Other | Field::Boilerplate) {
                self.attrs.push((field, value));
            }
        }
        self.ends.push((self.attrs.len() as u32, span.body.attrs().len() as u32));
        if repeated {
            let mut keys: Vec<&str> = span.body.attrs().map(|attr| attr.key).collect();
            keys.sort_unstable();
            let runs = keys.chunk_by(|one, other| one == other).filter(|run| run.len() > 1);
            self.repeats.extend(runs.map(|run| Repeat { at, key: run[0], times: run.len() }));
        }
    }

    /// The span at an index of the view.
    pub fn span(&self, at: u32) -> Span<'_> {
        let start = at.checked_sub(1).map_or(0, |before| self.ends[before as usize].0);
        let (end, count) = self.ends[at as usize];
        Span { at, view: &self.view.spans[at as usize], count, attrs: &self.attrs[start as usize..end as usize] }
    }

    /// Every span, by start.
    pub fn all(&self) -> impl Iterator<Item = Span<'_>> {
        (0..self.view.spans.len() as u32).map(|at| self.span(at))
    }

    /// The spans of a stage, by start.
    pub fn spans(&self, stage: Stage) -> impl Iterator<Item = Span<'_>> {
        let end = |stage: usize| self.stage_ends[stage] as usize;
        let start = (stage as usize).checked_sub(1).map_or(0, end);
        self.by_stage[start..end(stage as usize)].iter().map(|at| self.span(*at))
    }

    /// The spans of the lifecycle schema.
    pub fn lifecycle(&self) -> impl Iterator<Item = Span<'_>> {
        self.lifecycle.iter().map(|at| self.span(*at))
    }

    /// The root.
    pub fn root(&self) -> Option<Span<'_>> {
        self.spans(Stage::Root).next()
    }

    /// `request.dispatch` as the frontend writes it: one per attempt and leg.
    pub fn dispatches(&self) -> impl Iterator<Item = Span<'_>> {
        self.dispatches.iter().map(|at| self.span(*at))
    }

    /// Whether this `request.dispatch` is the base layout's, below a worker's operation.
    pub fn is_worker_side(&self, span: Span<'_>) -> bool {
        let plain = || !span.has(Field::DispatchPhase) && !span.has(Field::DispatchRoute);
        self.up(span).is_some_and(|above| above.view.stage == Stage::Operation)
            || (span.text(Field::Component) == "worker" && plain())
    }

    /// The parent, when it is part of this request.
    pub fn up(&self, span: Span<'_>) -> Option<Span<'_>> {
        if let Up::At(parent) = span.view.up { Some(self.span(parent)) } else { None }
    }

    /// Where the way up from a span leads when a span of `wanted` is looked for.
    pub fn way<'c>(&'c self, mut span: Span<'c>, wanted: impl Fn(Span<'c>) -> bool) -> Way {
        for _ in 0..=self.view.spans.len() {
            match span.view.up {
                Up::At(parent) => {
                    span = self.span(parent);
                    if wanted(span) {
                        return Way::There;
                    }
                }
                Up::Missing => return Way::Broken,
                Up::Top | Up::Elsewhere | Up::Cycle => return Way::Elsewhere,
            }
        }
        Way::Elsewhere
    }

    /// Whether a span stands below another.
    pub fn is_below(&self, span: Span<'_>, above: Span<'_>) -> bool {
        let places = self.places.get_or_init(|| {
            let mut places = vec![(0, 0); self.view.spans.len()];
            for (row, at) in self.view.tree().iter().zip(0..) {
                if let Node::Span(span) = row.node {
                    places[span as usize] = (at, at + row.below);
                }
            }
            places
        });
        let (from, to) = places[above.at as usize];
        let (at, _) = places[span.at as usize];
        from < at && at <= to
    }

    /// The phase that a dispatch serves: its own word, else what its leg's other spans tell (drafts name none); unknown
    /// where nothing does. A dispatch the facts have no leg of has its own word alone.
    pub fn phase(&self, dispatch: Span<'_>) -> Phase {
        if dispatch.has(Field::DispatchPhase) {
            return Phase::of(dispatch.text(Field::DispatchPhase));
        }
        let is_its = |leg: &&Leg| leg.dispatch.as_ref().is_some_and(|of_leg| of_leg.span == dispatch.view.id);
        self.facts.legs.iter().find(is_its).map_or(Phase::Unknown, |leg| leg.phase)
    }

    /// The spans of a stage with the same parent.
    pub fn siblings(&self, of: Span<'_>, stage: Stage) -> impl Iterator<Item = Span<'_>> {
        let (trace, parent, at) = (of.view.trace, of.view.parent, of.at);
        self.spans(stage).filter(move |span| {
            span.at != at && parent.is_some() && span.view.parent == parent && span.view.trace == trace
        })
    }

    /// The root's outcome, when it is one of the six.
    pub fn outcome(&self) -> Option<Outcome> {
        self.facts.outcome.filter(|_| self.facts.outcome_word.is_empty())
    }

    /// Whether the root says success.
    pub fn succeeded(&self) -> bool {
        self.outcome() == Some(Outcome::Success)
    }

    /// Its `request_end` records.
    pub fn ends(&self) -> impl Iterator<Item = (&Record, &RequestEnd)> {
        self.view.records.iter().filter_map(|record| match &record.body {
            RecordBody::End(end) => Some((*record, &**end)),
            _ => None,
        })
    }

    /// Whether its endpoint is one that makes a root; `None` when no endpoint is known.
    pub fn is_chat(&self) -> Option<bool> {
        (!self.facts.endpoint.is_empty()).then(|| self.facts.endpoint.contains("chat"))
    }
}

impl<'c> Span<'c> {
    /// The last value of a field.
    pub fn get(self, field: Field) -> Option<Value<'c>> {
        self.attrs.iter().rev().find(|(other, _)| *other == field).map(|(_, value)| *value)
    }

    /// The last text of a field; empty when absent or not text.
    pub fn text(self, field: Field) -> &'c str {
        self.get(field).and_then(Value::as_str).unwrap_or("")
    }

    /// The last whole number of a field.
    pub fn number(self, field: Field) -> Option<u64> {
        self.get(field).and_then(Value::as_u64)
    }

    /// The last count of a field.
    pub fn counted(self, field: Field) -> Option<u64> {
        self.get(field).and_then(Value::as_count)
    }

    /// The last number of a field.
    pub fn float(self, field: Field) -> Option<f64> {
        self.get(field).and_then(Value::as_f64)
    }

    /// The last truth value of a field.
    pub fn flag(self, field: Field) -> Option<bool> {
        self.get(field).and_then(Value::as_bool)
    }

    /// Whether a field is there with a value.
    pub fn has(self, field: Field) -> bool {
        self.get(field).is_some_and(|value| !matches!(value, Value::Empty | Value::Str("")))
    }

    /// The attempt it belongs to.
    pub fn attempt(self) -> u64 {
        self.number(Field::Attempt).unwrap_or(0)
    }

    /// A worker named by two fields.
    pub fn worker(self, id: Field, rank: Field) -> Option<Worker> {
        let rank = self.number(rank).and_then(|rank| u32::try_from(rank).ok());
        Some(Worker { id: self.number(id)?, rank })
    }

    /// The destination of a dispatch.
    pub fn destination(self) -> Option<Worker> {
        self.worker(Field::DestinationWorker, Field::DestinationRank)
    }

    /// The chosen one of a selection.
    pub fn selected(self) -> Option<Worker> {
        self.worker(Field::SelectedWorker, Field::SelectedRank)
    }

    /// The pool of a selection.
    pub fn pool(self) -> Phase {
        Phase::of(self.text(Field::Pool))
    }
}

/// Whether a request is over: ended or lost, or its `http-request` has come without the root that ends with it.
pub fn is_over(facts: &Facts) -> bool {
    facts.state != State::InFlight || facts.has_http
}

/// A rough hash of a key: equal keys have equal ones. Keys of one span differ at their ends.
fn sketch(key: &str) -> u32 {
    let bytes = key.as_bytes();
    let from_end = |back: usize| bytes.len().checked_sub(back).map_or(0, |at| u32::from(bytes[at]));
    let mixed = (bytes.len() as u32).wrapping_mul(131)
        ^ from_end(1).wrapping_mul(0x9e37)
        ^ from_end(2).wrapping_mul(0x85eb)
        ^ from_end(4).wrapping_mul(0xc2b2);
    mixed ^ mixed >> 8
}

/// A value as it stands in a sentence.
pub(super) fn said(value: Option<impl Display>) -> String {
    value.map_or_else(|| "nothing".to_owned(), |value| value.to_string())
}

/// A word as it stands in a sentence.
pub(super) fn word(word: &str) -> &str {
    if word.is_empty() { "nothing" } else { word }
}

/// A worker as it stands in a sentence: the whole id.
pub(super) fn named(worker: Option<Worker>) -> String {
    match worker {
        Some(Worker { id, rank: Some(rank) }) => format!("{id}:{rank}"),
        Some(Worker { id, rank: None }) => id.to_string(),
        None => "none".to_owned(),
    }
}

/// The same worker, as far as both name a rank.
pub(super) fn same_worker(one: Worker, other: Worker) -> bool {
    one.agrees(other)
}

/// An answer in the making: violated as soon as one expectation fails, holding when at least one was tested and nothing
/// is unknown.
pub(super) struct Asked<'c, 'a> {
    case: &'c Case<'a>,
    check: CheckId,
    findings: &'c mut Vec<Finding>,
    tested: bool,
    violated: bool,
    unknown: Option<Why>,
}

impl<'c, 'a> Asked<'c, 'a> {
    pub fn new(case: &'c Case<'a>, check: CheckId, findings: &'c mut Vec<Finding>) -> Self {
        Self { case, check, findings, tested: false, violated: false, unknown: None }
    }

    /// Expects something of what is there, at the check's own level.
    pub fn expect(&mut self, span: Span<'_>, holds: bool, say: impl FnOnce() -> String) {
        self.expect_at(self.check.check().level, Some(span), holds, say);
    }

    /// Expects something of what is there, at a level of its own.
    pub fn expect_at(&mut self, level: Level, span: Option<Span<'_>>, holds: bool, say: impl FnOnce() -> String) {
        self.tested = true;
        if !holds {
            self.violated = true;
            self.find(level, span, say());
        }
    }

    /// Expects something to be there. Missing is a violation only when nothing more will come and nothing is known lost.
    pub fn expect_there(&mut self, span: Option<Span<'_>>, there: bool, say: impl FnOnce() -> String) {
        if !there && !self.case.settled {
            self.unknown(Why::Arriving);
        } else if !there && self.case.lost {
            self.unknown(Why::Lost);
        } else {
            self.expect_at(self.check.check().level, span, there, say);
        }
    }

    /// Says why it cannot be told. The first reason stays.
    pub fn unknown(&mut self, why: Why) {
        self.unknown.get_or_insert(why);
    }

    /// Tells of something legal; `holds` then unless something else speaks against it.
    pub fn note(&mut self, span: Option<Span<'_>>, sentence: String) {
        self.find(Level::Note, span, sentence);
    }

    fn find(&mut self, level: Level, span: Option<Span<'_>>, sentence: String) {
        let facts = self.case.facts;
        let level = if facts.layout == Layout::Draft { level.min(Level::Warning) } else { level };
        let trace = span.map_or(facts.trace, |span| Some(span.view.trace));
        let of = super::named_of(facts, trace);
        let message = match span {
            Some(span) => format!("{of}: {} {} {sentence}", span.view.name, span.view.id),
            None => format!("{of}: {sentence}"),
        };
        let span = span.map(|span| span.view.id);
        self.findings.push(Finding { check: self.check, level, trace, span, message: message.into() });
    }

    /// What it comes to.
    pub fn answer(self) -> Answer {
        match (self.violated, self.unknown, self.tested) {
            (true, ..) => Answer::Violated,
            (false, Some(why), _) => Answer::Unknown(why),
            (false, None, true) => Answer::Holds,
            (false, None, false) => Answer::Unknown(Why::NotHere),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::around::Nothing;
    use super::super::fixture::Scene;
    use super::*;

    #[test]
    fn what_stands_below_a_span_is_what_leads_up_to_it() {
        for scene in [Scene::disaggregated(), Scene::migrated().lose("kv_router.schedule"), Scene::base()] {
            scene.with_view(|view| {
                let case = Case::new(view, &Nothing, Moment::Settled);
                for (one, other) in case.all().flat_map(|one| case.all().map(move |other| (one, other))) {
                    let leads = case.way(one, |above| above.at == other.at) == Way::There;
                    assert_eq!(case.is_below(one, other), leads, "{} {}", one.view.name, other.view.name);
                }
                for stage in Stage::ALL {
                    let of_stage = case.all().filter(|span| span.view.stage == stage).map(|span| span.at);
                    assert!(case.spans(stage).map(|span| span.at).eq(of_stage));
                }
            });
        }
    }
}
