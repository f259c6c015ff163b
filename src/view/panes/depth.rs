//! The queue's depth over time: as queue spans saw it, or counted from waits that overlap, whichever is the greater. Behind a
//! filter a depth is known only when one who passes saw it: others came and went.
//!
//! Owns: which moments there are bars for, and what a bar, the present and the peak say. Keeps out: counting
//! (`store::rollup`), what else the queue's pane shows (`queue`).

use std::collections::BTreeSet;

use super::{Bar, Block, Over, PlotKind, Room, terms};
use crate::lifecycle::stage::Phase;
use crate::store::rollup::{Reading, Rollup, TICK_NS};
use crate::view::data::Seen;
use crate::view::{Tone, format};

/// What ended so shortly before the moment that is shown is drawn up to it, nanoseconds.
const RECENT_NS: u64 = 5_000_000_000;

/// Ticks shown at least.
const LEAST_TICKS: u64 = 10;

/// Depth over time.
pub(super) struct Depth {
    bars: Vec<Bar>,
    over: Over,
    below: Vec<String>,
    now: Option<Level>,
    peak: Option<Level>,
    /// The pools that have a depth.
    pub pools: Vec<Phase>,
}

/// How many wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Level {
    depth: u64,
    pool: Phase,
    /// Whether it is counted from waits that overlap.
    inferred: bool,
}

impl Level {
    /// The greater one; as queue spans saw it when they are equal.
    fn greater(recorded: Option<Self>, inferred: Option<Self>) -> Option<Self> {
        inferred.into_iter().chain(recorded).max_by_key(|level| level.depth)
    }

    /// The greatest of pools.
    fn inferred(counts: impl Iterator<Item = (Phase, u64)>) -> Option<Self> {
        counts.map(|(pool, depth)| Self { depth, pool, inferred: true }).max_by_key(|level| (level.depth, level.pool))
    }

    fn text(level: Option<Self>) -> String {
        let mark = if level.is_some_and(|level| level.inferred) { "~" } else { "" };
        level.map_or("–".into(), |level| format!("{mark}{}", format::count(level.depth)))
    }
}

/// The greatest of these depths, one of each pool. What was seen by who left before a choice names no pool: it is of one of
/// the others, and holds until that one is seen again.
fn deepest(readings: impl Iterator<Item = (Phase, Reading)> + Clone) -> Option<Level> {
    let known = readings.clone().filter(|(pool, _)| *pool != Phase::Unknown);
    let newest = known.map(|(_, reading)| reading.time_ns).max();
    let holds =
        |pool: Phase, reading: Reading| pool != Phase::Unknown || newest.is_none_or(|newest| reading.time_ns >= newest);
    let levels = readings.filter(|(pool, reading)| holds(*pool, *reading)).map(|(pool, reading)| (reading.depth, pool));
    levels.max().map(|(depth, pool)| Level { depth, pool, inferred: false })
}

/// Buckets of equal length, whole ticks, so that they do not tremble while time goes on.
struct Buckets {
    start_ns: u64,
    width_ns: u64,
    count: usize,
}

impl Buckets {
    /// So many at most, and one more where the ends do not fall together with theirs: both ends are within.
    fn over(from_ns: u64, to_ns: u64, most: u64) -> Self {
        let ticks = (to_ns.saturating_sub(from_ns).div_ceil(TICK_NS)).max(LEAST_TICKS);
        let width = ticks.div_ceil(most) * TICK_NS;
        let end = to_ns / width + 1;
        let count = (end - (from_ns / width).min(end)).max((LEAST_TICKS * TICK_NS).div_ceil(width)).min(end);
        Self { start_ns: (end - count) * width, width_ns: width, count: usize::try_from(count).unwrap_or(0) }
    }

    fn end_ns(&self) -> u64 {
        self.start_ns.saturating_add(self.width_ns.saturating_mul(self.count as u64))
    }
}

