//! A simulated Dynamo cluster that exports evidence-layout spans and trace records, with a ledger of what truly happened.
//!
//! Owns: a discrete-event simulation in virtual time ([`sim`]) whose queues, costs and deferrals follow from its state;
//! the telling of it as OTLP ([`emit`]), with a [`fault`] here and there when asked for; the [`ledger`]; and the real-time runner that sends it through a real OTLP
//! client ([`export`]). Keeps out: everything that reads it. Knows only the lifecycle vocabulary.
//!
//! Invariants: the same [`Settings`] and start give the same bytes in the same order, whatever the steps of
//! [`Cluster::advance`]; nothing here reads a clock but [`export`]; the ledger counts exactly what was handed over.

mod emit;
pub mod export;
pub mod fault;
pub mod ledger;
mod sim;
mod tally;
#[cfg(test)]
mod tests;

use std::time::Duration;

use bytes::Bytes;

use crate::lifecycle::stage::Mode;

pub use export::{Report, Target, run};
use ledger::Ledger;

/// How the simulated cluster is built and loaded.
#[derive(Clone, Debug, PartialEq)]
pub struct Settings {
    /// Everything random follows from it.
    pub seed: u64,
    /// Requests a second, on average over a wave.
    pub rate: f64,
    /// Workers that generate: decode workers, each with half a prefill worker beside it, or aggregated ones.
    /// `None`: as many as the rate needs to be busy and not drowned.
    pub workers: Option<u32>,
    /// Whether each worker reads prompts and generates, instead of two pools sharing the work.
    pub aggregated: bool,
    /// How much the spans record; `Unsaid` counts as `Investigation`.
    pub mode: Mode,
    /// Faults to inject into a share of the requests; none by default.
    pub faults: Vec<&'static fault::Kind>,
    /// How long [`run`] takes requests; `None`: until it is told to stop.
    pub duration: Option<Duration>,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            seed: 1,
            rate: 12.0,
            workers: None,
            aggregated: false,
            mode: Mode::Investigation,
            faults: Vec::new(),
            duration: None,
        }
    }
}

/// The pools of a cluster.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Shape {
    /// Workers that do everything.
    Aggregated {
        /// How many.
        workers: u32,
    },
    /// One pool reads prompts, the other generates.
    Disaggregated {
        /// Workers that read prompts.
        prefill: u32,
        /// Workers that generate.
        decode: u32,
    },
}

impl Settings {
    /// The pools these settings ask for.
    pub fn shape(&self) -> Shape {
        let needed = (self.rate / 3.0).ceil().clamp(2.0, 4_096.0) as u32;
        let workers = self.workers.unwrap_or(needed).max(1);
        if self.aggregated {
            Shape::Aggregated { workers }
        } else {
            Shape::Disaggregated { prefill: workers.div_ceil(2), decode: workers }
        }
    }
}

/// What an export carries.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Signal {
    /// An `ExportTraceServiceRequest`.
    Traces,
    /// An `ExportLogsServiceRequest`.
    Logs,
}

/// One export request, as a process of the cluster sends it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Delivery {
    /// When it is sent, in virtual nanoseconds since the epoch.
    pub at_ns: u64,
    /// Who sends it: `frontend-0`, `prefill-1`, `decode-3`, `worker-0`.
    pub process: String,
    /// What it is.
    pub signal: Signal,
    /// The protobuf bytes.
    pub body: Bytes,
}

/// A simulated cluster, in virtual time.
pub struct Cluster {
    world: sim::World,
}

impl Cluster {
    /// A cluster that begins to serve at `start_ns`, nanoseconds since the epoch.
    pub fn new(settings: &Settings, start_ns: u64) -> Self {
        let mode = if settings.mode == Mode::Unsaid { Mode::Investigation } else { settings.mode };
        let rate = if settings.rate.is_finite() { settings.rate.clamp(0.01, 100_000.0) } else { 12.0 };
        let settings = Settings { mode, rate, ..settings.clone() };
        Self { world: sim::World::new(&settings, start_ns) }
    }

    /// Lets virtual time pass until `until_ns` and gives what was sent meanwhile, in order. The steps do not matter.
    pub fn advance(&mut self, until_ns: u64) -> Vec<Delivery> {
        let mut out = Vec::new();
        self.world.advance(until_ns, &mut out);
        out
    }

    /// Takes no more requests from now on; those in flight go on.
    pub fn close(&mut self) {
        self.world.close();
    }

    /// Closes, and lets time pass until every request has ended and everything was sent.
    pub fn drain(&mut self) -> Vec<Delivery> {
        self.close();
        let mut out = Vec::new();
        while !self.is_done() {
            let until_ns = self.world.now_ns() + 100_000_000;
            self.world.advance(until_ns, &mut out);
        }
        out
    }

    /// Whether it is closed, every request has ended and everything was sent.
    pub fn is_done(&self) -> bool {
        self.world.done()
    }

    /// The virtual time, nanoseconds since the epoch.
    pub fn now_ns(&self) -> u64 {
        self.world.now_ns()
    }

    /// What truly happened, as far as it is in deliveries that [`Cluster::advance`] has given.
    pub fn ledger(&self) -> &Ledger {
        &self.world.out.ledger
    }
}
