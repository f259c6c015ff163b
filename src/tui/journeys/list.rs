//! The list, its filter, its order, the pause.

use super::*;

#[test]
fn what_the_cursor_stands_on_becomes_a_filter_for_everything() {
    let hub = living();
    let mut app = App::new(&hub, Theme::named("terminal").unwrap(), &now);
    let mut hands = Hands::default();
    app.frame(150, 40);
    let mut press = |names: &str| {
        for name in names.split(' ') {
            let key = Key::parse(name).unwrap_or_else(|| panic!("no key {name}"));
            app.press(&Event::Key(KeyEvent::new(key.code, KeyModifiers::NONE)), &mut hands);
            // A new filter is asked of one slice of requests a frame.
            (0..5).for_each(|_| _ = app.frame(150, 40));
        }
        dump(&app.frame(150, 40))
    };
    let all = press("3");
    assert!(all.contains("Enter ▸ leg(phase:prefill dispatch.time:*)"), "{all}");
    let filtered = press("→ Enter");
    assert!(filtered.contains("filter ▸ leg(phase:prefill dispatch.result:accepted)"), "{filtered}");
    assert!(filtered.contains(" of "), "the list follows: {filtered}");
    let both = press("4 Enter");
    assert!(both.contains("abandoned:true"), "{both}");
    let list = both.lines().skip_while(|line| !line.contains("Requests")).take(8).collect::<Vec<_>>().join("\n");
    assert!(list.contains("cancelled") && !list.contains("success"), "{list}");
    assert!(press("Backspace").contains("filter ▸ leg(phase:prefill dispatch.result:accepted)"));
    assert!(!press("Backspace").contains("filter ▸"), "the last term is off");
    let zoomed = press("z");
    assert!(zoomed.contains("who leaves when, by events") && zoomed.contains("Enter ▸ abandoned:true"), "{zoomed}");
    assert!(press("[ [ [").contains("LIVE 10 s"));
    assert!(press("] ]").contains("LIVE 5 m"));
    assert!(press("Esc").contains("1 Queue"), "Esc takes the zoom back");
}

#[test]
fn the_chosen_request_is_held_while_others_come() {
    let desk = desk(cluster());
    let mut journey = Journey::new(&desk, (120, 12));
    assert!(journey.row().contains("e5149c65"));
    journey.keys("j j");
    let before = journey.screen();
    let line = |screen: &str| screen.lines().position(|line| line.contains("▸ ") && line.contains("9b9f5578"));
    for n in 0..5 {
        let id = format!("{n}ew00000-0000-4000-8000-000000000000").into();
        desk.data.borrow_mut().add(Facts { request_id: id, start_ns: NOW, ..Facts::default() });
    }
    let after = journey.screen();
    assert!(after.contains("holding") && journey.row().contains("9b9f5578"));
    // Those above it in the window moved out at the top; it stays where it was.
    assert_eq!(line(&before), line(&after));
    assert!(journey.keys("g").contains("following") && journey.row().contains("4ew00000"));
    desk.data.borrow_mut().add(Facts { request_id: "newest00".into(), start_ns: NOW, ..Facts::default() });
    journey.screen();
    assert!(journey.row().contains("newest00"), "following goes with the first row");
    // A held request that goes leaves the cursor at its place.
    journey.keys("j");
    desk.data.borrow_mut().remove(RequestKey(13));
    journey.screen();
    assert!(journey.row().contains("3ew00000"), "{}", journey.row());
}

#[test]
fn a_filter_takes_effect_as_it_is_typed_and_a_wrong_one_widens_nothing() {
    let desk = desk(cluster());
    let mut journey = Journey::new(&desk, (120, 30));
    journey.keys("/");
    let screen = journey.text("outcome:");
    assert!(screen.contains("newest first · 8"), "not a filter yet: the list stays as it was");
    let screen = journey.text("can");
    assert!(screen.contains("cancelled   ") && screen.contains("0 of 8"), "{screen}");
    let screen = journey.keys("Tab");
    assert!(screen.contains("1 of 8") && screen.contains("9b9f5578") && !screen.contains("b09a9330"), "{screen}");
    for odd in ["\"", "(", "*", "[", "\\", "{"] {
        journey.text(odd);
        assert!(!journey.screen().contains("b09a9330"), "{odd} widened the list");
        journey.keys("Backspace");
    }
    assert!(journey.keys("Enter").contains("filter ▸ outcome:cancelled"));
    assert!(journey.keys("/ Esc").contains("1 of 8"), "Esc leaves the filter as it was before");
    assert!(journey.keys("Esc").contains("newest first · 8"), "Esc on the first screen takes it off");
    journey.keys("/");
    journey.text("worker:");
    assert!(journey.keys("Tab").contains("filter ▸ worker:7e00:0"), "completion knows the workers there are");
}

#[test]
fn b63_a_filter_made_from_a_value_finds_exactly_that_one() {
    let mut data = Fixture::default();
    let (odd, text) = ("odd key \"x\"-y.z", "a \"b\" = c\n d");
    for (id, value) in [("other", "a"), ("this", text), ("else", "a \"b\"")] {
        let key = data.add(Facts { request_id: id.into(), start_ns: NOW, ..Facts::default() });
        data.span(key, def(1, 0, "root", 0.0, 1.0).with(&[(odd, Value::Str(value))]));
    }
    let desk = desk(data);
    let mut journey = Journey::new(&desk, (120, 30));
    journey.keys("j Enter Tab Tab ↓ ↓ ↓ ↓ ↓ ↓ ↓ ↓ ↓ =");
    let screen = journey.keys("Esc");
    assert!(screen.contains("1 of 3") && screen.contains("this"), "{screen}");
    journey.keys("/");
    assert!(journey.text("x:\"").contains("1 of 3"), "an open quote widens nothing");
    assert!(journey.keys("Esc Backspace").contains("newest first · 3"), "Backspace takes the last term off");
}

