//! The report's sections on queue, selection, dispatch, streaming and times, from a rollup.
//!
//! What spans record comes first; what is inferred or told by records stands beside it under a name that says so.

use std::collections::BTreeMap;

use serde::Serialize;

use super::quantiles::Quantiles;
use crate::lifecycle::facts::FILTER_PARTS;
use crate::lifecycle::stage::Outcome;
use crate::store::rollup::values::Together;
use crate::store::rollup::{ClassWaits, Dispatches, Queues, Rollup, Selections};

/// The key that stands for an empty word.
pub(super) fn word(word: &str) -> String {
    if word.is_empty() { "none".into() } else { word.into() }
}

/// Waits of one kind; times in nanoseconds.
#[derive(Clone, Debug, Default, Serialize)]
pub struct WaitsSection {
    /// How many.
    pub spans: u64,
    /// Deferred ones; absent where no span says whether it was.
    pub deferred: Option<u64>,
    /// Refused ones; absent where no span says how it ended.
    pub rejected: Option<u64>,
    /// Cancelled ones, likewise.
    pub cancelled: Option<u64>,
    /// The most that waited at once: before entering (with itself, where it was deferred) or after leaving.
    pub max_depth: Option<u64>,
    /// Greatest depth on entering.
    pub max_depth_in: Option<u64>,
    /// Greatest depth on leaving.
    pub max_depth_out: Option<u64>,
    /// Waits.
    pub wait_ns: Quantiles<u64>,
}

impl From<&ClassWaits> for WaitsSection {
    fn from(waits: &ClassWaits) -> Self {
        Self {
            spans: waits.count,
            deferred: waits.deferred(),
            rejected: waits.ended("rejected"),
            cancelled: waits.ended("cancelled"),
            max_depth: waits.deepest(),
            max_depth_in: waits.depth_in.max(),
            max_depth_out: waits.depth_out.max(),
            wait_ns: (&waits.waits).into(),
        }
    }
}

/// Waits in the router's queue.
#[derive(Clone, Debug, Default, Serialize)]
pub struct QueueSection {
    /// As queue spans record them.
    #[serde(flatten)]
    pub recorded: WaitsSection,
    /// By outcome.
    pub outcomes: BTreeMap<String, u64>,
    /// By reason; `none` for those without.
    pub reasons: BTreeMap<String, u64>,
    /// Deferred ones by reason.
    pub deferred_by_reason: BTreeMap<String, u64>,
    /// Refused ones by limit.
    pub rejected_by_reason: BTreeMap<String, u64>,
    /// Waits of deferred ones.
    pub wait_ns_deferred_only: Quantiles<u64>,
    /// Waits of deferred ones by reason.
    pub wait_ns_by_reason: BTreeMap<String, Quantiles<u64>>,
    /// By class.
    pub per_class: BTreeMap<String, WaitsSection>,
    /// By phase of the leg.
    pub per_phase: BTreeMap<&'static str, WaitsSection>,
    /// Waits inferred from `kv_router.schedule`, where no queue span records them.
    pub inferred: WaitsSection,
}

impl QueueSection {
    /// From a rollup.
    pub fn of(rollup: &Rollup) -> Self {
        let Queues { all, by_class, by_pool } = &rollup.queue;
        let counts = |tally: &crate::store::rollup::Tally<compact_str::CompactString>| {
            tally.iter().map(|(key, count)| (word(key), count)).collect()
        };
        Self {
            recorded: all.into(),
            outcomes: counts(&all.outcomes),
            reasons: counts(&all.reasons),
            deferred_by_reason: all.deferred_by.iter().map(|(reason, waits)| (word(reason), waits.count())).collect(),
            rejected_by_reason: counts(&all.rejected_by),
            wait_ns_deferred_only: (&all.deferred_waits).into(),
            wait_ns_by_reason: all.deferred_by.iter().map(|(reason, waits)| (word(reason), waits.into())).collect(),
            per_class: by_class.iter().map(|((class, _), waits)| (word(class), waits.into())).collect(),
            per_phase: by_pool.iter().map(|(phase, waits)| (phase.word(), waits.into())).collect(),
            inferred: (&rollup.queue_inferred.all).into(),
        }
    }
}

/// Choices of one origin; margins and regrets are costs.
#[derive(Clone, Debug, Default, Serialize)]
pub struct ChoicesSection {
    /// How many.
    pub spans: u64,
    /// Those that chose.
    pub made: u64,
    /// By pool.
    pub by_pool: BTreeMap<&'static str, u64>,
    /// With one candidate.
    pub single_candidate: u64,
    /// Margin 0 among several.
    pub ties: u64,
    /// Margin above 0 and below 0.1.
    pub near_ties: u64,
    /// Chosen and best are two.
    pub chosen_is_not_best: u64,
    /// Chosen costs more than best.
    pub chosen_costs_more_than_best: u64,
    /// Regrets, summed.
    pub regret_sum: f64,
    /// Regrets.
    pub regret: Quantiles<f64>,
    /// Margins.
    pub margin_all: Quantiles<f64>,
    /// Margins among several.
    pub margin_two_or_more_candidates: Quantiles<f64>,
    /// Candidates, summed.
    pub candidates_total: u64,
    /// Filtered, summed.
    pub filtered_total: u64,
    /// The parts, summed.
    pub filtered_by_part: BTreeMap<&'static str, u64>,
    /// Choices in which at least one rank was filtered by that part.
    pub decisions_filtered_by_part: BTreeMap<&'static str, u64>,
    /// By chosen worker (its ranks together).
    pub selected_by_worker: BTreeMap<String, u64>,
}

