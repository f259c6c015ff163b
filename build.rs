//! Tells the program which commit it is made of: from `REQTOP_COMMIT`, else from the published crate, else from git's own
//! files; without any of them it is the version alone. Runs no program.
//!
//! Only release builds ask: while developing, every commit would otherwise compile everything anew.

use std::path::{Path, PathBuf};
use std::{env, fs};

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rerun-if-env-changed=REQTOP_COMMIT");
    let version = env::var("CARGO_PKG_VERSION").unwrap_or_default();
    let given = env::var("REQTOP_COMMIT").ok().filter(|commit| !commit.is_empty());
    let is_release = env::var("PROFILE").is_ok_and(|profile| profile == "release");
    let commit = given.or_else(|| if is_release { published().or_else(git) } else { None });
    let what = match (commit, is_release) {
        (Some(commit), _) => format!("{version} ({})", commit.get(..10).unwrap_or(&commit)),
        (None, true) => version,
        (None, false) => format!("{version} (made for development)"),
    };
    println!("cargo:rustc-env=REQTOP_VERSION={what}");
}

/// The commit that a published crate was made of.
fn published() -> Option<String> {
    let info = fs::read_to_string(".cargo_vcs_info.json").ok()?;
    let after = info.split("\"sha1\"").nth(1)?;
    after.split('"').nth(1).map(ToOwned::to_owned)
}

/// The commit that is checked out.
fn git() -> Option<String> {
    let folder = git_folder(Path::new(".git"))?;
    let head = watched(&folder.join("HEAD"))?;
    let Some(name) = head.trim().strip_prefix("ref: ") else { return Some(head.trim().to_owned()) };
    // In a work tree of its own, branches are kept in the folder of the main one.
    let common = match fs::read_to_string(folder.join("commondir")) {
        Ok(path) => folder.join(path.trim()),
        Err(_) => folder,
    };
    if let Some(commit) = watched(&common.join(name)) {
        return Some(commit.trim().to_owned());
    }
    let packed = watched(&common.join("packed-refs"))?;
    let line = packed.lines().find(|line| line.ends_with(&format!(" {name}")))?;
    line.split(' ').next().map(ToOwned::to_owned)
}

/// The folder itself, or the one that the file names.
fn git_folder(path: &Path) -> Option<PathBuf> {
    if path.is_dir() {
        return Some(path.to_owned());
    }
    let text = fs::read_to_string(path).ok()?;
    text.trim().strip_prefix("gitdir: ").map(PathBuf::from)
}

/// A file's text; the build asks again when it changes.
fn watched(path: &Path) -> Option<String> {
    let text = fs::read_to_string(path).ok()?;
    println!("cargo:rerun-if-changed={}", path.display());
    Some(text)
}
