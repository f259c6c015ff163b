//! Journeys: keys are typed and frames looked at, without a terminal and without a clock.

use std::cell::{Cell, RefCell};
use std::io;

use crossterm::event::{KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use proptest::prelude::*;

use super::app::{App, Event, ExitReason, Host, Hub, Look};
use super::keys::Key;
use super::screen::{Screen, dump};
use super::shared::Shared;
use super::theme::Theme;
use crate::lifecycle::facts::{Facts, State};
use crate::lifecycle::packed::Value;
use crate::lifecycle::request::RequestKey;
use crate::lifecycle::stage::Outcome;
use crate::store::{Limits, Store};
use crate::view::data::Data;
use crate::view::fixture::{Fixture, MS, NOW, cluster, def};
use crate::view::header::{Listener, Loading, Vitals};

struct Desk {
    data: RefCell<Fixture>,
    vitals: RefCell<Vitals>,
    pinned: Cell<Option<RequestKey>>,
}

impl Hub for Desk {
    fn look(&self, look: &Look<'_>, see: &mut dyn FnMut(&dyn Data, &Vitals)) {
        self.pinned.set(look.pin);
        self.data.borrow_mut().hold(look.past.is_some());
        see(&*self.data.borrow(), &self.vitals.borrow());
    }
}

#[derive(Default)]
struct Hands {
    copied: Vec<String>,
    stops: u32,
    saved: Vec<(String, String)>,
}

impl Host for Hands {
    fn suspend(&mut self) -> io::Result<()> {
        self.stops += 1;
        Ok(())
    }
    fn retake(&mut self) -> io::Result<()> {
        Ok(())
    }
    fn copy(&mut self, what: &str, text: &str) -> String {
        self.copied.push(text.to_owned());
        format!("{what} sent")
    }
    fn save(&mut self, stem: &str, text: &str) -> String {
        self.saved.push((stem.to_owned(), text.to_owned()));
        format!("saved {stem}")
    }
    fn is_there(&self) -> bool {
        true
    }
}

fn desk(data: Fixture) -> Desk {
    let at = |protocol, address: &str| Listener { protocol, address: address.parse().unwrap() };
    let vitals = Vitals {
        listeners: vec![at("grpc", "127.0.0.1:4317"), at("grpc", "[::1]:4317"), at("http", "127.0.0.1:4318")],
        last_arrival_ns: None,
        ..Vitals::default()
    };
    Desk { data: RefCell::new(data), vitals: RefCell::new(vitals), pinned: Cell::new(None) }
}

struct Journey<'a> {
    app: App<'a>,
    hands: Hands,
    size: (u16, u16),
}

fn now() -> u64 {
    NOW
}

impl<'a> Journey<'a> {
    fn new(desk: &'a Desk, size: (u16, u16)) -> Self {
        let theme = Theme::named("terminal").unwrap();
        let mut journey = Self { app: App::new(desk, theme, &now), hands: Hands::default(), size };
        journey.screen();
        journey
    }

    fn screen(&mut self) -> String {
        dump(&self.app.frame(self.size.0, self.size.1))
    }

    /// Types keys by their names, parted by spaces; gives the screen after them.
    fn keys(&mut self, names: &str) -> String {
        for name in names.split(' ') {
            let key = Key::parse(name).unwrap_or_else(|| panic!("no key {name}"));
            let modifiers = if key.ctrl { KeyModifiers::CONTROL } else { KeyModifiers::NONE };
            assert_eq!(self.event(key.code, modifiers, KeyEventKind::Press), None, "{name} ended the program");
        }
        self.screen()
    }

    fn text(&mut self, text: &str) -> String {
        for c in text.chars() {
            self.event(KeyCode::Char(c), KeyModifiers::NONE, KeyEventKind::Press);
        }
        self.screen()
    }

