//! How a filter is asked of many requests: in slices of work, to the end.

use super::*;
use crate::query::Query;

/// How many times a frame must look until a filter has been asked of all; and how many requests it means.
fn slices(store: &mut Store, filter: &str) -> (usize, usize) {
    store.look(&Query::parse(filter).unwrap(), None, 0);
    let mut times = 0;
    while !store.lens().is_whole() {
        store.refresh_lens(0);
        times += 1;
    }
    (times, store.lens().len())
}

#[test]
fn a_filter_of_many_terms_is_asked_of_fewer_requests_at_once() {
    let mut store = store();
    for trace in 1..=300 {
        let note = if trace == 1 { "oldest" } else { "newer" };
        let root = span(trace, 1, 0, "request.lifecycle", 10, 20).with("dynamo.request.id", format!("r-{trace}"));
        send(&mut store, &[root.with("note", note)], 1);
    }
    store.refresh(2);
    let many = |word: &str, between: &str| (0..400).map(|n| format!("{word}{n}")).collect::<Vec<_>>().join(between);
    assert_eq!(all(&store).len(), 300);
    assert_eq!(slices(&mut store, "request:r-1 or total>3s"), (1, 1));
    assert_eq!(slices(&mut store, "oldest"), (1, 1));
    // Eleven looks for a text in a request of one span: 37 requests make 160,000 of them.
    assert_eq!(slices(&mut store, &(many("x", " or ") + " or oldest")), (9, 1));
    // Facts are quickly compared, and what they decide reads no span.
    assert_eq!(slices(&mut store, &("request:".to_owned() + &many("r-", ","))), (1, 300));
    assert_eq!(slices(&mut store, &format!("request:r-1 ({})", many("x", " or "))), (1, 0));
}

#[test]
fn the_cost_of_a_filter_is_what_it_compares() {
    let cost = |filter: &str| {
        let cost = Query::parse(filter).unwrap().cost();
        (cost.facts, cost.spans)
    };
    assert_eq!(cost(""), (0, 0));
    assert_eq!(cost("request:a,b,c -model:x"), (4, 0));
    assert_eq!(cost("one or (two and not span:a,b)"), (0, 4));
    assert_eq!(cost("leg(phase:decode)"), (1, 0));
}

#[test]
fn what_was_not_there_yet_does_not_come_in_by_changing() {
    let mut store = store();
    let root = |trace, start, end| {
        span(trace, 1, 0, "request.lifecycle", start, end).with("dynamo.request.id", format!("r-{trace}"))
    };
    send(&mut store, &[root(1, 0, 1_000)], 1);
    // Only a part of what begins later has come, before what ended long ago.
    let part = span(2, 2, 1, "router.queue", 30_000, 30_500).with("dynamo.request.id", "r-2");
    send(&mut store, &[part], 1);
    send(&mut store, &[root(3, 1_000, 2_000)], 1);
    store.refresh(1);
    let past = store.past((EPOCH_MS + 15_000) * 1_000_000);
    assert_eq!(past.keys().len(), 2);
    store.hold(&past);
    send(&mut store, &[root(2, 30_000, 31_000)], 1);
    store.refresh(1);
    for filter in ["", "request:r-1,r-2,r-3", "not outcome:failed"] {
        assert_eq!(slices(&mut store, filter).1, 2, "{filter}");
    }
}
