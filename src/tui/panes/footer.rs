//! The last line: what works here, or the newest message.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use crate::tui::action::{Action, Place, Row, rows};
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
    let wide = |row: &Row| row.keys.first().map_or(0, |key| width(key)) + width(row.word) + 1;
    // Help and the way out stay, whatever else there is.
    let stays = |row: &&Row| matches!(row.action, Action::Help | Action::Quit) && !row.word.is_empty();
    let mut kept: u16 = rows(place).filter(stays).map(|row| wide(row) + 2).sum();
    for row in rows(place).filter(|row| !row.word.is_empty()) {
        let Some(key) = row.keys.first() else { continue };
        if stays(&row) {
            kept -= wide(row) + 2;
        }
        if wide(row) > at.width || (!stays(&row) && wide(row) + 2 + kept > at.width) {
            continue;
        }
        at = at.after(put(buf, at, key, theme.role(Role::Key)) + 1);
        at = at.after(put(buf, at, row.word, theme.tone(Tone::Dim)) + 2);
    }
}
