//! The real OpenTelemetry Collector: as sender in every protocol and compression, patient while reqtop cannot take more,
//! as writer of files that reqtop opens, as reader of what reqtop exports, and as the plane of a large cluster.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use reqtop::source::intake::{Bounds, Received, channel};
use reqtop::source::notices::{Notice, Notices};
use reqtop::source::otlp::{Address, Endpoint, Settings};
use serde_json::Value as Json;
use tempfile::TempDir;

use crate::common::own::free;
use crate::common::{Listening, binary, http, inflated};
use crate::spans::{self, Spans, assert_same, of_lines};
use crate::tools::{self, Running, asked, had, here, wait_until};

/// The captures that go through the Collector, and spans of odd values.
const CAPTURES: [&str; 2] = ["evidence-disagg.traces.jsonl.gz", "abort.traces.jsonl.gz"];

/// What is sent: export requests in OTLP JSON.
fn requests() -> Vec<Vec<u8>> {
    let mut requests: Vec<Vec<u8>> = Vec::new();
    for capture in CAPTURES {
        requests
            .extend(inflated(capture).split(|byte| *byte == b'\n').filter(|line| !line.is_empty()).map(<[u8]>::to_vec));
    }
    requests.push(spans::odd().to_string().into_bytes());
    requests
}

/// What arrives when nobody is in between.
pub fn expected() -> Spans {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("sent.jsonl");
    std::fs::write(&path, requests().join(&b'\n')).unwrap();
    exported(&[path])
}

/// `reqtop export` of files.
fn exported(files: &[PathBuf]) -> Spans {
    let output = binary().arg("export").args(files).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    of_lines(&output.stdout)
}

/// Posts everything to an OTLP/HTTP endpoint.
pub fn send(address: SocketAddr) {
    for request in requests() {
        let answer = http(address, "POST /v1/traces HTTP/1.1\nContent-Type: application/json", &request);
        assert_eq!(answer.status, 200, "{}", answer.text());
    }
}

/// What the demo says in the end: how many requests it began, spans by name.
pub fn ledger(demo: &Output) -> Json {
    let said = String::from_utf8_lossy(&demo.stdout);
    let ledger = said.lines().rev().find(|line| line.starts_with('{'));
    ledger.and_then(|line| serde_json::from_str(line).ok()).unwrap_or_else(|| panic!("no ledger: {demo:?}"))
}

/// Starts the Collector with a configuration of this folder.
fn start(otelcol: &Path, config: &str, environment: &[(&str, String)], folder: &Path, listens: SocketAddr) -> Running {
    let mut command = Command::new(otelcol);
    command.arg("--config").arg(here("collector").join(config));
    command.env_clear().envs(environment.iter().map(|(key, value)| (*key, value.as_str())));
    Running::start("otelcol", &mut command, folder, listens)
}

fn folder() -> TempDir {
    tempfile::tempdir().unwrap()
}

#[test]
fn it_sends_in_every_protocol_and_compression() {
    const TEST: &str = "collector: sender";
    if !asked() {
        return;
    }
    let Some(otelcol) = had(TEST, tools::collector()) else { return };
    let expected = expected();
    let (grpc, http) = (
        ["GRPC_NONE", "GRPC_GZIP", "GRPC_ZSTD"],
        ["HTTP_NONE", "HTTP_GZIP", "HTTP_ZSTD", "HTTP_DEFLATE", "HTTP_JSON", "HTTP_JSON_GZIP"],
    );
    let [in_grpc, in_http] = free();
    let mut environment = vec![("OTLP_GRPC", in_grpc.to_string()), ("OTLP_HTTP", in_http.to_string())];
    let mut listening = Vec::new();
    for name in grpc.into_iter().chain(http) {
        let one = Listening::export();
        environment.push((name, if name.starts_with("GRPC") { one.grpc } else { one.http }.to_string()));
        listening.push((name, one));
    }
    let folder = folder();
    let otelcol = start(&otelcol, "send.yaml", &environment, folder.path(), in_http);
    send(in_http);
    // Ending it sends what it still holds.
    let said = otelcol.end();
    assert!(!said.contains("Exporting failed"), "{said}");
    for (name, one) in listening {
        assert_same(name, &of_lines(&one.end().stdout), &expected);
    }
}

