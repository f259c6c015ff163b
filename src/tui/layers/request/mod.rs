//! The request screen: title, tree as a waterfall, and beside it the chosen span's evidence, everything it carries, and
//! the request's records. What is chosen is a span, never a row: it stays chosen while parents arrive (field case B34).

mod areas;

use std::collections::HashSet;
use std::time::Duration;

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use self::areas::Part;
use super::help::Help;
use super::reader::Reader;
use super::{Command, Env, Layer, NOTHING_TO_EXPORT, Scene, moved, scrolled};
use crate::lifecycle::facts::State;
use crate::lifecycle::ids::TraceId;
use crate::lifecycle::request::{Node, RequestKey, RequestView, TreeRow};
use crate::lifecycle::stage::Stage;
use crate::lifecycle::text::one_line;
use crate::tui::action::{Action, Place};
use crate::tui::mouse::{Gesture, Pointer, STEP};
use crate::tui::panes::{details, story, tree};
use crate::tui::theme::Theme;
use crate::tui::travel;
use crate::tui::widgets::link::link;
use crate::tui::widgets::text::{At, pieces, pieces_width};
use crate::view::checks;
use crate::view::filter::with_attribute;
use crate::view::link::PLACE;
use crate::view::otlp_json::whole_request;
use crate::view::request::axis::Axis;
use crate::view::request::detail::{self, Detail, Opens, Whole};
use crate::view::request::tree::{NodeId, line, open_rows};
use crate::view::request::{evidence, is_trace, marks, records, title, tree_summary};
use crate::view::{Line, Nothing, Piece, Tone, request_name};

/// A list of rows with its cursor.
#[derive(Default)]
struct Rows {
    rows: Vec<Detail>,
    cursor: usize,
    top: usize,
}

/// Whether the request is there at the moment that is shown.
#[derive(Clone, Copy, PartialEq, Eq)]
enum There {
    /// It is.
    Whole,
    /// It was let go; what was shown of it last stays.
    LetGo,
    /// It had not begun.
    NotYet,
}

/// The request screen.
pub struct RequestLayer {
    key: RequestKey,
    part: Part,
    /// The part shown where there is room for one beside the tree.
    beside: Part,
    chosen: Option<NodeId>,
    folded: HashSet<NodeId>,
    top: usize,
    boilerplate: bool,
    title: Vec<Line>,
    trace: Option<TraceId>,
    marks: String,
    story: Vec<Line>,
    pane: tree::Tree,
    lists: [Rows; 3],
    running: bool,
    there: There,
}

impl RequestLayer {
    /// A screen for a request.
    pub fn new(key: RequestKey) -> Self {
        Self {
            key,
            part: Part::Tree,
            beside: Part::Evidence,
            chosen: None,
            folded: HashSet::new(),
            top: 0,
            boilerplate: false,
            title: Vec::new(),
            trace: None,
            marks: String::new(),
            story: Vec::new(),
            pane: tree::Tree::default(),
            lists: Default::default(),
            running: false,
            there: There::Whole,
        }
    }

    fn list(&mut self, part: Part) -> Option<&mut Rows> {
        Part::ALL.iter().skip(1).position(|other| *other == part).map(|index| &mut self.lists[index])
    }

    fn rows(&self, request: &RequestView<'_>) -> Vec<TreeRow> {
        open_rows(request, &self.folded)
    }

    /// The row of the chosen span. A parent that was missing when it was chosen is found when it has come; with nothing
    /// chosen, the root is.
    fn place(&self, rows: &[TreeRow], request: &RequestView<'_>) -> usize {
        let position =
            |found: &dyn Fn(NodeId) -> bool| rows.iter().position(|row| found(NodeId::of(row.node, request)));
        let at = match self.chosen {
            Some(chosen) => position(&|id| id == chosen).or_else(|| position(&|id| id.span_id() == chosen.span_id())),
            None => {
                let root = |index: u32| request.spans[index as usize].stage == Stage::Root;
                let span = |row: &TreeRow| matches!(row.node, Node::Span(_));
                let root = rows.iter().position(|row| matches!(row.node, Node::Span(index) if root(index)));
                root.or_else(|| rows.iter().position(span))
            }
        };
        at.unwrap_or(0)
    }

