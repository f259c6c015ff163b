//! The menu of themes. The one under the cursor is shown at once, on the screen behind the menu; Esc takes it back.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use super::help::Help;
use super::{Command, Env, Layer, Scene, clear, in_list, moved, scrolled};
use crate::tui::action::{Action, Place};
use crate::tui::mouse::Pointer;
use crate::tui::theme::{Entry, Role, Source, Theme};
use crate::tui::widgets::frame::frame;
use crate::tui::widgets::text::{At, paint, put, put_right};
use crate::view::Tone;

/// The theme in use.
#[derive(Clone, Debug)]
pub struct Chosen {
    /// Its name.
    pub name: String,
    /// How everything looks.
    pub theme: Theme,
}

/// The menu.
pub struct ThemeMenu {
    themes: Vec<Entry>,
    before: Chosen,
    cursor: usize,
    top: usize,
}

/// Tones of the sample beside each name.
const SAMPLE: [Tone; 8] =
    [Tone::Good, Tone::Cancelled, Tone::Rejected, Tone::Bad, Tone::Queue, Tone::Prefill, Tone::Decode, Tone::Streaming];

/// Lines below the list: what the theme says of itself, and what is wrong with it.
const BELOW: u16 = 2;

impl ThemeMenu {
    /// A menu with the cursor on the theme in use.
    pub fn new(env: &Env) -> Self {
        let themes = env.themes.list();
        let cursor = themes.iter().position(|entry| entry.name == env.chosen.name).unwrap_or(0);
        Self { themes, before: env.chosen.clone(), cursor, top: 0 }
    }

    /// At the right, so that most of what the theme changes can be seen.
    fn area(&self, whole: Rect) -> Rect {
        let width = 52.min(whole.width);
        let height = (self.themes.len() as u16).saturating_add(2 + BELOW).min(whole.height);
        Rect { x: whole.right() - width, y: whole.y + (whole.height - height) / 2, width, height }
    }

    fn page(&self, whole: Rect) -> u16 {
        self.area(whole).height.saturating_sub(2 + BELOW).max(1)
    }

    fn shown(&self) -> Vec<Command> {
        let entry = self.themes.get(self.cursor);
        let chosen = entry.map(|entry| Chosen { name: entry.name.clone(), theme: entry.theme.clone() });
        chosen.map(|chosen| Command::Theme(Box::new(chosen))).into_iter().collect()
    }
}

impl Layer for ThemeMenu {
    fn place(&self) -> Place {
        Place::Menu
    }

    fn is_opaque(&self) -> bool {
        false
    }

    fn on(&mut self, action: Action, scene: &Scene<'_>) -> Vec<Command> {
        match action {
            Action::Open => {
                let name = &scene.env.chosen.name;
                let said = format!("{name} until you quit; to keep it: theme = \"{name}\" in config.toml");
                return vec![Command::Pop, Command::Say(said)];
            }
            Action::Back => return vec![Command::Theme(Box::new(self.before.clone())), Command::Pop],
            Action::Help => return vec![Command::Push(Box::new(Help::new(Place::Menu)))],
            _ => {}
        }
        match moved(action, self.cursor, self.themes.len(), self.page(scene.area)) {
            Some(cursor) => {
                self.cursor = cursor;
                self.shown()
            }
            None => Vec::new(),
        }
    }

    fn point(&mut self, pointer: Pointer, scene: &Scene<'_>) -> Vec<Command> {
        if let Some(by) = pointer.wheel() {
            let last = self.themes.len().saturating_sub(1);
            self.cursor = self.cursor.saturating_add_signed(by).min(last);
            return self.shown();
        }
        let area = self.area(scene.area);
        let rows = Rect { y: area.y + 1, height: self.page(scene.area), ..area };
        match in_list(pointer, area, rows, &mut self.cursor, self.top, self.themes.len()) {
            Some(action) => self.on(action, scene),
            None if pointer.is_press() => self.shown(),
            None => Vec::new(),
        }
    }

    fn refresh(&mut self, scene: &Scene<'_>) {
        self.top = scrolled(self.top, self.cursor, self.themes.len(), self.page(scene.area));
    }

    fn draw(&self, buf: &mut Buffer, whole: Rect, env: &Env, theme: &Theme) {
        let area = self.area(whole);
        clear(buf, area);
        let hints = env.keys.hints(Place::Menu, &[(Action::Open, "keep"), (Action::Back, "back")]);
        let inside = frame(buf, area, "Theme", &hints, true, theme);
        let page = self.page(whole).min(inside.height);
        for (row, (index, entry)) in (0..page).zip(self.themes.iter().enumerate().skip(self.top)) {
            let at = At::row(inside, row);
            put(buf, At { width: 22.min(at.width), ..at }, &entry.name, theme.tone(Tone::Plain));
            let note = match (&entry.source, entry.warnings.len()) {
                (Source::BuiltIn, 0) => String::new(),
                (Source::File(_), 0) => "own".to_owned(),
                (_, count) => format!("own · {count} odd"),
            };
            put_right(buf, At { width: at.width.min(34), ..at }, &note, theme.tone(Tone::Dim));
            if index == self.cursor {
                paint(buf, at, theme.role(Role::Cursor));
            }
            // Each in its own colours, also under the cursor.
            let mut sample = at.after(36);
            for tone in SAMPLE {
                let style = entry.theme.role(Role::Screen).patch(entry.theme.tone(tone));
                sample = sample.after(put(buf, sample, "▆", style));
            }
        }
        let (Some(entry), true) = (self.themes.get(self.cursor), inside.height > page) else { return };
        put(buf, At::row(inside, page), &entry.about, theme.tone(Tone::Dim));
        if let (Some(warning), true) = (entry.warnings.first(), inside.height > page + 1) {
            put(buf, At::row(inside, page + 1), warning, theme.tone(Tone::Warn));
        }
    }
}
