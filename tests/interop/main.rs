//! reqtop among its neighbours: the real OpenTelemetry Collector, a real Jaeger and the OpenTelemetry SDKs of other
//! languages, started and stopped here. `REQTOP_INTEROP=1 cargo test --test interop`; see `tools` for what is skipped.

#[path = "../common/mod.rs"]
mod common;

mod collector;
mod jaeger;
mod sdk;
mod spans;
mod tools;
