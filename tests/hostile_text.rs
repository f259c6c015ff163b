//! What others send is text and nothing else: every control character, escape sequence, change of direction and piece of
//! markup, wherever a text can stand, through every output of the program and every screen.

mod common;

use std::collections::BTreeSet;
use std::path::PathBuf;

use base64::Engine as _;
use common::terminal::Terminal;
use common::{binary, inflated};
use serde_json::Value as Json;

/// What begins a line of our own in no output; where it does, a received line break got through.
const MARK: &str = "::error title=x::pwned";

/// Characters that act on a terminal, on the direction of text or on whoever reads lines or XML.
fn is_hostile(c: char) -> bool {
    matches!(c,
        '\0'..='\u{1f}' | '\u{7f}'..='\u{9f}' | '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}'
        | '\u{2066}'..='\u{2069}' | '\u{fff9}'..='\u{fffb}' | '\u{fffe}' | '\u{ffff}')
}

/// Pieces that each do harm somewhere.
fn pieces() -> Vec<String> {
    let mut pieces: Vec<String> = [
        format!("\n{MARK}"),
        format!("\r\n{MARK}"),
        format!("\r{MARK}"),
        format!("\u{2028}{MARK}"),
        format!("\u{85}{MARK}"),
        "\u{1b}[2J\u{1b}[31m".into(),
        "\u{1b}]0;title\u{7}".into(),
        "\u{1b}]52;c;cm0gLXJm\u{1b}\\".into(),
        "\u{1b}]8;;http://evil\u{1b}\\x\u{1b}]8;;\u{1b}\\".into(),
        "\u{1b}P+q544e\u{1b}\\\u{1b}_APC\u{1b}\\\u{1b}^PM\u{1b}\\\u{1b}c".into(),
        "\u{9b}31m\u{9d}0;t\u{9c}\u{90}q\u{9c}".into(),
        "\u{202e}\u{202a}\u{2066}\u{200f}\u{61c}".into(),
        "<script>]]><!--&lt;&#27;\"'".into(),
        "| a | `b` *c* _d_ [x](javascript:y) ![i](http://evil) # h".into(),
        "%0A::%25{}{0}%s%n$(reboot)\\".into(),
        "\u{fffe}\u{ffff}\u{feff}\u{fff9}".into(),
    ]
    .into();
    // Every one there is.
    pieces.push(('\0'..'\u{a0}').collect());
    pieces
}

/// Which texts of a capture are spoiled.
#[derive(Clone, Copy, PartialEq)]
enum Spoil {
    /// Ids of requests, sessions and workers, models, names of services: what is shown as it is.
    Names,
    /// Every value of an attribute or record, which makes unknown words of outcomes and reasons.
    Values,
    /// Keys of attributes, names of spans, scopes and events.
    Keys,
}

/// Spoils the texts of a JSON value, each with another piece.
fn spoil(value: &mut Json, key: &str, kind: Spoil, at: &mut usize, pieces: &[String]) {
    match value {
        Json::Object(fields) => {
            let under = fields.get("key").and_then(Json::as_str).unwrap_or(key).to_owned();
            for (name, value) in fields.iter_mut() {
                let name = if name == "stringValue" || name == "value" { under.clone() } else { name.clone() };
                spoil(value, &name, kind, at, pieces);
            }
        }
        Json::Array(list) => list.iter_mut().for_each(|value| spoil(value, key, kind, at, pieces)),
        Json::String(text) => {
            const PLAIN: [&str; 8] = [
                "traceId",
                "spanId",
                "parentSpanId",
                "startTimeUnixNano",
                "endTimeUnixNano",
                "timeUnixNano",
                "observedTimeUnixNano",
                "intValue",
            ];
            const NAMES: [&str; 14] = [
                "request_id",
                "dynamo.request.id",
                "dynamo.session.id",
                "session_id",
                "model",
                "service.name",
                "host.name",
                "worker_id",
                "dynamo.worker.id",
                "x_request_id",
                "phase",
                "queue.class",
                "rid",
                "message",
            ];
            const KEYS: [&str; 3] = ["key", "name", "traceState"];
            let meant = match kind {
                Spoil::Names => NAMES.contains(&key),
                Spoil::Values => {
                    !PLAIN.contains(&key) && !KEYS.contains(&key) && !["schema", "event_type"].contains(&key)
                }
                Spoil::Keys => KEYS.contains(&key),
            };
            // Alike where it was alike, so that ids still join.
            if meant {
                let piece = match kind {
                    Spoil::Names => text.bytes().map(usize::from).sum::<usize>() % pieces.len(),
                    Spoil::Values | Spoil::Keys => *at % pieces.len(),
                };
                *at += 1;
                text.push_str(&pieces[piece]);
            }
        }
        _ => {}
    }
}

