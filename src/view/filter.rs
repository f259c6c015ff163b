//! The filter of the screens: the filter language with the text it was typed as, and the words that data offers for
//! completion.
//!
//! An unfinished or wrong text never widens the list: the last filter that could be read stays until the next one can.
//! Keeps out: what the language means (`query`), the line it is typed in (`tui`).

use std::cmp::Reverse;
use std::collections::HashMap;

use super::data::Data;
use crate::lifecycle::body::Attr;
use crate::lifecycle::catalogue::Field;
use crate::lifecycle::facts::Leg;
use crate::lifecycle::request::RequestKey;
use crate::query::{self, Query, Vocabulary};

pub use crate::query::{Completion, Error};

/// A filter and its text.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Filter {
    text: String,
    query: Query,
}

impl Filter {
    /// Reads a filter.
    ///
    /// # Errors
    /// Where the text stops being a filter, and what was expected there.
    pub fn parse(text: &str) -> Result<Self, Error> {
        Ok(Self { query: Query::parse(text)?, text: text.trim().to_owned() })
    }

    /// Its text.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// What it asks.
    pub fn query(&self) -> &Query {
        &self.query
    }

    /// Whether it lets everything pass.
    pub fn is_empty(&self) -> bool {
        self.query.is_all()
    }

    /// Whether a request passes.
    pub fn matches(&self, key: RequestKey, data: &dyn Data) -> bool {
        data.matches(&self.query, key)
    }
}

/// The filter's text with a term added that asks for exactly this value of an attribute.
pub fn with_attribute(text: &str, key: &str, value: &str) -> String {
    query::append_term(text, query::Name::Attribute(key), query::Op::Is, value)
}

/// The filter's text with a term of the filter language added.
pub fn with_term(text: &str, term: &str) -> String {
    query::append(text, term)
}

/// The filter's text without its last term.
pub fn without_last(text: &str) -> String {
    query::drop_last_term(text)
}

/// The part of a text that can take effect while it is being typed: a last word that may still become a field's name
/// waits for its colon.
pub fn settled(text: &str) -> &str {
    let start = text.len() - text.chars().rev().take_while(|c| !c.is_whitespace()).map(char::len_utf8).sum::<usize>();
    let word = &text[start..];
    let may_become = |name: &str| name.starts_with(word);
    let unfinished = !word.is_empty()
        && query::ROWS.iter().any(|row| may_become(row.id) || row.aliases.iter().any(|a| may_become(a)));
    text[..if unfinished { start } else { text.len() }].trim_end()
}

/// What could be typed at `cursor` (bytes), at most `limit`; nothing while there is nothing to go by.
pub fn complete(text: &str, cursor: usize, data: &dyn Data, limit: usize) -> Vec<Completion> {
    let mut offers = query::complete(text, cursor, &DataWords(data));
    offers.retain(|offer| text.get(offer.replace.clone()) != Some(offer.text.as_str()));
    offers.truncate(limit);
    offers
}

/// The words of the newest requests.
struct DataWords<'a>(&'a dyn Data);

/// How many requests are looked at for the values of fields.
const LOOKED_AT: usize = 2_000;
/// How many are looked at with all their attributes.
const LOOKED_INTO: usize = 20;

impl DataWords<'_> {
    fn attrs(&self, mut see: impl FnMut(Attr<'_>)) {
        for (key, _) in self.0.newest().take(LOOKED_INTO) {
            for span in self.0.request(key).map(|request| request.spans).unwrap_or_default() {
                span.body.attrs().filter(|attr| attr.field == Field::Other).for_each(&mut see);
            }
        }
    }
}

/// Counts words; gives them most usual first.
#[derive(Default)]
struct Tally(HashMap<String, usize>);

impl Tally {
    fn add(&mut self, word: &str) {
        if word.is_empty() {
            return;
        }
        match self.0.get_mut(word) {
            Some(count) => *count += 1,
            None => _ = self.0.insert(word.to_owned(), 1),
        }
    }

    fn sorted(self) -> Vec<String> {
        let mut words: Vec<(String, usize)> = self.0.into_iter().collect();
        words.sort_by(|(left, more), (right, less)| Reverse(more).cmp(&Reverse(less)).then_with(|| left.cmp(right)));
        words.into_iter().map(|(word, _)| word).collect()
    }
}

impl Vocabulary for DataWords<'_> {
    fn values(&self, field: &str) -> Vec<String> {
        let mut tally = Tally::default();
        for (_, facts) in self.0.newest().take(LOOKED_AT) {
            let queues = || facts.legs.iter().filter_map(|leg| leg.queue.as_ref());
            let selections = || facts.legs.iter().filter_map(|leg| leg.selection.as_ref());
            match field {
                "session" if !facts.session_fallback => tally.add(&facts.session_id),
                "model" => tally.add(&facts.model),
                "endpoint" => tally.add(&facts.endpoint),
                "worker" => facts.legs.iter().filter_map(Leg::worker).for_each(|worker| tally.add(&worker.short())),
                "selected.worker" => {
                    selections().filter_map(|made| made.selected).for_each(|chosen| tally.add(&chosen.worker.short()));
                }
                "best.worker" => {
                    selections().filter_map(|made| made.best).for_each(|best| tally.add(&best.worker.short()));
                }
                "queue.class" => queues().for_each(|queue| tally.add(&queue.class)),
                "queue.policy" => queues().for_each(|queue| tally.add(&queue.policy)),
                "queue.reason" => queues().for_each(|queue| tally.add(&queue.reason)),
                "queue.outcome" => queues().for_each(|queue| tally.add(&queue.outcome)),
                _ => return Vec::new(),
            }
        }
        tally.sorted()
    }

    fn attributes(&self) -> Vec<String> {
        let mut tally = Tally::default();
        self.attrs(|attr| tally.add(attr.key));
        tally.sorted()
    }

    fn attribute_values(&self, key: &str) -> Vec<String> {
        let mut tally = Tally::default();
        self.attrs(|attr| {
            if attr.key == key {
                tally.add(attr.value.as_str().unwrap_or_default());
            }
        });
        tally.sorted()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::view::fixture::cluster;

    #[test]
    fn unfinished_texts_never_panic() {
        let data = cluster();
        for text in ["(", "[", "*", "\\", "{", "+", "\"", "a:\"", "outcome:", ":", "::", "é:\"x", " "] {
            let _ = Filter::parse(text);
            for cursor in 0..=text.len() {
                complete(text, cursor, &data, 9);
            }
        }
    }

    #[test]
    fn what_is_typed_waits_while_it_may_become_a_field() {
        let texts = ["x outc", "x outcome:", "x zq", ""];
        assert_eq!(texts.map(settled), ["x", "x outcome:", "x zq", ""]);
    }

    #[test]
    fn values_that_were_seen_are_offered_most_usual_first() {
        let data = cluster();
        let texts = |text: &str| complete(text, text.len(), &data, 3).into_iter().map(|c| c.text).collect::<Vec<_>>();
        assert_eq!(texts("worker:7"), ["7e00:0", "7f37:0"]);
        assert_eq!(texts("queue.reason:"), ["class_backlog", "prefill_capacity", "request_limit"]);
    }
}
