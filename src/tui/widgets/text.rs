//! Text on a buffer, by display columns and on grapheme borders (field case B53). Line breaks, tabs and other controls
//! in remote text are drawn as signs; nothing that is drawn can act on the terminal.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Style;
use unicode_segmentation::UnicodeSegmentation;
use unicode_width::UnicodeWidthStr;

use crate::tui::theme::Theme;
use crate::view::Piece;

/// The longest grapheme that is drawn as it is, bytes; families and flags need less. A text may hold one of a megabyte,
/// of marks upon marks, which would be written whole into one column.
const LONGEST: usize = 64;

/// What is drawn for a grapheme; `None` when it has nothing to show.
fn sign(grapheme: &str) -> Option<(&str, u16)> {
    let mut chars = grapheme.chars();
    let shown = match (chars.next()?, chars.next()) {
        ('\n' | '\r', _) => "␊",
        ('\t', None) => "␉",
        (c, None) if c.is_control() => "\u{fffd}",
        _ if grapheme.len() > LONGEST => "\u{fffd}",
        // A terminal would take the next column's sign for the missing half.
        _ => grapheme.trim_end_matches('\u{200d}'),
    };
    match shown.width() {
        0 => None,
        width => Some((shown, width as u16)),
    }
}

/// Display columns of a text as it is drawn.
pub fn width(text: &str) -> u16 {
    if text.is_ascii() && !text.bytes().any(|byte| byte.is_ascii_control()) {
        return text.len().try_into().unwrap_or(u16::MAX);
    }
    let mut columns = 0u16;
    for grapheme in text.graphemes(true) {
        columns = columns.saturating_add(sign(grapheme).map_or(0, |(_, width)| width));
    }
    columns
}

/// Where and how wide.
#[derive(Clone, Copy, Debug)]
pub struct At {
    /// Left end.
    pub x: u16,
    /// Row.
    pub y: u16,
    /// Columns there are.
    pub width: u16,
}

impl At {
    /// The row `y` rows below the top of an area.
    pub fn row(area: Rect, y: u16) -> Self {
        Self { x: area.x, y: area.y.saturating_add(y), width: area.width }
    }

    /// What is left after `used` columns.
    #[must_use]
    pub fn after(self, used: u16) -> Self {
        let used = used.min(self.width);
        Self { x: self.x + used, width: self.width - used, ..self }
    }
}

/// Draws a text, cut with `…` when it does not fit; gives the columns used. Draws nothing outside the buffer.
pub fn put(buf: &mut Buffer, at: At, text: &str, style: Style) -> u16 {
    let area = buf.area;
    if at.y < area.y || at.y >= area.bottom() || at.x < area.x || at.x >= area.right() {
        return 0;
    }
    let room = at.width.min(area.right() - at.x);
    let mut used = 0;
    let mut graphemes = text.graphemes(true).filter_map(sign).peekable();
    while let Some((grapheme, wide)) = graphemes.next() {
        let last = graphemes.peek().is_none();
        if used + wide > room || (!last && used + wide == room) {
            if used < room {
                cell(buf, at.x + used, at.y, "…", 1, style);
                used += 1;
            }
            // A wide character that does not fit is replaced, not halved.
            while used < room {
                cell(buf, at.x + used, at.y, " ", 1, style);
                used += 1;
            }
            break;
        }
        cell(buf, at.x + used, at.y, grapheme, wide, style);
        used += wide;
    }
    used
}

fn cell(buf: &mut Buffer, x: u16, y: u16, symbol: &str, wide: u16, style: Style) {
    buf[(x, y)].set_symbol(symbol).set_style(style);
    for x in x + 1..(x + wide).min(buf.area.right()) {
        buf[(x, y)].reset();
        buf[(x, y)].set_style(style);
    }
}

/// Draws a text against the right edge.
pub fn put_right(buf: &mut Buffer, at: At, text: &str, style: Style) {
    let used = width(text).min(at.width);
    put(buf, at.after(at.width - used), text, style);
}

/// Draws pieces one after the other, `gap` columns apart; gives the columns used.
pub fn pieces(buf: &mut Buffer, at: At, pieces: &[Piece], gap: u16, theme: &Theme) -> u16 {
    let mut used = 0;
    for piece in pieces.iter().filter(|piece| !piece.text.is_empty()) {
        if used > 0 {
            used += gap;
        }
        used += put(buf, at.after(used), &piece.text, theme.tone(piece.tone));
    }
    used.min(at.width)
}

/// Display columns of pieces drawn without a gap.
pub fn pieces_width(pieces: &[Piece]) -> u16 {
    pieces.iter().map(|piece| width(&piece.text)).fold(0, u16::saturating_add)
}

