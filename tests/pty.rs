//! End to end: the binary on a real pseudo-terminal, exported to by the OpenTelemetry SDK's own exporter.

mod common;

use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use common::ANY;
use common::terminal::Terminal;
use opentelemetry::trace::{Span, SpanKind, Status, TraceContextExt, Tracer, TracerProvider};
use opentelemetry::{Context, KeyValue};
use opentelemetry_otlp::{Protocol, SpanExporter, WithExportConfig};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::trace::SdkTracerProvider;

/// Sends one request's root and a worker's span below it, through the SDK.
fn export(exporter: SpanExporter, request: &str, worker: &str, outcome: &str) {
    let resource = Resource::builder_empty().with_service_name("dynamo-frontend").build();
    let provider = SdkTracerProvider::builder().with_resource(resource).with_simple_exporter(exporter).build();
    let tracer = provider.tracer("dynamo-frontend");
    let text = |key: &'static str, value: &str| KeyValue::new(key, value.to_owned());
    let http = tracer
        .span_builder("http-request")
        .with_kind(SpanKind::Internal)
        .with_attributes([text("request_id", request), text("uri", "/v1/chat/completions")])
        .start(&tracer);
    let http = Context::new().with_span(http);
    let root = tracer
        .span_builder("request.lifecycle")
        .with_attributes([
            text("dynamo.request.id", request),
            text("dynamo.request.terminal.outcome", outcome),
            text("dynamo.lifecycle.mode", "core"),
        ])
        .start_with_context(&tracer, &http);
    let root = http.with_span(root);
    let mut route = tracer
        .span_builder("kv_router.route_request")
        .with_attributes([
            text("request_id", request),
            text("worker_id", worker),
            text("dp_rank", "0"),
            text("phase", "Aggregated"),
            text("request.attempt", "0"),
            text("request.outcome", "success"),
        ])
        .start_with_context(&tracer, &root);
    route.set_status(Status::Unset);
    route.end();
    root.span().end();
    http.span().end();
    provider.shutdown().unwrap();
}

#[test]
fn requests_from_the_sdk_appear_over_grpc_and_http() {
    let mut terminal = Terminal::start(&ANY, &[]);
    let (grpc, http) = terminal.addresses();

    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(async move {
        let exporter = SpanExporter::builder().with_tonic().with_endpoint(format!("http://{grpc}")).build().unwrap();
        // The simple processor exports on the calling thread, which must not be the runtime's.
        tokio::task::spawn_blocking(move || export(exporter, "grpc-sdk", "7587890", "success")).await.unwrap();
    });
    terminal.wait_for("grpc-sdk");

    for (protocol, request) in [(Protocol::HttpBinary, "http-pb"), (Protocol::HttpJson, "http-js")] {
        let exporter = SpanExporter::builder()
            .with_http()
            .with_protocol(protocol)
            .with_endpoint(format!("http://{http}/v1/traces"))
            .build()
            .unwrap();
        export(exporter, request, "42", "cancelled");
        terminal.wait_for(request);
    }
    let ended = |text: &str| ["3 requests", "success 1", "cancelled 2"].iter().all(|part| text.contains(part));
    terminal.wait("three ended requests", ended);

    terminal.type_keys("/worker:7587890\r");
    let text = terminal.wait("the filtered list", |text| !text.contains("http-pb"));
    assert!(text.contains("grpc-sdk"), "{text}");
    terminal.type_keys("\r");
    let text = terminal.wait_for("kv_router.route_request");
    assert!(text.contains("http-request") && text.contains("request.lifecycle"), "{text}");
    terminal.type_keys("q");
    assert_eq!(terminal.end(), 0);
    // The main screen, the cursor, plain pasting.
    for code in ["\u{1b}[?1049l", "\u{1b}[?25h", "\u{1b}[?2004l"] {
        terminal.wait_for_bytes(code);
    }
}

/// Whether a request has ended well, by the count in the header: the newest in the list may all be in flight.
fn has_finished(text: &str) -> bool {
    text.contains(" success ") && !text.contains(" success 0 ")
}

#[test]
fn no_colour_means_no_colour_codes() {
    let mut terminal = Terminal::start(&["demo"], &[("NO_COLOR", "1")]);
    terminal.wait("a finished request", has_finished);
    terminal.type_keys("q");
    assert_eq!(terminal.end(), 0);
    for code in looks(&terminal) {
        assert!(!matches!(code, 30..=38 | 40..=48 | 90..=107), "colour code {code}");
    }
}

