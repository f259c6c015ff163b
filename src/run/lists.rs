//! Commands that print what the program knows of itself.

use std::fmt::Write;

use super::Ended;
use crate::settings;
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