/// Captures with spoiled texts.
fn spoiled() -> (tempfile::TempDir, Vec<PathBuf>) {
    let folder = tempfile::tempdir().unwrap();
    let pieces = pieces();
    let mut files = Vec::new();
    for (kind, name, clean) in [
        (Spoil::Names, "names", "evidence-disagg"),
        (Spoil::Values, "values", "evidence-abort"),
        (Spoil::Keys, "keys", "evidence-agg"),
    ] {
        for part in ["traces", "request_trace"] {
            let mut out = Vec::new();
            let mut at = 0;
            for line in inflated(&format!("{clean}.{part}.jsonl.gz")).split(|byte| *byte == b'\n') {
                let Ok(mut value) = serde_json::from_slice::<Json>(line) else { continue };
                spoil(&mut value, "", kind, &mut at, &pieces);
                out.extend(value.to_string().into_bytes());
                out.push(b'\n');
            }
            assert!(!out.is_empty());
            // The name of a file is somebody's text, too.
            let path = folder.path().join(format!("{name}.{part}\u{1b}[31m\n{MARK}.jsonl"));
            std::fs::write(&path, out).unwrap();
            files.push(path);
        }
    }
    // What cannot be read is told with what was found there.
    let bad = folder.path().join("bad\u{1b}]0;t\u{7}.jsonl");
    let lines = pieces.iter().map(|piece| format!("{{\"resourceSpans\":[{{\"{piece}\":}}]}}\n{piece}"));
    std::fs::write(&bad, lines.collect::<Vec<_>>().join("\n")).unwrap();
    files.push(bad);
    (folder, files)
}

