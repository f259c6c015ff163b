//! The last line: what works here, or the newest message.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use crate::tui::action::{Place, rows};
use crate::tui::theme::{Role, Theme};
use crate::tui::widgets::text::{At, put, width};
use crate::view::Tone;

/// Draws the line; what does not fit is left out whole.
pub fn draw(buf: &mut Buffer, area: Rect, place: Place, message: Option<&str>, theme: &Theme) {
    let mut at = At::row(area, 0).after(u16::from(area.width > 20));
    if let Some(message) = message {
        put(buf, at, message, theme.role(Role::Message));
        return;
    }
    for row in rows(place).filter(|row| !row.word.is_empty()) {
        let Some(key) = row.keys.first() else { continue };
        if width(key) + width(row.word) + 1 > at.width {
            continue;
        }
        at = at.after(put(buf, at, key, theme.role(Role::Key)) + 1);
        at = at.after(put(buf, at, row.word, theme.tone(Tone::Dim)) + 2);
    }
}
