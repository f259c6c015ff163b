//! An exact multiset of numbers: quantiles by nearest rank, adding and taking away, at the cost of its buckets.
//!
//! Numbers are grouped by their leading seven bits, so a quantile walks a few hundred bucket counts and then one bucket.
//! What is kept of a number is what the others of its bucket do not share with it: nothing below 128, four bytes below
//! 2³⁹ (nine minutes in nanoseconds), else eight; within a bucket there is no order, only what looks into one makes it. Not
//! for numbers that differ by less than a hundredth, as times of day do: they would share one bucket (`Tally` is for those).

use std::collections::BTreeMap;

/// A multiset of unsigned numbers.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Values {
    buckets: BTreeMap<u16, Bucket>,
    count: u64,
    sum: u128,
}

/// The numbers of a bucket less what they share, in no order.
#[derive(Clone, Debug)]
enum Bucket {
    /// All alike: how many.
    Same(u64),
    Short(Vec<u32>),
    Long(Vec<u64>),
}

/// How many bits the numbers of a bucket do not share.
fn own_bits(at: u16) -> u32 {
    u32::from(at >> 7).saturating_sub(7)
}

/// What the numbers of a bucket share: its least.
fn base(at: u16) -> u64 {
    u64::from(at & 127) << own_bits(at)
}

/// The bucket of a number: its bit length and the six bits after the first.
fn bucket(value: u64) -> u16 {
    let bits = 64 - value.leading_zeros();
    let below = bits.saturating_sub(7);
    ((bits as u16) << 7) | (value >> below) as u16
}

impl Bucket {
    fn new(at: u16) -> Self {
        match own_bits(at) {
            0 => Self::Same(0),
            1..=32 => Self::Short(Vec::new()),
            _ => Self::Long(Vec::new()),
        }
    }

    fn count(&self) -> u64 {
        match self {
            Self::Same(count) => *count,
            Self::Short(rests) => rests.len() as u64,
            Self::Long(rests) => rests.len() as u64,
        }
    }

    fn push(&mut self, rest: u64) {
        match self {
            Self::Same(count) => *count += 1,
            Self::Short(rests) => push(rests, rest as u32),
            Self::Long(rests) => push(rests, rest),
        }
    }

    /// Takes one out; says whether it was there.
    fn remove(&mut self, rest: u64) -> bool {
        match self {
            Self::Same(count) => {
                *count -= 1;
                true
            }
            Self::Short(rests) => remove(rests, rest as u32),
            Self::Long(rests) => remove(rests, rest),
        }
    }

    /// The least and the greatest.
    fn ends(&self) -> (u64, u64) {
        match self {
            Self::Same(_) => (0, 0),
            _ => self.rests().fold((u64::MAX, 0), |(least, most), rest| (least.min(rest), most.max(rest))),
        }
    }

    /// How many hold.
    fn count_if(&self, holds: impl Fn(u64) -> bool) -> u64 {
        match self {
            Self::Same(count) => {
                if holds(0) {
                    *count
                } else {
                    0
                }
            }
            _ => self.rests().filter(|rest| holds(*rest)).count() as u64,
        }
    }

    /// Each of them.
    fn rests(&self) -> impl Iterator<Item = u64> + '_ {
        let (same, short, long): (u64, &[u32], &[u64]) = match self {
            Self::Same(count) => (*count, &[], &[]),
            Self::Short(rests) => (0, rests, &[]),
            Self::Long(rests) => (0, &[], rests),
        };
        let short = short.iter().map(|rest| u64::from(*rest));
        std::iter::repeat_n(0, same as usize).chain(short).chain(long.iter().copied())
    }
}

/// Grows by a quarter: half of what doubling would leave unused is worth a few more copies.
fn push<T>(list: &mut Vec<T>, item: T) {
    if list.len() == list.capacity() {
        list.reserve_exact((list.len() / 4).max(4));
    }
    list.push(item);
}

fn remove<T: Copy + PartialEq>(list: &mut Vec<T>, item: T) -> bool {
    let Some(place) = find_last(list, item) else { return false };
    list.swap_remove(place);
    if list.capacity() > 2 * list.len() + 8 {
        list.shrink_to(list.len() + list.len() / 4);
    }
    true
}

/// Where an item stands last. What came last goes first as often as not: a request that changes is taken out and put in
/// again. Looks at many at once: a bucket may have a hundred thousand.
fn find_last<T: Copy + PartialEq>(list: &[T], item: T) -> Option<usize> {
    let mut end = list.len();
    for chunk in list.rchunks(64) {
        let start = end - chunk.len();
        if chunk.iter().fold(false, |found, other| found | (*other == item)) {
            return chunk.iter().rposition(|other| *other == item).map(|at| start + at);
        }
        end = start;
    }
    None
}

/// Equal when they hold the same numbers equally often.
impl PartialEq for Bucket {
    fn eq(&self, other: &Self) -> bool {
        let sorted = |bucket: &Self| {
            let mut rests: Vec<u64> = bucket.rests().collect();
            rests.sort_unstable();
            rests
        };
        self.count() == other.count() && sorted(self) == sorted(other)
    }
}

