//! One attribute as one piece of bytes.
//!
//! The packed form is the protobuf encoding of OTLP's `KeyValue` (field 1 the key, field 2 the `AnyValue`), so that what
//! arrives in protobuf is kept verbatim, compared with `memcmp`, and read only when somebody looks. Sources in
//! other formats write the same form with [`Writer`]. Owns: reading, writing and cleaning of that form. Keeps out: what
//! an attribute means (`catalogue`), where the bytes live (`store`).

mod clean;

use std::borrow::Cow;

pub use clean::{TOO_DEEP, clean};

/// How deep arrays and maps may nest in a value; deeper ones are replaced by a note.
pub const MAX_DEPTH: usize = 32;

/// One value, borrowed from its packed bytes. Arrays and maps are read by iterating.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Value<'a> {
    /// The attribute is there, its value is not (an empty `AnyValue`, JSON `{}` or `null`).
    Empty,
    /// Text.
    Str(&'a str),
    /// A boolean.
    Bool(bool),
    /// A signed 64-bit integer, OTLP's only one. Larger ids arrive as text.
    Int(i64),
    /// A floating-point number.
    Double(f64),
    /// Raw bytes.
    Bytes(&'a [u8]),
    /// A list of values, itself packed; see [`Value::items`].
    Array(&'a [u8]),
    /// A list of keys and values, itself packed; see [`Value::entries`].
    Map(&'a [u8]),
}

impl<'a> Value<'a> {
    /// The text, when it is text.
    pub fn as_str(self) -> Option<&'a str> {
        match self {
            Self::Str(text) => Some(text),
            _ => None,
        }
    }

    /// The unsigned number, whether it came as an integer or as decimal text (spec lifecycle-spans §2: real captures
    /// carry nearly every number as a string; ids exceed 2^53). A negative integer is read as the two's complement it
    /// was written as: some exporters put u64 ids into OTLP's i64.
    pub fn as_u64(self) -> Option<u64> {
        match self {
            Self::Str(text) => text.trim().parse().ok(),
            Self::Int(number) => Some(number as u64),
            Self::Double(number) if number >= 0.0 && number.fract() == 0.0 && number < 2f64.powi(53) => {
                Some(number as u64)
            }
            _ => None,
        }
    }

    /// The count, likewise written; `None` for what is none: fewer than nothing, or more than anybody counts to (2^53).
    pub fn as_count(self) -> Option<u64> {
        self.as_u64().filter(|count| *count <= 1 << 53)
    }

    /// The number, whether it came as number or as text; never NaN or infinite.
    pub fn as_f64(self) -> Option<f64> {
        match self {
            Self::Str(text) => text.trim().parse().ok(),
            Self::Int(number) => Some(number as f64),
            Self::Double(number) => Some(number),
            _ => None,
        }
        .filter(|number: &f64| number.is_finite())
    }

    /// The truth value, whether it came as boolean or as the words `true`/`false` in any case.
    pub fn as_bool(self) -> Option<bool> {
        match self {
            Self::Bool(value) => Some(value),
            Self::Str(text) if text.eq_ignore_ascii_case("true") => Some(true),
            Self::Str(text) if text.eq_ignore_ascii_case("false") => Some(false),
            _ => None,
        }
    }

    /// The values of an array; nothing for any other kind.
    pub fn items(self) -> impl Iterator<Item = Value<'a>> {
        let bytes = if let Self::Array(bytes) = self { bytes } else { &[] };
        Fields(bytes).filter_map(|(number, field)| match (number, field) {
            (1, Wire::Bytes(value)) => Some(value_of(value)),
            _ => None,
        })
    }

    /// The keys and values of a map; nothing for any other kind.
    pub fn entries(self) -> impl Iterator<Item = (&'a str, Value<'a>)> {
        let bytes = if let Self::Map(bytes) = self { bytes } else { &[] };
        Fields(bytes).filter_map(|(number, field)| match (number, field) {
            (1, Wire::Bytes(entry)) => Some(read(entry)),
            _ => None,
        })
    }

    /// The value as a person reads it: text as it is, bytes as `0x…`, lists and maps in JSON's shape.
    pub fn display(self) -> Cow<'a, str> {
        match self {
            Self::Str(text) => Cow::Borrowed(text),
            other => {
                let mut out = String::new();
                other.write_to(&mut out);
                Cow::Owned(out)
            }
        }
    }

    fn write_to(self, out: &mut String) {
        use std::fmt::Write;
        let _ = match self {
            Self::Empty => write!(out, "null"),
            Self::Str(text) => write!(out, "{text:?}"),
            Self::Bool(value) => write!(out, "{value}"),
            Self::Int(number) => write!(out, "{number}"),
            Self::Double(number) => write!(out, "{number}"),
            Self::Bytes(bytes) => {
                out.push_str("0x");
                bytes.iter().try_for_each(|byte| write!(out, "{byte:02x}"))
            }
            Self::Array(_) => {
                out.push('[');
                for (index, item) in self.items().enumerate() {
                    out.push_str(if index > 0 { ", " } else { "" });
                    item.write_to(out);
                }
                write!(out, "]")
            }
            Self::Map(_) => {
                out.push('{');
                for (index, (key, value)) in self.entries().enumerate() {
                    let _ = write!(out, "{}{key:?}: ", if index > 0 { ", " } else { "" });
                    value.write_to(out);
                }
                write!(out, "}}")
            }
        };
    }
}

