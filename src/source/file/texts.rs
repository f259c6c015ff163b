//! JSON texts in files: one a line, or near misses of that (field cases B65, B66, B69): a document over many lines, an array
//! of requests, several texts on a line, a line torn by rotation that goes on in the next file.
//!
//! Owns: finding where each text begins and ends. Keeps out: joining them into payloads (`gathered`), what a text means in
//! OTLP (`otlp::json`) or as a record (`lifecycle::record`).

use serde::de::IgnoredAny;
use serde_json::Deserializer;
use serde_json::error::Category;
use serde_json::value::RawValue;

use crate::lifecycle::record::Record;
use crate::source::otlp::json::{self, Shape};

use super::gathered::Gathered;
use super::sniff::skip_blank;
use super::stream::{Piece, Stream};
use super::{Place, Reading, Stopped};

/// How the texts known here begin when a program writes them.
const BEGINNINGS: [&[u8]; 6] = [
    b"{\"resourceSpans\"",
    b"{\"resourceLogs\"",
    b"{\"resourceMetrics\"",
    b"{\"schema\"",
    b"{\"timestamp\"",
    b"{\"event_type\"",
];

/// What became of one text.
enum Outcome {
    Taken,
    /// Taken without some part; says which.
    Partly(String),
    /// Well-formed, and nothing in it is of use here.
    Idle(String),
    /// It ends before its brackets close.
    Cut(String),
    Bad(String),
}

impl Outcome {
    /// The outcome of a well-formed text.
    fn of(taken: Result<Self, String>, text: &[u8]) -> Self {
        match (taken, known(text)) {
            (Ok(taken), _) => taken,
            (Err(reason), None) => Self::Idle(reason),
            (Err(reason), Some(_)) => Self::Bad(reason),
        }
    }

    fn is_taken(&self) -> bool {
        matches!(self, Self::Taken | Self::Partly(_))
    }

    /// The outcome of this and another text together: the worse one, but taken when nothing is wrong with either.
    fn and(self, other: Self) -> Self {
        match (self, other) {
            (wrong @ (Self::Bad(_) | Self::Cut(_)), _) | (_, wrong @ (Self::Bad(_) | Self::Cut(_))) => wrong,
            (partly @ Self::Partly(_), _) | (_, partly @ Self::Partly(_)) => partly,
            (Self::Idle(reason), Self::Idle(_)) => Self::Idle(reason),
            _ => Self::Taken,
        }
    }
}

/// What an object is, by its keys.
enum Known {
    Otlp(Shape),
    Record,
}

fn known(text: &[u8]) -> Option<Known> {
    json::first_key(text, |key| match key {
        "event" | "event_type" => Some(Known::Record),
        key => Shape::of_key(key).map(Known::Otlp),
    })
}

/// Whether a line begins like a text that a program writes.
fn begins(line: &[u8]) -> bool {
    BEGINNINGS.iter().any(|beginning| line.starts_with(beginning))
}

/// Whether a line, whatever it begins with, is a whole object of a kind known here.
fn is_one_of_ours(line: &[u8]) -> bool {
    line.starts_with(b"{") && known(line).is_some() && serde_json::from_slice::<IgnoredAny>(line).is_ok()
}

/// The texts of all files.
#[derive(Default)]
pub(super) struct Texts {
    gathered: Gathered,
    /// The line being read.
    line: u64,
    /// The last line of the file before, when it was cut.
    torn: Option<Torn>,
}

struct Torn {
    file: String,
    line: u64,
    bytes: Vec<u8>,
    reason: String,
}

/// A text that goes over several lines.
struct Document {
    line: u64,
    bytes: Vec<u8>,
    brackets: Brackets,
    reason: String,
}

impl Texts {
    /// Takes the texts of a file, of which this is the next line.
    pub fn file(
        &mut self,
        file: &str,
        first: u64,
        stream: &mut Stream,
        reading: &mut Reading<'_>,
        before: u64,
    ) -> Result<(), Stopped> {
        let limit = reading.limits.piece;
        let mut document = None;
        let mut is_first = true;
        for line in first.. {
            let piece = loop {
                match stream.line(limit) {
                    // Before more is waited for, what is there is handed on.
                    Piece::Waits => {
                        self.gathered.flush(file, reading)?;
                        reading.progressed(before + stream.read_bytes())?;
                    }
                    piece => break piece,
                }
            };
            let (bytes, whole) = match piece {
                Piece::End | Piece::Waits => break,
                Piece::TooLong => {
                    reading.summary.pieces += 1;
                    let reason = format!("longer than the limit of {limit} bytes: not read");
                    reading.bad(file, Place::Line(line), reason);
                    continue;
                }
                Piece::Bytes { bytes, whole } => (trim(bytes), whole),
            };
            if bytes.is_empty() {
                continue;
            }
            self.line = line;
            let is_first = std::mem::take(&mut is_first);
            if document.is_some() {
                self.go_on(file, bytes, &mut document, reading);
            } else {
                document = self.line(file, line, bytes, whole, is_first, reading);
            }
            if self.gathered.is_full(reading.limits.joined) {
                self.gathered.flush(file, reading)?;
                reading.progressed(before + stream.read_bytes())?;
            }
        }
        if let Some(document) = document {
            self.give_up(file, document, reading);
        }
        self.gathered.flush(file, reading)
    }

