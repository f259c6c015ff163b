//! The report of a simulated cluster equals the ledger of what truly happened in it, number by number, at any pause.

use std::collections::BTreeMap;

use reqtop::demo::ledger::{FILTERS, Ledger, Samples};
use reqtop::demo::{Cluster, Settings, Signal};
use reqtop::lifecycle::stage::Mode;
use reqtop::pipeline::take_in;
use reqtop::report::{InputSection, Report};
use reqtop::source::intake::{Payload, Signal as Wire};
use reqtop::store::{Limits, Store};

const START_NS: u64 = 1_796_003_500_000_000_000;
const SECOND: u64 = 1_000_000_000;

/// Lets the cluster run and compares at each pause.
fn compare(settings: &Settings, pauses: impl IntoIterator<Item = u64>) {
    let mut cluster = Cluster::new(settings, START_NS);
    let mut store = Store::new(Limits::default());
    for pause in pauses {
        for delivery in cluster.advance(START_NS + pause) {
            take(&mut store, delivery);
        }
        store.refresh(START_NS + pause);
        same(&store, cluster.ledger(), settings);
    }
    for delivery in cluster.drain() {
        take(&mut store, delivery);
    }
    store.finish(cluster.now_ns());
    same(&store, cluster.ledger(), settings);
    let report = Report::of(&store, InputSection::default(), None);
    assert_eq!(report.requests.in_flight, 0, "everything was sent, so every request has ended");
    whole_requests(&store, cluster.ledger());
}

fn take(store: &mut Store, delivery: reqtop::demo::Delivery) {
    let signal = match delivery.signal {
        Signal::Traces => Wire::Traces,
        Signal::Logs => Wire::Logs,
    };
    let receipt = take_in(store, &mut Payload::otlp(signal, delivery.body), delivery.at_ns).unwrap();
    assert_eq!(receipt.refused, 0, "{receipt:?}");
}

fn words<K: ToString, V: Copy>(map: impl IntoIterator<Item = (K, V)>) -> BTreeMap<String, V> {
    map.into_iter().map(|(key, value)| (key.to_string(), value)).collect()
}

fn some(map: BTreeMap<String, u64>) -> BTreeMap<String, u64> {
    map.into_iter().filter(|(_, count)| *count > 0).collect()
}

/// Sums a ledger's map over the part of its keys that `key` keeps.
fn by<'a>(map: &'a BTreeMap<String, u64>, key: impl Fn(&'a str) -> String) -> BTreeMap<String, u64> {
    let mut sums = BTreeMap::new();
    for (joined, count) in map {
        *sums.entry(key(joined)).or_default() += count;
    }
    sums
}

fn quantiles(samples: &Samples) -> [Option<u64>; 4] {
    [0.5, 0.9, 0.99, 1.0].map(|q| samples.quantile(q).map(|value| value.round() as u64))
}

