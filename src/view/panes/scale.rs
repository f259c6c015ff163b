//! Classes of values for histograms, with round borders, and how their borders are written.

use crate::store::rollup::values::Values;

/// A class of whole numbers: `from..to`.
pub type Class = (u64, u64);

/// Classes with borders 1, 2, 5, 10, 20 … of `unit` that hold all values, at most `most` of them. What is below the first
/// border belongs to the first class; with too many classes, those of 1, 10, 100 … are taken.
pub fn decades(values: &Values, most: usize) -> Vec<Class> {
    decades_within(values.min().zip(values.max()), most)
}

/// Likewise, of everything from the least to the greatest.
pub fn decades_within(extent: Option<Class>, most: usize) -> Vec<Class> {
    let Some((min, max)) = extent else { return Vec::new() };
    for steps in [&[1, 2, 5][..], &[1, 3], &[1]] {
        let classes = classes(borders(steps), min, max);
        if classes.len() <= most || steps.len() == 1 {
            return cut(classes, most);
        }
    }
    Vec::new()
}

/// Classes with borders 1, 2, 4, 8 … that hold everything from the least to the greatest, at most `most` of them; 0 is a class of its own when it is there.
pub fn doublings(extent: Option<Class>, most: usize) -> Vec<Class> {
    let Some((min, max)) = extent else { return Vec::new() };
    let borders = std::iter::once(0).chain((0..63).map(|bit| 1u64 << bit));
    cut(classes(borders, min, max), most)
}

fn borders(steps: &[u64]) -> impl Iterator<Item = u64> {
    std::iter::once(0).chain((0..19).flat_map(move |ten| steps.iter().map(move |step| step * 10u64.pow(ten))))
}

fn classes(borders: impl Iterator<Item = u64>, min: u64, max: u64) -> Vec<Class> {
    let borders: Vec<u64> = borders.collect();
    borders.windows(2).map(|two| (two[0], two[1])).filter(|(from, to)| *to > min && *from <= max).collect()
}

/// Of too many classes, the lowest become one.
fn cut(mut classes: Vec<Class>, most: usize) -> Vec<Class> {
    let over = classes.len().saturating_sub(most.max(1));
    classes.drain(..over);
    if let (true, Some(first)) = (over > 0, classes.first_mut()) {
        first.0 = 0;
    }
    classes
}

/// A time as filters and short labels write it, exactly: `500us`, `20ms`, `2s`.
pub fn time(ns: u64) -> String {
    let units = [(1_000_000_000, "s"), (1_000_000, "ms"), (1_000, "us")];
    match units.into_iter().find(|(unit, _)| ns > 0 && ns.is_multiple_of(*unit)) {
        Some((unit, word)) => format!("{}{word}", ns / unit),
        None if ns == 0 => "0ms".into(),
        None => format!("{ns}ns"),
    }
}

/// The share of a class among values, from 0 to 1 of the largest class; for small drawings.
pub fn spark(values: &Values, classes: &[Class]) -> Vec<f64> {
    let counts: Vec<u64> = classes.iter().map(|(from, to)| values.between(*from, *to)).collect();
    let most = counts.iter().copied().max().unwrap_or(0).max(1);
    counts.into_iter().map(|count| count as f64 / most as f64).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_have_round_borders_and_hold_every_value() {
        let mut values = Values::default();
        [3, 70, 900].into_iter().for_each(|value| values.add(value));
        assert_eq!(
            decades(&values, 12),
            [(2, 5), (5, 10), (10, 20), (20, 50), (50, 100), (100, 200), (200, 500), (500, 1000)]
        );
        assert_eq!(decades(&values, 4), [(1, 10), (10, 100), (100, 1000)]);
        assert_eq!(decades(&values, 2), [(0, 100), (100, 1000)]);
        values.add(0);
        for most in 1..20 {
            for classes in [decades(&values, most), doublings(values.min().zip(values.max()), most)] {
                assert!(classes.len() <= most, "{most}: {classes:?}");
                assert_eq!(classes.iter().map(|(from, to)| values.between(*from, *to)).sum::<u64>(), 4);
            }
        }
        assert_eq!([0, 300, 500_000, 20_000_000, 2_000_000_000].map(time), ["0ms", "300ns", "500us", "20ms", "2s"]);
    }
}
