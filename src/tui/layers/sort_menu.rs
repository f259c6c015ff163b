//! The menu of columns to sort by.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use super::menu::{Choices, Menu};
use super::{Command, Env, centred};
use crate::tui::theme::Theme;
use crate::tui::widgets::text::{At, put};
use crate::view::Tone;
use crate::view::index::Sort;
use crate::view::list::COLUMNS;

/// The columns, and the order in use.
pub struct Columns(Sort);

impl Menu<Columns> {
    /// A menu with the cursor on the column in use.
    pub fn of_columns(sort: Sort) -> Self {
        let cursor = COLUMNS.iter().position(|column| column.id == sort.column).unwrap_or(0);
        Self::new(Columns(sort), cursor)
    }
}

impl Choices for Columns {
    const TITLE: (&'static str, &'static str) = ("Sort by", "choose");

    fn count(&self) -> usize {
        COLUMNS.len()
    }

    fn area(&self, whole: Rect) -> Rect {
        centred(whole, 70, COLUMNS.len() as u16 + 2)
    }

    fn choose(&self, row: usize, _: &Env) -> Vec<Command> {
        let column = COLUMNS[row].id;
        let reversed = column == self.0.column && !self.0.reversed;
        vec![Command::Sort(Sort { column, reversed })]
    }

    fn row(&self, buf: &mut Buffer, at: At, row: usize, theme: &Theme) {
        let column = &COLUMNS[row];
        let mark = match (column.id == self.0.column, self.0.reversed) {
            (false, _) => " ",
            (true, false) => "▾",
            (true, true) => "▴",
        };
        put(buf, at, mark, theme.tone(Tone::Accent));
        put(buf, At { width: 10.min(at.width), ..at }.after(2), column.title, theme.tone(Tone::Plain));
        put(buf, at.after(11), column.doc, theme.tone(Tone::Dim));
    }
}