/// The numbers of everything that was written to set a look.
fn looks(terminal: &Terminal) -> Vec<u32> {
    let raw = String::from_utf8_lossy(&terminal.raw.lock().unwrap()).into_owned();
    let sequences = raw.split("\u{1b}[").skip(1).filter_map(|rest| {
        let end = rest.find(|c: char| !c.is_ascii_digit() && c != ';')?;
        rest[end..].starts_with('m').then_some(&rest[..end])
    });
    sequences.flat_map(|codes| codes.split(';').filter_map(|code| code.parse().ok()).collect::<Vec<_>>()).collect()
}

/// Walks over the demo's screens as a terminal of this name, and gives it back still open.
fn walked(term: &str) -> Terminal {
    let mut terminal = Terminal::start(&["demo"], &[("TERM", term)]);
    terminal.wait("a finished request", has_finished);
    for keys in ["G", "\r", "\t", "\t", "\u{1b}", "1z", "w", "\u{1b}", "c", "\u{1b}", "?", "\u{1b}"] {
        terminal.type_keys(keys);
        terminal.settle();
    }
    terminal
}

/// Eight colours: each by its oldest code. What a terminal of eight colours does not know it takes for something else.
#[test]
fn few_colours_are_said_so_that_every_terminal_knows_them() {
    for term in ["xterm", "linux", "screen"] {
        let mut terminal = walked(term);
        let codes = looks(&terminal);
        assert!(codes.iter().any(|code| matches!(code, 31..=37)), "{term} has colours");
        for code in codes {
            assert!(matches!(code, 0..=9 | 21..=37 | 39..=47 | 49 | 59), "code {code} on {term}");
        }
        terminal.type_keys("q");
        assert_eq!(terminal.end(), 0);
    }
}

/// On a light background as on a dark one: text is in the terminal's own colour, or in one that stands out from both.
#[test]
fn text_is_readable_on_light_and_dark_backgrounds() {
    let mut terminal = walked("xterm-256color");
    {
        let parser = terminal.screen.lock().unwrap();
        let screen = parser.screen();
        let (rows, columns) = screen.size();
        let cells = (0..rows).flat_map(|row| (0..columns).filter_map(move |column| screen.cell(row, column)));
        let shown: Vec<_> = cells.filter(|cell| !cell.contents().trim().is_empty()).collect();
        let own = shown.iter().filter(|cell| cell.fgcolor() == vt100::Color::Default).count();
        assert!(own * 2 > shown.len(), "most text is in the terminal's own colour: {own} of {}", shown.len());
    }
    // Neither black, white nor what is near one of them, and no background of ours under text.
    for code in looks(&terminal) {
        assert!(!matches!(code, 30 | 37 | 38 | 40..=48 | 90 | 93 | 97 | 100..=107), "colour code {code}");
    }
    terminal.type_keys("q");
    assert_eq!(terminal.end(), 0);
}

#[test]
fn the_mouse_is_asked_for_and_given_back_and_the_settings_file_is_read() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("config.toml");
    std::fs::write(&file, "mouse = true\ntheme = 'nord'\nwindow = '1m'\n[keys]\nquit = 'X'\n").unwrap();
    let env = [("REQTOP_CONFIG", file.to_str().unwrap()), ("COLORTERM", "truecolor")];
    let mut terminal = Terminal::start(&["demo"], &env);
    let screen = terminal.wait("a finished request", has_finished);
    assert!(screen.contains("LIVE 1 m") && screen.contains("X quit"), "{screen}");
    // nord's background, and the mouse in the form without limits.
    for code in ["48;2;46;52;64", "\u{1b}[?1002h", "\u{1b}[?1006h"] {
        terminal.wait_for_bytes(code);
    }
    // A press of the left button on the word `help` in the last line.
    let (row, line) = screen.lines().enumerate().find(|(_, line)| line.contains("? help")).unwrap();
    let column = line.chars().take_while(|c| *c != '?').count();
    terminal.type_keys(&format!("\u{1b}[<0;{};{}M", column + 1, row + 1));
    terminal.wait_for("freeze what is shown");
    terminal.type_keys("X");
    assert_eq!(terminal.end(), 0);
    for code in ["\u{1b}[?1006l", "\u{1b}[?1002l", "\u{1b}[?1000l"] {
        terminal.wait_for_bytes(code);
    }
}

