//! Keys: their names in the action table, and which events of a terminal count as one.
//!
//! Press acts; repeat acts for movement and text only; release never (field case B58).

use std::fmt;

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

/// Keys that type no character: how they are shown, and other names they are read by.
const NAMES: [(&str, &[&str], KeyCode); 16] = [
    ("Enter", &["Return"], KeyCode::Enter),
    ("Esc", &["Escape"], KeyCode::Esc),
    ("Tab", &[], KeyCode::Tab),
    ("S-Tab", &["Shift-Tab", "BackTab"], KeyCode::BackTab),
    ("Backspace", &[], KeyCode::Backspace),
    ("Del", &["Delete"], KeyCode::Delete),
    ("Ins", &["Insert"], KeyCode::Insert),
    ("Space", &[], KeyCode::Char(' ')),
    ("↑", &["Up"], KeyCode::Up),
    ("↓", &["Down"], KeyCode::Down),
    ("←", &["Left"], KeyCode::Left),
    ("→", &["Right"], KeyCode::Right),
    ("PgUp", &["PageUp"], KeyCode::PageUp),
    ("PgDn", &["PageDown"], KeyCode::PageDown),
    ("Home", &[], KeyCode::Home),
    ("End", &[], KeyCode::End),
];

/// What stands before a key's name for each modifier: as shown, then as read too.
const CTRL: [&str; 3] = ["C-", "Ctrl-", "Control-"];
const ALT: [&str; 3] = ["M-", "Alt-", "Meta-"];

/// The longest name that is read, bytes.
const LONGEST: usize = 32;

impl Key {
    /// Reads a name: `j`, `G`, `Enter`, `C-z`, `Alt-x`, `F1`, `↑` or `Up`.
    pub fn parse(name: &str) -> Option<Self> {
        // No key has a name as long; it would be read prefix by prefix.
        if name.len() > LONGEST {
            return None;
        }
        let after = |prefixes: [&str; 3]| {
            prefixes.iter().find_map(|prefix| name.strip_prefix(prefix)).filter(|rest| !rest.is_empty())
        };
        if let Some(rest) = after(CTRL) {
            let key = Self::parse(rest)?;
            // Terminals send the same for both cases.
            let code = match key.code {
                KeyCode::Char(c) => KeyCode::Char(c.to_ascii_lowercase()),
                code => code,
            };
            return Some(Self { code, ctrl: true, ..key });
        }
        if let Some(rest) = after(ALT) {
            return Some(Self { alt: true, ..Self::parse(rest)? });
        }
        let named = NAMES.iter().find(|(known, others, _)| *known == name || others.contains(&name));
        let code = named.map(|(.., code)| *code).or_else(|| {
            let mut chars = name.chars();
            match (chars.next(), chars.as_str()) {
                (Some(c), "") if !c.is_control() && c != ' ' => Some(KeyCode::Char(c)),
                (Some('F'), number) => number.parse().ok().filter(|at| (1..=24).contains(at)).map(KeyCode::F),
                _ => None,
            }
        })?;
        Some(Self { code, ctrl: false, alt: false })
    }

    /// The character it types, when it types one.
    pub fn typed(self) -> Option<char> {
        match self.code {
            KeyCode::Char(c) if !self.ctrl && !self.alt => Some(c),
            _ => None,
        }
    }

    /// Its name in ASCII, for a key file.
    pub fn word(self) -> String {
        let shown = self.to_string();
        match NAMES.iter().find(|(.., code)| *code == self.code) {
            Some((sign, others, _)) if !sign.is_ascii() => shown.replace(sign, others[0]),
            _ => shown,
        }
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.ctrl {
            f.write_str(CTRL[0])?;
        }
        if self.alt {
            f.write_str(ALT[0])?;
        }
        match (NAMES.iter().find(|(.., code)| *code == self.code), self.code) {
            (Some((name, ..)), _) => f.write_str(name),
            (None, KeyCode::Char(c)) => write!(f, "{c}"),
            (None, KeyCode::F(number)) => write!(f, "F{number}"),
            (None, _) => f.write_str("?"),
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
        assert_eq!(Key::parse("Ctrl-Z"), Key::parse("C-z"));
        assert_eq!(Key::parse("Alt-x"), Some(Key { code: KeyCode::Char('x'), ctrl: false, alt: true }));
        assert_eq!((Key::parse("Up"), Key::parse("C-Left")), (Key::parse("↑"), Key::parse("C-←")));
        assert_eq!(Key::parse("-").map(|key| key.to_string()), Some("-".into()));
        for odd in ["nonsense", "", "C-", "F99", " ", "\x1b"] {
            assert_eq!(Key::parse(odd), None, "{odd:?}");
        }
        for name in ["j", "G", "Enter", "S-Tab", "↑", "C-z", "M-x", "C-M-x", "F10", "Space", "é"] {
            let key = Key::parse(name).unwrap();
            assert_eq!((key.to_string(), Key::parse(&key.word())), (name.to_owned(), Some(key)));
            assert!(key.word().is_ascii() || name == "é");
        }
    }
}