/// Gives a whole row one look, whatever looks its texts have, so that a cursor is one even bar.
pub fn paint(buf: &mut Buffer, at: At, style: Style) {
    let row = Rect { x: at.x, y: at.y, width: at.width, height: 1 };
    buf.set_style(row.intersection(buf.area), Style::reset().patch(style));
}

/// Where a text breaks into rows of `columns`: byte ranges, at line breaks, between words, within those that are too long.
pub fn wrap(text: &str, columns: u16) -> Vec<std::ops::Range<usize>> {
    let columns = columns.max(1);
    let mut rows = Vec::new();
    let mut start = 0;
    for line in text.split_inclusive('\n') {
        let end = start + line.len();
        let shown = line.trim_end_matches(['\n', '\r']);
        let (mut from, mut used) = (start, 0);
        // Behind the last space, and how wide the row is up to there.
        let mut gap = None;
        for (offset, grapheme) in shown.grapheme_indices(true) {
            let at = start + offset;
            let wide = sign(grapheme).map_or(0, |(_, wide)| wide);
            if grapheme == " " && used >= columns {
                // A space at the edge needs no room.
                gap = Some((at + 1, used));
                continue;
            }
            while used > 0 && used + wide > columns {
                let (next, before) = gap.take().unwrap_or((at, used));
                rows.push(from..next);
                (from, used) = (next, used - before);
            }
            used += wide;
            if grapheme == " " {
                gap = Some((at + 1, used));
            }
        }
        rows.push(from..start + shown.len());
        start = end;
    }
    rows
}

#[cfg(test)]
mod tests {
    use super::*;

    fn drawn(text: &str, columns: u16) -> (String, u16) {
        let mut buf = Buffer::empty(Rect::new(0, 0, columns + 1, 1));
        buf[(columns, 0)].set_symbol("|");
        let used = put(&mut buf, At { x: 0, y: 0, width: columns }, text, Style::new());
        let mut out = String::new();
        let mut x = 0;
        while x <= columns {
            out.push_str(buf[(x, 0)].symbol());
            x += buf[(x, 0)].symbol().width().max(1) as u16;
        }
        (out, used)
    }

    #[test]
    fn what_a_terminal_would_join_or_choke_on_is_not_drawn() {
        assert_eq!(drawn("👩\u{200d}x", 4).0.replace(' ', ""), "👩x|");
        assert_eq!(drawn(&format!("e{}x", "\u{301}".repeat(60_000)), 3), ("\u{fffd}x |".to_owned(), 2));
        assert_eq!(width(&"👩\u{200d}".repeat(30_000)), 1);
    }

    #[test]
    fn b53_cuts_and_pads_by_columns_on_grapheme_borders() {
        for (text, columns, expected) in [
            ("plain", 5, "plain|"),
            ("plain", 4, "pla…|"),
            ("推理服务", 8, "推理服务|"),
            ("推理服务", 7, "推理服…|"),
            ("推理服务", 6, "推理… |"),
            ("👩‍🔬x", 3, "👩‍🔬x|"),
            ("👩‍🔬x", 2, "… |"),
            ("a\nb\tc", 9, "a␊b␉c    |"),
            ("e\u{301}t", 3, "e\u{301}t |"),
            ("x\u{200b}y", 4, "xy  |"),
        ] {
            assert_eq!(drawn(text, columns).0, expected, "{text:?} in {columns}");
        }
    }

    #[test]
    fn any_text_in_any_room_uses_no_more_than_there_is() {
        for text in ["推理服务", "🧑🏽‍🚒🏳️‍🌈♻️ｶﾞ", "abc", "", "\u{301}", "\r\n\x1b[2J"] {
            for columns in 0..12 {
                let (out, used) = drawn(text, columns);
                assert!(used <= columns && out.ends_with('|'), "{text:?} {columns}: {out}");
                assert!(!out.contains('\x1b') && !out.contains('\n'));
            }
        }
    }

    #[test]
    fn wrapping_keeps_every_byte_but_line_breaks() {
        let text = "ab推理\n\ncdefgh\r\nz";
        let rows: Vec<&str> = wrap(text, 4).into_iter().map(|range| &text[range]).collect();
        assert_eq!(rows, ["ab推", "理", "", "cdef", "gh", "z"]);
        assert_eq!(wrap("", 4).len(), 0);
        let words = |text: &'static str, columns| -> Vec<&str> {
            wrap(text, columns).into_iter().map(|range| &text[range]).collect()
        };
        assert_eq!(words("one two three", 7), ["one two ", "three"]);
        assert_eq!(words("one two three", 6), ["one ", "two ", "three"]);
        assert_eq!(words("a longest b", 4), ["a ", "long", "est ", "b"]);
        assert_eq!(words("推理 x", 1), ["推", "理 ", "x"]);
    }
}
