//! Faults known from the field, each held off at the real endpoint of the real binary: what senders get wrong, what they
//! do wrong on purpose, and what must be answered. The ids name the cases.

mod common;

use std::io::{Read, Write};
use std::net::TcpStream;

use common::{Listening, post, post_json};
use serde_json::{Value as Json, json};

const TRACE: &str = "0123456789abcdef0123456789abcdef";

/// A span as the cases name it, with some fields set otherwise.
fn span(changes: Json) -> Json {
    let mut span = json!({
        "traceId": TRACE, "spanId": "00000000000000a1", "parentSpanId": "", "name": "http-request", "kind": 2,
        "startTimeUnixNano": "1760000000000000000", "endTimeUnixNano": "1760000000120000000",
        "attributes": [], "status": {},
    });
    for (key, value) in changes.as_object().unwrap() {
        match value {
            Json::Null => _ = span.as_object_mut().unwrap().remove(key),
            value => span[key] = value.clone(),
        }
    }
    span
}

/// An export request of a frontend.
fn wrap(spans: &[Json]) -> Json {
    json!({"resourceSpans": [{
        "resource": {"attributes": [{"key": "service.name", "value": {"stringValue": "dynamo-frontend"}}]},
        "scopeSpans": [{"spans": spans}],
    }]})
}

fn attr(key: &str, value: &str) -> Json {
    json!({"key": key, "value": {"stringValue": value}})
}

/// Posts spans to an exporter; gives the answer and what it kept, by span id.
fn kept(bodies: &[Json]) -> (Vec<common::Answer>, Vec<Json>) {
    let listening = Listening::export();
    let answers = bodies.iter().map(|body| post_json(listening.http, body)).collect();
    let mut spans = listening.spans();
    spans.sort_by_key(|span| span["spanId"].to_string());
    (answers, spans)
}

/// B01
#[test]
fn ids_are_hex_of_any_case_and_nothing_else() {
    let (answers, spans) = kept(&[
        wrap(&[
            span(json!({"traceId": TRACE.to_uppercase()})),
            span(json!({"spanId": "00000000000000A2", "parentSpanId": "00000000000000A1"})),
        ]),
        wrap(&[span(json!({"traceId": "ASNFZ4mrze8BI0VniavN7w==", "spanId": "00000000000000b1"}))]),
        wrap(&[span(json!({"spanId": "AAAAAAAAALE="}))]),
        wrap(&[span(json!({"parentSpanId": "AAAAAAAAALE=", "spanId": "00000000000000b2"}))]),
    ]);
    assert_eq!((answers[0].status, answers[0].text().as_str()), (200, "{}"));
    for (answer, field) in answers[1..].iter().zip(["traceId", "spanId", "parentSpanId"]) {
        let text = answer.text();
        assert!(text.contains(field) && text.contains("hex"), "{text}");
        assert!(answer.status == 400 || answer.json()["partialSuccess"]["rejectedSpans"] == "1", "{text}");
    }
    let ids: Vec<_> = spans.iter().map(|span| (&span["traceId"], &span["spanId"], &span["parentSpanId"])).collect();
    let text = |text: &str| Json::from(text);
    assert_eq!(
        ids,
        [
            (&text(TRACE), &text("00000000000000a1"), &Json::Null),
            (&text(TRACE), &text("00000000000000a2"), &text("00000000000000a1")),
        ]
    );
}

/// B02
#[test]
fn whole_numbers_come_as_numbers_or_texts() {
    let times = [
        json!(1760000000000000000u64),
        json!("1760000000000000000"),
        json!(1.76e18),
        json!("1.76e18"),
        json!({"low": 1, "high": 2}),
        json!(1.5),
        json!(-1),
        json!("soon"),
        json!(1e300),
        json!("99999999999999999999999999"),
        json!([1]),
        json!(true),
    ];
    let bodies: Vec<Json> = times
        .iter()
        .enumerate()
        .map(|(at, time)| wrap(&[span(json!({"spanId": format!("{:016x}", at + 1), "startTimeUnixNano": time}))]))
        .collect();
    let (answers, spans) = kept(&bodies);
    for (time, answer) in times.iter().zip(&answers).take(3) {
        assert_eq!(answer.status, 200, "{time}: {answer:?}");
    }
    for (time, answer) in times.iter().zip(&answers).skip(4) {
        assert!(answer.status == 400 && answer.text().contains("startTimeUnixNano"), "{time}: {answer:?}");
    }
    assert!(spans.len() >= 3 && spans.iter().all(|span| span["startTimeUnixNano"] == "1760000000000000000"));
    let value = |value: Json| wrap(&[span(json!({"attributes": [{"key": "n", "value": value}]}))]);
    for (given, wanted) in [
        (json!({"intValue": 5}), json!({"intValue": "5"})),
        (json!({"intValue": "-9223372036854775808"}), json!({"intValue": "-9223372036854775808"})),
        (json!({"intValue": 9223372036854775807i64}), json!({"intValue": "9223372036854775807"})),
        (json!({"doubleValue": "NaN"}), json!({"doubleValue": "NaN"})),
        (json!({"doubleValue": "-Infinity"}), json!({"doubleValue": "-Infinity"})),
        (json!({"doubleValue": 3}), json!({"doubleValue": 3.0})),
    ] {
        let (_, spans) = kept(&[value(given.clone())]);
        assert_eq!(spans[0]["attributes"][0]["value"], wanted, "{given}");
    }
}

/// B02 and its kind: whatever is wrong in a request costs the smallest part that stands for itself, and is answered.
#[test]
fn what_is_wrong_in_a_request_costs_nothing_beside_it() {
    let good = |id: &str| span(json!({"spanId": id}));
    let bad = span(json!({"spanId": "00000000000000b1", "startTimeUnixNano": {"low": 1, "high": 2}}));
    let mut of_two = wrap(&[good("00000000000000a2")]);
    of_two["resourceLogs"] = json!([{"scopeLogs": []}]);
    let mut of_odd = wrap(&[good("00000000000000a3")]);
    of_odd["resourceSpans"][0]["resource"]["attributes"][0]["value"] = json!("bare");
    let (answers, spans) = kept(&[
        wrap(&[good("00000000000000a1"), bad, json!(7)]),
        of_two,
        of_odd,
        json!({"resourceLogs": [{"scopeLogs": []}]}),
    ]);
    let ids: Vec<_> = spans.iter().map(|span| &span["spanId"]).collect();
    assert_eq!(ids, ["00000000000000a1", "00000000000000a2", "00000000000000a3"]);
    for (answer, (rejected, word)) in answers.iter().zip([
        ("2", "startTimeUnixNano: expected an unsigned 64-bit number"),
        ("0", "\"resourceLogs\" does not belong here"),
        ("0", "value: expected an object"),
    ]) {
        let partial = &answer.json()["partialSuccess"];
        assert_eq!((answer.status, &partial["rejectedSpans"]), (200, &json!(rejected)), "{}", answer.text());
        assert!(partial["errorMessage"].as_str().unwrap().contains(word), "{}", answer.text());
    }
    assert!(answers[3].status == 400 && answers[3].text().contains("its own path"), "{}", answers[3].text());
}

