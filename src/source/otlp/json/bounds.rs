//! What a small text may cost.

use super::*;
use crate::lifecycle::batch::Batch;
use crate::source::otlp::wire;

/// The text of a list that holds this so many times, within these brackets.
fn many(open: &str, one: &str, count: usize, close: &str) -> String {
    format!("{open}{}{close}", vec![one; count].join(","))
}

#[test]
fn resources_and_scopes_of_nothing_make_nothing() {
    for signal in Signal::ALL {
        let kind = format!("{signal:?}").replace("Traces", "Spans");
        for inner in [
            "",
            "\"x\":1",
            "\"resource\":null",
            "\"schemaUrl\":null",
            &format!("\"scope{kind}\":[]"),
            &format!("\"scope{kind}\":[{{}},{{}}]"),
        ] {
            let mut out = b"before".to_vec();
            let text = many(&format!("{{\"resource{kind}\":["), &format!("{{{inner}}}"), 3, "]}");
            transcode(Shape::Request(signal), text.as_bytes(), &mut out).unwrap();
            assert_eq!(out, b"before", "{text}");
        }
        // One that says something stays.
        let (mut out, text) = (Vec::new(), format!("{{\"resource{kind}\":[{{}},{{\"schemaUrl\":\"u\"}}]}}"));
        transcode(Shape::Request(signal), text.as_bytes(), &mut out).unwrap();
        assert_eq!(out, [0x0a, 0x83, 0x80, 0x80, 0x80, 0, 0x1a, 1, b'u']);
    }
}

#[test]
fn what_is_made_is_no_longer_than_it_may_be() {
    let open = r#"{"resourceMetrics":[{"scopeMetrics":[{"metrics":[{"histogram":{"dataPoints":[{"bucketCounts":["#;
    let text = many(open, "1", 1000, "]}]}}]}]}]}");
    let shape = Shape::Request(Signal::Metrics);
    let mut out = b"before".to_vec();
    transcode_within(9_000, shape, text.as_bytes(), &mut out).unwrap();
    assert!(out.len() > 8_000);
    out.truncate(6);
    let error = transcode_within(8_000, shape, text.as_bytes(), &mut out).unwrap_err();
    assert!(error.contains("larger in protobuf") && out == b"before" && out.capacity() < 20_000, "{error}");
    // Each of these takes three bytes when it is replaced.
    let text = [b"{\"x\":\"", &[0xff; 100][..], b"\"}"].concat();
    let error = transcode_within(200, shape, &text, &mut out).unwrap_err();
    assert!(error.contains("longer than 200 bytes"), "{error}");
    assert_eq!(transcode_within(308, shape, &text, &mut out).unwrap().bad_texts, 1);
}

#[test]
fn a_text_that_repeats_a_key_is_no_tree_when_that_takes_too_much() {
    let shape = Shape::Request(Signal::Traces);
    for (count, kept) in [(10, "two"), (100_000, "onetwo")] {
        let odd = many("\"odd\":[", "{\"a\":1}", count, "]");
        let text = format!(r#"{{"resourceSpans":[{{"schemaUrl":"one","schemaUrl":"two",{odd}}}]}}"#);
        let mut out = Vec::new();
        transcode(shape, text.as_bytes(), &mut out).unwrap();
        out.retain(u8::is_ascii_alphabetic);
        assert_eq!(String::from_utf8(out).unwrap(), kept, "{count}");
    }
}

#[test]
fn parts_of_almost_nothing_are_refused_before_they_take_much() {
    let ids = r#""traceId":"0123456789abcdef0123456789abcdef","spanId":"00000000000000a1""#;
    let span = format!(r#"{{"resourceSpans":[{{"scopeSpans":[{{"spans":[{{{ids},"#);
    for (open, one, close) in [
        (r#"{"resourceSpans":[{"scopeSpans":["#, r#"{"scope":{}}"#, "]}]}"),
        (r#"{"resourceSpans":[{"resource":{"attributes":["#, "{}", "]}}]}"),
        (&format!("{span}\"attributes\":["), "{}", "]}]}]}]}"),
        (&format!("{span}\"events\":["), "{}", "]}]}]}]}"),
        (&format!("{span}\"links\":["), "{}", "]}]}]}]}"),
    ] {
        let (text, mut out) = (many(open, one, 100_000, close), Vec::new());
        transcode(Shape::Request(Signal::Traces), text.as_bytes(), &mut out).unwrap();
        let mut batch = Batch::default();
        let error = wire::traces(&out, &mut batch).unwrap_err();
        let taken = batch.attrs.capacity() * size_of::<&[u8]>() + batch.scopes.capacity() * 64;
        assert!(error.contains("mostly empty") && taken < 10 * out.len(), "{open}: {taken} of {}: {error}", out.len());
    }
    let text = many(r#"{"resourceLogs":[{"scopeLogs":[{"logRecords":[{"attributes":["#, "{}", 100_000, "]}]}]}]}");
    let mut out = Vec::new();
    transcode(Shape::Request(Signal::Logs), text.as_bytes(), &mut out).unwrap();
    assert!(wire::logs(&out, &mut Batch::default()).unwrap_err().contains("mostly empty"));
}
