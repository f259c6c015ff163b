//! Where each option comes from: the command line, else the environment, else the settings file, else the default.
//!
//! The file's values become the defaults of the command line, so that both are read and checked by the same rules.

use std::ffi::OsString;
use std::fmt::Write;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use clap::error::{ContextValue, ErrorKind};
use clap::parser::ValueSource;
use clap::{Arg, ArgMatches, Args, Command, FromArgMatches};

use super::file::{self, File, Value, is_truth, name};
use super::order::command_first;
use crate::cli::{self, Cli};
use crate::lifecycle::text;
use crate::tui::action::{ACTIONS, Row};
use crate::tui::keymap::{Choice, Keymap};
use crate::tui::keys::Key;

/// Why there is nothing to do.
#[derive(Debug)]
pub enum Refusal {
    /// The command line asks for help, or cannot be read.
    Usage(clap::Error),
    /// The settings file cannot be read: what is wrong, line by line.
    File(Vec<String>),
}

impl From<clap::Error> for Refusal {
    fn from(error: clap::Error) -> Self {
        Self::Usage(error)
    }
}

/// Options that belong together.
type Part = fn(Command) -> Command;
const LISTEN: Part = cli::Listen::augment_args;
const KEEP: Part = cli::Keep::augment_args;
const LOOK: Part = cli::Look::augment_args;
const ONWARD: Part = cli::Onward::augment_args;

/// What may stand in the file, by command; the first is the dashboard. Elsewhere a filter, a port or an endpoint to forward
/// to that was set for the dashboard would be a trap.
const PARTS: [(&str, &[Part]); 6] = [
    ("", &[LISTEN, ONWARD, KEEP, LOOK]),
    ("config", &[LISTEN, ONWARD, KEEP, LOOK]),
    ("demo", &[KEEP, LOOK]),
    ("report", &[LISTEN, KEEP]),
    ("export", &[LISTEN, KEEP]),
    ("check", &[LISTEN, KEEP]),
];

/// Commands that do their work whatever the file says.
const WITHOUT_FILE: [&str; 4] = ["checks", "completions", "keys", "man"];

/// The options of a command that are in one of these parts.
fn options<'a>(command: &'a Command, parts: &[Part]) -> Vec<&'a Arg> {
    let all = parts.iter().fold(Command::new(""), |command, part| part(command));
    let is_in = |arg: &Arg| all.get_arguments().any(|other| other.get_id() == arg.get_id());
    command.get_arguments().filter(|arg| arg.get_long().is_some() && is_in(arg)).collect()
}

/// The options that may stand in the file, in the order of the help.
pub fn file_options(command: &Command) -> Vec<&Arg> {
    options(command, PARTS[0].1)
}

/// The settings file as a rule.
pub fn usual_file() -> Option<PathBuf> {
    super::folder().map(|folder| folder.join("config.toml"))
}

/// Whether there is a settings file at the usual place. One that cannot be reached is not taken for none: what it sets, such
/// as a token to be asked for, would not hold.
pub(super) fn is_there(path: &Path) -> Result<bool, Refusal> {
    let unreached = |why: &dyn std::fmt::Display| {
        let words = format!("{}: these settings cannot be reached: {why}", path.display());
        Refusal::File(vec![format!("{words}; mend that, or name others with --config FILE (/dev/null for none)")])
    };
    match fs::metadata(path) {
        Ok(_) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::NotFound => match fs::symlink_metadata(path) {
            Ok(_) => Err(unreached(&"a symbolic link to a file that is not there")),
            Err(_) => Ok(false),
        },
        // A home such as /dev/null has nothing in it.
        Err(error) if error.kind() == io::ErrorKind::NotADirectory => Ok(false),
        Err(error) => Err(unreached(&error)),
    }
}

/// What is said of a command line that asks for help or cannot be read. It repeats words that may come from anywhere:
/// none of them acts on a terminal or begins a line.
pub fn said(mut error: clap::Error) -> String {
    let one_line = |text: &str| text::one_line(text).into_owned();
    let cleaned: Vec<_> = error
        .context()
        .filter_map(|(kind, value)| {
            let value = match value {
                ContextValue::String(text) => ContextValue::String(one_line(text)),
                ContextValue::Strings(texts) => {
                    ContextValue::Strings(texts.iter().map(|text| one_line(text)).collect())
                }
                ContextValue::StyledStrs(texts) => {
                    ContextValue::StyledStrs(texts.iter().map(|text| one_line(&text.to_string()).into()).collect())
                }
                _ => return None,
            };
            Some((kind, value))
        })
        .collect();
    for (kind, value) in cleaned {
        error.insert(kind, value);
    }
    text::scrub(error.render().to_string().as_bytes()).into_owned()
}

