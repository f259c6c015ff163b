//! The outcomes line: how the requests held have ended, as their roots say, with a bar for each share.

use super::{Tone, format, outcome_sign, outcome_tone, state_sign, state_tone};
use crate::lifecycle::facts::State;
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

/// The six outcomes, then whose root may be on its way, what ended without one and whose end is missing, where there are such; last how often a check
/// was violated.
pub fn outcomes(standing: &Standing, violations: u64) -> Vec<Count> {
    // What is in flight stands in the header; everything else stands here, once.
    let rootless = standing.without_root.saturating_sub(standing.in_flight + standing.ending + standing.lost);
    let ended = standing.by_outcome.iter().sum::<u64>() + standing.ending + rootless + standing.lost;
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
    let others = [(State::Ending, standing.ending), (State::Ended, rootless), (State::Lost, standing.lost)];
    let others = others.map(|(state, count)| {
        let word = state.rootless_word();
        // Dim would look as if there were none.
        let tone = if state == State::Ended { Tone::Plain } else { state_tone(state) };
        row(word, state_sign(state), tone, count, format!("outcome:\"{word}\""))
    });
    let violated = Count { share: 0.0, ..row("⚑", "⚑", Tone::Bad, violations, "check:*".into()) };
    Outcome::ALL
        .into_iter()
        .zip(standing.by_outcome)
        .map(|(outcome, count)| {
            let filter = format!("outcome:{}", outcome.word());
            row(word(outcome), outcome_sign(outcome), outcome_tone(outcome), count, filter)
        })
        .chain(others.into_iter().filter(|other| other.count > 0))
        .chain([violated])
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_request_is_counted_once_here_or_in_flight() {
        let standing =
            Standing { by_outcome: [3, 1, 0, 0, 0, 0], in_flight: 2, ending: 1, without_root: 5, lost: 1, total: 9 };
        let mut counts = outcomes(&standing, 7);
        assert_eq!(counts.pop().map(|count| (count.word, count.count, count.tone)), Some(("⚑", 7, Tone::Bad)));
        assert_eq!(counts.iter().map(|count| count.count).sum::<u64>() + standing.in_flight, standing.total);
        assert_eq!((counts[0].share, counts[2].tone), (3.0 / 7.0, Tone::Dim));
        assert_eq!(counts.last().map(|count| (count.word, count.count)), Some(("end missing", 1)));
    }
}
