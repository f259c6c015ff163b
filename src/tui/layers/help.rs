//! All keys, from the action table; those that work on the screen below come first.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use super::{Command, Env, Layer, Scene, moved};
use crate::lifecycle::facts::Marks;
use crate::tui::action::{ACTIONS, Action, Place, rows};
use crate::tui::keymap::Keymap;
use crate::tui::theme::{Role, Theme};
use crate::tui::widgets::frame::frame;
use crate::tui::widgets::text::{At, put};
use crate::view::Tone;

/// The help.
pub struct Help {
    place: Place,
    top: usize,
}

enum Entry {
    Heading(&'static str),
    Keys(String, &'static str),
    Blank,
}

fn entries(first: Place, keys: &Keymap) -> Vec<Entry> {
    let mut entries = Vec::new();
    let everywhere = |row: &&crate::tui::action::Row| row.places.len() >= Place::ALL.len() - 1;
    let mut section = |title, place, rows: Vec<&'static crate::tui::action::Row>| {
        if rows.is_empty() {
            return;
        }
        entries.push(Entry::Heading(title));
        entries.extend(rows.into_iter().map(|row| Entry::Keys(keys.all(place, row.action), row.doc)));
        entries.push(Entry::Blank);
    };
    let places = Place::ALL.into_iter().filter(|(place, _)| *place == first);
    for (place, title) in places.chain(Place::ALL.into_iter().filter(|(place, _)| *place != first)) {
        section(title, place, rows(place).filter(|row| !everywhere(row)).collect());
    }
    section("everywhere", first, ACTIONS.iter().filter(everywhere).collect());
    entries.push(Entry::Heading("marks"));
    for (mark, means) in [
        ("–", "there is none"),
        ("core", "not recorded in core mode"),
        ("base", "not recorded by the base layout"),
        ("…", "not yet arrived"),
        ("missing", "missing although expected"),
        ("~0.1 ms", "worked out from other evidence; no span of its own says it"),
        ("28 msʳ", "told by a record"),
        ("tie  0.04!", "the two cheapest cost the same; nearly the same"),
        ("↻2  a↷b", "two attempts; the work moved from a to b"),
        ("t:0123ab", "no request id has arrived; its trace id"),
    ] {
        entries.push(Entry::Keys(mark.to_owned(), means));
    }
    entries.push(Entry::Blank);
    entries.push(Entry::Heading("⚑ what is odd about a request"));
    entries.extend(Marks::ALL.map(|(_, sign, word)| Entry::Keys(sign.to_string(), word)));
    entries
}

impl Help {
    /// Help for a place.
    pub fn new(place: Place) -> Self {
        Self { place, top: 0 }
    }
}

impl Layer for Help {
    fn place(&self) -> Place {
        Place::Help
    }

    fn on(&mut self, action: Action, scene: &Scene<'_>) -> Vec<Command> {
        if matches!(action, Action::Back | Action::Help) {
            return vec![Command::Pop];
        }
        let page = scene.area.height.saturating_sub(2);
        let most = entries(self.place, &scene.env.keys).len().saturating_sub(usize::from(page)) + 1;
        if let Some(top) = moved(action, self.top, most, page) {
            self.top = top;
        }
        Vec::new()
    }

    fn refresh(&mut self, scene: &Scene<'_>) {
        let page = usize::from(scene.area.height.saturating_sub(2));
        self.top = self.top.min(entries(self.place, &scene.env.keys).len().saturating_sub(page));
    }

    fn draw(&self, buf: &mut Buffer, area: Rect, env: &Env, theme: &Theme) {
        let hints = env.keys.hints(Place::Help, &[(Action::Down, "scroll"), (Action::Back, "back")]);
        let inside = frame(buf, area, "Keys", &hints, true, theme);
        for (row, entry) in (0..inside.height).zip(entries(self.place, &env.keys).into_iter().skip(self.top)) {
            let at = At::row(inside, row);
            match entry {
                Entry::Heading(title) => _ = put(buf, at, title, theme.tone(Tone::Strong)),
                Entry::Keys(keys, doc) => {
                    put(buf, At { width: 18.min(at.width), ..at }, &keys, theme.role(Role::Key));
                    put(buf, at.after(19), doc, theme.tone(Tone::Plain));
                }
                Entry::Blank => {}
            }
        }
    }
}
