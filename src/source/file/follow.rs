//! A file that is still written (field case B65): what is there is read, and what comes as it comes, whatever its format, until
//! it was begun anew or another file has its name.
//!
//! A pipe or a device at its name is read by one writer after the other: it stays open between them, so that none of them
//! loses anything.
//!
//! Owns: telling whether a file is still the one that was read so far, waiting for more of it. Keeps out: pipes' own ways
//! (`flow`), what the bytes are (`super`), when to look for a file that is not there (the caller's loop).

use std::fs::File;
use std::io::{self, ErrorKind, Read};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;

use super::flow::{self, Flow};
use super::{Held, Input};

/// How often a file is looked at while nothing is written.
const LOOK_AGAIN: Duration = Duration::from_millis(300);
/// Of what was read so many of the last bytes are kept, to tell whether it is still there.
const END: usize = 256;

/// The name that is followed.
#[derive(Debug)]
pub struct Followed {
    path: PathBuf,
    /// The file as it was found by its name; what it still holds is read before another one of that name.
    held: Option<Arc<Written>>,
}

impl Followed {
    /// Follows whatever has this name.
    pub fn new(path: &Path) -> Self {
        Self { path: path.to_owned(), held: None }
    }

    /// What has the name, as an input, once something is in it that is not read yet; `None` until then. A plain file is given
    /// once, and is read until it is over: when it was cut or begun anew, or has lost its name and is at its end. What is no
    /// plain file is given anew for each of its writers.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn news(&mut self) -> io::Result<Option<Input>> {
        if let Some(held) = self.held.take() {
            let goes_on = held.is_named()? && held.is_as_read()?;
            let news = held.news()?;
            if goes_on {
                self.held = Some(Arc::clone(&held));
            }
            if news || goes_on {
                return Ok(news.then(|| Input::Flow(Held(held))));
            }
        }
        // A pipe is opened once and stays open: a writer that finds a reader of it is not to lose it.
        let file = flow::open(&self.path)?;
        let is_flow = flow::is_flow(&file.metadata()?);
        let held = Arc::new(Written { path: self.path.clone(), file, is_flow, read: Mutex::default() });
        let news = held.news()?;
        self.held = Some(Arc::clone(&held));
        Ok(news.then(|| Input::Flow(Held(held))))
    }
}

/// A file that others write, open; another one may have its name by now.
#[derive(Debug)]
pub struct Written {
    path: PathBuf,
    file: File,
    /// Whether it is a pipe or a device.
    is_flow: bool,
    read: Mutex<Progress>,
}

/// How far a plain file has been read.
#[derive(Debug, Default)]
struct Progress {
    is_begun: bool,
    at: u64,
    /// The last bytes before.
    end: Vec<u8>,
}

impl Written {
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Its bytes, as far as that can be told.
    pub(super) fn size(&self) -> Option<u64> {
        if self.is_flow { None } else { self.file.metadata().ok().map(|file| file.len()) }
    }

    fn is_named(&self) -> io::Result<bool> {
        Ok(flow::is_named(&self.path, &self.file.metadata()?))
    }

    /// Whether what was read of it is still there.
    fn is_as_read(&self) -> io::Result<bool> {
        let read = self.read.lock();
        let mut end = vec![0; read.end.len()];
        let from = read.at - end.len() as u64;
        match self.file.read_exact_at(&mut end, from) {
            Err(error) if error.kind() == ErrorKind::UnexpectedEof => Ok(false),
            done => done.map(|()| end == read.end),
        }
    }

    /// Whether something can be read of it, by somebody who does not yet.
    fn news(&self) -> io::Result<bool> {
        if self.is_flow {
            return Ok(flow::has_bytes(&self.file));
        }
        let is_begun = self.read.lock().is_begun;
        Ok(!is_begun && self.file.read_at(&mut [0], 0)? > 0)
    }

    /// What it holds, from its start when it is a plain file.
    pub(super) fn reader(self: &Arc<Self>) -> io::Result<Box<dyn Read>> {
        if self.is_flow {
            return Ok(Box::new(Flow::new(self.file.try_clone()?, Some(self.path.clone()))));
        }
        *self.read.lock() = Progress { is_begun: true, ..Progress::default() };
        Ok(Box::new(Growing { file: Arc::clone(self), is_told: false }))
    }

    /// Reads on; what is there, if anything.
    fn read_on(&self, buffer: &mut [u8]) -> io::Result<usize> {
        let mut read = self.read.lock();
        let count = self.file.read_at(buffer, read.at)?;
        read.at += count as u64;
        read.end.extend_from_slice(&buffer[..count][count.saturating_sub(END)..]);
        let spare = read.end.len().saturating_sub(END);
        read.end.drain(..spare);
        Ok(count)
    }
}

