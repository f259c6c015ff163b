//! The body of a kept span: everything but its ids, name and times, as one run of bytes.
//!
//! Attributes are written as the numbers of pieces (each distinct packed attribute is kept once, see [`Pieces`]);
//! values that rarely repeat, integers and measured texts, are written in place beside the number of their key. Owns: this encoding, both
//! ways. Keeps out: where pieces live and when they go (`store`).
//!
//! Layout, all numbers varints: `has` bits; for each bit set: status code, status message, trace state, flags, the three
//! dropped counts; attributes (count, codes); for their bits: events (count, each: time, name, dropped, attributes) and
//! links (count, each: trace id, span id, trace state, flags, dropped, attributes). A code is `piece << 1`, or
//! `key piece << 3 | 1` followed by an integer in zigzag form, `| 3` by a text's length and bytes, `| 5` by a value piece.

mod write;

use super::catalogue::Field;
use super::packed::{self, Value};
pub use write::Writer;

/// Where the pieces live that bodies point to.
pub trait Pieces {
    /// The attribute piece of this number: its field, key and value.
    fn attr(&self, piece: u32) -> Attr<'_>;
    /// Its field alone, which costs less.
    fn field(&self, piece: u32) -> Field {
        self.attr(piece).field
    }
    /// Its value alone, which costs less.
    fn value(&self, piece: u32) -> Value<'_> {
        self.attr(piece).value
    }
    /// The text piece of this number.
    fn text(&self, piece: u32) -> &str;
}

/// One attribute of a kept span.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Attr<'a> {
    /// What the catalogue calls it.
    pub field: Field,
    /// Its key, as it came (scrubbed).
    pub key: &'a str,
    /// Its value.
    pub value: Value<'a>,
}

/// How an attribute stands in a body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Code<'a> {
    /// A whole attribute kept as a piece.
    Piece(u32),
    /// A key kept as a piece, with an integer in place.
    Int(u32, i64),
    /// A key kept as a piece, with a text in place: UTF-8, checked where it is read as text.
    Text(u32, &'a [u8]),
    /// Key and value kept as pieces of their own: ids, which come under several keys.
    Keyed(u32, u32),
}

impl Code<'_> {
    /// The piece that tells its key.
    #[inline]
    pub fn piece(self) -> u32 {
        let (Self::Piece(piece) | Self::Int(piece, _) | Self::Text(piece, _) | Self::Keyed(piece, _)) = self;
        piece
    }
}

const STATUS_CODE: u64 = 1;
const STATUS_MESSAGE: u64 = 2;
const TRACE_STATE: u64 = 4;
const FLAGS: u64 = 8;
const DROPPED: u64 = 16;
const EVENTS: u64 = 32;
const LINKS: u64 = 64;

/// The parts of a body that stand before its attributes.
#[derive(Clone, Copy, Default, Debug, PartialEq, Eq)]
pub struct Head {
    /// OTLP's status code number.
    pub status_code: i32,
    /// Text piece of the status message.
    pub status_message: Option<u32>,
    /// Text piece of the trace state.
    pub trace_state: Option<u32>,
    /// Trace flags.
    pub flags: u32,
    /// Attributes, events and links that the sender dropped.
    pub dropped: [u32; 3],
}

fn zigzag(value: i64) -> u64 {
    ((value << 1) ^ (value >> 63)) as u64
}

fn unzigzag(value: u64) -> i64 {
    (value >> 1) as i64 ^ -((value & 1) as i64)
}

