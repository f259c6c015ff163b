//! A real Jaeger as the source: what it keeps is read back whole, in pages, and followed on the screen.

use std::net::SocketAddr;
use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value as Json;
use tempfile::TempDir;

use crate::collector::{expected, ledger, send};
use crate::common::own::free;
use crate::common::terminal::Terminal;
use crate::common::{binary, count, post_json};
use crate::spans::{self, assert_same, of_lines};
use crate::tools::{self, Had, Running, asked, had, here, wait_until};

/// A Jaeger that keeps traces in memory.
struct Jaeger {
    _running: Running,
    _folder: TempDir,
    /// Its query address.
    url: String,
    grpc: SocketAddr,
    http: SocketAddr,
}

impl Jaeger {
    fn start() -> Had<Self> {
        let program = tools::jaeger()?;
        let folder = tempfile::tempdir().unwrap();
        let [query, query_grpc, grpc, http] = free();
        let mut command = Command::new(program);
        command.arg("--config").arg(here("jaeger/jaeger.yaml")).env_clear().current_dir(folder.path());
        for (key, address) in
            [("QUERY_HTTP", query), ("QUERY_GRPC", query_grpc), ("OTLP_GRPC", grpc), ("OTLP_HTTP", http)]
        {
            command.env(key, address.to_string());
        }
        let running = Running::start("jaeger", &mut command, Path::new(folder.path()), query);
        wait_until("Jaeger's OTLP endpoint", || std::net::TcpStream::connect(http).is_ok());
        Ok(Self { _running: running, _folder: folder, url: format!("http://{query}"), grpc, http })
    }

    /// A command on what it keeps.
    fn reqtop(&self, args: &[&str]) -> Output {
        let (command, rest) = args.split_first().unwrap();
        binary().args([command, "--from", "jaeger", &self.url]).args(rest).output().unwrap()
    }

    fn report(&self, args: &[&str]) -> Json {
        let output = self.reqtop(&[&["report", "--json"], args].concat());
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        serde_json::from_slice(&output.stdout).unwrap()
    }
}

#[test]
fn what_it_keeps_is_read_back_whole() {
    const TEST: &str = "jaeger: what it keeps";
    if !asked() {
        return;
    }
    let Some(jaeger) = had(TEST, Jaeger::start()) else { return };
    // Captures of months ago: every service that has a span of them is asked for.
    send(jaeger.http);
    let services = ["odd 服务", "dynamo-frontend", "dynamo-worker", "dynamo-prefill", "dynamo-decode"];
    let range = ["--since", "2018-01-01T00:00:00Z"];
    let mut args = vec!["export"];
    args.extend(range);
    args.extend(services.iter().flat_map(|name| ["--service", name]));
    let output = jaeger.reqtop(&args);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert_same("out of Jaeger", &of_lines(&output.stdout), &expected());
}