/// B04
#[test]
fn enums_come_as_numbers_or_names_and_unknown_ones_stay() {
    let kinds = [json!(1), json!(2), json!(3), json!(4), json!(5), json!("SPAN_KIND_SERVER"), json!(99)];
    let codes = [json!(0), json!(1), json!(2), json!("STATUS_CODE_ERROR"), json!(99)];
    let mut sent: Vec<Json> = Vec::new();
    for (at, kind) in kinds.iter().enumerate() {
        sent.push(span(json!({"spanId": format!("{:016x}", at + 1), "kind": kind})));
    }
    for (at, code) in codes.iter().enumerate() {
        sent.push(span(json!({"spanId": format!("{:016x}", at + 101), "status": {"code": code}})));
    }
    let (answers, spans) = kept(&[wrap(&sent)]);
    assert_eq!((answers[0].status, answers[0].text().as_str()), (200, "{}"));
    let read: Vec<_> = spans.iter().map(|span| span["kind"].clone()).take(kinds.len()).collect();
    assert_eq!(json!(read), json!([1, 2, 3, 4, 5, 2, 99]));
    let read: Vec<_> =
        spans.iter().skip(kinds.len()).map(|span| span["status"]["code"].as_i64().unwrap_or(0)).collect();
    assert_eq!(read, [0, 1, 2, 2, 99]);
}

/// B05
#[test]
fn unknown_fields_are_skipped_at_every_level() {
    let plain = wrap(&[span(json!({
        "attributes": [attr("a", "b")],
        "events": [{"name": "e", "timeUnixNano": "1760000000000000001", "attributes": [attr("c", "d")]}],
        "status": {"code": 1},
    }))]);
    fn add(json: &mut Json) {
        match json {
            Json::Array(items) => items.iter_mut().for_each(add),
            Json::Object(fields) => {
                fields.values_mut().for_each(add);
                fields.insert("zzz".into(), json!({"a": [1, {"b": null}]}));
            }
            _ => {}
        }
    }
    let mut strange = plain.clone();
    add(&mut strange);
    let (answers, spans) = kept(&[strange]);
    assert_eq!((answers[0].status, answers[0].text().as_str()), (200, "{}"));
    assert_eq!(spans, kept(&[plain]).1);
}

/// B06
#[test]
fn snake_case_is_read() {
    let (answers, spans) = kept(&[json!({"resource_spans": [{"scope_spans": [{"spans": [{
        "trace_id": TRACE, "span_id": "00000000000000a1", "name": "x", "start_time_unix_nano": "1760000000000000000",
    }]}]}]})]);
    assert_eq!(answers[0].status, 200);
    assert_eq!(spans.len(), 1);
}

/// B08
#[test]
fn values_of_every_kind_survive() {
    let attributes = json!([
        {"key": "b", "value": {"bytesValue": "AP8="}},
        {"key": "a", "value": {"arrayValue": {"values": [{"intValue": "1"}, {"stringValue": "z"}, {}]}}},
        {"key": "m", "value": {"kvlistValue": {"values": [{"key": "k", "value": {"boolValue": false}}]}}},
        {"key": "e", "value": {"arrayValue": {}}},
        {"key": "f", "value": {"kvlistValue": {}}},
        {"key": "s", "value": {"stringValue": ""}},
        {"key": "n", "value": {}},
        {"key": "d", "value": {"doubleValue": 0.1}},
        {"key": "deep", "value": {"arrayValue": {"values": [{"kvlistValue": {"values": [
            {"key": "x", "value": {"arrayValue": {"values": [{"bytesValue": ""}]}}}]}}]}}},
    ]);
    let (answers, spans) = kept(&[wrap(&[span(json!({"attributes": attributes}))])]);
    assert_eq!((answers[0].status, answers[0].text().as_str()), (200, "{}"));
    let exported = &spans[0]["attributes"];
    let again = kept(&[wrap(&[span(json!({"attributes": exported}))])]).1;
    assert_eq!(again[0]["attributes"], *exported);
    let loose = |json: &Json| json.to_string().replace(r#"{"values":[]}"#, "{}");
    assert_eq!(loose(exported), loose(&attributes));
}

/// B10
#[test]
fn a_key_twice_costs_nothing_and_the_last_value_counts() {
    let twice = span(json!({"attributes": [attr("worker_id", "1"), attr("worker_id", "2")]}));
    let good = span(json!({"traceId": "ff23456789abcdef0123456789abcdef", "spanId": "00000000000000a2"}));
    let body = wrap(&[twice, good]);
    assert_eq!(kept(std::slice::from_ref(&body)).1.len(), 2);
    for (filter, wanted) in [("worker_id:2", 1), ("worker_id:1", 0)] {
        let listening = Listening::start(&["export", "--filter", filter]);
        post_json(listening.http, &body);
        assert_eq!(listening.spans().len(), wanted, "{filter}");
    }
}

/// B11
#[test]
fn spans_without_usable_ids_are_refused_one_by_one() {
    let (answers, spans) = kept(&[wrap(&[
        span(json!({})),
        span(json!({"traceId": "00000000000000000000000000000000", "spanId": "00000000000000b1"})),
        span(json!({"traceId": "abcd", "spanId": "00000000000000b2"})),
        span(json!({"spanId": null})),
        span(json!({"traceId": "ff23456789abcdef0123456789abcdef", "spanId": "00000000000000a2",
            "parentSpanId": "0000000000000000", "kind": null})),
    ])]);
    assert_eq!(answers[0].status, 200);
    assert_eq!(answers[0].json()["partialSuccess"]["rejectedSpans"], "3");
    assert_eq!(spans.len(), 2);
    assert!(spans.iter().all(|span| span.get("parentSpanId").is_none_or(|parent| parent == "")));
    let (answers, spans) = kept(&[wrap(&[
        span(json!({"traceId": "0123456789abcdef0123456789abcdef01"})),
        span(json!({"spanId": "00000000000000a1ff"})),
        span(json!({"traceId": null})),
        span(json!({"traceId": 5})),
        span(json!({"parentSpanId": "xyz"})),
    ])]);
    assert!(spans.is_empty(), "{answers:?}");
}

/// B13
#[test]
fn a_text_that_is_not_utf_8_costs_only_its_bad_bytes() {
    let bytes = b"\x0a\x6f\x12\x6d\x12\x34\x0a\x10\x01\x23\x45\x67\x89\xab\xcd\xef\x01\x23\x45\x67\x89\xab\xcd\xef\x12\x08\
        \0\0\0\0\0\0\0\xa1\x2a\x04good\x39\0\0\xb0\xd4\xac\xc6\x6c\x18\x41\x40\x42\xbf\xd4\xac\xc6\x6c\x18\x12\x35\x0a\x10\
        \x01\x23\x45\x67\x89\xab\xcd\xef\x01\x23\x45\x67\x89\xab\xcd\xef\x12\x08\0\0\0\0\0\0\0\xa2\x2a\x05ab\xffcd\x39\0\0\
        \xb0\xd4\xac\xc6\x6c\x18\x41\x40\x42\xbf\xd4\xac\xc6\x6c\x18";
    let listening = Listening::export();
    let answer = post(listening.http, "/v1/traces", "application/x-protobuf", bytes);
    assert_eq!(answer.status, 200, "{answer:?}");
    let mut names: Vec<_> = listening.spans().iter().map(|span| span["name"].as_str().unwrap().to_owned()).collect();
    names.sort();
    assert_eq!(names, ["ab\u{fffd}cd", "good"]);
}

/// B13: the same in JSON, where the bytes may also be escapes of half a character.
#[test]
fn half_characters_in_json_cost_only_themselves() {
    let listening = Listening::export();
    let good = wrap(&[span(json!({"name": "NAME"}))]).to_string();
    let bodies: [Vec<u8>; 3] = [
        good.replace("NAME", r"a\ud800b").into_bytes(),
        [good.split("NAME").next().unwrap().as_bytes(), b"a\xffb", good.split("NAME").nth(1).unwrap().as_bytes()]
            .concat()
            .to_ascii_lowercase(),
        good.replace("NAME", r"a\u0000\u001b[2Jb").into_bytes(),
    ];
    for body in &bodies {
        let answer = post(listening.http, "/v1/traces", "application/json", body);
        assert!(matches!(answer.status, 200 | 400), "{answer:?}");
    }
    let output = listening.end();
    assert!(!output.stdout.contains(&0x1b) && !output.stdout.contains(&0));
}

/// A verdict or an export of nothing is no verdict: what could be read of it must be something.
#[test]
fn files_of_which_nothing_could_be_read_are_an_error_of_every_command() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| {
        let path = folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        path
    };
    let (bad, empty) = (write("bad.jsonl", "{oops\n{\"a\":1\n"), write("empty.jsonl", ""));
    let good = write("good.jsonl", &format!("{{oops\n{}\n", wrap(&[span(json!({}))])));
    for command in ["report", "check", "export"] {
        let run = |file: &std::path::Path| common::binary().arg(command).arg(file).output().unwrap();
        let output = run(&bad);
        let told = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{command}: {told}");
        assert!(told.contains("nothing in") && told.contains("bad.jsonl:1"), "{command}: {told}");
        assert!(output.stdout.is_empty(), "{command}");
        // What could be read is there; an export that lacks the rest says so.
        let told = run(&good).status.code() == Some(2);
        assert_eq!((told, run(&good).stdout.is_empty()), (command == "export", false), "{command}");
        assert_ne!(run(&empty).status.code(), Some(2), "{command}");
    }
}

