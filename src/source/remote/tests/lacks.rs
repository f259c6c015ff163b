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
