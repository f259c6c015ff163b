//! Rounded frames with a title at the left and a summary at the right.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use super::text::{At, put, put_right, width};
use crate::tui::theme::{Role, Theme};

/// Draws a frame; gives what is inside, a column away from its sides. Areas too small for a frame are left whole.
pub fn frame(buf: &mut Buffer, area: Rect, title: &str, summary: &str, focused: bool, theme: &Theme) -> Rect {
    let area = area.intersection(buf.area);
    if area.width < 4 || area.height < 3 {
        return area;
    }
    let style = theme.role(if focused { Role::Focus } else { Role::Border });
    let (left, right, top, bottom) = (area.x, area.right() - 1, area.y, area.bottom() - 1);
    for x in left..=right {
        buf[(x, top)].set_symbol("─").set_style(style);
        buf[(x, bottom)].set_symbol("─").set_style(style);
    }
    for y in top..=bottom {
        buf[(left, y)].set_symbol("│").set_style(style);
        buf[(right, y)].set_symbol("│").set_style(style);
    }
    for (x, y, corner) in [(left, top, "╭"), (right, top, "╮"), (left, bottom, "╰"), (right, bottom, "╯")] {
        buf[(x, y)].set_symbol(corner).set_style(style);
    }
    let room = At { x: left + 2, y: top, width: area.width - 4 };
    let used = put(buf, room, &format!(" {title} "), theme.role(Role::Title));
    let room = room.after(used + 1);
    if !summary.is_empty() && room.width > 8 {
        let text = format!(" {summary} ");
        if width(&text) <= room.width {
            put_right(buf, room, &text, theme.tone(crate::view::Tone::Dim));
        } else {
            put(buf, room, &text, theme.tone(crate::view::Tone::Dim));
        }
    }
    Rect { x: left + 2, y: top + 1, width: area.width - 4, height: area.height - 2 }
}
