//! A small `--max-memory` under too much: 3 million spans in 300 k requests, one trace of 500 k spans, 200 k orphans. How
//! far resident memory goes beyond the limit, how late a key is answered meanwhile, whether the counts add up.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{SyncSender, sync_channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::trace::v1::Span;
use parking_lot::{FairMutex, Mutex};
use prost::Message;
use reqtop::pipeline;
use reqtop::source::intake::{Bounds, Intake, Payload, Receipt, Signal, channel};
use reqtop::store::{Limits, Store};
use reqtop::tui::Shared;
use reqtop::tui::app::{App, Event};
use reqtop::tui::theme::Theme;
use reqtop::view::header::Vitals;

use crate::load::{capture, fresh, messages, spans};
use crate::nobody::Nobody;
use crate::screen::now_ns;
use crate::{Line, counting, quantile, within};

const LIMIT: usize = 256 << 20;
const SPANS: u64 = 3_000_000;
const HUGE: usize = 500_000;
const ORPHANS: usize = 200_000;

/// Several senders at once, as from that many processes: the channel is never empty.
struct Senders {
    queue: SyncSender<Vec<u8>>,
    threads: Vec<JoinHandle<()>>,
}

impl Senders {
    fn new(intake: Intake) -> Self {
        let (queue, messages) = sync_channel::<Vec<u8>>(8);
        let messages = Arc::new(Mutex::new(messages));
        let threads = (0..8).map(|_| {
            let (intake, messages) = (intake.clone(), Arc::clone(&messages));
            std::thread::spawn(move || {
                loop {
                    let next = messages.lock().recv();
                    let Ok(message) = next else { return };
                    intake.offer_blocking(Payload::otlp(Signal::Traces, message)).unwrap();
                }
            })
        });
        Self { queue, threads: threads.collect() }
    }

    fn send(&self, message: Vec<u8>) {
        self.queue.send(message).unwrap();
    }

    /// So many spans out of a capture, each changed.
    fn send_changed(&self, capture: &[ExportTraceServiceRequest], count: usize, change: impl Fn(u64, &mut Span)) {
        let mut sent = 0u64;
        for copy in 1.. {
            for mut request in fresh(capture, 0x4000_0000 + copy) {
                for span in request
                    .resource_spans
                    .iter_mut()
                    .flat_map(|resource| &mut resource.scope_spans)
                    .flat_map(|scope| &mut scope.spans)
                {
                    sent += 1;
                    change(sent, span);
                }
                self.send(request.encode_to_vec());
                if sent as usize >= count {
                    return;
                }
            }
        }
    }

    /// Waits until everything is taken in.
    fn finish(self) {
        drop(self.queue);
        self.threads.into_iter().for_each(|thread| thread.join().unwrap());
    }
}

pub fn lines() -> Vec<Line> {
    let pattern = capture("dev-sim");
    // The senders' own memory is no part of it: they have sent to nobody first.
    let (intake, mut nobody) = channel(Bounds::default());
    let senders = Senders::new(intake);
    let drain = std::thread::spawn(move || {
        while let Some(delivery) = nobody.recv() {
            delivery.answer(Ok(Receipt::default()));
        }
    });
    (1..=200).for_each(|copy| messages(&pattern, copy).into_iter().for_each(|message| senders.send(message)));
    senders.finish();
    drain.join().unwrap();
    let before = counting::resident();
    let store = Arc::new(FairMutex::new(Store::new(Limits { memory: LIMIT, ..Limits::default() })));
    let shared = Arc::new(Shared::new(Arc::clone(&store), Vitals::default()));
    let (intake, outlet) = channel(Bounds::default());
    let told = Arc::clone(&shared);
    let writer = pipeline::start(outlet, Arc::clone(&store), Arc::new(now_ns), move || told.changed()).unwrap();
    let done = Arc::new(AtomicBool::new(false));
    let typist = {
        let (shared, done) = (Arc::clone(&shared), Arc::clone(&done));
        std::thread::spawn(move || {
            let clock = now_ns;
            let mut app = App::new(&*shared, Theme::named("terminal").unwrap(), &clock);
            let mut times = Vec::new();
            let mut highest = 0;
            while !done.load(Ordering::Relaxed) {
                let begun = Instant::now();
                app.press(&Event::Key(KeyEvent::new(KeyCode::Char('j'), KeyModifiers::NONE)), &mut Nobody);
                app.frame(160, 50);
                times.push(begun.elapsed());
                highest = highest.max(counting::resident());
                std::thread::sleep(Duration::from_millis(40));
            }
            (times, highest)
        })
    };
    let begun = Instant::now();
    let senders = Senders::new(intake.clone());
    for copy in 1..=(SPANS / spans(&pattern) as u64 + 1) as u32 {
        messages(&pattern, copy).into_iter().for_each(|message| senders.send(message));
    }
    senders.finish();
    let (after_requests, requests_took) = (counting::resident(), begun.elapsed());
    let senders = Senders::new(intake.clone());
    senders.send_changed(&pattern, HUGE, |number, span| {
        span.trace_id = vec![0xab; 16];
        span.span_id = number.to_be_bytes().to_vec();
        span.parent_span_id = if number > 1 { (number / 2).to_be_bytes().to_vec() } else { Vec::new() };
        span.attributes.retain(|attribute| !attribute.key.contains("request"));
    });
    senders.finish();
    let (after_huge, huge_took) = (counting::resident(), begun.elapsed());
    let senders = Senders::new(intake);
    senders.send_changed(&pattern, ORPHANS, |number, span| {
        let id = [[0xcd; 8], number.to_be_bytes()].concat();
        span.trace_id = id;
        span.parent_span_id = vec![0xef; 8];
        span.attributes.retain(|attribute| !attribute.key.contains("request"));
    });
    senders.finish();
    writer.join().unwrap();
    let took = begun.elapsed();
    done.store(true, Ordering::Relaxed);
    let (mut times, highest) = typist.join().unwrap();
    let store = store.lock();
    let counts = store.counts();
    assert_eq!(
        counts.spans_received,
        counts.spans_kept + counts.spans_duplicate + counts.spans_refused + counts.spans_shed
    );
    assert_eq!(counts.spans_kept, counts.spans_evicted + store.spans().count() as u64);
    assert!(store.memory() <= LIMIT);
    let mib = |bytes: usize| bytes.saturating_sub(before) >> 20;
    let seconds = [requests_took, huge_took - requests_took, took - huge_took].map(|time| time.as_secs());
    eprintln!(
        "flood: resident beyond the start: after the requests {} MiB, after the huge trace {} MiB, highest {} MiB; accounted \
         {} MiB; shed {}; seconds {seconds:?}",
        mib(after_requests),
        mib(after_huge),
        mib(highest),
        store.memory() >> 20,
        counts.spans_shed,
    );
    vec![
        Line {
            name: "flood: highest resident memory".into(),
            measured: format!("{} MiB", mib(highest)),
            reference: format!("--max-memory {} MiB", LIMIT >> 20),
            ratio: highest.saturating_sub(before) as f64 / LIMIT as f64,
            budget: 1.4,
            stretch: 1.15,
        },
        within(
            "flood: slowest key to frame",
            quantile(&mut times, 1.0),
            Duration::from_millis(300),
            Duration::from_millis(100),
        ),
    ]
}
