//! The request's tree as a waterfall.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use crate::tui::theme::{Role, Theme};
use crate::tui::widgets::bar;
use crate::tui::widgets::frame::frame;
use crate::tui::widgets::text::{At, paint, pieces, pieces_width, put};
use crate::view::request::axis::Axis;
use crate::view::request::tree::{Fold, TreeLine};
use crate::view::{Piece, Tone, format};

/// What the pane shows.
#[derive(Default)]
pub struct Tree {
    /// The rows on screen.
    pub lines: Vec<TreeLine>,
    /// Which of them the cursor is on.
    pub cursor: Option<usize>,
    /// The time axis.
    pub axis: Option<Axis>,
    /// `17 spans · 2 processes`.
    pub summary: String,
}

/// Columns of the tree's parts at a width: name, place, leg, waterfall.
fn columns(width: u16) -> [u16; 4] {
    match width {
        ..60 => [width.saturating_sub(2).min(24), 0, 0, width.saturating_sub(26)],
        60..110 => [30, 0, 11, width - 41],
        110..150 => [34, 12, 12, width - 58],
        _ => [40, 14, 14, width - 68],
    }
}

/// How many rows fit into an area.
pub fn rows(area: Rect) -> u16 {
    area.height.saturating_sub(3)
}

/// Draws the pane.
pub fn draw(buf: &mut Buffer, area: Rect, tree: &Tree, focused: bool, theme: &Theme) {
    let inside = frame(buf, area, "Tree", &tree.summary, focused, theme);
    let [name, place, leg, fall] = columns(inside.width);
    let first = At::row(inside, 0).after(name + place + leg);
    // Notes stand right of their bars; the axis leaves them room.
    let axis_width = if fall > 40 { fall - 24 } else { fall.saturating_sub(fall / 3) };
    if let Some(axis) = &tree.axis
        && inside.height > 0
    {
        for (column, ns) in axis.ticks(axis_width) {
            put(buf, first.after(column), &format::duration(ns), theme.tone(Tone::Dim));
        }
    }
    for (index, line) in (1..inside.height).zip(&tree.lines) {
        let at = At::row(inside, index);
        let sign = match line.fold {
            Fold::Leaf => "  ",
            Fold::Open => "▾ ",
            Fold::Closed(_) => "▸ ",
        };
        // However deep the tree, its names stay on screen.
        let indent = (line.depth.saturating_mul(2)).min(u32::from(name / 2)) as u16;
        let mut title = At { width: name.saturating_sub(1), ..at }.after(indent);
        title = title.after(put(buf, title, sign, theme.tone(Tone::Dim)));
        let shown = match line.fold {
            Fold::Closed(below) => Piece::new(format!("{} +{below}", line.name.text), line.name.tone),
            _ => line.name.clone(),
        };
        let cursor = tree.cursor == Some(usize::from(index) - 1);
        if line.bar.is_none() {
            let used = put(buf, At { width: at.after(indent + 2).width, ..title }, &shown.text, theme.tone(shown.tone));
            pieces(buf, At { width: inside.width, ..at }.after(indent + 4 + used), &line.note, 2, theme);
        } else {
            put(buf, title, &shown.text, theme.tone(shown.tone));
            let at_place = At { width: place.saturating_sub(1), ..at.after(name) };
            put(buf, at_place, &line.place.text, theme.tone(line.place.tone));
            let at_leg = At { width: leg.saturating_sub(1), ..at.after(name + place) };
            put(buf, at_leg, &line.leg.text, theme.tone(line.leg.tone));
        }
        if let Some(placed) = &line.bar {
            let row = at.after(name + place + leg);
            let axis = At { width: axis_width, ..row };
            let end = bar::span(buf, axis, placed.start, placed.length, placed.running, theme.tone(line.tone));
            let wide = pieces_width(&line.note) + 2 * line.note.len().saturating_sub(1) as u16;
            let start = (placed.start * f64::from(axis_width)) as u16;
            // Right of the bar when it fits there, else left of it, else cut at the right.
            if end + 1 + wide > row.width && wide + 1 < start {
                pieces(buf, At { width: start, ..row }.after(start - wide - 1), &line.note, 2, theme);
            } else {
                pieces(buf, row.after(end + 1), &line.note, 2, theme);
            }
        }
        if cursor {
            paint(buf, at, theme.role(Role::Cursor));
        }
    }
}