impl From<&Selections> for ChoicesSection {
    fn from(selections: &Selections) -> Self {
        let mut selected_by_worker = BTreeMap::new();
        for (worker, of_worker) in selections.by_worker.iter().filter(|(_, worker)| worker.chosen > 0) {
            *selected_by_worker.entry(worker.id.to_string()).or_default() += of_worker.chosen;
        }
        Self {
            spans: selections.count,
            made: selections.made,
            by_pool: selections.by_pool.iter().map(|(pool, count)| (pool.word(), count)).collect(),
            single_candidate: selections.single,
            ties: selections.ties,
            near_ties: selections.near_ties,
            chosen_is_not_best: selections.not_best,
            chosen_costs_more_than_best: selections.costs_more,
            regret_sum: selections.regrets.sum(),
            regret: (&selections.regrets).into(),
            margin_all: (&selections.margins).into(),
            margin_two_or_more_candidates: (&selections.contested_margins).into(),
            candidates_total: selections.candidates,
            filtered_total: selections.filtered,
            filtered_by_part: FILTER_PARTS.into_iter().zip(selections.filtered_parts).collect(),
            decisions_filtered_by_part: FILTER_PARTS.into_iter().zip(selections.filtered_in).collect(),
            selected_by_worker,
        }
    }
}

/// A router's choices.
#[derive(Clone, Debug, Default, Serialize)]
pub struct SelectionSection {
    /// As selection spans record them.
    #[serde(flatten)]
    pub recorded: ChoicesSection,
    /// As `router_selection` records tell them, where no span does.
    pub from_records: ChoicesSection,
}

impl SelectionSection {
    /// From a rollup.
    pub fn of(rollup: &Rollup) -> Self {
        Self { recorded: (&rollup.selection).into(), from_records: (&rollup.selection_records).into() }
    }
}

/// One cell of the attempts' matrix.
#[derive(Clone, Debug, Serialize)]
pub struct AttemptsRow {
    /// Phase.
    pub phase: &'static str,
    /// Result as written; the attempt's outcome where results are not recorded; `none` when absent.
    pub result: String,
    /// Attempt number.
    pub attempt: u32,
    /// How many.
    pub count: u64,
}

/// Attempts of one origin.
#[derive(Clone, Debug, Default, Serialize)]
pub struct AttemptsSection {
    /// How many.
    pub spans: u64,
    /// By phase, result and attempt number.
    pub matrix: Vec<AttemptsRow>,
    /// By route.
    pub route: BTreeMap<String, u64>,
    /// Retries by phase.
    pub retries: BTreeMap<&'static str, u64>,
    /// By the attempt's outcome, as route spans say.
    pub attempt_outcomes: BTreeMap<String, u64>,
    /// Moves by reason.
    pub migrations: BTreeMap<String, u64>,
    /// Tokens carried over.
    pub tokens_carried: Quantiles<u64>,
    /// From the choice to acceptance.
    pub acceptance_ns: Quantiles<u64>,
    /// Admitted, then failed, then rejected.
    pub worker_at_capacity: u64,
}

impl From<&Dispatches> for AttemptsSection {
    fn from(dispatches: &Dispatches) -> Self {
        Self {
            spans: dispatches.count,
            matrix: dispatches
                .by_result
                .iter()
                .map(|((phase, result, attempt), count)| AttemptsRow {
                    phase: phase.word(),
                    result: word(result),
                    attempt: *attempt,
                    count,
                })
                .collect(),
            route: dispatches.by_route.iter().map(|(route, count)| (word(route), count)).collect(),
            retries: dispatches.retries.iter().map(|(phase, count)| (phase.word(), count)).collect(),
            attempt_outcomes: dispatches.attempt_outcomes.iter().map(|(key, count)| (word(key), count)).collect(),
            migrations: dispatches.migrations.iter().map(|(reason, count)| (word(reason), count)).collect(),
            tokens_carried: (&dispatches.tokens_carried).into(),
            acceptance_ns: (&dispatches.acceptance).into(),
            worker_at_capacity: dispatches.at_capacity,
        }
    }
}

/// Attempts to hand a leg to a worker, and the workers' admissions.
#[derive(Clone, Debug, Default, Serialize)]
pub struct DispatchSection {
    /// As dispatch spans record them.
    #[serde(flatten)]
    pub recorded: AttemptsSection,
    /// As route spans tell them, where no dispatch span does.
    pub inferred: AttemptsSection,
    /// Admissions, and their results by transport as `result|transport`.
    pub admission: AdmissionSection,
}

