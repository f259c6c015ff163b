//! Decode + scrub + evidence + tree + indexes, against prost decoding and dropping the same bytes.

use std::hint::black_box;
use std::time::{Duration, Instant};

use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use prost::Message;
use reqtop::pipeline::take_in;
use reqtop::source::intake::{Payload, Signal};
use reqtop::store::{Limits, Store};

use crate::load::{capture, messages};
use crate::{Line, against, median};

const COPIES: u32 = 40;
const ROUNDS: usize = 7;

pub fn lines() -> Vec<Line> {
    let each = [Refreshed::AsUnderLoad, Refreshed::AtOnce];
    let of = |(capture, topology): (&str, &str)| each.map(|refreshed| line(capture, topology, refreshed));
    [("dev-sim", "aggregated"), ("dev-sim-disagg-http", "disaggregated")].into_iter().flat_map(of).collect()
}

/// When the requests are brought up to date.
#[derive(Clone, Copy)]
enum Refreshed {
    /// Whenever so many bytes have come in without a pause, as the pipeline does.
    AsUnderLoad,
    /// After each message, as the pipeline does when senders pause.
    AtOnce,
}

/// As the pipeline has it.
const REFRESH_BYTES: usize = 2 << 20;

fn line(name: &str, topology: &str, refreshed: Refreshed) -> Line {
    let requests = capture(name);
    let messages: Vec<Vec<u8>> = (1..=COPIES).flat_map(|copy| messages(&requests, copy)).collect();
    let mut spans = 0;
    let pairs = (0..ROUNDS).map(|_| {
        let start = Instant::now();
        for message in &messages {
            black_box(ExportTraceServiceRequest::decode(&message[..]).unwrap());
        }
        let prost = start.elapsed();
        let mut store = Store::new(Limits { memory: 4 << 30, ..Limits::default() });
        let payloads: Vec<Payload> =
            messages.iter().map(|message| Payload::otlp(Signal::Traces, message.clone())).collect();
        let mut taken = 0;
        let start = Instant::now();
        for (at, mut payload) in payloads.into_iter().enumerate() {
            taken += payload.size();
            take_in(&mut store, &mut payload, at as u64).unwrap();
            if matches!(refreshed, Refreshed::AtOnce) || taken >= REFRESH_BYTES {
                store.refresh(at as u64);
                taken = 0;
            }
        }
        store.refresh(messages.len() as u64);
        let ours = start.elapsed();
        spans = store.counts().spans_kept;
        (ours, prost)
    });
    let (ours, prost) = median(pairs.collect());
    let rate = |time: Duration| format!("{:.2} M spans/s", spans as f64 / time.as_secs_f64() / 1e6);
    Line {
        name: match refreshed {
            Refreshed::AsUnderLoad => format!("ingest, {topology}"),
            Refreshed::AtOnce => format!("ingest, {topology}, seen at once"),
        },
        measured: rate(ours),
        reference: format!("prost {}", rate(prost)),
        ratio: against(ours, prost),
        budget: 0.8,
        stretch: 0.5,
    }
}