/// Reads a body, in order: head, attributes, events, links.
#[derive(Clone, Copy)]
pub struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    /// A reader over the bytes of one body, as [`Writer`] wrote them.
    pub fn new(bytes: &'a [u8]) -> Self {
        Self(bytes)
    }

    #[inline]
    fn number(&mut self) -> u64 {
        packed::varint(&mut self.0).unwrap_or(0)
    }

    fn bytes(&mut self) -> &'a [u8] {
        let length = (self.number() as usize).min(self.0.len());
        let (bytes, rest) = self.0.split_at(length);
        self.0 = rest;
        bytes
    }

    /// Reads the head; the booleans say whether events and links follow the attributes.
    pub fn head(&mut self) -> (Head, bool, bool) {
        let has = self.number();
        let mut head = Head::default();
        if has & STATUS_CODE != 0 {
            head.status_code = unzigzag(self.number()) as i32;
        }
        if has & STATUS_MESSAGE != 0 {
            head.status_message = Some(self.number() as u32);
        }
        if has & TRACE_STATE != 0 {
            head.trace_state = Some(self.number() as u32);
        }
        if has & FLAGS != 0 {
            head.flags = self.number() as u32;
        }
        if has & DROPPED != 0 {
            head.dropped = std::array::from_fn(|_| self.number() as u32);
        }
        (head, has & EVENTS != 0, has & LINKS != 0)
    }

    /// How many items the list at the cursor has.
    #[inline]
    pub fn count(&mut self) -> usize {
        self.number() as usize
    }

    /// The next attribute code.
    #[inline]
    pub fn code(&mut self) -> Code<'a> {
        let code = self.number();
        let key = (code >> 3) as u32;
        match code & 7 {
            1 => Code::Int(key, unzigzag(self.number())),
            3 => Code::Text(key, self.bytes()),
            5 => Code::Keyed(key, self.number() as u32),
            _ => Code::Piece((code >> 1) as u32),
        }
    }

    /// The pieces of the next attribute code, moving past it.
    #[inline]
    pub fn skip(&mut self) -> (u32, Option<u32>) {
        let code = self.number();
        let key = (code >> 3) as u32;
        match code & 7 {
            1 => _ = self.number(),
            3 => _ = self.bytes(),
            5 => return (key, Some(self.number() as u32)),
            _ => return ((code >> 1) as u32, None),
        }
        (key, None)
    }

    /// Every piece of the body, for whoever counts references: attribute pieces to `attr`, text pieces to `text`.
    pub fn pieces(mut self, mut attr: impl FnMut(u32), mut text: impl FnMut(u32)) {
        let mut attrs = |reader: &mut Self| {
            for _ in 0..reader.count() {
                let (piece, value) = reader.skip();
                attr(piece);
                value.into_iter().for_each(&mut attr);
            }
        };
        let (head, events, links) = self.head();
        head.status_message.into_iter().chain(head.trace_state).for_each(&mut text);
        attrs(&mut self);
        if events {
            for _ in 0..self.count() {
                self.number();
                text(self.number() as u32);
                self.number();
                attrs(&mut self);
            }
        }
        if links {
            for _ in 0..self.count() {
                self.bytes();
                self.bytes();
                if let Some(piece) = self.number().checked_sub(1) {
                    text(piece as u32);
                }
                self.number();
                self.number();
                attrs(&mut self);
            }
        }
    }
}

/// The attributes of a span, event or link, in the order they came.
#[derive(Clone, Copy)]
pub struct Attrs<'a> {
    reader: Reader<'a>,
    left: usize,
    pieces: &'a dyn Pieces,
}

impl<'a> Attrs<'a> {
    /// The reader behind the last attribute.
    fn past(mut self) -> Reader<'a> {
        while self.left > 0 {
            self.reader.skip();
            self.left -= 1;
        }
        self.reader
    }

    /// How many there are still to come.
    pub fn len(&self) -> usize {
        self.left
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.left == 0
    }
}

impl<'a> Iterator for Attrs<'a> {
    type Item = Attr<'a>;

    #[inline]
    fn next(&mut self) -> Option<Attr<'a>> {
        self.left = self.left.checked_sub(1)?;
        Some(match self.reader.code() {
            Code::Piece(piece) => self.pieces.attr(piece),
            Code::Int(key, value) => Attr { value: Value::Int(value), ..self.pieces.attr(key) },
            Code::Text(key, text) => Attr { value: in_place(text), ..self.pieces.attr(key) },
            Code::Keyed(key, value) => Attr { value: self.pieces.value(value), ..self.pieces.attr(key) },
        })
    }
}

/// A text that stands in place.
fn in_place(text: &[u8]) -> Value<'_> {
    Value::Str(std::str::from_utf8(text).unwrap_or(""))
}

/// An attribute whose value has not been read yet: most readers look for few fields.
#[derive(Clone, Copy)]
pub struct Unread<'a> {
    /// What the catalogue calls it.
    pub field: Field,
    code: Code<'a>,
    pieces: &'a dyn Pieces,
}

