//! Ways in: every source ends in payloads that [`intake`] carries to the store's one writer. Knows no store.
//!
//! Owns: the endpoint ([`otlp`]), files ([`mod@file`]), trace stores ([`remote`]), whom a client of ours trusts
//! ([`trust`]), the channel between them and the writer,
//! and [`decode`], with which the writer turns a payload into the batch that the store takes. Keeps out: keeping, showing, the terminal.

use crate::lifecycle::batch::{Batch, Repeats};

pub mod file;
pub mod intake;
pub mod notices;
pub mod otlp;
pub mod remote;
pub mod replay;
pub mod trust;
pub mod way;

use intake::{Body, Payload};

/// What a payload holds, as the batch the store takes: borrowed from its bytes, records moved out.
///
/// # Errors
/// When the bytes are not protobuf of their signal: what was expected and where. Nothing of the payload is then used.
pub fn decode(payload: &mut Payload) -> Result<Batch<'_>, String> {
    let mut batch = Batch { tally: std::mem::take(&mut payload.tally), ..Batch::default() };
    match &mut payload.body {
        Body::Records(records) => (batch.records, batch.repeats) = (std::mem::take(records), Repeats::Came),
        Body::Otlp(signal, bytes) => otlp::wire::decode(*signal, bytes, &mut batch)?,
    }
    Ok(batch)
}
