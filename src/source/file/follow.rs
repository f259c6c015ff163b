//! A file that is still written (field case B65): what has been written whole is read, the rest when it is.
//!
//! A pipe or a device at its name is read as it comes, by one writer after the other: it stays open between them, so that
//! none of them loses anything.
//!
//! Owns: where the last whole line ends, and what has been read so far. Keeps out: when to look again (the caller's loop).

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::{Held, Input, flow};

/// Bytes looked at at once while searching backwards for a line feed.
const CHUNK: u64 = 64 << 10;
/// Of what was read so many of the last bytes are kept, to tell whether it is still there.
const END: u64 = 256;

/// A plain file of lines that is followed, or what else has its name.
#[derive(Debug)]
pub struct Followed {
    path: PathBuf,
    /// The file as it was found by its name; what it still holds is read before another one of that name.
    file: Option<File>,
    read: u64,
    /// Line feeds in what was read.
    lines: u64,
    /// The last bytes that were read.
    end: Vec<u8>,
}

impl Followed {
    /// Follows a file from its start.
    pub fn new(path: &Path) -> Self {
        Self { path: path.to_owned(), file: None, read: 0, lines: 0, end: Vec::new() }
    }

    /// The whole lines that have been written since the last call, as an input to read; `None` while there are none. A
    /// file that was cut or begun anew, or another one of its name, is read from its start; of one that has lost its name
    /// first what it still holds. What is no plain file is an input as soon as something came.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn news(&mut self) -> io::Result<Option<Input>> {
        if let Some(file) = self.file.take() {
            let held = file.metadata()?;
            if flow::is_named(&self.path, &held) {
                return self.written(file);
            }
            // The end of its last line will not come any more.
            let rest = match flow::is_flow(&held) {
                true => self.flow(file)?,
                false => self.part(file, held.len())?,
            };
            self.file = None;
            self.forget();
            if rest.is_some() {
                return Ok(rest);
            }
        }
        // Only what stays open is opened: a writer that finds a reader of its pipe is not to lose it.
        let file = flow::open(&self.path)?;
        self.written(file)
    }

    /// What has been written to the file of the name.
    fn written(&mut self, mut file: File) -> io::Result<Option<Input>> {
        let now = file.metadata()?;
        if flow::is_flow(&now) {
            return self.flow(file);
        }
        if now.len() < self.read || self.end != end_of(&mut file, self.read)? {
            self.forget();
        }
        let to = last_line_end(&mut file, self.read, now.len())?;
        self.part(file, to)
    }

    /// What comes of a file that flows, once something has.
    fn flow(&mut self, file: File) -> io::Result<Option<Input>> {
        let flow = match flow::has_bytes(&file) {
            true => Some(Input::Flow { path: self.path.clone(), file: Held(Arc::new(file.try_clone()?)) }),
            false => None,
        };
        self.file = Some(file);
        Ok(flow)
    }

    fn forget(&mut self) {
        (self.read, self.lines, self.end) = (0, 0, Vec::new());
    }

    /// What is in this file from where it was read to here, which is then read.
    fn part(&mut self, mut file: File, to: u64) -> io::Result<Option<Input>> {
        let from = self.read;
        let line = self.lines + 1;
        let held = Held(Arc::new(file.try_clone()?));
        if to > from {
            self.lines += line_feeds(&mut file, from, to)?;
            (self.read, self.end) = (to, end_of(&mut file, to)?);
        }
        self.file = Some(file);
        Ok((to > from).then(|| Input::Part { path: self.path.clone(), file: held, from, to, line }))
    }
}

/// The last bytes before here.
fn end_of(file: &mut File, to: u64) -> io::Result<Vec<u8>> {
    let from = to.saturating_sub(END);
    file.seek(SeekFrom::Start(from))?;
    let mut bytes = Vec::new();
    file.by_ref().take(to - from).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// How many line feeds are in `from..to`.
fn line_feeds(file: &mut File, from: u64, to: u64) -> io::Result<u64> {
    file.seek(SeekFrom::Start(from))?;
    let mut rest = BufReader::with_capacity(CHUNK as usize, file.by_ref().take(to - from));
    let mut lines = 0;
    loop {
        let bytes = rest.fill_buf()?;
        if bytes.is_empty() {
            return Ok(lines);
        }
        lines += memchr::memchr_iter(b'\n', bytes).count() as u64;
        let read = bytes.len();
        rest.consume(read);
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
    use std::fs::{remove_file, rename, write};
    use std::io::Write;

    #[test]
    fn lines_are_numbered_from_the_start_of_the_file() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("written.jsonl");
        let mut file = File::create(&path).unwrap();
        let mut followed = Followed::new(&path);
        let mut line = || match followed.news().unwrap() {
            Some(Input::Part { line, .. }) => line,
            other => panic!("{other:?}"),
        };
        file.write_all(b"one\n\nthree\nfo").unwrap();
        assert_eq!(line(), 1);
        file.write_all(b"ur\n").unwrap();
        assert_eq!(line(), 4);
        file.write_all(b"five\n").unwrap();
        assert_eq!(line(), 5);
        write(&path, b"new\n").unwrap();
        assert_eq!(line(), 1);
    }

    /// What a part holds.
    fn text(part: Option<Input>) -> Option<String> {
        let Input::Part { file, from, to, .. } = part? else { panic!("no part") };
        let mut file = &*file.0;
        let mut text = String::new();
        file.seek(SeekFrom::Start(from)).unwrap();
        file.take(to - from).read_to_string(&mut text).unwrap();
        Some(text)
    }

    #[test]
    fn only_whole_lines_are_read_and_each_once() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("written.jsonl");
        let mut file = File::create(&path).unwrap();
        let mut followed = Followed::new(&path);
        let mut news = || text(followed.news().unwrap());
        assert_eq!(news(), None);
        file.write_all(b"one\ntwo\nthr").unwrap();
        assert_eq!(news().unwrap(), "one\ntwo\n");
        assert_eq!(news(), None);
        file.write_all(b"ee\n").unwrap();
        assert_eq!(news().unwrap(), "three\n");
        write(&path, b"new\n").unwrap();
        assert_eq!(news().unwrap(), "new\n");
        // Begun anew with as much as there was, and with more.
        write(&path, b"old\n").unwrap();
        assert_eq!(news().unwrap(), "old\n");
        write(&path, b"older\nstill\n").unwrap();
        assert_eq!((news().unwrap(), news()), ("older\nstill\n".into(), None));
    }

    #[test]
    fn another_file_of_the_name_is_read_from_its_start_and_the_rest_of_the_first_one_before() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        let path = at("written.jsonl");
        write(&path, b"one\n").unwrap();
        let mut followed = Followed::new(&path);
        let mut news = || followed.news().map(text);
        assert_eq!(news().unwrap().unwrap(), "one\n");
        File::options().append(true).open(&path).unwrap().write_all(b"two\ncut").unwrap();
        // Its first bytes are what was read before.
        write(at("next"), b"one\nthree\n").unwrap();
        rename(&path, at("before")).unwrap();
        rename(at("next"), &path).unwrap();
        assert_eq!(news().unwrap().unwrap(), "two\ncut");
        assert_eq!(news().unwrap().unwrap(), "one\nthree\n");
        assert_eq!(news().unwrap(), None);
        // Gone for a while.
        remove_file(&path).unwrap();
        assert_eq!(news().unwrap_err().kind(), io::ErrorKind::NotFound);
        write(&path, b"one\nthree\nfour\n").unwrap();
        assert_eq!(news().unwrap().unwrap(), "one\nthree\nfour\n");
    }
}
