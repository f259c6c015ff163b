//! The options of the screen: how it looks and listens, and what it shows at first.

use clap::builder::BoolishValueParser;
use clap::{ArgAction, Args, ValueEnum};

use crate::tui::keymap::Keymap;

/// How it looks.
#[derive(Args, Debug, Default, Clone)]
pub struct Look {
    /// The theme, by the name that `reqtop themes` lists or by the path of its file.
    #[arg(long, value_name = "NAME|PATH", env = "REQTOP_THEME", default_value = "terminal")]
    pub theme: Option<String>,
    /// Draw with ASCII alone, for terminals and fonts without blocks and braille.
    #[arg(
        long, env = "REQTOP_ASCII", value_name = "BOOL", action = ArgAction::Set, num_args = 0..=1, require_equals = true,
        default_value = "false", default_missing_value = "true", value_parser = BoolishValueParser::new()
    )]
    pub ascii: bool,
    /// Listen to the mouse: click, wheel, double click, drag over a plot of time. Most terminals then select text with
    /// Shift.
    #[arg(
        long, env = "REQTOP_MOUSE", value_name = "BOOL", action = ArgAction::Set, num_args = 0..=1, require_equals = true,
        default_value = "false", default_missing_value = "true", value_parser = BoolishValueParser::new()
    )]
    pub mouse: bool,
    /// How many colours the terminal has.
    #[arg(long, value_name = "HOW MANY", env = "REQTOP_COLOURS", aliases = ["colors", "colour", "color"], value_enum, default_value_t = Colours::Auto)]
    pub colours: Colours,
    /// Show only requests that match this filter at first.
    #[arg(long, value_name = "EXPR", env = "REQTOP_FILTER")]
    pub filter: Option<String>,
    /// Link traces to where their store shows them, as in http://jaeger:16686/trace/{trace_id} [default with --from
    /// jaeger: there]
    #[arg(long, value_name = "TEMPLATE", env = "REQTOP_TRACE_URL")]
    pub trace_url: Option<String>,
    /// How far panes and list look back at first.
    #[arg(long, value_name = "TIME", env = "REQTOP_WINDOW", value_enum, default_value_t = Window::All)]
    pub window: Window,
    /// Which key does what; from the settings file alone.
    #[arg(skip)]
    pub keys: Keymap,
}

/// How many colours the terminal has.
#[derive(ValueEnum, Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Colours {
    /// As NO_COLOR, COLORTERM and TERM say.
    #[default]
    Auto,
    /// None: weight alone.
    None,
    /// The terminal's own sixteen.
    #[value(name = "16")]
    Sixteen,
    /// The 256 of xterm.
    #[value(name = "256")]
    Indexed,
    /// All 16 million.
    All,
}

/// How far back the screen looks.
#[derive(ValueEnum, Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Window {
    /// Ten seconds.
    #[value(name = "10s")]
    TenSeconds,
    /// A minute.
    #[value(name = "1m")]
    Minute,
    /// Five minutes.
    #[value(name = "5m")]
    FiveMinutes,
    /// Everything held.
    #[default]
    All,
}
