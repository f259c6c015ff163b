//! The router's choices: how close they were, what the policy paid, what was filtered, who was chosen.

use std::collections::BTreeSet;

use super::decisions::{self, Decision};
use super::{Bar, Block, Cell, Known, Pane, PlotKind, Room, terms};
use crate::lifecycle::facts::FILTER_PARTS;
use crate::lifecycle::facts::NEAR_TIE;
use crate::lifecycle::ids::Worker;
use crate::lifecycle::stage::Origin;
use crate::store::rollup::values::Costs;
use crate::store::rollup::{Rollup, Selections};
use crate::view::data::Data;
use crate::view::{Tone, format};

/// Borders of the margins' classes, after ties; the last one is open.
const BORDERS: [f64; 11] = [NEAR_TIE, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0, f64::INFINITY];

/// What keeps choices among one candidate out.
const CONTESTED: &str = "-selection.candidates:1";

pub(super) fn pane(data: &dyn Data, room: Room, cursor: Option<&str>) -> Pane {
    let seen = data.seen();
    let (spans, records) = (&seen.rollup.selection, &seen.rollup.selection_records);
    let known = Known::of("selection.origin", (spans, spans.count), (records, records.count), Origin::Record);
    let of = known.shown;
    if of.count == 0 {
        let text = match seen.rollup.requests.total {
            0 => "no requests",
            _ => "no choices: neither router.selection spans nor router_selection records have come",
        };
        return Pane::one("no decisions".into(), vec![Block::text(0, vec![Cell::label(text)])]);
    }
    let decisions = format::counted(of.count, "decision", "decisions");
    let summary = format!("{decisions}{}{}", known.note, known.beside("told by records"));
    let plot = Block::plot(0, PlotKind::Bars, "decisions", margins(of, &known), vec!["margin (cost)".into()]);
    if room.is_tight() {
        return Pane::one(summary, vec![plot, Block::text(0, best(of, &known, true))]);
    }
    let filtered = Block::text(4, filtered(of, &known));
    let share = Block::text(1, share(&seen.rollup, room.column()));
    let best = Block::text(0, best(of, &known, false));
    if !room.zoomed {
        return Pane::one(summary, vec![plot, best, filtered, share]);
    }
    // A row for each decision, and below them the candidates of one.
    let most = usize::from(room.rows.saturating_sub(10)).clamp(4, 60);
    let latest = decisions::latest(data, most);
    let left = vec![
        plot.titled("margins"),
        best,
        filtered,
        Block::table(2, &WORKERS, workers(&seen.rollup, of, &known, &latest))
            .titled(format!("workers; candidate: of the latest {} decisions", latest.len())),
    ];
    let chosen = latest.iter().find(|decision| Some(&*decision.term) == cursor).or(latest.first());
    let mut right = vec![decisions::table(&latest, &seen, chosen)];
    if let Some(table) = chosen.and_then(decisions::candidates) {
        right.push(table);
    }
    Pane::two(summary, room, left, right)
}

fn cost_text(cost: f64) -> String {
    // As a filter reads it: no thousands, no more digits than there are.
    format!("{cost}")
}

fn margins(of: &Selections, known: &Known<'_, Selections>) -> Vec<Bar> {
    let bar = |label: String, value: u64, tone: Tone, within: &str| Bar {
        value: Some(value),
        label,
        tone,
        term: (value > 0).then(|| terms::leg(&[within, CONTESTED, &known.origin])),
    };
    let mut bars = vec![
        bar("tie".into(), of.ties, Tone::Warn, "margin<=0"),
        bar(format!("<{}", short(NEAR_TIE)), of.near_ties, Tone::Warn, &format!("margin>0 margin<{NEAR_TIE}")),
    ];
    for two in BORDERS.windows(2) {
        let within = match two[1].is_finite() {
            true => format!("margin:{}..<{}", cost_text(two[0]), cost_text(two[1])),
            false => format!("margin>={}", cost_text(two[0])),
        };
        bars.push(bar(short(two[0]), of.contested_margins.between(two[0], two[1]), Tone::Accent, &within));
    }
    bars
}

/// `.5`, `20`.
fn short(cost: f64) -> String {
    let text = cost_text(cost);
    text.strip_prefix('0').filter(|rest| rest.starts_with('.')).unwrap_or(&text).to_owned()
}

