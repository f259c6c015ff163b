//! Own keys, and the palette.

use super::*;
use crate::tui::Setup;
use crate::tui::action::{Action, Place};
use crate::tui::keymap::{Choice, Keymap};

fn with_keys(desk: &Desk, keys: Keymap) -> Journey<'_> {
    let setup = Setup { keys, ..Theme::named("terminal").unwrap().into() };
    let mut journey = Journey { app: App::new(desk, setup, &now), hands: Hands::default(), size: (120, 40) };
    journey.screen();
    journey
}

#[test]
fn an_action_is_found_by_its_words_and_done_on_the_screen_below() {
    let desk = desk(cluster());
    let mut journey = Journey::new(&desk, (120, 40));
    let open = journey.keys(":");
    assert!(open.contains("─ Do ") && open.contains("filter-drop") && open.contains("p  Space"), "{open}");
    let found = journey.text("turn round");
    assert!(found.contains("reverse") && !found.contains("filter-drop"), "{found}");
    let done = journey.keys("C-u");
    assert!(done.contains("filter-drop"), "the line is emptied: {done}");
    journey.text("revers");
    assert!(journey.keys("Enter").contains("oldest first"), "it is done and the palette is closed");
    // What a letter would do elsewhere is text here; Esc does nothing but close.
    journey.keys("C-p");
    assert!(journey.text("q").contains("quit") && journey.keys("Esc").contains("oldest first"));
    journey.keys(":");
    let nothing = journey.text("xyzzy");
    assert!(nothing.contains("nothing of that name works here"));
    journey.keys("Enter");
    // On the request screen, what works there.
    journey.keys("Enter");
    let request = journey.keys(":");
    assert!(request.contains("filter-by") && !request.contains("filter-drop"), "{request}");
    journey.text("copy");
    journey.keys("Enter");
    assert_eq!(journey.hands.copied.len(), 1);
    // Ending the program is an action like any other.
    journey.keys(":");
    journey.text("quit");
    let ended = journey.event(KeyCode::Enter, KeyModifiers::NONE, KeyEventKind::Press);
    assert_eq!(ended, Some(ExitReason::Quit));
}

#[test]
fn own_keys_work_and_are_what_footer_help_and_palette_show() {
    let desk = desk(cluster());
    let choice = |place, action, name: &str| Choice { place, action, keys: vec![Key::parse(name).unwrap()], line: 1 };
    let choices = [choice(None, Action::Pause, "F9"), choice(Some(Place::Live), Action::Help, "F2")];
    let mut journey = with_keys(&desk, Keymap::with(&choices).unwrap());
    let screen = journey.screen();
    assert!(screen.contains("F9 pause") && screen.contains("F2 help") && !screen.contains("p pause"), "{screen}");
    assert!(!journey.keys("p").contains("PAUSED") && journey.keys("F9").contains("PAUSED"));
    let help = journey.keys("F2");
    assert!(help.contains("F9") && help.contains("freeze what is shown"), "{help}");
    journey.keys("Esc :");
    assert!(journey.text("pause").contains("F9"));
}