#[test]
fn it_sends_again_what_could_not_be_taken() {
    const TEST: &str = "collector: retries";
    if !asked() {
        return;
    }
    let Some(otelcol) = had(TEST, tools::collector()) else { return };
    // A store that takes nothing at first: the endpoint answers UNAVAILABLE and 503.
    let bound =
        Endpoint::bind(Settings { grpc: Address::Loopback(0), http: Address::Loopback(0), ..Settings::default() });
    let bound = bound.unwrap();
    let (grpc, http) = (bound.grpc()[0], bound.http()[0]);
    let (intake, mut outlet) = channel(Bounds { payloads: 1, bytes: 1 << 20 });
    let notices = Notices::default();
    let open = Arc::new(AtomicBool::new(false));
    let may_take = Arc::clone(&open);
    let writer = std::thread::spawn(move || {
        let mut store = reqtop::store::Store::new(reqtop::store::Limits::default());
        loop {
            if !may_take.load(Ordering::SeqCst) {
                std::thread::sleep(Duration::from_millis(10));
                continue;
            }
            match outlet.recv_timeout(Duration::from_millis(100)) {
                Received::Delivery(mut delivery) => {
                    let receipt = reqtop::pipeline::take_in(&mut store, &mut delivery.payload, 1);
                    delivery.answer(receipt);
                }
                Received::Nothing => {}
                Received::Closed => {
                    let mut lines = Vec::new();
                    reqtop::report::export::json_lines(&store, None, &mut lines).unwrap();
                    return of_lines(&lines);
                }
            }
        }
    });
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
    let serving = runtime.spawn(bound.serve(intake, notices.clone(), async {
        let _ = stopped.await;
    }));
    let [in_http] = free();
    let folder = folder();
    let environment =
        [("OTLP_HTTP", in_http.to_string()), ("REQTOP_GRPC", grpc.to_string()), ("REQTOP_HTTP", http.to_string())];
    let otelcol = start(&otelcol, "retry.yaml", &environment, folder.path(), in_http);
    send(in_http);
    wait_until("a shed payload", || notices.count(Notice::Busy) > 3);
    open.store(true, Ordering::SeqCst);
    // What is to be sent again is not lost when it ends either, but only what is in flight is waited for.
    wait_until("every retry", || {
        let said = otelcol.said();
        !said.contains("Dropping data") && notices.count(Notice::Busy) > 3 && quiet(&notices)
    });
    let said = otelcol.end();
    assert!(said.contains("Will retry"), "{said}");
    drop(stop);
    runtime.block_on(serving).unwrap().unwrap();
    assert_same("after retries", &writer.join().unwrap(), &expected());
}

/// Whether nothing was shed for a few seconds.
fn quiet(notices: &Notices) -> bool {
    let before = notices.count(Notice::Busy);
    std::thread::sleep(Duration::from_secs(4));
    notices.count(Notice::Busy) == before
}

#[test]
fn its_files_are_opened() {
    const TEST: &str = "collector: files";
    if !asked() {
        return;
    }
    let Some(otelcol) = had(TEST, tools::collector()) else { return };
    let folder = folder();
    let [in_http] = free();
    let environment = [("OTLP_HTTP", in_http.to_string()), ("FILES", folder.path().display().to_string())];
    let otelcol = start(&otelcol, "file.yaml", &environment, folder.path(), in_http);
    send(in_http);
    otelcol.end();
    let expected = expected();
    for file in ["spans.jsonl", "spans.jsonl.zst", "spans.pb", "spans.pb.zst", "appended.jsonl"] {
        let path = folder.path().join(file);
        assert_same(file, &exported(&[path]), &expected);
    }
}

/// The Collector's own reader of OTLP JSON (the one of its file receiver and of its HTTP endpoint) reads every line that
/// `reqtop export` writes, and understands the same.
#[test]
fn it_reads_what_is_exported() {
    const TEST: &str = "collector: reader";
    if !asked() {
        return;
    }
    let Some(otelcol) = had(TEST, tools::collector()) else { return };
    let folder = folder();
    let sent = folder.path().join("sent.jsonl");
    std::fs::write(&sent, requests().join(&b'\n')).unwrap();
    let lines = binary().arg("export").arg(&sent).output().unwrap().stdout;
    let [in_http] = free();
    let environment = [("OTLP_HTTP", in_http.to_string()), ("FILES", folder.path().display().to_string())];
    let otelcol = start(&otelcol, "file.yaml", &environment, folder.path(), in_http);
    for line in lines.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
        let answer = http(in_http, "POST /v1/traces HTTP/1.1\nContent-Type: application/json", line);
        assert_eq!(answer.status, 200, "{}", answer.text());
    }
    otelcol.end();
    assert_same("read by the Collector", &exported(&[folder.path().join("spans.pb")]), &of_lines(&lines));
}

