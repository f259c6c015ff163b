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
const ROUNDS: usize = 9;

pub fn lines() -> Vec<Line> {
    [("dev-sim", "ingest, aggregated"), ("dev-sim-disagg-http", "ingest, disaggregated")].map(line).into()
}

fn line((name, title): (&str, &str)) -> Line {
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
        let start = Instant::now();
        for (at, mut payload) in payloads.into_iter().enumerate() {
            take_in(&mut store, &mut payload, at as u64).unwrap();
            store.refresh(at as u64);
        }
        let ours = start.elapsed();
        spans = store.counts().spans_kept;
        (ours, prost)
    });
    let (ours, prost) = median(pairs.collect());
    let rate = |time: Duration| format!("{:.2} M spans/s", spans as f64 / time.as_secs_f64() / 1e6);
    Line {
        name: title.into(),
        measured: rate(ours),
        reference: format!("prost {}", rate(prost)),
        ratio: against(ours, prost),
        budget: 0.8,
        stretch: 0.5,
    }
}
