//! The ledger equals what the deliveries say, at any pause and at the end.

use std::collections::{BTreeMap, HashMap, HashSet};

use super::super::*;
use super::reading::{Reading, START, named};
use super::{SECOND, aggregated};

fn counted(keys: impl Iterator<Item = String>) -> BTreeMap<String, u64> {
    let mut counts = BTreeMap::new();
    keys.for_each(|key| *counts.entry(key).or_default() += 1);
    counts
}

#[test]
fn at_any_pause_the_tally_is_what_was_handed_over() {
    for settings in [Settings::default(), aggregated()] {
        let mut cluster = Cluster::new(&settings, START);
        let mut deliveries = Vec::new();
        for pause in [300, 2_500, 9_100, 41_300] {
            deliveries.extend(cluster.advance(START + pause * SECOND / 1_000));
            equal(&Reading::of(&deliveries), &cluster);
        }
        deliveries.extend(cluster.drain());
        let reading = Reading::of(&deliveries);
        equal(&reading, &cluster);
        whole(&reading, &cluster);
    }
}

fn equal(reading: &Reading, cluster: &Cluster) {
    let tally = &cluster.ledger().tally;
    let spans = |name: &'static str| reading.spans.iter().filter(move |span| span.name == name);
    assert_eq!(tally.spans_by_name, counted(reading.spans.iter().map(|span| span.name.clone())));
    let outcomes = spans("request.lifecycle").map(|root| root.must("dynamo.request.terminal.outcome"));
    assert_eq!(tally.outcomes, counted(outcomes));
    let dispatches = spans("request.dispatch").map(|span| {
        let word = |key: &str| span.must(&format!("dynamo.{key}"));
        format!("{}|{}|{}", word("dispatch.phase"), word("dispatch.result"), word("request.attempt"))
    });
    assert_eq!(tally.dispatches, counted(dispatches));
    let admissions = spans("worker.admission").map(|span| {
        let word = |key: &str| span.must(&format!("dynamo.worker.admission.{key}"));
        format!("{}|{}", word("result"), word("transport"))
    });
    assert_eq!(tally.admissions, counted(admissions));
    let waits: Vec<f64> = spans("router.queue").map(|span| (span.end - span.start) as f64).collect();
    assert_eq!(tally.queues.values().map(|queue| queue.waits_ns.n).sum::<u64>(), waits.len() as u64);
    assert_eq!(tally.queues.values().map(|queue| queue.waits_ns.sum).sum::<f64>(), waits.iter().sum::<f64>());
    let reasons = spans("router.queue").filter_map(|span| span.text("dynamo.router.queue.reason"));
    let mut told: BTreeMap<String, u64> = BTreeMap::new();
    for (reason, n) in tally.queues.values().flat_map(|queue| &queue.reasons) {
        *told.entry(reason.clone()).or_default() += n;
    }
    assert_eq!(told, counted(reasons));
    let margins: Vec<f64> = spans("router.selection")
        .filter(|span| span.number("dynamo.router.candidate.count") > 1)
        .map(|span| span.real("dynamo.router.best.margin"))
        .collect();
    assert_eq!(tally.selection.margins.values, margins);
    let ranks = spans("router.selection").map(|span| {
        let word = |key: &str| span.must(&format!("dynamo.router.selected.{key}"));
        format!("{}:{}", word("worker.id"), word("dp.rank"))
    });
    assert_eq!(tally.selection.by_rank, counted(ranks));
    let ttft: Vec<f64> = spans("http-request").filter_map(|span| span.text("ttft_ms")?.parse().ok()).collect();
    assert_eq!(tally.ttft_ms.values, ttft);
    let carried: Vec<u64> = spans("kv_router.route_request")
        .filter(|span| span.text("migration.reason").is_some())
        .map(|span| span.number("migration.tokens_completed"))
        .collect();
    assert_eq!(tally.tokens_carried, carried);
    let records = reading.logs.iter().filter(|log| log.0 == "dynamo.request_trace").map(|log| log.1.clone());
    assert_eq!(tally.records_by_type, counted(records));
    let received = reading.logs.iter().filter(|log| log.1 == "request received").count() as u64;
    assert_eq!(tally.received, received);
}

fn whole(reading: &Reading, cluster: &Cluster) {
    let ledger = cluster.ledger();
    assert_eq!((ledger.in_flight(), ledger.begun), (0, reading.traces.len() as u64));
    assert_eq!(ledger.requests.len(), reading.traces.len());
    let mut ids = HashSet::new();
    for truth in &ledger.requests {
        assert!(ids.insert(&truth.request_id));
    }
    let truths: HashMap<&str, _> = ledger.requests.iter().map(|truth| (truth.request_id.as_str(), truth)).collect();
    for request in reading.requests() {
        let root = named(&request, "request.lifecycle")[0];
        let truth = truths[root.must("dynamo.request.id").as_str()];
        assert_eq!(truth.outcome, root.must("dynamo.request.terminal.outcome"));
        assert_eq!(truth.spans as usize, request.len());
        assert_eq!(truth.root_ns, root.end - root.start);
        assert_eq!(truth.dispatched.len(), named(&request, "request.dispatch").len());
    }
}

#[test]
fn every_kind_of_end_happens() {
    let mut cluster = Cluster::new(&Settings::default(), START);
    for second in 1..=260 {
        cluster.advance(START + second * SECOND);
    }
    let tally = &cluster.ledger().tally;
    for outcome in ["success", "cancelled", "rejected", "timed_out", "failed"] {
        assert!(tally.outcomes.contains_key(outcome), "{:?}", tally.outcomes);
    }
    for dispatch in ["prefill|accepted|0", "decode|accepted|1", "decode|failed|0"] {
        assert!(tally.dispatches.contains_key(dispatch), "{:?}", tally.dispatches);
    }
    assert!(tally.dispatches.keys().any(|key| key.contains("|cancelled|")), "{:?}", tally.dispatches);
    assert!(tally.admissions.contains_key("rejected|tcp"), "{:?}", tally.admissions);
    let reasons: HashSet<&str> =
        tally.queues.values().flat_map(|queue| queue.reasons.keys().map(String::as_str)).collect();
    let all = [
        "prefill_capacity",
        "class_backlog",
        "request_limit",
        "raw_isl_token_limit",
        "request_lifecycle_ended_before_admission",
    ];
    assert!(all.iter().all(|reason| reasons.contains(reason)), "{reasons:?}");
    let selection = &tally.selection;
    assert!(selection.ties > 0 && selection.near_ties > 0 && selection.not_best > 0);
    assert!(selection.regret.n == selection.not_best && selection.filtered["policy"] > 0);
    assert!(tally.session_turns.values().any(|turns| *turns >= 3));
}
