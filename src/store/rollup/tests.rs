//! Rollups of any facts: what is taken away leaves what would have been counted without it.

use proptest::prelude::*;
use proptest::sample::select;

use super::Rollup;
use crate::lifecycle::facts::NEAR_TIE;
use crate::lifecycle::facts::*;
use crate::lifecycle::ids::{SpanId, Worker};
use crate::lifecycle::stage::*;

const MS: u64 = 1_000_000;
const START: u64 = 1_796_003_500_000_000_000;

fn word(words: &'static [&'static str]) -> impl Strategy<Value = compact_str::CompactString> {
    select(words).prop_map(Into::into)
}

fn worker() -> impl Strategy<Value = Worker> {
    (select(&[7u64, 11, 9_079_256_848_778_952_192][..]), 0u32..2).prop_map(|(id, rank)| Worker { id, rank: Some(rank) })
}

fn origin(other: Origin) -> impl Strategy<Value = Origin> {
    prop_oneof![4 => Just(Origin::Span), 1 => Just(other)]
}

fn phase() -> impl Strategy<Value = Phase> {
    select(&Phase::ALL[..])
}

/// Small numbers and large ones, in steps that meet each other.
fn number() -> impl Strategy<Value = u64> {
    prop_oneof![Just(0u64), 1u64..20, 1u64..5_000]
}

fn cost() -> impl Strategy<Value = f64> {
    prop_oneof![Just(0.0), Just(0.05), Just(NEAR_TIE), (0u32..4_000).prop_map(|eighths| f64::from(eighths) / 8.0)]
}

fn queue() -> impl Strategy<Value = Queue> {
    let reasons = word(&["", "prefill_capacity", "class_backlog", "request_limit", "an \"odd\" one"]);
    (
        (0u64..60_000, number()),
        (word(&["", "default", "batch jobs"]), word(&["", "fcfs"])),
        (proptest::option::of(0u64..30), proptest::option::of(0u64..30), proptest::option::of(any::<bool>())),
        (word(&["dequeued", "rejected", "cancelled", ""]), reasons, origin(Origin::Inferred)),
    )
        .prop_map(
            |((start, wait), (class, policy), (depth_in, depth_out, deferred), (outcome, reason, origin))| Queue {
                span: SpanId([1; 8]),
                start_ns: START + start * MS,
                wait_ns: wait * MS / 2,
                class,
                policy,
                depth_in,
                depth_out,
                deferred,
                outcome,
                reason,
                origin,
            },
        )
}

fn selection() -> impl Strategy<Value = Selection> {
    let choice = || {
        proptest::option::of(
            (worker(), proptest::option::of(cost())).prop_map(|(worker, cost)| Choice { worker, cost }),
        )
    };
    (
        (phase(), proptest::option::of(1u64..5), proptest::option::of(0u64..3)),
        proptest::array::uniform5(proptest::option::of(0u64..3)),
        (choice(), choice(), proptest::option::of(cost())),
        origin(Origin::Record),
    )
        .prop_map(|((pool, candidates, filtered), filtered_parts, (selected, best, margin), origin)| Selection {
            span: (origin == Origin::Span).then_some(SpanId([2; 8])),
            time_ns: START,
            pool,
            candidates,
            eligible: candidates,
            filtered,
            filtered_parts,
            selected,
            best,
            margin,
            pinned: None,
            policy: "composed".into(),
            origin,
        })
}

fn dispatch() -> impl Strategy<Value = Dispatch> {
    (
        (0u64..60_000, number(), proptest::option::of(worker())),
        (
            word(&["accepted", "failed", "cancelled", "teleported", "lost", ""]),
            word(&["success", "worker_disconnected", "error", ""]),
        ),
        (word(&["", "disconnected"]), proptest::option::of(0u64..100)),
        origin(Origin::Inferred),
    )
        .prop_map(|((start, took, worker), (result, outcome), (migration_reason, tokens_carried), origin)| {
            Dispatch {
                span: SpanId([3; 8]),
                start_ns: START + start * MS,
                duration_ns: took * MS,
                route: "kv".into(),
                worker,
                result,
                attempt_outcome: outcome,
                error: "".into(),
                retry: None,
                migration_reason,
                from_worker: None,
                tokens_carried,
                origin,
            }
        })
}

