//! The menu of columns to sort by.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use super::help::Help;
use super::{Command, Env, Layer, Scene, centred, clear, in_list, moved, scrolled};
use crate::tui::action::{Action, Place};
use crate::tui::mouse::Pointer;
use crate::tui::theme::{Role, Theme};
use crate::tui::widgets::frame::frame;
use crate::tui::widgets::text::{At, paint, put};
use crate::view::Tone;
use crate::view::index::Sort;
use crate::view::list::COLUMNS;

/// The menu.
pub struct SortMenu {
    sort: Sort,
    cursor: usize,
    top: usize,
}

fn area(whole: Rect) -> Rect {
    centred(whole, 70, COLUMNS.len() as u16 + 2)
}

impl SortMenu {
    /// A menu with the cursor on the column in use.
    pub fn new(sort: Sort) -> Self {
        let cursor = COLUMNS.iter().position(|column| column.id == sort.column).unwrap_or(0);
        Self { sort, cursor, top: 0 }
    }
}

impl Layer for SortMenu {
    fn place(&self) -> Place {
        Place::Menu
    }

    fn is_opaque(&self) -> bool {
        false
    }

    fn on(&mut self, action: Action, scene: &Scene<'_>) -> Vec<Command> {
        match action {
            Action::Open => {
                let column = COLUMNS[self.cursor].id;
                let reversed = column == self.sort.column && !self.sort.reversed;
                return vec![Command::Sort(Sort { column, reversed }), Command::Pop];
            }
            Action::Back => return vec![Command::Pop],
            Action::Help => return vec![Command::Push(Box::new(Help::new(Place::Menu)))],
            _ => {}
        }
        if let Some(cursor) = moved(action, self.cursor, COLUMNS.len(), area(scene.area).height) {
            self.cursor = cursor;
        }
        Vec::new()
    }

    fn point(&mut self, pointer: Pointer, scene: &Scene<'_>) -> Vec<Command> {
        if let Some(by) = pointer.wheel() {
            let last = COLUMNS.len().saturating_sub(1);
            self.cursor = self.cursor.saturating_add_signed(by).min(last);
            return Vec::new();
        }
        let area = area(scene.area);
        let rows = Rect { y: area.y + 1, height: area.height.saturating_sub(2), ..area };
        match in_list(pointer, area, rows, &mut self.cursor, self.top, COLUMNS.len()) {
            Some(action) => self.on(action, scene),
            None => Vec::new(),
        }
    }

    fn refresh(&mut self, scene: &Scene<'_>) {
        let page = area(scene.area).height.saturating_sub(2);
        self.top = scrolled(self.top, self.cursor, COLUMNS.len(), page);
    }

    fn draw(&self, buf: &mut Buffer, whole: Rect, env: &Env, theme: &Theme) {
        let area = area(whole);
        clear(buf, area);
        let hints = env.keys.hints(Place::Menu, &[(Action::Open, "choose"), (Action::Back, "back")]);
        let inside = frame(buf, area, "Sort by", &hints, true, theme);
        for (row, (index, column)) in (0..inside.height).zip(COLUMNS.iter().enumerate().skip(self.top)) {
            let at = At::row(inside, row);
            let mark = match (column.id == self.sort.column, self.sort.reversed) {
                (false, _) => " ",
                (true, false) => "▾",
                (true, true) => "▴",
            };
            put(buf, at, mark, theme.tone(Tone::Accent));
            put(buf, At { width: 10.min(at.width), ..at }.after(2), column.title, theme.tone(Tone::Plain));
            put(buf, at.after(11), column.doc, theme.tone(Tone::Dim));
            if index == self.cursor {
                paint(buf, at, theme.role(Role::Cursor));
            }
        }
    }
}
