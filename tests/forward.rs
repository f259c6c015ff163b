//! Passing on and recording, from the command line: what another reqtop gets and what lies in the file is what this one got.

mod common;
#[path = "../src/source/otlp/json/full.rs"]
mod full;

use std::net::SocketAddr;
use std::path::Path;

use common::{ANY, Listening, binary, count, post};
use opentelemetry_proto::tonic::collector::logs::v1::ExportLogsServiceRequest;
use opentelemetry_proto::tonic::collector::logs::v1::logs_service_client::LogsServiceClient;
use opentelemetry_proto::tonic::collector::metrics::v1::ExportMetricsServiceRequest;
use opentelemetry_proto::tonic::collector::metrics::v1::metrics_service_client::MetricsServiceClient;
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::collector::trace::v1::trace_service_client::TraceServiceClient;
use prost::Message;
use reqtop::source::intake::Signal;
use reqtop::source::otlp::json::{Shape, print, transcode};
use serde_json::Value as Json;

#[test]
fn what_is_passed_on_reports_the_same_there() {
    for (scheme, more) in [("grpc", &[][..]), ("http", &["--forward-gzip"][..])] {
        let far = Listening::report();
        let address = if scheme == "grpc" { far.grpc } else { far.http };
        let url = format!("{scheme}://{address}");
        let near = Listening::start(&[&["report", "--json", "--forward", &url], more].concat());
        let sent = binary()
            .args([
                "demo",
                "--export",
                &format!("http://{}", near.grpc),
                "--duration",
                "1s",
                "--rate",
                "20",
                "--seed",
                "3",
            ])
            .output()
            .unwrap();
        assert!(sent.status.success());
        let output = near.end();
        let mut near: Json = serde_json::from_slice(&output.stdout).unwrap();
        let far = far.json();
        let passed = near["input"].as_object_mut().unwrap().remove("forwarding").unwrap();
        assert_eq!(
            (count(&passed, &["dropped"]), count(&passed, &["refused"]), count(&passed, &["waiting"])),
            (0, 0, 0)
        );
        assert!(count(&passed, &["forwarded"]) > 10, "{passed}");
        assert_eq!(passed["target"], url);
        assert!(count(&near, &["spans", "total"]) > 100);
        for section in
            ["spans", "requests", "queue", "selection", "dispatch", "streaming", "latency", "records", "traces"]
        {
            assert_eq!(near[section], far[section], "{section} over {scheme}");
        }
        let said = String::from_utf8(output.stderr).unwrap();
        assert!(said.contains("forwarded "), "{said}");
    }
}

#[test]
fn what_was_not_passed_on_shows_in_the_exit_status() {
    // Nobody listens there any more.
    let [nowhere] = common::own::free();
    let near = Listening::start(&["report", "--json", "--forward", &format!("http://{nowhere}")]);
    let sent = ExportTraceServiceRequest { resource_spans: vec![Default::default()] };
    assert_eq!(post(near.http, "/v1/traces", "application/x-protobuf", &sent.encode_to_vec()).status, 200);
    // As when the terminal that it was started in goes: what was gathered is printed all the same.
    let output = near.ended_by("HUP");
    assert_eq!(output.status.code(), Some(2));
    let report: Json = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(count(&report, &["input", "forwarding", "waiting"]), 1);
    assert!(String::from_utf8_lossy(&output.stderr).contains("1 not sent at the end"));
}

/// Over both protocols, in every form they have.
fn send_in_every_form(grpc: SocketAddr, http: SocketAddr) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let channel = tonic::transport::Endpoint::from_shared(format!("http://{grpc}")).unwrap().connect_lazy();
        TraceServiceClient::new(channel.clone()).export(full::traces()).await.unwrap();
        LogsServiceClient::new(channel.clone()).export(full::logs()).await.unwrap();
        MetricsServiceClient::new(channel).export(full::metrics()).await.unwrap();
    });
    for (signal, path, bytes) in [
        (Signal::Traces, "/v1/traces", full::traces().encode_to_vec()),
        (Signal::Logs, "/v1/logs", full::logs().encode_to_vec()),
        (Signal::Metrics, "/v1/metrics", full::metrics().encode_to_vec()),
    ] {
        let mut json = Vec::new();
        print(signal, &bytes, &mut json).unwrap();
        for (kind, body) in [("application/x-protobuf", &bytes), ("application/json", &json)] {
            let answer = post(http, path, kind, body);
            assert_eq!(answer.status, 200, "{answer:?}");
        }
    }
}

