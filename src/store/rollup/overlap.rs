//! How many waited at each moment, where nobody says so: the waits that overlap it are counted, by pool. A lower bound, for
//! who still waits has no span yet.
//!
//! Owns: the greatest number that waited at once within any stretch of time, read in few steps however long the stretch is.
//! Keeps out: depths as queue spans saw them (`depth`).

use std::collections::BTreeMap;

use super::Sign;
use super::depth::{LEVELS, STEP, TICK_NS, edges};
use crate::lifecycle::facts::Queue;
use crate::lifecycle::stage::Phase;

/// Moments are told apart by as much, nanoseconds: who waited for less may not be counted.
const GRAIN_NS: u64 = 10_000;

/// Moments of the shortest tick.
const GRAINS: u64 = TICK_NS / GRAIN_NS;

/// Waits that overlap.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Overlaps {
    pools: BTreeMap<Phase, Line>,
}

/// The count of one pool as it changes.
#[derive(Clone, Debug, Default, PartialEq)]
struct Line {
    /// What changes in each of the shortest ticks.
    ticks: BTreeMap<u64, Changes>,
    /// What that comes to in each of the longer ones.
    longer: [BTreeMap<u64, Stretch>; LEVELS.len() - 1],
}

/// Moments of a tick at which the count changes, by how much; in order.
#[derive(Clone, Debug, Default, PartialEq)]
struct Changes {
    moments: Vec<(u16, i32)>,
    whole: Stretch,
}

/// How the count goes over some time, from where it was before.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Stretch {
    /// How much higher it is at the end.
    sum: i64,
    /// How much higher it is at its highest.
    most: i64,
}

impl Stretch {
    /// Of pieces in order, each with where it begins; before the first of them nothing changes. `None` without any.
    fn of(begin: u64, pieces: impl Iterator<Item = (u64, Self)>) -> Option<Self> {
        pieces.fold(None, |before: Option<Self>, (at, next)| match before {
            Some(before) => Some(before.then(next)),
            None if at > begin => Some(Self::default().then(next)),
            None => Some(next),
        })
    }

    fn then(self, next: Self) -> Self {
        Self { sum: self.sum + next.sum, most: self.most.max(self.sum + next.most) }
    }
}

impl Changes {
    fn step(&mut self, moment: u16, by: i32) {
        match self.moments.binary_search_by_key(&moment, |(at, _)| *at) {
            Ok(place) => {
                self.moments[place].1 += by;
                if self.moments[place].1 == 0 {
                    self.moments.remove(place);
                }
            }
            Err(place) => self.moments.insert(place, (moment, by)),
        }
        let alone = |by: i32| Stretch { sum: by.into(), most: by.into() };
        let pieces = self.moments.iter().map(|(at, by)| (u64::from(*at), alone(*by)));
        self.whole = Stretch::of(0, pieces).unwrap_or_default();
    }
}

impl Line {
    /// Somebody more or less waits from one moment to another. A longer tick is summed up anew only where a shorter one in it
    /// came to something else: most waits are over within one, and are not the ones that make its highest.
    fn wait(&mut self, from: u64, to: u64, by: i32) {
        let mut changed = [self.step(from, by), self.step(to, -by)];
        for level in 0..self.longer.len() {
            changed = changed.map(|tick| tick.map(|tick| tick / STEP));
            if changed[0] == changed[1] {
                changed[1] = None;
            }
            changed = changed.map(|tick| tick.filter(|tick| self.sum_up(level, *tick)));
            if changed == [None, None] {
                return;
            }
        }
    }

    /// The count changes at a moment; the tick that it is in, if that comes to something else now.
    fn step(&mut self, moment: u64, by: i32) -> Option<u64> {
        let tick = moment / GRAINS;
        let changes = self.ticks.entry(tick).or_default();
        let before = changes.whole;
        changes.step((moment % GRAINS) as u16, by);
        let same = changes.whole == before && !changes.moments.is_empty();
        if changes.moments.is_empty() {
            self.ticks.remove(&tick);
        }
        (!same).then_some(tick)
    }

