//! Which key does what where: the action table's keys with the user's own in their place.
//!
//! Two actions on one key at one place are an error, and so is a place that cannot be left. Keeps out: reading the key file
//! (`settings`).

use std::collections::HashMap;
use std::fmt;

use super::action::{ACTIONS, Action, Place, Row, rows};
use super::keys::Key;

/// Keys the user chose for an action, in place of the usual ones.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Choice {
    /// Where; `None` wherever the action works.
    pub place: Option<Place>,
    /// What they do.
    pub action: Action,
    /// The keys; none take the action off the keyboard.
    pub keys: Vec<Key>,
    /// Where it was said, for messages.
    pub line: usize,
}

/// See the module.
#[derive(Clone, PartialEq, Eq)]
pub struct Keymap {
    actions: HashMap<(Place, Key), Action>,
    keys: HashMap<(Place, Action), Vec<Key>>,
}

impl fmt::Debug for Keymap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Keymap({} keys)", self.actions.len())
    }
}

impl Default for Keymap {
    fn default() -> Self {
        Self::usual()
    }
}

/// The keys of a row as the table has them. A name that is none would be a slip in the table, which a test finds.
fn usual(row: &Row) -> Vec<Key> {
    row.keys.iter().filter_map(|name| Key::parse(name)).collect()
}

impl Keymap {
    fn usual() -> Self {
        let mut keymap = Self { actions: HashMap::new(), keys: HashMap::new() };
        for (place, _) in Place::ALL {
            for row in rows(place) {
                keymap.keys.insert((place, row.action), usual(row));
                for key in usual(row) {
                    if keymap.counts(place, key) {
                        keymap.actions.insert((place, key), row.action);
                    }
                }
            }
        }
        keymap
    }

    /// The usual keys with the user's in their place; what is said of one place goes before what is said of all.
    ///
    /// # Errors
    /// Every mistake with the line it was made in.
    pub fn with(choices: &[Choice]) -> Result<Self, Vec<(usize, String)>> {
        let mut keys = Self::usual().keys;
        let mut lines: HashMap<(Place, Action), usize> = HashMap::new();
        let mut wrong = Vec::new();
        let ordered = choices.iter().filter(|choice| choice.place.is_none());
        for choice in ordered.chain(choices.iter().filter(|choice| choice.place.is_some())) {
            let Some(row) = Row::of(choice.action) else { continue };
            if let Some(place) = choice.place.filter(|place| !row.places.contains(place)) {
                let places: Vec<String> = row.places.iter().map(|place| place.id()).collect();
                wrong.push((
                    choice.line,
                    format!("{} does nothing at {}; it works at {}", row.id, place.id(), places.join(", ")),
                ));
                continue;
            }
            for place in row.places.iter().filter(|place| choice.place.is_none_or(|chosen| chosen == **place)) {
                let typed = choice.keys.iter().find(|key| place.takes_text() && key.typed().is_some());
                if let (Some(key), Some(_)) = (typed, choice.place) {
                    wrong.push((
                        choice.line,
                        format!("{key} types a character at {}; take one with C- or M-, or F1 to F24", place.id()),
                    ));
                }
                keys.insert((*place, row.action), choice.keys.clone());
                lines.insert((*place, row.action), choice.line);
            }
        }
        let mut keymap = Self { actions: HashMap::new(), keys };
        for (place, _) in Place::ALL {
            for row in rows(place) {
                for key in keymap.keys(place, row.action).to_vec() {
                    if !keymap.counts(place, key) {
                        continue;
                    }
                    let Some(before) =
                        keymap.actions.insert((place, key), row.action).filter(|before| *before != row.action)
                    else {
                        continue;
                    };
                    let line = |action| lines.get(&(place, action)).copied().unwrap_or(0);
                    let other = Row::of(before).map_or("", |row| row.id);
                    let at = line(before).max(line(row.action));
                    wrong.push((
                        at,
                        format!(
                            "{key} does both {other} and {} at {}; give one of them another key, or none: {other} = []",
                            row.id,
                            place.id()
                        ),
                    ));
                }
            }
            let leaves = |action| keymap.keys(place, action).iter().any(|key| keymap.counts(place, *key));
            if !leaves(Action::Quit) && (place == Place::Live || !leaves(Action::Back)) {
                let line = |action| lines.get(&(place, action)).copied().unwrap_or(0);
                let at = line(Action::Quit).max(line(Action::Back));
                wrong
                    .push((at, format!("no key would lead away from {}; keep one for quit or back there", place.id())));
            }
        }
        wrong.sort();
        if wrong.is_empty() { Ok(keymap) } else { Err(wrong) }
    }

    /// Whether a key can stand for an action at a place; where characters are text, those that type one cannot.
    fn counts(&self, place: Place, key: Key) -> bool {
        !place.takes_text() || key.typed().is_none()
    }

    /// The action of a key at a place.
    pub fn find(&self, key: Key, place: Place) -> Option<Action> {
        self.actions.get(&(place, key)).copied()
    }