impl Depth {
    /// Of one pool, or at each moment of the deepest.
    pub fn of(seen: &Seen<'_>, room: Room, pool: Option<Phase>) -> Self {
        let Rollup { depths, overlaps, requests, .. } = &*seen.rollup;
        let ends = depths.extent().into_iter().chain(overlaps.extent());
        let ends = ends.reduce(|(first, last), (from, to)| (first.min(from), last.max(to)));
        let (first, last) = ends.unwrap_or((seen.until_ns, seen.until_ns));
        let last = if seen.until_ns.saturating_sub(last) < RECENT_NS { last.max(seen.until_ns) } else { last };
        let (from, to) = match seen.window_ns {
            Some(window_ns) => (seen.until_ns.saturating_sub(window_ns), seen.until_ns),
            None => (first, last),
        };
        let columns = room.column().saturating_sub(8).max(4);
        let buckets = Buckets::over(from, to, 2 * u64::from(columns));
        let (start, end) = (buckets.start_ns, buckets.end_ns());
        let is_shown = |each: &Phase| pool.is_none_or(|pool| pool == *each);
        let series = |pool| (pool, depths.series(pool, start, end, buckets.count));
        let recorded: Vec<_> = depths.pools().filter(is_shown).map(series).collect();
        let series = |pool| (pool, overlaps.series(pool, start, end, buckets.count));
        let inferred: Vec<_> = overlaps.pools().filter(is_shown).map(series).collect();
        let levels = (0..buckets.count).map(|at| {
            let holds = |reading: &Reading| !seen.filtered || reading.time_ns >= start + at as u64 * buckets.width_ns;
            let known = |depths: &[Option<Reading>]| depths[at].filter(holds);
            let seen = deepest(recorded.iter().filter_map(|(pool, depths)| Some((*pool, known(depths)?))));
            Level::greater(seen, Level::inferred(inferred.iter().map(|(pool, counts)| (*pool, counts[at]))))
        });
        let levels: Vec<Option<Level>> = levels.collect();
        let over = Over { pool, start_ns: start, width_ns: buckets.width_ns };
        let bar = |(at, level): (usize, &Option<Level>)| Bar {
            value: level.map(|level| level.depth),
            label: format::clock(over.time(at)),
            tone: match level {
                Some(level) if level.pool != Phase::Unknown => Tone::of_phase(level.pool),
                _ => Tone::Queue,
            },
            term: level.filter(|level| level.depth > 0).map(|_| waiting(pool, over.time(at), over.time(at + 1))),
        };
        let bars = levels.iter().enumerate().map(bar).collect();
        let seen_last = recorded.iter().filter(|_| !seen.filtered);
        let seen_last = seen_last.filter_map(|(pool, _)| Some((*pool, depths.now(*pool)?)));
        let counted = Level::inferred(inferred.iter().map(|(pool, _)| (*pool, overlaps.at(*pool, seen.until_ns))));
        // That nobody waits is known when nobody is left: who waits has no span yet.
        let counted = counted.filter(|level| level.depth > 0 || requests.in_flight == 0);
        let ago = |ns: u64| format!("−{}", format::duration(ns));
        let is_now = seen.is_now && (start..end).contains(&seen.until_ns);
        let span = to.saturating_sub(from).max(LEAST_TICKS * TICK_NS);
        let below = vec![ago(span), ago(span / 2), if is_now { "now".to_owned() } else { format::clock(to) }];
        let pools: BTreeSet<Phase> = depths.pools().chain(overlaps.pools()).collect();
        Self {
            bars,
            over,
            below,
            now: Level::greater(deepest(seen_last), counted),
            peak: levels.into_iter().flatten().reduce(|most, next| if next.depth > most.depth { next } else { most }),
            pools: pools.into_iter().collect(),
        }
    }

    /// `depth 3 · peak ~24`.
    pub fn summary(&self) -> String {
        format!("depth {} · peak {}", Level::text(self.now), Level::text(self.peak))
    }

    pub fn block(&self, rank: u8) -> Block {
        let unit = if self.peak.is_some_and(|peak| peak.inferred) { "waiting ~" } else { "waiting" };
        Block::plot(rank, PlotKind::Area, unit, self.bars.clone(), self.below.clone()).over(self.over)
    }
}

/// Who waited at any time within a stretch. Buckets are whole milliseconds.
pub(super) fn waiting(pool: Option<Phase>, from_ns: u64, to_ns: u64) -> String {
    let phase = pool.map_or(String::new(), |pool| terms::is("phase", pool.word()));
    let (entered, left) =
        (format!("queue.entered<{}", to_ns / 1_000_000), format!("queue.left>{}", from_ns / 1_000_000));
    terms::leg(&[&phase, &entered, &left])
}

#[cfg(test)]
mod tests {
    use std::borrow::Cow;

    use super::*;
    use crate::lifecycle::facts::{Facts, Leg, Queue, State};
    use crate::lifecycle::ids::SpanId;
    use crate::lifecycle::stage::Origin;
    use crate::query::{OnDemand, Query};
    use crate::view::fixture::NOW;

    const MS: u64 = 1_000_000;
    const ROOM: Room = Room { columns: 146, rows: 35, zoomed: true };

    /// A request that waited from so long before now on, milliseconds.
    fn waited(before_ms: u64, wait_ms: u64, depths: Option<(u64, u64)>) -> Facts {
        let queue = Queue {
            span: SpanId([1; 8]),
            start_ns: NOW - before_ms * MS,
            wait_ns: wait_ms * MS,
            class: "".into(),
            policy: "".into(),
            depth_in: depths.map(|depths| depths.0),
            depth_out: depths.map(|depths| depths.1),
            deferred: None,
            outcome: "".into(),
            reason: "".into(),
            origin: if depths.is_some() { Origin::Span } else { Origin::Inferred },
        };
        let leg = Leg { phase: Phase::Decode, queue: Some(queue), ..Leg::default() };
        Facts { state: State::Ended, legs: vec![leg], ..Facts::default() }
    }

    /// Eight at once for 20 ms, one after the other in and out.
    fn burst(before_ms: u64) -> Vec<Facts> {
        (0..8).map(|at| waited(before_ms - at, 27 - at, None)).collect()
    }