fn admission() -> impl Strategy<Value = Admission> {
    (word(&["accepted", "rejected", ""]), word(&["tcp", ""]), proptest::option::of(number())).prop_map(
        |(result, transport, payload_bytes)| Admission { span: SpanId([4; 8]), transport, payload_bytes, result },
    )
}

fn leg() -> impl Strategy<Value = Leg> {
    use proptest::option::of;
    (phase(), 0u32..3, of(queue()), of(selection()), of(dispatch()), of(admission())).prop_map(
        |(phase, attempt, queue, selection, dispatch, admission)| Leg {
            phase,
            phase_origin: Origin::Span,
            attempt,
            queue,
            selection: selection.map(Box::new),
            dispatch,
            admission: admission.map(Box::new),
        },
    )
}

fn stream() -> impl Strategy<Value = Stream> {
    (number(), proptest::option::of(number()), word(&["success", "abandoned", "cancelled", ""])).prop_map(
        |(took, events, outcome)| Stream {
            span: SpanId([5; 8]),
            start_ns: START,
            duration_ns: took * MS,
            events,
            outcome,
        },
    )
}

/// Any facts.
pub(crate) fn facts() -> impl Strategy<Value = Facts> {
    use proptest::option::of;
    (
        (0u32..40, select(&["", "s-1", "s 2", "s-3"][..]), any::<bool>()),
        (of(select(&Outcome::ALL[..])), any::<bool>(), of(any::<bool>())),
        (0u64..60_000, number(), proptest::collection::vec(leg(), 0..4), of(stream())),
        (of((number(), origin(Origin::Record))), of(number()), of(number()), of(number())),
    )
        .prop_map(
            |(
                (id, session, session_fallback),
                (outcome, lost, streaming),
                (start, took, legs, stream),
                (ttft, input, output, cached),
            )| {
                let start_ns = START + start * MS;
                Facts {
                    request_id: format!("request-{id}").into(),
                    session_id: session.into(),
                    session_fallback,
                    state: match outcome {
                        Some(_) => State::Ended,
                        None if lost => State::Lost,
                        None => State::InFlight,
                    },
                    outcome,
                    has_root: outcome.is_some(),
                    streaming,
                    start_ns,
                    end_ns: outcome.map(|_| start_ns + took * MS),
                    legs,
                    stream: stream.map(Box::new),
                    ttft_ns: ttft.map(|(ttft, origin)| (ttft * MS, origin)),
                    input_tokens: input,
                    output_tokens: output,
                    cached_tokens: cached,
                    ..Facts::default()
                }
            },
        )
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]
    #[test]
    fn taking_any_of_them_away_leaves_the_rollup_of_the_rest(
        all in proptest::collection::vec((facts(), any::<bool>()), 1..40), turn in any::<prop::sample::Index>(),
    ) {
        let mut both = Rollup::default();
        all.iter().for_each(|(facts, _)| both.add(facts));
        // In another order than they were added.
        let turn = turn.index(all.len());
        for (facts, _) in all[turn..].iter().chain(&all[..turn]).filter(|(_, stays)| !stays) {
            both.remove(facts);
        }
        let mut rest = Rollup::default();
        all.iter().rev().filter(|(_, stays)| *stays).for_each(|(facts, _)| rest.add(facts));
        prop_assert_eq!(&both, &rest);
        all.iter().filter(|(_, stays)| *stays).for_each(|(facts, _)| both.remove(facts));
        prop_assert_eq!(both, Rollup::default());
    }

    #[test]
    fn a_change_counts_like_taking_away_and_adding_anew(
        all in proptest::collection::vec((facts(), facts(), 0u8..8, any::<u8>()), 1..20),
    ) {
        let (mut changed, mut anew) = (Rollup::default(), Rollup::default());
        for (was, other, alike, legs) in all {
            // What comes late: some legs as they were, some with another part, some new; the life as it was or not.
            let mut is = if alike & 1 == 0 { was.clone() } else { other.clone() };
            is.legs = was.legs.clone();
            for (at, leg) in other.legs.into_iter().enumerate() {
                match (legs >> (2 * at) & 3, is.legs.get_mut(at)) {
                    (0, _) | (_, None) => is.legs.push(leg),
                    (1, Some(mine)) => mine.admission = leg.admission,
                    (2, Some(mine)) => mine.dispatch = leg.dispatch,
                    (_, Some(mine)) => mine.queue = leg.queue,
                }
            }
            if alike & 2 != 0 {
                is.legs.pop();
            }
            if alike & 4 != 0 {
                is.outcome = was.outcome;
            }
            changed.add(&was);
            changed.change(&was, &is);
            anew.add(&is);
        }
        prop_assert_eq!(changed, anew);
    }

    #[test]
    fn sessions_keep_their_turns_in_order(all in proptest::collection::vec(facts(), 1..40)) {
        let mut rollup = Rollup::default();
        all.iter().for_each(|facts| rollup.add(facts));
        let mut by_session: std::collections::BTreeMap<&str, Vec<&Facts>> = Default::default();
        for facts in all.iter().filter(|facts| !facts.session_id.is_empty() && !facts.session_fallback) {
            by_session.entry(&facts.session_id).or_default().push(facts);
        }
        prop_assert_eq!(rollup.sessions.len(), by_session.len());
        for (id, mut turns) in by_session {
            let worker = |facts: &Facts| facts.legs.iter().find_map(Leg::worker);
            turns.sort_by_key(|facts| (facts.start_ns, facts.request_id.clone(), worker(facts)));
            let pairs = turns.windows(2).filter_map(|two| Some((worker(two[0])?, worker(two[1])?)));
            let (kept, broken): (Vec<_>, Vec<_>) = pairs.partition(|(before, after)| before == after);
            let session = rollup.sessions.get(id).unwrap();
            prop_assert_eq!((session.affinity.kept, session.affinity.broken), (kept.len() as u64, broken.len() as u64));
            prop_assert_eq!((session.count, session.newest_ns()), (turns.len() as u64, turns.last().unwrap().start_ns));
        }
        let newest: Vec<u64> = rollup.sessions.newest().map(|(_, session)| session.newest_ns()).collect();
        prop_assert!(newest.is_sorted_by(|one, other| one >= other));
    }
}

