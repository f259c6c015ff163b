//! Writing bodies.

use super::{Code, DROPPED, EVENTS, FLAGS, Head, LINKS, STATUS_CODE, STATUS_MESSAGE, TRACE_STATE, zigzag};
use crate::lifecycle::packed;

/// Writes bodies.
pub struct Writer<'a>(pub &'a mut Vec<u8>);

impl Writer<'_> {
    /// Starts a body; say whether events and links will follow the attributes.
    pub fn head(&mut self, head: &Head, events: bool, links: bool) {
        let bits = [
            (head.status_code != 0, STATUS_CODE),
            (head.status_message.is_some(), STATUS_MESSAGE),
            (head.trace_state.is_some(), TRACE_STATE),
            (head.flags != 0, FLAGS),
            (head.dropped != [0; 3], DROPPED),
            (events, EVENTS),
            (links, LINKS),
        ];
        let has = bits.into_iter().filter(|(is, _)| *is).fold(0, |has, (_, bit)| has | bit);
        self.number(has);
        if head.status_code != 0 {
            self.number(zigzag(i64::from(head.status_code)));
        }
        for piece in [head.status_message, head.trace_state].into_iter().flatten() {
            self.number(u64::from(piece));
        }
        if head.flags != 0 {
            self.number(u64::from(head.flags));
        }
        if head.dropped != [0; 3] {
            head.dropped.iter().for_each(|count| self.number(u64::from(*count)));
        }
    }

    /// Writes a list of attributes.
    pub fn attrs(&mut self, codes: &[Code<'_>]) {
        self.count(codes.len());
        codes.iter().for_each(|code| self.attr(*code));
    }

    /// Writes one attribute of a list whose [`Writer::count`] has been written.
    #[inline]
    pub fn attr(&mut self, code: Code<'_>) {
        match code {
            Code::Piece(piece) => self.number(u64::from(piece) << 1),
            Code::Int(key, value) => {
                self.number((u64::from(key) << 3) | 1);
                self.number(zigzag(value));
            }
            Code::Text(key, text) => {
                self.number((u64::from(key) << 3) | 3);
                self.number(text.len() as u64);
                self.0.extend_from_slice(text);
            }
            Code::Keyed(key, value) => {
                self.number((u64::from(key) << 3) | 5);
                self.number(u64::from(value));
            }
        }
    }

    /// Writes the number of attributes, events or links that follow.
    pub fn count(&mut self, count: usize) {
        self.number(count as u64);
    }

    /// Writes one event; `offset_ns` is its time minus the span's start.
    pub fn event(&mut self, offset_ns: i64, name: u32, dropped: u32, codes: &[Code<'_>]) {
        self.number(zigzag(offset_ns));
        self.number(u64::from(name));
        self.number(u64::from(dropped));
        self.attrs(codes);
    }

    /// Writes one link; the ids as they came, of any length up to 255.
    pub fn link(
        &mut self,
        trace: &[u8],
        span: &[u8],
        state: Option<u32>,
        flags: u32,
        dropped: u32,
        codes: &[Code<'_>],
    ) {
        for id in [trace, span] {
            let id = &id[..id.len().min(255)];
            self.number(id.len() as u64);
            self.0.extend_from_slice(id);
        }
        self.number(state.map_or(0, |piece| u64::from(piece) + 1));
        self.number(u64::from(flags));
        self.number(u64::from(dropped));
        self.attrs(codes);
    }

    #[inline]
    fn number(&mut self, value: u64) {
        packed::put_varint(self.0, value);
    }
}