    /// Sums up one of the longer ticks; whether it comes to something else now.
    fn sum_up(&mut self, level: usize, tick: u64) -> bool {
        let begin = tick * STEP;
        let within = begin..begin.saturating_add(STEP);
        let whole = match level.checked_sub(1) {
            None => Stretch::of(begin, self.ticks.range(within).map(|(at, changes)| (*at, changes.whole))),
            Some(shorter) => Stretch::of(begin, self.longer[shorter].range(within).map(|(at, part)| (*at, *part))),
        };
        let before = match whole {
            Some(whole) => self.longer[level].insert(tick, whole),
            None => self.longer[level].remove(&tick),
        };
        whole != before
    }

    /// Shows every piece of `from..to`, in shortest ticks, in order: as long ones as fit, of this level at most.
    fn pieces(&self, level: usize, from: u64, to: u64, see: &mut dyn FnMut((u64, Stretch))) {
        let Some(shorter) = level.checked_sub(1) else {
            return self.ticks.range(from..to.max(from)).for_each(|(at, changes)| see((*at, changes.whole)));
        };
        let long = LEVELS[level] / TICK_NS;
        let (first, end) = (from.div_ceil(long), to / long);
        if first >= end {
            return self.pieces(shorter, from, to, see);
        }
        self.pieces(shorter, from, first * long, see);
        self.longer[shorter].range(first..end).for_each(|(at, whole)| see((at * long, *whole)));
        self.pieces(shorter, end * long, to, see);
    }

    /// How the count goes over `from..to`, in shortest ticks.
    fn stretch(&self, from: u64, to: u64) -> Stretch {
        let mut whole = None;
        self.pieces(self.longer.len(), from, to, &mut |piece| {
            let before = whole.map(|before| (from, before));
            whole = Stretch::of(from, before.into_iter().chain([piece]));
        });
        whole.unwrap_or_default()
    }

    /// The first and last moment at which it changes, nanoseconds.
    fn extent(&self) -> Option<(u64, u64)> {
        let ((first, begin), (last, end)) = (self.ticks.first_key_value()?, self.ticks.last_key_value()?);
        let time = |tick: u64, moment: u16| (tick * TICK_NS).saturating_add(u64::from(moment) * GRAIN_NS);
        Some((time(*first, begin.moments.first()?.0), time(*last, end.moments.last()?.0)))
    }
}

impl Overlaps {
    pub(super) fn apply(&mut self, pool: Phase, queue: &Queue, sign: Sign) {
        // A wait is there at the moments within it.
        let from = queue.start_ns.div_ceil(GRAIN_NS);
        let to = queue.start_ns.saturating_add(queue.wait_ns).div_ceil(GRAIN_NS);
        if from < to {
            let one = if sign == Sign::Add { 1 } else { -1 };
            let line = self.pools.entry(pool).or_default();
            line.wait(from, to, one);
            if line.ticks.is_empty() {
                self.pools.remove(&pool);
            }
        }
    }

