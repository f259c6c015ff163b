//! The queue: who was deferred and why, how long they waited; its depth over time is `depth`'s.

use compact_str::CompactString;

use super::depth::Depth;
use super::{Bar, Block, Cell, Known, Mark, Pane, PlotKind, Room, said, scale, terms, time};
use crate::lifecycle::stage::{Layout, Origin, Phase};
use crate::store::rollup::{ClassWaits, Queues, Requests};
use crate::view::data::Seen;
use crate::view::{Nothing, Tone, format};

/// Classes of a histogram in a table's row.
const SPARK: usize = 10;

pub(super) fn pane(seen: &Seen<'_>, room: Room) -> Pane {
    let rollup = &*seen.rollup;
    let (spans, inferred) = (&rollup.queue, &rollup.queue_inferred);
    let known = Known::of("queue.origin", (spans, spans.all.count), (inferred, inferred.all.count), Origin::Inferred);
    let all = &known.shown.all;
    let depth = Depth::of(seen, room, None);
    let mut summary = depth.summary();
    let classes = known.shown.by_class.len();
    if classes > 1 {
        summary += &format!(" · {classes} classes");
    }
    summary += known.note;
    if known.shown.by_class.is_empty() {
        return Pane::one("no waits".into(), vec![Block::text(0, vec![Cell::label(nothing(seen))])]);
    }
    let plot = depth.block(0);
    if room.is_tight() {
        return Pane::one(summary, vec![plot, Block::text(0, tight(all, &known))]);
    }
    let mut blocks = vec![plot, Block::text(1, line(all, &known)), Block::table(0, &REASONS, reasons(all, &known, 0))];
    if !room.zoomed {
        return Pane::one(summary + &known.beside("inferred"), blocks);
    }
    blocks[2] = Block::table(1, &REASONS, reasons(all, &known, 12)).titled("why");
    let mut left = Vec::new();
    let mut pools: Vec<Phase> = depth.pools.clone();
    // Who left before a choice names no pool: those moments belong to one of the others.
    pools.retain(|pool| *pool != Phase::Unknown);
    pools.retain(|_| depth.pools.len() > 1);
    for pool in pools {
        let of = Depth::of(seen, room, Some(pool));
        left.push(of.block(2).titled(format!("{} · {}", pool.word(), of.summary())));
    }
    if left.is_empty() {
        left.push(blocks[0].clone().titled("depth"));
    }
    left.push(waits(all, &known, room).titled("wait"));
    let right = vec![
        blocks[1].clone(),
        blocks[2].clone(),
        Block::table(2, &CLASSES, by_class(known.shown, &known)).titled("by class and policy"),
        Block::table(3, &POOLS, by_pool(known.shown, &known)).titled("by pool"),
    ];
    Pane::two(summary + &known.beside("inferred"), room, left, right)
}

/// Why there is nothing to show.
fn nothing(seen: &Seen<'_>) -> String {
    let Requests { total, told, .. } = seen.rollup.requests;
    let none = if seen.rollup.selection.made + seen.rollup.selection_records.made > 0 {
        "missing: a KV router chose, but no span of a wait in its queue has come"
    } else if told < total {
        "none whose spans have come went through a KV router's queue"
    } else {
        "none of these requests went through a KV router's queue"
    };
    super::nothing(seen, none)
}

fn outcome_tone(outcome: &str) -> Tone {
    match outcome {
        "dequeued" => Tone::Good,
        "rejected" => Tone::Rejected,
        "cancelled" => Tone::Cancelled,
        "failed" => Tone::Bad,
        _ => Tone::Plain,
    }
}

fn deferred(all: &ClassWaits, known: &Known<'_, Queues>) -> Vec<Cell> {
    let Some(deferred) = all.deferred() else { return vec![Cell::label("deferral not recorded by this layout")] };
    let share = format::percent(deferred, all.says_deferred);
    let term = terms::leg(&["queue.deferred:true", &known.origin]);
    vec![Cell::label("deferred"), Cell::new(share, Tone::Queue).finding_any(deferred, term)]
}

fn tight(all: &ClassWaits, known: &Known<'_, Queues>) -> Vec<Cell> {
    let mut cells = deferred(all, known);
    for row in reasons(all, known, 2) {
        cells.extend(row.into_iter().filter(|cell| matches!(cell.mark, Mark::None)).take(2));
    }
    cells
}

