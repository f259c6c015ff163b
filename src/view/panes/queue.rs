//! The queue: its depth over time, who was deferred and why, how long they waited.

use compact_str::CompactString;

use super::{Bar, Block, Cell, Known, Mark, Over, Pane, PlotKind, Room, said, scale, terms, time};
use crate::lifecycle::stage::{Origin, Phase};
use crate::store::rollup::{ClassWaits, Queues, Reading, Rollup, TICK_NS};
use crate::view::data::Seen;
use crate::view::{Tone, format};

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
fn nothing(seen: &Seen<'_>) -> &'static str {
    if seen.rollup.requests.total == 0 {
        "no requests"
    } else {
        "none of these requests went through a KV router's queue"
    }
}

/// The greatest of these depths, one of each pool. What was seen by who left before a choice names no pool: it is of one of
/// the others, and holds until that one is seen again.
fn deepest(readings: impl Iterator<Item = (Phase, Reading)> + Clone) -> Option<(u64, Phase)> {
    let known = readings.clone().filter(|(pool, _)| *pool != Phase::Unknown);
    let newest = known.map(|(_, reading)| reading.time_ns).max();
    let holds =
        |pool: Phase, reading: Reading| pool != Phase::Unknown || newest.is_none_or(|newest| reading.time_ns >= newest);
    readings.filter(|(pool, reading)| holds(*pool, *reading)).map(|(pool, reading)| (reading.depth, pool)).max()
}

/// Depth over time.
struct Depth {
    bars: Vec<Bar>,
    over: Over,
    below: Vec<String>,
    now: Option<u64>,
    peak: Option<u64>,
    pools: Vec<Phase>,
    inferred: bool,
}

impl Depth {
    /// Of one pool, or at each moment of the deepest.
    fn of(seen: &Seen<'_>, room: Room, pool: Option<Phase>) -> Self {
        let rollup: &Rollup = &seen.rollup;
        let inferred = rollup.depths.extent().is_none();
        let extent = if inferred { rollup.overlaps.extent() } else { rollup.depths.extent() };
        let (first, last) = extent.unwrap_or((seen.until_ns, seen.until_ns));
        let (from, to) = match seen.window_ns {
            Some(window_ns) => (seen.until_ns.saturating_sub(window_ns), seen.until_ns),
            None => (first, last),
        };
        // Whole ticks, a second at least, so that buckets do not tremble.
        let columns = room.column().saturating_sub(8).max(4);
        let most = 2 * u64::from(columns);
        let ticks = (to.saturating_sub(from) / TICK_NS).max(10);
        let width = ticks.div_ceil(most) * TICK_NS;
        let end = to.div_ceil(width) * width;
        let buckets = (ticks * TICK_NS).div_ceil(width).clamp(1, most);
        let start = end.saturating_sub(buckets * width);
        let pools: Vec<Phase> =
            if inferred { rollup.overlaps.pools().collect() } else { rollup.depths.pools().collect() };
        let shown: Vec<Phase> = pools.iter().copied().filter(|each| pool.is_none_or(|pool| pool == *each)).collect();
        let series: Vec<(Phase, Vec<Option<Reading>>)> = shown
            .iter()
            .map(|pool| {
                let counts = || rollup.overlaps.series(*pool, start, end, buckets as usize);
                let depths = || rollup.depths.series(*pool, start, end, buckets as usize);
                let counted = |depth| Some(Reading { depth, time_ns: end });
                (*pool, if inferred { counts().into_iter().map(counted).collect() } else { depths() })
            })
            .collect();
        let bars: Vec<Bar> = (0..buckets as usize)
            .map(|at| {
                let deepest = deepest(series.iter().filter_map(|(pool, depths)| Some((*pool, depths[at]?))));
                let (from, to) = (start + at as u64 * width, start + (at as u64 + 1) * width);
                Bar {
                    value: deepest.map(|(depth, _)| depth),
                    label: format::clock(from),
                    tone: match deepest {
                        Some((_, pool)) if pool != Phase::Unknown => Tone::of_phase(pool),
                        _ => Tone::Queue,
                    },
                    term: deepest.filter(|(depth, _)| *depth > 0).map(|_| entered(pool, from, to)),
                }
            })
            .collect();
        let now = match inferred {
            true => bars.last().and_then(|bar| bar.value),
            false => deepest(shown.iter().filter_map(|pool| Some((*pool, rollup.depths.now(*pool)?))))
                .map(|(depth, _)| depth),
        };
        let span = end - start;
        let ago = |ns: u64| format!("−{}", format::duration(ns));
        let last = if seen.window_ns.is_some() || seen.until_ns.saturating_sub(end) < 5_000_000_000 {
            "now".to_owned()
        } else {
            format::clock(end)
        };
        let peak = bars.iter().filter_map(|bar| bar.value).max();
        let over = Over { pool, start_ns: start, width_ns: width };
        Self { bars, over, below: vec![ago(span), ago(span / 2), last], now, peak, pools, inferred }
    }

    fn summary(&self) -> String {
        let number = |number: Option<u64>| number.map_or("–".into(), format::count);
        let mark = if self.inferred { "~" } else { "" };
        format!("depth {mark}{} · peak {mark}{}", number(self.now), number(self.peak))
    }

    fn block(&self, rank: u8) -> Block {
        let unit = if self.inferred { "waiting ~" } else { "waiting" };
        Block::plot(rank, PlotKind::Area, unit, self.bars.clone(), self.below.clone()).over(self.over)
    }
}

/// Who entered the queue within a stretch of time. Buckets are whole milliseconds.
pub(super) fn entered(pool: Option<Phase>, from_ns: u64, to_ns: u64) -> String {
    let within = format!("queue.entered:{}..<{}", from_ns / 1_000_000, to_ns / 1_000_000);
    match pool {
        Some(pool) => terms::leg(&[&terms::is("phase", pool.word()), &within]),
        None => within,
    }
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
    if all.says_deferred == 0 {
        return vec![Cell::label("deferral not recorded by this layout")];
    }
    let share = format::percent(all.deferred, all.says_deferred);
    let term = terms::leg(&["queue.deferred:true", &known.origin]);
    vec![Cell::label("deferred"), Cell::new(share, Tone::Queue).finding_any(all.deferred, term)]
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
            row.extend(counts(waits, term));
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
            row.extend(counts(waits, term));
            row.push(Cell { mark: Mark::Spark(scale::spark(&waits.waits, &classes)), ..Cell::new("", Tone::Queue) });
            row
        })
        .collect()
}

