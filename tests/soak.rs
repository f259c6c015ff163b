//! A day of running, accelerated: a simulated cluster sends to the real endpoint by a simulated clock, while somebody looks on
//! who pauses, filters, zooms and resizes. Memory, descriptors, threads and the time of a frame must stay flat.
//!
//! A short day is part of `cargo test`; `REQTOP_SOAK=10000000 cargo test --release --test soak -- --nocapture` runs a day of ten
//! million spans and prints its table.

mod common;
#[path = "common/nobody.rs"]
mod nobody;

use std::fmt;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use parking_lot::FairMutex;
use reqtop::demo::{Cluster, Settings, Signal};
use reqtop::pipeline;
use reqtop::source::intake::{Bounds, channel};
use reqtop::source::notices::Notices;
use reqtop::source::otlp::{Address, Endpoint};
use reqtop::store::{Limits, Store};
use reqtop::tui::Shared;
use reqtop::tui::app::{App, Event};
use reqtop::tui::theme::Theme;
use reqtop::view::account::Account;
use reqtop::view::header::Vitals;
use tokio::sync::oneshot;

use nobody::Nobody;

const START_NS: u64 = 1_796_003_500_000_000_000;
const SECOND: u64 = 1_000_000_000;
const DAY: u64 = 86_400 * SECOND;
/// Spans of a day in `cargo test`.
const SHORT: u64 = 5_000;
/// Spans of a request of the simulated cluster, about.
const SPANS_A_REQUEST: f64 = 34.0;
/// Steps of a day, short and long: in each, what came in it is sent, a key is struck and a frame is drawn.
const STEPS: [u64; 2] = [200, 2_000];
/// Exports are joined up to this many bytes.
const JOINED: usize = 1 << 20;

/// What somebody does who looks on; over and over.
const KEYS: [&str; 44] = [
    "j",
    "j",
    "Enter",
    "Tab",
    "j",
    "Esc",
    "p",
    "G",
    "j",
    "p",
    "g",
    "z",
    "z",
    "/",
    "outcome:success",
    "Enter",
    "1",
    "z",
    "Esc",
    "Esc",
    "s",
    "j",
    "Enter",
    "/",
    "Clear",
    "worker:1 or queue.wait>1ms",
    "Enter",
    "w",
    "Esc",
    "a",
    "Esc",
    "c",
    "Esc",
    "?",
    "Esc",
    "/",
    "Clear",
    "Enter",
    "!",
    "Esc",
    "2",
    "Esc",
    "T",
    "Esc",
];

/// How the process stands, where the system tells.
#[derive(Clone, Copy, Default)]
struct Standing {
    rss_mib: f64,
    descriptors: usize,
    threads: usize,
}

impl Standing {
    fn now() -> Self {
        let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
        let field = |name: &str| {
            let line = status.lines().find_map(|line| line.strip_prefix(name))?;
            line.split_whitespace().next()?.parse::<f64>().ok()
        };
        Self {
            rss_mib: field("VmRSS:").unwrap_or(0.0) / 1024.0,
            descriptors: std::fs::read_dir("/proc/self/fd").map_or(0, Iterator::count),
            threads: field("Threads:").unwrap_or(0.0) as usize,
        }
    }
}

/// A row of the table.
struct Row {
    hour: f64,
    account: Account,
    requests: u64,
    store_mib: f64,
    is: Standing,
    frames: Vec<Duration>,
}

impl Row {
    /// The time that this share of the frames since the row before took at most, milliseconds.
    fn frame_ms(&self, share: f64) -> f64 {
        let mut frames = self.frames.clone();
        frames.sort_unstable();
        let at = ((frames.len() as f64 * share) as usize).min(frames.len().saturating_sub(1));
        frames.get(at).map_or(0.0, |frame| frame.as_secs_f64() * 1e3)
    }
}

impl fmt::Display for Row {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { hour, account, requests, store_mib, is, .. } = self;
        let Standing { rss_mib, descriptors, threads } = is;
        write!(
            f,
            "{hour:>5.1} h {:>10} in {:>9} held {:>10} evicted {requests:>7} requests {store_mib:>7.1} MiB store \
             {rss_mib:>7.1} MiB rss {descriptors:>4} fds {threads:>3} threads  frame {:>6.2} / {:>6.2} ms p50/p99",
            account.received,
            account.held,
            account.gone[3].1,
            self.frame_ms(0.5),
            self.frame_ms(0.99),
        )
    }
}

/// A sender on a connection that is broken and made anew now and then.
struct Sender {
    address: SocketAddr,
    stream: Option<TcpStream>,
    sent: u64,
}

impl Sender {
    /// Sends until it is taken.
    fn send(&mut self, path: &str, body: &[u8]) {
        self.sent += 1;
        if self.sent.is_multiple_of(97) {
            // A sender that dies in the middle of a message.
            let mut dying = TcpStream::connect(self.address).unwrap();
            let _ = write!(
                dying,
                "POST {path} HTTP/1.1\r\nHost: x\r\nContent-Type: application/x-protobuf\r\nContent-Length: 999\r\n\r\nhalf"
            );
            self.stream = None;
        }
        loop {
            let stream = self.stream.get_or_insert_with(|| TcpStream::connect(self.address).unwrap());
            let head = format!(
                "POST {path} HTTP/1.1\r\nHost: x\r\nContent-Type: application/x-protobuf\r\nContent-Length: {}\r\n\r\n",
                body.len()
            );
            stream.write_all(&[head.as_bytes(), body].concat()).unwrap();
            let mut answer = [0; 4096];
            let read = stream.read(&mut answer).unwrap();
            let status = answer.get(9..12).unwrap_or_default();
            if status == b"200" {
                return;
            }
            assert_eq!(status, b"503", "{}", String::from_utf8_lossy(&answer[..read]));
            self.stream = None;
        }
    }
}

