//! The queue's depth over time, by pool, in ticks of three lengths so that any stretch of time is read in few of them.
//!
//! Where queue spans exist, each tells what it saw on entering and leaving ([`Depths`]). Where they do not, the waits that
//! overlap are counted (`overlap`).

use std::collections::BTreeMap;

use super::{Sign, Tally};
use crate::lifecycle::facts::Queue;
use crate::lifecycle::stage::Phase;

/// The shortest tick, nanoseconds.
pub const TICK_NS: u64 = 100_000_000;

/// How many ticks of one length make one of the next.
pub(super) const STEP: u64 = 64;

/// Lengths of ticks, nanoseconds: 0.1 s, 6.4 s, 6.8 minutes.
pub(super) const LEVELS: [u64; 3] = [TICK_NS, TICK_NS * STEP, TICK_NS * STEP * STEP];

/// The level whose ticks are as long as possible and still no longer than a bucket.
fn level(bucket_ns: u64) -> usize {
    LEVELS.iter().rposition(|tick| *tick <= bucket_ns).unwrap_or(0)
}

/// The buckets of a stretch of time: where each begins; the last entry is its end.
pub(super) fn edges(from_ns: u64, to_ns: u64, buckets: usize) -> impl Iterator<Item = (u64, u64)> {
    let edge = move |at: usize| {
        let span = u128::from(to_ns.saturating_sub(from_ns));
        from_ns + u64::try_from(span * at as u128 / buckets.max(1) as u128).unwrap_or(0)
    };
    (0..buckets).map(move |at| (edge(at), edge(at + 1)))
}

/// A depth, and the moment it is of: when it was seen, or the end of the bucket that it was seen in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Reading {
    /// How many waited.
    pub depth: u64,
    /// Nanoseconds since the epoch.
    pub time_ns: u64,
}

/// Depths as queue spans saw them.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Depths {
    pools: BTreeMap<Phase, Seen>,
}

#[derive(Clone, Debug, Default, PartialEq)]
struct Seen {
    /// Moments and the depths then; of one moment, those on entering first.
    moments: Tally<(u64, Side, u64)>,
    /// For each level, the depths seen in each tick.
    ticks: [BTreeMap<u64, Tally<u64>>; LEVELS.len()],
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Side {
    In,
    Out,
}

impl Seen {
    /// The greatest depth in `from..to`, in shortest ticks, of ticks as long as fit, of this level at most.
    fn most(&self, level: usize, from: u64, to: u64) -> Option<u64> {
        let within = |from, to| {
            self.ticks[level].range(from..to).filter_map(|(_, tick): (_, &Tally<u64>)| tick.last().copied()).max()
        };
        let Some(shorter) = level.checked_sub(1) else { return within(from, to) };
        let long = LEVELS[level] / TICK_NS;
        let (first, end) = (from.div_ceil(long), to / long);
        if first >= end {
            return self.most(shorter, from, to);
        }
        let edges = self.most(shorter, from, first * long).max(self.most(shorter, end * long, to));
        within(first, end).max(edges)
    }
}

impl Depths {
    pub(super) fn apply(&mut self, pool: Phase, queue: &Queue, sign: Sign) {
        let left_ns = queue.start_ns.saturating_add(queue.wait_ns);
        for (time_ns, side, depth) in
            [(queue.start_ns, Side::In, queue.entered_at()), (left_ns, Side::Out, queue.depth_out)]
        {
            let Some(depth) = depth else { continue };
            let seen = self.pools.entry(pool).or_default();
            seen.moments.step((time_ns, side, depth), sign);
            for (tick_ns, ticks) in LEVELS.iter().zip(&mut seen.ticks) {
                let tick = ticks.entry(time_ns / tick_ns).or_default();
                tick.step(depth, sign);
                if tick.is_empty() {
                    ticks.remove(&(time_ns / tick_ns));
                }
            }
            if seen.moments.is_empty() {
                self.pools.remove(&pool);
            }
        }
    }

    /// Pools that have depths.
    pub fn pools(&self) -> impl Iterator<Item = Phase> + '_ {
        self.pools.keys().copied()
    }

    /// The newest depth of a pool, and when it was seen.
    pub fn now(&self, pool: Phase) -> Option<Reading> {
        let (time_ns, _, depth) = *self.pools.get(&pool)?.moments.last()?;
        Some(Reading { depth, time_ns })
    }

    /// The first and last moment of all pools.
    pub fn extent(&self) -> Option<(u64, u64)> {
        let first = self.pools.values().filter_map(|seen| Some(seen.moments.first()?.0)).min()?;
        let last = self.pools.values().filter_map(|seen| Some(seen.moments.last()?.0)).max()?;
        Some((first, last))
    }

