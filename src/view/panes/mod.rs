//! The panes: queue, selection, dispatch, streaming, workers, sessions, as plain data in a small and a zoomed form.
//!
//! A pane is made of blocks: plots, tables and lines of text. Whatever in it stands for some requests knows the filter
//! term that finds exactly those. Owns: what is counted where, worded and ranked, and the terms. Keeps out: counting
//! (`store::rollup`), drawing and the cursor's keys (`tui`). A pane costs what it shows, not what is held.

mod decisions;
mod depth;
mod dispatch;
mod queue;
mod results;
pub mod scale;
mod selection;
mod sessions;
mod streaming;
mod terms;
#[cfg(test)]
mod tests;
mod workers;

use super::data::{Data, Seen};
use super::{Piece, Tone};
use crate::lifecycle::stage::{Origin, Phase};
use crate::store::rollup::values::Values;
use crate::view::format;

/// Names a pane.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub enum PaneId {
    /// Waits in the router's queue.
    Queue,
    /// The router's choices.
    Selection,
    /// Attempts to hand over to workers.
    Dispatch,
    /// Frontend streams.
    Streaming,
    /// Workers and ranks.
    Workers,
    /// Agent sessions.
    Sessions,
}

impl PaneId {
    /// Every pane with its title, in the order of their number keys.
    pub const ALL: [(Self, &'static str); 6] = [
        (Self::Queue, "Queue"),
        (Self::Selection, "Selection"),
        (Self::Dispatch, "Dispatch"),
        (Self::Streaming, "Streaming"),
        (Self::Workers, "Workers"),
        (Self::Sessions, "Sessions"),
    ];

    /// Those of the first screen.
    pub const FIRST: [Self; 4] = [Self::Queue, Self::Selection, Self::Dispatch, Self::Streaming];

    /// The number that its key has.
    pub fn number(self) -> usize {
        match Self::ALL.iter().position(|(id, _)| *id == self) {
            // 5 is the request list.
            Some(at) if at >= Self::FIRST.len() => at + 2,
            at => at.unwrap_or(0) + 1,
        }
    }

    /// Its title.
    pub fn title(self) -> &'static str {
        Self::ALL.iter().find(|(id, _)| *id == self).map_or("", |(_, title)| title)
    }
}

/// What there is room for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Room {
    /// Display columns inside the pane.
    pub columns: u16,
    /// Rows inside the pane.
    pub rows: u16,
    /// Whether it has the whole screen.
    pub zoomed: bool,
}

impl Room {
    /// Whether there is room for little more than a plot and a line.
    fn is_tight(self) -> bool {
        !self.zoomed && (self.columns < 52 || self.rows < 7)
    }

    /// Whether two columns of blocks stand side by side.
    fn is_wide(self) -> bool {
        self.zoomed && self.columns >= 104
    }

    /// Columns of one of the columns of blocks.
    fn column(self) -> u16 {
        if self.is_wide() { (self.columns - GAP) / 2 } else { self.columns }
    }
}

/// Columns between two columns of blocks.
pub const GAP: u16 = 3;

/// A pane.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct Pane {
    /// What stands beside its title.
    pub summary: String,
    /// Blocks from top to bottom, in one column or two.
    pub columns: Vec<Vec<Block>>,
}

/// A part of a pane.
#[derive(Clone, Debug, PartialEq)]
pub struct Block {
    /// What is shown.
    pub body: Body,
    /// What stands above it; empty for nothing.
    pub title: String,
    /// 0 stays longest when there are too few rows.
    pub rank: u8,
}

/// What a block shows.
#[derive(Clone, Debug, PartialEq)]
pub enum Body {
    /// Values over time or over classes.
    Plot(Plot),
    /// Rows of cells.
    Table(Table),
    /// One line.
    Text(Vec<Cell>),
}

