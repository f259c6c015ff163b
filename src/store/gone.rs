//! What went last: traces and request ids of evicted requests, so that what still comes of one is known for a part.
//!
//! Owns: how many are remembered. Keeps out: what a part means to checks (`checks`: what it lacks is unknown).

use std::collections::VecDeque;
use std::hash::{BuildHasher, Hash};

use super::{Map, Rid};
use crate::lifecycle::account::{chunk_of, entry};
use crate::lifecycle::ids::TraceId;

/// An id is remembered for so many bytes of the store's limit: about as many as it has requests, so that they are known for
/// as long again as they were held.
const SHARE: usize = 4096;

/// Traces and request ids that went, the latest of them, as hashes.
pub struct Gone {
    /// How often each is in `order`.
    times: Map<u64, u32>,
    order: VecDeque<u64>,
    most: usize,
}

impl Gone {
    /// Beside a store of this many bytes.
    pub fn beside(memory: usize) -> Self {
        Self { times: Map::default(), order: VecDeque::new(), most: memory / SHARE }
    }

    /// A trace went.
    pub fn note_trace(&mut self, id: TraceId) {
        self.note(id);
    }

    /// A request of this id went.
    pub fn note_rid(&mut self, rid: &Rid) {
        if !rid.is_empty() {
            self.note(rid);
        }
    }

    fn note(&mut self, id: impl Hash) {
        if self.order.len() >= self.most {
            let Some(old) = self.order.pop_front() else { return };
            if let Some(times) = self.times.get_mut(&old) {
                *times -= 1;
                if *times == 0 {
                    self.times.remove(&old);
                }
            }
        }
        let hash = self.times.hasher().hash_one(id);
        *self.times.entry(hash).or_default() += 1;
        self.order.push_back(hash);
    }

    /// Whether this trace is among those that went last.
    pub fn has_trace(&self, id: TraceId) -> bool {
        self.has(id)
    }

    /// Whether a request of this id is among those that went last.
    pub fn has_rid(&self, rid: &Rid) -> bool {
        !rid.is_empty() && self.has(rid)
    }

    fn has(&self, id: impl Hash) -> bool {
        !self.times.is_empty() && self.times.contains_key(&self.times.hasher().hash_one(id))
    }

    /// Remembers nothing more.
    pub fn forget(&mut self) {
        *self = Self { most: self.most, ..Self::beside(0) };
    }

    /// The bytes it takes.
    pub fn memory(&self) -> usize {
        chunk_of::<u64>(self.order.capacity()) + entry::<(u64, u32)>() * self.times.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_latest_are_known_and_their_number_is_bounded() {
        let mut gone = Gone::beside(3 * SHARE);
        let trace = |number: u8| TraceId([number; 16]);
        assert!(!gone.has_trace(trace(1)));
        for number in [1, 2, 1, 3] {
            gone.note_trace(trace(number));
        }
        assert!([1, 2, 3].into_iter().all(|number| gone.has_trace(trace(number))));
        gone.note_rid(&Rid::from("r"));
        assert!(gone.has_trace(trace(1)), "it went again");
        assert!(!gone.has_trace(trace(2)) && gone.has_rid(&Rid::from("r")));
        gone.note_rid(&Rid::default());
        assert!(!gone.has_rid(&Rid::default()));
        assert_eq!((gone.order.len(), gone.times.len()), (3, 3));
        let mut none = Gone::beside(0);
        none.note_trace(trace(1));
        assert!(!none.has_trace(trace(1)) && none.memory() == 0);
    }
}
