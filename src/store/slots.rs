//! The traces that a request has rows in, as a set: finding one costs no walk, and those that hold its `http-request` or
//! root come first.

use smallvec::SmallVec;

use crate::lifecycle::account::chunk_of;

/// Slots of traces. Nearly every request has one; a request joined by its id alone may have many.
#[derive(Debug, Default)]
pub struct Slots {
    /// First the anchored ones, then the others, each part in order.
    slots: SmallVec<[u32; 4]>,
    anchored: u32,
}

impl Slots {
    /// How many there are.
    pub fn len(&self) -> usize {
        self.slots.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.slots.is_empty()
    }

    /// All, anchored ones first.
    pub fn iter(&self) -> impl Iterator<Item = usize> + '_ {
        self.slots.iter().map(|slot| *slot as usize)
    }

    /// The one at a place of [`Slots::iter`].
    pub fn get(&self, at: usize) -> Option<usize> {
        self.slots.get(at).map(|slot| *slot as usize)
    }

    /// Those with an `http-request` or root of the request.
    pub fn anchored(&self) -> impl Iterator<Item = usize> + '_ {
        self.iter().take(self.anchored as usize)
    }

    /// Whether a trace is among them.
    pub fn has(&self, slot: usize) -> bool {
        self.find(slot).is_some()
    }

    /// Whether there is any but this one.
    pub fn has_others(&self, slot: usize) -> bool {
        match self.slots[..] {
            [] => false,
            [only] => only as usize != slot,
            _ => true,
        }
    }

    /// Adds a trace, or says anew whether it is anchored.
    pub fn put(&mut self, slot: usize, anchored: bool) {
        if let Some((at, was)) = self.find(slot) {
            if was == anchored {
                return;
            }
            self.take(at, was);
        }
        let (first, others) = self.slots.split_at(self.anchored as usize);
        let (part, before) = if anchored { (first, 0) } else { (others, first.len()) };
        let at = before + part.partition_point(|other| (*other as usize) < slot);
        self.slots.insert(at, slot as u32);
        self.anchored += u32::from(anchored);
    }

    /// Takes a trace out.
    pub fn remove(&mut self, slot: usize) {
        if let Some((at, anchored)) = self.find(slot) {
            self.take(at, anchored);
        }
    }

    /// Adds all of another set; a trace in both is anchored when either says so.
    pub fn append(&mut self, other: &Self) {
        for (at, slot) in other.iter().enumerate() {
            let anchored = at < other.anchored as usize || self.find(slot).is_some_and(|(_, anchored)| anchored);
            self.put(slot, anchored);
        }
    }

    /// Bytes in the heap.
    pub fn heap_size(&self) -> usize {
        if self.slots.spilled() { chunk_of::<u32>(self.slots.capacity()) } else { 0 }
    }

    fn take(&mut self, at: usize, anchored: bool) {
        self.slots.remove(at);
        self.anchored -= u32::from(anchored);
    }

    /// Where a trace stands, and whether it is anchored.
    fn find(&self, slot: usize) -> Option<(usize, bool)> {
        let slot = slot as u32;
        let (first, others) = self.slots.split_at(self.anchored as usize);
        match first.binary_search(&slot) {
            Ok(at) => Some((at, true)),
            Err(_) => others.binary_search(&slot).ok().map(|at| (first.len() + at, false)),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn it_is_the_set_that_a_map_is(steps in proptest::collection::vec((0usize..3, 0usize..12, any::<bool>()), 0..60)) {
            let (mut slots, mut map) = (Slots::default(), BTreeMap::new());
            for (step, slot, anchored) in steps {
                match step {
                    0 => {
                        slots.remove(slot);
                        map.remove(&slot);
                    }
                    1 => {
                        let mut other = Slots::default();
                        other.put(slot, anchored);
                        slots.append(&other);
                        *map.entry(slot).or_insert(false) |= anchored;
                    }
                    _ => {
                        slots.put(slot, anchored);
                        map.insert(slot, anchored);
                    }
                }
            }
            let of = |wanted: bool| map.iter().filter(move |(_, anchored)| **anchored == wanted).map(|(slot, _)| *slot);
            prop_assert_eq!(slots.anchored().collect::<Vec<_>>(), of(true).collect::<Vec<_>>());
            prop_assert_eq!(slots.iter().collect::<Vec<_>>(), of(true).chain(of(false)).collect::<Vec<_>>());
            for slot in 0..12 {
                prop_assert_eq!(slots.has(slot), map.contains_key(&slot));
                prop_assert_eq!(slots.has_others(slot), map.keys().any(|other| *other != slot));
            }
        }
    }
}
