//! Themes: a palette of colours and the look of every role, read from TOML. Keeps out: what is drawn in which role.
//!
//! A theme may build on another (`inherits`). With `NO_COLOR`, colours are left out and only bold, dim and reverse stay.

use std::collections::BTreeMap;

use ratatui::style::{Color, Modifier, Style};
use serde::Deserialize;

use crate::view::Tone;

/// What is no content: frames, cursor, keys.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash, PartialOrd, Ord)]
pub enum Role {
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
    const ALL: [(Self, &'static str); 6] = [
        (Self::Border, "border"),
        (Self::Focus, "focus"),
        (Self::Title, "title"),
        (Self::Cursor, "cursor"),
        (Self::Key, "key"),
        (Self::Message, "message"),
    ];
}

/// The look of everything.
#[derive(Clone, Debug)]
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

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    #[allow(dead_code, reason = "for people")]
    name: String,
    inherits: Option<String>,
    #[serde(default)]
    palette: BTreeMap<String, String>,
    #[serde(default)]
    roles: BTreeMap<String, Look>,
}

#[derive(Clone, Deserialize, Default)]
#[serde(deny_unknown_fields, default)]
struct Look {
    fg: Option<String>,
    bg: Option<String>,
    bold: bool,
    dim: bool,
    italic: bool,
    underline: bool,
    reverse: bool,
}

/// The themes in the program: name and text.
pub const EMBEDDED: [(&str, &str); 2] =
    [("terminal", include_str!("../../themes/terminal.toml")), ("light", include_str!("../../themes/light.toml"))];

/// How many themes may build on each other.
const MAX_DEPTH: usize = 8;

impl Theme {
    /// An embedded theme by name.
    ///
    /// # Errors
    /// The names there are, when there is none of this name.
    pub fn named(name: &str) -> Result<Self, String> {
        let text = EMBEDDED.iter().find(|(known, _)| *known == name).map(|(_, text)| *text).ok_or_else(|| {
            let known: Vec<&str> = EMBEDDED.iter().map(|(name, _)| *name).collect();
            format!("no theme {name}: expected {}", known.join(" or "))
        })?;
        Self::parse(text)
    }

    /// Reads a theme.
    ///
    /// # Errors
    /// What was expected, what came and where.
    pub fn parse(text: &str) -> Result<Self, String> {
        let (mut palette, mut looks) = (BTreeMap::new(), BTreeMap::new());
        let mut next = Some(text.to_owned());
        for _ in 0..MAX_DEPTH {
            let Some(text) = next.take() else { break };
            let file: File = toml::from_str(&text).map_err(|error| format!("theme: {error}"))?;
            // What stands in the theme itself goes before what it builds on.
            for (name, colour) in file.palette {
                palette.entry(name).or_insert(colour);
            }
            for (role, look) in file.roles {
                looks.entry(role).or_insert(look);
            }
            if let Some(base) = file.inherits {
                let base = EMBEDDED.iter().find(|(name, _)| *name == base);
                next = Some(base.ok_or("theme: inherits names no theme that is in the program")?.1.to_owned());
            }
        }
        let known = |role: &str| Tone::ALL.iter().any(|t| t.1 == role) || Role::ALL.iter().any(|r| r.1 == role);
        if let Some(odd) = looks.keys().find(|role| !known(role)) {
            return Err(format!("theme: no role is called {odd}"));
        }
        let style = |role: &str| {
            let look = looks.get(role).ok_or_else(|| format!("theme: the role {role} is missing"))?;
            look.style(&palette).map_err(|error| format!("theme: role {role}: {error}"))
        };
        let mut theme = Self { tones: Default::default(), roles: Default::default(), signs: Signs::default() };
        for (slot, (_, name)) in theme.tones.iter_mut().zip(Tone::ALL) {
            *slot = style(name)?;
        }
        for (slot, (_, name)) in theme.roles.iter_mut().zip(Role::ALL) {
            *slot = style(name)?;
        }
        Ok(theme)
    }

    /// The same without colours, for `NO_COLOR`.
    #[must_use]
    pub fn without_colour(mut self) -> Self {
        for style in self.tones.iter_mut().chain(&mut self.roles) {
            (style.fg, style.bg) = (None, None);
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
}

impl Look {
    fn style(&self, palette: &BTreeMap<String, String>) -> Result<Style, String> {
        let colour = |name: &Option<String>| -> Result<Option<Color>, String> {
            let Some(name) = name else { return Ok(None) };
            let value = palette.get(name).unwrap_or(name);
            value
                .parse()
                .map(Some)
                .map_err(|_| format!("expected a colour of the palette, one of the sixteen, or #rrggbb; found {value}"))
        };
        let modifiers = [
            (self.bold, Modifier::BOLD),
            (self.dim, Modifier::DIM),
            (self.italic, Modifier::ITALIC),
            (self.underline, Modifier::UNDERLINED),
            (self.reverse, Modifier::REVERSED),
        ];
        let mut style = Style { fg: colour(&self.fg)?, bg: colour(&self.bg)?, ..Style::default() };
        for (_, modifier) in modifiers.into_iter().filter(|(set, _)| *set) {
            style = style.add_modifier(modifier);
        }
        Ok(style)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn embedded_themes_are_whole_and_body_text_has_the_terminals_own_colours() {
        for (name, _) in EMBEDDED {
            let theme = Theme::named(name).unwrap();
            for tone in [Tone::Plain, Tone::Dim, Tone::Strong] {
                assert_eq!((theme.tone(tone).fg, theme.tone(tone).bg), (None, None), "{name} {tone:?}");
            }
            assert_ne!(theme.tone(Tone::Cancelled).fg, theme.tone(Tone::Rejected).fg);
        }
        assert!(Theme::named("zzz").unwrap_err().contains("terminal or light"));
    }

    #[test]
    fn without_colour_only_weight_is_left() {
        let theme = Theme::named("terminal").unwrap().without_colour();
        assert!(Tone::ALL.iter().all(|(tone, _)| theme.tone(*tone).fg.is_none()));
        assert!(theme.role(Role::Cursor).add_modifier.contains(Modifier::REVERSED));
    }

    #[test]
    fn mistakes_are_named() {
        let parse = |text| Theme::parse(text).unwrap_err();
        assert!(parse("name='x'\ninherits='terminal'\n[roles]\nzzz={}").contains("zzz"));
        assert!(parse("name='x'\ninherits='terminal'\n[roles]\nbad={fg='pinkish'}").contains("pinkish"));
        assert!(parse("name='x'").contains("missing"));
        assert!(parse("name='x'\ninherits='y'").contains("inherits"));
    }
}
