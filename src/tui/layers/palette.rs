//! The command palette: every action that works on the screen below, found by its words, with its key.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use super::line::{Edit, Line};
use super::{Command, Env, Layer, Scene, clear, in_list, moved, scrolled};
use crate::tui::action::{Action, Place, Row, rows};
use crate::tui::mouse::Pointer;
use crate::tui::theme::{Role, Theme};
use crate::tui::widgets::frame::frame;
use crate::tui::widgets::text::{At, paint, put, width};
use crate::view::Tone;

/// The palette.
pub struct Palette {
    /// Where its actions work.
    below: Place,
    line: Line,
    found: Vec<&'static Row>,
    cursor: usize,
    top: usize,
}

/// The most rows of actions.
const MOST: u16 = 16;

fn area(whole: Rect) -> Rect {
    let (width, height) = (96.min(whole.width), (MOST + 3).min(whole.height));
    Rect { x: whole.x + (whole.width - width) / 2, y: whole.y + (whole.height - height) / 4, width, height }
}

fn page(whole: Rect) -> u16 {
    area(whole).height.saturating_sub(3).max(1)
}

/// How well a row answers what was typed, the best first; `None` when it does not. Every word must be found: at the
/// beginning of its id, anywhere in its id, in what it does, or letter by letter in its id.
fn rank(row: &Row, wanted: &str) -> Option<usize> {
    let doc = row.doc.to_lowercase();
    let mut worst = 0;
    for word in wanted.split_whitespace() {
        let letters = || {
            let mut id = row.id.chars();
            word.chars().all(|c| id.any(|other| other == c))
        };
        let of = match row.id {
            id if id.starts_with(word) => 0,
            id if id.contains(word) => 1,
            _ if doc.contains(word) => 2,
            _ if letters() => 3,
            _ => return None,
        };
        worst = worst.max(of);
    }
    Some(worst)
}

impl Palette {
    /// A palette over a screen.
    pub fn new(below: Place) -> Self {
        let mut palette = Self { below, line: Line::default(), found: Vec::new(), cursor: 0, top: 0 };
        palette.find();
        palette
    }

    fn find(&mut self) {
        let wanted = self.line.value().to_lowercase();
        let works = rows(self.below).filter(|row| row.action != Action::Palette);
        let mut found: Vec<_> = works.filter_map(|row| Some((rank(row, &wanted)?, row))).collect();
        found.sort_by_key(|(rank, _)| *rank);
        self.found = found.into_iter().map(|(_, row)| row).collect();
        self.cursor = 0;
    }
}

impl Layer for Palette {
    fn place(&self) -> Place {
        Place::Palette
    }

    fn is_opaque(&self) -> bool {
        false
    }

    fn on(&mut self, action: Action, scene: &Scene<'_>) -> Vec<Command> {
        match action {
            Action::Open => {
                let chosen = self.found.get(self.cursor).map(|row| Command::Act(row.action));
                return std::iter::once(Command::Pop).chain(chosen).collect();
            }
            Action::Back => return vec![Command::Pop],
            _ => {}
        }
        if let Some(cursor) = moved(action, self.cursor, self.found.len(), page(scene.area))
            && !matches!(action, Action::Top | Action::Bottom)
        {
            self.cursor = cursor;
        } else if self.line.edit(action) == Edit::Changed {
            self.find();
        }
        Vec::new()
    }

    fn typed(&mut self, text: &str, _: &Scene<'_>) -> Vec<Command> {
        if self.line.insert(text) {
            self.find();
        }
        Vec::new()
    }

    fn point(&mut self, pointer: Pointer, scene: &Scene<'_>) -> Vec<Command> {
        if let Some(by) = pointer.wheel() {
            let last = self.found.len().saturating_sub(1);
            self.cursor = self.cursor.saturating_add_signed(by).min(last);
            return Vec::new();
        }
        let area = area(scene.area);
        let rows = Rect { y: area.y + 2, height: page(scene.area), ..area };
        match in_list(pointer, area, rows, &mut self.cursor, self.top, self.found.len()) {
            Some(action) => self.on(action, scene),
            None => Vec::new(),
        }
    }

    fn refresh(&mut self, scene: &Scene<'_>) {
        self.top = scrolled(self.top, self.cursor, self.found.len(), page(scene.area));
    }

    fn draw(&self, buf: &mut Buffer, whole: Rect, env: &Env, theme: &Theme) {
        let area = area(whole);
        clear(buf, area);
        let hints = env.keys.hints(Place::Palette, &[(Action::Open, "do it"), (Action::Back, "back")]);
        let inside = frame(buf, area, "Do", &hints, true, theme);
        let at = At::row(inside, 0);
        let at = at.after(put(buf, at, "▸ ", theme.tone(Tone::Accent)));
        self.line.draw(buf, at, self.line.note().as_deref(), theme);
        let listed = inside.height.saturating_sub(1).min(page(whole));
        if self.found.is_empty() && listed > 0 {
            put(buf, At::row(inside, 1), "nothing of that name works here", theme.tone(Tone::Dim));
        }
        let keys = |row: &Row| env.keys.all(self.below, row.action);
        let key_room = self.found.iter().map(|row| width(&keys(row))).max().unwrap_or(0).min(inside.width / 4);
        for (at_row, (index, row)) in (0..listed).zip(self.found.iter().enumerate().skip(self.top)) {
            let at = At::row(inside, at_row + 1);
            put(buf, At { width: 18.min(at.width), ..at }, row.id, theme.tone(Tone::Accent));
            let keys_at = at.after(at.width.saturating_sub(key_room));
            let doc = at.after(19);
            put(buf, At { width: doc.width.saturating_sub(key_room + 2), ..doc }, row.doc, theme.tone(Tone::Plain));
            put(buf, keys_at, &keys(row), theme.role(Role::Key));
            if index == self.cursor {
                paint(buf, at, theme.role(Role::Cursor));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn first(wanted: &str) -> Option<&'static str> {
        let mut palette = Palette::new(Place::Live);
        palette.line.insert(wanted);
        palette.find();
        palette.found.first().map(|row| row.id)
    }

    #[test]
    fn actions_are_found_by_id_by_what_they_do_and_by_letters() {
        assert_eq!(first("paus"), Some("pause"));
        assert_eq!(first("workers"), Some("pane-workers"));
        assert_eq!(first("column"), Some("sort"));
        assert_eq!(first("trace copy"), Some("copy-trace"));
        assert_eq!(first("wnlng"), Some("window-longer"));
        assert_eq!(first("zzz"), None);
        assert!(first("").is_some());
    }
}
