//! `reqtop check`: what every check says of the requests, as text, JSON, JUnit XML and annotations, and whether that passes.
//!
//! Owns: the verdict (levels, baseline, expectations) and its forms. Keeps out: the checks themselves.

use std::fmt::{self, Display, Write};

use serde::Serialize;

use crate::checks::load::{Class, Comparison, LoadList, compare};
use crate::checks::{ALL, Answer, CheckId, Level};
use crate::query::Query;
use crate::store::{Store, Violation};

/// The version of the JSON.
pub const SCHEMA: &str = "reqtop.check.v1";

/// The most violations of one check that are listed; all are counted.
const LISTED: usize = 1000;

/// What is asked beyond the checks themselves.
#[derive(Clone, Debug, Default)]
pub struct Rules {
    /// Ids or families (`queue`, `queue.reason`); empty for all.
    pub only: Vec<String>,
    /// Ids or families that do not count.
    pub skip: Vec<String>,
    /// Warnings fail too.
    pub strict: bool,
    /// Violations that are accepted.
    pub baseline: Vec<Accepted>,
    /// How many requests must match a filter.
    pub expectations: Vec<Expectation>,
    /// A load generator's list to compare with.
    pub load: Option<LoadList>,
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
        let lines = text.lines().enumerate().map(|(at, line)| (at + 1, line.trim()));
        lines
            .filter(|(_, line)| !line.is_empty() && !line.starts_with('#'))
            .map(|(at, line)| {
                let (check, text) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
                if CheckId::of(check).is_none() {
                    return Err(format!("line {at}: {check:?} is no check; `reqtop checks` lists them"));
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
    text: String,
    query: Query,
    least: u64,
    most: u64,
}

impl Expectation {
    /// Reads an expectation.
    ///
    /// # Errors
    /// Where it is no filter.
    pub fn read(text: &str) -> Result<Self, String> {
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
        let query = Query::parse(query).map_err(|error| error.to_string())?;
        Ok(Self { text: text.into(), query, least, most })
    }
}

/// One violation.
#[derive(Clone, Debug, Serialize)]
pub struct ViolationRow {
    /// `error` or `warning`.
    pub level: &'static str,
    /// The request.
    pub request_id: String,
    /// The trace of the span.
    pub trace_id: Option<String>,
    /// The span.
    pub span_id: Option<String>,
    /// What was seen and what was expected.
    pub message: String,
    /// Whether the baseline accepts it.
    pub accepted: bool,
}

/// One check over all requests.
#[derive(Clone, Debug, Serialize)]
pub struct CheckRow {
    /// Its id.
    pub id: &'static str,
    /// `E`, `W` or `–`.
    pub level: &'static str,
    /// What must hold.
    pub what: &'static str,
    /// Requests for which it holds.
    pub holds: u64,
    /// Requests that violate it.
    pub violated: u64,
    /// Requests for which it cannot be told.
    pub unknown: u64,
    /// The violations, at most a thousand.
    pub violations: Vec<ViolationRow>,
    /// Legal, and worth telling.
    pub notes: Vec<ViolationRow>,
}

/// How an expectation came out.
#[derive(Clone, Debug, Serialize)]
pub struct ExpectationRow {
    /// As written.
    pub expect: String,
    /// Requests that match.
    pub found: u64,
    /// Whether that is enough, and not too many.
    pub met: bool,
}

/// The comparison with a load generator.
#[derive(Clone, Debug, Serialize)]
pub struct LoadRows {
    /// Roots compared.
    pub roots: u64,
    /// Requests of other clients, set apart.
    pub others: u64,
    /// Successes whose tokens were compared.
    pub tokens_compared: u64,
    /// Per phase: both sides by outcome, and the named classes.
    pub phases: Vec<PhaseRow>,
    /// Contradictions, both sides in one sentence.
    pub disagreements: Vec<String>,
    /// Counts that differ: phase, outcome, client's, roots'.
    pub unequal: Vec<(String, String, u64, u64)>,
}

/// One benchmark phase.
#[derive(Clone, Debug, Serialize)]
pub struct PhaseRow {
    /// Its name.
    pub phase: String,
    /// The client's counts.
    pub client: std::collections::BTreeMap<String, u64>,
    /// The roots' counts.
    pub root: std::collections::BTreeMap<String, u64>,
    /// Named differences.
    pub classes: std::collections::BTreeMap<&'static str, u64>,
}

/// What `reqtop check` says.
#[derive(Clone, Debug, Serialize)]
pub struct CheckReport {
    /// [`SCHEMA`].
    pub schema: &'static str,
    /// Requests asked, evicted ones included.
    pub requests: u64,
    /// Whether it passes.
    pub passed: bool,
    /// Every check asked for.
    pub checks: Vec<CheckRow>,
    /// Every expectation.
    pub expectations: Vec<ExpectationRow>,
    /// The load generator's side.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub load: Option<LoadRows>,
}

fn named(list: &[String], id: &str) -> bool {
    let family = id.split('.').next().unwrap_or(id);
    list.iter().any(|name| name == id || name == family || name.strip_suffix(".*") == Some(family) || name == "*")
}

impl CheckReport {
    /// The report on a store whose checks have all been asked ([`Store::check_all`]).
    pub fn of(store: &Store, rules: &Rules) -> Self {
        let comparison = rules.load.as_ref().map(|list| compare(list, store.requests()));
        let wanted = |id: &str| (rules.only.is_empty() || named(&rules.only, id)) && !named(&rules.skip, id);
        let mut checks: Vec<CheckRow> = Vec::new();
        let mut place = vec![None; ALL.len()];
        for id in CheckId::all() {
            let check = id.check();
            if !wanted(check.id) {
                continue;
            }
            place[usize::from(id.0)] = Some(checks.len());
            let counts = store.checked().counts(id);
            checks.push(CheckRow {
                id: check.id,
                level: check.level.letter(),
                what: check.what,
                holds: counts.holds,
                violated: counts.violated,
                unknown: counts.unknown,
                violations: Vec::new(),
                notes: Vec::new(),
            });
        }
        for Violation { request_id, finding, key } in store.violations() {
            let Some(row) = place[usize::from(finding.check.0)].map(|at| &mut checks[at]) else { continue };
            let violated = store.answers(key).is_none_or(|answers| answers.of(finding.check) == Answer::Violated);
            let list = if violated && finding.level > Level::Note { &mut row.violations } else { &mut row.notes };
            if list.len() < LISTED {
                list.push(ViolationRow {
                    level: finding.level.word(),
                    request_id: request_id.to_string(),
                    trace_id: finding.trace.map(|id| id.to_string()),
                    span_id: finding.span.map(|id| id.to_string()),
                    accepted: rules.baseline.iter().any(|accepted| accepted.covers(row.id, &finding.message)),
                    message: finding.message.into(),
                });
            }
        }
        if let Some(comparison) = &comparison {
            count_load(&mut checks, comparison);
        }
        let expectations: Vec<ExpectationRow> =
            rules.expectations.iter().map(|expectation| expect(store, expectation)).collect();
        let fails = |row: &ViolationRow| !row.accepted && (row.level == "error" || rules.strict);
        let passed = expectations.iter().all(|row| row.met)
            && !checks.iter().flat_map(|check| &check.violations).any(fails)
            && comparison.as_ref().is_none_or(Comparison::agrees);
        let requests = checks.first().map_or(0, |row| row.holds + row.violated + row.unknown);
        Self { schema: SCHEMA, requests, passed, checks, expectations, load: comparison.as_ref().map(load_rows) }
    }

    /// As JSON, indented.
    pub fn to_json(&self) -> String {
        serde_json::to_string_pretty(self).unwrap_or_else(|error| format!("{{\"error\": \"{error}\"}}"))
    }

    /// As JUnit XML: a test case per check; a check that could be told for no request is skipped.
    pub fn to_junit(&self) -> String {
        let failed = self.checks.iter().filter(|check| check.violated > 0).count();
        let mut out = format!(
            "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuite name=\"reqtop check\" tests=\"{}\" failures=\"{failed}\">\n",
            self.checks.len() + self.expectations.len()
        );
        for check in &self.checks {
            let _ = write!(out, "  <testcase classname=\"reqtop\" name=\"{}\">", escaped(check.id));
            let rows: Vec<&ViolationRow> = check.violations.iter().filter(|row| !row.accepted).collect();
            if !rows.is_empty() {
                let text: Vec<&str> = rows.iter().map(|row| row.message.as_str()).collect();
                let _ = write!(
                    out,
                    "<failure message=\"{} of {} requests\">{}</failure>",
                    check.violated,
                    self.requests,
                    escaped(&text.join("\n"))
                );
            } else if check.holds == 0 {
                out.push_str("<skipped message=\"unknown for every request\"/>");
            }
            out.push_str("</testcase>\n");
        }
        for row in &self.expectations {
            let _ = write!(out, "  <testcase classname=\"reqtop.expect\" name=\"{}\">", escaped(&row.expect));
            if !row.met {
                let _ = write!(out, "<failure message=\"{} requests match\"/>", row.found);
            }
            out.push_str("</testcase>\n");
        }
        out.push_str("</testsuite>\n");
        out
    }

    /// As GitHub workflow annotations, a line each.
    pub fn to_github(&self) -> String {
        let one_line = |text: &str| text.replace('%', "%25").replace('\r', "%0D").replace('\n', "%0A");
        let mut out = String::new();
        for check in &self.checks {
            for row in check.violations.iter().filter(|row| !row.accepted) {
                let _ = writeln!(out, "::{} title={}::{}", row.level, check.id, one_line(&row.message));
            }
        }
        for row in self.expectations.iter().filter(|row| !row.met) {
            let _ = writeln!(out, "::error title=expectation::{} requests match {}", row.found, one_line(&row.expect));
        }
        for disagreement in self.load.iter().flat_map(|load| &load.disagreements) {
            let _ = writeln!(out, "::error title=load generator::{}", one_line(disagreement));
        }
        out
    }
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

fn expect(store: &Store, expectation: &Expectation) -> ExpectationRow {
    let found = store.requests().filter(|(key, _)| store.matches(&expectation.query, *key)).count() as u64;
    ExpectationRow {
        expect: expectation.text.clone(),
        found,
        met: (expectation.least..=expectation.most).contains(&found),
    }
}

/// `load.count` is a check on the whole run: it holds or is violated once.
fn count_load(checks: &mut [CheckRow], comparison: &Comparison) {
    let Some(row) = checks.iter_mut().find(|row| row.id == "load.count") else { return };
    let unequal = comparison.unequal_counts();
    (row.holds, row.violated, row.unknown) = if unequal.is_empty() { (1, 0, 0) } else { (0, 1, 0) };
    row.violations.extend(unequal.iter().map(|(phase, outcome, client, root)| ViolationRow {
        level: Level::Error.word(),
        request_id: String::new(),
        trace_id: None,
        span_id: None,
        message: format!("phase {phase:?}: the load generator counts {client} {outcome}, the roots {root}"),
        accepted: false,
    }));
}

fn load_rows(comparison: &Comparison) -> LoadRows {
    LoadRows {
        roots: comparison.roots,
        others: comparison.others.len() as u64,
        tokens_compared: comparison.tokens_compared,
        phases: comparison
            .phases
            .iter()
            .map(|(phase, counts)| PhaseRow {
                phase: phase.to_string(),
                client: counts.client.clone(),
                root: counts.root.clone(),
                classes: Class::ALL
                    .into_iter()
                    .filter_map(|class| Some((class.word(), *counts.classes.get(&class)?)))
                    .collect(),
            })
            .collect(),
        disagreements: comparison.disagreements.iter().map(|one| one.message.clone()).collect(),
        unequal: comparison
            .unequal_counts()
            .into_iter()
            .map(|(phase, outcome, client, root)| (phase.to_string(), outcome, client, root))
            .collect(),
    }
}

impl Display for CheckReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let width = self.checks.iter().map(|check| check.id.len()).max().unwrap_or(0);
        writeln!(f, "{:<width$}  lvl     holds  violated   unknown", "check")?;
        for check in &self.checks {
            writeln!(
                f,
                "{:<width$}  {:<3} {:>9} {:>9} {:>9}",
                check.id, check.level, check.holds, check.violated, check.unknown
            )?;
        }
        for check in &self.checks {
            for (sign, rows) in [("✕", &check.violations), ("·", &check.notes)] {
                for row in rows {
                    let accepted = if row.accepted { " (accepted)" } else { "" };
                    writeln!(f, "{sign} {} ({}){accepted}: {}", check.id, row.level, row.message)?;
                }
            }
        }
        for row in &self.expectations {
            let sign = if row.met { "✓" } else { "✕" };
            writeln!(f, "{sign} expected {}: {} requests match", row.expect, row.found)?;
        }
        if let Some(load) = &self.load {
            writeln!(
                f,
                "load generator: {} roots compared, {} of other clients, tokens of {} compared",
                load.roots, load.others, load.tokens_compared
            )?;
            for phase in &load.phases {
                writeln!(
                    f,
                    "  {}: client {:?}, roots {:?}, {:?}",
                    phase.phase, phase.client, phase.root, phase.classes
                )?;
            }
            load.disagreements.iter().try_for_each(|one| writeln!(f, "✕ {one}"))?;
        }
        let unknown: u64 = self.checks.iter().map(|check| check.unknown).sum();
        let holds: u64 = self.checks.iter().map(|check| check.holds).sum();
        let violated: u64 = self.checks.iter().map(|check| check.violated).sum();
        writeln!(
            f,
            "{}: {} requests; {holds} answers hold, {violated} violated, {unknown} unknown (never a pass)",
            if self.passed { "passed" } else { "failed" },
            self.requests
        )
    }
}

/// The catalogue, for `reqtop checks`.
pub mod catalogue {
    use std::fmt::Write;

    use crate::checks::ALL;

    /// As text.
    pub fn text() -> String {
        let mut out = String::new();
        for check in &ALL {
            let _ = writeln!(
                out,
                "{:<22} {}  {}\n{:25} {}",
                check.id,
                check.level.letter(),
                check.what,
                "",
                check.applies_to()
            );
        }
        out
    }

    /// As JSON.
    pub fn json() -> String {
        let rows: Vec<serde_json::Value> = ALL
            .iter()
            .map(|check| {
                serde_json::json!({
                    "id": check.id,
                    "level": check.level.letter(),
                    "what": check.what,
                    "layouts": check.layouts.iter().map(|layout| layout.word()).collect::<Vec<_>>(),
                    "modes": check.modes.iter().map(|mode| mode.word()).collect::<Vec<_>>(),
                })
            })
            .collect();
        serde_json::to_string_pretty(&rows).unwrap_or_default() + "\n"
    }

    /// As a Markdown table.
    pub fn markdown() -> String {
        let mut out = String::from("| id | level | what must hold | applies to |\n|---|---|---|---|\n");
        for check in &ALL {
            let what = check.what.replace('|', "\\|");
            let _ = writeln!(out, "| `{}` | {} | {what} | {} |", check.id, check.level.letter(), check.applies_to());
        }
        out
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
        assert!(read("outcome:(").is_err());
    }

    #[test]
    fn a_baseline_accepts_by_check_and_text() {
        let read = Accepted::read("# known\nqueue.reason request r1\nroot.unknown\n").unwrap();
        assert!(read[0].covers("queue.reason", "in request r1: …") && !read[0].covers("queue.reason", "request r2"));
        assert!(read[1].covers("root.unknown", "anything"));
        assert!(Accepted::read("no.check x").unwrap_err().contains("line 1"));
    }

    #[test]
    fn families_and_ids_name_checks() {
        let list = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
        assert!(named(&list(&["queue"]), "queue.reason") && named(&list(&["queue.*"]), "queue.reason"));
        assert!(!named(&list(&["queue.facts"]), "queue.reason") && named(&list(&["*"]), "a.b"));
    }
}
