//! One line of text that is edited: what the filter line and the palette have in common. Holds as much as a filter may, so
//! that whatever is pasted costs no more than that; tells what did not fit.

use std::ops::Range;

use ratatui::buffer::Buffer;
use tui_input::{Input, InputRequest};
use unicode_segmentation::UnicodeSegmentation;

use crate::query::MAX_LENGTH;
use crate::tui::action::Action;
use crate::tui::theme::{Role, Theme};
use crate::tui::widgets::text::{At, paint, put, width};
use crate::view::{Tone, format};

/// What an action came to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Edit {
    /// It is none of a line.
    None,
    /// The cursor moved.
    Moved,
    /// The text may be another one.
    Changed,
}

/// See the module.
#[derive(Default)]
pub struct Line {
    input: Input,
    /// Characters that did not fit since something was last taken out.
    left_out: usize,
}

impl Line {
    /// A line of this text, the cursor behind it.
    pub fn new(text: String) -> Self {
        Self { input: Input::new(text), left_out: 0 }
    }

    /// The text.
    pub fn value(&self) -> &str {
        self.input.value()
    }

    /// The byte of the text at which the cursor stands.
    pub fn cursor(&self) -> usize {
        self.value().char_indices().nth(self.input.cursor()).map_or(self.value().len(), |(at, _)| at)
    }

    /// Does an action on the line.
    pub fn edit(&mut self, action: Action) -> Edit {
        let (request, edit) = match action {
            Action::Clear => {
                *self = Self::default();
                return Edit::Changed;
            }
            Action::Left => (InputRequest::GoToPrevChar, Edit::Moved),
            Action::Right => (InputRequest::GoToNextChar, Edit::Moved),
            Action::Top => (InputRequest::GoToStart, Edit::Moved),
            Action::Bottom => (InputRequest::GoToEnd, Edit::Moved),
            Action::Erase => (InputRequest::DeletePrevChar, Edit::Changed),
            Action::EraseNext => (InputRequest::DeleteNextChar, Edit::Changed),
            Action::EraseWord => (InputRequest::DeletePrevWord, Edit::Changed),
            _ => return Edit::None,
        };
        if edit == Edit::Changed {
            self.left_out = 0;
        }
        self.input.handle(request);
        edit
    }

    /// Puts typed or pasted text in, without what is no text; says whether any of it fitted.
    pub fn insert(&mut self, text: &str) -> bool {
        let cursor = self.cursor();
        self.replace(cursor..cursor, text)
    }

    /// Puts text in place of these bytes, the cursor behind it, as much as fits; says whether anything changed.
    pub fn replace(&mut self, bytes: Range<usize>, text: &str) -> bool {
        let value = self.value();
        let (Some(before), Some(after)) = (value.get(..bytes.start), value.get(bytes.end..)) else { return false };
        let mut put_in = before.to_owned();
        let room = MAX_LENGTH.saturating_sub(after.len());
        // Lines stay apart in the one there is.
        let mut typed = text
            .trim_end_matches(['\n', '\r'])
            .chars()
            .map(|c| if matches!(c, '\n' | '\r' | '\t') { ' ' } else { c })
            .filter(|c| !c.is_control())
            .peekable();
        while let Some(c) = typed.next_if(|c| put_in.len() + c.len_utf8() <= room) {
            put_in.push(c);
        }
        let left_out = typed.count();
        let cursor = put_in.chars().count();
        put_in.push_str(after);
        let changed = put_in != value;
        self.input = Input::new(put_in).with_cursor(cursor);
        self.left_out = if bytes.is_empty() { self.left_out + left_out } else { left_out };
        changed
    }

    /// What is to be said of the line.
    pub fn note(&self) -> Option<String> {
        let left_out = format::count(self.left_out as u64);
        (self.left_out > 0).then(|| format!("line full; characters left out: {left_out}"))
    }

    /// Draws the text with its cursor, and behind it what is said of it. A text longer than its room shows what is before
    /// the cursor.
    pub fn draw(&self, buf: &mut Buffer, at: At, note: Option<&str>, theme: &Theme) {
        let style = theme.tone(Tone::Strong);
        let (before, after) = self.value().split_at(self.cursor());
        let note_room = note.map_or(0, |note| width(note).saturating_add(2)).min(at.width / 2);
        let wanted = width(before).saturating_add(width(after)).saturating_add(note_room);
        let text = if wanted < at.width { at } else { At { width: at.width - note_room, ..at } };
        let rest = text.after(put(buf, text, ending(before, text.width.saturating_sub(2)), style));
        let used = put(buf, rest, if after.is_empty() { " " } else { after }, style);
        paint(buf, At { width: rest.width.min(1), ..rest }, theme.role(Role::Cursor));
        if let Some(note) = note {
            let gap = if after.is_empty() { 2 } else { used + 2 };
            let behind = rest.x - at.x + gap;
            put(buf, at.after(behind.min(at.width - note_room + 2)), note, theme.tone(Tone::Bad));
        }
    }
}

/// The end of a text that fits into so many columns. Looks at no more than that.
fn ending(text: &str, columns: u16) -> &str {
    let mut room = columns;
    let mut from = text.len();
    for (at, grapheme) in text.grapheme_indices(true).rev() {
        let Some(left) = room.checked_sub(width(grapheme)) else { break };
        (room, from) = (left, at);
    }
    &text[from..]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_keeps_what_fits_and_tells_the_rest() {
        let mut line = Line::new("ab".into());
        line.edit(Action::Left);
        assert!(line.insert(&"x\u{1b}".repeat(5000)));
        assert_eq!((line.value().len(), line.cursor()), (MAX_LENGTH, MAX_LENGTH - 1));
        assert!(line.value().starts_with("ax") && line.value().ends_with("xb"));
        assert_eq!(line.note().as_deref(), Some("line full; characters left out: 906"));
        assert!(!line.insert("y") && line.note().unwrap().ends_with(": 907"));
        line.edit(Action::Erase);
        assert_eq!(line.note(), None);
        // Whole characters only.
        assert!(!line.insert("é") && line.insert("y") && line.note().unwrap().ends_with(": 1"));
        assert!(line.replace(1..MAX_LENGTH - 1, "推理"));
        assert_eq!((line.value(), line.cursor(), line.note()), ("a推理b", 7, None));
    }

    #[test]
    fn only_what_is_shown_of_a_text_is_measured() {
        assert_eq!((ending("abc", 2), ending("abc", 9), ending("推理x", 4), ending("", 3)), ("bc", "abc", "理x", ""));
        let long = "推".repeat(1 << 20);
        let begun = std::time::Instant::now();
        assert!((0..1000).all(|_| ending(&long, 100).len() == 150));
        assert!(begun.elapsed() < std::time::Duration::from_secs(20));
    }
}
