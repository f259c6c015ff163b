//! The invariants that make the demo worth comparing with: determinism, its look, the spec's checks, the ledger.

mod evidence;
mod ledger;
mod reading;

use super::*;
use reading::{Reading, START};

const SECOND: u64 = 1_000_000_000;

fn aggregated() -> Settings {
    Settings { seed: 7, aggregated: true, mode: Mode::Core, ..Settings::default() }
}

#[test]
fn the_same_seed_gives_the_same_bytes_whatever_the_steps() {
    let settings = Settings { seed: 3, ..Settings::default() };
    let whole = Cluster::new(&settings, START).advance(START + 40 * SECOND);
    let mut cluster = Cluster::new(&settings, START);
    let mut stepped = Vec::new();
    let mut until_ns = START;
    while until_ns < START + 40 * SECOND {
        until_ns = (until_ns + 7_654_321).min(START + 40 * SECOND);
        stepped.extend(cluster.advance(until_ns));
    }
    assert!(whole.len() > 300);
    assert!(whole == stepped);
    let other = Cluster::new(&Settings { seed: 4, ..settings }, START).advance(START + 40 * SECOND);
    assert!(whole != other);
}

#[test]
fn the_mode_changes_what_is_told_and_not_what_happens() {
    let run = |mode| {
        let mut cluster = Cluster::new(&Settings { mode, ..Settings::default() }, START);
        cluster.advance(START + 20 * SECOND);
        let mut tally = cluster.ledger().tally.clone();
        tally.spans_by_name.clear();
        tally
    };
    assert_eq!(run(Mode::Core), run(Mode::Investigation));
}

#[test]
fn a_person_sees_waves_refusals_and_a_migration_within_the_first_minute() {
    for seed in 1..=4 {
        let mut cluster = Cluster::new(&Settings { seed, ..Settings::default() }, START);
        let mut depths = Vec::new();
        for second in 1..=60 {
            let before = cluster.ledger().tally.queues.values().map(|queue| queue.waits_ns.sum).sum::<f64>();
            cluster.advance(START + second * SECOND);
            let after = cluster.ledger().tally.queues.values().map(|queue| queue.waits_ns.sum).sum::<f64>();
            depths.push(((after - before) / 1e9) as u64);
        }
        let tally = &cluster.ledger().tally;
        let total: u64 = tally.outcomes.values().sum();
        let share = |outcome: &str| tally.outcomes.get(outcome).copied().unwrap_or(0) as f64 / total as f64;
        assert!((600..=850).contains(&total), "seed {seed}: {total} requests in a minute");
        assert!((0.7..0.9).contains(&share("success")), "seed {seed}: {} succeed", share("success"));
        assert!(share("cancelled") > 0.04 && share("rejected") > 0.01, "seed {seed}: {:?}", tally.outcomes);
        assert!(tally.migrations.values().sum::<u64>() > 0, "seed {seed}: no migration");
        // Waiting per second: it fills, drains, and fills again.
        let crest = depths[5..15].iter().max().unwrap();
        let trough = depths[20..30].iter().min().unwrap();
        let next = depths[35..48].iter().max().unwrap();
        assert!(*crest >= 1 && *trough <= 1 && *next >= 3, "seed {seed}: {depths:?}");
    }
}

#[test]
fn the_cluster_is_sized_to_its_rate_unless_told() {
    let shape = |rate, workers, aggregated| Settings { rate, workers, aggregated, ..Settings::default() }.shape();
    assert_eq!(shape(12.0, None, false), Shape::Disaggregated { prefill: 2, decode: 4 });
    assert_eq!(shape(120.0, None, false), Shape::Disaggregated { prefill: 20, decode: 40 });
    assert_eq!(shape(12.0, Some(3), true), Shape::Aggregated { workers: 3 });
    for rate in [f64::NAN, 0.0, -1.0] {
        let mut cluster = Cluster::new(&Settings { rate, ..Settings::default() }, START);
        cluster.advance(START + SECOND);
        assert!(cluster.drain().len() < 1_000);
    }
}

#[test]
fn everything_of_the_first_five_seconds_is_read_back() {
    let mut cluster = Cluster::new(&Settings::default(), START);
    let mut deliveries = cluster.advance(START + 5 * SECOND);
    deliveries.extend(cluster.drain());
    let reading = Reading::of(&deliveries);
    assert_eq!(reading.spans.len() as u64, cluster.ledger().tally.spans);
    assert!(cluster.is_done() && cluster.ledger().in_flight() == 0);
}
