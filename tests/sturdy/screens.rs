//! Terminals that come, go, shrink and stop reading.

use std::io::Read;
use std::process::Command;
use std::time::{Duration, Instant};

use portable_pty::{CommandBuilder, PtySize, native_pty_system};
use serde_json::{Value as Json, json};

use crate::Form;
use crate::common::terminal::Terminal;
use crate::common::{self, ANY, post_json, signal};
use crate::house::{one_span, wait};
use crate::senders::is_stopped;

const SIZE: PtySize = PtySize { rows: 30, cols: 140, pixel_width: 0, pixel_height: 0 };

fn size(rows: u16, cols: u16) -> PtySize {
    PtySize { rows, cols, ..SIZE }
}

/// CPU seconds of a process so far, as Linux counts them.
fn cpu(pid: u32) -> Option<f64> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let fields: Vec<&str> = stat.rsplit(')').next()?.split_whitespace().collect();
    Some((fields.get(11)?.parse::<f64>().ok()? + fields.get(12)?.parse::<f64>().ok()?) / 100.0)
}

/// A request with this name for its model and session.
fn named(number: u64, name: &str) -> Json {
    let attr = |key: &str, value: &str| json!({"key": key, "value": {"stringValue": value}});
    let span = |id: u64, parent: &str, span: &str| {
        json!({"traceId": format!("{:032x}", 0xf00 + number), "spanId": format!("{id:016x}"), "parentSpanId": parent,
            "name": span, "startTimeUnixNano": "1796003500000000000", "endTimeUnixNano": "1796003500100000000",
            "attributes": [attr("dynamo.request.id", &format!("{name}-{number}")), attr("request_id", &format!("{name}-{number}")),
                attr("dynamo.session.id", name), attr("model", name), attr("worker_id", name),
                attr("dynamo.request.terminal.outcome", "success")]})
    };
    json!({"resourceSpans": [{"resource": {"attributes": [attr("service.name", name)]},
        "scopeSpans": [{"spans": [span(1, "", "http-request"), span(2, "0000000000000001", "request.lifecycle")]}]}]})
}

/// The one child of a process.
fn child_of(pid: u32) -> Option<u32> {
    std::fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).ok()?.split_whitespace().next()?.parse().ok()
}

/// Ctrl-Z and SIGTSTP below a shell with job control: the terminal is given back, the program stops; in the foreground again,
/// it takes the terminal, at its new size, and what was sent meanwhile is there (B51).
pub fn stopped(form: Form) -> String {
    for round in 0..form.pick(2, 10) {
        let by_key = round % 2 == 0;
        // A line from the terminal, each time, before it is taken back to the foreground.
        let script = format!("\"$0\" {}; read on; fg >/dev/null; read on; fg >/dev/null; exit $?", ANY.join(" "));
        let mut terminal = Terminal::start_by(&["-mc", &script], std::path::Path::new("/"));
        let (_, http) = terminal.addresses();
        let pid = child_of(terminal.child.process_id().unwrap()).unwrap();
        let given_back = |terminal: &Terminal| {
            String::from_utf8_lossy(&terminal.raw.lock().unwrap()).matches("\u{1b}[?1049l").count()
        };
        for again in 1..=2 {
            if by_key {
                terminal.type_keys("\u{1a}");
            } else {
                signal(pid, "TSTP");
            }
            wait("the program to stop", || is_stopped(pid));
            terminal.wait_until("the terminal to be given back", |terminal| given_back(terminal) == again);
            let name = terminal.master.as_ref().unwrap().tty_name().unwrap();
            let modes = Command::new("stty").args(["-a", "-F"]).arg(name).output().unwrap().stdout;
            let modes = String::from_utf8(modes).unwrap();
            assert!(modes.contains(" icanon") && modes.contains(" echo "), "{modes}");
            // A sender meanwhile: the kernel takes what it says, the answer comes later.
            let post = std::thread::spawn(move || post_json(http, &one_span(again as u64)).status);
            let (rows, cols) = (30 + again as u16, 140 - 2 * again as u16);
            terminal.resize(size(rows, cols));
            std::thread::sleep(Duration::from_millis(100));
            terminal.type_keys("\n");
            assert_eq!(post.join().unwrap(), 200);
            terminal.wait_for(&format!("{again} request"));
            let text = terminal.settle();
            let widest = text.lines().map(|line| line.chars().count()).max().unwrap();
            assert_eq!((text.lines().count(), widest), (usize::from(rows), usize::from(cols)), "{text}");
            terminal.type_keys("?");
            terminal.wait_for("Keys");
            terminal.type_keys("\u{1b}");
            terminal.wait("the help to go", |text| !text.contains("Keys"));
        }
        terminal.type_keys("q");
        assert_eq!(terminal.end(), 0);
    }
    "given back, stopped, taken again at the new size, by key and by signal".into()
}

