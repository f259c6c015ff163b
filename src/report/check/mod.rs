//! `reqtop check`: what every check says of the requests, and whether that passes.
//!
//! Owns: the verdict (levels, the load generator's side) and, in its rooms, what is asked beyond the checks and its forms.
//! Keeps out: the checks themselves.

pub mod catalogue;
mod forms;
mod load;
mod rules;

use std::collections::BTreeSet;

use serde::Serialize;

use crate::checks::load::ledger::Ledger;
use crate::checks::load::{Disagreement, LoadList, Seen, compare};
use crate::checks::{ALL, Answer, Answers, CheckId, Level, Why};
use crate::lifecycle::facts::Marks;
use crate::lifecycle::request::RequestKey;
use crate::report::InputSection;
use crate::store::{CheckCounts, GRACE_NS, Lack, Store, Unseen, Violation};
use crate::view::format;
pub use load::{LedgerRows, LoadRows, PhaseRow};
pub use rules::{Accepted, Expectation, Rules};

/// The version of the JSON.
pub const SCHEMA: &str = "reqtop.check.v1";

/// The most violations of one check that are listed; all are counted.
const LISTED: usize = 1000;

/// One violation.
#[derive(Clone, Debug, Serialize)]
pub struct ViolationRow {
    /// `error`, `warning` or `note`.
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
    /// Violations that fail the run: errors, and warnings when asked to be strict, that the baseline does not accept;
    /// and requests whose violations are no longer known word for word.
    pub failing: u64,
    /// The violations, at most a thousand.
    pub violations: Vec<ViolationRow>,
    /// Legal, and worth telling.
    pub notes: Vec<ViolationRow>,
}

impl CheckRow {
    fn new(id: CheckId, counts: CheckCounts) -> Self {
        let check = id.check();
        Self {
            id: check.id,
            level: check.level.letter(),
            what: check.what,
            holds: counts.holds,
            violated: counts.violated,
            unknown: counts.unknown,
            failing: 0,
            violations: Vec::new(),
            notes: Vec::new(),
        }
    }
}

/// What needs everything to be asked, and fails where it is not.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Whole {
    /// A strict run, of whatever is incomplete.
    Strict,
    /// A comparison with a load generator, of which requests were lost, let go or still on their way, or that had nothing
    /// to compare.
    Comparison,
    /// Any run, of which no request came, unless it says how many it expects.
    Run,
}

impl Whole {
    /// What fails of what is incomplete.
    fn of(incomplete: &[String], counted: &load::Counted, store: &Store, rules: &Rules) -> Option<Self> {
        let compares = rules.load.is_some() || rules.ledger.is_some();
        if rules.strict && !incomplete.is_empty() {
            return Some(Self::Strict);
        }
        if is_empty(store) && rules.expectations.is_empty() {
            return Some(Self::Run);
        }
        (compares && (gone(store) > 0 || (rules.asks(load::COUNT) && counted.is_partial()))).then_some(Self::Comparison)
    }

    /// In words.
    pub fn words(self) -> &'static str {
        match self {
            Self::Strict => "a strict run",
            Self::Comparison => "a comparison with a load generator",
            Self::Run => "a run without requests (--expect '>=0' lets it pass)",
        }
    }
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

/// What `reqtop check` says.
#[derive(Clone, Debug, Serialize)]
pub struct CheckReport {
    /// [`SCHEMA`].
    pub schema: &'static str,
    /// Requests asked, evicted ones included.
    pub requests: u64,
    /// Whether it passes.
    pub passed: bool,
    /// Records that came again byte for byte; each counts once.
    pub records_duplicate: u64,
    /// What came and could not be asked, in sentences.
    pub incomplete: Vec<String>,
    /// What fails because of that; nothing where it is told only.
    pub incomplete_fails: Option<Whole>,
    /// Whether warnings fail.
    pub strict: bool,
    /// Every check asked for.
    pub checks: Vec<CheckRow>,
    /// Every expectation.
    pub expectations: Vec<ExpectationRow>,
    /// The load generator's side, request by request.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub load: Option<LoadRows>,
    /// The load generator's side, by its counts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ledger: Option<LedgerRows>,
}

