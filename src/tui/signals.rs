//! Signals as events: those that would end the program anyway (asked for with INT, TERM, HUP, QUIT; by timers, limits and
//! others) end it with 128 plus their number and the terminal given back, TSTP stops it, CONT makes it draw anew. A second signal to end does so at once, and so
//! does time (field case B64).

use std::io;
use std::sync::mpsc::Sender;
use std::time::Duration;

use signal_hook::consts::{
    SIGABRT, SIGALRM, SIGCONT, SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGTSTP, SIGUSR1, SIGUSR2, SIGVTALRM, SIGXCPU,
};
use signal_hook::iterator::Signals;

use super::app::Event;
use super::terminal;

/// What is heard. Not what tells of a fault in the program itself, nor SIGPROF, which profilers own; SIGXFSZ makes a write
/// fail (`run`).
const HEARD: [i32; 12] =
    [SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2, SIGALRM, SIGVTALRM, SIGXCPU, SIGABRT, SIGTSTP, SIGCONT];

/// Starts the thread that hears signals; it ends when nobody listens any more and a signal comes.
///
/// # Errors
/// The system refused the handlers.
pub fn listen(events: Sender<Event>) -> io::Result<()> {
    let mut signals = Signals::new(HEARD)?;
    std::thread::Builder::new().name("signals".into()).spawn(move || {
        let mut ending = false;
        for signal in signals.forever() {
            let event = match signal {
                SIGTSTP => Event::Stop,
                SIGCONT => Event::Resumed,
                number if ending => end(number),
                number => {
                    ending = true;
                    end_in_time(number, events.clone())
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

/// How long the orderly end may take: the screen may wait for a terminal that reads nothing.
const PATIENCE: Duration = Duration::from_secs(5);
/// How much longer where the screen has ended: what is on its way out then has a time of its own, and what became of it is
/// told after that.
const LAST_WORDS: Duration = Duration::from_secs(10);

/// Asks for an orderly end, and sees to it that there is one.
fn end_in_time(signal: i32, events: Sender<Event>) -> Event {
    // Without this thread it takes a second signal.
    let _ = std::thread::Builder::new().name("end".into()).spawn(move || {
        std::thread::sleep(PATIENCE);
        if events.send(Event::Data).is_err() {
            std::thread::sleep(LAST_WORDS);
        }
        end(signal)
    });
    Event::Signal(signal)
}

fn end(signal: i32) -> ! {
    terminal::give_back_at_once();
    std::process::exit(128 + signal)
}
