//! A pane on screen with its cursor: over bars, buckets and cells, whatever stands for some requests. The cursor stays
//! with what it stands on (its filter term) while numbers change, and at its place when that goes.

use ratatui::buffer::Buffer;
use ratatui::layout::{Position, Rect};

use super::{Env, Scene};
use crate::tui::action::{Action, Place};
use crate::tui::mouse::{Gesture, Pointer};
use crate::tui::panes::blocks;
use crate::tui::theme::Theme;
use crate::view::filter::with_term;
use crate::view::panes::{Body, Over, Pane, PaneId, Room, Spot, pane};

/// A pane with its cursor.
pub struct Seat {
    id: PaneId,
    pane: Pane,
    /// The term under the cursor.
    term: Option<String>,
    /// Its line, and its place in the line.
    place: (usize, usize),
    /// Where its pane was last.
    area: Rect,
    /// The stretch of a time plot that is being marked.
    drag: Option<Drag>,
}

/// A stretch of time that is being marked on a plot.
#[derive(Clone, Copy)]
struct Drag {
    /// A bar of the plot; which one does not matter.
    spot: Spot,
    /// The moment under the mouse when the button went down, nanoseconds since the epoch. A moment and not a bar: what is
    /// shown moves on meanwhile.
    from_ns: u64,
    /// The moment under it now; the same until it has moved.
    to_ns: u64,
}

impl Seat {
    /// A pane, its cursor on the first thing.
    pub fn new(id: PaneId) -> Self {
        Self { id, pane: Pane::default(), term: None, place: (0, 0), area: Rect::default(), drag: None }
    }

    /// Which pane.
    pub fn id(&self) -> PaneId {
        self.id
    }

    /// Brings it up to date for an area.
    pub fn refresh(&mut self, scene: &Scene<'_>, area: Rect, zoomed: bool) {
        self.area = area;
        let inside = blocks::inside(area);
        let room = Room { columns: inside.width, rows: inside.height, zoomed };
        self.pane = pane(self.id, scene.data, room, self.term.as_deref());
        let spots = self.pane.spots();
        let at = |(line, item): (usize, usize)| spots.get(line).and_then(|spots| spots.get(item)).map(|spot| spot.1);
        let is_mine = |term: &str| self.term.as_deref() == Some(term);
        if !at(self.place).is_some_and(is_mine) {
            let mut all = spots
                .iter()
                .enumerate()
                .flat_map(|(line, spots)| spots.iter().enumerate().map(move |(item, (_, term))| ((line, item), *term)));
            match all.find(|(_, term)| is_mine(term)) {
                Some((place, _)) => self.place = place,
                None => self.place = clamped(self.place, &spots),
            }
        }
        self.term = at(self.place).map(ToOwned::to_owned);
    }

    /// Moves the cursor.
    pub fn go(&mut self, action: Action) {
        let spots = self.pane.spots();
        let (line, item) = self.place;
        let last = spots.len().saturating_sub(1);
        let to = match action {
            Action::Left => (line, item.saturating_sub(1)),
            Action::Right => (line, item + 1),
            Action::Up => (line.saturating_sub(1), item),
            Action::Down => ((line + 1).min(last), item),
            Action::HalfUp | Action::PageUp => (line.saturating_sub(8), item),
            Action::HalfDown | Action::PageDown => ((line + 8).min(last), item),
            Action::Top => (0, 0),
            Action::Bottom => (last, item),
            _ => return,
        };
        self.place = clamped(to, &spots);
        self.term =
            spots.get(self.place.0).and_then(|spots| spots.get(self.place.1)).map(|(_, term)| (*term).to_owned());
    }

    /// The filter's text with what the cursor stands on added; `None` when it stands on nothing.
    pub fn filter(&self, text: &str) -> Option<String> {
        self.term.as_ref().map(|term| with_term(text, term))
    }

