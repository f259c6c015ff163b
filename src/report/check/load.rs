//! The load generator's side of the verdict: a list compared request by request, a ledger by its counts.

use std::collections::BTreeMap;

use compact_str::CompactString;
use serde::Serialize;

use super::{CheckRow, LISTED, Rules, ViolationRow};
use crate::checks::load::ledger::Ledger;
use crate::checks::load::{Class, Comparison, Disagreement};
use crate::checks::{Answer, CheckId, Level};
use crate::lifecycle::stage::Outcome;
use crate::store::{Lack, Store, Unseen};
use crate::view::format;

/// The comparison with a load generator's list.
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
    pub client: BTreeMap<String, u64>,
    /// The roots' counts.
    pub root: BTreeMap<String, u64>,
    /// Requests that can have no root here, and were compared with nothing.
    pub without_root: u64,
    /// Named differences.
    pub classes: BTreeMap<&'static str, u64>,
}

/// The comparison with a load generator's counts.
#[derive(Clone, Debug, Serialize)]
pub struct LedgerRows {
    /// The client's counts of requests that must have a root.
    pub client: BTreeMap<&'static str, u64>,
    /// Streams that broke after HTTP 200: rejected, timed out or failed.
    pub broken: u64,
    /// Errors of the client's own: the same, or no root at all.
    pub errors: u64,
    /// Requests to endpoints that make no root.
    pub without_root: u64,
    /// The roots' counts.
    pub root: BTreeMap<&'static str, u64>,
    /// Where they differ by more than the ledger allows: outcome, client's, roots'.
    pub unequal: Vec<(&'static str, u64, u64)>,
}

impl LedgerRows {
    /// Compares a ledger with the roots, in the order of [`Outcome::ALL`].
    pub(super) fn of(ledger: &Ledger, roots: [u64; 6]) -> Self {
        let root = Outcome::ALL.iter().zip(roots).filter(|(_, count)| *count > 0);
        Self {
            client: ledger.counts.clone(),
            broken: ledger.broken,
            errors: ledger.errors,
            without_root: ledger.without_root,
            root: root.map(|(outcome, count)| (outcome.word(), count)).collect(),
            unequal: ledger.unequal(roots).into_iter().map(|one| (one.outcome, one.client, one.root)).collect(),
        }
    }

    /// How many roots are missing, at most, that are asked for.
    pub(super) fn missing(&self, rules: &Rules) -> Unseen {
        let asked = self.unequal.iter().filter(|one| !is_accepted(one, rules));
        asked.fold(Unseen::default(), |sum, (outcome, client, root)| {
            sum.and(client.saturating_sub(*root), *outcome == Outcome::Success.word())
        })
    }

    /// Every difference in one sentence.
    pub(super) fn sentences(&self) -> Vec<String> {
        self.unequal.iter().map(sentence).collect()
    }

    /// Leaves what is neither accepted nor not asked for.
    pub(super) fn drop_accepted(&mut self, rules: &Rules) {
        self.unequal.retain(|one| !is_accepted(one, rules));
    }
}

fn is_accepted(one: &(&str, u64, u64), rules: &Rules) -> bool {
    !rules.asks(COUNT) || rules.accepts(COUNT, &sentence(one))
}

/// The check that compares counts.
pub(super) const COUNT: &str = "load.count";

fn sentence((outcome, client, root): &(&str, u64, u64)) -> String {
    format!("the ledger counts {client} {outcome}, the roots {root}")
}

impl CheckRow {
    /// Whether it is asked once, of the whole run, and of no request.
    pub(super) fn is_of_run(&self) -> bool {
        self.id == COUNT
    }
}

/// That so many requests are missing and may not be.
pub(super) fn told(unseen: Unseen, lack: Lack) -> String {
    let requests = unseen.requests;
    let noun = format::noun(requests, "request", "requests");
    let why = match lack {
        Lack::Lost => "which may have been lost, let go or on its way",
        _ => "whose spans may have been sampled out, as records came alone",
    };
    format!(
        "{requests} {noun} that the load generator saw without a root here, {why}: not compared, and counts are unknown"
    )
}

/// What `load.count` comes to: a check on the whole run, which holds or is violated once, or is unknown where the cluster's
/// side may lack requests.
#[derive(Default)]
pub(super) struct Counted {
    is_asked: bool,
    compared: bool,
    may_lack: bool,
    was_lost: bool,
    unequal: Vec<String>,
}

impl Counted {
    /// What comparing counts came to: the differences in sentences, what the cluster's side may lack, and whether there was
    /// anything to compare.
    pub(super) fn take(&mut self, unequal: Vec<String>, lack: Lack, compared: bool) {
        self.is_asked = true;
        self.compared |= compared || !unequal.is_empty();
        self.may_lack |= lack != Lack::None;
        self.was_lost |= lack == Lack::Lost;
        self.unequal.extend(unequal);
        if let Lack::AllBut(missing) = lack {
            let requests = format::noun(missing, "request", "requests");
            self.unequal.push(format!(
                "the load generator saw {missing} {requests} succeed that have no root here and are not among those known \
                 from records alone"
            ));
        }
    }

