//! Frontend streams: how they ended, who left when.

use std::collections::BTreeMap;

use compact_str::CompactString;

use super::values::Values;
use super::{Sign, Tally};
use crate::lifecycle::facts::{Facts, State, Stream};
use crate::lifecycle::stage::{Origin, Outcome};

/// Streams of a set of requests.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Streams {
    /// All.
    pub count: u64,
    /// By outcome, as written; empty where the mode or layout records none.
    pub outcomes: Tally<CompactString>,
    /// Events yielded, summed.
    pub events: u64,
    /// Streams that were dropped.
    pub abandoned: u64,
    /// Events yielded when a stream was dropped.
    pub events_at_leaving: Values,
    /// Age of a stream when it was dropped, nanoseconds.
    pub age_at_leaving: Values,
    /// How long the other streams lasted, by outcome.
    pub lasting: BTreeMap<CompactString, Lasting>,
    /// Root outcomes of dropped streams, in the order of [`Outcome::ALL`]: the root decides what it was.
    pub roots_of_abandoned: [u64; 6],
    /// Dropped streams whose root has not arrived.
    pub abandoned_without_root: u64,
    /// Durations, nanoseconds.
    pub durations: Values,
    /// Events a second of streams that lasted, rounded.
    pub event_rates: Values,
    /// Requests in flight whose client streams, and whose stream has not ended.
    pub open: u64,
    /// Requests in flight of which nothing has said yet whether it does.
    pub may_be_open: u64,
    /// Times to first token as `http-request` says, nanoseconds.
    pub ttft: Values,
    /// Times to first token as records tell, where no span does, nanoseconds.
    pub ttft_records: Values,
}

/// How long streams of one outcome lasted.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Lasting {
    /// Events yielded, of those that count them.
    pub events: Values,
    /// Durations, nanoseconds.
    pub time: Values,
}

impl Streams {
    pub(super) fn request(&mut self, facts: &Facts, sign: Sign) {
        // A stream that has ended is open no more, though the request's root has yet to come.
        match (facts.state, facts.streaming, &facts.stream) {
            (State::InFlight, Some(true), None) => sign.step(&mut self.open),
            (State::InFlight, None, None) => sign.step(&mut self.may_be_open),
            _ => {}
        }
        if let Some((ttft, origin)) = facts.ttft_ns {
            let values = if origin == Origin::Span { &mut self.ttft } else { &mut self.ttft_records };
            sign.value(values, ttft);
        }
        if let Some(stream) = &facts.stream {
            self.apply(facts, stream, sign);
        }
    }

    fn apply(&mut self, facts: &Facts, stream: &Stream, sign: Sign) {
        sign.step(&mut self.count);
        self.outcomes.step(stream.outcome.clone(), sign);
        sign.value(&mut self.durations, stream.duration_ns);
        if let Some(events) = stream.events {
            sign.by(&mut self.events, events);
            if stream.duration_ns > 0 {
                let rate = events as f64 * 1e9 / stream.duration_ns as f64;
                sign.value(&mut self.event_rates, rate.round() as u64);
            }
        }
        if stream.outcome != "abandoned" {
            self.last(stream, sign);
            return;
        }
        sign.step(&mut self.abandoned);
        sign.value(&mut self.age_at_leaving, stream.duration_ns);
        if let Some(events) = stream.events {
            sign.value(&mut self.events_at_leaving, events);
        }
        match facts.outcome.and_then(|outcome| Outcome::ALL.iter().position(|other| *other == outcome)) {
            Some(at) => sign.step(&mut self.roots_of_abandoned[at]),
            None => sign.step(&mut self.abandoned_without_root),
        }
    }

    fn last(&mut self, stream: &Stream, sign: Sign) {
        let lasting = self.lasting.entry(stream.outcome.clone()).or_default();
        sign.value(&mut lasting.time, stream.duration_ns);
        if let Some(events) = stream.events {
            sign.value(&mut lasting.events, events);
        }
        if lasting.time.count() == 0 {
            self.lasting.remove(&stream.outcome);
        }
    }
}
