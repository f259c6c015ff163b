//! The request screen.

use super::*;

#[test]
fn b34_the_chosen_span_stays_chosen_while_its_parents_arrive() {
    let mut data = Fixture::default();
    let key = data.add(Facts { request_id: "r".into(), start_ns: NOW - 2000 * MS, ..Facts::default() });
    data.span(key, def(3, 2, "grandchild", 30.0, 40.0));
    let desk = desk(data);
    let mut journey = Journey::new(&desk, (120, 40));
    let screen = journey.keys("Enter j");
    assert!(screen.contains("waiting for parent 0000000000000002"), "{screen}");
    for (id, parent, name) in [(2, 1, "child"), (1, 0, "root")] {
        desk.data.borrow_mut().span(key, def(id, parent, name, id as f64, 50.0));
        let screen = journey.keys("u");
        assert!(screen.matches("grandchild").count() == 1, "{screen}");
    }
    assert_eq!(journey.hands.copied, ["0000000000000003", "0000000000000003"]);
    assert_eq!(desk.pinned.get(), Some(key));
}

#[test]
fn folding_walking_copying_and_reading_on_the_request_screen() {
    let desk = desk(cluster());
    let mut journey = Journey::new(&desk, (120, 40));
    let open = journey.keys("j j j Enter");
    assert!(open.contains("55307ac2-dc7d-4855-9767-a4d62fd45968"), "the whole id is on screen");
    assert!(open.contains("worker.operation.prefill"));
    let folded = journey.keys("←");
    assert!(!folded.contains("worker.operation.prefill") && folded.contains("request.lifecycle +8"), "{folded}");
    journey.keys("→ y Y u");
    assert_eq!(
        journey.hands.copied,
        ["55307ac2-dc7d-4855-9767-a4d62fd45968", "8f1c0000000000000000000055307ac2", "0000000000000002"]
    );
    // The bridge's attributes are folded until asked for.
    let bottom = journey.keys("Tab Tab G");
    assert!(bottom.contains("▸ 2 from the tracing bridge") && !bottom.contains("code.file.path"), "{bottom}");
    assert!(bottom.contains("service.name") && bottom.contains("request completed"), "{bottom}");
    let raw = journey.keys("v");
    assert!(raw.contains("\"attributes\": ["));
    let record = journey.keys("Esc Tab Enter");
    assert!(record.contains("\"event_type\": \"request_end\""), "{record}");
    assert!(journey.keys("Esc n").contains("de4036f9-0000"), "n goes to the next request of the list");
    assert!(journey.keys("N N").contains("9b9f5578-0000"));
    assert!(journey.keys("Esc").contains("Requests"));
    assert!(journey.row().contains("9b9f5578"), "the list holds what was looked at");
    journey.keys("C-z");
    assert_eq!(journey.hands.stops, 1);
}

#[test]
fn a_request_that_goes_while_it_is_looked_at_stays_on_screen_and_says_so() {
    let desk = desk(cluster());
    let mut journey = Journey::new(&desk, (120, 40));
    journey.keys("j j j Enter");
    desk.data.borrow_mut().remove(RequestKey(5));
    let screen = journey.screen();
    assert!(screen.contains("no longer held") && screen.contains("request.lifecycle"), "{screen}");
}

#[test]
fn long_values_are_read_whole() {
    let mut data = Fixture::default();
    let key = data.add(Facts { request_id: "r".into(), start_ns: NOW - 2000 * MS, ..Facts::default() });
    let long = "推".repeat(100_000);
    data.span(key, def(1, 0, "root", 0.0, 1.0).with(&[("prompt", Value::Str(&long))]));
    let desk = desk(data);
    let mut journey = Journey::new(&desk, (80, 24));
    let cut = journey.keys("Enter Tab Tab ↓ ↓ ↓ ↓ ↓ ↓ ↓ ↓ ↓");
    assert!(cut.contains("prompt"), "{cut}");
    let read = journey.keys("Enter G");
    assert!(read.contains("293 KiB") && read.contains("2632 rows") || read.contains("of 2,632 rows"), "{read}");
}

#[test]
fn a_trace_is_linked_to_its_store_only_when_it_was_said_where() {
    let desk = desk(cluster());
    let mut journey = Journey::new(&desk, (160, 40));
    assert!(journey.keys("Enter o").contains("start with --trace-url"));
    assert!(!journey.screen().contains('\x1b'));
    let url = crate::view::link::TraceUrl::parse("http://jaeger:16686/trace/{trace_id}").unwrap();
    let theme = Theme::named("terminal").unwrap();
    let setup = crate::tui::Setup { trace_url: Some(url), ..theme.into() };
    let app = App::new(&desk, setup, &now);
    let mut journey = Journey { app, hands: Hands::default(), size: (160, 40) };
    journey.screen();
    let screen = journey.keys("Enter");
    assert!(screen.contains("\x1b]8;id=trace;http://jaeger:16686/trace/"), "{screen}");
    let screen = journey.keys("o");
    assert!(screen.contains("Trace in its store") && screen.contains("http://jaeger:16686/trace/"), "{screen}");
    journey.keys("y");
    assert!(journey.hands.copied[0].starts_with("http://jaeger:16686/trace/"), "{:?}", journey.hands.copied);
}
