//! The house keeps its order: imports run downward, wire formats and the terminal stay in their rooms.

use std::fs;
use std::path::{Path, PathBuf};

/// Each room with the rooms it may import from. What stands in no list of another is above it.
const ROOMS: &[(&str, &[&str])] = &[
    ("lifecycle", &[]),
    ("source", &["lifecycle"]),
    ("query", &["lifecycle"]),
    ("checks", &["lifecycle"]),
    ("heap", &[]),
    ("store", &["heap", "lifecycle", "query", "checks"]),
    ("tap", &["lifecycle", "source"]),
    ("pipeline", &["heap", "lifecycle", "source", "store", "tap"]),
    ("view", &["lifecycle", "query", "checks", "store"]),
    ("report", &["lifecycle", "query", "checks", "store", "view"]),
    ("tui", &["lifecycle", "query", "checks", "store", "view", "writing"]),
    ("demo", &["lifecycle"]),
    ("writing", &[]),
    ("cli", &["demo", "source", "tui"]),
    ("settings", &["cli", "demo", "lifecycle", "query", "source", "store", "tap", "tui", "view"]),
    (
        "run",
        &[
            "checks",
            "cli",
            "demo",
            "lifecycle",
            "pipeline",
            "query",
            "report",
            "settings",
            "source",
            "store",
            "tap",
            "tui",
            "view",
            "writing",
        ],
    ),
];

/// Words that may stand only in these places.
const ONLY_IN: &[(&str, &[&str])] = &[
    ("opentelemetry_proto", &["source/otlp", "demo"]),
    ("tonic::", &["source/otlp", "demo", "tap/forward"]),
    ("axum", &["source/otlp"]),
    ("crossterm", &["tui"]),
    ("ratatui", &["tui"]),
    ("Color::", &["tui"]),
    ("tokio", &["source", "demo", "run", "tap"]),
    ("SystemTime::now", &["run"]),
    ("println!", &["main.rs"]),
    ("unsafe {", &[]),
    ("unsafe fn", &[]),
    ("unsafe extern", &["heap.rs"]),
];

fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap().map(Result::unwrap) {
        if entry.path().is_dir() {
            sources(&entry.path(), found);
        } else if entry.path().extension().is_some_and(|ending| ending == "rs") {
            found.push(entry.path());
        }
    }
}

/// The code of a file without comments and without its tests.
fn code(path: &Path) -> String {
    let text = fs::read_to_string(path).unwrap();
    let text = text.split("#[cfg(test)]\nmod tests {").next().unwrap_or("").to_owned();
    let kept = text.lines().filter(|line| !line.trim_start().starts_with("//")).map(|line| {
        let comment = line.find(" // ").unwrap_or(line.len());
        &line[..comment]
    });
    kept.collect::<Vec<_>>().join("\n")
}

fn is_test(path: &str) -> bool {
    ["tests.rs", "fixture.rs", "journeys.rs"].iter().any(|name| path.ends_with(name))
        || path.contains("/tests/")
        || path.contains("/journeys/")
}

fn each_source(mut visit: impl FnMut(&str, &str)) {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut found = Vec::new();
    sources(&root, &mut found);
    assert!(found.len() > 20, "the house has moved: {}", root.display());
    for path in found {
        let name = path.strip_prefix(&root).unwrap().to_string_lossy().replace('\\', "/");
        if !is_test(&name) {
            visit(&name, &code(&path));
        }
    }
}

#[test]
fn imports_run_downward() {
    let mut wrong = Vec::new();
    each_source(|name, code| {
        let room = name.split(['/', '.']).next().unwrap();
        if matches!(room, "main" | "lib") {
            return;
        }
        let Some((_, below)) = ROOMS.iter().find(|(other, _)| *other == room) else {
            wrong.push(format!("src/{name}: a room the plan does not know; add it to ROOMS with what it may import"));
            return;
        };
        for (at, _) in code.match_indices("crate::") {
            let target = code[at + 7..].split(|c: char| !c.is_alphanumeric() && c != '_').next().unwrap();
            let grouped = code[at + 7..].starts_with('{');
            if grouped {
                wrong.push(format!("src/{name}: name each room in an import of its own instead of crate::{{…}}"));
            } else if target != room && !below.contains(&target) && ROOMS.iter().any(|(other, _)| *other == target) {
                wrong.push(format!("src/{name}: {room} may not import {target}; it may import {below:?}"));
            }
        }
    });
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn what_belongs_to_one_room_stays_there() {
    let mut wrong = Vec::new();
    each_source(|name, code| {
        for (word, places) in ONLY_IN {
            let found = code.match_indices(word).any(|(at, _)| {
                // Whole words: `println!` is not `eprintln!`.
                !code[..at].ends_with(|c: char| c.is_alphanumeric() || c == '_')
            });
            if found && !places.iter().any(|place| name.starts_with(place)) {
                wrong.push(format!("src/{name}: {word} belongs in {places:?}"));
            }
        }
    });
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn every_file_says_what_it_is() {
    let mut wrong = Vec::new();
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut found = Vec::new();
    sources(&root, &mut found);
    for path in found.iter().filter(|path| !is_test(&path.to_string_lossy())) {
        if !fs::read_to_string(path).unwrap().starts_with("//!") {
            wrong.push(path.display().to_string());
        }
    }
    assert!(wrong.is_empty(), "without a module doc:\n{}", wrong.join("\n"));
}
