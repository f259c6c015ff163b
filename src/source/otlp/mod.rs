//! The OTLP endpoint and its formats.

mod logs;
mod walk;
pub mod wire;
