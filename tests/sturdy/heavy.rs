//! As much as there may ever be.

use std::io::Write;
use std::time::{Duration, Instant};

use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::{AnyValue, KeyValue, any_value};
use opentelemetry_proto::tonic::trace::v1::{ResourceSpans, ScopeSpans, Span};
use prost::Message;

use crate::Form;
use crate::common::terminal::Terminal;
use crate::common::{self, ANY, count, report};
use crate::house::{mib, one_span, peak_memory, protobuf, status};

fn attr(key: &str, value: String) -> KeyValue {
    let value = Some(AnyValue { value: Some(any_value::Value::StringValue(value)) });
    KeyValue { key: key.into(), value, ..KeyValue::default() }
}

/// A span whose texts no other has.
fn span(trace: u64, id: u64, parent: u64, name: &str) -> Span {
    Span {
        trace_id: [0xab_u64.to_be_bytes(), (trace + 1).to_be_bytes()].concat(),
        span_id: (id + 1).to_be_bytes().to_vec(),
        parent_span_id: if parent == 0 { Vec::new() } else { parent.to_be_bytes().to_vec() },
        name: name.into(),
        start_time_unix_nano: 1_796_003_500_000_000_000 + id,
        end_time_unix_nano: 1_796_003_500_100_000_000 + id,
        attributes: vec![
            attr("dynamo.request.id", format!("request-{trace}")),
            attr("prompt", format!("what is {id} times {trace}, and why")),
            attr("dynamo.request.terminal.outcome", "success".into()),
        ],
        ..Span::default()
    }
}

fn body(spans: Vec<Span>) -> Vec<u8> {
    let scope_spans = vec![ScopeSpans { spans, ..ScopeSpans::default() }];
    ExportTraceServiceRequest { resource_spans: vec![ResourceSpans { scope_spans, ..ResourceSpans::default() }] }
        .encode_to_vec()
}

/// How long a key takes to show.
fn key(terminal: &mut Terminal) -> Duration {
    let begun = Instant::now();
    terminal.type_keys("?");
    terminal.wait_for("Keys");
    let took = begun.elapsed();
    terminal.type_keys("\u{1b}");
    terminal.wait("the help to go", |text| !text.contains("Keys"));
    took
}

/// Days of requests, a trace that never ends, spans whose parents never come: memory stays flat, keys are answered (B61).
pub fn days(form: Form) -> String {
    let (requests, endless, orphans, limit) =
        form.pick((3_000u64, 5_000u64, 2_000u64, "8MiB"), (300_000, 500_000, 200_000, "256MiB"));
    let mut terminal = Terminal::start(&[&ANY[..], &["--max-memory", limit]].concat(), &[]);
    let (_, http) = terminal.addresses();
    let pid = terminal.child.process_id().unwrap();
    const BATCH: u64 = 1_000;
    let ten = (0..requests).flat_map(|request| {
        (0..10).map(move |at| {
            let name = ["request.lifecycle", "kv_router.schedule", "handle_payload"][at as usize % 3];
            span(request, request * 10 + at, if at == 0 { 0 } else { request * 10 + 1 }, name)
        })
    });
    let one = (0..endless).map(|at| span(1 << 40, (1 << 41) + at, if at == 0 { 0 } else { (1 << 41) + 1 }, "token"));
    let lost = (0..orphans).map(|at| span((1 << 42) + at, (1 << 43) + at, 1 << 50, "handle_payload"));
    let (mut sent, mut busy, mut slowest, mut early, mut most) = (0u64, 0u64, Duration::ZERO, 0, 0);
    let mut spans = ten.chain(one).chain(lost).peekable();
    let all = requests * 10 + endless + orphans;
    let mut next_key = 0;
    while spans.peek().is_some() {
        let part: Vec<Span> = spans.by_ref().take(BATCH as usize).collect();
        sent += part.len() as u64;
        let part = body(part);
        // Told to come again, a sender comes again.
        while protobuf(http, "", &part).status == 503 {
            busy += 1;
        }
        let resident = status(pid, "VmRSS:") << 10;
        if sent <= all / 3 {
            early = early.max(resident);
        }
        most = most.max(resident);
        if sent >= next_key {
            next_key = sent + all / 20;
            slowest = slowest.max(key(&mut terminal));
        }
    }
    assert_eq!(sent, all);
    let text = terminal.wait("what was given up", |text| text.contains("evicted") || text.contains("lost "));
    assert!(most <= early + early / 3 + (24 << 20), "{} after a third, {} at most", mib(early), mib(most));
    assert!(slowest < Duration::from_millis(form.pick(20_000, 1_000)), "{slowest:?}");
    terminal.type_keys("q");
    assert_eq!(terminal.end(), 0, "{text}");
    format!(
        "{sent} spans, {limit} to keep: {} after a third, {} at most; keys within {slowest:.0?}; {busy} × busy",
        mib(early),
        mib(most)
    )
}

/// A line of a whole batch of tens of thousands of spans: all of them are loaded while keys are answered (B67).
pub fn huge_line(form: Form) -> String {
    let wanted = form.pick(5_000u64, 50_000);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("huge.jsonl");
    let mut file = std::io::BufWriter::new(std::fs::File::create(&path).unwrap());
    write!(file, "{{\"resourceSpans\":[{{\"scopeSpans\":[{{\"spans\":[").unwrap();
    for number in 0..wanted {
        let mut span = one_span(number)["resourceSpans"][0]["scopeSpans"][0]["spans"][0].clone();
        span["attributes"] = serde_json::json!([{"key": "prompt", "value": {"stringValue": format!("{number} {}", "x".repeat(200))}}]);
        write!(file, "{}{span}", if number == 0 { "" } else { "," }).unwrap();
    }
    writeln!(file, "]}}]}}]}}").unwrap();
    drop(file);
    let size = std::fs::metadata(&path).unwrap().len() as usize;
    let told = report(&[&path]);
    assert_eq!((count(&told, &["spans", "total"]), count(&told, &["input", "bad_lines"])), (wanted, 0));
    let mut terminal = Terminal::start(&[path.to_str().unwrap()], &[]);
    let pid = terminal.child.process_id().unwrap();
    terminal.wait_for("requests");
    let mut slowest = Duration::ZERO;
    loop {
        slowest = slowest.max(key(&mut terminal));
        let text = terminal.text();
        if !text.contains("reading") && !text.contains('⇣') {
            break;
        }
    }
    let peak = peak_memory(pid);
    assert!(peak < 10 * size + (32 << 20), "{} for a line of {}", mib(peak), mib(size));
    assert!(slowest < Duration::from_millis(form.pick(3_000, 1_000)), "{slowest:?}");
    terminal.type_keys("q");
    assert_eq!(terminal.end(), 0);
    let _ = common::ANY;
    format!("{wanted} spans in a line of {}: all loaded, keys within {slowest:.0?}, peak {}", mib(size), mib(peak))
}