#[test]
fn it_is_the_plane_of_a_large_cluster() {
    const TEST: &str = "collector: plane";
    if !asked() {
        return;
    }
    let Some(otelcol) = had(TEST, tools::collector()) else { return };
    let reqtops = [Listening::export(), Listening::export()];
    let store = Listening::export();
    let [in_grpc, in_http] = free();
    let folder = folder();
    let environment = [
        ("OTLP_GRPC", in_grpc.to_string()),
        ("OTLP_HTTP", in_http.to_string()),
        ("REQTOP_1", reqtops[0].grpc.to_string()),
        ("REQTOP_2", reqtops[1].grpc.to_string()),
        ("STORE", store.grpc.to_string()),
    ];
    let otelcol = start(&otelcol, "plane.yaml", &environment, folder.path(), in_grpc);
    let url = format!("http://{in_grpc}");
    let demo =
        binary().args(["demo", "--seed", "5", "--rate", "40", "--duration", "6s", "--export", &url]).output().unwrap();
    assert!(demo.status.success(), "{}", String::from_utf8_lossy(&demo.stderr));
    // Traces wait ten seconds for their decision.
    std::thread::sleep(Duration::from_secs(13));
    otelcol.end();
    let [first, second] = reqtops.map(|one| of_lines(&one.end().stdout));
    let sampled = of_lines(&store.end().stdout);
    let ledger = ledger(&demo);
    let begun = ledger["begun"].as_u64().unwrap();
    let traces =
        |spans: &Spans| spans.keys().map(|(trace, _)| trace.clone()).collect::<std::collections::BTreeSet<_>>();
    let (ones, others, kept) = (traces(&first), traces(&second), traces(&sampled));
    assert!(ones.is_disjoint(&others));
    assert_eq!((ones.len() + others.len()) as u64, begun);
    assert!(ones.len() as u64 > begun / 4 && others.len() as u64 > begun / 4, "{} and {}", ones.len(), others.len());
    let all: Spans = first.into_iter().chain(second).collect();
    let attribute = |span: &Json, key: &str| {
        let attributes = span["span"]["attributes"].as_array()?;
        let value = &attributes.iter().find(|attribute| attribute["key"] == key)?["value"]["stringValue"];
        value.as_str().map(str::to_owned)
    };
    let unwell: std::collections::BTreeSet<String> = all
        .iter()
        .filter(|(_, span)| span["span"]["name"] == "request.lifecycle")
        .filter(|(_, span)| {
            attribute(span, "dynamo.request.terminal.outcome").is_some_and(|outcome| outcome != "success")
        })
        .map(|((trace, _), _)| trace.clone())
        .collect();
    assert!(!unwell.is_empty() && unwell.is_subset(&kept), "{} unwell, {} kept", unwell.len(), kept.len());
    assert!((kept.len() as u64) < begun, "everything was kept");
    // What is kept is kept whole.
    let whole: Spans = all.into_iter().filter(|((trace, _), _)| kept.contains(trace)).collect();
    assert_same("sampled", &sampled, &whole);
}

/// Contrib's load-balancing exporter and file receiver, where the module proxy serves them.
#[test]
fn contrib_splits_by_trace_id_and_reads_files() {
    const TEST: &str = "collector: load-balancing exporter and OTLP/JSON file receiver";
    if !asked() {
        return;
    }
    let Some(contrib) = had(TEST, tools::collector_contrib()) else { return };
    let reqtops = [Listening::export(), Listening::export()];
    let [in_http] = free();
    let files = folder();
    let environment = [
        ("OTLP_HTTP", in_http.to_string()),
        ("REQTOP_1", reqtops[0].grpc.to_string()),
        ("REQTOP_2", reqtops[1].grpc.to_string()),
    ];
    let balancing = start(&contrib, "balanced.yaml", &environment, files.path(), in_http);
    send(in_http);
    balancing.end();
    let [first, second] = reqtops.map(|one| of_lines(&one.end().stdout));
    assert!(!first.keys().any(|(trace, _)| second.keys().any(|(other, _)| other == trace)));
    let all: Spans = first.into_iter().chain(second).collect();
    assert_same("balanced", &all, &expected());

    std::fs::write(files.path().join("sent.jsonl"), requests().join(&b'\n')).unwrap();
    let one = Listening::export();
    let environment = [("FILES", files.path().display().to_string()), ("REQTOP_1", one.grpc.to_string())];
    let mut command = Command::new(&contrib);
    command.arg("--config").arg(here("collector/read.yaml")).env_clear();
    command.envs(environment.iter().map(|(key, value)| (*key, value.as_str())));
    // It listens nowhere itself: what it sends to is there at once.
    let reading = Running::start("otelcol", &mut command, files.path(), one.grpc);
    std::thread::sleep(Duration::from_secs(5));
    reading.end();
    assert_same("read from a file", &of_lines(&one.end().stdout), &expected());
}
