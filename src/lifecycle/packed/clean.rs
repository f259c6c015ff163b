//! Making a packed attribute clean: well-formed, canonical, its text scrubbed.

use std::borrow::Cow;

use super::{Fields, MAX_DEPTH, Wire, put_bytes, put_fixed64, put_number};
use crate::lifecycle::text;

/// What stands in for a value nested deeper than [`MAX_DEPTH`].
pub const TOO_DEEP: &str = "[nested too deeply: dropped]";

/// A well-formed, canonical packed attribute with all its text scrubbed: borrowed when the bytes already are one.
///
/// Invalid UTF-8 and control characters become U+FFFD (see [`text::scrub`]); values nested deeper than
/// [`MAX_DEPTH`] become a note; unknown or malformed fields of the message are left out, the rest is kept.
pub fn clean(attribute: &[u8]) -> Cow<'_, [u8]> {
    if is_clean_attribute(attribute, 0) {
        return Cow::Borrowed(attribute);
    }
    let mut out = Vec::with_capacity(attribute.len());
    rewrite_attribute(attribute, &mut out, 0);
    Cow::Owned(out)
}

fn is_clean_attribute(bytes: &[u8], depth: usize) -> bool {
    // Exactly key, then at most one value: the form every encoder writes. An absent key is an empty one.
    let mut fields = Fields(bytes);
    let key = match fields.next() {
        Some((1, Wire::Bytes(key))) => key,
        _ => return false,
    };
    let value = match fields.next() {
        None => return fields.rest().is_empty() && text::is_clean(key),
        Some((2, Wire::Bytes(value))) => value,
        Some(_) => return false,
    };
    fields.rest().is_empty() && text::is_clean(key) && is_clean_value(value, depth)
}

fn is_clean_value(bytes: &[u8], depth: usize) -> bool {
    let mut fields = Fields(bytes);
    let clean = match fields.next() {
        None => true,
        Some((1, Wire::Bytes(text))) => text::is_clean(text),
        Some((2 | 3, Wire::Number(_)) | (4, Wire::Fixed64(_)) | (7, Wire::Bytes(_))) => true,
        Some((5, Wire::Bytes(list))) => depth < MAX_DEPTH && all(list, |value| is_clean_value(value, depth + 1)),
        Some((6, Wire::Bytes(list))) => depth < MAX_DEPTH && all(list, |entry| is_clean_attribute(entry, depth + 1)),
        Some(_) => false,
    };
    clean && fields.rest().is_empty()
}

fn all(list: &[u8], clean: impl Fn(&[u8]) -> bool) -> bool {
    let mut fields = Fields(list);
    fields.by_ref().all(|(number, field)| matches!(field, Wire::Bytes(item) if number == 1 && clean(item)))
        && fields.rest().is_empty()
}

fn rewrite_attribute(bytes: &[u8], out: &mut Vec<u8>, depth: usize) {
    let (mut key, mut value) = (&[][..], None);
    for (number, field) in Fields(bytes) {
        match (number, field) {
            (1, Wire::Bytes(bytes)) => key = bytes,
            (2, Wire::Bytes(bytes)) => value = Some(bytes),
            _ => {}
        }
    }
    put_bytes(out, 1, text::scrub(key).as_bytes());
    if let Some(value) = value {
        let mut inner = Vec::with_capacity(value.len());
        rewrite_value(value, &mut inner, depth);
        put_bytes(out, 2, &inner);
    }
}

fn rewrite_value(bytes: &[u8], out: &mut Vec<u8>, depth: usize) {
    let mut last = None;
    for (number, field) in Fields(bytes) {
        if matches!((number, field), (1 | 5 | 6 | 7, Wire::Bytes(_)) | (2 | 3, Wire::Number(_)) | (4, Wire::Fixed64(_)))
        {
            last = Some((number, field));
        }
    }
    match last {
        Some((1, Wire::Bytes(bytes))) => put_bytes(out, 1, text::scrub(bytes).as_bytes()),
        Some((5 | 6, _)) if depth >= MAX_DEPTH => put_bytes(out, 1, TOO_DEEP.as_bytes()),
        Some((number @ (5 | 6), Wire::Bytes(list))) => {
            let mut inner = Vec::with_capacity(list.len());
            for (item_number, item) in Fields(list) {
                let (1, Wire::Bytes(item)) = (item_number, item) else { continue };
                let mut one = Vec::with_capacity(item.len());
                if number == 5 {
                    rewrite_value(item, &mut one, depth + 1);
                } else {
                    rewrite_attribute(item, &mut one, depth + 1);
                }
                put_bytes(&mut inner, 1, &one);
            }
            put_bytes(out, number, &inner);
        }
        Some((number, Wire::Bytes(bytes))) => put_bytes(out, number, bytes),
        Some((number, Wire::Number(value))) => put_number(out, number, value),
        Some((number, Wire::Fixed64(value))) => put_fixed64(out, number, value),
        _ => {}
    }
}
