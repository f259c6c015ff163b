//! Passing on, from the command line: what another reqtop gets is what this one got.

mod common;

use common::{ANY, Listening, binary, count};
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
    assert!(refused(&[&listen[..], &["--forward", "https://x"]].concat()).contains("plain text"));
    assert!(refused(&["report", "x.jsonl", "--forward", "grpc://x"]).contains("add --listen"));
}
