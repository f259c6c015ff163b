//! Attempts to hand a leg to a worker: phase × result × attempt, retries, migrations, admissions, per worker.

use std::collections::BTreeMap;

use compact_str::CompactString;

use super::values::Values;
use super::{Sign, Tally};
use crate::lifecycle::facts::{Admission, Dispatch, Facts, Leg};
use crate::lifecycle::ids::Worker;
use crate::lifecycle::stage::{Outcome, Phase};

/// Attempts of one origin.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Dispatches {
    /// All.
    pub count: u64,
    /// By phase, result as written (empty for none) and attempt number.
    pub by_result: Tally<(Phase, CompactString, u32)>,
    /// By route.
    pub by_route: Tally<CompactString>,
    /// By phase and worker.
    pub by_worker: BTreeMap<(Phase, Worker), WorkerDispatches>,
    /// Attempts whose number is above 0, by phase.
    pub retries: Tally<Phase>,
    /// Moves by reason, as written.
    pub migrations: Tally<CompactString>,
    /// Tokens carried over by moves.
    pub tokens_carried: Values,
    /// Attempts by the route span's outcome, as written.
    pub attempt_outcomes: Tally<CompactString>,
    /// Admissions by result and transport.
    pub admissions: Tally<(CompactString, CompactString)>,
    /// Payloads, bytes.
    pub payloads: Values,
    /// Admitted, then failed, then rejected: the worker was at capacity (spec lifecycle-spans §3, worker.admission).
    pub at_capacity: u64,
    /// From the choice to the end of an accepted dispatch, nanoseconds.
    pub acceptance: Values,
}

/// Attempts that went to one worker in one phase.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct WorkerDispatches {
    /// All.
    pub count: u64,
    /// By result as written.
    pub results: Tally<CompactString>,
    /// Attempts that failed ([`Dispatch::failed`]).
    pub failed: u64,
    /// Attempts whose number is above 0.
    pub retries: u64,
    /// Attempts whose route span says the worker was lost or could not be reached.
    pub lost: u64,
    /// Payloads, bytes.
    pub payloads: Values,
    /// Admissions by result.
    pub admissions: Tally<CompactString>,
}

impl Dispatches {
    pub(super) fn apply(&mut self, facts: &Facts, leg: &Leg, dispatch: &Dispatch, sign: Sign) {
        sign.step(&mut self.count);
        let result = dispatch.result_word().clone();
        self.by_result.step((leg.phase, result.clone(), leg.attempt), sign);
        self.by_route.step(dispatch.route.clone(), sign);
        if !dispatch.attempt_outcome.is_empty() {
            self.attempt_outcomes.step(dispatch.attempt_outcome.clone(), sign);
        }
        if leg.attempt > 0 {
            self.retries.step(leg.phase, sign);
        }
        if !dispatch.migration_reason.is_empty() {
            self.migrations.step(dispatch.migration_reason.clone(), sign);
            sign.value(&mut self.tokens_carried, dispatch.tokens_carried.unwrap_or(0));
        }
        if let Some(admission) = &leg.admission {
            self.admission(admission, sign);
        }
        if leg.at_capacity() && facts.outcome == Some(Outcome::Rejected) {
            sign.step(&mut self.at_capacity);
        }
        if let (true, Some(selection)) = (dispatch.result == "accepted", &leg.selection)
            && selection.span.is_some()
        {
            let end = dispatch.start_ns.saturating_add(dispatch.duration_ns);
            sign.value(&mut self.acceptance, end.saturating_sub(selection.time_ns));
        }
        let Some(worker) = leg.worker() else { return };
        let key = (leg.phase, worker);
        let of_worker = self.by_worker.entry(key).or_default();
        sign.step(&mut of_worker.count);
        of_worker.results.step(result, sign);
        if leg.attempt > 0 {
            sign.step(&mut of_worker.retries);
        }
        if dispatch.failed() {
            sign.step(&mut of_worker.failed);
        }
        if dispatch.lost_worker() {
            sign.step(&mut of_worker.lost);
        }
        if let Some(admission) = &leg.admission {
            of_worker.admissions.step(admission.result.clone(), sign);
            if let Some(bytes) = admission.payload_bytes {
                sign.value(&mut of_worker.payloads, bytes);
            }
        }
        if of_worker.count == 0 {
            self.by_worker.remove(&key);
        }
    }

    pub(super) fn admission(&mut self, admission: &Admission, sign: Sign) {
        self.admissions.step((admission.result.clone(), admission.transport.clone()), sign);
        if let Some(bytes) = admission.payload_bytes {
            sign.value(&mut self.payloads, bytes);
        }
    }
}
