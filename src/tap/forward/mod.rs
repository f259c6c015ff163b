//! The forwarder: everything received goes on to another OTLP endpoint, byte for byte as it came.
//!
//! A thread of its own sends; senders and screen never wait for the far side. What finds no room in the queue is counted
//! as dropped; what the far side says may be sent again is, with growing pauses, or after the time it asks for. What was
//! passed on from here before and came back is not sent a second time. Owns: pauses, when to give up, the counts. Keeps
//! out: transport (`send`), addresses (`target`).

mod raw;
mod send;
pub mod target;

pub use raw::Raw;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::time::{Duration, Instant};

use http::HeaderMap;
use parking_lot::Mutex;
use tokio::task::JoinSet;

use self::send::{Answer, Client};
use self::target::Target;
use super::queue::{Entry, Exit, Gauge, Item, queue};
use super::{Alarm, Tap};
use crate::source::trust;
use crate::source::way::Id;

/// What may wait for the far side unless told otherwise, bytes.
pub const WAITING: usize = 64 << 20;

/// Exports under way at once.
const AT_ONCE: usize = 4;
/// The first pause before an export is sent again; each further one is twice as long, up to the last.
const FIRST_PAUSE: Duration = Duration::from_millis(200);
const LAST_PAUSE: Duration = Duration::from_secs(5);
/// The longest pause that a far side may ask for.
const LONGEST_PAUSE: Duration = Duration::from_secs(60);
/// After this time of trying an export is given up.
const GIVE_UP: Duration = Duration::from_secs(300);
/// How long the end waits for what still waits.
pub const LAST_CALL: Duration = Duration::from_secs(5);
/// How often whoever waits is asked whether to go on.
const ASK: Duration = Duration::from_millis(50);

/// Where to and how.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The endpoint.
    pub target: Target,
    /// Sent with every export; never shown.
    pub headers: HeaderMap,
    /// Whether exports are compressed.
    pub gzip: bool,
    /// What may wait, bytes.
    pub waiting: usize,
    /// The files of TLS, where it is spoken.
    pub files: trust::Files,
}

/// How forwarding stands. Exports are counted; received = forwarded + waiting + dropped + refused + came back.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Standing {
    /// Exports that the far side took.
    pub forwarded: u64,
    /// Times that an export was sent again.
    pub retried: u64,
    /// Exports that found no room, or were given up.
    pub dropped: u64,
    /// Exports that the far side refused for good.
    pub refused: u64,
    /// Exports that were passed on from here before and came back: two that forward to each other.
    pub came_back: u64,
    /// Spans and records that it refused within exports it took.
    pub rejected: u64,
    /// Exports that wait or are under way.
    pub waiting: u64,
    /// Their bytes.
    pub waiting_bytes: usize,
    /// What is wrong at the moment, or was last refused.
    pub trouble: Option<String>,
}

#[derive(Default)]
struct Counts {
    forwarded: AtomicU64,
    retried: AtomicU64,
    given_up: AtomicU64,
    refused: AtomicU64,
    came_back: AtomicU64,
    rejected: AtomicU64,
    trouble: Mutex<Option<String>>,
}

fn add(count: &AtomicU64, number: u64) {
    count.fetch_add(number, Ordering::Relaxed);
}

/// Forwarding at work, as others see it.
pub struct Forwarding {
    target: Target,
    counts: Arc<Counts>,
    gauge: Gauge,
    done: Mutex<Receiver<()>>,
}

/// The forwarder's place in the line of taps.
pub struct Forwarder {
    entry: Entry,
    own: Arc<Own>,
}

/// What the way in and the way out have in common.
struct Own {
    id: Id,
    /// The endpoint, as it is told.
    name: String,
    counts: Arc<Counts>,
    alarm: Alarm,
}

impl Tap for Forwarder {
    fn take(&mut self, item: &Item) {
        // An export of nothing is no news.
        if item.bytes.is_empty() {
            return;
        }
        let Own { id, name, counts, alarm } = &*self.own;
        if !item.way.is_over(id) {
            return self.entry.put(item.clone());
        }
        if counts.came_back.fetch_add(1, Ordering::Relaxed) == 0 {
            alarm(&format!(
                "what is forwarded to {name} comes back from there; it is passed on once, not round and round"
            ));
        }
    }
}

