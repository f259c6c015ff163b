//! Faults known from the field of how the program is started: what the command line names, what is not there, where the
//! output goes. The ids name the cases.

mod common;

use std::fs::File;
use std::path::Path;
use std::process::{Output, Stdio};

use common::terminal::Terminal;

/// Runs it without a terminal, with these words.
fn run(words: &[&str]) -> Output {
    common::binary().args(words).stdin(Stdio::null()).output().unwrap()
}

/// The status, and what is said on standard error.
fn told(words: &[&str]) -> (Option<i32>, String) {
    let output = run(words);
    (output.status.code(), String::from_utf8(output.stderr).unwrap())
}

/// As scripts leave it that have nothing to name. A flag without a file is a slip.
#[test]
fn an_empty_variable_names_no_settings_file() {
    let folder = tempfile::tempdir().unwrap();
    let run = |words: &[&str], config: Option<&str>| {
        let mut command = common::binary();
        command.args(words).env_remove("REQTOP_CONFIG").env("XDG_CONFIG_HOME", folder.path());
        let output = command.envs(config.map(|path| ("REQTOP_CONFIG", path))).output().unwrap();
        (output.status.code(), String::from_utf8(output.stdout).unwrap(), String::from_utf8(output.stderr).unwrap())
    };
    for words in [&["config"][..], &["checks"], &["report", FIXTURE]] {
        let unset = run(words, None);
        assert_eq!(unset.0, Some(0), "{words:?}: {unset:?}");
        assert_eq!(run(words, Some("")), unset, "{words:?}");
    }
    assert_eq!(run(&["config", "--config="], Some("")).0, Some(2));
}

/// Half a help text is no help: a script that keeps it must know.
#[test]
fn what_cannot_be_printed_is_an_error_of_every_command() {
    let Ok(full) = File::options().write(true).open("/dev/full") else { return eprintln!("skipped: no /dev/full") };
    for words in [&["--help"][..], &["--version"], &["help", "report"], &["report", "--help"], &["keys"]] {
        let to_full = common::binary().args(words).stdout(full.try_clone().unwrap()).output().unwrap();
        let said = String::from_utf8(to_full.stderr).unwrap();
        assert_eq!(to_full.status.code(), Some(2), "{words:?}: {said}");
        assert!(said.contains("not whole") && said.lines().count() == 1, "{words:?}: {said}");
        assert_eq!(told(words), (Some(0), String::new()), "{words:?}");
    }
}

/// What is wrong is said once, in one line.
#[test]
fn where_there_is_no_screen_a_line_says_what_prints_without() {
    for words in [&["x.jsonl"][..], &["replay", "x.jsonl"], &["demo"], &["--grpc", "0", "--http", "0"]] {
        let (status, said) = told(words);
        assert!(status == Some(2) && said.lines().count() == 1, "{said}");
        assert_eq!(said.matches("without one").count(), 1, "{said}");
    }
}

#[test]
fn one_port_for_both_protocols_is_told_as_that() {
    for command in [&["report", "--listen"][..], &["check", "--listen", "--for", "1s"]] {
        let (status, said) = told(&[command, &["--grpc", "36001", "--http", "36001"]].concat());
        assert!(status == Some(2) && said.contains("--grpc and --http: both listen on port 36001"), "{said}");
        assert_eq!(said.lines().count(), 1, "{said}");
    }
}

const FIXTURE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/queue.traces.jsonl.gz");

/// A screen without anything on it tells nobody why.
#[test]
fn what_cannot_be_opened_is_refused_before_there_is_a_screen() {
    for words in [&["/none.jsonl"][..], &["replay", "/none.jsonl"], &["-f", "/"], &["/none.jsonl", "/nothing.jsonl"]] {
        let mut terminal = Terminal::start(words, &[]);
        assert_eq!(terminal.end(), 2, "{words:?}");
        terminal.wait_for("cannot be opened");
        assert!(!terminal.raw.lock().unwrap().contains(&0x1b), "{words:?}");
    }
}

#[test]
fn a_file_that_is_not_there_is_told_beside_one_that_is() {
    for words in [&[][..], &["replay", "--speed", "max"]] {
        let mut terminal = Terminal::start(&[words, &["/none.jsonl", FIXTURE]].concat(), &[]);
        terminal.wait("the reason in the last line", |text| {
            text.lines()
                .last()
                .is_some_and(|line| line.trim().starts_with("/none.jsonl: cannot be opened: No such file"))
        });
        terminal.type_keys("q");
        assert_eq!(terminal.end(), 0);
    }
}

#[test]
fn a_followed_file_may_come_later() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("later.jsonl");
    let mut terminal = Terminal::start(&["-f", path.to_str().unwrap()], &[]);
    terminal.wait_for("is not there yet");
    let output = run(&["export", FIXTURE]);
    std::fs::write(Path::new(&path), output.stdout).unwrap();
    terminal.wait_for("24 requests");
    terminal.type_keys("q");
    assert_eq!(terminal.end(), 0);
}

#[test]
fn a_dash_is_standard_output() {
    let folder = tempfile::tempdir().unwrap();
    let fixture = Path::new(env!("CARGO_MANIFEST_DIR")).join(FIXTURE);
    let asked = |words: &[&str]| {
        let mut command = common::binary();
        command.current_dir(&folder).args(words).arg(&fixture).stdin(Stdio::null()).output().unwrap()
    };
    let (dashed, plain) = (asked(&["report", "--json", "-o", "-"]), asked(&["report", "--json"]));
    assert!(dashed.status.success() && !plain.stdout.is_empty());
    assert_eq!(dashed.stdout, plain.stdout);
    assert_eq!(std::fs::read_dir(&folder).unwrap().count(), 0);
}
