//! Rollups: every number that panes and reports show of a set of requests, added to and taken from one request at a time.
//!
//! What a span records and what is inferred or told by records is counted apart, never mixed. Every count is exact; so is
//! every quantile (nearest rank). Owns: the counting. Keeps out: which requests are in the set (filters, windows), how
//! numbers are shown (`view`, `report`).

mod depth;
mod dispatch;
mod overlap;
mod queue;
mod ranks;
mod selection;
mod sessions;
mod streaming;
#[cfg(test)]
pub(crate) mod tests;
pub mod values;
mod workers;

use std::collections::BTreeMap;
use std::ops::Bound;

use crate::lifecycle::facts::{Facts, Leg, State};
use crate::lifecycle::stage::{Origin, Outcome};
pub use depth::{Depths, Reading, TICK_NS};
pub use dispatch::{Dispatches, WorkerDispatches};
pub use overlap::Overlaps;
pub use queue::{ClassWaits, Queues};
pub use ranks::Rank;
pub use selection::{Selections, WorkerSelections};
pub use sessions::{Affinity, Session, Sessions};
pub use streaming::Streams;
use values::Values;
pub use workers::{Life, Workers};

/// Counts by a key; what comes to nothing goes.
#[derive(Clone, Debug, PartialEq)]
pub struct Tally<K: Ord>(BTreeMap<K, u64>);

impl<K: Ord> Default for Tally<K> {
    fn default() -> Self {
        Self(BTreeMap::new())
    }
}

impl<K: Ord> Tally<K> {
    fn step(&mut self, key: K, sign: Sign) {
        match sign {
            Sign::Add => *self.0.entry(key).or_default() += 1,
            Sign::Remove => {
                if let Some(count) = self.0.get_mut(&key) {
                    *count -= 1;
                    if *count == 0 {
                        self.0.remove(&key);
                    }
                }
            }
        }
    }

    /// The count of a key.
    pub fn get<Q: Ord + ?Sized>(&self, key: &Q) -> u64
    where
        K: std::borrow::Borrow<Q>,
    {
        self.0.get(key).copied().unwrap_or(0)
    }

    /// Keys and counts, by key.
    pub fn iter(&self) -> impl Iterator<Item = (&K, u64)> {
        self.0.iter().map(|(key, count)| (key, *count))
    }

    /// Adds all counts of another tally.
    fn merge(&mut self, other: &Self)
    where
        K: Clone,
    {
        for (key, count) in &other.0 {
            *self.0.entry(key.clone()).or_default() += count;
        }
    }

    /// Whether nothing is counted.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The first key.
    fn first(&self) -> Option<&K> {
        self.0.keys().next()
    }

    /// The last key.
    fn last(&self) -> Option<&K> {
        self.0.keys().next_back()
    }

    /// The last key before this one.
    fn before(&self, key: &K) -> Option<&K> {
        self.0.range(..key).next_back().map(|(key, _)| key)
    }

    /// The first key after this one.
    fn after(&self, key: &K) -> Option<&K> {
        self.0.range((Bound::Excluded(key), Bound::Unbounded)).next().map(|(key, _)| key)
    }

    /// The sum of all counts.
    pub fn total(&self) -> u64 {
        self.0.values().sum()
    }

    /// Keys and counts, the most frequent first.
    pub fn ranked(&self) -> Vec<(&K, u64)> {
        let mut ranked: Vec<_> = self.iter().collect();
        ranked.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
        ranked
    }
}

/// Whether a request is added or taken away.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Sign {
    Add,
    Remove,
}

impl Sign {
    fn step(self, count: &mut u64) {
        self.by(count, 1);
    }

    fn by(self, count: &mut u64, amount: u64) {
        *count = match self {
            Self::Add => *count + amount,
            Self::Remove => count.saturating_sub(amount),
        };
    }

    fn value(self, values: &mut Values, value: u64) {
        match self {
            Self::Add => values.add(value),
            Self::Remove => values.remove(value),
        }
    }

    fn cost(self, costs: &mut values::Costs, cost: f64) {
        match self {
            Self::Add => costs.add(cost),
            Self::Remove => costs.remove(cost),
        }
    }
}