/// A green verdict on a part of what was named would be a lie in CI.
#[test]
fn a_verdict_says_what_it_was_not_asked_of() {
    let folder = tempfile::tempdir().unwrap();
    let torn = folder.path().join("torn.jsonl");
    std::fs::write(&torn, format!("{{oops\n{}\n", wrap(&[span(json!({}))]))).unwrap();
    let missing = folder.path().join("missing.jsonl");
    let run = |arguments: &[&str], files: &[&std::path::Path]| {
        let output = common::binary().args(arguments).args(files).output().unwrap();
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
        (output.status.code(), text(output.stdout), text(output.stderr))
    };
    for command in ["report", "check", "export"] {
        let (status, _, told) = run(&[command], &[&torn, &missing]);
        assert_eq!(status, Some(2), "{command}");
        assert!(told.contains("1 of 2 files could not be read"), "{command}: {told}");
    }
    let (status, said, _) = run(&["check"], &[&torn]);
    assert!(status == Some(0) && said.contains("! not asked: ") && said.contains("torn.jsonl:1"), "{said}");
    let (_, said, _) = run(&["check", "--json"], &[&torn]);
    let said: Json = serde_json::from_str(&said).unwrap();
    assert!(said["incomplete"][0].as_str().unwrap().contains("torn.jsonl:1"), "{said}");
    for (form, word) in [("junit", "<skipped message="), ("github", "::warning title=input::")] {
        let (_, said, _) = run(&["check", "--format", form], &[&torn]);
        let line = said.lines().find(|line| line.contains("torn.jsonl:1"));
        assert!(line.is_some_and(|line| line.contains(word)), "{form}: {said}");
    }
    let (status, said, _) = run(&["check", "--strict", "--format", "junit"], &[&torn]);
    assert!(status == Some(1) && said.contains("name=\"input\"><failure"), "{said}");
    let (status, _, told) = run(&["export"], &[&torn]);
    assert!(status == Some(2) && told.contains("torn.jsonl:1") && told.contains("not exported: 1 lines"), "{told}");
    // A load generator that wrote nothing agrees with nothing.
    let empty = folder.path().join("empty.jsonl");
    std::fs::write(&empty, "").unwrap();
    let (status, _, told) = run(&["check", "--aiperf", empty.to_str().unwrap()], &[&torn]);
    assert!(status == Some(2) && told.contains("nothing to compare"), "{told}");
    let (status, _, told) = run(&["check", "--only", "queue", "--skip", "queue"], &[&torn]);
    assert!(status == Some(2) && told.contains("no check"), "{told}");
}

/// An attribute that counts fewer than nothing, or more than anybody counts to, is no count: no sum is made of it.
#[test]
fn what_is_no_count_is_in_no_sum() {
    let of = |events: Json| {
        let attributes = |more: Json| {
            let id = json!({"key": "dynamo.request.id", "value": {"stringValue": "r"}});
            json!([id, {"key": "dynamo.stream.events", "value": more}])
        };
        let root = span(json!({"name": "request.lifecycle", "attributes": attributes(json!({"intValue": "0"}))}));
        let stream = json!({
            "spanId": "00000000000000a2", "parentSpanId": "00000000000000a1", "name": "response.streaming",
            "attributes": attributes(events),
        });
        let listening = Listening::report();
        post_json(listening.http, &wrap(&[root, span(stream)]));
        listening.json()["streaming"].to_string()
    };
    for none in [
        json!({"intValue": "-1"}),
        json!({"stringValue": "9223372036854775807"}),
        json!({"intValue": "9223372036854775807"}),
    ] {
        let said = of(none);
        assert!(!said.contains("18446744073709551615") && !said.contains("9223372036854775807"), "{said}");
    }
    assert!(of(json!({"intValue": "7"})).contains('7'));
}

