//! A pane on screen with its cursor: over bars, buckets and cells, whatever stands for some requests. The cursor stays
//! with what it stands on (its filter term) while numbers change, and at its place when that goes.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use super::{Env, Scene};
use crate::tui::action::{Action, Place};
use crate::tui::panes::blocks;
use crate::tui::theme::Theme;
use crate::view::filter::with_term;
use crate::view::panes::{Pane, PaneId, Room, Spot, pane};

/// A pane with its cursor.
pub struct Seat {
    id: PaneId,
    pane: Pane,
    /// The term under the cursor.
    term: Option<String>,
    /// Its line, and its place in the line.
    place: (usize, usize),
}

impl Seat {
    /// A pane, its cursor on the first thing.
    pub fn new(id: PaneId) -> Self {
        Self { id, pane: Pane::default(), term: None, place: (0, 0) }
    }

    /// Which pane.
    pub fn id(&self) -> PaneId {
        self.id
    }

    /// Brings it up to date for an area.
    pub fn refresh(&mut self, scene: &Scene<'_>, area: Rect, zoomed: bool) {
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

    fn cursor(&self) -> Option<(Spot, &str)> {
        self.pane.spots().get(self.place.0)?.get(self.place.1).copied()
    }

    /// Draws it.
    pub fn draw(&self, buf: &mut Buffer, area: Rect, focused: bool, env: &Env, theme: &Theme) {
        let cursor = self.cursor().filter(|_| focused);
        let title = format!("{} {}", self.id.number(), self.id.title());
        let pick = env.keys.shown(Place::Pane, Action::Pick);
        let shown = blocks::Shown { title: &title, pane: &self.pane, cursor, focused, pick: pick.as_deref() };
        blocks::draw(buf, area, &shown, theme);
    }
}

fn clamped((line, item): (usize, usize), spots: &[Vec<(Spot, &str)>]) -> (usize, usize) {
    let line = line.min(spots.len().saturating_sub(1));
    (line, item.min(spots.get(line).map_or(0, Vec::len).saturating_sub(1)))
}
