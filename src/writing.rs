//! Files that this program writes: for their owner alone, never through a symbolic link, never over what is there unless
//! asked to, and never half of one.
//!
//! What is written holds what others sent: prompts, names, ids. It may lie where others can write, too. Owns: making such a
//! file. Keeps out: what is written.

use std::ffi::OsString;
use std::fmt::Display;
use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use rustix::fs::OFlags;

/// What happens to a file that is there already.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Existing {
    /// It stays, and nothing is written.
    Refuse,
    /// The new one takes its place, once it is whole.
    Replace,
}

/// A new file that its owner alone may read and write. A symbolic link of that name, even to nowhere, is something that is
/// there already.
///
/// # Errors
/// When something is there already, or no file can be made.
pub fn create_private(path: &Path) -> io::Result<File> {
    let flags = (OFlags::NOFOLLOW | OFlags::CLOEXEC).bits() as i32;
    OpenOptions::new().read(true).append(true).create_new(true).mode(0o600).custom_flags(flags).open(path)
}

/// Whether [`write_private`] would be let, as far as can be told before there is something to write.
///
/// # Errors
/// A sentence about this file: why not, and what to do.
pub fn check(path: &Path, existing: Existing) -> Result<(), String> {
    let named = |error: &dyn Display| format!("{}: {error}", path.display());
    match fs::symlink_metadata(path) {
        Ok(found) if found.is_symlink() => {
            Err(named(&"is a symbolic link, which is not followed; name the file itself"))
        }
        Ok(found) if !found.is_file() => Err(named(&"is there already and no file; choose another name")),
        Ok(_) if existing == Existing::Refuse => {
            Err(named(&"is there already; choose another name, or --force to replace it"))
        }
        Ok(_) => Ok(()),
        Err(error) if error.kind() == ErrorKind::NotFound => match path.parent() {
            Some(folder) if !folder.as_os_str().is_empty() && !folder.is_dir() => {
                Err(named(&"there is no such folder"))
            }
            _ => Ok(()),
        },
        Err(error) => Err(named(&error)),
    }
}

/// Writes a file whole or leaves none.
///
/// # Errors
/// A sentence about this file: why it could not be written, and what to do. What was there is then as it was.
pub fn write_private(
    path: &Path,
    existing: Existing,
    fill: impl FnOnce(&mut File) -> io::Result<()>,
) -> Result<(), String> {
    check(path, existing)?;
    let written = match existing {
        Existing::Refuse => make(path, fill),
        // Beside it, so that it can take its place: a full disk costs nothing of what was there.
        Existing::Replace => beside(path).and_then(|aside| make(&aside, fill).and_then(|()| fs::rename(&aside, path))),
    };
    written.map_err(|error| format!("{}: {error}", path.display()))
}

/// Makes a file with what is written into it, or none.
fn make(path: &Path, fill: impl FnOnce(&mut File) -> io::Result<()>) -> io::Result<()> {
    let mut file = create_private(path)?;
    let written = fill(&mut file).and_then(|()| file.sync_all());
    if written.is_err() {
        let _ = fs::remove_file(path);
    }
    written
}

/// A name of our own beside another.
fn beside(path: &Path) -> io::Result<PathBuf> {
    let mut name = OsString::from(".");
    name.push(path.file_name().ok_or(ErrorKind::InvalidFilename)?);
    name.push(format!(".{}", std::process::id()));
    Ok(path.with_file_name(name))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;
    use std::os::unix::fs::{PermissionsExt, symlink};

    fn names(folder: &Path) -> Vec<String> {
        let entries = fs::read_dir(folder).unwrap();
        let mut names: Vec<_> = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    #[test]
    fn a_file_is_for_its_owner_and_whole() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("out");
        write_private(&path, Existing::Refuse, |file| file.write_all(b"one")).unwrap();
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        let error = write_private(&path, Existing::Refuse, |file| file.write_all(b"two")).unwrap_err();
        assert!(error.contains("out: is there already") && error.contains("--force"), "{error}");
        assert_eq!(fs::read(&path).unwrap(), b"one");
        write_private(&path, Existing::Replace, |file| file.write_all(b"two")).unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"two");
        assert_eq!(names(folder.path()), ["out"], "nothing is left beside it");
    }

    #[test]
    fn no_link_is_followed_and_nothing_but_a_file_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let (target, nowhere) = (folder.path().join("target"), folder.path().join("nowhere"));
        fs::write(&target, b"precious").unwrap();
        for to in [&target, &nowhere] {
            let link = folder.path().join("link");
            symlink(to, &link).unwrap();
            for existing in [Existing::Refuse, Existing::Replace] {
                let error = write_private(&link, existing, |_| Ok(())).unwrap_err();
                assert!(error.contains("symbolic link"), "{error}");
            }
            assert_eq!(create_private(&link).unwrap_err().kind(), ErrorKind::AlreadyExists);
            fs::remove_file(&link).unwrap();
        }
        assert_eq!(fs::read(&target).unwrap(), b"precious");
        assert!(!nowhere.exists());
        for (path, word) in [("/dev/full", "no file"), ("/", "no file"), ("/proc/none/x", "no such folder")] {
            let error = write_private(Path::new(path), Existing::Replace, |_| Ok(())).unwrap_err();
            assert!(error.contains(word), "{error}");
        }
        assert_eq!(names(folder.path()), ["target"]);
    }
}
