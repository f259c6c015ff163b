//! Workers: a row per worker and rank, from choice to loss.

use super::{Block, Cell, Pane, Room, nothing, terms};
use crate::lifecycle::stage::Layout;
use crate::store::rollup::Rank;
use crate::view::data::Seen;
use crate::view::{Nothing, Tone, format};

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
    let ranks = seen.rollup.ranks();
    let vanished = ranks.iter().filter(|rank| rank.vanished).count();
    let mut summary = format::counted(ranks.len() as u64, "worker or rank", "workers and ranks");
    if vanished > 0 {
        summary += &format!(" · {vanished} vanished");
    }
    let unplaced = seen.rollup.workers.unplaced();
    if unplaced > 0 {
        summary += &format!(" · {unplaced} in flight at none yet known");
    }
    if ranks.is_empty() {
        return Pane::one(
            summary,
            vec![Block::text(0, vec![Cell::label(nothing(seen, "no leg has gone to a worker"))])],
        );
    }
    let busiest = ranks.iter().filter_map(|rank| rank.in_flight).max().unwrap_or(0);
    let largest = ranks.iter().filter_map(|rank| Some(rank.chosen?.share)).fold(0.0, f64::max);
    let rows = ranks.iter().map(|rank| row(rank, seen, busiest, largest)).collect();
    let mut block = Block::table(0, &TITLES, rows);
    narrow(&mut block, room);
    let mut blocks = vec![block];
    if room.zoomed {
        let note = "won by: mean margin when chosen as the best · lost by: mean regret when passed over as the best";
        blocks.push(Block::text(5, vec![Cell::label(note)]));
        let note =
            "paid: mean regret when chosen though not the best · share and in flight: the longest bar is the largest";
        blocks.push(Block::text(6, vec![Cell::label(note)]));
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

/// What kind of nothing it is when no choice, or no admission's result, is known at all.
fn unrecorded(seen: &Seen<'_>) -> Nothing {
    let of = &*seen.rollup;
    let is_base = of.dispatch.count == 0 && of.dispatch_inferred.count > 0;
    if is_base { Nothing::Layout(Layout::Base) } else { Nothing::NoSuch }
}

fn row(rank: &Rank<'_>, seen: &Seen<'_>, busiest: u64, largest: f64) -> Vec<Cell> {
    let cost = |mean: Option<f64>| mean.map_or(Cell::label("–"), |mean| Cell::new(format::cost(mean), Tone::Plain));
    let named = terms::worker("worker", rank.worker);
    let leg = |more: &str| terms::leg(&[&named, more]);
    let tone = rank.phases.last().map_or(Tone::Plain, |phase| Tone::of_phase(*phase));
    let (name, name_tone) = match rank.vanished {
        true => (format!("∅ {}", rank.worker.short()), Tone::Bad),
        false => (format!("  {}", rank.worker.short()), Tone::Plain),
    };
    let words: Vec<&str> = rank.phases.iter().map(|phase| phase.word()).collect();
    // Records alone tell of no hand-over.
    let untold = rank.attempts.is_none();
    let last_seen = match rank.last_seen_ns {
        _ if rank.vanished => Cell::new("vanished", Tone::Bad),
        Some(time_ns) => Cell::label(format!("{} ago", format::age(seen.now_ns.saturating_sub(time_ns)))),
        None if untold => Nothing::Spanless.mark().into(),
        None => Cell::label("never"),
    };
    let told = |count: Option<u64>, nothing: Nothing, tone: Tone, term: String| match count {
        Some(count) => Cell::count(count, tone).finding_any(count, term),
        None => nothing.mark().into(),
    };
    let handed = |count: Option<u64>, tone: Tone, term: &str| told(count, Nothing::Spanless, tone, leg(term));
    let selected = terms::leg(&[&terms::worker("selected.worker", rank.worker)]);
    let unadmitted = if untold { Nothing::Spanless } else { unrecorded(seen) };
    let accepted = leg("dispatch.time:* admission.result:accepted");
    let payload = rank.payloads.quantile(0.5);
    let passed = terms::leg(&[&terms::worker("best.worker", rank.worker), "selection.best:false"]);
    vec![
        Cell::new(name, name_tone).finding_any(rank.requests, &*named),
        Cell::new(if words.is_empty() { "–".into() } else { words.join(", ") }, tone),
        told(rank.in_flight, Nothing::NotYet, Tone::Running, terms::worker("at", rank.worker)),
        Cell::new("", Tone::Running).bar(rank.in_flight.unwrap_or(0), busiest),
        Cell::count(rank.requests, Tone::Plain).finding_any(rank.requests, &*named),
        told(rank.chosen.map(|chosen| chosen.count()), unrecorded(seen), Tone::Plain, selected),
        rank.chosen.map_or_else(|| unrecorded(seen).mark().into(), |chosen| Cell::share(chosen.share, largest)),
        cost(rank.won_by),
        // Where spans and records both tell of it, the term would find those of records too.
        cost(rank.lost_by).finding_any(rank.passed_over, passed),
        cost(rank.paid),
        handed(rank.attempts, Tone::Plain, "dispatch.time:*"),
        told(rank.admitted, unadmitted, Tone::Plain, accepted),
        payload.map_or(Cell::label("–"), |bytes| Cell::new(format::bytes(bytes), Tone::Plain)),
        handed(rank.failed, Tone::Bad, "dispatch.failed:true"),
        handed(rank.lost, Tone::Bad, "dispatch.lost:true"),
        rank.ttft
            .quantile(0.5)
            .map_or(Cell::label("–"), |ns| Cell::new(format::duration(ns), Tone::Plain))
            .finding_any(rank.ttft.count(), format!("{} ttft:*", terms::worker("served", rank.worker))),
        last_seen.finding_any(u64::from(rank.vanished), leg("dispatch.lost:true")),
    ]
}