    /// The greatest depth of a pool in each of so many buckets of equal length; where nothing was seen in a bucket, the
    /// depth seen last before, with that moment. `None` before the first. Reads at most three times [`STEP`] ticks a bucket.
    pub fn series(&self, pool: Phase, from_ns: u64, to_ns: u64, buckets: usize) -> Vec<Option<Reading>> {
        let Some(seen) = self.pools.get(&pool) else { return vec![None; buckets] };
        let level = level(to_ns.saturating_sub(from_ns) / buckets.max(1) as u64);
        edges(from_ns, to_ns, buckets)
            .map(|(from, to)| {
                // A tick belongs to the bucket in which it begins; the first one also to where the stretch begins.
                let first = if from == from_ns { from / TICK_NS } else { from.div_ceil(TICK_NS) };
                let most = seen.most(level, first, to.div_ceil(TICK_NS).max(first));
                let before = || seen.moments.before(&(to, Side::In, 0));
                let before = || before().map(|(time_ns, _, depth)| Reading { depth: *depth, time_ns: *time_ns });
                most.map(|depth| Reading { depth, time_ns: to }).or_else(before)
            })
            .collect()
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::lifecycle::ids::SpanId;
    use crate::lifecycle::stage::Origin;

    pub(in super::super) fn wait(start_ns: u64, wait_ns: u64, depth: Option<(u64, u64)>) -> Queue {
        Queue {
            span: SpanId([1; 8]),
            start_ns,
            wait_ns,
            class: "".into(),
            policy: "".into(),
            depth_in: depth.map(|depth| depth.0),
            depth_out: depth.map(|depth| depth.1),
            deferred: None,
            outcome: "".into(),
            reason: "".into(),
            origin: Origin::Span,
        }
    }

    #[test]
    fn depths_are_the_greatest_of_a_bucket_and_hold_until_the_next_is_seen() {
        let s = 1_000_000_000;
        let mut depths = Depths::default();
        depths.apply(Phase::Prefill, &wait(10 * s, s / 2, Some((3, 9))), Sign::Add);
        depths.apply(Phase::Prefill, &wait(14 * s, 0, Some((1, 0))), Sign::Add);
        let series = depths.series(Phase::Prefill, 9 * s, 16 * s, 7);
        let depths_of = series.iter().map(|one| one.map(|one| one.depth));
        assert!(depths_of.eq([None, Some(9), Some(9), Some(9), Some(9), Some(1), Some(0)]), "{series:?}");
        // What holds on says since when.
        assert_eq!(
            series[1].zip(series[2]).map(|(seen, held)| (seen.time_ns, held.time_ns)),
            Some((11 * s, 21 * s / 2))
        );
        let now = Some(Reading { depth: 0, time_ns: 14 * s });
        assert_eq!((depths.now(Phase::Prefill), depths.extent()), (now, Some((10 * s, 14 * s))));
        depths.apply(Phase::Prefill, &wait(10 * s, s / 2, Some((3, 9))), Sign::Remove);
        depths.apply(Phase::Prefill, &wait(14 * s, 0, Some((1, 0))), Sign::Remove);
        assert_eq!(depths, Depths::default());
    }

    /// Alone in the queue one waits behind nobody, and is waited for by whoever comes.
    #[test]
    fn who_is_deferred_waits_too() {
        let s = 1_000_000_000;
        let of = |deferred: bool| {
            let mut depths = Depths::default();
            let queue = Queue { deferred: Some(deferred), ..wait(10 * s, 8 * s, Some((0, 0))) };
            depths.apply(Phase::Prefill, &queue, Sign::Add);
            let series = depths.series(Phase::Prefill, 9 * s, 20 * s, 11);
            series.iter().map(|one| one.map_or(0, |one| one.depth)).collect::<Vec<_>>()
        };
        assert_eq!(of(true), [0, 1, 1, 1, 1, 1, 1, 1, 1, 0, 0]);
        assert_eq!(of(false), [0; 11]);
    }

    /// However long the buckets are: what was seen after one ended is not in it.
    #[test]
    fn a_depth_stands_in_the_bucket_in_which_it_was_seen() {
        let mut rng = fastrand::Rng::with_seed(7);
        for width in [1, 60, 64, 100, 700, 4_095, 4_096, 5_000, 20_000].map(|ticks| ticks * TICK_NS) {
            let (from, buckets) = (rng.u64(1..1_000_000) * TICK_NS, 12);
            let to = from + width * buckets;
            let mut depths = Depths::default();
            let mut most = vec![None; buckets as usize];
            for _ in 0..9 {
                let (at, depth) = (rng.u64(from..to), rng.u64(1..100));
                depths.apply(Phase::Prefill, &wait(at, 0, Some((depth, 0))), Sign::Add);
                let bucket = &mut most[((at - from) / width) as usize];
                *bucket = Some(depth).max(*bucket);
            }
            let series = depths.series(Phase::Prefill, from, to, buckets as usize);
            for (bucket, seen) in most.into_iter().zip(series) {
                // What holds on from before is 0.
                assert_eq!(bucket.unwrap_or(0), seen.map_or(0, |seen| seen.depth), "{width}");
            }
        }
    }
}