/// How the requests of a set stand, and how long they took.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Requests {
    /// All.
    pub total: u64,
    /// Not ended.
    pub in_flight: u64,
    /// End missing although expected.
    pub lost: u64,
    /// Over, with spans: whatever spans tell of them has come.
    pub told: u64,
    /// Without a root, in flight or not.
    pub without_root: u64,
    /// With an `http-request`.
    pub with_http: u64,
    /// With an `http-request` and no root.
    pub http_without_root: u64,
    /// With a root and a frontend stream.
    pub streaming: u64,
    /// With more than one attempt.
    pub retried: u64,
    /// With a `request_end` record and a root.
    pub record_with_root: u64,
    /// With a `request_end` record and no root.
    pub record_without_root: u64,
    /// With a root and no `request_end` record.
    pub root_without_record: u64,
    /// In the order of [`Outcome::ALL`].
    pub by_outcome: [u64; 6],
    /// Root durations, all outcomes, nanoseconds.
    pub durations: Values,
    /// Root durations of successes, nanoseconds.
    pub success_durations: Values,
    /// From the root's start to its terminal moment, nanoseconds.
    pub terminals: Values,
    /// `ttft_ms` of `http-request`, of requests with a root, nanoseconds.
    pub http_ttft: Values,
    /// `ttft_ms` of `request_end`, of requests with a root, nanoseconds.
    pub record_ttft: Values,
    /// `total_time_ms` of `request_end`, of requests with a root, nanoseconds.
    pub record_total: Values,
}

impl Requests {
    fn apply(&mut self, facts: &Facts, sign: Sign) {
        let root = facts.has_root;
        for (is, count) in [
            (true, &mut self.total),
            (facts.state == State::InFlight, &mut self.in_flight),
            (facts.state == State::Lost, &mut self.lost),
            (facts.state != State::InFlight && facts.spans > 0, &mut self.told),
            (!root, &mut self.without_root),
            (facts.has_http, &mut self.with_http),
            (facts.has_http && !root, &mut self.http_without_root),
            (root && facts.stream.is_some(), &mut self.streaming),
            (facts.attempts() > 1, &mut self.retried),
            (facts.has_record && root, &mut self.record_with_root),
            (facts.has_record && !root, &mut self.record_without_root),
            (!facts.has_record && root, &mut self.root_without_record),
        ] {
            if is {
                sign.step(count);
            }
        }
        let Some(outcome) = facts.outcome else { return };
        if let Some(at) = Outcome::ALL.iter().position(|other| *other == outcome) {
            sign.step(&mut self.by_outcome[at]);
        }
        if let Some(total) = facts.total_ns() {
            sign.value(&mut self.durations, total);
            if outcome == Outcome::Success {
                sign.value(&mut self.success_durations, total);
            }
        }
        let since_start = facts.terminal_ns.map(|terminal| terminal.saturating_sub(facts.start_ns));
        let http_ttft = facts.ttft_ns.filter(|(_, origin)| *origin == Origin::Span).map(|(ttft, _)| ttft);
        for (value, values) in [
            (since_start, &mut self.terminals),
            (http_ttft, &mut self.http_ttft),
            (facts.record_ttft_ns, &mut self.record_ttft),
            (facts.record_total_ns, &mut self.record_total),
        ] {
            if let Some(value) = value {
                sign.value(values, value);
            }
        }
    }
}

/// Every number that panes and reports show of a set of requests.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Rollup {
    /// How they stand.
    pub requests: Requests,
    /// Waits, as queue spans record them.
    pub queue: Queues,
    /// Waits inferred from `kv_router.schedule`.
    pub queue_inferred: Queues,
    /// Choices, as selection spans record them.
    pub selection: Selections,
    /// Choices, as `router_selection` records tell them.
    pub selection_records: Selections,
    /// Attempts, as dispatch spans record them.
    pub dispatch: Dispatches,
    /// Attempts inferred from route spans.
    pub dispatch_inferred: Dispatches,
    /// Frontend streams.
    pub streams: Streams,
    /// Depth of the queue, as its spans saw it.
    pub depths: Depths,
    /// Depth of the queue, inferred from waits that overlap.
    pub overlaps: Overlaps,
    /// What became of each worker and rank.
    pub workers: Workers,
    /// Agent sessions.
    pub sessions: Sessions,
}

impl Rollup {
    /// Adds a request.
    pub fn add(&mut self, facts: &Facts) {
        self.apply(facts, Sign::Add);
    }

    /// About how many bytes a request takes here: a number in each of the multisets it is part of, a moment in the lines of
    /// depth, a turn in its session.
    pub fn size_for(facts: &Facts) -> usize {
        /// A time, in a list that is seven eighths full.
        const TIME: usize = 5;
        /// A cost, likewise.
        const COST: usize = 9;
        /// A moment of a depth: two entries of a map, which are two thirds full, and a share in the ticks.
        const DEPTHS: usize = 2 * 32 * 3 / 2 + 24;
        /// A wait that overlaps others: two moments of its ticks, and a share in these.
        const OVERLAPS: usize = 2 * 8 * 3 / 2 + 24;
        /// A turn of a session.
        const TURN: usize = 64 * 3 / 2;
        let ended = if facts.end_ns.is_some() { 6 } else { 0 };
        let streaming = if facts.stream.is_some() { 4 } else { 0 };
        let of_leg = |leg: &Leg| {
            let queue = leg.queue.as_ref().map_or(0, |queue| match queue.origin {
                Origin::Span => 6 * TIME + DEPTHS,
                _ => 4 * TIME + OVERLAPS,
            });
            let selection = if leg.selection.is_some() { 4 * COST } else { 0 };
            let dispatch = if leg.dispatch.is_some() { 2 * TIME } else { 0 };
            queue + selection + dispatch + if leg.admission.is_some() { TIME } else { 0 }
        };
        let session = if facts.session_id.is_empty() || facts.session_fallback { 0 } else { TURN };
        TIME * (ended + streaming) + session + facts.legs.iter().map(of_leg).sum::<usize>()
    }