    /// The keys of an action at a place, the one to be shown first.
    pub fn keys(&self, place: Place, action: Action) -> &[Key] {
        self.keys.get(&(place, action)).map_or(&[], Vec::as_slice)
    }

    /// The name of the key to be shown.
    pub fn shown(&self, place: Place, action: Action) -> Option<String> {
        self.keys(place, action).iter().find(|key| self.counts(place, **key)).map(ToString::to_string)
    }

    /// `Enter keep  Esc back`: keys with a word each; what has no key is left out.
    pub fn hints(&self, place: Place, words: &[(Action, &str)]) -> String {
        let hints = words.iter().filter_map(|(action, word)| Some(format!("{} {word}", self.shown(place, *action)?)));
        hints.collect::<Vec<_>>().join("  ")
    }

    /// All keys of an action at a place, as shown.
    pub fn all(&self, place: Place, action: Action) -> String {
        self.keys(place, action).iter().map(ToString::to_string).collect::<Vec<_>>().join("  ")
    }
}

/// Every action with its usual keys and the places where it works, as Markdown.
pub fn markdown() -> String {
    let mut out = String::from("| key | does | where | id |\n|---|---|---|---|\n");
    for row in ACTIONS {
        let keys: Vec<String> = row.keys.iter().map(|key| format!("`{}`", key.replace('|', "\\|"))).collect();
        let everywhere = row.places.len() == Place::ALL.len();
        let places = match everywhere {
            true => "everywhere".to_owned(),
            false => row.places.iter().map(|place| place.title()).collect::<Vec<_>>().join(", "),
        };
        out.push_str(&format!("| {} | {} | {places} | `{}` |\n", keys.join(" "), row.doc, row.id));
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    fn key(name: &str) -> Key {
        Key::parse(name).unwrap_or_else(|| panic!("{name}"))
    }

    fn choice(place: Option<Place>, action: Action, names: &[&str], line: usize) -> Choice {
        Choice { place, action, keys: names.iter().map(|name| key(name)).collect(), line }
    }

    #[test]
    fn every_key_of_the_table_is_read_and_means_one_thing_at_each_place() {
        let mut ids: HashSet<String> = Place::ALL.iter().map(|(place, _)| place.id()).collect();
        let keymap = Keymap::default();
        for row in ACTIONS {
            assert!(ids.insert(row.id.to_owned()), "{} twice, or the name of a place", row.id);
            assert!(row.id.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'-'), "{}", row.id);
            for name in row.keys {
                let key = key(name);
                for place in row.places.iter().filter(|place| keymap.counts(**place, key)) {
                    assert_eq!(keymap.find(key, *place), Some(row.action), "{name} at {place:?}");
                }
            }
        }
        assert_eq!(Keymap::with(&[]), Ok(keymap));
    }

    #[test]
    fn own_keys_take_the_place_of_the_usual_ones() {
        let keymap = Keymap::with(&[
            choice(None, Action::Pause, &["F9"], 1),
            choice(Some(Place::Request), Action::Pause, &["x", "Space"], 2),
            choice(None, Action::Follow, &[], 3),
        ])
        .unwrap();
        assert_eq!(keymap.find(key("F9"), Place::Live), Some(Action::Pause));
        assert_eq!(keymap.find(key("F9"), Place::Request), None);
        assert_eq!(keymap.find(key("x"), Place::Request), Some(Action::Pause));
        assert_eq!((keymap.find(key("p"), Place::Live), keymap.find(key("f"), Place::Live)), (None, None));
        assert_eq!(keymap.shown(Place::Request, Action::Pause).as_deref(), Some("x"));
        assert_eq!(keymap.shown(Place::Live, Action::Follow), None);
    }

    #[test]
    fn mistakes_are_told_with_their_lines() {
        let wrong = |choices: &[Choice]| Keymap::with(choices).unwrap_err();
        let twice = wrong(&[choice(None, Action::Pause, &["s"], 7)]);
        assert_eq!(twice.len(), 1, "{twice:?}");
        assert!(twice[0].0 == 7 && twice[0].1.contains("s does both pause and sort at first-screen"), "{twice:?}");
        let nowhere = wrong(&[choice(Some(Place::Menu), Action::Zoom, &["x"], 3)]);
        assert!(nowhere[0].1.contains("zoom does nothing at menus; it works at first-screen, panes"), "{nowhere:?}");
        let typed = wrong(&[choice(Some(Place::FilterLine), Action::Accept, &["x"], 4)]);
        assert!(typed[0].1.contains("x types a character at filter-line"), "{typed:?}");
        let locked = wrong(&[choice(None, Action::Quit, &[], 5)]);
        assert!(locked[0].1.contains("no key would lead away from first-screen"), "{locked:?}");
        // Another letter to quit with is fine: the filter line is left with Esc.
        assert!(Keymap::with(&[choice(None, Action::Quit, &["x"], 5)]).is_ok());
    }

    #[test]
    fn the_markdown_has_a_row_for_every_action() {
        let table = markdown();
        assert_eq!(table.lines().count(), ACTIONS.len() + 2);
        assert!(table.contains("| `:` `C-p` | find an action by a word and do it |"), "{table}");
    }
}
