//! What a store is asked of a filter.

use super::*;
use crate::lifecycle::must::Name;

fn name(text: &str) -> Name {
    Name { text: text.into(), is_start: false }
}

/// Which services and operations a Jaeger was asked for, each once, and how many spans came.
fn asked(must: Vec<Must>) -> (Vec<String>, usize) {
    let fake = jaeger(5);
    let mut settings = fake.settings(Kind::Jaeger, T0, Until::At(T0 + 10 * SECOND));
    settings.search.must = must;
    let mut taken = Taken::default();
    read(&settings, &|| T0, &mut taken).unwrap();
    let mut asked: Vec<String> = fake
        .asked()
        .iter()
        .filter_map(|target| target.strip_prefix("/api/v3/traces?query.service_name="))
        .map(|rest| {
            let operation = rest.split("operation_name=").nth(1).and_then(|rest| rest.split('&').next());
            format!("{} {}", rest.split('&').next().unwrap(), operation.unwrap_or("*"))
        })
        .collect();
    asked.sort();
    asked.dedup();
    (asked, taken.spans.len())
}

#[test]
fn a_jaeger_is_asked_for_the_services_and_operations_that_a_filter_needs() {
    assert_eq!(asked(Vec::new()), (vec!["dynamo-frontend *".into()], 10));
    // Also those that begin no requests; case is folded, for Jaeger does not.
    assert_eq!(asked(vec![Must::Service(vec![name("CART"), name("none")])]).0, ["cart *"]);
    let start = Name { text: "dynamo".into(), is_start: true };
    assert_eq!(asked(vec![Must::Service(vec![start])]).0, ["dynamo-frontend *", "dynamo-worker *"]);
    assert!(asked(vec![Must::Service(vec![name("dynamo")])]).0.is_empty());
    let both = vec![Must::Service(vec![name("cart")]), Must::Span(vec![name("Handle_Payload"), name("x")])];
    assert_eq!(asked(both).0, ["dynamo-frontend x", "dynamo-worker handle_payload"]);
    // What Jaeger knows no operation of is asked as ever.
    assert_eq!(asked(vec![Must::Span(vec![name("y")])]).0, ["dynamo-frontend *"]);
}

#[test]
fn traces_that_are_known_are_asked_for_alone() {
    let (seven, nine) = (format!("{:032x}", 7), format!("{:032x}", 9));
    let has = seven.clone();
    let fake = Fake::new(move |path, _| match path {
        "/api/v3/services" => json(r#"{"services":["f"]}"#),
        "/api/v3/operations" => json(r#"{"operations":[{"name":"http-request"}]}"#),
        path if path.ends_with(&has) => {
            json(format!(r#"{{"result":{{"resourceSpans":[{}]}}}}"#, trace(7, &["http-request", "x"])))
        }
        _ => none_found(),
    });
    // Long after the range that would be searched.
    let mut settings = fake.settings(Kind::Jaeger, T0 + 900 * SECOND, Until::Now);
    settings.search.must = vec![Must::Be([&seven, &nine].map(|id| TraceId::from_hex(id).unwrap()).to_vec())];
    let mut taken = Taken::default();
    let progress = read(&settings, &|| T0 + 1000 * SECOND, &mut taken).unwrap();
    assert_eq!((taken.spans.len(), progress.traces), (2, 1), "{:?}", taken.problems);
    assert!(fake.asked().iter().all(|target| !target.starts_with("/api/v3/traces?")), "{:?}", fake.asked());
}

#[test]
fn a_tempo_that_does_not_understand_is_asked_for_less() {
    for understands in [true, false] {
        let fake = Fake::new(move |_, query| match parameter(query, "q").contains("=~") {
            true if !understands => (400, "text/plain", b"parse error".to_vec()),
            _ => json(r#"{"traces":[]}"#),
        });
        let mut settings = fake.settings(Kind::Tempo, T0, Until::At(T0 + SECOND));
        settings.search.must = vec![Must::Service(vec![name("f")])];
        let mut taken = Taken::default();
        read(&settings, &|| T0, &mut taken).unwrap();
        let last = unescape(fake.asked().last().unwrap());
        assert_eq!(last.contains(r#"resource.service.name =~ "(?i)f""#), understands, "{last}");
        assert!(taken.problems.is_empty());
    }
}
