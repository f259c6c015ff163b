//! The bounded way from sources to the one writer of the store.
//!
//! A payload is acknowledged only after the writer has taken it in, so nothing acknowledged is lost; a full channel is
//! answered with [`Refusal::Busy`] after a short wait. Owns: the channel, its bounds (payloads and bytes), the receipts.
//! Keeps out: decoding (`otlp`), keeping (`store`).

use bytes::Bytes;

use crate::lifecycle::record::Record;

/// What a source delivers.
#[derive(Debug)]
pub enum Payload {
    /// An `ExportTraceServiceRequest` in protobuf.
    Traces(Bytes),
    /// An `ExportLogsServiceRequest` in protobuf.
    Logs(Bytes),
    /// An `ExportMetricsServiceRequest` in protobuf.
    Metrics(Bytes),
    /// Request-trace records read from a file.
    Records(Vec<Record>),
}

/// What became of a payload that was taken in.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Receipt {
    /// Spans, log records or data points taken.
    pub taken: u64,
    /// Spans refused for themselves.
    pub refused: u64,
    /// The first reason: what was expected and what came.
    pub reason: Option<String>,
}

/// Why a payload was not taken in at all.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// The bytes are not what they should be; the sentence says what was expected and what came.
    Malformed(String),
    /// The store cannot keep up; the sender should try again shortly.
    Busy,
    /// The program is ending.
    Closed,
}
