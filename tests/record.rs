//! Recordings, from the command line to the file and back.

mod common;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use common::{Listening, binary, count, report, signal};
use serde_json::Value as Json;

/// A command that listens and records.
fn recording(command: &[&str], path: &Path, more: &[&str]) -> Listening {
    let path = path.to_str().unwrap();
    Listening::start(&[command, &["--record", path], more].concat())
}

/// Sends a simulated cluster's spans and logs; tells how many exports there were.
fn send(listening: &Listening, seed: u64) -> u64 {
    let output = binary()
        .args(["demo", "--export", &format!("http://{}", listening.grpc), "--duration", "2s", "--rate", "30"])
        .args(["--seed", &seed.to_string()])
        .output()
        .unwrap();
    let said = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success(), "{said}");
    let word = said.split(" in ").nth(1).unwrap();
    word.split(' ').next().unwrap().parse().unwrap()
}

/// A report without what only a listener or only a reader has.
fn bare(mut report: Json) -> Json {
    for key in ["files", "recording"] {
        report["input"].as_object_mut().unwrap().remove(key);
    }
    report
}

#[test]
fn a_recording_reports_as_the_original_did_in_every_form() {
    let folder = tempfile::tempdir().unwrap();
    for (seed, name) in [(7, "run.jsonl"), (8, "run.jsonl.gz"), (9, "run.jsonl.zst")] {
        let path = folder.path().join(name);
        let listening = recording(&["report", "--json"], &path, &[]);
        let exports = send(&listening, seed);
        let output = listening.end();
        let live: Json = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!(count(&live, &["input", "recording", "requests"]), exports);
        assert_eq!(count(&live, &["input", "recording", "lost"]), 0);
        let said = String::from_utf8(output.stderr).unwrap();
        assert!(said.contains(&format!("recorded {exports} exports")), "{said}");
        assert!(count(&live, &["requests", "total"]) > 20);
        assert_eq!(bare(report(&[&path])), bare(live), "{name}");
    }
}

#[test]
fn checks_and_rotation_go_with_a_recording() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("run.jsonl");
    let listening = recording(&["check", "--json"], &path, &["--record-max", "200k", "--record-keep", "100"]);
    send(&listening, 3);
    let live = listening.json();
    let mut files: Vec<PathBuf> = fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    assert!(files.len() > 3, "{files:?}");
    let read = binary().args(["check", "--json"]).args(&files).output().unwrap();
    assert_eq!(serde_json::from_slice::<Json>(&read.stdout).unwrap()["checks"], live["checks"]);
}

/// Kills a recording command while data pours in; gives how many exports were recorded before it was killed, at least.
fn killed(path: &Path) -> u64 {
    let mut listening = recording(&["report", "--json"], path, &[]);
    let mut sender = Command::new(env!("CARGO_BIN_EXE_reqtop"))
        .args(["demo", "--export", &format!("http://{}", listening.grpc), "--rate", "300", "--seed", "5"])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let until = Instant::now() + Duration::from_secs(40);
    while fs::metadata(path).map_or(0, |file| file.len()) < 100_000 {
        assert!(Instant::now() < until, "nothing is recorded");
        std::thread::yield_now();
    }
    signal(listening.child.id(), "KILL");
    listening.child.wait().unwrap();
    sender.kill().unwrap();
    sender.wait().unwrap();
    fs::metadata(path).unwrap().len()
}

