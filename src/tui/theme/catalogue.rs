//! The themes there are: those in the program, those of the user's folder, and any other file by its path.

use std::collections::BTreeMap;
use std::fmt;
use std::fs;
use std::io::Read as _;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use ratatui::style::{Color, Style};
use rustix::fs::OFlags;

use super::file::File;
use super::{Depth, Signs, Theme};
use crate::lifecycle::text::scrub;
use crate::query::meant;

/// The themes in the program: name and text.
const BUILT_IN: [(&str, &str); 9] = [
    ("terminal", include_str!("../../../themes/terminal.toml")),
    ("light", include_str!("../../../themes/light.toml")),
    ("high-contrast", include_str!("../../../themes/high-contrast.toml")),
    ("colour-blind", include_str!("../../../themes/colour-blind.toml")),
    ("monochrome", include_str!("../../../themes/monochrome.toml")),
    ("catppuccin-mocha", include_str!("../../../themes/catppuccin-mocha.toml")),
    ("dracula", include_str!("../../../themes/dracula.toml")),
    ("gruvbox-dark", include_str!("../../../themes/gruvbox-dark.toml")),
    ("nord", include_str!("../../../themes/nord.toml")),
];

/// The theme that everything builds on in the end.
const BASE: &str = "terminal";
/// How many themes may build on each other.
const MAX_DEPTH: usize = 8;
/// The largest theme file, bytes.
const MAX_BYTES: u64 = 64 << 10;
/// The most files of a folder.
const MAX_FILES: usize = 200;

/// Where a theme comes from.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Source {
    /// It is in the program.
    BuiltIn,
    /// A file.
    File(PathBuf),
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::BuiltIn => f.write_str("built in"),
            Self::File(path) => path.display().fmt(f),
        }
    }
}

/// A theme that was found.
#[derive(Clone, PartialEq, Debug)]
pub struct Entry {
    /// Its name: that of its file.
    pub name: String,
    /// Where it comes from.
    pub source: Source,
    /// What it says of itself.
    pub about: String,
    /// What is wrong with it and was left out.
    pub warnings: Vec<String>,
    /// How everything looks, as far as the terminal can show it.
    pub theme: Theme,
}

/// The themes there are, and what the terminal can show of them. Files are read when they are asked for, so that a theme
/// being written is seen as it is.
#[derive(Clone, Debug, Default)]
pub struct Themes {
    folder: Option<PathBuf>,
    depth: Depth,
    signs: Signs,
}

impl Themes {
    /// Themes of a folder, where there is one, and those in the program; for a terminal.
    pub fn new(folder: Option<PathBuf>, depth: Depth, signs: Signs) -> Self {
        Self { folder, depth, signs }
    }

    /// All themes, those in the program first. One of the folder hides one in the program of the same name.
    pub fn list(&self) -> Vec<Entry> {
        let own = self.own();
        let built_in = BUILT_IN.iter().map(|(name, _)| (*name, Source::BuiltIn));
        let kept = built_in.filter(|(name, _)| !own.iter().any(|(other, _)| other == name));
        let own = own.iter().map(|(name, path)| (name.as_str(), Source::File(path.clone())));
        kept.chain(own).map(|(name, source)| self.entry(name, source)).collect()
    }

    /// A theme by its name, or by the path of its file.
    ///
    /// # Errors
    /// There is none; says which there are.
    pub fn find(&self, wanted: &str) -> Result<Entry, String> {
        if wanted.contains(['/', '\\']) || wanted.ends_with(".toml") {
            let path = Path::new(wanted);
            let name = stem(path).unwrap_or_else(|| wanted.to_owned());
            return match read(path) {
                Ok(_) => Ok(self.entry(&name, Source::File(path.to_owned()))),
                Err(error) => Err(format!("theme {wanted}: {error}")),
            };
        }
        if let Some(source) = self.source(wanted, None) {
            return Ok(self.entry(wanted, source));
        }
        let own = self.own();
        let names = || BUILT_IN.iter().map(|(name, _)| *name).chain(own.iter().map(|(name, _)| name.as_str()));
        let hint = match meant(wanted, names()) {
            Some(near) => format!("did you mean {near}?"),
            None => format!("expected {} or the path of a file", names().collect::<Vec<_>>().join(", ")),
        };
        Err(format!("no theme is called {wanted}: {hint}"))
    }

    /// The files of the folder by name, in order.
    fn own(&self) -> Vec<(String, PathBuf)> {
        let Some(Ok(entries)) = self.folder.as_ref().map(fs::read_dir) else { return Vec::new() };
        let paths = entries.filter_map(|entry| Some(entry.ok()?.path()));
        let themes = paths.filter(|path| path.extension().is_some_and(|ending| ending == "toml"));
        let mut own: Vec<_> = themes.filter_map(|path| Some((stem(&path)?, path))).take(MAX_FILES).collect();
        own.sort();
        own
    }

    /// Where the theme of this name comes from. A theme that builds on its own name means the one it hides.
    fn source(&self, name: &str, of: Option<&Source>) -> Option<Source> {
        let own = self.own().into_iter().find(|(other, _)| other == name).map(|(_, path)| Source::File(path));
        let built_in = BUILT_IN.iter().any(|(other, _)| *other == name).then_some(Source::BuiltIn);
        own.filter(|own| Some(own) != of).or(built_in)
    }