/// What was let go for room cannot be expected anything of, compared or exported; whoever asks is told.
#[test]
fn what_was_let_go_is_no_answer() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("many.jsonl");
    let root = |number: u64| {
        let outcome = if number < 100 { "failed" } else { "success" };
        wrap(&[span(json!({
            "traceId": format!("{:032x}", number + 1), "spanId": format!("{:016x}", number + 1), "name": "request.lifecycle",
            "attributes": [
                {"key": "dynamo.request.id", "value": {"stringValue": format!("r{number}")}},
                {"key": "dynamo.request.terminal.outcome", "value": {"stringValue": outcome}},
            ],
        }))])
    };
    let lines: String = (0..6_000).map(|number| format!("{}\n", root(number))).collect();
    std::fs::write(&path, lines).unwrap();
    let run = |arguments: &[&str]| {
        let output = common::binary().args(arguments).arg(&path).output().unwrap();
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
        (output.status.code(), text(output.stdout), text(output.stderr))
    };
    let asked = ["--only", "root.unique", "--expect", "outcome:failed==0"];
    for (memory, failed) in [("512MiB", "100"), ("1MiB", "0")] {
        let (status, said, _) = run(&[&["check", "--json", "--max-memory", memory][..], &asked].concat());
        let said: Json = serde_json::from_str(&said).unwrap();
        assert_eq!((status, &said["requests"]), (Some(1), &json!(6_000)), "{memory}");
        assert_eq!(said["expectations"][0]["found"].to_string(), failed, "{memory}");
        assert_eq!(said["incomplete"].to_string().contains("were let go"), memory == "1MiB", "{said}");
        let (status, written, told) = run(&["export", "--max-memory", memory]);
        assert_eq!((status == Some(2), told.contains("were let go")), (memory == "1MiB", memory == "1MiB"), "{told}");
        assert_eq!(written.lines().count() < 6_000, memory == "1MiB");
    }
    // Nor is it waited for.
    let listening = Listening::start(&["report", "--json", "--max-memory", "1MiB", "--requests", "6000"]);
    for line in std::fs::read_to_string(&path).unwrap().lines().collect::<Vec<_>>().chunks(500) {
        let resources = line.iter().map(|line| serde_json::from_str::<Json>(line).unwrap()["resourceSpans"][0].clone());
        post_json(listening.http, &json!({"resourceSpans": resources.collect::<Vec<_>>()}));
    }
    assert!(listening.ended().status.success());
    // Expectations that hold whatever went are met all the same.
    let (status, ..) = run(&["check", "--max-memory", "1MiB", "--only", "root.unique", "--expect", "<=6000"]);
    assert_eq!(status, Some(0));
}

/// A line of which nothing is read here is as lost as one that cannot be read; so is none after a torn one.
#[test]
fn lines_that_hold_nothing_are_counted_and_torn_ones_cost_themselves() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("od\u{9b}d.jsonl");
    let record = |number: u64| json!({"event": {"event_type": "tool_end", "event_time_unix_ms": number, "agent_context": {"session_id": "s"}}});
    let odd = "{\"resourceSpan\":[]}\n".repeat(3);
    let torn = "{\"event_time_unix_ms\":17960,\n";
    let records: String = (0..50).map(|number| format!("{}\n", record(number))).collect();
    std::fs::write(&path, format!("{}\n{odd}{torn}{records}", wrap(&[span(json!({}))]))).unwrap();
    let output = common::binary().args(["report", "--json"]).arg(&path).output().unwrap();
    let said = String::from_utf8(output.stdout).unwrap();
    assert!(!said.contains('\u{9b}'), "a file's name is hostile, too");
    let report: Json = serde_json::from_str(&said).unwrap();
    assert_eq!(report["input"]["bad_lines"], 4, "{}", report["input"]);
    assert_eq!(report["records"]["total"], 50);
}

#[test]
fn a_filter_of_check_is_asked() {
    let file = common::fixture("queue.traces.jsonl.gz");
    let counted = |filter: &[&str]| {
        let output = common::binary().args(["check", "--json"]).args(filter).arg(&file).output().unwrap();
        let report: Json = serde_json::from_slice(&output.stdout).unwrap();
        for check in report["checks"].as_array().unwrap() {
            let of = |field: &str| check[field].as_u64().unwrap();
            assert_eq!(of("holds") + of("violated") + of("unknown"), report["requests"].as_u64().unwrap(), "{check}");
        }
        let none = report["incomplete"].to_string().contains("matches none of 24 requests");
        assert_eq!(none, report["requests"] == 0);
        (report["requests"].as_u64().unwrap(), report["expectations"][0]["found"].as_u64())
    };
    assert_eq!(counted(&[]), (24, None));
    assert_eq!(counted(&["--filter", "outcome:success", "--expect", ">=6"]), (6, Some(6)));
    assert_eq!(counted(&["--filter", "outcome:failed", "--expect", "outcome:success<=0"]), (0, Some(0)));
    // What the checks say is known to every command that filters by it.
    for filter in ["check:holds", "check:unknown", "not check:violated"] {
        let (meant, _) = counted(&["--filter", filter]);
        assert!(meant > 0, "{filter}");
        let output = common::binary().args(["report", "--json", "--filter", filter]).arg(&file).output().unwrap();
        let report: Json = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!(report["requests"]["total"].as_u64(), Some(meant), "{filter}");
        let output = common::binary().args(["export", "--filter", filter]).arg(&file).output().unwrap();
        assert!(!output.stdout.is_empty(), "{filter}");
    }
}

/// B15, B16, B17
#[test]
fn types_methods_and_paths_are_answered_by_their_rules() {
    let listening = Listening::report();
    let at = listening.http;
    let body = wrap(&[]).to_string();
    for kind in ["application/json; charset=utf-8", "Application/JSON;v=1"] {
        assert_eq!(post(at, "/v1/traces", kind, body.as_bytes()).status, 200, "{kind}");
    }
    assert_eq!(post(at, "/v1/traces", "application/x-protobuf; messageType=\"x\"", b"").status, 200);
    assert_eq!(post(at, "/v1/traces/", "application/json", body.as_bytes()).status, 200);
    let cases = [
        ("POST /v1/traces HTTP/1.1", 415, "application/x-protobuf"),
        ("POST /v1/traces HTTP/1.1\nContent-Type: text/plain", 415, "application/json"),
        ("GET /v1/traces HTTP/1.1", 405, "POST"),
        ("PUT /v1/logs HTTP/1.1\nContent-Type: application/json", 405, "POST"),
        ("GET / HTTP/1.1", 404, "/v1/traces"),
        ("POST / HTTP/1.1", 404, "/v1/traces"),
        ("POST /v1/trace HTTP/1.1", 404, "/v1/traces"),
        ("POST /v1/traces/v1/traces HTTP/1.1\nContent-Type: application/json", 404, "/v1/traces"),
        ("POST /v1/traces// HTTP/1.1", 404, "/v1/traces"),
    ];
    for (head, status, word) in cases {
        let answer = common::http(at, head, b"x");
        assert_eq!(answer.status, status, "{head}: {answer:?}");
        assert!(answer.text().contains(word), "{head}: {answer:?}");
        if status == 405 {
            assert_eq!(answer.header("allow"), Some("POST"));
        }
    }
    // Told once it ends, as on screen: the kind of fault, how often, and the last one.
    let told = String::from_utf8(listening.end().stderr).unwrap();
    assert!(told.contains("no such path") && told.contains("4 ×"), "{told}");
    // A look at whether something answers is told, and no loss: it brought nothing.
    assert!(told.contains("3 × wrong method"), "{told}");
}

