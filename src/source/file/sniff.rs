//! Telling what a file holds by its first bytes. Owns: the shapes. Keeps out: compression (`open`), reading on.

use crate::lifecycle::packed::varint;

use super::frames::{Prefix, ZSTD};

/// Bytes that are enough to tell.
pub(super) const ENOUGH: usize = 4 << 10;

/// What a file holds.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Content {
    Empty,
    /// JSON, or at least text.
    Text,
    /// Protobuf messages, each with its length before it.
    Frames(Prefix),
    /// None of them; the sentence says what was expected and what came.
    Unknown(String),
}

pub(super) fn content(head: &[u8]) -> Content {
    let first = skip_blank(head).first().copied();
    let is_json = matches!(first, Some(b'{' | b'['));
    let mut rest = head;
    if varint(&mut rest).is_some_and(|length| is_request(rest, length)) {
        return Content::Frames(Prefix::Varint);
    }
    if let Some((length, rest)) = head.split_first_chunk()
        && (is_request(rest, u64::from(u32::from_be_bytes(*length))) || rest.starts_with(&ZSTD))
    {
        return Content::Frames(Prefix::BigEndian);
    }
    match first {
        None => Content::Empty,
        Some(_) if is_json || is_text(head) => Content::Text,
        Some(_) => {
            let found: String = head.iter().take(8).map(|byte| format!(" {byte:02x}")).collect();
            Content::Unknown(format!(
                "expected OTLP JSON lines, request-trace JSON lines or length-prefixed OTLP protobuf (plain, gzip or \
                 zstd), found bytes{found}"
            ))
        }
    }
}

/// Whether these bytes begin an export request of this length: field 1, within it a resource, a scope or a URL. A short text
/// line may look like a length and a field, so the field's own length and content are looked at, too.
fn is_request(bytes: &[u8], length: u64) -> bool {
    let Some((0x0a, mut rest)) = bytes.split_first().map(|(tag, rest)| (*tag, rest)) else { return false };
    let before = rest.len();
    let Some(inner) = varint(&mut rest) else { return false };
    let fits = inner <= length.saturating_sub(1 + (before - rest.len()) as u64);
    fits && (inner == 0 || matches!(rest, [0x0a | 0x12 | 0x1a, ..]))
}

fn is_text(head: &[u8]) -> bool {
    let text = head.iter().filter(|byte| matches!(byte, 0x20..|b'\t'| b'\r' | b'\n')).count();
    text * 20 >= head.len() * 19 && !head.contains(&0)
}

/// What follows byte order marks, NULs and white space (field case B66).
pub(super) fn skip_blank(mut bytes: &[u8]) -> &[u8] {
    loop {
        bytes = match bytes {
            [0xef, 0xbb, 0xbf, rest @ ..] | [0 | b' ' | b'\t' | b'\r' | b'\n', rest @ ..] => rest,
            _ => return bytes,
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_stays_text() {
        for text in [
            &b"{\"resourceSpans\":[]}\n"[..],
            b"\xef\xbb\xbf{}",
            b"\0\0\0\0\0\0{\"a\":1}",
            b"{\n  \"resourceSpans\": [\n",
            b"[\n{",
            b"\0\0\0{\n  \"a\"",
            b"\n\n{}",
            b"rt\":1}]}\n{}",
            b"}\n{\"resourceSpans\":[]}",
            b"x\n",
        ] {
            assert_eq!(content(text), Content::Text, "{:?}", String::from_utf8_lossy(text));
        }
        assert_eq!(content(b""), Content::Empty);
        assert_eq!(content(b"\r\n \0"), Content::Empty);
        assert!(matches!(content(&[0x89, b'P', b'N', b'G', 0, 1, 2, 3]), Content::Unknown(_)));
    }

    #[test]
    fn frames_are_told_by_length_and_first_field() {
        let message = |length: u8| [vec![0x0a, length - 2, 0x12], vec![b'x'; usize::from(length) - 3]].concat();
        for length in [10, 91, 123] {
            let varint = [vec![length], message(length)].concat();
            assert_eq!(content(&varint), Content::Frames(Prefix::Varint), "{length}");
            let big = [vec![0, 0, 0, length], message(length)].concat();
            assert_eq!(content(&big), Content::Frames(Prefix::BigEndian), "{length}");
        }
        // Compressed one by one (the Collector's `compression: zstd`).
        assert_eq!(content(&[&[0, 0, 0x96, 0x8d][..], &ZSTD].concat()), Content::Frames(Prefix::BigEndian));
        assert_eq!(content(&[0x80, 0x02, 0x0a, 0xfd, 1, 0x0a]), Content::Frames(Prefix::Varint));
    }
}
