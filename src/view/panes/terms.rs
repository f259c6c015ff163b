//! Filter terms in the filter language, quoted as needed.

use crate::lifecycle::ids::Worker;
use crate::query::{Name, Op, term};

/// `field:value`.
pub(super) fn is(field: &str, value: &str) -> String {
    term(Name::Field(field), Op::Is, value)
}

/// `field:value`, or that nothing is said when the value is empty.
pub(super) fn is_or_absent(field: &str, value: &str) -> String {
    if value.is_empty() { format!("-{field}:*") } else { is(field, value) }
}

/// A leg of which all parts hold; a part may be empty.
pub(super) fn leg(parts: &[&str]) -> String {
    let parts: Vec<&str> = parts.iter().map(|part| part.trim()).filter(|part| !part.is_empty()).collect();
    format!("leg({})", parts.join(" "))
}

/// `worker:7587890:0`: the whole id, so that nobody else is meant.
pub(super) fn worker(field: &str, worker: Worker) -> String {
    let id = worker.id;
    match worker.rank {
        Some(rank) => is(field, &format!("{id}:{rank}")),
        None => is(field, &id.to_string()),
    }
}
