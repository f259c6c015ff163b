//! Decode + scrub + evidence + tree + indexes per batch, against prost decoding and dropping the same bytes; bytes kept.

use std::hint::black_box;
use std::time::{Duration, Instant};

use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use prost::Message;
use reqtop::pipeline::take_in;
use reqtop::source::intake::{Payload, Signal};
use reqtop::store::{Limits, Store};

use crate::Line;
use crate::load::{capture, fresh};

const COPIES: u32 = 40;
const ROUNDS: usize = 7;

pub fn lines() -> Vec<Line> {
    let mut lines = Vec::new();
    for name in ["dev-sim", "dev-sim-disagg-http"] {
        let requests = capture(name);
        let messages: Vec<Vec<u8>> =
            (1..=COPIES).flat_map(|copy| fresh(&requests, copy)).map(|request| request.encode_to_vec()).collect();
        let wire: usize = messages.iter().map(Vec::len).sum();
        // In turn, so that both see the same weather; the median of the pairwise ratios.
        let mut pairs = Vec::new();
        let mut kept = (0, 0);
        for _ in 0..ROUNDS {
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
            kept = (store.memory(), store.counts().spans_kept);
            pairs.push((ours, prost));
        }
        pairs.sort_by(|a, b| ratio(a.0, a.1).total_cmp(&ratio(b.0, b.1)));
        let (ours, prost) = pairs[ROUNDS / 2];
        let rate = |time: Duration| format!("{:.2} M spans/s", kept.1 as f64 / time.as_secs_f64() / 1e6);
        lines.push(Line {
            name: if name == "dev-sim" { "ingest, aggregated" } else { "ingest, disaggregated" },
            measured: rate(ours),
            reference: format!("prost {}", rate(prost)),
            ratio: ratio(ours, prost),
            budget: 0.8,
            stretch: 0.5,
        });
        lines.push(Line {
            name: "bytes kept a span",
            measured: format!("{} B", kept.0 as u64 / kept.1),
            reference: format!("wire {} B", wire as u64 / kept.1),
            ratio: kept.0 as f64 / wire as f64,
            budget: 0.30,
            stretch: 0.20,
        });
    }
    lines
}

fn ratio(ours: Duration, reference: Duration) -> f64 {
    ours.as_secs_f64() / reference.as_secs_f64()
}
