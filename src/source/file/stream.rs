//! A growing window over a reader, from which lines and messages are borrowed without copying. Owns: the window and its
//! limits. Keeps out: what the pieces mean.

use std::cell::Cell;
use std::io::{self, ErrorKind, Read};
use std::rc::Rc;

/// Bytes asked for at once.
const CHUNK: usize = 256 << 10;

/// What the stream holds next.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Piece<'a> {
    /// A piece, and whether it is whole: a last line without its line feed, a message that ends early are not.
    Bytes { bytes: &'a [u8], whole: bool },
    /// A piece longer than the limit; it was skipped as far as that is possible.
    TooLong,
    /// No whole line is there yet; the next call waits for one. Messages are waited for.
    Waits,
    /// Nothing more.
    End,
}

/// What came of reading on.
enum More {
    Bytes,
    /// Nothing is there yet; the next call waits for it.
    Waits,
    End,
}

pub(super) struct Stream {
    reader: Box<dyn Read>,
    read: Rc<Cell<u64>>,
    window: Vec<u8>,
    at: usize,
    /// Bytes of the next line in which no line feed was found.
    searched: usize,
    /// Whether the next line has been too long already.
    too_long: bool,
    /// Whether nothing more was there when the window was filled.
    waits: bool,
    ended: bool,
    failed: Option<io::Error>,
}

impl Stream {
    pub fn new(reader: Box<dyn Read>, read: Rc<Cell<u64>>) -> Self {
        let window = Vec::new();
        Self { reader, read, window, at: 0, searched: 0, too_long: false, waits: false, ended: false, failed: None }
    }

    /// Bytes read so far, as they lie in the file.
    pub fn read_bytes(&self) -> u64 {
        self.read.get()
    }

    /// Why reading ended before the end.
    pub fn failed(&self) -> Option<&io::Error> {
        self.failed.as_ref()
    }

    /// The next bytes, at least `want` of them unless the stream ends before; they stay.
    pub fn peek(&mut self, want: usize) -> &[u8] {
        self.head(want, |_| false)
    }

    /// Like [`peek`](Self::peek), but where more would have to be waited for, fewer bytes may be enough.
    pub fn head(&mut self, want: usize, is_enough: impl Fn(&[u8]) -> bool) -> &[u8] {
        while self.window.len() - self.at < want {
            match self.more() {
                More::Bytes => {}
                More::Waits if is_enough(&self.window[self.at..]) => {
                    // Nor has it been waited for: who takes these asks again.
                    self.waits = true;
                    break;
                }
                More::Waits => {}
                More::End => break,
            }
        }
        &self.window[self.at..]
    }

    /// Moves past bytes that were seen.
    pub fn skip(&mut self, count: usize) {
        self.at = (self.at + count).min(self.window.len());
    }

    /// The next line without its line feed.
    pub fn line(&mut self, limit: usize) -> Piece<'_> {
        loop {
            if let Some(found) = memchr::memchr(b'\n', &self.window[self.at + self.searched..]) {
                let length = std::mem::take(&mut self.searched) + found;
                let from = self.at;
                self.at += length + 1;
                return if std::mem::take(&mut self.too_long) || length > limit {
                    Piece::TooLong
                } else {
                    Piece::Bytes { bytes: &self.window[from..from + length], whole: true }
                };
            }
            self.searched = self.window.len() - self.at;
            if self.searched > limit {
                self.too_long = true;
                self.at = self.window.len();
                self.searched = 0;
            }
            match self.more() {
                More::Bytes => {}
                More::Waits => return Piece::Waits,
                More::End => {
                    self.searched = 0;
                    let from = std::mem::replace(&mut self.at, self.window.len());
                    return match &self.window[from..] {
                        _ if std::mem::take(&mut self.too_long) => Piece::TooLong,
                        [] => Piece::End,
                        bytes => Piece::Bytes { bytes, whole: false },
                    };
                }
            }
        }
    }

    /// The next `length` bytes.
    pub fn message(&mut self, length: usize) -> Piece<'_> {
        self.peek(length);
        let from = self.at;
        self.at = (from + length).min(self.window.len());
        let bytes = &self.window[from..self.at];
        Piece::Bytes { bytes, whole: bytes.len() == length }
    }

    /// Reads more into the window: as much as is there, up to a chunk.
    fn more(&mut self) -> More {
        if std::mem::take(&mut self.waits) {
            return More::Waits;
        }
        if self.ended {
            return More::End;
        }
        // What has been used goes first; what stays is at most one piece.
        self.window.drain(..std::mem::take(&mut self.at));
        let filled = self.window.len();
        // The vector doubles: a long piece is copied a few times, not once a chunk.
        self.window.resize(filled + CHUNK, 0);
        let mut got = 0;
        while got < CHUNK {
            match self.reader.read(&mut self.window[filled + got..]) {
                Ok(0) => {
                    self.ended = true;
                    break;
                }
                Ok(count) => got += count,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    self.waits = got > 0;
                    break;
                }
                Err(error) => {
                    self.failed = Some(error);
                    self.ended = true;
                    break;
                }
            }
        }
        self.window.truncate(filled + got);
        match got {
            0 if self.ended => More::End,
            0 => More::Waits,
            _ => More::Bytes,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stream(text: &'static [u8]) -> Stream {
        Stream::new(Box::new(text), Rc::default())
    }

    #[test]
    fn lines_are_whole_but_the_last_one() {
        let mut lines = stream(b"one\n\nthree");
        assert_eq!(lines.line(9), Piece::Bytes { bytes: b"one", whole: true });
        assert_eq!(lines.line(9), Piece::Bytes { bytes: b"", whole: true });
        assert_eq!(lines.line(9), Piece::Bytes { bytes: b"three", whole: false });
        assert_eq!(lines.line(9), Piece::End);
    }

    #[test]
    fn a_line_over_the_limit_costs_only_itself() {
        let long = [vec![b'x'; 3 << 20], b"\nnext\n".to_vec()].concat();
        let mut lines = Stream::new(Box::new(io::Cursor::new(long)), Rc::default());
        assert_eq!(lines.line(1 << 20), Piece::TooLong);
        assert_eq!(lines.line(1 << 20), Piece::Bytes { bytes: b"next", whole: true });
        assert_eq!(lines.line(1 << 20), Piece::End);
    }

    #[test]
    fn messages_and_lines_share_the_window() {
        let mut mixed = stream(b"abcdef\n");
        assert_eq!(mixed.peek(2), b"abcdef\n");
        assert_eq!(mixed.message(3), Piece::Bytes { bytes: b"abc", whole: true });
        mixed.skip(1);
        assert_eq!(mixed.message(9), Piece::Bytes { bytes: b"ef\n", whole: false });
        assert_eq!(mixed.line(9), Piece::End);
    }
}
