//! Pools of workers: their ranks, what is booked on them, and the choice among them by cost.
//!
//! Owns: load and cache of each rank, the filters before the choice, the score (prompt blocks still to be read plus the
//! blocks' worth of decoding going on; lower is better). Keeps out: time and events (`life`, `fate`).

use crate::lifecycle::ids::Worker as WorkerRank;
use crate::lifecycle::stage::Phase;

use super::cache::PrefixCache;
use super::chance::Chance;
use super::load::{BLOCK, Class};
use super::queue::RouterQueue;

/// Booked prompt tokens at which a rank has no more room.
const ROOM_TOKENS: u64 = 900;
/// Sequences at which a rank's last report calls it overloaded.
const BUSY: u32 = 8;
/// Sequences beyond which a rank's own gate refuses more.
pub const GATE: u32 = 10;
/// Blocks a rank's cache holds.
const CACHE_BLOCKS: usize = 4_000;
/// Share of a decoding sequence's blocks that counts as cost.
const DECODE_WEIGHT: f64 = 0.125;
/// Costs this many blocks apart are told apart with odds of e to 1 by the router's temperature.
const TEMPERATURE: f64 = 1.5;
/// A choice is drawn by temperature this often; else the least cost wins.
const WARM: f64 = 0.3;

/// A worker process, alive or gone.
pub struct Worker {
    /// Its instance id.
    pub id: u64,
    /// Index of its exporter.
    pub process: usize,
    /// The pool it serves.
    pub pool: usize,
    /// Its place in the pool; a successor takes the same place under a new id.
    pub place: u32,
    /// Whether it works.
    pub alive: bool,
    /// Whether discovery still lists it.
    pub listed: bool,
}

/// One data-parallel rank of a worker.
pub struct Rank {
    /// Index of its worker.
    pub worker: usize,
    /// Its number.
    pub rank: u32,
    /// Sequences it works on.
    pub active: u32,
    /// `active` as last reported to the router.
    pub reported: u32,
    /// Prompt tokens booked and not read yet.
    pub prefill_tokens: u64,
    /// Tokens of the sequences it decodes.
    pub context_tokens: u64,
    /// When it has read every prompt given to it.
    pub free_at_ns: u64,
    /// Its prefix cache.
    pub cache: PrefixCache,
}

/// Workers that one router chooses from.
pub struct Pool {
    /// What its legs are called on dispatches.
    pub phase: Phase,
    /// `dynamo.router.pool.role`: aggregated pools say decode.
    pub role: Phase,
    /// Every rank there ever was.
    pub ranks: Vec<Rank>,
    /// Those who wait for it.
    pub queue: RouterQueue,
    /// Those whom its router lets through at once, in the moment that takes.
    pub passing: u64,
    /// Whether the router is about to look at its queue again.
    pub turn_due: bool,
}

/// A rank that could be chosen, and why it costs what it does.
#[derive(Clone, Debug)]
pub struct Candidate {
    /// Index into [`Pool::ranks`].
    pub index: usize,
    /// Its name.
    pub worker: WorkerRank,
    /// The cost; lower is better.
    pub score: f64,
    /// Blocks it holds already.
    pub overlap: u64,
    /// Prompt tokens it would have to read, what is booked included.
    pub prefill_tokens: u64,
    /// The cost of its decoding.
    pub decode_blocks: f64,
    /// Sequences it works on.
    pub active: u32,
}

/// A choice and everything that led to it.
#[derive(Clone, Debug)]
pub struct Choice {
    /// All candidates, ascending by score.
    pub candidates: Vec<Candidate>,
    /// Index of the chosen one.
    pub chosen: usize,
    /// Filtered ranks, by `ledger::FILTERS`.
    pub filtered: [u64; 5],
}

impl Choice {
    /// The chosen candidate.
    pub fn chosen(&self) -> &Candidate {
        &self.candidates[self.chosen]
    }

