//! Faults known from the field, held off on a real terminal: what must not reach it, what must not break it, and how it is
//! given back. The ids name the cases.

mod common;

use std::io::{Read, Write};
use std::net::TcpStream;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use common::terminal::Terminal;
use common::{ANY, post_json, signal};
use portable_pty::PtySize;
use serde_json::{Value as Json, json};

const HOSTILE: [&str; 20] = [
    "\u{1b}[2J\u{1b}[31mEVIL",
    "\u{1b}]0;title\u{7}x",
    "\u{1b}]52;c;cm0gLXJm\u{7}",
    "a\nb\tc\rd",
    "\u{9b}31mC1\u{85}x",
    "\u{202e}RTL\u{202c}",
    "\0nul",
    "\u{7f}\u{8}\u{8}del",
    "推理服务",
    "👩‍🔬",
    "🧑🏽‍🚒",
    "🏳️‍🌈",
    "♻️",
    "ｶﾞ",
    "e\u{301}",
    "👩\u{200d}",
    "\u{feff}bom",
    "",
    "                                        ",
    "%s%n{}{0}$(reboot)`id`<script>",
];

fn attr(key: &str, value: &str) -> Json {
    json!({"key": key, "value": {"stringValue": value}})
}

/// A request of a root below an `http-request`, with a text wherever one can stand.
fn request(number: usize, id: &str, text: &str) -> Json {
    let trace = format!("{:032x}", 0xabc000 + number);
    let span = |id: u64, parent: &str, name: &str, attributes: Vec<Json>| {
        json!({
            "traceId": trace, "spanId": format!("{id:016x}"), "parentSpanId": parent, "name": name, "kind": 1,
            "startTimeUnixNano": "1796003500000000000", "endTimeUnixNano": "1796003500100000000",
            "attributes": attributes, "traceState": text, "status": {"code": 2, "message": text},
            "events": [{"name": text, "timeUnixNano": "1796003500000000001", "attributes": [attr(text, text)]}],
        })
    };
    json!({"resourceSpans": [{
        "resource": {"attributes": [attr("service.name", text), attr(text, text)]},
        "scopeSpans": [{"scope": {"name": text}, "spans": [
            span(1, "", "http-request", vec![attr("request_id", id), attr("uri", text)]),
            span(2, "0000000000000001", "request.lifecycle", vec![
                attr("dynamo.request.id", id),
                attr("dynamo.session.id", text),
                attr("dynamo.request.terminal.outcome", if number.is_multiple_of(2) { "success" } else { text }),
                attr(text, text),
            ]),
            span(3, "0000000000000002", "kv_router.route_request", vec![
                attr("request_id", id), attr("worker_id", text), attr("phase", text), attr("request.outcome", text),
            ]),
            span(4, "0000000000000002", text, vec![attr("model", text)]),
        ]}],
    }]})
}

fn open() -> (Terminal, std::net::SocketAddr) {
    let terminal = Terminal::start(&ANY, &[]);
    let (_, http) = terminal.addresses();
    (terminal, http)
}

fn end_with_q(mut terminal: Terminal) {
    // Back from wherever it is, then out.
    terminal.type_keys("\u{1b}");
    terminal.settle();
    terminal.type_keys("\u{1b}");
    terminal.settle();
    terminal.type_keys("q");
    assert_eq!(terminal.end(), 0);
}

