//! The commands, put together: which sources feed the store, which reader looks at it, how it ends.
//!
//! Owns: threads, the runtime, the clock, exit statuses. Keeps out: printing (`main`), everything that can be tested
//! without them.

mod dashboard;
mod demo;
mod files;
mod headless;
mod lists;
mod stores;

use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use tokio::runtime::Runtime;

use crate::cli::{Cli, Command};
use crate::pipeline::Clock;

/// How a command ended.
#[derive(Debug)]
pub struct Ended {
    /// What belongs on standard output.
    pub output: String,
    /// What belongs on standard error: one line each.
    pub notes: Vec<String>,
    /// The exit status.
    pub status: u8,
}

impl Ended {
    /// Could not do what was asked; the sentence says why and what to do.
    fn badly(note: impl ToString) -> Self {
        Self { output: String::new(), notes: vec![note.to_string()], status: 2 }
    }

    /// The status as the process gives it.
    pub fn code(&self) -> ExitCode {
        ExitCode::from(self.status)
    }
}

/// Does what the command line asks for.
pub fn run(cli: Cli) -> Ended {
    match cli.command {
        None => dashboard::run(cli.dashboard),
        Some(Command::Report(report)) => headless::report(report),
        Some(Command::Export(export)) => headless::export(export),
        Some(Command::Check(check)) => headless::check(check),
        Some(Command::Checks(checks)) => Ok(headless::checks(checks)),
        Some(Command::Themes) => Ok(lists::themes()),
        Some(Command::Demo(demo)) => demo::run(demo),
    }
    .unwrap_or_else(Ended::badly)
}

/// The wall clock, since the Unix epoch.
fn now() -> Duration {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default()
}

/// The wall clock, nanoseconds since the Unix epoch.
fn now_ns() -> u64 {
    u64::try_from(now().as_nanos()).unwrap_or(u64::MAX)
}

fn clock() -> Clock {
    Arc::new(now_ns)
}

/// Says something on standard error while the command still runs.
fn say(text: &str) {
    use std::io::Write;
    let _ = writeln!(std::io::stderr(), "reqtop: {text}");
}

/// A small runtime for the endpoint: its work is waiting and inflating.
fn runtime() -> Result<Runtime, String> {
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .thread_name("net")
        .enable_all()
        .build()
        .map_err(|error| format!("cannot start the network threads: {error}"))
}
