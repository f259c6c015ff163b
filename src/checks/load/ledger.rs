//! A small JSON ledger for other load generators. Two forms, alone or together in one object:
//!
//! ```json
//! {"requests": [{"x_request_id": "a", "phase": "run", "code": 200, "prompt_tokens": 12, "completion_tokens": 3}],
//!  "results": {"unary": {"200": 14}, "abort": {"aborted": 3}, "completion": {"200": 5}, "session": {"200": 4}}}
//! ```
//!
//! `requests` lists what was sent, one by one: `code` is the HTTP status, or `error` a word (`aborted`, `timeout`,
//! `refused`, …). `results` counts by kind and result, as `dev-cluster/load.py` prints them: a status, `aborted`, a word
//! for a broken stream, an exception's name, which begins with a capital. Of its kinds, `completion` makes no root and `session` is three requests.

use std::collections::BTreeMap;

use serde::Deserialize;

use super::{LoadRecord, Seen, Usage, clean};
use crate::lifecycle::stage::Outcome;

/// The outcomes of which a broken stream's root has one.
const BROKEN: [Outcome; 3] = [Outcome::Rejected, Outcome::TimedOut, Outcome::Failed];
/// What `load.py` says of a stream that broke.
const BROKEN_WORDS: [&str; 2] = ["stream error event", "stream error data"];
/// Turns of one `session` of `load.py`.
const TURNS: u64 = 3;

#[derive(Deserialize)]
struct Raw {
    #[serde(default)]
    requests: Vec<RawRequest>,
    #[serde(default)]
    results: BTreeMap<String, BTreeMap<String, u64>>,
}

#[derive(Deserialize)]
struct RawRequest {
    x_request_id: String,
    #[serde(default)]
    phase: String,
    #[serde(default)]
    code: Option<u16>,
    #[serde(default)]
    error: Option<String>,
    #[serde(default)]
    prompt_tokens: Option<u64>,
    #[serde(default)]
    completion_tokens: Option<u64>,
    #[serde(default)]
    cached_tokens: Option<u64>,
}

/// What a ledger says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ledger {
    /// Requests one by one; for [`super::compare`].
    pub records: Vec<LoadRecord>,
    /// Requests that must have a root, by outcome.
    pub counts: BTreeMap<&'static str, u64>,
    /// Streams that broke after HTTP 200: each root is rejected, timed out or failed.
    pub broken: u64,
    /// Errors of the client's own, such as a reset: the same, or no root at all.
    pub errors: u64,
    /// Requests to endpoints that make no root.
    pub without_root: u64,
    /// Turns that may have been answered before a conversation broke off: successes that are in no count.
    pub earlier_turns: u64,
}

/// Where the counts of roots leave what a ledger allows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unequal {
    /// The outcome.
    pub outcome: &'static str,
    /// The ledger's count.
    pub client: u64,
    /// Roots.
    pub root: u64,
}

impl Ledger {
    /// Whether it counts, rather than lists.
    pub fn has_counts(&self) -> bool {
        self.compares() || self.without_root > 0
    }

    /// Whether it counts requests that must have a root.
    pub fn compares(&self) -> bool {
        !self.counts.is_empty() || self.broken > 0 || self.errors > 0
    }

    /// Compares counts with the roots, in the order of [`Outcome::ALL`], then those that broken streams may have together.
    /// An aborted stream that had just ended is a success (a race).
    pub fn unequal(&self, roots: [u64; 6]) -> Vec<Unequal> {
        let of = |outcome: Outcome| self.counts.get(outcome.word()).copied().unwrap_or(0);
        let root = |outcome: Outcome| Outcome::ALL.iter().position(|other| *other == outcome).map_or(0, |at| roots[at]);
        let aborted = of(Outcome::Cancelled);
        // Successes that nobody counted: races, at most as many as aborted, and turns before the one that broke off.
        let more = root(Outcome::Success).saturating_sub(of(Outcome::Success));
        let (least_races, most_races) = (more.saturating_sub(self.earlier_turns).min(aborted), more.min(aborted));
        let uncounted = aborted.saturating_add(self.earlier_turns);
        let compare = |outcome: Outcome| {
            let (client, root) = (of(outcome), root(outcome));
            let (least, most) = match outcome {
                Outcome::Success => (client, client.saturating_add(uncounted)),
                Outcome::Cancelled => (aborted - most_races, aborted - least_races),
                Outcome::Unknown => (0, 0),
                _ => (client, client.saturating_add(self.broken).saturating_add(self.errors)),
            };
            (!(least..=most).contains(&root)).then_some(Unequal { outcome: outcome.word(), client, root })
        };
        let mut unequal: Vec<Unequal> = Outcome::ALL.into_iter().filter_map(compare).collect();
        let sum = |of: &dyn Fn(Outcome) -> u64| BROKEN.into_iter().map(of).fold(0, u64::saturating_add);
        let (client, root) = (sum(&of).saturating_add(self.broken), sum(&root));
        if !(client..=client.saturating_add(self.errors)).contains(&root) {
            unequal.push(Unequal { outcome: "rejected, timed_out, failed or broken", client, root });
        }
        unequal
    }
}