/// `deferred 31 %  rejected 48  cancelled 3 · wait p50 …`.
fn line(all: &ClassWaits, known: &Known<'_, Queues>) -> Vec<Cell> {
    let mut cells = deferred(all, known);
    for (outcome, count) in all.outcomes.ranked() {
        if outcome != "dequeued" && !outcome.is_empty() {
            cells.push(Cell::label(outcome.as_str()));
            let term = terms::leg(&[&terms::is("queue.outcome", outcome), &known.origin]);
            cells.push(Cell::count(count, outcome_tone(outcome)).finding(term));
        }
    }
    cells.push(Cell::label("of"));
    cells.push(Cell::count(all.count, Tone::Plain));
    cells.push(Cell::label("· wait p50"));
    cells.push(time(&all.waits, 0.5));
    cells.push(Cell::label("p99"));
    cells.push(time(&all.waits, 0.99));
    cells
}

const REASONS: [&str; 6] = ["", "", ">n", ">p50", ">p90", ">p99"];

/// Reasons, the most frequent first: of deferrals with their waits, then of what never left for a worker.
fn reasons(all: &ClassWaits, known: &Known<'_, Queues>, most: usize) -> Vec<Vec<Cell>> {
    let mut deferred: Vec<_> = all.deferred_by.iter().collect();
    deferred.sort_by_key(|(_, waits)| std::cmp::Reverse(waits.count()));
    let largest =
        all.deferred_by.values().map(|waits| waits.count()).chain(all.rejected_by.iter().map(|(_, n)| n)).max();
    let largest = largest.unwrap_or(0);
    let mut rows = Vec::new();
    for (reason, waits) in deferred {
        let term = terms::leg(&["queue.deferred:true", &terms::is_or_absent("queue.reason", reason), &known.origin]);
        rows.push(vec![
            Cell::new(said(reason, "no reason given"), Tone::Queue).finding(term),
            Cell::new("", Tone::Queue).bar(waits.count(), largest),
            Cell::count(waits.count(), Tone::Plain),
            time(waits, 0.5),
            time(waits, 0.9),
            time(waits, 0.99),
        ]);
    }
    for (reason, count) in all.rejected_by.ranked() {
        let reason_term = terms::is_or_absent("queue.reason", reason);
        let term = terms::leg(&["queue.outcome:rejected", &reason_term, &known.origin]);
        rows.push(vec![
            Cell::new(format!("✕ {}", said(reason, "no limit given")), Tone::Rejected).finding(term),
            Cell::new("", Tone::Rejected).bar(count, largest),
            Cell::count(count, Tone::Plain),
            Cell::label("–"),
            Cell::label("–"),
            Cell::label("–"),
        ]);
    }
    if most > 0 {
        rows.truncate(most);
    }
    rows
}

/// How long they waited.
fn waits(all: &ClassWaits, known: &Known<'_, Queues>, room: Room) -> Block {
    let classes = scale::decades(&all.waits, usize::from(room.column() / 6).max(4));
    let bars = classes
        .iter()
        .map(|(from, to)| {
            let within = format!("queue.wait:{}..<{}", scale::time(*from), scale::time(*to));
            let count = all.waits.between(*from, *to);
            Bar {
                value: Some(count),
                label: scale::time(*from),
                tone: Tone::Queue,
                term: (count > 0).then(|| terms::leg(&[&within, &known.origin])),
            }
        })
        .collect();
    Block::plot(3, PlotKind::Bars, "waits", bars, vec!["from … on".into()])
}

const CLASSES: [&str; 10] =
    ["class", "policy", ">n", ">deferred", ">rejected", ">cancelled", ">p50", ">p99", ">depth", "wait"];

/// A row per class and policy.
fn by_class(queues: &Queues, known: &Known<'_, Queues>) -> Vec<Vec<Cell>> {
    let classes = scale::decades(&queues.all.waits, SPARK);
    let mut of: Vec<(&(CompactString, CompactString), &ClassWaits)> = queues.by_class.iter().collect();
    of.sort_by_key(|(_, waits)| std::cmp::Reverse(waits.count));
    of.into_iter()
        .map(|((class, policy), waits)| {
            let class_term = terms::is_or_absent("queue.class", class);
            let policy_term = terms::is_or_absent("queue.policy", policy);
            let term = |more: &str| terms::leg(&[&class_term, &policy_term, "queue.wait:*", more, &known.origin]);
            let mut row = vec![
                Cell::new(said(class, "not recorded"), Tone::Plain).finding(term("")),
                Cell::label(said(policy, "not recorded")),
            ];
            row.extend(counts(waits, known, term));
            row.push(Cell { mark: Mark::Spark(scale::spark(&waits.waits, &classes)), ..Cell::new("", Tone::Queue) });
            row
        })
        .collect()
}

