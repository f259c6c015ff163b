//! Telling what a file holds by its first bytes. Owns: the shapes. Keeps out: compression (`open`), reading on.

use crate::lifecycle::packed::varint;

use super::frames::{Prefix, ZSTD};

/// Bytes that are enough to tell.
pub(super) const ENOUGH: usize = 4 << 10;

/// Bytes behind blanks that tell as well when no more are there yet: three lengths and their fields, and to spare.
const SURE: usize = 32;

/// So many blanks in a row are no length before a message: a file that was cut while it was written begins with NULs.
const RUN: usize = 16;
/// So far before the end of a run of NULs a message may begin: its length has NULs in it, too.
const LENGTH: usize = 4;

/// What a file holds.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Content {
    Empty,
    /// So many bytes that are to be skipped before it can be told.
    Blank(usize),
    /// JSON, or at least text.
    Text,
    /// Protobuf messages, each with its length before it.
    Frames(Prefix),
    /// None of them; the sentence says what was expected and what came.
    Unknown(String),
}

pub(super) fn content(head: &[u8]) -> Content {
    let blank = head.len() - skip_blank(head).len();
    if blank == head.len() && blank > 0 {
        // Where it goes on, the last of them are looked at again: a length may begin with them.
        return Content::Blank(if blank < ENOUGH { blank } else { blank - RUN - 1 });
    }
    if blank > RUN {
        let is_start = |at: &usize| head[at - 1] == 0 && frames(&head[*at..]).is_some();
        return Content::Blank((blank - LENGTH..=blank).find(is_start).unwrap_or(blank));
    }
    if let Some(prefix) = frames(head) {
        return Content::Frames(prefix);
    }
    match head.get(blank) {
        None => Content::Empty,
        Some(b'{' | b'[') => Content::Text,
        Some(_) if is_text(head) => Content::Text,
        Some(_) => {
            let found: String = head.iter().take(8).map(|byte| format!(" {byte:02x}")).collect();
            Content::Unknown(format!(
                "expected OTLP JSON lines, request-trace JSON lines or length-prefixed OTLP protobuf (plain, gzip or \
                 zstd), found bytes{found}"
            ))
        }
    }
}

/// Whether these bytes tell what follows when no more are there yet. A second byte that is a line feed may be the field
/// behind a length, as NULs may be part of one.
pub(super) fn tells(head: &[u8]) -> bool {
    let begin = skip_blank(head);
    let is_no_length = matches!(begin, [b' '..=b'~', next, ..] if *next != b'\n') && !head.contains(&0);
    (is_no_length || begin.len() >= SURE) && !matches!(content(head), Content::Unknown(_))
}

/// How the length before the first message is written, if one begins here.
fn frames(head: &[u8]) -> Option<Prefix> {
    let mut rest = head;
    if varint(&mut rest).is_some_and(|length| is_request(rest, length)) {
        return Some(Prefix::Varint);
    }
    let (length, rest) = head.split_first_chunk()?;
    let is_one = is_request(rest, u64::from(u32::from_be_bytes(*length))) || rest.starts_with(&ZSTD);
    is_one.then_some(Prefix::BigEndian)
}

/// A resource, a scope, a URL: what a request's field holds.
const PARTS: [u8; 3] = [0x0a, 0x12, 0x1a];

/// Whether these bytes begin an export request of this length: field 1, within it a resource, a scope or a URL. A short text
/// line or some line feeds may look like a length and a field, so the lengths of the field and of the one within it are
/// looked at, too.
fn is_request(bytes: &[u8], length: u64) -> bool {
    let Some((inner, rest)) = field(bytes, &[0x0a], length) else { return false };
    match rest {
        // Nothing of it: another one may follow, or nothing more.
        _ if inner == 0 => length == 2 || rest.first() == Some(&0x0a),
        [tag] => PARTS.contains(tag),
        _ => field(rest, &PARTS, inner).is_some(),
    }
}

/// The length of the field that these bytes begin with, and what follows that length: one of these fields, and it fits into
/// what is around it.
fn field<'b>(bytes: &'b [u8], tags: &[u8], around: u64) -> Option<(u64, &'b [u8])> {
    let (tag, mut rest) = bytes.split_first()?;
    let before = rest.len();
    let length = varint(&mut rest).filter(|_| tags.contains(tag))?;
    let room = around.checked_sub(1 + (before - rest.len()) as u64)?;
    (length <= room).then_some((length, rest))
}

