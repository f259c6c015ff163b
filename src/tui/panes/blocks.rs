//! Any pane that is made of blocks: arranges them in its frame and draws them, with what the cursor stands on.

use ratatui::buffer::Buffer;
use ratatui::layout::{Position, Rect};

use crate::tui::theme::{Role, Theme};
use crate::tui::widgets::frame::frame;
use crate::tui::widgets::plot::{self, bar_at, plot};
use crate::tui::widgets::table::{cell_at, item_at, line, table};
use crate::tui::widgets::text::{At, put, width};
use crate::view::Tone;
use crate::view::panes::{Block, Body, GAP, Pane, Spot};

/// Rows a plot can use beside others: at least and at most, and by default its part of all there are.
const TALLEST: (u16, u16, u16) = (9, 18, 3);

/// Rows that tables keep while there are blocks of higher rank: the ones of the first two ranks, and the others.
const KEPT: (u16, u16) = (4, 2);

/// How a pane is drawn.
#[derive(Clone, Copy)]
pub struct Shown<'a> {
    /// Its title.
    pub title: &'a str,
    /// What it holds.
    pub pane: &'a Pane,
    /// What the cursor stands on, with its term.
    pub cursor: Option<(Spot, &'a str)>,
    /// The last bar of a stretch that is being marked; the cursor stands on the first.
    pub until: Option<usize>,
    /// Whether keys go here.
    pub focused: bool,
    /// The key that filters by what the cursor stands on.
    pub pick: Option<&'a str>,
}

/// Where blocks stand in a pane of this size.
pub fn inside(area: Rect) -> Rect {
    Rect { x: area.x + 2, y: area.y + 1, width: area.width.saturating_sub(4), height: area.height.saturating_sub(2) }
}

/// Draws a pane.
pub fn draw(buf: &mut Buffer, area: Rect, shown: &Shown<'_>, theme: &Theme) {
    let inside = frame(buf, area, shown.title, &shown.pane.summary, shown.focused, theme);
    if inside.height == 0 || inside == area {
        return;
    }
    for (index, block, area) in placed(shown.pane, inside, shown.cursor.map(|(spot, _)| spot)) {
        let is_here = |spot: &Spot| (spot.column, spot.block) == (index, block);
        let cursor = shown.cursor.map(|(spot, _)| spot).filter(is_here);
        draw_block(buf, area, &shown.pane.columns[index][block], cursor, shown.until, theme);
    }
    if let (true, Some((_, term)), Some(key)) = (shown.focused, shown.cursor, shown.pick) {
        let text = format!(" {key} ▸ {term} ");
        let room = At { x: area.x + 2, y: area.bottom() - 1, width: area.width.saturating_sub(4) };
        put(buf, At { width: width(&text).min(room.width), ..room }, &text, theme.role(Role::Focus));
    }
}

/// Every block with its column and where it stands.
fn placed(pane: &Pane, inside: Rect, cursor: Option<Spot>) -> Vec<(usize, usize, Rect)> {
    let count = pane.columns.len().max(1) as u16;
    let wide = (inside.width.saturating_sub(GAP * (count - 1))) / count;
    let mut placed = Vec::new();
    for (index, blocks) in pane.columns.iter().enumerate() {
        let column = Rect { x: inside.x + index as u16 * (wide + GAP), width: wide, ..inside };
        let cursor = cursor.filter(|spot| spot.column == index).map(|spot| spot.block);
        placed.extend(arranged(blocks, column, cursor).into_iter().map(|(block, area)| (index, block, area)));
    }
    placed
}

/// What stands at a cell of the screen in a pane of this area, as it is drawn with this cursor.
pub fn spot_at(pane: &Pane, area: Rect, cursor: Option<Spot>, at: Position) -> Option<Spot> {
    let placed = placed(pane, inside(area), cursor);
    let (column, block, area) = placed.into_iter().find(|(.., area)| area.contains(at))?;
    let shown = &pane.columns[column][block];
    let area = below_title(shown, area);
    let cursor = cursor.filter(|spot| (spot.column, spot.block) == (column, block));
    let (row, item) = match &shown.body {
        Body::Plot(plot) => (0, bar_at(area, plot, at.x)?),
        Body::Table(table) => cell_at(area, table, cursor.map(|spot| (spot.row, spot.item)), at)?,
        Body::Text(cells) => (0, item_at(At::row(area, 0), cells, at.x)?),
    };
    Some(Spot { column, block, row, item })
}