#[test]
fn sorting_by_any_column_both_ways() {
    let desk = desk(cluster());
    let mut journey = Journey::new(&desk, (200, 30));
    let ids = |screen: &str| -> Vec<String> {
        let names = screen.lines().filter_map(|line| line.split_whitespace().find(|word| word.len() == 8));
        names.filter(|word| word.bytes().all(|byte| byte.is_ascii_hexdigit())).map(ToOwned::to_owned).collect()
    };
    // To `total`: twelve down from `age`.
    let screen = journey.keys("s ↓ ↓ ↓ ↓ ↓ ↓ ↓ ↓ ↓ ↓ ↓ ↓ Enter");
    assert!(screen.contains("by total") && screen.contains("total▾"), "{screen}");
    let falling = ids(&screen);
    assert_eq!(falling[..3], ["10570000", "66b9a331", "55307ac2"]);
    let mut rising = ids(&journey.keys("S"));
    rising.reverse();
    assert_eq!(rising, falling);
    assert!(journey.row().contains("de4036f9"), "sorting goes back to the first row: {}", journey.row());
}

#[test]
fn pause_freezes_what_is_shown_while_data_comes_in() {
    let desk = desk(cluster());
    let mut journey = Journey::new(&desk, (120, 40));
    let running = RequestKey(8);
    journey.keys("p");
    let frozen = journey.screen();
    assert!(frozen.contains("PAUSED") && frozen.contains("0 since"));
    {
        let mut data = desk.data.borrow_mut();
        let facts = data.facts_mut(running);
        (facts.outcome, facts.state, facts.end_ns) = (Some(Outcome::Failed), State::Ended, Some(NOW));
        data.add(Facts { request_id: "newest00".into(), start_ns: NOW, ..Facts::default() });
    }
    let rows = |screen: &str| screen.lines().skip(1).map(ToOwned::to_owned).collect::<Vec<_>>();
    let later = journey.screen();
    assert_eq!(rows(&later), rows(&frozen));
    assert!(later.contains("1 since"));
    journey.keys("j k");
    assert!(journey.row().contains("in flight"));
    let live = journey.keys("p g");
    assert!(live.contains("newest00") && live.contains("⚠ failed") && live.contains("LIVE"));
}

#[test]
fn a_real_capture_reads_right_on_screen() {
    let shared = captured("dev-sim.traces.pb.gz");
    let mut app = App::new(&shared, Theme::named("terminal").unwrap(), &now);
    let mut hands = Hands::default();
    let mut press = |app: &mut App<'_>, codes: &[KeyCode]| {
        for code in codes {
            app.press(&Event::Key(KeyEvent::new(*code, KeyModifiers::NONE)), &mut hands);
        }
        dump(&app.frame(160, 40))
    };
    let screen = press(&mut app, &[]);
    for outcome in ["success 67", "cancelled 6", "rejected 4", "failed 0", "no root 3"] {
        assert!(screen.contains(outcome), "{outcome}: {screen}");
    }
    let typed: Vec<KeyCode> = "/outcome:cancelled".chars().map(KeyCode::Char).collect();
    press(&mut app, &typed);
    let filtered = press(&mut app, &[KeyCode::Enter]);
    assert!(filtered.contains("6 of 80") && filtered.matches("↯ cancelled").count() == 6, "{filtered}");
    let reversed = press(&mut app, &[KeyCode::Char('S')]);
    assert!(reversed.contains("oldest first · 6 of 80"), "{reversed}");
    let open = press(&mut app, &[KeyCode::Enter]);
    assert!(open.contains("request.lifecycle") && open.contains("cancelled") && open.contains("base layout"), "{open}");
    let frozen = press(&mut app, &[KeyCode::Esc, KeyCode::Char('p')]);
    assert!(frozen.contains("PAUSED") && frozen.contains("6 of 80"), "{frozen}");
}

/// Lines that are pasted stay apart in the one there is.
#[test]
fn pasted_lines_are_terms_of_their_own() {
    let desk = desk(cluster());
    let mut journey = Journey::new(&desk, (120, 30));
    journey.keys("/");
    journey.app.press(&Event::Paste("outcome:success\ntotal>1ms".into()), &mut journey.hands);
    assert!(journey.screen().contains("outcome:success total>1ms"));
}

/// More is pasted than a filter may be: what fits is kept, and the rest is told where there is always room for it.
#[test]
fn a_line_that_is_full_says_so() {
    let desk = desk(cluster());
    let mut journey = Journey::new(&desk, (120, 30));
    for (open, close) in [("/", "Esc"), (":", "Esc")] {
        journey.keys(open);
        journey.app.press(&Event::Paste("x".repeat(80_000)), &mut journey.hands);
        let screen = journey.screen();
        assert!(screen.contains("characters left out: 75,904"), "{screen}");
        journey.text("y");
        let screen = journey.screen();
        assert!(screen.contains("xxx") && screen.contains("left out: 75,905"), "{screen}");
        let screen = journey.keys("Backspace");
        assert!(!screen.contains("left out"), "{screen}");
        journey.keys(close);
    }
}
