//! The outcomes line: sign or word, number and a bar for each outcome; the filter at the right when there is one.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use crate::tui::theme::Theme;
use crate::tui::widgets::bar::bar;
use crate::tui::widgets::text::{At, pieces, pieces_width, width};
use crate::view::outcomes::Count;
use crate::view::{Line, Piece, Tone};

/// Columns of the longest bar.
const BAR: u16 = 24;
/// Columns of what stands before the filter.
const LABEL: u16 = 9;
/// What the filter needs to be worth showing here.
const FILTER: u16 = 14;

/// Draws the line.
pub fn draw(buf: &mut Buffer, area: Rect, counts: &[Count], filter: &str, theme: &Theme) {
    let at = At::row(area, 0);
    let at = if at.width > 80 { At { x: at.x + 1, width: at.width - 2, ..at } } else { at };
    let wanted = width(filter).saturating_add(LABEL + 2);
    let filter_width = if filter.is_empty() { 0 } else { wanted.clamp(FILTER, (at.width / 2).max(FILTER)) };
    let room = at.width.saturating_sub(filter_width);
    let forms: [fn(&Count, u16) -> Line; 3] = [with_word_and_bar, with_word, with_sign];
    let bars = BAR.min(room / 6);
    let lines = forms
        .into_iter()
        .map(|form| counts.iter().map(|count| form(count, bars)).collect::<Vec<_>>())
        .find(|lines| lines.iter().map(|line| pieces_width(line) + 2).sum::<u16>() <= room)
        .unwrap_or_else(|| counts.iter().map(|count| with_sign(count, 0)).collect());
    let mut used = 0;
    for line in &lines {
        used += pieces(buf, at.after(used), line, 0, theme) + 2;
    }
    if !filter.is_empty() {
        let text = vec![Piece::dim("filter ▸ "), Piece::new(filter, Tone::Accent)];
        let wide = pieces_width(&text).min(at.width.saturating_sub(used));
        pieces(buf, at.after(at.width - wide), &text, 0, theme);
    }
}

fn with_sign(count: &Count, _: u16) -> Line {
    vec![Piece::new(format!("{}{}", count.sign, count.text), count.tone)]
}

fn with_word(count: &Count, _: u16) -> Line {
    vec![Piece::dim(format!("{} ", count.word)), Piece::new(&*count.text, count.tone)]
}

fn with_word_and_bar(count: &Count, columns: u16) -> Line {
    let mut line = with_word(count, columns);
    if count.count > 0 {
        line.push(Piece::new(format!(" {}", bar(count.share, columns)), count.tone));
    }
    line
}
