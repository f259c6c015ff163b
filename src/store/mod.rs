//! The request store: spans → request trees, with their facts. Synchronous, one writer, bounded in bytes.

use crate::lifecycle::batch::Batch;
use crate::lifecycle::facts::Facts;
use crate::lifecycle::request::{RequestKey, RequestView};

/// What the store may hold.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Bytes over everything kept.
    pub memory: usize,
}

/// The request store.
pub struct Store {
    limits: Limits,
    counts: Counts,
}

/// What one batch came to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Ingested {
    /// Spans kept.
    pub kept: u64,
    /// Spans that were there already (same trace and span id).
    pub duplicates: u64,
}

/// Everything counted since the start. received = kept + duplicates + refused; kept = held + evicted.
#[derive(Clone, Debug, Default)]
pub struct Counts {
    /// Spans received, good or bad.
    pub spans_received: u64,
    /// Spans kept at first, whether or not they are still held.
    pub spans_kept: u64,
    /// Spans that were there already.
    pub spans_duplicate: u64,
    /// Spans refused for themselves.
    pub spans_refused: u64,
    /// Spans given up to stay within the limit.
    pub spans_evicted: u64,
    /// Requests given up to stay within the limit.
    pub requests_evicted: u64,
    /// Records kept, whether or not they are still held.
    pub records_kept: u64,
    /// Records that were there already.
    pub records_duplicate: u64,
    /// Records that could not be read.
    pub records_bad: u64,
    /// Records given up to stay within the limit.
    pub records_evicted: u64,
    /// Log records that are neither records nor signs.
    pub other_logs: u64,
    /// Metric data points.
    pub metric_points: u64,
    /// Texts in which invalid UTF-8 or control characters were replaced.
    pub texts_cleaned: u64,
}

/// How the held requests stand, by what their roots say. Kept up to date as facts change, never by walking.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Standing {
    /// By [`crate::lifecycle::stage::Outcome::ALL`].
    pub by_outcome: [u64; 6],
    /// Not ended yet.
    pub in_flight: u64,
    /// Without a root (ended or not).
    pub without_root: u64,
    /// All.
    pub total: u64,
}

impl Store {
    /// An empty store.
    pub fn new(limits: Limits) -> Self {
        Self { limits, counts: Counts::default() }
    }

    /// Takes in one batch. `now_ns` is the time of arrival.
    pub fn ingest(&mut self, batch: &Batch<'_>, now_ns: u64) -> Ingested {
        let _ = (batch, now_ns);
        Ingested::default()
    }

    /// Brings every request up to date with what arrived, settles and evicts. Costs what changed since the last call.
    pub fn refresh(&mut self, now_ns: u64) {
        let _ = now_ns;
    }

    /// What was counted.
    pub fn counts(&self) -> &Counts {
        &self.counts
    }

    /// How the held requests stand.
    pub fn standing(&self) -> Standing {
        Standing::default()
    }

    /// Bytes held, over everything kept.
    pub fn memory(&self) -> usize {
        0
    }

    /// The limits it was made with.
    pub fn limits(&self) -> Limits {
        self.limits
    }

    /// Grows by one whenever anything that can be seen changes.
    pub fn version(&self) -> u64 {
        0
    }

    /// Requests held, in the order of their first sign (oldest first); iterate in reverse for newest first.
    pub fn requests(&self) -> impl DoubleEndedIterator<Item = (RequestKey, &Facts)> {
        std::iter::empty()
    }

    /// The facts of a request; follows requests that were joined into others.
    pub fn facts(&self, key: RequestKey) -> Option<&Facts> {
        let _ = key;
        None
    }

    /// The whole view of a request; follows requests that were joined into others.
    pub fn request(&self, key: RequestKey) -> Option<RequestView<'_>> {
        let _ = key;
        None
    }

    /// The request that this key means now, after joins; `None` when it is gone.
    pub fn resolve(&self, key: RequestKey) -> Option<RequestKey> {
        let _ = key;
        None
    }

    /// Keeps this request from eviction while somebody looks at it.
    pub fn pin(&mut self, key: Option<RequestKey>) {
        let _ = key;
    }
}
