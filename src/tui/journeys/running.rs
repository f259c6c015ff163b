//! The loop, the header, the first moments.

use super::*;

#[test]
fn b58_press_repeat_and_release() {
    let desk = desk(cluster());
    let mut journey = Journey::new(&desk, (80, 24));
    let all = [KeyEventKind::Press, KeyEventKind::Repeat, KeyEventKind::Release];
    for kind in all {
        assert_eq!(journey.event(KeyCode::Char('j'), KeyModifiers::NONE, kind), None);
    }
    assert!(journey.row().contains("9b9f5578"), "j moves twice: {}", journey.row());
    journey.keys("j Enter v");
    for kind in all {
        journey.event(KeyCode::Esc, KeyModifiers::NONE, kind);
    }
    assert!(journey.screen().contains("Tree"), "Esc closes one level");
    let ended: Vec<_> =
        all.map(|kind| journey.event(KeyCode::Char('q'), KeyModifiers::NONE, kind)).into_iter().flatten().collect();
    assert_eq!(ended, [ExitReason::Quit], "q quits once");
}

#[test]
fn a_long_load_shows_how_far_it_is_and_notices_can_be_read() {
    let desk = desk(Fixture::default());
    *desk.vitals.borrow_mut() = Vitals {
        loading: Some(Loading {
            doing: "reading".into(),
            name: "run.traces.jsonl.gz".into(),
            done: Done::Bytes { read: 3 << 20, total: 12 << 20 },
        }),
        notices: vec!["run.traces.jsonl.gz:17: not OTLP JSON: expected {, found x".into()],
        ..Vitals::default()
    };
    let mut journey = Journey::new(&desk, (120, 12));
    let screen = journey.screen();
    assert!(screen.contains("25 %") && screen.contains("reading run.traces.jsonl.gz …"), "{screen}");
    assert!(screen.contains("run.traces.jsonl.gz:17"), "the newest notice is told once");
    assert!(journey.keys("!").contains("Notices"));
}

#[test]
fn an_empty_screen_says_what_it_waits_for() {
    let desk = desk(Fixture::default());
    let mut journey = Journey::new(&desk, (80, 24));
    let frame = journey.app.frame(80, 24);
    let mut screen = Screen::new(ratatui::backend::TestBackend::new(80, 24));
    screen.resize().unwrap();
    screen.show(|buf| *buf = frame.clone()).unwrap();
    assert!(dump(screen.backend().buffer()).contains("waiting for spans"));
}

#[test]
fn the_loop_serves_keys_before_data_and_ends_with_its_reason() {
    let desk = desk(cluster());
    let run = |events: Vec<Event>| {
        let (sender, receiver) = std::sync::mpsc::channel();
        events.into_iter().for_each(|event| sender.send(event).unwrap());
        let mut app = App::new(&desk, Theme::named("light").unwrap(), &now);
        let mut screen = Screen::new(ratatui::backend::TestBackend::new(80, 24));
        app.run(&mut screen, &mut Hands::default(), &receiver).unwrap()
    };
    let key = |c| Event::Key(KeyEvent::new(KeyCode::Char(c), KeyModifiers::NONE));
    assert_eq!(run(vec![Event::Data, key('j'), key('q')]), ExitReason::Quit);
    assert_eq!(run(vec![Event::Stop, Event::Resumed, Event::Signal(15)]), ExitReason::Signal(15));
    assert_eq!(run(vec![Event::Closed]), ExitReason::Closed);
    assert_eq!((ExitReason::Signal(15).status(), ExitReason::Quit.status()), (143, 0));
}