    fn entry(&self, name: &str, source: Source) -> Entry {
        let mut entry = Entry {
            name: name.to_owned(),
            source: source.clone(),
            about: String::new(),
            warnings: Vec::new(),
            theme: Theme::of(|_| Style::default()),
        };
        let files = self.files(name, source, &mut entry.warnings);
        let mut palette = BTreeMap::new();
        for file in files.iter().rev() {
            palette.extend(file.palette.iter().map(|(name, colour)| (name.clone(), *colour)));
        }
        let mut odd: Vec<(usize, String)> = Vec::new();
        let mut look = |role: &str| {
            for (place, file) in files.iter().enumerate() {
                let Some(look) = file.roles.get(role) else { continue };
                match look.style(&palette) {
                    Ok(style) => return style,
                    // What the themes below say wrong is told where they are listed; the role then looks as below.
                    Err(what) if place == 0 => odd.push((look.line, format!("{role}: {what}"))),
                    Err(_) => {}
                }
            }
            Style::default()
        };
        entry.theme = Theme::of(&mut look);
        if let Some(first) = files.first() {
            entry.about.clone_from(&first.about);
            odd.extend_from_slice(&first.warnings);
        }
        odd.sort();
        entry.warnings.extend(odd.into_iter().map(|(line, what)| format!("line {line}: {what}")));
        // They quote the file.
        for warning in &mut entry.warnings {
            *warning = scrub(warning.as_bytes()).into_owned();
        }
        entry.theme = self.dressed(entry.theme);
        entry
    }

    /// As the terminal can show it.
    fn dressed(&self, theme: Theme) -> Theme {
        let theme = match self.depth {
            // Weight alone has to do what colours did: the one theme that was made for it does it best.
            Depth::None => Self::default().entry("monochrome", Source::BuiltIn).theme,
            // Text is the terminal's own where its exact colour is not to be had.
            Depth::Sixteen => {
                let own = Self::default().entry(BASE, Source::BuiltIn).theme;
                theme
                    .or(&own, |style| !matches!(style.fg, Some(Color::Rgb(..))))
                    .with_each(|style| self.depth.style(style))
            }
            depth => theme.with_each(|style| depth.style(style)),
        };
        theme.with_signs(self.signs)
    }

    /// The file and those it builds on, nearest first; always ends with the base.
    fn files(&self, name: &str, source: Source, warnings: &mut Vec<String>) -> Vec<File> {
        let mut files: Vec<File> = Vec::new();
        let mut seen: Vec<(String, Source)> = Vec::new();
        let mut next = Some((name.to_owned(), source));
        while let Some((name, source)) = next.take() {
            let text = match &source {
                Source::BuiltIn => {
                    Ok(BUILT_IN.iter().find(|(other, _)| *other == name).map_or("", |of| of.1).to_owned())
                }
                Source::File(path) => read(path),
            };
            let file = text.map(|text| File::read(&text)).unwrap_or_else(|error| {
                warnings.push(error);
                File::default()
            });
            let is_base = source == Source::BuiltIn && name == BASE;
            let parent = file.inherits.clone();
            files.push(file);
            if is_base {
                break;
            }
            seen.push((name.clone(), source.clone()));
            let base = (BASE.to_owned(), Source::BuiltIn);
            let Some(parent) = parent else {
                next = Some(base);
                continue;
            };
            next = match self.source(&parent, Some(&source)) {
                None => {
                    warnings.push(format!("inherits {parent:?}, which is no theme; {BASE} stands in for it"));
                    Some(base)
                }
                Some(found) if seen.contains(&(parent.clone(), found.clone())) => {
                    let way: Vec<&str> = seen.iter().map(|(name, _)| name.as_str()).collect();
                    warnings.push(format!("inherits itself: {} → {parent}; {BASE} stands in for it", way.join(" → ")));
                    Some(base)
                }
                Some(_) if seen.len() >= MAX_DEPTH => {
                    warnings.push(format!("builds on more than {MAX_DEPTH} themes; {BASE} stands in for the rest"));
                    Some(base)
                }
                Some(found) => Some((parent, found)),
            };
        }
        files
    }
}

fn stem(path: &Path) -> Option<String> {
    path.file_stem().map(|stem| stem.to_string_lossy().into_owned())
}

/// The text of a file, when it can be one of a theme.
fn read(path: &Path) -> Result<String, String> {
    let mut bytes = Vec::new();
    // A pipe of that name would otherwise be waited for.
    let flags = (OFlags::NONBLOCK | OFlags::NOCTTY).bits() as i32;
    let file = fs::OpenOptions::new().read(true).custom_flags(flags).open(path).map_err(|error| error.to_string())?;
    if !file.metadata().map_err(|error| error.to_string())?.is_file() {
        return Err("a pipe, a device or a folder, so no theme".to_owned());
    }
    file.take(MAX_BYTES + 1).read_to_end(&mut bytes).map_err(|error| error.to_string())?;
    if bytes.len() as u64 > MAX_BYTES {
        return Err(format!("larger than {} KiB, so no theme", MAX_BYTES >> 10));
    }
    String::from_utf8(bytes).map_err(|_| "not UTF-8, so no theme".to_owned())
}
