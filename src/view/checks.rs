//! The checks: a row each with its three counts and the latest violation, and what they say of one request.
//!
//! Owns: wording and order. Keeps out: the checks, and asking them.

use std::fmt::Write;

use super::data::Data;
use super::{Tone, format};
use crate::checks::{Answer, CheckId, Level};
use crate::lifecycle::request::RequestKey;

/// A row of the checks pane.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    /// The check.
    pub id: &'static str,
    /// `E`, `W` or `–`.
    pub level: &'static str,
    /// What must hold.
    pub what: &'static str,
    /// How often it held.
    pub holds: String,
    /// How often it was violated.
    pub violated: String,
    /// How often it could not be told.
    pub unknown: String,
    /// The latest violation, in a sentence; empty without one.
    pub latest: String,
    /// Bad or odd when violated, dim while nothing is known.
    pub tone: Tone,
    /// The filter term that finds the requests that violate it.
    pub term: String,
}

/// Every check, in the order of the catalogue; the violated ones first when asked to.
pub fn rows(data: &dyn Data, violated_first: bool) -> Vec<Row> {
    let said = data.said();
    let mut rows: Vec<(bool, Row)> = CheckId::all()
        .map(|id| {
            let (check, counts) = (id.check(), said.counts(id));
            let tone = match (counts.violated > 0, check.level) {
                (true, Level::Error) => Tone::Bad,
                (true, _) => Tone::Warn,
                (false, _) if counts.holds > 0 => Tone::Good,
                _ => Tone::Dim,
            };
            let row = Row {
                id: check.id,
                level: check.level.letter(),
                what: check.what,
                holds: format::count(counts.holds),
                violated: format::count(counts.violated),
                unknown: format::count(counts.unknown),
                latest: said.latest(id).map_or_else(String::new, |latest| latest.finding.message.to_string()),
                tone,
                term: format!("check:{}", check.id),
            };
            (counts.violated > 0, row)
        })
        .collect();
    if violated_first {
        rows.sort_by_key(|(violated, _)| !violated);
    }
    rows.into_iter().map(|(_, row)| row).collect()
}

/// How many checks a request violates, and the tone of the worst; `None` while it has not been asked or none is.
pub fn flag(data: &dyn Data, key: RequestKey) -> Option<(usize, Tone)> {
    let answers = data.answers(key)?;
    let violated = answers.iter().filter(|(_, answer)| *answer == Answer::Violated).count();
    let tone = match answers.worst() {
        Some(Level::Error) => Tone::Bad,
        _ => Tone::Warn,
    };
    (violated > 0).then_some((violated, tone))
}

/// What every check says of one request, as a text to read: violations first, then what holds, then what is unknown and why.
pub fn of_request(data: &dyn Data, key: RequestKey) -> String {
    let Some(answers) = data.answers(key) else {
        return "The checks have not been asked yet: they are when the request has ended.".into();
    };
    let mut out = String::new();
    for finding in answers.findings() {
        let sign = if finding.level > Level::Note { "✕" } else { "·" };
        let _ = writeln!(out, "{sign} {finding}");
    }
    let of = |wanted: fn(Answer) -> bool| {
        answers.iter().filter(move |(_, answer)| wanted(*answer)).map(|(id, answer)| (id.check(), answer))
    };
    let holds: Vec<_> = of(|answer| answer == Answer::Holds).collect();
    let unknown: Vec<_> = of(|answer| matches!(answer, Answer::Unknown(_))).collect();
    let _ = writeln!(out, "\n{} hold", holds.len());
    for (check, _) in holds {
        let _ = writeln!(out, "✓ {:<22} {}", check.id, check.what);
    }
    let _ = writeln!(out, "\n{} unknown (never a pass)", unknown.len());
    for (check, answer) in unknown {
        if let Answer::Unknown(why) = answer {
            let _ = writeln!(out, "? {:<22} {}", check.id, why.text());
        }
    }
    out
}
