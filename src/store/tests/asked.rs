//! What the checks are asked when everything ends, and what they know to be lost.

use super::*;
use crate::checks::{Answer, CheckId, Why};
use crate::lifecycle::facts::Marks;
use crate::store::{Coming, GRACE_NS};

const SECOND: u64 = 1_000_000_000;

fn answer(store: &Store, key: RequestKey, check: &str) -> Answer {
    store.answers(key).unwrap().of(CheckId::of(check).unwrap())
}

/// A request of the base layout without its root, of which something came at this time.
fn rootless(store: &mut Store, trace: u16, request: &'static str, now_ns: u64) -> RequestKey {
    let spans: Vec<Spec> =
        base_request(trace, request).into_iter().filter(|span| span.name != "request.lifecycle").collect();
    send(store, &spans, now_ns);
    store.refresh(now_ns);
    store.requests().map(|(key, _)| key).next_back().unwrap()
}

/// Listened to from the beginning until then.
fn until(until_ns: u64) -> Coming {
    Coming::Arrivals { since_ns: 0, until_ns }
}

#[test]
fn what_senders_may_still_have_had_is_unknown_when_listening_ends() {
    let mut store = store();
    let key = rootless(&mut store, 1, "r-1", 100 * SECOND);
    let mut asked = |coming: Coming| {
        store.check_what_came(coming);
        (answer(&store, key, "tree.rooted"), store.checked().unsettled().len())
    };
    let arriving = (Answer::Unknown(Why::Arriving), 1);
    assert_eq!(asked(until(101 * SECOND)), arriving);
    assert_eq!(asked(until(100 * SECOND + GRACE_NS - 1)), arriving);
    assert_eq!(asked(until(100 * SECOND + GRACE_NS)), (Answer::Violated, 0));
    assert_eq!(asked(Coming::Nothing), (Answer::Violated, 0));
    // From a file that was read before anybody was listened to.
    assert_eq!(asked(Coming::Arrivals { since_ns: 100 * SECOND + 1, until_ns: 101 * SECOND }), (Answer::Violated, 0));
    // A store of traces is asked when the cluster is still at it: by the times of the spans themselves.
    let ended_ns = (EPOCH_MS + 99) * 1_000_000;
    assert_eq!(asked(Coming::Writing(ended_ns + SECOND)), arriving);
    assert_eq!(asked(Coming::Writing(ended_ns + GRACE_NS)), (Answer::Violated, 0));
}

/// Whoever begins to listen beside a busy cluster misses what was sent before, of what began before; nothing else.
#[test]
fn what_began_before_anybody_listened_may_lack_anything() {
    let began_ns = EPOCH_MS * 1_000_000;
    let asked = |listening_ns: u64, arrived_ns: u64| {
        let mut store = store();
        store.listens_from(listening_ns);
        let key = rootless(&mut store, 1, "r-1", arrived_ns);
        store.check_what_came(Coming::Nothing);
        (answer(&store, key, "tree.rooted"), store.facts(key).unwrap().marks.has(Marks::EARLY))
    };
    let (unknown, violated) = ((Answer::Unknown(Why::Lost), true), (Answer::Violated, false));
    let since_ns = began_ns + 50 * 1_000_000;
    assert_eq!(asked(since_ns, since_ns + SECOND), unknown);
    assert_eq!(asked(0, since_ns + SECOND), violated, "nobody listened: a file");
    assert_eq!(asked(began_ns - SECOND, since_ns), violated, "it began since");
    assert_eq!(asked(since_ns, since_ns - 1), violated, "it came before: from a file");
    assert_eq!(asked(since_ns, since_ns + 60 * SECOND), unknown, "some of it is of since then");
    // By a clock that is behind everything begins, and ends, before: that is so of the first seconds only.
    assert_eq!(asked(began_ns + 30 * SECOND, began_ns + 31 * SECOND), unknown);
    assert_eq!(asked(began_ns + 30 * SECOND, began_ns + 46 * SECOND), violated);
    assert_eq!(asked(began_ns + 3_600 * SECOND, began_ns + 3_601 * SECOND), violated, "no request takes so long");
}

/// A screen over a file says what `check` says of it, also of what was in flight at its end.
#[test]
fn what_is_in_flight_is_asked_when_nothing_more_comes() {
    let mut store = store();
    send(&mut store, &base_request(1, "r-1")[3..5], SECOND);
    store.finish(SECOND);
    let key = store.requests().map(|(key, _)| key).next().unwrap();
    assert_eq!(store.facts(key).unwrap().state, State::InFlight);
    store.check(u64::MAX);
    assert!(store.answers(key).is_none());
    store.ask_the_rest(Coming::Nothing);
    store.check(u64::MAX);
    let asked = store.answers(key).cloned().unwrap();
    store.check_all();
    assert_eq!(store.answers(key), Some(&asked));
}

#[test]
fn what_is_whole_is_not_counted_as_still_coming() {
    let mut store = store();
    send(&mut store, &base_request(1, "r-1"), 100 * SECOND);
    store.finish(100 * SECOND);
    store.check_what_came(until(101 * SECOND));
    assert!(store.checked().unsettled().is_empty());
}

#[test]
fn what_was_refused_of_a_trace_is_lost_to_its_requests_alone() {
    let mut store = store();
    let torn = rootless(&mut store, 1, "r-1", SECOND);
    let whole = rootless(&mut store, 2, "r-2", SECOND);
    let mut batch = Batch::default();
    batch.tally.refuse_span(Some(trace_id(1)));
    store.ingest(&batch, SECOND);
    store.check_all();
    assert_eq!(answer(&store, torn, "tree.rooted"), Answer::Unknown(Why::Lost));
    assert_eq!(answer(&store, whole, "tree.rooted"), Answer::Violated);
    // Of a span that named no trace nobody knows whose it was.
    store.note_losses();
    store.check(u64::MAX);
    assert_eq!(answer(&store, whole, "tree.rooted"), Answer::Unknown(Why::Lost));
}

#[test]
fn a_record_that_could_not_be_read_may_be_the_one_that_is_missing() {
    let mut store = store();
    for (trace, id) in [(1, "r-1"), (2, "r-2")] {
        send(&mut store, &base_request(trace, id), SECOND);
    }
    store.refresh(SECOND);
    record(
        &mut store,
        r#"{"event_type":"request_end","event_time_unix_ms":1796003500100,"request":{"request_id":"r-1"}}"#,
    );
    store.finish(SECOND);
    let key = store.requests().map(|(key, _)| key).next_back().unwrap();
    store.check_all();
    assert_eq!(answer(&store, key, "record.present"), Answer::Violated);
    // One that names no request is as good as one that could not be read.
    record(&mut store, r#"{"event_type":"request_end","event_time_unix_ms":1796003500100,"request":{}}"#);
    store.check_all();
    assert_eq!(answer(&store, key, "record.present"), Answer::Unknown(Why::Lost));
}
