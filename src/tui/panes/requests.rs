//! The request list.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use crate::tui::theme::{Role, Theme};
use crate::tui::widgets::frame::frame;
use crate::tui::widgets::text::{At, paint, put, put_right};
use crate::view::Tone;
use crate::view::index::Sort;
use crate::view::list::{Fitted, Row};

/// What the pane shows.
#[derive(Default)]
pub struct Requests {
    /// The columns that fit.
    pub columns: Vec<Fitted>,
    /// The rows on screen.
    pub rows: Vec<Row>,
    /// Which of them the cursor is on.
    pub cursor: Option<usize>,
    /// How it is sorted.
    pub sort: Sort,
    /// Whether keys go here.
    pub focused: bool,
    /// `following · newest first · 64 of 1,204`.
    pub summary: String,
    /// What stands in the list when it has no rows.
    pub empty: String,
}

/// Columns between columns.
pub const GAP: u16 = 2;
/// Below this width there is no frame.
const FRAMED: u16 = 100;

/// Where the rows stand, and how many there can be.
pub fn inside(area: Rect) -> Rect {
    let framed = area.width >= FRAMED && area.height >= 5;
    let edge = u16::from(framed);
    Rect {
        x: area.x + 2 + edge,
        y: area.y + 1 + edge,
        width: area.width.saturating_sub(2 + 3 * edge),
        height: area.height.saturating_sub(1 + 2 * edge),
    }
}

/// Draws the pane.
pub fn draw(buf: &mut Buffer, area: Rect, requests: &Requests, theme: &Theme) {
    let rows = inside(area);
    if area.width >= FRAMED && area.height >= 5 {
        frame(buf, area, "Requests", &requests.summary, requests.focused, theme);
    }
    let titles = At { x: rows.x, y: rows.y.saturating_sub(1), width: rows.width };
    let mut used = 0;
    for fitted in &requests.columns {
        let chosen = fitted.column.id == requests.sort.column;
        let style = theme.tone(if chosen { Tone::Strong } else { Tone::Dim });
        let arrow = match (chosen, requests.sort.reversed) {
            (false, _) => "",
            (true, false) => "▾",
            (true, true) => "▴",
        };
        let at = At { width: fitted.width, ..titles.after(used) };
        let title = format!("{}{arrow}", fitted.column.title);
        if fitted.column.right {
            put_right(buf, at, &title, style)
        } else {
            _ = put(buf, at, &title, style)
        }
        used += fitted.width + GAP;
    }
    for (index, row) in (0..rows.height).zip(&requests.rows) {
        let chosen = requests.cursor == Some(usize::from(index));
        let at = At::row(rows, index);
        if chosen && rows.x >= 2 {
            put(buf, At { x: rows.x - 2, y: at.y, width: 1 }, "▸", theme.tone(Tone::Accent));
        }
        let mut used = 0;
        for (fitted, cell) in requests.columns.iter().zip(&row.cells) {
            let at = At { width: fitted.width, ..at.after(used) };
            let style = theme.tone(cell.tone);
            if fitted.column.right {
                put_right(buf, at, &cell.text, style);
            } else {
                put(buf, at, &cell.text, style);
            }
            used += fitted.width + GAP;
        }
        if chosen && requests.focused {
            paint(buf, at, theme.role(Role::Cursor));
        }
    }
    if requests.rows.is_empty() {
        put(buf, At::row(rows, 1), &requests.empty, theme.tone(Tone::Dim));
    }
}
