//! Every screen at every size: snapshots, and no crash whatever is typed.

use super::*;

const SIZES: [(u16, u16); 3] = [(80, 24), (120, 40), (200, 60)];

/// Smaller than anybody would choose, and larger than most walls.
const ODD: [(u16, u16); 5] = [(60, 16), (40, 10), (20, 5), (1, 1), (400, 120)];

#[test]
fn every_screen_at_every_size() {
    let desk = desk(cluster());
    for size in SIZES.into_iter().chain(ODD) {
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
        insta::assert_snapshot!(name("checks"), journey.keys("Esc Esc c"));
        insta::assert_snapshot!(name("themes"), journey.keys("Esc T"));
        insta::assert_snapshot!(name("palette"), journey.keys("Esc :"));
    }
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
fn every_screen_is_resized_through_every_width() {
    let desk = desk(cluster());
    let hub = living();
    let screens = ["j", "/ o", "s", "?", "j j j Enter", "j j j Enter Tab Tab", "j j j Enter v", "c", "T", ":"];
    let panes = ["1 z", "2 z", "3 z", "4 z", "w", "a"];
    let of =
        screens.map(|keys| (&desk as &dyn Hub, keys)).into_iter().chain(panes.map(|keys| (&hub as &dyn Hub, keys)));
    for (hub, keys) in of {
        let mut journey =
            Journey { app: App::new(hub, Theme::named("nord").unwrap(), &now), ..Journey::new(&desk, (120, 40)) };
        journey.screen();
        journey.keys(keys);
        for width in 0..=210 {
            let height = [40, 24, 10, 60, 5, 3, 1][usize::from(width) % 7];
            let frame = journey.app.frame(width, height);
            assert_eq!(frame.area.width, width);
        }
        journey.app.frame(u16::MAX / 64, 3);
    }
}

#[test]
fn ascii_is_enough() {
    let hub = living();
    let mut app = App::new(&hub, Theme::named("terminal").unwrap().with_signs(crate::tui::theme::Signs::Ascii), &now);
    let frame = dump(&app.frame(150, 40));
    let odd: Vec<char> = frame.chars().filter(|c| !c.is_ascii()).collect();
    assert!(odd.is_empty(), "{odd:?} in\n{frame}");
    insta::assert_snapshot!("ascii-150x40", frame.split_once('\n').unwrap().1);
}

#[test]
fn without_colour_no_cell_has_one() {
    let desk = desk(cluster());
    let themes =
        crate::tui::theme::Themes::new(None, crate::tui::theme::Depth::None, crate::tui::theme::Signs::Unicode);
    let mut app = App::new(&desk, themes.find("nord").unwrap().theme, &now);
    let frame = app.frame(120, 40);
    use ratatui::style::Color;
    assert!(frame.content.iter().all(|cell| cell.fg == Color::Reset && cell.bg == Color::Reset));
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
            assert!(line.ends_with('│') && crate::tui::widgets::text::width(line) == 150, "{line}");
        }
        screen.resize().unwrap();
        screen.show(|buf| *buf = frame.clone()).unwrap();
        let cells = |buf: &ratatui::buffer::Buffer| dump(buf);
        assert_eq!(cells(screen.backend().buffer()), cells(&frame));
    }
}

pub(super) fn any_key() -> impl Strategy<Value = &'static str> {
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
        "T",
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
        journey.keys(["j", "/", "s",
        "T", "?", "j j j Enter", "j j j Enter Tab Tab", "j j j Enter v"][which]);
    }
}
