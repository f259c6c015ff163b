//! The mouse: what is under it is meant.

use crossterm::event::{MouseButton, MouseEvent, MouseEventKind};

use super::sizes::any_key;
use super::*;

const LEFT: MouseButton = MouseButton::Left;

/// A screen and a clock that the test turns.
struct Paws<'a> {
    app: App<'a>,
    hands: Hands,
    size: (u16, u16),
}

impl Paws<'_> {
    fn screen(&mut self) -> String {
        (0..4).for_each(|_| _ = self.app.frame(self.size.0, self.size.1));
        dump(&self.app.frame(self.size.0, self.size.1))
    }

    fn mouse(&mut self, kind: MouseEventKind, (column, row): (u16, u16)) -> String {
        let event = MouseEvent { kind, column, row, modifiers: KeyModifiers::NONE };
        assert_eq!(self.app.press(&Event::Mouse(event), &mut self.hands), None);
        self.screen()
    }

    fn click(&mut self, at: (u16, u16)) -> String {
        self.mouse(MouseEventKind::Down(LEFT), at);
        self.mouse(MouseEventKind::Up(LEFT), at)
    }

    fn key(&mut self, name: &str) -> String {
        self.app.press(&Event::Key(KeyEvent::new(Key::parse(name).unwrap().code, KeyModifiers::NONE)), &mut self.hands);
        self.screen()
    }
}

/// Where a text stands on the screen.
fn find(screen: &str, text: &str) -> (u16, u16) {
    for (row, line) in screen.lines().enumerate() {
        if let Some(at) = line.find(text) {
            return (crate::tui::widgets::text::width(&line[..at]), row as u16);
        }
    }
    panic!("no {text} in\n{screen}");
}

fn paws<'a>(hub: &'a dyn Hub, size: (u16, u16)) -> Paws<'a> {
    let app = App::new(hub, Theme::named("terminal").unwrap(), &now);
    Paws { app, hands: Hands::default(), size }
}

#[test]
fn a_row_is_chosen_by_a_click_opened_by_two_and_the_wheel_moves_what_is_under_it() {
    let desk = desk(cluster());
    let mut paws = paws(&desk, (120, 40));
    let screen = paws.screen();
    let row = find(&screen, "55307ac2");
    let chosen = paws.click(row);
    assert!(chosen.lines().nth(usize::from(row.1)).unwrap().contains('▸'), "{chosen}");
    assert!(chosen.contains("holding"));
    // The clock stands still: the second press at one place is a double one.
    let open = paws.click(row);
    assert!(open.contains("55307ac2-dc7d-4855-9767-a4d62fd45968") && open.contains("Tree"), "{open}");
    // In the tree: a click chooses a span, two fold it.
    let leaf = find(&open, "worker.operation.prefill");
    let lifecycle = find(&open, "request.lifecycle");
    paws.click(lifecycle);
    let folded = paws.click(lifecycle);
    assert!(folded.contains("request.lifecycle +8") && !folded.contains("worker.operation.prefill"), "{folded}");
    paws.click((lifecycle.0, lifecycle.1));
    let unfolded = paws.click(lifecycle);
    assert_eq!(find(&unfolded, "worker.operation.prefill"), leaf);
    // The wheel over a list moves its cursor and leaves the keys where they are.
    let attributes = find(&unfolded, "Attributes");
    let turned = paws.mouse(MouseEventKind::ScrollDown, (attributes.0 + 5, attributes.1 + 4));
    assert!(!turned.is_empty());
    paws.key("Esc");
    let list = paws.mouse(MouseEventKind::ScrollUp, row);
    assert!(list.contains("holding"));
}

#[test]
fn a_click_means_the_request_that_is_seen_there_though_others_have_gone_since() {
    let desk = desk(cluster());
    let mut paws = paws(&desk, (120, 40));
    let row = find(&paws.screen(), "55307ac2");
    desk.data.borrow_mut().remove(RequestKey(6));
    let clicked = paws.click(row);
    assert!(clicked.lines().any(|line| line.contains('▸') && line.contains("55307ac2")), "{clicked}");
}

