//! The stages of a request's life, told by span name, and the phases a leg can serve (spec lifecycle-spans §3, §4).

/// What a span is evidence of. Names are matched whole; anything else is [`Stage::Other`] and is kept all the same.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub enum Stage {
    /// `http-request`: the frontend's HTTP span, above the root.
    Http,
    /// `request.lifecycle`: the root, authoritative for the outcome.
    Root,
    /// `request.preprocessing`.
    Preprocessing,
    /// `kv_router.select_worker`: holds one leg's schedule.
    SelectWorker,
    /// `kv_router.schedule`: its duration is the queue wait in the base layout (spec §6).
    Schedule,
    /// `kv_router.select_without_admission`: an advisory selection; no queue, no dispatch.
    Advisory,
    /// `router.queue`.
    Queue,
    /// `router.selection`.
    Selection,
    /// `request.dispatch`: frontend side in the evidence layout, worker side in the base layout.
    Dispatch,
    /// `kv_router.route_request` or `router.route_request`: an attempt.
    Route,
    /// `handle_payload`: a worker's ingress.
    Payload,
    /// `worker.admission`.
    Admission,
    /// `worker.operation`, `.encode`, `.prefill`, `.decode`.
    Operation,
    /// `engine.generate`.
    Engine,
    /// `response.streaming`: the frontend's stream.
    Streaming,
    /// `response.streaming.worker`, `.encode`, `.prefill`, `.decode`.
    WorkerStreaming,
    /// `completions` and `completions_single`: an endpoint without a root.
    Completions,
    /// Any other span.
    Other,
}

impl Stage {
    /// All of them, in the order of their numbers (`as u8`).
    pub const ALL: [Self; 18] = [
        Self::Http,
        Self::Root,
        Self::Preprocessing,
        Self::SelectWorker,
        Self::Schedule,
        Self::Advisory,
        Self::Queue,
        Self::Selection,
        Self::Dispatch,
        Self::Route,
        Self::Payload,
        Self::Admission,
        Self::Operation,
        Self::Engine,
        Self::Streaming,
        Self::WorkerStreaming,
        Self::Completions,
        Self::Other,
    ];

    /// The stage of a span name.
    pub fn of(name: &str) -> Self {
        match name {
            "http-request" => Self::Http,
            "request.lifecycle" => Self::Root,
            "request.preprocessing" => Self::Preprocessing,
            "kv_router.select_worker" => Self::SelectWorker,
            "kv_router.schedule" => Self::Schedule,
            "kv_router.select_without_admission" => Self::Advisory,
            "router.queue" => Self::Queue,
            "router.selection" => Self::Selection,
            "request.dispatch" => Self::Dispatch,
            "kv_router.route_request" | "router.route_request" => Self::Route,
            "handle_payload" => Self::Payload,
            "worker.admission" => Self::Admission,
            "worker.operation" | "worker.operation.encode" | "worker.operation.prefill" | "worker.operation.decode" => {
                Self::Operation
            }
            "engine.generate" => Self::Engine,
            "response.streaming" => Self::Streaming,
            "response.streaming.worker"
            | "response.streaming.encode"
            | "response.streaming.prefill"
            | "response.streaming.decode" => Self::WorkerStreaming,
            "completions" | "completions_single" => Self::Completions,
            _ => Self::Other,
        }
    }

    /// Whether spans of this stage belong to the lifecycle schema (they carry the common attributes of spec §2).
    pub fn is_lifecycle(self) -> bool {
        matches!(
            self,
            Self::Root
                | Self::Preprocessing
                | Self::Queue
                | Self::Selection
                | Self::Dispatch
                | Self::Admission
                | Self::Operation
                | Self::Streaming
                | Self::WorkerStreaming
        )
    }

    /// Whether this span is drawn as part of the queue, prefill, decode or streaming phase; `None` for the rest.
    pub fn is_worker_side(self) -> bool {
        matches!(self, Self::Payload | Self::Admission | Self::Operation | Self::Engine | Self::WorkerStreaming)
    }
}

/// The part of a request's work that one leg serves.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug, Default)]
pub enum Phase {
    /// Reading the prompt, in a disaggregated cluster.
    Prefill,
    /// Writing the answer, in a disaggregated cluster.
    Decode,
    /// Both on one worker.
    Aggregated,
    /// Not said by any span that arrived.
    #[default]
    Unknown,
}

impl Phase {
    /// All phases, in the order of a request's life.
    pub const ALL: [Self; 4] = [Self::Prefill, Self::Decode, Self::Aggregated, Self::Unknown];