impl CheckReport {
    /// The report on a store whose checks have all been asked ([`Store::check_all`]), filled from this input.
    pub fn of(store: &Store, input: &InputSection, rules: &Rules) -> Self {
        let scope = rules.scope(store);
        let status = |key| store.request(key).and_then(|view| view.http_status());
        let (mut load, mut unseen, mut counted) = (None, None, load::Counted::default());
        let mut checks = check_rows(store, scope.as_ref(), rules);
        if let Some(list) = &rules.load {
            let mut comparison = compare(list, store.requests(), status);
            let missing = comparison.disagreements.iter().filter_map(|one| one.missing.as_ref());
            let missing = missing.fold(Unseen::default(), |sum, seen| sum.and(1, *seen == Seen::Success));
            let lack = store.may_lack(missing);
            if lack != Lack::None {
                comparison.disagreements.retain(|one| one.missing.is_none());
                unseen = Some(load::told(missing, lack));
            }
            load::disagree(&mut checks, &comparison.disagreements, store, rules);
            comparison.disagreements.retain(|one| rules.asks(one.check) && !is_accepted(store, rules, one));
            // What is missing makes counts differ.
            let unequal = if lack == Lack::None { comparison.unequal_counts() } else { Vec::new() };
            let rows = LoadRows::of(&comparison, unequal);
            counted.take(rows.sentences(), lack, comparison.compared());
            load = Some(rows);
        }
        let roots = store.standing().by_outcome;
        let is_traced = roots.iter().any(|count| *count > 0) || !store.requests().any(|(_, facts)| facts.has_http);
        let mut ledger = rules.ledger.as_ref().map(|ledger| LedgerRows::of(ledger, roots));
        if let Some(rows) = &mut ledger {
            if !is_traced {
                rows.unequal.clear();
            }
            let missing = rows.missing(rules);
            let lack = store.may_lack(missing);
            if lack != Lack::None {
                rows.unequal.retain(|(_, client, root)| root >= client);
                unseen = Some(load::told(missing, lack));
            }
            if rules.ledger.as_ref().is_some_and(Ledger::has_counts) {
                // The roots that were let go are among no counts, also where these are equal.
                let lack = if gone(store) > 0 { Lack::Lost } else { lack };
                let counts = rules.ledger.as_ref().filter(|ledger| ledger.compares());
                let counts = counts.map(|ledger| ledger.counts.values().sum::<u64>() + ledger.broken);
                // That the one saw nothing and the other nothing is a comparison, too.
                let compared = counts.is_some_and(|client| client == 0 || roots.iter().any(|count| *count > 0));
                counted.take(rows.sentences(), lack, is_traced && compared);
            }
            rows.drop_accepted(rules);
        }
        let expectations: Vec<ExpectationRow> =
            rules.expectations.iter().map(|expectation| expect(store, scope.as_ref(), expectation)).collect();
        let mut incomplete = incomplete(store, input, scope.as_ref(), rules);
        incomplete.extend(unseen);
        incomplete.extend(rules.load.iter().flat_map(LoadList::gaps));
        incomplete.extend(counted.nothing());
        let incomplete_fails = Whole::of(&incomplete, &counted, store, rules);
        counted.answer(&mut checks, rules);
        let passed = incomplete_fails.is_none()
            && expectations.iter().all(|row| row.met)
            && checks.iter().all(|check| check.failing == 0)
            && load.as_ref().is_none_or(|rows| rows.disagreements.is_empty())
            && ledger.as_ref().is_none_or(|ledger| ledger.unequal.is_empty());
        let requests = scope.as_ref().map_or(store.len() as u64 + gone(store), |keys| keys.len() as u64);
        Self {
            schema: SCHEMA,
            requests,
            passed,
            records_duplicate: store.counts().records_duplicate,
            incomplete,
            incomplete_fails,
            strict: rules.strict,
            checks,
            expectations,
            load,
            ledger,
        }
    }
}

