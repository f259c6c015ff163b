//! Real senders: the OpenTelemetry SDKs for Python, JavaScript and Rust, over every protocol and compression they offer.
//! Each sends a known number of spans with odd values; number and values are compared with what reqtop exports.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::process::{Command, Output};

use opentelemetry::trace::{Span, SpanKind, Status, TraceContextExt, Tracer, TracerProvider};
use opentelemetry::{Array, Context, KeyValue, StringValue, Value};
use opentelemetry_otlp::{Compression, Protocol, SpanExporter, WithExportConfig, WithHttpConfig, WithTonicConfig};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::trace::SdkTracerProvider;
use serde_json::{Value as Json, json};

use crate::common::{Listening, spans};
use crate::tools::{Had, asked, had, here, kept, run, say, tool};

/// Spans sent each time: several batches of 64.
const COUNT: usize = 300;

/// A Python with the SDK.
fn packages() -> Had<PathBuf> {
    tool("python3")?;
    let wanted = here("sdk/requirements.txt");
    let text = std::fs::read_to_string(&wanted).unwrap();
    // An environment knows where it is and cannot be moved: the packages go to a folder instead.
    kept(&format!("python-{}", crate::tools::digest(&text)), |folder| {
        let mut pip = Command::new("python3");
        pip.args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--target"]);
        run(pip.arg(folder.join("packages")).arg("-r").arg(&wanted)).map_err(|why| format!("the Python SDK: {why}"))
    })
    .map(|folder| folder.join("packages"))
}

/// A folder with the JavaScript SDK.
fn node() -> Had<PathBuf> {
    tool("node")?;
    tool("npm")?;
    let wanted = here("sdk/package.json");
    let text = std::fs::read_to_string(&wanted).unwrap();
    kept(&format!("node-{}", crate::tools::digest(&text)), |folder| {
        std::fs::copy(&wanted, folder.join("package.json")).map_err(|error| error.to_string())?;
        let mut npm = Command::new("npm");
        npm.args(["install", "--no-audit", "--no-fund", "--ignore-scripts"]).current_dir(folder);
        run(&mut npm).map_err(|why| format!("the JavaScript SDK: {why}"))
    })
}

/// Where a protocol is sent.
fn url(one: &Listening, protocol: &str) -> String {
    format!("http://{}", if protocol == "grpc" { one.grpc } else { one.http })
}

/// What the program said it sent.
fn told(sent: &Output) -> Json {
    assert!(sent.status.success(), "{}", String::from_utf8_lossy(&sent.stderr));
    // Exporters tell failures on standard error and go on.
    assert!(sent.stderr.is_empty(), "{}", String::from_utf8_lossy(&sent.stderr));
    serde_json::from_slice(&sent.stdout).unwrap()
}

/// Compares what came with what was sent.
fn compare(how: &str, came: &Output, sent: &Json) {
    assert!(came.status.success());
    let came = spans(&came.stdout);
    let expected = sent["attributes"].as_object().unwrap();
    assert_eq!(came.len() as u64, sent["spans"].as_u64().unwrap(), "{how}");
    let mut indexes = BTreeSet::new();
    for span in &came {
        let of = |key: &str| {
            let attributes = span["attributes"].as_array().unwrap();
            attributes.iter().find(|attribute| attribute["key"] == key).map(|attribute| &attribute["value"])
        };
        for (key, value) in expected {
            assert_eq!(of(key).map(without_control), Some(without_control(value)), "{how}: {key}");
        }
        if span["name"] == "odd 名前" {
            let index = of("index").unwrap()["intValue"].as_str().unwrap().to_owned();
            assert_eq!(span["events"][0]["name"], "event 事件", "{how}");
            assert_eq!(span["events"][0]["attributes"][0]["value"]["intValue"], json!(index), "{how}");
            assert_eq!(span["status"], json!({"code": 2, "message": "it broke"}), "{how}");
            assert_eq!(span["kind"], 3, "{how}");
            indexes.insert(index);
        } else {
            assert_eq!((&span["name"], &span["kind"]), (&json!("request.lifecycle"), &json!(2)), "{how}");
        }
    }
    assert_eq!(indexes.len(), came.len() - 1, "{how}");
    say(&format!("{how}: {} spans, {} odd values each", came.len(), expected.len()));
}

/// reqtop cleans control characters out of what it keeps (all but line feeds and tabs): they come as U+FFFD.
fn without_control(value: &Json) -> Json {
    serde_json::from_str(&value.to_string().replace("\\u0000", "\u{fffd}")).unwrap()
}

