//! The settings file: which options stand in it, in which line, and the keys. Mistakes are told all at once, each with its
//! line and what was probably meant. Keeps out: what the values come to (the command line reads them like its own).

use std::fs;
use std::io::Read;
use std::path::Path;

use clap::builder::ValueParser;
use clap::error::{ContextKind, ErrorKind};
use clap::{Arg, Command};
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use crate::lifecycle::text;
use crate::query::meant;
use crate::tui::action::{ACTIONS, Action, Place};
use crate::tui::keymap::{Choice, Keymap};
use crate::tui::keys::Key;

/// The largest settings file, bytes.
const MAX_BYTES: usize = 1 << 20;
/// The most settings and keys: each action at each place is far less.
const MAX_ENTRIES: usize = 2000;
/// The most mistakes that are told in words.
const TOLD: usize = 100;

/// An option as the file has it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Value {
    /// The option's id on the command line.
    pub id: String,
    /// Its values, as the command line would have them.
    pub texts: Vec<String>,
    /// The line it stands in.
    pub line: usize,
}

/// What a settings file holds.
#[derive(Clone, Debug, Default)]
pub struct File {
    /// Options, in the order of the file.
    pub values: Vec<Value>,
    /// Keys, as they were chosen.
    pub choices: Vec<Choice>,
    /// All keys.
    pub keys: Keymap,
}

/// The name of an option in the file: that of its flag.
pub fn name(option: &Arg) -> &str {
    option.get_long().unwrap_or_default()
}

/// Whether an option is true or false. TOML has words for that, and takes no others.
pub fn is_truth(option: &Arg) -> bool {
    option.get_value_parser().type_id() == ValueParser::bool().type_id()
}

struct Reader<'a> {
    /// Where each line but the first begins.
    lines: Vec<usize>,
    options: &'a [&'a Arg],
    command: &'a Command,
    file: File,
    wrong: Vec<(usize, String)>,
}

/// Reads a settings file. `options` are those of `command` that may stand in it.
///
/// # Errors
/// Every mistake, `FILE:LINE: what`.
pub fn read(path: &Path, command: &Command, options: &[&Arg]) -> Result<File, Vec<String>> {
    let shown = path.display();
    let mut bytes = Vec::new();
    fs::File::open(path)
        .and_then(|file| file.take(MAX_BYTES as u64 + 1).read_to_end(&mut bytes))
        .map_err(|error| vec![format!("{shown}: {error}")])?;
    if bytes.len() > MAX_BYTES {
        return Err(vec![format!("{shown}: larger than {} KiB, so no settings", MAX_BYTES >> 10)]);
    }
    let text = String::from_utf8(bytes).map_err(|_| vec![format!("{shown}: not UTF-8, so no settings")])?;
    parse(&text, command, options).map_err(|wrong| {
        let further = wrong.len().saturating_sub(TOLD);
        let told = wrong.into_iter().take(TOLD).map(|(line, what)| format!("{shown}:{line}: {what}"));
        told.chain((further > 0).then(|| format!("{shown}: and {further} further mistakes"))).collect()
    })
}

/// Reads settings.
///
/// # Errors
/// Every mistake with its line.
pub fn parse(text: &str, command: &Command, options: &[&Arg]) -> Result<File, Vec<(usize, String)>> {
    let lines = memchr::memchr_iter(b'\n', text.as_bytes()).map(|at| at + 1).collect();
    let mut reader = Reader { lines, options, command, file: File::default(), wrong: Vec::new() };
    let (table, errors) = DeTable::parse_recoverable(text);
    for error in errors {
        reader.tell(error.span().map_or(0, |span| span.start), format!("no TOML: {}", error.message()));
    }
    let entries = entries(table.get_ref());
    if entries > MAX_ENTRIES {
        return Err(vec![(1, format!("{entries} settings and keys, more than {MAX_ENTRIES}, so no settings"))]);
    }
    for (key, value) in table.get_ref() {
        match (key.get_ref().as_ref(), value.get_ref()) {
            ("keys", DeValue::Table(keys)) => reader.keys(keys),
            ("keys", _) => reader.tell(key.span().start, "keys is a section: [keys]"),
            (name, _) => reader.option(name, key.span().start, value),
        }
    }
    match Keymap::with(&reader.file.choices) {
        Ok(keys) => reader.file.keys = keys,
        Err(wrong) => reader.wrong.extend(wrong),
    }
    // They repeat words of the file, which may come from anywhere.
    reader.wrong.iter_mut().for_each(|(_, what)| *what = text::scrub(what.as_bytes()).into_owned());
    reader.wrong.sort();
    reader.wrong.dedup();
    reader.file.values.sort_by_key(|value| value.line);
    if reader.wrong.is_empty() { Ok(reader.file) } else { Err(reader.wrong) }
}

/// How much stands in a table and in those within it.
fn entries(table: &DeTable<'_>) -> usize {
    let within = table.values().map(|value| value.get_ref().as_table().map_or(0, entries));
    table.len() + within.sum::<usize>()
}

