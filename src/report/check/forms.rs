//! The verdict's forms: text, JSON, JUnit XML, GitHub annotations.

use std::fmt::{self, Display, Write};

use crate::lifecycle::text;
use crate::report::lines::Lines;
use crate::view::format;

use super::{CheckReport, CheckRow, ViolationRow};

/// A test case of JUnit.
enum Case {
    Passed,
    /// Could not be told, and why.
    Skipped(String),
    /// What failed, in short and at length.
    Failed(String, String),
}

impl CheckRow {
    fn unaccepted(&self) -> impl Iterator<Item = &ViolationRow> {
        self.violations.iter().filter(|row| !row.accepted)
    }
}

impl CheckReport {
    /// As JSON, indented.
    pub fn to_json(&self) -> String {
        serde_json::to_string_pretty(self).unwrap_or_else(|error| format!("{{\"error\": \"{error}\"}}"))
    }

    /// As JUnit XML: a test case per check and expectation; what fails here fails the run, and a check that could be told for
    /// no request is skipped.
    pub fn to_junit(&self) -> String {
        let mut cases: Vec<(&str, &str, Case)> = Vec::new();
        let told = lines(self.incomplete.iter().map(String::as_str));
        let input = match self.incomplete_fails {
            Some(whole) => Case::Failed(format!("not all of it could be asked, which fails {}", whole.words()), told),
            None if self.incomplete.is_empty() => Case::Passed,
            None => Case::Skipped(told),
        };
        cases.push(("reqtop", "input", input));
        for check in &self.checks {
            let case = if check.failing > 0 {
                Case::Failed(self.extent(check), lines(check.unaccepted().map(|row| row.message.as_str())))
            } else if check.holds == 0 && check.violated == 0 {
                let of = if check.is_of_run() { "the run" } else { "every request" };
                Case::Skipped(format!("unknown for {of}"))
            } else {
                Case::Passed
            };
            cases.push(("reqtop", check.id, case));
        }
        for row in &self.expectations {
            let case = if row.met {
                Case::Passed
            } else {
                Case::Failed(format!("{} requests match", row.found), String::new())
            };
            cases.push(("reqtop.expect", &row.expect, case));
        }
        let failed = cases.iter().filter(|(_, _, case)| matches!(case, Case::Failed(..))).count();
        let mut out = format!(
            "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuite name=\"reqtop check\" tests=\"{}\" failures=\"{failed}\">\n",
            cases.len()
        );
        for (class, name, case) in cases {
            let _ = write!(out, "  <testcase classname=\"{class}\" name=\"{}\">", escaped(name));
            match case {
                Case::Passed => {}
                Case::Skipped(why) => _ = write!(out, "<skipped message=\"{}\"/>", escaped(&why)),
                Case::Failed(message, text) => {
                    let _ = write!(out, "<failure message=\"{}\">{}</failure>", escaped(&message), escaped(&text));
                }
            }
            out.push_str("</testcase>\n");
        }
        out.push_str("</testsuite>\n");
        out
    }

    /// Of how much a check is violated.
    fn extent(&self, check: &CheckRow) -> String {
        if check.is_of_run() {
            return "of the whole run".into();
        }
        format!("{} of {} requests", check.violated, self.requests)
    }

    /// As GitHub workflow annotations, a line each.
    pub fn to_github(&self) -> String {
        let one_line = |text: &str| text::one_line(text).replace('%', "%25");
        let mut out = String::new();
        let level = if self.incomplete_fails.is_some() { "error" } else { "warning" };
        for sentence in &self.incomplete {
            let _ = writeln!(out, "::{level} title=input::{}", one_line(sentence));
        }
        for check in &self.checks {
            for row in check.unaccepted() {
                let _ = writeln!(out, "::{} title={}::{}", row.level, check.id, one_line(&row.message));
            }
        }
        for row in self.expectations.iter().filter(|row| !row.met) {
            let _ = writeln!(out, "::error title=expectation::{} requests match {}", row.found, one_line(&row.expect));
        }
        out
    }
}

/// Sentences, a line each.
fn lines<'a>(sentences: impl Iterator<Item = &'a str>) -> String {
    sentences.map(text::one_line).collect::<Vec<_>>().join("\n")
}

/// A text in XML, where some characters may not be at all (XML 1.0, 2.2).
fn escaped(text: &str) -> String {
    let allowed =
        |c: char| matches!(c, '\t' | '\n' | '\r' | ' '..='\u{d7ff}' | '\u{e000}'..='\u{fffd}' | '\u{10000}'..);
    let text: String = text.chars().map(|c| if allowed(c) { c } else { char::REPLACEMENT_CHARACTER }).collect();
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

impl Display for CheckReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let f = &mut Lines(f);
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
        let mark = match self.incomplete_fails {
            Some(whole) => format!("✕ not asked, which fails {}", whole.words()),
            None => "! not asked".to_owned(),
        };
        self.incomplete.iter().try_for_each(|sentence| writeln!(f, "{mark}: {sentence}"))?;
        if self.records_duplicate > 0 {
            let again = format::noun(self.records_duplicate, "record that came", "records that came");
            writeln!(f, "· {} {again} again byte for byte: each counts once", self.records_duplicate)?;
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
                    "  {}: client {:?}, roots {:?}, {:?}, {} without root",
                    phase.phase, phase.client, phase.root, phase.classes, phase.without_root
                )?;
            }
        }
        if let Some(ledger) = &self.ledger {
            writeln!(
                f,
                "load generator's counts: {:?}, {} broken, {} errors, {} without root; roots {:?}",
                ledger.client, ledger.broken, ledger.errors, ledger.without_root, ledger.root
            )?;
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
