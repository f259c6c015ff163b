//! Asking a request whether a filter means it, and how much of that is done at once.
//!
//! A filter may have as many terms as four thousand bytes hold, and a request as many spans as a trace: how many requests are
//! asked between two frames goes by the work that they are. It is counted, not timed, so that the same filter of the
//! same requests always comes in the same slices.

use std::cell::OnceCell;

use crate::checks::{self, Answers};
use crate::lifecycle::request::RequestView;
use crate::query::{self, Lazy, Query};

/// How many requests are asked in one slice when their facts are enough.
const REQUESTS: usize = 4_000;

/// What asking costs when spans must be read, as a number of requests that are asked by their facts.
const READING: usize = 2;

/// What taking a request in costs.
const JOINING: usize = 10;

/// How much is looked at in one slice: a look is a comparison with what a span says, a tenth of a microsecond;
/// a key is answered after two slices.
const LOOKS: usize = 160_000;

/// Facts that one look's time is enough for.
const FACTS_A_LOOK: usize = 2;

/// What a request says without its spans, as a number of spans.
const WITHOUT_SPANS: usize = 10;

/// A request as filters ask it: its spans when they are wanted, and what the checks say of it.
pub(super) struct Asking<'a, F> {
    make: F,
    view: OnceCell<Option<RequestView<'a>>>,
    answers: Option<&'a Answers>,
}

impl<'a, F: Fn() -> Option<RequestView<'a>>> Asking<'a, F> {
    /// `make` is called at most once.
    pub(super) fn new(make: F, answers: Option<&'a Answers>) -> Self {
        Self { make, view: OnceCell::new(), answers }
    }

    /// How much was looked at, at most.
    pub(super) fn looks(&self, query: &Query) -> usize {
        let cost = query.cost();
        let read = self.view.get().and_then(Option::as_ref);
        cost.facts / FACTS_A_LOOK + read.map_or(0, |view| cost.spans * (WITHOUT_SPANS + view.spans.len()))
    }
}

impl<'a, F: Fn() -> Option<RequestView<'a>>> Lazy for Asking<'a, F> {
    fn view(&self) -> Option<&RequestView<'_>> {
        self.view.get_or_init(&self.make).as_ref()
    }

    fn any_check(&self, wanted: &mut dyn FnMut(&str, query::Answer) -> bool) -> bool {
        let said = |answer| match answer {
            checks::Answer::Holds => query::Answer::Holds,
            checks::Answer::Violated => query::Answer::Violated,
            checks::Answer::Unknown(_) => query::Answer::Unknown,
        };
        self.answers.is_some_and(|answers| answers.iter().any(|(check, answer)| wanted(check.check().id, said(answer))))
    }
}

/// What came of asking a request.
#[derive(Clone, Copy, Default)]
pub(super) struct Asked {
    /// Whether it is meant.
    pub(super) is_meant: bool,
    /// How much was looked at.
    pub(super) looks: usize,
}

/// What is left of the work of one slice.
pub(super) struct Slice {
    requests: usize,
    looks: usize,
    each: usize,
}

impl Slice {
    /// A whole one.
    pub(super) fn of(query: &Query) -> Self {
        Self { requests: REQUESTS, looks: LOOKS, each: if query.needs_spans() { READING } else { 1 } }
    }

    /// Pays for a request that was asked.
    pub(super) fn pay(&mut self, asked: Asked) {
        self.requests = self.requests.saturating_sub(if asked.is_meant { JOINING.max(self.each) } else { self.each });
        self.looks = self.looks.saturating_sub(asked.looks);
    }

    /// Whether nothing is left for another one.
    pub(super) fn is_spent(&self) -> bool {
        self.requests == 0 || self.is_long()
    }

    /// Whether the looks are used up.
    pub(super) fn is_long(&self) -> bool {
        self.looks == 0
    }
}