/// Any size from nothing to very large, on every screen (B53).
pub fn sizes(form: Form) -> String {
    let mut terminal = Terminal::start(&ANY, &[]);
    let (_, http) = terminal.addresses();
    for number in 0..5 {
        assert_eq!(post_json(http, &named(number, "推理服务")).status, 200);
    }
    terminal.wait_for("5 requests");
    let mut tried = 0;
    let screens = ["", "\r", "v", "\u{1b}", "t", "\u{1b}\u{1b}", "?", "\u{1b}", "/out", "\u{1b}", "1z", "\u{1b}2z", "\u{1b}3z", "\u{1b}4z", "\u{1b}", "w", "\u{1b}a", "\u{1b}c", "\u{1b}!"];
    for keys in screens {
        terminal.type_keys(keys);
        terminal.settle();
        let widths = (0..form.pick(60, 320)).map(|width| (1 + width % 50, width));
        let heights = (0..form.pick(30, 120)).map(|height| (height, 1 + height * 3));
        for (rows, cols) in widths.chain(heights).chain([(0, 0), (0, 80), (24, 0), (1, 1), (500, 500), (2, 999)]) {
            // Only the terminal: what it shows at such sizes does not matter.
            terminal.master.as_ref().unwrap().resize(size(rows, cols)).unwrap();
            tried += 1;
        }
        terminal.resize(SIZE);
        terminal.type_keys("\u{c}");
        terminal.settle();
        assert!(terminal.child.try_wait().unwrap().is_none(), "it ended after {keys:?}");
    }
    terminal.type_keys("\u{1b}\u{1b}");
    terminal.wait_for("Requests");
    terminal.type_keys("q");
    assert_eq!(terminal.end(), 0);
    format!("{tried} sizes, 0×0 among them, on {} screens", screens.len())
}

/// The screen once it stays the same: a busy machine takes its time.
fn quiet(terminal: &Terminal) -> String {
    let mut last = terminal.settle();
    loop {
        let now = terminal.settle();
        if now == last {
            return now;
        }
        last = now;
    }
}

/// Wide, joined and combining characters: scrolled up and down, the screen stays what a redraw of it is (B53).
pub fn scrolling(form: Form) -> String {
    let names = ["推理服务", "👩‍🔬", "🧑🏽‍🚒", "🏳️‍🌈", "♻️", "ｶﾞ", "e\u{301}", "plain", "混ぜ mixed 🚀", "ไทย", "नमस्ते", "\u{200b}zero"];
    let mut terminal = Terminal::start(&ANY, &[]);
    let (_, http) = terminal.addresses();
    for number in 0..60u64 {
        assert_eq!(post_json(http, &named(number, names[number as usize % names.len()])).status, 200);
    }
    terminal.wait_for("60 requests");
    terminal.type_keys("5");
    terminal.settle();
    let lines = |text: &str| -> Vec<String> {
        // The header and the footer go on by themselves.
        let lines: Vec<_> = text.lines().map(|line| line.trim_end().to_owned()).collect();
        lines[2..lines.len() - 1].to_vec()
    };
    let mut compared = 0;
    for _ in 0..form.pick(1, 10) {
        for keys in ["jjjjj", "\u{4}", "G", "kkk", "\u{15}", "g"] {
            for _ in 0..50 {
                terminal.type_keys(keys);
            }
            // Keys are obeyed in order: a pause that is seen, and seen to end, has them all behind it.
            terminal.type_keys("p");
            terminal.wait_for("PAUSED");
            terminal.type_keys("p");
            terminal.wait_for("LIVE");
            let before = quiet(&terminal);
            terminal.type_keys("\u{c}");
            let after = quiet(&terminal);
            let differ = lines(&before).into_iter().zip(lines(&after)).find(|(before, after)| before != after);
            assert_eq!(differ, None, "after 50 × {keys:?}");
            // The right border stands in one column: vt100 counts cells as terminals do.
            let (screen, cols) = (terminal.screen.lock().unwrap(), SIZE.cols - 1);
            let shown = screen.screen();
            let border = |row| shown.cell(row, cols).map(|cell| cell.contents().to_owned()).unwrap_or_default();
            let rows: Vec<String> = (0..SIZE.rows).map(border).filter(|cell| !cell.trim().is_empty()).collect();
            assert!(rows.iter().filter(|cell| *cell == "│").count() >= 10, "{rows:?}");
            compared += 1;
        }
    }
    terminal.type_keys("q");
    assert_eq!(terminal.end(), 0);
    format!("{compared} × 50 scrolls: every frame is what a redraw is, borders in one column")
}

