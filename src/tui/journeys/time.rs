//! Moving in time, and taking what is shown along.

use super::*;
use crate::tui::Setup;
use crate::view::window::Window;

#[test]
fn time_moves_back_and_forth_and_moments_are_marked() {
    let desk = desk(cluster());
    let mut journey = Journey::new(&desk, (140, 40));
    let back = journey.keys(",");
    assert!(back.contains("BACK") && back.contains("p live"), "{back}");
    let first = journey.keys("m (");
    assert!(first.contains("BACK") && !first.contains("Z −1.0 s"), "{first}");
    let message = journey.keys(",");
    assert!(message.contains("nothing older is kept"), "{message}");
    let list = journey.keys("m '");
    assert!(list.contains("Bookmarks") && list.contains("after what is shown") && list.contains("shown"), "{list}");
    let gone = journey.keys("j Enter");
    assert!(!gone.contains("Bookmarks") && gone.contains("Z −1.0 s"), "{gone}");
    let live = journey.keys("p");
    assert!(live.contains("LIVE") && !live.contains("BACK"), "{live}");
}

#[test]
fn a_request_says_at_which_moment_it_is_shown() {
    let desk = desk(cluster());
    for width in [80, 140] {
        let mut journey = Journey::new(&desk, (width, 40));
        let live = journey.keys("j j j Enter");
        assert!(!live.contains("BACK") && !live.contains("PAUSED"), "{live}");
        let still = journey.keys("p");
        assert!(still.contains("PAUSED"), "{still}");
        let back = journey.keys(",");
        let (moment, _) = back.split_once("BACK ").unwrap().1.split_once("Z −").unwrap();
        assert!(moment.len() == "12:04:31.123".len() && !back.contains("PAUSED"), "{back}");
        assert!(!journey.keys("p").contains("BACK"));
    }
}

#[test]
fn what_is_shown_is_exported_to_a_file_that_is_told() {
    let desk = desk(cluster());
    let mut journey = Journey::new(&desk, (140, 40));
    let told = journey.keys("e");
    assert!(told.contains("saved reqtop-"), "{told}");
    let told = journey.keys("j j j Enter e");
    assert!(told.contains("saved reqtop-"), "{told}");
    let names: Vec<&str> = journey.hands.saved.iter().map(|(stem, _)| stem.as_str()).collect();
    assert!(names[0] == "reqtop-1-request" && !names[1].contains("-request"), "{names:?}");
    for (_, text) in &journey.hands.saved {
        for line in text.lines() {
            let json: serde_json::Value = serde_json::from_str(line).unwrap();
            assert!(json["resourceSpans"].is_array() || json["resourceLogs"].is_array());
        }
    }
}

/// The name and what is said count what is written, not what is listed.
#[test]
fn an_export_of_the_list_counts_what_it_holds() {
    let mut data = Fixture::default();
    let facts = |n: u64| Facts { start_ns: NOW - n * MS, end_ns: Some(NOW), state: State::Ended, ..Facts::default() };
    for n in 0..3 {
        data.add(facts(n));
    }
    let first = data.add(facts(3));
    data.span(first, def(1, 0, "http.request", 0.0, 5.0));
    let desk = desk(data);
    let mut journey = Journey::new(&desk, (140, 24));
    let told = journey.keys("e");
    assert!(told.contains("saved reqtop-1-request; 3 requests without spans or records left out"), "{told}");
    for n in 0..600 {
        let key = desk.data.borrow_mut().add(facts(n));
        desk.data.borrow_mut().span(key, def(1, 0, "http.request", 0.0, 5.0));
    }
    journey.screen();
    let told = journey.keys("e");
    assert!(told.contains("saved reqtop-500-requests; only the first 500 of the list: `reqtop export"), "{told}");
    journey.hands.disk_is_full = true;
    let told = journey.keys("e");
    assert!(told.contains("no room") && !told.contains("only the first"), "{told}");
    journey.hands.disk_is_full = false;
    // Full, it lets go of what stands still.
    journey.keys("p");
    let keys: Vec<RequestKey> = desk.data.borrow().newest().map(|(key, _)| key).collect();
    keys[7..].iter().for_each(|key| desk.data.borrow_mut().remove(*key));
    let told = journey.keys("e");
    assert!(told.contains("saved reqtop-7-requests") && !told.contains("of the list"), "{told}");
    let lines: Vec<usize> = journey.hands.saved.iter().map(|(_, text)| text.lines().count()).collect();
    assert_eq!(lines, [1, 500, 7]);
}

/// Logs alone make no span and no record.
#[test]
fn of_a_request_without_spans_no_file_is_made() {
    let mut data = Fixture::default();
    data.add(Facts { start_ns: NOW - MS, end_ns: Some(NOW), state: State::Ended, ..Facts::default() });
    let desk = desk(data);
    let mut journey = Journey::new(&desk, (140, 24));
    let told = journey.keys("Enter e");
    assert!(told.contains("nothing here has spans or records to export"), "{told}");
    assert!(journey.hands.saved.is_empty());
}

