//! Plots with a scale that begins at zero: a filled curve in braille, bars in eighths of a block.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Style;

use super::text::{At, paint, put, put_right, width};
use crate::tui::theme::{Role, Theme};
use crate::view::panes::{Bar, Plot, PlotKind};
use crate::view::{Tone, format};

/// The first and last bar that are marked.
pub type Marked = (usize, usize);

/// The least rows a plot needs; with one more it has its axis.
pub const MIN_ROWS: u16 = 2;

const RISING: [&str; 9] = [" ", "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"];

/// The largest value, one at least.
fn most(plot: &Plot) -> u64 {
    plot.bars.iter().filter_map(|bar| bar.value).max().unwrap_or(0).max(1)
}

/// Columns of the scale without its line, and where the bars stand; `None` without room for them.
fn layout(area: Rect, plot: &Plot) -> Option<(u16, Rect)> {
    if area.height == 0 || area.width < 6 {
        return None;
    }
    let rows = area.height - u16::from(area.height > MIN_ROWS);
    let scale = width(&format::short_count(most(plot))) + 1;
    let inside = Rect { x: area.x + scale + 1, width: area.width.saturating_sub(scale + 1), height: rows, ..area };
    Some((scale, inside))
}

/// The bar of a column of the screen; `None` beside them.
pub fn bar_at(area: Rect, plot: &Plot, x: u16) -> Option<usize> {
    let (_, inside) = layout(area, plot)?;
    let column = x.checked_sub(inside.x).filter(|column| *column < inside.width)?;
    let count = plot.bars.len();
    let bar = match plot.kind {
        PlotKind::Area => usize::from(column) * 2 * count / (usize::from(inside.width) * 2).max(1),
        PlotKind::Bars => usize::from(column / slot(inside.width, count)),
    };
    (bar < count).then_some(bar)
}

/// Columns of a bar with the gap after it.
fn slot(columns: u16, bars: usize) -> u16 {
    (columns / u16::try_from(bars.max(1)).unwrap_or(u16::MAX)).clamp(1, WIDEST + 1)
}

/// Draws a plot; the bars at `cursor` are marked.
pub fn plot(buf: &mut Buffer, area: Rect, plot: &Plot, cursor: Option<Marked>, theme: &Theme) {
    let area = area.intersection(buf.area);
    let Some((scale, inside)) = layout(area, plot) else { return };
    let (rows, with_axis, most) = (inside.height, area.height > MIN_ROWS, most(plot));
    let dim = theme.tone(Tone::Dim);
    for row in 0..rows {
        let at = At::row(area, row);
        // The scale's marks: the most, half of it where there is room, zero.
        let mark = match row {
            0 => Some(format::short_count(most)),
            _ if row + 1 == rows => Some("0".to_owned()),
            _ if rows >= 5 && rows % 2 == 1 && row == rows / 2 && most.is_multiple_of(2) => {
                Some(format::short_count(most / 2))
            }
            _ => None,
        };
        let sign = if mark.is_some() { "┤" } else { "│" };
        put_right(buf, At { width: scale - 1, ..at }, &mark.unwrap_or_default(), dim);
        put(buf, At { x: at.x + scale, width: 1, ..at }, sign, dim);
    }
    if plot.bars.iter().all(|bar| bar.value.is_none_or(|value| value == 0)) {
        put(buf, At::row(inside, rows / 2).after(1), "none", dim);
    }
    match plot.kind {
        PlotKind::Area => curve(buf, inside, &plot.bars, most, cursor, theme),
        PlotKind::Bars => bars(buf, inside, plot, most, cursor, with_axis, theme),
    }
    // What the scale counts stands in the corner as long as nothing else does.
    let room = At::row(inside, 0);
    let unit = width(plot.unit);
    let corner = room.after(room.width.saturating_sub(unit));
    let is_free = (corner.x..corner.x + corner.width).all(|x| matches!(buf[(x, corner.y)].symbol(), " " | "⠀"));
    if is_free && unit <= room.width {
        put(buf, corner, plot.unit, dim);
    }
    if with_axis {
        let at = At::row(area, rows).after(scale);
        put(buf, at, "└", dim);
        if plot.kind == PlotKind::Area {
            time_axis(buf, at.after(1), &plot.below, dim);
        }
    }
}

