//! The load: sessions and single requests arriving in waves, and what each will ask for. Keeps out: what becomes of them.

use super::chance::{Chance, mix};

/// Tokens in a block of the prefix cache.
pub const BLOCK: u64 = 16;
/// From one crest of the load to the next, nanoseconds.
const WAVE_NS: f64 = 30e9;
/// How far the rate swings around its mean.
const SWING: f64 = 0.85;
/// Mean turns of a session (the first included), by the odds that another follows.
const ANOTHER_TURN: f64 = 0.6;

/// A policy class of the router's queue.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Class {
    /// Everything not said otherwise.
    Default,
    /// Short and streamed.
    Latency,
    /// Long and in no hurry.
    Batch,
}

impl Class {
    /// All classes.
    pub const ALL: [Self; 3] = [Self::Default, Self::Latency, Self::Batch];

    /// `dynamo.router.queue.class`.
    pub fn word(self) -> &'static str {
        match self {
            Self::Default => "default",
            Self::Latency => "latency",
            Self::Batch => "batch",
        }
    }
}

/// What the frontend will find wrong with a request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Defect {
    /// The body cannot be read.
    Body,
    /// The tools asked for cannot be honoured.
    Tools,
}

/// What a request asks for and how patient its client is.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The session it belongs to; none for a single request.
    pub session: Option<u64>,
    /// Turn within the session.
    pub turn: u32,
    /// Policy class.
    pub class: Class,
    /// Whether the answer is streamed.
    pub streaming: bool,
    /// Prompt tokens.
    pub input: u64,
    /// Tokens the answer would have.
    pub output: u64,
    /// Hashes of the prompt's blocks.
    pub blocks: Vec<u64>,
    /// The client leaves when no token came within this, nanoseconds.
    pub patience_ns: Option<u64>,
    /// The client leaves after this many tokens.
    pub leaves_after: Option<u64>,
    /// What is wrong with it.
    pub defect: Option<Defect>,
    /// The engine will never answer it.
    pub stalls: bool,
    /// The engine will fail after this many tokens.
    pub fails_after: Option<u64>,
    /// A lost worker may be replaced by another.
    pub migratable: bool,
}

/// A session between two of its turns.
#[derive(Clone, Debug)]
pub struct Session {
    /// Its number.
    pub number: u64,
    class: Class,
    turn: u32,
    context: u64,
}

/// Draws arrivals and plans.
pub struct Load {
    chance: Chance,
    seed: u64,
    start_ns: u64,
    rate: f64,
    next_session: u64,
}

impl Load {
    /// A load of `rate` requests a second on average, beginning at `start_ns`.
    pub fn new(seed: u64, start_ns: u64, rate: f64) -> Self {
        Self { chance: Chance::new(seed, 1), seed, start_ns, rate, next_session: 0 }
    }

    /// When the next session or single request arrives, after `now_ns`.
    pub fn next_arrival(&mut self, now_ns: u64) -> u64 {
        // Half of the arrivals are sessions of several turns, so arrivals are fewer than requests.
        let arrivals = self.rate / (0.5 + 0.5 / (1.0 - ANOTHER_TURN * 0.75));
        let mut at = now_ns as f64;
        loop {
            at += self.chance.exponential(1e9 / (arrivals * (1.0 + SWING)));
            let wave = 1.0 + SWING * ((at - self.start_ns as f64) / WAVE_NS * std::f64::consts::TAU).sin();
            if self.chance.happens(wave / (1.0 + SWING)) {
                return (at as u64).max(now_ns + 1);
            }
        }
    }

    /// What arrives: a single request, or the first turn of a new session.
    pub fn arrival(&mut self) -> (Plan, Session) {
        let class = match self.chance.unit() {
            x if x < 0.6 => Class::Default,
            x if x < 0.85 => Class::Latency,
            _ => Class::Batch,
        };
        self.next_session += 1;
        let session = Session { number: self.next_session, class, turn: 0, context: 0 };
        let in_session = self.chance.happens(0.5);
        let plan = self.plan(&session, in_session);
        (plan, session)
    }

    /// The session's next turn after a successful one, and how long its user thinks; `None` when it is over.
    pub fn follow_up(&mut self, session: &mut Session, input: u64, output: u64) -> Option<(Plan, u64)> {
        if !self.chance.happens(ANOTHER_TURN) || input + output > 6_000 {
            return None;
        }
        session.turn += 1;
        session.context = input + output;
        let plan = self.plan(session, true);
        let think = self.chance.around(2.5, 1.6);
        Some((plan, (think * 1e9) as u64))
    }

    fn plan(&mut self, session: &Session, in_session: bool) -> Plan {
        let chance = &mut self.chance;
        let (system, asked, output, streamed) = match session.class {
            Class::Default => (320, chance.around(420.0, 1.7), chance.around(90.0, 1.7), 0.75),
            Class::Latency => (160, chance.around(180.0, 1.5), chance.around(40.0, 1.5), 1.0),
            Class::Batch => (96, chance.around(1_600.0, 1.4), chance.around(160.0, 1.5), 0.2),
        };
        let context = if session.turn == 0 { system } else { session.context };
        let input = context + (asked as u64).clamp(12, 6_000);
        let output = (output as u64).clamp(4, 700);
        let streaming = chance.happens(streamed);
        let patience = match session.class {
            Class::Latency => Some(chance.around(1.6, 1.8)),
            Class::Default if chance.happens(0.7) => Some(chance.around(2.4, 1.8)),
            _ => None,
        };
        // Some think better of it at once.
        let patience_ms = if chance.happens(0.02) {
            Some(1.3 + 3.0 * chance.unit())
        } else {
            patience.map(|seconds| seconds.max(0.05) * 1e3)
        };
        let leaves = streaming && chance.happens(0.1);
        let leaves_after = leaves.then(|| chance.around(output as f64 / 3.0, 2.0) as u64).filter(|n| *n < output - 1);
        let defect = match chance.unit() {
            x if x < 0.012 => Some(Defect::Body),
            x if x < 0.02 => Some(Defect::Tools),
            _ => None,
        };
        let fails_after = chance.happens(0.004).then(|| chance.between(1, output - 1));
        Plan {
            session: in_session.then_some(session.number),
            turn: session.turn,
            class: session.class,
            streaming,
            input,
            output,
            blocks: blocks(self.seed, session, system, input),
            patience_ns: patience_ms.map(|ms| (ms * 1e6) as u64),
            leaves_after,
            defect: defect.filter(|_| session.turn == 0),
            stalls: chance.happens(0.003),
            fails_after,
            migratable: chance.happens(0.8),
        }
    }
}

/// The hashes of a prompt's blocks: the class's system prompt first, then the session's own words. A full block is the
/// same in every turn; the last, partial one is not.
fn blocks(seed: u64, session: &Session, system: u64, input: u64) -> Vec<u64> {
    let count = input.div_ceil(BLOCK);
    (0..count)
        .map(|index| {
            let whole = (index + 1) * BLOCK <= input;
            let owner = if index < system / BLOCK { session.class as u64 } else { 1_000 + session.number };
            let turn = if whole { 0 } else { u64::from(session.turn) + 1 };
            mix(seed ^ mix(owner ^ mix(index ^ mix(turn))))
        })
        .collect()
}