/// A leg handed over in 5 ms.
fn handed(attempt: u32, worker: Worker, at_ms: u64, result: &str, outcome: &str) -> Leg {
    Leg {
        phase: Phase::Aggregated,
        attempt,
        dispatch: Some(Dispatch {
            span: SpanId([1; 8]),
            start_ns: START + at_ms * MS,
            duration_ns: 5 * MS,
            route: "kv".into(),
            worker: Some(worker),
            result: result.into(),
            attempt_outcome: outcome.into(),
            error: "".into(),
            retry: None,
            migration_reason: "".into(),
            from_worker: None,
            tokens_carried: None,
            origin: Origin::Span,
        }),
        ..Leg::default()
    }
}

/// A request that ended well.
fn answered(end_ms: u64, legs: Vec<Leg>) -> Facts {
    Facts {
        outcome: Some(Outcome::Success),
        state: State::Ended,
        start_ns: START,
        end_ns: Some(START + end_ms * MS),
        legs,
        spans: 1,
        ..Facts::default()
    }
}

#[test]
fn who_refused_a_leg_answered_nothing() {
    let worker = |id| Worker { id, rank: Some(0) };
    let legs = vec![
        handed(0, worker(7), 10, "failed", "connection_failed"),
        handed(1, worker(8), 20, "", "unavailable"),
        handed(2, worker(9), 30, "accepted", "worker_disconnected"),
        handed(3, worker(7), 40, "accepted", "success"),
    ];
    let mut refused = answered(900, legs[..2].to_vec());
    refused.legs.push(handed(4, worker(10), 50, "", ""));
    let ttft = |facts: Facts| Facts { ttft_ns: Some((100 * MS, Origin::Span)), ..facts };
    let mut rollup = Rollup::default();
    rollup.add(&ttft(answered(900, legs)));
    rollup.add(&ttft(refused));
    let never = handed(0, worker(14), 20, "", "timeout");
    let dispatch = never.dispatch.clone().map(|dispatch| Dispatch { error: "connection_timeout".into(), ..dispatch });
    rollup.add(&ttft(answered(900, vec![Leg { dispatch, ..never }])));
    assert_eq!(rollup.workers.get(worker(14)).unwrap().ttft.count(), 0);
    for (id, outcome) in [(11, "timeout"), (12, "error"), (13, "something new")] {
        let leg = handed(0, worker(id), 20, "", outcome);
        rollup.add(&ttft(Facts { outcome: Some(Outcome::Failed), ..answered(900, vec![leg]) }));
        let life = rollup.workers.get(worker(id)).unwrap();
        // It began the answer, however it ended.
        assert_eq!((life.ttft.count(), life.last_seen_ns()), (1, Some(START + 100 * MS)), "{outcome}");
    }
    let counted = [7, 8, 9, 10].map(|id| rollup.workers.get(worker(id)).unwrap().ttft.count());
    // Of a later leg of the same request, one that it took.
    assert_eq!(counted, [1, 0, 1, 1]);
    let ranks = rollup.ranks();
    let failed = |id| ranks.iter().find(|rank| rank.worker == worker(id)).unwrap().failed;
    assert_eq!([7, 8, 9, 10, 11, 12, 13].map(failed), [2, 2, 0, 0, 1, 1, 0].map(Some));
}

