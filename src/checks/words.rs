//! Values and workers as they stand in sentences, and comparisons that may not be possible.

use std::fmt::Display;

use crate::lifecycle::ids::Worker;
use crate::lifecycle::packed::Value;

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

/// The most characters of a value that is none that are repeated.
const MOST_SAID: usize = 40;

/// A value as it came, shortened.
pub(super) fn brief(value: Value<'_>) -> String {
    value.display().chars().take(MOST_SAID).collect()
}

/// Whether two are one worker; `None` when that cannot be told: only one of them names a rank.
pub(super) fn one_worker(one: Worker, other: Worker) -> Option<bool> {
    match (one.id == other.id, one.rank, other.rank) {
        (false, ..) => Some(false),
        (true, Some(rank), Some(its)) => Some(rank == its),
        (true, None, None) => Some(true),
        (true, ..) => None,
    }
}

/// Whether both hold; `None` when that depends on one that cannot be told.
pub(super) fn both(one: Option<bool>, other: Option<bool>) -> Option<bool> {
    match (one, other) {
        (Some(false), _) | (_, Some(false)) => Some(false),
        (Some(true), Some(true)) => Some(true),
        _ => None,
    }
}