    fn event(&mut self, code: KeyCode, modifiers: KeyModifiers, kind: KeyEventKind) -> Option<ExitReason> {
        self.app.press(&Event::Key(KeyEvent::new_with_kind(code, modifiers, kind)), &mut self.hands)
    }

    /// The row under the cursor.
    fn row(&mut self) -> String {
        self.screen().lines().find(|line| line.contains('▸') && !line.contains("filter")).unwrap_or("").to_owned()
    }
}

const SIZES: [(u16, u16); 3] = [(80, 24), (120, 40), (200, 60)];

#[test]
fn every_screen_at_every_size() {
    let desk = desk(cluster());
    for size in SIZES {
        let name = |what: &str| format!("{what}-{}x{}", size.0, size.1);
        let mut journey = Journey::new(&desk, size);
        insta::assert_snapshot!(name("live"), journey.screen());
        insta::assert_snapshot!(name("filter"), journey.keys("/ o"));
        insta::assert_snapshot!(name("sort"), journey.keys("Esc s"));
        insta::assert_snapshot!(name("help"), journey.keys("Esc ?"));
        insta::assert_snapshot!(name("request"), journey.keys("Esc j j j Enter"));
        insta::assert_snapshot!(name("request-selection"), journey.keys("↓ ↓ ↓ Tab"));
        insta::assert_snapshot!(name("request-attributes"), journey.keys("Tab"));
        insta::assert_snapshot!(name("request-records"), journey.keys("Tab"));
        insta::assert_snapshot!(name("raw"), journey.keys("Tab v"));
    }
}

/// A simulated cluster after twenty seconds, as the program holds it.
fn living() -> Shared {
    let start_ns = NOW - 20_000 * MS;
    let mut cluster = crate::demo::Cluster::new(&crate::demo::Settings { seed: 4, ..Default::default() }, start_ns);
    let mut store = Store::new(Limits::default());
    for delivery in cluster.advance(NOW) {
        let signal = match delivery.signal {
            crate::demo::Signal::Traces => crate::source::intake::Signal::Traces,
            crate::demo::Signal::Logs => crate::source::intake::Signal::Logs,
        };
        let mut payload = crate::source::intake::Payload::otlp(signal, delivery.body);
        crate::pipeline::take_in(&mut store, &mut payload, delivery.at_ns).unwrap();
        store.refresh(delivery.at_ns);
    }
    Shared::new(std::sync::Arc::new(parking_lot::FairMutex::new(store)), Vitals::default())
}

/// A frame without its header, whose bytes held are not what these tests are about.
fn below_header(frame: &ratatui::buffer::Buffer) -> String {
    dump(frame).split_once('\n').map(|(_, rest)| rest.to_owned()).unwrap()
}