/// The number at a rank of one bucket's numbers, which several multisets may have, counted from 1 in ascending order.
fn at_rank<'a>(at: u16, buckets: impl Iterator<Item = &'a Bucket>, rank: u64) -> Option<u64> {
    if own_bits(at) == 0 {
        return Some(base(at));
    }
    let mut rests: Vec<u64> = buckets.flat_map(Bucket::rests).collect();
    let place = usize::try_from(rank.checked_sub(1)?).ok().filter(|place| *place < rests.len())?;
    Some(base(at) + *rests.select_nth_unstable(place).1)
}

impl Values {
    /// Adds one number.
    pub fn add(&mut self, value: u64) {
        let at = bucket(value);
        self.buckets.entry(at).or_insert_with(|| Bucket::new(at)).push(value - base(at));
        self.count += 1;
        self.sum += u128::from(value);
    }

    /// Takes one number away that was added before; anything else changes nothing.
    pub fn remove(&mut self, value: u64) {
        let at = bucket(value);
        let Some(bucket) = self.buckets.get_mut(&at) else { return };
        if !bucket.remove(value - base(at)) {
            return;
        }
        if bucket.count() == 0 {
            self.buckets.remove(&at);
        }
        self.count -= 1;
        self.sum -= u128::from(value);
    }

    /// Adds all numbers of another multiset.
    pub fn merge(&mut self, other: &Self) {
        for (at, bucket) in &other.buckets {
            let mine = self.buckets.entry(*at).or_insert_with(|| Bucket::new(*at));
            bucket.rests().for_each(|rest| mine.push(rest));
        }
        self.count += other.count;
        self.sum += other.sum;
    }

    /// How many numbers there are.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Their sum.
    pub fn sum(&self) -> u128 {
        self.sum
    }

    /// The quantile by nearest rank: value number `ceil(q·n)` of the ascending list, counted from 1. `None` when empty.
    pub fn quantile(&self, q: f64) -> Option<u64> {
        let mut rank = ((q * self.count as f64).ceil() as u64).clamp(1, self.count.max(1));
        for (at, bucket) in &self.buckets {
            if rank <= bucket.count() {
                return at_rank(*at, std::iter::once(bucket), rank);
            }
            rank -= bucket.count();
        }
        None
    }

    /// The least.
    pub fn min(&self) -> Option<u64> {
        let (at, bucket) = self.buckets.first_key_value()?;
        Some(base(*at) + bucket.ends().0)
    }

    /// The greatest.
    pub fn max(&self) -> Option<u64> {
        let (at, bucket) = self.buckets.last_key_value()?;
        Some(base(*at) + bucket.ends().1)
    }

    /// How many numbers lie in `from..to`.
    pub fn between(&self, from: u64, to: u64) -> u64 {
        if from >= to {
            return 0;
        }
        let (first, last) = (bucket(from), bucket(to - 1));
        self.buckets
            .range(first..=last)
            .map(|(at, bucket)| {
                if *at > first && *at < last {
                    bucket.count()
                } else {
                    bucket.count_if(|rest| (from..to).contains(&(base(*at) + rest)))
                }
            })
            .sum()
    }
}

/// Several multisets seen as one, without putting them together.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Together<'a>(Vec<&'a Values>);

impl<'a> Together<'a> {
    /// Adds one; empty ones are left out.
    pub fn join(&mut self, values: &'a Values) {
        if values.count > 0 {
            self.0.push(values);
        }
    }

    /// How many numbers there are.
    pub fn count(&self) -> u64 {
        self.0.iter().map(|values| values.count).sum()
    }

    /// Their sum.
    pub fn sum(&self) -> u128 {
        self.0.iter().map(|values| values.sum).sum()
    }

    /// The least.
    pub fn min(&self) -> Option<u64> {
        self.0.iter().filter_map(|values| values.min()).min()
    }

    /// The greatest.
    pub fn max(&self) -> Option<u64> {
        self.0.iter().filter_map(|values| values.max()).max()
    }

    /// How many numbers lie in `from..to`.
    pub fn between(&self, from: u64, to: u64) -> u64 {
        self.0.iter().map(|values| values.between(from, to)).sum()
    }

    /// The quantile by nearest rank.
    pub fn quantile(&self, q: f64) -> Option<u64> {
        if let [alone] = self.0[..] {
            return alone.quantile(q);
        }
        let count = self.count();
        let mut rank = ((q * count as f64).ceil() as u64).clamp(1, count.max(1));
        let mut counts: BTreeMap<u16, u64> = BTreeMap::new();
        for (at, bucket) in self.0.iter().flat_map(|values| &values.buckets) {
            *counts.entry(*at).or_default() += bucket.count();
        }
        for (at, count) in counts {
            if rank <= count {
                return at_rank(at, self.0.iter().filter_map(|values| values.buckets.get(&at)), rank);
            }
            rank -= count;
        }
        None
    }
}

