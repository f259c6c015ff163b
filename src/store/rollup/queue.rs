//! Waits in the router's queue: outcomes, deferrals with their reasons, depths, times; by class and by pool.

use std::collections::BTreeMap;

use compact_str::CompactString;

use super::values::Values;
use super::{Sign, Tally};
use crate::lifecycle::facts::{Leg, Queue};
use crate::lifecycle::stage::Phase;

/// Waits of one origin.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Queues {
    /// All of them.
    pub all: ClassWaits,
    /// By class and policy; both empty where they are not recorded.
    pub by_class: BTreeMap<(CompactString, CompactString), ClassWaits>,
    /// By the pool they waited for.
    pub by_pool: BTreeMap<Phase, ClassWaits>,
}

/// Waits of one kind.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ClassWaits {
    /// How many.
    pub count: u64,
    /// Waits, nanoseconds.
    pub waits: Values,
    /// Waits that were deferred, nanoseconds.
    pub deferred_waits: Values,
    /// Deferred ones; see [`ClassWaits::deferred`].
    deferred: u64,
    /// Those that say whether they were deferred.
    pub says_deferred: u64,
    /// By outcome, as written.
    pub outcomes: Tally<CompactString>,
    /// By reason, as written; empty for none.
    pub reasons: Tally<CompactString>,
    /// Waits by the reason they were deferred, nanoseconds.
    pub deferred_by: BTreeMap<CompactString, Values>,
    /// Refused ones by the limit they hit.
    pub rejected_by: Tally<CompactString>,
    /// Depths on entering.
    pub depth_in: Values,
    /// Depths on leaving.
    pub depth_out: Values,
    /// Depths on entering of those deferred, with themselves.
    waiting: Values,
}

impl Queues {
    pub(super) fn apply(&mut self, leg: &Leg, queue: &Queue, sign: Sign) {
        self.all.apply(queue, sign);
        entry(&mut self.by_class, (queue.class.clone(), queue.policy.clone()), queue, sign);
        entry(&mut self.by_pool, leg.phase, queue, sign);
    }
}

fn entry<K: Ord + Clone>(map: &mut BTreeMap<K, ClassWaits>, key: K, queue: &Queue, sign: Sign) {
    let waits = map.entry(key.clone()).or_default();
    waits.apply(queue, sign);
    if waits.count == 0 {
        map.remove(&key);
    }
}

impl ClassWaits {
    /// The most that waited at once, as far as the waits tell.
    pub fn deepest(&self) -> Option<u64> {
        self.depth_in.max().max(self.waiting.max()).max(self.depth_out.max())
    }

    /// How many were deferred; `None` where none of them says whether it was.
    pub fn deferred(&self) -> Option<u64> {
        (self.says_deferred > 0 || self.count == 0).then_some(self.deferred)
    }

    /// How many ended so; `None` where none of them says how it ended.
    pub fn ended(&self, outcome: &str) -> Option<u64> {
        (self.outcomes.get("") < self.count || self.count == 0).then(|| self.outcomes.get(outcome))
    }

    fn apply(&mut self, queue: &Queue, sign: Sign) {
        sign.step(&mut self.count);
        sign.value(&mut self.waits, queue.wait_ns);
        self.outcomes.step(queue.outcome.clone(), sign);
        self.reasons.step(queue.reason.clone(), sign);
        if let Some(deferred) = queue.deferred {
            sign.step(&mut self.says_deferred);
            if deferred {
                sign.step(&mut self.deferred);
                sign.value(&mut self.deferred_waits, queue.wait_ns);
                let waits = self.deferred_by.entry(queue.reason.clone()).or_default();
                sign.value(waits, queue.wait_ns);
                if waits.count() == 0 {
                    self.deferred_by.remove(&queue.reason);
                }
            }
        }
        if queue.outcome == "rejected" {
            self.rejected_by.step(queue.reason.clone(), sign);
        }
        for (depth, depths) in [(queue.depth_in, &mut self.depth_in), (queue.depth_out, &mut self.depth_out)] {
            if let Some(depth) = depth {
                sign.value(depths, depth);
            }
        }
        // Of the others it is what was before them.
        if let Some(depth) = queue.entered_at().filter(|depth| queue.depth_in < Some(*depth)) {
            sign.value(&mut self.waiting, depth);
        }
    }
}
