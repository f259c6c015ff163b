//! What the panes show is what the report says of the same filter and window, and what truly happened in the simulated
//! cluster at any pause; and it costs what is shown, not what is held.

use std::collections::BTreeMap;

use proptest::prelude::*;
use proptest::test_runner::{RngAlgorithm, TestRng, TestRunner};
use reqtop::demo::{Cluster, Delivery, Settings, Signal};
use reqtop::pipeline::take_in;
use reqtop::report::{InputSection, Report};
use reqtop::source::intake::{Payload, Signal as Wire};
use reqtop::store::{Limits, Store};
use reqtop::view::panes::{Body, Mark, Pane, PaneId, Room, pane};

#[path = "common/panes.rs"]
mod panes;
use panes::{WHOLE, cells, count, has_text, look, same_as_report, summed};

const START_NS: u64 = 1_796_003_500_000_000_000;
const SECOND: u64 = 1_000_000_000;
const SMALL: Room = Room { columns: 70, rows: 11, zoomed: false };

fn take(store: &mut Store, delivery: Delivery) {
    let signal = match delivery.signal {
        Signal::Traces => Wire::Traces,
        Signal::Logs => Wire::Logs,
    };
    take_in(store, &mut Payload::otlp(signal, delivery.body), delivery.at_ns).unwrap();
}

fn run(cluster: &mut Cluster, store: &mut Store, until_ns: u64) {
    for delivery in cluster.advance(until_ns) {
        take(store, delivery);
    }
    store.refresh(until_ns);
}

#[test]
fn panes_and_report_say_the_same_of_any_filter_and_window() {
    let mut cluster = Cluster::new(&Settings { seed: 5, rate: 30.0, ..Settings::default() }, START_NS);
    let mut store = Store::new(Limits::default());
    run(&mut cluster, &mut store, START_NS + 25 * SECOND);
    let worker = Report::of(&store, InputSection::default(), None).ranks[0].worker.clone();
    let filters = [
        "".to_owned(),
        "outcome:cancelled".into(),
        "leg(phase:prefill dispatch.result:accepted)".into(),
        "queue.deferred:true or abandoned:true".into(),
        format!("worker:{worker}"),
        "-outcome:success".into(),
        "margin<=0 -candidates:1".into(),
        "state:in_flight".into(),
        "span:response.streaming ttft>100ms".into(),
        "request:nobody".into(),
    ];
    let last = store.requests().map(|(_, facts)| reqtop::store::time_of(facts)).max().unwrap().max(store.noted_ns());
    for filter in &filters {
        for window_ns in [None, Some(5 * SECOND), Some(20 * SECOND)] {
            look(&mut store, filter, window_ns, last);
            same_as_report(&store, filter, window_ns, "demo");
        }
    }
}

/// The terms that the cells and bars of every pane stand for.
fn terms_of(store: &Store) -> Vec<String> {
    let mut terms: Vec<String> = PaneId::ALL
        .iter()
        .flat_map(|(id, _)| {
            let pane = pane(*id, store, WHOLE, None);
            let plots = pane.columns.iter().flatten().filter_map(|block| match &block.body {
                Body::Plot(plot) => Some(plot),
                _ => None,
            });
            let of_bars = plots.flat_map(|plot| &plot.bars).filter_map(|bar| bar.term.clone());
            of_bars.chain(cells(&pane).filter_map(|cell| cell.term.clone())).collect::<Vec<_>>()
        })
        .collect();
    terms.sort();
    terms.dedup();
    terms
}

/// Any filter made of what the panes themselves offer, and of what one types.
fn filters(offered: Vec<String>) -> impl Strategy<Value = String> {
    const TYPED: [&str; 8] = [
        "outcome:(cancelled,rejected)",
        "leg(phase:prefill queue.wait>1ms)",
        "total>200ms",
        "state:in_flight",
        "margin:0..0.05",
        "span:worker.admission",
        "attempts>1",
        "check:*",
    ];
    let typed = prop::sample::select(TYPED.to_vec()).prop_map(str::to_owned);
    let term = prop_oneof![4 => prop::sample::select(offered), 1 => typed];
    term.prop_recursive(3, 8, 2, |inner| {
        prop_oneof![
            inner.clone().prop_map(|a| format!("not ({a})")),
            (inner.clone(), inner.clone()).prop_map(|(a, b)| format!("({a}) ({b})")),
            (inner.clone(), inner).prop_map(|(a, b)| format!("({a}) or ({b})")),
        ]
    })
}

