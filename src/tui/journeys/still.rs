//! What stands still while the store, full, lets go of it.

use super::*;

fn ended(id: String) -> Facts {
    Facts { request_id: id.into(), start_ns: NOW, end_ns: Some(NOW), state: State::Ended, ..Facts::default() }
}

fn in_flight(id: String) -> Facts {
    Facts { end_ns: None, state: State::InFlight, ..ended(id) }
}

/// The store is full while the screen stands still: what comes in drives out what is shown, the oldest first, whether it had
/// ended or not.
#[test]
fn what_stands_still_and_loses_requests_is_walked_over_what_is_left() {
    let kinds: [fn(usize) -> Facts; 3] = [
        |n| ended(format!("old-{n:02}")),
        |n| in_flight(format!("old-{n:02}")),
        |n| if n % 2 == 0 { ended(format!("old-{n:02}")) } else { in_flight(format!("old-{n:02}")) },
    ];
    kinds.into_iter().for_each(walks_what_is_left);
}

fn walks_what_is_left(facts: fn(usize) -> Facts) {
    let mut data = Fixture::default();
    let keys: Vec<RequestKey> = (0..60).map(|n| data.add(facts(n))).collect();
    let desk = desk(data);
    let mut journey = Journey::new(&desk, (140, 20));
    journey.keys("p j");
    let lose = |range: std::ops::Range<usize>| {
        for key in &keys[range] {
            desk.data.borrow_mut().add(ended("new".into()));
            desk.data.borrow_mut().remove(*key);
        }
    };
    lose(0..30);
    let screen = journey.screen();
    assert!(screen.contains("30 since"), "what came is counted though as many went: {screen}");
    assert!(screen.contains("30 of 60 · some let go since"), "{screen}");
    assert!(journey.row().contains("old-58"), "{}", journey.row());
    for (names, to) in [
        ("G", "old-30"),
        ("k", "old-31"),
        ("j", "old-30"),
        ("j", "old-30"),
        ("g", "old-59"),
        ("End", "old-30"),
        ("Home", "old-59"),
        ("C-d C-d C-d C-d C-d C-d C-d C-d C-d", "old-30"),
        ("C-u k", "old-3"),
        ("PgUp PgUp PgUp PgUp", "old-59"),
        ("PgDn PgDn PgDn PgDn PgDn", "old-30"),
    ] {
        journey.keys(names);
        assert!(journey.row().contains(to), "{names} leads to {}", journey.row());
    }
    // The row under the cursor goes, and those above it: the cursor is on the last that is left.
    lose(30..33);
    assert!(journey.row().contains("old-33"), "{}", journey.row());
    // They go between a frame and a key.
    for (names, gone, to) in [("G", 33..36, "old-36"), ("k", 36..39, "old-39"), ("C-d", 39..42, "old-42")] {
        lose(gone);
        journey.keys(names);
        assert!(journey.row().contains(to), "{names} leads to {}", journey.row());
    }
    journey.keys("S");
    for (name, gone, to) in [("g", 42..45, "old-45"), ("j", 45..48, "old-48"), ("k", 48..50, "old-50")] {
        lose(gone);
        journey.keys(name);
        assert!(journey.row().contains(to), "{name} leads to {}", journey.row());
    }
    assert!(journey.keys("G").contains("10 of 60 · some let go since") && journey.row().contains("old-59"));
    journey.keys("/");
    journey.text("outcome:failed");
    assert!(journey.keys("Enter").contains("no request that is left passes the filter"));
    // Of a moment that was gone back to, nothing was on screen before.
    let mut journey = Journey::new(&desk, (140, 20));
    assert!(journey.keys(",").contains("BACK"));
    lose(50..60);
    let new: Vec<RequestKey> = desk.data.borrow().newest().map(|(key, _)| key).collect();
    new.into_iter().for_each(|key| desk.data.borrow_mut().remove(key));
    let nothing = journey.screen();
    assert!(nothing.contains("all that stood here was let go since; p shows what there is"), "{nothing}");
}

