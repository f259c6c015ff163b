//! reqtop: what htop is to a machine, for an LLM serving cluster. One binary with an OTLP endpoint inside that shows
//! every request of an NVIDIA Dynamo cluster as it lives and dies.
//!
//! # The house
//!
//! Data flows one way; imports run downward; every concept has one home.
//!
//! ```text
//! gRPC, HTTP, files, Jaeger, Tempo → source (raw OTLP bytes, bounded channel) → pipeline (the one writer: decode, ingest, refresh)
//!     → store (request trees, indexes, rollups, retention) → view (plain data with a tone) → tui
//!                                                            └→ report (headless)
//! ```
//!
//! - [`lifecycle`]: the vocabulary. Spans as borrowed bytes, stages, evidence, records, the facts of a request. Pure.
//! - [`source`]: ways in. OTLP over gRPC and HTTP, files, trace stores; JSON is turned into the same protobuf bytes. Knows no store.
//! - [`query`]: the filter language.
//! - [`store`]: spans → request trees with their facts, in any order of arrival; rollups; retention.
//! - [`pipeline`]: joins sources to the store; `heap` gives memory back to the system. [`tap`]: the ways out beside it, such as
//!   recordings.
//! - [`view`]: what one screen needs, as plain data. [`report`]: the same numbers headless. [`tui`]: the terminal.
//! - [`demo`]: a simulated cluster with a ledger of what truly happened.
//! - [`writing`]: how files are written.
//! - [`run`]: the commands, put together; `cli` and `settings` say what was asked for.
//!
//! # Invariants
//!
//! 1. Imports run downward as `tests/tidy.rs` says; wire formats stay in `source::otlp` and `demo`, the terminal in `tui`.
//! 2. The store has one writer. A payload is acknowledged after it was taken in: nothing acknowledged is lost.
//! 3. Nothing vanishes without a count: received = kept + duplicate + refused + shed, kept = held + evicted.
//! 4. The same spans and records give the same requests, in whatever order and however often they come.
//! 5. Everything kept is accounted in bytes and fits `--max-memory`; whole requests go, never the one being looked at.
//! 6. Remote text is cleaned before it is kept: no control character reaches terminal, clipboard or output.
//! 7. What is inferred or told by records is never mixed with what spans record.
//! 8. The clock is an argument; drawing never changes state; nothing but the drawing code writes to the terminal.
//! 9. There is no `unsafe` code but the declaration of one C function, in `heap`.
//!
#![doc = include_str!("threats.md")]
#![deny(unsafe_code)]
#![warn(missing_docs)]

pub mod checks;
pub mod cli;
pub mod demo;
mod heap;
pub mod lifecycle;
#[cfg(test)]
#[path = "../tests/common/own.rs"]
mod own;
pub mod pipeline;
pub mod query;
pub mod report;
pub mod run;
pub mod settings;
pub mod source;
pub mod store;
pub mod tap;
pub mod tui;
pub mod view;
pub mod writing;