impl Reader<'_> {
    fn line(&self, at: usize) -> usize {
        self.lines.partition_point(|start| *start <= at) + 1
    }

    fn tell(&mut self, at: usize, what: impl Into<String>) {
        self.wrong.push((self.line(at), what.into()));
    }

    fn option(&mut self, name: &str, at: usize, value: &Spanned<DeValue<'_>>) {
        let Some(option) = self.options.iter().find(|option| self::name(option) == name) else {
            let names = || self.options.iter().map(|option| self::name(option)).chain(["keys"]);
            let hint = match meant(name, names()) {
                Some(near) => format!("did you mean {near}?"),
                None => format!("expected one of {}", names().collect::<Vec<_>>().join(", ")),
            };
            return self.tell(at, format!("no setting is called {name}: {hint}"));
        };
        let texts = match value.get_ref() {
            DeValue::Array(items) if option.get_action().takes_values() => {
                items.iter().map(|item| plain(item.get_ref())).collect::<Option<Vec<_>>>()
            }
            other => plain(other).map(|text| vec![text]),
        };
        let Some(texts) = texts else {
            let found = value.get_ref().type_str();
            return self
                .tell(value.span().start, format!("{name}: expected a text, a number, true or false, found {found}"));
        };
        let several = matches!(option.get_action(), clap::ArgAction::Append);
        if texts.len() > 1 && !several {
            return self.tell(value.span().start, format!("{name}: expected one value, found {}", texts.len()));
        }
        for text in &texts {
            let is_odd = is_truth(option) && !matches!(text.as_str(), "true" | "false");
            let taken = match is_odd {
                true => Err(format!("expected true or false, found {text:?}")),
                false => self.accepts(name, text),
            };
            if let Err(why) = taken {
                return self.tell(value.span().start, format!("{name}: {why}"));
            }
        }
        let line = self.line(at);
        self.file.values.push(Value { id: option.get_id().to_string(), texts, line });
    }

    /// Whether the command line would take this value, and its words when not.
    fn accepts(&self, name: &str, text: &str) -> Result<(), String> {
        let words = ["reqtop".to_owned(), format!("--{name}={text}")];
        let Err(error) = self.command.clone().try_get_matches_from(words) else { return Ok(()) };
        match error.kind() {
            ErrorKind::InvalidValue | ErrorKind::ValueValidation => {}
            // What else an option asks for is asked of the whole command line.
            _ => return Ok(()),
        }
        let said = std::error::Error::source(&error).map(ToString::to_string);
        let valid =
            error.get(ContextKind::ValidValue).map(|values| format!("expected one of {values}, found {text:?}"));
        Err(said.or(valid).unwrap_or_else(|| format!("{text:?} is no value for it")))
    }

    fn keys(&mut self, table: &DeTable<'_>) {
        for (key, value) in table {
            match value.get_ref() {
                DeValue::Table(keys) => {
                    let place = Place::ALL.iter().map(|(place, _)| *place).find(|place| place.id() == *key.get_ref());
                    match place {
                        Some(place) => keys.iter().for_each(|(key, value)| self.choice(Some(place), key, value)),
                        None => {
                            let ids: Vec<String> = Place::ALL.iter().map(|(place, _)| place.id()).collect();
                            let hint = match meant(key.get_ref(), ids.iter().map(String::as_str)) {
                                Some(near) => format!("did you mean {near}?"),
                                None => format!("expected one of {}", ids.join(", ")),
                            };
                            self.tell(key.span().start, format!("no place is called {}: {hint}", key.get_ref()));
                        }
                    }
                }
                _ => self.choice(None, key, value),
            }
        }
    }

    fn choice(&mut self, place: Option<Place>, id: &Spanned<toml::de::DeString<'_>>, value: &Spanned<DeValue<'_>>) {
        let name = id.get_ref().as_ref();
        let action: Option<Action> = ACTIONS.iter().find(|row| row.id == name).map(|row| row.action);
        let Some(action) = action else {
            let hint = match meant(name, ACTIONS.iter().map(|row| row.id)) {
                Some(near) => format!("did you mean {near}?"),
                None => "`reqtop keys` lists them".to_owned(),
            };
            return self.tell(id.span().start, format!("no action is called {name}: {hint}"));
        };
        let names: Option<Vec<String>> = match value.get_ref() {
            DeValue::String(name) => Some(vec![name.to_string()]),
            DeValue::Array(names) => names.iter().map(|name| name.get_ref().as_str().map(ToOwned::to_owned)).collect(),
            _ => None,
        };
        let Some(names) = names else {
            return self
                .tell(value.span().start, format!("{name}: expected a key or keys, as in [\"x\", \"C-x\", \"F5\"]"));
        };
        let mut keys = Vec::new();
        for name in names {
            match Key::parse(&name) {
                Some(key) => keys.push(key),
                None => self.tell(value.span().start, format!("no key is called {name:?}: expected {KEYS}")),
            }
        }
        let line = self.line(id.span().start);
        self.file.choices.push(Choice { place, action, keys, line });
    }
}

/// What keys are called.
const KEYS: &str = "a character, Enter, Esc, Tab, S-Tab, Backspace, Del, Ins, Space, Up, Down, Left, Right, PgUp, PgDn, \
                    Home, End or F1 to F24, with C- or M- before it for Control or Alt";

/// A value as the command line would have it.
fn plain(value: &DeValue<'_>) -> Option<String> {
    match value {
        DeValue::String(text) => Some(text.to_string()),
        DeValue::Integer(number) => Some(number.to_string()),
        DeValue::Float(number) => Some(number.to_string()),
        DeValue::Boolean(yes) => Some(yes.to_string()),
        DeValue::Datetime(_) | DeValue::Array(_) | DeValue::Table(_) => None,
    }
}
