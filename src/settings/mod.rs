//! What the command line asks for, resolved once: flag, then environment, then settings file, then default.
//!
//! Owns: turning words into the settings of each part, and the sentences when they are wrong. Keeps out: acting on them.

mod file;
mod resolve;
#[cfg(test)]
mod tests;

use std::path::PathBuf;
use std::time::Duration;

use etcetera::BaseStrategy;

use crate::cli;
use crate::demo;
use crate::demo::fault::Kind;
use crate::lifecycle::stage::Mode;
use crate::query::Query;
use crate::source::otlp;
use crate::store::Limits;
use crate::tui::Setup;
use crate::tui::theme::{Depth, Signs, Themes};
use crate::view::filter::Filter;
use crate::view::window::Window;

pub use resolve::{Refusal, default_file, resolve, usual_file};

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

/// The folder of the user's own settings, by the rules of the system (`$XDG_CONFIG_HOME`, else `~/.config`).
pub fn folder() -> Option<PathBuf> {
    etcetera::choose_base_strategy().ok().map(|base| base.config_dir().join("reqtop"))
}

/// The folder of the user's own themes.
pub fn themes_folder() -> Option<PathBuf> {
    folder().map(|folder| folder.join("themes"))
}

/// How the screen looks and listens. `variable` reads the environment.
///
/// # Errors
/// No theme of this name; a filter that is none.
pub fn setup(look: &cli::Look, variable: impl Fn(&str) -> Option<String>) -> Result<Setup, String> {
    let signs = if look.ascii { Signs::Ascii } else { Signs::Unicode };
    let depth = match look.colours {
        cli::Colours::Auto => Depth::of(variable),
        cli::Colours::None => Depth::None,
        cli::Colours::Sixteen => Depth::Sixteen,
        cli::Colours::Indexed => Depth::Indexed,
        cli::Colours::All => Depth::Full,
    };
    let themes = Themes::new(themes_folder(), depth, signs);
    let theme = themes.find(look.theme.as_deref().unwrap_or("terminal"))?;
    let filter = look.filter.as_deref().unwrap_or_default();
    let filter = Filter::parse(filter).map_err(|error| format!("--filter: {error}"))?;
    let window = match look.window {
        cli::Window::TenSeconds => Window::TenSeconds,
        cli::Window::Minute => Window::Minute,
        cli::Window::FiveMinutes => Window::FiveMinutes,
        cli::Window::All => Window::All,
    };
    Ok(Setup { keys: look.keys.clone(), filter, window, themes, theme })
}

/// A filter of the command line.
///
/// # Errors
/// Where the text is no filter.
pub fn filter(text: Option<&str>) -> Result<Option<Query>, String> {
    text.map(|text| Query::parse(text).map_err(|error| format!("--filter: {error}"))).transpose()
}
