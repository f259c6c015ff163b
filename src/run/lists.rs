//! Commands that print what the program knows of itself.

use std::fmt::Write;

use super::Ended;
use crate::cli;
use crate::lifecycle::text::one_line;
use crate::settings;
use crate::tui::action::ACTIONS;
use crate::tui::keymap;
use crate::tui::theme::{Depth, Signs, Themes};

/// The themes: name, source, what each says of itself, and what is odd about it.
pub(super) fn themes() -> Ended {
    let folder = settings::themes_folder();
    let list = Themes::new(folder.clone(), Depth::Full, Signs::Unicode).list();
    let wide = list.iter().map(|entry| entry.name.chars().count()).max().unwrap_or(0);
    // Names and texts of files: none begins a line of its own.
    let mut output = String::new();
    for entry in &list {
        let line = format!("{:wide$}  {}  ({})", entry.name, entry.about, entry.source);
        let _ = writeln!(output, "{}", one_line(&line));
        for warning in &entry.warnings {
            let _ = writeln!(output, "{:wide$}  ! {}", "", one_line(warning));
        }
    }
    if let Some(folder) = folder {
        let _ = writeln!(output, "\nown themes: *.toml in {}", one_line(&folder.display().to_string()));
    }
    Ended::well(output)
}

/// The settings as they hold, or the default file.
pub(super) fn config(config: cli::Config) -> Ended {
    let output = if config.default { settings::default_file() } else { config.shown };
    Ended::well(output)
}

/// Every action with its usual keys.
pub(super) fn keys(keys: &cli::Keys) -> Ended {
    let mut output = String::new();
    match keys.format {
        cli::KeysFormat::Markdown => output = keymap::markdown(),
        cli::KeysFormat::Text => {
            for row in ACTIONS {
                let places: Vec<String> = row.places.iter().map(|place| place.id()).collect();
                let _ = writeln!(output, "{:18} {:18} {}", row.id, row.keys.join(" "), row.doc);
                let _ = writeln!(output, "{:37} at {}", "", places.join(", "));
            }
        }
    }
    Ended::well(output)
}

/// What a shell needs to complete words, made from the flags.
pub(super) fn completions(completions: &cli::Completions) -> Ended {
    let mut output = Vec::new();
    clap_complete::generate(completions.shell, &mut cli::command(), "reqtop", &mut output);
    Ended::well(String::from_utf8_lossy(&output).into_owned())
}

/// The manual, made from the flags: the first page, or all of them into a folder.
pub(super) fn man(man: &cli::Man) -> Result<Ended, String> {
    let command = cli::command().disable_help_subcommand(true);
    let Some(folder) = &man.dir else {
        let mut output = Vec::new();
        clap_mangen::Man::new(command).render(&mut output).map_err(|error| error.to_string())?;
        let output = String::from_utf8_lossy(&output).into_owned();
        return Ok(Ended::well(output));
    };
    let named = |error: std::io::Error| format!("{}: {error}", folder.display());
    std::fs::create_dir_all(folder).map_err(named)?;
    // What is there is replaced, but nothing is written through a link.
    for entry in std::fs::read_dir(folder).map_err(named)?.filter_map(Result::ok) {
        let is_page = entry.file_name().to_str().is_some_and(|name| name.starts_with("reqtop") && name.ends_with(".1"));
        if is_page && entry.file_type().is_ok_and(|kind| kind.is_symlink()) {
            let page = entry.path();
            return Err(format!("{}: is a symbolic link, which is not followed; remove it", page.display()));
        }
    }
    clap_mangen::generate_to(command, folder).map_err(named)?;
    Ok(Ended::well(String::new()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::ValueEnum;

    fn text(ended: Ended) -> String {
        let mut text = Vec::new();
        ended.output.write(&mut text).unwrap();
        String::from_utf8(text).unwrap()
    }

    #[test]
    fn no_page_is_written_through_a_link() {
        let folder = tempfile::tempdir().unwrap();
        let (own, link) = (folder.path().join("own"), folder.path().join("reqtop-check.1"));
        std::fs::write(&own, "mine").unwrap();
        std::os::unix::fs::symlink(&own, &link).unwrap();
        let why = man(&cli::Man { dir: Some(folder.path().to_owned()) }).err().unwrap();
        assert!(why.ends_with("reqtop-check.1: is a symbolic link, which is not followed; remove it"), "{why}");
        assert_eq!(std::fs::read_to_string(&own).unwrap(), "mine");
        assert!(!folder.path().join("reqtop.1").exists());
    }

    #[test]
    fn completions_and_manual_know_every_command_and_option() {
        let command = cli::command();
        let commands: Vec<&str> = command.get_subcommands().map(clap::Command::get_name).collect();
        let options: Vec<&str> = command.get_arguments().filter_map(clap::Arg::get_long).collect();
        assert!(commands.len() >= 10 && options.len() > 10);
        for shell in clap_complete::Shell::value_variants() {
            let text = text(completions(&cli::Completions { shell: *shell }));
            for word in commands.iter().chain(&options) {
                assert!(text.contains(word), "{shell} does not complete {word}");
            }
        }
        let folder = tempfile::tempdir().unwrap();
        man(&cli::Man { dir: Some(folder.path().join("man")) }).unwrap();
        let page = |name: &str| {
            std::fs::read_to_string(folder.path().join("man").join(name)).unwrap_or_else(|_| panic!("{name}"))
        };
        let first = text(man(&cli::Man { dir: None }).unwrap());
        // Dashes are escaped in pages.
        let plain = |page: &str| page.replace('\\', "");
        assert!(page("reqtop.1").contains(".SH OPTIONS"));
        for option in options {
            assert!(plain(&first).contains(&format!("--{option}")), "no --{option} in\n{first}");
        }
        for command in command.get_subcommands().filter(|command| !command.is_hide_set()) {
            let page = plain(&page(&format!("reqtop-{}.1", command.get_name())));
            for option in command.get_arguments().filter_map(clap::Arg::get_long) {
                assert!(page.contains(&format!("--{option}")), "{}: {option}", command.get_name());
            }
        }
    }
}
