//! The last line: what works here, or the newest message.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use crate::tui::action::{Action, Place, rows};
use crate::tui::keymap::Keymap;
use crate::tui::theme::{Role, Theme};
use crate::tui::widgets::text::{At, put, width};
use crate::view::Tone;

/// Draws the line; what does not fit is left out whole.
pub fn draw(buf: &mut Buffer, area: Rect, place: Place, message: Option<&str>, keys: &Keymap, theme: &Theme) {
    let mut at = At::row(area, 0).after(u16::from(area.width > 20));
    if let Some(message) = message {
        put(buf, at, message, theme.role(Role::Message));
        return;
    }
    for (place_at, key, word, _) in words(at, place, keys) {
        at = place_at;
        at = at.after(put(buf, at, &key, theme.role(Role::Key)) + 1);
        put(buf, at, word, theme.tone(Tone::Dim));
    }
}

/// The action whose word stands at a column. A message hides them all.
pub fn action_at(area: Rect, place: Place, message: Option<&str>, keys: &Keymap, x: u16) -> Option<Action> {
    if message.is_some() {
        return None;
    }
    let at = At::row(area, 0).after(u16::from(area.width > 20));
    let (.., action) = words(at, place, keys).into_iter().find(|(at, key, word, _)| {
        let wide = width(key) + 1 + width(word);
        (at.x..at.x + wide).contains(&x)
    })?;
    Some(action)
}

/// What fits: where, the key, the word, the action.
fn words(mut at: At, place: Place, keys: &Keymap) -> Vec<(At, String, &'static str, Action)> {
    let words: Vec<(Action, String, &'static str)> = rows(place)
        .filter(|row| !row.word.is_empty())
        .filter_map(|row| Some((row.action, keys.shown(place, row.action)?, row.word)))
        .collect();
    let wide = |(_, key, word): &(Action, String, &str)| width(key) + width(word) + 1;
    // Help and the way out stay, whatever else there is.
    let stays = |(action, ..): &(Action, String, &str)| matches!(action, Action::Help | Action::Quit);
    let mut kept: u16 = words.iter().filter(|word| stays(word)).map(|word| wide(word) + 2).sum();
    let mut placed = Vec::new();
    for word in words {
        if stays(&word) {
            kept -= wide(&word) + 2;
        }
        if wide(&word) > at.width || (!stays(&word) && wide(&word) + 2 + kept > at.width) {
            continue;
        }
        let next = at.after(wide(&word) + 2);
        let (action, key, word) = word;
        placed.push((at, key, word, action));
        at = next;
    }
    placed
}
