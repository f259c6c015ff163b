//! Cells with their small drawings: in columns, or one after the other in a line.

use ratatui::buffer::Buffer;
use ratatui::layout::{Position, Rect};

use super::bar::bar;
use super::text::{At, paint, put, put_right, width};
use crate::tui::theme::{Role, Theme};
use crate::view::Tone;
use crate::view::panes::{Cell, DotKind, Mark, Table};

/// Columns between columns.
const GAP: u16 = 2;
/// Columns of a bar beside a text.
const BESIDE: u16 = 6;
/// Columns of a bar alone: at least and at most.
const ALONE: (u16, u16) = (5, 18);
/// What is left of a long name.
const NAME: u16 = 16;
/// Columns of an axis with dots, at least.
const DOTS: u16 = 16;

const RISING: [&str; 8] = ["▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"];

/// Columns that a cell needs, and whether it can use more.
fn needed(cell: &Cell) -> (u16, bool) {
    let text = width(&cell.text.text);
    match &cell.mark {
        Mark::None => (text, false),
        Mark::Bar(_) if text == 0 => (ALONE.0, true),
        Mark::Bar(_) => (text + BESIDE + 1, false),
        Mark::Spark(values) => (text + values.len() as u16, false),
        Mark::Dots(_) => (text.max(DOTS), true),
    }
}

/// The title without its sign for the right side, and whether it had it.
fn title(title: &str) -> (&str, bool) {
    title.strip_prefix('>').map_or((title, false), |rest| (rest, true))
}

/// The widths of a table's columns; those that do not fit are left out from the right.
fn widths(table: &Table, room: u16) -> Vec<u16> {
    let mut wide: Vec<(u16, bool, bool)> =
        table.titles.iter().map(|text| (width(title(text).0), false, false)).collect();
    for row in &table.rows {
        for ((wide, grows, dots), cell) in wide.iter_mut().zip(row) {
            let (needed, more) = needed(cell);
            *wide = (*wide).max(needed);
            *grows |= more;
            *dots |= matches!(cell.mark, Mark::Dots(_));
        }
    }
    let used = |wide: &[(u16, bool, bool)]| {
        wide.iter().map(|column| column.0).sum::<u16>() + GAP * (wide.len().saturating_sub(1)) as u16
    };
    // The first column, which is a name, is cut before others go.
    if let Some(over) = used(&wide).checked_sub(room)
        && let Some(first) = wide.first_mut()
    {
        first.0 -= over.min(first.0.saturating_sub(NAME));
    }
    while wide.len() > 1 && used(&wide) > room {
        wide.pop();
    }
    let mut spare = room.saturating_sub(used(&wide));
    for (wide, _, dots) in wide.iter_mut().filter(|(_, grows, _)| *grows) {
        let more = if *dots { spare } else { (ALONE.1 - (*wide).min(ALONE.1)).min(spare) };
        (*wide, spare) = (*wide + more, spare - more);
    }
    wide.into_iter().map(|column| column.0.min(room)).collect()
}

/// The first row on screen, so that the cursor's is.
fn top(cursor: Option<(usize, usize)>, rows: usize) -> usize {
    cursor.map_or(0, |(row, _)| (row + 1).saturating_sub(rows.max(1)))
}

/// Rows of titles, rows of cells on screen, and whether there are more than have room.
fn rows(area: Rect, table: &Table) -> (u16, usize, bool) {
    let titled = table.titles.iter().any(|text| !title(text).0.is_empty()) && area.height > 1;
    let head = u16::from(titled);
    let rows = usize::from(area.height.saturating_sub(head));
    let more = table.rows.len() > rows && rows > 1;
    (head, rows - usize::from(more), more)
}

/// The row and item at a cell of the screen, as the table is drawn with this cursor.
pub fn cell_at(area: Rect, table: &Table, cursor: Option<(usize, usize)>, at: Position) -> Option<(usize, usize)> {
    let (head, rows, _) = rows(area, table);
    let index = usize::from(at.y.checked_sub(area.y + head)?);
    let row = top(cursor, rows) + index;
    if index >= rows || row >= table.rows.len() {
        return None;
    }
    let mut left = area.x;
    for (item, wide) in widths(table, area.width).into_iter().enumerate() {
        if (left..left + wide + GAP).contains(&at.x) {
            return Some((row, item));
        }
        left += wide + GAP;
    }
    None
}