#[test]
fn a_click_in_a_pane_gives_it_the_keys_and_two_filter() {
    let hub = living();
    let mut paws = paws(&hub, (150, 40));
    let screen = paws.screen();
    let (x, y) = find(&screen, "decode");
    let title = find(&screen, "3 Dispatch");
    assert!(y > title.1);
    let focused = paws.click((x, y));
    assert!(focused.contains("Enter ▸ leg(phase:decode"), "{focused}");
    let filtered = paws.click((x, y));
    assert!(filtered.contains("filter ▸ leg(phase:decode"), "{filtered}");
    // The footer's words are buttons.
    let help = find(&filtered, "? help");
    assert!(paws.click(help).contains("Keys"));
}

#[test]
fn dragging_over_a_plot_of_time_filters_for_that_time() {
    let hub = living();
    let mut paws = paws(&hub, (200, 40));
    paws.key("1");
    let screen = paws.key("z");
    let (left, axis) = find(&screen, "└");
    let y = axis - 2;
    let from = (left + 20, y);
    paws.mouse(MouseEventKind::Down(LEFT), from);
    let marked = paws.mouse(MouseEventKind::Drag(LEFT), (left + 35, y));
    let frame = paws.app.frame(200, 40);
    let reversed = (0..200).filter(|x| frame[(*x, y)].modifier.contains(ratatui::style::Modifier::REVERSED)).count();
    assert!((14..=20).contains(&reversed), "{reversed} columns are marked in\n{marked}");
    assert!(!marked.contains("filter ▸"), "nothing is asked before the button is up");
    let done = paws.mouse(MouseEventKind::Up(LEFT), (left + 35, y));
    assert!(done.contains("filter ▸") && done.contains("leg(queue.entered<"), "{done}");
    // On the first screen too, also when the button goes up somewhere else.
    paws.key("Esc");
    paws.key("Backspace");
    let screen = paws.key("Esc");
    assert!(!screen.contains("filter ▸"), "{screen}");
    let (left, axis) = find(&screen, "└");
    paws.mouse(MouseEventKind::Down(LEFT), (left + 10, axis - 1));
    paws.mouse(MouseEventKind::Drag(LEFT), (left + 30, axis - 1));
    let elsewhere = paws.mouse(MouseEventKind::Up(LEFT), (3, 39));
    assert!(elsewhere.contains("leg(queue.entered<"), "{elsewhere}");
    let after = |word| done.split(word).nth(1).unwrap().split([')', ' ', '\n']).next().unwrap().parse::<u64>().unwrap();
    let wide = after("queue.entered<") - after("queue.left>");
    assert!((1_000..15_000).contains(&wide), "{wide} ms in\n{done}");
}

/// The button goes up where the pane never hears of it.
#[test]
fn a_stretch_that_was_left_behind_is_not_applied_by_what_comes_after() {
    let hub = living();
    for (away, back) in [(vec!["c"], "Esc"), (vec![":"], "Esc"), (vec!["1", "z"], "Esc"), (vec!["p"], "p")] {
        let mut paws = paws(&hub, (150, 40));
        let screen = paws.screen();
        let (left, axis) = find(&screen, "└");
        let reversed = |paws: &mut Paws<'_>| {
            let frame = paws.app.frame(150, 40);
            let is = |x: &u16| frame[(*x, axis - 1)].modifier.contains(ratatui::style::Modifier::REVERSED);
            (0..150).filter(is).count()
        };
        paws.mouse(MouseEventKind::Down(LEFT), (left + 10, axis - 1));
        paws.mouse(MouseEventKind::Drag(LEFT), (left + 30, axis - 1));
        assert!(reversed(&mut paws) > 10);
        away.iter().for_each(|key| _ = paws.key(key));
        paws.mouse(MouseEventKind::Up(LEFT), (left + 30, axis - 1));
        let screen = paws.key(back);
        assert!(!screen.contains("filter ▸"), "{screen}");
        assert!(reversed(&mut paws) < 10, "nothing is marked any more after {away:?}");
        let clicked = paws.click((30, 34));
        assert!(!clicked.contains("filter ▸") && clicked.contains("holding"), "{clicked}");
    }
    // No button going up is heard of at all.
    let mut paws = paws(&hub, (150, 40));
    let (left, axis) = find(&paws.screen(), "└");
    paws.mouse(MouseEventKind::Down(LEFT), (left + 10, axis - 1));
    paws.mouse(MouseEventKind::Drag(LEFT), (left + 30, axis - 1));
    let clicked = paws.click((30, 34));
    assert!(!clicked.contains("filter ▸") && clicked.contains("holding"), "{clicked}");
}

