//! A text as a tree, for one that repeats keys: of each the last value holds, but for the lists that spans, log records and
//! data points come in, which are joined. Owns: which of several values holds. Keeps out: what values mean (`write`).

use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Value};

use super::fields::{Form, Kind, Message};

/// The tree of a text that is this message; `None` for one nested too deeply for a tree.
pub(super) fn read(text: &str, message: &'static Message) -> Option<Value> {
    let mut json = serde_json::Deserializer::from_str(text);
    Tree(Some(message)).deserialize(&mut json).ok()
}

/// A value; with the message that it is, or that its elements are, while there may be lists to join.
#[derive(Clone, Copy)]
struct Tree(Option<&'static Message>);

impl<'de> DeserializeSeed<'de> for Tree {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Tree {
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
        Ok(text.into())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Value, A::Error> {
        let mut values = Vec::new();
        while let Some(value) = list.next_element_seed(self)? {
            values.push(value);
        }
        Ok(Value::Array(values))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Value, A::Error> {
        let mut values = Map::new();
        while let Some(key) = map.next_key::<String>()? {
            let joined =
                self.0.and_then(|message| message.fields.iter().find(|field| field.joins(message) && field.is(&key)));
            let within = joined.and_then(|field| match field.kind {
                Kind::Many(message) => Some(message).filter(|message| message.form == Form::Wide),
                _ => None,
            });
            let value = map.next_value_seed(Tree(within))?;
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
