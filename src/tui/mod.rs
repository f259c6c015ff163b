//! The terminal side: the loop, keys, theme, layers, panes and widgets.
//!
//! Owns: everything that knows crossterm or a colour. Keeps out: what is said (`view`), what is held (`store`). Data flows
//! one way: a frame looks at the store under its lock, builds view models, lets go, then draws. Drawing never changes state.

pub mod action;
pub mod app;
pub mod clipboard;
pub mod job;
pub mod keymap;
pub mod keys;
pub mod layers;
pub mod mouse;
pub mod panes;
pub mod save;
pub mod screen;
pub mod shared;
pub mod signals;
mod sixteen;
pub mod terminal;
pub mod theme;
pub mod travel;
pub mod widgets;

#[cfg(test)]
mod journeys;

use std::io;
use std::sync::Arc;
use std::sync::mpsc::{Sender, channel};

use crossterm::event as input;
use ratatui::backend::CrosstermBackend;

pub use app::{Event, ExitReason, Setup};
pub use shared::Shared;

/// What the screen needs.
pub struct RunArgs<'a> {
    /// The store and what the sources tell.
    pub shared: Arc<Shared>,
    /// How the screen looks.
    pub setup: Setup,
    /// Nanoseconds since the epoch.
    pub clock: &'a dyn Fn() -> u64,
}

/// Shows the screen until it is ended. The terminal is given back before this returns, whatever happens.
///
/// # Errors
/// There is no terminal (ask [`terminal::refusal`] first for the words), or it did not obey.
pub fn run(args: RunArgs<'_>) -> io::Result<ExitReason> {
    if let Some(refusal) = terminal::refusal() {
        return Err(io::Error::other(refusal));
    }
    let (sender, events) = channel();
    signals::listen(sender.clone())?;
    let mut host = terminal::Terminal::new()?;
    listen(sender.clone())?;
    args.shared.tell(sender);
    let mut screen = screen::Screen::new(CrosstermBackend::new(sixteen::Sixteen::new(io::stdout())));
    let mut app = app::App::new(&*args.shared, args.setup, args.clock);
    let ended = app.run(&mut screen, &mut host, &events);
    args.shared.hush();
    match ended {
        // A terminal that hangs up makes the last write fail before anybody is told of it.
        Err(_) if !app::Host::is_there(&host) => Ok(ExitReason::Closed),
        ended => ended,
    }
}

/// Starts the thread that reads keys; it ends when nobody listens any more.
fn listen(events: Sender<Event>) -> io::Result<()> {
    std::thread::Builder::new().name("keys".into()).spawn(move || {
        loop {
            let event = match input::read() {
                Ok(input::Event::Key(key)) => Event::Key(key),
                Ok(input::Event::Paste(text)) => Event::Paste(text),
                Ok(input::Event::Mouse(mouse)) => Event::Mouse(mouse),
                Ok(input::Event::Resize(..)) => Event::Resize,
                Ok(_) => continue,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(_) => Event::Closed,
            };
            let closed = event == Event::Closed;
            if events.send(event).is_err() || closed {
                return;
            }
        }
    })?;
    Ok(())
}
