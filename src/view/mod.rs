//! View models: what one screen needs, as plain data with a tone.
//!
//! Owns: what is said and how it is worded, cut and ranked; the four kinds of nothing (design §1.2); one place for the
//! form of numbers. Keeps out: terminal types, colours, keys (`tui`), and how facts come about (`lifecycle`, `store`).
//! A view model costs what the screen shows, not what the store holds.

pub mod account;
pub mod checks;
pub mod data;
pub mod filter;
pub mod format;
pub mod header;
pub mod index;
pub mod link;
pub mod list;
pub mod otlp_json;
pub mod outcomes;
pub mod pace;
pub mod panes;
pub mod request;
pub mod story;
pub mod window;

#[cfg(test)]
pub(crate) mod fixture;

use crate::lifecycle::facts::{Facts, State};
use crate::lifecycle::stage::{Layout, Mode, Outcome, Phase};

/// What a text means; a theme gives each tone its look. A word or sign always says the same as the tone.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug, Default)]
pub enum Tone {
    /// The terminal's own foreground: text and numbers.
    #[default]
    Plain,
    /// Labels, and what is not there.
    Dim,
    /// Titles, and what is chosen.
    Strong,
    /// The one accent.
    Accent,
    /// Went well; quiet.
    Good,
    /// Odd, worth a look.
    Warn,
    /// Went wrong; loud.
    Bad,
    /// The client left.
    Cancelled,
    /// Refused.
    Rejected,
    /// Still going on.
    Running,
    /// The queue phase.
    Queue,
    /// The prefill phase.
    Prefill,
    /// The decode phase.
    Decode,
    /// The streaming phase.
    Streaming,
}

impl Tone {
    /// Every tone with the name themes call it by.
    pub const ALL: [(Self, &'static str); 14] = [
        (Self::Plain, "plain"),
        (Self::Dim, "dim"),
        (Self::Strong, "strong"),
        (Self::Accent, "accent"),
        (Self::Good, "good"),
        (Self::Warn, "warn"),
        (Self::Bad, "bad"),
        (Self::Cancelled, "cancelled"),
        (Self::Rejected, "rejected"),
        (Self::Running, "running"),
        (Self::Queue, "queue"),
        (Self::Prefill, "prefill"),
        (Self::Decode, "decode"),
        (Self::Streaming, "streaming"),
    ];

    /// The tone of a phase; an aggregated leg decodes.
    pub fn of_phase(phase: Phase) -> Self {
        match phase {
            Phase::Prefill => Self::Prefill,
            Phase::Decode | Phase::Aggregated => Self::Decode,
            Phase::Unknown => Self::Plain,
        }
    }
}

/// A piece of text in one tone.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Piece {
    /// The text; may hold line breaks and tabs, which drawing shows as signs.
    pub text: String,
    /// What it means.
    pub tone: Tone,
}

impl Piece {
    /// A piece.
    pub fn new(text: impl Into<String>, tone: Tone) -> Self {
        Self { text: text.into(), tone }
    }

    /// A piece in the plain tone.
    pub fn plain(text: impl Into<String>) -> Self {
        Self::new(text, Tone::Plain)
    }

    /// A piece in the dim tone.
    pub fn dim(text: impl Into<String>) -> Self {
        Self::new(text, Tone::Dim)
    }
}

/// A line of pieces.
pub type Line = Vec<Piece>;

/// Why a value is not shown. Each looks different (design §1.2).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Nothing {
    /// This request has no such thing: a round-robin route has no margin.
    NoSuch,
    /// Not recorded in this mode.
    Mode(Mode),
    /// Not recorded by this layout.
    Layout(Layout),
    /// Not yet arrived.
    NotYet,
    /// Told by spans, of which none has come: records or logs alone tell of this request.
    Spanless,
    /// Missing although expected.
    Missing,
}

impl Nothing {
    /// What it is of this request: what is in flight may have more to come, and what has no spans lacks what they would
    /// tell; else `otherwise`.
    pub fn of(facts: &Facts, otherwise: Self) -> Self {
        match facts.state {
            State::InFlight | State::Ending => Self::NotYet,
            _ if facts.spans == 0 => Self::Spanless,
            _ => otherwise,
        }
    }

    /// What it is where nobody recorded a value that the evidence layout has.
    pub fn unrecorded(facts: &Facts) -> Self {
        if facts.layout == Layout::Evidence { Self::Missing } else { Self::Layout(facts.layout) }
    }

    /// The mark in a table cell.
    pub fn mark(self) -> Piece {
        match self {
            Self::NoSuch => Piece::dim("–"),
            Self::Mode(mode) => Piece::dim(mode.word()),
            Self::Layout(layout) => Piece::dim(layout.word()),
            Self::NotYet => Piece::new("…", Tone::Running),
            Self::Spanless => Piece::dim("?"),
            Self::Missing => Piece::new("missing", Tone::Warn),
        }
    }

    /// The sentence on the request screen.
    pub fn sentence(self) -> Piece {
        match self {
            Self::NoSuch => Piece::dim("none"),
            Self::Mode(mode) => Piece::dim(format!("not recorded in {} mode", mode.word())),
            Self::Layout(layout) => Piece::dim(format!("not recorded by the {} layout", layout.word())),
            Self::NotYet => Piece::new("not yet arrived", Tone::Running),
            Self::Spanless => Piece::dim("told by spans, of which none has come"),
            Self::Missing => Piece::new("missing although expected", Tone::Warn),
        }
    }
}

/// The sign of an outcome.
pub fn outcome_sign(outcome: Outcome) -> &'static str {
    match outcome {
        Outcome::Success => "✓",
        Outcome::Cancelled => "↯",
        Outcome::Rejected => "✕",
        Outcome::TimedOut => "⧗",
        Outcome::Failed => "⚠",
        Outcome::Unknown => "?",
    }
}

/// The tone of an outcome.
pub fn outcome_tone(outcome: Outcome) -> Tone {
    match outcome {
        Outcome::Success => Tone::Good,
        Outcome::Cancelled => Tone::Cancelled,
        Outcome::Rejected => Tone::Rejected,
        Outcome::TimedOut => Tone::Warn,
        Outcome::Failed => Tone::Bad,
        Outcome::Unknown => Tone::Warn,
    }
}

/// The sign of a state without a root.
pub fn state_sign(state: State) -> &'static str {
    match state {
        State::InFlight => "◌",
        State::Ending => "◑",
        State::Ended => "·",
        State::Lost => "∅",
    }
}

/// The tone of a state without a root.
pub fn state_tone(state: State) -> Tone {
    match state {
        State::InFlight | State::Ending => Tone::Running,
        State::Ended => Tone::Dim,
        State::Lost => Tone::Warn,
    }
}

/// Sign and word for how a request stands.
pub fn standing_piece(facts: &Facts) -> Piece {
    let (sign, tone) = match (facts.outcome, facts.state) {
        (Some(outcome), _) => (outcome_sign(outcome), outcome_tone(outcome)),
        (None, state) => (state_sign(state), state_tone(state)),
    };
    Piece::new(format!("{sign} {}", facts.outcome_text().replace('_', " ")), tone)
}

/// The name a request is shown under: its id, or its trace's when no id has arrived.
pub fn request_name(facts: &Facts) -> String {
    match (&*facts.request_id, facts.trace) {
        ("", Some(trace)) => format!("trace {trace}"),
        ("", None) => "no id".into(),
        (id, _) => id.to_owned(),
    }
}
