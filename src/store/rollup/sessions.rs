//! Agent sessions: their turns in order, tokens, outcomes, and whether a turn went to the worker of the turn before.

use std::collections::{BTreeMap, BTreeSet};

use compact_str::CompactString;

use super::{Sign, Tally};
use crate::lifecycle::account::chunk_of;
use crate::lifecycle::facts::{Facts, Leg, State};
use crate::lifecycle::ids::{Rid, Worker};

/// Every session that a request names. The producer's stand-in for a session (the request's own id) is none.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Sessions {
    by_id: BTreeMap<Rid, Session>,
    /// By their newest turn.
    newest: BTreeSet<(u64, Rid)>,
    /// Affinity over all of them.
    pub affinity: Affinity,
    /// Turns of all of them.
    pub turns: u64,
}

/// One session.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Session {
    /// Requests.
    pub count: u64,
    /// Not ended.
    pub in_flight: u64,
    /// By how they ended, as shown: the root's outcome, or what is known without a root.
    pub outcomes: Tally<CompactString>,
    /// Prompt tokens, summed over the turns that say so.
    pub input_tokens: u64,
    /// How many do.
    pub turns_of_input: u64,
    /// Generated tokens, summed over the turns that say so.
    pub output_tokens: u64,
    /// How many do.
    pub turns_of_output: u64,
    /// Prompt tokens found in the cache, summed over the turns that say so.
    pub cached_tokens: u64,
    /// Prompt tokens of the turns that say how many were found in the cache.
    pub input_of_cached: u64,
    /// Whether turns went to the worker of the turn before.
    pub affinity: Affinity,
    turns: Tally<Turn>,
}

/// A turn: when it began, its request, and the worker that read its prompt.
type Turn = (u64, Rid, Option<Worker>);

/// How often a turn went to the worker of the turn before, where both are known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Affinity {
    /// To the same worker and rank.
    pub kept: u64,
    /// To another.
    pub broken: u64,
}

impl Affinity {
    fn pair(&mut self, before: Option<&Turn>, after: Option<&Turn>, times: u64, sign: Sign) {
        if let (Some((.., Some(before))), Some((.., Some(after)))) = (before, after) {
            sign.by(if before == after { &mut self.kept } else { &mut self.broken }, times);
        }
    }
}

impl Session {
    /// When its newest turn began, nanoseconds since the epoch.
    pub fn newest_ns(&self) -> u64 {
        self.turns.last().map_or(0, |turn| turn.0)
    }

    /// The worker that read the newest prompt.
    pub fn worker(&self) -> Option<Worker> {
        self.turns.last().and_then(|turn| turn.2)
    }

    fn turn(&mut self, turn: Turn, sign: Sign) {
        let was = self.turns.get(&turn);
        // As long as other turns stand at the same place, its neighbours stay as they are.
        match sign {
            Sign::Add if was > 0 => self.affinity.pair(Some(&turn), Some(&turn), 1, Sign::Add),
            Sign::Remove if was > 1 => self.affinity.pair(Some(&turn), Some(&turn), 1, Sign::Remove),
            Sign::Remove if was == 0 => {}
            _ => {
                let (before, after) = (self.turns.before(&turn), self.turns.after(&turn));
                let mut affinity = self.affinity;
                let between = if sign == Sign::Add { Sign::Remove } else { Sign::Add };
                // Added first and taken away after, so that no count is ever below zero.
                let steps = [(before, Some(&turn), sign), (Some(&turn), after, sign), (before, after, between)];
                let (first, second): (Vec<_>, Vec<_>) = steps.into_iter().partition(|(.., sign)| *sign == Sign::Add);
                for (left, right, sign) in first.into_iter().chain(second) {
                    affinity.pair(left, right, 1, sign);
                }
                self.affinity = affinity;
            }
        }
        self.turns.step(turn, sign);
    }
}

impl Sessions {
    pub(super) fn apply(&mut self, facts: &Facts, sign: Sign) {
        if facts.session_id.is_empty() || facts.session_fallback {
            return;
        }
        let session = self.by_id.entry(facts.session_id.clone()).or_default();
        let (was, was_newest) = (session.affinity, session.newest_ns());
        sign.step(&mut session.count);
        sign.by(&mut session.in_flight, u64::from(facts.state == State::InFlight));
        session.outcomes.step(facts.outcome_text().into(), sign);
        let told = |tokens: Option<u64>| (tokens.unwrap_or(0), u64::from(tokens.is_some()));
        let ((input, of_input), (output, of_output)) = (told(facts.input_tokens), told(facts.output_tokens));
        sign.by(&mut session.input_tokens, input);
        sign.by(&mut session.turns_of_input, of_input);
        sign.by(&mut session.output_tokens, output);
        sign.by(&mut session.turns_of_output, of_output);
        if let (Some(cached), Some(input)) = (facts.cached_tokens, facts.input_tokens) {
            sign.by(&mut session.cached_tokens, cached);
            sign.by(&mut session.input_of_cached, input);
        }
        session.turn((facts.start_ns, facts.request_id.clone(), facts.legs.iter().find_map(Leg::worker)), sign);
        let (is, is_newest, gone) = (session.affinity, session.newest_ns(), session.count == 0);
        self.affinity.kept = (self.affinity.kept + is.kept).saturating_sub(was.kept);
        self.affinity.broken = (self.affinity.broken + is.broken).saturating_sub(was.broken);
        sign.step(&mut self.turns);
        self.newest.remove(&(was_newest, facts.session_id.clone()));
        if gone {
            self.by_id.remove(&facts.session_id);
        } else {
            self.newest.insert((is_newest, facts.session_id.clone()));
        }
    }

    /// The bytes of the sessions themselves, about; their turns are counted with their requests. Nearly every map of a
    /// session is one leaf of eleven places, few of them taken.
    pub fn memory(&self) -> usize {
        const LEAF: usize = 11;
        const SESSION: usize = chunk_of::<(CompactString, u64)>(LEAF)
            + chunk_of::<(Turn, u64)>(LEAF)
            + (size_of::<(Rid, Session)>() + size_of::<(u64, Rid)>()) * 3 / 2;
        self.by_id.len() * SESSION
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.by_id.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.by_id.is_empty()
    }

    /// Sessions, the one with the newest turn first.
    pub fn newest(&self) -> impl Iterator<Item = (&Rid, &Session)> {
        self.newest.iter().rev().filter_map(|(_, id)| self.by_id.get_key_value(id))
    }

    /// One of them.
    pub fn get(&self, id: &str) -> Option<&Session> {
        self.by_id.get(id)
    }
}
