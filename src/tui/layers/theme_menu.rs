//! The menu of themes. The one under the cursor is shown at once, on the screen behind the menu; Esc takes it back.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use super::menu::{Choices, Menu};
use super::{Command, Env};
use crate::tui::theme::{Entry, Role, Source, Theme};
use crate::tui::widgets::text::{At, put, put_right};
use crate::view::Tone;

/// The theme in use.
#[derive(Clone, Debug)]
pub struct Chosen {
    /// Its name.
    pub name: String,
    /// How everything looks.
    pub theme: Theme,
}

/// The themes there are, and the one that was in use.
pub struct Themes {
    list: Vec<Entry>,
    before: Chosen,
}

/// Tones of the sample beside each name.
const SAMPLE: [Tone; 8] =
    [Tone::Good, Tone::Cancelled, Tone::Rejected, Tone::Bad, Tone::Queue, Tone::Prefill, Tone::Decode, Tone::Streaming];

impl Menu<Themes> {
    /// A menu with the cursor on the theme in use.
    pub fn of_themes(env: &Env) -> Self {
        let list = env.themes.list();
        let cursor = list.iter().position(|entry| entry.name == env.chosen.name).unwrap_or(0);
        Self::new(Themes { list, before: env.chosen.clone() }, cursor)
    }
}

impl Choices for Themes {
    const TITLE: (&'static str, &'static str) = ("Theme", "keep");
    /// What the theme says of itself, and what is wrong with it.
    const BELOW: u16 = 2;

    fn count(&self) -> usize {
        self.list.len()
    }

    /// At the right, so that most of what the theme changes can be seen.
    fn area(&self, whole: Rect) -> Rect {
        let width = 52.min(whole.width);
        let height = (self.list.len() as u16).saturating_add(2 + Self::BELOW).min(whole.height);
        Rect { x: whole.right() - width, y: whole.y + (whole.height - height) / 2, width, height }
    }

    fn choose(&self, _: usize, env: &Env) -> Vec<Command> {
        let name = &env.chosen.name;
        vec![Command::Say(format!("{name} until you quit; to keep it: theme = \"{name}\" in config.toml"))]
    }

    fn pass(&self, row: usize) -> Vec<Command> {
        let entry = self.list.get(row);
        let chosen = entry.map(|entry| Chosen { name: entry.name.clone(), theme: entry.theme.clone() });
        chosen.map(|chosen| Command::Theme(Box::new(chosen))).into_iter().collect()
    }

    fn leave(&self) -> Vec<Command> {
        vec![Command::Theme(Box::new(self.before.clone()))]
    }

    fn row(&self, buf: &mut Buffer, at: At, row: usize, theme: &Theme) {
        let entry = &self.list[row];
        put(buf, At { width: 22.min(at.width), ..at }, &entry.name, theme.tone(Tone::Plain));
        let note = match (&entry.source, entry.warnings.len()) {
            (Source::BuiltIn, 0) => String::new(),
            (Source::File(_), 0) => "own".to_owned(),
            (_, count) => format!("own · {count} odd"),
        };
        put_right(buf, At { width: at.width.min(34), ..at }, &note, theme.tone(Tone::Dim));
    }

    /// The sample: each in its own colours.
    fn over(&self, buf: &mut Buffer, at: At, row: usize) {
        let theme = &self.list[row].theme;
        let mut sample = at.after(36);
        for tone in SAMPLE {
            sample = sample.after(put(buf, sample, "▆", theme.role(Role::Screen).patch(theme.tone(tone))));
        }
    }

    fn below(&self, buf: &mut Buffer, at: At, line: u16, row: usize, theme: &Theme) {
        let entry = &self.list[row];
        match (line, entry.warnings.first()) {
            (0, _) => _ = put(buf, at, &entry.about, theme.tone(Tone::Dim)),
            (_, Some(warning)) => _ = put(buf, at, warning, theme.tone(Tone::Warn)),
            (_, None) => {}
        }
    }
}
