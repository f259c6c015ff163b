//! What a check looked for on a span whose sender dropped attributes: what is not there may have been, so what is
//! expected of it cannot be told (spec checks.md: dropped is unknown). `attr.limit` says that something was dropped.

use std::cell::Cell;

/// What was looked for in vain on such spans, for the check that is being asked.
pub(super) struct Missed {
    /// Which check is being asked; they are numbered from 1.
    asking: Cell<u32>,
    /// Whether anything was since the last expectation.
    lately: Cell<bool>,
    /// For each span the last check that missed something of it.
    by_span: Vec<Cell<u32>>,
}

impl Missed {
    /// Nothing yet, of so many spans; of none where no sender dropped anything.
    pub fn of(spans: usize) -> Self {
        Self { asking: Cell::new(0), lately: Cell::new(false), by_span: vec![Cell::new(0); spans] }
    }

    /// Whether there are spans whose sender dropped something.
    pub fn watches(&self) -> bool {
        !self.by_span.is_empty()
    }

    /// The next check is asked.
    pub fn next(&self) {
        self.asking.set(self.asking.get() + 1);
        self.lately.set(false);
    }

    /// An attribute is not on this span.
    pub fn note(&self, at: u32) {
        self.lately.set(true);
        if let Some(span) = self.by_span.get(at as usize) {
            span.set(self.asking.get());
        }
    }

    /// Whether an expectation of this span cannot be told: something of it was missed, or of any span it is compared with
    /// since the last one.
    pub fn doubts(&self, at: Option<u32>) -> bool {
        let span = at.and_then(|at| self.by_span.get(at as usize));
        self.lately.take() || span.is_some_and(|span| span.get() == self.asking.get())
    }

    /// Whether anything was missed that no expectation has answered for.
    pub fn lately(&self) -> bool {
        self.lately.get()
    }

    /// What was missed for a sentence is no reason to doubt.
    pub fn told(&self) {
        self.lately.set(false);
    }
}
