//! The options of commands that print what the program knows of itself.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

use super::Dashboard;

/// Options of `reqtop config`: those of the dashboard, to see what they come to.
#[derive(Args, Debug)]
pub struct Config {
    /// Print a settings file with every setting and its default, commented.
    #[arg(long)]
    pub default: bool,
    /// The dashboard.
    #[command(flatten)]
    pub dashboard: Dashboard,
    /// What the settings come to; known once they are resolved.
    #[arg(skip)]
    pub shown: String,
}

/// Options of `reqtop completions`.
#[derive(Args, Debug)]
pub struct Completions {
    /// For which shell.
    pub shell: clap_complete::Shell,
}

/// Options of `reqtop man`.
#[derive(Args, Debug)]
pub struct Man {
    /// Write reqtop.1 and a page for each command into this folder instead.
    #[arg(long, value_name = "FOLDER")]
    pub dir: Option<PathBuf>,
}

/// Options of `reqtop keys`.
#[derive(Args, Debug)]
pub struct Keys {
    /// How to print.
    #[arg(long, value_enum, default_value_t = KeysFormat::Text)]
    pub format: KeysFormat,
}

/// Forms of `reqtop keys`.
#[derive(ValueEnum, Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeysFormat {
    /// For people.
    Text,
    /// A Markdown table.
    Markdown,
}