    fn depth(all: &[Facts], window_s: Option<u64>) -> Depth {
        depth_of(all, window_s, false)
    }

    fn depth_of(all: &[Facts], window_s: Option<u64>, filtered: bool) -> Depth {
        let mut rollup = Rollup::default();
        all.iter().for_each(|facts| rollup.add(facts));
        let (rollup, window_ns) = (Cow::Owned(rollup), window_s.map(|length| length * 1000 * MS));
        let seen = Seen {
            rollup,
            window_ns,
            until_ns: NOW,
            now_ns: NOW,
            is_now: true,
            whole: true,
            filtered,
            newest: Box::new(std::iter::empty()),
        };
        Depth::of(&seen, ROOM, None)
    }

    #[test]
    fn what_was_seen_of_no_pool_holds_until_a_pool_is_seen() {
        let of = |pool, depth, time_ns| (pool, Reading { depth, time_ns });
        let known = of(Phase::Prefill, 0, 20);
        let deepest = |all: &[(Phase, Reading)]| deepest(all.iter().copied()).map(|level| (level.depth, level.pool));
        assert_eq!(deepest(&[of(Phase::Unknown, 13, 5), known, of(Phase::Decode, 2, 10)]), Some((2, Phase::Decode)));
        assert_eq!(deepest(&[of(Phase::Unknown, 13, 21), known]), Some((13, Phase::Unknown)));
        assert_eq!(deepest(&[of(Phase::Unknown, 13, 5)]), Some((13, Phase::Unknown)));
        assert_eq!(deepest(&[]), None);
    }

    #[test]
    fn the_peak_is_the_same_in_every_window_and_nobody_waits_when_the_last_has_left() {
        let mut all = burst(620);
        for window in [None, Some(10), Some(60), Some(300)] {
            let depth = depth(&all, window);
            assert_eq!(depth.summary(), "depth ~0 · peak ~8", "{window:?}");
            // The plot goes on to where nobody waits, where its bars are narrow enough to tell.
            let last = depth.bars.last().unwrap().value;
            assert_eq!(depth.below[2], "now", "{window:?}");
            assert!(last == Some(0) || window > Some(10), "{last:?} {window:?}");
        }
        all.extend(burst(3_600_000));
        assert_eq!(depth(&all, None).summary(), "depth ~0 · peak ~8");
        // What ended long ago is not shown as if it were now.
        let long_ago = depth(&burst(60_000), None);
        assert_ne!(long_ago.below[2], "now");
        assert_eq!(long_ago.bars.iter().filter(|bar| bar.value > Some(0)).count(), 1);
    }

    #[test]
    fn while_requests_are_in_flight_nobody_knows_who_waits_but_the_queues_own_spans() {
        let mut all = burst(2_000);
        all.push(Facts { state: State::InFlight, ..Facts::default() });
        assert_eq!(depth(&all, None).summary(), "depth – · peak ~8");
        all.push(waited(2_000, 10, Some((3, 2))));
        assert_eq!(depth(&all, None).summary(), "depth 2 · peak ~8");
        all.push(waited(1_000, 10, Some((12, 11))));
        assert_eq!(depth(&all, None).summary(), "depth 11 · peak 12");
    }

    /// One who waited long ago does not tell how many wait now: others, who do not pass, may tell of that.
    #[test]
    fn behind_a_filter_a_depth_is_known_only_when_it_was_seen() {
        let one = [waited(4_900, 300, Some((15, 14)))];
        assert_eq!(depth(&one, None).summary(), "depth 14 · peak 15");
        let filtered = depth_of(&one, None, true);
        assert_eq!(filtered.summary(), "depth – · peak 15");
        let values: Vec<_> = filtered.bars.iter().filter_map(|bar| bar.value).collect();
        assert_eq!(values, [15, 14], "a bar where it entered and where it left");
    }

    #[test]
    fn the_first_and_the_last_depth_seen_have_a_bar() {
        for before_ms in 2_990..3_100 {
            let all = [waited(before_ms, 0, Some((1, 0))), waited(300, 0, Some((0, 0)))];
            assert_eq!(depth(&all, None).summary(), "depth 0 · peak 1", "{before_ms} ms ago");
        }
        assert_eq!(depth(&[waited(0, 0, Some((5, 5)))], None).bars.last().unwrap().value, Some(5));
    }

    #[test]
    fn a_bar_finds_who_waited_in_it() {
        let all = [burst(620), vec![waited(900, 600, None), waited(5_000, 1, None)]].concat();
        let depth = depth(&all, None);
        let mut shown = 0;
        for bar in &depth.bars {
            let Some(term) = &bar.term else { continue };
            let query = Query::parse(term).unwrap();
            let found = all.iter().filter(|facts| query.matches(facts, &OnDemand::new(|| None))).count() as u64;
            assert!(Some(found) >= bar.value && found < 10, "{term} finds {found}, of {:?}", bar.value);
            shown += 1;
        }
        assert!(shown > 5);
    }
}