fn below_title(block: &Block, area: Rect) -> Rect {
    let title = u16::from(!block.title.is_empty() && area.height > 1);
    Rect { y: area.y + title, height: area.height - title, ..area }
}

fn draw_block(buf: &mut Buffer, area: Rect, block: &Block, cursor: Option<Spot>, until: Option<usize>, theme: &Theme) {
    let below = below_title(block, area);
    if below.y > area.y {
        put(buf, At::row(area, 0), &block.title, theme.tone(Tone::Strong));
    }
    match &block.body {
        Body::Plot(shown) => {
            let marked = cursor.map(|spot| (spot.item, until.unwrap_or(spot.item)));
            plot(buf, below, shown, marked.map(|(a, b)| (a.min(b), a.max(b))), theme);
        }
        Body::Table(shown) => table(buf, below, shown, cursor.map(|spot| (spot.row, spot.item)), theme),
        Body::Text(cells) => line(buf, At::row(below, 0), cells, cursor.map(|spot| spot.item), theme),
    }
}

/// The least rows of a block, and those it can use.
fn rows(block: &Block, tallest: u16) -> (u16, u16) {
    let title = u16::from(!block.title.is_empty());
    match &block.body {
        Body::Text(_) => (1 + title, 1 + title),
        Body::Plot(_) => (plot::MIN_ROWS + title, tallest + title),
        Body::Table(table) => {
            let head = u16::from(table.titles.iter().any(|text| !text.trim_start_matches('>').is_empty()));
            let all = table.rows.len() as u16;
            (head + all.min(if block.rank < 2 { KEPT.0 } else { KEPT.1 }) + title, head + all + title)
        }
    }
}

/// Where each block stands. Those of highest rank go when there are too few rows, never the one with the cursor; then
/// tables get what they can use, then plots, then there is air between titled blocks.
fn arranged(blocks: &[Block], area: Rect, cursor: Option<usize>) -> Vec<(usize, Rect)> {
    let (low, high, part) = TALLEST;
    let tallest = (area.height / part).clamp(low, high);
    let rows = |block| rows(block, tallest);
    let mut kept: Vec<usize> = (0..blocks.len()).collect();
    let least = |kept: &[usize]| kept.iter().map(|at| rows(&blocks[*at]).0).sum::<u16>();
    while kept.len() > 1 && least(&kept) > area.height {
        let last = kept
            .iter()
            .enumerate()
            .filter(|(_, block)| Some(**block) != cursor)
            .max_by_key(|(_, block)| (blocks[**block].rank, **block))
            .map_or(0, |(place, _)| place);
        kept.remove(last);
    }
    let mut heights: Vec<u16> = kept.iter().map(|at| rows(&blocks[*at]).0).collect();
    let mut spare = area.height.saturating_sub(heights.iter().sum());
    let is_plot = |at: usize| matches!(blocks[at].body, Body::Plot(_));
    // A plot's axis before more rows of tables; then by rank, tables first.
    let mut order: Vec<usize> = (0..kept.len()).collect();
    order.sort_by_key(|place| (is_plot(kept[*place]), blocks[kept[*place]].rank));
    for place in order.iter().filter(|place| is_plot(kept[**place])) {
        let more = 3.min(spare);
        heights[*place] += more;
        spare -= more;
    }
    for place in order {
        let most = rows(&blocks[kept[place]]).1;
        let more = most.saturating_sub(heights[place]).min(spare);
        heights[place] += more;
        spare -= more;
    }
    let mut air = Vec::new();
    for (place, at) in kept.iter().enumerate() {
        let gap = u16::from(place > 0 && !blocks[*at].title.is_empty() && spare > 0);
        air.push(gap);
        spare -= gap;
    }
    let mut y = area.y;
    let mut placed = Vec::new();
    for ((at, height), gap) in kept.into_iter().zip(heights).zip(air) {
        y += gap;
        let height = height.min(area.bottom().saturating_sub(y));
        if height > 0 {
            placed.push((at, Rect { y, height, ..area }));
        }
        y += height;
    }
    placed
}
