//! How an answer is put together from many small expectations. One rule for what is absent, for all checks: see [`super`].

use super::case::{Case, Span};
use super::{Answer, CheckId, Finding, Level, Why};
use crate::lifecycle::catalogue::Field;
use crate::lifecycle::stage::Layout;

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
        case.missed.next();
        Self { case, check, findings, tested: false, violated: false, unknown: None }
    }

    /// Expects something of what is there, at the check's own level.
    pub fn expect(&mut self, span: Span<'_>, holds: bool, say: impl FnOnce() -> String) {
        self.expect_at(self.check.check().level, Some(span), holds, say);
    }

    /// Expects something of what is there, at a level of its own.
    pub fn expect_at(&mut self, level: Level, span: Option<Span<'_>>, holds: bool, say: impl FnOnce() -> String) {
        if self.case.missed.doubts(span.map(|span| span.at)) {
            return self.unknown(Why::Lost);
        }
        self.tested = true;
        if !holds {
            self.violated = true;
            self.find(level, span, say());
            self.case.missed.told();
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

    /// Whether a span says all of what is to be compared; else it cannot be told.
    pub fn compares(&mut self, span: Span<'_>, fields: &[Field]) -> bool {
        let says = fields.iter().all(|field| span.says(*field));
        if !says {
            self.unsaid();
        }
        says
    }

    /// What is to be compared was not recorded, or was dropped by its sender.
    pub fn unsaid(&mut self) {
        let lost = self.case.missed.lately();
        self.case.missed.told();
        self.unknown(if lost { Why::Lost } else { Why::Unsaid });
    }

    /// Expects what can be told one way or the other.
    pub fn expect_if_told(&mut self, span: Option<Span<'_>>, holds: Option<bool>, say: impl FnOnce() -> String) {
        match holds {
            Some(holds) => self.expect_at(self.check.check().level, span, holds, say),
            None => self.unsaid(),
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
    pub fn answer(mut self) -> Answer {
        if self.case.missed.lately() {
            self.unknown(Why::Lost);
        }
        match (self.violated, self.unknown, self.tested) {
            (true, ..) => Answer::Violated,
            (false, Some(why), _) => Answer::Unknown(why),
            (false, None, true) => Answer::Holds,
            (false, None, false) => Answer::Unknown(Why::NotHere),
        }
    }
}
