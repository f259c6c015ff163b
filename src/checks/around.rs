//! What a check may have to know beyond one request.

use crate::lifecycle::ids::TraceId;
use crate::lifecycle::request::{RequestKey, RequestView};
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

/// Where a hash of a token block stands in a record: a hash covers everything before it, so it always has the same
/// place and the same predecessor.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Place {
    /// Its index in the list.
    pub index: u32,
    /// The hash before it; 0 for the first.
    pub before: u64,
}

/// What other records say of a hash at a place.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Stood {
    /// Nothing against it.
    Fits,
    /// They have it elsewhere.
    Elsewhere(Place),
    /// What they say is no longer remembered.
    Forgotten,
}

/// What is known of the run around a request. The defaults know nothing.
pub trait Surroundings {
    /// A live request with this id in another trace that overlaps `start_ns..=end_ns`.
    fn twin(&self, key: RequestKey, request_id: &str, trace: TraceId, start_ns: u64, end_ns: u64) -> Option<Twin> {
        let _ = (key, request_id, trace, start_ns, end_ns);
        None
    }

    /// Another mode, when at least as many of this process's requests were recorded in it as in this one.
    fn other_mode(&self, epoch: &str, mode: Mode) -> Option<Mode> {
        let _ = (epoch, mode);
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

    /// Whether spans that may be of this request are known to be missing: sampled at the source, shed, dropped, refused.
    fn spans_lost(&self, view: &RequestView<'_>) -> bool {
        let _ = view;
        false
    }

    /// Whether records are known to be missing: some could not be read.
    fn records_lost(&self) -> bool {
        false
    }

    /// The block size of most records.
    fn block_size(&self) -> Option<u64> {
        None
    }

    /// Whether this block hash stood at this place in other records, too.
    fn stood(&self, hash: u64, place: Place) -> Stood {
        let _ = (hash, place);
        Stood::Fits
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
