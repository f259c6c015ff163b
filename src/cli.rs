//! The command line: one catalogue of commands and options that parsing, help and completions share.
//!
//! Owns: names, values and their help. Keeps out: what they lead to (`settings` resolves, `main` acts).

mod check;
mod look;
mod onward;
mod own;
mod store;
mod units;

use std::path::PathBuf;
use std::time::Duration;

use clap::builder::{PossibleValue, PossibleValuesParser};
use clap::{Args, CommandFactory, Parser, Subcommand, ValueEnum};

pub(crate) use self::units::duration;
use self::units::{memory, message, origin, size};
use crate::demo::fault::Kind;
use crate::source::replay::Speed;

pub use self::check::{CatalogueFormat, Check, CheckFormat, Checks};
pub use self::look::{Colours, Look, Window};
pub use self::onward::Onward;
pub use self::own::{Completions, Config, Keys, KeysFormat, Man};
pub use self::store::FromStore;

/// The version, and the commit where it is known (build.rs).
pub const VERSION: &str = env!("REQTOP_VERSION");

/// Watch every request of an LLM serving cluster live and die.
///
/// Without files, reqtop listens for OTLP (gRPC on 4317, HTTP on 4318, loopback only) and shows what arrives: point the
/// cluster's OpenTelemetry exporter at it. With files (`-` is standard input) it shows what they hold, with --from what a
/// trace store keeps.
#[derive(Parser, Debug)]
#[command(name = "reqtop", version = VERSION, args_conflicts_with_subcommands = true, max_term_width = 110)]
pub struct Cli {
    /// The settings file [default: ~/.config/reqtop/config.toml]
    #[arg(long, value_name = "PATH", env = "REQTOP_CONFIG", global = true)]
    pub config: Option<PathBuf>,
    /// What to do instead of the dashboard.
    #[command(subcommand)]
    pub command: Option<Command>,
    /// The dashboard.
    #[command(flatten)]
    pub dashboard: Dashboard,
}

/// Commands beside the dashboard.
#[derive(Subcommand, Debug)]
pub enum Command {
    /// Print the numbers of the screens, from files or from what arrives.
    Report(Report),
    /// Write spans as OTLP JSON lines, from files or from what arrives.
    Export(Export),
    /// Ask every check of every request; exit 0 when all hold, 1 when one is violated, 2 when it could not run.
    Check(Check),
    /// Print the catalogue of checks.
    Checks(Checks),
    /// Print the settings as they hold with where each comes from: flag, environment, file or default.
    Config(Config),
    /// Print every action with its usual keys.
    Keys(Keys),
    /// Print what a shell needs to complete reqtop's words.
    Completions(Completions),
    /// Print the manual (man 1), or write a page for every command.
    Man(Man),
    /// Play recordings again on the dashboard, at the pace at which their requests arrived.
    Replay(Replay),
    /// List the themes, where each comes from and what is odd about it; own ones are files in
    /// ~/.config/reqtop/themes.
    Themes,
    /// Run the dashboard on a simulated cluster that exports to it over loopback.
    Demo(Demo),
}

/// Options of the dashboard.
#[derive(Args, Debug, Default)]
pub struct Dashboard {
    /// OTLP JSON lines, length-delimited OTLP protobuf or request-trace JSON lines; plain, gzip or zstd. `-` is standard
    /// input.
    pub files: Vec<PathBuf>,
    /// Go on reading the last file while it is written.
    #[arg(long, short = 'f', requires = "files")]
    pub follow: bool,
    /// Read from a trace store.
    #[command(flatten)]
    pub from: FromStore,
    /// Where to listen.
    #[command(flatten)]
    pub listen: Listen,
    /// Where what is received goes on to.
    #[command(flatten)]
    pub onward: Onward,
    /// What to keep.
    #[command(flatten)]
    pub keep: Keep,
    /// How it looks.
    #[command(flatten)]
    pub look: Look,
}

/// Where to listen.
#[derive(Args, Debug, Default, Clone)]
pub struct Listen {
    /// Address of the OTLP/gRPC endpoint: PORT (on 127.0.0.1 and ::1), IPV4:PORT or [IPV6]:PORT; port 0 takes a free one.
    #[arg(long, value_name = "ADDR", env = "REQTOP_GRPC", default_value = "4317")]
    pub grpc: Option<String>,
    /// Address of the OTLP/HTTP endpoint, likewise.
    #[arg(long, value_name = "ADDR", env = "REQTOP_HTTP", default_value = "4318")]
    pub http: Option<String>,
    /// The largest message taken, before and after decompression.
    #[arg(long, value_name = "SIZE", env = "REQTOP_MAX_MESSAGE", value_parser = message, default_value = "16MiB")]
    pub max_message: Option<usize>,
    /// Let pages of this origin export over HTTP (CORS); may be given more than once.
    #[arg(long, value_name = "ORIGIN", env = "REQTOP_ALLOW_ORIGIN", value_delimiter = ',', value_parser = origin)]
    pub allow_origin: Vec<String>,
    /// Connections that may be open at once; beyond, those idle longest are let go [default: 2048]
    #[arg(long, value_name = "N", env = "REQTOP_MAX_CONNECTIONS")]
    pub max_connections: Option<usize>,
    /// Who may send.
    #[command(flatten)]
    pub guard: Guard,
}