    /// Takes away a request that was added with these very facts.
    pub fn remove(&mut self, facts: &Facts) {
        self.apply(facts, Sign::Remove);
    }

    /// Takes a request away that was added as it `was`, and adds it as it `is`. What counts the same either way stays: most
    /// of what arrives late changes little.
    pub fn change(&mut self, was: &Facts, is: &Facts) {
        let same_life = live_alike(was, is);
        let same_legs = was.legs == is.legs;
        for (facts, sign) in [(was, Sign::Remove), (is, Sign::Add)] {
            if !same_life || was.attempts() != is.attempts() {
                self.requests.apply(facts, sign);
            }
            if !same_life {
                self.streams.request(facts, sign);
            }
            if !same_life || !same_legs {
                self.workers.apply(facts, sign);
                self.sessions.apply(facts, sign);
            }
        }
        let same_end = was.outcome == is.outcome;
        for at in 0..was.legs.len().max(is.legs.len()) {
            let (before, after) = (was.legs.get(at), is.legs.get(at));
            if same_end && (same_legs || before == after) {
                continue;
            }
            before.inspect(|leg| self.leg(was, leg, after, Sign::Remove));
            after.inspect(|leg| self.leg(is, leg, before, Sign::Add));
        }
    }

    fn apply(&mut self, facts: &Facts, sign: Sign) {
        self.requests.apply(facts, sign);
        facts.legs.iter().for_each(|leg| self.leg(facts, leg, None, sign));
        self.streams.request(facts, sign);
        self.workers.apply(facts, sign);
        self.sessions.apply(facts, sign);
    }

    /// Counts a leg, but for what it has alike with `other`: that is counted and stays so.
    fn leg(&mut self, facts: &Facts, leg: &Leg, other: Option<&Leg>, sign: Sign) {
        let same_wait = other.is_some_and(|other| other.phase == leg.phase && other.queue == leg.queue);
        if let Some(queue) = leg.queue.as_ref().filter(|_| !same_wait) {
            let queues = if queue.origin == Origin::Span { &mut self.queue } else { &mut self.queue_inferred };
            queues.apply(leg, queue, sign);
            match queue.origin {
                Origin::Span => self.depths.apply(leg.phase, queue, sign),
                _ => self.overlaps.apply(leg.phase, queue, sign),
            }
        }
        let same_choice = other.is_some_and(|other| other.selection == leg.selection);
        if let Some(selection) = leg.selection.as_ref().filter(|_| !same_choice) {
            let recorded = selection.origin == Origin::Span;
            let selections = if recorded { &mut self.selection } else { &mut self.selection_records };
            selections.apply(selection, sign);
        }
        if let Some(dispatch) = &leg.dispatch {
            let recorded = dispatch.origin == Origin::Span;
            let dispatches = if recorded { &mut self.dispatch } else { &mut self.dispatch_inferred };
            dispatches.apply(facts, leg, dispatch, sign);
        } else if let Some(admission) = &leg.admission {
            self.dispatch.admission(admission, sign);
        }
    }
}

/// Whether two digests of a request tell the same of everything but its legs, as far as anything here counts it.
fn live_alike(was: &Facts, is: &Facts) -> bool {
    let ends = |facts: &Facts| (facts.state, facts.outcome, facts.start_ns, facts.end_ns, facts.terminal_ns);
    let parts = |facts: &Facts| {
        let known = (facts.has_root, facts.has_http, facts.has_record, facts.spans > 0);
        (known, facts.streaming, facts.session_fallback)
    };
    let times = |facts: &Facts| (facts.ttft_ns, facts.record_ttft_ns, facts.record_total_ns);
    let tokens = |facts: &Facts| (facts.input_tokens, facts.output_tokens, facts.cached_tokens);
    ends(was) == ends(is)
        && parts(was) == parts(is)
        && times(was) == times(is)
        && tokens(was) == tokens(is)
        && was.stream == is.stream
        && was.outcome_word == is.outcome_word
        && was.session_id == is.session_id
        && was.request_id == is.request_id
}