    fn in_tree(&mut self, action: Action, request: &RequestView<'_>, page: u16) {
        let rows = self.rows(request);
        let at = self.place(&rows, request);
        let Some(row) = rows.get(at) else { return };
        let id = NodeId::of(row.node, request);
        let to = match action {
            Action::Left if row.below > 0 && !self.folded.contains(&id) => {
                self.folded.insert(id);
                at
            }
            Action::Left => rows[..at].iter().rposition(|above| above.depth < row.depth).unwrap_or(at),
            Action::Right | Action::Open => {
                self.folded.remove(&id);
                at
            }
            action => moved(action, at, rows.len(), page).unwrap_or(at),
        };
        let rows = self.rows(request);
        let chosen = rows.get(to).map(|row| NodeId::of(row.node, request));
        if chosen != self.chosen {
            for list in &mut self.lists[..2] {
                (list.cursor, list.top) = (0, 0);
            }
        }
        self.chosen = chosen;
    }

    fn in_list(&mut self, action: Action, request: &RequestView<'_>, scene: &Scene<'_>, page: u16) -> Vec<Command> {
        let chosen = self.chosen;
        let Some(list) = self.list(self.part) else { return Vec::new() };
        if let Some(cursor) = moved(action, list.cursor, list.rows.len(), page) {
            list.cursor = cursor;
            return Vec::new();
        }
        let opens = list.rows.get(list.cursor).and_then(|row| row.opens);
        match (action, opens) {
            (Action::Open | Action::Right | Action::Left, Some(Opens::Boilerplate)) => {
                self.boilerplate = !self.boilerplate;
            }
            (Action::FilterBy, Some(opens)) => {
                let attribute = chosen.and_then(|chosen| detail::attribute_of(request, chosen, opens));
                let Some((key, value)) = attribute else {
                    return vec![Command::Say("filters ask for single values of a span's attributes".into())];
                };
                let text = with_attribute(scene.env.filter.text(), &key, &value);
                return vec![Command::Say(format!("filter ▸ {text}")), Command::Filter(text)];
            }
            (Action::Open, Some(opens)) => {
                // Records belong to the request, whatever span is chosen.
                let node = chosen.unwrap_or(NodeId::Missing(crate::lifecycle::ids::SpanId([0; 8])));
                if let Some(whole) = detail::whole(request, node, opens) {
                    return vec![Command::Push(Box::new(Reader::new(whole)))];
                }
            }
            _ => {}
        }
        Vec::new()
    }

    /// Shows that there was nothing of it at this moment. What is chosen and folded is for when there is again.
    fn is_not_yet(&mut self) {
        self.there = There::NotYet;
        self.title.truncate(1);
        self.title.push(vec![Piece::new("had not begun", Tone::Dim)]);
        (self.story, self.pane) = (Vec::new(), tree::Tree::default());
        (self.trace, self.marks, self.running) = (None, String::new(), false);
        self.lists.iter_mut().for_each(|list| list.rows = Vec::new());
    }

    /// The address of the chosen span's trace, to read and to copy.
    fn link(&self, request: &RequestView<'_>, env: &Env) -> Command {
        let span = self.chosen.and_then(|chosen| chosen.find(request));
        match (&env.trace_url, span.map(|span| span.trace).or(request.facts.trace)) {
            (None, _) => {
                Command::Say(format!("start with --trace-url http://jaeger:16686/trace/{PLACE} to link traces"))
            }
            (_, None) => Command::Say("no trace id has arrived".into()),
            (Some(url), Some(trace)) => {
                Command::Push(Box::new(Reader::new(Whole { title: "Trace in its store".into(), text: url.of(trace) })))
            }
        }
    }

    fn build(&mut self, request: &RequestView<'_>, scene: &Scene<'_>) {
        let facts = request.facts;
        self.story = crate::view::story::story(request, scene.env.now_ns);
        let areas = self.areas(scene.area);
        let rows = self.rows(request);
        let at = self.place(&rows, request);
        self.chosen = rows.get(at).map(|row| NodeId::of(row.node, request));
        let page = tree::rows(areas.tree);
        self.top = scrolled(self.top, at, rows.len(), page);
        let axis = Axis::of(request, scene.env.now_ns);
        let shown = rows.iter().skip(self.top).take(usize::from(page));
        self.pane = tree::Tree {
            lines: shown.map(|row| line(*row, request, &self.folded, &axis)).collect(),
            cursor: (!rows.is_empty()).then(|| at - self.top.min(at)),
            axis: Some(axis),
            summary: [tree_summary(request), marks(facts)]
                .into_iter()
                .filter(|s| !s.is_empty())
                .collect::<Vec<_>>()
                .join(" · "),
        };
        self.trace = facts.trace;
        self.title = title(facts, scene.env.now_ns);
        self.marks = marks(facts);
        self.running = facts.state == State::InFlight;
        let span = self.chosen.and_then(|chosen| chosen.find(request));
        let absent = || match self.chosen {
            Some(_) => vec![Detail::new("this span", vec![Nothing::NotYet.sentence()])],
            None => Vec::new(),
        };
        self.lists[0].rows = span.map_or_else(absent, |span| evidence::evidence(span, request));
        self.lists[1].rows = span.map_or_else(Vec::new, |span| detail::everything(span, self.boilerplate));
        self.lists[2].rows = records::records(request);
    }
}

