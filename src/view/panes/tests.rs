//! Whatever a pane shows is found by the filter term behind it, in any requests and at any size.

use proptest::prelude::*;

use super::{Body, Cell, Mark, PaneId, PlotKind, Room, Table, pane};
use crate::lifecycle::facts::{Admission, Choice, Dispatch, Facts, Leg, Selection, State};
use crate::lifecycle::ids::{SpanId, Worker};
use crate::lifecycle::stage::{Origin, Phase};
use crate::query::{Query, append};
use crate::store::rollup::tests::facts;
use crate::view::filter::Filter;
use crate::view::fixture::{self, Fixture, NOW};

const ROOMS: [Room; 5] = [
    Room { columns: 36, rows: 3, zoomed: false },
    Room { columns: 70, rows: 11, zoomed: false },
    Room { columns: 76, rows: 19, zoomed: true },
    Room { columns: 146, rows: 35, zoomed: true },
    Room { columns: 196, rows: 55, zoomed: true },
];

/// How many requests a term finds, and how many of their legs on their own.
fn found(term: &str, all: &[Facts]) -> (u64, u64) {
    let query = Query::parse(term).unwrap_or_else(|error| panic!("{term}: {error}"));
    let view = crate::query::OnDemand::new(|| None);
    let mut counts = (0, 0);
    for facts in all {
        counts.0 += u64::from(query.matches(facts, &view));
        for leg in &facts.legs {
            let alone = Facts { legs: vec![leg.clone()], ..facts.clone() };
            counts.1 += u64::from(query.matches(&alone, &view));
        }
    }
    counts
}

/// A count as a cell shows it; `None` for shares, times and names.
fn count(text: &str) -> Option<u64> {
    let text = text.trim_start_matches(['↻', ' ']).trim_end_matches(['✓', '↯', '⚠', '∅', '✕', '?']);
    if text.is_empty() || !text.bytes().all(|byte| byte.is_ascii_digit() || byte == b',') {
        return None;
    }
    text.replace(',', "").parse().ok()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 12, failure_persistence: None, ..ProptestConfig::default() })]
    #[test]
    fn every_bar_and_cell_counts_what_its_term_finds(all in proptest::collection::vec(facts(), 0..24)) {
        let mut data = Fixture::default();
        all.iter().for_each(|facts| _ = data.add(facts.clone()));
        for (id, title) in PaneId::ALL {
            for room in ROOMS {
                let shown = pane(id, &data, room, None);
                let check = |term: &str, value: Option<u64>, says: &str| {
                    let (requests, legs) = found(term, &all);
                    assert!(requests > 0, "{title} {says}: {term} finds nothing");
                    if let Some(value) = value {
                        assert!(
                            value == requests || value == legs,
                            "{title} {says}: shows {value}, {term} finds {requests} requests or {legs} legs"
                        );
                    }
                };
                for block in shown.columns.iter().flatten() {
                    let cells: Vec<_> = match &block.body {
                        Body::Plot(plot) => {
                            for bar in &plot.bars {
                                let Some(term) = &bar.term else { continue };
                                // Depths count those who wait, not those who entered just then: it may find nobody.
                                if plot.kind == PlotKind::Bars {
                                    check(term, bar.value, &bar.label);
                                } else {
                                    Query::parse(term).unwrap();
                                }
                            }
                            continue;
                        }
                        Body::Table(table) => {
                            for row in &table.rows {
                                prop_assert_eq!(row.len(), table.titles.len());
                            }
                            table.rows.iter().flatten().collect()
                        }
                        Body::Text(cells) => cells.iter().collect(),
                    };
                    for cell in cells {
                        // Session ids are names and times may be 0, though they look like counts.
                        let is_count = |term: &str| id != PaneId::Sessions && !term.ends_with("ttft:*");
                        if let Some(term) = &cell.term {
                            let value = count(&cell.text.text).filter(|_| is_count(term));
                            check(term, value, &cell.text.text);
                        }
                    }
                }
                for (spot, term) in shown.spots().into_iter().flatten() {
                    let filter = append("outcome:* or state:in_flight", term);
                    prop_assert!(Filter::parse(&filter).is_ok(), "{:?}: {}", spot, filter);
                }
            }
        }
    }
}

#[test]
fn panes_without_requests_say_so() {
    let data = Fixture::default();
    for (id, title) in PaneId::ALL {
        for room in ROOMS {
            let shown = pane(id, &data, room, None);
            assert!(!shown.columns.is_empty() && shown.spots().is_empty(), "{title}");
        }
    }
}