    /// Whether requests that the generator saw could not be compared, but for those that were sampled out.
    pub(super) fn is_partial(&self) -> bool {
        self.was_lost || self.is_empty()
    }

    fn is_empty(&self) -> bool {
        self.is_asked && !self.compared
    }

    /// That there was nothing to compare.
    pub(super) fn nothing(&self) -> Option<String> {
        let words = "nothing of the load generator's could be compared: no request that it tells of has a root here, as where \
                     endpoints make none, or the lifecycle is not traced (DYN_LIFECYCLE_TRACE_ENABLED)";
        self.is_empty().then(|| words.into())
    }

    /// Fills the check's row.
    pub(super) fn answer(self, checks: &mut [CheckRow], rules: &Rules) {
        let Some(row) = checks.iter_mut().find(|row| row.id == COUNT).filter(|_| self.compared) else { return };
        (row.holds, row.violated, row.unknown) = match (self.unequal.is_empty(), self.may_lack) {
            (false, _) => (0, 1, 0),
            (true, true) => (0, 0, 1),
            (true, false) => (1, 0, 0),
        };
        for message in self.unequal {
            add(row, String::new(), rules.accepts(COUNT, &message), message);
        }
    }
}

/// Counts what no request's own check tells, such as a request that is missing or listed twice, as violations of the check
/// that compares requests with the list.
pub(super) fn disagree(checks: &mut [CheckRow], disagreements: &[Disagreement], store: &Store, rules: &Rules) {
    for one in disagreements {
        let of_request = one.request.and_then(|key| store.answers(key)).zip(CheckId::of(one.check));
        if of_request.is_some_and(|(answers, id)| answers.of(id) == Answer::Violated) {
            continue;
        }
        if let Some(row) = checks.iter_mut().find(|row| row.id == one.check) {
            row.violated += 1;
            add(row, one.x_request_id.to_string(), super::is_accepted(store, rules, one), one.message.clone());
        }
    }
}

fn add(row: &mut CheckRow, request_id: String, accepted: bool, message: String) {
    row.failing += u64::from(!accepted);
    if row.violations.len() < LISTED {
        let level = Level::Error.word();
        row.violations.push(ViolationRow { level, request_id, trace_id: None, span_id: None, accepted, message });
    }
}

impl LoadRows {
    /// A comparison, and the counts of it that differ.
    pub(super) fn of(comparison: &Comparison, unequal: Vec<(CompactString, String, u64, u64)>) -> Self {
        let phase = |(phase, counts): (&CompactString, &crate::checks::load::PhaseCounts)| PhaseRow {
            phase: phase.to_string(),
            client: counts.client.clone(),
            root: counts.root.clone(),
            without_root: counts.without_root,
            classes: Class::ALL
                .into_iter()
                .filter_map(|class| Some((class.word(), *counts.classes.get(&class)?)))
                .collect(),
        };
        Self {
            roots: comparison.roots,
            others: comparison.others.len() as u64,
            tokens_compared: comparison.tokens_compared,
            phases: comparison.phases.iter().map(phase).collect(),
            disagreements: comparison.disagreements.iter().map(|one| one.message.clone()).collect(),
            unequal: unequal
                .into_iter()
                .map(|(phase, outcome, client, root)| (phase.to_string(), outcome, client, root))
                .collect(),
        }
    }

    /// Every difference of counts in one sentence.
    pub(super) fn sentences(&self) -> Vec<String> {
        let told = |(phase, outcome, client, root): &(String, String, u64, u64)| {
            format!("phase {phase:?}: the load generator counts {client} {outcome}, the roots {root}")
        };
        self.unequal.iter().map(told).collect()
    }
}
