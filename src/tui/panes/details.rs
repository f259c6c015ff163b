//! Rows of label and value: evidence, attributes, records.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use crate::tui::theme::{Role, Theme};
use crate::tui::widgets::bar::bar;
use crate::tui::widgets::frame::frame;
use crate::tui::widgets::text::{At, paint, pieces, put, width};
use crate::view::request::detail::Detail;

/// Columns of a bar.
const BAR: u16 = 10;

/// A window of rows with a cursor.
pub struct Details<'a> {
    /// The title of the frame.
    pub title: &'a str,
    /// All rows.
    pub rows: &'a [Detail],
    /// The first one on screen.
    pub top: usize,
    /// Where the cursor is.
    pub cursor: usize,
    /// Whether keys go here.
    pub focused: bool,
}

/// How many rows fit into an area.
pub fn rows(area: Rect) -> u16 {
    area.height.saturating_sub(2)
}

/// Draws the rows.
pub fn draw(buf: &mut Buffer, area: Rect, details: &Details<'_>, theme: &Theme) {
    let place = if details.rows.len() > usize::from(rows(area)) {
        format!("{} of {}", details.cursor + 1, details.rows.len())
    } else {
        String::new()
    };
    let inside = frame(buf, area, details.title, &place, details.focused, theme);
    let shown = || details.rows.iter().skip(details.top).take(usize::from(inside.height));
    let labels = shown().filter(|row| !row.value.is_empty() || row.bar.is_some()).map(|row| width(&row.label.text));
    let labels = (labels.max().unwrap_or(0) + 2).min(inside.width / 2);
    for (index, row) in (0..inside.height).zip(shown()) {
        let at = At::row(inside, index);
        let alone = row.value.iter().all(|piece| piece.text.is_empty());
        let room = if alone { at.width } else { labels.saturating_sub(1) };
        put(buf, At { width: room, ..at }, &row.label.text, theme.tone(row.label.tone));
        let mut value = at.after(labels);
        if let Some((share, tone)) = row.bar {
            put(buf, At { width: BAR.min(value.width), ..value }, &bar(share, BAR), theme.tone(tone));
            value = value.after(BAR + 1);
        }
        pieces(buf, value, &row.value, 2, theme);
        if details.focused && details.top + usize::from(index) == details.cursor {
            paint(buf, at, theme.role(Role::Cursor));
        }
    }
}
