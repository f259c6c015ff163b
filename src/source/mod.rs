//! Ways in: every source ends in payloads that [`intake`] carries to the store's one writer. Knows no store.

pub mod intake;
pub mod otlp;
