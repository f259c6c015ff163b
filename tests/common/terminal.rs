//! The binary on a pseudo-terminal, its screen as text.

use std::io::{Read, Write};
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use portable_pty::{Child, CommandBuilder, MasterPty, PtySize, native_pty_system};

/// How long anything may take.
pub const DEADLINE: Duration = Duration::from_secs(120);

/// The binary on a terminal of its own.
pub struct Terminal {
    pub screen: Arc<Mutex<vt100::Parser>>,
    pub raw: Arc<Mutex<Vec<u8>>>,
    pub keys: Box<dyn Write + Send>,
    pub child: Box<dyn Child + Send + Sync>,
    pub master: Option<Box<dyn MasterPty + Send>>,
    /// Tells the reader to let go of its end.
    pub gone: Arc<AtomicBool>,
}

impl Terminal {
    pub fn start(args: &[&str], env: &[(&str, &str)]) -> Self {
        let mut command = CommandBuilder::new(env!("CARGO_BIN_EXE_reqtop"));
        command.args(args);
        Self::run(command, env)
    }

    /// The same with its standard error in a file, for what must be said by nobody.
    pub fn start_beside(errors: &std::path::Path, args: &[&str], env: &[(&str, &str)]) -> Self {
        let mut command = CommandBuilder::new("/bin/sh");
        command.args(["-c", "errors=$1; shift; exec \"$0\" \"$@\" 2>\"$errors\"", env!("CARGO_BIN_EXE_reqtop")]);
        command.arg(errors);
        command.args(args);
        Self::run(command, env)
    }

    /// The same by a shell that leads the session: these words after `$0`, the binary.
    pub fn start_by(shell: &[&str], folder: &std::path::Path) -> Self {
        let mut command = CommandBuilder::new("/bin/sh");
        command.args(shell);
        command.arg(env!("CARGO_BIN_EXE_reqtop"));
        command.cwd(folder);
        Self::run(command, &[])
    }

    fn run(mut command: CommandBuilder, env: &[(&str, &str)]) -> Self {
        let size = PtySize { rows: 30, cols: 140, pixel_width: 0, pixel_height: 0 };
        let pair = native_pty_system().openpty(size).unwrap();
        command.env_clear();
        command.env("TERM", "xterm-256color");
        // Nobody's own settings.
        command.env("XDG_CONFIG_HOME", "/none");
        env.iter().for_each(|(key, value)| command.env(key, value));
        let child = pair.slave.spawn_command(command).unwrap();
        drop(pair.slave);
        let screen = Arc::new(Mutex::new(vt100::Parser::new(size.rows, size.cols, 0)));
        let raw = Arc::new(Mutex::new(Vec::new()));
        let mut reader = pair.master.try_clone_reader().unwrap();
        let keys = pair.master.take_writer().unwrap();
        let (into_screen, into_raw) = (Arc::clone(&screen), Arc::clone(&raw));
        let gone = Arc::new(AtomicBool::new(false));
        let hung_up = Arc::clone(&gone);
        std::thread::spawn(move || {
            let mut bytes = [0; 65536];
            let mut waiting = Vec::new();
            while let Ok(count @ 1..) = reader.read(&mut bytes) {
                if hung_up.load(Ordering::SeqCst) {
                    return;
                }
                waiting.extend_from_slice(&bytes[..count]);
                let screen = shown(&mut waiting);
                into_screen.lock().unwrap().process(&screen);
                into_raw.lock().unwrap().extend_from_slice(&bytes[..count]);
            }
        });
        Self { screen, raw, keys, child, master: Some(pair.master), gone }
    }

    pub fn text(&self) -> String {
        self.screen.lock().unwrap().screen().contents()
    }

