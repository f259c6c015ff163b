//! What a frontend's logs have told of a request, put together from each log that comes.

use compact_str::CompactString;

use super::account::chunk;
use super::batch::{Sign, SignKind};

/// What a frontend's logs have told of a request.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Told {
    /// When `request received` was written, Unix nanoseconds.
    pub received_ns: Option<u64>,
    /// When `request completed` was written, Unix nanoseconds.
    pub completed_ns: Option<u64>,
    /// The model asked for.
    pub model: CompactString,
    /// `chat_completions`, `completions`, …
    pub endpoint: CompactString,
    /// Whether a stream was asked for.
    pub streaming: Option<bool>,
}

impl Told {
    /// Takes in one log.
    pub fn hear(&mut self, sign: &Sign) {
        let (received_ns, completed_ns) = match sign.kind {
            SignKind::Received => (Some(sign.time_ns), None),
            SignKind::Completed { .. } => (None, Some(sign.time_ns)),
        };
        self.merge(Self {
            received_ns,
            completed_ns,
            model: sign.model.clone(),
            endpoint: sign.endpoint.clone(),
            streaming: sign.streaming,
        });
    }

    /// Takes over what the other knows and this does not. Where they disagree, the earlier moment and the lesser word hold:
    /// the same in whatever order it is told.
    pub fn merge(&mut self, other: Self) {
        self.received_ns = lesser(self.received_ns, other.received_ns);
        self.completed_ns = lesser(self.completed_ns, other.completed_ns);
        self.streaming = lesser(self.streaming, other.streaming);
        for (mine, others) in [(&mut self.model, other.model), (&mut self.endpoint, other.endpoint)] {
            if !others.is_empty() && (mine.is_empty() || others < *mine) {
                *mine = others;
            }
        }
    }

    /// When it was told of first.
    pub fn first_ns(&self) -> Option<u64> {
        lesser(self.received_ns, self.completed_ns)
    }

    /// The bytes it takes in memory beside its own size.
    pub fn heap_size(&self) -> usize {
        [&self.model, &self.endpoint]
            .into_iter()
            .filter(|text| text.is_heap_allocated())
            .map(|text| chunk(text.capacity()))
            .sum()
    }

    /// What was told by a moment, nanoseconds since the epoch.
    #[must_use]
    pub fn by(&self, at_ns: u64) -> Self {
        let by = |moment: Option<u64>| moment.filter(|moment| *moment <= at_ns);
        let told = Self { received_ns: by(self.received_ns), completed_ns: by(self.completed_ns), ..Self::default() };
        if !told.any() {
            return told;
        }
        Self { model: self.model.clone(), endpoint: self.endpoint.clone(), streaming: self.streaming, ..told }
    }

    /// Whether anything was told.
    pub fn any(&self) -> bool {
        self.received_ns.is_some() || self.completed_ns.is_some()
    }
}

fn lesser<T: Ord>(one: Option<T>, other: Option<T>) -> Option<T> {
    one.into_iter().chain(other).min()
}
