//! Pieces: every distinct run of bytes kept once, counted by reference, found by hash.
//!
//! Owns: the bytes and their numbers. A number is used again after its last reference is gone. Keeps out: what the bytes
//! mean, but for the field of an attribute, looked up once when the piece is first kept.

use std::borrow::Cow;
use std::hash::BuildHasher;

use foldhash::fast::RandomState;
use hashbrown::HashTable;

use crate::lifecycle::account::{chunk, entry};
use crate::lifecycle::catalogue::Field;

/// What stands for "no piece".
pub const NONE: u32 = u32::MAX;

#[derive(Debug)]
struct Entry {
    bytes: Box<[u8]>,
    refs: u32,
    hash: [u8; 3],
    field: Field,
}

/// A set of pieces.
#[derive(Default)]
pub struct Interner {
    entries: Vec<Entry>,
    free: Vec<u32>,
    table: HashTable<u32>,
    state: RandomState,
    bytes: usize,
}

/// Bytes that each piece takes beside its own: its entry, in a list that is three quarters full, and its place in the table.
const OVERHEAD: usize = size_of::<Entry>() * 4 / 3 + entry::<u32>();

impl Interner {
    #[inline]
    fn hash(&self, bytes: &[u8]) -> [u8; 3] {
        let [_, _, a, b, c, ..] = self.state.hash_one(bytes).to_le_bytes();
        [a, b, c]
    }

    /// The number of these bytes, when they are kept already. Adds no reference.
    #[inline]
    pub fn find(&self, bytes: &[u8]) -> Option<u32> {
        self.find_hashed(bytes, self.hash(bytes))
    }

    #[inline]
    fn find_hashed(&self, bytes: &[u8], hash: [u8; 3]) -> Option<u32> {
        let entries = &self.entries;
        self.table
            .find(spread(hash), |piece| {
                let entry = &entries[*piece as usize];
                entry.hash == hash && *entry.bytes == *bytes
            })
            .copied()
    }

    /// The number of these bytes, kept from now on if they were not. Adds no reference: a piece nobody refers to
    /// goes with [`Interner::release`] of its next reference, so callers add one at once.
    pub fn keep(&mut self, bytes: &[u8], field: impl FnOnce() -> Field) -> u32 {
        let hash = self.hash(bytes);
        match self.find_hashed(bytes, hash) {
            Some(piece) => piece,
            None => self.add(bytes, hash, field),
        }
    }

    /// The number of these bytes, and whether they are kept only from now on; otherwise as [`Interner::keep`].
    /// `clean` makes what is to be kept of bytes that are not known.
    pub fn keep_clean<'a>(
        &mut self,
        bytes: &'a [u8],
        clean: impl FnOnce(&'a [u8]) -> Cow<'a, [u8]>,
        field: impl FnOnce(&[u8]) -> Field,
    ) -> (u32, bool) {
        let hash = self.hash(bytes);
        if let Some(piece) = self.find_hashed(bytes, hash) {
            return (piece, false);
        }
        match clean(bytes) {
            Cow::Borrowed(bytes) => (self.add(bytes, hash, || field(bytes)), true),
            Cow::Owned(bytes) => match self.find(&bytes) {
                Some(piece) => (piece, false),
                None => (self.keep(&bytes, || field(&bytes)), true),
            },
        }
    }

    fn add(&mut self, bytes: &[u8], hash: [u8; 3], field: impl FnOnce() -> Field) -> u32 {
        let entry = Entry { bytes: bytes.into(), refs: 0, hash, field: field() };
        self.bytes += chunk(bytes.len()) + OVERHEAD;
        let piece = match self.free.pop() {
            Some(piece) => {
                self.entries[piece as usize] = entry;
                piece
            }
            None => {
                self.entries.push(entry);
                (self.entries.len() - 1) as u32
            }
        };
        let entries = &self.entries;
        self.table.insert_unique(spread(hash), piece, |piece| spread(entries[*piece as usize].hash));
        piece
    }

    /// Adds one reference and tells the piece's field.
    #[inline]
    pub fn hold(&mut self, piece: u32) -> Field {
        let entry = &mut self.entries[piece as usize];
        entry.refs += 1;
        entry.field
    }

    /// Takes one reference away; with the last one the piece goes.
    pub fn release(&mut self, piece: u32) {
        let entry = &mut self.entries[piece as usize];
        entry.refs = entry.refs.saturating_sub(1);
        if entry.refs > 0 {
            return;
        }
        if let Ok(slot) = self.table.find_entry(spread(entry.hash), |other| *other == piece) {
            slot.remove();
            let bytes = std::mem::take(&mut self.entries[piece as usize].bytes);
            self.bytes -= chunk(bytes.len()) + OVERHEAD;
            self.free.push(piece);
        }
    }

    /// Lets go of a piece that was kept just now and is not held by anybody.
    pub fn drop_unheld(&mut self, piece: u32) {
        self.entries[piece as usize].refs += 1;
        self.release(piece);
    }

    /// The bytes of a piece.
    #[inline]
    pub fn get(&self, piece: u32) -> &[u8] {
        &self.entries[piece as usize].bytes
    }

    /// The field of an attribute piece.
    #[inline]
    pub fn field(&self, piece: u32) -> Field {
        self.entries[piece as usize].field
    }

    /// The text of a text piece. Pieces are cleaned before they are kept, so this never fails on them.
    pub fn text(&self, piece: u32) -> &str {
        std::str::from_utf8(self.get(piece)).unwrap_or("")
    }

    /// Bytes held.
    pub fn memory(&self) -> usize {
        self.bytes
    }

    /// Pieces held.
    #[cfg(test)]
    pub fn len(&self) -> usize {
        self.table.len()
    }
}

/// The table takes its control bits from the top and its position from the bottom of 64.
#[inline]
fn spread([a, b, c]: [u8; 3]) -> u64 {
    u64::from(u32::from_le_bytes([a, b, c, 0])).wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_bytes_are_one_piece_and_go_with_the_last_reference() {
        let mut interner = Interner::default();
        let a = interner.keep(b"a", || Field::Mode);
        assert_eq!(interner.keep(b"a", || unreachable!()), a);
        assert_eq!(interner.hold(a), Field::Mode);
        interner.hold(a);
        let b = interner.keep(b"b", || Field::Other);
        interner.hold(b);
        assert_ne!(a, b);
        interner.release(a);
        assert_eq!(interner.find(b"a"), Some(a));
        interner.release(a);
        assert_eq!(interner.find(b"a"), None);
        assert_eq!(interner.keep(b"c", || Field::Other), a, "numbers are used again");
        interner.hold(a);
        interner.release(a);
        interner.release(b);
        assert_eq!((interner.memory(), interner.len()), (0, 0));
    }
}