/// B19
#[test]
fn bodies_come_compressed_in_every_usual_way() {
    let plain = wrap(&[span(json!({}))]).to_string().into_bytes();
    let gzip = {
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        encoder.write_all(&plain).unwrap();
        encoder.finish().unwrap()
    };
    let zlib = {
        let mut encoder = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::fast());
        encoder.write_all(&plain).unwrap();
        encoder.finish().unwrap()
    };
    let zstd = zstd::encode_all(&plain[..], 1).unwrap();
    let cases: [(&str, &[u8], u16); 12] = [
        ("identity", &plain, 200),
        ("gzip", &gzip, 200),
        ("GZIP", &gzip, 200),
        ("x-gzip", &gzip, 200),
        (" gzip ", &gzip, 200),
        ("zstd", &zstd, 200),
        ("deflate", &zlib, 200),
        ("br", &plain, 415),
        ("gzip", &plain, 400),
        ("gzip", &gzip[..gzip.len() / 2], 400),
        ("gzip", b"", 400),
        ("zstd", &zstd[..zstd.len() / 2], 400),
    ];
    let listening = Listening::report();
    for (coding, body, status) in cases {
        let head = format!("POST /v1/traces HTTP/1.1\nContent-Type: application/json\nContent-Encoding: {coding}");
        let answer = common::http(listening.http, &head, body);
        assert_eq!(answer.status, status, "{coding}: {answer:?}");
        if status == 415 {
            assert!(answer.text().contains("br") && answer.text().contains("gzip"), "{answer:?}");
        }
    }
    assert_eq!(listening.json()["spans"]["total"], 1);
}

/// B19: what a bomb inflates to is bounded before it is there.
#[test]
fn a_compressed_bomb_is_refused_without_being_inflated() {
    let zeros = vec![0u8; 64 << 20];
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
    gzip.write_all(&zeros).unwrap();
    let gzip = gzip.finish().unwrap();
    let zstd = zstd::encode_all(&zeros[..], 1).unwrap();
    drop(zeros);
    let listening = Listening::report();
    for (coding, body) in [("gzip", &gzip), ("zstd", &zstd)] {
        let head =
            format!("POST /v1/traces HTTP/1.1\nContent-Type: application/x-protobuf\nContent-Encoding: {coding}");
        let answer = common::http(listening.http, &head, body);
        assert_eq!(answer.status, 413, "{coding}: {answer:?}");
    }
    assert!(peak_memory(listening.child.id()) < 100 << 20);
    listening.end();
}

