//! The menu of marked moments.

use std::cmp::Ordering;

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use super::menu::{Choices, Menu};
use super::{Command, Env, Travel, centred};
use crate::tui::theme::Theme;
use crate::tui::widgets::text::{At, put};
use crate::view::{Tone, format};

/// Rows at most.
const ROWS: usize = 16;

/// The moments, nanoseconds since the epoch.
#[derive(Default)]
pub struct Bookmarks {
    marks: Vec<u64>,
    /// The moment shown.
    now_ns: u64,
}

impl Menu<Bookmarks> {
    /// A menu with the cursor on the first.
    pub fn of_bookmarks() -> Self {
        Self::new(Bookmarks::default(), 0)
    }
}

impl Choices for Bookmarks {
    const TITLE: (&'static str, &'static str) = ("Bookmarks", "go");

    fn count(&self) -> usize {
        self.marks.len()
    }

    fn area(&self, whole: Rect) -> Rect {
        centred(whole, 48, self.marks.len().min(ROWS) as u16 + 2)
    }

    fn choose(&self, row: usize, _: &Env) -> Vec<Command> {
        vec![Command::Travel(Travel::To(self.marks[row]))]
    }

    fn refresh(&mut self, env: &Env) {
        self.marks.clone_from(&env.bookmarks);
        self.now_ns = env.now_ns;
    }

    fn row(&self, buf: &mut Buffer, at: At, row: usize, theme: &Theme) {
        let at_ns = self.marks[row];
        put(buf, at.after(1), &format::clock_ms(at_ns), theme.tone(Tone::Plain));
        let away = match at_ns.cmp(&self.now_ns) {
            Ordering::Less => format!("{} before what is shown", format::duration(self.now_ns - at_ns)),
            Ordering::Equal => "shown".to_owned(),
            Ordering::Greater => format!("{} after what is shown", format::duration(at_ns - self.now_ns)),
        };
        put(buf, at.after(16), &away, theme.tone(Tone::Dim));
    }
}
