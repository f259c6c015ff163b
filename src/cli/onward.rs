//! The options of where what is received goes on to: a recording, another endpoint.

use std::path::PathBuf;

use clap::builder::BoolishValueParser;
use clap::{ArgAction, Args};

use super::size;

/// Where what is received goes on to.
#[derive(Args, Debug, Default, Clone)]
pub struct Onward {
    /// Append everything received to this file as OTLP JSON lines with the time it arrived; `.gz` and `.zst` compress.
    /// `reqtop replay` plays it again, the Collector and Jaeger read it.
    #[arg(long, value_name = "FILE")]
    pub record: Option<PathBuf>,
    /// Put the recording aside under a name with the time when it would grow beyond this, and begin a new one
    /// [default: never]
    #[arg(long, value_name = "SIZE", value_parser = size)]
    pub record_max: Option<usize>,
    /// How many of those put aside are kept.
    #[arg(long, value_name = "N", default_value = "4")]
    pub record_keep: Option<usize>,
    /// Pass everything received on, as it came, to another OTLP endpoint: grpc://HOST:PORT or http://HOST:PORT; inside TLS
    /// grpcs:// or https://.
    #[arg(long, value_name = "URL")]
    pub forward: Option<String>,
    /// A header sent along (Authorization, X-Scope-OrgID); never shown.
    #[arg(long, value_name = "NAME=VALUE", env = "REQTOP_FORWARD_HEADER", hide_env_values = true)]
    pub forward_header: Vec<String>,
    /// Send `authorization: Bearer TOKEN` along, the TOKEN being the only line of this file.
    #[arg(long, value_name = "FILE", env = "REQTOP_FORWARD_TOKEN_FILE")]
    pub forward_token_file: Option<PathBuf>,
    /// The authority that the other endpoint's certificate must come from (PEM) [default: those of the system]
    #[arg(long, value_name = "FILE", env = "REQTOP_FORWARD_CA")]
    pub forward_ca: Option<PathBuf>,
    /// Show this certificate where the other endpoint asks for one (PEM).
    #[arg(long, value_name = "FILE", env = "REQTOP_FORWARD_CERT")]
    pub forward_cert: Option<PathBuf>,
    /// The key of that certificate (PEM, without a passphrase).
    #[arg(long, value_name = "FILE", env = "REQTOP_FORWARD_KEY")]
    pub forward_key: Option<PathBuf>,
    /// Compress what is passed on.
    #[arg(
        long, value_name = "BOOL", action = ArgAction::Set, num_args = 0..=1, require_equals = true,
        default_value = "false", default_missing_value = "true", value_parser = BoolishValueParser::new()
    )]
    pub forward_gzip: bool,
    /// What may wait for the other endpoint; beyond that exports are dropped and counted.
    #[arg(long, value_name = "SIZE", value_parser = size, default_value = "64MiB")]
    pub forward_queue: Option<usize>,
}