/// Draws a table; what has no room below says how much it is.
pub fn table(buf: &mut Buffer, area: Rect, table: &Table, cursor: Option<(usize, usize)>, theme: &Theme) {
    let widths = widths(table, area.width);
    let (head, rows, more) = rows(area, table);
    let dim = theme.tone(Tone::Dim);
    if head > 0 {
        let mut at = At::row(area, 0);
        for (text, wide) in table.titles.iter().zip(&widths) {
            let (text, right) = title(text);
            let column = At { width: *wide, ..at };
            if right {
                put_right(buf, column, text, dim)
            } else {
                _ = put(buf, column, text, dim)
            }
            at = at.after(wide + GAP);
        }
    }
    if more {
        let left = table.rows.len() - rows;
        put(buf, At::row(area, area.height - 1), &format!("… {left} more"), dim);
    }
    let top = top(cursor, rows);
    for (index, (place, row)) in table.rows.iter().enumerate().skip(top).take(rows).enumerate() {
        let mut at = At::row(area, head + index as u16);
        for (item, ((cell, wide), text)) in row.iter().zip(&widths).zip(&table.titles).enumerate() {
            let column = At { width: *wide, ..at };
            draw(buf, column, cell, title(text).1, theme);
            if cursor == Some((place, item)) {
                paint(buf, column, theme.role(Role::Cursor));
            }
            at = at.after(wide + GAP);
        }
    }
}

/// Where cells stand one after the other: values close to their labels, labels apart from what is before them. Cells that
/// do not fit are left out whole; the last place is then for the sign that says so.
fn places(at: At, cells: &[Cell]) -> (Vec<At>, Option<At>) {
    let mut left = at;
    let mut places = Vec::new();
    for (index, cell) in cells.iter().enumerate() {
        let gap = match index.checked_sub(1).map(|before| &cells[before]) {
            None => 0,
            Some(before) if cell.text.tone == Tone::Dim && before.text.tone != Tone::Dim => GAP,
            Some(_) => 1,
        };
        // In a line a bar is as long as its share.
        let wide = match &cell.mark {
            Mark::Bar(share) => {
                let drawn = width(&bar(*share, BESIDE + 2));
                drawn + u16::from(drawn > 0) + width(&cell.text.text)
            }
            _ => needed(cell).0,
        };
        if gap + wide > left.width && index > 0 {
            return (places, Some(left));
        }
        left = left.after(gap);
        places.push(At { width: wide.min(left.width), ..left });
        left = left.after(wide);
    }
    (places, None)
}

/// The cell of a line at a column of the screen.
pub fn item_at(at: At, cells: &[Cell], x: u16) -> Option<usize> {
    places(at, cells).0.iter().position(|place| (place.x..place.x + place.width).contains(&x))
}

/// Draws cells one after the other.
pub fn line(buf: &mut Buffer, at: At, cells: &[Cell], cursor: Option<usize>, theme: &Theme) {
    let (places, more) = places(at, cells);
    for (index, (cell, here)) in cells.iter().zip(places).enumerate() {
        match &cell.mark {
            Mark::Bar(share) => {
                let used = put(buf, here, &bar(*share, BESIDE + 2), theme.tone(cell.text.tone));
                put(buf, here.after(used + u16::from(used > 0)), &cell.text.text, theme.tone(cell.text.tone));
            }
            _ => draw(buf, here, cell, false, theme),
        }
        if cursor == Some(index) {
            paint(buf, here, theme.role(Role::Cursor));
        }
    }
    if let Some(more) = more {
        put(buf, more, " …", theme.tone(Tone::Dim));
    }
}

fn draw(buf: &mut Buffer, at: At, cell: &Cell, right: bool, theme: &Theme) {
    let style = theme.tone(cell.text.tone);
    let text = |buf: &mut Buffer, at: At| {
        if right { put_right(buf, at, &cell.text.text, style) } else { _ = put(buf, at, &cell.text.text, style) }
    };
    match &cell.mark {
        Mark::None => text(buf, at),
        Mark::Bar(share) if cell.text.text.is_empty() => _ = put(buf, at, &bar(*share, at.width), style),
        Mark::Bar(share) => {
            put(buf, At { width: BESIDE.min(at.width), ..at }, &bar(*share, BESIDE), style);
            put_right(buf, at.after(BESIDE + 1), &cell.text.text, style);
        }
        Mark::Spark(values) => {
            let sign = |value: &f64| {
                let step = (value.clamp(0.0, 1.0) * 7.0).ceil() as usize;
                if *value > 0.0 { RISING[step.min(7)] } else { " " }
            };
            let drawn: String = values.iter().map(sign).collect();
            let used = put(buf, at, &drawn, style);
            text(buf, at.after(used));
        }
        Mark::Dots(dots) => {
            let last = f64::from(at.width.saturating_sub(1));
            let column = |share: f64| (share.clamp(0.0, 1.0) * last).round() as u16;
            for here in 0..at.width {
                // Of several at one place, the last one is seen.
                let kind = dots.iter().rfind(|dot| column(dot.at) == here).map(|dot| dot.kind);
                let (sign, tone) = match kind {
                    None => ("·", Tone::Dim),
                    Some(DotKind::Other) => ("•", Tone::Plain),
                    Some(DotKind::Best) => ("○", Tone::Good),
                    Some(DotKind::Chosen) => ("●", Tone::Warn),
                    Some(DotKind::ChosenBest) => ("◉", Tone::Accent),
                };
                put(buf, At { width: 1, ..at.after(here) }, sign, theme.tone(tone));
            }
        }
    }
}
