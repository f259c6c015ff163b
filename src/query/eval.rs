//! Asking a request. Facts come first; spans and checks only when a term needs them and nothing else has decided.

use std::cell::OnceCell;
use std::slice;

use crate::lifecycle::body::Attrs;
use crate::lifecycle::catalogue::Field;
use crate::lifecycle::facts::{Facts, Leg, Marks};
use crate::lifecycle::ids::{TraceId, Worker};
use crate::lifecycle::packed::Value;
use crate::lifecycle::request::{RequestView, SpanView};

use super::fields::{Get, Of, Target};
use super::number::{Interval, Measure};
use super::term::{AttributeTest, Op, Term, Test};
use super::text::{Needle, Pattern, Small, fold, fold_word};
use super::{Expr, Node, Query};

/// What a check says of a request.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Answer {
    /// It holds.
    Holds,
    /// It is violated.
    Violated,
    /// It cannot be told; never a pass.
    Unknown,
}

impl Answer {
    /// All, in the order they are offered.
    pub const ALL: [Self; 3] = [Self::Violated, Self::Unknown, Self::Holds];

    /// The word filtered by.
    pub fn word(self) -> &'static str {
        match self {
            Self::Holds => "holds",
            Self::Violated => "violated",
            Self::Unknown => "unknown",
        }
    }

    pub(super) fn of(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|answer| answer.word().eq_ignore_ascii_case(word))
    }
}

/// What a filter may ask of a request beside its facts. Asked only by terms that need it.
pub trait Lazy {
    /// The request with its spans; `None` when they are gone.
    fn view(&self) -> Option<&RequestView<'_>>;

    /// Whether any check's id and answer satisfy `wanted`.
    fn any_check(&self, wanted: &mut dyn FnMut(&str, Answer) -> bool) -> bool {
        let _ = wanted;
        false
    }
}

/// Nothing beside the facts.
impl Lazy for () {
    fn view(&self) -> Option<&RequestView<'_>> {
        None
    }
}

/// A view made when it is first asked for, and no checks.
pub struct OnDemand<'a, F> {
    make: F,
    view: OnceCell<Option<RequestView<'a>>>,
}

impl<'a, F: Fn() -> Option<RequestView<'a>>> OnDemand<'a, F> {
    /// `make` is called at most once.
    pub fn new(make: F) -> Self {
        Self { make, view: OnceCell::new() }
    }
}

impl<'a, F: Fn() -> Option<RequestView<'a>>> Lazy for OnDemand<'a, F> {
    fn view(&self) -> Option<&RequestView<'_>> {
        self.view.get_or_init(&self.make).as_ref()
    }
}

impl Query {
    /// Whether a request is meant.
    pub fn matches(&self, facts: &Facts, lazy: &dyn Lazy) -> bool {
        match &self.root {
            None => true,
            Some(root) => Subject { facts, legs: &facts.legs, lazy }.satisfies(root),
        }
    }
}

/// A request as it is asked: all its legs, or one within `leg(…)`.
#[derive(Clone, Copy)]
struct Subject<'a> {
    facts: &'a Facts,
    legs: &'a [Leg],
    lazy: &'a dyn Lazy,
}

