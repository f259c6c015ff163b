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

use super::catalogue::Field;
use super::packed::{self, Value};

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
    /// A key kept as a piece, with a text in place.
    Text(u32, &'a str),
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

/// Writes bodies.
pub struct Writer<'a>(pub &'a mut Vec<u8>);

impl Writer<'_> {
    /// Starts a body; say whether events and links will follow the attributes.
    pub fn head(&mut self, head: &Head, events: bool, links: bool) {
        let bits = [
            (head.status_code != 0, STATUS_CODE),
            (head.status_message.is_some(), STATUS_MESSAGE),
            (head.trace_state.is_some(), TRACE_STATE),
            (head.flags != 0, FLAGS),
            (head.dropped != [0; 3], DROPPED),
            (events, EVENTS),
            (links, LINKS),
        ];
        let has = bits.into_iter().filter(|(is, _)| *is).fold(0, |has, (_, bit)| has | bit);
        self.number(has);
        if head.status_code != 0 {
            self.number(zigzag(i64::from(head.status_code)));
        }
        for piece in [head.status_message, head.trace_state].into_iter().flatten() {
            self.number(u64::from(piece));
        }
        if head.flags != 0 {
            self.number(u64::from(head.flags));
        }
        if head.dropped != [0; 3] {
            head.dropped.iter().for_each(|count| self.number(u64::from(*count)));
        }
    }

    /// Writes a list of attributes.
    pub fn attrs(&mut self, codes: &[Code<'_>]) {
        self.count(codes.len());
        codes.iter().for_each(|code| self.attr(*code));
    }

    /// Writes one attribute of a list whose [`Writer::count`] has been written.
    #[inline]
    pub fn attr(&mut self, code: Code<'_>) {
        match code {
            Code::Piece(piece) => self.number(u64::from(piece) << 1),
            Code::Int(key, value) => {
                self.number((u64::from(key) << 3) | 1);
                self.number(zigzag(value));
            }
            Code::Text(key, text) => {
                self.number((u64::from(key) << 3) | 3);
                self.number(text.len() as u64);
                self.0.extend_from_slice(text.as_bytes());
            }
            Code::Keyed(key, value) => {
                self.number((u64::from(key) << 3) | 5);
                self.number(u64::from(value));
            }
        }
    }

    /// Writes the number of attributes, events or links that follow.
    pub fn count(&mut self, count: usize) {
        self.number(count as u64);
    }

    /// Writes one event; `offset_ns` is its time minus the span's start.
    pub fn event(&mut self, offset_ns: i64, name: u32, dropped: u32, codes: &[Code<'_>]) {
        self.number(zigzag(offset_ns));
        self.number(u64::from(name));
        self.number(u64::from(dropped));
        self.attrs(codes);
    }

    /// Writes one link; the ids as they came, of any length up to 255.
    pub fn link(
        &mut self,
        trace: &[u8],
        span: &[u8],
        state: Option<u32>,
        flags: u32,
        dropped: u32,
        codes: &[Code<'_>],
    ) {
        for id in [trace, span] {
            let id = &id[..id.len().min(255)];
            self.number(id.len() as u64);
            self.0.extend_from_slice(id);
        }
        self.number(state.map_or(0, |piece| u64::from(piece) + 1));
        self.number(u64::from(flags));
        self.number(u64::from(dropped));
        self.attrs(codes);
    }

    #[inline]
    fn number(&mut self, value: u64) {
        packed::put_varint(self.0, value);
    }
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
            3 => Code::Text(key, std::str::from_utf8(self.bytes()).unwrap_or("")),
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
            Code::Text(key, text) => Attr { value: Value::Str(text), ..self.pieces.attr(key) },
            Code::Keyed(key, value) => Attr { value: self.pieces.value(value), ..self.pieces.attr(key) },
        })
    }
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
            Code::Text(_, text) => Value::Str(text),
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
mod tests {
    use super::*;

    struct Fixed;

    impl Pieces for Fixed {
        fn attr(&self, piece: u32) -> Attr<'_> {
            Attr { field: Field::Other, key: ["a", "b", "c"][piece as usize], value: Value::Str("v") }
        }
        fn text(&self, piece: u32) -> &str {
            ["zero", "one", "two"][piece as usize]
        }
    }

    #[test]
    fn what_is_written_is_read_back() {
        let mut bytes = Vec::new();
        let head =
            Head { status_code: -2, status_message: Some(1), trace_state: Some(2), flags: 257, dropped: [7, 0, 1] };
        let mut writer = Writer(&mut bytes);
        writer.head(&head, true, true);
        writer.attrs(&[Code::Piece(0), Code::Int(1, -5), Code::Text(2, "in place"), Code::Keyed(0, 1)]);
        writer.count(1);
        writer.event(-10, 0, 3, &[Code::Piece(2)]);
        writer.count(2);
        writer.link(&[1; 16], &[2; 8], None, 1, 0, &[]);
        writer.link(&[], &[], Some(0), 0, 4, &[Code::Int(0, i64::MIN)]);

        let body = Body::new(&bytes, &Fixed);
        assert_eq!(body.head(), head);
        assert_eq!((body.status_message(), body.trace_state()), ("one", "two"));
        let attrs: Vec<_> = body.attrs().map(|attr| (attr.key, attr.value)).collect();
        assert_eq!(
            attrs,
            [("a", Value::Str("v")), ("b", Value::Int(-5)), ("c", Value::Str("in place")), ("a", Value::Str("v"))]
        );
        let values: Vec<_> = body.attrs().unread().map(super::Unread::value).collect();
        assert_eq!(values, [Value::Str("v"), Value::Int(-5), Value::Str("in place"), Value::Str("v")]);
        let events = body.events();
        assert_eq!((events.len(), events[0].offset_ns, events[0].name, events[0].dropped), (1, -10, "zero", 3));
        assert_eq!(events[0].attrs.map(|attr| attr.key).collect::<Vec<_>>(), ["c"]);
        let links = body.links();
        assert_eq!((links.len(), links[0].trace, links[0].span, links[0].flags), (2, &[1; 16][..], &[2; 8][..], 1));
        assert_eq!((links[1].trace_state, links[1].dropped), ("zero", 4));
        assert_eq!(links[1].attrs.map(|attr| attr.value).collect::<Vec<_>>(), [Value::Int(i64::MIN)]);

        let (mut attrs, mut texts) = (Vec::new(), Vec::new());
        Reader::new(&bytes).pieces(|piece| attrs.push(piece), |piece| texts.push(piece));
        assert_eq!((attrs, texts), (vec![0, 1, 2, 0, 1, 2, 0], vec![1, 2, 0, 0]));
    }
}