#[test]
fn a_lost_worker_has_vanished_until_it_is_heard_of_again() {
    let one = Worker { id: 7, rank: Some(0) };
    let other = Worker { id: 8, rank: Some(0) };
    let mut rollup = Rollup::default();
    rollup.add(&answered(900, vec![handed(0, one, 100, "accepted", "success")]));
    assert!(!rollup.workers.get(one).unwrap().has_vanished());
    // Taken before the other one ended, lost after it.
    rollup.add(&answered(
        3_000,
        vec![handed(0, one, 50, "accepted", "worker_disconnected"), handed(1, other, 2_000, "accepted", "success")],
    ));
    let life = rollup.workers.get(one).unwrap();
    assert!(life.has_vanished() && !rollup.workers.get(other).unwrap().has_vanished());
    assert_eq!(life.last_seen_ns(), Some(START + 900 * MS));
    rollup.add(&answered(5_000, vec![handed(0, one, 4_000, "accepted", "success")]));
    assert!(!rollup.workers.get(one).unwrap().has_vanished());
}

/// Whoever tells of them, spans or records: the shares of a pool's workers are of the same choices.
#[test]
fn shares_of_a_pool_add_up() {
    let worker = |id| Worker { id, rank: Some(0) };
    let chose = |id, origin| Leg {
        phase: Phase::Prefill,
        selection: Some(Box::new(Selection {
            span: None,
            time_ns: START,
            pool: Phase::Prefill,
            candidates: Some(2),
            eligible: None,
            filtered: None,
            filtered_parts: [None; 5],
            selected: Some(Choice { worker: worker(id), cost: None }),
            best: None,
            margin: None,
            pinned: None,
            policy: "".into(),
            origin,
        })),
        ..Leg::default()
    };
    let mut rollup = Rollup::default();
    let mut failed = chose(7, Origin::Span);
    failed.selection.as_mut().unwrap().selected = None;
    rollup.add(&Facts { legs: vec![failed], ..Facts::default() });
    for (id, origin, times) in [(7, Origin::Span, 3), (8, Origin::Span, 2), (8, Origin::Record, 1)] {
        (0..times).for_each(|_| rollup.add(&Facts { legs: vec![chose(id, origin)], ..Facts::default() }));
    }
    let shares: Vec<_> =
        rollup.ranks().iter().map(|rank| (rank.worker.id, rank.chosen.map(|chosen| chosen.share))).collect();
    assert_eq!(shares, [(7, Some(0.5)), (8, Some(0.5))]);
}
