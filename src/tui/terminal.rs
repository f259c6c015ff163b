//! Taking and giving back the terminal: one way in, one way out, used by quit, errors, panics in any thread and signals
//! (field cases B50 to B52).
//!
//! Keys come from the terminal on standard input, else from the controlling terminal (crossterm opens `/dev/tty` itself).

use std::io::{self, IsTerminal, Write};
use std::sync::Once;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crossterm::event::{DisableBracketedPaste, DisableMouseCapture, EnableBracketedPaste};
use crossterm::style::ResetColor;
use crossterm::terminal::{DisableLineWrap, EnableLineWrap, EnterAlternateScreen, LeaveAlternateScreen};
use crossterm::{cursor, execute, terminal};

use super::app::Host;
use super::clipboard;
use super::job;

/// How long a terminal may take to read what gives it back.
const MOMENT: Duration = Duration::from_millis(300);

/// Whether the terminal is ours now.
static TAKEN: AtomicBool = AtomicBool::new(false);

/// Says in a clause why there can be no screen here; `None` when there can. What to do instead is the command's to say.
pub fn refusal() -> Option<&'static str> {
    if !io::stdout().is_terminal() {
        return Some("standard output is not a terminal, so there can be no screen");
    }
    if std::env::var_os("TERM").is_some_and(|term| term == "dumb") {
        return Some("TERM=dumb: this terminal cannot show a screen");
    }
    if !io::stdin().is_terminal() && std::fs::File::open("/dev/tty").is_err() {
        return Some("no terminal to read keys from: standard input is none and there is no /dev/tty");
    }
    None
}

/// Takes the terminal.
///
/// # Errors
/// The terminal did not obey; it is given back as it was.
pub fn take() -> io::Result<()> {
    give_back_on_panic();
    TAKEN.store(true, Ordering::SeqCst);
    // Themes alone decide about colours; crossterm's own reading of NO_COLOR writes resets in their place.
    crossterm::style::force_color_output(true);
    let taken = terminal::enable_raw_mode().and_then(|()| {
        execute!(io::stdout(), EnterAlternateScreen, cursor::Hide, EnableBracketedPaste, DisableLineWrap)
    });
    if taken.is_err() {
        give_back();
    }
    taken
}

/// Gives the terminal back as it was. Does nothing when it is not ours; safe from any thread, any number of times.
pub fn give_back() {
    if !TAKEN.swap(false, Ordering::SeqCst) {
        return;
    }
    // Leaving the alternate screen does not show the cursor again: everything is undone by name.
    let mut out = io::stdout();
    let _ = execute!(
        out,
        EnableLineWrap,
        DisableMouseCapture,
        DisableBracketedPaste,
        ResetColor,
        LeaveAlternateScreen,
        cursor::Show
    );
    let _ = terminal::disable_raw_mode();
    let _ = out.flush();
}

/// Gives the terminal back within a moment: of one that reads nothing (Ctrl-S, a stalled SSH) the modes alone, for what is
/// written to it would wait for ever.
pub fn give_back_at_once() {
    let (done, waiting) = std::sync::mpsc::channel();
    let spawned = std::thread::Builder::new().spawn(move || {
        give_back();
        let _ = done.send(());
    });
    if spawned.is_err() || waiting.recv_timeout(MOMENT).is_err() {
        let _ = terminal::disable_raw_mode();
    }
}

/// A panic in any thread gives the terminal back first, so that its message is seen, then ends the program: a program
/// without its writer or its screen is none.
fn give_back_on_panic() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let before = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            let ours = TAKEN.load(Ordering::SeqCst);
            give_back();
            before(panic);
            if ours {
                std::process::exit(101);
            }
        }));
    });
}

/// The terminal while it is ours; gives it back when dropped.
pub struct Terminal {
    in_tmux: bool,
    mouse: bool,
}

/// Has the terminal tell of buttons, of motion while one is held, and of the wheel, in a form without limits. Motion alone
/// is not asked for: nothing here would use it.
const LISTEN_TO_MOUSE: &[u8] = b"\x1b[?1000h\x1b[?1002h\x1b[?1006h";

impl Terminal {
    /// Takes the terminal.
    ///
    /// # Errors
    /// The terminal did not obey.
    pub fn new() -> io::Result<Self> {
        take()?;
        Ok(Self { in_tmux: std::env::var_os("TMUX").is_some(), mouse: false })
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        give_back();
    }
}

impl Host for Terminal {
    fn suspend(&mut self) -> io::Result<bool> {
        if job::is_alone() {
            return Ok(false);
        }
        give_back();
        let stopped = job::stop()?;
        take()?;
        self.mouse(self.mouse)?;
        Ok(stopped)
    }

    fn retake(&mut self) -> io::Result<()> {
        // A shell sets its own modes when a job is stopped (SIGSTOP gives no chance to do it first). Raw mode counts as on
        // until it is turned off by name; only then is it turned on in fact.
        terminal::disable_raw_mode()?;
        take()?;
        self.mouse(self.mouse)
    }

    fn copy(&mut self, what: &str, text: &str) -> String {
        match clipboard::sequence(text, self.in_tmux) {
            Err(why) => why,
            Ok(sequence) => {
                let mut out = io::stdout();
                match out.write_all(sequence.as_bytes()).and_then(|()| out.flush()) {
                    Ok(()) => format!("{}: {}", clipboard::told(what, self.in_tmux), first_line(text)),
                    Err(error) => format!("{what} could not be sent: {error}"),
                }
            }
        }
    }

    fn mouse(&mut self, on: bool) -> io::Result<()> {
        self.mouse = on;
        let mut out = io::stdout();
        if on {
            out.write_all(LISTEN_TO_MOUSE)?
        } else {
            execute!(out, DisableMouseCapture)?
        }
        out.flush()
    }

    fn is_there(&self) -> bool {
        // Asks the kernel, not the terminal; fails once the other side has hung up.
        terminal::window_size().is_ok()
    }
}

fn first_line(text: &str) -> &str {
    text.lines().next().unwrap_or_default()
}
