use super::{error, parse};
use crate::query::{MAX_LENGTH, Name, Op, Query, append_term, drop_last_term, term};

#[test]
fn what_is_read_is_written_in_one_way() {
    for (text, canonical) in [
        ("", ""),
        ("  \t", ""),
        ("outcome:cancelled", "outcome:cancelled"),
        (
            "outcome:cancelled worker:7587890 phase:prefill queue.wait>100ms margin<0.1 reason:prefill_capacity attempt>0 check:violated session:abc \"free text\"",
            "outcome:cancelled worker:7587890 phase:prefill queue.wait>100ms margin<0.1 queue.reason:prefill_capacity attempt>0 check:violated session:abc \"free text\"",
        ),
        ("worker:7f3a:0", "worker:7f3a:0"),
        ("a and b AND c && d & e", "a b c d e"),
        ("a or b | c || d", "a or b or c or d"),
        ("(err|ok)", "err or ok"),
        ("a b or c", "a b or c"),
        ("a (b or c)", "a (b or c)"),
        ("((a b)) c", "a b c"),
        ("(a or b) or c", "a or b or c"),
        ("not a", "-a"),
        ("!a -b NOT(c d)", "-a -b -(c d)"),
        ("not not -a", "---a"),
        ("outcome:(cancelled, failed)", "outcome:cancelled,failed"),
        ("outcome:(cancelled or failed | rejected)", "outcome:cancelled,failed,rejected"),
        ("outcome != success", "outcome!=success"),
        ("outcome == success", "outcome=success"),
        ("queue.wait:>=100ms", "queue.wait>=100ms"),
        ("queue.wait  <  100ms", "queue.wait<100ms"),
        ("ttft:10..20ms", "ttft:10..20ms"),
        ("session:s-30*", "session:s-30*"),
        ("session:\"a b\"*", "session:\"a b\"*"),
        ("margin:*", "margin:*"),
        ("dynamo.router.queue.class:latency", "dynamo.router.queue.class:latency"),
        (r#""odd key \"x\"-y.z":"a \"b\" = c\n d""#, r#""odd key \"x\"-y.z":"a \"b\" = c\n d""#),
        ("LEG(phase:decode dispatch.result:failed)", "leg(phase:decode dispatch.result:failed)"),
        ("leg (a)", "leg a"),
        ("Reason:x", "queue.reason:x"),
        ("android order nothing", "android order nothing"),
        ("\"and\" or \"\\\\\"", "\"and\" or \"\\\\\""),
        ("and:5 or > 5", "\"and\":5 \"or\">5"),
        ("\"outcome\":x", "\"outcome\":x"),
        ("日本 model:é*", "日本 model:é*"),
    ] {
        let query = parse(text);
        assert_eq!(query.to_string(), canonical, "{text}");
        assert_eq!(parse(canonical), query, "{text}");
    }
    assert!(parse("").is_all() && Query::default() == parse(" "));
}

/// Field case B62: what is not finished is an error that says so.
#[test]
fn unfinished_and_wrong_input_is_named_where_it_stands() {
    for (text, span, message) in [
        ("(", 1..1, "expected a term after (, found the end"),
        ("[", 0..1, "'[' needs quotes"),
        ("*", 0..1, "'*' needs quotes"),
        ("\\", 0..1, "'\\\\' needs quotes"),
        ("{", 0..1, "'{' needs quotes"),
        ("+", 0..1, "needs quotes"),
        ("(a", 0..2, "expected ) to close this ("),
        ("(a{1,1000}){1,1000}", 2..3, "there are no patterns"),
        ("a)", 1..2, "without its opening parenthesis"),
        ("worker:", 0..7, "expected a worker such as 7587890, 7f3a or 7f3a:0 after worker:, found the end"),
        ("worker: phase:prefill", 0..7, "found ' '"),
        ("queue.wait>", 0..11, "expected a time"),
        ("outcome:", 0..8, "success, cancelled, rejected"),
        ("outcome:cancelled,", 0..18, "found the end"),
        ("outcome:(cancelled", 18..18, "expected , and another value, or )"),
        ("outcome:(", 0..9, "found the end"),
        ("\"abc", 0..4, "expected \" to close this quote"),
        ("session:\"abc", 8..12, "expected \" to close this quote"),
        ("\"a\\x\"", 2..4, "found \\x"),
        ("\"a\\", 0..3, "to close this quote"),
        ("\"\"", 0..2, "expected text between the quotes"),
        ("a or", 4..4, "expected a term, found the end"),
        ("a and", 5..5, "expected a term, found the end"),
        ("or a", 0..2, "quote \"or\""),
        ("not", 3..3, "found the end"),
        ("-", 1..1, "right after the negation"),
        ("a - b", 3..4, "right after the negation"),
        ("()", 1..2, "expected a term"),
        ("a,b", 1..2, "expected a term"),
        (":5", 0..1, "expected a term"),
        ("abc*", 0..4, "only at the end of a field's value"),
        ("session:a*b", 9..10, "only at the end of a field's value"),
        ("outcome:canceled", 8..16, "did you mean cancelled?"),
        ("outcme:failed", 0..6, "did you mean outcome?"),
        ("queue.wiat>5ms", 0..10, "did you mean queue.wait?"),
        ("outcome<5", 8..9, "no number: expected : = or !="),
        ("margin<5,6", 7..8, "expected one value after <"),
        ("margin<*", 7..8, "expected a number after <"),
        ("margin:5ms", 7..10, "expected a number without a unit, found \"5ms\""),
        ("queue.wait:5x", 11..13, "expected a time such as"),
        ("queue.wait:20ms..10ms", 11..21, "holds nothing"),
        ("queue.wait:..", 11..13, "expected a range"),
        ("deferred:maybe", 9..14, "expected true or false"),
        ("worker:zzz", 7..10, "expected a worker"),
        ("worker:7f3a:", 7..12, "expected a worker"),
        ("check:queue.reason:bad", 6..22, "expected violated, unknown or holds"),
        ("session:\"\"", 8..10, "write -field:*"),
        ("session:=>5", 9..10, "needs quotes"),
        ("outcome:a|b", 9..10, "a list is written a,b"),
        ("session:\"a\"b\"", 12..13, "to close this quote"),
        ("ttft:1e999", 5..10, "too large"),
    ] {
        let error = error(text);
        assert!(error.message.contains(message), "{text}: {}", error.message);
        assert_eq!(error.span, span, "{text}: {}", error.message);
    }
    assert!(error(&"(".repeat(1000)).message.contains("nested too deeply"));
    assert!(error(&"-".repeat(1000)).message.contains("nested too deeply"));
    assert!(error(&"leg(".repeat(1000)).message.contains("nested too deeply"));
    assert!(error(&"x".repeat(MAX_LENGTH + 1)).message.contains("at most"));
    assert_eq!(error("(").to_string(), "filter, column 2: expected a term after (, found the end");
}

/// Field case B63: what the program makes from a value means that value.
#[test]
fn terms_made_from_values_are_escaped() {
    use Name::{Attribute, Field};
    for (name, op, value, text) in [
        (Field("worker"), Op::Is, "7f3a:0", "worker:7f3a:0"),
        (Field("reason"), Op::Is, "prefill_capacity", "queue.reason:prefill_capacity"),
        (Field("queue.wait"), Op::Is, "1ms..<2ms", "queue.wait:1ms..<2ms"),
        (Field("queue.wait"), Op::AtLeast, "100ms", "queue.wait>=100ms"),
        (Field("outcome"), Op::Is, "in flight", "outcome:\"in flight\""),
        (Field("outcome"), Op::Is, "canceled", "outcome:\"canceled\""),
        (Field("session"), Op::Is, "a*", "session:\"a*\""),
        (Field("session"), Op::Is, "a,b", "session:\"a,b\""),
        (Field("session"), Op::Equals, "=x", "session=\"=x\""),
        (Attribute("model"), Op::Is, "x", "\"model\":x"),
        (Attribute("outcme"), Op::Is, "x", "\"outcme\":x"),
        (Attribute("my.key"), Op::Is, "1..5", "my.key:\"1..5\""),
        (Attribute("my.key"), Op::Is, "007", "my.key:\"007\""),
        (Attribute("my.key"), Op::Is, "7587890", "my.key:7587890"),
        (Attribute("my.key"), Op::Is, "", "my.key:\"\""),
        (Attribute("or"), Op::Is, "x", "\"or\":x"),
        (Attribute(r#"odd key "x"-y.z"#), Op::Is, "a \"b\" = c\n d", r#""odd key \"x\"-y.z":"a \"b\" = c\n d""#),
    ] {
        assert_eq!(term(name, op, value), text);
        assert_eq!(parse(text).to_string(), text);
    }
    let long = term(Field("session"), Op::Is, &"é ".repeat(1000));
    assert!(long.ends_with("\"*") && long.len() < 600);
    parse(&long);
}

#[test]
fn terms_are_added_and_taken_off() {
    let add = |text: &str| append_term(text, Name::Field("phase"), Op::Is, "decode");
    assert_eq!(add(""), "phase:decode");
    assert_eq!(add(" outcome:failed "), "outcome:failed phase:decode");
    assert_eq!(add("a or b"), "(a or b) phase:decode");
    assert_eq!(add("(a"), "(a phase:decode");
    for text in ["phase:decode", "outcome:failed phase:\"decode\" a phase:decode"] {
        assert_eq!(add(text), text);
    }
    for (text, left) in [
        ("", ""),
        ("a", ""),
        ("a b", "a"),
        ("a and not b", "a"),
        ("a or b", "a"),
        ("a b or c d", "a b or c"),
        ("(a or b) phase:decode", "(a or b)"),
        ("(a b)", ""),
        ("a leg(b c)", "a"),
        ("a outcome:(failed, cancelled)", "a"),
        ("a \"b c\"", "a"),
        ("a \"b c", "a \"b"),
        ("(", ""),
        ("queue.wait > 5ms", ""),
    ] {
        assert_eq!(drop_last_term(text), left, "{text}");
    }
}
