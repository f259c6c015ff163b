//! A menu over a screen: rows, one of which is chosen by key or mouse.
//!
//! Owns: its cursor, its frame, what every menu does alike. Keeps out: what is listed and what a choice does; each menu is
//! a file of its own.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use super::help::Help;
use super::{Command, Env, Layer, Scene, clear, in_list, moved, scrolled};
use crate::tui::action::{Action, Place};
use crate::tui::mouse::Pointer;
use crate::tui::theme::{Role, Theme};
use crate::tui::widgets::frame::frame;
use crate::tui::widgets::text::{At, paint};

/// What a menu lists, and what becomes of a choice.
pub trait Choices {
    /// The title of its frame, and what choosing is called.
    const TITLE: (&'static str, &'static str);
    /// Lines below the list.
    const BELOW: u16 = 0;
    /// How many there are.
    fn count(&self) -> usize;
    /// Where it opens on a screen.
    fn area(&self, whole: Rect) -> Rect;
    /// A row was chosen; the menu closes.
    fn choose(&self, row: usize, env: &Env) -> Vec<Command>;
    /// The cursor came to stand on a row.
    fn pass(&self, _row: usize) -> Vec<Command> {
        Vec::new()
    }
    /// The menu closes without a choice.
    fn leave(&self) -> Vec<Command> {
        Vec::new()
    }
    /// Brings what is listed up to date.
    fn refresh(&mut self, _env: &Env) {}
    /// Draws a row.
    fn row(&self, buf: &mut Buffer, at: At, row: usize, theme: &Theme);
    /// Draws what keeps its colours under the cursor.
    fn over(&self, _buf: &mut Buffer, _at: At, _row: usize) {}
    /// Draws a line below the list, which is about the row that the cursor stands on.
    fn below(&self, _buf: &mut Buffer, _at: At, _line: u16, _row: usize, _theme: &Theme) {}
}

/// A menu of such choices.
pub struct Menu<C> {
    choices: C,
    cursor: usize,
    top: usize,
}

impl<C: Choices> Menu<C> {
    /// A menu with the cursor on this row.
    pub fn new(choices: C, cursor: usize) -> Self {
        Self { choices, cursor, top: 0 }
    }

    fn page(&self, whole: Rect) -> u16 {
        self.choices.area(whole).height.saturating_sub(2 + C::BELOW).max(1)
    }

    /// Closes it after these.
    fn close(mut commands: Vec<Command>) -> Vec<Command> {
        commands.push(Command::Pop);
        commands
    }
}

impl<C: Choices> Layer for Menu<C> {
    fn place(&self) -> Place {
        Place::Menu
    }

    fn is_opaque(&self) -> bool {
        false
    }

    fn on(&mut self, action: Action, scene: &Scene<'_>) -> Vec<Command> {
        match action {
            Action::Open if self.cursor < self.choices.count() => {
                return Self::close(self.choices.choose(self.cursor, scene.env));
            }
            Action::Open | Action::Back => return Self::close(self.choices.leave()),
            Action::Help => return vec![Command::Push(Box::new(Help::new(Place::Menu)))],
            _ => {}
        }
        let Some(cursor) = moved(action, self.cursor, self.choices.count(), self.page(scene.area)) else {
            return Vec::new();
        };
        self.cursor = cursor;
        self.choices.pass(cursor)
    }

    fn point(&mut self, pointer: Pointer, scene: &Scene<'_>) -> Vec<Command> {
        if let Some(by) = pointer.wheel() {
            let last = self.choices.count().saturating_sub(1);
            self.cursor = self.cursor.saturating_add_signed(by).min(last);
            return self.choices.pass(self.cursor);
        }
        let area = self.choices.area(scene.area);
        let rows = Rect { y: area.y + 1, height: self.page(scene.area), ..area };
        match in_list(pointer, area, rows, &mut self.cursor, self.top, self.choices.count()) {
            Some(action) => self.on(action, scene),
            None if pointer.is_press() => self.choices.pass(self.cursor),
            None => Vec::new(),
        }
    }

    fn refresh(&mut self, scene: &Scene<'_>) {
        self.choices.refresh(scene.env);
        self.top = scrolled(self.top, self.cursor, self.choices.count(), self.page(scene.area));
    }

    fn draw(&self, buf: &mut Buffer, whole: Rect, env: &Env, theme: &Theme) {
        let area = self.choices.area(whole);
        clear(buf, area);
        let (title, choosing) = C::TITLE;
        let hints = env.keys.hints(Place::Menu, &[(Action::Open, choosing), (Action::Back, "back")]);
        let inside = frame(buf, area, title, &hints, true, theme);
        let page = self.page(whole).min(inside.height);
        for (line, row) in (0..page).zip(self.top..self.choices.count()) {
            let at = At::row(inside, line);
            self.choices.row(buf, at, row, theme);
            if row == self.cursor {
                paint(buf, at, theme.role(Role::Cursor));
            }
            self.choices.over(buf, at, row);
        }
        if self.cursor < self.choices.count() {
            for line in 0..C::BELOW.min(inside.height - page) {
                self.choices.below(buf, At::row(inside, page + line), line, self.cursor, theme);
            }
        }
    }
}
