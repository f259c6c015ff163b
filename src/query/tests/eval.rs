use super::{Given, OneSpan, Untouched, parse, request};
use crate::lifecycle::facts::{Facts, Marks};
use crate::lifecycle::packed::{Value, pack};
use crate::lifecycle::stage::Outcome;
use crate::query::{Answer, Lazy, OnDemand, Query};

#[test]
fn facts_answer_without_spans() {
    let facts = request();
    for (text, meant) in [
        ("", true),
        ("outcome:cancelled", true),
        ("outcome:CANCELLED", true),
        ("outcome:cancel*", true),
        ("outcome:failed", false),
        ("outcome:failed,cancelled", true),
        ("outcome!=failed", true),
        ("outcome!=failed,cancelled", false),
        ("state:ended", true),
        ("request:55307ac2", true),
        ("request:55307ac", false),
        ("request=55307ac2", false),
        ("request:55307ac2-dc7d-4855-9767-a4d62fd45968", true),
        ("session:s-30*", true),
        ("session:s-309", false),
        ("session:S-30942", true),
        ("model:qwen/qwen3-0.6b", true),
        ("endpoint:/v1/chat/completions", true),
        ("worker:7587890", true),
        ("worker:7587890:0", true),
        ("worker:7587890:1", false),
        ("worker:7f6d", true),
        ("worker:7f6d:0", true),
        ("worker:7f*", true),
        ("worker:75878*", true),
        ("worker:1,7587891", true),
        ("worker:999", false),
        ("phase:prefill", true),
        ("phase:aggregated", false),
        ("attempt>0", true),
        ("attempt>1", false),
        ("attempts:2", true),
        ("queue.wait>100ms", true),
        ("queue.wait>412ms", false),
        ("queue.wait>=412ms", true),
        ("queue.wait:412ms", true),
        ("queue.wait:400..500", true),
        ("queue.wait:400..<412ms", false),
        ("queue.wait:1s..", false),
        ("queue.wait<=100us", true),
        ("queue.wait<100us", false),
        ("margin<0.1", true),
        ("margin=0", true),
        ("margin:-1..-0.5", false),
        ("regret:0", true),
        ("chose_best:true", true),
        ("reason:prefill_capacity", true),
        ("reason:class_backlog", true),
        ("reason:*", true),
        ("deferred:true deferred:no", true),
        ("class:latency", true),
        ("depth>=7", true),
        ("filtered.overloaded>0", true),
        ("filtered.policy:*", false),
        ("result:failed", true),
        ("retry:yes", true),
        ("migration.from:7587891", true),
        ("migration.tokens:61", true),
        ("admission.bytes:4KiB", true),
        ("admission.bytes>=1MiB", false),
        ("acceptance:2ms", true),
        ("leg(dispatch.result:failed acceptance:*)", false),
        ("at_capacity:true", true),
        ("leg(phase:prefill at_capacity:true)", false),
        ("lost:true", false),
        ("http:false", true),
        ("stream.rate:300..350", true),
        ("record.ttft:*", false),
        ("events:31", true),
        ("abandoned:true", true),
        ("stream.outcome:abandoned", true),
        ("ttft:19ms", true),
        ("total:1.9s", true),
        ("tokens.in:200", true),
        ("cached:50%", true),
        ("cached>0.5", false),
        ("checkpoint:ready", true),
        ("mark:clock_skew", true),
        ("mark:\"clock skew\"", true),
        ("skew:0.2ms", true),
        ("layout:evidence mode:investigation", true),
        ("streaming:*", true),
        ("root:true record:false", true),
        ("pinned:*", false),
        ("-pinned:*", true),
        ("trace:8f1c00000000000000000000000053ab", true),
        ("trace:8f1c0000", true),
        ("trace=8f1c0000", false),
        ("trace:8f1c0001", false),
        ("phase:prefill dispatch.result:failed", true),
        ("leg(phase:prefill dispatch.result:failed)", false),
        ("leg(phase:decode dispatch.result:failed)", true),
        ("leg(phase:decode -dispatch.result:failed)", true),
        ("leg(phase:decode outcome:cancelled attempt:1)", true),
        ("-leg(margin>2)", true),
        ("a:1 or outcome:cancelled", true),
    ] {
        let query = parse(text);
        assert_eq!(query.matches(&facts, &()), meant, "{text}");
        if !query.needs_spans() {
            assert_eq!(query.matches(&facts, &Untouched), meant, "{text}");
        }
    }
    // Facts that decide leave the spans alone, wherever they stand.
    assert!(!parse("abc outcome:failed").matches(&facts, &Untouched));
    assert!(parse("some.attribute:1 or outcome:cancelled").matches(&facts, &Untouched));
    assert!(parse("QWEN3").matches(&facts, &Untouched));
}

#[test]
fn what_is_not_known_is_no_value() {
    let facts = Facts { outcome: Some(Outcome::Unknown), outcome_word: "finished".into(), ..Facts::default() };
    for (text, meant) in [
        ("outcome:unknown", true),
        ("outcome:finished", true),
        ("outcome:success", false),
        ("margin:*", false),
        ("margin<100", false),
        ("margin!=3", true),
        ("session:*", false),
        ("total:*", false),
        ("mode:*", false),
        ("attempts:0", true),
        ("leg(attempt:0)", false),
        ("leg(-worker:5)", false),
    ] {
        assert_eq!(parse(text).matches(&facts, &Untouched), meant, "{text}");
    }
    let waiting = Facts { session_id: "r".into(), session_fallback: true, ..Facts::default() };
    assert!(parse("outcome:in_flight -session:* state:\"in flight\"").matches(&waiting, &()));
}

