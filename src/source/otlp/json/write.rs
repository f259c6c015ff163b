//! Streaming transcoding: serde's visitors over the tables of `fields`, writing protobuf as keys come by. No tree is built.
//!
//! Owns: what each JSON value may look like for each kind of field, and the sentences when it looks otherwise. Keeps out:
//! which fields there are (`fields`), whole texts (`super`).

use std::fmt;

use base64::Engine;
use base64::alphabet;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use serde::de::{DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Unexpected, Visitor};

use crate::lifecycle::batch::Tally;
use crate::lifecycle::packed::{put_bytes, put_fixed64, put_number, put_varint};

use super::Shape;
use super::fields::{Field, Form, Kind, Message};

const LENIENT: GeneralPurposeConfig = GeneralPurposeConfig::new()
    .with_decode_padding_mode(DecodePaddingMode::Indifferent)
    .with_decode_allow_trailing_bits(true);
const STANDARD: GeneralPurpose = GeneralPurpose::new(&alphabet::STANDARD, LENIENT);
const URL_SAFE: GeneralPurpose = GeneralPurpose::new(&alphabet::URL_SAFE, LENIENT);

/// Bytes kept free for the length of a [`Form::Wide`] message.
const WIDE: usize = 5;

/// Where protobuf is written, and what was noticed on the way.
pub(super) struct Writer<'o> {
    pub out: &'o mut Vec<u8>,
    pub tally: Tally,
    /// A key came twice in one object: the text must be read again, with only the last of each.
    pub repeated: bool,
    /// Why the span being written is to be left out.
    refused: Option<String>,
}

impl<'o> Writer<'o> {
    pub fn new(out: &'o mut Vec<u8>) -> Self {
        Self { out, tally: Tally::default(), repeated: false, refused: None }
    }

    fn tag(&mut self, number: u32, wire: u32) {
        put_varint(self.out, u64::from(number << 3 | wire));
    }

    /// Begins a nested message; gives where its content starts.
    fn open(&mut self, number: u32, form: Form) -> usize {
        self.tag(number, 2);
        let room = if form == Form::Wide { WIDE } else { 1 };
        self.out.resize(self.out.len() + room, 0);
        self.out.len()
    }

    /// Ends a nested message: writes its length.
    fn close(&mut self, start: usize, form: Form) {
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
        let Some(Found { field, is_snake }) = found else {
            map.next_value::<IgnoredAny>()?;
            continue;
        };
        writer.tally.snake_case += u64::from(is_snake);
        writer.repeated |= seen & 1 << field.number != 0;
        let before = writer.out.len();
        map.next_value_seed(Value { writer, field, kind: &field.kind })?;
        seen |= 1 << field.number;
        if message.form == Form::KeyValue && field.number == 1 && seen != KEY {
            // The value came first.
            writer.out[start..].rotate_left(before - start);
        }
    }
    Ok(())
}

/// A known key, and how it was spelled.
struct Found {
    field: &'static Field,
    is_snake: bool,
}

/// The key of an object.
struct Key(&'static Message);

impl<'de> DeserializeSeed<'de> for Key {
    type Value = Option<Found>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_str(self)
    }
}

impl Visitor<'_> for Key {
    type Value = Option<Found>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a key")
    }

    fn visit_str<E: Error>(self, key: &str) -> Result<Self::Value, E> {
        let fields = self.0.fields;
        if let Some(field) = fields.iter().find(|field| field.camel == key) {
            return Ok(Some(Found { field, is_snake: false }));
        }
        if let Some(field) = fields.iter().find(|field| field.snake == key) {
            return Ok(Some(Found { field, is_snake: true }));
        }
        // Unknown keys are passed over, but not one under which something would be lost without a word.
        match self.0.form == Form::Wide && Shape::of_key(key).is_some() {
            true => Err(E::custom(format_args!(
                "{key:?} does not belong here, expected {:?}: send each signal to its own path or line",
                fields.iter().find(|field| Shape::of_key(field.camel).is_some()).map_or("spans", |field| field.camel),
            ))),
            false => Ok(None),
        }
    }
}

/// A message: nested in another, or one of a list.
struct Nested<'w, 'o> {
    writer: &'w mut Writer<'o>,
    field: &'static Field,
    message: &'static Message,
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
        write!(f, "objects in {}", self.field.camel)
    }

    /// A list keeps the places of its nulls: an array's are empty values; an absent span is one without ids.
    fn visit_unit<E: Error>(self) -> Result<(), E> {
        if matches!(self.message.form, Form::Plain | Form::Choice) {
            put_bytes(self.writer.out, self.field.number, &[]);
        }
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<(), A::Error> {
        nested(self.writer, self.field.number, self.message, map)
    }
}

