//! What a store does not give.

use super::*;

#[test]
fn what_a_tempo_found_and_does_not_give_is_left_out_and_told_once() {
    let fake = Fake::new(|path, _| match path {
        "/api/search" => json(r#"{"traces":[{"traceID":"5"},{"traceID":"6"},{"traceID":"no\u001bid"}]}"#),
        "/api/v2/traces/00000000000000000000000000000005" => {
            let text = format!(r#"{{"resourceSpans":[{}]}}"#, trace(5, &["request.lifecycle"]));
            let mut plain = Vec::new();
            transcode(Shape::Request(Signal::Traces), text.as_bytes(), &mut plain).unwrap();
            (200, "application/protobuf", plain)
        }
        _ => (404, "text/plain", b"trace not found".to_vec()),
    });
    let settings = fake.settings(Kind::Tempo, T0, Until::At(T0 + 60 * SECOND));
    let mut taken = Taken::default();
    read(&settings, &|| T0, &mut taken).unwrap();
    assert!(fake.asked().len() > 30, "in many pages");
    assert_eq!((taken.spans.len(), taken.left_out), (1, [2, 1]), "{:?}", taken.problems);
    assert_eq!(taken.torn, ["6"]);
    taken.problems.sort();
    let [none, six] = &taken.problems[..] else { panic!("{:?}", taken.problems) };
    assert!(none.contains("found a trace by \"no\u{fffd}id\", which is no id") && six.contains("6 and cannot give it"));
}

#[test]
fn odd_spans_of_a_jaeger_are_refused_once_with_their_traces() {
    let fake = in_vain(|| {
        let odd = trace(2, &["request.lifecycle", "x"]).replacen(
            "\"name\":\"x\"",
            "\"name\":\"x\",\"attributes\":\"zzz\"",
            1,
        );
        let nameless = trace(3, &["request.lifecycle"]).replacen("\"spans\":[", "\"spans\":[5,", 1);
        let all = [trace(1, &["request.lifecycle"]), odd, nameless, "7".into()].join(",");
        json(format!(r#"{{"result":{{"resourceSpans":[{all}]}}}}"#))
    });
    let settings = fake.settings(Kind::Jaeger, T0, Until::At(T0 + 10 * SECOND));
    let mut taken = Taken::default();
    read(&settings, &|| T0, &mut taken).unwrap();
    assert!(fake.asked().len() > 10, "in many pages");
    assert_eq!(
        (taken.spans.len(), &taken.torn[..], taken.refused),
        (3, &["2".to_owned()][..], 2),
        "{:?}",
        taken.problems
    );
    assert_eq!((taken.problems.len(), taken.left_out), (3, [1, 1]), "{:?}", taken.problems);
}

/// One trace that is larger than it may be, or that is broken, is one trace; when none is given, the store is to blame.
#[test]
fn a_trace_that_a_tempo_refuses_is_left_out_and_the_others_are_read() {
    let tempo = |version: &'static str, status: u16, refused: &'static [u64], times: u64| {
        let asked = std::sync::atomic::AtomicU64::new(0);
        Fake::new(move |path, query| {
            if path == "/api/search" {
                let is_first = parameter(query, "start") == (T0 / SECOND).to_string();
                let found = if is_first { r#"{"traceID":"5"},{"traceID":"6"},{"traceID":"7"}"# } else { "" };
                return json(format!(r#"{{"traces":[{found}]}}"#));
            }
            let Some(id) = path.strip_prefix(version) else {
                return (404, "text/plain", b"404 page not found".to_vec());
            };
            let number = u64::from_str_radix(id, 16).unwrap();
            if refused.contains(&number) && asked.fetch_add(1, std::sync::atomic::Ordering::SeqCst) < times {
                return (status, "text/plain", b"trace exceeds max size".to_vec());
            }
            let text = format!(r#"{{"resourceSpans":[{}]}}"#, trace(number, &["request.lifecycle"]));
            let mut plain = Vec::new();
            transcode(Shape::Request(Signal::Traces), text.as_bytes(), &mut plain).unwrap();
            (200, "application/protobuf", plain)
        })
    };
    let read_all = |fake: &Fake, traces: &[u64]| {
        let mut settings = fake.settings(Kind::Tempo, T0, Until::At(T0 + 10 * SECOND));
        if !traces.is_empty() {
            let ids = traces.iter().map(|id| TraceId::from_hex(&format!("{id:032x}")).unwrap()).collect();
            settings.search.must = vec![crate::lifecycle::must::Must::Be(ids)];
        }
        let mut taken = Taken::default();
        read(&settings, &|| T0, &mut taken).map(|_| (taken.spans.len(), taken.left_out, taken.torn, taken.problems))
    };
    for version in ["/api/v2/traces/", "/api/traces/"] {
        for status in [500, 422] {
            let fake = tempo(version, status, &[6], u64::MAX);
            for traces in [&[][..], &[5, 6, 7]] {
                let (spans, left_out, torn, problems) = read_all(&fake, traces).unwrap();
                assert_eq!((spans, left_out, &torn[..]), (2, [1, 0], &["6".to_owned()][..]), "{version} {problems:?}");
                assert!(problems[0].contains("trace exceeds max size): it is left out"), "{problems:?}");
            }
            for traces in [&[][..], &[6]] {
                let error = read_all(&tempo(version, status, &[5, 6, 7], u64::MAX), traces).unwrap_err();
                assert!(error.contains("trace exceeds max size"), "{error}");
            }
        }
        let (spans, left_out, ..) = read_all(&tempo(version, 500, &[6], 1), &[]).unwrap();
        assert_eq!((spans, left_out), (3, [0, 0]), "{version}: given when asked again");
    }
}