#[test]
fn attributes_and_free_text_are_found_in_spans() {
    let facts = request();
    let mut list = Vec::new();
    let inner = pack("x", Value::Str("Deep Inside"));
    // A packed array holds values, not attributes: take the value out of its attribute.
    list.extend_from_slice(&[0x0a, (inner.len() - 5) as u8]);
    list.extend_from_slice(&inner[5..]);
    let span = OneSpan::new(
        "kv_router.route_request",
        &[
            ("worker_id", Value::Str("1")),
            ("worker_id", Value::Str("2")),
            (r#"odd key "x"-y.z"#, Value::Str("a \"b\" = c\n d")),
            ("ttft_ms", Value::Str("12.34")),
            ("busy_ns", Value::Int(5000)),
            ("big", Value::Int(-1)),
            ("huge", Value::Str("9007199254740993")),
            ("half", Value::Double(0.5)),
            ("yes", Value::Bool(true)),
            ("empty", Value::Str("")),
            ("list", Value::Array(&list)),
            ("phase", Value::Str("warm")),
            ("overlap_blocks", Value::Str("8")),
        ],
        ("request completed", &[("status", Value::Str("Error ÄB"))]),
    );
    let lazy = Given {
        view: span.view(&facts),
        checks: &[("queue.reason", Answer::Violated), ("queue.facts", Answer::Unknown), ("root.unique", Answer::Holds)],
    };
    for (text, meant) in [
        ("worker_id:2", true),
        ("worker_id:1", false),
        (r#""odd key \"x\"-y.z":"a \"b\" = c\n d""#, true),
        (r#""odd key \"x\"-y.z":a"#, false),
        ("ttft_ms:12.34", true),
        ("ttft_ms>12ms", true),
        ("ttft_ms>0.1s", false),
        ("busy_ns:5us", true),
        ("busy_ns>4999", true),
        ("big:18446744073709551615", true),
        ("big:-1", true),
        ("huge:9007199254740993", true),
        ("huge:9007199254740992", false),
        ("half:0.50", true),
        ("half:0.1..1", true),
        ("yes:true", true),
        ("empty:\"\"", true),
        ("empty:*", true),
        ("absent:*", false),
        ("list:*", true),
        ("phase:warm", false),
        ("\"phase\":warm", true),
        ("route.overlap>=8", true),
        ("route.worker:2", true),
        ("status:error*", true),
        ("status:\"error äb\"", true),
        ("status.message:\"boom: status\"", true),
        ("status.message:error*", false),
        ("event:request*", true),
        ("span:kv_router.*", true),
        ("span:kv_router.schedule", false),
        ("service:dynamo-frontend", true),
        ("service.name:dynamo*", true),
        ("\"deep inside\"", true),
        ("ROUTE_REQ", true),
        ("äb", true),
        ("completed", true),
        ("s-3094", true),
        ("7587890", true),
        ("7f6d:0", false),
        ("\"7f6d:0\"", true),
        ("backlog", true),
        ("frontend", true),
        ("zzz", false),
        ("check:violated", true),
        ("check:queue.reason", true),
        ("check:queue.facts", false),
        ("check:queue.facts:unknown", true),
        ("check:QUEUE.*", true),
        ("check:*", true),
        ("check:root.*", false),
        ("check:unknown check:holds", true),
    ] {
        let query = parse(text);
        assert!(query.needs_spans() || text.starts_with("phase"), "{text}");
        assert_eq!(query.matches(&facts, &lazy), meant, "{text}");
    }
    // The view is made once, and only on demand.
    let made = std::cell::Cell::new(0);
    let lazy = OnDemand::new(|| {
        made.set(made.get() + 1);
        Some(span.view(&facts))
    });
    assert!(parse("outcome:cancelled").matches(&facts, &lazy) && made.get() == 0);
    assert!(parse("worker_id:2 yes:true").matches(&facts, &lazy) && made.get() == 1);
    assert!(lazy.view().is_some() && !parse("check:*").matches(&facts, &lazy));
}

#[test]
fn joined_requests_are_found_by_each_trace() {
    let mut facts = request();
    let span = OneSpan::new("http-request", &[], ("e", &[]));
    let other = "trace:abababababababababababababababab";
    let asked = |facts: &Facts| parse(other).matches(facts, &Given { view: span.view(facts), checks: &[] });
    assert!(!asked(&facts));
    facts.marks.set(Marks::INFERRED_JOIN);
    assert!(asked(&facts));
}

/// Prints what a simple term costs; run with `--ignored --nocapture`.
#[test]
#[ignore = "a measurement"]
fn cost_of_simple_terms() {
    let facts = request();
    for text in [
        "outcome:cancelled",
        "worker:7f6d:0",
        "queue.wait>1s",
        "reason:subscriber_shutdown",
        "leg(phase:decode margin>3)",
        "zzz",
    ] {
        let query: Query = parse(text);
        let (rounds, start) = (200_000, std::time::Instant::now());
        let meant =
            (0..rounds).filter(|_| std::hint::black_box(&query).matches(std::hint::black_box(&facts), &())).count();
        println!("{text}: {} ns ({meant})", start.elapsed().as_nanos() / rounds as u128);
    }
}