fn nested<'de, A: MapAccess<'de>>(
    writer: &mut Writer<'_>,
    number: u32,
    message: &'static Message,
    map: A,
) -> Result<(), A::Error> {
    let before = writer.out.len();
    let start = writer.open(number, message.form);
    object(writer, message, map)?;
    if message.form == Form::Span
        && let Some(reason) = writer.refused.take()
    {
        writer.out.truncate(before);
        writer.tally.refused_spans += 1;
        writer.tally.refusal.get_or_insert(reason);
        return Ok(());
    }
    writer.close(start, message.form);
    Ok(())
}

/// The value of a known field.
struct Value<'w, 'o> {
    writer: &'w mut Writer<'o>,
    field: &'static Field,
    /// The field's, or of the elements of its list.
    kind: &'static Kind,
}

impl<'de> DeserializeSeed<'de> for Value<'_, '_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl Value<'_, '_> {
    /// Something of the wrong kind: it costs the span where it is one of its ids, otherwise the request.
    fn wrong<E: Error>(self, found: Unexpected<'_>) -> Result<(), E> {
        match *self.kind {
            Kind::Id(_) => {
                self.refuse(&found.to_string());
                Ok(())
            }
            Kind::Pointer(_) => Ok(()),
            _ => Err(E::invalid_type(found, &self)),
        }
    }

    fn refuse(self, found: &str) {
        let Kind::Id(bytes) = *self.kind else { return };
        let found: String = found.chars().take(48).collect();
        let reason = format!("{}: expected {} hex digits, found {found}", self.field.camel, 2 * bytes);
        self.writer.refused.get_or_insert(reason);
    }

    fn id(self, text: &str, bytes: usize) {
        if text.is_empty() {
            return;
        }
        let mut id = [0u8; 16];
        let digits = text.as_bytes();
        let is_hex = digits.len() == 2 * bytes
            && digits.chunks_exact(2).zip(&mut id).all(|(pair, byte)| {
                let digit = |c: u8| (c as char).to_digit(16);
                let (Some(high), Some(low)) = (digit(pair[0]), digit(pair[1])) else { return false };
                *byte = (high << 4 | low) as u8;
                true
            });
        if is_hex {
            put_bytes(self.writer.out, self.field.number, &id[..bytes]);
        } else {
            self.refuse(&format!("{text:?}"));
        }
    }

    /// A whole number from −2^63 to 2^64 − 1.
    fn whole<E: Error>(self, number: i128) -> Result<(), E> {
        let tag = self.field.number;
        match *self.kind {
            Kind::Fixed64 if number >= 0 => put_fixed64(self.writer.out, tag, number as u64),
            Kind::Fixed32 if u32::try_from(number).is_ok() => {
                put_varint(self.writer.out, u64::from(tag << 3 | 5));
                self.writer.out.extend_from_slice(&(number as u32).to_le_bytes());
            }
            Kind::Uint32 if u32::try_from(number).is_ok() => put_number(self.writer.out, tag, number as u64),
            Kind::Uint64 if number >= 0 => put_number(self.writer.out, tag, number as u64),
            Kind::Sint32 if i32::try_from(number).is_ok() => {
                let number = number as i32;
                put_number(self.writer.out, tag, u64::from((number << 1 ^ number >> 31) as u32));
            }
            Kind::SFixed64 => put_fixed64(self.writer.out, tag, number as u64),
            // Ids above 2^63 keep their bits (see `packed::Value::as_u64`).
            Kind::Int64 | Kind::Enum(_) => put_number(self.writer.out, tag, number as u64),
            Kind::Double => put_fixed64(self.writer.out, tag, (number as f64).to_bits()),
            Kind::Bool if number == 0 || number == 1 => put_number(self.writer.out, tag, number as u64),
            _ => {
                return match u64::try_from(number) {
                    Ok(number) => self.wrong(Unexpected::Unsigned(number)),
                    Err(_) => self.wrong(Unexpected::Signed(number as i64)),
                };
            }
        }
        Ok(())
    }

    fn float<E: Error>(self, number: f64) -> Result<(), E> {
        match *self.kind {
            Kind::Double => put_fixed64(self.writer.out, self.field.number, number.to_bits()),
            // 1.76e18 is a whole number.
            _ if number.fract() == 0.0 && (-(2f64.powi(63))..2f64.powi(64)).contains(&number) => {
                return self.whole(number as i128);
            }
            _ => return self.wrong(Unexpected::Float(number)),
        }
        Ok(())
    }
}

