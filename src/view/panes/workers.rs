//! Workers: a row per worker and rank, from choice to loss.

use std::collections::BTreeSet;

use super::dispatch::of_worker;
use super::{Block, Cell, Mark, Pane, Room, terms, time};
use crate::lifecycle::ids::Worker;
use crate::lifecycle::stage::Phase;
use crate::store::rollup::values::Costs;
use crate::store::rollup::{Rollup, Selections};
use crate::view::data::Seen;
use crate::view::{Tone, format};

const TITLES: [&str; 17] = [
    "worker",
    "phase",
    ">in flight",
    "",
    ">requests",
    ">selected",
    "share",
    ">won by",
    ">lost by",
    ">paid",
    ">attempts",
    ">admitted",
    ">payload",
    ">failed",
    ">lost",
    ">TTFT p50",
    ">last seen",
];

/// Columns left out first where there is little room.
const NARROW: [usize; 8] = [3, 9, 12, 11, 8, 10, 4, 1];

pub(super) fn pane(seen: &Seen<'_>, room: Room) -> Pane {
    let rollup = &*seen.rollup;
    let mut workers: BTreeSet<Worker> = rollup.workers.iter().map(|(worker, _)| worker).collect();
    workers.extend(rollup.selection.by_worker.keys().chain(rollup.selection_records.by_worker.keys()));
    let mut rows: Vec<(bool, Vec<Phase>, Worker)> = workers
        .into_iter()
        .map(|worker| {
            let gone = rollup.workers.get(worker).is_some_and(|life| life.has_vanished());
            (gone, of_worker(rollup, worker).phases, worker)
        })
        .collect();
    // Those who are there first, by phase, each at its place.
    rows.sort();
    let vanished = rows.iter().filter(|(gone, ..)| *gone).count();
    let mut summary = format!("{} workers and ranks", format::count(rows.len() as u64));
    if vanished > 0 {
        summary += &format!(" · {vanished} vanished");
    }
    let busiest = rollup.workers.iter().map(|(_, life)| life.in_flight).max().unwrap_or(0);
    let table = rows.iter().map(|(gone, phases, worker)| row(rollup, seen, *worker, phases, *gone, busiest)).collect();
    let mut block = Block::table(0, &TITLES, table);
    narrow(&mut block, room);
    if rows.is_empty() {
        block = Block::text(0, vec![Cell::label("no leg has gone to a worker")]);
    }
    let mut blocks = vec![block];
    if room.zoomed {
        let note = "won by: mean margin when chosen as the best · lost by: mean regret of choices that passed it over · \
                    paid: mean regret when chosen though not the best";
        blocks.push(Block::text(5, vec![Cell::label(note)]));
    }
    Pane::one(summary, blocks)
}

/// Takes columns out until the table fits.
fn narrow(block: &mut Block, room: Room) {
    let super::Body::Table(table) = &mut block.body else { return };
    let mut gone: Vec<usize> = match room.columns {
        150.. => Vec::new(),
        130..150 => NARROW[..2].to_vec(),
        104..130 => NARROW[..5].to_vec(),
        _ => NARROW.to_vec(),
    };
    if room.columns < 76 {
        gone.push(6);
    }
    gone.sort_unstable();
    for at in gone.into_iter().rev() {
        table.titles.remove(at);
        table.rows.iter_mut().for_each(|row| _ = row.remove(at));
    }
}

fn row(rollup: &Rollup, seen: &Seen<'_>, worker: Worker, phases: &[Phase], gone: bool, busiest: u64) -> Vec<Cell> {
    let default = Default::default();
    let life = rollup.workers.get(worker).unwrap_or(&default);
    let counts = of_worker(rollup, worker);
    let chosen = Chosen::of(rollup, worker);
    let mean = |costs: Option<f64>| costs.map_or(Cell::label("–"), |mean| Cell::new(format::cost(mean), Tone::Plain));
    let named = terms::worker("worker", worker);
    let leg = |more: &str| terms::leg(&[&named, more]);
    let tone = phases.last().map_or(Tone::Plain, |phase| Tone::of_phase(*phase));
    let (name, name_tone) = if gone {
        (format!("∅ {}", worker.short()), Tone::Bad)
    } else {
        (format!("  {}", worker.short()), Tone::Plain)
    };
    let words: Vec<&str> = phases.iter().map(|phase| phase.word()).collect();
    let seen_ago = match life.last_seen_ns() {
        _ if gone => Cell::new("vanished", Tone::Bad).finding_any(counts.lost, leg("dispatch.lost:true")),
        Some(time_ns) => Cell::label(format!("{} ago", format::age(seen.until_ns.saturating_sub(time_ns)))),
        None => Cell::label("never"),
    };
    vec![
        Cell::new(name, name_tone).finding_any(life.requests, named.clone()),
        Cell::new(if words.is_empty() { "–".into() } else { words.join(", ") }, tone),
        Cell::count(life.in_flight, Tone::Running).finding_any(life.in_flight, terms::worker("at", worker)),
        Cell::new("", Tone::Running).bar(life.in_flight, busiest),
        Cell::count(life.requests, Tone::Plain).finding_any(life.requests, named.clone()),
        Cell::count(chosen.count, Tone::Plain).finding_any(chosen.count, terms::worker("selected.worker", worker)),
        Cell { mark: Mark::Bar(chosen.share), ..Cell::new(percent(chosen.share), Tone::Accent) },
        mean(chosen.won_by),
        mean(chosen.lost_by),
        mean(chosen.paid),
        Cell::count(counts.attempts, Tone::Plain).finding_any(counts.attempts, leg("dispatch.time:*")),
        Cell::count(counts.admitted, Tone::Plain)
            .finding_any(counts.admitted, leg("dispatch.time:* admission.result:accepted")),
        counts.payload(),
        Cell::count(counts.failed, Tone::Bad).finding_any(counts.failed, leg("dispatch.result:failed")),
        Cell::count(counts.lost, Tone::Bad).finding_any(counts.lost, leg("dispatch.lost:true")),
        time(&life.ttft, 0.5).finding_any(life.ttft.count(), format!("{named} ttft:*")),
        seen_ago,
    ]
}

fn percent(share: f64) -> String {
    format!("{:.0} %", share * 100.0)
}

/// How a worker fared in the choices, by spans or, where there are none, by records.
struct Chosen {
    count: u64,
    /// Of the choices made in the pools that chose it.
    share: f64,
    won_by: Option<f64>,
    lost_by: Option<f64>,
    paid: Option<f64>,
}

impl Chosen {
    fn of(rollup: &Rollup, worker: Worker) -> Self {
        let both: [&Selections; 2] = [&rollup.selection, &rollup.selection_records];
        let of = |selections: &'_ Selections| selections.by_worker.get(&worker).cloned().unwrap_or_default();
        let [spans, records] = both.map(of);
        // Costs of spans and of records are not mixed.
        let shown = if spans.chosen + spans.passed_over > 0 { &spans } else { &records };
        let mean = |costs: &Costs| costs.mean();
        let mut rivals = 0;
        for (selections, mine) in both.into_iter().zip([&spans, &records]) {
            rivals += mine.pools.iter().map(|(pool, _)| selections.by_pool.get(pool)).sum::<u64>();
        }
        let count = spans.chosen + records.chosen;
        Self {
            count,
            share: if rivals > 0 { count as f64 / rivals as f64 } else { 0.0 },
            won_by: mean(&shown.margins),
            lost_by: mean(&shown.passed_regrets),
            paid: mean(&shown.regrets),
        }
    }
}
