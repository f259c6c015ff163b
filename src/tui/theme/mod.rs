//! Themes: a palette of colours and the look of every role, read from TOML.
//!
//! A theme may build on another (`inherits`; on `terminal` when it names none). Mistakes in a theme are warnings: what is
//! good beside them is kept. What a terminal cannot show is replaced by what it can ([`depth`]). Keeps out: what is drawn
//! in which role.

mod catalogue;
pub mod depth;
mod file;
#[cfg(test)]
mod tests;

use ratatui::buffer::Buffer;
use ratatui::style::{Color, Style};

use crate::view::Tone;

pub use catalogue::{Entry, Source, Themes};
pub use depth::Depth;

/// What is no content: frames, cursor, keys.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash, PartialOrd, Ord)]
pub enum Role {
    /// Wherever nothing else has a colour.
    Screen,
    /// A frame.
    Border,
    /// The frame of the part that has the keys.
    Focus,
    /// The title in a frame.
    Title,
    /// What the cursor stands on.
    Cursor,
    /// A key's name.
    Key,
    /// A message.
    Message,
}

impl Role {
    /// Every role with the name themes call it by.
    pub const ALL: [(Self, &'static str); 7] = [
        (Self::Screen, "screen"),
        (Self::Border, "border"),
        (Self::Focus, "focus"),
        (Self::Title, "title"),
        (Self::Cursor, "cursor"),
        (Self::Key, "key"),
        (Self::Message, "message"),
    ];
}

/// The names of everything that has a look: tones, then roles.
pub fn names() -> impl Iterator<Item = &'static str> {
    Tone::ALL.iter().map(|(_, name)| *name).chain(Role::ALL.iter().map(|(_, name)| *name))
}

/// The look of everything.
#[derive(Clone, Debug, PartialEq)]
pub struct Theme {
    tones: [Style; Tone::ALL.len()],
    roles: [Style; Role::ALL.len()],
    signs: Signs,
}

/// Which signs a terminal can show.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Signs {
    /// Frames, blocks, braille.
    #[default]
    Unicode,
    /// Letters and marks of ASCII in their place.
    Ascii,
}

impl Theme {
    /// A theme that is in the program, as a terminal with all colours shows it.
    ///
    /// # Errors
    /// The names there are, when there is none of this name.
    pub fn named(name: &str) -> Result<Self, String> {
        Themes::default().find(name).map(|entry| entry.theme)
    }

    /// With a look for each name.
    fn of(mut look: impl FnMut(&str) -> Style) -> Self {
        Self {
            tones: Tone::ALL.map(|(_, name)| look(name)),
            roles: Role::ALL.map(|(_, name)| look(name)),
            signs: Signs::default(),
        }
    }

    /// The same with every look changed.
    #[must_use]
    fn with_each(mut self, change: impl Fn(Style) -> Style) -> Self {
        self.tones.iter_mut().chain(&mut self.roles).for_each(|style| *style = change(*style));
        self
    }

    /// The same with the looks of text and frames that do not pass taken from another theme.
    #[must_use]
    fn or(mut self, other: &Self, passes: impl Fn(&Style) -> bool) -> Self {
        for tone in [Tone::Plain, Tone::Dim, Tone::Strong].map(|tone| tone as usize) {
            if !passes(&self.tones[tone]) {
                self.tones[tone] = other.tones[tone];
            }
        }
        for role in [Role::Screen, Role::Border, Role::Title].map(|role| role as usize) {
            if !passes(&self.roles[role]) {
                self.roles[role] = other.roles[role];
            }
        }
        self
    }

    /// The same with these signs.
    #[must_use]
    pub fn with_signs(self, signs: Signs) -> Self {
        Self { signs, ..self }
    }

    /// Which signs it uses.
    pub fn signs(&self) -> Signs {
        self.signs
    }

    /// The look of a tone.
    pub fn tone(&self, tone: Tone) -> Style {
        self.tones[tone as usize]
    }

    /// The look of a role.
    pub fn role(&self, role: Role) -> Style {
        self.roles[role as usize]
    }

    /// Gives the screen's own colours to whatever has none.
    pub fn fill(&self, buf: &mut Buffer) {
        let Style { fg, bg, .. } = self.role(Role::Screen);
        if (fg, bg) == (None, None) {
            return;
        }
        for cell in &mut buf.content {
            if let (Color::Reset, Some(colour)) = (cell.fg, fg) {
                cell.fg = colour;
            }
            if let (Color::Reset, Some(colour)) = (cell.bg, bg) {
                cell.bg = colour;
            }
        }
    }
}