impl Layer for RequestLayer {
    fn place(&self) -> Place {
        Place::Request
    }

    fn on(&mut self, action: Action, scene: &Scene<'_>) -> Vec<Command> {
        if let Some(commands) = travel::commands(action, scene) {
            return commands;
        }
        match action {
            Action::Back => return vec![Command::Pop],
            Action::Pause => return vec![Command::Pause],
            Action::Help => return vec![Command::Push(Box::new(Help::new(Place::Request)))],
            Action::NextRequest => return vec![Command::Step(1)],
            Action::PrevRequest => return vec![Command::Step(-1)],
            Action::NextPart | Action::PrevPart => {
                let at = Part::ALL.iter().position(|part| *part == self.part).unwrap_or(0);
                let by = if action == Action::NextPart { 1 } else { Part::ALL.len() - 1 };
                self.part = Part::ALL[(at + by) % Part::ALL.len()];
                if self.part != Part::Tree {
                    self.beside = self.part;
                }
                return Vec::new();
            }
            _ => {}
        }
        let Some(request) = scene.data.request(self.key) else {
            return match self.there {
                There::NotYet => vec![Command::Say("it had not begun; p comes back to the present".into())],
                There::Whole | There::LetGo => vec![Command::Say("it was let go to make room".into())],
            };
        };
        let areas = self.areas(scene.area);
        match action {
            Action::Export => {
                let mut bytes = Vec::new();
                // Memory takes what it is given.
                let _ = whole_request(&mut bytes, &request);
                if bytes.is_empty() {
                    return vec![Command::Say(NOTHING_TO_EXPORT.into())];
                }
                return vec![Command::Save {
                    stem: format!("reqtop-{}", request_name(request.facts)),
                    bytes,
                    note: String::new(),
                }];
            }
            Action::Copy if request.facts.request_id.is_empty() => {
                return vec![Command::Say(super::no_request_id(scene.env, Place::Request))];
            }
            Action::Copy => return vec![Command::Copy("request id", one_line(&request.facts.request_id).into_owned())],
            Action::CopyTrace => match self.chosen.and_then(|chosen| chosen.find(&request)) {
                Some(span) => return vec![Command::Copy("trace id", span.trace.to_string())],
                None => return vec![Command::Say("no span is chosen".into())],
            },
            Action::Link => return vec![self.link(&request, scene.env)],
            Action::CopySpan => match self.chosen {
                Some(chosen) => return vec![Command::Copy("span id", chosen.span_id().to_string())],
                None => return vec![Command::Say("no span is chosen".into())],
            },
            Action::Checks => {
                let text = checks::of_request(scene.data, self.key);
                return vec![Command::Push(Box::new(Reader::new(Whole { title: "Checks".into(), text })))];
            }
            Action::Story => {
                let line = |line: &Line| line.iter().map(|piece| piece.text.as_str()).collect::<String>();
                let text = self.story.iter().map(line).collect::<Vec<_>>().join("\n\n");
                return vec![Command::Push(Box::new(Reader::new(detail::Whole { title: "Story".into(), text })))];
            }
            Action::Raw => match self.chosen.and_then(|chosen| detail::raw(&request, chosen)) {
                Some(whole) => return vec![Command::Push(Box::new(Reader::new(whole)))],
                None => return vec![Command::Say("this span has not arrived".into())],
            },
            action if self.part == Part::Tree => self.in_tree(action, &request, tree::rows(areas.tree)),
            action => {
                let page =
                    areas.lists.iter().find(|(part, _)| *part == self.part).map_or(1, |(_, area)| details::rows(*area));
                return self.in_list(action, &request, scene, page);
            }
        }
        Vec::new()
    }

