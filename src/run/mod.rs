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
mod standing;
mod stores;

use std::io::{self, BufWriter, Write};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use tokio::runtime::Runtime;

use crate::cli::{self, Cli, Command};
use crate::pipeline::Clock;
use crate::query::Query;
use crate::report::export;
use crate::source::otlp;
use crate::store::Store;
use crate::writing::{self, Existing};

/// What belongs on standard output.
pub enum Output {
    /// This text.
    Text(String),
    /// What a store holds, or the requests in it that match, as OTLP JSON lines: written as the store is walked.
    Export(Box<Store>, Option<Query>),
}

impl Output {
    /// Writes all of it.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn write(&self, to: &mut dyn Write) -> io::Result<()> {
        let mut to = BufWriter::new(to);
        match self {
            Self::Text(text) => to.write_all(text.as_bytes())?,
            Self::Export(store, filter) => export::json_lines(store, filter.as_ref(), &mut to)?,
        }
        to.flush()
    }
}

/// How a command ended.
pub struct Ended {
    /// What belongs on standard output.
    pub output: Output,
    /// What belongs on standard error: one line each.
    pub notes: Vec<String>,
    /// The exit status.
    pub status: u8,
}

impl Ended {
    /// Did what was asked.
    fn well(output: String) -> Self {
        Self { output: Output::Text(output), notes: Vec::new(), status: 0 }
    }

    /// Could not do what was asked; the sentence says why and what to do.
    pub fn badly(note: impl ToString) -> Self {
        Self { notes: vec![note.to_string()], status: 2, ..Self::well(String::new()) }
    }

    /// The status as the process gives it.
    pub fn code(&self) -> ExitCode {
        ExitCode::from(self.status)
    }
}

/// What to do where there can be no screen.
const WITHOUT_SCREEN: &str = "`reqtop report FILE…` prints without one";

/// Has a write beyond the largest file that the system permits (`ulimit -f`) fail like one to a full disk, with words,
/// where it would end the program.
pub fn outlive_file_limit() {
    // Nobody asks whether it came. Where it cannot be heard it goes on to end the program.
    let _ = signal_hook::flag::register(signal_hook::consts::SIGXFSZ, Arc::default());
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
    // `-` is standard output, as on any command line.
    let Some(path) = out.output.filter(|path| path.as_os_str() != "-") else { return run() };
    let existing = if out.force { Existing::Replace } else { Existing::Refuse };
    let named = |error| format!("--output {error}");
    writing::check(&path, existing).map_err(named)?;
    let mut ended = run()?;
    writing::write_private(&path, existing, |file| ended.output.write(file)).map_err(named)?;
    ended.output = Output::Text(String::new());
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
    let _ = writeln!(io::stderr(), "reqtop: {}", crate::lifecycle::text::one_line(text));
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
