//! Export requests in protobuf, each with its length before it: as a varint (captures) or in four bytes, big-endian (the
//! Collector's `proto` format, field case B69e). With `compression: zstd` the Collector's file exporter frames either of
//! its formats this way, each message compressed on its own. Owns: the framing. Keeps out: decoding (`otlp`).

use bytes::Bytes;

use crate::lifecycle::packed::varint;
use crate::source::intake::{Payload, Receipt, Signal};
use crate::source::otlp::coding::{Coding, Inflate};
use crate::source::otlp::json::{self, Shape};
use crate::source::otlp::wire;

use super::stream::{Piece, Stream};
use super::{Place, Reading, Stopped};

/// How every zstd frame begins.
pub(super) const ZSTD: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];

/// How the length before each message is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Prefix {
    Varint,
    BigEndian,
}

impl Prefix {
    /// The length at the start of these bytes, and how many bytes it takes itself.
    fn read(self, bytes: &[u8]) -> Option<(u64, usize)> {
        match self {
            Self::Varint => {
                let mut rest = bytes;
                let length = varint(&mut rest)?;
                Some((length, bytes.len() - rest.len()))
            }
            Self::BigEndian => bytes.first_chunk().map(|length| (u64::from(u32::from_be_bytes(*length)), 4)),
        }
    }
}

pub(super) fn read(
    file: &str,
    prefix: Prefix,
    stream: &mut Stream,
    reading: &mut Reading<'_>,
    before: u64,
) -> Result<(), Stopped> {
    let mut hint = hint(file);
    for number in 1.. {
        let place = Place::Message(number);
        let head = stream.peek(10);
        if head.is_empty() {
            break;
        }
        reading.summary.pieces += 1;
        let Some((length, prefix_length)) = prefix.read(head) else {
            reading.bad(file, place, "expected the length of a message, found the end of the file");
            break;
        };
        let Some(length) = usize::try_from(length).ok().filter(|length| *length <= reading.limits.piece) else {
            let limit = reading.limits.piece;
            reading.bad(
                file,
                place,
                format!("{length} bytes long, more than the limit of {limit}; the rest is not read"),
            );
            break;
        };
        stream.skip(prefix_length);
        let Piece::Bytes { bytes, whole } = stream.message(length) else { break };
        if !whole {
            let there = bytes.len();
            reading.bad(file, place, format!("cut off: {there} of {length} bytes are there"));
            break;
        }
        if bytes.is_empty() {
            // An empty request is a good one.
            continue;
        }
        match payload(bytes, hint, reading.limits.piece) {
            Ok((signal, payload)) => {
                hint = Some(signal);
                let left_out = payload.tally.left_out();
                match (reading.payload(payload)?, left_out) {
                    (Err(reason), _) => reading.bad(file, place, reason),
                    (Ok(_), Some(words)) => reading.partly(file, place, words),
                    (Ok(Receipt { refused: refused @ 1.., reason, .. }), None) => {
                        let reason = reason.as_deref().unwrap_or("no reason was given");
                        reading.partly(
                            file,
                            place,
                            format!("left out {refused} of its spans or log records: {reason}"),
                        );
                    }
                    (Ok(_), None) => {}
                }
            }
            Err(reason) => reading.bad(file, place, reason),
        }
        reading.progressed(before + stream.read_bytes())?;
    }
    Ok(())
}

/// What a message holds: protobuf, or either form compressed.
fn payload(bytes: &[u8], hint: Option<Signal>, limit: usize) -> Result<(Signal, Payload), String> {
    let bytes = Bytes::copy_from_slice(bytes);
    let bytes = if bytes.starts_with(&ZSTD) {
        Coding::Zstd.inflate(bytes, limit).map_err(|error| match error {
            Inflate::TooLarge => format!("inflates to more than the limit of {limit} bytes"),
            Inflate::Broken(reason) => reason,
        })?
    } else {
        bytes
    };
    if bytes.first() == Some(&b'{') {
        let shape = json::first_key(&bytes, Shape::of_key).ok_or("expected spans, log records or metrics in JSON")?;
        let mut request = Vec::new();
        let tally = json::transcode(shape, &bytes, &mut request)?;
        return Ok((shape.signal(), Payload { tally, ..Payload::otlp(shape.signal(), request) }));
    }
    let signal = wire::signal_of(&bytes).or(hint);
    let signal = signal.ok_or("expected spans, log records or metrics in protobuf, found none")?;
    Ok((signal, Payload::otlp(signal, bytes)))
}

/// The signal a file's name speaks of: `dev.logs.pb.gz`.
fn hint(file: &str) -> Option<Signal> {
    let name = file.rsplit(['/', '\\']).next().unwrap_or(file);
    let named = |word| name.split(['.', '-', '_']).any(|part| part == word);
    match () {
        () if named("traces") => Some(Signal::Traces),
        () if named("logs") => Some(Signal::Logs),
        () if named("metrics") => Some(Signal::Metrics),
        () => None,
    }
}