fn is_text(head: &[u8]) -> bool {
    let text = head.iter().filter(|byte| matches!(byte, 0x20..|b'\t'| b'\r' | b'\n')).count();
    text * 20 >= head.len() * 19 && !head.contains(&0)
}

/// What follows byte order marks, NULs and white space (field case B66).
pub(super) fn skip_blank(mut bytes: &[u8]) -> &[u8] {
    // Very many of one kind: what a cut file begins with.
    while let Some(rest) = bytes.strip_prefix(&[0; 4096]) {
        bytes = rest;
    }
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
        assert_eq!(content(b"\r\n \0"), Content::Blank(4));
        assert!(matches!(content(&[0x89, b'P', b'N', b'G', 0, 1, 2, 3]), Content::Unknown(_)));
    }

    #[test]
    fn frames_are_told_by_length_and_first_field() {
        let message =
            |length: u8| [vec![0x0a, length - 2, 0x12, length - 4], vec![b'x'; usize::from(length) - 4]].concat();
        for length in [10, 91, 123] {
            let varint = [vec![length], message(length)].concat();
            assert_eq!(content(&varint), Content::Frames(Prefix::Varint), "{length}");
            let big = [vec![0, 0, 0, length], message(length)].concat();
            assert_eq!(content(&big), Content::Frames(Prefix::BigEndian), "{length}");
        }
        // Compressed one by one (the Collector's `compression: zstd`).
        assert_eq!(content(&[&[0, 0, 0x96, 0x8d][..], &ZSTD].concat()), Content::Frames(Prefix::BigEndian));
        assert_eq!(content(&[0x80, 0x02, 0x0a, 0xfd, 1, 0x0a]), Content::Frames(Prefix::Varint));
        assert_eq!(content(&[2, 0x0a, 0]), Content::Frames(Prefix::Varint));
    }

    #[test]
    fn the_first_bytes_of_a_pipe_tell_when_no_more_can_change_it() {
        for told in [&b"{\""[..], b"\xef\xbb\xbf{ ", b"\n\n[{", b"bad\n"] {
            assert!(tells(told), "{:?}", String::from_utf8_lossy(told));
        }
        // They may be lengths, or become none of any form.
        for open in [&b""[..], b"{", b"{\n", b"\n", b"\0\0\0", b"\0\0{x", b"x\n", &[0x80, 2, 0x0a], &[1; 40]] {
            assert!(!tells(open), "{:?}", String::from_utf8_lossy(open));
        }
        assert!(tells(&[&[0, 0, 0, 203, 0x0a, 200, 1, 0x12, 197, 1][..], &[b'x'; 30]].concat()));
    }

    #[test]
    fn blanks_are_no_lengths() {
        for blank in [&b"\n"[..], b"\0", b"\r\n", b" \n", b" \n\t", b"\0\n", b"\0\0\n\n", b"\n\0\0", b"\0\0\0\n\n\n"] {
            for count in 1..40 {
                let blanks = blank.repeat(count);
                let mut text = [&blanks[..], b"{\"resourceSpans\":[]}\n"].concat();
                if let Content::Blank(skipped) = content(&text) {
                    text.drain(..skipped);
                }
                assert_eq!(content(&text), Content::Text, "{count} of {blank:?}");
                assert!(matches!(content(&blanks), Content::Blank(_)), "{count} of {blank:?}");
            }
        }
        // What comes behind NULs may be messages; their lengths have NULs in them, too.
        let message = [&[0x0a, 200, 1, 0x12, 197, 1][..], &[b'x'; 197]].concat();
        for length in [&[0, 0, 0, 203][..], &[203, 1]] {
            for nuls in [17, 40, 3000, ENOUGH - 1, ENOUGH, ENOUGH + 1, 3 * ENOUGH] {
                let mut file = [&vec![0; nuls][..], length, &message].concat();
                while let Content::Blank(skipped) = content(&file[..file.len().min(ENOUGH)]) {
                    file.drain(..skipped);
                }
                assert!(matches!(content(&file), Content::Frames(_)), "{nuls} before {length:?}");
            }
        }
    }
}
