//! Which signal an export request is.
//!
//! Owns: telling it by the structure of what it holds, where nothing else says it. Keeps out: whether it is well-formed.

use super::super::walk::*;
use crate::source::intake::Signal;

/// Items that are looked at to tell a signal.
const MOST_TELLING: usize = 64;

/// Tells which signal an export request is by its structure: a span starts with a 16-byte id and has fixed 64-bit times in
/// fields of its own, a log record has one in its first, a metric a name and data. The first item that says decides, for
/// one may be broken or empty. `None` when it holds none of them, or is none of them.
pub fn signal_of(bytes: &[u8]) -> Option<Signal> {
    let (mut looked, mut weak) = (0, None);
    for resource in fields("export request", bytes, LEN_1) {
        for scope in fields("resource", resource, LEN_2) {
            for item in fields("scope", scope, LEN_2) {
                match signal_of_item(item) {
                    Some(signal) => return Some(signal),
                    None => _ = weak.get_or_insert_with(|| guess(item)),
                }
                looked += 1;
                if looked == MOST_TELLING {
                    return weak;
                }
            }
        }
    }
    weak
}

/// What an item must be by what it has; `None` when that is too little.
fn signal_of_item(item: &[u8]) -> Option<Signal> {
    let has = |field, length| fields("Span", item, field).next().is_some_and(|id| id.len() == length);
    if has(LEN_1, 16) && has(LEN_2, 8) {
        return Some(Signal::Traces);
    }
    let mut walk = Walk::over("item", item);
    while let Ok(Some(tag)) = walk.tag() {
        match tag {
            F64_7 | F64_8 => return Some(Signal::Traces),
            F64_1 | F64_11 | VAR_2 | LEN_6 | F32_8 => return Some(Signal::Logs),
            // Gauge and sum; a log record's body is field 5 too, but its times and attributes tell first or instead.
            LEN_7 | LEN_9 | LEN_11 | LEN_12 => return Some(Signal::Metrics),
            _ => walk.skip(tag).ok()?,
        }
    }
    None
}

/// What an item may be that says too little.
fn guess(item: &[u8]) -> Signal {
    if fields("Metric", item, LEN_1).next().is_some() { Signal::Metrics } else { Signal::Logs }
}

/// The values of a field of a message, as far as that can be read.
pub(super) fn fields<'a>(message: &'static str, bytes: &'a [u8], wanted: u32) -> impl Iterator<Item = &'a [u8]> {
    let mut walk = Walk::over(message, bytes);
    std::iter::from_fn(move || {
        while let Ok(Some(tag)) = walk.tag() {
            if tag == wanted {
                return walk.bytes(tag).ok();
            }
            walk.skip(tag).ok()?;
        }
        None
    })
}
