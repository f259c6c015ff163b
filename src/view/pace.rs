//! How the screen stands: live, at the end of what there is, still, or at a moment that has passed; in the words of the
//! header and of titles. Owns: those words. Keeps out: moving in time (`tui::travel`).

use super::window::Window;
use super::{Line, Piece, Tone, format};

/// How the screen stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pace {
    /// Shows what comes in.
    Live,
    /// Shows all there is: nothing more comes in.
    Ended,
    /// Frozen; as many requests have come since.
    Paused {
        /// Requests since the pause.
        newer: u64,
    },
    /// Shows a moment that has passed.
    Back {
        /// The moment, nanoseconds since the epoch.
        at_ns: u64,
        /// How long before the last moment of all that is held, nanoseconds.
        ago_ns: u64,
    },
}

impl Pace {
    /// For the header: long and short.
    pub fn words(self, window: Window) -> (Line, Line) {
        match self {
            Self::Live => {
                let long = vec![Piece::new("LIVE ", Tone::Good), Piece::plain(window.word())];
                (long.clone(), long)
            }
            Self::Ended => {
                let long = vec![Piece::new("ENDED ", Tone::Dim), Piece::plain(window.word())];
                (long.clone(), long)
            }
            Self::Paused { newer } => {
                let short = vec![Piece::new("PAUSED ", Tone::Warn), Piece::plain(window.word())];
                let mut long = short.clone();
                long.push(Piece::dim(format!(" {} since", format::count(newer))));
                (long, short)
            }
            Self::Back { at_ns, ago_ns } => {
                let ago = format::duration(ago_ns);
                let short = vec![Piece::new("BACK ", Tone::Warn), Piece::plain(format!("−{ago} {}", window.word()))];
                let mut long = vec![Piece::new("BACK ", Tone::Warn), Piece::plain(format::clock_ms(at_ns))];
                long.push(Piece::dim(format!(" −{ago} · {} · p live", window.word())));
                (long, short)
            }
        }
    }

    /// For titles: nothing while all there is is shown.
    pub fn mark(self) -> Line {
        match self {
            Self::Live | Self::Ended => Line::new(),
            Self::Paused { .. } => vec![Piece::new("PAUSED", Tone::Warn)],
            Self::Back { at_ns, ago_ns } => vec![
                Piece::new("BACK ", Tone::Warn),
                Piece::plain(format::clock_ms(at_ns)),
                Piece::dim(format!(" −{}", format::duration(ago_ns))),
            ],
        }
    }
}
