//! A rank's prefix cache: block hashes, the least recently used going first.

use std::collections::{BTreeMap, HashMap};

/// Which blocks a rank holds.
#[derive(Default)]
pub struct PrefixCache {
    used: HashMap<u64, u64>,
    order: BTreeMap<u64, u64>,
    tick: u64,
    capacity: usize,
}

impl PrefixCache {
    /// An empty cache for this many blocks.
    pub fn new(capacity: usize) -> Self {
        Self { capacity, ..Self::default() }
    }

    /// How many leading blocks of a prompt it holds.
    pub fn overlap(&self, blocks: &[u64]) -> u64 {
        blocks.iter().take_while(|block| self.used.contains_key(block)).count() as u64
    }

    /// Keeps a prompt's blocks; what was used longest ago gives way.
    pub fn keep(&mut self, blocks: &[u64]) {
        // Backwards, so that the end of a prefix gives way before its beginning.
        for block in blocks.iter().rev() {
            self.tick += 1;
            if let Some(before) = self.used.insert(*block, self.tick) {
                self.order.remove(&before);
            }
            self.order.insert(self.tick, *block);
        }
        while self.used.len() > self.capacity {
            let Some((_, block)) = self.order.pop_first() else { break };
            self.used.remove(&block);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn overlap_counts_leading_blocks_only_and_the_oldest_end_gives_way() {
        let mut cache = PrefixCache::new(4);
        cache.keep(&[1, 2, 3]);
        assert_eq!(cache.overlap(&[1, 2, 9, 3]), 2);
        cache.keep(&[7, 8]);
        assert_eq!(cache.overlap(&[1, 2, 3]), 2, "the last block of the older prefix went first");
        assert_eq!(cache.overlap(&[7, 8]), 2);
    }
}
