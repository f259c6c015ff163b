//! Ids of the trace world, as bytes, with their one text form (lower-case hex).

use std::fmt;
use std::sync::Arc;

/// A request's id, or another that may be the same. Several places name the same request; they share its bytes.
pub type Rid = Arc<str>;

/// A trace id: 16 bytes, never all zero.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TraceId(pub [u8; 16]);

/// A span id: 8 bytes, never all zero.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SpanId(pub [u8; 8]);

impl TraceId {
    /// Reads the wire form. `None` for a wrong length or all zeros (OTLP: such an id is invalid).
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let id: [u8; 16] = bytes.try_into().ok()?;
        (id != [0; 16]).then_some(Self(id))
    }

    /// Reads 32 hex digits of any case.
    pub fn from_hex(text: &str) -> Option<Self> {
        let mut id = [0; 16];
        hex(text, &mut id).then_some(())?;
        Self::from_bytes(&id)
    }
}

impl SpanId {
    /// Reads the wire form. `None` for a wrong length or all zeros (OTLP: such an id is invalid).
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let id: [u8; 8] = bytes.try_into().ok()?;
        (id != [0; 8]).then_some(Self(id))
    }

    /// Reads 16 hex digits of any case.
    pub fn from_hex(text: &str) -> Option<Self> {
        let mut id = [0; 8];
        hex(text, &mut id).then_some(())?;
        Self::from_bytes(&id)
    }
}

/// Fills `out` from exactly twice as many hex digits; false when `text` is anything else.
fn hex(text: &str, out: &mut [u8]) -> bool {
    let text = text.as_bytes();
    if text.len() != out.len() * 2 {
        return false;
    }
    for (byte, pair) in out.iter_mut().zip(text.chunks_exact(2)) {
        let (Some(high), Some(low)) = ((pair[0] as char).to_digit(16), (pair[1] as char).to_digit(16)) else {
            return false;
        };
        *byte = ((high << 4) | low) as u8;
    }
    true
}

fn write_hex(bytes: &[u8], f: &mut fmt::Formatter<'_>) -> fmt::Result {
    bytes.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
}

impl fmt::Display for TraceId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_hex(&self.0, f)
    }
}

impl fmt::Debug for TraceId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_hex(&self.0, f)
    }
}

impl fmt::Display for SpanId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_hex(&self.0, f)
    }
}

impl fmt::Debug for SpanId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_hex(&self.0, f)
    }
}

/// A worker and, when known, one of its data-parallel ranks. Worker ids are unsigned 64-bit and exceed 2^53
/// (spec lifecycle-spans §2).
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct Worker {
    /// The worker's instance id.
    pub id: u64,
    /// The data-parallel rank; absent when the producer names none (round-robin, some destinations).
    pub rank: Option<u32>,
}

impl Worker {
    /// The short name shown in tables: small ids as they are, long ones as their last four hex digits (`25be:0`): ids that
    /// etcd leases out begin alike in one cluster. [`Worker::matches`] accepts what this prints.
    pub fn short(&self) -> String {
        let id = short_worker(self.id);
        match self.rank {
            Some(rank) => format!("{id}:{rank}"),
            None => id,
        }
    }

    /// The same worker, as far as both name a rank.
    pub fn agrees(self, other: Self) -> bool {
        self.id == other.id && (self.rank == other.rank || self.rank.is_none() || other.rank.is_none())
    }

    /// Whether `text` names this worker: the decimal id, the hex id, its end or its beginning (four digits or more),
    /// each with or without `:rank`.
    pub fn matches(&self, text: &str) -> bool {
        let (id, rank) = match text.split_once(':') {
            Some((id, rank)) => (id, Some(rank)),
            None => (text, None),
        };
        if let Some(rank) = rank
            && rank.parse().ok() != self.rank
        {
            return false;
        }
        let (hex, id) = (format!("{:x}", self.id), id.to_ascii_lowercase());
        id.parse() == Ok(self.id)
            || (id.len() >= 4 && self.id >= 100_000_000 && (hex.starts_with(&id) || hex.ends_with(&id)))
    }
}

/// The short name of a worker without its rank; see [`Worker::short`].
pub fn short_worker(id: u64) -> String {
    if id < 100_000_000 { id.to_string() } else { format!("{:04x}", id & 0xffff) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hex_of_any_case_is_the_same_id() {
        let lower = TraceId::from_hex("0123456789abcdef0123456789abcdef");
        assert_eq!(lower, TraceId::from_hex("0123456789ABCDEF0123456789ABCDEF"));
        assert_eq!(lower.unwrap().to_string(), "0123456789abcdef0123456789abcdef");
        assert_eq!(TraceId::from_hex("00000000000000000000000000000000"), None);
        assert_eq!(SpanId::from_hex("abcd"), None);
        assert_eq!(SpanId::from_hex("+123456789abcdef"), None);
    }

    #[test]
    fn a_worker_is_found_by_every_name_it_is_shown_under() {
        let long = Worker { id: 9_216_000_000_000_000_338, rank: Some(0) };
        assert_eq!(long.short(), "0152:0");
        assert!(long.matches("0152") && long.matches("0152:0") && long.matches("9216000000000000338"));
        assert!(long.matches("7fe5") && !long.matches("7fe5:1") && !long.matches("7fe") && !long.matches("152"));
        // Leases of one etcd begin with its member's number and the time it began, and end in a count.
        let leased = [0x694d_9814_7d54_be25, 0x694d_9814_7d54_be29].map(|id| Worker { id, rank: Some(0) });
        assert_eq!(leased.map(|worker| worker.short()), ["be25:0", "be29:0"]);
        let small = Worker { id: 7_587_890, rank: None };
        assert_eq!(small.short(), "7587890");
        assert!(small.matches("7587890") && !small.matches("7587890:0"));
    }
}
