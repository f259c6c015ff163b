//! Every trace held, by slot and by id. Slots are used again; a free one takes a pointer's room.

use std::ops::{Index, IndexMut};
use std::sync::LazyLock;

use super::Map;
use super::trace::Trace;
use crate::lifecycle::ids::TraceId;

/// What stands at a free slot: nobody asks for it but by mistake, and nobody is hurt.
static NOTHING: LazyLock<Trace> = LazyLock::new(|| Trace::new(TraceId([0; 16])));

/// See the module.
#[derive(Default)]
pub struct Traces {
    slots: Vec<Option<Box<Trace>>>,
    free: Vec<u32>,
    by_id: Map<TraceId, u32>,
}

impl Traces {
    /// Whether a trace is held.
    #[inline]
    pub fn has(&self, id: TraceId) -> bool {
        self.by_id.contains_key(&id)
    }

    /// The slot of a trace, made when it is new.
    #[inline]
    pub fn slot(&mut self, id: TraceId) -> usize {
        if let Some(slot) = self.by_id.get(&id) {
            return *slot as usize;
        }
        let trace = Some(Box::new(Trace::new(id)));
        let slot = match self.free.pop() {
            Some(slot) => {
                self.slots[slot as usize] = trace;
                slot
            }
            None => {
                self.slots.push(trace);
                (self.slots.len() - 1) as u32
            }
        };
        self.by_id.insert(id, slot);
        slot as usize
    }

    /// Takes a trace out; its slot is free then.
    pub fn take(&mut self, slot: usize) -> Option<Box<Trace>> {
        let trace = self.slots.get_mut(slot)?.take()?;
        self.by_id.remove(&trace.id);
        self.free.push(slot as u32);
        if self.by_id.is_empty() {
            *self = Self::default();
        }
        Some(trace)
    }

    /// The trace at a slot that may be free.
    pub fn get(&self, slot: usize) -> Option<&Trace> {
        self.slots.get(slot)?.as_deref()
    }

    /// All.
    pub fn iter(&self) -> impl Iterator<Item = &Trace> {
        self.slots.iter().filter_map(Option::as_deref)
    }

    /// Whether there are none.
    #[cfg(test)]
    pub fn is_empty(&self) -> bool {
        self.by_id.is_empty()
    }
}

impl Index<usize> for Traces {
    type Output = Trace;

    #[inline]
    fn index(&self, slot: usize) -> &Trace {
        self.get(slot).unwrap_or_else(|| &NOTHING)
    }
}

impl IndexMut<usize> for Traces {
    #[inline]
    fn index_mut(&mut self, slot: usize) -> &mut Trace {
        if slot >= self.slots.len() {
            self.slots.resize_with(slot + 1, || None);
        }
        self.slots[slot].get_or_insert_with(|| Box::new(Trace::new(TraceId([0; 16]))))
    }
}