/// `chosen = best 96.2 %  ties 3.1 %  near 1 %  regret p99 3.1`.
fn best(of: &Selections, known: &Known<'_, Selections>, tight: bool) -> Vec<Cell> {
    let leg = |parts: &str| terms::leg(&[parts, &known.origin]);
    let contested = format!("margin<=0 {CONTESTED}");
    let near = format!("margin>0 margin<{NEAR_TIE} {CONTESTED}");
    let not_best = if of.not_best > 0 { Tone::Warn } else { Tone::Dim };
    let mut cells = if tight {
        vec![
            Cell::label("≠best"),
            Cell::new(format::percent(of.not_best, of.made), not_best)
                .finding_any(of.not_best, leg("selection.best:false")),
        ]
    } else {
        vec![
            Cell::label("chosen = best"),
            Cell::new(format::percent(of.made - of.not_best.min(of.made), of.made), Tone::Good)
                .finding_any(of.made - of.not_best.min(of.made), leg("selected.worker:* -selection.best:false")),
            Cell::label("≠"),
            Cell::count(of.not_best, not_best).finding_any(of.not_best, leg("selection.best:false")),
        ]
    };
    cells.push(Cell::label(if tight { "tie" } else { "ties" }));
    cells.push(Cell::new(format::percent(of.ties, of.count), Tone::Warn).finding_any(of.ties, leg(&contested)));
    cells.push(Cell::label("near"));
    cells.push(Cell::new(format::percent(of.near_ties, of.count), Tone::Warn).finding_any(of.near_ties, leg(&near)));
    cells.push(Cell::label("regret p99"));
    let paid = of.regrets.quantile(0.99);
    let cell = Cell::new(paid.map_or("–".into(), format::cost), Tone::Plain);
    cells.push(cell.finding_any(of.costs_more, leg("regret>0")));
    if !tight {
        cells.push(Cell::label("one candidate"));
        let term = leg("selection.candidates:1");
        cells.push(Cell::new(format::percent(of.single, of.count), Tone::Plain).finding_any(of.single, term));
    }
    cells
}

/// `filtered  overloaded ▇▇▇▇ 12 %  policy ▇ 3 %`: the share of decisions in which it happened.
fn filtered(of: &Selections, known: &Known<'_, Selections>) -> Vec<Cell> {
    if of.says_filtered == 0 {
        let text = if of.count > 0 { "filtered not recorded here" } else { "" };
        return vec![Cell::label(text)];
    }
    let mut parts: Vec<(&str, u64)> = FILTER_PARTS.into_iter().zip(of.filtered_in).collect();
    parts.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    let mut cells = vec![Cell::label("filtered")];
    let none = parts.iter().all(|(_, count)| *count == 0);
    for (part, count) in parts.into_iter().filter(|(_, count)| *count > 0) {
        let term = terms::leg(&[&format!("selection.filtered.{part}>0"), &known.origin]);
        cells.push(Cell::label(part));
        let share = Cell::new(format::percent(count, of.says_filtered), Tone::Plain).bar(count, of.says_filtered);
        cells.push(share.finding(term));
    }
    if none {
        cells.push(Cell::label("none in any decision"));
    }
    cells
}

/// `share  7f3a:0 ▇▇▇▇▇▇▇ 38 %  …`: of the choices in its pool, whoever tells; the largest first, as many as there is room
/// for.
fn share(rollup: &Rollup, columns: u16) -> Vec<Cell> {
    let both = [&rollup.selection, &rollup.selection_records];
    let workers: BTreeSet<Worker> = both.iter().flat_map(|of| of.by_worker.keys().copied()).collect();
    let mut chosen: Vec<_> = workers.into_iter().map(|worker| (worker, rollup.chosen(worker))).collect();
    chosen.retain(|(_, chosen)| chosen.count() > 0);
    chosen.sort_by(|(_, one), (_, other)| other.share.total_cmp(&one.share));
    let most = usize::from(columns.saturating_sub(10) / 22).max(1);
    let more = chosen.len().saturating_sub(most);
    let largest = chosen.first().map_or(0.0, |(_, chosen)| chosen.share);
    let mut cells = vec![Cell::label("share")];
    for (worker, chosen) in chosen.into_iter().take(most) {
        cells.push(Cell::new(worker.short(), Tone::Plain));
        let term = terms::leg(&[&terms::worker("selected.worker", worker)]);
        cells.push(Cell::share(chosen.share, largest).finding(term));
    }
    if more > 0 {
        cells.push(Cell::label(format!("+{more}")));
    }
    cells
}

const WORKERS: [&str; 8] = ["worker", ">candidate", ">chosen", "share", ">won by", ">passed over", ">lost by", ">paid"];

/// A row per worker: times candidate and chosen, won by how much, passed over and by how much.
fn workers(rollup: &Rollup, of: &Selections, known: &Known<'_, Selections>, latest: &[Decision]) -> Vec<Vec<Cell>> {
    let share = |worker: Worker| rollup.chosen(worker).share;
    let mut workers: Vec<_> = of.by_worker.iter().collect();
    workers.sort_by_key(|(_, worker)| std::cmp::Reverse(worker.chosen));
    let largest = workers.iter().map(|(worker, _)| share(**worker)).fold(0.0, f64::max);
    let mean =
        |costs: &Costs| costs.mean().map_or(Cell::label("–"), |mean| Cell::new(format::cost(mean), Tone::Plain));
    workers
        .into_iter()
        .map(|(worker, won)| {
            let candidate = latest.iter().filter(|decision| decision.has(*worker)).count() as u64;
            let chosen = terms::leg(&[&terms::worker("selected.worker", *worker), &known.origin]);
            let passed = terms::leg(&[&terms::worker("best.worker", *worker), "selection.best:false", &known.origin]);
            vec![
                Cell::new(worker.short(), Tone::Plain).finding_any(won.chosen, chosen),
                Cell::count(candidate, Tone::Plain),
                Cell::count(won.chosen, Tone::Plain),
                Cell { mark: Cell::share(share(*worker), largest).mark, ..Cell::new("", Tone::Accent) },
                mean(&won.margins),
                Cell::count(won.passed_over, Tone::Warn).finding_any(won.passed_over, passed),
                mean(&won.passed_regrets),
                mean(&won.regrets),
            ]
        })
        .collect()
}