    /// Pools in which anybody waited long enough to be counted.
    pub fn pools(&self) -> impl Iterator<Item = Phase> + '_ {
        self.pools.keys().copied()
    }

    /// The first and last moment of all pools at which the count changes.
    pub fn extent(&self) -> Option<(u64, u64)> {
        let ends = self.pools.values().filter_map(Line::extent);
        ends.reduce(|(first, last), (other_first, other_last)| (first.min(other_first), last.max(other_last)))
    }

    /// How many of a pool wait at a moment.
    pub fn at(&self, pool: Phase, time_ns: u64) -> u64 {
        let Some(line) = self.pools.get(&pool) else { return 0 };
        let moment = time_ns / GRAIN_NS;
        let tick = moment / GRAINS;
        let within = line.ticks.get(&tick).into_iter().flat_map(|changes| &changes.moments);
        let until = within.take_while(|(at, _)| u64::from(*at) <= moment % GRAINS).map(|(_, by)| i64::from(*by));
        u64::try_from(line.stretch(0, tick).sum + until.sum::<i64>()).unwrap_or(0)
    }

    /// The greatest number of a pool that waited at once in each of so many buckets of equal length, whole ticks. Reads few
    /// more entries than a bucket has ticks, and few of a long one, however many waits there were.
    pub fn series(&self, pool: Phase, from_ns: u64, to_ns: u64, buckets: usize) -> Vec<u64> {
        let Some(line) = self.pools.get(&pool) else { return vec![0; buckets] };
        let mut count = line.stretch(0, from_ns / TICK_NS).sum;
        let most = |(from, to): (u64, u64)| {
            let stretch = line.stretch(from / TICK_NS, to / TICK_NS);
            let most = count + stretch.most;
            count += stretch.sum;
            u64::try_from(most).unwrap_or(0)
        };
        edges(from_ns, to_ns, buckets).map(most).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::super::depth::tests::wait;
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn the_most_that_wait_at_once_are_counted_as_by_hand(
            waits in proptest::collection::vec((0u64..200_000, 0u64..9_000), 1..40),
            from in 0u64..100, (width, buckets) in prop_oneof![(1u64..9, 1u64..50), (60u64..200, 1u64..9)],
            at in 0u64..200_000, far in prop_oneof![Just(0u64), Just(STEP * STEP - 50), Just(17_000_000_000)],
        ) {
            // Times are whole milliseconds, so that nothing changes between those that are looked at.
            let ms = 1_000_000;
            let far = far * TICK_NS;
            let mut overlaps = Overlaps::default();
            for (start, length) in &waits {
                overlaps.apply(Phase::Decode, &wait(far + start * ms, length * ms, None), Sign::Add);
            }
            let waiting = |at: u64| waits.iter().filter(|(start, length)| (*start..start + length).contains(&at)).count();
            let bucket = |at: u64| (from + at * width) * TICK_NS / ms..(from + (at + 1) * width) * TICK_NS / ms;
            let series =
                overlaps.series(Phase::Decode, far + bucket(0).start * ms, far + bucket(buckets).start * ms, buckets as usize);
            for (count, bucket) in series.iter().zip((0..buckets).map(bucket)) {
                let changes = waits.iter().flat_map(|(start, length)| [*start, start + length]);
                let within = changes.filter(|at| bucket.contains(at)).chain([bucket.start]);
                prop_assert_eq!(*count, within.map(waiting).max().unwrap_or(0) as u64);
            }
            prop_assert_eq!(overlaps.at(Phase::Decode, far + at * ms), waiting(at) as u64);
            for (start, length) in &waits {
                overlaps.apply(Phase::Decode, &wait(far + start * ms, length * ms, None), Sign::Remove);
            }
            prop_assert_eq!(overlaps, Overlaps::default());
        }
    }

    #[test]
    fn a_burst_within_a_bucket_is_seen_however_wide_the_bucket_is() {
        let mut overlaps = Overlaps::default();
        let (ms, hour) = (1_000_000, 3_600_000_000_000);
        for at in 0..8 {
            overlaps.apply(Phase::Decode, &wait(hour + 7 + at * ms, 20 * ms, None), Sign::Add);
        }
        for buckets in [1, 3, 7, 2 * 3600 * 10] {
            assert_eq!(overlaps.series(Phase::Decode, 0, 2 * hour, buckets).iter().max(), Some(&8));
        }
        assert_eq!(overlaps.at(Phase::Decode, hour + 15 * ms), 8);
        assert_eq!(overlaps.at(Phase::Decode, hour + 60 * ms), 0);
        // Who leaves where a bucket begins does not wait in it.
        let mut overlaps = Overlaps::default();
        overlaps.apply(Phase::Decode, &wait(TICK_NS / 2, TICK_NS / 2, None), Sign::Add);
        assert_eq!(overlaps.series(Phase::Decode, 0, 3 * TICK_NS, 3), [1, 0, 0]);
        assert_eq!(overlaps.extent(), Some((TICK_NS / 2, TICK_NS)));
    }
}
