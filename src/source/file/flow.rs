//! Pipes, terminals and other devices: what comes when it comes.
//!
//! Owns: telling, once before each wait, that nothing is there yet, so that what is there can be shown. Keeps out: what is
//! done then (`stream`, `texts`).

use std::fs::{self, File, Metadata};
use std::io::{self, ErrorKind, Read};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::OFlags;

/// Not at all.
const AT_ONCE: Timespec = Timespec { tv_sec: 0, tv_nsec: 0 };
/// How often the name of what is waited for is looked at.
const LOOK_AGAIN: Timespec = Timespec { tv_sec: 0, tv_nsec: 300_000_000 };

/// Opens a file; a named pipe without waiting for its writer.
pub(super) fn open(path: &Path) -> io::Result<File> {
    File::options().read(true).custom_flags(OFlags::NONBLOCK.bits() as i32).open(path)
}

/// Whether a file has no size, no places and no lines that stay: neither a regular one nor a folder.
pub(super) fn is_flow(file: &Metadata) -> bool {
    !file.is_file() && !file.is_dir()
}

/// Whether this file has the name now.
pub(super) fn is_named(path: &Path, file: &Metadata) -> bool {
    fs::metadata(path).is_ok_and(|now| (now.dev(), now.ino()) == (file.dev(), file.ino()))
}

/// Whether bytes are there to be read now.
pub(super) fn has_bytes(file: &File) -> bool {
    let mut asked = [PollFd::new(file, PollFlags::IN)];
    poll(&mut asked, Some(&AT_ONCE)).is_ok() && asked[0].revents().contains(PollFlags::IN)
}

/// A reader that says [`ErrorKind::WouldBlock`] once, before it waits for more.
pub(super) struct Flow {
    file: File,
    /// Where it is followed: it ends when another file is there.
    followed: Option<PathBuf>,
    is_told: bool,
}

impl Flow {
    pub fn new(file: File, followed: Option<PathBuf>) -> Self {
        Self { file, followed, is_told: false }
    }

    /// Whether a read gives something within this time: bytes, the end or an error.
    fn is_ready(&self, patience: Option<&Timespec>) -> bool {
        poll(&mut [PollFd::new(&self.file, PollFlags::IN)], patience) != Ok(0)
    }
}

impl Read for Flow {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if !self.is_ready(Some(&AT_ONCE)) {
            if !std::mem::replace(&mut self.is_told, true) {
                return Err(ErrorKind::WouldBlock.into());
            }
            match &self.followed {
                None => drop(self.is_ready(None)),
                Some(path) => {
                    let file = self.file.metadata()?;
                    while !self.is_ready(Some(&LOOK_AGAIN)) {
                        if !is_named(path, &file) {
                            return Ok(0);
                        }
                    }
                }
            }
        }
        self.is_told = false;
        self.file.read(buffer)
    }
}

/// Waits without a word.
pub(super) struct Steady<R>(pub R);

impl<R: Read> Read for Steady<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            match self.0.read(buffer) {
                Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                read => return read,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;
    use std::os::fd::OwnedFd;

    #[test]
    fn that_nothing_is_there_is_said_once_before_each_wait() {
        let (read, mut write) = io::pipe().unwrap();
        let mut flow = Flow::new(OwnedFd::from(read).into(), None);
        let mut buffer = [0; 9];
        for text in [&b"one"[..], b"two"] {
            assert_eq!(flow.read(&mut buffer).unwrap_err().kind(), ErrorKind::WouldBlock);
            assert!(!has_bytes(&flow.file));
            write.write_all(text).unwrap();
            assert!(has_bytes(&flow.file));
            assert_eq!(flow.read(&mut buffer).unwrap(), 3);
            assert_eq!(&buffer[..3], text);
        }
        drop(write);
        assert_eq!(flow.read(&mut buffer).unwrap(), 0, "the end is there at once");
        let mut steady = Steady(Flow::new(File::open("/dev/null").unwrap(), None));
        assert_eq!(steady.read(&mut buffer).unwrap(), 0);
    }
}
