//! The commands, put together: which sources feed the store, which reader looks at it, how it ends.
//!
//! Owns: threads, the runtime, the clock, exit statuses. Keeps out: printing (`main`), everything that can be tested
//! without them.

mod dashboard;
mod demo;
mod files;
mod headless;
mod lists;
mod onward;
mod replay;
mod stores;

use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use tokio::runtime::Runtime;

use crate::cli::{self, Cli, Command};
use crate::pipeline::Clock;
use crate::source::otlp;
use crate::writing::{self, Existing};

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
        Some(Command::Report(report)) => into_file(report.out.clone(), || headless::report(report)),
        Some(Command::Export(export)) => into_file(export.out.clone(), || headless::export(export)),
        Some(Command::Check(check)) => into_file(check.out.clone(), || headless::check(check)),
        Some(Command::Checks(checks)) => Ok(headless::checks(checks)),
        Some(Command::Config(config)) => Ok(lists::config(config)),
        Some(Command::Keys(keys)) => Ok(lists::keys(&keys)),
        Some(Command::Completions(completions)) => Ok(lists::completions(&completions)),
        Some(Command::Man(man)) => lists::man(&man),
        Some(Command::Themes) => Ok(lists::themes()),
        Some(Command::Demo(demo)) => demo::run(demo),
        Some(Command::Replay(replay)) => replay::run(replay),
    }
    .unwrap_or_else(Ended::badly)
}

/// Puts a command's output into the file that was asked for. Whether it may is asked before the command runs, which may take
/// hours.
fn into_file(out: cli::Out, run: impl FnOnce() -> Result<Ended, String>) -> Result<Ended, String> {
    let Some(path) = out.output else { return run() };
    let existing = if out.force { Existing::Replace } else { Existing::Refuse };
    let named = |error| format!("--output {error}");
    writing::check(&path, existing).map_err(named)?;
    let mut ended = run()?;
    writing::write_private(&path, std::mem::take(&mut ended.output).as_bytes(), existing).map_err(named)?;
    Ok(ended)
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
    let _ = writeln!(std::io::stderr(), "reqtop: {}", crate::lifecycle::text::one_line(text));
}

/// A small runtime for the endpoint: its work is waiting and inflating. As many connections as it may have, it can have.
fn runtime() -> Result<Runtime, String> {
    raise_descriptors(DESCRIPTORS);
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .thread_name("net")
        .enable_all()
        .build()
        .map_err(|error| format!("cannot start the network threads: {error}"))
}

/// File descriptors for all connections there may be, and everything else.
const DESCRIPTORS: u64 = otlp::MAX_CONNECTIONS as u64 + 256;

/// Lets this process have this many file descriptors, as far as the system permits: the usual 1024 date from programs that
/// counted them in bits. Where it does not, the endpoint lets idle connections go in time.
fn raise_descriptors(wanted: u64) {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    let wanted = maximum.map_or(wanted, |maximum| maximum.min(wanted));
    if current.is_some_and(|current| current < wanted) {
        let _ = setrlimit(Resource::Nofile, Rlimit { current: Some(wanted), maximum });
    }
}
