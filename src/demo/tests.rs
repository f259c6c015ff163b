//! The invariants that make the demo worth comparing with: determinism, the checks of the spec, the ledger.

use std::collections::{BTreeMap, HashMap, HashSet};

use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::any_value::Value;
use prost::Message;

use super::*;

const START: u64 = 1_796_000_000_000_000_000;
const SECOND: u64 = 1_000_000_000;

#[test]
fn look() {
    let mut cluster = Cluster::new(&Settings::default(), START);
    let mut last = BTreeMap::new();
    for second in 1..=120u64 {
        cluster.advance(START + second * SECOND);
        if second % 5 == 0 {
            let t = &cluster.ledger().tally;
            let deferred: BTreeMap<_, _> = t.queues.iter().map(|(k, q)| (k.clone(), (q.spans, q.deferred.clone(), q.reasons.get("request_limit").copied(), q.max_depth_in, q.waits_ns.quantile(0.99).map(|x| x / 1e6)))).collect();
            let now = t.outcomes.clone();
            let delta: BTreeMap<_, _> = now.iter().map(|(k, v)| (k.clone(), v - last.get(k).copied().unwrap_or(0))).collect();
            println!("{second} {delta:?} in flight {} mig {:?}", cluster.ledger().in_flight(), t.migrations);
            if second % 30 == 0 {
                println!("   {deferred:?}");
            }
            last = now;
        }
    }
    cluster.drain();
    let t = &cluster.ledger().tally;
    let mut s = t.clone();
    for q in s.queues.values_mut() { q.waits_ns.values.clear(); q.deferred_waits_ns.values.clear(); }
    println!("{:?}\n{:?} {:?} {:?} {:?} {:?}", s.queues, t.outcomes, t.dispatches, t.routes, t.admissions, t.streams);
    println!("sel single {} ties {} near {} notbest {} regret n {} p99 {:?} margins p50 {:?} p90 {:?} filtered {:?} by_rank {:?}", t.selection.single, t.selection.ties, t.selection.near_ties, t.selection.not_best, t.selection.regret.n, t.selection.regret.quantile(0.99), t.selection.margins.quantile(0.5), t.selection.margins.quantile(0.9), t.selection.filtered, t.selection.by_rank);
    println!("ttft p50 {:?} p99 {:?} tokens {:?} rec {:?} events {:?} sessions {}", t.ttft_ms.quantile(0.5), t.ttft_ms.quantile(0.99), t.http_tokens, t.record_tokens, t.events_at_leaving.quantile(0.5), t.session_turns.len());
}
