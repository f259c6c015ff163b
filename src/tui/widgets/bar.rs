//! Bars: a share as blocks of an eighth, and a span on the waterfall.

use ratatui::buffer::Buffer;
use ratatui::style::Style;

use super::text::{At, put};

const EIGHTHS: [&str; 8] = ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉"];

/// A share from 0 to 1 as text of at most `columns`; anything above zero shows at least an eighth.
pub fn bar(share: f64, columns: u16) -> String {
    let eighths = (share.clamp(0.0, 1.0) * f64::from(columns) * 8.0).round() as usize;
    let eighths = if share > 0.0 { eighths.max(1) } else { eighths };
    format!("{}{}", "█".repeat(eighths / 8), EIGHTHS[eighths % 8])
}

/// A span from `start` to `start + length` (0 to 1) on a waterfall row: `┝━━┥`, one column at least; open at the right
/// while it runs.
pub fn span(buf: &mut Buffer, at: At, start: f64, length: f64, running: bool, style: Style) -> u16 {
    let Some(last) = at.width.checked_sub(1) else { return 0 };
    let column = |share: f64| ((share.clamp(0.0, 1.0) * f64::from(last)).round() as u16).min(last);
    let (from, to) = (column(start), column(start + length));
    let end = if running { "┄" } else { "┥" };
    let text = match to - from {
        0 if running => "┄".to_owned(),
        0 => "▏".to_owned(),
        1 => format!("┝{end}"),
        between => format!("┝{}{end}", "━".repeat(usize::from(between) - 1)),
    };
    put(buf, at.after(from), &text, style);
    from + (to - from) + 1
}

#[cfg(test)]
mod tests {
    use super::*;
    use ratatui::layout::Rect;

    #[test]
    fn shares_and_spans_have_their_ends() {
        assert_eq!([0.0, 0.001, 0.5, 1.0, 9.0].map(|share| bar(share, 4)), ["", "▏", "██", "████", "████"]);
        let mut buf = Buffer::empty(Rect::new(0, 0, 10, 1));
        let at = At { x: 0, y: 0, width: 10 };
        assert_eq!(span(&mut buf, at, 0.0, 1.0, false, Style::new()), 10);
        assert_eq!(buf.content.iter().map(|cell| cell.symbol()).collect::<String>(), "┝━━━━━━━━┥");
        assert_eq!(span(&mut buf, At { width: 0, ..at }, 0.0, 1.0, false, Style::new()), 0);
    }
}