#[test]
fn a_kill_costs_at_most_the_torn_end_and_the_next_recording_goes_on_behind_it() {
    let folder = tempfile::tempdir().unwrap();
    for name in ["run.jsonl", "run.jsonl.gz", "run.jsonl.zst"] {
        let path = folder.path().join(name);
        let size = killed(&path);
        let first = report(&[&path]);
        // The torn line, and where lines are packed the torn pack.
        let torn_at_most = if name.ends_with(".jsonl") { 1 } else { 2 };
        assert!(count(&first, &["input", "bad_lines"]) <= torn_at_most, "{:?}", first["input"]["problems"]);
        assert!(count(&first, &["spans", "total"]) > 20);
        // A kill in the middle of writing: the end is torn for certain.
        let file = fs::OpenOptions::new().write(true).open(&path).unwrap();
        file.set_len(size - 7).unwrap();
        drop(file);
        let torn = report(&[&path]);
        assert!((1..=torn_at_most).contains(&count(&torn, &["input", "bad_lines"])), "{name}");
        let listening = recording(&["report", "--json"], &path, &[]);
        assert!(listening.before.contains("were cut off"), "{}", listening.before);
        let exports = send(&listening, 6);
        let said = String::from_utf8(listening.end().stderr).unwrap();
        assert!(said.contains(&format!("recorded {exports} exports")), "{said}");
        let whole = report(&[&path]);
        assert_eq!(count(&whole, &["input", "bad_lines"]), 0, "{:?}", whole["input"]["problems"]);
        assert!(count(&whole, &["spans", "received"]) > count(&torn, &["spans", "received"]));
    }
}

#[test]
fn what_cannot_be_recorded_to_is_said_before_anything_starts() {
    let folder = tempfile::tempdir().unwrap();
    let mine = folder.path().join("notes.jsonl");
    fs::write(&mine, "{\"mine\":1}\n").unwrap();
    let refused = |args: &[&str]| {
        let output = binary().args(args).output().unwrap();
        assert_eq!(output.status.code(), Some(2));
        String::from_utf8(output.stderr).unwrap()
    };
    let mine = mine.to_str().unwrap();
    let said = refused(&["report", "--listen", "--grpc", "127.0.0.1:0", "--http", "127.0.0.1:0", "--record", mine]);
    assert!(said.contains("no recording of reqtop"), "{said}");
    assert!(refused(&["report", mine, "--record", "x.jsonl"]).contains("add --listen"));
    assert_eq!(fs::read_to_string(mine).unwrap(), "{\"mine\":1}\n");
}

