//! The checks pane: every check with its three counts and its latest violation; Enter adds what violates it to the filter.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use super::help::Help;
use super::reader::Reader;
use super::{Command, Env, Layer, Scene, in_list, moved, scrolled};
use crate::tui::action::{Action, Place};
use crate::tui::mouse::Pointer;
use crate::tui::theme::{Role, Theme};
use crate::tui::widgets::frame::frame;
use crate::tui::widgets::text::{At, paint, put, put_right};
use crate::view::Tone;
use crate::view::checks::{Row, rows};
use crate::view::filter::with_term;
use crate::view::request::detail::Whole;

/// The pane.
#[derive(Default)]
pub struct Checks {
    rows: Vec<Row>,
    violated_first: bool,
    /// The check that the cursor stands on; `None`: the first, whichever that is.
    chosen: Option<&'static str>,
    /// Its row, which changes as counts do.
    cursor: usize,
    top: usize,
}

impl Checks {
    /// Puts the cursor on the check of a row.
    fn stand_on(&mut self, row: usize) {
        self.cursor = row;
        self.chosen = self.rows.get(row).map(|row| row.id);
    }
}

/// Rows of checks on screen: the frame, the titles and two lines for the chosen one are the rest.
fn page(area: Rect) -> u16 {
    area.height.saturating_sub(6)
}

impl Layer for Checks {
    fn place(&self) -> Place {
        Place::Checks
    }

    fn on(&mut self, action: Action, scene: &Scene<'_>) -> Vec<Command> {
        let chosen = self.rows.get(self.cursor);
        match (action, chosen) {
            (Action::Open, Some(row)) => {
                let text = with_term(scene.env.filter.text(), &row.term);
                return vec![Command::Filter(text), Command::Pop];
            }
            (Action::Raw, Some(row)) => {
                let latest = if row.latest.is_empty() { "no violation so far" } else { &row.latest };
                let text = format!("{}\n\n{latest}", row.what);
                return vec![Command::Push(Box::new(Reader::new(Whole { title: row.id.into(), text })))];
            }
            (Action::Sort, _) => {
                self.violated_first = !self.violated_first;
                (self.chosen, self.cursor, self.top) = (None, 0, 0);
            }
            (Action::Back, _) => return vec![Command::Pop],
            (Action::Help, _) => return vec![Command::Push(Box::new(Help::new(Place::Checks)))],
            _ => {}
        }
        if let Some(cursor) = moved(action, self.cursor, self.rows.len(), page(scene.area)) {
            self.stand_on(cursor);
        }
        Vec::new()
    }

    fn point(&mut self, pointer: Pointer, scene: &Scene<'_>) -> Vec<Command> {
        let len = self.rows.len();
        if let Some(by) = pointer.wheel() {
            self.stand_on(self.cursor.saturating_add_signed(by).min(len.saturating_sub(1)));
            return Vec::new();
        }
        let area = scene.area;
        let rows = Rect { y: area.y + 2, height: page(area), ..area };
        let asked = in_list(pointer, area, rows, &mut self.cursor, self.top, len);
        self.stand_on(self.cursor);
        match asked {
            Some(action) => self.on(action, scene),
            None => Vec::new(),
        }
    }

    fn refresh(&mut self, scene: &Scene<'_>) {
        self.rows = rows(scene.data, self.violated_first);
        let row = self.chosen.and_then(|id| self.rows.iter().position(|row| row.id == id)).unwrap_or(0);
        self.stand_on(row);
        self.top = scrolled(self.top, self.cursor, self.rows.len(), page(scene.area));
    }

    fn draw(&self, buf: &mut Buffer, area: Rect, env: &Env, theme: &Theme) {
        let violated = self.rows.iter().filter(|row| matches!(row.tone, Tone::Bad | Tone::Warn)).count();
        let among = if env.filter.is_empty() { "" } else { " · of all requests, whatever the filter" };
        let summary = format!("{} checks · {violated} violated{among}", self.rows.len());
        let inside = frame(buf, area, "Checks", &summary, true, theme);
        let columns = |at: At, row: [&str; 5], tones: [Tone; 5]| {
            let mut texts = Vec::new();
            let widths = [(0, 22), (23, 3), (27, 8), (36, 8), (45, 8)];
            for ((text, tone), (left, width)) in row.into_iter().zip(tones).zip(widths) {
                texts.push((At { width: width.min(at.after(left).width), ..at.after(left) }, text.to_owned(), tone));
            }
            texts
        };
        let mut line = |at: At, cells: Vec<(At, String, Tone)>, rest: &str, tone: Tone| {
            for (index, (at, text, tone)) in cells.into_iter().enumerate() {
                if index < 2 {
                    put(buf, at, &text, theme.tone(tone));
                } else {
                    put_right(buf, at, &text, theme.tone(tone));
                }
            }
            put(buf, at.after(55), rest, theme.tone(tone));
        };
        if inside.height == 0 {
            return;
        }
        let titles = At::row(inside, 0);
        let dim = [Tone::Dim; 5];
        line(
            titles,
            columns(titles, ["check", "lvl", "holds", "violated", "unknown"], dim),
            "what must hold",
            Tone::Dim,
        );
        let listed = page(area).min(inside.height.saturating_sub(1));
        for (at_row, row) in (0..listed).zip(self.rows.iter().skip(self.top)) {
            let at = At::row(inside, at_row + 1);
            let quiet = if row.tone == Tone::Dim { Tone::Dim } else { Tone::Plain };
            let violated = if matches!(row.tone, Tone::Bad | Tone::Warn) { row.tone } else { Tone::Dim };
            let tones =
                [quiet, Tone::Dim, if row.tone == Tone::Good { Tone::Good } else { quiet }, violated, Tone::Dim];
            line(at, columns(at, [row.id, row.level, &row.holds, &row.violated, &row.unknown], tones), row.what, quiet);
        }
        let Some(row) = self.rows.get(self.cursor) else { return };
        if self.cursor >= self.top && self.cursor - self.top < usize::from(listed) {
            paint(buf, At::row(inside, (self.cursor - self.top) as u16 + 1), theme.role(Role::Cursor));
        }
        if inside.height > listed + 2 {
            let at = At::row(inside, inside.height - 1);
            let (text, tone) = if row.latest.is_empty() {
                ("no violation so far", Tone::Dim)
            } else {
                (row.latest.as_str(), row.tone)
            };
            put(buf, at, text, theme.tone(tone));
        }
    }
}