/// Workers' admissions.
#[derive(Clone, Debug, Default, Serialize)]
pub struct AdmissionSection {
    /// How many, of attempts that are known.
    pub spans: u64,
    /// As `result|transport`; `none` for what is not recorded.
    pub by_result: BTreeMap<String, u64>,
    /// Payloads.
    pub payload_bytes: Quantiles<u64>,
    /// Payloads, summed.
    pub payload_bytes_total: u64,
}

impl DispatchSection {
    /// From a rollup.
    pub fn of(rollup: &Rollup) -> Self {
        let mut admission = AdmissionSection::default();
        let mut payloads = Together::default();
        for dispatches in [&rollup.dispatch, &rollup.dispatch_inferred] {
            for ((result, transport), count) in dispatches.admissions.iter() {
                admission.spans += count;
                *admission.by_result.entry(format!("{}|{}", word(result), word(transport))).or_default() += count;
            }
            payloads.join(&dispatches.payloads);
        }
        admission.payload_bytes_total = u64::try_from(payloads.sum()).unwrap_or(u64::MAX);
        admission.payload_bytes = (&payloads).into();
        Self { recorded: (&rollup.dispatch).into(), inferred: (&rollup.dispatch_inferred).into(), admission }
    }
}

/// Frontend streams.
#[derive(Clone, Debug, Default, Serialize)]
pub struct StreamingSection {
    /// How many.
    pub spans: u64,
    /// By outcome; `none` where it is not recorded.
    pub outcomes: BTreeMap<String, u64>,
    /// Dropped ones.
    pub abandoned: u64,
    /// Events yielded, summed.
    pub events_total: u64,
    /// Events yielded when a stream was dropped.
    pub events_at_leaving: Quantiles<u64>,
    /// Age of a stream when it was dropped.
    pub age_at_leaving_ns: Quantiles<u64>,
    /// Root outcomes of dropped streams.
    pub roots_of_abandoned: BTreeMap<&'static str, u64>,
    /// Dropped streams without a root.
    pub abandoned_without_root: u64,
    /// Of requests in flight whose client streams.
    pub open: u64,
    /// Requests in flight of which nothing has said yet whether it does.
    pub may_be_open: u64,
    /// Times to first token of all requests, as `http-request` says.
    pub ttft_ns: Quantiles<u64>,
    /// Times to first token as records tell, where no span does.
    pub ttft_ns_from_records: Quantiles<u64>,
    /// Durations.
    pub duration_ns: Quantiles<u64>,
    /// Events a second.
    pub events_per_second: Quantiles<u64>,
}

impl StreamingSection {
    /// From a rollup.
    pub fn of(rollup: &Rollup) -> Self {
        let streams = &rollup.streams;
        Self {
            spans: streams.count,
            outcomes: streams.outcomes.iter().map(|(outcome, count)| (word(outcome), count)).collect(),
            abandoned: streams.abandoned,
            events_total: streams.events,
            events_at_leaving: (&streams.events_at_leaving).into(),
            age_at_leaving_ns: (&streams.age_at_leaving).into(),
            roots_of_abandoned: Outcome::ALL
                .iter()
                .zip(streams.roots_of_abandoned)
                .map(|(outcome, count)| (outcome.word(), count))
                .collect(),
            abandoned_without_root: streams.abandoned_without_root,
            open: streams.open,
            may_be_open: streams.may_be_open,
            ttft_ns: (&streams.ttft).into(),
            ttft_ns_from_records: (&streams.ttft_records).into(),
            duration_ns: (&streams.durations).into(),
            events_per_second: (&streams.event_rates).into(),
        }
    }
}

/// Times of requests with a root, nanoseconds.
#[derive(Clone, Debug, Default, Serialize)]
pub struct LatencySection {
    /// `ttft_ms` of `http-request`.
    pub http_ttft_ns: Quantiles<u64>,
    /// `ttft_ms` of `request_end`.
    pub record_ttft_ns: Quantiles<u64>,
    /// End minus start of the root.
    pub root_duration_ns: Quantiles<u64>,
    /// The same of successes.
    pub root_duration_ns_success: Quantiles<u64>,
    /// Terminal moment minus start of the root.
    pub terminal_ns: Quantiles<u64>,
    /// `total_time_ms` of `request_end`.
    pub record_total_ns: Quantiles<u64>,
}

impl LatencySection {
    /// From a rollup.
    pub fn of(rollup: &Rollup) -> Self {
        let requests = &rollup.requests;
        Self {
            http_ttft_ns: (&requests.http_ttft).into(),
            record_ttft_ns: (&requests.record_ttft).into(),
            root_duration_ns: (&requests.durations).into(),
            root_duration_ns_success: (&requests.success_durations).into(),
            terminal_ns: (&requests.terminals).into(),
            record_total_ns: (&requests.record_total).into(),
        }
    }
}
