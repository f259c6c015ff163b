//! The filter of the screens: what is typed, what it means, what could follow. The one place where screens meet the
//! filter language.
//!
//! An unfinished or wrong text never widens the list: the last filter that could be read stays until the next one can.

use std::collections::HashMap;
use std::ops::Range;

use super::data::Data;
use crate::lifecycle::facts::Facts;
use crate::lifecycle::stage::{Outcome, Phase};

/// A filter that could be read.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Filter {
    text: String,
    terms: Vec<Term>,
}

#[derive(Clone, Debug, PartialEq)]
enum Term {
    Outcome(String),
    Worker(String),
    Phase(Phase),
    Session(String),
    Model(String),
    Text(String),
}

/// Why a text is no filter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// Where, in bytes from the start of the text.
    pub at: usize,
    /// What was expected and what came.
    pub message: String,
}

/// What could be typed at the cursor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Completion {
    /// The bytes of the text that it takes the place of.
    pub replaces: Range<usize>,
    /// What stands there then.
    pub text: String,
    /// What it means.
    pub hint: String,
}

/// The words that occur in the data, for completion.
pub trait Words {
    /// Values of a field (`worker`, `session`, `model`) that begin with `start`, most useful first, at most `limit`.
    fn values(&self, field: &str, start: &str, limit: usize) -> Vec<String>;
}

/// The words of the newest requests.
pub struct DataWords<'a>(pub &'a dyn Data);

/// How many requests are looked at for words.
const LOOKED_AT: usize = 2_000;

impl Words for DataWords<'_> {
    fn values(&self, field: &str, start: &str, limit: usize) -> Vec<String> {
        let mut counts: HashMap<String, usize> = HashMap::new();
        let mut add = |value: String| {
            if !value.is_empty() && value.starts_with(start) {
                *counts.entry(value).or_default() += 1;
            }
        };
        for (_, facts) in self.0.newest().take(LOOKED_AT) {
            match field {
                "worker" => facts.legs.iter().filter_map(|leg| leg.worker()).for_each(|worker| add(worker.short())),
                "session" if !facts.session_fallback => add(quoted(&facts.session_id)),
                "model" => add(quoted(&facts.model)),
                _ => {}
            }
        }
        let mut values: Vec<(String, usize)> = counts.into_iter().collect();
        values.sort_by(|(left, more), (right, less)| less.cmp(more).then_with(|| left.cmp(right)));
        values.into_iter().take(limit).map(|(value, _)| value).collect()
    }
}

/// A value as it must be written in a filter.
pub fn quoted(value: &str) -> String {
    if value.chars().any(|c| c.is_whitespace() || matches!(c, '"' | '\\')) {
        format!("\"{}\"", value.replace('\\', "\\\\").replace('"', "\\\""))
    } else {
        value.to_owned()
    }
}

/// The fields that can be asked for, with what they mean.
pub const FIELDS: [(&str, &str); 5] = [
    ("outcome", "how it ended, as the root says; or in_flight, no_root, lost"),
    ("worker", "a worker that any of its legs went to"),
    ("phase", "prefill, decode or aggregated"),
    ("session", "its session"),
    ("model", "the model asked for"),
];

const STANDINGS: [&str; 3] = ["in_flight", "no_root", "end_missing"];

impl Filter {
    /// Reads a filter. Terms stand side by side and must all hold.
    ///
    /// # Errors
    /// Where the text stops being a filter, and what was expected there.
    pub fn parse(text: &str) -> Result<Self, Problem> {
        let mut terms = Vec::new();
        for (at, word) in words(text) {
            let term = match word.split_once(':') {
                Some((field, value)) if !field.is_empty() => Self::term(at, field, value)?,
                _ => Term::Text(unquote(at, word)?.to_lowercase()),
            };
            terms.push(term);
        }
        Ok(Self { text: text.to_owned(), terms })
    }

    fn term(at: usize, field: &str, value: &str) -> Result<Term, Problem> {
        let value_at = at + field.len() + 1;
        let value = unquote(value_at, value)?;
        if value.is_empty() {
            return Err(Problem { at: value_at, message: format!("expected a value after {field}:") });
        }
        match field {
            "outcome" => {
                let known = Outcome::ALL.map(Outcome::word).into_iter().chain(STANDINGS);
                if known.clone().any(|word| word == value) {
                    return Ok(Term::Outcome(value));
                }
                let list = known.collect::<Vec<_>>().join(", ");
                Err(Problem { at: value_at, message: format!("expected one of {list}; found {value}") })
            }
            "phase" => match Phase::of(&value) {
                Phase::Unknown => {
                    let message = format!("expected prefill, decode or aggregated; found {value}");
                    Err(Problem { at: value_at, message })
                }
                phase => Ok(Term::Phase(phase)),
            },
            "worker" => Ok(Term::Worker(value)),
            "session" => Ok(Term::Session(value)),
            "model" => Ok(Term::Model(value)),
            _ => {
                let list = FIELDS.map(|(name, _)| name).join(", ");
                Err(Problem { at, message: format!("expected a field ({list}); found {field}") })
            }
        }
    }

    /// Its text.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Whether it lets everything pass.
    pub fn is_empty(&self) -> bool {
        self.terms.is_empty()
    }

