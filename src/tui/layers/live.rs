//! The first screen: header, outcomes, four panes, the live request list.
//!
//! The list follows its first row, or holds the chosen request where it stands while others come and go above it: what is
//! chosen is a request, never a row.

mod export;
mod words;

use std::time::Duration;

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use super::help::Help;
use super::menu::Menu;
use super::reader::Reader;
use super::request::RequestLayer;
use super::seat::Seat;
use super::zoom::Zoom;
use super::{Command, Env, Layer, Scene, distance, pane_command, pane_of, panes_stay_right};
use crate::lifecycle::facts::State;
use crate::lifecycle::request::RequestKey;
use crate::lifecycle::text::one_line;
use crate::tui::action::{Action, Place};
use crate::tui::mouse::{Gesture, Pointer};
use crate::tui::panes::{header, outcomes, requests};
use crate::tui::theme::Theme;
use crate::view::checks::flag;
use crate::view::index::{Index, Sort};
use crate::view::list;
use crate::view::outcomes::Count;
use crate::view::panes::PaneId;
use crate::view::request::detail::Whole;

/// Who has the keys.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
enum Focus {
    /// The list, with the panes above it.
    #[default]
    List,
    /// The list, with the screen to itself.
    ListAlone,
    /// A pane.
    Pane(PaneId),
}

/// The first screen.
pub struct Live {
    focus: Focus,
    seats: [Seat; PaneId::FIRST.len()],
    index: Index,
    sort: Sort,
    chosen: Option<RequestKey>,
    holding: bool,
    /// The row of the screen on which the chosen request is held.
    row: usize,
    /// The place in the list at which it was last, for when it goes.
    place: usize,
    pane: requests::Requests,
    outcomes: Vec<Count>,
    stays_right: Option<Duration>,
}

/// When a filtered or sorted list that was left behind is looked at again.
const CATCH_UP: Duration = Duration::from_millis(250);
/// When a new filter is asked of further requests: with the next frame.
const ASK_ON: Duration = Duration::from_millis(33);

/// Where the parts of the screen are.
struct Areas {
    header: Rect,
    outcomes: Rect,
    /// The panes there is room for, by their place in [`PaneId::FIRST`].
    panes: Vec<(usize, Rect)>,
    requests: Rect,
}

impl Default for Live {
    fn default() -> Self {
        Self {
            focus: Focus::List,
            seats: PaneId::FIRST.map(Seat::new),
            index: Index::default(),
            sort: Sort::default(),
            chosen: None,
            holding: false,
            row: 0,
            place: 0,
            pane: requests::Requests::default(),
            outcomes: Vec::new(),
            stays_right: None,
        }
    }
}

/// Rows that the list keeps when panes stand above it.
const LIST: u16 = 11;
/// Rows of a pane: at least and at most.
const PANE: (u16, u16) = (5, 16);
/// Columns from which on a pane is worth showing.
const NARROWEST: u16 = 38;

fn areas(area: Rect, focus: Focus) -> Areas {
    let line = |y: u16| Rect { y: area.y + y.min(area.height), height: u16::from(y < area.height), ..area };
    let top = 2.min(area.height);
    let rest = Rect { y: area.y + top, height: area.height - top, ..area };
    let columns = (rest.width / NARROWEST).min(2);
    let rows = (rest.height.saturating_sub(LIST - 2) / PANE.0).min(2);
    if focus == Focus::ListAlone || columns * rows == 0 {
        return Areas { header: line(0), outcomes: line(1), panes: Vec::new(), requests: rest };
    }
    let height = (rest.height.saturating_sub(LIST) / rows).clamp(PANE.0, PANE.1);
    // With room for some of them only, those around the one that has the keys.
    let count = usize::from(columns * rows);
    let chosen = PaneId::FIRST.iter().position(|id| focus == Focus::Pane(*id)).unwrap_or(0);
    let first = chosen / count * count;
    let panes = (0..count).map(|at| {
        let (column, row) = (at as u16 % columns, at as u16 / columns);
        let (from, to) = (rest.width * column / columns, rest.width * (column + 1) / columns);
        (first + at, Rect { x: rest.x + from, y: rest.y + row * height, width: to - from, height })
    });
    let used = rows * height;
    let requests = Rect { y: rest.y + used, height: rest.height - used, ..rest };
    Areas { header: line(0), outcomes: line(1), panes: panes.collect(), requests }
}

