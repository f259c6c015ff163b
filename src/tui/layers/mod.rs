//! Layers: screens and what opens over them, as a stack. Keys go to the top one; Esc takes it off.
//!
//! A layer changes its state when an action comes and when it is refreshed with data; drawing changes nothing. What
//! concerns others (the filter, the pause, the clipboard, the stack itself) it asks for with a [`Command`].

mod bookmarks;
pub mod checks;
pub mod filter_line;
pub mod help;
pub mod line;
pub mod live;
pub mod menu;
pub mod palette;
pub mod reader;
pub mod request;
pub mod seat;
mod sort_menu;
pub mod theme_menu;
pub mod zoom;

use std::time::Duration;

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use super::action::{Action, Place};
use super::keymap::Keymap;
use super::mouse::{Gesture, Pointer, STEP};
use super::theme::{Theme, Themes};
use super::travel::{self, Travel};
use crate::lifecycle::request::RequestKey;
use crate::view::data::Data;
use crate::view::filter::{Error, Filter, without_last};
use crate::view::header::{Header, Vitals};
use crate::view::index::Sort;
use crate::view::link::TraceUrl;
use crate::view::pace::Pace;
use crate::view::panes::PaneId;
use crate::view::window::Window;

/// What all layers see of the whole.
pub struct Env {
    /// Which key does what.
    pub keys: Keymap,
    /// The themes there are.
    pub themes: Themes,
    /// The one in use.
    pub chosen: theme_menu::Chosen,
    /// The filter that holds.
    pub filter: Filter,
    /// What is typed, when it is not (yet) a filter, and why.
    pub unread: Option<(String, Error)>,
    /// How far back panes and list look.
    pub window: Window,
    /// Whether the mouse is listened to.
    pub mouse: bool,
    /// Whether what is shown is frozen.
    pub paused: bool,
    /// How this frame stands in time.
    pub pace: Pace,
    /// The header of this frame.
    pub header: Header,
    /// Marked moments, nanoseconds since the epoch, in their order.
    pub bookmarks: Vec<u64>,
    /// The present, nanoseconds since the epoch; while paused, the moment of the pause.
    pub now_ns: u64,
    /// Where traces are shown by their store, when that was said.
    pub trace_url: Option<TraceUrl>,
}

impl Env {
    /// Before anything was done.
    pub fn new(keys: Keymap, themes: Themes, chosen: theme_menu::Chosen) -> Self {
        Self {
            keys,
            themes,
            chosen,
            filter: Filter::default(),
            unread: None,
            window: Window::default(),
            mouse: false,
            paused: false,
            pace: Pace::Live,
            bookmarks: Vec::new(),
            header: Header::default(),
            now_ns: 0,
            trace_url: None,
        }
    }
}

/// One look at everything, for actions and refreshing.
pub struct Scene<'a> {
    /// The requests.
    pub data: &'a dyn Data,
    /// What the sources tell.
    pub vitals: &'a Vitals,
    /// What all layers see.
    pub env: &'a Env,
    /// Where layers are drawn.
    pub area: Rect,
    /// For measuring costs, nanoseconds.
    pub clock: &'a dyn Fn() -> u64,
}