/// `−60 s ──────── −30 s ──────── now`.
fn time_axis(buf: &mut Buffer, at: At, below: &[String], style: Style) {
    put(buf, at, &"─".repeat(usize::from(at.width)), style);
    let last = below.len().saturating_sub(1);
    for (index, text) in below.iter().enumerate() {
        let text = match index {
            0 => format!("{text} "),
            _ if index == last => format!(" {text}"),
            _ => format!(" {text} "),
        };
        let wide = width(&text);
        let from = match index {
            0 => 0,
            _ if index == last => at.width.saturating_sub(wide),
            _ => (at.width / 2).saturating_sub(wide / 2),
        };
        if (index == 0 || index == last || at.width > 40) && wide <= at.width {
            put(buf, At { width: wide, ..at.after(from) }, &text, style);
        }
    }
}

/// Dots of a braille cell from the bottom up, left and right.
const LEFT: [u8; 5] = [0, 0x40, 0x44, 0x46, 0x47];
const RIGHT: [u8; 5] = [0, 0x80, 0xa0, 0xb0, 0xb8];

fn curve(buf: &mut Buffer, inside: Rect, bars: &[Bar], most: u64, cursor: Option<Marked>, theme: &Theme) {
    if bars.is_empty() {
        return;
    }
    let half_columns = usize::from(inside.width) * 2;
    let bar_at = |half: usize| half * bars.len() / half_columns;
    let levels = u64::from(inside.height) * 4;
    // Anything above zero shows at least one dot.
    let dots = |half: usize| {
        let value = bars[bar_at(half)].value.unwrap_or(0);
        ((u128::from(value) * u128::from(levels)).div_ceil(u128::from(most))) as u64
    };
    for column in 0..inside.width {
        let left = usize::from(column) * 2;
        let (high_left, high_right) = (dots(left), dots(left + 1));
        let of = if high_left >= high_right { bar_at(left) } else { bar_at(left + 1) };
        let style = theme.tone(bars[of].tone);
        for row in 0..inside.height {
            let below = u64::from(inside.height - 1 - row) * 4;
            let filled = |high: u64| high.saturating_sub(below).min(4) as usize;
            let cell = LEFT[filled(high_left)] | RIGHT[filled(high_right)];
            if cell > 0
                && let Some(sign) = char::from_u32(0x2800 + u32::from(cell))
            {
                let at = (inside.x + column, inside.y + row);
                buf[at].set_char(sign).set_style(style);
            }
        }
        let is_marked = |bar| cursor.is_some_and(|(from, to)| (from..=to).contains(&bar));
        if is_marked(bar_at(left)) || is_marked(bar_at(left + 1)) {
            mark_column(buf, inside, column, 1, theme);
        }
    }
}

fn mark_column(buf: &mut Buffer, inside: Rect, column: u16, wide: u16, theme: &Theme) {
    for row in 0..inside.height {
        let at = At { x: inside.x + column, y: inside.y + row, width: wide };
        paint(buf, at, theme.role(Role::Cursor));
    }
}

/// The widest bar, in columns.
const WIDEST: u16 = 9;