impl Forwarding {
    /// Begins. `alarm` is called of the first export that is refused for good.
    ///
    /// # Errors
    /// The address cannot be used, or the system gives no thread.
    pub fn start(settings: Settings, alarm: Alarm) -> Result<(Forwarder, Self), String> {
        let (entry, exit, gauge) = queue(settings.waiting);
        let counts = Arc::<Counts>::default();
        let (tell, done) = sync_channel(1);
        let target = settings.target.clone();
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(|error| format!("cannot start the forwarder: {error}"))?;
        let client = {
            let _within = runtime.enter();
            Client::new(&target, settings.headers, settings.gzip, &settings.files)?
        };
        let own = Arc::new(Own { id: Id::new(), name: target.to_string(), counts: Arc::clone(&counts), alarm });
        let forwarder = Forwarder { entry, own: Arc::clone(&own) };
        let line = Line { client, own };
        std::thread::Builder::new()
            .name("forwarder".into())
            .spawn(move || {
                runtime.block_on(forward(line, exit));
                runtime.shutdown_background();
                tell_done(&tell);
            })
            .map_err(|error| format!("cannot start the forwarder's thread: {error}"))?;
        Ok((forwarder, Self { target, counts, gauge, done: Mutex::new(done) }))
    }

    /// The endpoint.
    pub fn target(&self) -> &Target {
        &self.target
    }

    /// How it stands.
    pub fn standing(&self) -> Standing {
        let load = |count: &AtomicU64| count.load(Ordering::Relaxed);
        let Counts { forwarded, retried, given_up, refused, came_back, rejected, trouble } = &*self.counts;
        Standing {
            forwarded: load(forwarded),
            retried: load(retried),
            dropped: load(given_up) + self.gauge.dropped(),
            refused: load(refused),
            came_back: load(came_back),
            rejected: load(rejected),
            waiting: self.gauge.waiting(),
            waiting_bytes: self.gauge.waiting_bytes(),
            trouble: trouble.lock().clone(),
        }
    }

    /// Waits for what still waits, once the [`Forwarder`] is gone: at most [`LAST_CALL`], and while `goes_on`, which is told
    /// how long that has been.
    pub fn finish(&self, mut goes_on: impl FnMut(Duration) -> bool) -> Standing {
        let began = Instant::now();
        // What is not there in time stays in the count of what waits.
        while self.done.lock().recv_timeout(ASK) == Err(RecvTimeoutError::Timeout)
            && began.elapsed() < LAST_CALL
            && goes_on(began.elapsed())
        {}
        self.standing()
    }
}

fn tell_done(tell: &SyncSender<()>) {
    // Nobody may be waiting for the end.
    let _ = tell.try_send(());
}

/// What every export needs.
#[derive(Clone)]
struct Line {
    client: Client,
    own: Arc<Own>,
}

/// Sends what comes until the way in is gone and everything is sent.
async fn forward(line: Line, mut exit: Exit) {
    let mut under_way: JoinSet<Item> = JoinSet::new();
    let mut open = true;
    while open || !under_way.is_empty() {
        tokio::select! {
            item = exit.next(), if open && under_way.len() < AT_ONCE => match item {
                Some(item) => {
                    let line = line.clone();
                    under_way.spawn(async move {
                        line.send(&item).await;
                        item
                    });
                }
                None => open = false,
            },
            Some(sent) = under_way.join_next() => {
                if let Ok(item) = sent {
                    exit.done(&item);
                }
            }
        }
    }
}

impl Line {
    /// Sends one export until it is taken, refused or given up.
    async fn send(&self, item: &Item) {
        let began = Instant::now();
        let mut pause = FIRST_PAUSE;
        let Own { id, counts, .. } = &*self.own;
        let way = item.way.and(id);
        loop {
            match self.client.export(item.signal, &item.bytes, &way).await {
                Answer::Taken(rejected, words) => {
                    add(&counts.forwarded, 1);
                    add(&counts.rejected, rejected);
                    let why = if words.is_empty() { "without a word why" } else { &words };
                    *counts.trouble.lock() =
                        (rejected > 0).then(|| format!("{rejected} rejected in an export that was taken: {why}"));
                    return;
                }
                Answer::Refused(words) => {
                    self.refuse(&words);
                    return;
                }
                Answer::Again(asked, words) => {
                    *counts.trouble.lock() = Some(words);
                    if began.elapsed() >= GIVE_UP {
                        return add(&counts.given_up, 1);
                    }
                    add(&counts.retried, 1);
                    // Not all at the same moment.
                    let spread = pause.mul_f64(0.75 + fastrand::f64() / 2.0);
                    tokio::time::sleep(asked.map_or(spread, |asked| asked.clamp(FIRST_PAUSE, LONGEST_PAUSE))).await;
                    pause = (pause * 2).min(LAST_PAUSE);
                }
            }
        }
    }

    fn refuse(&self, words: &str) {
        let Own { name, counts, alarm, .. } = &*self.own;
        if counts.refused.fetch_add(1, Ordering::Relaxed) == 0 {
            alarm(&format!("{name} refuses what is forwarded, which is lost: {words}"));
        }
        *counts.trouble.lock() = Some(words.to_owned());
    }
}

#[cfg(test)]
mod tests;