/// What a layer asks for.
pub enum Command {
    /// Opens a layer over this one.
    Push(Box<dyn Layer>),
    /// Closes this layer.
    Pop,
    /// Sets the filter.
    Filter(String),
    /// Sets how far back panes and list look.
    Window(Window),
    /// Sorts the list.
    Sort(Sort),
    /// Does an action as if its key had been pressed, after what else is asked for.
    Act(Action),
    /// Gives everything another look.
    Theme(Box<theme_menu::Chosen>),
    /// Pauses, or goes on.
    Pause,
    /// Shows another moment.
    Travel(Travel),
    /// Marks the moment that is shown.
    Bookmark,
    /// Copies a text; first what it is.
    Copy(&'static str, String),
    /// Writes a new file.
    Save {
        /// What its name begins with.
        stem: String,
        /// What it holds.
        bytes: Vec<u8>,
        /// What is to be said beside its name.
        note: String,
    },
    /// Tells something in the last line.
    Say(String),
    /// Goes to the request so many places down the list.
    Step(isize),
}

/// The pane that an action names.
pub fn pane_of(action: Action) -> Option<PaneId> {
    Some(match action {
        Action::Queue => PaneId::Queue,
        Action::Selection => PaneId::Selection,
        Action::Dispatch => PaneId::Dispatch,
        Action::Streaming => PaneId::Streaming,
        Action::Workers => PaneId::Workers,
        Action::Sessions => PaneId::Sessions,
        _ => return None,
    })
}

/// What an action asks for wherever panes are; `None` when it is none of these.
pub fn pane_command(action: Action, scene: &Scene<'_>) -> Option<Vec<Command>> {
    let window = scene.env.window;
    if let Some(commands) = travel::commands(action, scene) {
        return Some(commands);
    }
    Some(match action {
        Action::Shorter => vec![Command::Window(window.step(-1))],
        Action::Longer => vec![Command::Window(window.step(1))],
        Action::Filter => vec![Command::Push(Box::new(filter_line::FilterLine::new(scene.env.filter.text())))],
        Action::DropTerm => vec![Command::Filter(without_last(scene.env.filter.text()))],
        Action::Pause => vec![Command::Pause],
        Action::Checks => vec![Command::Push(Box::new(checks::Checks::default()))],
        _ => return None,
    })
}

/// What is said where there is nothing to write: logs alone make no span and no record.
const NOTHING_TO_EXPORT: &str = "nothing here has spans or records to export";

/// Why a request id cannot be copied, and what can.
fn no_request_id(env: &Env, place: Place) -> String {
    match env.keys.shown(place, Action::CopyTrace) {
        Some(key) => format!("no request id has arrived; {key} copies the trace id"),
        None => "no request id has arrived".into(),
    }
}

/// How long panes stay right although nothing comes: their window moves on, and a new filter is asked of one slice of
/// requests after the other.
pub fn panes_stay_right(scene: &Scene<'_>) -> Option<Duration> {
    let seen = scene.data.seen();
    match scene.env.window.length_ns() {
        _ if !seen.whole => Some(Duration::from_millis(20)),
        Some(length_ns) if !scene.env.paused => {
            Some(Duration::from_nanos(length_ns / 60).max(Duration::from_millis(250)))
        }
        _ => None,
    }
}

/// A screen, or something over it.
pub trait Layer {
    /// Where its keys are found in the action table.
    fn place(&self) -> Place;
    /// Whether nothing below it can be seen.
    fn is_opaque(&self) -> bool {
        true
    }
    /// Does an action.
    fn on(&mut self, action: Action, scene: &Scene<'_>) -> Vec<Command>;
    /// Takes typed or pasted text.
    fn typed(&mut self, _text: &str, _scene: &Scene<'_>) -> Vec<Command> {
        Vec::new()
    }
    /// Takes what the mouse did; the wheel moves like keys do.
    fn point(&mut self, pointer: Pointer, scene: &Scene<'_>) -> Vec<Command> {
        let action = match pointer.gesture {
            Gesture::WheelUp => Action::Up,
            Gesture::WheelDown => Action::Down,
            _ => return Vec::new(),
        };
        (0..STEP).flat_map(|_| self.on(action, scene)).collect()
    }
    /// Gives up what the mouse had begun to mark: something else was begun before the button went up.
    fn let_go(&mut self) {}
    /// Brings what it shows up to date.
    fn refresh(&mut self, scene: &Scene<'_>);
    /// Draws itself.
    fn draw(&self, buf: &mut Buffer, area: Rect, env: &Env, theme: &Theme);
    /// The request it shows, not to be evicted.
    fn looks_at(&self) -> Option<RequestKey> {
        None
    }
    /// How long what it shows stays right although nothing comes; `None` for ever.
    fn stays_right(&self) -> Option<Duration> {
        None
    }
    /// Takes a new order.
    fn sort(&mut self, _sort: Sort) {}
    /// The request so many places below the chosen one, which it then chooses.
    fn step(&mut self, _by: isize, _scene: &Scene<'_>) -> Option<RequestKey> {
        None
    }
    /// Shows another request.
    fn look(&mut self, _key: RequestKey) {}
}

/// Moves a cursor in a list of `len` rows; `page` is what fits on screen. `None` when the action is no movement.
pub fn moved(action: Action, cursor: usize, len: usize, page: u16) -> Option<usize> {
    let by = distance(action, page)?;
    Some(cursor.saturating_add_signed(by).min(len.saturating_sub(1)))
}

/// What the mouse did in a list that opens over a screen: a press chooses a row, a double one opens it, one beside the
/// list closes it. `None` for what is none of these.
pub fn in_list(pointer: Pointer, area: Rect, rows: Rect, cursor: &mut usize, top: usize, len: usize) -> Option<Action> {
    if !pointer.is_press() {
        return None;
    }
    if !area.contains(pointer.at) {
        return Some(Action::Back);
    }
    *cursor = pointer.row(rows, top, len)?;
    (pointer.gesture == Gesture::Double).then_some(Action::Open)
}

/// How far an action moves.
pub fn distance(action: Action, page: u16) -> Option<isize> {
    let page = page.max(1) as isize;
    Some(match action {
        Action::Up => -1,
        Action::Down => 1,
        Action::HalfUp => -(page / 2).max(1),
        Action::HalfDown => (page / 2).max(1),
        Action::PageUp => -page,
        Action::PageDown => page,
        Action::Top => isize::MIN,
        Action::Bottom => isize::MAX,
        _ => return None,
    })
}

/// The first row on screen, so that the cursor is on it and no room is wasted.
pub fn scrolled(top: usize, cursor: usize, len: usize, page: u16) -> usize {
    let page = usize::from(page.max(1));
    let most = len.saturating_sub(page);
    top.clamp((cursor + 1).saturating_sub(page), cursor).min(most)
}

/// An area in the middle, at most this large.
pub fn centred(area: Rect, width: u16, height: u16) -> Rect {
    let (width, height) = (width.min(area.width), height.min(area.height));
    Rect { x: area.x + (area.width - width) / 2, y: area.y + (area.height - height) / 2, width, height }
}

/// Blanks an area, for what opens over others.
pub fn clear(buf: &mut Buffer, area: Rect) {
    let area = area.intersection(buf.area);
    for y in area.top()..area.bottom() {
        for x in area.left()..area.right() {
            buf[(x, y)].reset();
        }
        // Half of a wide character must not stay at the edge.
        if let Some(x) = area.left().checked_sub(1).filter(|x| *x >= buf.area.left())
            && super::widgets::text::width(buf[(x, y)].symbol()) > 1
        {
            buf[(x, y)].set_symbol(" ");
        }
    }
}
