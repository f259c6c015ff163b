//! The vocabulary: what a request's life is made of, as types. Pure: no clock, no input or output, no store.
//!
//! Everything above speaks in these words. Names come from the field: span, trace, root, attempt, phase, margin, deferral.

pub mod account;
pub mod assemble;
pub mod batch;
pub mod body;
pub mod catalogue;
pub mod context;
pub mod facts;
pub mod ids;
mod legs;
#[cfg(test)]
pub mod made;
mod marks;
pub mod must;
pub mod packed;
pub mod record;
pub mod request;
pub mod stage;
pub mod text;
mod told;
pub(crate) mod work;
