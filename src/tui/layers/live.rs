//! The first screen: header, outcomes, the live request list.
//!
//! The list follows its first row, or holds the chosen request where it stands while others come and go above it: what is
//! chosen is a request, never a row.

use std::time::Duration;

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use super::checks::Checks;
use super::help::Help;
use super::reader::Reader;
use super::request::RequestLayer;
use super::sort_menu::SortMenu;
use super::{Command, Env, Layer, Scene, distance};
use crate::lifecycle::facts::State;
use crate::lifecycle::request::RequestKey;
use crate::tui::action::{Action, Place};
use crate::tui::layers::filter_line::FilterLine;
use crate::tui::panes::{header, outcomes, requests};
use crate::tui::theme::Theme;
use crate::view::filter::without_last;
use crate::view::format;
use crate::view::index::{Index, Sort};
use crate::view::list::{self, COLUMNS};
use crate::view::outcomes::Count;
use crate::view::request::detail::Whole;

/// The first screen.
#[derive(Default)]
pub struct Live {
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

/// Where the parts of the screen are.
struct Areas {
    header: Rect,
    outcomes: Rect,
    requests: Rect,
}

fn areas(area: Rect) -> Areas {
    let line = |y: u16| Rect { y: area.y + y.min(area.height), height: u16::from(y < area.height), ..area };
    let top = 2.min(area.height);
    Areas { header: line(0), outcomes: line(1), requests: Rect { y: area.y + top, height: area.height - top, ..area } }
}

impl Live {
    fn page(scene: &Scene<'_>) -> u16 {
        requests::inside(areas(scene.area).requests).height
    }

    /// Moves the cursor and holds the request it comes to.
    fn go(&mut self, by: isize, scene: &Scene<'_>) {
        let from = self.chosen.and_then(|key| self.index.position(scene.data, key)).unwrap_or(self.place);
        let to = from.saturating_add_signed(by).min(self.index.len().saturating_sub(1));
        if let Some(key) = self.index.keys(scene.data, to, 1).first() {
            self.chosen = Some(*key);
            let page = usize::from(Self::page(scene)).max(1);
            self.row = self.row.saturating_add_signed(to as isize - from as isize).min(page - 1);
            self.place = to;
        }
        self.holding = true;
    }

    fn copy(&self, scene: &Scene<'_>, trace: bool) -> Vec<Command> {
        let Some(facts) = self.chosen.and_then(|key| scene.data.facts(key)) else { return Vec::new() };
        match (trace, facts.trace) {
            (true, Some(trace)) => vec![Command::Copy("trace id", trace.to_string())],
            (true, None) => vec![Command::Say("this request is known from records alone: it has no trace".into())],
            (false, _) if facts.request_id.is_empty() => {
                vec![Command::Say("no request id has arrived; Y copies the trace id".into())]
            }
            (false, _) => vec![Command::Copy("request id", facts.request_id.to_string())],
        }
    }

    fn summary(&self, scene: &Scene<'_>) -> String {
        let title = COLUMNS.iter().find(|column| column.id == self.sort.column).map_or("", |column| column.title);
        let order = match (self.sort.column, self.sort.reversed) {
            (list::ColumnId::Age, false) => "newest first".to_owned(),
            (list::ColumnId::Age, true) => "oldest first".to_owned(),
            (_, false) => format!("by {title}"),
            (_, true) => format!("by {title}, reversed"),
        };
        let hold = if self.holding { "holding" } else { "following" };
        let (shown, total) = (self.index.len() as u64, scene.data.standing().total);
        let count = if shown == total {
            format::count(total)
        } else {
            format!("{} of {}", format::count(shown), format::count(total))
        };
        format!("{hold} · {order} · {count}")
    }
}

impl Layer for Live {
    fn place(&self) -> Place {
        Place::Live
    }