/// Any filter asked at any moment, with more arriving after it was asked: the panes, kept up one request at a time, say
/// what the report counts from nothing.
#[test]
fn any_filter_shows_the_report_of_what_it_finds() {
    let mut cluster = Cluster::new(&Settings { seed: 5, rate: 25.0, ..Settings::default() }, START_NS);
    let (first, then) = (cluster.advance(START_NS + 8 * SECOND), cluster.advance(START_NS + 14 * SECOND));
    let fill = |store: &mut Store, of: &[Delivery], seconds: u64| {
        of.iter().for_each(|delivery| take(store, delivery.clone()));
        store.refresh(START_NS + seconds * SECOND);
    };
    let mut store = Store::new(Limits::default());
    fill(&mut store, &first, 8);
    look(&mut store, "", None, START_NS + 8 * SECOND);
    let offered = terms_of(&store);
    assert!(offered.len() > 100, "{offered:?}");
    let windows = prop::sample::select(vec![None, Some(2 * SECOND), Some(10 * SECOND)]);
    let config = ProptestConfig { cases: 24, failure_persistence: None, ..ProptestConfig::default() };
    let mut runner = TestRunner::new_with_rng(config, TestRng::deterministic_rng(RngAlgorithm::ChaCha));
    let tried = runner.run(&(filters(offered), windows), |(filter, window_ns)| {
        let mut store = Store::new(Limits::default());
        fill(&mut store, &first, 8);
        look(&mut store, &filter, window_ns, START_NS + 8 * SECOND);
        fill(&mut store, &then, 14);
        let last =
            store.requests().map(|(_, facts)| reqtop::store::time_of(facts)).max().unwrap().max(store.noted_ns());
        look(&mut store, &filter, window_ns, last);
        same_as_report(&store, &filter, window_ns, "demo");
        Ok(())
    });
    tried.unwrap();
}

#[test]
fn panes_say_what_truly_happened_at_any_pause() {
    let mut cluster = Cluster::new(&Settings { seed: 9, rate: 25.0, ..Settings::default() }, START_NS);
    let mut store = Store::new(Limits::default());
    for pause in (3..30).step_by(6) {
        let now_ns = START_NS + pause * SECOND;
        run(&mut cluster, &mut store, now_ns);
        look(&mut store, "", None, now_ns);
        let truth = &cluster.ledger().tally;
        let of = |id| pane(id, &store, WHOLE, None);
        let (dispatch, selection, streaming) = (of(PaneId::Dispatch), of(PaneId::Selection), of(PaneId::Streaming));
        let mut cells: BTreeMap<(&str, &str), u64> = BTreeMap::new();
        for (key, count) in &truth.dispatches {
            let [phase, result, _] = key.split('|').collect::<Vec<_>>()[..] else { panic!("{key}") };
            *cells.entry((phase, result)).or_default() += count;
        }
        let both = |pane: &Pane, term: &str, field: &str| {
            count(pane, &format!("leg({term})")).max(count(pane, &format!("leg({term} {field}:span)")))
        };
        for ((phase, result), true_count) in cells {
            let term = format!("phase:{phase} dispatch.result:{result}");
            assert_eq!(both(&dispatch, &term, "dispatch.origin"), true_count, "{term} at {pause} s");
        }
        assert_eq!(both(&selection, "selection.best:false", "selection.origin"), truth.selection.not_best);
        assert_eq!(summed(&selection, "-selection.candidates:1"), truth.selection.margins.n);
        let mut reasons: BTreeMap<&str, u64> = BTreeMap::new();
        for of in truth.queues.values() {
            for (reason, count) in &of.deferred {
                *reasons.entry(reason).or_default() += count;
            }
        }
        let (waits, queue) = (truth.queues.values().map(|of| of.spans).sum::<u64>(), of(PaneId::Queue));
        assert_eq!(summed(&queue, "queue.wait:"), waits);
        for (reason, true_count) in reasons {
            assert!(has_text(&queue, reason) && true_count > 0, "{reason}");
        }
        let mut deepest: BTreeMap<&str, u64> = BTreeMap::new();
        for (key, of) in &truth.queues {
            let pool = key.split('|').next().unwrap();
            let depth = deepest.entry(pool).or_default();
            *depth = (*depth).max(of.max_depth_in).max(of.max_depth_out).max(of.max_waiting);
        }
        let peak = deepest.values().max().copied().unwrap_or(0);
        assert!(queue.summary.contains(&format!("peak {peak}")), "{} has no peak {peak}", queue.summary);
        assert_eq!(summed(&streaming, "abandoned:true events:"), truth.events_at_leaving.n);
        for (outcome, true_count) in &truth.abandoned_roots {
            let shown = count(&streaming, &format!("abandoned:true outcome:{outcome}"));
            // The ledger knows an abandoned stream's root before its span is handed over.
            let waiting = count(&streaming, "abandoned:true root:false");
            assert!(shown <= *true_count && shown + waiting >= *true_count, "{outcome}: {shown} of {true_count}");
        }
        for (rank, true_count) in &truth.selection.by_rank {
            let workers = of(PaneId::Workers);
            let report = Report::of(&store, InputSection::default(), None);
            let row = report.ranks.iter().find(|row| format!("{}:{}", row.worker, row.rank.unwrap()) == *rank).unwrap();
            assert_eq!(row.selected, Some(*true_count), "{rank}");
            let shown = count(&workers, &format!("leg(selected.worker:{rank})"));
            assert_eq!(Some(shown), row.chosen(), "{rank}");
        }
    }
}

