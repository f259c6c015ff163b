//! Links that terminals let one click (OSC 8). A cell carries its sign between the two sequences and says that it is one
//! column wide all the same, so that the drawing of frames counts right; terminals that know no links drop the sequences.
//!
//! Only for addresses that were checked to be plain ASCII ([`crate::view::link`]), never for remote text.

use std::num::NonZeroU16;

use ratatui::buffer::{Buffer, CellDiffOption};
use unicode_width::UnicodeWidthStr;

use super::text::At;

/// Makes what is already drawn on `columns` columns from `at` on a link.
pub fn link(buf: &mut Buffer, at: At, columns: u16, url: &str) {
    if !url.bytes().all(|byte| byte.is_ascii_graphic()) {
        return;
    }
    for x in at.x..at.x.saturating_add(columns.min(at.width)) {
        let Some(cell) = buf.cell_mut((x, at.y)) else { return };
        let width = cell.symbol().width();
        let Some(columns) = u16::try_from(width).ok().and_then(NonZeroU16::new) else { continue };
        // One id for all cells: terminals then underline them as one link.
        let linked = format!("\x1b]8;id=trace;{url}\x1b\\{}\x1b]8;;\x1b\\", cell.symbol());
        cell.set_symbol(&linked).set_diff_option(CellDiffOption::ForcedWidth(columns));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ratatui::layout::Rect;
    use ratatui::style::Style;

    #[test]
    fn cells_keep_their_width_and_only_plain_addresses_are_linked() {
        let area = Rect::new(0, 0, 6, 1);
        let (mut buf, empty) = (Buffer::empty(area), Buffer::empty(area));
        buf.set_string(0, 0, "abcdef", Style::new());
        link(&mut buf, At { x: 1, y: 0, width: 5 }, 2, "http://x/1");
        let drawn: Vec<(u16, String)> =
            empty.diff(&buf).into_iter().map(|(x, _, cell)| (x, cell.symbol().to_owned())).collect();
        assert_eq!(drawn.len(), 6, "{drawn:?}");
        assert_eq!(drawn[1], (1, "\x1b]8;id=trace;http://x/1\x1b\\b\x1b]8;;\x1b\\".to_owned()));
        assert_eq!((drawn[0].1.as_str(), drawn[3].1.as_str()), ("a", "d"));
        let before = buf.clone();
        link(&mut buf, At { x: 3, y: 0, width: 3 }, 3, "http://x/\x1b[2J");
        link(&mut buf, At { x: 3, y: 7, width: 3 }, 3, "http://x/1");
        assert_eq!(buf, before);
    }
}
