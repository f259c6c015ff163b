//! The rows of a trace: open while spans arrive, packed to a third once its requests have ended.
//!
//! Owns: both forms and the way between them. Keeps out: what rows mean, where bodies lie.
//!
//! Packed, a row is: a byte of bits, its stage, its span id, its parent (a row number when the parent is in the trace, else
//! the id), its name; resource, scope and kind where they differ from the row before; its request id piece where that
//! differs; start minus the start of the row before, duration, body length, group. All numbers are varints.

use std::borrow::Cow;

use super::interner::NONE;
use crate::lifecycle::account::chunk;
use crate::lifecycle::ids::SpanId;
use crate::lifecycle::packed::{put_varint, varint};
use crate::lifecycle::stage::Stage;

/// A span as kept.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Row {
    pub id: SpanId,
    pub parent: Option<SpanId>,
    pub start_ns: u64,
    pub end_ns: u64,
    /// Text piece of its name.
    pub name: u32,
    /// Context pieces.
    pub resource: u32,
    pub scope: u32,
    /// Where its body begins in [`super::trace::Trace::bodies`].
    pub body: u32,
    /// Attribute piece of the request id it carries, or [`NONE`].
    pub rid: u32,
    pub kind: i32,
    pub stage: Stage,
    /// Index into [`super::trace::Trace::groups`].
    pub group: u16,
}

impl Row {
    /// Whether it carries a request id.
    pub fn has_rid(&self) -> bool {
        self.rid != NONE
    }
}

const SAME_CONTEXT: u8 = 1;
const SAME_RID: u8 = 2;
const NO_RID: u8 = 4;
const PARENT_HERE: u8 = 8;
const PARENT_ELSEWHERE: u8 = 16;
const GROUPED: u8 = 32;

/// Packed rows.
#[derive(Debug, Default)]
pub struct Packed {
    count: u32,
    bytes: Box<[u8]>,
}

/// Packs rows whose bodies follow each other from 0 to `bodies` bytes. `find` tells where a span is.
pub fn pack(rows: &[Row], bodies: usize, find: impl Fn(SpanId) -> Option<usize>) -> Packed {
    let mut out = Vec::with_capacity(rows.len() * 28);
    let (mut start_ns, mut context, mut rid) = (0u64, None, NONE);
    for (at, row) in rows.iter().enumerate() {
        let here = row.parent.and_then(&find);
        let own = (row.resource, row.scope, row.kind);
        let bits = [
            (context == Some(own), SAME_CONTEXT),
            (row.has_rid() && row.rid == rid, SAME_RID),
            (!row.has_rid(), NO_RID),
            (here.is_some(), PARENT_HERE),
            (here.is_none() && row.parent.is_some(), PARENT_ELSEWHERE),
            (row.group != 0, GROUPED),
        ];
        let bits = bits.into_iter().filter(|(is, _)| *is).fold(0, |bits, (_, bit)| bits | bit);
        out.extend_from_slice(&[bits, row.stage as u8]);
        out.extend_from_slice(&row.id.0);
        match (here, row.parent) {
            (Some(here), _) => put_varint(&mut out, here as u64),
            (None, Some(parent)) => out.extend_from_slice(&parent.0),
            (None, None) => {}
        }
        put_varint(&mut out, u64::from(row.name));
        if bits & SAME_CONTEXT == 0 {
            put_varint(&mut out, u64::from(row.resource));
            put_varint(&mut out, u64::from(row.scope));
            put_varint(&mut out, u64::from(row.kind as u32));
            context = Some(own);
        }
        if bits & (SAME_RID | NO_RID) == 0 {
            put_varint(&mut out, u64::from(row.rid));
            rid = row.rid;
        }
        put_signed(&mut out, row.start_ns.wrapping_sub(start_ns));
        start_ns = row.start_ns;
        put_signed(&mut out, row.end_ns.wrapping_sub(row.start_ns));
        let end = rows.get(at + 1).map_or(bodies, |next| next.body as usize);
        put_varint(&mut out, (end - row.body as usize) as u64);
        if bits & GROUPED != 0 {
            put_varint(&mut out, u64::from(row.group));
        }
    }
    Packed { count: rows.len() as u32, bytes: out.into_boxed_slice() }
}

/// A difference that may go either way.
fn put_signed(out: &mut Vec<u8>, difference: u64) {
    let signed = difference as i64;
    put_varint(out, ((signed << 1) ^ (signed >> 63)) as u64);
}

impl Packed {
    /// How many rows there are.
    pub fn len(&self) -> usize {
        self.count as usize
    }

    /// Bytes in the heap.
    pub fn size(&self) -> usize {
        chunk(self.bytes.len())
    }