/// A multiset of non-negative costs. The bits of such numbers order as they do.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Costs {
    bits: Values,
    /// Their sum in units of [`UNIT`]: whole numbers, so that taking away undoes adding to the last digit.
    sum: i128,
}

/// What a cost is summed in. Every cost from 2⁻¹¹ on is a whole number of them.
const UNIT: f64 = 1.0 / 18_446_744_073_709_551_616.0;

impl Costs {
    /// Adds one cost; a negative one counts as 0, what is not a number not at all.
    pub fn add(&mut self, cost: f64) {
        if let Some(bits) = Self::bits(cost) {
            self.bits.add(bits);
            self.sum = self.sum.saturating_add(units(bits));
        }
    }

    /// Takes one cost away that was added before.
    pub fn remove(&mut self, cost: f64) {
        if let Some(bits) = Self::bits(cost) {
            self.bits.remove(bits);
            self.sum = self.sum.saturating_sub(units(bits));
        }
    }

    fn bits(cost: f64) -> Option<u64> {
        // max turns -0.0 into 0.0 as well as it does negative numbers.
        cost.is_finite().then(|| cost.max(0.0).abs().to_bits())
    }

    /// How many costs there are.
    pub fn count(&self) -> u64 {
        self.bits.count()
    }

    /// The quantile by nearest rank.
    pub fn quantile(&self, q: f64) -> Option<f64> {
        self.bits.quantile(q).map(f64::from_bits)
    }

    /// The least.
    pub fn min(&self) -> Option<f64> {
        self.bits.min().map(f64::from_bits)
    }

    /// The greatest.
    pub fn max(&self) -> Option<f64> {
        self.bits.max().map(f64::from_bits)
    }

    /// How many costs lie in `from..to`.
    pub fn between(&self, from: f64, to: f64) -> u64 {
        match (Self::bits(from), Self::bits(to)) {
            (Some(from), Some(to)) => self.bits.between(from, to),
            (Some(from), None) => self.bits.between(from, u64::MAX),
            _ => 0,
        }
    }

    /// Their sum.
    pub fn sum(&self) -> f64 {
        self.sum as f64 * UNIT
    }

    /// Their mean; `None` when there are none.
    pub fn mean(&self) -> Option<f64> {
        (self.count() > 0).then(|| self.sum() / self.count() as f64)
    }
}

/// A cost in whole [`UNIT`]s; costs beyond 2⁶² count as that much.
fn units(bits: u64) -> i128 {
    (f64::from_bits(bits).min(4_611_686_018_427_387_904.0) / UNIT) as i128
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn quantiles_and_ranges_equal_those_of_the_sorted_list(
            mut list in proptest::collection::vec(
                prop_oneof![0u64..100, any::<u64>(), 1_000_000u64..2_000_000, 0u64..1 << 42, Just(u64::MAX)], 1..200,
            ),
            gone in proptest::collection::vec(any::<u64>(), 0..20),
            q in 0.0f64..=1.0, from in any::<u64>(), to in any::<u64>(),
        ) {
            let mut values = Values::default();
            list.iter().chain(&gone).for_each(|value| values.add(*value));
            gone.iter().for_each(|value| values.remove(*value));
            list.sort_unstable();
            let rank = ((q * list.len() as f64).ceil() as usize).max(1);
            prop_assert_eq!(values.quantile(q), Some(list[rank - 1]));
            prop_assert_eq!((values.min(), values.max()), (list.first().copied(), list.last().copied()));
            prop_assert_eq!(values.sum(), list.iter().map(|value| u128::from(*value)).sum::<u128>());
            let (from, to) = (from.min(to), from.max(to));
            prop_assert_eq!(values.between(from, to), list.iter().filter(|value| (from..to).contains(value)).count() as u64);
            let (mut low, mut high) = (Values::default(), Values::default());
            for (at, value) in list.iter().enumerate() {
                if at % 3 == 0 { low.add(*value) } else { high.add(*value) }
            }
            let mut both = Together::default();
            both.join(&low);
            both.join(&high);
            prop_assert_eq!((both.quantile(q), both.count()), (values.quantile(q), values.count()));
            prop_assert_eq!((both.min(), both.max(), both.sum()), (values.min(), values.max(), values.sum()));
            prop_assert_eq!(both.between(from, to), values.between(from, to));
            list.iter().for_each(|value| values.remove(*value));
            prop_assert_eq!(values, Values::default());
        }
    }

    #[test]
    fn costs_keep_their_values() {
        let mut costs = Costs::default();
        [0.0, 12.5, 0.04, 3.0].into_iter().for_each(|cost| costs.add(cost));
        costs.add(f64::NAN);
        assert_eq!((costs.count(), costs.quantile(0.5), costs.max(), costs.sum()), (4, Some(0.04), Some(12.5), 15.54));
        assert_eq!(costs.between(0.0, 0.1), 2);
        assert_eq!(costs.between(1.0, f64::INFINITY), 2);
    }
}
