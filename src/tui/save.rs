//! Writing what is shown to a file of its own: in the current folder, for its owner alone, never over another.

use std::borrow::Cow;
use std::io::{self, ErrorKind, Write};
use std::path::{Path, PathBuf};

use crate::view::format;
use crate::writing;

/// How many names are tried.
const NAMES: u32 = 1000;

/// Writes a new file `stem.jsonl`, or `stem-2.jsonl` and so on when there is one, whole or not at all; gives a sentence that
/// says where. An empty folder is the current one.
///
/// # Errors
/// A sentence that says why nothing was written.
pub fn save(folder: &Path, stem: &str, bytes: &[u8]) -> Result<String, String> {
    match write_new(folder, stem, bytes) {
        Ok(path) => Ok(format!("{} written to {}", format::bytes(bytes.len() as u64), path.display())),
        Err(error) => Err(match named(folder) {
            Some(folder) => format!("nothing was exported to {}: {error}", folder.display()),
            None => format!("nothing was exported: the folder this was started in is gone or out of reach ({error})"),
        }),
    }
}

/// The folder as it can be told; none when the current one is gone.
fn named(folder: &Path) -> Option<Cow<'_, Path>> {
    match folder.as_os_str().is_empty() {
        true => std::env::current_dir().ok().map(Cow::Owned),
        false => Some(Cow::Borrowed(folder)),
    }
}

fn write_new(folder: &Path, stem: &str, bytes: &[u8]) -> io::Result<PathBuf> {
    // Ids come from outside: what could lead elsewhere or hide is left out.
    let stem: String = stem.chars().filter(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_')).take(80).collect();
    for number in 1..=NAMES {
        let name = if number == 1 { format!("{stem}.jsonl") } else { format!("{stem}-{number}.jsonl") };
        let path = folder.join(name);
        match writing::write_new(&path, |file| file.write_all(bytes)) {
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
            written => return written.map(|()| path),
        }
    }
    Err(io::Error::other(format!("{NAMES} files named {stem} are there already")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::{PermissionsExt, symlink};

    #[test]
    fn files_are_new_and_their_owners_alone() {
        let folder = tempfile::tempdir().unwrap();
        symlink(folder.path().join("elsewhere"), folder.path().join("reqtop-1.jsonl")).unwrap();
        for name in ["reqtop-1-2.jsonl", "reqtop-1-3.jsonl"] {
            assert!(save(folder.path(), "reqtop-/../1\u{1b}", b"{}\n").unwrap().ends_with(name));
            let path = folder.path().join(name);
            assert_eq!(fs::read_to_string(&path).unwrap(), "{}\n");
            assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        }
        assert!(!folder.path().join("elsewhere").exists());
        let error = save(&folder.path().join("no"), "x", b"").unwrap_err();
        assert!(error.starts_with("nothing was exported to /") && error.contains("/no: No such file"), "{error}");
        assert_eq!(named(Path::new("")).unwrap(), std::env::current_dir().unwrap());
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 3, "nothing is left beside");
    }
}
