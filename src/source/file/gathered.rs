//! Texts on their way into payloads: small ones are joined, those of recordings stay apart, each with its own time.
//!
//! Owns: what waits to be handed on, and handing it on. Keeps out: where a text begins and ends (`texts`).

use bytes::Bytes;

use crate::lifecycle::batch::Tally;
use crate::lifecycle::record::Record;
use crate::source::intake::{Arrival, Body, Payload, Signal};
use crate::source::otlp::json::left_out::LeftOut;
use crate::source::otlp::json::{self, Shape};

use super::{Place, Reading, Stopped};

/// Records are handed on in groups of this many; nothing goes by what stands in one group.
const RECORDS: usize = 512;

/// What waits to be handed on, over all files.
#[derive(Default)]
pub(super) struct Gathered {
    traces: Joined,
    logs: Joined,
    metrics: Joined,
    records: Vec<Record>,
    /// What was refused or counted in them on the way.
    tally: Tally,
    /// Payloads that are whole: of recordings, whose requests stay apart because each has its own time.
    ready: Vec<Ready>,
}

/// A payload, with the line of each text in it and where that ends.
struct Ready {
    payload: Payload,
    ends: Vec<(u64, usize)>,
}

/// Texts of one signal, as protobuf.
#[derive(Default)]
struct Joined {
    bytes: Vec<u8>,
    /// The line of each, and where it ends.
    ends: Vec<(u64, usize)>,
}

impl Gathered {
    /// Whether it is to be handed on, when about `joined` bytes are to be joined.
    pub fn is_full(&self, joined: usize) -> bool {
        let bytes = self.traces.bytes.len() + self.logs.bytes.len() + self.metrics.bytes.len();
        // What stands twice in one export was written twice, what comes in another one came again: logs are not joined.
        let apart = (joined == 0 && bytes + self.records.len() > 0) || !self.logs.bytes.is_empty();
        bytes >= joined.max(1) || self.records.len() >= RECORDS || apart || !self.ready.is_empty()
    }

    /// Adds a trace record.
    pub fn record(&mut self, record: Record) {
        self.records.push(record);
    }

    /// Adds an OTLP text that stands in this line; tells what of it was left out.
    ///
    /// # Errors
    /// Nothing of it can be used.
    pub fn otlp(&mut self, line: u64, shape: Shape, text: &[u8]) -> Result<Option<String>, String> {
        let mut tally = self.one(line, shape, text)?;
        if tally.misplaced > 0 {
            // Requests of several signals in one object: in a file each is good.
            tally.misplaced = 0;
            let mut refusal = None;
            for other in json::shapes(text).into_iter().filter(|other| *other != shape) {
                match self.one(line, other, text) {
                    Ok(more) => tally.add(Tally { misplaced: 0, ..more }),
                    Err(reason) => {
                        tally.misplaced += 1;
                        refusal.get_or_insert(reason);
                    }
                }
            }
            let is_whole = tally.refused_spans + tally.bad_records + tally.passed_over == 0;
            tally.refusal = if is_whole { refusal } else { tally.refusal };
        }
        let recorded = json::arrived(text).and_then(|_| json::left_out::read(text));
        if let Some(LeftOut { tally: more, exports, .. }) = recorded {
            tally.add(more);
            if exports > 0 {
                self.tally.add(Tally { refusal: None, ..tally });
                return Err(format!(
                    "of the exports until then {exports} could not be read, did not come whole or are not here: what they held is not known"
                ));
            }
        }
        let left_out = tally.left_out();
        // What was left out is told with its line; the counts go on without words.
        self.tally.add(Tally { refusal: None, ..tally });
        Ok(left_out)
    }

    fn one(&mut self, line: u64, shape: Shape, text: &[u8]) -> Result<Tally, String> {
        if let Some(arrived_ns) = json::arrived(text) {
            let mut out = Vec::with_capacity(text.len() / 2);
            let tally = json::transcode(shape, text, &mut out)?;
            self.seal();
            let arrival = match json::left_out::read(text) {
                Some(left_out) if left_out.continues => Arrival::Continues(arrived_ns),
                Some(_) if out.is_empty() => return Ok(tally),
                // One that holds nothing tells that nothing came until then.
                _ => Arrival::At(arrived_ns),
            };
            let ends = vec![(line, out.len())];
            let payload = Payload { arrival, ..Payload::otlp(shape.signal(), out) };
            self.ready.push(Ready { payload, ends });
            return Ok(tally);
        }
        let out = match shape.signal() {
            Signal::Traces => &mut self.traces,
            Signal::Logs => &mut self.logs,
            Signal::Metrics => &mut self.metrics,
        };
        let tally = json::transcode(shape, text, &mut out.bytes)?;
        out.ends.push((line, out.bytes.len()));
        Ok(tally)
    }

    /// Makes payloads of what has been joined.
    fn seal(&mut self) {
        let all =
            [(Signal::Traces, &mut self.traces), (Signal::Logs, &mut self.logs), (Signal::Metrics, &mut self.metrics)];
        for (signal, joined) in all {
            let Joined { bytes, ends } = std::mem::take(joined);
            if !bytes.is_empty() {
                let tally = std::mem::take(&mut self.tally);
                self.ready.push(Ready { payload: Payload { tally, ..Payload::otlp(signal, bytes) }, ends });
            }
        }
        if !self.records.is_empty() || self.tally != Tally::default() {
            let records = std::mem::take(&mut self.records);
            self.ready.push(of_records(records, std::mem::take(&mut self.tally)));
        }
    }

    /// Hands on what is there.
    pub fn flush(&mut self, file: &str, reading: &mut Reading<'_>) -> Result<(), Stopped> {
        self.seal();
        for Ready { payload, ends } in std::mem::take(&mut self.ready) {
            let Payload { body, tally, arrival, way } = payload;
            let Body::Otlp(signal, bytes) = body else {
                if let Err(reason) = reading.payload(Payload { body, tally, arrival, way })? {
                    reading.bad(file, Place::Whole, reason);
                }
                continue;
            };
            let of = |bytes: Bytes| Payload { arrival, ..Payload::otlp(signal, bytes) };
            if reading.payload(Payload { tally: tally.clone(), ..of(bytes.clone()) })?.is_ok() {
                continue;
            }
            // JSON may say what protobuf may not (almost nothing but empty parts): each text for itself, so that only the
            // wrong ones are lost. What was counted on the way is handed on after it.
            let mut from = 0;
            for (line, to) in ends {
                if let Err(reason) = reading.payload(of(bytes.slice(from..to)))? {
                    reading.bad(file, Place::Line(line), reason);
                }
                from = to;
            }
            if let Err(reason) = reading.payload(of_records(Vec::new(), tally).payload)? {
                reading.bad(file, Place::Whole, reason);
            }
        }
        Ok(())
    }
}

fn of_records(records: Vec<Record>, tally: Tally) -> Ready {
    Ready { payload: Payload { tally, ..Payload::records(records) }, ends: Vec::new() }
}