    /// Ends the last file: what was kept for a next one is reported.
    pub fn end(&mut self, reading: &mut Reading<'_>) -> Result<(), Stopped> {
        // Of this one nothing waits: each file is handed on as it ends.
        self.report_torn(reading);
        Ok(())
    }

    /// Takes one line; gives the document it begins, if it does.
    fn line(
        &mut self,
        file: &str,
        line: u64,
        bytes: &[u8],
        whole: bool,
        is_first: bool,
        reading: &mut Reading<'_>,
    ) -> Option<Document> {
        reading.summary.pieces += 1;
        let outcome = self.text(bytes);
        let torn = if is_first { self.torn.take() } else { None };
        match (outcome, torn) {
            (Outcome::Bad(reason) | Outcome::Cut(reason), Some(mut torn)) => {
                torn.bytes.extend_from_slice(bytes);
                let joined = self.text(&torn.bytes);
                if joined.is_taken() {
                    // Two halves are one piece.
                    reading.summary.pieces -= 1;
                    self.report(file, line, &[], joined, reading);
                } else {
                    reading.bad(&torn.file, Place::Line(torn.line), torn.reason);
                    reading.bad(file, Place::Line(line), reason);
                }
            }
            (Outcome::Cut(reason), None) if whole && may_go_on(bytes) => {
                let mut brackets = Brackets::default();
                brackets.read(bytes);
                return Some(Document { line, bytes: bytes.to_vec(), brackets, reason });
            }
            (Outcome::Cut(reason), None) if !whole => {
                self.torn = Some(Torn { file: file.to_owned(), line, bytes: bytes.to_vec(), reason });
            }
            (outcome, torn) => {
                if let Some(torn) = torn {
                    reading.bad(&torn.file, Place::Line(torn.line), torn.reason);
                }
                self.report(file, line, bytes, outcome, reading);
            }
        }
        None
    }

    fn report(&mut self, file: &str, line: u64, bytes: &[u8], outcome: Outcome, reading: &mut Reading<'_>) {
        match outcome {
            Outcome::Taken => {}
            Outcome::Partly(words) => reading.partly(file, Place::Line(line), words),
            Outcome::Idle(reason) => reading.idle(file, Place::Line(line), reason),
            Outcome::Bad(reason) | Outcome::Cut(reason) => {
                let reason = match self.salvage(bytes) {
                    true => format!("{reason}; a whole text glued to its end was taken"),
                    false => reason,
                };
                reading.bad(file, Place::Line(line), reason);
            }
        }
    }

    /// A writer that was killed and started again glues the next text to a torn one: takes the last one of the line.
    fn salvage(&mut self, bytes: &[u8]) -> bool {
        let last = BEGINNINGS.iter().filter_map(|beginning| memchr::memmem::rfind(bytes, beginning)).max();
        last.is_some_and(|at| at > 0 && self.text(&bytes[at..]).is_taken())
    }

    /// Adds a line to a document; when its brackets are closed, or a line shows that it never was one, it is done.
    fn go_on(&mut self, file: &str, bytes: &[u8], open: &mut Option<Document>, reading: &mut Reading<'_>) {
        let Some(document) = open else { return };
        let is_other = document.bytes[0] == b'{' && BEGINNINGS.iter().any(|beginning| bytes.starts_with(beginning));
        let is_long = document.bytes.len() + bytes.len() > reading.limits.piece;
        document.bytes.push(b'\n');
        document.bytes.extend_from_slice(bytes);
        document.brackets.read(bytes);
        if is_other || is_long {
            if let Some(document) = open.take() {
                self.give_up(file, document, reading);
            }
        } else if document.brackets.closed()
            && let Some(document) = open.take()
        {
            self.line = document.line;
            match self.text(&document.bytes) {
                outcome @ (Outcome::Taken | Outcome::Partly(_) | Outcome::Idle(_)) => {
                    self.report(file, document.line, &[], outcome, reading);
                }
                _ => self.give_up(file, document, reading),
            }
        }
    }