impl Live {
    fn page(&self, scene: &Scene<'_>) -> u16 {
        requests::inside(areas(scene.area, self.focus).requests).height
    }

    /// Gives the keys to a pane, or shows it alone where there is no room for it here.
    fn turn_to(&mut self, id: PaneId, scene: &Scene<'_>) -> Vec<Command> {
        let focus = Focus::Pane(id);
        let is_here = areas(scene.area, focus).panes.iter().any(|(at, _)| PaneId::FIRST[*at] == id);
        if !is_here {
            return vec![Command::Push(Box::new(Zoom::new(id)))];
        }
        self.focus = focus;
        Vec::new()
    }

    /// The panes and the list in turn.
    fn turn(&mut self, by: usize, scene: &Scene<'_>) {
        let mut stops: Vec<Focus> = PaneId::FIRST.map(Focus::Pane).to_vec();
        stops.push(Focus::List);
        stops.retain(|stop| *stop == Focus::List || !areas(scene.area, *stop).panes.is_empty());
        let at = stops.iter().position(|stop| *stop == self.focus).unwrap_or(stops.len() - 1);
        self.focus = stops[(at + by) % stops.len()];
    }

    /// What the pane that has the keys does.
    fn in_pane(&mut self, id: PaneId, action: Action, scene: &Scene<'_>) -> Vec<Command> {
        let Some(seat) = self.seats.iter_mut().find(|seat| seat.id() == id) else { return Vec::new() };
        match action {
            Action::Pick => {
                if let Some(text) = seat.filter(scene.env.filter.text()) {
                    return vec![Command::Filter(text)];
                }
                return vec![Command::Say("nothing here stands for requests".into())];
            }
            Action::Zoom => return vec![Command::Push(Box::new(Zoom::new(id)))],
            Action::Back => self.focus = Focus::List,
            Action::Help => return vec![Command::Push(Box::new(Help::new(Place::Pane)))],
            action => seat.go(action),
        }
        Vec::new()
    }

    /// Moves the cursor and holds the request it comes to.
    fn go(&mut self, by: isize, scene: &Scene<'_>) {
        let from = self.chosen.and_then(|key| self.index.position(scene.data, key)).unwrap_or(self.place);
        let to = from.saturating_add_signed(by).min(self.index.len().saturating_sub(1));
        if let Some((to, key)) = self.index.near(scene.data, to, by < 0) {
            self.chosen = Some(key);
            let page = usize::from(self.page(scene)).max(1);
            self.row = self.row.saturating_add_signed(to as isize - from as isize).min(page - 1);
            self.place = to;
        }
        self.holding = true;
    }

    /// Puts the cursor on a row of the screen and holds the request that is seen there.
    fn stand_on(&mut self, row: usize) {
        self.chosen = self.pane.rows.get(row).map(|row| row.key);
        self.place = (self.place + row).saturating_sub(self.row);
        (self.row, self.holding) = (row, true);
    }

    fn copy(&self, scene: &Scene<'_>, trace: bool) -> Vec<Command> {
        let Some(facts) = self.chosen.and_then(|key| scene.data.facts(key)) else { return Vec::new() };
        match (trace, facts.trace) {
            (true, Some(trace)) => vec![Command::Copy("trace id", trace.to_string())],
            (true, None) => vec![Command::Say("this request is known from records alone: it has no trace".into())],
            (false, _) if facts.request_id.is_empty() => {
                vec![Command::Say(super::no_request_id(scene.env, Place::Live))]
            }
            (false, _) => vec![Command::Copy("request id", one_line(&facts.request_id).into_owned())],
        }
    }