    /// Waits until the screen satisfies `seen`, up to the deadline.
    pub fn wait(&self, what: &str, seen: impl Fn(&str) -> bool) -> String {
        let begun = Instant::now();
        loop {
            let text = self.text();
            if seen(&text) {
                return text;
            }
            assert!(begun.elapsed() < DEADLINE, "waited in vain for {what}:\n{text}");
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    pub fn wait_for(&self, wanted: &str) -> String {
        self.wait(wanted, |text| text.contains(wanted))
    }

    /// Waits until something is so.
    pub fn wait_until(&self, what: &str, so: impl Fn(&Self) -> bool) {
        let begun = Instant::now();
        while !so(self) {
            assert!(begun.elapsed() < DEADLINE, "waited in vain for {what}:\n{}", self.text());
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    /// The screen once nothing has been written for a moment.
    pub fn settle(&self) -> String {
        const QUIET: Duration = Duration::from_millis(120);
        let begun = Instant::now();
        let (mut written, mut since) = (self.raw.lock().unwrap().len(), Instant::now());
        while since.elapsed() < QUIET && begun.elapsed() < Duration::from_secs(2) {
            std::thread::sleep(Duration::from_millis(5));
            let now = self.raw.lock().unwrap().len();
            if now != written {
                (written, since) = (now, Instant::now());
            }
        }
        self.text()
    }

    /// Gives the terminal another size.
    pub fn resize(&mut self, size: PtySize) {
        self.screen.lock().unwrap().screen_mut().set_size(size.rows, size.cols);
        self.master.as_ref().unwrap().resize(size).unwrap();
    }

    /// Types. A program that does not read for as long as anything may take is killed, and the test fails.
    pub fn type_keys(&mut self, keys: &str) {
        let mut killer = self.child.clone_killer();
        let (typed, waiting) = channel::<()>();
        std::thread::spawn(move || {
            if waiting.recv_timeout(DEADLINE) == Err(RecvTimeoutError::Timeout) {
                let _ = killer.kill();
            }
        });
        self.keys.write_all(keys.as_bytes()).unwrap();
        self.keys.flush().unwrap();
        drop(typed);
    }

    /// Waits until these bytes have been written to the terminal.
    pub fn wait_for_bytes(&self, wanted: &str) {
        let begun = Instant::now();
        while !String::from_utf8_lossy(&self.raw.lock().unwrap()).contains(wanted) {
            assert!(begun.elapsed() < DEADLINE, "never written: {wanted:?}");
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    /// Waits for the end of the program; gives its exit status.
    pub fn end(&mut self) -> u32 {
        let begun = Instant::now();
        loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                return status.exit_code();
            }
            assert!(begun.elapsed() < DEADLINE, "still running:\n{}", self.text());
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    /// The bound addresses, as the header shows them.
    pub fn addresses(&self) -> (SocketAddr, SocketAddr) {
        let text = self.wait("the bound addresses", |text| text.contains("grpc 127.0.0.1:") && text.contains("http :"));
        let number = |after: &str| -> u16 {
            let rest = &text[text.find(after).unwrap() + after.len()..];
            rest.split(|c: char| !c.is_ascii_digit()).next().unwrap().parse().unwrap()
        };
        let at = |port| SocketAddr::from(([127, 0, 0, 1], port));
        (at(number("grpc 127.0.0.1:")), at(number("http :")))
    }
}

/// What the emulator is given of the bytes that wait: it takes U+FFFD for an error of its own and draws nothing, where
/// terminals draw a sign. A character that is not whole yet goes on waiting.
fn shown(waiting: &mut Vec<u8>) -> Vec<u8> {
    let whole = (0..3)
        .map(|back| waiting.len().saturating_sub(back))
        .find(|end| std::str::from_utf8(&waiting[..*end]).is_ok())
        .unwrap_or(waiting.len());
    let rest = waiting.split_off(whole);
    let bytes = std::mem::replace(waiting, rest);
    String::from_utf8_lossy(&bytes).replace('\u{fffd}', "?").into_bytes()
}

impl Drop for Terminal {
    fn drop(&mut self) {
        let _ = self.child.kill();
    }
}
