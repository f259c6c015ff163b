//! The discrete-event simulation: one heap of things to come, one clock that jumps from one to the next.
//!
//! Owns: the cluster's state and the order of events. Everything random comes from the seed; nothing reads a clock. The
//! parts: `load` (who comes and what for), `queue` and `pool` (the routers' state), `life` (the way to a
//! worker), `work` (what is done there), `fate` (what goes wrong). Keeps out: how it is told (`emit`).

pub mod cache;
pub mod chance;
mod fate;
mod life;
pub mod load;
pub mod pool;
pub mod queue;
pub mod request;
mod work;

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

use crate::lifecycle::stage::Phase;

use super::emit::Emitter;
use super::{Delivery, Settings, Shape, Signal};
use chance::Chance;
use load::{Load, Plan, Session};
use pool::{Pool, Rank, Worker};
use queue::RouterQueue;
use request::Request;

/// How often ranks report their load to the router.
const REPORT_NS: u64 = 250_000_000;

/// Something that will happen.
enum Event {
    /// A session or single request arrives.
    Arrival,
    /// A session's next turn arrives.
    Turn(Box<(Plan, Session)>),
    /// Something becomes of a request, unless its era has passed.
    Step { request: u64, era: u32, step: Step },
    /// The client of a request leaves.
    Leaves { request: u64, tokens: Option<u64> },
    /// A router looks at its queue.
    Router(usize),
    /// Ranks report their load.
    Report,
    /// A worker dies.
    Dies,
    /// A dead worker is no longer listed.
    Unlisted(usize),
    /// A dead worker's successor is up.
    Returns { pool: usize, place: u32 },
    /// A process flushes.
    Flush(usize, Signal),
}

/// The next step of a request.
#[derive(Clone, Copy)]
enum Step {
    /// Preprocessing is over.
    Prepared,
    /// It enters a router's queue with its next leg of this phase.
    Enters(Phase),
    /// The router lets it through at once.
    Admitted,
    /// The worker has answered the dispatch.
    Answered,
    /// The prefill leg is done.
    Prefilled,
    /// A token comes, the first of its leg.
    FirstToken,
    /// All tokens have come.
    Complete,
    /// The engine fails.
    EngineFails,
    /// The frontend waits no longer.
    TimesOut,
}

struct Timed {
    at_ns: u64,
    seq: u64,
    event: Event,
}

impl PartialEq for Timed {
    fn eq(&self, other: &Self) -> bool {
        (self.at_ns, self.seq) == (other.at_ns, other.seq)
    }
}

impl Eq for Timed {}

impl PartialOrd for Timed {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Timed {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        (self.at_ns, self.seq).cmp(&(other.at_ns, other.seq))
    }
}

/// The simulated cluster.
pub struct World {
    now_ns: u64,
    seq: u64,
    coming: BinaryHeap<Reverse<Timed>>,
    chance: Chance,
    load: Load,
    accepting: bool,
    requests: BTreeMap<u64, Request>,
    next_request: u64,
    pools: Vec<Pool>,
    workers: Vec<Worker>,
    pub(super) out: Emitter,
}

impl World {
    /// A cluster that begins to serve at `start_ns`.
    pub fn new(settings: &Settings, start_ns: u64) -> Self {
        let mut world = Self {
            now_ns: start_ns,
            seq: 0,
            coming: BinaryHeap::new(),
            chance: Chance::new(settings.seed, 3),
            load: Load::new(settings.seed, start_ns, settings.rate),
            accepting: true,
            requests: BTreeMap::new(),
            next_request: 0,
            pools: Vec::new(),
            workers: Vec::new(),
            out: Emitter::new(settings, "meta-llama/Llama-3.1-8B-Instruct"),
        };
        world.out.start("dynamo-frontend", "frontend-0".to_owned());
        world.clocks(0);
        let pools = match settings.shape() {
            Shape::Aggregated { workers } => vec![(Phase::Aggregated, Phase::Decode, workers)],
            Shape::Disaggregated { prefill, decode } => {
                vec![(Phase::Prefill, Phase::Prefill, prefill), (Phase::Decode, Phase::Decode, decode)]
            }
        };
        for (phase, role, count) in pools {
            let queue = RouterQueue::new(count as usize);
            world.pools.push(Pool { phase, role, ranks: Vec::new(), queue, passing: 0, turn_due: false });
            for place in 0..count {
                world.start_worker(world.pools.len() - 1, place);
            }
        }
        let first = world.load.next_arrival(start_ns);
        world.at(first, Event::Arrival);
        world.at(start_ns + REPORT_NS, Event::Report);
        let first_death = world.chance.between(32_000_000_000, 42_000_000_000);
        world.at(start_ns + first_death, Event::Dies);
        world
    }

