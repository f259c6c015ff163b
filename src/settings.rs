//! What the command line asks for, resolved once: flag, then environment, then default.
//!
//! Owns: turning words into the settings of each part, and the sentences when they are wrong. Keeps out: acting on them.

use std::time::Duration;

use crate::cli;
use crate::demo;
use crate::demo::fault::Kind;
use crate::lifecycle::stage::Mode;
use crate::query::Query;
use crate::source::otlp;
use crate::store::Limits;
use crate::tap::record;

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

/// What to record to.
pub fn recording(onward: &cli::Onward) -> Option<record::Settings> {
    onward.record.clone().map(|path| record::Settings {
        path,
        most: onward.record_max.map(|most| most as u64),
        keep: onward.record_keep.unwrap_or(record::KEEP),
    })
}

fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

/// The simulated cluster.
///
/// # Errors
/// A fault that cannot be told in this mode and shape.
pub fn demo(demo: &cli::Demo) -> Result<demo::Settings, String> {
    let mode = match demo.mode {
        cli::DemoMode::Core => Mode::Core,
        cli::DemoMode::Investigation => Mode::Investigation,
    };
    Ok(demo::Settings {
        seed: demo.seed,
        rate: demo.rate,
        workers: demo.workers,
        aggregated: demo.aggregated,
        mode,
        faults: faults(&demo.fault, mode, demo.aggregated)?,
        duration: demo.duration,
    })
}

fn faults(names: &[String], mode: Mode, aggregated: bool) -> Result<Vec<&'static Kind>, String> {
    let mut kinds: Vec<&'static Kind> = Vec::new();
    for name in names {
        if name == cli::ALL_FAULTS {
            kinds.extend(Kind::all().filter(|kind| kind.fits(mode, aggregated)));
            continue;
        }
        let kind = Kind::of(name).ok_or_else(|| format!("--fault {name}: `reqtop demo --help` lists the kinds"))?;
        if !kind.fits(mode, aggregated) {
            let told =
                kind.mode.map_or_else(|| "with two pools".to_owned(), |mode| format!("with --mode {}", mode.word()));
            return Err(format!("--fault {name}: can be told {told} only ({})", kind.what));
        }
        kinds.push(kind);
    }
    kinds.sort_by_key(|kind| kind.name);
    kinds.dedup();
    Ok(kinds)
}

/// A filter of the command line.
///
/// # Errors
/// Where the text is no filter.
pub fn filter(text: Option<&str>) -> Result<Option<Query>, String> {
    text.map(|text| Query::parse(text).map_err(|error| format!("--filter: {error}"))).transpose()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn faults_are_told_in_a_mode_and_shape_that_can() {
        let ask = |names: &[&str], mode, aggregated| {
            faults(&names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>(), mode, aggregated)
        };
        let names = |kinds: Result<Vec<&Kind>, String>| kinds.unwrap().iter().map(|kind| kind.name).collect::<Vec<_>>();
        assert_eq!(
            names(ask(&["wrong-best", "lost-root", "wrong-best"], Mode::Core, true)),
            ["lost-root", "wrong-best"]
        );
        let all = names(ask(&[cli::ALL_FAULTS], Mode::Core, true));
        assert!(all.contains(&"core-with-candidates") && !all.contains(&"lost-prefill") && all.len() > 40);
        assert!(ask(&["core-with-candidates"], Mode::Investigation, true).unwrap_err().contains("--mode core"));
        assert!(ask(&["lost-prefill"], Mode::Core, true).unwrap_err().contains("two pools"));
    }
}