/// Reads a ledger.
///
/// # Errors
/// When it is no such object.
pub fn parse(text: &str) -> Result<Ledger, String> {
    let raw: Raw = serde_json::from_str(text.strip_prefix('\u{feff}').unwrap_or(text))
        .map_err(|error| format!("expected a ledger with \"requests\" or \"results\", {error}"))?;
    if raw.requests.is_empty() && raw.results.is_empty() {
        return Err("expected a ledger that lists \"requests\" or counts \"results\", found none of either".into());
    }
    let mut ledger = Ledger::default();
    for request in raw.requests {
        let seen = match (request.code, request.error.as_ref().filter(|error| !error.is_empty())) {
            (_, Some(error)) => match seen(error) {
                // Whatever the number, it was called an error.
                Seen::Success => Seen::Other(clean(error)),
                seen => seen,
            },
            (Some(code), None) => of_code(code),
            // Whoever says neither has not said how it ended: that is no success.
            (None, None) => {
                let id = clean(&request.x_request_id);
                return Err(format!("request {id:?}: expected \"code\", its HTTP status, or \"error\", found neither"));
            }
        };
        ledger.records.push(LoadRecord {
            x_request_id: clean(&request.x_request_id),
            phase: clean(&request.phase),
            seen,
            usage: Usage {
                prompt: request.prompt_tokens,
                completion: request.completion_tokens,
                cached: request.cached_tokens,
            },
            end_ns: None,
            ran_ns: None,
        });
    }
    for (kind, results) in raw.results {
        for (result, count) in results {
            ledger.count(&kind, &result, count)?;
        }
    }
    Ok(ledger)
}

impl Ledger {
    fn count(&mut self, kind: &str, result: &str, count: u64) -> Result<(), String> {
        if result.starts_with("skipped") {
            return Ok(());
        }
        if kind == "completion" {
            self.without_root = self.without_root.saturating_add(count);
            return Ok(());
        }
        let seen = seen(result);
        // A word that is not known would excuse as many roots as it counts.
        if matches!(&seen, Seen::Other(word) if !word.starts_with(char::is_uppercase)) {
            return Err(format!(
                "results of {:?}: expected an HTTP status, aborted, timeout, refused, {} or an exception's name, found {:?}",
                clean(kind),
                BROKEN_WORDS.join(", "),
                clean(result)
            ));
        }
        // A conversation goes on only after an answer.
        let turns = if kind == "session" && seen == Seen::Success { TURNS } else { 1 };
        let requests = count.saturating_mul(turns);
        if kind == "session" && seen != Seen::Success {
            self.earlier_turns = self.earlier_turns.saturating_add(count.saturating_mul(TURNS - 1));
        }
        match seen.outcome() {
            Some(outcome) => {
                let counted = self.counts.entry(outcome.word()).or_default();
                *counted = counted.saturating_add(requests);
            }
            None if seen == Seen::Refused => {}
            None if seen == Seen::Broken => self.broken = self.broken.saturating_add(requests),
            None => self.errors = self.errors.saturating_add(requests),
        }
        Ok(())
    }
}

fn of_code(code: u16) -> Seen {
    if (200..300).contains(&code) { Seen::Success } else { Seen::Code(code) }
}

