//! OTLP protobuf → OTLP/JSON, printed while it is walked, over the tables of `fields`: the way back of `write`.
//!
//! What was decoded once prints to one line that OTLP's readers take (ids in hex, 64-bit numbers as texts, enums as numbers,
//! bytes in base64), and reads back as the same request. Not there any more: fields this version does not know, and where a
//! sender repeated a single field, all but its last; and what came as a log record and is none. Owns: that form. Keeps out:
//! files and their lines (`tap::record`).

use std::io::Write as _;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;

use super::fields::{Field, Form, Kind, Message};
use super::{DEEPEST, Shape};
use crate::lifecycle::packed::TOO_DEEP;
use crate::source::intake::Signal;
use crate::source::otlp::walk::Walk;
use crate::source::otlp::wire;

/// A field as it stands on the wire.
#[derive(Clone, Copy)]
enum Raw<'a> {
    Bytes(&'a [u8]),
    Number(u64),
}

/// Appends an export request in protobuf to `out` as one line of JSON without its line feed; tells how many values were too
/// deep to be printed. On an error `out` is as it was.
///
/// # Errors
/// When the bytes are not well-formed protobuf.
pub fn print(signal: Signal, bytes: &[u8], out: &mut Vec<u8>) -> Result<u64, String> {
    let start = out.len();
    let mut printer = Printer { out, found: Vec::new(), too_deep: 0 };
    let done = printer.object(Shape::Request(signal).message(), bytes, 1);
    let too_deep = printer.too_deep;
    if done.is_err() {
        out.truncate(start);
    }
    done.map(|()| too_deep)
}

/// The key in which a recording says when a request arrived, nanoseconds since the epoch as text. OTLP's readers must ignore
/// keys they do not know.
pub const ARRIVED: &str = "reqtopArrivedUnixNano";

/// Adds to the request printed from `start` on when it arrived; false, and nothing, when the request is empty.
pub fn stamp(out: &mut Vec<u8>, start: usize, arrived_ns: u64) -> bool {
    let is_full = out.len() > start + 2 && out.pop() == Some(b'}');
    if is_full {
        let _ = write!(out, ",\"{ARRIVED}\":\"{arrived_ns}\"}}");
    }
    is_full
}

/// When a recorded request arrived; `None` for one that does not say.
pub fn arrived(line: &[u8]) -> Option<u64> {
    let tail = &line[line.len().saturating_sub(ARRIVED.len() + 32)..];
    let at = memchr::memmem::rfind(tail, ARRIVED.as_bytes())?;
    let digits = tail[at + ARRIVED.len()..].strip_prefix(b"\":\"")?.strip_suffix(b"\"}")?;
    std::str::from_utf8(digits).ok()?.parse().ok()
}

struct Printer<'a, 'o> {
    out: &'o mut Vec<u8>,
    /// The fields found in the messages that are open, the outermost first.
    found: Vec<(u8, Raw<'a>)>,
    too_deep: u64,
}

impl<'a> Printer<'a, '_> {
    /// One message as an object that stands `depth` deep.
    fn object(&mut self, message: &'static Message, bytes: &'a [u8], depth: usize) -> Result<(), String> {
        let from = self.found.len();
        self.find(message, bytes)?;
        if message.form == Form::Choice && self.found.len() > from {
            // Of several, the last one holds.
            let last = self.found.len() - 1;
            self.found.swap(from, last);
            self.found.truncate(from + 1);
        }
        let found = &mut self.found[from..];
        if !found.is_sorted_by_key(|(place, _)| *place) {
            found.sort_by_key(|(place, _)| *place);
        }
        let (mut at, to) = (from, self.found.len());
        self.out.push(b'{');
        while at < to {
            let place = self.found[at].0;
            let same = self.found[at..to].iter().take_while(|(other, _)| *other == place).count();
            let field = &message.fields[usize::from(place)];
            let before = self.out.len();
            if at > from && self.out.last() != Some(&b'{') {
                self.out.push(b',');
            }
            let _ = write!(self.out, "\"{}\":", field.camel);
            if !self.field(field, at..at + same, depth)? {
                self.out.truncate(before);
            }
            at += same;
        }
        self.out.push(b'}');
        self.found.truncate(from);
        Ok(())
    }

