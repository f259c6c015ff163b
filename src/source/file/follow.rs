//! A file that is still written (field case B65): what has been written whole is read, the rest when it is.
//!
//! Owns: where the last whole line ends, and what has been read so far. Keeps out: when to look again (the caller's loop).

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use super::Input;

/// Bytes looked at at once while searching backwards for a line feed.
const CHUNK: u64 = 64 << 10;

/// A plain file of lines that is followed.
#[derive(Debug)]
pub struct Followed {
    path: PathBuf,
    read: u64,
}

impl Followed {
    /// Follows a file from its start.
    pub fn new(path: &Path) -> Self {
        Self { path: path.to_owned(), read: 0 }
    }

    /// The whole lines that have been written since the last call, as an input to read; `None` while there are none. A
    /// file that was cut or begun anew is read from its start.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn news(&mut self) -> io::Result<Option<Input>> {
        let mut file = File::open(&self.path)?;
        let size = file.metadata()?.len();
        if size < self.read {
            self.read = 0;
        }
        let to = last_line_end(&mut file, self.read, size)?;
        if to <= self.read {
            return Ok(None);
        }
        let from = std::mem::replace(&mut self.read, to);
        Ok(Some(Input::Part { path: self.path.clone(), from, to }))
    }
}

/// Behind the last line feed in `from..to`; `from` when there is none.
fn last_line_end(file: &mut File, from: u64, to: u64) -> io::Result<u64> {
    let mut end = to;
    let mut bytes = Vec::new();
    while end > from {
        let start = end.saturating_sub(CHUNK).max(from);
        file.seek(SeekFrom::Start(start))?;
        bytes.clear();
        file.by_ref().take(end - start).read_to_end(&mut bytes)?;
        if let Some(at) = memchr::memrchr(b'\n', &bytes) {
            return Ok(start + at as u64 + 1);
        }
        end = start;
    }
    Ok(from)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    #[test]
    fn only_whole_lines_are_read_and_each_once() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("written.jsonl");
        let mut file = File::create(&path).unwrap();
        let mut followed = Followed::new(&path);
        let part = |from, to| Some(Input::Part { path: path.clone(), from, to });
        assert_eq!(followed.news().unwrap(), None);
        file.write_all(b"one\ntwo\nthr").unwrap();
        assert_eq!(followed.news().unwrap(), part(0, 8));
        assert_eq!(followed.news().unwrap(), None);
        file.write_all(b"ee\n").unwrap();
        assert_eq!(followed.news().unwrap(), part(8, 14));
        std::fs::write(&path, b"new\n").unwrap();
        assert_eq!(followed.news().unwrap(), part(0, 4));
    }
}
