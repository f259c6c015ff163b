//! A text as a tree, for one that repeats keys: of each the last value holds, but for the lists that spans, log records and
//! data points come in, which are joined. Owns: which of several values holds. Keeps out: what values mean (`write`).

use std::cell::Cell;
use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Value};

use super::fields::{Form, Kind, Message};

/// The most bytes that a tree may take: a small object takes a hundred times what it takes as a text.
const MOST: usize = 32 << 20;
/// What an object with a key takes: its map sets room aside for eleven.
const OBJECT: usize = 11 * (size_of::<String>() + size_of::<Value>());

/// The tree of a text that is this message; `None` for one nested too deeply for a tree, or too large for one.
pub(super) fn read(text: &str, message: &'static Message) -> Option<Value> {
    let mut json = serde_json::Deserializer::from_str(text);
    Tree { within: Some(message), room: &Cell::new(MOST) }.deserialize(&mut json).ok()
}

/// A value.
#[derive(Clone, Copy)]
struct Tree<'r> {
    /// The message that it is, or that its elements are, while there may be lists to join.
    within: Option<&'static Message>,
    /// Bytes that there is room for.
    room: &'r Cell<usize>,
}

impl Tree<'_> {
    /// Takes room.
    fn take<E: Error>(self, bytes: usize) -> Result<(), E> {
        self.room.set(self.room.get().checked_sub(bytes).ok_or_else(|| E::custom("too large for a tree"))?);
        Ok(())
    }
}

impl<'de> DeserializeSeed<'de> for Tree<'_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Tree<'_> {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any value")
    }

    fn visit_unit<E: Error>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E: Error>(self, value: bool) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_u64<E: Error>(self, number: u64) -> Result<Value, E> {
        Ok(number.into())
    }

    fn visit_i64<E: Error>(self, number: i64) -> Result<Value, E> {
        Ok(number.into())
    }

    fn visit_f64<E: Error>(self, number: f64) -> Result<Value, E> {
        Ok(number.into())
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Value, E> {
        self.take(text.len())?;
        Ok(text.into())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Value, A::Error> {
        let mut values = Vec::new();
        while let Some(value) = list.next_element_seed(self)? {
            // Lists grow to twice what they hold.
            self.take(2 * size_of::<Value>())?;
            values.push(value);
        }
        Ok(Value::Array(values))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Value, A::Error> {
        let mut values = Map::new();
        while let Some(key) = map.next_key::<String>()? {
            self.take(key.len() + if values.len().is_multiple_of(6) { OBJECT } else { 0 })?;
            let joined = self
                .within
                .and_then(|message| message.fields.iter().find(|field| field.joins(message) && field.is(&key)));
            let within = joined.and_then(|field| match field.kind {
                Kind::Many(message) => Some(message).filter(|message| message.form == Form::Wide),
                _ => None,
            });
            let value = map.next_value_seed(Tree { within, ..self })?;
            match (joined.and_then(|_| values.get_mut(&key)), value) {
                (Some(Value::Array(before)), Value::Array(more)) => before.extend(more),
                // Nothing, which takes nothing away.
                (Some(Value::Array(_)), Value::Null) => {}
                (_, value) => {
                    values.insert(key, value);
                }
            }
        }
        Ok(Value::Object(values))
    }
}
