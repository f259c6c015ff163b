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

/// Counts how often it is looked at.
struct Counted<'a>(&'a Desk, Cell<usize>);

impl Hub for Counted<'_> {
    fn look(&self, look: &Look<'_>, see: &mut See<'_>) {
        self.1.set(self.1.get() + 1);
        self.0.look(look, see);
    }
}

/// Text pasted into a terminal that does not say so comes as keys.
#[test]
fn many_keys_at_once_are_few_looks_and_the_way_out_goes_before_them() {
    let desk = desk(cluster());
    let run = |keys: &str, last: KeyModifiers| {
        let (sender, receiver) = std::sync::mpsc::channel();
        let key = |c, modifiers| {
            let code = if c == '\r' { KeyCode::Enter } else { KeyCode::Char(c) };
            Event::Key(KeyEvent::new(code, modifiers))
        };
        keys.chars().for_each(|c| sender.send(key(c, KeyModifiers::NONE)).unwrap());
        sender.send(key(if last == KeyModifiers::CONTROL { 'c' } else { 'q' }, last)).unwrap();
        let hub = Counted(&desk, Cell::new(0));
        let mut app = App::new(&hub, Theme::named("light").unwrap(), &now);
        let mut screen = Screen::new(ratatui::backend::TestBackend::new(80, 24));
        let reason = app.run(&mut screen, &mut Hands::default(), &receiver).unwrap();
        assert_eq!(reason, ExitReason::Quit);
        (hub.1.get(), dump(&app.frame(80, 24)))
    };
    let (looks, screen) = run(&"j".repeat(50_000), KeyModifiers::NONE);
    assert!(looks < 20 && screen.contains("49744 were left out"), "{looks} looks\n{screen}");
    let (looks, screen) = run(&format!("/{}\r", "model:x or ".repeat(300) + "model:y"), KeyModifiers::NONE);
    assert!(looks < 20 && screen.contains("filter ▸ model:x or"), "{looks} looks\n{screen}");
    let (looks, _) = run(&"jk".repeat(50_000), KeyModifiers::CONTROL);
    assert!(looks < 20, "{looks} looks");
    // As many as a person may have typed keep their order.
    let (_, screen) = run("/model:y\r", KeyModifiers::CONTROL);
    assert!(screen.contains("model:y"), "{screen}");
}