#[test]
fn a_signal_ends_it_with_its_number() {
    let asked = [("TERM", 143), ("INT", 130), ("HUP", 129), ("QUIT", 131), ("USR1", 138), ("USR2", 140)];
    let others = [("ALRM", 142), ("VTALRM", 154), ("XCPU", 152), ("ABRT", 134)];
    for (signal, status) in
        asked.into_iter().chain(others).filter(|(name, _)| cfg!(target_os = "linux") || !name.starts_with("USR"))
    {
        let mut terminal = Terminal::start(&ANY, &[]);
        terminal.addresses();
        let pid = terminal.child.process_id().unwrap().to_string();
        assert!(std::process::Command::new("kill").args([&format!("-{signal}"), &pid]).status().unwrap().success());
        assert_eq!(terminal.end(), status, "SIG{signal}");
        terminal.wait_for_bytes("\u{1b}[?1049l");
    }
}

/// What the header says while it listens, and what is said where nobody would wake it.
const LISTENING: &str = "grpc 127.0.0.1:";
const NOT_STOPPED: &str = "not suspended";
const ARGS: &str = "--grpc 127.0.0.1:0 --http 127.0.0.1:0";

#[test]
fn what_nobody_would_wake_does_not_stop() {
    let folder = tempfile::tempdir().unwrap();
    let below = format!("\"$0\" {ARGS}; exit $?");
    for mut terminal in [Terminal::start(&ANY, &[]), Terminal::start_by(&["-c", &below], folder.path())] {
        terminal.wait_for(LISTENING);
        terminal.type_keys("\u{1a}");
        terminal.wait_for(NOT_STOPPED);
        terminal.type_keys("?");
        terminal.wait_for("freeze what is shown");
        terminal.type_keys("q");
        assert_eq!(terminal.end(), 0);
    }
}

#[test]
fn what_a_shell_can_wake_stops_and_goes_on() {
    let folder = tempfile::tempdir().unwrap();
    // With job control (-m) as a shell that people type into has it; the others are several processes in one job.
    for line in [format!("\"$0\" {ARGS}"), format!("(\"$0\" {ARGS}; exit $?)"), format!("true | \"$0\" {ARGS}")] {
        let script = format!("{line}; echo asleep; fg >/dev/null; echo status $?");
        let mut terminal = Terminal::start_by(&["-mc", &script], folder.path());
        terminal.wait_for(LISTENING);
        terminal.type_keys("\u{1a}");
        // Said on the screen that was there before, and the other one is back at once.
        terminal.wait_for_bytes("asleep");
        let after_stop = |terminal: &Terminal| {
            let raw = String::from_utf8_lossy(&terminal.raw.lock().unwrap()).into_owned();
            raw.split_once("asleep").is_some_and(|(_, after)| after.contains("\u{1b}[?1049h"))
        };
        terminal.wait_until("the screen taken again", after_stop);
        terminal.type_keys("?");
        let text = terminal.wait_for("freeze what is shown");
        assert!(!text.contains(NOT_STOPPED), "{text}");
        terminal.type_keys("q");
        terminal.wait_for("status 0");
        terminal.end();
    }
}

/// As on a full disk: a word, and nothing half.
#[test]
fn a_limit_to_the_size_of_files_is_a_word() {
    let folder = tempfile::tempdir().unwrap();
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/queue.traces.jsonl.gz");
    let limited = |what: &str| Terminal::start_by(&["-c", &format!("ulimit -f 8; exec \"$0\" {what}")], folder.path());
    let mut terminal = limited(file);
    terminal.wait("a finished request", has_finished);
    for _ in 0..2 {
        terminal.type_keys("e");
        let text = terminal.wait_for("nothing was exported to");
        assert!(text.contains(folder.path().file_name().unwrap().to_str().unwrap()), "{text}");
    }
    terminal.type_keys("q");
    assert_eq!(terminal.end(), 0);
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
    let mut terminal = limited("demo --record run.jsonl");
    terminal.wait_for("rec!");
    terminal.type_keys("q");
    assert_eq!(terminal.end(), 2);
    terminal.wait_for_bytes("\u{1b}[?1049l");
}

