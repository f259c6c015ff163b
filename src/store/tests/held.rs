//! What is held is what there was, whatever comes, goes and is swept away meanwhile.

use super::*;
use crate::lifecycle::request::Up;

/// The spans of a request with where their parents are, and its records.
type Seen = (Vec<(SpanId, bool)>, usize);

fn seen(store: &Store, key: RequestKey, past: &crate::store::Past) -> Option<Seen> {
    let request = store.request_at(key, past)?;
    let spans = request.spans.iter().map(|span| (span.id, matches!(span.up, Up::At(_) | Up::Top)));
    Some((spans.collect(), request.records.len()))
}

/// A request that shares a trace with others: its root first, then parents and leaves.
fn request(trace: u16, number: u64) -> Vec<Spec> {
    let id = (u64::from(trace) << 32) | (number << 8);
    let rid = format!("r-{trace}-{number}");
    let named = |spec: Spec| spec.with("dynamo.request.id", &rid);
    let mut all = vec![named(span(trace, id + 1, 0, "request.lifecycle", number, number + 500))];
    for leg in 0..4 {
        let attempt = id + 10 + leg * 10;
        all.push(named(span(trace, attempt, id + 1, "router.attempt", number + leg, number + leg + 9)));
        for leaf in 1..5 {
            all.push(named(span(trace, attempt + leaf, attempt, "router.queue", number + leg, number + leg + 3)));
        }
    }
    all
}

#[test]
fn what_is_held_is_what_there_was_whatever_comes_and_goes() {
    for seed in 0..24 {
        let mut rng = fastrand::Rng::with_seed(seed);
        let mut store = store();
        let mut waiting: Vec<Vec<Spec>> = (1..4).flat_map(|trace| (1..9).map(move |n| request(trace, n))).collect();
        rng.shuffle(&mut waiting);
        // Roots are there; what else comes does so in any order, leaves before their parents.
        for specs in &mut waiting {
            send(&mut store, &[specs.remove(0)], 1);
            rng.shuffle(specs);
        }
        let mut now_ns = 1;
        let mut come = |store: &mut Store, rng: &mut fastrand::Rng, count: usize| {
            for _ in 0..count {
                now_ns += 1;
                let at = rng.usize(..waiting.len());
                let count = waiting[at].len().min(rng.usize(1..4));
                send(store, &waiting[at].drain(..count).collect::<Vec<_>>(), now_ns);
                if rng.u8(..4) == 0 {
                    let (trace, number) = (rng.u16(1..4), rng.u64(1..9));
                    record(
                        store,
                        &format!(
                            r#"{{"event_type":"request_end","event_time_unix_ms":{},"request":{{"request_id":"r-{trace}-{number}"}}}}"#,
                            EPOCH_MS + now_ns
                        ),
                    );
                }
                store.refresh(now_ns);
                store.check(now_ns);
                // Whole requests go, and now and then a trace is swept.
                if rng.u8(..8) == 0 {
                    let keys: Vec<RequestKey> = store.requests().map(|(key, _)| key).collect();
                    store.evict_request(keys[rng.usize(..keys.len())]);
                }
            }
        };
        for _ in 0..3 {
            come(&mut store, &mut rng, 40);
            let past = store.still(7);
            store.hold(&past);
            let facts: Vec<(RequestKey, Facts)> =
                all(&store).into_iter().map(|(key, facts)| (key, facts.clone())).collect();
            let then: Vec<_> = facts.iter().map(|(key, _)| seen(&store, *key, &past)).collect();
            come(&mut store, &mut rng, 60);
            let mut changed = 0;
            for ((key, facts), then) in facts.iter().zip(&then) {
                if let Some(now) = seen(&store, *key, &past) {
                    assert_eq!(Some(&now), then.as_ref(), "seed {seed}, {key:?}");
                    let before = store.before(&past, *key);
                    assert_eq!(before.map_or_else(|| store.facts(*key).unwrap(), |before| &before.facts), facts);
                    changed += usize::from(before.is_some());
                }
            }
            assert!(changed > 3, "seed {seed}: only {changed} changed");
            store.release();
        }
        // What was kept of it goes with it.
        let keys: Vec<RequestKey> = store.requests().map(|(key, _)| key).collect();
        keys.into_iter().for_each(|key| store.evict_request(key));
        assert!(store.lens().held().is_none());
    }
}

/// Requests that turn out to be one have one tree; but each has the facts it had.
#[test]
fn requests_that_are_joined_while_they_are_held_keep_their_facts() {
    let mut store = store();
    let worker = span(1, 9, 8, "worker.operation", 5, 9).with("dynamo.request.id", "r-1");
    send(&mut store, &[worker], 1);
    store.refresh(1);
    send(&mut store, &[span(2, 1, 0, "request.lifecycle", 0, 100)], 1);
    store.refresh(1);
    let [one, other] = store.requests().map(|(key, _)| key).collect::<Vec<_>>()[..] else { panic!("two requests") };
    let past = store.still(7);
    store.hold(&past);
    let size = store.memory();
    // The root turns out to be of the same request: it carries its id now.
    send(&mut store, &[span(2, 2, 1, "router.queue", 1, 2).with("dynamo.request.id", "r-1")], 2);
    store.refresh(2);
    assert_eq!(store.resolve(other), store.resolve(one));
    assert_eq!(store.before(&past, other).unwrap().facts.spans, 1);
    assert_eq!(store.before(&past, one).unwrap().facts.spans, 1);
    assert!(store.memory() > size);
    store.release();
    assert!(store.before(&past, one).is_none());
}
