//! Files and standard input: OTLP JSON lines, length-prefixed OTLP protobuf, request-trace lines; plain, gzip or zstd.
//!
//! What a file holds is told from its bytes, not its name. Good pieces are handed on, bad ones are reported with file and
//! place. Owns: opening, telling formats apart, the order of files (a line torn by rotation goes on in the next one).
//! Keeps out: OTLP itself (`otlp`), what is done with payloads (the [`Sink`]: the intake of a running dashboard, or a store).

use std::fmt;
use std::io::{self, Read};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::intake::{Payload, Receipt, Refusal};
use crate::lifecycle::text::one_line;

mod flow;
pub mod follow;
mod frames;
mod gathered;
mod open;
mod sniff;
mod stream;
mod texts;

use flow::Steady;
use open::Opened;
use sniff::Content;
use stream::Stream;
use texts::Texts;

/// A place to read from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Input {
    /// A file.
    File(PathBuf),
    /// What comes of a file that is followed by its name (see [`follow`]).
    Flow(Held),
    /// Standard input.
    Stdin,
}

/// A file that is held open; equal to itself alone.
#[derive(Clone, Debug)]
pub struct Held(Arc<follow::Written>);

impl PartialEq for Held {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Eq for Held {}

impl From<&Path> for Input {
    /// `-` is standard input, as on any command line.
    fn from(path: &Path) -> Self {
        if path.as_os_str() == "-" { Self::Stdin } else { Self::File(path.to_owned()) }
    }
}

/// In a line: names of files are hostile, too.
impl fmt::Display for Input {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File(path) => f.write_str(&one_line(&path.to_string_lossy())),
            Self::Flow(held) => f.write_str(&one_line(&held.0.path().to_string_lossy())),
            Self::Stdin => f.write_str("standard input"),
        }
    }
}

/// What one file may ask for.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// The longest line, document or message, in bytes after inflating.
    pub piece: usize,
    /// Small texts are joined into payloads of about this many bytes of protobuf; 0 leaves each by itself.
    pub joined: usize,
    /// The most NULs and blanks a file may begin with that does not say how large it is: a device, a pipe, what inflates.
    pub blank: u64,
}

impl Default for Limits {
    /// 256 MiB a piece: ten times what the Collector's file exporter writes on one line (field case B67), and little enough to
    /// hold in memory a few times over. A GiB of blanks is read in a second.
    fn default() -> Self {
        Self { piece: 256 << 20, joined: 512 << 10, blank: 1 << 30 }
    }
}

/// Where in its file something is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// The file as a whole.
    Whole,
    /// A line, counted from 1.
    Line(u64),
    /// A length-prefixed message, counted from 1.
    Message(u64),
}

/// Something that could not be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// The file.
    pub file: String,
    /// Where in it.
    pub place: Place,
    /// What was expected and what came.
    pub reason: String,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { file, place, reason } = self;
        match place {
            Place::Whole => write!(f, "{file}: {reason}"),
            Place::Line(line) => write!(f, "{file}:{line}: {reason}"),
            Place::Message(message) => write!(f, "{file}, message {message}: {reason}"),
        }
    }
}

/// How far reading has come.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    /// Bytes read, as they lie in the files.
    pub bytes: u64,
    /// Bytes of all files; `None` when standard input is among them.
    pub total: Option<u64>,
}

/// Who takes what is read.
pub trait Sink {
    /// Takes a payload and tells what became of it. [`Refusal::Malformed`] is reported with its place and reading goes on;
    /// any other refusal ends it.
    ///
    /// # Errors
    /// Why it was not taken.
    fn payload(&mut self, payload: Payload) -> Result<Receipt, Refusal>;

    /// Is told about something that could not be used.
    fn problem(&mut self, problem: Problem);

    /// Is told about a part that was left out of something good; spans and log records among it are counted with the payload.
    fn left_out(&mut self, problem: Problem);

    /// Is told how far reading has come, after every payload, before lines are waited for and at the end of each file; may
    /// end it.
    fn progress(&mut self, progress: Progress) -> ControlFlow<()>;
}

/// What reading came to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    /// Lines, documents and messages looked at; blank lines are none.
    pub pieces: u64,
    /// Those that could not be used, each reported; the missing rest of a file that ends in an error counts as one.
    pub bad: u64,
    /// Those of which a part was left out, each reported.
    pub partly: u64,
    /// Those that are well-formed and hold nothing that is used here, each reported.
    pub idle: u64,
    /// Files that could not be opened or are of no known format, each reported.
    pub unreadable: u64,
    /// Whether the sink ended it early.
    pub stopped: bool,
}

/// Reading was ended by the sink.
struct Stopped;

/// The longest text that is read whole, bytes: the list of some million requests.
const LONGEST_TEXT: u64 = 1 << 30;