/// The rows of the checks that are asked for, with their violations.
fn check_rows(store: &Store, scope: Option<&BTreeSet<RequestKey>>, rules: &Rules) -> Vec<CheckRow> {
    let counts = scope.map(|keys| store.checked_among(keys.iter().copied()));
    let is_meant = |key: RequestKey| scope.is_none_or(|keys| keys.contains(&store.resolve(key).unwrap_or(key)));
    let mut rows: Vec<CheckRow> = Vec::new();
    let mut place = vec![None; ALL.len()];
    for id in CheckId::all().filter(|id| rules.wants(id.check())) {
        place[usize::from(id.0)] = Some(rows.len());
        let all = || store.checked().said().counts(id);
        rows.push(CheckRow::new(id, counts.as_ref().map_or_else(all, |counts| counts[usize::from(id.0)])));
    }
    let fails = |level: Level| level == Level::Error || (rules.strict && level == Level::Warning);
    let mut told = vec![BTreeSet::new(); ALL.len()];
    for Violation { request_id, finding, key } in store.violations().filter(|one| is_meant(one.key)) {
        let Some(row) = place[usize::from(finding.check.0)].map(|at| &mut rows[at]) else { continue };
        let violated = store.answers(key).is_none_or(|answers| answers.of(finding.check) == Answer::Violated)
            && finding.level > Level::Note;
        let accepted = rules.accepts(row.id, &finding.message);
        if violated {
            told[usize::from(finding.check.0)].insert(key);
            row.failing += u64::from(!accepted && fails(finding.level));
        }
        let list = if violated { &mut row.violations } else { &mut row.notes };
        if list.len() < LISTED {
            list.push(ViolationRow {
                level: finding.level.word(),
                request_id: request_id.to_string(),
                trace_id: finding.trace.map(|id| id.to_string()),
                span_id: finding.span.map(|id| id.to_string()),
                accepted,
                message: finding.message.into(),
            });
        }
    }
    // What is no longer known word for word cannot be held against the baseline: it is not accepted.
    for id in CheckId::all().filter(|id| fails(id.check().level)) {
        if let Some(at) = place[usize::from(id.0)] {
            rows[at].failing += rows[at].violated.saturating_sub(told[usize::from(id.0)].len() as u64);
        }
    }
    rows
}

/// Whether the baseline accepts a disagreement with the load generator, in its own words or in those of the request's check.
fn is_accepted(store: &Store, rules: &Rules, one: &Disagreement) -> bool {
    let answers = one.request.and_then(|key| store.answers(key));
    let mut findings = answers.into_iter().flat_map(Answers::findings);
    rules.accepts(one.check, &one.message)
        || findings.any(|found| found.check.check().id == one.check && rules.accepts(one.check, &found.message))
}

/// What came and could not be asked.
fn incomplete(store: &Store, input: &InputSection, scope: Option<&BTreeSet<RequestKey>>, rules: &Rules) -> Vec<String> {
    let mut out = input.problems.clone();
    if is_empty(store) {
        out.push("no request came".into());
    }
    if scope.is_some_and(BTreeSet::is_empty) && !store.is_empty() {
        out.push(format!("the filter matches none of {} requests", store.len()));
    }
    out.extend(input.left_out(store.counts()));
    // Of what is asked here.
    let is_unknown = |key: &RequestKey, why: Why| {
        let mut answers = store.answers(*key).into_iter().flat_map(Answers::iter);
        scope.is_none_or(|keys| keys.contains(key))
            && answers.any(|(id, answer)| answer == Answer::Unknown(why) && rules.wants(id.check()))
    };
    let early = store.requests().filter(|(_, facts)| facts.marks.has(Marks::EARLY));
    let early = early.filter(|(key, _)| is_unknown(key, Why::Lost)).count();
    if early > 0 {
        let of = format::noun(early as u64, "request", "requests");
        out.push(format!(
            "{early} {of} began before anybody listened: what was sent of them by then did not come, and what they lack is \
             unknown: listen before the load begins"
        ));
    }
    let unsettled = store.checked().unsettled().iter().filter(|key| is_unknown(key, Why::Arriving)).count();
    if unsettled > 0 {
        let grace = GRACE_NS / 1_000_000_000;
        let of = format::noun(unsettled as u64, "request", "requests");
        out.push(format!(
            "what is missing of {unsettled} {of}, heard of within the last {grace} s, may have been on its way and is unknown: end \
             {grace} s after the last request arrived"
        ));
    }
    let gone = gone(store);
    if gone > 0 {
        out.push(format!(
            "{gone} requests were let go for room before the end (--max-memory): whether anything of theirs is missing was \
             not waited for and is unknown, filters, expectations and comparisons do not see them, and what came of them \
             later was asked for itself"
        ));
    }
    out
}

/// Whether there was no request at all.
fn is_empty(store: &Store) -> bool {
    store.is_empty() && gone(store) == 0
}

/// Requests that are gone, and of which only what the checks said is left.
fn gone(store: &Store) -> u64 {
    store.counts().requests_evicted
}

/// Met only when it is whatever the requests were that are gone.
fn expect(store: &Store, scope: Option<&BTreeSet<RequestKey>>, expectation: &Expectation) -> ExpectationRow {
    let meant = store.requests().filter(|(key, _)| scope.is_none_or(|keys| keys.contains(key)));
    let found = meant.filter(|(key, _)| store.matches(&expectation.query, *key)).count() as u64;
    ExpectationRow {
        expect: expectation.text.clone(),
        found,
        met: found >= expectation.least && found.saturating_add(gone(store)) <= expectation.most,
    }
}

#[cfg(test)]
mod tests;
