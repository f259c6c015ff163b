//! Keys: their names in the action table, and which events of a terminal count as one.
//!
//! Press acts; repeat acts for movement and text only; release never (field case B58).

use crossterm::event::{KeyCode, KeyEvent, KeyEventKind, KeyModifiers};

/// One key with its modifiers. Shift is part of the character.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Key {
    /// Which.
    pub code: KeyCode,
    /// With Control.
    pub ctrl: bool,
    /// With Alt.
    pub alt: bool,
}

/// A key that was struck.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Stroke {
    /// Which.
    pub key: Key,
    /// Whether it is held down.
    pub repeated: bool,
}

const NAMES: [(&str, KeyCode); 15] = [
    ("Enter", KeyCode::Enter),
    ("Esc", KeyCode::Esc),
    ("Tab", KeyCode::Tab),
    ("S-Tab", KeyCode::BackTab),
    ("Backspace", KeyCode::Backspace),
    ("Del", KeyCode::Delete),
    ("Space", KeyCode::Char(' ')),
    ("↑", KeyCode::Up),
    ("↓", KeyCode::Down),
    ("←", KeyCode::Left),
    ("→", KeyCode::Right),
    ("PgUp", KeyCode::PageUp),
    ("PgDn", KeyCode::PageDown),
    ("Home", KeyCode::Home),
    ("End", KeyCode::End),
];

impl Key {
    /// Reads a name: `j`, `G`, `Enter`, `C-z`, `F1`.
    pub fn parse(name: &str) -> Option<Self> {
        let (ctrl, name) = match name.strip_prefix("C-") {
            Some(rest) if !rest.is_empty() => (true, rest),
            _ => (false, name),
        };
        let code = NAMES.iter().find(|(known, _)| *known == name).map(|(_, code)| *code).or_else(|| {
            let mut chars = name.chars();
            match (chars.next(), chars.as_str()) {
                (Some(c), "") => Some(KeyCode::Char(c)),
                (Some('F'), number) => number.parse().ok().map(KeyCode::F),
                _ => None,
            }
        })?;
        Some(Self { code, ctrl, alt: false })
    }

    /// The character it types, when it types one.
    pub fn typed(self) -> Option<char> {
        match self.code {
            KeyCode::Char(c) if !self.ctrl && !self.alt => Some(c),
            _ => None,
        }
    }
}

/// What a key event comes to; `None` for a release.
pub fn stroke(event: &KeyEvent) -> Option<Stroke> {
    if event.kind == KeyEventKind::Release {
        return None;
    }
    let ctrl = event.modifiers.contains(KeyModifiers::CONTROL);
    let alt = event.modifiers.contains(KeyModifiers::ALT);
    let shift = event.modifiers.contains(KeyModifiers::SHIFT);
    let code = match event.code {
        KeyCode::Tab if shift => KeyCode::BackTab,
        KeyCode::Char(c) if ctrl => KeyCode::Char(c.to_ascii_lowercase()),
        code => code,
    };
    Some(Stroke { key: Key { code, ctrl, alt }, repeated: event.kind == KeyEventKind::Repeat })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read() {
        let key = |code, ctrl| Some(Key { code, ctrl, alt: false });
        assert_eq!(Key::parse("j"), key(KeyCode::Char('j'), false));
        assert_eq!(Key::parse("C-z"), key(KeyCode::Char('z'), true));
        assert_eq!(Key::parse("F10"), key(KeyCode::F(10), false));
        assert_eq!(Key::parse("F"), key(KeyCode::Char('F'), false));
        assert_eq!(Key::parse("S-Tab"), key(KeyCode::BackTab, false));
        assert_eq!(Key::parse("nonsense"), None);
    }
}