/// It would speak of a screen that is no longer there. What came by itself is news whatever is done.
#[test]
fn an_answer_goes_with_the_next_action_and_news_stay() {
    let desk = desk(cluster());
    let mut journey = Journey::new(&desk, (140, 40));
    for next in ["j", ")", "p", "Enter", "Tab", "F1"] {
        let old = journey.keys("{ {");
        assert!(old.contains("nothing older is kept"), "{old}");
        assert!(journey.keys("C-l").contains("nothing older is kept"));
        let moved = journey.keys(next);
        assert!(!moved.contains("nothing older is kept"), "{next}: {moved}");
        journey = Journey::new(&desk, (140, 40));
    }
    desk.vitals.borrow_mut().notices.push("x.jsonl: cannot be opened".into());
    journey.screen();
    let told = journey.keys("j Enter");
    assert!(told.contains("x.jsonl: cannot be opened"), "{told}");
    // One that is taken back makes no news of those before it.
    let told_first = desk.vitals.borrow().notices.clone();
    desk.vitals.borrow_mut().notices.push("y.jsonl: is not there yet".into());
    assert!(journey.screen().contains("y.jsonl: is not there yet"));
    desk.vitals.borrow_mut().notices = told_first;
    assert!(journey.screen().contains("y.jsonl: is not there yet"), "what was news stays for its time");
}

/// A file is as old as it is: a window over it ends with what it holds, as that of a report does.
#[test]
fn a_window_over_what_does_not_go_on_ends_with_it() {
    let hub = captured("dev-sim.traces.pb.gz");
    let setup = || Setup { window: Window::TenSeconds, ..Theme::named("terminal").unwrap().into() };
    let requests = |app: &mut App<'_>, names: &str| {
        for name in names.split(' ').filter(|name| !name.is_empty()) {
            let key = Key::parse(name).unwrap();
            app.press(&Event::Key(KeyEvent::new(key.code, KeyModifiers::NONE)), &mut Hands::default());
        }
        (0..4).for_each(|_| _ = app.frame(150, 40));
        dump(&app.frame(150, 40))
    };
    // What comes in now has a window that ends now. It hides all there is, and that is said.
    let mut app = App::new(&hub, setup(), &now);
    let hidden = requests(&mut app, "");
    assert!(hidden.contains("no request within the last 10 s; ] looks back farther"), "{hidden}");
    let both = requests(&mut app, "/ o u t c o m e : s u c c e s s Enter");
    assert!(both.contains("no request passes the filter within the last 10 s; ] looks back farther"), "{both}");
    assert!(requests(&mut app, "] ] ] Esc").contains("newest first · 80"));
    let slip = requests(&mut app, "/ h u n g . f o r > 1 m s Enter");
    assert!(slip.contains("no request passes the filter; hung.for is no field, and taken for an attribute"), "{slip}");
    requests(&mut app, "Esc");
    hub.ends_with_what_is_held();
    let mut app = App::new(&hub, setup(), &now);
    assert!(requests(&mut app, "").contains("newest first · 80"));
    // An hour later.
    let (hub, later) = (living(), || NOW + 3_600_000 * MS);
    hub.ends_with_what_is_held();
    let mut app = App::new(&hub, setup(), &later);
    let shown = requests(&mut app, "");
    let (report, all) = {
        let store = hub.store.lock();
        let report = crate::report::Report::within(&store, Default::default(), None, Some(10_000_000_000));
        (report.requests.total, store.len() as u64)
    };
    let said = format!("newest first · {report} of {all}");
    assert!((1..all).contains(&report) && shown.contains(&said), "{said}: {shown}");
    let paused = requests(&mut app, "p");
    assert!(paused.contains("PAUSED 10 s") && paused.contains(&said), "{paused}");
    let live = requests(&mut app, "p ]");
    assert!(live.contains("LIVE 1 m") && live.contains(&format!("newest first · {all} ")), "{live}");
}

/// The newest request is gone back from: it had not begun, which is another thing than having been let go.
#[test]
fn a_request_that_had_not_begun_says_so_and_comes_back() {
    let desk = desk(cluster());
    let mut journey = Journey::new(&desk, (140, 40));
    let open = journey.keys("g Enter");
    let id = open.split_once("request ").unwrap().1.split(' ').next().unwrap().to_owned();
    let before = journey.keys("(");
    assert!(before.contains("BACK") && before.contains("had not begun") && before.contains(&id), "{before}");
    assert!(!before.contains("no longer held") && !before.contains("in flight"), "{before}");
    for names in ["c", "e", "G", "t", "y"] {
        let told = journey.keys(names);
        assert!(told.contains("p comes back to the present") && told.contains("BACK"), "{names}: {told}");
    }
    assert_eq!(journey.keys("p"), open);
}