    /// Whether a request passes.
    pub fn matches(&self, facts: &Facts) -> bool {
        self.terms.iter().all(|term| match term {
            Term::Outcome(word) => facts.outcome_text().replace(' ', "_") == *word,
            Term::Worker(name) => facts.legs.iter().filter_map(|leg| leg.worker()).any(|worker| worker.matches(name)),
            Term::Phase(phase) => facts.legs.iter().any(|leg| leg.phase == *phase),
            Term::Session(session) => facts.session_id.starts_with(session.as_str()),
            Term::Model(model) => facts.model.contains(model.as_str()),
            Term::Text(text) => {
                let fields = [&facts.request_id, &facts.x_request_id, &facts.session_id, &facts.model];
                fields.into_iter().any(|field| field.to_lowercase().contains(text.as_str()))
                    || facts.trace.is_some_and(|trace| trace.to_string().contains(text.as_str()))
                    || facts.reason().is_some_and(|reason| reason.contains(text.as_str()))
            }
        })
    }
}

/// The words of a text with their places; quotes keep spaces together.
fn words(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut at = 0;
    std::iter::from_fn(move || {
        at += text[at..].len() - text[at..].trim_start().len();
        let (start, mut quoted, mut escaped) = (at, false, false);
        for c in text[start..].chars() {
            if c.is_whitespace() && !quoted {
                break;
            }
            if c == '"' && !escaped {
                quoted = !quoted;
            }
            escaped = c == '\\' && !escaped;
            at += c.len_utf8();
        }
        (at > start).then(|| (start, &text[start..at]))
    })
}

fn unquote(at: usize, word: &str) -> Result<String, Problem> {
    let Some(rest) = word.strip_prefix('"') else { return Ok(word.to_owned()) };
    let mut out = String::new();
    let mut chars = rest.chars();
    while let Some(c) = chars.next() {
        match c {
            '"' => return Ok(out),
            '\\' => out.extend(chars.next()),
            _ => out.push(c),
        }
    }
    Err(Problem { at, message: "expected a closing quote (\")".into() })
}

/// Where the last word starts.
fn last_word(text: &str) -> usize {
    text.len() - text.chars().rev().take_while(|c| !c.is_whitespace()).map(char::len_utf8).sum::<usize>()
}

/// The part of a text that can take effect while it is being typed: a last word that may still become a field's name
/// waits for its colon.
pub fn settled(text: &str) -> &str {
    let start = last_word(text);
    let unfinished = !text[start..].is_empty() && FIELDS.iter().any(|(name, _)| name.starts_with(&text[start..]));
    text[..if unfinished { start } else { text.len() }].trim_end()
}

/// What could be typed at `cursor` (bytes), at most `limit`.
pub fn complete(text: &str, cursor: usize, data: &dyn Words, limit: usize) -> Vec<Completion> {
    let before = text.get(..cursor).unwrap_or(text);
    let start = last_word(before);
    let word = &before[start..];
    let replaces = start..before.len();
    let offer = |text: String, hint: &str| Completion { replaces: replaces.clone(), text, hint: hint.to_owned() };
    let mut offers: Vec<Completion> = match word.split_once(':') {
        None => FIELDS
            .iter()
            .filter(|(name, _)| name.starts_with(word))
            .map(|(name, hint)| offer(format!("{name}:"), hint))
            .collect(),
        Some(("outcome", value)) => Outcome::ALL
            .map(Outcome::word)
            .into_iter()
            .chain(STANDINGS)
            .filter(|known| known.starts_with(value))
            .map(|known| offer(format!("outcome:{known}"), ""))
            .collect(),
        Some(("phase", value)) => [Phase::Prefill, Phase::Decode, Phase::Aggregated]
            .into_iter()
            .filter(|phase| phase.word().starts_with(value))
            .map(|phase| offer(format!("phase:{}", phase.word()), ""))
            .collect(),
        Some((field, value)) => {
            data.values(field, value, limit).into_iter().map(|value| offer(format!("{field}:{value}"), "")).collect()
        }
    };
    offers.retain(|offer| offer.text != word);
    offers.truncate(limit);
    offers
}

#[cfg(test)]
mod tests {
    use super::*;

    struct None;

    impl Words for None {
        fn values(&self, field: &str, start: &str, _: usize) -> Vec<String> {
            ["7f3a:0", "7e01:0"]
                .into_iter()
                .filter(|v| field == "worker" && v.starts_with(start))
                .map(Into::into)
                .collect()
        }
    }

    #[test]
    fn unfinished_texts_say_what_they_lack_and_never_panic() {
        for text in ["(", "[", "*", "\\", "{", "+", "\"", "a:\"", "outcome:", ":", "::", "é:\"x", " "] {
            let _ = Filter::parse(text);
            for cursor in 0..=text.len() {
                complete(text, cursor, &None, 9);
            }
        }
        assert_eq!(Filter::parse("session:\"a b").unwrap_err().at, 8);
        assert!(Filter::parse("outcome:ok").unwrap_err().message.contains("success, cancelled"));
        assert_eq!(Filter::parse("x zzz:1").unwrap_err().at, 2);
    }

    #[test]
    fn completion_follows_the_cursor() {
        let texts = |text: &str| complete(text, text.len(), &None, 9).into_iter().map(|c| c.text).collect::<Vec<_>>();
        assert_eq!(texts("o"), ["outcome:"]);
        assert_eq!(texts("x outcome:c"), ["outcome:cancelled"]);
        assert_eq!(texts("worker:7"), ["worker:7f3a:0", "worker:7e01:0"]);
        assert_eq!(texts("phase:p"), ["phase:prefill"]);
        assert_eq!(["x outc", "x outcome:", "x q", ""].map(settled), ["x", "x outcome:", "x q", ""]);
    }
}