/// What a command printed, on standard output and on standard error.
fn run(files: &[PathBuf], args: &[&str]) -> (String, String) {
    let output = binary().args(args).args(files).output().unwrap();
    // An export that lacks what could not be read ends with 2.
    let expected = if args.contains(&"export") { 2..=2 } else { 0..=1 };
    let ended = output.status.code().is_some_and(|status| expected.contains(&status));
    assert!(ended, "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
    (String::from_utf8(output.stdout).unwrap(), String::from_utf8(output.stderr).unwrap())
}

/// No line of an output was begun by what was received, and nothing in it acts.
#[track_caller]
fn harmless(what: &str, text: &str) {
    for line in text.split('\n') {
        assert!(!line.contains(is_hostile), "{what}: {line:?}");
        assert!(!line.trim_start().starts_with(MARK), "{what}: {line:?}");
    }
}

#[test]
fn text_and_json_are_lines_of_our_own() {
    let (_folder, files) = spoiled();
    for args in [
        &["report"][..],
        &["report", "--json"],
        &["report", "--markdown"],
        &["export"],
        &["check"],
        &["check", "--json"],
        &["check", "--format", "junit"],
        &["check", "--format", "github"],
    ] {
        let (out, err) = run(&files, args);
        assert!(out.len() > 200, "{args:?} says nothing");
        harmless(&format!("{args:?}"), &out);
        harmless(&format!("{args:?} on standard error"), &err);
    }
    // Whatever JSON leaves as it is, an escape stands for; it still says what was received.
    let (out, _) = run(&files[..1], &["report", "--json"]);
    assert!(serde_json::from_str::<Json>(&out).is_ok());
}

#[test]
fn markdown_is_no_markup_of_theirs() {
    let (_folder, files) = spoiled();
    let (out, _) = run(&files, &["report", "--markdown"]);
    let bars = |line: &str| line.replace("\\\\", "").replace("\\|", "").matches('|').count();
    let mut columns = None;
    for line in out.lines() {
        columns = line.starts_with('|').then(|| columns.unwrap_or(bars(line)));
        if let Some(columns) = columns {
            assert_eq!(bars(line), columns, "{line}");
        }
        let plain =
            line.replace("\\\\", "").replace("\\[", "").replace("\\`", "").replace("\\<", "").replace("\\*", "");
        for markup in ["[x](", "[i](", "<script", "`b`", "*c*", "<!--"] {
            assert!(!plain.contains(markup), "{markup} in {line}");
        }
    }
}

#[test]
fn xml_is_well_formed_and_of_allowed_characters() {
    let (_folder, files) = spoiled();
    let (out, _) = run(&files, &["check", "--format", "junit", "--expect", "\"\u{1b}<&\">=1"]);
    let allowed = |c: char| matches!(c, '\n' | '\t' | ' '..='\u{d7ff}' | '\u{e000}'..='\u{fffd}' | '\u{10000}'..);
    assert!(out.chars().all(allowed), "{:?}", out.chars().find(|c| !allowed(*c)));
    let mut open: Vec<&str> = Vec::new();
    let mut rest = out.strip_prefix("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n").unwrap();
    while let Some(at) = rest.find('<') {
        let text = &rest[..at];
        assert!(!text.contains("]]>"), "{text}");
        let end = at + rest[at..].find('>').unwrap();
        let tag = &rest[at + 1..end];
        match tag.strip_prefix('/') {
            Some(name) => assert_eq!(open.pop(), Some(name), "{tag}"),
            None => {
                let name = tag.split(' ').next().unwrap();
                assert!(["testsuite", "testcase", "failure", "skipped"].contains(&name.trim_end_matches('/')), "{tag}");
                assert_eq!(tag.matches('"').count() % 2, 0, "{tag}");
                if !tag.ends_with('/') {
                    open.push(name);
                }
            }
        }
        rest = &rest[end + 1..];
    }
    assert!(open.is_empty(), "{open:?}");
}

#[test]
fn annotations_are_our_own_a_line_each() {
    let (_folder, files) = spoiled();
    let (out, _) = run(&files, &["check", "--format", "github"]);
    let mut lines = 0;
    for line in out.lines() {
        let (head, _) = line.split_once("::").and_then(|(_, rest)| rest.split_once("::")).unwrap();
        let title = head.strip_prefix("error title=").or_else(|| head.strip_prefix("warning title="));
        let title = title.or_else(|| head.strip_prefix("notice title=")).unwrap_or_else(|| panic!("{line}"));
        assert!(title.chars().all(|c| c.is_ascii_lowercase() || ".- ".contains(c)), "{line}");
        lines += 1;
    }
    assert!(lines > 0);
}

/// The kinds of escape sequences in what was written to a terminal, and the characters that stand for themselves.
fn sequences(raw: &str) -> (BTreeSet<String>, Vec<char>, Vec<String>) {
    let (mut kinds, mut plain, mut copied) = (BTreeSet::new(), Vec::new(), Vec::new());
    let mut rest = raw.chars();
    while let Some(c) = rest.next() {
        if c != '\u{1b}' {
            plain.push(c);
            continue;
        }
        match rest.next() {
            Some('[') => {
                let mut kind = String::from("CSI ");
                for c in rest.by_ref() {
                    if !c.is_ascii_digit() && c != ';' {
                        kind.push(c);
                    }
                    if ('@'..='~').contains(&c) {
                        break;
                    }
                }
                kinds.insert(kind);
            }
            Some(']') => {
                let text: String = rest.by_ref().take_while(|c| *c != '\u{7}').collect();
                kinds.insert(format!("OSC {}", text.split(';').next().unwrap_or_default()));
                copied.push(text);
            }
            other => {
                kinds.insert(format!("ESC {other:?}"));
            }
        }
    }
    (kinds, plain, copied)
}

/// Walks through every screen; gives what was written to the terminal.
fn walk(files: &[PathBuf]) -> String {
    let args: Vec<&str> = files.iter().map(|file| file.to_str().unwrap()).collect();
    let mut terminal = Terminal::start(&args, &[]);
    terminal.wait_for("requests");
    terminal.wait("the files to be read", |text| !text.contains("reading ") && !text.contains('⇣'));
    let keys = [
        // The panes, each zoomed and walked through, and what stands on a bar made a filter.
        "1", "z", "j", "j", "l", "\u{1b}", "2", "z", "j", "l", "\u{1b}", "3", "z", "j", "\u{1b}", "4", "z", "j",
        "\u{1b}", "5", "w", "j", "\u{1b}", "a", "j", "j", "y", "\u{1b}", "c", "j", "\r", "\u{1b}", "\u{1b}", "!", "j",
        "\u{1b}", "?", "\u{1b}", "/", "session:", "\t", "\t", "\u{1b}", "/", "model", "\t", "\u{1b}",
        // Requests, their spans and everything about them.
        "5", "g", "\r", "j", "j", "j", "\t", "j", "\t", "j", "\t", "t", "\u{1b}", "v", "G", "\u{1b}", "c", "\u{1b}",
        "y", "n", "y", "n", "\t", "j", "v", "y", "\u{1b}", "\u{1b}", "G", "\r", "j", "v", "\u{1b}", "\u{1b}", "k",
        "\r", "t", "y", "\u{1b}", "\u{1b}",
    ];
    for key in keys {
        terminal.type_keys(key);
        terminal.settle();
    }
    let raw = String::from_utf8(terminal.raw.lock().unwrap().clone()).unwrap();
    terminal.type_keys("q");
    raw
}

#[test]
fn every_screen_draws_and_obeys_nothing() {
    let (_folder, files) = spoiled();
    let clean: Vec<PathBuf> = ["disagg", "abort", "agg"]
        .into_iter()
        .flat_map(|name| {
            ["traces", "request_trace"].map(|part| common::fixture(&format!("evidence-{name}.{part}.jsonl.gz")))
        })
        .collect();
    let (usual, ..) = sequences(&walk(&clean));
    let (kinds, plain, copied) = sequences(&walk(&files));
    let new: Vec<&String> = kinds.difference(&usual).collect();
    assert!(new.is_empty(), "sequences that clean files never cause: {new:?}");
    let acting: Vec<char> = plain.into_iter().filter(|c| is_hostile(*c) && !matches!(c, '\r' | '\n')).collect();
    assert!(acting.is_empty(), "{acting:?}");
    for copy in copied {
        let text = copy.strip_prefix("52;c;").unwrap_or_else(|| panic!("{copy:?}"));
        let text = base64::engine::general_purpose::STANDARD.decode(text).unwrap();
        let text = String::from_utf8(text).unwrap();
        assert!(!text.contains(|c| is_hostile(c) && c != '\n' && c != '\t'), "copied: {text:?}");
    }
}

#[test]
fn names_of_files_and_words_of_the_command_line_stay_within_their_lines() {
    let folder = tempfile::tempdir().unwrap();
    let themes = folder.path().join("reqtop/themes");
    std::fs::create_dir_all(&themes).unwrap();
    let word = format!("w\u{1b}[31m\n{MARK}");
    std::fs::write(themes.join(format!("{word}.toml")), format!("about = {word:?}\nx = 1\n")).unwrap();
    for (words, variable, where_it_is) in [
        (vec!["themes".to_owned()], "", "stdout"),
        (vec![format!("--window={word}")], "", "stderr"),
        (vec![format!("--{word}")], "", "stderr"),
        (vec![word.clone(), word.clone(), "--from".into(), word.clone()], "", "stderr"),
        (vec!["report".into(), "x".into()], word.as_str(), "stderr"),
    ] {
        let mut command = binary();
        command.args(&words).env("XDG_CONFIG_HOME", folder.path());
        if !variable.is_empty() {
            command.env("REQTOP_MAX_MEMORY", variable);
        }
        let output = command.output().unwrap();
        let said = if where_it_is == "stdout" { output.stdout } else { output.stderr };
        let said = String::from_utf8(said).unwrap();
        assert!(said.contains("[31m") || words.len() > 3, "{words:?}: {said}");
        assert!(!said.chars().any(|c| c != '\n' && is_hostile(c)), "{words:?}: {said:?}");
        assert!(!said.lines().any(|line| line.starts_with(MARK)), "{words:?}: {said:?}");
    }
}
