//! Memory of 100 k requests, then the screen over them while 50 k spans a second come in: frames, keys, filters.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant, SystemTime};

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use parking_lot::FairMutex;
use reqtop::pipeline::{self, take_in};
use reqtop::source::intake::{Bounds, Payload, Signal, channel};
use reqtop::store::{Limits, Store};
use reqtop::tui::Shared;
use reqtop::tui::app::{App, Event};
use reqtop::tui::theme::Theme;
use reqtop::view::header::Vitals;

use crate::counting;
use crate::load::{capture, messages, spans};
use crate::nobody::Nobody;
use crate::{Line, quantile, within};

/// A capture has 80 requests.
const COPIES: u32 = 1250;
const SIZE: (u16, u16) = (160, 50);
/// Spans a second while the screen is measured.
const PACE: f64 = 50_000.0;
const FRAMES: usize = 240;
const KEYS: usize = 120;
/// As the dashboard draws.
const BETWEEN: Duration = Duration::from_millis(33);

/// Filters that facts answer, and filters that must read spans.
const BY_FACTS: [&str; 4] = ["outcome:cancelled", "queue.wait>100ms", "phase:decode total<1s", "outcome:failed"];
const BY_SPANS: [&str; 3] = ["thread.name:tokio*", "abandoned", "\"never said by anybody\""];

pub fn now_ns() -> u64 {
    SystemTime::UNIX_EPOCH.elapsed().map_or(0, |time| time.as_nanos() as u64)
}

pub fn lines() -> Vec<Line> {
    let requests = capture("dev-sim");
    let mut lines = Vec::new();
    let resident = counting::resident();
    counting::start();
    let mut store = Store::new(Limits { memory: 8 << 30, ..Limits::default() });
    let mut wire = 0;
    for copy in 1..=COPIES {
        for message in messages(&requests, copy) {
            wire += message.len();
            take_in(&mut store, &mut Payload::otlp(Signal::Traces, message), now_ns()).unwrap();
            store.refresh(now_ns());
            store.check(now_ns());
        }
    }
    // Everything that ended has been asked, as after a while on a screen.
    store.check_all();
    let kept = store.counts().spans_kept as usize;
    let counted = counting::in_use();
    counting::stop();
    let grown = counting::resident().saturating_sub(resident);
    for (name, bytes) in [
        ("bytes a span, accounted", store.memory()),
        ("bytes a span, allocated", counted),
        ("bytes a span, resident", grown),
    ] {
        lines.push(Line {
            name: name.into(),
            measured: format!("{} B", bytes / kept),
            reference: format!("wire {} B", wire / kept),
            ratio: bytes as f64 / wire as f64,
            budget: 0.30,
            stretch: 0.20,
        });
    }
    lines.push(Line {
        name: "account against allocator".into(),
        measured: format!("{} MiB", store.memory() >> 20),
        reference: format!("{} MiB", counted >> 20),
        ratio: (store.memory() as f64 / counted as f64 - 1.0).abs(),
        budget: 0.05,
        stretch: 0.02,
    });
    lines.extend(screen(store, &requests));
    lines
}

type Export = opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;

fn screen(store: Store, requests: &[Export]) -> Vec<Line> {
    let store = Arc::new(FairMutex::new(store));
    let shared = Arc::new(Shared::new(Arc::clone(&store), Vitals::default()));
    let (intake, outlet) = channel(Bounds::default());
    let told = Arc::clone(&shared);
    let writer = pipeline::start(outlet, Arc::clone(&store), Arc::new(now_ns), move || told.changed()).unwrap();
    let stop = Arc::new(AtomicBool::new(false));
    // Encoded ahead, as senders are other processes.
    let ahead: Vec<Vec<u8>> = (0..700).flat_map(|copy| messages(requests, 1_000_000 + copy)).collect();
    let a_message = 700.0 * spans(requests) as f64 / ahead.len() as f64;
    let pump = {
        let stop = Arc::clone(&stop);
        std::thread::spawn(move || {
            let begun = Instant::now();
            let mut sent = 0;
            for message in ahead {
                while (f64::from(sent) * a_message) > begun.elapsed().as_secs_f64() * PACE {
                    std::thread::sleep(Duration::from_millis(1));
                }
                if stop.load(Ordering::Relaxed) {
                    break;
                }
                intake.offer_blocking(Payload::otlp(Signal::Traces, message)).unwrap();
                sent += 1;
            }
            f64::from(sent) * a_message / begun.elapsed().as_secs_f64()
        })
    };

    let clock = now_ns;
    let mut app = App::new(&*shared, Theme::named("terminal").unwrap(), &clock);
    let frame = |app: &mut App<'_>| {
        let begun = Instant::now();
        app.frame(SIZE.0, SIZE.1);
        let took = begun.elapsed();
        std::thread::sleep(BETWEEN.saturating_sub(took));
        took
    };
    let press = |app: &mut App<'_>, code| {
        app.press(&Event::Key(KeyEvent::new(code, KeyModifiers::NONE)), &mut Nobody);
    };
    frame(&mut app);
    let mut frames: Vec<Duration> = (0..FRAMES).map(|_| frame(&mut app)).collect();
    let mut keys: Vec<Duration> = (0..KEYS)
        .map(|turn| {
            // Between two frames: the key waits for a batch that is being taken in, as it would.
            std::thread::sleep(Duration::from_millis(turn as u64 % 17));
            let begun = Instant::now();
            press(&mut app, if turn % 20 == 19 { KeyCode::Char('g') } else { KeyCode::Char('j') });
            app.frame(SIZE.0, SIZE.1);
            begun.elapsed()
        })
        .collect();
    let mut filters = |texts: &[&str]| {
        let mut times = Vec::new();
        for text in texts {
            for _ in 0..3 {
                press(&mut app, KeyCode::Char('/'));
                app.press(&Event::Paste((*text).to_owned()), &mut Nobody);
                app.frame(SIZE.0, SIZE.1);
                let begun = Instant::now();
                press(&mut app, KeyCode::Enter);
                app.frame(SIZE.0, SIZE.1);
                times.push(begun.elapsed());
                for key in [KeyCode::Char('/'), KeyCode::Enter] {
                    press(&mut app, key);
                    app.frame(SIZE.0, SIZE.1);
                }
            }
        }
        quantile(&mut times, 0.5)
    };
    let (by_facts, by_spans) = (filters(&BY_FACTS), filters(&BY_SPANS));
    stop.store(true, Ordering::Relaxed);
    let pace = pump.join().unwrap();
    writer.join().unwrap();
    let millis = Duration::from_millis;
    let mut lines = vec![
        within("frame p50, 100 k requests, 50 k spans/s", quantile(&mut frames, 0.5), millis(8), millis(4)),
        within("frame p99", quantile(&mut frames, 0.99), millis(8), millis(4)),
        within("key to frame p99", quantile(&mut keys, 0.99), millis(50), millis(25)),
        within("filter by facts to first screen", by_facts, millis(16), millis(8)),
        within("filter by spans to first screen", by_spans, millis(16), millis(8)),
    ];
    lines[0].reference = format!("8 ms at {:.0} k spans/s", pace / 1e3);
    lines
}
