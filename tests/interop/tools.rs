//! What the interop tests need from outside: programs built from published modules, kept in a cache; processes that end
//! with the test; a clear word where something cannot be had.
//!
//! `REQTOP_INTEROP=1` runs what can be had here, `REQTOP_INTEROP=force` fails where something cannot.
//! `REQTOP_INTEROP_CACHE` is where programs are kept (`~/.cache/reqtop-interop` unless told otherwise), and
//! `REQTOP_INTEROP_MINUTES` how long after the start things may still be built or fetched; what is not there by then is
//! skipped.

use std::collections::HashMap;
use std::fs::{self, File};
use std::io::Write;
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex, Once, OnceLock};
use std::time::{Duration, Instant};

/// How long after the start things may still be built or fetched, minutes, unless told otherwise.
const MINUTES: u64 = 40;
/// How long a program may take until it listens.
const START: Duration = Duration::from_secs(60);

/// What a test is given, or why it is skipped.
pub type Had<T> = Result<T, String>;

/// Says something although the harness keeps what tests print.
pub fn say(words: &str) {
    let _ = writeln!(std::io::stderr(), "{words}");
}

/// Whether interop tests are asked for; says so once when not.
pub fn asked() -> bool {
    static SAID: Once = Once::new();
    // The time for building begins with the first test.
    building_ends();
    let asked = std::env::var("REQTOP_INTEROP").is_ok_and(|value| !value.is_empty() && value != "0");
    if !asked {
        SAID.call_once(|| {
            say("SKIP the Collector, Jaeger and the SDKs of other languages: they run with REQTOP_INTEROP=1")
        });
    }
    asked
}

/// What could be had; or says why not, which fails the test when it was forced.
pub fn had<T>(test: &str, had: Had<T>) -> Option<T> {
    match had {
        Ok(thing) => Some(thing),
        Err(why) => {
            assert!(std::env::var("REQTOP_INTEROP").is_ok_and(|value| value != "force"), "{test}: {why}");
            say(&format!("SKIP {test}: {why}"));
            None
        }
    }
}

/// This folder, or a file in it.
pub fn here(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/interop").join(name)
}

/// Where programs are kept.
pub fn cache() -> PathBuf {
    let path = std::env::var_os("REQTOP_INTEROP_CACHE").map(PathBuf::from).unwrap_or_else(|| {
        let home = std::env::var_os("HOME").map_or_else(std::env::temp_dir, PathBuf::from);
        home.join(".cache/reqtop-interop")
    });
    fs::create_dir_all(&path).unwrap();
    path
}

/// Makes something in the cache once for all tests and runs: `make` fills a folder, which then gets this name. Gives the
/// folder.
pub fn kept(name: &str, make: impl FnOnce(&Path) -> Had<()>) -> Had<PathBuf> {
    type Made = Arc<OnceLock<Had<PathBuf>>>;
    static MADE: OnceLock<Mutex<HashMap<String, Made>>> = OnceLock::new();
    let made = Arc::clone(MADE.get_or_init(Mutex::default).lock().unwrap().entry(name.to_owned()).or_default());
    made.get_or_init(|| {
        let folder = cache().join(name);
        if folder.is_dir() {
            return Ok(folder);
        }
        let making =
            tempfile::Builder::new().prefix(&format!("{name}.")).tempdir_in(cache()).map_err(|e| e.to_string())?;
        let began = Instant::now();
        make(making.path())?;
        // Another run may have been faster: its folder is as good.
        if fs::rename(making.path(), &folder).is_ok() {
            let _ = making.keep();
        }
        say(&format!("made {} in {:.0} s", folder.display(), began.elapsed().as_secs_f64()));
        Ok(folder)
    })
    .clone()
}

/// A short name for a text, for names in the cache.
pub fn digest(text: &str) -> String {
    let hash = text
        .bytes()
        .fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3));
    format!("{hash:016x}")
}

/// Until when things may be built or fetched.
fn building_ends() -> (Instant, u64) {
    static END: OnceLock<(Instant, u64)> = OnceLock::new();
    *END.get_or_init(|| {
        let told = std::env::var("REQTOP_INTEROP_MINUTES").ok().and_then(|minutes| minutes.parse().ok());
        let minutes = told.unwrap_or(MINUTES);
        (Instant::now() + Duration::from_secs(60 * minutes), minutes)
    })
}