#[test]
fn a_load_is_read_in_pages_and_answers_like_the_endpoint() {
    const TEST: &str = "jaeger: a load";
    if !asked() {
        return;
    }
    let Some(jaeger) = had(TEST, Jaeger::start()) else { return };
    let url = format!("http://{}", jaeger.grpc);
    // More requests than a page holds, within a few seconds. It takes no logs: the demo says so and ends with an error.
    let demo =
        binary().args(["demo", "--seed", "11", "--rate", "60", "--duration", "8s", "--export", &url]).output().unwrap();
    let ledger = ledger(&demo);
    let begun = ledger["begun"].as_u64().unwrap();
    assert!(begun > 300, "{begun}");
    let report = jaeger.report(&["--since", "10m"]);
    assert_eq!(count(&report, &["requests", "total"]), begun);
    assert_eq!((count(&report, &["spans", "duplicates"]), count(&report, &["requests", "without_root"])), (0, 0));
    let by_name = ledger["tally"]["spans_by_name"].as_object().unwrap();
    for (name, told) in by_name {
        assert_eq!(report["spans"]["by_name"][name], *told, "{name}");
    }
    // Only a part: by time, by operation and duration, by what is asked of what was read.
    assert_eq!(count(&jaeger.report(&["--since", "10m", "--until", "9m"]), &["requests", "total"]), 0);
    let long = jaeger.report(&["--operation", "request.lifecycle", "--min-duration", "2s"]);
    let filtered = jaeger.report(&["--filter", "total>=2s"]);
    assert_eq!(count(&long, &["requests", "total"]), count(&filtered, &["requests", "total"]));
    assert!((1..begun).contains(&count(&long, &["requests", "total"])));
    let workers = jaeger.report(&["--service", "DYNAMO-DECODE"]);
    assert!((1..=begun).contains(&count(&workers, &["requests", "total"])));
    // The checks find nothing wrong with what came this way.
    let checked = jaeger.reqtop(&["check", "--json"]);
    let verdict: Json = serde_json::from_slice(&checked.stdout).unwrap();
    assert_eq!(checked.status.code(), Some(0), "{verdict}");
    // A service that is not there, and an address that is not Jaeger's.
    let none = jaeger.reqtop(&["report", "--service", "cart"]);
    assert!(
        String::from_utf8_lossy(&none.stderr).contains("Jaeger knows no service cart; it knows dynamo-"),
        "{none:?}"
    );
    let wrong = binary().args(["report", "--from", "jaeger", &format!("http://{}", jaeger.http)]).output().unwrap();
    assert_eq!(wrong.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&wrong.stderr).contains("does not answer as Jaeger's query API v3"), "{wrong:?}");
}

#[test]
fn it_is_followed_on_the_screen() {
    const TEST: &str = "jaeger: followed";
    if !asked() {
        return;
    }
    let Some(jaeger) = had(TEST, Jaeger::start()) else { return };
    let mut terminal = Terminal::start(&["--from", "jaeger", &jaeger.url, "--since", "5m"], &[]);
    terminal.wait_for("no requests yet in Jaeger");
    let now_ns = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_nanos() as u64;
    let attribute = |key: &str, value: &str| serde_json::json!({"key": key, "value": {"stringValue": value}});
    let request = |id: &str, spans: Json| {
        let body = serde_json::json!({"resourceSpans": [{
            "resource": {"attributes": [attribute("service.name", "dynamo-frontend")]},
            "scopeSpans": [{"scope": {"name": "dynamo"}, "spans": spans}],
        }]});
        assert_eq!(post_json(jaeger.http, &body).status, 200, "{id}");
    };
    let span = |id: u64, parent: &str, name: &str, outcome: Option<&str>| {
        let mut attributes = vec![
            attribute("dynamo.request.id", "aaaabbbb-0000-4000-8000-000000000001"),
            attribute("dynamo.lifecycle.mode", "core"),
        ];
        attributes.extend(outcome.map(|outcome| attribute("dynamo.request.terminal.outcome", outcome)));
        serde_json::json!({"traceId": "0af7651916cd43dd8448eb211c80319c", "spanId": format!("{id:016x}"), "parentSpanId": parent,
            "name": name, "startTimeUnixNano": now_ns.to_string(), "endTimeUnixNano": (now_ns + 5_000_000).to_string(),
            "attributes": attributes})
    };
    // First what is sent while it runs, then its end.
    request("first", serde_json::json!([span(2, "0000000000000001", "request.preprocessing", None)]));
    let screen =
        terminal.wait("a request in flight", |screen| screen.contains("aaaabbbb") && screen.contains("in flight"));
    assert!(screen.contains("Jaeger"), "{screen}");
    request("second", serde_json::json!([span(1, "", "request.lifecycle", Some("cancelled"))]));
    terminal
        .wait("its end", |screen| screen.lines().any(|line| line.contains("aaaabbbb") && line.contains("cancelled")));
    // The link to where Jaeger shows it.
    terminal.type_keys("\r");
    terminal.wait_for_bytes(&format!("]8;id=trace;{}/trace/0af7651916cd43dd8448eb211c80319c", jaeger.url));
    terminal.type_keys("o");
    terminal.wait_for(&format!("{}/trace/0af7651916cd43dd8448eb211c80319c", jaeger.url));
    assert_eq!(spans::of_lines(&jaeger.reqtop(&["export"]).stdout).len(), 2);
}