const POOLS: [&str; 9] = ["pool", ">n", ">deferred", ">rejected", ">cancelled", ">p50", ">p99", ">depth", "wait"];

/// A row per pool.
fn by_pool(queues: &Queues, known: &Known<'_, Queues>) -> Vec<Vec<Cell>> {
    let classes = scale::decades(&queues.all.waits, SPARK);
    queues
        .by_pool
        .iter()
        .map(|(pool, waits)| {
            let phase = terms::is("phase", pool.word());
            let term = |more: &str| terms::leg(&[&phase, "queue.wait:*", more, &known.origin]);
            let mut row = vec![Cell::new(pool.word(), Tone::of_phase(*pool)).finding(term(""))];
            row.extend(counts(waits, known, term));
            row.push(Cell { mark: Mark::Spark(scale::spark(&waits.waits, &classes)), ..Cell::new("", Tone::Queue) });
            row
        })
        .collect()
}

/// Counts and waits of one kind.
fn counts(waits: &ClassWaits, known: &Known<'_, Queues>, term: impl Fn(&str) -> String) -> Vec<Cell> {
    let count = |count: Option<u64>, tone, part: &str| match count {
        Some(count) => Cell::count(count, tone).finding_any(count, term(part)),
        None => known.unsaid(),
    };
    let outcome = |word: &str| count(waits.ended(word), outcome_tone(word), &terms::is("queue.outcome", word));
    vec![
        Cell::count(waits.count, Tone::Plain),
        count(waits.deferred(), Tone::Queue, "queue.deferred:true"),
        outcome("rejected"),
        outcome("cancelled"),
        time(&waits.waits, 0.5),
        time(&waits.waits, 0.99),
        waits.deepest().map_or_else(|| known.unsaid(), |depth| Cell::count(depth, Tone::Plain)),
    ]
}

impl Known<'_, Queues> {
    /// The mark of what these waits do not say.
    fn unsaid(&self) -> Cell {
        let nothing = if self.from == Origin::Span { Nothing::NoSuch } else { Nothing::Layout(Layout::Base) };
        Cell { text: nothing.mark(), ..Cell::default() }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Body, PaneId};
    use crate::lifecycle::facts::{Choice, Facts, Leg, Selection, State};
    use crate::lifecycle::ids::Worker;
    use crate::lifecycle::stage::{Origin, Phase};
    use crate::view::fixture::{Fixture, NOW};
    use crate::view::panes::{Room, pane};

    fn says(all: &[Facts]) -> String {
        let mut data = Fixture::default();
        all.iter().for_each(|facts| _ = data.add(facts.clone()));
        let shown = pane(PaneId::Queue, &data, Room { columns: 70, rows: 11, zoomed: false }, None);
        let Body::Text(cells) = &shown.columns[0][0].body else { panic!("{shown:?}") };
        cells[0].text.text.clone()
    }

    #[test]
    fn why_there_are_no_waits_is_said_as_it_is() {
        let ended = Facts { state: State::Ended, spans: 3, ..Facts::default() };
        let by_record = Facts { spans: 0, has_record: true, ..ended.clone() };
        let chosen = Selection {
            span: None,
            time_ns: NOW,
            pool: Phase::Decode,
            candidates: None,
            eligible: None,
            filtered: None,
            filtered_parts: [None; 5],
            selected: Some(Choice { worker: Worker { id: 7, rank: None }, cost: None }),
            best: None,
            margin: None,
            pinned: None,
            policy: "".into(),
            origin: Origin::Record,
        };
        let legs = vec![Leg { selection: Some(Box::new(chosen)), ..Leg::default() }];
        let routed = Facts { legs, ..ended.clone() };
        let waiting = Facts { state: State::InFlight, ..ended.clone() };
        for (all, word) in [
            (vec![], "no requests"),
            (vec![ended.clone()], "none of these requests went"),
            (vec![ended.clone(), by_record.clone()], "none whose spans have come went"),
            (vec![by_record.clone()], "told by spans, of which none has come"),
            (vec![Facts { legs: routed.legs.clone(), ..by_record }], "told by spans, of which none has come"),
            (vec![routed, ended.clone()], "missing: "),
            (vec![waiting.clone()], "not yet arrived: "),
            (vec![ended, waiting], "none whose spans have come went"),
        ] {
            assert!(says(&all).starts_with(word), "{word}: {}", says(&all));
        }
    }
}