/// Whoever begins to record beside a busy cluster misses what was sent before: so it is read, and nothing is violated of it.
#[test]
fn a_recording_tells_what_began_before_it() {
    let folder = tempfile::tempdir().unwrap();
    let exports = String::from_utf8(common::inflated("evidence-disagg.traces.jsonl.gz")).unwrap();
    // The exports of the frontend's second half and of all workers after that; what came before them is as if unsent.
    let late: Vec<&str> = exports.lines().skip(7).collect();
    let starts = late.iter().flat_map(|line| common::spans(line.as_bytes())).filter_map(|span| {
        let is_root = span["name"] == "request.lifecycle";
        is_root.then(|| span["startTimeUnixNano"].as_str().unwrap().parse::<u64>().unwrap())
    });
    let mut starts: Vec<u64> = starts.collect();
    starts.sort_unstable();
    let asked = |began_ns: u64| {
        let stamped = |body: &str, at_ns: u64| {
            format!("{},\"{}\":\"{at_ns}\"}}\n", body.strip_suffix('}').unwrap(), reqtop::tap::record::ARRIVED)
        };
        let last_ns = starts.last().unwrap() + 5_000_000_000;
        let mut text = stamped(r#"{"resourceSpans":[]}"#, began_ns);
        late.iter().for_each(|line| text += &stamped(line, last_ns));
        text += &stamped(r#"{"resourceSpans":[]}"#, last_ns + 60_000_000_000);
        // Recorded to again, later.
        text += &stamped(r#"{"resourceSpans":[]}"#, last_ns + 90_000_000_000);
        text += &stamped(late[0], last_ns + 91_000_000_000);
        let path = folder.path().join("run.jsonl");
        fs::write(&path, text).unwrap();
        let output = binary().args(["check", "--json"]).arg(&path).output().unwrap();
        let said: Json = serde_json::from_slice(&output.stdout).unwrap();
        let witness =
            said["checks"].as_array().unwrap().iter().find(|check| check["id"] == "admission.witness").unwrap();
        (witness["violated"].as_u64().unwrap(), said["incomplete"].to_string())
    };
    let (violated, told) = asked(starts[0] - 1_000_000);
    assert!(violated > 5 && told == "[]", "all began while it listened: {violated} {told}");
    let (violated, told) = asked(starts.last().unwrap() + 1_000_000_000);
    assert!(violated == 0 && told.contains("began before anybody listened"), "{violated} {told}");
}

/// Keeps these spans of an export; tells how many there are.
fn keep(export: &mut Json, is_kept: impl Fn(&Json) -> bool) -> usize {
    let mut kept = 0;
    for resource in export["resourceSpans"].as_array_mut().unwrap() {
        for scope in resource["scopeSpans"].as_array_mut().unwrap() {
            let spans = scope["spans"].as_array_mut().unwrap();
            spans.retain(&is_kept);
            kept += spans.len();
        }
    }
    kept
}

/// What was left out of what came, and what was turned away at the door, is in the recording: what its original knew to be
/// lost, it knows, too.
#[test]
fn a_recording_knows_what_was_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("run.jsonl");
    let exports = String::from_utf8(common::inflated("evidence-agg.traces.jsonl.gz")).unwrap();
    let selections = exports.lines().flat_map(|line| common::spans(line.as_bytes()));
    let selection = selections.into_iter().find(|span| span["name"] == "router.selection").unwrap();
    let id = format!("\"spanId\":\"{}\"", selection["spanId"].as_str().unwrap());
    let post = |listening: &Listening, body: &str| {
        common::http(listening.http, "POST /v1/traces HTTP/1.1\nContent-Type: application/json", body.as_bytes()).status
    };
    // One span has no id, or one export is longer than it may be, or is torn.
    for (spoilt, told, reported) in [
        ("span", "1 spans were rejected", "/spans/rejected"),
        ("long", "of the exports until then 1 could not be read", "/input/bad_lines"),
        ("torn", "of the exports until then 1 could not be read", "/input/bad_lines"),
    ] {
        let listening = recording(&["report", "--json"], &path, &["--max-message", "4mb"]);
        for line in exports.lines() {
            // The span by itself, and what came with it.
            let (mut alone, mut rest): (Json, Json) =
                (serde_json::from_str(line).unwrap(), serde_json::from_str(line).unwrap());
            let is_it = |span: &Json| span["spanId"] == selection["spanId"];
            let count = keep(&mut alone, is_it);
            keep(&mut rest, |span| !is_it(span));
            assert_eq!(post(&listening, &rest.to_string()), 200);
            if count > 0 {
                let whole = alone.to_string();
                let (body, status) = match spoilt {
                    "span" => (line.replacen(&id, "\"spanId\":\"0000000000000000\"", 1), 200),
                    "long" => (whole + &" ".repeat(4 << 20), 413),
                    _ => (whole[..whole.len() / 2].to_owned(), 400),
                };
                assert_eq!(post(&listening, &body), status, "{spoilt}");
            }
        }
        let live = listening.json();
        assert_eq!(live["spans"]["received"], report(&[&path])["spans"]["received"]);
        // A minute later, what is missing then would be missing for good.
        let text = fs::read_to_string(&path).unwrap();
        let last = text.lines().last().unwrap();
        let at_ns: u64 = last.split('"').rev().nth(1).unwrap().parse().unwrap();
        let later = last.replace(&at_ns.to_string(), &(at_ns + 60_000_000_000).to_string());
        let text = text.replace(last, &later);
        let check = |text: &str| -> (u64, Json) {
            fs::write(&path, text).unwrap();
            let output = binary().args(["check", "--json"]).arg(&path).output().unwrap();
            let said: Json = serde_json::from_slice(&output.stdout).unwrap();
            let violated = said["checks"].as_array().unwrap().iter().map(|check| check["violated"].as_u64().unwrap());
            (violated.sum(), said)
        };
        let (violated, said) = check(&text);
        assert!(
            violated == 0 && said["incomplete"].to_string().contains(told),
            "{spoilt}: {violated} {}",
            said["incomplete"]
        );
        assert_eq!(report(&[&path]).pointer(reported), Some(&1.into()), "{spoilt}");
        let forgetful: String =
            text.lines().filter(|line| !line.contains("\"exports\":1")).fold(String::new(), |all, line| {
                let kept = line.split(",\"reqtopLeftOut\":").next().unwrap();
                let stamp = line.rsplit_once(",\"reqtopArrived").unwrap().1;
                let is_cut = kept.len() < line.len();
                all + &if is_cut { format!("{kept},\"reqtopArrived{stamp}\n") } else { format!("{line}\n") }
            });
        assert!(forgetful.len() < text.len() && check(&forgetful).0 > 0, "{spoilt}: nothing was lost by it");
        fs::remove_file(&path).unwrap();
    }
}

/// Of a recording in several files the last one alone knows that it is not the first: what began in the others is unknown
/// to it. Together they are what one file would be.
#[test]
fn a_file_of_several_knows_that_others_came_before_it() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("run.jsonl");
    let listening = recording(&["report", "--json"], &path, &["--record-max", "100k", "--record-keep", "100"]);
    send(&listening, 11);
    listening.json();
    let mut files: Vec<PathBuf> = fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    assert!(files.len() > 5, "{files:?}");
    // A minute later, what is missing then would be missing for good.
    let whole = fs::read_to_string(&path).unwrap();
    let last = whole.lines().last().unwrap();
    let at_ns: u64 = last.split('"').rev().nth(1).unwrap().parse().unwrap();
    fs::write(&path, whole.replace(last, &last.replace(&at_ns.to_string(), &(at_ns + 60_000_000_000).to_string())))
        .unwrap();
    let check = |files: &[PathBuf]| {
        let output = binary().args(["check", "--json"]).args(files).output().unwrap();
        let said: Json = serde_json::from_slice(&output.stdout).unwrap();
        let violated = said["checks"].as_array().unwrap().iter().map(|check| check["violated"].as_u64().unwrap());
        (violated.sum::<u64>(), said["incomplete"].to_string())
    };
    assert_eq!(check(&files), (0, "[]".into()));
    let rest = &files[files.len() - 3..];
    let (violated, told) = check(rest);
    assert!(violated == 0 && told.contains("began before anybody listened"), "{violated} {told}");
    // The word that it is not the first is what makes the difference.
    let first = fs::read_to_string(&rest[0]).unwrap();
    let (word, lines) = first.split_once('\n').unwrap();
    assert!(word.contains("\"continues\":true"), "{word}");
    fs::write(&rest[0], lines).unwrap();
    assert!(check(rest).0 > 0);
}

/// A window ends when the recording did: read as a file it is what its replay and its own report had.
#[test]
fn a_window_ends_with_the_recording() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("run.jsonl");
    let exports = String::from_utf8(common::inflated("evidence-agg.traces.jsonl.gz")).unwrap();
    let ends = exports.lines().flat_map(|line| common::spans(line.as_bytes()));
    let last_ns = ends.map(|span| span["endTimeUnixNano"].as_str().unwrap().parse::<u64>().unwrap()).max().unwrap();
    let stamped = |body: &str, at_ns: u64| {
        format!("{},\"{}\":\"{at_ns}\"}}\n", body.strip_suffix('}').unwrap(), reqtop::tap::record::ARRIVED)
    };
    let second = 1_000_000_000;
    let found = |silence_s: u64| {
        let mut text: String = exports.lines().map(|line| stamped(line, last_ns + second)).collect();
        text += &stamped(r#"{"resourceSpans":[]}"#, last_ns + silence_s * second);
        fs::write(&path, text).unwrap();
        let output = binary().args(["report", "--json", "--window", "10s"]).arg(&path).output().unwrap();
        let report: Json = serde_json::from_slice(&output.stdout).unwrap();
        (count(&report, &["requests", "total"]), count(&report, &["window", "until_ns"]))
    };
    let (soon, until_ns) = found(1);
    assert_eq!(until_ns, last_ns + second);
    let (late, until_ns) = found(60);
    assert_eq!(until_ns, last_ns + 60 * second);
    assert!(soon > 50 && late < 5, "{soon} {late}");
}
