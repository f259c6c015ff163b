//! The outcomes line: how the requests held have ended, as their roots say, with a bar for each share.

use super::{Tone, format, outcome_sign, outcome_tone};
use crate::lifecycle::stage::Outcome;
use crate::store::Standing;

/// One outcome and how many requests have it.
#[derive(Clone, Debug, PartialEq)]
pub struct Count {
    /// The word shown.
    pub word: &'static str,
    /// Its sign.
    pub sign: &'static str,
    /// Its tone; dim when there are none.
    pub tone: Tone,
    /// How many.
    pub count: u64,
    /// The number as shown.
    pub text: String,
    /// Its share of all, from 0 to 1.
    pub share: f64,
    /// The term that filters for it.
    pub filter: String,
}

/// The six outcomes, then what has no root.
pub fn outcomes(standing: &Standing) -> Vec<Count> {
    let ended: u64 = standing.by_outcome.iter().sum();
    let row = |word: &'static str, sign, tone, count: u64, filter: String| Count {
        word,
        sign,
        tone: if count > 0 { tone } else { Tone::Dim },
        count,
        text: format::count(count),
        share: if ended > 0 { count as f64 / ended as f64 } else { 0.0 },
        filter,
    };
    let word = |outcome| if outcome == Outcome::TimedOut { "timed out" } else { Outcome::word(outcome) };
    Outcome::ALL
        .into_iter()
        .zip(standing.by_outcome)
        .map(|(outcome, count)| {
            let filter = format!("outcome:{}", outcome.word());
            row(word(outcome), outcome_sign(outcome), outcome_tone(outcome), count, filter)
        })
        .collect()
}