    fn point(&mut self, pointer: Pointer, scene: &Scene<'_>) -> Vec<Command> {
        let Some((part, area)) = self.areas(scene.area).part_at(pointer.at) else { return Vec::new() };
        let before = std::mem::replace(&mut self.part, part);
        if pointer.wheel().is_some() {
            let action = if pointer.gesture == Gesture::WheelUp { Action::Up } else { Action::Down };
            let commands = (0..STEP).flat_map(|_| self.on(action, scene)).collect();
            self.part = before;
            return commands;
        }
        if !pointer.is_press() {
            self.part = before;
            return Vec::new();
        }
        let is_double = pointer.gesture == Gesture::Double;
        if let Some(list) = self.list(part) {
            let rows = Rect { y: area.y + 1, height: details::rows(area), ..area };
            let row = pointer.row(rows, list.top, list.rows.len());
            list.cursor = row.unwrap_or(list.cursor);
            self.beside = part;
            return if is_double && row.is_some() { self.on(Action::Open, scene) } else { Vec::new() };
        }
        let Some(request) = scene.data.request(self.key) else { return Vec::new() };
        let rows = self.rows(&request);
        let shown = Rect { y: area.y + 2, height: tree::rows(area), ..area };
        let Some(row) = pointer.row(shown, self.top, rows.len()).and_then(|row| rows.get(row)) else {
            return Vec::new();
        };
        let id = NodeId::of(row.node, &request);
        self.chosen = Some(id);
        match is_double {
            true if self.folded.contains(&id) => self.on(Action::Right, scene),
            true if row.below > 0 => self.on(Action::Left, scene),
            _ => Vec::new(),
        }
    }

    fn refresh(&mut self, scene: &Scene<'_>) {
        match scene.data.request(self.key) {
            Some(request) => {
                self.there = There::Whole;
                self.build(&request, scene);
            }
            None if scene.data.resolve(self.key).is_none() => self.there = There::LetGo,
            None => self.is_not_yet(),
        }
        let areas = self.areas(scene.area);
        for (part, area) in areas.lists {
            if let Some(list) = self.list(part) {
                list.cursor = list.cursor.min(list.rows.len().saturating_sub(1));
                list.top = scrolled(list.top, list.cursor, list.rows.len(), details::rows(area));
            }
        }
    }

    fn draw(&self, buf: &mut Buffer, area: Rect, env: &Env, theme: &Theme) {
        let areas = self.areas(area);
        let mut at = At::row(areas.title, 0).after(u16::from(area.width > 80));
        let mark = match self.there {
            There::LetGo => vec![Piece::new("no longer held", Tone::Warn)],
            There::Whole | There::NotYet => env.pace.mark(),
        };
        if !mark.is_empty() {
            at = at.after(pieces(buf, at, &mark, 0, theme) + 2);
        }
        let mut row = 0;
        let start = at;
        for part in &self.title {
            if pieces_width(part) > at.width && row + 1 < areas.title.height {
                row += 1;
                at = At { y: areas.title.y + row, ..start };
            }
            // The first part is cut when it must be; the others come whole or not at all.
            if pieces_width(part) <= at.width || at.x == start.x {
                let used = pieces(buf, at, part, 0, theme);
                if let (Some(url), Some(trace)) = (&env.trace_url, self.trace)
                    && is_trace(part)
                {
                    link(buf, at, used, &url.of(trace));
                }
                at = at.after(used + 3);
            }
        }
        if areas.story.height > 2 {
            story::draw(buf, areas.story, &self.story, theme);
        }
        if areas.tree.height > 0 {
            tree::draw(buf, areas.tree, &self.pane, self.part == Part::Tree, theme);
        }
        for (part, area) in areas.lists {
            let index = Part::ALL.iter().skip(1).position(|other| *other == part).unwrap_or(0);
            let list = &self.lists[index];
            let focused = self.part == part;
            let shown =
                details::Details { title: part.title(), rows: &list.rows, top: list.top, cursor: list.cursor, focused };
            details::draw(buf, area, &shown, theme);
        }
    }

    fn looks_at(&self) -> Option<RequestKey> {
        Some(self.key)
    }

    fn stays_right(&self) -> Option<Duration> {
        self.running.then_some(Duration::from_secs(1))
    }

    fn look(&mut self, key: RequestKey) {
        let (part, beside, boilerplate) = (self.part, self.beside, self.boilerplate);
        *self = Self { part, beside, boilerplate, ..Self::new(key) };
    }
}
