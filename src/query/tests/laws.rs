use proptest::prelude::*;

use super::{Given, OneSpan, parse, request};
use crate::lifecycle::facts::Facts;
use crate::lifecycle::packed::Value;
use crate::lifecycle::stage::Outcome;
use crate::query::{Name, Op, Query, append_term, complete, drop_last_term};

const PIECES: &str = r#"outcome worker queue.wait margin session check deferred cached trace leg leg( phase x_ms odd
    : = == != < <= > >= ( ) , | || & - ! " \ \n * .. ..< 5 100ms 4KiB 50% 7f3a:0 cancelled violated true é + [ { ' abc"#;

/// Any text, mostly of pieces that mean something.
fn texts() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        prop::sample::select(PIECES.split_whitespace().collect::<Vec<_>>()).prop_map(str::to_owned),
        prop::sample::select(vec![" ", " or ", " and ", " not ", "\n", "\u{202e}"]).prop_map(str::to_owned),
        "\\PC{0,3}",
        any::<char>().prop_map(String::from),
    ];
    prop::collection::vec(piece, 0..14).prop_map(|pieces| pieces.concat())
}

/// Texts of valid filters, with what they come to on [`request`] by the rules alone.
fn filters() -> impl Strategy<Value = (String, bool)> {
    let term = prop::sample::select(vec![
        ("outcome:cancelled", true),
        ("outcome!=cancelled", false),
        ("worker:7f6d:0", true),
        ("queue.wait > 1s", false),
        ("margin:0..0.05", true),
        ("phase:(prefill,aggregated)", true),
        ("nothing.such:1", false),
        ("\"s-30\"", true),
        ("zzz", false),
        ("leg(phase:prefill attempt>0)", false),
        ("session:*", true),
    ])
    .prop_map(|(text, meant)| (text.to_owned(), meant));
    term.prop_recursive(4, 24, 3, |inner| {
        prop_oneof![
            (inner.clone(), prop::sample::select(vec!["not ", "-", "!"]))
                .prop_map(|((text, meant), sign)| (format!("{sign}({text})"), !meant)),
            (inner.clone(), inner.clone(), prop::sample::select(vec![" ", " and ", " & "]))
                .prop_map(|(a, b, sign)| (format!("({}){sign}({})", a.0, b.0), a.1 && b.1)),
            (inner.clone(), inner, prop::sample::select(vec![" or ", "|", " || "]))
                .prop_map(|(a, b, sign)| (format!("({}){sign}({})", a.0, b.0), a.1 || b.1)),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn no_text_is_too_much(text in texts(), cursor in 0..60usize) {
        match Query::parse(&text) {
            Ok(query) => {
                let written = query.to_string();
                prop_assert_eq!(Query::parse(&written), Ok(query.clone()), "{:?}", written);
                query.matches(&request(), &());
                query.matches(&Facts::default(), &());
                // Taking terms off ends at the filter of everything.
                let mut left = text.clone();
                for _ in 0..60 {
                    left = drop_last_term(&left);
                    prop_assert!(Query::parse(&left).is_ok(), "{:?} of {:?}", left, text);
                }
                prop_assert_eq!(&left, "");
            }
            Err(error) => {
                prop_assert!(text.get(error.span.clone()).is_some(), "{:?} {:?}", text, error);
                prop_assert!(!error.message.is_empty());
                drop_last_term(&text);
            }
        }
        complete(&text, cursor, &());
    }

    #[test]
    fn and_or_and_not_are_what_they_say((text, meant) in filters()) {
        let (query, facts) = (parse(&text), request());
        prop_assert_eq!(query.matches(&facts, &()), meant, "{}", text);
        let written = query.to_string();
        prop_assert_eq!(&parse(&written), &query, "{}", written);
        let narrowed = append_term(&text, Name::Field("outcome"), Op::Is, "failed");
        prop_assert!(!parse(&narrowed).matches(&facts, &()), "{}", narrowed);
        let same = append_term(&text, Name::Field("outcome"), Op::Is, "cancelled");
        prop_assert_eq!(parse(&same).matches(&facts, &()), meant, "{}", same);
    }

    #[test]
    fn a_term_made_from_a_value_finds_it(
        key in "\\PC{1,12}",
        value in prop_oneof![texts(), "\\PC{0,20}", "[ -~\n\t]{0,800}"],
        number in any::<f64>(),
        int in any::<i64>(),
        wait in any::<u32>(),
    ) {
        prop_assume!(number.is_finite());
        let mut facts = request();
        let made = |name, op, value: &str| parse(&append_term("", name, op, value));
        if !value.is_empty() {
            facts.session_id = value.as_str().into();
            prop_assert!(made(Name::Field("session"), Op::Is, &value).matches(&facts, &()));
            facts.legs[1].queue.as_mut().unwrap().reason = value.as_str().into();
            prop_assert!(made(Name::Field("queue.reason"), Op::Equals, &value).matches(&facts, &()));
            facts.outcome_word = value.as_str().into();
            prop_assert!(made(Name::Field("outcome"), Op::Is, &value).matches(&facts, &()));
            prop_assert!(!made(Name::Field("outcome"), Op::Differs, &value).matches(&facts, &()));
        }
        facts.legs[1].selection.as_mut().unwrap().margin = Some(number);
        prop_assert!(made(Name::Field("margin"), Op::Equals, &number.to_string()).matches(&facts, &()));
        facts.legs[1].queue.as_mut().unwrap().wait_ns = wait.into();
        let wait = format!("{wait}ns");
        prop_assert!(made(Name::Field("queue.wait"), Op::Is, &wait).matches(&facts, &()));
        for worker in facts.legs.iter().filter_map(|leg| leg.worker()) {
            prop_assert!(made(Name::Field("worker"), Op::Is, &worker.short()).matches(&facts, &()));
        }
        for value in [Value::Str(&value), Value::Int(int), Value::Double(number), Value::Bool(true), Value::Empty,
                      Value::Bytes(value.as_bytes())] {
            for (attrs, event) in [(vec![(key.as_str(), value)], vec![]), (vec![], vec![(key.as_str(), value)])] {
                let span = OneSpan::new("s", &attrs, ("e", &event));
                let lazy = Given { view: span.view(&facts), checks: &[] };
                let query = made(Name::Attribute(&key), Op::Is, &value.display());
                prop_assert!(query.matches(&facts, &lazy), "{} {:?}", key, value);
            }
        }
    }

    #[test]
    fn free_text_finds_what_a_plain_search_finds(
        needle in "[abAB]{1,6}",
        hay in "[abAB ]{0,40}",
        tail in "[aé]{0,3}",
    ) {
        let (needle, hay) = (format!("{needle}{tail}"), format!("{hay}{tail}x"));
        let facts = Facts { session_id: hay.as_str().into(), outcome: Some(Outcome::Success), ..Facts::default() };
        let plain = hay.to_lowercase().contains(&needle.to_lowercase());
        let quoted = format!("\"{needle}\"");
        prop_assert_eq!(parse(&quoted).matches(&facts, &()), plain, "{} in {}", needle, hay);
    }
}