#[test]
fn every_pane_at_every_size_in_two_themes() {
    let hub = living();
    for size in SIZES {
        for theme in ["terminal", "light"] {
            let mut app = App::new(&hub, Theme::named(theme).unwrap(), &now);
            app.frame(size.0, size.1);
            for (name, key) in [
                ("live", None),
                ("queue", Some('1')),
                ("selection", Some('2')),
                ("dispatch", Some('3')),
                ("streaming", Some('4')),
                ("workers", Some('w')),
                ("sessions", Some('a')),
            ] {
                let mut hands = Hands::default();
                let mut press = |app: &mut App<'_>, c| {
                    app.press(&Event::Key(KeyEvent::new(KeyCode::Char(c), KeyModifiers::NONE)), &mut hands);
                    app.frame(size.0, size.1);
                };
                if let Some(key) = key {
                    press(&mut app, key);
                    if name == "queue" {
                        press(&mut app, 'z');
                    }
                }
                let frame = app.frame(size.0, size.1);
                // Themes differ in looks alone: the texts are kept once, the looks as one number each.
                if theme == "terminal" {
                    insta::assert_snapshot!(format!("pane-{name}-{}x{}", size.0, size.1), below_header(&frame));
                }
                let looks = frame.content.iter().skip(usize::from(size.0)).fold(0u64, |sum, cell| {
                    let style = format!("{:?}{:?}{:?}", cell.fg, cell.bg, cell.modifier);
                    style.bytes().fold(sum, |sum, byte| sum.wrapping_mul(0x0100_0000_01b3) ^ u64::from(byte))
                });
                insta::assert_snapshot!(
                    format!("pane-looks-{name}-{theme}-{}x{}", size.0, size.1),
                    format!("{looks:016x}")
                );
            }
        }
    }
}

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
fn ascii_is_enough() {
    let hub = living();
    let mut app = App::new(&hub, Theme::named("terminal").unwrap().with_signs(super::theme::Signs::Ascii), &now);
    let frame = dump(&app.frame(150, 40));
    let odd: Vec<char> = frame.chars().filter(|c| !c.is_ascii()).collect();
    assert!(odd.is_empty(), "{odd:?} in\n{frame}");
    insta::assert_snapshot!("ascii-150x40", frame.split_once('\n').unwrap().1);
}

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
fn paused_trees_do_not_grow_until_the_screen_goes_on() {
    let desk = desk(cluster());
    let mut journey = Journey::new(&desk, (120, 40));
    journey.keys("j j j Enter p");
    desk.data.borrow_mut().span(RequestKey(5), def(77, 2, "late.span", 50.0, 60.0));
    assert!(!journey.keys("j k").contains("late.span"));
    assert!(journey.keys("p").contains("late.span"));
}

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
fn b53_wide_names_leave_the_right_edge_in_one_column_and_nothing_behind() {
    let names = ["推理服务", "👩‍🔬", "🧑🏽‍🚒", "🏳️‍🌈", "♻️", "ｶﾞ", "e\u{301}", "ascii", "mixed推👩‍🔬x", "a\nb\tc"];
    let mut data = Fixture::default();
    for index in 0..60 {
        let model = names[index % names.len()].into();
        let id = format!("{index:08}-0000-4000-8000-000000000000").into();
        data.add(Facts {
            request_id: id,
            session_id: names[(index * 7) % names.len()].into(),
            model,
            start_ns: NOW - 2000 * MS,
            has_root: true,
            ..Facts::default()
        });
    }
    let desk = desk(data);
    let mut journey = Journey::new(&desk, (150, 20));
    let mut screen = Screen::new(ratatui::backend::TestBackend::new(150, 20));
    for step in 0..100 {
        journey.keys(if step < 50 { "j" } else { "k" });
        let frame = journey.app.frame(150, 20);
        for line in dump(&frame).lines().filter(|line| line.starts_with('│')) {
            assert!(line.ends_with('│') && super::widgets::text::width(line) == 150, "{line}");
        }
        screen.resize().unwrap();
        screen.show(|buf| *buf = frame.clone()).unwrap();
        let cells = |buf: &ratatui::buffer::Buffer| dump(buf);
        assert_eq!(cells(screen.backend().buffer()), cells(&frame));
    }
}