/// Key and value of one packed attribute. Bytes that are not a packed attribute read as an empty key and value.
#[inline]
pub fn read(attribute: &[u8]) -> (&str, Value<'_>) {
    match usual(attribute) {
        Some((key, text)) => (std::str::from_utf8(key).unwrap_or(""), str_or_bytes(text)),
        None => read_any(attribute),
    }
}

/// Key and text of an attribute in the form that nearly all have: a short key, a short text, nothing else.
#[inline]
fn usual(attribute: &[u8]) -> Option<(&[u8], &[u8])> {
    let [0x0a, length @ 0..=0x7f, rest @ ..] = attribute else { return None };
    let (key, value) = rest.split_at_checked(usize::from(*length))?;
    let [0x12, outer @ 0..=0x7f, 0x0a, inner, text @ ..] = value else { return None };
    (usize::from(*inner) == text.len() && usize::from(*outer) == text.len() + 2).then_some((key, text))
}

fn str_or_bytes(text: &[u8]) -> Value<'_> {
    std::str::from_utf8(text).map_or(Value::Bytes(text), Value::Str)
}

fn read_any(attribute: &[u8]) -> (&str, Value<'_>) {
    let (mut key, mut value) = ("", Value::Empty);
    for (number, field) in Fields(attribute) {
        match (number, field) {
            (1, Wire::Bytes(bytes)) => key = std::str::from_utf8(bytes).unwrap_or(""),
            (2, Wire::Bytes(bytes)) => value = value_of(bytes),
            _ => {}
        }
    }
    (key, value)
}

/// The value of one packed attribute, as [`read`] gives it, without a look at its key.
pub fn value(attribute: &[u8]) -> Value<'_> {
    let text = match attribute {
        // A value alone, kept apart from its key.
        [0x12, outer @ 0..=0x7f, 0x0a, inner, text @ ..]
            if usize::from(*inner) == text.len() && usize::from(*outer) == text.len() + 2 =>
        {
            Some(text)
        }
        _ => usual(attribute).map(|(_, text)| text),
    };
    if let Some(text) = text {
        return str_or_bytes(text);
    }
    let mut value = Value::Empty;
    for (number, field) in Fields(attribute) {
        if let (2, Wire::Bytes(bytes)) = (number, field) {
            value = value_of(bytes);
        }
    }
    value
}

/// The value in one packed `AnyValue`; the last of several members holds, as protobuf says.
pub fn value_of(bytes: &[u8]) -> Value<'_> {
    let mut value = Value::Empty;
    for (number, field) in Fields(bytes) {
        value = match (number, field) {
            (1, Wire::Bytes(text)) => str_or_bytes(text),
            (2, Wire::Number(number)) => Value::Bool(number != 0),
            (3, Wire::Number(number)) => Value::Int(number as i64),
            (4, Wire::Fixed64(bits)) => Value::Double(f64::from_bits(bits)),
            (5, Wire::Bytes(list)) => Value::Array(list),
            (6, Wire::Bytes(list)) => Value::Map(list),
            (7, Wire::Bytes(bytes)) => Value::Bytes(bytes),
            _ => value,
        };
    }
    value
}