/// A pause holds the panes while data comes in, under any filter asked for during it.
#[test]
fn held_panes_stay_as_they_are() {
    let mut cluster = Cluster::new(&Settings { seed: 2, ..Settings::default() }, START_NS);
    let mut store = Store::new(Limits::default());
    let paused_ns = START_NS + 20 * SECOND;
    run(&mut cluster, &mut store, paused_ns);
    let all = |store: &Store| PaneId::ALL.map(|(id, _)| pane(id, store, SMALL, None));
    let mut before = Vec::new();
    let filters = ["", "phase:decode", "abandoned:true"];
    for filter in filters {
        look(&mut store, filter, None, paused_ns);
        before.push(all(&store));
    }
    let past = store.still(paused_ns);
    store.hold(&past);
    run(&mut cluster, &mut store, START_NS + 40 * SECOND);
    for (filter, before) in filters.into_iter().zip(&before) {
        look(&mut store, filter, None, paused_ns);
        let now = all(&store);
        assert_eq!(now[1..4], before[1..4], "{filter}: choices, attempts and streams are those of the pause");
    }
    store.release();
    look(&mut store, "", None, START_NS + 40 * SECOND);
    same_as_report(&store, "", None, "demo");
}

/// Building every pane walks as much for many requests as for few. Counted in what a pane holds, and measured loosely:
/// ten times the requests must not cost four times as much.
#[test]
fn panes_cost_what_they_show() {
    let built = |seconds: u64| {
        let mut cluster = Cluster::new(&Settings { seed: 1, rate: 60.0, ..Settings::default() }, START_NS);
        let mut store = Store::new(Limits::default());
        run(&mut cluster, &mut store, START_NS + seconds * SECOND);
        look(&mut store, "", None, START_NS + seconds * SECOND);
        let requests = store.len();
        let costs = PaneId::ALL.map(|(id, title)| {
            let once = || {
                let started = std::time::Instant::now();
                assert!(cells(&pane(id, &store, SMALL, None)).count() < 2_000);
                started.elapsed().as_nanos()
            };
            (title, (0..5).map(|_| once()).min().unwrap())
        });
        (requests, costs)
    };
    let ((few, cheap), (many, dear)) = (built(3), built(36));
    assert!(many > 8 * few, "{few} and {many}");
    let sum = |costs: &[(&str, u128)]| costs.iter().map(|(_, ns)| ns).sum::<u128>();
    assert!(sum(&dear) < 4 * sum(&cheap), "{few} requests: {cheap:?} ns, {many} requests: {dear:?} ns");
}

#[test]
fn small_drawings_are_shares() {
    let mut cluster = Cluster::new(&Settings::default(), START_NS);
    let mut store = Store::new(Limits::default());
    run(&mut cluster, &mut store, START_NS + 20 * SECOND);
    look(&mut store, "", None, START_NS + 20 * SECOND);
    for (id, _) in PaneId::ALL {
        for cell in cells(&pane(id, &store, WHOLE, None)) {
            let shares: Vec<f64> = match &cell.mark {
                Mark::None => Vec::new(),
                Mark::Bar(share) => vec![*share],
                Mark::Spark(values) => values.clone(),
                Mark::Dots(dots) => dots.iter().map(|dot| dot.at).collect(),
            };
            assert!(shares.iter().all(|share| (0.0..=1.0).contains(share)), "{cell:?}");
        }
    }
}