/// Who may send.
#[derive(Args, Debug, Default, Clone)]
pub struct Guard {
    /// Take only what comes with `authorization: Bearer TOKEN`, the TOKEN being the only line of this file. REQTOP_TOKEN
    /// may hold it instead.
    #[arg(long, value_name = "FILE", env = "REQTOP_TOKEN_FILE")]
    pub token_file: Option<PathBuf>,
    /// Speak TLS, on both ports, with this certificate (PEM; followed by those between it and its authority).
    #[arg(long, value_name = "FILE", env = "REQTOP_TLS_CERT")]
    pub tls_cert: Option<PathBuf>,
    /// The key of that certificate (PEM, without a passphrase).
    #[arg(long, value_name = "FILE", env = "REQTOP_TLS_KEY")]
    pub tls_key: Option<PathBuf>,
    /// Take only senders with a certificate of this authority (PEM).
    #[arg(long, value_name = "FILE", env = "REQTOP_TLS_CLIENT_CA")]
    pub tls_client_ca: Option<PathBuf>,
}

/// What to keep.
#[derive(Args, Debug, Default, Clone)]
pub struct Keep {
    /// Memory for everything kept; the oldest finished requests go first.
    #[arg(long, value_name = "SIZE", env = "REQTOP_MAX_MEMORY", value_parser = memory, default_value = "512MiB")]
    pub max_memory: Option<usize>,
    /// After how long without news a request in flight counts as one whose end is missing.
    #[arg(long, value_name = "TIME", env = "REQTOP_LOST_AFTER", value_parser = duration, default_value = "10m")]
    pub lost_after: Option<Duration>,
}

/// Where a headless command's output goes.
#[derive(Args, Debug, Default, Clone)]
pub struct Out {
    /// Write to this file instead of standard output (`-`); its owner alone may read it, and what is there already stays.
    #[arg(long, short = 'o', value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Replace the file of `--output` when there is one.
    #[arg(long, requires = "output")]
    pub force: bool,
}

/// Options of `reqtop report`.
#[derive(Args, Debug)]
pub struct Report {
    /// Where the data comes from.
    #[command(flatten)]
    pub input: Input,
    /// Where to write.
    #[command(flatten)]
    pub out: Out,
    /// Print JSON (schema `reqtop.report.v1`) instead of text.
    #[arg(long, conflicts_with = "markdown")]
    pub json: bool,
    /// Print Markdown tables instead of text.
    #[arg(long)]
    pub markdown: bool,
    /// Count only requests that ended within this time before the last moment of the data, or have not ended.
    #[arg(long, value_name = "TIME", value_parser = duration)]
    pub window: Option<Duration>,
}

/// Options of `reqtop export`.
#[derive(Args, Debug)]
pub struct Export {
    /// Where the data comes from.
    #[command(flatten)]
    pub input: Input,
    /// Where to write.
    #[command(flatten)]
    pub out: Out,
}

/// Where a headless command's data comes from.
#[derive(Args, Debug)]
pub struct Input {
    /// Files as for the dashboard; `-` is standard input.
    #[arg(required_unless_present_any = ["listen", "from"])]
    pub files: Vec<PathBuf>,
    /// Read from a trace store.
    #[command(flatten)]
    pub from: FromStore,
    /// Listen for OTLP instead of, or after, reading files; ends on Ctrl-C.
    #[arg(long, conflicts_with = "from")]
    pub listen: bool,
    /// Stop listening after this time.
    #[arg(long = "for", value_name = "TIME", value_parser = duration, requires = "listen")]
    pub time: Option<Duration>,
    /// Stop listening when this many requests have ended.
    #[arg(long, value_name = "N", requires = "listen")]
    pub requests: Option<u64>,
    /// Count only requests that match this filter.
    #[arg(long, value_name = "EXPR")]
    pub filter: Option<String>,
    /// Where to listen.
    #[command(flatten)]
    pub endpoint: Listen,
    /// Where what is received goes on to.
    #[command(flatten)]
    pub onward: Onward,
    /// What to keep.
    #[command(flatten)]
    pub keep: Keep,
}

/// Options of `reqtop replay`.
#[derive(Args, Debug)]
pub struct Replay {
    /// Recordings in their order; other OTLP files play by the times at which their spans ended. `-` is standard input.
    #[arg(required = true)]
    pub files: Vec<PathBuf>,
    /// How fast: a factor, or `max`. Pausing holds the replay; of a silence of more than a minute the rest is left out.
    #[arg(long, value_name = "FACTOR", default_value = "1")]
    pub speed: Speed,
    /// Where what is played goes on to.
    #[command(flatten)]
    pub onward: Onward,
    /// What to keep.
    #[command(flatten)]
    pub keep: Keep,
    /// How it looks.
    #[command(flatten)]
    pub look: Look,
}

