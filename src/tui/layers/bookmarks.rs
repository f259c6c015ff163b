//! The menu of marked moments.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use super::help::Help;
use super::{Command, Env, Layer, Scene, Travel, centred, clear, moved, scrolled};
use crate::tui::action::{Action, Place};
use crate::tui::theme::{Role, Theme};
use crate::tui::widgets::frame::frame;
use crate::tui::widgets::text::{At, paint, put};
use crate::view::{Tone, format};

/// Rows at most.
const ROWS: usize = 16;

/// The menu.
#[derive(Default)]
pub struct Bookmarks {
    marks: Vec<u64>,
    /// The moment shown.
    now_ns: u64,
    cursor: usize,
    top: usize,
}

impl Bookmarks {
    fn area(&self, whole: Rect) -> Rect {
        centred(whole, 48, self.marks.len().min(ROWS) as u16 + 2)
    }
}

impl Layer for Bookmarks {
    fn place(&self) -> Place {
        Place::Menu
    }

    fn is_opaque(&self) -> bool {
        false
    }

    fn on(&mut self, action: Action, scene: &Scene<'_>) -> Vec<Command> {
        match action {
            Action::Open => {
                let Some(at_ns) = self.marks.get(self.cursor) else { return vec![Command::Pop] };
                return vec![Command::Travel(Travel::To(*at_ns)), Command::Pop];
            }
            Action::Back => return vec![Command::Pop],
            Action::Help => return vec![Command::Push(Box::new(Help::new(Place::Menu)))],
            _ => {}
        }
        if let Some(cursor) = moved(action, self.cursor, self.marks.len(), self.area(scene.area).height) {
            self.cursor = cursor;
        }
        Vec::new()
    }

    fn refresh(&mut self, scene: &Scene<'_>) {
        self.marks.clone_from(&scene.env.bookmarks);
        self.now_ns = scene.env.now_ns;
        let page = self.area(scene.area).height.saturating_sub(2);
        self.top = scrolled(self.top, self.cursor, self.marks.len(), page);
    }

    fn draw(&self, buf: &mut Buffer, whole: Rect, _: &Env, theme: &Theme) {
        let area = self.area(whole);
        clear(buf, area);
        let inside = frame(buf, area, "Bookmarks", "Enter go  Esc back", true, theme);
        for (row, (index, at_ns)) in (0..inside.height).zip(self.marks.iter().enumerate().skip(self.top)) {
            let at = At::row(inside, row);
            put(buf, at.after(1), &format::clock_ms(*at_ns), theme.tone(Tone::Plain));
            let away = match at_ns.cmp(&self.now_ns) {
                std::cmp::Ordering::Less => format!("{} before what is shown", format::duration(self.now_ns - at_ns)),
                std::cmp::Ordering::Equal => "shown".to_owned(),
                std::cmp::Ordering::Greater => format!("{} after what is shown", format::duration(at_ns - self.now_ns)),
            };
            put(buf, at.after(16), &away, theme.tone(Tone::Dim));
            if index == self.cursor {
                paint(buf, at, theme.role(Role::Cursor));
            }
        }
    }
}