/// Runs a tool to its end while there is time for that; what it said when it fails.
pub fn run(command: &mut Command) -> Had<()> {
    let name = format!("{:?}", command.get_program()).trim_matches('"').to_owned();
    let mut log = tempfile::tempfile().map_err(|error| error.to_string())?;
    let both = || log.try_clone().map(Stdio::from).map_err(|error| error.to_string());
    let mut child = command
        .stdin(Stdio::null())
        .stdout(both()?)
        .stderr(both()?)
        .spawn()
        .map_err(|error| format!("{name} cannot be run: {error}"))?;
    let (until, minutes) = building_ends();
    let status = loop {
        match child.try_wait().map_err(|error| error.to_string())? {
            Some(status) => break status,
            None if Instant::now() > until => {
                let _ = child.kill();
                let _ = child.wait();
                return Err(format!(
                    "{name} was not done {minutes} minutes after the start (REQTOP_INTEROP_MINUTES); what it has made \
                     so far makes the next run shorter"
                ));
            }
            None => std::thread::sleep(Duration::from_millis(100)),
        }
    };
    if status.success() {
        return Ok(());
    }
    let mut said = String::new();
    use std::io::{Read, Seek};
    let _ = log.rewind();
    let _ = log.read_to_string(&mut said);
    let last: Vec<&str> = said.lines().rev().filter(|line| !line.trim().is_empty()).take(3).collect();
    Err(format!("{name} failed ({status}): {}", last.into_iter().rev().collect::<Vec<_>>().join(" / ")))
}

/// A tool of this machine.
pub fn tool(name: &str) -> Had<()> {
    let flag = if name == "go" { "version" } else { "--version" };
    let there = Command::new(name).arg(flag).stdout(Stdio::null()).stderr(Stdio::null()).status();
    match there {
        Ok(status) if status.success() => Ok(()),
        _ => Err(format!("{name} is not installed")),
    }
}

/// A process that ends with the test.
pub struct Running {
    child: Child,
    log: PathBuf,
    name: &'static str,
}

impl Running {
    /// Starts a program and waits until it listens on an address.
    pub fn start(name: &'static str, command: &mut Command, folder: &Path, listens: SocketAddr) -> Self {
        let log = folder.join(format!("{name}-{}.log", listens.port()));
        let file = File::create(&log).unwrap();
        let child = command
            .stdin(Stdio::null())
            .stdout(file.try_clone().unwrap())
            .stderr(file)
            .spawn()
            .unwrap_or_else(|error| panic!("{name}: {error}"));
        let mut running = Self { child, log, name };
        let until = Instant::now() + START;
        while TcpStream::connect(listens).is_err() {
            let ended = running.child.try_wait().unwrap();
            assert!(ended.is_none(), "{name} ended ({ended:?}):\n{}", running.said());
            assert!(Instant::now() < until, "{name} does not listen on {listens}:\n{}", running.said());
            std::thread::sleep(Duration::from_millis(50));
        }
        running
    }

    /// What it said.
    pub fn said(&self) -> String {
        fs::read_to_string(&self.log).unwrap_or_default()
    }

    /// Asks it to end and waits for it: what it holds is written by then.
    pub fn end(mut self) -> String {
        crate::common::signal(self.child.id(), "TERM");
        let until = Instant::now() + START;
        while self.child.try_wait().unwrap().is_none() {
            assert!(Instant::now() < until, "{} does not end:\n{}", self.name, self.said());
            std::thread::sleep(Duration::from_millis(20));
        }
        self.said()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        if std::thread::panicking() {
            let said = self.said();
            let from = said.char_indices().rev().nth(4000).map_or(0, |(at, _)| at);
            eprintln!("{} said:\n{}", self.name, &said[from..]);
        }
    }
}

/// Waits until something is so.
pub fn wait_until(what: &str, mut so: impl FnMut() -> bool) {
    let until = Instant::now() + START;
    while !so() {
        assert!(Instant::now() < until, "{what} did not come about");
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// The Collector with the components of `collector/builder.yaml`.
pub fn collector() -> Had<PathBuf> {
    collector_of("builder.yaml")
}

/// The Collector with the components of `collector/builder-contrib.yaml`.
pub fn collector_contrib() -> Had<PathBuf> {
    collector_of("builder-contrib.yaml")
}

fn collector_of(recipe: &str) -> Had<PathBuf> {
    tool("go")?;
    let recipe = here("collector").join(recipe);
    let text = fs::read_to_string(&recipe).unwrap();
    let version = text.lines().find_map(|line| line.trim().strip_prefix("version: ")).expect("a version");
    let made = kept(&format!("otelcol-{version}-{}", digest(&text)), |folder| {
        let builder = format!("go.opentelemetry.io/collector/cmd/builder@v{version}");
        run(Command::new("go").args(["run", &builder, "--config"]).arg(&recipe).current_dir(folder))
            .map_err(|why| format!("this Collector cannot be built here: {why}"))
    })?;
    Ok(made.join("otelcol/otelcol"))
}

/// Jaeger 2, from its published module (v1.76.0 is Jaeger 2.13), without its user interface.
pub fn jaeger() -> Had<PathBuf> {
    tool("go")?;
    let made = kept("jaeger-1.76.0", |folder| {
        let go = |args: &[&str]| run(Command::new("go").args(args).current_dir(folder));
        let package = "github.com/jaegertracing/jaeger/cmd/jaeger";
        go(&["mod", "init", "reqtop.invalid/jaeger"])
            .and_then(|()| go(&["get", "-tool", &format!("{package}@v1.76.0")]))
            .and_then(|()| go(&["build", "-ldflags=-s -w", "-o", "jaeger", package]))
            .map_err(|why| format!("Jaeger cannot be built here: {why}"))
    })?;
    Ok(made.join("jaeger"))
}