impl<'a> Unread<'a> {
    /// Its value.
    #[inline]
    pub fn value(self) -> Value<'a> {
        match self.code {
            Code::Piece(piece) => self.pieces.value(piece),
            Code::Int(_, value) => Value::Int(value),
            Code::Text(_, text) => in_place(text),
            Code::Keyed(_, value) => self.pieces.value(value),
        }
    }
}

impl<'a> Attrs<'a> {
    /// The same attributes, to be read one by one where the field is of interest.
    #[inline]
    pub fn unread(mut self) -> impl Iterator<Item = Unread<'a>> {
        std::iter::from_fn(move || {
            self.left = self.left.checked_sub(1)?;
            let code = self.reader.code();
            Some(Unread { field: self.pieces.field(code.piece()), code, pieces: self.pieces })
        })
    }
}

/// One event of a kept span.
#[derive(Clone, Copy)]
pub struct Event<'a> {
    /// Its time minus the span's start, in nanoseconds.
    pub offset_ns: i64,
    /// Its name.
    pub name: &'a str,
    /// Attributes that the sender dropped.
    pub dropped: u32,
    /// Its attributes.
    pub attrs: Attrs<'a>,
}

/// One link of a kept span.
#[derive(Clone, Copy)]
pub struct Link<'a> {
    /// The trace id's bytes as they came.
    pub trace: &'a [u8],
    /// The span id's bytes as they came.
    pub span: &'a [u8],
    /// Its trace state.
    pub trace_state: &'a str,
    /// Its flags.
    pub flags: u32,
    /// Attributes that the sender dropped.
    pub dropped: u32,
    /// Its attributes.
    pub attrs: Attrs<'a>,
}

/// A body with the pieces it points to.
#[derive(Clone, Copy)]
pub struct Body<'a> {
    bytes: &'a [u8],
    pieces: &'a dyn Pieces,
}

impl<'a> Body<'a> {
    /// A body over its bytes and the pieces it was written with.
    pub fn new(bytes: &'a [u8], pieces: &'a dyn Pieces) -> Self {
        Self { bytes, pieces }
    }

    /// Its head.
    pub fn head(self) -> Head {
        Reader(self.bytes).head().0
    }

    /// The status message; empty when there is none.
    pub fn status_message(self) -> &'a str {
        self.head().status_message.map_or("", |piece| self.pieces.text(piece))
    }

    /// The trace state; empty when there is none.
    pub fn trace_state(self) -> &'a str {
        self.head().trace_state.map_or("", |piece| self.pieces.text(piece))
    }

    /// Its attributes.
    pub fn attrs(self) -> Attrs<'a> {
        let mut reader = Reader(self.bytes);
        reader.head();
        self.list(reader)
    }

    fn list(self, mut reader: Reader<'a>) -> Attrs<'a> {
        let left = reader.count();
        Attrs { reader, left, pieces: self.pieces }
    }

    /// Its events, in the order they came.
    pub fn events(self) -> Vec<Event<'a>> {
        if !Reader(self.bytes).head().1 {
            return Vec::new();
        }
        let mut reader = self.attrs().past();
        (0..reader.count())
            .map(|_| {
                let offset_ns = unzigzag(reader.number());
                let name = self.pieces.text(reader.number() as u32);
                let dropped = reader.number() as u32;
                let attrs = self.list(reader);
                reader = attrs.past();
                Event { offset_ns, name, dropped, attrs }
            })
            .collect()
    }

    /// Its links, in the order they came.
    pub fn links(self) -> Vec<Link<'a>> {
        let (_, events, links) = Reader(self.bytes).head();
        if !links {
            return Vec::new();
        }
        let mut reader = self.attrs().past();
        if events {
            for _ in 0..reader.count() {
                reader.number();
                reader.number();
                reader.number();
                reader = self.list(reader).past();
            }
        }
        (0..reader.count())
            .map(|_| {
                let (trace, span) = (reader.bytes(), reader.bytes());
                let trace_state = reader.number().checked_sub(1).map_or("", |piece| self.pieces.text(piece as u32));
                let (flags, dropped) = (reader.number() as u32, reader.number() as u32);
                let attrs = self.list(reader);
                reader = attrs.past();
                Link { trace, span, trace_state, flags, dropped, attrs }
            })
            .collect()
    }
}

#[cfg(test)]
mod tests;