/// What was on screen at the pause, or in flight, is known by heart; but it cannot be opened any more.
#[test]
fn what_was_in_flight_at_the_pause_and_went_leaves_the_list() {
    let mut data = Fixture::default();
    let mut keys: Vec<RequestKey> = (0..30).map(|n| data.add(in_flight(format!("old-{n:02}")))).collect();
    let desk = desk(data);
    let mut journey = Journey::new(&desk, (140, 20));
    journey.keys("p");
    let row = journey.row();
    let last = keys.pop().unwrap();
    // It goes on and ends, and is shown as it was.
    *desk.data.borrow_mut().facts_mut(last) = ended("old-29".into());
    keys.into_iter().for_each(|key| desk.data.borrow_mut().remove(key));
    let screen = journey.keys("g");
    assert!(screen.contains("1 of 30 · some let go since"), "{screen}");
    assert_eq!(screen.lines().filter(|line| line.contains("old-")).count(), 1, "{screen}");
    assert_eq!(journey.row(), row);
    assert!(!journey.keys("Enter").contains("no longer held"));
    journey.keys("Esc");
    desk.data.borrow_mut().remove(last);
    let nothing = journey.screen();
    assert!(nothing.contains("all that stood here was let go since"), "{nothing}");
    assert!(!nothing.contains("old-"), "{nothing}");
}

/// In whatever order and through whatever filter, a key leads to a row as long as there is one, and the numbers say how
/// many there are.
#[test]
fn in_a_full_store_every_move_leads_to_a_row_that_is_left() {
    let (hub, mut cluster) = running(Limits { memory: 4 << 20, ..Limits::default() }, Vec::new());
    let mut at_ns = NOW;
    for before in ["", "S", "s ↓ ↓ ↓ ↓ ↓ ↓ ↓ ↓ ↓ ↓ ↓ ↓ Enter", "/ o u t c o m e : s u c c e s s Enter"]
    {
        let mut app = App::new(&hub, Theme::named("terminal").unwrap(), &now);
        let mut hands = Hands::default();
        let mut press = |names: &str| {
            for name in names.split(' ').filter(|name| !name.is_empty()) {
                let key = Key::parse(name).unwrap_or_else(|| panic!("no key {name}"));
                let modifiers = if key.ctrl { KeyModifiers::CONTROL } else { KeyModifiers::NONE };
                app.press(&Event::Key(KeyEvent::new(key.code, modifiers)), &mut hands);
            }
            (0..3).for_each(|_| _ = app.frame(140, 24));
            dump(&app.frame(140, 24))
        };
        press(before);
        let mut since = 0;
        press("p");
        for name in ["G", "End", "k", "PgUp", "C-u", "PgDn", "C-d", "C-d", "j", "g", "G", "k", "G", "PgUp", "End", "k"]
        {
            at_ns += 800 * MS;
            feed(&hub, &mut cluster, at_ns);
            let screen = press(name);
            let number = |line: &str, word: &str| -> u64 {
                let (text, _) = screen.lines().find(|at| at.contains(line)).unwrap().split_once(word).unwrap();
                text.rsplit(' ').next().unwrap().replace(',', "").parse().unwrap_or_else(|_| panic!("{screen}"))
            };
            let newer = number("PAUSED", " since");
            assert!(newer > since, "{newer} since, after {since}\n{screen}");
            since = newer;
            let left = if screen.contains(" let go since") { number("Requests", " of ") } else { 1 };
            let rows = screen.lines().filter(|line| line.starts_with("│▸")).count();
            assert_eq!(rows as u64, left.min(1), "{name}: {screen}");
            if rows > 0 {
                let opened = press("Enter");
                assert!(!opened.contains("no longer held"), "{name}: {opened}");
                press("Esc");
            }
        }
        press("p Esc S S");
    }
}
