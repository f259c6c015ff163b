//! A trace store behind a socket, read as people read it: on the screen and by commands, against the same spans in a file.

mod common;

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;

use common::terminal::Terminal;
use common::{binary, report};
use reqtop::source::intake::Signal;
use reqtop::source::otlp::json::{Shape, transcode};
use serde_json::{Value as Json, json};

const CAPTURE: &str = "evidence-agg.traces.jsonl.gz";

/// A trace: its first start, seconds since the epoch, and all of it as an export request in protobuf.
struct Trace {
    start_s: u64,
    bytes: Vec<u8>,
}

/// What a store would have kept of a capture, by trace id.
fn kept() -> BTreeMap<String, Trace> {
    let mut resources: BTreeMap<String, (u64, Vec<Json>)> = BTreeMap::new();
    for line in common::inflated(CAPTURE).split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
        let export: Json = serde_json::from_slice(line).unwrap();
        for resource in export["resourceSpans"].as_array().unwrap() {
            for scope in resource["scopeSpans"].as_array().unwrap() {
                for span in scope["spans"].as_array().unwrap() {
                    let start_ns: u64 = span["startTimeUnixNano"].as_str().unwrap().parse().unwrap();
                    let of =
                        resources.entry(span["traceId"].as_str().unwrap().to_owned()).or_insert((u64::MAX, vec![]));
                    of.0 = of.0.min(start_ns / 1_000_000_000);
                    let scope = json!({"scope": scope["scope"], "spans": [span]});
                    of.1.push(json!({"resource": resource["resource"], "scopeSpans": [scope]}));
                }
            }
        }
    }
    let whole = |(id, (start_s, resources)): (String, (u64, Vec<Json>))| {
        let mut bytes = Vec::new();
        let request = json!({"resourceSpans": resources}).to_string();
        transcode(Shape::Request(Signal::Traces), request.as_bytes(), &mut bytes).unwrap();
        (id, Trace { start_s, bytes })
    };
    resources.into_iter().map(whole).collect()
}

/// Tempo's answer to a path with its query.
fn answer(kept: &BTreeMap<String, Trace>, target: &str) -> (u16, &'static str, Vec<u8>) {
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    let parameter =
        |key: &str| query.split('&').find_map(|pair| pair.strip_prefix(key)?.strip_prefix('=')?.parse().ok());
    if path == "/api/search" {
        let (start, end): (u64, u64) = (parameter("start").unwrap_or(0), parameter("end").unwrap_or(u64::MAX));
        let within = kept.iter().filter(|(_, trace)| (start..=end).contains(&trace.start_s));
        let traces: Vec<Json> =
            within.take(parameter("limit").unwrap() as usize).map(|(id, _)| json!({"traceID": id})).collect();
        return (200, "application/json", json!({"traces": traces}).to_string().into_bytes());
    }
    match path.strip_prefix("/api/v2/traces/").and_then(|id| kept.get(id)) {
        Some(trace) => {
            // The trace as field 1.
            let mut wrapped = vec![10];
            let mut length = trace.bytes.len();
            while length > 0x7f {
                wrapped.push(length as u8 | 0x80);
                length >>= 7;
            }
            wrapped.push(length as u8);
            wrapped.extend(&trace.bytes);
            (200, "application/protobuf", wrapped)
        }
        None => (404, "text/plain", b"not found".to_vec()),
    }
}

fn serve(stream: TcpStream, kept: &BTreeMap<String, Trace>) -> Option<()> {
    let mut reader = BufReader::new(stream);
    loop {
        let mut first = String::new();
        reader.read_line(&mut first).ok().filter(|read| *read > 0)?;
        let mut line = String::from("…");
        while !line.trim().is_empty() {
            line.clear();
            reader.read_line(&mut line).ok().filter(|read| *read > 0)?;
        }
        let (status, kind, body) = answer(kept, first.split(' ').nth(1)?);
        let head = format!("HTTP/1.1 {status} x\r\ncontent-type: {kind}\r\ncontent-length: {}\r\n\r\n", body.len());
        reader.get_mut().write_all(&[head.as_bytes(), &body].concat()).ok()?;
    }
}

/// Starts a Tempo that has this.
fn tempo(kept: Arc<BTreeMap<String, Trace>>) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            let kept = Arc::clone(&kept);
            std::thread::spawn(move || serve(stream, &kept));
        }
    });
    address
}

/// What the checks say of an input.
fn checks(input: &[&str]) -> Json {
    let output = binary().args(["check", "--json"]).args(input).output().unwrap();
    serde_json::from_slice::<Json>(&output.stdout).unwrap()["checks"].take()
}

/// All on one page, and on pages of some.
#[test]
fn a_store_tells_what_the_file_does_on_the_screen_and_in_reports() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("run.jsonl");
    std::fs::write(&file, common::inflated(CAPTURE)).unwrap();
    let of_file = report(&[&file]);
    let kept = Arc::new(kept());
    assert!(kept.len() > 70);
    let moment = |s: u64| jiff::Timestamp::from_second(s as i64).unwrap().to_string();
    let first = kept.values().map(|trace| trace.start_s).min().unwrap();
    let last = kept.values().map(|trace| trace.start_s).max().unwrap();
    let url = format!("http://{}", tempo(Arc::clone(&kept)));
    for (since, until) in [(first, last + 1), (first - 600, last + 3600)] {
        let (since, until) = (moment(since), moment(until));
        let range = ["--from", "tempo", &url, "--since", &since, "--until", &until];
        let output = binary().args(["report", "--json"]).args(range).output().unwrap();
        let of_store: Json = serde_json::from_slice(&output.stdout).unwrap();
        for section in ["spans", "requests", "queue", "selection", "dispatch", "streaming", "latency", "workers"] {
            assert_eq!(of_store[section], of_file[section], "{section}");
        }
        assert_eq!(checks(&range), checks(&[file.to_str().unwrap()]));
        let mut terminal = Terminal::start(&range, &[]);
        terminal.wait_for("ENDED");
        let screen = terminal.wait_for(&format!("{} requests", of_file["requests"]["total"]));
        assert!(!screen.contains("reading Tempo"), "{screen}");
        terminal.type_keys("q");
        assert_eq!(terminal.end(), 0);
    }
}
