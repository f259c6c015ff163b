//! Themes: the menu shows the one under the cursor at once.

use super::*;
use crate::tui::Setup;
use crate::tui::theme::{Depth, Role, Signs, Themes};

#[test]
fn themes_are_shown_as_the_cursor_passes_kept_or_taken_back() {
    let desk = desk(cluster());
    let mut journey = Journey::new(&desk, (120, 40));
    let back = |journey: &mut Journey<'_>| {
        let frame = journey.app.frame(120, 40);
        frame[(0, 39)].bg
    };
    let before = back(&mut journey);
    let menu = journey.keys("T");
    assert!(menu.contains("Theme") && menu.contains("catppuccin-mocha"), "{menu}");
    journey.keys("j j");
    let contrast = Theme::named("high-contrast").unwrap().role(Role::Screen).bg.unwrap();
    assert_eq!(back(&mut journey), contrast, "the theme under the cursor is shown");
    journey.keys("Esc");
    assert_eq!(back(&mut journey), before, "Esc takes it back");
    let kept = journey.keys("T G Enter");
    assert!(kept.contains("nord until you quit") && !kept.contains("dracula"), "{kept}");
    assert_eq!(back(&mut journey), Theme::named("nord").unwrap().role(Role::Screen).bg.unwrap());
    // The menu begins at the one in use.
    journey.keys("T k");
    assert_eq!(back(&mut journey), Theme::named("gruvbox-dark").unwrap().role(Role::Screen).bg.unwrap());
}

#[test]
fn what_is_odd_about_the_theme_is_told_at_first_and_in_the_menu() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("aaa.toml"), "about = 'mine'\n[roles]\nwarm = 'red'\n").unwrap();
    let themes = Themes::new(Some(folder.path().to_owned()), Depth::Full, Signs::Unicode);
    let theme = themes.find("aaa").unwrap();
    let desk = desk(cluster());
    let setup = Setup { themes, theme, ..Theme::named("terminal").unwrap().into() };
    let mut app = App::new(&desk, setup, &now);
    let screen = dump(&app.frame(120, 40));
    assert!(screen.contains("theme aaa: line 3: no role is called warm; did you mean warn?"), "{screen}");
    let press = Event::Key(KeyEvent::new(KeyCode::Char('T'), KeyModifiers::NONE));
    app.press(&press, &mut Hands::default());
    let menu = dump(&app.frame(120, 40));
    assert!(menu.contains("own · 1 odd") && menu.contains("line 3: no role"), "{menu}");
}