#[test]
fn a_long_load_shows_how_far_it_is_and_notices_can_be_read() {
    let desk = desk(Fixture::default());
    *desk.vitals.borrow_mut() = Vitals {
        loading: Some(Loading {
            doing: "reading".into(),
            name: "run.traces.jsonl.gz".into(),
            read: 3 << 20,
            total: 12 << 20,
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

#[test]
fn without_colour_no_cell_has_one() {
    let desk = desk(cluster());
    let mut app = App::new(&desk, Theme::named("light").unwrap().without_colour(), &now);
    let frame = app.frame(120, 40);
    use ratatui::style::Color;
    assert!(frame.content.iter().all(|cell| cell.fg == Color::Reset && cell.bg == Color::Reset));
}

fn any_key() -> impl Strategy<Value = &'static str> {
    proptest::sample::select(vec![
        "j",
        "k",
        "g",
        "G",
        "Enter",
        "Esc",
        "Tab",
        "S-Tab",
        "/",
        "s",
        "S",
        "?",
        "p",
        "f",
        "n",
        "N",
        "v",
        "y",
        "Y",
        "u",
        "h",
        "l",
        "↑",
        "↓",
        "←",
        "→",
        "PgUp",
        "PgDn",
        "C-d",
        "C-u",
        "Backspace",
        "Del",
        "C-w",
        ":",
        "o",
        "\"",
        "(",
        "推",
        "Space",
        "Home",
        "End",
        "C-l",
        "C-z",
        "F1",
        "F6",
        "w",
    ])
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn no_keys_at_no_size_crash(
        steps in proptest::collection::vec((any_key(), 1u16..130, 1u16..50, 0u8..8), 1..50)
    ) {
        let desk = desk(cluster());
        let mut journey = Journey::new(&desk, (80, 24));
        for (key, width, height, change) in steps {
            if change == 0 {
                journey.size = (width, height);
            }
            if change == 1 {
                desk.data.borrow_mut().add(Facts { start_ns: NOW, ..Facts::default() });
            }
            if change == 2 && desk.data.borrow().facts(RequestKey(u64::from(width % 9))).is_some() {
                desk.data.borrow_mut().remove(RequestKey(u64::from(width % 9)));
            }
            let key = Key::parse(key).unwrap();
            let modifiers = if key.ctrl { KeyModifiers::CONTROL } else { KeyModifiers::NONE };
            journey.event(key.code, modifiers, KeyEventKind::Press);
            journey.screen();
        }
    }

    #[test]
    fn every_screen_draws_at_every_size(width in 0u16..220, height in 0u16..70, which in 0usize..7) {
        let desk = desk(cluster());
        let mut journey = Journey::new(&desk, (width, height));
        journey.keys(["j", "/", "s", "?", "j j j Enter", "j j j Enter Tab Tab", "j j j Enter v"][which]);
    }
}

/// A real capture in a real store (captures/README.md).
fn captured(name: &str) -> Shared {
    use crate::source::intake::{Payload, Signal};
    use std::io::Read as _;
    let path = format!("{}/tests/fixtures/{name}", env!("CARGO_MANIFEST_DIR"));
    let mut bytes = Vec::new();
    flate2::read::MultiGzDecoder::new(std::fs::File::open(path).unwrap()).read_to_end(&mut bytes).unwrap();
    let mut store = Store::new(Limits::default());
    let mut rest = bytes.as_slice();
    while let Some(length) = crate::lifecycle::packed::varint(&mut rest) {
        let (message, tail) = rest.split_at(length as usize);
        rest = tail;
        let mut payload = Payload::otlp(Signal::Traces, message.to_vec());
        crate::pipeline::take_in(&mut store, &mut payload, NOW).unwrap();
    }
    store.finish(NOW);
    Shared::new(std::sync::Arc::new(parking_lot::FairMutex::new(store)), Vitals::default())
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
fn what_is_shown_is_exported_to_a_file_that_is_told() {
    let desk = desk(cluster());
    let mut journey = Journey::new(&desk, (140, 40));
    let told = journey.keys("e");
    assert!(told.contains("saved reqtop-"), "{told}");
    let told = journey.keys("Enter e");
    assert!(told.contains("saved reqtop-"), "{told}");
    let names: Vec<&str> = journey.hands.saved.iter().map(|(stem, _)| stem.as_str()).collect();
    assert!(names[0].ends_with("-requests") && !names[1].ends_with("-requests"), "{names:?}");
    for (_, text) in &journey.hands.saved {
        for line in text.lines() {
            let json: serde_json::Value = serde_json::from_str(line).unwrap();
            assert!(json["resourceSpans"].is_array() || json["resourceLogs"].is_array());
        }
    }
}
