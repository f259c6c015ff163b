//! Any order of arrival and any repetition: the same requests, nothing lost uncounted, every byte back.

use proptest::prelude::*;

use super::*;
use crate::lifecycle::request::{Node, Up};

/// What does not depend on the order of arrival.
fn summary(store: &Store) -> Vec<(String, String)> {
    let mut all: Vec<_> = store
        .requests()
        .map(|(key, facts)| {
            let view = store.request(key).unwrap();
            let tree: Vec<_> = view
                .tree()
                .iter()
                .map(|row| match row.node {
                    Node::Span(at) => format!("{}{}", row.depth, view.spans[at as usize].id),
                    Node::Missing(id) => format!("{}missing {id}", row.depth),
                })
                .collect();
            (facts.request_id.to_string(), format!("{facts:?} {tree:?}"))
        })
        .collect();
    all.sort();
    all
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    #[test]
    fn any_order_and_any_repetition_give_the_same_requests(seed in any::<u64>(), chunk in 1usize..9) {
        let mut specs = Vec::new();
        for (trace, request) in [(1, "r1"), (2, "r2"), (3, "r3")] {
            specs.extend(base_request(trace, request));
        }
        specs.push(span(9, 900, 0, "worker.operation", 10, 97).with("dynamo.request.id", "r2").of("dynamo-worker"));
        specs.push(span(3, 950, 999, "worker.admission", 10, 11).with("dynamo.request.id", "r3"));
        let mut straight = store();
        send(&mut straight, &specs, 1);
        straight.refresh(1);

        let mut rng = fastrand::Rng::with_seed(seed);
        let mut shuffled = specs.clone();
        shuffled.extend(specs.iter().filter(|_| rng.bool()).cloned().collect::<Vec<_>>());
        rng.shuffle(&mut shuffled);
        let mut mixed = store();
        for part in shuffled.chunks(chunk) {
            send(&mut mixed, part, 1);
            mixed.refresh(1);
        }
        prop_assert_eq!(summary(&mixed), summary(&straight));
        let counts = mixed.counts();
        prop_assert_eq!(counts.spans_received, shuffled.len() as u64);
        prop_assert_eq!(counts.spans_kept, specs.len() as u64);
        prop_assert_eq!(counts.spans_duplicate, (shuffled.len() - specs.len()) as u64);
    }

    #[test]
    fn any_graph_of_parents_becomes_a_forest_with_every_span_once(parents in proptest::collection::vec(0u64..40, 1..40)) {
        let specs: Vec<Spec> = parents.iter().enumerate().map(|(at, parent)| span(1, at as u64 + 1, *parent, "s", at as u64, 50)).collect();
        let mut store = store();
        send(&mut store, &specs, 1);
        store.refresh(1);
        let (key, _) = store.requests().next().unwrap();
        let view = store.request(key).unwrap();
        let mut spans: Vec<u32> = view.tree().iter().filter_map(|row| if let Node::Span(at) = row.node { Some(at) } else { None }).collect();
        spans.sort_unstable();
        prop_assert_eq!(spans, (0..specs.len() as u32).collect::<Vec<_>>());
        prop_assert!(view.spans.iter().all(|span| span.up != Up::Elsewhere));
    }

    #[test]
    fn the_account_of_bytes_returns_to_zero(order in proptest::collection::vec((1u8..12, 0usize..7), 1..200)) {
        let mut store = Store::new(Limits { memory: 20_000, ..Limits::default() });
        for (step, (trace, at)) in order.iter().enumerate() {
            let request = ["a", "b", "c", "d"][usize::from(*trace % 4)];
            send(&mut store, &base_request(u16::from(*trace), request)[*at..=*at], step as u64);
            store.refresh(step as u64);
            prop_assert!(store.memory() <= 20_000);
        }
        let counts = store.counts();
        prop_assert_eq!(counts.spans_received, counts.spans_kept + counts.spans_duplicate + counts.spans_shed);
        prop_assert_eq!(counts.spans_kept, counts.spans_evicted + store.spans().count() as u64);
        store.limits.memory = 0;
        store.refresh(1000);
        prop_assert_eq!(store.memory(), 0);
    }

    #[test]
    fn shared_traces_give_every_byte_back_too(order in proptest::collection::vec((1u16..4, 0u64..40, 0usize..7), 1..80)) {
        let mut store = Store::new(Limits { memory: 40_000, ..Limits::default() });
        for (step, (trace, turn, at)) in order.iter().enumerate() {
            let request = ["a", "b", "c", "d", "e", "f", "g", "h"][*turn as usize % 8];
            let mut spec = base_request(*trace, request).swap_remove(*at);
            spec.id += turn << 8;
            spec.parent += if spec.parent > 0 { turn << 8 } else { 0 };
            send(&mut store, &[spec], step as u64);
            store.refresh(step as u64);
            prop_assert!(store.memory() <= 40_000);
            let counts = store.counts();
            prop_assert_eq!(counts.spans_kept, counts.spans_evicted + store.spans().count() as u64);
            let of_requests: usize = store.requests().map(|(key, _)| store.request(key).unwrap().spans.len()).sum();
            prop_assert_eq!(of_requests, store.spans().count());
        }
        store.limits.memory = 0;
        store.refresh(1000);
        prop_assert_eq!((store.memory(), store.len(), store.spans().count()), (0, 0, 0));
    }
}
