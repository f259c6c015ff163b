//! What became of each worker and rank: who is at it, how soon it answered, when it was heard of last, whether it is lost.

use std::collections::BTreeMap;

use super::values::Values;
use super::{Sign, Tally};
use crate::lifecycle::facts::{Facts, Leg, State};
use crate::lifecycle::ids::Worker;
use crate::lifecycle::stage::{Outcome, Phase};

/// Moments are kept to a tenth of a second.
const TICK_NS: u64 = 100_000_000;

/// Every worker and rank that a leg went to.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Workers {
    lives: BTreeMap<Worker, Life>,
    unplaced: u64,
}

/// One worker's rank.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Life {
    /// Requests with a leg to it.
    pub requests: u64,
    /// Legs that went to it, dispatched or only chosen.
    pub legs: u64,
    /// Requests in flight that are at it: their newest leg went to it.
    pub in_flight: u64,
    /// Times to first token of the requests that it took a leg of, nanoseconds.
    pub ttft: Values,
    /// Moments at which it must have been there.
    heard: Tally<u64>,
    /// Moments at which it was found lost.
    lost: Tally<u64>,
}

impl Life {
    /// When it was last heard of, nanoseconds since the epoch, to a tenth of a second: it took a leg, or finished one.
    pub fn last_seen_ns(&self) -> Option<u64> {
        self.heard.last().map(|tick| tick * TICK_NS)
    }

    /// Whether it was found lost and nothing was heard of it since.
    pub fn has_vanished(&self) -> bool {
        self.lost.last() > self.heard.last()
    }
}

impl Workers {
    pub(super) fn apply(&mut self, facts: &Facts, sign: Sign) {
        let newest = facts.legs.last().and_then(Leg::worker).filter(|_| facts.state == State::InFlight);
        if facts.state == State::InFlight && newest.is_none() {
            sign.step(&mut self.unplaced);
        }
        for (at, leg) in facts.legs.iter().enumerate() {
            let Some(worker) = leg.worker() else { continue };
            let life = self.lives.entry(worker).or_default();
            sign.step(&mut life.legs);
            if !facts.legs[..at].iter().any(|before| before.worker() == Some(worker)) {
                sign.step(&mut life.requests);
                if newest == Some(worker) {
                    sign.step(&mut life.in_flight);
                }
                let served = || facts.legs[at..].iter().any(|leg| leg.served_by() == Some(worker));
                if let Some((ttft, _)) = facts.ttft_ns.filter(|_| served()) {
                    sign.value(&mut life.ttft, ttft);
                }
            }
            if let Some(time_ns) = heard_ns(facts, leg) {
                life.heard.step(time_ns / TICK_NS, sign);
            }
            if let Some(time_ns) = lost_ns(facts, at) {
                // The tick after: what it did in the moment before it was lost is no sign that it came back.
                life.lost.step(time_ns / TICK_NS + 1, sign);
            }
            if life.legs == 0 {
                self.lives.remove(&worker);
            }
        }
    }

    /// Requests in flight that are at none as far as is known: where they are is told when spans of theirs end.
    pub fn unplaced(&self) -> u64 {
        self.unplaced
    }

    /// Workers and ranks, by id.
    pub fn iter(&self) -> impl Iterator<Item = (Worker, &Life)> {
        self.lives.iter().map(|(worker, life)| (*worker, life))
    }

    /// One of them.
    pub fn get(&self, worker: Worker) -> Option<&Life> {
        self.lives.get(&worker)
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.lives.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.lives.is_empty()
    }
}

/// When a leg last showed that its worker was there: it finished the answer, else it began it or took the leg.
fn heard_ns(facts: &Facts, leg: &Leg) -> Option<u64> {
    let dispatch = leg.dispatch.as_ref()?;
    // Of several legs of one attempt, one that is not known may well have been the prefill.
    let of_attempt = || facts.legs.iter().filter(|other| other.dispatch.is_some() && other.attempt == leg.attempt);
    let answers = match leg.phase {
        Phase::Prefill => false,
        Phase::Unknown => of_attempt().nth(1).is_none(),
        Phase::Decode | Phase::Aggregated => true,
    };
    let answered = answers && facts.outcome == Some(Outcome::Success) && !dispatch.lost_worker();
    let is_last = facts.last_leg(leg.phase).is_some_and(|last| last.attempt == leg.attempt);
    if let (true, true, Some(end_ns)) = (answered, is_last, facts.end_ns) {
        return Some(end_ns);
    }
    // A route span alone ends with the attempt: when it ended badly, only its beginning is a sign of life.
    let ended_badly =
        dispatch.result.is_empty() && !matches!(dispatch.attempt_outcome.as_str(), "success" | "cancelled");
    let hand_over_ns = if ended_badly { 0 } else { dispatch.duration_ns };
    let taken_ns = dispatch.taken().then(|| dispatch.start_ns.saturating_add(hand_over_ns));
    // However badly it ended: nobody else can have begun the answer.
    let alone =
        answers && !dispatch.refused() && facts.legs.iter().filter(|other| other.phase == leg.phase).count() == 1;
    let first_token_ns = facts.ttft_ns.filter(|_| alone).map(|(ttft, _)| facts.start_ns.saturating_add(ttft));
    taken_ns.max(first_token_ns)
}

/// When the worker of a leg was found lost: the next attempt began, or the request ended.
fn lost_ns(facts: &Facts, at: usize) -> Option<u64> {
    let leg = &facts.legs[at];
    let dispatch = leg.dispatch.as_ref().filter(|dispatch| dispatch.lost_worker())?;
    let began = |next: &Leg| {
        let queued = next.queue.as_ref().map(|queue| queue.start_ns);
        queued.or_else(|| Some(next.dispatch.as_ref()?.start_ns))
    };
    let again = facts.legs[at + 1..].iter().filter(|next| next.attempt > leg.attempt).find_map(began);
    let handed_over = dispatch.start_ns.saturating_add(dispatch.duration_ns);
    Some(again.or(facts.end_ns).unwrap_or(handed_over).max(handed_over))
}
