//! Walking one protobuf message, borrowed, with errors that say where. Owns: tags, lengths, skipping. Keeps out: which
//! fields there are (`wire`).

use crate::lifecycle::packed::varint;

/// Tags as patterns: the wire type in the name, the field number behind it.
macro_rules! tags {
    ($($wire:literal: $($name:ident = $number:literal),+;)+) => {
        $($(pub(super) const $name: u32 = $number << 3 | $wire;)+)+
    };
}
tags! {
    0: VAR_1 = 1, VAR_2 = 2, VAR_3 = 3, VAR_4 = 4, VAR_5 = 5, VAR_6 = 6, VAR_10 = 10, VAR_12 = 12, VAR_14 = 14;
    1: F64_1 = 1, F64_7 = 7, F64_8 = 8, F64_11 = 11;
    2: LEN_1 = 1, LEN_2 = 2, LEN_3 = 3, LEN_4 = 4, LEN_5 = 5, LEN_6 = 6, LEN_7 = 7, LEN_9 = 9, LEN_10 = 10, LEN_11 = 11, LEN_12 = 12, LEN_13 = 13, LEN_15 = 15;
    5: F32_6 = 6, F32_8 = 8, F32_16 = 16;
}

/// How deep groups may be in groups, which nobody writes any more.
const MOST_GROUPS: usize = 16;

/// Where a message is malformed and what was expected there.
#[derive(Debug, PartialEq)]
pub(super) struct Bad {
    message: &'static str,
    field: u32,
    expected: &'static str,
}

impl Bad {
    /// A message of almost nothing but empty parts.
    #[cold]
    pub fn hollow(message: &'static str) -> Self {
        Self { message, field: 0, expected: "parts that hold something, found mostly empty ones" }
    }
}

impl From<Bad> for String {
    fn from(bad: Bad) -> Self {
        let Bad { message, field, expected } = bad;
        match field {
            0 => format!("not valid protobuf: in {message}: expected {expected}"),
            field => format!("not valid protobuf: in {message}, field {field}: expected {expected}"),
        }
    }
}

/// One message being walked.
pub(super) struct Walk<'a> {
    bytes: &'a [u8],
    message: &'static str,
}

impl<'a> Walk<'a> {
    #[inline]
    pub fn over(message: &'static str, bytes: &'a [u8]) -> Self {
        Self { bytes, message }
    }

    /// How many bytes are left of the message.
    pub fn left(&self) -> usize {
        self.bytes.len()
    }

    /// The next field's tag (number and wire type); `None` at the end of the message.
    #[inline]
    pub fn tag(&mut self) -> Result<Option<u32>, Bad> {
        match *self.bytes {
            [] => Ok(None),
            [first @ 8..=0x7f, ref rest @ ..] => {
                self.bytes = rest;
                Ok(Some(u32::from(first)))
            }
            _ => match varint(&mut self.bytes).and_then(|tag| u32::try_from(tag).ok()) {
                Some(tag) if tag >= 8 => Ok(Some(tag)),
                _ => Err(self.bad(0, "a field number")),
            },
        }
    }

    /// The bytes of a length-delimited field.
    #[inline]
    pub fn bytes(&mut self, tag: u32) -> Result<&'a [u8], Bad> {
        let split = match *self.bytes {
            // Most lengths are one byte.
            [length @ 0..=0x7f, ref rest @ ..] => rest.split_at_checked(usize::from(length)),
            _ => varint(&mut self.bytes)
                .and_then(|length| usize::try_from(length).ok())
                .and_then(|length| self.bytes.split_at_checked(length)),
        };
        let Some((head, tail)) = split else {
            return Err(self.bad(tag, "a length that stays within the message"));
        };
        self.bytes = tail;
        Ok(head)
    }

    /// The value of a varint field.
    #[inline]
    pub fn number(&mut self, tag: u32) -> Result<u64, Bad> {
        varint(&mut self.bytes).ok_or_else(|| self.bad(tag, "a varint of at most ten bytes"))
    }

    /// The value of a 64-bit field.
    #[inline]
    pub fn fixed64(&mut self, tag: u32) -> Result<u64, Bad> {
        let Some((head, tail)) = self.bytes.split_first_chunk() else { return Err(self.bad(tag, "eight bytes")) };
        self.bytes = tail;
        Ok(u64::from_le_bytes(*head))
    }

    /// The value of a 32-bit field.
    #[inline]
    pub fn fixed32(&mut self, tag: u32) -> Result<u32, Bad> {
        let Some((head, tail)) = self.bytes.split_first_chunk() else { return Err(self.bad(tag, "four bytes")) };
        self.bytes = tail;
        Ok(u32::from_le_bytes(*head))
    }

    /// Moves past a field that is of no use here.
    pub fn skip(&mut self, tag: u32) -> Result<(), Bad> {
        self.skip_within(tag, MOST_GROUPS)
    }

    /// A group has further fields up to a tag of its own number.
    fn skip_within(&mut self, tag: u32, groups: usize) -> Result<(), Bad> {
        match tag & 7 {
            3 if groups > 0 => loop {
                match self.tag()? {
                    Some(inner) if inner == tag + 1 => return Ok(()),
                    Some(inner) => self.skip_within(inner, groups - 1)?,
                    None => return Err(self.bad(tag, "the end of a group")),
                }
            },
            0 => self.number(tag).map(drop),
            1 => self.fixed64(tag).map(drop),
            2 => self.bytes(tag).map(drop),
            5 => self.fixed32(tag).map(drop),
            _ => Err(self.bad(tag, "a varint, a fixed number, a length or a group (wire type 0, 1, 2, 3 or 5)")),
        }
    }

    #[cold]
    fn bad(&self, tag: u32, expected: &'static str) -> Bad {
        Bad { message: self.message, field: tag >> 3, expected }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_are_passed_over_with_all_that_is_in_them() {
        // Field 9 as a group of a number, a text and a group of nothing; then field 1.
        let group = [9 << 3 | 3, 8, 5, 2 << 3 | 2, 2, b'h', b'i', 3 << 3 | 3, 3 << 3 | 4, 9 << 3 | 4];
        let bytes = [&group[..], &[8, 7]].concat();
        let mut walk = Walk::over("test", &bytes);
        let tag = walk.tag().unwrap().unwrap();
        assert_eq!(walk.skip(tag), Ok(()));
        assert_eq!((walk.tag(), walk.number(VAR_1)), (Ok(Some(VAR_1)), Ok(7)));
        let deep = vec![9 << 3 | 3; 99];
        for bad in [&group[..9], &[9 << 3 | 3, 8 << 3 | 4], &deep, &[9 << 3 | 4]] {
            let mut walk = Walk::over("test", bad);
            let tag = walk.tag().unwrap().unwrap();
            assert!(walk.skip(tag).is_err(), "{bad:?}");
        }
    }
}