/// Reads a plain file that grows. It says [`ErrorKind::WouldBlock`] once, before it waits for more.
struct Growing {
    file: Arc<Written>,
    is_told: bool,
}

impl Read for Growing {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        // Before what is there is taken for what follows.
        while self.file.is_as_read()? {
            // Asked first: what was written before it lost its name is read yet.
            let is_named = self.file.is_named()?;
            let count = self.file.read_on(buffer)?;
            if count > 0 || buffer.is_empty() {
                self.is_told = false;
                return Ok(count);
            }
            if !is_named {
                break;
            }
            if !std::mem::replace(&mut self.is_told, true) {
                return Err(ErrorKind::WouldBlock.into());
            }
            std::thread::sleep(LOOK_AGAIN);
        }
        Ok(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::{remove_file, rename, write};
    use std::io::Write;

    /// What is there of an input before it waits, and whether it waits.
    fn there(reader: &mut dyn Read) -> (String, bool) {
        let (mut text, mut buffer) = (Vec::new(), [0; 3]);
        loop {
            match reader.read(&mut buffer) {
                Ok(0) => return (String::from_utf8(text).unwrap(), false),
                Ok(count) => text.extend_from_slice(&buffer[..count]),
                Err(error) => {
                    assert_eq!(error.kind(), ErrorKind::WouldBlock);
                    return (String::from_utf8(text).unwrap(), true);
                }
            }
        }
    }

    fn waits(text: &str) -> (String, bool) {
        (text.to_owned(), true)
    }

    fn over(text: &str) -> (String, bool) {
        (text.to_owned(), false)
    }

    /// A reader of what is new.
    fn reader(followed: &mut Followed) -> Option<Box<dyn Read>> {
        let Input::Flow(held) = followed.news().unwrap()? else { panic!("no file that is followed") };
        Some(held.0.reader().unwrap())
    }

    #[test]
    fn a_file_is_read_on_until_it_is_begun_anew() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("written.jsonl");
        let mut file = File::create(&path).unwrap();
        let mut followed = Followed::new(&path);
        assert!(reader(&mut followed).is_none(), "nothing is in it");
        file.write_all(b"one\ntwo\nthr").unwrap();
        let mut first = reader(&mut followed).unwrap();
        assert_eq!(there(&mut first), waits("one\ntwo\nthr"));
        assert!(followed.news().unwrap().is_none(), "it is read already");
        file.write_all(b"ee\n").unwrap();
        assert_eq!(there(&mut first), waits("ee\n"));
        // Cut; then with as much as there was, and with more.
        write(&path, b"new\n").unwrap();
        for text in ["new\n", "old\n", "older\nstill\n"] {
            write(&path, text).unwrap();
            assert_eq!(there(&mut first), over(""));
            first = reader(&mut followed).unwrap();
            assert_eq!(there(&mut first), waits(text));
        }
        // Whoever read it gave up before: it is not read again as long as it is what it was.
        drop(first);
        assert!(followed.news().unwrap().is_none());
        File::options().append(true).open(&path).unwrap().write_all(b"more\n").unwrap();
        assert!(followed.news().unwrap().is_none());
        write(&path, b"again\n").unwrap();
        assert_eq!(there(&mut reader(&mut followed).unwrap()), waits("again\n"));
    }

    #[test]
    fn another_file_of_the_name_is_read_after_the_rest_of_the_first_one() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        let path = at("written.jsonl");
        write(&path, b"one\n").unwrap();
        let mut followed = Followed::new(&path);
        let mut first = reader(&mut followed).unwrap();
        assert_eq!(there(&mut first), waits("one\n"));
        File::options().append(true).open(&path).unwrap().write_all(b"two\ncut").unwrap();
        // Its first bytes are what was read before.
        write(at("next"), b"one\nthree\n").unwrap();
        rename(&path, at("before")).unwrap();
        rename(at("next"), &path).unwrap();
        assert_eq!(there(&mut first), over("two\ncut"));
        let mut second = reader(&mut followed).unwrap();
        assert_eq!(there(&mut second), waits("one\nthree\n"));
        // Gone for a while.
        remove_file(&path).unwrap();
        assert_eq!(there(&mut second), over(""));
        assert_eq!(followed.news().unwrap_err().kind(), ErrorKind::NotFound);
        write(&path, b"four\n").unwrap();
        assert_eq!(there(&mut reader(&mut followed).unwrap()), waits("four\n"));
        // Written and moved away between two looks.
        let mut followed = Followed::new(&path);
        write(&path, b"").unwrap();
        assert!(followed.news().unwrap().is_none());
        write(&path, b"five\n").unwrap();
        rename(&path, at("before")).unwrap();
        assert_eq!(there(&mut reader(&mut followed).unwrap()), over("five\n"));
    }
}