    /// The rows as they were.
    pub fn unpack(&self) -> Vec<Row> {
        let mut rows: Vec<Row> = Vec::with_capacity(self.len());
        // A parent may stand behind its child.
        let mut behind: Vec<(usize, usize)> = Vec::new();
        let mut reader = Reader(&self.bytes);
        let (mut start_ns, mut body, mut rid) = (0u64, 0u32, NONE);
        let (mut resource, mut scope, mut kind) = (NONE, NONE, 0);
        for at in 0..self.len() {
            let [bits, stage] = reader.array();
            let id = SpanId(reader.array());
            let parent = match bits & (PARENT_HERE | PARENT_ELSEWHERE) {
                PARENT_HERE => {
                    let above = reader.number() as usize;
                    let known = rows.get(above).map(|row| row.id);
                    if known.is_none() {
                        behind.push((at, above));
                    }
                    known
                }
                PARENT_ELSEWHERE => Some(SpanId(reader.array())),
                _ => None,
            };
            let name = reader.number() as u32;
            if bits & SAME_CONTEXT == 0 {
                (resource, scope) = (reader.number() as u32, reader.number() as u32);
                kind = reader.number() as u32 as i32;
            }
            if bits & (SAME_RID | NO_RID) == 0 {
                rid = reader.number() as u32;
            }
            start_ns = start_ns.wrapping_add(reader.signed());
            let end_ns = start_ns.wrapping_add(reader.signed());
            let length = reader.number() as u32;
            let group = if bits & GROUPED == 0 { 0 } else { reader.number() as u16 };
            rows.push(Row {
                id,
                parent,
                start_ns,
                end_ns,
                name,
                resource,
                scope,
                body,
                rid: if bits & NO_RID == 0 { rid } else { NONE },
                kind,
                stage: Stage::ALL.get(usize::from(stage)).copied().unwrap_or(Stage::Other),
                group,
            });
            body += length;
        }
        for (at, above) in behind {
            rows[at].parent = rows.get(above).map(|row| row.id);
        }
        rows
    }
}

/// Reads what [`pack`] wrote; beyond the end there are zeros.
struct Reader<'a>(&'a [u8]);

impl Reader<'_> {
    fn array<const N: usize>(&mut self) -> [u8; N] {
        let Some((head, tail)) = self.0.split_first_chunk() else { return [0; N] };
        self.0 = tail;
        *head
    }

    #[inline]
    fn number(&mut self) -> u64 {
        varint(&mut self.0).unwrap_or(0)
    }

    fn signed(&mut self) -> u64 {
        let number = self.number();
        ((number >> 1) as i64 ^ -((number & 1) as i64)) as u64
    }
}

/// Rows to read, whichever form they are in.
pub type Rows<'a> = Cow<'a, [Row]>;

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn stages_are_numbered_as_listed() {
        assert!(Stage::ALL.iter().enumerate().all(|(at, stage)| *stage as usize == at));
    }

    fn row() -> impl Strategy<Value = (Row, u8)> {
        let time = prop_oneof![Just(0u64), 1_000u64..100_000, any::<u64>()];
        let few = || prop_oneof![0u32..3, any::<u32>().prop_map(|piece| piece.min(NONE - 1))];
        let parent =
            prop_oneof![Just(None), (0u8..12).prop_map(|near| Some([near + 1; 8])), any::<[u8; 8]>().prop_map(Some)];
        let rid = prop_oneof![Just(NONE), 0u32..3];
        (parent, time.clone(), time, (few(), few(), few()), rid, (any::<i32>(), 0usize..18, 0u16..3), 0u8..40).prop_map(
            |(parent, start_ns, end_ns, (name, resource, scope), rid, (kind, stage, group), length)| {
                let (id, parent, stage) = (SpanId([0; 8]), parent.map(SpanId), Stage::ALL[stage]);
                let row = Row { id, parent, start_ns, end_ns, name, resource, scope, body: 0, rid, kind, stage, group };
                (row, length)
            },
        )
    }

    proptest! {
        #[test]
        fn rows_come_back_as_they_were(made in proptest::collection::vec(row(), 0..12)) {
            let mut bodies = 0;
            let rows: Vec<Row> = made.into_iter().enumerate().map(|(at, (row, length))| {
                let row = Row { id: SpanId([at as u8 + 1; 8]), body: bodies, ..row };
                bodies += u32::from(length);
                row
            }).collect();
            let packed = pack(&rows, bodies as usize, |id| rows.iter().position(|row| row.id == id));
            prop_assert_eq!(packed.unpack(), rows);
        }
    }
}