    /// Finds the known fields of a message.
    fn find(&mut self, message: &'static Message, bytes: &'a [u8]) -> Result<(), String> {
        let mut walk = Walk::over(message.fields[0].camel, bytes);
        while let Some(tag) = walk.tag().map_err(String::from)? {
            let raw = match tag & 7 {
                0 => walk.number(tag).map(Raw::Number),
                1 => walk.fixed64(tag).map(Raw::Number),
                2 => walk.bytes(tag).map(Raw::Bytes),
                5 => walk.fixed32(tag).map(|number| Raw::Number(number.into())),
                _ => {
                    walk.skip(tag).map_err(String::from)?;
                    continue;
                }
            };
            let raw = raw.map_err(String::from)?;
            let known = message.fields.iter().position(|field| field.number == tag >> 3 && field.takes(tag & 7));
            if let Some(place) = known {
                self.found.push((place as u8, raw));
            }
        }
        Ok(())
    }

    /// The value of a field that stands at these places of [`Printer::found`]; false when it says nothing.
    fn field(&mut self, field: &'static Field, at: std::ops::Range<usize>, depth: usize) -> Result<bool, String> {
        if let Kind::Many(message) = field.kind {
            self.out.push(b'[');
            let start = self.out.len();
            for place in at {
                let (_, Raw::Bytes(bytes)) = self.found[place] else { continue };
                // What was refused because it is none must not read back as one.
                if message.form == Form::Log && wire::is_foreign(bytes) {
                    continue;
                }
                self.comma(start);
                self.nested(message, bytes, depth + 2)?;
            }
            self.out.push(b']');
            return Ok(true);
        }
        if let Kind::List(kind) = field.kind {
            return self.list(field.camel, kind, at).map(|()| true);
        }
        self.value(&field.kind, self.found[at.end - 1].1, depth)
    }

    /// A list of values, numbers packed or each by itself.
    fn list(&mut self, name: &'static str, kind: &'static Kind, at: std::ops::Range<usize>) -> Result<(), String> {
        self.out.push(b'[');
        let start = self.out.len();
        for place in at {
            let raw = self.found[place].1;
            let mut packed = match raw {
                Raw::Bytes(bytes) if kind.wire() != 2 => Walk::over(name, bytes),
                alone => {
                    self.comma(start);
                    self.value(kind, alone, 0)?;
                    continue;
                }
            };
            while packed.left() > 0 {
                let number = match kind.wire() {
                    1 => packed.fixed64(0),
                    5 => packed.fixed32(0).map(u64::from),
                    _ => packed.number(0),
                };
                self.comma(start);
                self.value(kind, Raw::Number(number.map_err(String::from)?), 0)?;
            }
        }
        self.out.push(b']');
        Ok(())
    }

    /// A comma before all but the first of a list that starts there.
    fn comma(&mut self, start: usize) {
        if self.out.len() > start {
            self.out.push(b',');
        }
    }

    /// One value; false when it says nothing.
    fn value(&mut self, kind: &'static Kind, raw: Raw<'a>, depth: usize) -> Result<bool, String> {
        match raw {
            Raw::Bytes(bytes) => match kind {
                Kind::One(message) => self.nested(message, bytes, depth + 1)?,
                Kind::Id(_) | Kind::Pointer(_) if bytes.is_empty() => return Ok(false),
                Kind::Id(_) | Kind::Pointer(_) => {
                    self.out.push(b'"');
                    bytes.iter().for_each(|byte| _ = write!(self.out, "{byte:02x}"));
                    self.out.push(b'"');
                }
                Kind::Bytes => _ = write!(self.out, "\"{}\"", BASE64.encode(bytes)),
                _ => text(self.out, bytes),
            },
            Raw::Number(number) => {
                let _ = match kind {
                    Kind::Bool => write!(self.out, "{}", number != 0),
                    Kind::Fixed64 | Kind::Uint64 => write!(self.out, "\"{number}\""),
                    Kind::Sint32 => write!(self.out, "{}", (number as u32 >> 1) as i32 ^ -((number & 1) as i32)),
                    Kind::Int64 | Kind::SFixed64 => write!(self.out, "\"{}\"", number as i64),
                    Kind::Enum(_) => write!(self.out, "{}", number as i32),
                    Kind::Double => double(self.out, f64::from_bits(number)),
                    _ => write!(self.out, "{}", number as u32),
                };
            }
        }
        Ok(true)
    }

    fn nested(&mut self, message: &'static Message, bytes: &'a [u8], depth: usize) -> Result<(), String> {
        if message.form == Form::Choice && depth > DEEPEST {
            self.too_deep += 1;
            let _ = write!(self.out, "{{\"stringValue\":\"{TOO_DEEP}\"}}");
            return Ok(());
        }
        self.object(message, bytes, depth)
    }
}