fn seen(word: &str) -> Seen {
    if let Ok(code) = word.parse() {
        return of_code(code);
    }
    match word {
        "aborted" | "cancelled" => Seen::Cancelled,
        "timeout" | "TimeoutError" => Seen::ClientTimeout,
        "refused" | "ConnectionRefusedError" => Seen::Refused,
        broken if BROKEN_WORDS.contains(&broken) => Seen::Broken,
        other => Seen::Other(clean(other)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_counts_of_load_py_are_read() {
        let ledger = parse(
            r#"{"model":"m","seconds":1.5,"sent":30,"results":{"unary":{"200":10},"abort":{"aborted":3,"200":1},
            "invalid":{"400":2,"404":1},"completion":{"200":4},"session":{"200":2},"stream":{"stream error event":1}}}"#,
        )
        .unwrap();
        assert_eq!((ledger.without_root, ledger.broken), (4, 1));
        assert!(ledger.unequal([17, 3, 3, 1, 0, 0]).is_empty());
        // An abort that came too late.
        assert!(ledger.unequal([18, 2, 4, 0, 0, 0]).is_empty());
        let outcomes = |ledger: &Ledger, roots| -> Vec<_> {
            ledger.unequal(roots).into_iter().map(|unequal| (unequal.outcome, unequal.client, unequal.root)).collect()
        };
        assert_eq!(outcomes(&ledger, [17, 2, 4, 0, 0, 1]), [("cancelled", 3, 2), ("unknown", 0, 1)]);
        // A conversation that broke off may have had answers before; a race is one cancelled less.
        let broke = parse(r#"{"results":{"session":{"200":2,"503":1},"abort":{"aborted":3}}}"#).unwrap();
        for (roots, is_equal) in [
            ([6, 3, 1, 0, 0, 0], true),
            ([8, 3, 1, 0, 0, 0], true),
            ([9, 2, 1, 0, 0, 0], true),
            ([7, 2, 1, 0, 0, 0], true),
            ([9, 3, 1, 0, 0, 0], false),
            ([6, 2, 1, 0, 0, 0], false),
            ([5, 3, 1, 0, 0, 0], false),
        ] {
            assert_eq!(broke.unequal(roots).is_empty(), is_equal, "{roots:?}");
        }
        // A broken stream is one root, not none and not three.
        let together = "rejected, timed_out, failed or broken";
        assert_eq!(outcomes(&ledger, [17, 3, 3, 0, 0, 0]), [(together, 4, 3)]);
        assert_eq!(outcomes(&ledger, [17, 3, 4, 1, 1, 0]), [(together, 4, 6)]);
        // A client's own error may have no root.
        let ledger = parse(r#"{"results":{"unary":{"200":2,"ConnectionResetError":2}}}"#).unwrap();
        assert_eq!((ledger.broken, ledger.errors), (0, 2));
        assert!([0, 1, 2].into_iter().all(|failed| ledger.unequal([2, 0, 0, 0, failed, 0]).is_empty()));
        assert_eq!(outcomes(&ledger, [2, 0, 1, 1, 1, 0]), [(together, 0, 3)]);
    }

    /// Keys of other tools are not guessed at.
    #[test]
    fn a_request_that_does_not_say_how_it_ended_is_no_success() {
        for bare in [r#""outcome":"cancelled","status":529"#, r#""code":null"#, r#""phase":"p""#] {
            let told = parse(&format!(r#"{{"requests":[{{"x_request_id":"a",{bare}}}]}}"#)).unwrap_err();
            assert!(told.contains("\"code\"") && told.contains("\"error\""), "{told}");
        }
    }

    /// A word that nobody knows would excuse whatever is missing.
    #[test]
    fn a_result_that_is_no_known_word_is_refused() {
        for word in ["completed", "ok", "", "success"] {
            let told = parse(&format!(r#"{{"results":{{"unary":{{"200":3,"{word}":5}}}}}}"#)).unwrap_err();
            assert!(told.contains("\"unary\"") && told.contains("aborted"), "{told}");
        }
        let requests = parse(
            r#"{"requests":[{"x_request_id":"a","error":"200"},{"x_request_id":"b","error":"","code":200},
            {"x_request_id":"c","error":"529"}]}"#,
        );
        let seen: Vec<_> = requests.unwrap().records.into_iter().map(|record| record.seen).collect();
        assert_eq!(seen, [Seen::Other("200".into()), Seen::Success, Seen::Code(529)]);
    }

    #[test]
    fn requests_one_by_one_are_read() {
        let ledger = parse(
            r#"{"requests":[{"x_request_id":"a","code":200,"completion_tokens":3},{"x_request_id":"b","code":529},
            {"x_request_id":"c","error":"aborted"},{"x_request_id":"d","error":"stream error data"}]}"#,
        )
        .unwrap();
        let seen: Vec<_> = ledger.records.iter().map(|record| record.seen.clone()).collect();
        assert_eq!(seen, [Seen::Success, Seen::Code(529), Seen::Cancelled, Seen::Broken]);
        let many = parse(r#"{"results":{"session":{"200":9223372036854775808,"X":18446744073709551615}}}"#).unwrap();
        assert!(many.counts["success"] == u64::MAX && many.has_counts() && many.unequal([0; 6]).len() == 1);
        assert_eq!(ledger.records[0].usage.completion, Some(3));
        assert!(parse("\u{feff}{\"results\":{\"unary\":{\"200\":1}}}").is_ok());
        assert!(parse("{}").unwrap_err().contains("found none of either"));
        assert!(parse("[").is_err());
    }
}
