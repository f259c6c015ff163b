//! The options of reading a trace store.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;

use super::duration;

/// A trace store to read from.
#[derive(Args, Debug, Default, Clone)]
pub struct FromStore {
    /// Read requests out of a trace store: `jaeger URL` (its query address, usually port 16686) or `tempo URL` (usually
    /// 3200). The dashboard goes on with what comes in there, unless --until is given.
    #[arg(long, num_args = 2, value_names = ["STORE", "URL"], help_heading = "Trace store")]
    pub from: Vec<String>,
    /// From when on: a time before now, or a moment such as 2026-11-30T06:00:00Z.
    #[arg(long, value_name = "TIME", requires = "from", default_value = "1h", help_heading = "Trace store")]
    pub since: Option<String>,
    /// Until when, likewise.
    #[arg(long, value_name = "TIME", requires = "from", help_heading = "Trace store")]
    pub until: Option<String>,
    /// Only traces with a span of this service; may be given more than once [default: those that begin requests]
    #[arg(long, value_name = "NAME", requires = "from", help_heading = "Trace store")]
    pub service: Vec<String>,
    /// Only traces where such a span has this name.
    #[arg(long, value_name = "NAME", requires = "from", help_heading = "Trace store")]
    pub operation: Option<String>,
    /// Only traces where such a span took at least this long.
    #[arg(long, value_name = "TIME", requires = "from", value_parser = duration, help_heading = "Trace store")]
    pub min_duration: Option<Duration>,
    /// Only traces where such a span took at most this long.
    #[arg(long, value_name = "TIME", requires = "from", value_parser = duration, help_heading = "Trace store")]
    pub max_duration: Option<Duration>,
    /// Only traces where such a span or its resource has this attribute; Tempo only.
    #[arg(long, value_name = "KEY=VALUE", requires = "from", help_heading = "Trace store")]
    pub attribute: Vec<String>,
    /// Search by this TraceQL instead of the options above; Tempo only.
    #[arg(long, value_name = "QUERY", requires = "from", help_heading = "Trace store",
        conflicts_with_all = ["service", "operation", "min_duration", "max_duration", "attribute"])]
    pub traceql: Option<String>,
    /// A header sent with every question (Authorization, X-Scope-OrgID); never shown.
    #[arg(
        long,
        value_name = "NAME=VALUE",
        env = "REQTOP_FROM_HEADER",
        hide_env_values = true,
        help_heading = "Trace store"
    )]
    pub from_header: Vec<String>,
    /// The authority that the store's https certificate must come from (PEM) [default: those of the system]
    #[arg(long, value_name = "FILE", env = "REQTOP_FROM_CA", requires = "from", help_heading = "Trace store")]
    pub from_ca: Option<PathBuf>,
}