/// A text in quotes. What is not UTF-8 is replaced: JSON has no other way.
fn text(out: &mut Vec<u8>, bytes: &[u8]) {
    // Writing to memory does not fail, nor does a text.
    let _ = serde_json::to_writer(out, &String::from_utf8_lossy(bytes));
}

fn double(out: &mut Vec<u8>, number: f64) -> std::io::Result<()> {
    match number {
        number if number.is_finite() => serde_json::to_writer(out, &number).map_err(Into::into),
        number if number.is_nan() => out.write_all(b"\"NaN\""),
        number if number > 0.0 => out.write_all(b"\"Infinity\""),
        _ => out.write_all(b"\"-Infinity\""),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lifecycle::packed::{put_bytes, put_fixed64, put_number};
    use crate::source::otlp::json::full;
    use crate::source::otlp::json::transcode;
    use crate::source::otlp::tests::messages;
    use opentelemetry_proto::tonic::collector::logs::v1::ExportLogsServiceRequest;
    use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
    use prost::Message as _;

    fn printed(signal: Signal, bytes: &[u8]) -> (String, u64) {
        let mut out = Vec::new();
        let too_deep = print(signal, bytes, &mut out).unwrap();
        (String::from_utf8(out).unwrap(), too_deep)
    }

    #[test]
    fn captures_print_to_lines_that_read_back_as_the_same_requests() {
        for (signal, name) in [(Signal::Traces, "dev-sim.traces.pb.gz"), (Signal::Logs, "dev-sim.logs.pb.gz")] {
            for message in messages(name) {
                let (line, too_deep) = printed(signal, &message);
                assert!(!line.contains('\n') && too_deep == 0);
                let mut back = Vec::new();
                transcode(Shape::Request(signal), line.as_bytes(), &mut back).unwrap();
                match signal {
                    Signal::Traces => assert_eq!(
                        ExportTraceServiceRequest::decode(&back[..]).unwrap(),
                        ExportTraceServiceRequest::decode(&message[..]).unwrap()
                    ),
                    _ => assert_eq!(
                        ExportLogsServiceRequest::decode(&back[..]).unwrap(),
                        ExportLogsServiceRequest::decode(&message[..]).unwrap()
                    ),
                }
            }
        }
    }

    #[test]
    fn every_field_of_every_signal_comes_back() {
        fn check<M: prost::Message + Default + PartialEq + std::fmt::Debug>(signal: Signal, request: M) {
            let (line, _) = printed(signal, &request.encode_to_vec());
            let mut back = Vec::new();
            transcode(Shape::Request(signal), line.as_bytes(), &mut back).unwrap();
            assert_eq!(M::decode(&back[..]).unwrap(), request, "{line}");
            // Nothing is left at its default, which would come back whatever happens: Rust prints each as one of these.
            let told = format!("{request:?}").replace(", key_strindex: 0", "");
            for nothing in ["None", ": 0,", ": 0 ", "\"\"", "[]", "false"] {
                assert!(!told.contains(nothing), "{nothing} in {told}");
            }
        }
        check(Signal::Traces, full::traces());
        check(Signal::Logs, full::logs());
        check(Signal::Metrics, full::metrics());
        // Numbers of a list that do not stand packed, as older senders write them.
        let (mut point, mut bytes) = (Vec::new(), Vec::new());
        (1..3).for_each(|count| put_fixed64(&mut point, 6, count));
        put_bytes(&mut bytes, 7, &[0, 0, 0, 0, 0, 0, 0xf0, 0x3f]);
        point.extend_from_slice(&bytes);
        for number in [1, 9, 2, 2, 1] {
            bytes = std::mem::take(&mut point);
            put_bytes(&mut point, number, &bytes);
        }
        let line = printed(Signal::Metrics, &point).0;
        assert!(line.contains(r#"{"bucketCounts":["1","2"],"explicitBounds":[1.0]}"#), "{line}");
    }

    fn wrapped(value: &[u8]) -> Vec<u8> {
        let (mut pair, mut span) = (Vec::new(), Vec::new());
        put_bytes(&mut pair, 1, b"k");
        put_bytes(&mut pair, 2, value);
        put_bytes(&mut span, 1, &[0xab; 16]);
        // Fields out of order, one repeated, one unknown, one of the wrong wire type.
        put_number(&mut span, 6, 2);
        put_bytes(&mut span, 5, b"first");
        put_number(&mut span, 99, 7);
        put_number(&mut span, 5, 7);
        put_bytes(&mut span, 9, &pair);
        put_bytes(&mut span, 2, &[1; 8]);
        put_bytes(&mut span, 9, &pair);
        put_bytes(&mut span, 4, b"");
        put_bytes(&mut span, 5, b"na\xffme\"\x01");
        let mut bytes = span;
        for number in [2, 2, 1] {
            let inner = std::mem::take(&mut bytes);
            put_bytes(&mut bytes, number, &inner);
        }
        bytes
    }

    #[test]
    fn whatever_the_wire_holds_is_one_json_object() {
        let (mut value, mut either) = (Vec::new(), Vec::new());
        put_bytes(&mut value, 1, b"v");
        put_number(&mut either, 2, 1);
        put_number(&mut either, 3, u64::MAX);
        let span = |value: &str| {
            format!(
                r#"{{"resourceSpans":[{{"scopeSpans":[{{"spans":[{{"traceId":"{}","spanId":"0101010101010101","name":"na{}me\"\u0001","kind":2,"attributes":[{value},{value}]}}]}}]}}]}}"#,
                "ab".repeat(16),
                '\u{fffd}'
            )
        };
        assert_eq!(printed(Signal::Traces, &wrapped(&value)).0, span(r#"{"key":"k","value":{"stringValue":"v"}}"#));
        assert_eq!(printed(Signal::Traces, &wrapped(&either)).0, span(r#"{"key":"k","value":{"intValue":"-1"}}"#));
        assert_eq!(printed(Signal::Traces, &wrapped(b"")).0, span(r#"{"key":"k","value":{}}"#));
        assert_eq!(printed(Signal::Traces, b""), ("{}".into(), 0));
        let mut out = b"before".to_vec();
        assert!(print(Signal::Traces, &[0xff], &mut out).is_err());
        assert_eq!(out, b"before");
    }

    #[test]
    fn what_is_no_log_record_does_not_become_one() {
        let mut foreign = Vec::new();
        put_fixed64(&mut foreign, 1, 7);
        let mut good = foreign.clone();
        put_bytes(&mut foreign, 1, &[1; 16]);
        let mut request = Vec::new();
        put_bytes(&mut good, 3, b"INFO");
        let mut scope = Vec::new();
        [&foreign, &good, &foreign].into_iter().for_each(|record| put_bytes(&mut scope, 2, record));
        let mut resource = Vec::new();
        put_bytes(&mut resource, 2, &scope);
        put_bytes(&mut request, 1, &resource);
        let record = r#"{"timeUnixNano":"7","severityText":"INFO"}"#;
        let line = format!(r#"{{"resourceLogs":[{{"scopeLogs":[{{"logRecords":[{record}]}}]}}]}}"#);
        assert_eq!(printed(Signal::Logs, &request).0, line);
    }

    #[test]
    fn the_time_of_arrival_stands_behind_the_request() {
        let mut out = b"before".to_vec();
        print(Signal::Traces, &wrapped(b""), &mut out).unwrap();
        assert_eq!(arrived(&out), None);
        assert!(stamp(&mut out, 6, 1_796_000_000_000_000_001));
        assert_eq!(arrived(&out), Some(1_796_000_000_000_000_001));
        transcode(Shape::Request(Signal::Traces), &out[6..], &mut Vec::new()).unwrap();
        let mut empty = b"before{}".to_vec();
        assert!(!stamp(&mut empty, 6, 1) && empty == b"before{}");
    }

    #[test]
    fn what_is_nested_too_deep_is_replaced_and_still_reads_back() {
        for list in [5, 6] {
            let mut value = Vec::new();
            for _ in 0..200 {
                let (mut entry, mut values, mut outer) = (Vec::new(), Vec::new(), Vec::new());
                put_bytes(&mut entry, 2, &value);
                put_bytes(&mut values, 1, if list == 6 { &entry } else { &value });
                put_bytes(&mut outer, list, &values);
                value = outer;
            }
            let (line, too_deep) = printed(Signal::Traces, &wrapped(&value));
            assert_eq!(too_deep, 2);
            assert!(line.contains(TOO_DEEP));
            transcode(Shape::Request(Signal::Traces), line.as_bytes(), &mut Vec::new()).unwrap();
        }
    }
}
