//! One term: what it asks about and how its values are compared.

use std::ops::Range;

use super::Error;
use super::eval::Answer;
use super::fields::{Kind, Target};
use super::number::{Interval, Measure, number};
use super::text::{Pattern, fold, fold_word, nearest};
use super::worker::WorkerTest;

/// How a field is compared with values.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Op {
    /// `:` is one of them; ids by their beginning too.
    Is,
    /// `=` is one of them.
    Equals,
    /// `!=` is none of them.
    Differs,
    /// `<`
    Below,
    /// `<=`
    AtMost,
    /// `>`
    Above,
    /// `>=`
    AtLeast,
}

impl Op {
    /// All, the longer sign before its beginning.
    pub const ALL: [Self; 7] =
        [Self::Is, Self::Differs, Self::AtMost, Self::AtLeast, Self::Equals, Self::Below, Self::Above];

    /// As written.
    pub fn sign(self) -> &'static str {
        match self {
            Self::Is => ":",
            Self::Equals => "=",
            Self::Differs => "!=",
            Self::Below => "<",
            Self::AtMost => "<=",
            Self::Above => ">",
            Self::AtLeast => ">=",
        }
    }

    /// Whether it asks for more or less, and so for a number.
    pub(super) fn orders(self) -> bool {
        matches!(self, Self::Below | Self::AtMost | Self::Above | Self::AtLeast)
    }

    fn interval(self, number: f64) -> Interval {
        match self {
            Self::Is | Self::Equals | Self::Differs => Interval::just(number),
            Self::Below => Interval { high: number, without_high: true, ..Interval::ALL },
            Self::AtMost => Interval { high: number, ..Interval::ALL },
            Self::Above => Interval { low: number, without_low: true, ..Interval::ALL },
            Self::AtLeast => Interval { low: number, ..Interval::ALL },
        }
    }
}

/// A value as written.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Written {
    pub text: String,
    pub quoted: bool,
    /// Ends in a `*`.
    pub star: bool,
}

/// A field, compared.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Term {
    pub target: Target,
    pub op: Op,
    pub values: Vec<Written>,
    pub test: Test,
}

/// What a value must be: one of these.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Test {
    Text(Box<[Pattern]>),
    Words(Box<[Pattern]>),
    Number(Box<[Interval]>),
    Flag { yes: bool, no: bool },
    Worker(Box<[WorkerTest]>),
    Check(Box<[CheckTest]>),
    Attribute(Measure, Box<[AttributeTest]>),
}

/// A check and its answer.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct CheckTest {
    pub id: Pattern,
    pub answer: Answer,
}

/// What an attribute's value must be: such a text or such a number.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct AttributeTest {
    pub text: Option<Pattern>,
    pub number: Option<Interval>,
}

impl Term {
    /// A term of values and where each stands.
    pub fn new(target: Target, op: Op, values: Vec<(Written, Range<usize>)>) -> Result<Self, Error> {
        let kind = target.kind();
        if op.orders() {
            let [(value, span)] = &values[..] else {
                let span = values.first().map_or(0..0, |(_, span)| span.start..span.end);
                return Err(Error { span, message: format!("expected one value after {}, found several", op.sign()) });
            };
            if !matches!(kind, Kind::Number(_) | Kind::Attribute(_)) {
                let message = format!("this field is no number: expected : = or !=, found {}", op.sign());
                return Err(Error { span: span.clone(), message });
            }
            if value.star {
                return Err(Error {
                    span: span.clone(),
                    message: format!("expected a number after {}, found *", op.sign()),
                });
            }
        }
        let test = Test::new(kind, op, &values)?;
        Ok(Self { target, op, values: values.into_iter().map(|(value, _)| value).collect(), test })
    }
}

impl Test {
    fn new(kind: Kind, op: Op, values: &[(Written, Range<usize>)]) -> Result<Self, Error> {
        fn each<T>(
            values: &[(Written, Range<usize>)],
            read: impl Fn(&Written) -> Result<T, String>,
        ) -> Result<Box<[T]>, Error> {
            let read = |(value, span): &(Written, Range<usize>)| {
                read(value).map_err(|message| Error { span: span.clone(), message })
            };
            values.iter().map(read).collect()
        }
        Ok(match kind {
            Kind::Text => Self::Text(each(values, |value| pattern(value, fold))?),
            Kind::Id => Self::Text(each(values, |value| pattern(&id(value, op), fold))?),
            Kind::Words(words) => Self::Words(each(values, |value| word(value, words))?),
            Kind::Number(measure) => Self::Number(each(values, |value| interval(value, op, measure))?),
            Kind::Flag => {
                let flags = each(values, flag)?;
                Self::Flag {
                    yes: flags.iter().any(|flag| *flag != Some(false)),
                    no: flags.iter().any(|flag| *flag != Some(true)),
                }
            }
            Kind::Worker => Self::Worker(each(values, |value| WorkerTest::read(&value.text, value.star))?),
            Kind::Check => Self::Check(each(values, check)?),
            Kind::Attribute(measure) => Self::Attribute(measure, each(values, |value| attribute(value, op, measure))?),
        })
    }
}