    /// Reads the producer's word in any case (`prefill`, `Decode`, …).
    pub fn of(word: &str) -> Self {
        if word.eq_ignore_ascii_case("prefill") {
            Self::Prefill
        } else if word.eq_ignore_ascii_case("decode") {
            Self::Decode
        } else if word.eq_ignore_ascii_case("aggregated") {
            Self::Aggregated
        } else {
            Self::Unknown
        }
    }

    /// The word shown and filtered by.
    pub fn word(self) -> &'static str {
        match self {
            Self::Prefill => "prefill",
            Self::Decode => "decode",
            Self::Aggregated => "aggregated",
            Self::Unknown => "unknown",
        }
    }

    /// Whether a selection of `pool` can serve this phase: aggregated pools also say decode (spec §3).
    pub fn fits_pool(self, pool: Self) -> bool {
        self == pool
            || self == Self::Unknown
            || pool == Self::Unknown
            || matches!((self, pool), (Self::Aggregated, Self::Decode) | (Self::Decode, Self::Aggregated))
    }
}

/// How a request ended, as its root says (spec lifecycle-spans §3). Span status never tells.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub enum Outcome {
    /// Answered whole.
    Success,
    /// The client left.
    Cancelled,
    /// Refused: invalid, unknown model, overload, unavailable.
    Rejected,
    /// A response or gateway time-out.
    TimedOut,
    /// An internal error.
    Failed,
    /// Dropped without an observed end; also a word that no version documents.
    Unknown,
}

impl Outcome {
    /// The six outcomes in the order they are shown.
    pub const ALL: [Self; 6] =
        [Self::Success, Self::Cancelled, Self::Rejected, Self::TimedOut, Self::Failed, Self::Unknown];

    /// Reads `dynamo.request.terminal.outcome`; a word outside the six is `Unknown` (its text is kept beside it).
    pub fn of(word: &str) -> Self {
        Self::ALL.into_iter().find(|outcome| outcome.word() == word).unwrap_or(Self::Unknown)
    }

    /// The producer's word.
    pub fn word(self) -> &'static str {
        match self {
            Self::Success => "success",
            Self::Cancelled => "cancelled",
            Self::Rejected => "rejected",
            Self::TimedOut => "timed_out",
            Self::Failed => "failed",
            Self::Unknown => "unknown",
        }
    }
}

/// Which producer layout a request's spans follow (spec lifecycle-spans §1), told by which attributes are there.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug, Default)]
pub enum Layout {
    /// Timing, identity and terminal outcome only.
    #[default]
    Base,
    /// Drafts of the evidence change.
    Draft,
    /// The evidence change as reviewed.
    Evidence,
}

impl Layout {
    /// The spec's name for it.
    pub fn word(self) -> &'static str {
        match self {
            Self::Base => "base",
            Self::Draft => "draft",
            Self::Evidence => "evidence",
        }
    }
}

/// How much the producer records (`dynamo.lifecycle.mode`).
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug, Default)]
pub enum Mode {
    /// No span has said.
    #[default]
    Unsaid,
    /// The stable decision summary and timing.
    Core,
    /// Core, stage state and scored candidates.
    Investigation,
}

impl Mode {
    /// Reads the attribute's word.
    pub fn of(word: &str) -> Self {
        match word {
            "core" => Self::Core,
            "investigation" => Self::Investigation,
            _ => Self::Unsaid,
        }
    }

    /// The word shown.
    pub fn word(self) -> &'static str {
        match self {
            Self::Unsaid => "mode not said",
            Self::Core => "core",
            Self::Investigation => "investigation",
        }
    }
}

/// Where a fact comes from. What is not said by a span of its own is marked on every screen and in every report.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug, Default)]
pub enum Origin {
    /// A span that records exactly this.
    #[default]
    Span,
    /// A request-trace record.
    Record,
    /// Worked out from other evidence, such as the queue wait from `kv_router.schedule`.
    Inferred,
}

impl Origin {
    /// The word used in reports.
    pub fn word(self) -> &'static str {
        match self {
            Self::Span => "span",
            Self::Record => "record",
            Self::Inferred => "inferred",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_read_back() {
        for outcome in Outcome::ALL {
            assert_eq!(Outcome::of(outcome.word()), outcome);
        }
        assert_eq!(Outcome::of("finished"), Outcome::Unknown);
        assert_eq!(Phase::of("Aggregated"), Phase::Aggregated);
        assert!(Phase::Aggregated.fits_pool(Phase::Decode) && !Phase::Prefill.fits_pool(Phase::Decode));
        assert_eq!(Stage::of("worker.operation.decode"), Stage::Operation);
        assert_eq!(Stage::of("worker.operation.x"), Stage::Other);
    }
}