#[test]
fn waiting_for_a_dead_far_side_is_said_and_ends_with_ctrl_c() {
    let mut terminal = Terminal::start(&["demo", "--forward", "grpc://127.0.0.1:1"], &[]);
    terminal.wait("a finished request", has_finished);
    terminal.type_keys("q");
    terminal.wait_for("waiting up to 5 s for grpc://127.0.0.1:1");
    terminal.type_keys("\u{3}");
    assert_eq!(terminal.end(), 2);
    terminal.wait_for("not sent at the end");
    // Asked to end by a signal it says as much, and has the status of the signal where nothing is lost.
    let mut terminal = Terminal::start(&["demo", "--forward", "grpc://127.0.0.1:1"], &[]);
    terminal.wait("a finished request", has_finished);
    let pid = terminal.child.process_id().unwrap().to_string();
    assert!(std::process::Command::new("kill").args(["-TERM", &pid]).status().unwrap().success());
    assert_eq!(terminal.end(), 2);
    terminal.wait_for("not sent at the end");
}

/// Any program may set any size; the emulator of the test keeps its own.
#[test]
fn the_largest_terminal_there_can_be_is_drawn_in_part() {
    let mut terminal = Terminal::start(&ANY, &[]);
    terminal.addresses();
    let size = |rows, cols| portable_pty::PtySize { rows, cols, pixel_width: 0, pixel_height: 0 };
    let bell = |terminal: &mut Terminal, size| terminal.master.as_ref().unwrap().resize(size).unwrap();
    bell(&mut terminal, size(u16::MAX, u16::MAX));
    terminal.wait_for_bytes("\u{1b}[500;");
    bell(&mut terminal, size(30, 140));
    terminal.type_keys("\u{c}?");
    terminal.wait_for("freeze what is shown");
    terminal.type_keys("q");
    assert_eq!(terminal.end(), 0);
}

/// A paste by a terminal that does not say that it is one, of more than any buffer on the way holds.
#[test]
fn keys_that_come_by_the_ten_thousand_are_all_read() {
    let mut terminal = Terminal::start(&ANY, &[]);
    terminal.addresses();
    for _ in 0..2 {
        terminal.type_keys(&"j".repeat(64 << 10));
        terminal.type_keys("?");
        terminal.wait_for("freeze what is shown");
        terminal.type_keys("\u{1b}");
        terminal.wait("help closed", |text| !text.contains("freeze what is shown"));
    }
    terminal.type_keys(&"jk".repeat(32 << 10));
    terminal.type_keys("\u{3}");
    assert_eq!(terminal.end(), 0);
}

#[test]
fn a_terminal_that_goes_away_ends_it() {
    let mut terminal = Terminal::start(&["demo"], &[]);
    terminal.wait_for("LIVE");
    terminal.gone.store(true, Ordering::SeqCst);
    terminal.keys = Box::new(std::io::sink());
    terminal.master = None;
    terminal.end();
}

#[test]
fn a_taken_port_is_one_line_and_leaves_nothing_open() {
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port().to_string();
    for option in ["--grpc", "--http"] {
        let address = format!("127.0.0.1:{port}");
        let other = if option == "--grpc" { "--http" } else { "--grpc" };
        let mut terminal = Terminal::start(&[option, &address, other, "127.0.0.1:0"], &[]);
        let status = terminal.end();
        let text = terminal.wait_for(&port);
        assert_eq!(status, 2);
        assert!(
            text.contains(option) && !String::from_utf8_lossy(&terminal.raw.lock().unwrap()).contains('\u{1b}'),
            "{text}"
        );
    }
}

#[test]
fn without_a_terminal_it_says_so_quickly() {
    use std::process::{Command, Stdio};
    let begun = Instant::now();
    let output = Command::new(env!("CARGO_BIN_EXE_reqtop")).args(ANY).stdin(Stdio::null()).output().unwrap();
    assert!(begun.elapsed() < Duration::from_secs(10));
    assert_eq!(output.status.code(), Some(2));
    assert!(output.stdout.is_empty(), "{:?}", String::from_utf8_lossy(&output.stdout));
    assert_eq!(String::from_utf8_lossy(&output.stderr).lines().count(), 1);
}