/// How many requests a recording holds of each signal, all of them whole.
fn recorded(path: &Path) -> [usize; 3] {
    let mut found = [0; 3];
    let text = std::fs::read_to_string(path).unwrap();
    let mut lines: Vec<&str> = text.lines().collect();
    for (line, what) in
        [(lines.pop().unwrap(), "last line tells when it ended"), (lines.remove(0), "first when it began")]
    {
        assert!(line.starts_with(r#"{"resourceSpans":[],"#), "the {what}: {line}");
    }
    for line in lines {
        let signal = match () {
            () if line.contains("resourceSpans") => Signal::Traces,
            () if line.contains("resourceLogs") => Signal::Logs,
            () => Signal::Metrics,
        };
        let mut bytes = Vec::new();
        transcode(Shape::Request(signal), line.as_bytes(), &mut bytes).unwrap();
        match signal {
            Signal::Traces => assert_eq!(ExportTraceServiceRequest::decode(&bytes[..]).unwrap(), full::traces()),
            Signal::Logs => assert_eq!(ExportLogsServiceRequest::decode(&bytes[..]).unwrap(), full::logs()),
            Signal::Metrics => assert_eq!(ExportMetricsServiceRequest::decode(&bytes[..]).unwrap(), full::metrics()),
        }
        found[signal as usize] += 1;
    }
    found
}

#[test]
fn every_signal_is_recorded_and_passed_on_whole_however_it_came() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    let record = |name: &str| path(name).display().to_string();
    let third = Listening::start(&["report", "--json", "--record", &record("3.jsonl")]);
    let url = format!("http://{}", third.http);
    let second = Listening::start(&["report", "--json", "--record", &record("2.jsonl"), "--forward", &url]);
    let url = format!("grpc://{}", second.grpc);
    let first = Listening::start(&["report", "--json", "--record", &record("1.jsonl"), "--forward", &url]);
    send_in_every_form(first.grpc, first.http);
    let reports = [first.json(), second.json(), third.json()];
    for (name, report) in ["1.jsonl", "2.jsonl", "3.jsonl"].iter().zip(&reports) {
        // Each signal over gRPC, over HTTP in protobuf and over HTTP in JSON.
        assert_eq!(recorded(&path(name)), [3, 3, 3], "{name}");
        assert_eq!(count(report, &["input", "recording", "lost"]), 0, "{report}");
        let again = common::report(&[path(name)]);
        assert_eq!(count(report, &["input", "metric_points"]), 3 * 7, "{report}");
        for counted in ["metric_points", "other_logs"] {
            assert_eq!(report["input"][counted], again["input"][counted], "{counted} of {name}");
        }
        assert_eq!(report["spans"], again["spans"], "{name}");
    }
    assert_eq!(count(&reports[0], &["input", "forwarding", "forwarded"]), 9);
}

#[test]
fn forwarding_to_itself_or_nowhere_is_refused_without_secrets() {
    let refused = |args: &[&str]| {
        let output = binary().args(args).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{args:?}");
        String::from_utf8(output.stderr).unwrap()
    };
    // A port that is free now; we listen there.
    let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let (address, url) = (free.to_string(), format!("grpc://localhost:{}", free.port()));
    let said = refused(&["report", "--listen", "--grpc", &address, "--http", "127.0.0.1:0", "--forward", &url]);
    assert!(said.contains("where this program itself listens"), "{said}");
    let listen = [&["report", "--listen"][..], &ANY].concat();
    let said = refused(&[&listen[..], &["--forward", "http://me:hush@x"]].concat());
    assert!(said.contains("--forward-header") && !said.contains("hush"), "{said}");
    let said = refused(&[&listen[..], &["--forward", "http://x", "--forward-header", "hush"]].concat());
    assert!(said.contains("NAME=VALUE") && !said.contains("hush"), "{said}");
    assert!(refused(&[&listen[..], &["--forward", "ftp://x"]].concat()).contains("grpcs or https"));
    let half = refused(&[&listen[..], &["--forward", "https://x", "--forward-cert", "x"]].concat());
    assert!(half.contains("--forward-cert needs --forward-key"), "{half}");
    assert!(refused(&[&listen[..], &["--forward-gzip"]].concat()).contains("--forward is not there"));
    assert!(refused(&["report", "x.jsonl", "--forward", "grpc://x"]).contains("add --listen"));
}