fn bars(
    buf: &mut Buffer,
    inside: Rect,
    plot: &Plot,
    most: u64,
    cursor: Option<Marked>,
    with_axis: bool,
    theme: &Theme,
) {
    let count = plot.bars.len() as u16;
    if count == 0 {
        return;
    }
    let slot = slot(inside.width, plot.bars.len());
    let wide = if slot > 1 { slot - 1 } else { 1 };
    let levels = u64::from(inside.height) * 8;
    let dim = theme.tone(Tone::Dim);
    // As many labels as have room, each below its bar.
    let longest = plot.bars.iter().map(|bar| width(&bar.label)).max().unwrap_or(0);
    let every = usize::from((longest + 1).div_ceil(slot).max(1));
    let mut axis_end = 0;
    for (index, bar) in plot.bars.iter().enumerate() {
        let column = index as u16 * slot;
        if column + wide > inside.width {
            break;
        }
        let value = bar.value.unwrap_or(0);
        let high = (u128::from(value) * u128::from(levels)).div_ceil(u128::from(most)) as u64;
        let style = theme.tone(bar.tone);
        for row in 0..inside.height {
            let below = u64::from(inside.height - 1 - row) * 8;
            let filled = high.saturating_sub(below).min(8) as usize;
            if filled > 0 {
                let text = RISING[filled].repeat(usize::from(wide));
                put(buf, At { x: inside.x + column, y: inside.y + row, width: wide }, &text, style);
            }
        }
        if with_axis && index % every == 0 {
            let at = At { x: inside.x + column, y: inside.bottom(), width: inside.width - column };
            let used = put(buf, at, &bar.label, dim);
            axis_end = column + used;
        }
        if cursor.is_some_and(|(from, to)| (from..=to).contains(&index)) {
            mark_column(buf, inside, column, wide, theme);
        }
    }
    if let (true, Some(of)) = (with_axis, plot.below.first()) {
        let at = At { y: inside.bottom(), ..At::row(inside, 0) }.after(axis_end + 2);
        if width(of) <= at.width {
            put(buf, at, of, dim);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tui::screen::dump;

    fn drawn(kind: PlotKind, values: &[u64], size: (u16, u16)) -> String {
        let bar = |(at, value): (usize, &u64)| Bar { value: Some(*value), label: at.to_string(), ..Bar::default() };
        let bars = values.iter().enumerate().map(bar).collect();
        let below = ["−10 s", "−5 s", "now"].map(ToOwned::to_owned).to_vec();
        let shown = Plot { kind, bars, unit: "waits", below, over: None };
        let mut buf = Buffer::empty(Rect::new(0, 0, size.0, size.1));
        let area = buf.area;
        plot(&mut buf, area, &shown, None, &Theme::named("terminal").unwrap());
        dump(&buf)
    }

    #[test]
    fn plots_have_a_scale_a_unit_and_a_zero() {
        insta::assert_snapshot!(drawn(PlotKind::Area, &[0, 1, 2, 3, 4, 8, 8, 2, 0, 0, 0, 0], (24, 6)));
        insta::assert_snapshot!(drawn(PlotKind::Bars, &[1, 50, 100, 7, 0, 0], (40, 6)));
    }

    #[test]
    fn bars_are_found_where_they_are_drawn() {
        let bars = vec![Bar { value: Some(3), label: "x".into(), ..Bar::default() }; 5];
        for kind in [PlotKind::Area, PlotKind::Bars] {
            let shown = Plot { kind, bars: bars.clone(), unit: "", below: Vec::new(), over: None };
            let area = Rect::new(2, 1, 43, 6);
            for bar in 0..5 {
                let mut buf = Buffer::empty(Rect::new(0, 0, 50, 8));
                plot(&mut buf, area, &shown, Some((bar, bar)), &Theme::named("terminal").unwrap());
                let marked = |x: &u16| buf[(*x, 3)].modifier.contains(ratatui::style::Modifier::REVERSED);
                let columns: Vec<u16> = (0..50).filter(marked).collect();
                let middle = columns[columns.len() / 2];
                assert_eq!(bar_at(area, &shown, middle), Some(bar), "{kind:?} {bar}: {columns:?}");
            }
            assert_eq!((bar_at(area, &shown, 2), bar_at(area, &shown, 60)), (None, None));
        }
    }

    #[test]
    fn any_plot_in_any_room_stays_inside() {
        for size in [(0, 0), (1, 1), (5, 9), (6, 1), (7, 2), (9, 3), (200, 2), (30, 30)] {
            for values in [&[][..], &[0], &[1], &[u64::MAX, 1, 0, 5], &[7; 300]] {
                drawn(PlotKind::Area, values, size);
                drawn(PlotKind::Bars, values, size);
            }
        }
    }
}
