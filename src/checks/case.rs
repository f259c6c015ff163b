//! A request as the checks ask it: every attribute read once, spans by stage, the way up the tree. How an answer is put
//! together is `asked`'s matter, how values stand in sentences and compare that of `words`.

use std::cell::OnceCell;

use super::around::Surroundings;
pub(super) use super::asked::Asked;
use super::missed::Missed;
pub(super) use super::words::{both, brief, named, one_worker, said, word};
use super::{Moment, Why};
use crate::lifecycle::body::Attr;
use crate::lifecycle::catalogue::{Field, Unit};
use crate::lifecycle::facts::{Facts, Leg, Marks, State};
use crate::lifecycle::ids::Worker;
use crate::lifecycle::packed::Value;
use crate::lifecycle::record::{Record, RecordBody, RequestEnd};
use crate::lifecycle::request::{Node, RequestView, SpanView, Up};
use crate::lifecycle::stage::{Outcome, Phase, Stage};

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
    /// What was looked for in vain where the sender dropped attributes.
    pub missed: Missed,
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
    /// The case's, when the sender dropped attributes of this span.
    missed: Option<&'c Missed>,
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
        let spans_lost = around.spans_lost(view) || view.facts.marks.is_part();
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
            missed: Missed::of(if view.spans.iter().any(dropped) { view.spans.len() } else { 0 }),
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
        let view = &self.view.spans[at as usize];
        let missed = (self.missed.watches() && dropped(view)).then_some(&self.missed);
        Span { at, view, count, attrs: &self.attrs[start as usize..end as usize], missed }
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
                // Above a frontend's `http-request` stands whoever called it, nothing of the request.
                Up::Missing if span.view.stage == Stage::Http => return Way::Elsewhere,
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

    /// The root's outcome, when it says one of the six.
    pub fn outcome(&self) -> Option<Outcome> {
        let said = || self.root().is_none_or(|root| root.has(Field::Outcome));
        self.facts.outcome.filter(|_| self.facts.outcome_word.is_empty() && said())
    }

    /// Why there is no outcome.
    pub fn no_outcome(&self) -> Why {
        if self.root().is_some() { Why::Unsaid } else { Why::NoRoot }
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
        let found = self.attrs.iter().rev().find(|(other, _)| *other == field).map(|(_, value)| *value);
        if let (None, Some(missed)) = (found, self.missed) {
            missed.note(self.at);
        }
        found
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

    /// Whether a field is there with a value of its kind. What is not is as good as absent (spec lifecycle-spans: an
    /// unknown value is unknown): who asks for the field complains, who compares it cannot tell.
    pub fn says(self, field: Field) -> bool {
        match field {
            Field::SelectedWorker | Field::BestWorker | Field::DestinationWorker | Field::RouteWorker => {
                self.number(field).is_some()
            }
            Field::DispatchPhase | Field::RoutePhase | Field::Pool => Phase::of(self.text(field)) != Phase::Unknown,
            _ => match field.row().map(|row| row.unit) {
                Some(Unit::Count | Unit::Bytes | Unit::Tokens) => self.counted(field).is_some(),
                Some(Unit::UnixNanos) => self.number(field).is_some(),
                Some(Unit::Cost | Unit::Millis) => self.float(field).is_some(),
                Some(Unit::Flag) => self.flag(field).is_some(),
                // Texts are written as texts, ids as numbers too.
                Some(Unit::Text) if matches!(field, Field::Mode | Field::DispatchRoute | Field::OperationId) => {
                    !self.text(field).is_empty()
                }
                Some(Unit::Text | Unit::Json) | None => self.has(field),
            },
        }
    }

    /// Those of some fields that it does not say, by name, with what came instead.
    pub fn unsaid(self, fields: &[(Field, &str)]) -> Vec<String> {
        let absent = fields.iter().filter(|(field, _)| !self.says(*field));
        absent
            .map(|(field, name)| match self.get(*field).filter(|_| self.has(*field)) {
                Some(value) => format!("{name} ({:?} is none)", brief(value)),
                None => (*name).to_owned(),
            })
            .collect()
    }

    /// The attempt it belongs to.
    pub fn attempt(self) -> u64 {
        self.number(Field::Attempt).unwrap_or(0)
    }

    /// A worker named by two fields; none where the rank is no rank.
    pub fn worker(self, id: Field, rank: Field) -> Option<Worker> {
        let rank = match self.number(rank).and_then(|rank| u32::try_from(rank).ok()) {
            None if self.has(rank) => return None,
            rank => rank,
        };
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

/// Whether the sender dropped attributes of a span.
fn dropped(span: &SpanView<'_>) -> bool {
    span.body.head().dropped[0] > 0
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