    /// Lets everything happen that is due by `until_ns`.
    pub fn advance(&mut self, until_ns: u64, out: &mut Vec<Delivery>) {
        while self.coming.peek().is_some_and(|Reverse(next)| next.at_ns <= until_ns) {
            let Some(Reverse(next)) = self.coming.pop() else { break };
            self.now_ns = next.at_ns;
            self.happen(next.event, out);
        }
        self.now_ns = self.now_ns.max(until_ns);
    }

    /// The virtual time.
    pub fn now_ns(&self) -> u64 {
        self.now_ns
    }

    /// Takes no more requests from now on.
    pub fn close(&mut self) {
        self.accepting = false;
    }

    /// Whether every request has ended and everything about it was handed over.
    pub fn done(&self) -> bool {
        !self.accepting && self.requests.is_empty() && self.out.idle()
    }

    fn at(&mut self, at_ns: u64, event: Event) {
        self.seq += 1;
        self.coming.push(Reverse(Timed { at_ns: at_ns.max(self.now_ns), seq: self.seq, event }));
    }

    fn clocks(&mut self, process: usize) {
        for signal in [Signal::Traces, Signal::Logs] {
            let first = self.out.first_flush(signal, self.now_ns);
            self.at(first, Event::Flush(process, signal));
        }
    }

    fn start_worker(&mut self, pool: usize, place: u32) {
        let (service, name, ranks) = match self.pools[pool].phase {
            Phase::Prefill => ("dynamo-prefill", "prefill", 2),
            Phase::Decode => ("dynamo-decode", "decode", 2),
            _ => ("dynamo-worker", "worker", 2),
        };
        let process = self.out.start(service, format!("{name}-{place}"));
        self.clocks(process);
        // Real ids use all 64 bits: beyond what a double or a signed integer holds.
        let id = self.chance.between(1 << 58, u64::MAX);
        self.workers.push(Worker { id, process, pool, place, alive: true, listed: true });
        let worker = self.workers.len() - 1;
        self.pools[pool].ranks.extend((0..ranks).map(|rank| Rank::new(worker, rank)));
        self.wake(pool);
    }

    fn happen(&mut self, event: Event, out: &mut Vec<Delivery>) {
        match event {
            Event::Arrival => {
                if self.accepting {
                    let (plan, session) = self.load.arrival();
                    self.arrive(plan, session);
                    let next = self.load.next_arrival(self.now_ns);
                    self.at(next, Event::Arrival);
                }
            }
            Event::Turn(turn) => {
                if self.accepting {
                    self.arrive(turn.0, turn.1);
                }
            }
            Event::Step { request, era, step } => self.step(request, era, step),
            Event::Leaves { request, tokens } => self.leaves(request, tokens),
            Event::Router(pool) => self.router_turn(pool),
            Event::Report => self.report(),
            Event::Dies => self.a_worker_dies(),
            Event::Unlisted(worker) => self.workers[worker].listed = false,
            Event::Returns { pool, place } => self.start_worker(pool, place),
            Event::Flush(process, signal) => {
                if let Some(next) = self.out.flush(process, signal, self.now_ns, out) {
                    self.at(next, Event::Flush(process, signal));
                }
            }
        }
    }

    fn report(&mut self) {
        for pool in 0..self.pools.len() {
            for rank in &mut self.pools[pool].ranks {
                rank.reported = rank.active;
            }
            self.wake(pool);
        }
        self.at(self.now_ns + REPORT_NS, Event::Report);
    }

    /// Has a pool's router look at its queue shortly, when somebody waits there.
    fn wake(&mut self, pool: usize) {
        if !self.pools[pool].turn_due && self.pools[pool].queue.depth() > 0 {
            self.pools[pool].turn_due = true;
            let turn = self.chance.between(15_000, 45_000);
            self.at(self.now_ns + turn, Event::Router(pool));
        }
    }
}