/// Reads the command line over the environment over the settings file.
///
/// # Errors
/// See [`Refusal`].
pub fn resolve(words: impl IntoIterator<Item = OsString>) -> Result<Cli, Refusal> {
    let command = cli::command();
    let words = command_first(&command, words.into_iter().collect());
    let matches = command.clone().try_get_matches_from(&words)?;
    if matches.subcommand_name().is_some_and(|name| WITHOUT_FILE.contains(&name)) || wants_defaults(&matches) {
        return Ok(Cli::from_arg_matches(&matches)?);
    }
    let (path, is_there) = match (config_path(&matches), usual_file()) {
        (Some(path), _) => (Some(path), true),
        (None, Some(path)) => {
            let is_there = is_there(&path)?;
            (Some(path), is_there)
        }
        (None, None) => (None, false),
    };
    let file = match &path {
        Some(path) if is_there => file::read(path, &command, &file_options(&command)).map_err(Refusal::File)?,
        _ => File::default(),
    };
    let command = with_defaults(command, &file.values);
    let matches = command.clone().try_get_matches_from(&words)?;
    let mut cli = Cli::from_arg_matches(&matches)?;
    if let Some(words) = without_its_own(&matches) {
        return Err(command.clone().error(ErrorKind::MissingRequiredArgument, words).into());
    }
    match &mut cli.command {
        None => {
            cli.dashboard.look.keys = file.keys;
            leave_out_onward(&mut cli.dashboard, &matches);
        }
        Some(cli::Command::Demo(demo)) => demo.look.keys = file.keys,
        Some(cli::Command::Config(config)) => {
            if let Some((_, matches)) = matches.subcommand() {
                config.shown = shown(&cli::command(), matches, path.as_deref(), &file);
            }
        }
        Some(_) => {}
    }
    Ok(cli)
}

/// Options of the command line that say how to do what was not asked for: `--record-max` without `--record`. That the file
/// says it is no mistake.
fn without_its_own(matches: &ArgMatches) -> Option<String> {
    let matches = matches.subcommand().map_or(matches, |(_, matches)| matches);
    let said = |id: &str| matches.value_source(id) == Some(ValueSource::CommandLine);
    let with_value = |id: &str| matches.try_contains_id(id).is_ok_and(|is| is) && matches.get_raw(id).is_some();
    matches.ids().map(|id| id.as_str()).filter(|id| said(id)).find_map(|id| {
        let base = ["record", "forward"]
            .into_iter()
            .find(|base| id.strip_prefix(base).is_some_and(|rest| rest.starts_with('_')))?;
        (!with_value(base)).then(|| format!("--{} says how, and --{base} is not there", id.replace('_', "-")))
    })
}

/// What the file says of going on is about what is received, and a dashboard of files or a trace store receives nothing.
fn leave_out_onward(dashboard: &mut cli::Dashboard, matches: &ArgMatches) {
    if dashboard.files.is_empty() && dashboard.from.from.is_empty() {
        return;
    }
    let said = |id: &str| matches.value_source(id) == Some(ValueSource::CommandLine);
    if !said("record") {
        dashboard.onward.record = None;
    }
    if !said("forward") {
        dashboard.onward.forward = None;
    }
}

fn wants_defaults(matches: &ArgMatches) -> bool {
    matches.subcommand_matches("config").is_some_and(|config| config.get_flag("default"))
}

fn config_path(matches: &ArgMatches) -> Option<PathBuf> {
    matches.get_one::<PathBuf>("config").cloned()
}

/// The command with the file's values as defaults.
fn with_defaults(mut command: Command, values: &[Value]) -> Command {
    for (name, parts) in PARTS {
        let found = if name.is_empty() { Some(&command) } else { command.find_subcommand(name) };
        let Some(found) = found else { continue };
        let ids: Vec<String> = options(found, parts).iter().map(|arg| arg.get_id().to_string()).collect();
        let change = |mut command: Command| {
            for value in values.iter().filter(|value| ids.contains(&value.id)) {
                let texts: Vec<clap::builder::OsStr> = value.texts.iter().map(|text| text.clone().into()).collect();
                command = command.mut_arg(&value.id, |arg| arg.default_values(texts));
            }
            command
        };
        command = if name.is_empty() { change(command) } else { command.mut_subcommand(name, change) };
    }
    command
}

