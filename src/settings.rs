//! What the command line asks for, resolved once: flag, then environment, then default.
//!
//! Owns: turning words into the settings of each part, and the sentences when they are wrong. Keeps out: acting on them.

use std::time::Duration;

use crate::cli;
use crate::demo;
use crate::lifecycle::stage::Mode;
use crate::query::Query;
use crate::source::otlp;
use crate::store::Limits;

/// Where to listen.
///
/// # Errors
/// An address that is none.
pub fn endpoint(listen: &cli::Listen, default: [otlp::Address; 2]) -> Result<otlp::Settings, String> {
    let address = |text: &Option<String>, option: &str, default| match text {
        Some(text) => text.parse().map_err(|error| format!("{option}: {error}")),
        None => Ok(default),
    };
    Ok(otlp::Settings {
        grpc: address(&listen.grpc, "--grpc", default[0])?,
        http: address(&listen.http, "--http", default[1])?,
        max_message: listen.max_message.unwrap_or(otlp::MAX_MESSAGE),
        origins: listen.allow_origin.clone(),
    })
}

/// The ports that OTLP names, on both loopbacks.
pub const USUAL: [otlp::Address; 2] = [otlp::Address::Loopback(4317), otlp::Address::Loopback(4318)];

/// Ports that the system chooses, on both loopbacks.
pub const ANY: [otlp::Address; 2] = [otlp::Address::Loopback(0), otlp::Address::Loopback(0)];

/// What to keep.
pub fn limits(keep: &cli::Keep) -> Limits {
    let default = Limits::default();
    Limits {
        memory: keep.max_memory.unwrap_or(default.memory),
        lost_after_ns: keep.lost_after.map_or(default.lost_after_ns, nanos),
    }
}

fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

/// The simulated cluster.
pub fn demo(demo: &cli::Demo) -> demo::Settings {
    demo::Settings {
        seed: demo.seed,
        rate: demo.rate,
        workers: demo.workers,
        aggregated: demo.aggregated,
        mode: match demo.mode {
            cli::DemoMode::Core => Mode::Core,
            cli::DemoMode::Investigation => Mode::Investigation,
        },
        duration: demo.duration,
    }
}

/// A filter of the command line.
///
/// # Errors
/// Where the text is no filter.
pub fn filter(text: Option<&str>) -> Result<Option<Query>, String> {
    text.map(|text| Query::parse(text).map_err(|error| format!("--filter: {error}"))).transpose()
}
