//! The header line.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use crate::tui::theme::Theme;
use crate::tui::widgets::text::{At, pieces, pieces_width};
use crate::view::Line;
use crate::view::header::Header;

const GAP: u16 = 3;
const NARROW_GAP: u16 = 2;

/// Draws as much of the header as fits: figures become short, then go, the least important first.
pub fn draw(buf: &mut Buffer, area: Rect, header: &Header, theme: &Theme) {
    let at = At::row(area, 0);
    let at = if at.width > 80 { At { x: at.x + 1, width: at.width - 2, ..at } } else { at };
    let gap = if at.width > 100 { GAP } else { NARROW_GAP };
    let mut shown: Vec<(&crate::view::header::Part, &Line)> =
        header.parts.iter().map(|part| (part, &part.long)).collect();
    let width = |shown: &[(&crate::view::header::Part, &Line)]| {
        shown.iter().map(|(_, line)| pieces_width(line)).sum::<u16>() + gap * shown.len().saturating_sub(1) as u16
    };
    let mut by_rank: Vec<u8> = header.parts.iter().map(|part| part.rank).collect();
    by_rank.sort_unstable();
    for rank in by_rank.iter().rev() {
        if width(&shown) > at.width {
            for (part, line) in shown.iter_mut().filter(|(part, _)| part.rank == *rank) {
                *line = &part.short;
            }
            // What has no short form is gone then, with its gap.
            shown.retain(|(_, line)| !line.is_empty());
        }
    }
    for rank in by_rank.iter().rev() {
        if width(&shown) > at.width {
            shown.retain(|(part, _)| part.rank != *rank || part.rank == 0);
        }
    }
    let mut used = 0;
    for (_, line) in shown.iter().filter(|(part, _)| !part.right) {
        used += pieces(buf, at.after(used), line, 0, theme) + gap;
    }
    let mut end = at.width;
    for (_, line) in shown.iter().rev().filter(|(part, _)| part.right) {
        let wide = pieces_width(line);
        let Some(from) = end.checked_sub(wide).filter(|from| *from + gap >= used) else { break };
        pieces(buf, at.after(from), line, 0, theme);
        end = from.saturating_sub(gap);
    }
}