/// A terminal that hangs up ends the program, under load and idle, without spinning.
pub fn gone(form: Form) -> String {
    let mut slowest = Duration::ZERO;
    for args in [&["demo"][..], &ANY[..]].into_iter().cycle().take(form.pick(2, 10)) {
        let mut terminal = Terminal::start(args, &[]);
        terminal.wait_for("requests");
        terminal.gone.store(true, std::sync::atomic::Ordering::SeqCst);
        terminal.keys = Box::new(std::io::sink());
        let begun = Instant::now();
        terminal.master = None;
        terminal.end();
        slowest = slowest.max(begun.elapsed());
    }
    assert!(slowest < Duration::from_secs(5), "{slowest:?}");
    format!("ended within {slowest:.1?}")
}

/// A terminal that stops reading (Ctrl-S, a stalled SSH) holds up the screen and nothing else; two signals still end it.
pub fn stalled(form: Form) -> String {
    let [grpc, http] = common::own::free();
    let pair = native_pty_system().openpty(SIZE).unwrap();
    let mut command = CommandBuilder::new(env!("CARGO_BIN_EXE_reqtop"));
    command.env_clear();
    command.env("TERM", "xterm-256color");
    command.args(["--grpc", &grpc.to_string(), "--http", &http.to_string()]);
    let mut child = pair.slave.spawn_command(command).unwrap();
    drop(pair.slave);
    let mut keys = pair.master.take_writer().unwrap();
    wait("the endpoint", || std::net::TcpStream::connect(http).is_ok());
    // Nobody reads: after some frames there is no more room.
    let count = form.pick(400, 5_000);
    for number in 0..count {
        assert_eq!(post_json(http, &named(number, "名")).status, 200);
        if number % 4 == 0 {
            let _ = std::io::Write::write_all(&mut keys, b"\x0c");
        }
    }
    let pid = child.process_id().unwrap();
    let begun = Instant::now();
    signal(pid, "TERM");
    if form == Form::Short {
        std::thread::sleep(Duration::from_millis(500));
        signal(pid, "TERM");
    }
    wait("signals to end it", || child.try_wait().unwrap().is_some());
    assert!(begun.elapsed() < form.pick(Duration::from_secs(4), Duration::from_secs(8)), "{:?}", begun.elapsed());
    let mut reader = pair.master.try_clone_reader().unwrap();
    let _ = reader.read(&mut [0; 16]);
    format!("{count} exports taken while nobody read the screen; ended by signals in {:.1?}", begun.elapsed())
}

/// Left open with nothing coming in: next to no CPU, next to no bytes (B55).
pub fn idle(form: Form) -> String {
    let (settle, window) = form.pick((3, 4), (10, 30));
    let mut terminal = Terminal::start(&ANY, &[]);
    let (_, http) = terminal.addresses();
    post_json(http, &named(1, "one"));
    terminal.wait_for("1 request ");
    let pid = terminal.child.process_id().unwrap();
    std::thread::sleep(Duration::from_secs(settle));
    let (bytes, before) = (terminal.raw.lock().unwrap().len(), cpu(pid));
    std::thread::sleep(Duration::from_secs(window));
    let bytes = terminal.raw.lock().unwrap().len() - bytes;
    let spent = before.zip(cpu(pid)).map(|(before, after)| after - before);
    let share = window as f64 / 30.0;
    assert!(bytes as f64 <= 20_000.0 * share, "{bytes} bytes in {window} s");
    assert!(spent.is_none_or(|spent| spent <= (0.3 * share).max(0.05)), "{spent:?} s of CPU in {window} s");
    let begun = Instant::now();
    terminal.type_keys("?");
    terminal.wait_for("Keys");
    let answered = begun.elapsed();
    terminal.type_keys("\u{1b}q");
    let _ = common::ANY;
    let spent = spent.map_or("?".into(), |spent| format!("{spent:.2}"));
    format!("{spent} s of CPU and {bytes} bytes in {window} s; a key answered in {answered:.0?}")
}