impl Body {
    /// The terms of its bars or cells, row by row.
    fn terms(&self) -> Vec<Vec<Option<&str>>> {
        fn of(cells: &[Cell]) -> Vec<Option<&str>> {
            cells.iter().map(|cell| cell.term.as_deref()).collect()
        }
        match self {
            Self::Plot(plot) => vec![plot.bars.iter().map(|bar| bar.term.as_deref()).collect()],
            Self::Text(cells) => vec![of(cells)],
            Self::Table(table) => table.rows.iter().map(|row| of(row)).collect(),
        }
    }
}

/// Something that is shown, and what it stands for.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct Cell {
    /// What it says.
    pub text: Piece,
    /// What is drawn beside the text.
    pub mark: Mark,
    /// The filter term that finds the requests behind it.
    pub term: Option<String>,
}

/// A small drawing in a cell.
#[derive(Clone, Debug, PartialEq, Default)]
pub enum Mark {
    /// None.
    #[default]
    None,
    /// A bar: a share from 0 to 1.
    Bar(f64),
    /// Values from 0 to 1, one beside the other.
    Spark(Vec<f64>),
    /// Points on an axis from 0 to 1.
    Dots(Vec<Dot>),
}

/// A candidate on the axis of costs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Dot {
    /// Where, from 0 to 1.
    pub at: f64,
    /// What it was.
    pub kind: DotKind,
}

/// What a candidate was. Later ones are drawn over earlier ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum DotKind {
    /// Neither chosen nor best.
    Other,
    /// Of least cost, not chosen.
    Best,
    /// Chosen, not of least cost.
    Chosen,
    /// Chosen and best.
    ChosenBest,
}

/// Values side by side, over a scale that begins at zero.
#[derive(Clone, Debug, PartialEq)]
pub struct Plot {
    /// How it is drawn.
    pub kind: PlotKind,
    /// From left to right.
    pub bars: Vec<Bar>,
    /// What the values are.
    pub unit: &'static str,
    /// What stands below the axis: for time, its beginning, middle and end; for classes, what they are of.
    pub below: Vec<String>,
    /// Of a plot over time: when each bar is.
    pub over: Option<Over>,
}

/// The time that a plot's bars cover.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Over {
    /// The pool whose waits are shown; `None` for all.
    pool: Option<Phase>,
    /// Where the first bar begins, nanoseconds since the epoch.
    start_ns: u64,
    /// How long each bar is, nanoseconds; whole milliseconds.
    width_ns: u64,
}

impl Over {
    /// When a bar begins, nanoseconds since the epoch.
    pub fn time(&self, bar: usize) -> u64 {
        self.start_ns.saturating_add(self.width_ns.saturating_mul(bar as u64))
    }

    /// The bar of a moment, of so many.
    pub fn bar(&self, ns: u64, bars: usize) -> usize {
        let bar = ns.saturating_sub(self.start_ns) / self.width_ns.max(1);
        usize::try_from(bar).unwrap_or(usize::MAX).min(bars.saturating_sub(1))
    }

    /// The term for what waited between the beginning of one moment's bar and the end of another's.
    pub fn between(&self, from_ns: u64, to_ns: u64) -> String {
        depth::waiting(self.pool, from_ns.min(to_ns), from_ns.max(to_ns).saturating_add(self.width_ns))
    }
}

/// How a plot is drawn.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PlotKind {
    /// A filled curve over time; two values a display column.
    Area,
    /// Bars with a label each.
    Bars,
}

/// One value of a plot.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct Bar {
    /// The value; `None` where nothing is known.
    pub value: Option<u64>,
    /// What it is the value of.
    pub label: String,
    /// Its tone.
    pub tone: Tone,
    /// The filter term that finds the requests behind it.
    pub term: Option<String>,
}

/// Rows of cells in columns.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct Table {
    /// Titles, one a column; a column is right-aligned when its title begins with `>` (which is not shown).
    pub titles: Vec<&'static str>,
    /// Rows; each has a cell for every column.
    pub rows: Vec<Vec<Cell>>,
}