impl<'de> Visitor<'de> for Value<'_, '_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let what = match *self.kind {
            Kind::Text => "text",
            Kind::Bytes => "bytes in base64",
            Kind::Bool => "true or false",
            Kind::Id(_) | Kind::Pointer(_) => "hex digits",
            Kind::Fixed64 | Kind::Uint64 => "an unsigned 64-bit number or its decimal digits as text",
            Kind::Sint32 => "a signed 32-bit number",
            Kind::Int64 | Kind::SFixed64 => "a 64-bit number or its decimal digits as text",
            Kind::Fixed32 | Kind::Uint32 => "an unsigned 32-bit number",
            Kind::Double => "a number",
            Kind::Enum(_) => "a number or one of its names",
            Kind::One(_) => "an object",
            Kind::Many(_) | Kind::List(_) => "a list",
        };
        write!(f, "{what} in {}", self.field.camel)
    }

    /// `null` is what is not there.
    fn visit_unit<E: Error>(self) -> Result<(), E> {
        Ok(())
    }

    fn visit_bool<E: Error>(self, value: bool) -> Result<(), E> {
        match *self.kind {
            Kind::Bool => put_number(self.writer.out, self.field.number, u64::from(value)),
            _ => return self.wrong(Unexpected::Bool(value)),
        }
        Ok(())
    }

    fn visit_u64<E: Error>(self, number: u64) -> Result<(), E> {
        self.whole(i128::from(number))
    }

    fn visit_i64<E: Error>(self, number: i64) -> Result<(), E> {
        self.whole(i128::from(number))
    }

    fn visit_f64<E: Error>(self, number: f64) -> Result<(), E> {
        self.float(number)
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<(), E> {
        let number = self.field.number;
        match *self.kind {
            Kind::Text => put_bytes(self.writer.out, number, text.as_bytes()),
            Kind::Id(bytes) | Kind::Pointer(bytes) => self.id(text, bytes),
            Kind::Fixed64
            | Kind::SFixed64
            | Kind::Fixed32
            | Kind::Uint32
            | Kind::Uint64
            | Kind::Sint32
            | Kind::Int64
            | Kind::Double => {
                let digits = text.trim();
                if digits.is_empty() {
                    return Ok(());
                }
                return match (digits.parse::<i128>(), digits.parse::<f64>()) {
                    (Ok(whole), _) if (-(1 << 63)..1 << 64).contains(&whole) => self.whole(whole),
                    (_, Ok(float)) => self.float(float),
                    _ => self.wrong(Unexpected::Str(text)),
                };
            }
            Kind::Bytes => {
                let alphabet = if text.contains(['-', '_']) { URL_SAFE } else { STANDARD };
                match alphabet.decode(text.trim()) {
                    Ok(bytes) => put_bytes(self.writer.out, number, &bytes),
                    Err(_) => return Err(E::invalid_value(Unexpected::Str(text), &self)),
                }
            }
            Kind::Bool if text.eq_ignore_ascii_case("true") => put_number(self.writer.out, number, 1),
            Kind::Bool if text.eq_ignore_ascii_case("false") => put_number(self.writer.out, number, 0),
            Kind::Enum(names) => {
                let place = names.iter().position(|name| *name == text).map(|place| place as i64);
                // A name not known yet has no number here: it is left unspecified.
                if let Some(value) = place.or_else(|| text.trim().parse().ok()) {
                    put_number(self.writer.out, number, value as u64);
                }
            }
            _ => return self.wrong(Unexpected::Str(text)),
        }
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        if let Kind::One(message) = *self.kind {
            return nested(self.writer, self.field.number, message, map);
        }
        self.wrong(Unexpected::Map)?;
        while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<(), A::Error> {
        let Self { writer, field, kind } = self;
        match *kind {
            Kind::Many(message) => while list.next_element_seed(Nested { writer, field, message })?.is_some() {},
            Kind::List(kind) if kind.wire() == 2 => {
                while list.next_element_seed(Value { writer, field, kind })?.is_some() {}
            }
            Kind::List(kind) => {
                let start = writer.open(field.number, Form::Plain);
                loop {
                    let before = writer.out.len();
                    if list.next_element_seed(Value { writer, field, kind })?.is_none() {
                        break;
                    }
                    if writer.out.len() == before {
                        // What is not there is zero: the others keep their places.
                        let zero = if kind.wire() == 1 { 8 } else { 1 };
                        writer.out.resize(before + zero, 0);
                    } else {
                        // A field of its own without its tag, which is one byte in every table that has lists.
                        writer.out.remove(before);
                    }
                }
                writer.close(start, Form::Plain);
            }
            _ => {
                Value { writer, field, kind }.wrong(Unexpected::Seq)?;
                while list.next_element::<IgnoredAny>()?.is_some() {}
            }
        }
        Ok(())
    }
}
