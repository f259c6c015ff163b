//! What a frontend's logs have told of a request, put together from each log that comes.

use compact_str::CompactString;

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
        let moment = match sign.kind {
            SignKind::Received => &mut self.received_ns,
            SignKind::Completed { .. } => &mut self.completed_ns,
        };
        *moment = Some(moment.map_or(sign.time_ns, |known| known.min(sign.time_ns)));
        self.merge(Self {
            model: sign.model.clone(),
            endpoint: sign.endpoint.clone(),
            streaming: sign.streaming,
            ..Self::default()
        });
    }

    /// Takes over what the other knows and this does not.
    pub fn merge(&mut self, other: Self) {
        self.received_ns = self.received_ns.or(other.received_ns);
        self.completed_ns = self.completed_ns.or(other.completed_ns);
        self.streaming = self.streaming.or(other.streaming);
        for (mine, others) in [(&mut self.model, other.model), (&mut self.endpoint, other.endpoint)] {
            if mine.is_empty() {
                *mine = others;
            }
        }
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