#[test]
fn python() {
    const TEST: &str = "sdk: Python";
    if !asked(TEST) {
        return;
    }
    let Some(packages) = had(TEST, self::packages()) else { return };
    for (protocol, compressions) in
        [("grpc", &["none", "gzip", "deflate"]), ("http/protobuf", &["none", "gzip", "deflate"])]
    {
        for compression in compressions {
            let one = Listening::export();
            let sent = Command::new("python3")
                .arg(here("sdk/send.py"))
                .args([protocol, compression, &url(&one, protocol), &COUNT.to_string()])
                .env("PYTHONPATH", &packages)
                .output()
                .unwrap();
            compare(&format!("Python, {protocol}, {compression}"), &one.end(), &told(&sent));
        }
    }
}

#[test]
fn javascript() {
    const TEST: &str = "sdk: JavaScript";
    if !asked(TEST) {
        return;
    }
    let Some(folder) = had(TEST, node()) else { return };
    for protocol in ["grpc", "http/protobuf", "http/json"] {
        for compression in ["none", "gzip"] {
            let one = Listening::export();
            let sent = Command::new("node")
                .arg(here("sdk/send.mjs"))
                .args([protocol, compression, &url(&one, protocol), &COUNT.to_string()])
                .current_dir(&folder)
                .output()
                .unwrap();
            compare(&format!("JavaScript, {protocol}, {compression}"), &one.end(), &told(&sent));
        }
    }
}

/// The Rust SDK needs nothing from outside.
#[test]
fn rust() {
    for compression in [None, Some(Compression::Gzip), Some(Compression::Zstd)] {
        let runtime = tokio::runtime::Runtime::new().unwrap();
        let one = Listening::export();
        let guard = runtime.enter();
        let mut builder = SpanExporter::builder().with_tonic().with_endpoint(url(&one, "grpc"));
        if let Some(compression) = compression {
            builder = builder.with_compression(compression);
        }
        let sent = send(builder.build().unwrap());
        drop(guard);
        compare(&format!("Rust, grpc, {compression:?}"), &one.end(), &sent);
        for protocol in [Protocol::HttpBinary, Protocol::HttpJson] {
            let one = Listening::export();
            let endpoint = format!("{}/v1/traces", url(&one, "http"));
            let mut builder = SpanExporter::builder().with_http().with_protocol(protocol).with_endpoint(endpoint);
            if let Some(compression) = compression {
                builder = builder.with_compression(compression);
            }
            let sent = send(builder.build().unwrap());
            compare(&format!("Rust, {protocol:?}, {compression:?}"), &one.end(), &sent);
        }
    }
}

/// Sends spans with odd values and says what it sent, as the programs in other languages do.
fn send(exporter: SpanExporter) -> Json {
    let resource = Resource::builder_empty().with_service_name("sdk 服务").build();
    let provider = SdkTracerProvider::builder().with_resource(resource).with_batch_exporter(exporter).build();
    let tracer = provider.tracer("reqtop.interop");
    let long = "x".repeat(5000);
    let texts = [StringValue::from("a"), "".into(), "ü".into()];
    let attributes = || {
        [
            KeyValue::new("text", "推理服务 👩‍🔬 \"quoted\" \\ \n\t\0"),
            KeyValue::new("text.empty", ""),
            KeyValue::new("text.long", long.clone()),
            KeyValue::new("int.least", i64::MIN),
            KeyValue::new("int.most", i64::MAX),
            KeyValue::new("double", 0.1),
            KeyValue::new("double.tiny", 5e-324),
            KeyValue::new("truth", true),
            KeyValue::new("list.int", Value::Array(Array::I64(vec![1, -1]))),
            KeyValue::new("list.text", Value::Array(Array::String(texts.to_vec()))),
        ]
    };
    let expected = json!({
        "text": {"stringValue": "推理服务 👩‍🔬 \"quoted\" \\ \n\t\0"},
        "text.empty": {"stringValue": ""},
        "text.long": {"stringValue": long},
        "int.least": {"intValue": i64::MIN.to_string()},
        "int.most": {"intValue": i64::MAX.to_string()},
        "double": {"doubleValue": 0.1},
        "double.tiny": {"doubleValue": 5e-324},
        "truth": {"boolValue": true},
        "list.int": {"arrayValue": {"values": [{"intValue": "1"}, {"intValue": "-1"}]}},
        "list.text": {"arrayValue": {"values": [{"stringValue": "a"}, {"stringValue": ""}, {"stringValue": "ü"}]}},
    });
    let root = tracer.span_builder("request.lifecycle").with_kind(SpanKind::Server).with_attributes(attributes());
    let root = Context::new().with_span(root.start(&tracer));
    for index in 1..COUNT as i64 {
        let span = tracer.span_builder("odd 名前").with_kind(SpanKind::Client).with_attributes(attributes());
        let mut span = span.start_with_context(&tracer, &root);
        span.set_attribute(KeyValue::new("index", index));
        span.add_event("event 事件", vec![KeyValue::new("at", index)]);
        span.set_status(Status::error("it broke"));
        span.end();
    }
    root.span().end();
    provider.shutdown().unwrap();
    json!({"spans": COUNT, "attributes": expected})
}
