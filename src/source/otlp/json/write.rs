//! Streaming transcoding: serde's visitors over the tables of `fields`, writing protobuf as keys come by. No tree is built.
//!
//! What is wrong costs the smallest part that stands for itself: a span, a log record, an attribute of a resource or scope,
//! else the field. Owns: objects, their keys and lists, and what a wrong part costs. Keeps out: what each value may look
//! like (`value`), which fields there are (`fields`), whole texts (`super`).

use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Unexpected, Visitor};

use crate::lifecycle::batch::Tally;
use crate::lifecycle::ids::TraceId;
use crate::lifecycle::packed::{TOO_DEEP, put_bytes, put_varint};
use crate::lifecycle::text;
use crate::lifecycle::work;
use crate::source::otlp::walk::{LEN_1, LEN_5, Walk};

use super::fields::{Field, Form, Message};
use super::value::Value;
use super::{DEEPEST, Shape};

/// What a list of messages holds.
const OBJECTS: &str = "objects in the list";

/// Bytes kept free for the length of a [`Form::Wide`] message.
const WIDE: usize = 5;

/// Where protobuf is written, and what was noticed on the way.
pub(super) struct Writer<'o> {
    pub out: &'o mut Vec<u8>,
    pub tally: Tally,
    /// A key came twice in one object, and was none of the lists of which both are taken: the text must be read again, with
    /// only the last of each.
    pub repeated: bool,
    /// Spans, log records and data points written.
    pub good: u64,
    /// Something was not of its field's kind, beyond ids.
    pub misshapen: bool,
    /// The text has the list that its shape is named by.
    pub at_home: bool,
    /// The first key that does not belong to it, in words.
    pub foreign: Option<String>,
    /// Why the part being written is to be left out.
    wrong: Option<String>,
    /// Whether it stands for itself.
    within: bool,
    /// Whether the span being written has a trace id and a span id.
    ids: [bool; 2],
    /// Objects and lists that are open.
    pub depth: usize,
    /// How long [`Self::out`] may become.
    most: usize,
}

impl<'o> Writer<'o> {
    /// Writes up to so many bytes.
    pub fn new(out: &'o mut Vec<u8>, most: usize) -> Self {
        Self {
            most: most.saturating_add(out.len()),
            out,
            tally: Tally::default(),
            repeated: false,
            good: 0,
            misshapen: false,
            at_home: false,
            foreign: None,
            wrong: None,
            within: false,
            ids: [false; 2],
            depth: 0,
        }
    }

    /// Whether what is written is not too long: numbers of lists take up to four times what they take in JSON.
    #[inline]
    pub fn fits<E: Error>(&self) -> Result<(), E> {
        if self.out.len() <= self.most { Ok(()) } else { Err(E::custom("larger in protobuf than messages may be")) }
    }

    fn tag(&mut self, number: u32, wire: u32) {
        put_varint(self.out, u64::from(number << 3 | wire));
    }

    /// Begins a nested message; gives where its content starts.
    pub fn open(&mut self, number: u32, form: Form) -> usize {
        self.tag(number, 2);
        let room = if form == Form::Wide { WIDE } else { 1 };
        self.out.resize(self.out.len() + room, 0);
        self.out.len()
    }

    /// Ends a nested message: writes its length.
    pub fn close(&mut self, start: usize, form: Form) {
        let length = self.out.len() - start;
        if form == Form::Wide {
            // A varint may be longer than it must be.
            for (index, byte) in self.out[start - WIDE..start].iter_mut().enumerate() {
                let more = if index + 1 < WIDE { 0x80 } else { 0 };
                *byte = (length >> (7 * index)) as u8 & 0x7f | more;
            }
        } else if length < 0x80 {
            self.out[start - 1] = length as u8;
        } else {
            let mut varint = Vec::with_capacity(WIDE);
            put_varint(&mut varint, length as u64);
            let end = self.out.len();
            self.out.resize(end + varint.len() - 1, 0);
            self.out.copy_within(start..end, start + varint.len() - 1);
            self.out[start - 1..start - 1 + varint.len()].copy_from_slice(&varint);
        }
    }

    /// Has the part being written left out.
    #[cold]
    pub fn wrong(&mut self, field: &Field, expected: &str, found: &str) {
        let found: String = found.chars().take(48).collect();
        self.wrong.get_or_insert_with(|| format!("{}: expected {expected}, found {found}", field.camel));
    }

    /// The span being written has its trace id (field 1) or its span id (field 2).
    pub fn has_id(&mut self, number: u32) {
        if let Some(has) = self.ids.get_mut(number as usize - 1) {
            *has = true;
        }
    }

