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

impl Depths {
    pub(super) fn apply(&mut self, pool: Phase, queue: &Queue, sign: Sign) {
        let left_ns = queue.start_ns.saturating_add(queue.wait_ns);
        for (time_ns, side, depth) in
            [(queue.start_ns, Side::In, queue.depth_in), (left_ns, Side::Out, queue.depth_out)]
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
    /// depth seen last before, with that moment. `None` before the first. Reads at most [`STEP`] ticks a bucket.
    pub fn series(&self, pool: Phase, from_ns: u64, to_ns: u64, buckets: usize) -> Vec<Option<Reading>> {
        let Some(seen) = self.pools.get(&pool) else { return vec![None; buckets] };
        let level = level(to_ns.saturating_sub(from_ns) / buckets.max(1) as u64);
        let (tick_ns, ticks) = (LEVELS[level], &seen.ticks[level]);
        edges(from_ns, to_ns, buckets)
            .map(|(from, to)| {
                // A tick belongs to the bucket in which it begins; the first one also to where the stretch begins.
                let first = if from == from_ns { from / tick_ns } else { from.div_ceil(tick_ns) };
                let within = ticks.range(first..to.div_ceil(tick_ns).max(first));
                let most = within.filter_map(|(_, tick)| tick.last().copied()).max();
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
}
