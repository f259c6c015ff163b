//! What was let go: traces and request ids of evicted requests, so that what still comes of one is known for a part.
//!
//! The latest are known by their ids; of those before them is known when the last began: what began no later may be a part of
//! one. Owns: how many are remembered. Keeps out: what a part means to checks (`checks`: what it lacks is unknown).

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
    /// Each with when its request began.
    order: VecDeque<(u64, u64)>,
    most: usize,
    /// When the last request began whose ids are forgotten, nanoseconds since the epoch; 0 when none are.
    forgotten_ns: u64,
}

impl Gone {
    /// Beside a store of this many bytes.
    pub fn beside(memory: usize) -> Self {
        Self { times: Map::default(), order: VecDeque::new(), most: memory / SHARE, forgotten_ns: 0 }
    }

    /// A trace went with a request that began then.
    pub fn note_trace(&mut self, id: TraceId, begun_ns: u64) {
        self.note(id, begun_ns);
    }

    /// A request of this id went that began then; of records alone, or of what a trace tells of it too.
    pub fn note_rid(&mut self, rid: &Rid, records_alone: bool, begun_ns: u64) {
        if !rid.is_empty() {
            self.note((rid, records_alone), begun_ns);
        }
    }

    fn note(&mut self, id: impl Hash, begun_ns: u64) {
        let hash = self.times.hasher().hash_one(id);
        *self.times.entry(hash).or_default() += 1;
        self.order.push_back((hash, begun_ns));
        if self.order.len() > self.most {
            self.forget_first();
        }
    }

    fn forget_first(&mut self) {
        let Some((hash, begun_ns)) = self.order.pop_front() else { return };
        self.forgotten_ns = self.forgotten_ns.max(begun_ns);
        if let Some(times) = self.times.get_mut(&hash) {
            *times -= 1;
            if *times == 0 {
                self.times.remove(&hash);
            }
        }
    }

    /// Whether a request that was not known before may be a part of one whose ids are forgotten: it began no later.
    pub fn may_have(&self, begun_ns: u64) -> bool {
        begun_ns > 0 && begun_ns <= self.forgotten_ns
    }

    /// Whether this trace is among those that went last.
    pub fn has_trace(&self, id: TraceId) -> bool {
        self.has(id)
    }

    /// Whether a request of this id is among those that went last, of records alone or with a trace.
    pub fn has_rid(&self, rid: &Rid, records_alone: bool) -> bool {
        !rid.is_empty() && self.has((rid, records_alone))
    }

    fn has(&self, id: impl Hash) -> bool {
        !self.times.is_empty() && self.times.contains_key(&self.times.hasher().hash_one(id))
    }

    /// Remembers no id any more.
    pub fn forget(&mut self) {
        while !self.order.is_empty() {
            self.forget_first();
        }
        (self.order, self.times) = (VecDeque::new(), Map::default());
    }

    /// The bytes it takes.
    pub fn memory(&self) -> usize {
        chunk_of::<(u64, u64)>(self.order.capacity()) + entry::<(u64, u32)>() * self.times.len()
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
        for (number, begun_ns) in [(1, 10), (2, 40), (1, 20), (3, 30)] {
            gone.note_trace(trace(number), begun_ns);
        }
        assert!([1, 2, 3].into_iter().all(|number| gone.has_trace(trace(number))));
        assert!(gone.may_have(10) && !gone.may_have(11) && !gone.may_have(0));
        gone.note_rid(&Rid::from("r"), false, 50);
        assert!(gone.has_trace(trace(1)), "it went again");
        assert!(
            !gone.has_trace(trace(2)) && gone.has_rid(&Rid::from("r"), false) && !gone.has_rid(&Rid::from("r"), true)
        );
        assert!(gone.may_have(40) && !gone.may_have(41));
        gone.note_rid(&Rid::default(), false, 60);
        assert!(!gone.has_rid(&Rid::default(), false));
        assert_eq!((gone.order.len(), gone.times.len()), (3, 3));
        gone.forget();
        assert!(gone.memory() == 0 && gone.may_have(50) && !gone.may_have(51));
        let mut none = Gone::beside(0);
        none.note_trace(trace(1), 7);
        assert!(!none.has_trace(trace(1)) && none.may_have(7));
    }
}
