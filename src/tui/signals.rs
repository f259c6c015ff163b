//! Signals as events: INT, TERM and HUP end the program with 128 plus their number, TSTP stops it, CONT makes it draw
//! anew. A second signal to end does so at once (field case B64).

use std::io;
use std::sync::mpsc::Sender;

use signal_hook::consts::{SIGCONT, SIGHUP, SIGINT, SIGTERM, SIGTSTP};
use signal_hook::iterator::Signals;

use super::app::Event;
use super::terminal;

/// Starts the thread that hears signals; it ends when nobody listens any more and a signal comes.
///
/// # Errors
/// The system refused the handlers.
pub fn listen(events: Sender<Event>) -> io::Result<()> {
    let mut signals = Signals::new([SIGINT, SIGTERM, SIGHUP, SIGTSTP, SIGCONT])?;
    std::thread::Builder::new().name("signals".into()).spawn(move || {
        let mut ending = false;
        for signal in signals.forever() {
            let event = match signal {
                SIGTSTP => Event::Stop,
                SIGCONT => Event::Resumed,
                number if ending => {
                    terminal::give_back();
                    std::process::exit(128 + number);
                }
                number => {
                    ending = true;
                    Event::Signal(number)
                }
            };
            // Nobody listens: the screen has ended, and the next signal to end the program must still do so.
            if events.send(event).is_err() && !ending {
                continue;
            }
        }
    })?;
    Ok(())
}
