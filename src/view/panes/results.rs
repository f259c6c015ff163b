//! The results of attempts as columns of the dispatch pane: those that some layout documents, one column for all other
//! words, one for none. Keeps out: what stands in the cells (`dispatch`).

use std::collections::BTreeMap;

use super::{Known, terms};
use crate::lifecycle::stage::Phase;
use crate::store::rollup::Dispatches;
use crate::view::Tone;

/// How many of the first results of [`TITLES`] have a column even when there are none.
const RESULTS: usize = 3;

/// Results that some layout documents, with the titles of their columns.
const TITLES: [(&str, &str); 10] = [
    ("accepted", ">accepted"),
    ("cancelled", ">cancelled"),
    ("failed", ">failed"),
    ("success", ">success"),
    ("worker_disconnected", ">disconnected"),
    ("connection_failed", ">no connection"),
    ("timeout", ">timeout"),
    ("rejected", ">rejected"),
    ("unavailable", ">unavailable"),
    ("error", ">error"),
];

/// A column of the matrix.
#[derive(Clone, Copy)]
pub(super) enum Column {
    /// A documented result: its place in [`TITLES`].
    Known(usize),
    /// All words that no layout documents: a sender may make up as many as it likes.
    Other,
    /// Attempts without a result.
    Absent,
}

impl Column {
    pub(super) fn of(result: &str) -> Self {
        match TITLES.iter().position(|(word, _)| *word == result) {
            Some(at) => Self::Known(at),
            None if result.is_empty() => Self::Absent,
            None => Self::Other,
        }
    }

    /// Orders columns, and tells them apart.
    pub(super) fn place(self) -> usize {
        match self {
            Self::Known(at) => at,
            Self::Other => TITLES.len(),
            Self::Absent => TITLES.len() + 1,
        }
    }

    pub(super) fn title(self) -> &'static str {
        match self {
            Self::Known(at) => TITLES[at].1,
            Self::Other => ">other",
            Self::Absent => ">no result",
        }
    }

    pub(super) fn sign(self) -> &'static str {
        match self {
            Self::Known(at) => match TITLES[at].0 {
                "accepted" | "success" => "✓",
                "cancelled" => "↯",
                "failed" | "error" => "⚠",
                _ => "✕",
            },
            Self::Other => "?",
            Self::Absent => "∅",
        }
    }

    pub(super) fn tone(self) -> Tone {
        match self {
            Self::Known(at) => result_tone(TITLES[at].0),
            Self::Other => Tone::Plain,
            Self::Absent => Tone::Warn,
        }
    }

    /// The legs of an attempt that it counts.
    pub(super) fn term(self) -> String {
        match self {
            Self::Known(at) => terms::is("dispatch.result", TITLES[at].0),
            Self::Other => format!("dispatch.result:* -dispatch.result:{}", TITLES.map(|(word, _)| word).join(",")),
            Self::Absent => "dispatch.time:* -dispatch.result:*".into(),
        }
    }
}

/// Counts by phase and column, over all attempt numbers.
pub(super) fn by_column(of: &Dispatches) -> BTreeMap<(Phase, usize), u64> {
    let mut counts = BTreeMap::new();
    for ((phase, result, _), count) in of.by_result.iter() {
        *counts.entry((*phase, Column::of(result).place())).or_default() += count;
    }
    counts
}

/// The columns of a matrix: the usual results where spans record them, then others that were seen, then none.
pub(super) fn columns(of: &Dispatches, known: &Known<'_, Dispatches>) -> Vec<Column> {
    let usual = if known.note.is_empty() { RESULTS } else { 0 };
    let mut seen: BTreeMap<usize, (Column, u64)> = BTreeMap::new();
    for ((_, result, _), count) in of.by_result.iter() {
        let column = Column::of(result);
        seen.entry(column.place()).or_insert((column, 0)).1 += count;
    }
    let mut others: Vec<(Column, u64)> = seen.into_values().filter(|(column, _)| column.place() >= usual).collect();
    let class = |column: Column| column.place().saturating_sub(TITLES.len() - 1);
    others.sort_by_key(|(column, count)| (class(*column), std::cmp::Reverse(*count)));
    (0..usual).map(Column::Known).chain(others.into_iter().map(|(column, _)| column)).collect()
}

pub(super) fn result_tone(result: &str) -> Tone {
    match result {
        "accepted" | "success" => Tone::Good,
        "cancelled" => Tone::Cancelled,
        "rejected" | "unavailable" => Tone::Rejected,
        "failed" | "error" | "worker_disconnected" | "connection_failed" => Tone::Bad,
        "timeout" | "" => Tone::Warn,
        _ => Tone::Plain,
    }
}