/// The most memory a process has had resident, bytes.
fn peak_memory(pid: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status.lines().find(|line| line.starts_with("VmHWM:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap() << 10
}

/// B21
#[test]
fn pages_may_export_only_where_allowed() {
    let preflight = "OPTIONS /v1/traces HTTP/1.1\nAccess-Control-Request-Method: POST\n\
                     Access-Control-Request-Headers: content-type,content-encoding";
    let export = "POST /v1/traces HTTP/1.1\nContent-Type: application/json";
    let ours = "\nOrigin: http://localhost:3000";
    let theirs = "\nOrigin: http://evil.example";
    let off = Listening::report();
    for head in [preflight, export] {
        let answer = common::http(off.http, &format!("{head}{ours}"), b"{}");
        assert_eq!(answer.header("access-control-allow-origin"), None, "{answer:?}");
    }
    off.end();
    let on = Listening::start(&["report", "--allow-origin", "http://localhost:3000"]);
    let answer = common::http(on.http, &format!("{preflight}{ours}"), b"");
    assert_eq!(answer.status, 204, "{answer:?}");
    assert_eq!(answer.header("access-control-allow-origin"), Some("http://localhost:3000"));
    let allowed = answer.header("access-control-allow-headers").unwrap().to_lowercase();
    assert!(allowed.contains("content-type") && allowed.contains("content-encoding"), "{allowed}");
    let answer = common::http(on.http, &format!("{export}{ours}"), b"{}");
    assert_eq!((answer.status, answer.header("access-control-allow-origin")), (200, Some("http://localhost:3000")));
    // Errors too: a page that cannot read the answer cannot tell what was wrong.
    let answer = common::http(on.http, &format!("{export}{ours}"), b"{");
    assert_eq!((answer.status, answer.header("access-control-allow-origin")), (400, Some("http://localhost:3000")));
    for head in [preflight, export] {
        let answer = common::http(on.http, &format!("{head}{theirs}"), b"{}");
        assert_eq!(answer.header("access-control-allow-origin"), None, "{answer:?}");
    }
    on.end();
}

/// B22, B25
#[test]
fn full_success_and_nothing_at_all_are_answered_alike_for_all_signals() {
    let listening = Listening::report();
    for signal in ["traces", "logs", "metrics"] {
        let path = format!("/v1/{signal}");
        let answer = post(listening.http, &path, "application/x-protobuf", b"");
        assert!(answer.status == 200 && answer.body.is_empty(), "{answer:?}");
        assert_eq!(answer.header("content-type"), Some("application/x-protobuf"));
        let answer = post(listening.http, &path, "application/json", b"{}");
        assert_eq!((answer.status, answer.text().as_str()), (200, "{}"));
    }
    assert_eq!(post_json(listening.http, &wrap(&[])).text(), "{}");
    assert_eq!(post_json(listening.http, &wrap(&[span(json!({}))])).text(), "{}");
    let metrics = json!({"resourceMetrics": [{"scopeMetrics": [{"metrics": [
        {"name": "m", "gauge": {"dataPoints": [{"asInt": "1"}, {"asDouble": 2.5}]}},
    ]}]}]});
    let answer = post(listening.http, "/v1/metrics", "application/json", metrics.to_string().as_bytes());
    assert_eq!((answer.status, answer.text().as_str()), (200, "{}"));
    assert_eq!(listening.json()["input"]["metric_points"], 2);
}

/// B32, B33, B38
#[test]
fn times_stay_as_received() {
    let times = [
        ("1760000000000000000", "1759999999999999999"),
        ("0", "0"),
        ("1760000000010000000", "0"),
        ("7258118400000000000", "7258118400000000001"),
        ("18446744073709551615", "1"),
        ("1", "18446744073709551615"),
    ];
    let mut sent = vec![span(json!({}))];
    for (at, (start, end)) in times.iter().enumerate() {
        sent.push(span(json!({
            "spanId": format!("{:016x}", 0xb0 + at), "parentSpanId": "00000000000000a1",
            "startTimeUnixNano": start, "endTimeUnixNano": end,
        })));
    }
    let (answers, spans) = kept(&[wrap(&sent)]);
    assert_eq!(answers[0].text(), "{}");
    let read: Vec<_> = spans[1..]
        .iter()
        .map(|span| {
            let time = |key: &str| span.get(key).and_then(Json::as_str).unwrap_or("0").to_owned();
            (time("startTimeUnixNano"), time("endTimeUnixNano"))
        })
        .collect();
    assert_eq!(read, times.map(|(start, end)| (start.to_owned(), end.to_owned())));
    let listening = Listening::report();
    post_json(listening.http, &wrap(&sent));
    let report = listening.json();
    assert_eq!(report["requests"]["by_mark"]["end before start"], 1, "{}", report["requests"]);
    assert_eq!(report["requests"]["by_mark"]["unlikely time"], 1, "{}", report["requests"]);
}

/// B33: a time that is not known is no number of years in the statistics.
#[test]
fn unknown_starts_are_in_no_statistics() {
    let attributes = json!([{"key": "request_id", "value": {"stringValue": "r"}}]);
    let of = |id: &str, parent: &str, name: &str| {
        span(json!({
            "spanId": id, "parentSpanId": parent, "name": name, "attributes": attributes,
            "startTimeUnixNano": "0", "endTimeUnixNano": "1760000000120000000",
        }))
    };
    let sent = [
        of("00000000000000a1", "", "request.lifecycle"),
        of("00000000000000a2", "00000000000000a1", "kv_router.schedule"),
    ];
    let listening = Listening::report();
    post_json(listening.http, &wrap(&sent));
    let report = listening.json();
    assert_eq!(report["requests"]["total"], 1);
    let years = report.to_string();
    assert!(!years.contains("1760000000120000000"), "{years}");
}

/// Reads what a peer says until it closes.
fn read_all(stream: &mut TcpStream) -> Vec<u8> {
    let mut bytes = Vec::new();
    let _ = stream.read_to_end(&mut bytes);
    bytes
}

/// B64
#[test]
fn held_connections_do_not_hold_the_end() {
    let listening = Listening::report();
    let mut idle = TcpStream::connect(listening.http).unwrap();
    write!(
        idle,
        "POST /v1/traces HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{{}}"
    )
    .unwrap();
    let mut first = [0; 12];
    idle.read_exact(&mut first).unwrap();
    assert_eq!(&first, b"HTTP/1.1 200");
    let mut half = TcpStream::connect(listening.http).unwrap();
    write!(
        half,
        "POST /v1/traces HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 99\r\n\r\n{{"
    )
    .unwrap();
    let mut silent = TcpStream::connect(listening.grpc).unwrap();
    let mut http2 = TcpStream::connect(listening.grpc).unwrap();
    http2.write_all(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0").unwrap();
    http2.read_exact(&mut first[..9]).unwrap();
    let begun = std::time::Instant::now();
    listening.end();
    assert!(begun.elapsed() < std::time::Duration::from_secs(8), "{:?}", begun.elapsed());
    for stream in [&mut idle, &mut half, &mut silent, &mut http2] {
        read_all(stream);
    }
}

/// A file of these bytes in a folder of its own.
fn file(bytes: &[u8]) -> (tempfile::TempDir, std::path::PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("spans.jsonl");
    std::fs::write(&path, bytes).unwrap();
    (folder, path)
}

/// A line with one request of its own.
fn line(number: u64) -> String {
    wrap(&[span(
        json!({"traceId": format!("{number:032x}"), "attributes": [attr("request_id", &format!("r-{number}"))]}),
    )])
    .to_string()
}

/// B65
#[test]
fn a_torn_line_costs_itself_and_is_told() {
    let (first, second) = (line(3), line(4));
    let (head, tail) = first.split_at(first.len() / 2);
    let (_a, one) = file(format!("{}\n{}\n{head}", line(1), line(2)).as_bytes());
    let (_b, two) = file(format!("{tail}\n{second}\n").as_bytes());
    let report = common::report(&[one, two]);
    assert!(report["requests"]["total"].as_u64().unwrap() >= 3, "{}", report["requests"]);
    let problems = report["input"]["problems"].as_array().unwrap();
    assert!(problems.len() <= 2 && problems.iter().all(|problem| problem.as_str().unwrap().contains(".jsonl")));
    // One line torn and glued to the next.
    let (_c, glued) = file(format!("{}\n{head}{second}\n{}\n", line(1), line(2)).as_bytes());
    let report = common::report(&[glued]);
    assert!(report["requests"]["total"].as_u64().unwrap() >= 2);
    assert!(report["input"]["problems"][0].as_str().unwrap().contains('2'), "{}", report["input"]);
}

/// B66
#[test]
fn marks_of_other_systems_in_files_cost_nothing() {
    let mut bytes = b"\xef\xbb\xbf".to_vec();
    bytes.extend(line(1).as_bytes());
    bytes.extend(b"\r\n\r\n");
    bytes.extend([0; 4096]);
    bytes.extend(line(2).as_bytes());
    let (_folder, path) = file(&bytes);
    let report = common::report(&[path]);
    assert_eq!((&report["requests"]["total"], &report["input"]["bad_lines"]), (&json!(2), &json!(0)), "{report}");
}

/// B67
#[test]
fn a_line_of_megabytes_is_one_line() {
    let spans: Vec<Json> = (1..=10_000u64)
        .map(|id| span(json!({"spanId": format!("{id:016x}"), "attributes": [attr("filler", &"x".repeat(100))]})))
        .collect();
    let (_folder, path) = file(wrap(&spans).to_string().as_bytes());
    assert_eq!(common::report(&[path])["spans"]["total"], 10_000);
}

/// B69
#[test]
fn near_misses_of_otlp_lines_are_read_or_named() {
    let whole = wrap(&[span(json!({}))]);
    let bare = whole["resourceSpans"][0].to_string();
    let pretty = serde_json::to_string_pretty(&whole).unwrap();
    let array = format!("[{whole},{}]", line(2));
    let mixed = format!("{whole}\n{}\n{}\n", json!({"resourceLogs": []}), json!({"resourceMetrics": []}));
    for (shape, text) in [("bare", bare), ("pretty", pretty), ("array", array), ("mixed", mixed)] {
        let (_folder, path) = file(text.as_bytes());
        let report = common::report(&[path]);
        assert!(report["spans"]["total"].as_u64().unwrap() >= 1, "{shape}: {report}");
        assert_eq!(report["input"]["bad_lines"], 0, "{shape}: {}", report["input"]);
    }
    for text in ["hello\n", "{}\n", "[]\n", "{\"a\": 1}\n", "42\n"] {
        let (_folder, path) = file(text.as_bytes());
        let output = common::binary().args(["report"]).arg(&path).output().unwrap();
        let told = String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
        assert!(told.contains("bad lines") || told.contains("spans.jsonl"), "{text:?}: {told}");
    }
}

/// B41
#[test]
fn large_values_and_what_the_sender_dropped_are_kept() {
    let mut attributes = vec![attr("prompt", &"lorem ipsum ".repeat(90_000))];
    attributes.extend((0..1_000).map(|number| attr(&format!("key-{number:04}"), "value")));
    let sent = span(json!({"attributes": attributes, "droppedAttributesCount": 7, "droppedEventsCount": 2}));
    let (answers, spans) = kept(&[wrap(std::slice::from_ref(&sent))]);
    assert_eq!(answers[0].text(), "{}");
    assert_eq!(spans[0]["attributes"], sent["attributes"]);
    assert_eq!((&spans[0]["droppedAttributesCount"], &spans[0]["droppedEventsCount"]), (&json!(7), &json!(2)));
}

/// B35: the caller exports nothing, or not to here; its callee is a request all the same, that has ended.
#[test]
fn a_parent_that_never_arrives_is_counted_and_holds_nothing_open() {
    let listening = Listening::report();
    post_json(
        listening.http,
        &wrap(&[
            span(json!({"name": "called", "parentSpanId": "00000000000000ff"})),
            span(json!({"name": "below", "spanId": "00000000000000a2", "parentSpanId": "00000000000000a1", "kind": 1})),
        ]),
    );
    let report = listening.json();
    assert_eq!(report["spans"]["orphans"], 1);
    assert_eq!((&report["requests"]["total"], &report["requests"]["in_flight"]), (&json!(1), &json!(0)));
    assert_eq!(report["requests"]["by_mark"]["missing parent"], 1);
}

/// B44: the worker died with its spans; the router's are the only witness of that attempt.
#[test]
fn an_attempt_whose_worker_died_is_an_attempt() {
    let route = |id: &str, attributes: &[Json], status: u64| {
        let mut all = vec![attr("request_id", "r-a"), attr("phase", "Aggregated")];
        all.extend_from_slice(attributes);
        span(json!({"name": "router.route_request", "kind": 1, "spanId": id, "parentSpanId": "00000000000000a2",
            "attributes": all, "status": {"code": status}}))
    };
    let listening = Listening::report();
    post_json(
        listening.http,
        &wrap(&[
            span(json!({"attributes": [attr("request_id", "r-a")]})),
            span(json!({"name": "request.lifecycle", "spanId": "00000000000000a2", "parentSpanId": "00000000000000a1",
            "attributes": [attr("dynamo.request.id", "r-a"), attr("dynamo.request.terminal.outcome", "success")]})),
            route(
                "00000000000000b1",
                &[
                    attr("worker_id", "7"),
                    attr("request.attempt", "0"),
                    attr("request.outcome", "worker_disconnected"),
                    attr("error.type", "disconnected"),
                ],
                2,
            ),
            route(
                "00000000000000b2",
                &[
                    attr("worker_id", "8"),
                    attr("request.attempt", "1"),
                    attr("request.outcome", "success"),
                    attr("migration.is_retry", "true"),
                    attr("migration.from_worker_id", "7"),
                    attr("migration.tokens_completed", "61"),
                ],
                0,
            ),
            span(json!({"name": "handle_payload", "spanId": "00000000000000c1", "parentSpanId": "00000000000000b2",
            "attributes": [attr("request_id", "r-a")]})),
        ]),
    );
    let report = listening.json();
    assert_eq!(report["requests"]["by_outcome"]["success"], 1, "{}", report["requests"]);
    assert_eq!(report["requests"]["with_more_than_one_attempt"], 1);
    let workers: Vec<_> = report["workers"].as_array().unwrap().iter().map(|row| row["worker"].to_string()).collect();
    assert!(workers.len() == 2 && workers[0].contains('7') && workers[1].contains('8'), "{workers:?}");
    assert_eq!(report["requests"]["in_flight"], 0);
}

/// B45: a request is listed from spans, from a record, or from an incomplete payload alone.
#[test]
fn a_request_needs_only_one_side() {
    let (_folder, record) = file(
        br#"{"schema":"dynamo.request.trace.v1","event_type":"request_end","event_time_unix_ms":1760000001000,"request":{"request_id":"r-b","output_tokens":3}}"#,
    );
    let listening = {
        let mut command = vec!["report", "--json"];
        command.push(record.to_str().unwrap());
        Listening::start(&command)
    };
    post_json(
        listening.http,
        &wrap(&[
            span(json!({"attributes": [attr("request_id", "r-a")]})),
            span(json!({"name": "request.lifecycle", "spanId": "00000000000000a2", "parentSpanId": "00000000000000a1",
            "attributes": [attr("dynamo.request.id", "r-a"), attr("dynamo.request.terminal.outcome", "cancelled")]})),
        ]),
    );
    let report = listening.json();
    assert_eq!(report["requests"]["total"], 2);
    assert_eq!(report["requests"]["by_outcome"]["cancelled"], 1);
    assert_eq!(report["records"]["by_type"]["request_end"], 1);
}

/// One field of a protobuf message.
fn field(number: u32, bytes: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    prost::encoding::encode_varint(u64::from(number << 3 | 2), &mut out);
    prost::encoding::encode_varint(bytes.len() as u64, &mut out);
    out.extend_from_slice(bytes);
    out
}

/// B61: whatever comes, memory stays near its limit and what went is counted.
#[test]
fn memory_stays_at_its_limit() {
    let listening = Listening::start(&["report", "--json", "--max-memory", "16MiB"]);
    // Distinct values; names and attributes of half a megabyte each; one trace that only grows; orphans.
    let mut sent = 0;
    let mut send = |spans: Vec<Vec<u8>>| {
        sent += spans.len() as u64;
        let spans: Vec<u8> = spans.iter().flat_map(|span| field(2, span)).collect();
        let answer = post(listening.http, "/v1/traces", "application/x-protobuf", &field(1, &field(2, &spans)));
        assert_eq!(answer.status, 200, "{answer:?}");
    };
    let span = |trace: u64, id: u64, parent: u64, name: &[u8], value: &[u8]| {
        let mut span = field(1, &u128::from(trace).to_be_bytes());
        span.extend(field(2, &id.to_be_bytes()));
        if parent > 0 {
            span.extend(field(4, &parent.to_be_bytes()));
        }
        span.extend(field(5, name));
        // Start and end.
        span.extend([
            0x39, 0, 0, 0xb0, 0xd4, 0xac, 0xc6, 0x6c, 0x18, 0x41, 0x40, 0x42, 0xbf, 0xd4, 0xac, 0xc6, 0x6c, 0x18,
        ]);
        span.extend(field(9, &[field(1, b"key"), field(2, &field(1, value))].concat()));
        span
    };
    for round in 0..10u64 {
        let trace = |n: u64| round * 2_000 + n;
        send((1..2_000).map(|n| span(trace(n), n, 0, b"many", format!("distinct {round} {n}").as_bytes())).collect());
        send((1..2_000).map(|n| span(1 << 40, trace(n), trace(n - 1), b"one", b"same")).collect());
        send((1..1_000).map(|n| span(trace(n) + (1 << 41), n, 77, b"orphan", b"same")).collect());
        let large = vec![b'a' + round as u8; 500_000];
        send(
            (1..10u64).map(|n| span(trace(n) + (1 << 42), n, 0, &[&large[..], &[n as u8]].concat(), &large)).collect(),
        );
    }
    let peak = peak_memory(listening.child.id());
    let report = listening.json();
    let count = |key: &str| report["spans"][key].as_u64().unwrap();
    assert!(peak < 160 << 20, "{} MiB", peak >> 20);
    assert_eq!(count("received"), sent);
    assert_eq!(count("total") + count("shed") + count("duplicates") + count("rejected"), sent, "{}", report["spans"]);
    assert!(count("evicted") > 0 && report["requests"]["evicted"].as_u64().unwrap() > 0, "{}", report["spans"]);
}

/// B61, B64: senders that stop in the middle hold no more than their share.
#[test]
fn half_sent_bodies_share_one_bound() {
    let listening = Listening::start(&["report", "--json", "--max-message", "1MiB"]);
    let body = vec![0u8; 1_000_000];
    let halves: Vec<TcpStream> = (0..40)
        .map(|_| {
            let mut stream = TcpStream::connect(listening.http).unwrap();
            let head = "POST /v1/traces HTTP/1.1\r\nHost: x\r\nContent-Type: application/x-protobuf\r\n";
            write!(stream, "{head}Content-Length: 1000001\r\n\r\n").unwrap();
            stream.set_write_timeout(Some(std::time::Duration::from_secs(1))).unwrap();
            let _ = stream.write_all(&body);
            stream
        })
        .collect();
    let peak = peak_memory(listening.child.id());
    assert!(peak < 64 << 20, "{} MiB", peak >> 20);
    drop(halves);
    // And then it serves again.
    let begun = std::time::Instant::now();
    while post_json(listening.http, &wrap(&[span(json!({}))])).status != 200 {
        assert!(begun.elapsed() < std::time::Duration::from_secs(10));
    }
    assert_eq!(listening.json()["spans"]["total"], 1);
}

/// A message need not be large to be costly: parts of nothing, values within values, a resource told again and again.
#[test]
fn messages_made_to_cost_are_refused_or_cheap() {
    let listening = Listening::export();
    let send = |body: &[u8]| post(listening.http, "/v1/traces", "application/x-protobuf", body);
    let ids = [field(1, &[1; 16]), field(2, &[2; 8])].concat();
    let hollow = |tag: u8| [&ids[..], &[tag, 0].repeat(1_000_000)].concat();
    let spans = |span: &[u8]| field(1, &field(2, &field(2, span)));
    for tag in [0x4a, 0x5a, 0x6a] {
        assert_eq!(send(&spans(&hollow(tag))).status, 400, "empty parts of field {}", tag >> 3);
    }
    assert_eq!(send(&[0x0a, 0].repeat(1_000_000)).status, 400);
    let keys: Vec<u8> = (0..1_000).flat_map(|key: u32| field(1, &field(1, &key.to_be_bytes()))).collect();
    let told = [field(1, &keys), [0x0a, 0].repeat(100_000)].concat();
    assert_eq!(send(&field(1, &told)).status, 400, "a resource told again and again");
    let mut nested = field(1, b"x");
    for _ in 0..2_000 {
        nested = field(5, &field(1, &nested));
    }
    let deep = field(9, &[field(1, b"k"), field(2, &nested)].concat());
    let answer = send(&spans(&[&ids[..], &deep].concat()));
    assert!(matches!(answer.status, 200 | 400), "{answer:?}");
    let deep = format!("{}{}", "[".repeat(200_000), "]".repeat(200_000));
    assert_eq!(post(listening.http, "/v1/traces", "application/json", deep.as_bytes()).status, 400);
    let body = wrap(&[span(json!({"zzz": 1}))]).to_string().replace("\"zzz\":1", &format!("\"zzz\":{deep}"));
    let answer = post(listening.http, "/v1/traces", "application/json", body.as_bytes());
    assert!(matches!(answer.status, 200 | 400), "{answer:?}");
    assert!(peak_memory(listening.child.id()) < 100 << 20);
    listening.end();
}

/// An export of logs that was sent twice came again; whether it is a file or the endpoint that got it, and wherever in the
/// file it stands, its records were not written twice.
#[test]
fn an_export_of_logs_that_came_again_is_a_duplicate_in_a_file_too() {
    let lines = common::inflated("fast-flush.logs.jsonl.gz");
    let lines: Vec<&[u8]> = lines.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()).collect();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("twice.jsonl");
    let check = |lines: &[&[u8]]| -> (u64, String) {
        std::fs::write(&path, lines.join(&b'\n')).unwrap();
        let output = common::binary().args(["check", "--json", "--only", "record.unique"]).arg(&path).output().unwrap();
        let said: Json = serde_json::from_slice(&output.stdout).unwrap();
        (said["checks"][0]["violated"].as_u64().unwrap(), said["requests"].to_string())
    };
    let once = check(&lines);
    let next_to_each_other: Vec<&[u8]> = lines.iter().flat_map(|line| [*line, *line]).collect();
    let one_after_the_other = [&lines[..], &lines[..]].concat();
    assert!(once.0 == 0 && lines.len() > 10);
    assert_eq!(check(&next_to_each_other), once);
    assert_eq!(check(&one_after_the_other), once);
}

/// A record that comes again in another line came again: next to it, far behind it, wrapped, bare or as a log.
/// Two that differ were written twice, and so were two that stand in one export.
#[test]
fn what_comes_again_is_a_duplicate_however_it_comes() {
    let lines = common::inflated("evidence-disagg.request_trace.jsonl.gz");
    let lines = String::from_utf8(lines).unwrap();
    let bare: Vec<String> = lines
        .lines()
        .map(|line| serde_json::from_str::<Json>(line).unwrap())
        .map(|line| line.get("event").unwrap_or(&line).to_string())
        .collect();
    let end = bare.iter().find(|line| line.contains("request_end")).unwrap();
    let wrapped = format!(r#"{{"timestamp":5,"event":{end}}}"#);
    let log = |payload: &str| json!({"attributes": [attr("payload", payload)]});
    let export = |logs: &[Json]| {
        json!({"resourceLogs": [{"scopeLogs": [{"scope": {"name": "dynamo.request_trace"}, "logRecords": logs}]}]})
            .to_string()
    };
    let check = |lines: &[&str]| -> (u64, u64, u64) {
        let mut child = common::binary()
            .args(["check", "-", "--json", "--only", "record.unique"])
            .stdin(std::process::Stdio::piped())
            .stdout(std::process::Stdio::piped())
            .spawn()
            .unwrap();
        let mut input = child.stdin.take().unwrap();
        for line in lines {
            writeln!(input, "{line}").unwrap();
        }
        drop(input);
        let said: Json = serde_json::from_slice(&child.wait_with_output().unwrap().stdout).unwrap();
        let row = &said["checks"][0];
        let count = |value: &Json| value.as_u64().unwrap();
        (count(&row["holds"]), count(&row["violated"]), count(&said["records_duplicate"]))
    };
    let one = export(&[log(end)]);
    for again in [end, &wrapped, &one] {
        for first in [end, &wrapped, &one] {
            assert_eq!(check(&[first, again]), (1, 0, 1), "{first}\n{again}");
        }
    }
    let others: Vec<String> = (0..2_000)
        .map(|number| format!(r#"{{"event_type":"tool_end","event_time_unix_ms":{number},"tool":{{"name":"t"}}}}"#))
        .collect();
    for before in [0, 509, 510, 511, 512] {
        let others = |range: std::ops::Range<usize>| others[range].iter().map(String::as_str);
        let near: Vec<&str> = others(0..before).chain([end.as_str(), end]).collect();
        let far: Vec<&str> =
            others(0..before).chain([end.as_str()]).chain(others(before..2_000)).chain([end.as_str()]).collect();
        assert_eq!([check(&near), check(&far)], [(1, 0, 1); 2], "{before}");
    }
    let whole: Vec<&str> = bare.iter().map(String::as_str).collect();
    let (holds, ..) = check(&whole);
    assert_eq!(check(&[&whole[..], &whole[..]].concat()), (holds, 0, whole.len() as u64));
    let later = end.replacen("\"event_time_unix_ms\":1", "\"event_time_unix_ms\":2", 1);
    assert_ne!(later, *end);
    assert_eq!(check(&[end, &later]), (0, 1, 0));
    assert_eq!(check(&[&export(&[log(end), log(end)])]), (0, 1, 0));
}

/// Whoever reads that it listens may end it at once, and has its report.
#[test]
fn it_can_be_ended_as_soon_as_it_says_that_it_listens() {
    for _ in 0..20 {
        assert_eq!(Listening::report().json()["spans"]["total"], 0);
    }
}