    /// Who is reported best: the chosen one when none costs less.
    pub fn best(&self) -> &Candidate {
        let least = &self.candidates[0];
        if self.chosen().score <= least.score { self.chosen() } else { least }
    }

    /// Runner-up minus best; 0 with one candidate.
    pub fn margin(&self) -> f64 {
        self.candidates.get(1).map_or(0.0, |second| second.score - self.candidates[0].score)
    }

    /// Ranks before the policy filter.
    pub fn eligible(&self) -> u64 {
        self.candidates.len() as u64 + self.filtered[4]
    }
}

impl Rank {
    /// An idle rank.
    pub fn new(worker: usize, rank: u32) -> Self {
        Self {
            worker,
            rank,
            active: 0,
            reported: 0,
            prefill_tokens: 0,
            context_tokens: 0,
            free_at_ns: 0,
            cache: PrefixCache::new(CACHE_BLOCKS),
        }
    }

    fn overloaded(&self) -> bool {
        self.reported >= BUSY || self.prefill_tokens >= ROOM_TOKENS
    }
}

impl Pool {
    /// Everybody in its router's queue: `depth.in` before one enters, `depth.out` after one left.
    pub fn depth(&self) -> u64 {
        self.queue.depth() + self.passing
    }

    /// Whether any rank can take one more.
    pub fn has_room(&self, workers: &[Worker]) -> bool {
        self.ranks.iter().any(|rank| workers[rank.worker].alive && !rank.overloaded())
    }

    /// Chooses a rank for a prompt. `None` when no rank passes the filters.
    pub fn choose(
        &self,
        workers: &[Worker],
        class: Class,
        input: u64,
        blocks: &[u64],
        chance: &mut Chance,
    ) -> Option<Choice> {
        let mut filtered = [0; 5];
        let mut candidates = Vec::new();
        for (index, rank) in self.ranks.iter().enumerate() {
            let worker = &workers[rank.worker];
            if !worker.listed {
                continue;
            }
            if !worker.alive {
                filtered[3] += 1;
            } else if rank.overloaded() {
                filtered[2] += 1;
            } else {
                let worker = WorkerRank { id: worker.id, rank: Some(rank.rank) };
                candidates.push(rank.cost(index, worker, input, blocks));
            }
        }
        // The composed policy keeps long work off the busiest rank as long as there are others.
        if class == Class::Batch && candidates.len() > 2 {
            let busiest = (0..candidates.len()).max_by_key(|at| candidates[*at].active)?;
            if candidates[busiest].active > 2 {
                candidates.remove(busiest);
                filtered[4] += 1;
            }
        }
        candidates.sort_by(|a, b| a.score.total_cmp(&b.score));
        let chosen = pick(&candidates, chance)?;
        Some(Choice { candidates, chosen, filtered })
    }
}

impl Rank {
    fn cost(&self, index: usize, worker: WorkerRank, input: u64, blocks: &[u64]) -> Candidate {
        let overlap = self.cache.overlap(blocks);
        let prefill_tokens = self.prefill_tokens + input.saturating_sub(overlap * BLOCK);
        let decode_blocks = (self.context_tokens as f64 * DECODE_WEIGHT).round() / BLOCK as f64;
        let score = prefill_tokens as f64 / BLOCK as f64 + decode_blocks;
        Candidate { index, worker, score, overlap, prefill_tokens, decode_blocks, active: self.active }
    }
}

/// Draws one by cost: equals with equal odds, and now and then a dearer one.
fn pick(candidates: &[Candidate], chance: &mut Chance) -> Option<usize> {
    let least = candidates.first()?.score;
    let warm = chance.happens(WARM);
    let weight = |one: &Candidate| {
        if warm { (-(one.score - least) / TEMPERATURE).exp() } else { f64::from(u8::from(one.score <= least)) }
    };
    let mut left = chance.unit() * candidates.iter().map(weight).sum::<f64>();
    for (index, candidate) in candidates.iter().enumerate() {
        left -= weight(candidate);
        if left < 0.0 {
            return Some(index);
        }
    }
    Some(0)
}