    /// What the list does.
    fn in_list(&mut self, action: Action, scene: &Scene<'_>) -> Vec<Command> {
        match action {
            Action::Open => {
                if let Some(key) = self.chosen {
                    self.holding = true;
                    return vec![Command::Push(Box::new(RequestLayer::new(key)))];
                }
            }
            Action::Back if !scene.env.filter.is_empty() => return vec![Command::Filter(String::new())],
            Action::Sort => return vec![Command::Push(Box::new(Menu::of_columns(self.sort)))],
            Action::Reverse => self.sort.reversed = !self.sort.reversed,
            Action::Follow => self.holding = !self.holding,
            Action::Top => {
                self.go(isize::MIN, scene);
                self.holding = false;
            }
            Action::Export => {
                return vec![export::export(self.index.keys(scene.data, 0, export::MOST + 1), scene)];
            }
            Action::Copy => return self.copy(scene, false),
            Action::CopyTrace => return self.copy(scene, true),
            Action::Notices => {
                let text = words::notices(scene);
                return vec![Command::Push(Box::new(Reader::new(Whole { title: "Notices".into(), text })))];
            }
            Action::Help => return vec![Command::Push(Box::new(Help::new(Place::Live)))],
            _ => {
                if let Some(by) = distance(action, self.page(scene)) {
                    self.go(by, scene);
                }
            }
        }
        Vec::new()
    }
}

impl Layer for Live {
    fn place(&self) -> Place {
        if matches!(self.focus, Focus::Pane(_)) { Place::Pane } else { Place::Live }
    }

    fn on(&mut self, action: Action, scene: &Scene<'_>) -> Vec<Command> {
        if let Some(commands) = pane_command(action, scene) {
            return commands;
        }
        if let Some(id) = pane_of(action) {
            return self.turn_to(id, scene);
        }
        match (action, self.focus) {
            (Action::NextPart, _) => self.turn(1, scene),
            (Action::PrevPart, _) => self.turn(PaneId::FIRST.len(), scene),
            (Action::Requests, _) => self.focus = Focus::List,
            (Action::Zoom, Focus::List) => self.focus = Focus::ListAlone,
            (Action::Zoom | Action::Back, Focus::ListAlone) => self.focus = Focus::List,
            (action, Focus::Pane(id)) => return self.in_pane(id, action, scene),
            (action, _) => return self.in_list(action, scene),
        }
        Vec::new()
    }

    fn point(&mut self, pointer: Pointer, scene: &Scene<'_>) -> Vec<Command> {
        let areas = areas(scene.area, self.focus);
        if matches!(pointer.gesture, Gesture::Drag | Gesture::Release) {
            let Some(seat) = self.seats.iter_mut().find(|seat| seat.is_marking()) else { return Vec::new() };
            return seat.point(pointer, scene.env.filter.text()).map(Command::Filter).into_iter().collect();
        }
        if let Some((at, _)) = areas.panes.iter().find(|(_, area)| area.contains(pointer.at)) {
            let seat = &mut self.seats[*at];
            match pointer.gesture {
                Gesture::WheelUp => seat.go(Action::Up),
                Gesture::WheelDown => seat.go(Action::Down),
                _ => self.focus = Focus::Pane(seat.id()),
            }
            return seat.point(pointer, scene.env.filter.text()).map(Command::Filter).into_iter().collect();
        }
        let rows = Rect { x: areas.requests.x, width: areas.requests.width, ..requests::inside(areas.requests) };
        if !areas.requests.contains(pointer.at) {
            return Vec::new();
        }
        if let Some(by) = pointer.wheel() {
            self.go(by, scene);
            return Vec::new();
        }
        if pointer.is_press() && matches!(self.focus, Focus::Pane(_)) {
            self.focus = Focus::List;
        }
        if let (true, Some(row)) = (pointer.is_press(), pointer.row(rows, 0, self.pane.rows.len())) {
            self.stand_on(row);
            if pointer.gesture == Gesture::Double {
                return self.in_list(Action::Open, scene);
            }
        }
        Vec::new()
    }