fn same(store: &Store, ledger: &Ledger, settings: &Settings) {
    let report = Report::of(store, InputSection::default(), None);
    let tally = &ledger.tally;
    assert_eq!(report.spans.by_name, tally.spans_by_name);
    assert_eq!(report.spans.total, tally.spans);
    assert_eq!((report.spans.duplicates, report.spans.rejected), (0, 0));
    assert_eq!(report.records.by_type, tally.records_by_type);
    assert_eq!(report.requests.total, ledger.begun);
    assert_eq!(some(words(report.requests.by_outcome.clone())), tally.outcomes);
    assert_eq!(report.input.request_logs, tally.received + tally.completed.values().sum::<u64>());

    // Queue.
    let queue = &report.queue;
    let (mut spans, mut outcomes, mut reasons, mut deferred) = (0, BTreeMap::new(), BTreeMap::new(), BTreeMap::new());
    let mut waits = Samples::default();
    let mut depths: BTreeMap<&str, (u64, u64)> = BTreeMap::new();
    for (key, of) in &tally.queues {
        spans += of.spans;
        for (sums, parts) in [(&mut outcomes, &of.outcomes), (&mut reasons, &of.reasons), (&mut deferred, &of.deferred)]
        {
            for (word, count) in parts {
                *sums.entry(word.clone()).or_insert(0) += count;
            }
        }
        waits.values.extend(&of.waits_ns.values);
        let class = key.split('|').next_back().unwrap();
        let depth = depths.entry(class).or_default();
        *depth = (depth.0.max(of.max_depth_in), depth.1.max(of.max_depth_out));
    }
    assert_eq!(queue.recorded.spans, spans);
    assert_eq!(queue.outcomes, outcomes);
    let said: BTreeMap<_, _> = queue.reasons.clone().into_iter().filter(|(reason, _)| reason != "none").collect();
    assert_eq!(said, reasons);
    let q = &queue.recorded.wait_ns;
    assert_eq!([q.p50, q.p90, q.p99, q.max], quantiles(&waits));
    for (class, (depth_in, depth_out)) in depths {
        let of = &queue.per_class[class];
        assert_eq!((of.max_depth_in, of.max_depth_out), (Some(depth_in), Some(depth_out)), "{class}");
    }
    for (reason, count) in &deferred {
        assert!(queue.deferred_by_reason.get(reason) >= Some(count), "{reason}");
    }
    assert_eq!(queue.inferred.spans, 0, "every wait has its queue span");

    // Selection.
    let (selection, truth) = (&report.selection.recorded, &tally.selection);
    assert_eq!(words(selection.by_pool.clone()), truth.by_pool);
    assert_eq!(selection.made, truth.by_pool.values().sum::<u64>());
    assert_eq!((selection.single_candidate, selection.ties), (truth.single, truth.ties));
    assert_eq!(selection.near_ties, truth.near_ties);
    assert_eq!((selection.chosen_is_not_best, selection.chosen_costs_more_than_best), (truth.not_best, truth.regret.n));
    assert!((selection.regret_sum - truth.regret.sum).abs() <= 1e-6 * truth.regret.sum.max(1.0));
    assert_eq!(
        (selection.candidates_total, selection.filtered_total),
        (truth.candidates, truth.filtered.values().sum())
    );
    let parts = words(selection.filtered_by_part.clone());
    for part in FILTERS {
        assert_eq!(parts[part], truth.filtered.get(part).copied().unwrap_or(0), "{part}");
    }
    let m = &selection.margin_two_or_more_candidates;
    assert_eq!([m.p50, m.p90, m.p99, m.max], [0.5, 0.9, 0.99, 1.0].map(|q| truth.margins.quantile(q)));
    assert_eq!(selection.selected_by_worker, truth.by_worker);

    // Dispatch.
    let matrix = report.dispatch.recorded.matrix.iter();
    let cells: BTreeMap<_, _> =
        matrix.map(|row| (format!("{}|{}|{}", row.phase, row.result, row.attempt), row.count)).collect();
    assert_eq!(cells, tally.dispatches);
    let mut per_worker = BTreeMap::new();
    for row in report.workers.iter() {
        *per_worker.entry(format!("{}|{}", row.phase, row.worker)).or_insert(0) += row.dispatched;
    }
    assert_eq!(per_worker, tally.dispatches_by_worker);
    assert_eq!(
        report.dispatch.recorded.attempt_outcomes,
        by(&tally.routes, |key| key.split('|').next_back().unwrap().into())
    );
    assert_eq!(report.dispatch.recorded.migrations, tally.migrations);
    let mut carried = tally.tokens_carried.clone();
    carried.sort_unstable();
    assert_eq!(report.dispatch.recorded.tokens_carried.max, carried.last().copied());
    assert_eq!(report.dispatch.admission.by_result, tally.admissions);
    assert_eq!(report.dispatch.admission.payload_bytes_total, tally.payload_bytes.sum as u64);

    // Streaming: core mode records neither events nor how a stream ended.
    let streaming = &report.streaming;
    assert_eq!(streaming.spans, tally.streams.values().sum::<u64>());
    if settings.mode == Mode::Investigation {
        assert_eq!(streaming.outcomes, tally.streams);
        assert_eq!(streaming.events_total, tally.events.sum as u64);
        let e = &streaming.events_at_leaving;
        assert_eq!([e.p50, e.p90, e.p99, e.max], quantiles(&tally.events_at_leaving));
    }
    let root_ns: Vec<f64> = tally.root_ns.values().flat_map(|samples| samples.values.iter().copied()).collect();
    let d = &report.latency.root_duration_ns;
    let roots = Samples { n: root_ns.len() as u64, sum: 0.0, values: root_ns };
    assert_eq!([d.p50, d.p90, d.p99, d.max], quantiles(&roots));
}

/// Every request that was handed over whole is read as it was lived.
fn whole_requests(store: &Store, ledger: &Ledger) {
    let facts: BTreeMap<&str, _> = store.requests().map(|(_, facts)| (&*facts.request_id, facts)).collect();
    assert_eq!(ledger.requests.len() as u64, ledger.finished);
    for truth in &ledger.requests {
        let facts = facts[&*truth.request_id];
        let read = (facts.outcome_text(), facts.attempts(), facts.spans, facts.trace.map(|id| id.to_string()));
        assert_eq!(
            read,
            (&*truth.outcome, truth.attempts, truth.spans, Some(truth.trace_id.clone())),
            "{}",
            truth.request_id
        );
        let waits: Vec<u64> = facts.legs.iter().filter_map(|leg| Some(leg.queue.as_ref()?.wait_ns)).collect();
        assert_eq!(waits, truth.waits_ns, "{}", truth.request_id);
        let dispatched: Vec<String> = facts
            .legs
            .iter()
            .filter(|leg| leg.dispatch.is_some())
            .map(|leg| {
                let worker = leg.worker().unwrap();
                format!("{}#{} {}:{}", leg.phase.word(), leg.attempt, worker.id, worker.rank.unwrap_or(0))
            })
            .collect();
        assert_eq!(dispatched, truth.dispatched, "{}", truth.request_id);
        assert_eq!(facts.total_ns(), Some(truth.root_ns), "{}", truth.request_id);
        assert_eq!(*facts.session_id, *truth.session_id);
    }
}

#[test]
fn a_disaggregated_cluster_at_many_pauses() {
    let settings = Settings { seed: 7, ..Settings::default() };
    compare(&settings, (1..90).map(|pause| pause * SECOND));
}

#[test]
fn an_aggregated_cluster_in_core_mode() {
    let settings = Settings { seed: 11, aggregated: true, mode: Mode::Core, ..Settings::default() };
    compare(&settings, [5, 17, 60, 120].map(|pause| pause * SECOND));
}

#[test]
fn a_busy_cluster() {
    let settings = Settings { seed: 3, rate: 80.0, ..Settings::default() };
    compare(&settings, [7, 40].map(|pause| pause * SECOND));
}