impl From<Piece> for Cell {
    fn from(text: Piece) -> Self {
        Self { text, ..Self::default() }
    }
}

impl Cell {
    /// A cell.
    pub fn new(text: impl Into<String>, tone: Tone) -> Self {
        Self { text: Piece::new(text, tone), ..Self::default() }
    }

    /// A label.
    pub fn label(text: impl Into<String>) -> Self {
        Self::new(text, Tone::Dim)
    }

    /// A count; dim when there are none.
    pub fn count(count: u64, tone: Tone) -> Self {
        Self::new(format::count(count), if count > 0 { tone } else { Tone::Dim })
    }

    /// The same with the term behind it.
    #[must_use]
    pub fn finding(self, term: impl Into<String>) -> Self {
        Self { term: Some(term.into()), ..self }
    }

    /// The same with the term behind it, where it stands for anything.
    #[must_use]
    fn finding_any(self, count: u64, term: impl Into<String>) -> Self {
        if count > 0 { self.finding(term) } else { self }
    }

    /// The same with a bar.
    #[must_use]
    fn bar(self, part: u64, whole: u64) -> Self {
        let share = if whole > 0 { part as f64 / whole as f64 } else { 0.0 };
        Self { mark: Mark::Bar(share), ..self }
    }

    /// A share, with a bar as long as it is of the largest.
    fn share(share: f64, largest: f64) -> Self {
        let part = if largest > 0.0 { share / largest } else { 0.0 };
        Self { mark: Mark::Bar(part), ..Self::new(format::share(share), Tone::Accent) }
    }
}

impl Block {
    fn new(rank: u8, body: Body) -> Self {
        Self { body, title: String::new(), rank }
    }

    fn text(rank: u8, cells: Vec<Cell>) -> Self {
        Self::new(rank, Body::Text(cells))
    }

    fn table(rank: u8, titles: &[&'static str], rows: Vec<Vec<Cell>>) -> Self {
        Self::new(rank, Body::Table(Table { titles: titles.to_vec(), rows }))
    }

    fn plot(rank: u8, kind: PlotKind, unit: &'static str, bars: Vec<Bar>, below: Vec<String>) -> Self {
        Self::new(rank, Body::Plot(Plot { kind, bars, unit, below, over: None }))
    }

    /// The same plot over this time.
    fn over(mut self, over: Over) -> Self {
        if let Body::Plot(plot) = &mut self.body {
            plot.over = Some(over);
        }
        self
    }

    fn titled(self, title: impl Into<String>) -> Self {
        Self { title: title.into(), ..self }
    }
}

/// Where something that has a term stands.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Spot {
    /// Which column of blocks.
    pub column: usize,
    /// Which block of it.
    pub block: usize,
    /// Which row of the block; 0 in plots and texts.
    pub row: usize,
    /// Which bar or cell of the row.
    pub item: usize,
}

/// Why requests have nothing to show of what spans tell: there are none, nothing of it has come yet or will, or `none`.
fn nothing(seen: &Seen<'_>, none: &str) -> String {
    let requests = &seen.rollup.requests;
    match requests.told {
        0 if requests.total == 0 => "no requests".into(),
        0 if requests.in_flight > 0 => "not yet arrived: spans come when they end".into(),
        0 => "told by spans, of which none has come".into(),
        _ if requests.in_flight > 0 => format!("{none}, of what has ended"),
        _ => none.into(),
    }
}

impl Pane {
    /// Everything that has a term, line by line.
    pub fn spots(&self) -> Vec<Vec<(Spot, &str)>> {
        let mut lines = Vec::new();
        for (column, blocks) in self.columns.iter().enumerate() {
            for (block, Block { body, .. }) in blocks.iter().enumerate() {
                for (row, terms) in body.terms().into_iter().enumerate() {
                    let spot = |(item, term): (usize, Option<_>)| Some((Spot { column, block, row, item }, term?));
                    let line: Vec<_> = terms.into_iter().enumerate().filter_map(spot).collect();
                    if !line.is_empty() {
                        lines.push(line);
                    }
                }
            }
        }
        lines
    }