#[test]
fn results_that_nobody_documents_share_a_column() {
    let mut data = Fixture::default();
    for result in (0..500).map(|at| format!("made up {at}")).chain(["accepted", "timeout", ""].map(ToOwned::to_owned)) {
        let dispatch = Dispatch {
            span: SpanId([1; 8]),
            start_ns: NOW,
            duration_ns: 1,
            route: "kv".into(),
            worker: None,
            result: result.as_str().into(),
            attempt_outcome: "".into(),
            error: "".into(),
            retry: None,
            migration_reason: "".into(),
            from_worker: None,
            tokens_carried: None,
            origin: Origin::Span,
        };
        let leg = Leg { phase: Phase::Decode, dispatch: Some(dispatch), ..Leg::default() };
        data.add(Facts { legs: vec![leg], ..Facts::default() });
    }
    let shown = pane(PaneId::Dispatch, &data, ROOMS[1], None);
    let Body::Table(matrix) = &shown.columns[0][0].body else { panic!("{shown:?}") };
    let titles = ["", ">accepted", ">cancelled", ">failed", ">timeout", ">other", ">no result", ">retries"];
    assert_eq!(matrix.titles, titles);
    assert_eq!(
        matrix.rows[0].iter().map(|cell| &*cell.text.text).collect::<Vec<_>>()[1..7],
        ["1", "0", "0", "1", "500", "1"]
    );
}

/// What is not there is told as the kind of nothing it is (design §1.2): not there, yet to come, or told by spans that nobody
/// gave.
#[test]
fn panes_without_anything_say_why() {
    let worker = Worker { id: 7, rank: Some(0) };
    let leg = Leg {
        phase: Phase::Decode,
        selection: Some(Box::new(Selection { selected: Some(Choice { worker, cost: None }), ..selection() })),
        ..Leg::default()
    };
    let of = |state, spans, leg: Option<&Leg>| Facts {
        start_ns: NOW,
        end_ns: Some(NOW),
        state,
        spans,
        legs: leg.cloned().into_iter().collect(),
        ..Facts::default()
    };
    let words = |all: &[Facts], id| {
        let mut data = Fixture::default();
        all.iter().for_each(|facts| _ = data.add(facts.clone()));
        format!("{:?}", pane(id, &data, ROOMS[1], None))
    };
    let (ended, in_flight) = (of(State::Ended, 3, None), of(State::InFlight, 3, None));
    let recorded = of(State::Ended, 0, Some(&leg));
    let (none, over, open, told) = (vec![], vec![ended.clone()], vec![in_flight.clone()], vec![recorded.clone()]);
    for (id, all, expected) in [
        (PaneId::Dispatch, &none, "no requests"),
        (PaneId::Streaming, &none, "no requests"),
        (PaneId::Dispatch, &over, "nothing was handed to a worker"),
        (PaneId::Streaming, &over, "no streams"),
        (PaneId::Dispatch, &open, "not yet arrived: spans come when they end"),
        (PaneId::Streaming, &open, "(1 not known)"),
        (PaneId::Dispatch, &told, "told by spans, of which none has come"),
        (PaneId::Streaming, &told, "told by spans, of which none has come"),
    ] {
        let words = words(all, id);
        assert!(words.contains(expected), "{expected}: {words}");
    }
    let some = words(&[ended, in_flight.clone()], PaneId::Dispatch);
    assert!(some.contains("nothing was handed to a worker, of what has ended"), "{some}");
    // Nobody knows yet where what is in flight is; records alone tell of no attempt.
    let workers = words(&[recorded.clone(), in_flight], PaneId::Workers);
    assert!(workers.contains("1 in flight at none yet known") && !workers.contains("never"), "{workers}");
    let untold = words(&[recorded], PaneId::Workers);
    assert!(untold.contains("\"?\"") && !untold.contains("never"), "{untold}");
}

/// Workers and the dispatch pane say the same of admissions: how many were taken, or that the layout does not record it.
#[test]
fn what_no_layout_records_of_admissions_is_no_zero() {
    let shown = |origin, result: &str| {
        let mut leg = fixture::leg(Phase::Decode, 0, 0.0, "", fixture::DECODE, 1.0);
        leg.dispatch.as_mut().unwrap().origin = origin;
        let admission =
            Admission { span: SpanId([4; 8]), transport: "".into(), payload_bytes: None, result: result.into() };
        leg.admission = Some(Box::new(admission));
        let mut data = Fixture::default();
        data.add(Facts { legs: vec![leg], state: State::Ended, spans: 9, ..Facts::default() });
        let workers = pane(PaneId::Workers, &data, ROOMS[4], None);
        let Body::Table(table) = &workers.columns[0][0].body else { panic!("{workers:?}") };
        let admitted = table.titles.iter().position(|title| *title == ">admitted").unwrap();
        let dispatch = format!("{:?}", pane(PaneId::Dispatch, &data, ROOMS[4], None));
        (table.rows[0][admitted].text.text.clone(), dispatch.contains("result not recorded by this layout"))
    };
    assert_eq!(shown(Origin::Inferred, ""), ("base".into(), true));
    assert_eq!(shown(Origin::Inferred, "accepted"), ("1".into(), false));
    assert_eq!(shown(Origin::Span, ""), ("0".into(), false));
}