/// Options of `reqtop demo`.
#[derive(Args, Debug)]
pub struct Demo {
    /// Seed of the simulation: the same seed gives the same cluster.
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u64,
    /// Requests a second, on average.
    #[arg(long, value_name = "N", default_value_t = 12.0)]
    pub rate: f64,
    /// Workers that write answers, each with half a prefill worker beside it [default: what the rate needs]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=256))]
    pub workers: Option<u32>,
    /// One pool of workers that both read prompts and write answers.
    #[arg(long)]
    pub aggregated: bool,
    /// How much the simulated producer records.
    #[arg(long, value_enum, default_value_t = DemoMode::Investigation)]
    pub mode: DemoMode,
    /// Inject faults into a share of the requests: what is told of them then contradicts itself, and the named checks
    /// must answer violated; with `--export` the ledger printed at the end lists them.
    #[arg(long, value_name = "KIND", value_delimiter = ',', value_parser = faults())]
    pub fault: Vec<String>,
    /// Stop sending after this time.
    #[arg(long, value_name = "TIME", value_parser = duration)]
    pub duration: Option<Duration>,
    /// Send to this OTLP/gRPC endpoint instead of the own one, without a screen.
    #[arg(long, value_name = "URL")]
    pub export: Option<String>,
    /// Where to listen [default: free ports on 127.0.0.1]
    #[command(flatten)]
    pub listen: Listen,
    /// Where what is received goes on to.
    #[command(flatten)]
    pub onward: Onward,
    /// What to keep.
    #[command(flatten)]
    pub keep: Keep,
    /// How it looks.
    #[command(flatten)]
    pub look: Look,
}

/// How much the simulated producer records.
#[derive(ValueEnum, Clone, Copy, Debug, PartialEq, Eq)]
pub enum DemoMode {
    /// The stable decision summary and timing.
    Core,
    /// Core, stage state and scored candidates.
    Investigation,
}

/// The word for every fault that can be told in the mode and shape.
pub const ALL_FAULTS: &str = "all";

/// The command line, as parsing, completions and the manual know it.
pub fn command() -> clap::Command {
    let empty = |arg: &clap::Arg| arg.get_env().and_then(std::env::var_os).is_some_and(|value| value.is_empty());
    // A script that has no settings file to name says so by an empty variable. An empty flag is a mistake.
    let command = Cli::command().mut_arg("config", |arg| if empty(&arg) { arg.env(None) } else { arg });
    // The demo must not be in the way of one that listens already.
    command.mut_subcommand("demo", |demo| {
        demo.mut_arg("grpc", |grpc| grpc.default_value("0")).mut_arg("http", |http| http.default_value("0"))
    })
}

/// The kinds of faults, from their one table.
fn faults() -> PossibleValuesParser {
    let all = PossibleValue::new(ALL_FAULTS).help("every kind that can be told in the mode and shape");
    PossibleValuesParser::new(
        std::iter::once(all).chain(Kind::all().map(|kind| PossibleValue::new(kind.name).help(kind.line()))),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_catalogue_is_sound() {
        command().debug_assert();
    }

    #[test]
    fn files_and_commands_are_told_apart() {
        let cli = Cli::parse_from(["reqtop", "a.jsonl", "--grpc", "127.0.0.1:0"]);
        assert_eq!((cli.dashboard.files.len(), cli.dashboard.listen.grpc.as_deref()), (1, Some("127.0.0.1:0")));
        let cli = Cli::parse_from(["reqtop", "report", "a", "b", "--json"]);
        assert!(
            matches!(cli.command, Some(Command::Report(Report { json: true, input: Input { ref files, .. }, .. })) if files.len() == 2)
        );
        assert!(Cli::try_parse_from(["reqtop", "report"]).is_err());
        assert!(Cli::try_parse_from(["reqtop", "report", "--listen", "--for", "2s"]).is_ok());
    }

    #[test]
    fn faults_are_named_by_their_table() {
        let cli = Cli::parse_from(["reqtop", "demo", "--fault", "wrong-best,lost-root", "--fault", ALL_FAULTS]);
        assert!(matches!(cli.command, Some(Command::Demo(demo)) if demo.fault == ["wrong-best", "lost-root", "all"]));
        assert!(Cli::try_parse_from(["reqtop", "demo", "--fault", "gremlins"]).is_err());
        let help = Cli::command().find_subcommand_mut("demo").map(|demo| demo.render_long_help().to_string());
        assert!(Kind::all().all(|kind| help.as_ref().is_some_and(|help| help.contains(kind.name))));
    }
}
