//! Fixtures for the tests of this room.

use std::io::Read;

use flate2::read::MultiGzDecoder;

use crate::lifecycle::packed::varint;

/// A capture, inflated.
pub(super) fn capture(name: &str) -> Vec<u8> {
    let path = format!("{}/tests/fixtures/{name}", env!("CARGO_MANIFEST_DIR"));
    let mut bytes = Vec::new();
    MultiGzDecoder::new(std::fs::File::open(path).unwrap()).read_to_end(&mut bytes).unwrap();
    bytes
}

/// The messages of a `.pb.gz` capture.
pub(super) fn messages(name: &str) -> Vec<Vec<u8>> {
    let bytes = capture(name);
    let (mut rest, mut messages) = (&bytes[..], Vec::new());
    while let Some(length) = varint(&mut rest) {
        let (message, after) = rest.split_at(length as usize);
        messages.push(message.to_vec());
        rest = after;
    }
    assert!(!messages.is_empty());
    messages
}

/// The lines of a `.jsonl.gz` capture.
pub(super) fn lines(name: &str) -> Vec<Vec<u8>> {
    capture(name).split(|byte| *byte == b'\n').filter(|line| !line.is_empty()).map(<[u8]>::to_vec).collect()
}
