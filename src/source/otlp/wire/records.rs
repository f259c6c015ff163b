//! The log records of an export request.
//!
//! Owns: their structure on the wire. Keeps out: what they mean (`otlp::logs`).

use super::super::logs;
use super::super::walk::*;
use super::{SMALL, TIMES_ITS_SIZE};
use crate::lifecycle::batch::{Batch, Tally};

/// Takes the log records of a `ResourceLogs`; `attrs` is scratch for those of a record.
pub(super) fn resource_logs<'a>(bytes: &'a [u8], attrs: &mut Vec<&'a [u8]>, batch: &mut Batch<'a>) -> Result<(), Bad> {
    let mut walk = Walk::over("ResourceLogs", bytes);
    while let Some(tag) = walk.tag()? {
        match tag {
            LEN_2 => scope_logs(walk.bytes(tag)?, attrs, batch)?,
            _ => walk.skip(tag)?,
        }
    }
    Ok(())
}

fn scope_logs<'a>(bytes: &'a [u8], attrs: &mut Vec<&'a [u8]>, batch: &mut Batch<'a>) -> Result<(), Bad> {
    // The scope decides what its records are; it is field 1, but may come after them.
    let mut scope: &[u8] = &[];
    let mut walk = Walk::over("ScopeLogs", bytes);
    while let Some(tag) = walk.tag()? {
        match tag {
            LEN_1 => {
                let mut inner = Walk::over("InstrumentationScope", walk.bytes(tag)?);
                while let Some(tag) = inner.tag()? {
                    match tag {
                        LEN_1 => scope = inner.bytes(tag)?,
                        _ => inner.skip(tag)?,
                    }
                }
            }
            _ => walk.skip(tag)?,
        }
    }
    let mut walk = Walk::over("ScopeLogs", bytes);
    while let Some(tag) = walk.tag()? {
        match tag {
            LEN_2 => match log_record(walk.bytes(tag)?, attrs)? {
                Some(record) => logs::take(scope, &record, attrs, batch),
                None => refuse_foreign(&mut batch.tally),
            },
            _ => walk.skip(tag)?,
        }
    }
    Ok(())
}

/// `None` for what is none: requests of all signals nest alike, and a span or a metric begins with bytes where a log record
/// has its time.
fn log_record<'a>(bytes: &'a [u8], attrs: &mut Vec<&'a [u8]>) -> Result<Option<logs::LogIn<'a>>, Bad> {
    attrs.clear();
    let mut record = logs::LogIn::default();
    let (mut observed_ns, mut is_foreign) = (0, false);
    let mut walk = Walk::over("LogRecord", bytes);
    while let Some(tag) = walk.tag()? {
        match tag {
            F64_1 => record.time_ns = walk.fixed64(tag)?,
            LEN_1 => {
                is_foreign = true;
                walk.skip(tag)?;
            }
            LEN_5 => record.body = walk.bytes(tag)?,
            LEN_6 if attrs.len() * size_of::<&[u8]>() > SMALL + TIMES_ITS_SIZE * bytes.len() => {
                return Err(Bad::hollow("LogRecord"));
            }
            LEN_6 => attrs.push(walk.bytes(tag)?),
            LEN_9 => record.trace = walk.bytes(tag)?,
            F64_11 => observed_ns = walk.fixed64(tag)?,
            _ => walk.skip(tag)?,
        }
    }
    if record.time_ns == 0 {
        record.time_ns = observed_ns;
    }
    Ok((!is_foreign).then_some(record))
}

/// Whether what came as a log record is none: see [`log_record`].
pub(in super::super) fn is_foreign(record: &[u8]) -> bool {
    super::telling::fields("LogRecord", record, LEN_1).next().is_some()
}

/// Counts what came as a log record and is none.
#[cold]
fn refuse_foreign(tally: &mut Tally) {
    tally.bad_records += 1;
    tally.refusal.get_or_insert_with(|| {
        "expected a log record, found a span or a metric: traces go to /v1/traces or gRPC's TraceService, metrics to \
         /v1/metrics or its MetricsService"
            .to_owned()
    });
}
