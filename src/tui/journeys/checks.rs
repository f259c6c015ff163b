//! The checks pane.

use super::*;

/// What is violated comes first, and more is from one moment to the next.
#[test]
fn the_cursor_stays_on_its_check_while_others_move_past_it() {
    let hub = running(Limits::default(), crate::demo::fault::Kind::all().collect()).0;
    let mut app = App::new(&hub, Theme::named("terminal").unwrap(), &now);
    let mut press = |names: &str| -> (usize, Vec<String>) {
        for name in names.split(' ').filter(|name| !name.is_empty()) {
            let key = Key::parse(name).unwrap();
            app.press(&Event::Key(KeyEvent::new(key.code, KeyModifiers::NONE)), &mut Hands::default());
        }
        let frame = app.frame(120, 14);
        let is = |y: &u16| frame[(4, *y)].modifier.contains(ratatui::style::Modifier::REVERSED);
        let row = (0..14).find(is).expect("a row has the cursor");
        (usize::from(row), dump(&frame).lines().map(ToOwned::to_owned).collect())
    };
    let id = |line: &str| line.split_whitespace().nth(1).unwrap().to_owned();
    let (first, before) = press("c s");
    let (row, lines) = press("j j j j j j j j");
    assert_ne!(id(&lines[row]), id(&before[first]));
    hub.store.lock().check(u64::MAX);
    let (later, moved) = press("");
    assert_eq!(id(&moved[later]), id(&lines[row]), "{moved:#?}");
    let (below, lines) = press("j");
    assert_eq!(id(&lines[below - 1]), id(&moved[later]), "a key goes on from there: {lines:#?}");
    let (top, lines) = press("Home");
    assert_ne!(id(&lines[top]), id(&before[first]), "others came before it meanwhile: {lines:#?}");
}

#[test]
fn a_check_is_added_to_the_filter_and_taken_off_again() {
    let desk = desk(cluster());
    let mut journey = Journey::new(&desk, (120, 30));
    assert!(!journey.keys("c").contains("whatever the filter"));
    journey.keys("Esc /");
    journey.text("outcome:cancelled");
    journey.keys("Enter");
    let shown = journey.keys("c");
    assert!(shown.contains(" of all requests, whatever the filter "), "its counts are not the filter's: {shown}");
    let added = journey.keys("Enter");
    assert!(added.contains("outcome:cancelled check:"), "{added}");
    let off = journey.keys("Backspace");
    assert!(off.contains("outcome:cancelled") && !off.contains("check:"), "{off}");
}

/// The list stands where it is: what is violated comes in at its top, and the cursor goes down with its check.
#[test]
fn what_comes_in_at_the_top_is_seen_there() {
    let hub = running(Limits::default(), crate::demo::fault::Kind::all().collect()).0;
    let mut app = App::new(&hub, Theme::named("terminal").unwrap(), &now);
    for name in ["c", "s"] {
        app.press(
            &Event::Key(KeyEvent::new(Key::parse(name).unwrap().code, KeyModifiers::NONE)),
            &mut Hands::default(),
        );
    }
    app.frame(160, 40);
    hub.store.lock().check(u64::MAX);
    let screen = dump(&app.frame(160, 40));
    let top = screen.lines().nth(2).unwrap();
    assert!(!top.contains("root.unique") && screen.contains(" root.unique "), "{screen}");
}