    /// Takes a press, a drag or the end of one within its pane; gives the filter's text when that is another one now.
    pub fn point(&mut self, pointer: Pointer, text: &str) -> Option<String> {
        match pointer.gesture {
            Gesture::Press => {
                self.drag = None;
                let spot = self.spot_at(pointer.at)?;
                if let Some((over, bars)) = self.over(spot) {
                    let from_ns = over.time(spot.item.min(bars));
                    self.drag = Some(Drag { spot, from_ns, to_ns: from_ns });
                }
                self.stand_on(spot);
            }
            Gesture::Double => {
                self.drag = None;
                let spot = self.spot_at(pointer.at)?;
                return if self.stand_on(spot) { self.filter(text) } else { None };
            }
            Gesture::Drag => {
                let drag = self.drag?;
                let spot = self.spot_at(pointer.at)?;
                if (spot.column, spot.block) == (drag.spot.column, drag.spot.block) {
                    let (over, _) = self.over(drag.spot)?;
                    self.drag = Some(Drag { to_ns: over.time(spot.item), ..drag });
                }
            }
            Gesture::Release => {
                let drag = self.drag.take().filter(|drag| drag.from_ns != drag.to_ns)?;
                let (over, _) = self.over(drag.spot)?;
                return Some(with_term(text, &over.between(drag.from_ns, drag.to_ns)));
            }
            Gesture::WheelUp | Gesture::WheelDown => {}
        }
        None
    }

    /// Marks nothing any more.
    pub fn let_go(&mut self) {
        self.drag = None;
    }

    /// Whether a stretch is being marked: then the mouse belongs to this pane wherever it goes.
    pub fn is_marking(&self) -> bool {
        self.drag.is_some()
    }

    fn spot_at(&self, at: Position) -> Option<Spot> {
        blocks::spot_at(&self.pane, self.area, self.cursor().map(|(spot, _)| spot), at)
    }

    /// Puts the cursor on a spot; says whether there is a term behind it.
    fn stand_on(&mut self, spot: Spot) -> bool {
        let spots = self.pane.spots();
        let found = spots.iter().enumerate().find_map(|(line, spots)| {
            spots.iter().position(|(other, _)| *other == spot).map(|item| ((line, item), spots[item].1.to_owned()))
        });
        match found {
            Some((place, term)) => {
                (self.place, self.term) = (place, Some(term));
                true
            }
            None => false,
        }
    }

    /// The time that a plot's bars cover, and how many they are.
    fn over(&self, spot: Spot) -> Option<(Over, usize)> {
        match &self.pane.columns.get(spot.column)?.get(spot.block)?.body {
            Body::Plot(plot) => Some((plot.over?, plot.bars.len())),
            Body::Table(_) | Body::Text(_) => None,
        }
    }

    /// The bars being marked: where the first is, and the last one's place.
    fn marked(&self) -> Option<(Spot, usize)> {
        let drag = self.drag.filter(|drag| drag.from_ns != drag.to_ns)?;
        let (over, bars) = self.over(drag.spot)?;
        Some((Spot { item: over.bar(drag.from_ns, bars), ..drag.spot }, over.bar(drag.to_ns, bars)))
    }

    fn cursor(&self) -> Option<(Spot, &str)> {
        self.pane.spots().get(self.place.0)?.get(self.place.1).copied()
    }

    /// Draws it.
    pub fn draw(&self, buf: &mut Buffer, area: Rect, focused: bool, env: &Env, theme: &Theme) {
        let marked = self.marked();
        let cursor = match (self.cursor().filter(|_| focused), marked) {
            (cursor, Some((spot, _))) => Some((spot, cursor.map_or("", |(_, term)| term))),
            (cursor, None) => cursor,
        };
        let title = format!("{} {}", self.id.number(), self.id.title());
        let pick = env.keys.shown(Place::Pane, Action::Pick).filter(|_| marked.is_none());
        let until = marked.map(|(_, until)| until);
        let shown = blocks::Shown { title: &title, pane: &self.pane, cursor, until, focused, pick: pick.as_deref() };
        blocks::draw(buf, area, &shown, theme);
    }
}

fn clamped((line, item): (usize, usize), spots: &[Vec<(Spot, &str)>]) -> (usize, usize) {
    let line = line.min(spots.len().saturating_sub(1));
    (line, item.min(spots.get(line).map_or(0, Vec::len).saturating_sub(1)))
}
