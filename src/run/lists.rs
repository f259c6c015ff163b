//! Commands that print what the program knows of itself.

use std::fmt::Write;

use super::Ended;
use crate::cli;
use crate::settings;
use crate::tui::action::ACTIONS;
use crate::tui::keymap;
use crate::tui::theme::{Depth, Signs, Themes};

/// The themes: name, source, what each says of itself, and what is odd about it.
pub(super) fn themes() -> Ended {
    let folder = settings::themes_folder();
    let list = Themes::new(folder.clone(), Depth::Full, Signs::Unicode).list();
    let wide = list.iter().map(|entry| entry.name.chars().count()).max().unwrap_or(0);
    let mut output = String::new();
    for entry in &list {
        let _ = writeln!(output, "{:wide$}  {}  ({})", entry.name, entry.about, entry.source);
        for warning in &entry.warnings {
            let _ = writeln!(output, "{:wide$}  ! {warning}", "");
        }
    }
    if let Some(folder) = folder {
        let _ = writeln!(output, "\nown themes: *.toml in {}", folder.display());
    }
    Ended { output, notes: Vec::new(), status: 0 }
}

/// The settings as they hold, or the default file.
pub(super) fn config(config: cli::Config) -> Ended {
    let output = if config.default { settings::default_file() } else { config.shown };
    Ended { output, notes: Vec::new(), status: 0 }
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
    Ended { output, notes: Vec::new(), status: 0 }
}
