//! Which requests the list holds and in what order.
//!
//! The plain order (newest first, no filter) is read straight from the store, so it costs what is on screen. A filter or
//! a sort needs every request once: that is done when either changes, and again when new data came and enough
//! time has passed that looking stays a small share of the work. Owns: filtering, sorting, positions. Keeps out: rows.

use std::cmp::Ordering;

use super::data::Data;
use super::filter::Filter;
use super::list::{COLUMNS, ColumnId, SortValue};
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
    fn is_plain(self) -> bool {
        self == Self::default()
    }
}

/// The list's requests in order.
#[derive(Default)]
pub struct Index {
    sort: Sort,
    filter: Filter,
    version: Option<u64>,
    built_at_ns: u64,
    cost_ns: u64,
    /// `None` in the plain order.
    keys: Option<Vec<RequestKey>>,
    total: u64,
}

/// The share of time spent on rebuilding a filtered or sorted list, as its inverse.
const REST: u64 = 8;

impl Index {
    /// Brings the index up to date when it is worth it; `clock` measures what that costs.
    pub fn refresh(&mut self, data: &dyn Data, filter: &Filter, sort: Sort, now_ns: u64, clock: &dyn Fn() -> u64) {
        self.total = data.standing().total;
        if sort.is_plain() && filter.is_empty() {
            (self.sort, self.filter, self.keys, self.version) = (sort, filter.clone(), None, None);
            return;
        }
        let asked_anew = self.sort != sort || self.filter != *filter || self.version.is_none();
        let rested = now_ns.saturating_sub(self.built_at_ns) >= self.cost_ns * REST;
        if !asked_anew && (self.version == Some(data.version()) || !rested) {
            return;
        }
        let started = clock();
        let column = COLUMNS.iter().find(|column| column.id == sort.column).unwrap_or(&COLUMNS[0]);
        let found = data.newest().filter(|(_, facts)| filter.matches(facts));
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
        (self.sort, self.filter, self.keys, self.version) = (sort, filter.clone(), Some(keys), Some(data.version()));
        (self.built_at_ns, self.cost_ns) = (now_ns, clock().saturating_sub(started));
    }

    /// Whether data has come that the index does not show yet.
    pub fn is_behind(&self, data: &dyn Data) -> bool {
        self.keys.is_some() && self.version != Some(data.version())
    }

    /// How many requests the list has.
    pub fn len(&self) -> usize {
        self.keys.as_ref().map_or(self.total as usize, Vec::len)
    }

    /// Whether it has none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The requests from `top` on, at most `count`. Requests that are gone leave no gap.
    pub fn keys(&self, data: &dyn Data, top: usize, count: usize) -> Vec<RequestKey> {
        match &self.keys {
            None => data.newest().skip(top).take(count).map(|(key, _)| key).collect(),
            Some(keys) => keys.iter().skip(top).filter_map(|key| data.resolve(*key)).take(count).collect(),
        }
    }

    /// Where a request stands; `None` when it is not in the list.
    pub fn position(&self, data: &dyn Data, key: RequestKey) -> Option<usize> {
        match &self.keys {
            None => data.newest().position(|(other, _)| other == key),
            Some(keys) => keys.iter().position(|other| *other == key),
        }
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
