//! What each JSON value may look like for each kind of field, and the sentences when it looks otherwise. Owns: the reading
//! of one value. Keeps out: what a wrong one costs (`write`), which fields there are (`fields`).

use std::fmt;

use base64::Engine;
use base64::alphabet;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use serde::de::{DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Unexpected, Visitor};

use crate::lifecycle::packed::{put_bytes, put_fixed64, put_number, put_varint};

use super::fields::{Field, Form, Kind};
use super::write::{Nested, Writer, nested};

const LENIENT: GeneralPurposeConfig = GeneralPurposeConfig::new()
    .with_decode_padding_mode(DecodePaddingMode::Indifferent)
    .with_decode_allow_trailing_bits(true);
const STANDARD: GeneralPurpose = GeneralPurpose::new(&alphabet::STANDARD, LENIENT);
const URL_SAFE: GeneralPurpose = GeneralPurpose::new(&alphabet::URL_SAFE, LENIENT);

/// The value of a known field.
pub(super) struct Value<'w, 'o> {
    pub writer: &'w mut Writer<'o>,
    pub field: &'static Field,
    /// The field's, or of the elements of its list.
    pub kind: &'static Kind,
}

impl<'de> DeserializeSeed<'de> for Value<'_, '_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl Value<'_, '_> {
    /// Something of the wrong kind.
    fn wrong<E>(self, found: Unexpected<'_>) -> Result<(), E> {
        self.refuse(&found.to_string());
        Ok(())
    }

    fn refuse(self, found: &str) {
        match *self.kind {
            // One that only points somewhere is left out.
            Kind::Pointer(_) => {}
            Kind::Id(bytes) => self.writer.wrong(self.field, &format!("{} hex digits", 2 * bytes), found),
            _ => {
                self.writer.misshapen = true;
                self.writer.wrong(self.field, self.kind.expected(), found);
            }
        }
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
        if !is_hex {
            return self.refuse(&format!("{text:?}"));
        }
        put_bytes(self.writer.out, self.field.number, &id[..bytes]);
        if matches!(self.kind, Kind::Id(_)) && id != [0; 16] {
            self.writer.has_id(self.field.number);
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
        write!(f, "{} in {}", self.kind.expected(), self.field.camel)
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
                    Err(_) => return self.wrong(Unexpected::Str(text)),
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
            return nested(self.writer, self.field, message, map);
        }
        while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        self.wrong(Unexpected::Map)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<(), A::Error> {
        let Self { writer, field, kind } = self;
        match *kind {
            Kind::Many(message) => {
                writer.depth += 1;
                while list.next_element_seed(Nested { writer, field, message })?.is_some() {}
                writer.depth -= 1;
            }
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
                    writer.fits()?;
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
                while list.next_element::<IgnoredAny>()?.is_some() {}
                return Value { writer, field, kind }.wrong(Unexpected::Seq);
            }
        }
        Ok(())
    }
}