fn type_keys(app: &mut App<'_>, word: &str) {
    let mut key = |code, modifiers| _ = app.press(&Event::Key(KeyEvent::new(code, modifiers)), &mut Nobody);
    match word {
        "Enter" => key(KeyCode::Enter, KeyModifiers::NONE),
        "Esc" => key(KeyCode::Esc, KeyModifiers::NONE),
        "Tab" => key(KeyCode::Tab, KeyModifiers::NONE),
        "Clear" => (0..40).for_each(|_| key(KeyCode::Backspace, KeyModifiers::NONE)),
        text => text.chars().for_each(|c| key(KeyCode::Char(c), KeyModifiers::NONE)),
    }
}

#[test]
fn a_day_leaves_everything_flat() {
    let spans =
        std::env::var("REQTOP_SOAK").ok().map(|spans| spans.parse::<u64>().expect("REQTOP_SOAK: a number of spans"));
    let is_long = spans.is_some();
    let spans = spans.unwrap_or(SHORT);
    let steps = STEPS[usize::from(is_long)];
    let memory = if is_long { 64 << 20 } else { 2 << 20 };
    let rate = spans as f64 / SPANS_A_REQUEST / (DAY / SECOND) as f64;
    let mut cluster = Cluster::new(&Settings { seed: 9, rate, workers: Some(4), ..Settings::default() }, START_NS);

    let time = Arc::new(AtomicU64::new(START_NS));
    let store = Arc::new(FairMutex::new(Store::new(Limits { memory, ..Limits::default() })));
    let (intake, outlet) = channel(Bounds::default());
    let clock = Arc::clone(&time);
    let writer =
        pipeline::start(outlet, Arc::clone(&store), Arc::new(move || clock.load(Ordering::SeqCst)), || {}).unwrap();
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let any = || Address::Exactly("127.0.0.1:0".parse().unwrap());
    let settings = reqtop::source::otlp::Settings { grpc: any(), http: any(), ..Default::default() };
    let bound = Endpoint::bind(settings).unwrap();
    let mut sender = Sender { address: bound.http()[0], stream: None, sent: 0 };
    let (stop, stopped) = oneshot::channel::<()>();
    let serving = runtime.spawn(bound.serve(intake, Notices::default(), async {
        let _ = stopped.await;
    }));
    let hub = Shared::new(Arc::clone(&store), Vitals::default());
    let seen = Arc::clone(&time);
    let now = move || seen.load(Ordering::SeqCst);
    let mut app = App::new(&hub, Theme::named("terminal").unwrap(), &now);

    let mut rows: Vec<Row> = Vec::new();
    let mut frames = Vec::new();
    let begun = Instant::now();
    let mut tell = |frames: &mut Vec<Duration>, step: u64| {
        let store = store.lock();
        let row = Row {
            hour: step as f64 / steps as f64 * 24.0,
            account: Account::of_spans(store.counts()),
            requests: store.len() as u64,
            store_mib: store.memory() as f64 / (1 << 20) as f64,
            is: Standing::now(),
            frames: std::mem::take(frames),
        };
        println!("{row}");
        assert!(row.account.is_even(), "{row}");
        assert!(store.memory() <= memory + (2 << 20), "{row}");
        rows.push(row);
    };
    for step in 0..=steps {
        if step % (steps / 10) == 0 {
            tell(&mut frames, step);
        }
        let until_ns = START_NS + DAY / steps * step;
        // Export requests one after the other are one.
        let mut joined = [("/v1/traces", Vec::new()), ("/v1/logs", Vec::new())];
        for delivery in cluster.advance(until_ns) {
            // A clock that is set back a little now and then.
            let back_ns = if step % 50 == 7 { 3 * SECOND } else { 0 };
            time.store(delivery.at_ns - back_ns, Ordering::SeqCst);
            let (path, body) = match delivery.signal {
                Signal::Traces => &mut joined[0],
                Signal::Logs => &mut joined[1],
            };
            body.extend_from_slice(&delivery.body);
            if body.len() >= JOINED {
                sender.send(path, &std::mem::take(body));
            }
        }
        for (path, body) in joined {
            if !body.is_empty() {
                sender.send(path, &body);
            }
        }
        time.store(until_ns, Ordering::SeqCst);
        type_keys(&mut app, KEYS[step as usize % KEYS.len()]);
        let (width, height) = if step % 211 == 0 { (3, 2) } else { (160, 50) };
        let start = Instant::now();
        app.frame(width, height);
        frames.push(start.elapsed());
    }
    println!("{:.0} s", begun.elapsed().as_secs_f64());
    drop(sender);
    drop(stop);
    runtime.block_on(serving).unwrap().unwrap();
    writer.join().unwrap();

    let mut store = store.lock();
    store.finish(START_NS + DAY);
    let counts = store.counts();
    assert_eq!(counts.spans_held(), store.spans().count() as u64);
    assert_eq!(counts.spans_received, cluster.ledger().tally.spans, "all that was sent has come");
    assert!(counts.spans_evicted > counts.spans_held(), "a day is more than fits: {counts:?}");
    // Flat: what it is in the end is what it was when the memory had become full.
    let (full, end) = (&rows[4], &rows[10]);
    assert!(end.is.rss_mib <= full.is.rss_mib * 1.15 + 16.0, "memory: {full}\n{end}");
    assert!(end.is.descriptors <= full.is.descriptors + 8, "descriptors: {full}\n{end}");
    assert!(end.is.threads <= full.is.threads + 2, "threads: {full}\n{end}");
    if is_long {
        assert!(end.frame_ms(0.5) <= full.frame_ms(0.5) * 2.0 + 2.0, "frames: {full}\n{end}");
    }
}