    /// A pane of one column.
    fn one(summary: String, blocks: Vec<Block>) -> Self {
        Self { summary, columns: vec![blocks] }
    }

    /// A pane of two columns where there is room for them.
    fn two(summary: String, room: Room, mut left: Vec<Block>, right: Vec<Block>) -> Self {
        if room.is_wide() {
            return Self { summary, columns: vec![left, right] };
        }
        left.extend(right);
        Self { summary, columns: vec![left] }
    }
}

/// A pane as it stands. `cursor` is the term under the cursor, for what is shown of it alone.
pub fn pane(id: PaneId, data: &dyn Data, room: Room, cursor: Option<&str>) -> Pane {
    match id {
        PaneId::Queue => queue::pane(&data.seen(), room),
        PaneId::Selection => selection::pane(data, room, cursor),
        PaneId::Dispatch => dispatch::pane(&data.seen(), room),
        PaneId::Streaming => streaming::pane(&data.seen(), room),
        PaneId::Workers => workers::pane(&data.seen(), room),
        PaneId::Sessions => sessions::pane(&data.seen(), room),
    }
}

/// A quantile of times, or the sign for none.
fn time(values: &Values, q: f64) -> Cell {
    match values.quantile(q) {
        Some(ns) => Cell::new(format::duration(ns), Tone::Plain),
        None => Cell::label("–"),
    }
}

/// `p50 19 ms  p90 26 ms  p99 83 ms`.
fn quantiles(values: &Values, show: fn(u64) -> String) -> Vec<Cell> {
    quantiles_by(|q| values.quantile(q), show)
}

fn quantiles_by(values: impl Fn(f64) -> Option<u64>, show: fn(u64) -> String) -> Vec<Cell> {
    let mut cells = Vec::new();
    for (label, q) in [("p50", 0.5), ("p90", 0.9), ("p99", 0.99)] {
        cells.push(Cell::label(label));
        cells.push(values(q).map_or(Cell::label("–"), |value| Cell::new(show(value), Tone::Plain)));
    }
    cells
}

/// A word as written, or what stands for an absent one.
fn said<'a>(word: &'a str, absent: &'a str) -> &'a str {
    if word.is_empty() { absent } else { word }
}

/// Numbers that spans record, or that are inferred or told by records where no span does. Never both at once.
struct Known<'a, T> {
    shown: &'a T,
    /// Where they are known from.
    from: Origin,
    /// `~ inferred` or `ʳ records`; empty for spans.
    note: &'static str,
    /// What must stand in a term so that it finds only these; empty while there are no others.
    origin: String,
    /// How many of the others there are beside them.
    beside: u64,
}

impl<'a, T> Known<'a, T> {
    /// Of each kind, with its count; `field` says where it is known from.
    fn of(field: &str, spans: (&'a T, u64), others: (&'a T, u64), other: Origin) -> Self {
        let both = spans.1 > 0 && others.1 > 0;
        if spans.1 == 0 && others.1 > 0 {
            let note = if other == Origin::Record { " ʳ by records" } else { " ~ inferred" };
            return Self { shown: others.0, from: other, note, origin: String::new(), beside: 0 };
        }
        let origin = if both { format!(" {}", terms::is(field, Origin::Span.word())) } else { String::new() };
        Self { shown: spans.0, from: Origin::Span, note: "", origin, beside: if both { others.1 } else { 0 } }
    }

    /// What there is beside what is shown, for a summary.
    fn beside(&self, word: &str) -> String {
        if self.beside == 0 { String::new() } else { format!(" · {} {word} beside", format::count(self.beside)) }
    }
}
