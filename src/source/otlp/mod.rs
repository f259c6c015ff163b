//! OTLP: the wire formats.

pub mod logs;
pub mod wire;