/// What is hidden under a message is no button; the way out among them.
#[test]
fn a_message_is_no_row_of_buttons() {
    let desk = desk(cluster());
    let mut paws = paws(&desk, (120, 40));
    let screen = paws.screen();
    let buttons = ["q quit", "? help", "/ filter"].map(|word| find(&screen, word));
    let told = paws.key("M");
    assert!(told.contains("the mouse works here") && !told.contains("q quit"), "{told}");
    for at in buttons {
        let still = paws.click(at);
        assert!(still.contains("the mouse works here") && still.contains("─ Requests "), "{still}");
    }
}

/// The first of two presses beside a menu closes it; the second is none on what is beneath.
#[test]
fn two_clicks_beside_a_menu_close_it_and_open_nothing() {
    let desk = desk(cluster());
    let mut paws = paws(&desk, (120, 40));
    let row = find(&paws.screen(), "55307ac2");
    paws.key("s");
    let beside = (3, row.1);
    assert!(!paws.click(beside).contains("from start to end"));
    let list = paws.click(beside);
    assert!(list.contains("─ Requests ") && list.contains("holding"), "{list}");
    assert!(paws.click(beside).contains("Tree"), "two on the list open");
}

#[test]
fn menus_are_clicked_and_left_by_a_click_beside_them() {
    let desk = desk(cluster());
    let mut paws = paws(&desk, (120, 40));
    let menu = paws.key("s");
    let total = find(&menu, "from start to end");
    paws.click(total);
    assert!(paws.click(total).contains("by total"));
    paws.key("s");
    assert!(!paws.click((0, 5)).contains("Sort by"));
    let themes = paws.key("T");
    paws.click(find(&themes, "dracula"));
    let back = Theme::named("dracula").unwrap().role(crate::tui::theme::Role::Screen).bg.unwrap();
    assert_eq!(paws.app.frame(120, 40)[(0, 39)].bg, back);
    paws.click((0, 5));
    for key in [",", "m", "(", "m"] {
        paws.key(key);
    }
    let marks = paws.key("'");
    let later = find(&marks, "after what is shown");
    paws.click(later);
    let gone = paws.click(later);
    assert!(gone.contains("BACK −1.0 s") && !gone.contains("Bookmarks"), "{gone}");
}

#[test]
fn the_mouse_is_the_terminals_until_it_is_asked_for() {
    let desk = desk(cluster());
    let mut journey = Journey::new(&desk, (120, 40));
    assert_eq!(journey.hands.mouse, Vec::<bool>::new());
    assert!(journey.keys("M").contains("the mouse works here"));
    assert!(journey.keys("M").contains("the mouse is the terminal's"));
    assert_eq!(journey.hands.mouse, [true, false]);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn no_mouse_at_no_size_crashes(
        steps in proptest::collection::vec((0u16..140, 0u16..50, 0usize..5, any_key(), 0u16..6), 1..60),
        width in 1u16..130, height in 1u16..50,
    ) {
        let desk = desk(cluster());
        let mut paws = paws(&desk, (width, height));
        for (x, y, kind, key, how) in steps {
            if how == 0 {
                paws.size = (x + 1, y + 1);
            }
            if how == 1 {
                paws.app.press(&Event::Key(KeyEvent::new(Key::parse(key).unwrap().code, KeyModifiers::NONE)), &mut paws.hands);
            }
            let kinds = [
                MouseEventKind::Down(LEFT), MouseEventKind::Drag(LEFT), MouseEventKind::Up(LEFT),
                MouseEventKind::ScrollUp, MouseEventKind::ScrollDown,
            ];
            let event = MouseEvent { kind: kinds[kind], column: x, row: y, modifiers: KeyModifiers::NONE };
            paws.app.press(&Event::Mouse(event), &mut paws.hands);
            paws.app.frame(paws.size.0, paws.size.1);
        }
    }
}