/// The settings as they hold, with where each comes from; a settings file itself.
fn shown(command: &Command, matches: &ArgMatches, path: Option<&Path>, file: &File) -> String {
    let mut out = match path {
        Some(path) if path.exists() => format!("# {}\n", path.display()),
        Some(path) => format!("# {} (there is none)\n", path.display()),
        None => "# no settings file: there is no home\n".to_owned(),
    };
    let mut rows = Vec::new();
    for option in file_options(command) {
        let id = option.get_id().as_str();
        let value = file.values.iter().find(|value| value.id == id);
        let texts: Vec<String> = match matches.get_raw(id) {
            // The environment and the command line take further words for true and false.
            Some(_) if is_truth(option) => matches.get_one(id).map(bool::to_string).into_iter().collect(),
            Some(raw) => raw.map(|text| text.to_string_lossy().into_owned()).collect(),
            None => Vec::new(),
        };
        let source = match (matches.value_source(id), value) {
            (Some(ValueSource::CommandLine), _) => "flag".to_owned(),
            (Some(ValueSource::EnvVariable), _) => {
                let variable = option.get_env().map(|name| name.to_string_lossy().into_owned());
                format!("environment: {}", variable.unwrap_or_default())
            }
            (_, Some(value)) => format!("file, line {}", value.line),
            (Some(_), None) => "default".to_owned(),
            (None, None) => "not set".to_owned(),
        };
        let is_secret = option.is_hide_env_values_set();
        rows.push(match texts.is_empty() {
            true => (format!("# {} =", name(option)), source),
            false if is_secret || texts.iter().any(|text| names_a_user(text)) => {
                (format!("# {} = …    not shown", name(option)), source)
            }
            false => (format!("{} = {}", name(option), toml_value(option, &texts)), source),
        });
    }
    let wide = rows.iter().map(|(text, _)| text.chars().count()).max().unwrap_or(0).min(40);
    for (text, source) in rows {
        let _ = writeln!(out, "{text:wide$}  # {source}");
    }
    let mut section = None;
    let mut choices: Vec<&Choice> = file.choices.iter().collect();
    choices.sort_by_key(|choice| (choice.place.map(|place| place.id()), choice.line));
    for choice in choices {
        let title = choice.place.map_or("[keys]".to_owned(), |place| format!("[keys.{}]", place.id()));
        if section.as_ref() != Some(&title) {
            let _ = writeln!(out, "\n{title}");
            section = Some(title);
        }
        let id = Row::of(choice.action).map_or("", |row| row.id);
        let _ = writeln!(out, "{id} = {}  # file, line {}", key_list(&choice.keys), choice.line);
    }
    out
}

/// Whether an address has a user in it, and maybe a password. Such addresses are refused where they are used.
fn names_a_user(text: &str) -> bool {
    let authority = text.split_once("://").and_then(|(_, rest)| rest.split(['/', '?', '#']).next());
    authority.is_some_and(|authority| authority.contains('@'))
}

/// A value as TOML: as what the option is, not as a text whatever it is.
fn toml_value(option: &Arg, texts: &[String]) -> String {
    let one = |text: &str| match text {
        "true" | "false" => text.to_owned(),
        _ => toml::Value::String(text.to_owned()).to_string(),
    };
    match option.get_action() {
        clap::ArgAction::Append => format!("[{}]", texts.iter().map(|text| one(text)).collect::<Vec<_>>().join(", ")),
        _ => texts.last().map(|text| one(text)).unwrap_or_default(),
    }
}

fn key_list(keys: &[Key]) -> String {
    let quoted = keys.iter().map(|key| toml::Value::String(key.word()).to_string());
    format!("[{}]", quoted.collect::<Vec<_>>().join(", "))
}

/// A settings file that says what holds anyway: every setting with its meaning, commented out.
pub fn default_file() -> String {
    let mut out = String::from(
        "# Settings of reqtop. Every setting is shown with its default; take the # away to change it.\n\
         # What a flag or the environment says goes before what stands here; `reqtop config` shows what holds and why.\n",
    );
    let command = cli::command();
    for option in file_options(&command) {
        out.push('\n');
        let help = option.get_help().map(ToString::to_string).unwrap_or_default();
        let variable = option.get_env().map(|name| format!(" ({})", name.to_string_lossy())).unwrap_or_default();
        comment(&mut out, &format!("{help}{variable}"));
        let texts: Vec<String> =
            option.get_default_values().iter().map(|text| text.to_string_lossy().into_owned()).collect();
        if texts.is_empty() {
            let example = option.get_value_names().and_then(|names| names.first()).map_or("…", |name| name.as_str());
            let _ = writeln!(out, "# {} = {}    not set", name(option), toml_value(option, &[example.to_owned()]));
        } else {
            let _ = writeln!(out, "#{} = {}", name(option), toml_value(option, &texts));
        }
    }
    out.push('\n');
    comment(
        &mut out,
        "Keys. Each action with the keys it has wherever it works; [] takes it off the keyboard. A section [keys.PLACE] \
         after these says it of one place alone: first-screen, panes, request-screen, checks-pane, long-texts, menus, \
         key-help, filter-line, command-palette.",
    );
    out.push_str("[keys]\n");
    let keymap = Keymap::default();
    for row in ACTIONS {
        let keys = row.places.first().map_or(&[][..], |place| keymap.keys(*place, row.action));
        let _ = writeln!(out, "# {}\n#{} = {}", row.doc, row.id, key_list(keys));
    }
    out
}

/// A comment of lines that are not too long.
fn comment(out: &mut String, text: &str) {
    let mut line = String::from("#");
    for word in text.split_whitespace() {
        if line.chars().count() + 1 + word.chars().count() > 116 {
            out.push_str(&line);
            out.push('\n');
            line = String::from("#");
        }
        line.push(' ');
        line.push_str(word);
    }
    out.push_str(&line);
    out.push('\n');
}
