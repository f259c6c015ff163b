//! The story of a request: sentences, one after the other, wrapped between words.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use crate::tui::theme::Theme;
use crate::tui::widgets::frame::frame;
use crate::tui::widgets::text::{At, put, width};
use crate::view::{Piece, Tone};

/// Words with their tones, broken into rows of so many columns. Sentences follow each other as long as there are many of
/// them; `lines` gives each its own row.
fn rows(story: &[Vec<Piece>], columns: u16) -> Vec<Vec<(String, Tone)>> {
    let mut rows: Vec<Vec<(String, Tone)>> = vec![Vec::new()];
    let mut used = 0;
    for sentence in story {
        let mut glued = false;
        for piece in sentence {
            // A word goes on over the border of two pieces unless there is a space between them.
            for (index, word) in piece.text.split(' ').enumerate() {
                let glue = glued && index == 0;
                let wide = width(word);
                let gap = u16::from(!glue && used > 0);
                if word.is_empty() {
                    continue;
                }
                if used + gap + wide > columns && used > 0 && !glue {
                    rows.push(Vec::new());
                    used = 0;
                }
                let last = rows.len() - 1;
                let text = if used > 0 && !glue { format!(" {word}") } else { word.to_owned() };
                used += width(&text);
                rows[last].push((text, piece.tone));
            }
            glued = !piece.text.ends_with(' ') && !piece.text.is_empty();
        }
    }
    rows
}

/// How many rows a story takes in an area of this width, with its frame.
pub fn height(story: &[Vec<Piece>], columns: u16) -> u16 {
    (rows(story, columns.saturating_sub(4)).len() as u16).saturating_add(2)
}

/// Draws the story; what does not fit is cut with a sign.
pub fn draw(buf: &mut Buffer, area: Rect, story: &[Vec<Piece>], theme: &Theme) {
    let inside = frame(buf, area, "Story", "", false, theme);
    let rows = rows(story, inside.width);
    for (index, row) in (0..inside.height).zip(&rows) {
        let mut at = At::row(inside, index);
        for (text, tone) in row {
            at = at.after(put(buf, at, text, theme.tone(*tone)));
        }
        if index + 1 == inside.height && rows.len() > usize::from(inside.height) {
            let end = At::row(inside, index).after(inside.width.saturating_sub(2));
            put(buf, end, " …", theme.tone(Tone::Dim));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sentences_are_wrapped_between_words() {
        let story = [
            vec![Piece::plain("Queued 34 ms; chose "), Piece::new("7e01:0", Tone::Strong), Piece::plain(".")],
            vec![Piece::plain("Done.")],
        ];
        let text: Vec<String> =
            rows(&story, 14).iter().map(|row| row.iter().map(|(text, _)| text.as_str()).collect()).collect();
        assert_eq!(text, ["Queued 34 ms;", "chose 7e01:0.", "Done."]);
    }
}
