//! Clocks that jump.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::FairMutex;
use reqtop::demo::{Cluster, Settings, Signal as Sent};
use reqtop::pipeline;
use reqtop::source::intake::{Bounds, Payload, Signal, channel};
use reqtop::store::{Limits, Store};

use crate::Form;

const START_NS: u64 = 1_796_003_500_000_000_000;
const SECOND: u64 = 1_000_000_000;

/// What a store says in the end: requests by outcome, those without a root, spans, answers of checks.
fn told(seconds: u64, jump: impl Fn(u64, u64) -> u64) -> (String, u64) {
    let mut cluster = Cluster::new(&Settings { seed: 5, ..Settings::default() }, START_NS);
    let mut deliveries = cluster.advance(START_NS + seconds * SECOND);
    deliveries.extend(cluster.drain());
    let (intake, outlet) = channel(Bounds::default());
    let store = Arc::new(FairMutex::new(Store::new(Limits::default())));
    let now = Arc::new(AtomicU64::new(START_NS));
    let clock = Arc::clone(&now);
    let writer =
        pipeline::start(outlet, Arc::clone(&store), Arc::new(move || clock.load(Ordering::Relaxed)), || {}).unwrap();
    let all = deliveries.len() as u64;
    for (at, delivery) in deliveries.into_iter().enumerate() {
        now.store(jump(delivery.at_ns, at as u64 * 100 / all), Ordering::Relaxed);
        let signal = match delivery.signal {
            Sent::Traces => Signal::Traces,
            Sent::Logs => Signal::Logs,
        };
        intake.offer_blocking(Payload::otlp(signal, delivery.body)).unwrap();
    }
    drop(intake);
    writer.join().unwrap();
    let mut store = store.lock();
    let mut now_ns = now.load(Ordering::Relaxed);
    store.refresh(now_ns);
    // What was put off by an earlier clock is asked by this one, within seconds.
    for _ in 0..200 {
        now_ns = now_ns.saturating_add(SECOND / 10);
        store.refresh(now_ns);
        store.check(now_ns);
    }
    assert_eq!(store.next_check_ns(), None, "checks wait for a clock that is gone");
    store.finish(now_ns);
    store.check_all();
    let (standing, counts) = (store.standing(), store.counts());
    let said = format!("{:?} {} {} {}", standing.by_outcome, standing.total, standing.lost, counts.spans_received);
    let spans = counts.spans_received;
    (said, spans)
}

/// Back and forth, by seconds and by years, once and all the time: requests come out as without.
pub fn jumps(form: Form) -> String {
    const HOUR: u64 = 3600 * SECOND;
    let seconds = form.pick(4, 60);
    let (usual, spans) = told(seconds, |now, _| now);
    type Jump = fn(u64, u64) -> u64;
    let jumps: [(&str, Jump); 7] = [
        ("back an hour", |now, done| if done < 50 { now } else { now - HOUR }),
        ("on a day", |now, done| if done < 50 { now } else { now + 24 * HOUR }),
        ("on a day and back", |now, done| if done % 20 < 10 { now } else { now + 24 * HOUR }),
        ("a second back and forth", |now, done| if done % 2 == 0 { now } else { now - SECOND }),
        ("to the beginning", |now, done| if done < 50 { now } else { 0 }),
        ("to the end", |now, done| if done < 50 { now } else { u64::MAX - 1 }),
        ("stands still", |_, _| START_NS),
    ];
    for (name, jump) in jumps {
        assert_eq!(told(seconds, jump).0, usual, "{name}");
    }
    format!("{} jumps over {spans} spans each: the same requests, outcomes and counts", jumps.len())
}
