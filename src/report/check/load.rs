//! The load generator's side of the verdict: a list compared request by request, a ledger by its counts.

use std::collections::BTreeMap;

use serde::Serialize;

use super::{CheckRow, Rules, ViolationRow};
use crate::checks::Level;
use crate::checks::load::ledger::Ledger;
use crate::checks::load::{Class, Comparison};
use crate::lifecycle::stage::Outcome;
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
    pub(super) fn of(ledger: &Ledger, roots: [u64; 6], rules: &Rules) -> Self {
        let root = Outcome::ALL.iter().zip(roots).filter(|(_, count)| *count > 0);
        let mut rows = Self {
            client: ledger.counts.clone(),
            broken: ledger.broken,
            errors: ledger.errors,
            without_root: ledger.without_root,
            root: root.map(|(outcome, count)| (outcome.word(), count)).collect(),
            unequal: ledger.unequal(roots).into_iter().map(|one| (one.outcome, one.client, one.root)).collect(),
        };
        rows.unequal.retain(|one| rules.asks(COUNT) && !rules.accepts(COUNT, &sentence(one)));
        rows
    }

    /// How many roots are missing, at most.
    pub(super) fn missing(&self) -> u64 {
        self.unequal.iter().map(|(_, client, root)| client.saturating_sub(*root)).sum()
    }

    /// Every difference in one sentence.
    pub(super) fn sentences(&self) -> impl Iterator<Item = String> {
        self.unequal.iter().map(sentence)
    }
}

/// The check that compares counts.
const COUNT: &str = "load.count";

fn sentence((outcome, client, root): &(&str, u64, u64)) -> String {
    format!("{COUNT}: the ledger counts {client} {outcome}, the roots {root}")
}

/// That so many requests are missing and may not be.
pub(super) fn unseen(requests: u64) -> String {
    let noun = format::noun(requests, "request", "requests");
    format!(
        "{requests} {noun} that the load generator saw without a root here, which may have been lost or on its way: not \
         compared, and counts are unknown"
    )
}

/// `load.count` is a check on the whole run: it holds or is violated once, or is unknown where the cluster's side may lack
/// requests.
pub(super) fn count(checks: &mut [CheckRow], comparison: &Comparison, rules: &Rules, may_lack: bool) {
    let Some(row) = checks.iter_mut().find(|row| row.id == COUNT) else { return };
    let unequal = comparison.unequal_counts();
    if may_lack {
        (row.holds, row.violated, row.unknown) = (0, 0, 1);
        return;
    }
    (row.holds, row.violated, row.unknown) = if unequal.is_empty() { (1, 0, 0) } else { (0, 1, 0) };
    row.violations.extend(unequal.iter().map(|(phase, outcome, client, root)| {
        let message = format!("phase {phase:?}: the load generator counts {client} {outcome}, the roots {root}");
        ViolationRow {
            level: Level::Error.word(),
            request_id: String::new(),
            trace_id: None,
            span_id: None,
            accepted: rules.accepts(COUNT, &message),
            message,
        }
    }));
    row.failing = row.violations.iter().filter(|row| !row.accepted).count() as u64;
}

impl LoadRows {
    pub(super) fn of(comparison: &Comparison) -> Self {
        let phase = |(phase, counts): (&compact_str::CompactString, &crate::checks::load::PhaseCounts)| PhaseRow {
            phase: phase.to_string(),
            client: counts.client.clone(),
            root: counts.root.clone(),
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
            unequal: comparison
                .unequal_counts()
                .into_iter()
                .map(|(phase, outcome, client, root)| (phase.to_string(), outcome, client, root))
                .collect(),
        }
    }
}