    /// It was no document: those of its lines that begin like a text are taken for themselves.
    fn give_up(&mut self, file: &str, document: Document, reading: &mut Reading<'_>) {
        let Document { line: first, bytes, reason, .. } = document;
        let last = self.line;
        reading.bad(file, Place::Line(first), format!("{reason}; nor is it a document with the lines after it"));
        for (line, bytes) in (first..).zip(bytes.split(|byte| *byte == b'\n')).skip(1) {
            if begins(bytes) || is_one_of_ours(bytes) {
                reading.summary.pieces += 1;
                self.line = line;
                let outcome = self.text(bytes);
                self.report(file, line, bytes, outcome, reading);
            }
        }
        self.line = last;
    }

    fn report_torn(&mut self, reading: &mut Reading<'_>) {
        if let Some(torn) = self.torn.take() {
            reading.bad(&torn.file, Place::Line(torn.line), torn.reason);
        }
    }

    /// Takes one text, or several in a row.
    fn text(&mut self, text: &[u8]) -> Outcome {
        if let Ok(taken) = self.whole(text) {
            return taken;
        }
        let (mut all, mut rest) = self.first(text);
        while !rest.is_empty() {
            let (one, after) = self.first(rest);
            all = all.and(one);
            rest = after;
        }
        all
    }

    /// Takes the first text; gives what follows it.
    fn first<'t>(&mut self, text: &'t [u8]) -> (Outcome, &'t [u8]) {
        match text.first() {
            Some(b'{') => self.object(text),
            Some(b'[') => match serde_json::from_slice::<Vec<&RawValue>>(text) {
                Ok(elements) => {
                    let each = elements.iter().map(|element| self.object(element.get().as_bytes()).0);
                    (each.reduce(Outcome::and).unwrap_or_else(|| Outcome::Idle("an empty list".into())), &[])
                }
                Err(error) => (broken(&error), &[]),
            },
            _ => (Outcome::Bad("expected a JSON object, found something else".into()), &[]),
        }
    }

    /// Takes the first of several objects. Where it ends is looked for first: to try it with all that follows, again for
    /// each, would cost the square of the line.
    fn object<'t>(&mut self, text: &'t [u8]) -> (Outcome, &'t [u8]) {
        let mut texts = Deserializer::from_slice(text).into_iter::<IgnoredAny>();
        match texts.next() {
            Some(Err(error)) => match (broken(&error), self.whole(text)) {
                (_, Ok(taken)) => (taken, &[]),
                (Outcome::Cut(reason), _) => (Outcome::Cut(reason), &[]),
                (_, Err(reason)) => (Outcome::Bad(reason), &[]),
            },
            _ => {
                let (first, rest) = text.split_at(texts.byte_offset());
                (Outcome::of(self.whole(first), first), trim(rest))
            }
        }
    }

    /// Takes a text that is one object and nothing else.
    fn whole(&mut self, text: &[u8]) -> Result<Outcome, String> {
        match known(text) {
            Some(Known::Otlp(shape)) => {
                let left_out = self.gathered.otlp(self.line, shape, text)?;
                Ok(left_out.map_or(Outcome::Taken, Outcome::Partly))
            }
            Some(Known::Record) => Record::from_json(text).map(|record| {
                self.gathered.record(record);
                Outcome::Taken
            }),
            None => Err("no spans, log records, metrics or trace records in it".into()),
        }
    }
}

fn broken(error: &serde_json::Error) -> Outcome {
    match error.classify() {
        Category::Eof => Outcome::Cut(format!("cut off: {error}")),
        _ => Outcome::Bad(format!("not JSON: {error}")),
    }
}

/// A line without what surrounds its text (field case B66).
fn trim(line: &[u8]) -> &[u8] {
    let line = skip_blank(line);
    let end = line.iter().rposition(|byte| !matches!(byte, 0 | b' ' | b'\t' | b'\r' | b'\n'));
    &line[..end.map_or(0, |last| last + 1)]
}

/// Whether a cut text looks like the first line of a document over several lines.
fn may_go_on(line: &[u8]) -> bool {
    matches!(line.last(), Some(b'{' | b'[' | b',' | b':'))
}

/// Counts brackets over lines, outside of texts in quotes.
#[derive(Default)]
struct Brackets {
    depth: i64,
    quoted: bool,
}

impl Brackets {
    fn read(&mut self, line: &[u8]) {
        let mut bytes = line.iter();
        while let Some(byte) = bytes.next() {
            match byte {
                b'"' => self.quoted = !self.quoted,
                b'\\' if self.quoted => {
                    bytes.next();
                }
                b'{' | b'[' if !self.quoted => self.depth += 1,
                b'}' | b']' if !self.quoted => self.depth -= 1,
                _ => {}
            }
        }
    }

    fn closed(&self) -> bool {
        self.depth <= 0 && !self.quoted
    }
}