fn pattern(value: &Written, folding: impl Fn(char) -> char) -> Result<Pattern, String> {
    if value.text.is_empty() && !value.star {
        return Err("expected a value, found an empty text: write -field:* where none is known".into());
    }
    Ok(Pattern::new(&value.text, value.star, folding))
}

/// An id of eight or more hex digits is also found by `:` when it goes on: screens show the first eight.
fn id(value: &Written, op: Op) -> Written {
    let hex = value.text.len() >= 8 && value.text.bytes().all(|byte| byte.is_ascii_hexdigit() || byte == b'-');
    Written { star: value.star || (op == Op::Is && hex), ..value.clone() }
}

fn word(value: &Written, words: fn() -> Vec<&'static str>) -> Result<Pattern, String> {
    if !value.quoted
        && !value.star
        && let known = words()
        && !known.iter().any(|word| word.chars().map(fold_word).eq(value.text.chars().map(fold_word)))
        && let Some(near) = nearest(&value.text, known.into_iter())
    {
        return Err(format!("did you mean {near}? Quote \"{}\" if not", value.text));
    }
    pattern(value, fold_word)
}

fn interval(value: &Written, op: Op, measure: Measure) -> Result<Interval, String> {
    match (value.star, op.orders()) {
        (true, _) if value.text.is_empty() => Ok(Interval::ALL),
        (true, _) => Err(format!("expected {}, found {:?} and a *", measure.unit.expected(), value.text)),
        (false, true) => Ok(op.interval(number(&value.text, measure)?)),
        (false, false) => not_empty(Interval::read(&value.text, measure)?, &value.text),
    }
}

/// A range that is upside down is a slip, not a filter of nothing.
fn not_empty(interval: Interval, text: &str) -> Result<Interval, String> {
    if interval.is_empty() {
        return Err(format!("the range {text} holds nothing: its lower end is not below its upper one"));
    }
    Ok(interval)
}

/// `None` is either.
fn flag(value: &Written) -> Result<Option<bool>, String> {
    if value.star && value.text.is_empty() {
        return Ok(None);
    }
    let is = |words: &[&str]| !value.star && words.iter().any(|word| word.eq_ignore_ascii_case(&value.text));
    if is(&["true", "yes"]) {
        Ok(Some(true))
    } else if is(&["false", "no"]) {
        Ok(Some(false))
    } else {
        Err(format!("expected true or false, found {:?}", value.text))
    }
}

fn check(value: &Written) -> Result<CheckTest, String> {
    if value.text.is_empty() && !value.star {
        return Err("expected violated, unknown, holds or a check's id, found an empty text".into());
    }
    if value.star {
        return Ok(CheckTest { id: Pattern::new(&value.text, true, fold), answer: Answer::Violated });
    }
    if let Some(answer) = Answer::of(&value.text) {
        return Ok(CheckTest { id: Pattern::Any, answer });
    }
    let (id, answer) = match value.text.split_once(':') {
        None => (value.text.as_str(), Answer::Violated),
        Some((id, word)) => {
            let unexpected = || format!("expected violated, unknown or holds after {id}:, found {word:?}");
            (id, Answer::of(word).ok_or_else(unexpected)?)
        }
    };
    Ok(CheckTest { id: Pattern::new(id, false, fold), answer })
}

fn attribute(value: &Written, op: Op, measure: Measure) -> Result<AttributeTest, String> {
    if op.orders() {
        return Ok(AttributeTest { text: None, number: Some(interval(value, op, measure)?) });
    }
    let text = Some(Pattern::new(&value.text, value.star, fold));
    if value.quoted || value.star {
        return Ok(AttributeTest { text, number: None });
    }
    // What is no number is a text.
    let number = Interval::read(&value.text, measure).ok().map(|read| not_empty(read, &value.text)).transpose()?;
    Ok(AttributeTest { text, number })
}
