//! What the loop hears of, what it needs of its surroundings, and how it ends.

use std::io;
use std::path::Path;
use std::sync::Arc;

use crossterm::event::{KeyEvent, MouseEvent};

use crate::lifecycle::request::RequestKey;
use crate::store::Past;
use crate::tui::keymap::Keymap;
use crate::tui::save::save;
use crate::tui::theme::{Entry, Source, Theme, Themes};
use crate::view::data::Data;
use crate::view::filter::Filter;
use crate::view::header::Vitals;
use crate::view::link::TraceUrl;
use crate::view::window::Window;

/// What the loop hears of.
#[derive(Clone, Debug, PartialEq)]
pub enum Event {
    /// A key went down, up, or is held.
    Key(KeyEvent),
    /// The mouse was pressed, moved while pressed, or its wheel turned.
    Mouse(MouseEvent),
    /// Text was pasted.
    Paste(String),
    /// The terminal has another size now.
    Resize,
    /// Something that can be seen has changed.
    Data,
    /// A signal to end.
    Signal(i32),
    /// A signal to stop until further notice (SIGTSTP).
    Stop,
    /// Running again after having been stopped.
    Resumed,
    /// The terminal is gone.
    Closed,
}

/// Why the screen ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ExitReason {
    /// The user said so.
    Quit,
    /// A signal; the exit status is 128 plus its number.
    Signal(i32),
    /// The terminal is gone.
    Closed,
}

impl ExitReason {
    /// The exit status of the program.
    pub fn status(self) -> u8 {
        match self {
            Self::Quit => 0,
            Self::Signal(number) => 128u8.saturating_add(number.clamp(0, 127) as u8),
            Self::Closed => 1,
        }
    }
}

/// Sees the data, and says what is to be held.
pub type See<'a> = dyn FnMut(&dyn Data, &Vitals) -> Option<Arc<Past>> + 'a;

/// Where the data is. One look holds it for as long as a frame needs, not longer.
pub trait Hub {
    /// Shows the data as it is at the time of the look, and holds from then on what `see` gives: the requests as they were,
    /// when what is shown is to stand still or to look back. Nothing comes in between.
    fn look(&self, look: &Look<'_>, see: &mut See<'_>);
}

/// What a look at the data is for.
pub struct Look<'a> {
    /// The present, nanoseconds since the epoch.
    pub now_ns: u64,
    /// The request not to be evicted.
    pub pin: Option<RequestKey>,
    /// The filter in force.
    pub filter: &'a Filter,
    /// Length of the window, nanoseconds; `None` for everything.
    pub window_ns: Option<u64>,
}

/// What the loop needs of its terminal beside drawing.
pub trait Host {
    /// Gives the terminal back, stops the process, and takes the terminal again when it goes on. Gives whether it stopped:
    /// it does not where nobody could wake it.
    ///
    /// # Errors
    /// The terminal did not obey.
    fn suspend(&mut self) -> io::Result<bool>;
    /// Takes the terminal again after the process was stopped from outside.
    ///
    /// # Errors
    /// The terminal did not obey.
    fn retake(&mut self) -> io::Result<()>;
    /// Copies a text; says how it was sent, or why not.
    fn copy(&mut self, what: &str, text: &str) -> String;
    /// Has the terminal tell of the mouse, or leave it alone.
    ///
    /// # Errors
    /// The terminal did not obey.
    fn mouse(&mut self, _on: bool) -> io::Result<()> {
        Ok(())
    }
    /// Writes a new file; says where.
    ///
    /// # Errors
    /// Says why nothing was written.
    fn save(&mut self, stem: &str, bytes: &[u8]) -> Result<String, String> {
        save(Path::new(""), stem, bytes)
    }
    /// Whether the terminal is still there.
    fn is_there(&self) -> bool;
}

/// How the screen looks and listens, and what it shows at first.
pub struct Setup {
    /// Which key does what.
    pub keys: Keymap,
    /// Whether the mouse is listened to.
    pub mouse: bool,
    /// What is shown.
    pub filter: Filter,
    /// How far back panes and list look.
    pub window: Window,
    /// The themes there are.
    pub themes: Themes,
    /// The one to begin with.
    pub theme: Entry,
    /// Where traces are shown by their store, when that was said.
    pub trace_url: Option<TraceUrl>,
}

impl From<Theme> for Setup {
    /// A theme for screenshots and tests.
    fn from(theme: Theme) -> Self {
        let source = Source::BuiltIn;
        let theme = Entry { name: String::new(), source, about: String::new(), warnings: Vec::new(), theme };
        Self {
            keys: Keymap::default(),
            mouse: false,
            filter: Filter::default(),
            window: Window::default(),
            themes: Themes::default(),
            theme,
            trace_url: None,
        }
    }
}
