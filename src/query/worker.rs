//! Worker names in filters, read once: the same answer as [`Worker::matches`] without its formatting, and beginnings.

use crate::lifecycle::ids::Worker;

use super::text::Small;

/// Ids from here on are shown by their last hex digits (`lifecycle::ids`).
const LONG: u64 = 100_000_000;

/// Which workers are meant.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum WorkerTest {
    /// Any that is known.
    Any,
    /// One, by its decimal id or the end or beginning of its hex id, on any or one rank.
    Named { decimal: Option<u64>, hex: Option<(u64, u32)>, rank: Option<u32> },
    /// Those whose decimal or hex id, or short name, begins so.
    Start(Box<str>),
}

impl WorkerTest {
    /// Reads `7587890`, `7f3a`, `7f3a:0`, `7f3a:*` or `7f3*`; the message says what was expected.
    pub fn read(text: &str, star: bool) -> Result<Self, String> {
        let expected = || {
            format!(
                "expected a worker: its id or the last or first 4 or more hex digits of it, with or without :rank, found {text:?}"
            )
        };
        let (id, rank) = match (text.split_once(':'), star) {
            (Some((id, "")), true) => (id, None),
            (Some(_), true) => return Err(expected()),
            (None, true) if text.is_empty() => return Ok(Self::Any),
            (None, true) if text.bytes().all(|byte| byte.is_ascii_hexdigit()) => {
                return Ok(Self::Start(text.to_ascii_lowercase().into()));
            }
            (None, true) => return Err(expected()),
            (Some((id, rank)), false) => (id, Some(digits(rank).ok_or_else(expected)?)),
            (None, false) => (text, None),
        };
        let rank = rank.map(|rank| u32::try_from(rank).map_err(|_| expected())).transpose()?;
        let decimal = digits(id);
        let hex = (4..=16)
            .contains(&id.len())
            .then(|| u64::from_str_radix(id, 16).ok())
            .flatten()
            .filter(|_| id.bytes().all(|byte| byte.is_ascii_hexdigit()))
            .map(|hex| (hex, id.len() as u32));
        if decimal.is_none() && hex.is_none() {
            return Err(expected());
        }
        Ok(Self::Named { decimal, hex, rank })
    }

    /// Whether this worker is meant.
    pub fn holds(&self, worker: Worker) -> bool {
        match self {
            Self::Any => true,
            Self::Named { decimal, hex, rank } => {
                (rank.is_none() || *rank == worker.rank)
                    && (*decimal == Some(worker.id)
                        || hex.is_some_and(|hex| begins(worker.id, hex) || ends(worker.id, hex)))
            }
            Self::Start(start) => {
                let is_long = worker.id >= LONG;
                Small::of(format_args!("{}", worker.id)).as_str().starts_with(&**start)
                    || (is_long && Small::of(format_args!("{:x}", worker.id)).as_str().starts_with(&**start))
                    || (is_long && Small::of(format_args!("{:04x}", worker.id & 0xffff)).as_str().starts_with(&**start))
            }
        }
    }
}

fn digits(text: &str) -> Option<u64> {
    text.bytes().all(|byte| byte.is_ascii_digit()).then(|| text.parse().ok()).flatten()
}

/// Whether a long id's hex form begins with so many digits of this value.
fn begins(id: u64, (start, count): (u64, u32)) -> bool {
    let total = 16 - id.leading_zeros() / 4;
    id >= LONG && count <= total && id >> (4 * (total - count)) == start
}

/// Whether a long id's hex form ends with so many digits of this value.
fn ends(id: u64, (end, count): (u64, u32)) -> bool {
    let total = 16 - id.leading_zeros() / 4;
    id >= LONG && count <= total && (id ^ end) << (4 * (16 - count)) == 0
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn it_answers_as_the_worker_itself(
            id in prop_oneof![any::<u64>(), 0..200_000_000u64],
            rank in proptest::option::of(0..4u32),
            take in 1..17usize,
            asked in proptest::option::of(0..4u32),
            hex in any::<bool>(),
            ends in any::<bool>(),
        ) {
            let worker = Worker { id, rank };
            let full = if hex { format!("{id:x}") } else { id.to_string() };
            let take = take.min(full.len());
            let part = if ends { &full[full.len() - take..] } else { &full[..take] };
            let ranked = asked.map_or(String::new(), |asked| format!("{part}:{asked}"));
            for text in [part.to_owned(), full.clone(), worker.short(), ranked] {
                if let Ok(test) = WorkerTest::read(&text, false) {
                    prop_assert_eq!(test.holds(worker), worker.matches(&text), "{:?} {}", worker, text);
                }
            }
            prop_assert!(WorkerTest::read(&worker.short(), false).unwrap().holds(worker));
            prop_assert!(WorkerTest::read(&id.to_string()[..1], true).unwrap().holds(worker));
        }
    }
}
