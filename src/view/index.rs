//! Which requests the list holds and in what order.
//!
//! Newest first is read straight from the store, filtered or not, so it costs what is on screen. Any other order needs
//! every request once: that is done when filter or order change, and again when new data came and enough time has passed
//! that looking stays a small share of the work. So it is while what stands still loses requests, lest places be counted
//! that nothing stands at any more. Owns: sorting, positions. Keeps out: rows.

use std::cmp::Ordering;

use super::data::{Data, Passing};
use super::filter::Filter;
use super::list::{COLUMNS, ColumnId, SortValue};
use crate::lifecycle::facts::Facts;
use crate::lifecycle::request::RequestKey;

/// How the list is sorted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Sort {
    /// By which column.
    pub column: ColumnId,
    /// The other way round than the column's own way (newest, largest, or first in the alphabet, at the top).
    pub reversed: bool,
}

impl Default for Sort {
    fn default() -> Self {
        Self { column: ColumnId::Age, reversed: false }
    }
}

impl Sort {
    fn is_newest_first(self) -> bool {
        self == Self::default()
    }
}

/// The list's requests in order.
#[derive(Default)]
pub struct Index {
    sort: Sort,
    filter: Filter,
    /// What it was listed from; `None` while nothing is listed.
    stamp: Option<Stamp>,
    built_at_ns: u64,
    cost_ns: u64,
    order: Order,
    len: usize,
    /// Whether requests are left that the filter has not been asked of.
    asking: bool,
}

/// Where the order comes from.
#[derive(Default)]
enum Order {
    /// All requests, as the store has them.
    #[default]
    All,
    /// Those that pass, as the store keeps them.
    Passing,
    /// As listed here.
    Listed(Vec<RequestKey>),
}

/// What a listed order depends on beside the order and the filter.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Stamp {
    version: u64,
    gone: u64,
    /// How many pass, and whether all have been asked.
    passing: Option<(usize, bool)>,
}

impl Stamp {
    fn of(data: &dyn Data, passing: Option<&Passing<'_>>) -> Self {
        let passing = passing.map(|passing| (passing.len, passing.whole));
        Self { version: data.version(), gone: data.gone(), passing }
    }
}

/// The share of time spent on rebuilding a filtered or sorted list, as its inverse.
const REST: u64 = 8;

impl Index {
    /// Brings the index up to date when it is worth it; `clock` measures what that costs.
    pub fn refresh(&mut self, data: &dyn Data, filter: &Filter, sort: Sort, now_ns: u64, clock: &dyn Fn() -> u64) {
        let passing = data.passing(filter);
        let windowed = passing.as_ref().is_some_and(|passing| passing.windowed);
        self.asking = passing.as_ref().is_some_and(|passing| !passing.whole);
        let is_all = filter.is_empty() && !windowed;
        if sort.is_newest_first()
            && data.gone() == 0
            && let Some((order, len)) = match &passing {
                _ if is_all => Some((Order::All, data.standing().total as usize)),
                Some(passing) => Some((Order::Passing, passing.len)),
                None => None,
            }
        {
            (self.sort, self.filter, self.order, self.len) = (sort, filter.clone(), order, len);
            self.stamp = None;
            return;
        }
        // By the clock that measures the cost: the present of the data may go back.
        let started = clock();
        let stamp = Some(Stamp::of(data, passing.as_ref()));
        let asked_anew = self.sort != sort || self.filter != *filter || self.stamp.is_none();
        let rested = started.saturating_sub(self.built_at_ns) >= self.cost_ns * REST;
        if !asked_anew && (self.stamp == stamp || !rested) {
            return;
        }
        let column = COLUMNS.iter().find(|column| column.id == sort.column).unwrap_or(&COLUMNS[0]);
        let found: Box<dyn Iterator<Item = (RequestKey, &Facts)>> = match passing {
            _ if is_all => data.newest(),
            Some(passing) => Box::new(passing.newest.filter_map(|key| Some((key, data.facts(key)?)))),
            None => Box::new(data.newest().filter(|(key, _)| filter.matches(*key, data))),
        };
        let keys: Vec<RequestKey> = if column.id == ColumnId::Age {
            let mut keys: Vec<_> = found.map(|(key, _)| key).collect();
            if sort.reversed {
                keys.reverse();
            }
            keys
        } else {
            let mut rows: Vec<(SortValue, RequestKey)> =
                found.map(|(key, facts)| ((column.sort)(facts, now_ns), key)).collect();
            rows.sort_by(|(left, _), (right, _)| left.compare(right, sort.reversed));
            rows.into_iter().map(|(_, key)| key).collect()
        };
        (self.sort, self.filter, self.stamp) = (sort, filter.clone(), stamp);
        (self.len, self.order) = (keys.len(), Order::Listed(keys));
        (self.built_at_ns, self.cost_ns) = (started, clock().saturating_sub(started));
    }

    /// Whether there is something that the index does not show yet.
    pub fn is_behind(&self, data: &dyn Data) -> bool {
        self.asking || self.stamp.is_some_and(|stamp| stamp != Stamp::of(data, data.passing(&self.filter).as_ref()))
    }

    /// Whether requests are left that the filter has not been asked of: each look asks some more.
    pub fn is_asking(&self) -> bool {
        self.asking
    }

    /// How many requests the list has.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether it has none.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    fn walk<'a>(&'a self, data: &'a dyn Data) -> Box<dyn Iterator<Item = RequestKey> + 'a> {
        match &self.order {
            Order::All => Box::new(data.newest().map(|(key, _)| key)),
            Order::Passing => data.passing(&self.filter).map_or(Box::new(std::iter::empty()), |passing| passing.newest),
            Order::Listed(keys) => Box::new(keys.iter().copied()),
        }
    }

    /// The requests from `top` on, at most `count`. Requests that are gone leave no gap.
    pub fn keys(&self, data: &dyn Data, top: usize, count: usize) -> Vec<RequestKey> {
        self.walk(data).skip(top).filter_map(|key| data.resolve(key)).take(count).collect()
    }

    /// The request at a place and where that is. When it is gone: the next one on the way up or down, else the nearest the
    /// other way.
    pub fn near(&self, data: &dyn Data, place: usize, up: bool) -> Option<(usize, RequestKey)> {
        let there = |(place, key)| Some((place, data.resolve(key)?));
        if let Some(found) = self.walk(data).enumerate().nth(place).and_then(there) {
            return Some(found);
        }
        let above = || self.walk(data).enumerate().take(place).filter_map(there).last();
        let below = || self.walk(data).enumerate().skip(place).find_map(there);
        if up { above().or_else(below) } else { below().or_else(above) }
    }

    /// Where a request stands; `None` when it is not in the list.
    pub fn position(&self, data: &dyn Data, key: RequestKey) -> Option<usize> {
        self.walk(data).position(|other| other == key)
    }
}

impl SortValue {
    /// Numbers from large to small, texts from A to Z, or the other way round; what has no value always comes last.
    fn compare(&self, other: &Self, reversed: bool) -> Ordering {
        let order = match (self, other) {
            (Self::None, Self::None) => return Ordering::Equal,
            (Self::None, _) => return Ordering::Greater,
            (_, Self::None) => return Ordering::Less,
            (Self::Number(left), Self::Number(right)) => right.total_cmp(left),
            (Self::Text(left), Self::Text(right)) => left.cmp(right),
            (Self::Number(_), Self::Text(_)) => Ordering::Less,
            (Self::Text(_), Self::Number(_)) => Ordering::Greater,
        };
        if reversed { order.reverse() } else { order }
    }
}