/// The text of a file, inflated when it is compressed (gzip, zstd).
///
/// # Errors
/// It cannot be read, is no text, or larger than [`LONGEST_TEXT`].
pub fn text(path: &Path) -> io::Result<String> {
    text_of(Steady(open::open(&Input::File(path.to_owned()))?.reader), LONGEST_TEXT)
}

fn text_of(reader: impl Read, longest: u64) -> io::Result<String> {
    let mut text = String::new();
    reader.take(longest + 1).read_to_string(&mut text)?;
    if text.len() as u64 > longest {
        let words = format!("expected at most {longest} bytes of text (inflated), found more");
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, words));
    }
    Ok(text)
}

/// Reads all inputs in their order.
pub fn read(inputs: &[Input], limits: Limits, sink: &mut dyn Sink) -> Summary {
    let total = inputs.iter().map(open::size).sum();
    let mut reading = Reading { sink, summary: Summary::default(), progress: Progress { bytes: 0, total }, limits };
    let mut texts = Texts::default();
    let done =
        inputs.iter().try_for_each(|input| reading.input(input, &mut texts)).and_then(|()| texts.end(&mut reading));
    reading.summary.stopped = done.is_err();
    reading.summary
}

/// The state of reading, over all files.
struct Reading<'s> {
    sink: &'s mut dyn Sink,
    summary: Summary,
    progress: Progress,
    limits: Limits,
}

impl Reading<'_> {
    fn input(&mut self, input: &Input, texts: &mut Texts) -> Result<(), Stopped> {
        let file = input.to_string();
        let Opened { reader, read } = match open::open(input) {
            Ok(opened) => opened,
            Err(error) => {
                self.unreadable(&file, format!("cannot be opened: {error}"));
                return Ok(());
            }
        };
        // A file that was cut while it was written begins with as many NULs as it had bytes.
        let most_blank = self.limits.blank.max(open::size(input).unwrap_or(0));
        self.stream(&file, most_blank, &mut Stream::new(reader, read), texts)
    }

    /// Reads what is there of a file.
    fn stream(&mut self, file: &str, most_blank: u64, stream: &mut Stream, texts: &mut Texts) -> Result<(), Stopped> {
        let before = self.progress.bytes;
        let (mut blank, mut line) = (0, 1);
        let content = loop {
            let head = stream.head(sniff::ENOUGH, sniff::tells);
            match sniff::content(head) {
                Content::Blank(count) if blank <= most_blank => {
                    line += memchr::memchr_iter(b'\n', &head[..count]).count() as u64;
                    blank += count as u64;
                    stream.skip(count);
                }
                Content::Blank(_) => {
                    let reason =
                        format!("begins with more than {most_blank} bytes of NULs and blanks: not read further");
                    break Content::Unknown(reason);
                }
                content => break content,
            }
        };
        match content {
            Content::Empty | Content::Blank(_) => {}
            Content::Text => texts.file(file, line, stream, self, before)?,
            Content::Frames(prefix) => frames::read(file, prefix, stream, self, before)?,
            Content::Unknown(reason) => self.unreadable(file, reason),
        }
        if let Some(error) = stream.failed() {
            self.bad(file, Place::Whole, format!("cannot be read further: {error}"));
        }
        self.progressed(before + stream.read_bytes())
    }

    /// Hands on a payload; gives what of it was refused, or why all of it was.
    fn payload(&mut self, payload: Payload) -> Result<Result<Receipt, String>, Stopped> {
        match self.sink.payload(payload) {
            Ok(receipt) => Ok(Ok(receipt)),
            Err(Refusal::Malformed(reason)) => Ok(Err(reason)),
            Err(Refusal::Busy | Refusal::Closed) => Err(Stopped),
        }
    }

    fn progressed(&mut self, bytes: u64) -> Result<(), Stopped> {
        self.progress.bytes = bytes;
        match self.sink.progress(self.progress) {
            ControlFlow::Continue(()) => Ok(()),
            ControlFlow::Break(()) => Err(Stopped),
        }
    }

    fn bad(&mut self, file: &str, place: Place, reason: impl Into<String>) {
        self.summary.bad += 1;
        self.sink.problem(Problem { file: file.to_owned(), place, reason: reason.into() });
    }

    fn partly(&mut self, file: &str, place: Place, words: impl Into<String>) {
        self.summary.partly += 1;
        self.sink.left_out(Problem { file: file.to_owned(), place, reason: words.into() });
    }

    fn idle(&mut self, file: &str, place: Place, reason: impl Into<String>) {
        self.summary.idle += 1;
        self.sink.problem(Problem { file: file.to_owned(), place, reason: reason.into() });
    }

    fn unreadable(&mut self, file: &str, reason: String) {
        self.summary.unreadable += 1;
        self.sink.problem(Problem { file: file.to_owned(), place: Place::Whole, reason });
    }
}

#[cfg(test)]
mod tests;
