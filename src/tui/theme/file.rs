//! One theme file as it is written: palette, roles, what it builds on, and what is wrong with it, line by line.
//!
//! ```toml
//! about = "what the list says of it"
//! inherits = "terminal"          # a theme to take everything from that does not stand here
//! [palette]
//! sand = "#d7b98e"               # a name for a colour: #rrggbb, one of the sixteen, or 0 to 255
//! [roles]
//! warn = "sand"                  # a colour of the palette, or a colour
//! bad = { fg = "red", bg = "sand", bold = true, dim = false, italic = false, underline = true, reverse = false }
//! ```

use std::collections::BTreeMap;

use ratatui::style::{Color, Modifier, Style};
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::names;
use crate::lifecycle::text::scrub;
use crate::query::meant;

/// Warnings kept for one file; a file of nothing but mistakes needs no more.
const WARNINGS: usize = 20;

/// A theme file.
#[derive(Default)]
pub(super) struct File {
    /// What the list says of it.
    pub(super) about: String,
    /// The theme it builds on.
    pub(super) inherits: Option<String>,
    /// Colours by name.
    pub(super) palette: BTreeMap<String, Color>,
    /// Looks by the name of the role, in terms of the palette.
    pub(super) roles: BTreeMap<&'static str, Look>,
    /// What is wrong, and in which line.
    pub(super) warnings: Vec<(usize, String)>,
}

/// A look before its colours are found in the palette.
#[derive(Clone, Default)]
pub(super) struct Look {
    fg: Option<String>,
    bg: Option<String>,
    modifiers: Modifier,
    /// Where it stands.
    pub(super) line: usize,
}

impl Look {
    /// The look with a palette.
    ///
    /// # Errors
    /// What names no colour.
    pub(super) fn style(&self, palette: &BTreeMap<String, Color>) -> Result<Style, String> {
        let colour = |name: &Option<String>| {
            let Some(name) = name else { return Ok(None) };
            palette.get(name).copied().or_else(|| read(name)).map(Some).ok_or_else(|| {
                let near = meant(name, palette.keys().map(String::as_str));
                let hint = near.map_or_else(String::new, |near| format!("; did you mean {near}?"));
                format!("{name:?} is no colour of the palette, {EXPECTED}{hint}")
            })
        };
        let style = Style { fg: colour(&self.fg)?, bg: colour(&self.bg)?, ..Style::default() };
        Ok(style.add_modifier(self.modifiers))
    }
}

const EXPECTED: &str = "no #rrggbb, none of the sixteen names (red, bright red, …), no number from 0 to 255";

/// A colour by itself.
fn read(text: &str) -> Option<Color> {
    text.parse().ok()
}

/// The looks a role can have beside colours.
const MODIFIERS: [(&str, Modifier); 5] = [
    ("bold", Modifier::BOLD),
    ("dim", Modifier::DIM),
    ("italic", Modifier::ITALIC),
    ("underline", Modifier::UNDERLINED),
    ("reverse", Modifier::REVERSED),
];

struct Reader<'a> {
    text: &'a str,
    warnings: Vec<(usize, String)>,
}

impl Reader<'_> {
    fn line(&self, at: usize) -> usize {
        self.text.get(..at).map_or(1, |before| before.matches('\n').count() + 1)
    }

    fn warn(&mut self, at: usize, what: impl std::fmt::Display) {
        if self.warnings.len() < WARNINGS {
            self.warnings.push((self.line(at), what.to_string()));
        }
    }

    fn text(&mut self, what: &str, value: &Spanned<DeValue<'_>>) -> Option<String> {
        match value.get_ref() {
            DeValue::String(text) => Some(text.clone().into_owned()),
            DeValue::Integer(number) => Some(number.to_string()),
            other => {
                self.warn(value.span().start, format_args!("{what}: expected a text, found {}", other.type_str()));
                None
            }
        }
    }

    fn palette(&mut self, table: &DeTable<'_>) -> BTreeMap<String, Color> {
        let mut palette = BTreeMap::new();
        for (name, value) in table {
            let Some(text) = self.text(name.get_ref(), value) else { continue };
            match read(&text) {
                Some(colour) => _ = palette.insert(name.get_ref().clone().into_owned(), colour),
                None => self.warn(value.span().start, format_args!("{}: {text:?} is {EXPECTED}", name.get_ref())),
            }
        }
        palette
    }

    fn roles(&mut self, table: &DeTable<'_>) -> BTreeMap<&'static str, Look> {
        let mut roles = BTreeMap::new();
        for (name, value) in table {
            let at = name.span().start;
            let Some(role) = names().find(|known| known == name.get_ref()) else {
                let near = meant(name.get_ref(), names());
                let hint = near.map_or_else(String::new, |near| format!("; did you mean {near}?"));
                self.warn(at, format_args!("no role is called {}{hint}", name.get_ref()));
                continue;
            };
            let mut look = Look { line: self.line(at), ..Look::default() };
            match value.get_ref() {
                DeValue::Table(parts) => self.look(role, parts, &mut look),
                _ => match self.text(role, value) {
                    Some(colour) => look.fg = Some(colour),
                    None => continue,
                },
            }
            roles.insert(role, look);
        }
        roles
    }

    fn look(&mut self, role: &str, parts: &DeTable<'_>, look: &mut Look) {
        for (part, value) in parts {
            let part_name = part.get_ref().as_ref();
            match (part_name, MODIFIERS.iter().find(|(name, _)| *name == part_name), value.get_ref()) {
                ("fg", ..) => look.fg = self.text("fg", value),
                ("bg", ..) => look.bg = self.text("bg", value),
                (_, Some((_, modifier)), DeValue::Boolean(on)) => look.modifiers.set(*modifier, *on),
                (_, Some(_), other) => {
                    let found = other.type_str();
                    self.warn(value.span().start, format_args!("{role}: {part_name} is true or false, found {found}"));
                }
                (_, None, _) => {
                    let known = "fg, bg, bold, dim, italic, underline, reverse";
                    self.warn(part.span().start, format_args!("{role}: {part_name} is none of {known}"));
                }
            }
        }
    }
}

impl File {
    /// Reads a theme; what cannot be read is told and left out.
    pub(super) fn read(text: &str) -> Self {
        let mut reader = Reader { text, warnings: Vec::new() };
        let (table, errors) = DeTable::parse_recoverable(text);
        for error in errors {
            let at = error.span().map_or(0, |span| span.start);
            reader.warn(at, error.message());
        }
        let mut file = Self::default();
        for (key, value) in table.get_ref() {
            match (key.get_ref().as_ref(), value.get_ref()) {
                ("about", _) => {
                    let about = reader.text("about", value).unwrap_or_default();
                    file.about = scrub(about.as_bytes()).into_owned();
                }
                ("inherits", _) => file.inherits = reader.text("inherits", value),
                ("palette", DeValue::Table(table)) => file.palette = reader.palette(table),
                ("roles", DeValue::Table(table)) => file.roles = reader.roles(table),
                (other, _) => {
                    let expected = "expected about, inherits, [palette] or [roles]";
                    reader.warn(key.span().start, format_args!("{expected}, found {other}"));
                }
            }
        }
        file.warnings = reader.warnings;
        file
    }
}
