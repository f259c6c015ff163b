//! OTLP/JSON → OTLP protobuf, transcoded while it is read: no tree, no generated structs.
//!
//! Accepts what the field sends (cases B01–B13): hex of any case, 64-bit numbers as numbers, texts or whole floats, enums as
//! numbers or names, null and missing lists, both key spellings, base64 of both alphabets, unknown fields of any shape.
//! What is wrong costs the smallest part that stands for itself, and is counted; deep nesting is replaced by a note, a
//! repeated key's last value holds (the lists that spans and log records come in are joined), lone surrogates and invalid
//! UTF-8 are replaced. Only a text that is no JSON, or with
//! nothing good in it, is refused whole. Owns: the JSON form. Keeps out: which lines or bodies there are (`http`,
//! `source::file`), what spans mean.

use std::borrow::Cow;
use std::fmt;

use serde::de::{DeserializeSeed, Deserializer as _, Error as _, IgnoredAny, MapAccess, Visitor};
use serde_json::Deserializer;

use crate::lifecycle::batch::Tally;
use crate::source::intake::Signal;

mod fields;
pub mod left_out;
mod metrics;
mod print;
mod repair;
mod tree;
mod value;
mod write;

use fields::Message;
pub use print::{ARRIVED, arrived, print, stamp};
use write::{OnlyResource, Root, Writer};

/// Objects and lists within each other up to here; readers of JSON commonly refuse more than 127. A list or map in a value
/// that would go beyond is replaced by a note, as the store does.
const DEEPEST: usize = 118;

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

/// Appends the text to `out` as an export request in protobuf, and tells what was left out or only counted. On an error
/// `out` is as it was.
///
/// # Errors
/// When the text is not JSON, or nothing in it is good: which field, what was expected and what came.
pub fn transcode(shape: Shape, json: &[u8], out: &mut Vec<u8>) -> Result<Tally, String> {
    transcode_within(usize::MAX, shape, json, out)
}

/// The same, where neither the text with what is replaced in it nor what comes of it may have more than `most` bytes.
///
/// # Errors
/// The same, and when it has more.
pub fn transcode_within(most: usize, shape: Shape, json: &[u8], out: &mut Vec<u8>) -> Result<Tally, String> {
    whole(out, |out| {
        let Read { tally, useless, .. } = transcode_text(shape, json, out, most)?;
        match tally.refusal {
            Some(reason) if useless => Err(reason),
            _ => Ok(tally),
        }
    })
}

/// The same of a part of an answer, of which there are others: that nothing in it is good is told in the tally, too.
///
/// # Errors
/// When the text is not JSON.
pub fn salvage(shape: Shape, json: &[u8], out: &mut Vec<u8>) -> Result<Tally, String> {
    whole(out, |out| Ok(transcode_text(shape, json, out, usize::MAX)?.tally))
}

/// Leaves `out` as it was when nothing comes of it.
fn whole(out: &mut Vec<u8>, transcode: impl FnOnce(&mut Vec<u8>) -> Result<Tally, String>) -> Result<Tally, String> {
    let start = out.len();
    let done = transcode(out);
    if done.is_err() {
        out.truncate(start);
    }
    done.map_err(|error| format!("not OTLP/JSON: {error}"))
}

fn transcode_text(shape: Shape, json: &[u8], out: &mut Vec<u8>, most: usize) -> Result<Read, String> {
    let start = out.len();
    let mut text = lossy(json.strip_prefix(b"\xef\xbb\xbf").unwrap_or(json), most)?;
    let mut bad_texts = u64::from(matches!(text, Cow::Owned(_)));
    let read = |text: &str, out: &mut Vec<u8>| read(shape, text, out, most);
    let mut done = read(&text, out);
    if done.is_err()
        && let Some((repaired, count)) = repair::repaired(&text)
    {
        bad_texts += count;
        out.truncate(start);
        done = read(&repaired, out);
        text = Cow::Owned(repaired);
    }
    let mut done = done?;
    if done.repeated
        // Rare: let a tree drop all but the last of each key, and read what it prints. One nested too deeply for a tree, or
        // too large for one, stays as it was read.
        && let Some(tree) = tree::read(&text, shape.message())
    {
        out.truncate(start);
        done = read(&tree.to_string(), out)?;
    }
    done.tally.bad_texts += bad_texts;
    Ok(done)
}

/// The text with what is not UTF-8 replaced, which may take three times its bytes.
fn lossy(json: &[u8], most: usize) -> Result<Cow<'_, str>, String> {
    let replaced = char::REPLACEMENT_CHARACTER.len_utf8();
    let size =
        |chunk: std::str::Utf8Chunk<'_>| chunk.valid().len() + if chunk.invalid().is_empty() { 0 } else { replaced };
    match std::str::from_utf8(json) {
        Ok(text) => Ok(text.into()),
        Err(_) if json.utf8_chunks().map(size).sum::<usize>() > most => {
            Err(format!("longer than {most} bytes with what is not UTF-8 replaced"))
        }
        Err(_) => Ok(String::from_utf8_lossy(json)),
    }
}

/// What a text came to.
struct Read {
    tally: Tally,
    /// A key was repeated in some object.
    repeated: bool,
    /// Nothing in it is good, and not for want of ids alone.
    useless: bool,
}

fn read(shape: Shape, text: &str, out: &mut Vec<u8>, most: usize) -> Result<Read, String> {
    let mut writer = Writer::new(out, most);
    let mut json = Deserializer::from_str(text);
    let message = shape.message();
    match shape {
        Shape::Request(_) => Root { writer: &mut writer, message }.deserialize(&mut json),
        Shape::Resource(_) => OnlyResource { writer: &mut writer, message }.deserialize(&mut json),
    }
    .and_then(|()| json.end())
    .map_err(|error| error.to_string())?;
    let Writer { mut tally, repeated, good, misshapen, at_home, foreign, .. } = writer;
    tally.refusal = tally.refusal.or(foreign);
    let nothing = good == 0;
    Ok(Read { repeated, useless: nothing && (misshapen || (tally.misplaced > 0 && !at_home)), tally })
}

/// Every shape that a text's own keys speak of, in their order.
pub fn shapes(json: &[u8]) -> Vec<Shape> {
    let mut shapes = Vec::new();
    first_key(json, |key| {
        if let Some(shape) = Shape::of_key(key).filter(|shape| !shapes.contains(shape)) {
            shapes.push(shape);
        }
        None::<()>
    });
    shapes
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
mod bounds;
#[cfg(test)]
mod full;
#[cfg(test)]
mod tests;