    fn on(&mut self, action: Action, scene: &Scene<'_>) -> Vec<Command> {
        match action {
            Action::Open => {
                if let Some(key) = self.chosen {
                    self.holding = true;
                    return vec![Command::Push(Box::new(RequestLayer::new(key)))];
                }
            }
            Action::Filter => return vec![Command::Push(Box::new(FilterLine::new(scene.env.filter.text())))],
            Action::Back if !scene.env.filter.is_empty() => return vec![Command::Filter(String::new())],
            Action::DropTerm => return vec![Command::Filter(without_last(scene.env.filter.text()))],
            Action::Pause => return vec![Command::Pause],
            Action::Sort => return vec![Command::Push(Box::new(SortMenu::new(self.sort)))],
            Action::Reverse => self.sort.reversed = !self.sort.reversed,
            Action::Follow => self.holding = !self.holding,
            Action::Top => {
                self.go(isize::MIN, scene);
                self.holding = false;
            }
            Action::Copy => return self.copy(scene, false),
            Action::CopyTrace => return self.copy(scene, true),
            Action::Checks => return vec![Command::Push(Box::new(Checks::default()))],
            Action::Notices => {
                let text = scene.vitals.notices.join("\n");
                let text = if text.is_empty() { "nothing to tell".to_owned() } else { text };
                return vec![Command::Push(Box::new(Reader::new(Whole { title: "Notices".into(), text })))];
            }
            Action::Help => return vec![Command::Push(Box::new(Help::new(Place::Live)))],
            _ => {
                if let Some(by) = distance(action, Self::page(scene)) {
                    self.go(by, scene);
                }
            }
        }
        Vec::new()
    }

    fn refresh(&mut self, scene: &Scene<'_>) {
        let (data, now_ns) = (scene.data, scene.env.now_ns);
        self.index.refresh(data, &scene.env.filter, self.sort, now_ns, scene.clock);
        let inside = requests::inside(areas(scene.area).requests);
        let page = usize::from(inside.height);
        let len = self.index.len();
        let held = if self.holding { self.chosen.and_then(|key| data.resolve(key)) } else { None };
        let place = match held.and_then(|key| self.index.position(data, key)) {
            Some(place) => place,
            // What was held is gone: the one that took its place is held.
            None if self.holding => self.place.min(len.saturating_sub(1)),
            None => 0,
        };
        if !self.holding {
            self.row = 0;
        }
        let row = self.row.min(page.saturating_sub(1));
        let top = place.saturating_sub(row).min(len.saturating_sub(page));
        let keys = self.index.keys(data, top, page);
        (self.row, self.place) = (place - top.min(place), place);
        self.chosen = keys.get(self.row).copied().or_else(|| keys.last().copied());
        let columns = list::fit(inside.width, requests::GAP);
        let rows: Vec<list::Row> =
            keys.iter().filter_map(|key| Some(list::row(*key, data.facts(*key)?, &columns, now_ns))).collect();
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
        let behind = self.index.is_behind(data).then_some(CATCH_UP);
        self.stays_right = [ages, behind].into_iter().flatten().min();
        self.outcomes = crate::view::outcomes::outcomes(&data.standing());
        let empty = match (scene.env.filter.is_empty(), &scene.vitals.loading) {
            (false, _) => "no request passes the filter".to_owned(),
            (true, Some(loading)) => format!("reading {} …", loading.name),
            (true, None) if scene.vitals.listeners.is_empty() => "no requests".to_owned(),
            (true, None) => "waiting for spans: point the cluster's OTLP exporter at an address above".to_owned(),
        };
        self.pane = requests::Requests {
            cursor: (!rows.is_empty()).then(|| self.row.min(rows.len() - 1)),
            columns,
            rows,
            sort: self.sort,
            summary: self.summary(scene),
            empty,
        };
    }

    fn draw(&self, buf: &mut Buffer, area: Rect, env: &Env, theme: &Theme) {
        let areas = areas(area);
        header::draw(buf, areas.header, &env.header, theme);
        outcomes::draw(buf, areas.outcomes, &self.outcomes, env.filter.text(), theme);
        requests::draw(buf, areas.requests, &self.pane, theme);
    }

    fn shown(&self) -> Vec<RequestKey> {
        self.pane.rows.iter().map(|row| row.key).collect()
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
