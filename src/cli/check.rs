//! The options of `reqtop check` and `reqtop checks`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

use super::{Input, Out};

/// Options of `reqtop check`.
#[derive(Args, Debug)]
pub struct Check {
    /// Where the data comes from.
    #[command(flatten)]
    pub input: Input,
    /// Where to write.
    #[command(flatten)]
    pub out: Out,
    /// How to print.
    #[arg(long, value_enum, default_value_t = CheckFormat::Text)]
    pub format: CheckFormat,
    /// The same as `--format json` (schema `reqtop.check.v1`).
    #[arg(long, conflicts_with = "format")]
    pub json: bool,
    /// How many requests must match a filter: EXPR, EXPR>=N, EXPR<=N or EXPR==N; at least one when not
    /// said. Without EXPR, requests of any kind.
    #[arg(long, value_name = "EXPR")]
    pub expect: Vec<String>,
    /// Only these checks or families (`queue`, `queue.reason`), separated by commas.
    #[arg(long, value_name = "IDS", value_delimiter = ',')]
    pub only: Vec<String>,
    /// Not these checks or families.
    #[arg(long, value_name = "IDS", value_delimiter = ',')]
    pub skip: Vec<String>,
    /// Warnings fail too.
    #[arg(long)]
    pub strict: bool,
    /// Accepted violations: a line each, `check.id` or `check.id part of the sentence`.
    #[arg(long, value_name = "FILE")]
    pub baseline: Option<PathBuf>,
    /// Compare with AIPerf's profile_export.jsonl (and phase_manifest.json beside it).
    #[arg(long, value_name = "FILE")]
    pub aiperf: Option<PathBuf>,
    /// Compare with a small JSON ledger of another load generator.
    #[arg(long, value_name = "FILE")]
    pub load: Option<PathBuf>,
}

/// Forms of `reqtop check`.
#[derive(ValueEnum, Clone, Copy, Debug, PartialEq, Eq)]
pub enum CheckFormat {
    /// For people.
    Text,
    /// Schema `reqtop.check.v1`.
    Json,
    /// JUnit XML.
    Junit,
    /// GitHub workflow annotations.
    Github,
}

/// Options of `reqtop checks`.
#[derive(Args, Debug)]
pub struct Checks {
    /// How to print.
    #[arg(long, value_enum, default_value_t = CatalogueFormat::Text)]
    pub format: CatalogueFormat,
}

/// Forms of `reqtop checks`.
#[derive(ValueEnum, Clone, Copy, Debug, PartialEq, Eq)]
pub enum CatalogueFormat {
    /// For people.
    Text,
    /// JSON.
    Json,
    /// A Markdown table.
    Markdown,
}