/// A share is of the choices in the worker's pool, whoever tells, in whatever pane.
#[test]
fn a_share_is_one_number() {
    let mut data = Fixture::default();
    for (phase, id, origin, times) in [
        (Phase::Prefill, 7, Origin::Span, 3),
        (Phase::Prefill, 8, Origin::Record, 1),
        (Phase::Decode, 9, Origin::Span, 4),
    ] {
        let selected = Some(Choice { worker: Worker { id, rank: Some(0) }, cost: None });
        let chose = Selection { pool: phase, selected, origin, ..selection() };
        let leg = Leg { phase, selection: Some(Box::new(chose)), ..Leg::default() };
        (0..times).for_each(|_| _ = data.add(Facts { legs: vec![leg.clone()], ..Facts::default() }));
    }
    let shares = |id| {
        let shown = pane(id, &data, Room { columns: 120, ..ROOMS[1] }, None);
        let mut shares = Vec::new();
        for block in &shown.columns[0] {
            let cells: Vec<&Cell> = match &block.body {
                Body::Text(cells) => cells.iter().collect(),
                Body::Table(table) => table.rows.iter().flatten().collect(),
                Body::Plot(_) => continue,
            };
            let is_share = |cell: &&&Cell| matches!(cell.mark, Mark::Bar(_)) && cell.text.text.ends_with('%');
            shares.extend(cells.iter().filter(is_share).map(|cell| (cell.text.text.clone(), cell.mark.clone())));
        }
        shares.sort_by(|(one, _), (other, _)| one.cmp(other));
        shares
    };
    let expected =
        [("100 %", 1.0), ("25 %", 0.25), ("75 %", 0.75)].map(|(text, part)| (text.to_owned(), Mark::Bar(part)));
    assert_eq!(shares(PaneId::Selection), expected);
    assert_eq!(shares(PaneId::Workers), expected);
}

/// What a record tells is shown whole before anybody says who was chosen (in the base layout the route span does, at its end).
#[test]
fn a_choice_known_by_its_record_shows_all_candidates() {
    let worker = |id| Worker { id, rank: Some(0) };
    let at = |ms: u64| NOW / 1_000_000 * 1_000_000 + ms * 1_000_000;
    let leg = |ms, candidates, selected: Option<u64>| Leg {
        phase: Phase::Decode,
        selection: Some(Box::new(Selection {
            time_ns: at(ms),
            candidates: Some(candidates),
            selected: selected.map(|id| Choice { worker: worker(id), cost: None }),
            best: Some(Choice { worker: worker(7), cost: Some(65.0) }),
            margin: Some(24.0),
            ..selection()
        })),
        ..Leg::default()
    };
    let mut data = Fixture::default();
    // Moved once: two records of one pool. Of the second, the one that was chosen is not among the rows that were written.
    let legs = vec![leg(0, 2, None), leg(5, 3, Some(99))];
    let key = data.add(Facts { legs, state: State::InFlight, request_id: "moved".into(), ..Facts::default() });
    for (ms, count, rows) in [(5, 3, "[[7,0,65.0],[8,0,66.0]]"), (0, 2, "[[7,0,65.0],[9,0,89.0]]")] {
        let time_ms = at(ms) / 1_000_000;
        data.record(
            key,
            &format!(
                r#"{{"event_type":"router_selection","event_time_unix_ms":{time_ms},"selection":{{"request_id":"moved","worker_type":"decode","candidate_count":{count},"candidates":{rows}}}}}"#
            ),
        );
    }
    let shown = pane(PaneId::Selection, &data, ROOMS[4], None);
    let bodies = shown.columns.iter().flatten().map(|block| &block.body);
    let tables: Vec<&Table> =
        bodies.filter_map(|body| if let Body::Table(it) = body { Some(it) } else { None }).collect();
    let dots = |table: &Table, row: usize| match &table.rows[row][4].mark {
        Mark::Dots(dots) => dots.len(),
        mark => panic!("{mark:?}"),
    };
    let latest = tables.iter().find(|table| table.titles.contains(&"cost from 0")).unwrap();
    assert_eq!((dots(latest, 0), dots(latest, 1)), (2, 2));
    let text = |row: usize, cell: usize| latest.rows[row][cell].text.text.clone();
    // Nobody knows what was paid before it is known who was chosen.
    assert!(text(1, 5) == "…" && text(1, 6).ends_with('–'), "{latest:?}");
    let candidates = tables.iter().find(|table| table.titles.contains(&"candidate")).unwrap();
    assert_eq!(candidates.rows.len(), 2);
}

fn selection() -> Selection {
    Selection {
        span: None,
        time_ns: NOW,
        pool: Phase::Decode,
        candidates: None,
        eligible: None,
        filtered: None,
        filtered_parts: [None; 5],
        selected: None,
        best: None,
        margin: None,
        pinned: None,
        policy: "".into(),
        origin: Origin::Record,
    }
}