/// B53, B56: nothing that is received acts on the terminal, and every frame is what a whole redraw of it is.
#[test]
fn received_text_is_drawn_and_never_obeyed() {
    let (mut terminal, http) = open();
    for (number, text) in HOSTILE.iter().enumerate() {
        let id = if number % 2 == 0 { format!("{text}{number}") } else { format!("req-{number}") };
        assert_eq!(post_json(http, &request(number, &id, text)).text(), "{}");
    }
    // Malformed ones too: what a library says about them must not be painted over the screen.
    common::post(http, "/v1/traces", "application/json", b"{\"resourceSpans\":[\x1b[2J");
    common::shout(http, b"POST /\x1b[31mEVIL HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
    terminal.wait_for("20 requests");
    let walk =
        ["G", "\r", "v", "\u{1b}", "n", "\t\tG", "n", "n", "\u{1b}", "w", "\u{1b}", "a", "\u{1b}", "g", "!", "\u{1b}"];
    for keys in walk {
        terminal.type_keys(keys);
        let before = terminal.settle();
        terminal.type_keys("\u{c}");
        let after = terminal.settle();
        // Ages and messages go on; all the rest must be the same.
        let still = |text: &str| {
            let lines: Vec<_> = text.lines().map(str::trim_end).collect();
            let inner = lines[1..lines.len() - 1].iter().copied();
            inner.filter(|line| !line.contains("s  ")).collect::<Vec<_>>().join("\n")
        };
        assert_eq!(still(&before), still(&after), "after {keys:?}");
    }
    let raw = String::from_utf8_lossy(&terminal.raw.lock().unwrap()).into_owned();
    for code in
        ["\u{1b}[2J\u{1b}[31mEVIL", "\u{1b}]0;", "\u{1b}]52;", "\u{9b}", "\u{85}", "\u{202e}", "\0", "\u{8}", "\u{7f}"]
    {
        assert!(!raw.contains(code), "{code:?} reached the terminal");
    }
    end_with_q(terminal);
}

/// B56: what libraries would log reaches neither the screen nor standard error, whatever the environment asks of them.
#[test]
fn what_libraries_log_is_painted_over_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let errors = folder.path().join("stderr");
    let loud = [("RUST_LOG", "trace"), ("RUST_BACKTRACE", "full"), ("RUST_LIB_BACKTRACE", "1")];
    let mut terminal = Terminal::start_beside(&errors, &ANY, &loud);
    let (grpc, http) = terminal.addresses();
    post_json(http, &request(1, "one", "x"));
    common::post(http, "/v1/traces", "application/json", b"{\"resourceSpans\":[");
    common::post(http, "/v1/traces", "application/x-protobuf", b"\xff\xff");
    common::post(http, "/nowhere", "text/plain", b"x");
    common::shout(http, b"\x16\x03\x01\x02\x00\x01\x00");
    common::shout(http, b"GET / HTTP/9.9\r\n\r\n");
    common::shout(grpc, b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\x00\x00\xff\x04\x00\x00\x00\x00\x00junk");
    common::shout(grpc, b"GET / HTTP/1.1\r\nHost: x\r\n\r\n");
    terminal.wait_for("1 request ");
    terminal.type_keys("p");
    let before = terminal.settle();
    terminal.type_keys("\u{c}");
    let after = terminal.settle();
    let still = |text: &str| text.lines().skip(1).map(|line| line.trim_end().to_owned()).collect::<Vec<_>>();
    assert_eq!(still(&before), still(&after));
    // It is told in our own words.
    terminal.type_keys("!");
    terminal.wait_for("/nowhere");
    end_with_q(terminal);
    assert_eq!(std::fs::read_to_string(&errors).unwrap(), "");
}

/// B53: any size, however small.
#[test]
fn every_size_is_survived_on_every_screen() {
    let (mut terminal, http) = open();
    post_json(http, &request(1, "one", "推理服务"));
    terminal.wait_for("1 request ");
    for keys in ["", "\r", "v", "\u{1b}", "\u{1b}", "?", "\u{1b}", "/out", "\u{1b}", "1z", "\u{1b}", "w", "\u{1b}", "c"]
    {
        terminal.type_keys(keys);
        terminal.settle();
        for step in 1..24u16 {
            let (rows, cols) = (1 + step * 7 % 41, 1 + step * step % 211);
            terminal.resize(PtySize { rows, cols, pixel_width: 0, pixel_height: 0 });
        }
        terminal.resize(PtySize { rows: 30, cols: 140, pixel_width: 0, pixel_height: 0 });
        assert!(terminal.child.try_wait().unwrap().is_none(), "it ended after {keys:?}");
    }
    terminal.type_keys("\u{1b}");
    terminal.wait_for("Requests");
    end_with_q(terminal);
}

/// The modes of the terminal, as `stty -a` says.
fn modes(terminal: &Terminal) -> String {
    let name = terminal.master.as_ref().unwrap().tty_name().unwrap();
    let output = Command::new("stty").args(["-a", "-F"]).arg(name).output().unwrap();
    String::from_utf8(output.stdout).unwrap()
}

fn is_raw(terminal: &Terminal) -> bool {
    let modes = modes(terminal);
    modes.contains("-icanon") && modes.contains("-echo ")
}

/// B51: stopped by SIGSTOP, it has had no chance to give the terminal back; whoever takes it then sets modes of their own.
#[test]
fn after_any_stop_the_terminal_is_taken_again() {
    let (mut terminal, _) = open();
    terminal.wait_until("raw mode", is_raw);
    let pid = terminal.child.process_id().unwrap();
    signal(pid, "STOP");
    let name = terminal.master.as_ref().unwrap().tty_name().unwrap();
    assert!(Command::new("stty").arg("sane").arg("-F").arg(&name).status().unwrap().success());
    assert!(!is_raw(&terminal));
    signal(pid, "CONT");
    terminal.wait_until("raw mode again", is_raw);
    terminal.wait_for("spans/s");
    terminal.type_keys("?");
    terminal.wait_for("Keys");
    end_with_q(terminal);
}

/// B50
#[test]
fn the_terminal_is_given_back_as_it_was() {
    for (ending, status) in [("q", 0), ("\u{3}", 0), ("TERM", 143), ("INT", 130), ("HUP", 129)] {
        let mut terminal = Terminal::start(&ANY, &[]);
        terminal.addresses();
        match ending {
            "q" | "\u{3}" => terminal.type_keys(ending),
            name => signal(terminal.child.process_id().unwrap(), name),
        }
        assert_eq!(terminal.end(), status, "{ending:?}");
        // The main screen, the cursor, plain pasting, and no mouse.
        for code in ["\u{1b}[?1049l", "\u{1b}[?25h", "\u{1b}[?2004l"] {
            terminal.wait_for_bytes(code);
        }
        assert!(!String::from_utf8_lossy(&terminal.raw.lock().unwrap()).contains("\u{1b}[?1000h"));
        let modes = modes(&terminal);
        for mode in ["isig", "icanon", "iexten", "echo", "opost", "icrnl", "ixon"] {
            assert!(modes.split_whitespace().any(|word| word == mode), "{ending:?}: {mode} in\n{modes}");
        }
    }
}

/// B57: inside tmux both as it is and wrapped; tmux takes one or the other, by its options.
#[test]
fn an_id_is_copied_by_the_terminal_in_and_out_of_tmux() {
    // The base64 of `one`.
    for (env, wanted) in [
        (&[][..], "\u{1b}]52;c;b25l\u{7}"),
        (&[("TMUX", "/tmp/x,1,0")][..], "\u{1b}]52;c;b25l\u{7}\u{1b}Ptmux;\u{1b}\u{1b}]52;c;b25l\u{7}\u{1b}\\"),
    ] {
        let mut terminal = Terminal::start(&ANY, env);
        let (_, http) = terminal.addresses();
        post_json(http, &request(2, "one", "x"));
        terminal.wait_for("1 request ");
        terminal.type_keys("y");
        terminal.wait_for_bytes(wanted);
        let text = terminal.wait_for("OSC 52");
        assert!(text.contains("one"), "{text}");
        end_with_q(terminal);
    }
}

/// B62, B63: between two key presses a filter may be anything; it never breaks the screen and never widens the list.
#[test]
fn a_filter_in_the_making_breaks_nothing() {
    let (mut terminal, http) = open();
    post_json(http, &request(2, "one", "x"));
    post_json(http, &request(4, "two", "y"));
    terminal.wait_for("2 requests");
    terminal.type_keys("/request:one\r");
    let only_one = |text: &str| text.contains(" one ") && !text.contains(" two ");
    terminal.wait("one request", only_one);
    for text in ["(", "[", "*", "\\", "{", "+", "\"", "'", "(a{1,1000}){1,1000}", "x>", "1..", "outcome:(", "not", ":"]
    {
        terminal.type_keys("/\u{15}");
        terminal.type_keys(text);
        let shown = terminal.settle();
        assert!(!shown.contains("panicked"), "{shown}");
        terminal.type_keys("\u{1b}");
        terminal.wait("the filter before", only_one);
    }
    terminal.type_keys("/\u{15}");
    terminal.type_keys(&"(".repeat(3000));
    terminal.settle();
    terminal.type_keys("\u{1b}");
    terminal.wait("the filter before", only_one);
    end_with_q(terminal);
}

/// B63: a filter made from a value on the screen finds exactly what has it, whatever stands in key and value.
#[test]
fn a_value_that_is_filtered_by_finds_what_has_it_and_nothing_else() {
    let (mut terminal, http) = open();
    let (key, value) = ("odd key \"x\"-y.z", "a \"b\" = c\n d:\te\\");
    for (number, id, value) in [('a', "with", value), ('b', "without", "other"), ('c', "like", "a b = c d e")] {
        let attributes = vec![attr(key, value)];
        let span = json!({
            "traceId": number.to_string().repeat(32), "spanId": "00000000000000a1", "name": format!("span-{id}"), "kind": 1,
            "startTimeUnixNano": "1796003500000000000", "endTimeUnixNano": "1796003500100000000",
            "attributes": attributes,
        });
        post_json(http, &json!({"resourceSpans": [{"scopeSpans": [{"spans": [span]}]}]}));
    }
    terminal.wait_for("3 requests");
    // The first that came stands last; its only attribute first in its list.
    terminal.type_keys("G\r");
    terminal.wait_for("span-with");
    terminal.type_keys("\t\t");
    terminal.settle();
    // Down to the attribute: rows that cannot be filtered by say nothing.
    let made = |text: &str| text.contains(r#"filter ▸ "odd key \"x\"-y.z":"a \"b\" = c\n d:\te\\""#);
    for _ in 0..24 {
        terminal.type_keys("=");
        if made(&terminal.settle()) {
            break;
        }
        terminal.type_keys("j");
    }
    terminal.wait("the filter made of the value", made);
    terminal.type_keys("\u{1b}");
    let only = |text: &str| text.contains("t:aaaaaa") && !text.contains("t:bbbbbb") && !text.contains("t:cccccc");
    terminal.wait("the one request that has it", only);
    // What cannot be read says so and shows nothing more.
    terminal.type_keys("/ \"odd");
    terminal.wait_for("to close this quote");
    terminal.settle();
    terminal.wait("the same one request", only);
    end_with_q(terminal);
}

/// B34, B35: children first, each shown at once, each once; the chosen one stays chosen.
#[test]
fn spans_without_their_parents_are_shown_and_find_them() {
    let (mut terminal, http) = open();
    let span = |id: u64, parent: u64, name: &str| {
        json!({"resourceSpans": [{"scopeSpans": [{"spans": [{
            "traceId": "0123456789abcdef0123456789abcdef", "spanId": format!("{id:016x}"), "name": name, "kind": 1,
            "parentSpanId": if parent == 0 { String::new() } else { format!("{parent:016x}") },
            "startTimeUnixNano": format!("179600350000{id}000000"), "endTimeUnixNano": "1796003500100000000",
        }]}]}]})
    };
    post_json(http, &span(3, 2, "leaf-span"));
    terminal.wait_for("1 request ");
    terminal.type_keys("\r");
    let text = terminal.wait_for("waiting for parent 0000000000000002");
    assert!(text.contains("leaf-span"), "{text}");
    terminal.type_keys("j");
    post_json(http, &span(2, 1, "middle-span"));
    terminal.wait_for("waiting for parent 0000000000000001");
    post_json(http, &span(1, 0, "top-span"));
    let text = terminal.wait("the whole tree", |text| text.contains("top-span") && !text.contains("waiting for"));
    let depth = |name: &str| {
        let lines: Vec<_> = text.lines().filter_map(|line| Some(line[..line.find(name)?].chars().count())).collect();
        assert_eq!(lines.iter().filter(|at| **at < 20).count(), 1, "{name} once:\n{text}");
        lines[0]
    };
    assert!(depth("top-span") < depth("middle-span") && depth("middle-span") < depth("leaf-span"), "{text}");
    // The leaf is still the chosen one: its parent is among the attributes shown.
    terminal.wait_for("0000000000000002");
    end_with_q(terminal);
}

/// B64: an idle connection, a half-sent body and an open HTTP/2 connection do not hold the way back to the prompt.
#[test]
fn quitting_waits_for_nobody() {
    for by_signal in [false, true] {
        let mut terminal = Terminal::start(&ANY, &[]);
        let (grpc, http) = terminal.addresses();
        let mut idle = TcpStream::connect(http).unwrap();
        write!(
            idle,
            "POST /v1/logs HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{{}}"
        )
        .unwrap();
        idle.read_exact(&mut [0; 12]).unwrap();
        let mut half = TcpStream::connect(http).unwrap();
        write!(
            half,
            "POST /v1/logs HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 9\r\n\r\n{{"
        )
        .unwrap();
        let mut http2 = TcpStream::connect(grpc).unwrap();
        http2.write_all(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0").unwrap();
        http2.read_exact(&mut [0; 9]).unwrap();
        let begun = Instant::now();
        if by_signal {
            signal(terminal.child.process_id().unwrap(), "TERM");
        } else {
            terminal.type_keys("q");
        }
        assert_eq!(terminal.end(), if by_signal { 143 } else { 0 });
        assert!(begun.elapsed() < Duration::from_secs(8), "{:?}", begun.elapsed());
        assert!(TcpStream::connect(http).is_err() && TcpStream::connect(grpc).is_err());
    }
}

/// B52, B54: where there can be no screen there is one line, at once, and no escape code.
#[test]
fn no_screen_is_said_in_one_line() {
    let mut dumb = Terminal::start(&ANY, &[("TERM", "dumb")]);
    assert_eq!(dumb.end(), 2);
    dumb.wait_for("TERM=dumb");
    assert!(!dumb.raw.lock().unwrap().contains(&0x1b));
    for arguments in [&[][..], &["demo"]] {
        let mut command = Command::new("setsid");
        command.arg(env!("CARGO_BIN_EXE_reqtop")).args(arguments).args(ANY).stdin(Stdio::null());
        let output = command.output().unwrap();
        assert_eq!(output.status.code(), Some(2));
        assert_eq!(String::from_utf8_lossy(&output.stderr).lines().count(), 1);
        assert!(output.stdout.is_empty() && !output.stderr.contains(&0x1b));
    }
}

/// B38: clocks of two hosts disagree: everything is drawn where its times say, and what lies outside its parent says by how
/// much.
#[test]
fn clocks_that_disagree_are_shown_and_named() {
    let (mut terminal, http) = open();
    let base = 1_796_003_500_000_000_000_i64;
    let span = |id: u64, parent: &str, name: &str, service: &str, from_ms: i64, to_ms: i64| {
        let at = |ms: i64| (base + ms * 1_000_000).to_string();
        json!({"resourceSpans": [{"resource": {"attributes": [attr("service.name", service)]}, "scopeSpans": [{"spans": [{
            "traceId": "0123456789abcdef0123456789abcdef", "spanId": format!("{id:016x}"), "name": name, "kind": 1,
            "parentSpanId": parent, "startTimeUnixNano": at(from_ms), "endTimeUnixNano": at(to_ms),
            "attributes": [attr("dynamo.request.id", "skewed")],
        }]}]}]})
    };
    post_json(http, &span(1, "", "http-request", "dynamo-frontend", 0, 1_000));
    post_json(http, &span(2, "0000000000000001", "early-child", "dynamo-worker", -3_000, -2_200));
    post_json(http, &span(3, "0000000000000001", "late-child", "dynamo-worker", 900, 1_800));
    post_json(http, &span(4, "0000000000000001", "ahead-child", "dynamo-worker", 4_000, 4_200));
    terminal.wait_for("1 request ");
    terminal.type_keys("\r");
    let all = ["early-child", "late-child", "ahead-child"];
    let text = terminal.wait("the three", |text| all.iter().all(|name| text.contains(name)));
    let row = |name: &str| text.lines().find(|line| line.contains(name) && line.contains('┝')).unwrap().to_owned();
    let begins = |name: &str| row(name).chars().position(|c| c == '┝').unwrap();
    assert!(row("early-child").contains("starts 3.0 s before its parent"), "{text}");
    assert!(row("ahead-child").contains("starts 3.0 s after its parent ended"), "{text}");
    assert!(begins("early-child") < begins("http-request") && begins("http-request") < begins("late-child"), "{text}");
    // A child that outlives its parent is no error.
    assert!(row("late-child").contains("900 ms") && !row("late-child").contains("parent"), "{text}");
    end_with_q(terminal);
}
