//! Looking back: the store as it was at a moment is a store that was told only what was known by then.

use std::collections::BTreeMap;
use std::time::Instant;

use reqtop::demo::{self, Cluster, Delivery, Settings};
use reqtop::query::Query;
use reqtop::source::decode;
use reqtop::source::intake::{Payload, Signal};
use reqtop::store::rollup::Rollup;
use reqtop::store::{Limits, Store};

const START_NS: u64 = 1_796_000_000_000_000_000;
const SECOND: u64 = 1_000_000_000;

fn payload(delivery: &Delivery) -> Payload {
    let signal = match delivery.signal {
        demo::Signal::Traces => Signal::Traces,
        demo::Signal::Logs => Signal::Logs,
    };
    Payload::otlp(signal, delivery.body.clone())
}

/// A store that is told what was known by a moment, or everything.
fn told(deliveries: &[Delivery], until_ns: u64) -> Store {
    let mut store = Store::new(Limits::default());
    for delivery in deliveries {
        let mut payload = payload(delivery);
        let mut batch = decode(&mut payload).unwrap();
        batch.spans.retain(|span| span.start_ns.max(span.end_ns) <= until_ns);
        batch.records.retain(|record| record.time_ms * 1_000_000 <= until_ns);
        batch.signs.retain(|sign| sign.time_ns <= until_ns);
        store.ingest(&batch, delivery.at_ns.min(until_ns));
        store.refresh(delivery.at_ns.min(until_ns));
    }
    store.finish(until_ns.min(deliveries.last().unwrap().at_ns));
    store
}

fn look(store: &mut Store, filter: &str, window_ns: Option<u64>, until_ns: u64) -> Rollup {
    store.look(&Query::parse(filter).unwrap(), window_ns, until_ns);
    loop {
        store.refresh_lens(until_ns);
        if store.lens().is_whole() {
            return store.lens().rollup().clone();
        }
    }
}

/// The facts of every request by its id.
fn facts<'a>(each: impl Iterator<Item = &'a reqtop::lifecycle::facts::Facts>) -> BTreeMap<String, String> {
    each.map(|facts| (facts.request_id.to_string(), format!("{facts:#?}"))).collect()
}

#[test]
fn looking_back_shows_what_a_store_shows_that_was_told_only_so_much() {
    for (seed, aggregated) in [(1, false), (2, true)] {
        let settings = Settings { seed, aggregated, rate: 8.0, ..Settings::default() };
        let mut cluster = Cluster::new(&settings, START_NS);
        let mut deliveries = cluster.advance(START_NS + 12 * SECOND);
        deliveries.extend(cluster.drain());
        let mut whole = told(&deliveries, u64::MAX);
        // Back, a little forth, to the ends, and by odd steps.
        let steps = [10_000, 9_000, 9_500, 3_100, 1, 11_777, 6_345, 6_346, 60_000];
        let mut moments: Vec<(u64, Store)> =
            steps.map(|step| (START_NS + step * 1_000_000, told(&deliveries, START_NS + step * 1_000_000))).into();
        for filter in ["", "outcome:cancelled", "phase:prefill", "worker.operation"] {
            for window_ns in [None, Some(3 * SECOND)] {
                look(&mut whole, filter, window_ns, START_NS + 60 * SECOND);
                for (at_ns, then) in &mut moments {
                    let past = whole.past(*at_ns);
                    whole.hold(&past);
                    let seen = look(&mut whole, filter, window_ns, *at_ns);
                    let expected = look(then, filter, window_ns, *at_ns);
                    assert!(seen == expected, "{filter} {window_ns:?} at {at_ns} of seed {seed}");
                }
                whole.release();
            }
        }
        for (at_ns, then) in &moments {
            let past = whole.past(*at_ns);
            assert_eq!(past.standing(), then.standing(), "{at_ns}");
            let of = |key| past.changed(key).or_else(|| whole.facts(key)).unwrap();
            let back = facts(past.keys().iter().map(|key| of(*key)));
            assert_eq!(back, facts(then.requests().map(|(_, facts)| facts)), "{at_ns} of seed {seed}");
            let spans = past.keys().iter().flat_map(|key| whole.request_at(*key, &past).unwrap().spans);
            assert!(spans.into_iter().all(|span| span.end_ns <= *at_ns));
        }
    }
}

#[test]
fn what_comes_while_looking_back_changes_nothing_until_the_moment_moves() {
    let mut cluster = Cluster::new(&Settings { seed: 4, ..Settings::default() }, START_NS);
    let mut deliveries = cluster.advance(START_NS + 10 * SECOND);
    let mut store = told(&deliveries, u64::MAX);
    let at_ns = START_NS + 6 * SECOND;
    let past = store.past(at_ns);
    store.hold(&past);
    let before = look(&mut store, "", None, at_ns);
    let more = cluster.advance(START_NS + 20 * SECOND);
    for delivery in &more {
        let mut payload = payload(delivery);
        store.ingest(&decode(&mut payload).unwrap(), delivery.at_ns);
        store.refresh(delivery.at_ns);
    }
    assert!(look(&mut store, "", None, at_ns) == before);
    deliveries.extend(more);
    for step in [7, 15, 5] {
        let at_ns = START_NS + step * SECOND;
        let past = store.past(at_ns);
        store.hold(&past);
        let seen = look(&mut store, "", None, at_ns);
        assert!(seen == look(&mut told(&deliveries, at_ns), "", None, at_ns), "{step}");
    }
    store.release();
    let live = look(&mut store, "", None, START_NS + 20 * SECOND);
    assert!(live == look(&mut told(&deliveries, u64::MAX), "", None, START_NS + 20 * SECOND));
}

/// What a move costs with many requests kept; printed, not asserted: `cargo test --release --test rewind -- --ignored
/// --nocapture`.
#[test]
#[ignore = "a measurement"]
fn what_a_move_costs() {
    let mut cluster = Cluster::new(&Settings { rate: 400.0, ..Settings::default() }, START_NS);
    let mut store = Store::new(Limits { memory: 4 << 30, ..Limits::default() });
    let end_ns = START_NS + 250 * SECOND;
    let mut now_ns = START_NS;
    while now_ns < end_ns {
        now_ns += SECOND;
        for delivery in cluster.advance(now_ns) {
            store.ingest(&decode(&mut payload(&delivery)).unwrap(), delivery.at_ns);
        }
        store.refresh(now_ns);
    }
    println!("{} requests kept", store.len());
    for window_ns in [None, Some(60 * SECOND)] {
        look(&mut store, "", window_ns, end_ns);
        let mut at_ns = end_ns;
        for back in [1, 1, 1, 15, 15, 200, 1, 1] {
            at_ns -= back * SECOND;
            let began = Instant::now();
            let past = store.past(at_ns);
            let assembled = began.elapsed();
            store.hold(&past);
            store.look(&Query::default(), window_ns, at_ns);
            store.refresh_lens(at_ns);
            let (all, whole) = (began.elapsed(), store.lens().is_whole());
            let open = past.standing().in_flight;
            println!(
                "window {window_ns:?}: {back} s back: {all:?}, of that {assembled:?} for {open} in flight; whole: {whole}"
            );
        }
        store.release();
    }
}
