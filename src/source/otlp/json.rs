//! OTLP/JSON → OTLP protobuf, transcoded while it is read: no tree, no generated structs.
//!
//! Accepts what the field sends (cases B01–B13): hex of any case, 64-bit numbers as numbers, texts or whole floats, enums as
//! numbers or names, null and missing lists, both key spellings, base64 of both alphabets, unknown fields of any shape.
//! Deep nesting is refused without harm, a repeated key's last value holds, lone surrogates and invalid UTF-8 are replaced.
//! Owns: the JSON form. Keeps out: which lines or bodies there are (`http`, `source::file`), what spans mean.

use std::borrow::Cow;
use std::fmt;

use serde::de::{DeserializeSeed, Deserializer as _, Error as _, IgnoredAny, MapAccess, Visitor};
use serde_json::Deserializer;

use crate::lifecycle::batch::Tally;
use crate::source::intake::Signal;

mod fields;
mod metrics;
mod print;
mod write;

use fields::Message;
pub use print::{ARRIVED, arrived, print, stamp};
use write::{OnlyResource, Root, Writer};

/// What a JSON text is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// An export request: `{"resourceSpans": […]}` and its like.
    Request(Signal),
    /// One resource of it without the outer list: `{"resource": …, "scopeSpans": […]}` (field case B69a).
    Resource(Signal),
}

impl Shape {
    /// The shape of which this is a key, in either spelling.
    pub fn of_key(key: &str) -> Option<Self> {
        Some(match key {
            "resourceSpans" | "resource_spans" => Self::Request(Signal::Traces),
            "resourceLogs" | "resource_logs" => Self::Request(Signal::Logs),
            "resourceMetrics" | "resource_metrics" => Self::Request(Signal::Metrics),
            "scopeSpans" | "scope_spans" => Self::Resource(Signal::Traces),
            "scopeLogs" | "scope_logs" => Self::Resource(Signal::Logs),
            "scopeMetrics" | "scope_metrics" => Self::Resource(Signal::Metrics),
            _ => return None,
        })
    }

    /// The signal it carries.
    pub fn signal(self) -> Signal {
        let (Self::Request(signal) | Self::Resource(signal)) = self;
        signal
    }

    fn message(self) -> &'static Message {
        match self {
            Self::Request(Signal::Traces) => &fields::TRACES,
            Self::Request(Signal::Logs) => &fields::LOGS,
            Self::Request(Signal::Metrics) => &metrics::METRICS,
            Self::Resource(Signal::Traces) => &fields::RESOURCE_SPANS,
            Self::Resource(Signal::Logs) => &fields::RESOURCE_LOGS,
            Self::Resource(Signal::Metrics) => &metrics::RESOURCE_METRICS,
        }
    }
}

/// Appends the text to `out` as an export request in protobuf, and tells what was refused or only counted. On an error `out`
/// is as it was.
///
/// # Errors
/// When the text is not JSON, or a field holds what it cannot: which field, what was expected and what came, and where.
pub fn transcode(shape: Shape, json: &[u8], out: &mut Vec<u8>) -> Result<Tally, String> {
    let start = out.len();
    let done = transcode_text(shape, json, out);
    if done.is_err() {
        out.truncate(start);
    }
    done
}

fn transcode_text(shape: Shape, json: &[u8], out: &mut Vec<u8>) -> Result<Tally, String> {
    let start = out.len();
    let mut text = String::from_utf8_lossy(json.strip_prefix(b"\xef\xbb\xbf").unwrap_or(json));
    let mut bad_texts = u64::from(matches!(text, Cow::Owned(_)));
    let mut read = read(shape, &text, out);
    if read.is_err()
        && let Some((repaired, count)) = without_lone_surrogates(&text)
    {
        bad_texts += count;
        out.truncate(start);
        read = self::read(shape, &repaired, out);
        text = Cow::Owned(repaired);
    }
    let done = |(mut tally, _): (Tally, bool)| {
        tally.bad_texts += bad_texts;
        tally
    };
    match read {
        Ok((_, true)) => {
            // Rare: let a tree drop all but the last of each key, and read what it prints.
            let tree: serde_json::Value = serde_json::from_str(&text).map_err(|error| error.to_string())?;
            out.truncate(start);
            self::read(shape, &tree.to_string(), out).map(done)
        }
        read => read.map(done),
    }
    .map_err(|error| format!("not OTLP/JSON: {error}"))
}

/// Reads a text; tells whether a key was repeated in some object.
fn read(shape: Shape, text: &str, out: &mut Vec<u8>) -> Result<(Tally, bool), String> {
    let mut writer = Writer::new(out);
    let mut json = Deserializer::from_str(text);
    let message = shape.message();
    match shape {
        Shape::Request(_) => Root { writer: &mut writer, message }.deserialize(&mut json),
        Shape::Resource(_) => OnlyResource { writer: &mut writer, message }.deserialize(&mut json),
    }
    .and_then(|()| json.end())
    .map_err(|error| error.to_string())?;
    Ok((writer.tally, writer.repeated))
}

/// The text with every `\ud800`–`\udfff` that is not half of a pair replaced by `\ufffd`, and how many there were; `None`
/// when there are none.
fn without_lone_surrogates(text: &str) -> Option<(String, u64)> {
    let bytes = text.as_bytes();
    let unit = |at: usize| {
        let digits = bytes.get(at..at + 6)?.strip_prefix(b"\\u")?;
        u16::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()
    };
    let (mut out, mut from, mut at, mut count) = (String::new(), 0, 0, 0);
    while let Some(next) = memchr::memchr(b'\\', &bytes[at..]) {
        at += next;
        at += match unit(at) {
            Some(0xd800..=0xdbff) if matches!(unit(at + 6), Some(0xdc00..=0xdfff)) => 12,
            Some(0xd800..=0xdfff) => {
                out.push_str(&text[from..at]);
                out.push_str("\\ufffd");
                from = at + 6;
                count += 1;
                6
            }
            Some(_) => 6,
            // Past the backslash and what it escapes; one at the end of the text is the parser's to refuse.
            None => 1 + usize::from(bytes.get(at + 1).is_some_and(u8::is_ascii)),
        };
    }
    (count > 0).then(|| {
        out.push_str(&text[from..]);
        (out, count)
    })
}

/// The first of an object's own keys that `wanted` makes something of; reads no further than that key.
pub fn first_key<T>(json: &[u8], wanted: impl FnMut(&str) -> Option<T>) -> Option<T> {
    struct Keys<'f, T, F>(&'f mut Option<T>, F);
    impl<'de, T, F: FnMut(&str) -> Option<T>> Visitor<'de> for Keys<'_, T, F> {
        type Value = ();

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("an object")
        }

        fn visit_map<A: MapAccess<'de>>(mut self, mut map: A) -> Result<(), A::Error> {
            while let Some(key) = map.next_key::<Cow<'de, str>>()? {
                if let Some(found) = (self.1)(&key) {
                    *self.0 = Some(found);
                    // The only way to stop a deserializer early.
                    return Err(A::Error::custom("found"));
                }
                map.next_value::<IgnoredAny>()?;
            }
            Ok(())
        }
    }
    let mut found = None;
    let _ = Deserializer::from_slice(json).deserialize_map(Keys(&mut found, wanted));
    found
}

#[cfg(test)]
mod full;
#[cfg(test)]
mod tests;