    /// Takes back what was written from `before` on, when something in it is wrong and it stands for itself.
    #[inline]
    fn settle(&mut self, before: usize, form: Form) {
        if !self.within
            && let Some(reason) = self.wrong.take()
        {
            self.leave_out(before, form, reason);
        }
    }

    #[cold]
    fn leave_out(&mut self, before: usize, form: Form, reason: String) {
        let Spoilt { name, trace } = Spoilt::of(&self.out[before..]);
        match form {
            Form::Span => self.tally.refuse_span(trace),
            Form::Log => self.tally.bad_records += 1,
            _ => self.tally.passed_over += 1,
        }
        if self.tally.refusal.is_none() {
            self.tally.refusal = Some(match (form, name) {
                (Form::Span, Some(name)) => format!("span {name:?}: {reason}"),
                _ => reason,
            });
        }
        self.out.truncate(before);
    }

    /// A key under which something would be lost without a word.
    #[cold]
    fn foreign(&mut self, reason: String) {
        *(if self.depth == 1 { &mut self.tally.misplaced } else { &mut self.tally.passed_over }) += 1;
        self.foreign.get_or_insert(reason);
    }
}

/// What a span that is left out says of itself, as far as it was read.
#[derive(Default)]
struct Spoilt {
    name: Option<String>,
    trace: Option<TraceId>,
}

impl Spoilt {
    /// Of the span that stands in these bytes as a field.
    fn of(field: &[u8]) -> Self {
        let mut told = Self::default();
        let mut outer = Walk::over("a span", field);
        let Ok(Some(tag)) = outer.tag() else { return told };
        let Ok(span) = outer.bytes(tag) else { return told };
        let mut span = Walk::over("Span", span);
        while let Ok(Some(tag)) = span.tag() {
            let value = match tag {
                LEN_1 | LEN_5 => span.bytes(tag),
                _ => span.skip(tag).map(|()| &[][..]),
            };
            let Ok(value) = value else { break };
            match tag {
                LEN_1 => told.trace = TraceId::from_bytes(value),
                LEN_5 => told.name = Some(text::scrub(value).chars().take(80).collect()),
                _ => {}
            }
        }
        told
    }
}

/// The object of a whole text: its fields are written without a length before them.
pub(super) struct Root<'w, 'o> {
    pub writer: &'w mut Writer<'o>,
    pub message: &'static Message,
}

impl<'de> DeserializeSeed<'de> for Root<'_, '_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Root<'_, '_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "an object with {:?}", self.message.fields[0].camel)
    }

    fn visit_unit<E: Error>(self) -> Result<(), E> {
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<(), A::Error> {
        self.writer.depth = 1;
        object(self.writer, self.message, map)
    }
}

/// A whole text that is one resource, written as the only one of an export request.
pub(super) struct OnlyResource<'w, 'o> {
    pub writer: &'w mut Writer<'o>,
    pub message: &'static Message,
}

impl<'de> DeserializeSeed<'de> for OnlyResource<'_, '_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        let start = self.writer.open(1, Form::Wide);
        deserializer.deserialize_any(Root { writer: self.writer, message: self.message })?;
        self.writer.close(start, Form::Wide);
        Ok(())
    }
}

/// The fields of one object.
fn object<'de, A: MapAccess<'de>>(
    writer: &mut Writer<'_>,
    message: &'static Message,
    mut map: A,
) -> Result<(), A::Error> {
    const KEY: u32 = 1 << 1;
    let mut seen = 0u32;
    let start = writer.out.len();
    while let Some(found) = map.next_key_seed(Key(message))? {
        let (field, is_snake) = match found {
            Found::Field(field, is_snake) => (field, is_snake),
            Found::Unknown => {
                map.next_value::<IgnoredAny>()?;
                continue;
            }
            Found::Foreign(reason) => {
                map.next_value::<IgnoredAny>()?;
                writer.foreign(reason);
                continue;
            }
        };
        writer.tally.snake_case += u64::from(is_snake);
        let again = seen & 1 << field.number != 0;
        writer.repeated |= again && !field.joins(message);
        writer.at_home |= writer.depth == 1 && Shape::of_key(field.camel).is_some();
        let before = writer.out.len();
        map.next_value_seed(Value { writer, field, kind: &field.kind })?;
        writer.fits()?;
        writer.settle(before, Form::Plain);
        seen |= 1 << field.number;
        if message.form == Form::KeyValue && field.number == 1 && seen != KEY && !again {
            // The value came first. A key that comes again is read anew: moving the value for each would cost the square.
            writer.out[start..].rotate_left(before - start);
            work::step();
        }
    }
    Ok(())
}

