//! What is asked of a run beyond the checks themselves.
//!
//! Owns: which checks count and for which requests, the baseline, the expectations and how both are written. Keeps out: the
//! verdict on them.

use std::collections::BTreeSet;

use crate::checks::load::LoadList;
use crate::checks::load::ledger::Ledger;
use crate::checks::{Check, CheckId};
use crate::lifecycle::request::RequestKey;
use crate::query::Query;
use crate::store::Store;

/// So much of a word that is no check is repeated, characters.
const NAMED: usize = 60;

/// What is asked beyond the checks themselves.
#[derive(Clone, Debug, Default)]
pub struct Rules {
    /// Ids or families (`queue`, `queue.reason`); empty for all.
    pub only: Vec<String>,
    /// Ids or families that do not count.
    pub skip: Vec<String>,
    /// Only requests that match count.
    pub filter: Option<Query>,
    /// Warnings fail too.
    pub strict: bool,
    /// Violations that are accepted.
    pub baseline: Vec<Accepted>,
    /// How many requests must match a filter.
    pub expectations: Vec<Expectation>,
    /// A load generator's list, to compare request by request.
    pub load: Option<LoadList>,
    /// A load generator's counts, to compare with the roots'.
    pub ledger: Option<Ledger>,
}

/// An accepted violation: a check, and a text that its sentence must hold (empty for any).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Accepted {
    check: String,
    text: String,
}

impl Accepted {
    /// Reads a baseline: a line each, `check.id` or `check.id part of the sentence`; `#` starts a comment.
    ///
    /// # Errors
    /// A line whose first word is no check.
    pub fn read(text: &str) -> Result<Vec<Self>, String> {
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        let lines = text.lines().enumerate().map(|(at, line)| (at + 1, line.trim()));
        lines
            .filter(|(_, line)| !line.is_empty() && !line.starts_with('#'))
            .map(|(at, line)| {
                let (check, text) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
                if CheckId::of(check).is_none() {
                    let mut shown: String = check.chars().take(NAMED).collect();
                    if shown.len() < check.len() {
                        shown.push('…');
                    }
                    return Err(format!("line {at}: {shown:?} is no check; `reqtop checks` lists them"));
                }
                Ok(Self { check: check.into(), text: text.trim().into() })
            })
            .collect()
    }

    fn covers(&self, id: &str, message: &str) -> bool {
        self.check == id && message.contains(&self.text)
    }
}

/// `EXPR`, `EXPR>=N`, `EXPR<=N` or `EXPR==N`: how many requests must match; at least one when not said.
#[derive(Clone, Debug)]
pub struct Expectation {
    /// As written.
    pub(super) text: String,
    /// What must match.
    pub(super) query: Query,
    /// How many at least.
    pub(super) least: u64,
    /// How many at most.
    pub(super) most: u64,
}

impl Expectation {
    /// Reads an expectation.
    ///
    /// # Errors
    /// Where it is no filter; nothing at all, which is what a shell gives for a variable that is not set; or a bare word with
    /// a count behind it, which would search for the name of a field where its value was meant.
    pub fn read(text: &str) -> Result<Self, String> {
        if text.trim().is_empty() {
            return Err(
                "expected a filter such as outcome:success>=1, or >=1 for requests of any kind; found nothing".into()
            );
        }
        let counted = [">=", "<=", "=="].into_iter().find_map(|op| {
            let (query, count) = text.rsplit_once(op)?;
            Some((query, op, count.trim().parse::<u64>().ok()?))
        });
        let (query, least, most) = match counted {
            Some((query, ">=", count)) => (query, count, u64::MAX),
            Some((query, "<=", count)) => (query, 0, count),
            Some((query, _, count)) => (query, count, count),
            None => (text, 1, u64::MAX),
        };
        let written = query.trim_end();
        let query = Query::parse(query).map_err(|error| error.to_string())?;
        if counted.is_some()
            && let Some(word) = query.words().into_iter().find(|word| written.ends_with(word))
        {
            return Err(format!(
                "would count the requests in which the word {word} stands; to compare a field write the unit, then the \
                 count (as in ttft<=500ms>=1), to count a word quote it (\"{word}\">=1)"
            ));
        }
        Ok(Self { text: text.into(), query, least, most })
    }
}

