//! The records of a request, in an order that does not depend on how they came: by time, then by text; and those of none.
//!
//! A record that stands twice in one export was written twice and is kept twice; one that comes again is a duplicate.
//! Owns: that order, and telling duplicates. Keeps out: which request a record belongs to (`join`), what makes an export
//! (`lifecycle::batch`).

use std::collections::VecDeque;
use std::hash::BuildHasher;
use std::ops::Deref;

use super::Set;
use crate::lifecycle::account::entry;
use crate::lifecycle::record::Record;

/// The records of a request.
#[derive(Default)]
pub(super) struct Records(Vec<Record>);

impl Deref for Records {
    type Target = [Record];

    fn deref(&self) -> &[Record] {
        &self.0
    }
}

impl Records {
    /// What its list has room for.
    pub fn capacity(&self) -> usize {
        self.0.capacity()
    }

    /// How often this record is there.
    pub fn count(&self, record: &Record) -> usize {
        let from = self.0.partition_point(|other| by(other) < by(record));
        self.0[from..].iter().take_while(|other| by(other) == by(record)).count()
    }

    /// Adds a record.
    pub fn insert(&mut self, record: Record) {
        let at = self.0.partition_point(|other| by(other) <= by(&record));
        self.0.insert(at, record);
    }

    /// Adds those of another list; gives back the duplicates: what both have is there as often as in either.
    pub fn merge(&mut self, others: Vec<Record>) -> Vec<Record> {
        let (mine, mut duplicates) = (std::mem::take(&mut self.0), Vec::new());
        let mut mine = mine.into_iter().peekable();
        for other in Records::of(others).0 {
            while let Some(record) = mine.next_if(|record| by(record) < by(&other)) {
                self.0.push(record);
            }
            match mine.next_if(|record| by(record) == by(&other)) {
                Some(record) => {
                    self.0.push(record);
                    duplicates.push(other);
                }
                None => self.0.push(other),
            }
        }
        self.0.extend(mine);
        duplicates
    }

    /// Takes out those that are asked for.
    pub fn extract(&mut self, wanted: impl FnMut(&mut Record) -> bool) -> Vec<Record> {
        self.0.extract_if(.., wanted).collect()
    }

    /// All of them.
    pub fn into_vec(self) -> Vec<Record> {
        self.0
    }

    fn of(mut records: Vec<Record>) -> Self {
        records.sort_by(|one, other| by(one).cmp(&by(other)));
        Self(records)
    }
}

/// Records that belong to no request (tool events), oldest first, each once.
#[derive(Default)]
pub(super) struct Loose {
    records: VecDeque<Record>,
    /// What is there, as hashes.
    known: Set<u64>,
}

impl Loose {
    /// Whether this record is there.
    pub fn has(&self, record: &Record) -> bool {
        self.known.contains(&self.hash(record))
    }

    /// Adds a record that is not; says how many bytes it takes.
    pub fn push(&mut self, record: Record) -> usize {
        self.known.insert(self.hash(&record));
        let size = size(&record);
        self.records.push_back(record);
        size
    }

    /// Lets the oldest go; says how many bytes it took.
    pub fn drop_first(&mut self) -> Option<usize> {
        let record = self.records.pop_front()?;
        self.known.remove(&self.hash(&record));
        Some(size(&record))
    }

    /// All of them, oldest first.
    pub fn iter(&self) -> impl Iterator<Item = &Record> {
        self.records.iter()
    }

    fn hash(&self, record: &Record) -> u64 {
        self.known.hasher().hash_one(by(record))
    }
}

fn size(record: &Record) -> usize {
    record.size() + entry::<u64>()
}

/// What they are ordered by and known as.
pub(super) fn by(record: &Record) -> (u64, &str) {
    (record.time_ms, &record.raw)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(time_ms: u64, raw: &str) -> Record {
        Record::payload_marker("r", time_ms, "", raw.into())
    }

    #[test]
    fn any_order_is_one_order_and_what_both_have_is_no_more_than_either_has() {
        let all = [(2, "b"), (1, "z"), (2, "a"), (2, "b")];
        let mut records = Records::default();
        all.iter().for_each(|(time, raw)| records.insert(record(*time, raw)));
        let raws = |records: &Records| records.iter().map(|record| record.raw.to_string()).collect::<Vec<_>>();
        assert_eq!(raws(&records), ["z", "a", "b", "b"]);
        assert_eq!((records.count(&record(2, "b")), records.count(&record(1, "b"))), (2, 0));
        let again = records.merge(vec![record(3, "c"), record(2, "b"), record(0, "c"), record(1, "z"), record(1, "z")]);
        assert_eq!(raws(&records), ["c", "z", "z", "a", "b", "b", "c"]);
        assert_eq!(again.iter().map(|record| &*record.raw).collect::<Vec<_>>(), ["z", "b"]);
        assert_eq!(records.extract(|record| &*record.raw == "b").len(), 2);
        assert_eq!(raws(&records), ["c", "z", "z", "a", "c"]);
    }
}
