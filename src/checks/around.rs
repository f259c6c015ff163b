//! What a check may have to know beyond one request.

use crate::lifecycle::ids::TraceId;
use crate::lifecycle::request::RequestKey;
use crate::lifecycle::stage::Mode;

use super::load::LoadRecord;

/// Another request that lived at the same time under the same public id.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Twin {
    /// Its trace.
    pub trace: TraceId,
    /// For how long both lived, nanoseconds.
    pub overlap_ns: u64,
}

/// Where a hash of a token block stood when it was first seen: a hash covers everything before it, so it always has the same
/// place and the same predecessor.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Place {
    /// Its index in the list.
    pub index: u32,
    /// The hash before it; 0 for the first.
    pub before: u64,
}

/// What is known of the run around a request. The defaults know nothing.
pub trait Surroundings {
    /// A live request with this id in another trace that overlaps `start_ns..=end_ns`.
    fn twin(&self, key: RequestKey, request_id: &str, trace: TraceId, start_ns: u64, end_ns: u64) -> Option<Twin> {
        let _ = (key, request_id, trace, start_ns, end_ns);
        None
    }

    /// The mode in which most of this process's requests were recorded.
    fn mode_of(&self, epoch: &str) -> Option<Mode> {
        let _ = epoch;
        None
    }

    /// Whether this worker has exported lifecycle spans of its own.
    fn exports(&self, worker: u64) -> bool {
        let _ = worker;
        false
    }

    /// Whether `request_end` records reach this run at all.
    fn has_records(&self) -> bool {
        false
    }

    /// Whether spans are known to be missing all over: sampled at the source, shed, dropped.
    fn spans_lost(&self) -> bool {
        false
    }

    /// The block size of most records.
    fn block_size(&self) -> Option<u64> {
        None
    }

    /// Where this block hash stood in other records.
    fn place_of(&self, hash: u64) -> Option<Place> {
        let _ = hash;
        None
    }

    /// What the load generator says of this client id.
    fn load(&self, x_request_id: &str) -> Option<&LoadRecord> {
        let _ = x_request_id;
        None
    }
}

/// Knows nothing beyond the request.
pub struct Nothing;

impl Surroundings for Nothing {}