/// Counts and waits of one kind.
fn counts(waits: &ClassWaits, term: impl Fn(&str) -> String) -> Vec<Cell> {
    let outcome = |word: &str| {
        let count = waits.outcomes.get(word);
        Cell::count(count, outcome_tone(word)).finding_any(count, term(&terms::is("queue.outcome", word)))
    };
    vec![
        Cell::count(waits.count, Tone::Plain),
        Cell::count(waits.deferred, Tone::Queue).finding_any(waits.deferred, term("queue.deferred:true")),
        outcome("rejected"),
        outcome("cancelled"),
        time(&waits.waits, 0.5),
        time(&waits.waits, 0.99),
        waits.depth_in.max().map_or(Cell::label("–"), |depth| Cell::count(depth, Tone::Plain)),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_seen_of_no_pool_holds_until_a_pool_is_seen() {
        let of = |pool, depth, time_ns| (pool, Reading { depth, time_ns });
        let known = of(Phase::Prefill, 0, 20);
        let deepest = |all: &[(Phase, Reading)]| deepest(all.iter().copied());
        assert_eq!(deepest(&[of(Phase::Unknown, 13, 5), known, of(Phase::Decode, 2, 10)]), Some((2, Phase::Decode)));
        assert_eq!(deepest(&[of(Phase::Unknown, 13, 21), known]), Some((13, Phase::Unknown)));
        assert_eq!(deepest(&[of(Phase::Unknown, 13, 5)]), Some((13, Phase::Unknown)));
        assert_eq!(deepest(&[]), None);
    }
}