impl Subject<'_> {
    fn satisfies(&self, node: &Node) -> bool {
        let cheap_first = |nodes: &[Node], decides: bool| {
            [false, true]
                .into_iter()
                .any(|lazy| nodes.iter().filter(|node| node.lazy == lazy).any(|node| self.satisfies(node) == decides))
        };
        match &node.expr {
            Expr::Term(term) => self.answers(term) != (term.op == Op::Differs),
            Expr::Text(needle) => self.mentions(needle),
            Expr::Not(inner) => !self.satisfies(inner),
            Expr::And(nodes) => !cheap_first(nodes, false),
            Expr::Or(nodes) => cheap_first(nodes, true),
            Expr::Leg(inner) => {
                self.legs.iter().any(|leg| Self { legs: slice::from_ref(leg), ..*self }.satisfies(inner))
            }
        }
    }

    /// Whether any value of the term's field passes its test.
    fn answers(&self, term: &Term) -> bool {
        let row = match &term.target {
            Target::Field(row) => row,
            Target::Evidence(row) => return self.any_value(|_, field| field == row.field, &term.test),
            Target::Attribute(name) => return self.any_value(|key, _| key == &**name, &term.test),
        };
        let (facts, test) = (self.facts, &term.test);
        match row.get {
            Get::Text(get) | Get::Id(get) | Get::Words(_, get) => test.text(get(facts)),
            Get::Number(_, get) => get(facts).is_some_and(|number| test.number(number)),
            Get::Flag(get) => get(facts).is_some_and(|flag| test.flag(flag)),
            Get::LegText(get) | Get::LegWords(_, get) => self.legs.iter().any(|leg| test.text(get(leg))),
            Get::LegNumber(_, get) => self.legs.iter().filter_map(get).any(|number| test.number(number)),
            Get::LegFlag(get) => self.legs.iter().filter_map(get).any(|flag| test.flag(flag)),
            Get::LegWorker(get) => self.legs.iter().filter_map(get).any(|worker| test.worker(worker)),
            Get::Worker(get) => get(facts).is_some_and(|worker| test.worker(worker)),
            Get::Outcome => {
                test.text(facts.outcome_text()) || facts.outcome.is_some_and(|outcome| test.text(outcome.word()))
            }
            Get::Marks => facts.marks.words().any(|word| test.text(word)),
            Get::Trace => {
                facts.trace.is_some_and(|trace| test.trace(trace))
                    || (facts.marks.has(Marks::INFERRED_JOIN)
                        && self.any_span(|span| Some(span.trace) != facts.trace && test.trace(span.trace)))
            }
            Get::Checks => {
                let Test::Check(checks) = test else { return false };
                self.lazy.any_check(&mut |id, answer| {
                    checks.iter().any(|check| check.answer == answer && check.id.holds(id, fold))
                })
            }
            Get::Spans(of) => self.any_span(|span| match of {
                Of::Name => test.text(span.name),
                Of::Event => span.body.events().iter().any(|event| test.text(event.name)),
                Of::Service => test.text(span.resource.service()),
                Of::Host => test.text(span.resource.host()),
                Of::Status => test.text(span.body.status_message()),
            }),
        }
    }

    fn any_span(&self, holds: impl FnMut(&SpanView<'_>) -> bool) -> bool {
        self.lazy.view().is_some_and(|view| view.spans.iter().any(holds))
    }

    /// Whether the last value of a key passes in any span, event, resource or scope.
    fn any_value(&self, wanted: impl Fn(&str, Field) -> bool, test: &Test) -> bool {
        let Test::Attribute(measure, tests) = test else { return false };
        let passes = |value: Option<Value<'_>>| value.is_some_and(|value| attribute(value, *measure, tests));
        let last =
            |attrs: Attrs<'_>| passes(attrs.filter(|attr| wanted(attr.key, attr.field)).last().map(|attr| attr.value));
        let named = |(key, _): &(&str, Value<'_>)| wanted(key, Field::of(key));
        let Some(view) = self.lazy.view() else { return false };
        view.spans.iter().enumerate().any(|(index, span)| {
            let before = index.checked_sub(1).map(|before| &view.spans[before]);
            last(span.body.attrs())
                || span.body.events().iter().any(|event| last(event.attrs))
                || (before.is_none_or(|before| before.resource != span.resource)
                    && passes(span.resource.attrs().filter(named).last().map(|(_, value)| value)))
                || (before.is_none_or(|before| before.scope != span.scope)
                    && passes(span.scope.attrs().filter(named).last().map(|(_, value)| value)))
        })
    }

    /// Whether a text is part of anything that is said of the request.
    fn mentions(&self, needle: &Needle) -> bool {
        let facts = self.facts;
        let said = |text: &str| !text.is_empty() && needle.is_in(text);
        let ids = needle.in_ids;
        let names = |worker: Worker| {
            let id = worker.id;
            let forms = match worker.rank {
                Some(rank) => [Small::of(format_args!("{id}:{rank}")), Small::of(format_args!("{id:x}:{rank}"))],
                None => [Small::of(format_args!("{id}")), Small::of(format_args!("{id:x}"))],
            };
            forms.iter().any(|form| said(form.as_str())) || said(&worker.short())
        };
        [&facts.request_id, &facts.x_request_id, &facts.session_id].into_iter().any(|id| said(id))
            || [&facts.model, &facts.endpoint].into_iter().any(|text| said(text))
            || said(facts.outcome_text())
            || facts.outcome.is_some_and(|outcome| said(outcome.word()))
            || facts.trace.is_some_and(|trace| ids && said(Small::of(format_args!("{trace}")).as_str()))
            || self.legs.iter().any(|leg| {
                leg.queue.as_ref().is_some_and(|queue| said(&queue.reason) || said(&queue.class))
                    || leg.dispatch.as_ref().is_some_and(|dispatch| said(&dispatch.migration_reason))
                    || leg.worker().is_some_and(|worker| ids && names(worker))
            })
            || self.lazy.view().is_some_and(|view| {
                view.spans.iter().enumerate().any(|(index, span)| {
                    let before = index.checked_sub(1).map(|before| &view.spans[before]);
                    said(span.name)
                        || span.body.attrs().any(|attr| value_mentions(attr.value, needle))
                        || said(span.body.status_message())
                        || span.body.events().into_iter().any(|event| {
                            said(event.name) || event.attrs.into_iter().any(|attr| value_mentions(attr.value, needle))
                        })
                        || (before.is_none_or(|before| before.resource != span.resource)
                            && span.resource.attrs().any(|(_, value)| value_mentions(value, needle)))
                })
            })
    }
}

/// Gives `look` the value as a person reads it; only lists, maps, bytes and floating-point numbers are written out.
fn with_text(value: Value<'_>, look: impl FnOnce(&str) -> bool) -> bool {
    match value {
        Value::Str(text) => look(text),
        Value::Bool(flag) => look(if flag { "true" } else { "false" }),
        Value::Int(number) => look(Small::of(format_args!("{number}")).as_str()),
        Value::Empty => look("null"),
        Value::Double(_) | Value::Bytes(_) | Value::Array(_) | Value::Map(_) => look(&value.display()),
    }
}

fn value_mentions(value: Value<'_>, needle: &Needle) -> bool {
    with_text(value, |text| needle.is_in(text))
}

fn attribute(value: Value<'_>, measure: Measure, tests: &[AttributeTest]) -> bool {
    tests.iter().any(|test| {
        test.number.is_some_and(|interval| {
            // Ids above 2^53 are equal only as texts.
            let exact = |number: f64| interval != Interval::just(number) || number.abs() < 9e15;
            value.as_f64().map(|number| measure.scaled(number)).is_some_and(|n| exact(n) && interval.holds(n))
        }) || test.text.as_ref().is_some_and(|pattern| {
            matches!(pattern, Pattern::Any)
                || with_text(value, |text| pattern.holds(text, fold))
                || unsigned(value, pattern)
        })
    })
}

/// Some exporters put unsigned 64-bit ids into OTLP's signed integers (`lifecycle::packed`): both readings count.
fn unsigned(value: Value<'_>, pattern: &Pattern) -> bool {
    match value {
        Value::Int(number) if number < 0 => pattern.holds(Small::of(format_args!("{}", number as u64)).as_str(), fold),
        _ => false,
    }
}

impl Test {
    /// An empty text is one that is not said.
    #[inline]
    fn text(&self, text: &str) -> bool {
        !text.is_empty()
            && match self {
                Self::Text(patterns) => patterns.iter().any(|pattern| pattern.holds(text, fold)),
                Self::Words(patterns) => patterns.iter().any(|pattern| pattern.holds(text, fold_word)),
                _ => false,
            }
    }

    #[inline]
    fn number(&self, number: f64) -> bool {
        matches!(self, Self::Number(intervals) if intervals.iter().any(|interval| interval.holds(number)))
    }

    #[inline]
    fn flag(&self, flag: bool) -> bool {
        matches!(self, Self::Flag { yes, no } if if flag { *yes } else { *no })
    }

    #[inline]
    fn worker(&self, worker: Worker) -> bool {
        matches!(self, Self::Worker(tests) if tests.iter().any(|test| test.holds(worker)))
    }

    fn trace(&self, trace: TraceId) -> bool {
        let digits = || {
            trace
                .0
                .iter()
                .flat_map(|byte| [byte >> 4, byte & 15])
                .filter_map(|digit| char::from_digit(digit.into(), 16))
        };
        matches!(self, Self::Text(patterns) if patterns.iter().any(|pattern| pattern.holds_chars(digits())))
    }
}