fn named(list: &[String], id: &str) -> bool {
    let family = id.split('.').next().unwrap_or(id);
    list.iter().any(|name| name == id || name == family || name.strip_suffix(".*") == Some(family) || name == "*")
}

impl Rules {
    /// A name that names no check, with the option it stands in: whoever wrote it would ask less than was meant.
    pub fn unnamed(&self) -> Option<(&'static str, &str)> {
        let only = self.only.iter().map(|name| ("only", name));
        let skip = self.skip.iter().map(|name| ("skip", name));
        let is_unknown = |name: &String| !CheckId::all().any(|id| named(std::slice::from_ref(name), id.check().id));
        only.chain(skip).find(|(_, name)| is_unknown(name)).map(|(option, name)| (option, name.as_str()))
    }

    /// Whether a check is asked for.
    pub(super) fn wants(&self, check: &Check) -> bool {
        (self.only.is_empty() || named(&self.only, check.id)) && !named(&self.skip, check.id)
    }

    /// Whether the check of this id is asked for.
    pub(super) fn asks(&self, id: &str) -> bool {
        CheckId::of(id).is_some_and(|id| self.wants(id.check()))
    }

    /// Whether the baseline accepts this sentence of a check.
    pub(super) fn accepts(&self, id: &str, message: &str) -> bool {
        self.baseline.iter().any(|accepted| accepted.covers(id, message))
    }

    /// Whether any check is asked for.
    pub fn want_any(&self) -> bool {
        CheckId::all().any(|id| self.wants(id.check()))
    }

    /// The requests that count; `None` for all, also those that are gone.
    pub(super) fn scope(&self, store: &Store) -> Option<BTreeSet<RequestKey>> {
        let filter = self.filter.as_ref()?;
        Some(store.requests().map(|(key, _)| key).filter(|key| store.matches(filter, *key)).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn expectations_are_read_with_and_without_counts() {
        let read = |text: &str| Expectation::read(text).map(|e| (e.query.to_string(), e.least, e.most));
        assert_eq!(read("queue.outcome=rejected>=1").unwrap().1, 1);
        assert_eq!(read("outcome:failed==0").unwrap(), ("outcome:failed".into(), 0, 0));
        assert_eq!(read("outcome:failed<=2").unwrap().2, 2);
        assert_eq!(read("queue.wait>100ms").unwrap().1, 1);
        assert_eq!(read(">=3").unwrap(), (String::new(), 3, u64::MAX), "of any kind");
        assert!(read("outcome:(").is_err() && read(" ").is_err());
        for bare in ["ttft<=500", "tokens.out>=0", "margin == 0", "outcome:success total<=1", "zzz<=5", "(a or b)&c>=1"]
        {
            let refusal = read(bare).unwrap_err();
            assert!(refusal.starts_with("would count the requests in which the word"), "{bare}: {refusal}");
        }
        let written = [
            ("ttft<=500ms>=1", "ttft<=500ms"),
            ("\"zzz\"<=5", "\"zzz\""),
            ("zzz", "zzz"),
            ("zzz model:m>=2", "zzz model:m"),
        ];
        for (text, query) in written {
            assert_eq!(read(text).unwrap().0, query);
        }
    }

    #[test]
    fn a_baseline_accepts_by_check_and_text() {
        let read = Accepted::read("# known\nqueue.reason request r1\nroot.unknown\n").unwrap();
        assert!(read[0].covers("queue.reason", "in request r1: …") && !read[0].covers("queue.reason", "request r2"));
        assert!(read[1].covers("root.unknown", "anything"));
        assert!(Accepted::read("no.check x").unwrap_err().contains("line 1"));
        assert_eq!(Accepted::read("\u{feff}root.unknown\r\n").map(|read| read.len()), Ok(1), "a byte order mark");
        let long = Accepted::read(&"x".repeat(9000)).unwrap_err();
        assert!(long.len() < 200 && long.contains("xx…"), "{long}");
    }

    #[test]
    fn families_and_ids_name_checks() {
        let list = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
        assert!(named(&list(&["queue"]), "queue.reason") && named(&list(&["queue.*"]), "queue.reason"));
        assert!(!named(&list(&["queue.facts"]), "queue.reason") && named(&list(&["*"]), "a.b"));
    }
}