/// The key of an object.
struct Key(&'static Message);

/// What a key is.
enum Found {
    /// A known field; whether it was spelled in snake_case.
    Field(&'static Field, bool),
    /// Of another signal, or another place: passed over with these words.
    Foreign(String),
    /// Not known here: passed over.
    Unknown,
}

impl<'de> DeserializeSeed<'de> for Key {
    type Value = Found;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_str(self)
    }
}

impl Visitor<'_> for Key {
    type Value = Found;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a key")
    }

    fn visit_str<E: Error>(self, key: &str) -> Result<Self::Value, E> {
        let fields = self.0.fields;
        if let Some(field) = fields.iter().find(|field| field.camel == key) {
            return Ok(Found::Field(field, false));
        }
        if let Some(field) = fields.iter().find(|field| field.snake == key) {
            return Ok(Found::Field(field, true));
        }
        if self.0.form != Form::Wide || Shape::of_key(key).is_none() {
            return Ok(Found::Unknown);
        }
        let own = fields.iter().find(|field| Shape::of_key(field.camel).is_some()).map_or("spans", |field| field.camel);
        Ok(Found::Foreign(format!(
            "{key:?} does not belong here, expected {own:?}: send each signal to its own path or line"
        )))
    }
}

/// A message: nested in another, or one of a list.
pub(super) struct Nested<'w, 'o> {
    pub writer: &'w mut Writer<'o>,
    pub field: &'static Field,
    pub message: &'static Message,
}

impl Nested<'_, '_> {
    fn wrong<E>(self, found: Unexpected<'_>) -> Result<(), E> {
        self.writer.misshapen = true;
        self.writer.wrong(self.field, OBJECTS, &found.to_string());
        self.writer.settle(self.writer.out.len(), self.message.form);
        Ok(())
    }
}

impl<'de> DeserializeSeed<'de> for Nested<'_, '_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Nested<'_, '_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(OBJECTS)
    }

    /// A list keeps the places of its nulls: an array's are empty values; an absent span is one without ids.
    fn visit_unit<E: Error>(self) -> Result<(), E> {
        if matches!(self.message.form, Form::Plain | Form::Choice | Form::Log) {
            put_bytes(self.writer.out, self.field.number, &[]);
        }
        Ok(())
    }

    fn visit_bool<E: Error>(self, value: bool) -> Result<(), E> {
        self.wrong(Unexpected::Bool(value))
    }

    fn visit_u64<E: Error>(self, number: u64) -> Result<(), E> {
        self.wrong(Unexpected::Unsigned(number))
    }

    fn visit_i64<E: Error>(self, number: i64) -> Result<(), E> {
        self.wrong(Unexpected::Signed(number))
    }

    fn visit_f64<E: Error>(self, number: f64) -> Result<(), E> {
        self.wrong(Unexpected::Float(number))
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<(), E> {
        self.wrong(Unexpected::Str(text))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<(), A::Error> {
        while list.next_element::<IgnoredAny>()?.is_some() {}
        self.wrong(Unexpected::Seq)
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<(), A::Error> {
        nested(self.writer, self.field, self.message, map)
    }
}

/// An object as the message of a field.
pub(super) fn nested<'de, A: MapAccess<'de>>(
    writer: &mut Writer<'_>,
    field: &'static Field,
    message: &'static Message,
    mut map: A,
) -> Result<(), A::Error> {
    let (number, form) = (field.number, message.form);
    let before = writer.out.len();
    if form == Form::Choice && writer.depth >= DEEPEST {
        while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        let start = writer.open(number, form);
        put_bytes(writer.out, 1, TOO_DEEP.as_bytes());
        writer.close(start, form);
        writer.tally.bad_texts += 1;
        return Ok(());
    }
    let start = writer.open(number, form);
    let within = writer.within;
    writer.within |= form.stands_alone();
    if form == Form::Span {
        writer.ids = [false; 2];
    }
    writer.depth += 1;
    object(writer, message, map)?;
    writer.depth -= 1;
    if form == Form::Wide && writer.out.len() == start {
        // A resource or a scope of nothing would only take room here, twice what it took in JSON, and in the batch twenty times.
        writer.out.truncate(before);
        return Ok(());
    }
    writer.close(start, form);
    if form == Form::Span && writer.ids != [true; 2] {
        let missing = if writer.ids[0] { "spanId" } else { "traceId" };
        writer.wrong.get_or_insert_with(|| format!("{missing}: expected hex digits, not all zero, found none"));
    }
    writer.within = within;
    writer.settle(before, form);
    writer.good += u64::from(matches!(form, Form::Span | Form::Log | Form::Point) && writer.out.len() > before);
    Ok(())
}