/// One field of a protobuf message.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Wire<'a> {
    /// A varint.
    Number(u64),
    /// Eight bytes, little-endian.
    Fixed64(u64),
    /// Four bytes, little-endian.
    Fixed32(u32),
    /// A length and as many bytes.
    Bytes(&'a [u8]),
}

/// Walks the fields of a protobuf message, borrowed. Ends at the first malformed one; what is left tells whether all
/// was read (`rest().is_empty()`).
pub struct Fields<'a>(pub &'a [u8]);

impl<'a> Fields<'a> {
    /// What has not been read; empty after a whole well-formed message.
    pub fn rest(&self) -> &'a [u8] {
        self.0
    }
}

impl<'a> Iterator for Fields<'a> {
    type Item = (u32, Wire<'a>);

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        let mut bytes = self.0;
        let tag = varint(&mut bytes)?;
        let number = u32::try_from(tag >> 3).ok().filter(|number| *number > 0)?;
        let field = match tag & 7 {
            0 => Wire::Number(varint(&mut bytes)?),
            1 => Wire::Fixed64(u64::from_le_bytes(take(&mut bytes, 8)?.try_into().ok()?)),
            2 => {
                let length = varint(&mut bytes)?;
                Wire::Bytes(take(&mut bytes, usize::try_from(length).ok()?)?)
            }
            5 => Wire::Fixed32(u32::from_le_bytes(take(&mut bytes, 4)?.try_into().ok()?)),
            _ => return None,
        };
        self.0 = bytes;
        Some((number, field))
    }
}

/// Reads one base-128 varint and moves past it.
#[inline]
pub fn varint(bytes: &mut &[u8]) -> Option<u64> {
    if let [first @ 0..=0x7f, rest @ ..] = *bytes {
        *bytes = rest;
        return Some(u64::from(*first));
    }
    let mut value = 0u64;
    for (index, byte) in bytes.iter().take(10).enumerate() {
        value |= u64::from(byte & 0x7f) << (7 * index);
        if byte & 0x80 == 0 {
            *bytes = &bytes[index + 1..];
            return Some(value);
        }
    }
    None
}

#[inline]
fn take<'a>(bytes: &mut &'a [u8], length: usize) -> Option<&'a [u8]> {
    let (head, tail) = bytes.split_at_checked(length)?;
    *bytes = tail;
    Some(head)
}

/// Appends a base-128 varint.
#[inline]
pub fn put_varint(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// Appends a length-delimited field.
pub fn put_bytes(out: &mut Vec<u8>, number: u32, bytes: &[u8]) {
    put_varint(out, (u64::from(number) << 3) | 2);
    put_varint(out, bytes.len() as u64);
    out.extend_from_slice(bytes);
}

/// Appends a varint field.
pub fn put_number(out: &mut Vec<u8>, number: u32, value: u64) {
    put_varint(out, u64::from(number) << 3);
    put_varint(out, value);
}

/// Appends an eight-byte field.
pub fn put_fixed64(out: &mut Vec<u8>, number: u32, value: u64) {
    put_varint(out, (u64::from(number) << 3) | 1);
    out.extend_from_slice(&value.to_le_bytes());
}

/// Appends the members of an `AnyValue` for a borrowed value.
pub fn put_value(out: &mut Vec<u8>, value: Value<'_>) {
    match value {
        Value::Empty => {}
        Value::Str(text) => put_bytes(out, 1, text.as_bytes()),
        Value::Bool(value) => put_number(out, 2, u64::from(value)),
        Value::Int(number) => put_number(out, 3, number as u64),
        Value::Double(number) => put_fixed64(out, 4, number.to_bits()),
        Value::Array(list) => put_bytes(out, 5, list),
        Value::Map(list) => put_bytes(out, 6, list),
        Value::Bytes(bytes) => put_bytes(out, 7, bytes),
    }
}

/// The packed form of one attribute.
pub fn pack(key: &str, value: Value<'_>) -> Vec<u8> {
    let (mut inner, mut out) = (Vec::new(), Vec::new());
    put_value(&mut inner, value);
    put_bytes(&mut out, 1, key.as_bytes());
    put_bytes(&mut out, 2, &inner);
    out
}

#[cfg(test)]
mod tests;