    fn let_go(&mut self) {
        self.seats.iter_mut().for_each(Seat::let_go);
    }

    fn refresh(&mut self, scene: &Scene<'_>) {
        let (data, now_ns) = (scene.data, scene.env.now_ns);
        self.index.refresh(data, &scene.env.filter, self.sort, now_ns, scene.clock);
        let areas = areas(scene.area, self.focus);
        for (at, area) in &areas.panes {
            self.seats[*at].refresh(scene, *area, false);
        }
        let inside = requests::inside(areas.requests);
        let page = usize::from(inside.height);
        let len = self.index.len();
        if !self.holding {
            (self.row, self.place) = (0, 0);
        }
        let held = self.chosen.filter(|_| self.holding).and_then(|key| data.resolve(key));
        let held = held.and_then(|key| Some((self.index.position(data, key)?, key)));
        // When what was held is gone, the one that took its place is held.
        let held = held.or_else(|| self.index.near(data, self.place.min(len.saturating_sub(1)), false));
        let place = held.map_or(0, |(place, _)| place);
        let row = self.row.min(page.saturating_sub(1));
        let top = place.saturating_sub(row).min(len.saturating_sub(page));
        let keys = self.index.keys(data, top, page);
        (self.chosen, self.place) = (held.map(|(_, key)| key), place);
        // Requests that went since the list was made leave no gap: rows below them stand higher than their places say.
        let row = keys.iter().position(|key| self.chosen == Some(*key));
        self.row = row.unwrap_or(place - top.min(place));
        let columns = list::fit(inside.width, requests::GAP);
        let rows: Vec<list::Row> = keys
            .iter()
            .filter_map(|key| Some(list::row(*key, data.facts(*key)?, flag(data, *key), &columns, now_ns)))
            .collect();
        let youngest = keys.iter().filter_map(|key| data.facts(*key)).map(|facts| match facts.state {
            State::InFlight => 0,
            _ => now_ns.saturating_sub(facts.start_ns),
        });
        let ages = match youngest.min() {
            _ if scene.env.paused => None,
            Some(..60_000_000_000) => Some(Duration::from_secs(1)),
            Some(..3_600_000_000_000) => Some(Duration::from_secs(60)),
            _ => None,
        };
        let behind = match (self.index.is_asking(), self.index.is_behind(data)) {
            (true, _) => Some(ASK_ON),
            (false, behind) => behind.then_some(CATCH_UP),
        };
        self.stays_right = [ages, behind, panes_stay_right(scene)].into_iter().flatten().min();
        self.outcomes = crate::view::outcomes::outcomes(&data.standing(), data.said().violations());
        self.pane = requests::Requests {
            cursor: (!rows.is_empty()).then(|| self.row.min(rows.len() - 1)),
            columns,
            rows,
            sort: self.sort,
            focused: !matches!(self.focus, Focus::Pane(_)),
            summary: words::summary(self.sort, self.holding, self.index.len(), scene),
            empty: words::nothing(scene),
        };
    }

    fn draw(&self, buf: &mut Buffer, area: Rect, env: &Env, theme: &Theme) {
        let areas = areas(area, self.focus);
        header::draw(buf, areas.header, &env.header, theme);
        outcomes::draw(buf, areas.outcomes, &self.outcomes, env.filter.text(), theme);
        for (at, area) in areas.panes {
            let seat = &self.seats[at];
            seat.draw(buf, area, self.focus == Focus::Pane(seat.id()), env, theme);
        }
        requests::draw(buf, areas.requests, &self.pane, theme);
    }

    fn stays_right(&self) -> Option<Duration> {
        self.stays_right
    }

    fn sort(&mut self, sort: Sort) {
        self.sort = sort;
        self.holding = false;
    }

    fn step(&mut self, by: isize, scene: &Scene<'_>) -> Option<RequestKey> {
        self.go(by, scene);
        self.chosen
    }
}
