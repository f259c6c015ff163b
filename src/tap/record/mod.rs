//! The recorder: what arrives, as OTLP/JSON lines with the time it arrived.
//!
//! One export request a line, as the Collector's file exporter writes it; the time stands in a key of our own behind it,
//! which OTLP's readers ignore. A thread prints and writes; the store's writer never waits for it. When the file cannot be
//! written to any more the recording ends, says so, and the rest lives on. Owns: lines, when they are written, what is told
//! of it. Keeps out: the file itself ([`file`]).

pub mod file;

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::time::{Duration, Instant};

use parking_lot::Mutex;

use self::file::{Form, RecordFile};
use super::queue::{Entry, Exit, Gauge, Item, queue};
use super::{Alarm, Tap};
use crate::source::otlp::json;

/// The key behind each request: when it arrived, nanoseconds since the epoch as text. OTLP's readers must ignore keys they
/// do not know.
pub const ARRIVED: &str = json::ARRIVED;

/// How many of the files put aside are kept unless told otherwise.
pub const KEEP: usize = 4;

/// What may wait to be written, in bytes of protobuf.
const WAITING: usize = 64 << 20;
/// Lines are written when there are so many bytes of them, or nothing more is waiting.
const LINES: usize = 256 << 10;
/// Compressed lines are written when there are so many bytes of them …
const PACK: usize = 1 << 20;
/// … or after this time: what a kill may cost.
const PACK_TIME: Duration = Duration::from_secs(1);
/// How long the end waits for what is still to be written.
const LAST_CALL: Duration = Duration::from_secs(5);

/// What to record to.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The file; `.gz` and `.zst` compress.
    pub path: PathBuf,
    /// From how many bytes on a new file is begun; `None`: never.
    pub most: Option<u64>,
    /// How many of the files put aside are kept.
    pub keep: usize,
}

/// How a recording stands.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Standing {
    /// Requests written.
    pub requests: u64,
    /// Bytes written, as they lie in files.
    pub bytes: u64,
    /// Requests that were not recorded: no room in the queue, or the recording had ended.
    pub lost: u64,
    /// Values nested too deeply, recorded as a note.
    pub too_deep: u64,
    /// Why it ended early.
    pub ended: Option<String>,
}

#[derive(Default)]
struct Counts {
    requests: AtomicU64,
    bytes: AtomicU64,
    lost: AtomicU64,
    too_deep: AtomicU64,
    ended: Mutex<Option<String>>,
}

/// A recording at work, as others see it.
pub struct Recording {
    path: PathBuf,
    counts: Arc<Counts>,
    gauge: Gauge,
    done: Mutex<Receiver<()>>,
}

/// The recorder's place in the line of taps.
pub struct Recorder(Entry);

impl Tap for Recorder {
    fn take(&mut self, item: &Item) {
        if !item.bytes.is_empty() {
            self.0.put(item.clone());
        }
    }
}

impl Recording {
    /// Begins. `alarm` is called of a torn end that was mended, and when the recording ends early.
    ///
    /// # Errors
    /// Why this file cannot be recorded to, and what to do.
    pub fn start(settings: Settings, alarm: Alarm) -> Result<(Recorder, Self), String> {
        let (file, note) = RecordFile::open(&settings.path, is_recorded)?;
        if let Some(note) = note {
            alarm(&note);
        }
        let (entry, exit, gauge) = queue(WAITING);
        let counts = Arc::<Counts>::default();
        let (tell, done) = sync_channel(1);
        let path = settings.path.clone();
        let writer = Writer { settings, file, counts: Arc::clone(&counts), lines: Vec::new(), requests: 0, last_ns: 0 };
        std::thread::Builder::new()
            .name("recorder".into())
            .spawn(move || work(writer, exit, &alarm, &tell))
            .map_err(|error| format!("cannot start the recorder's thread: {error}"))?;
        Ok((Recorder(entry), Self { path, counts, gauge, done: Mutex::new(done) }))
    }

    /// The file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// How it stands.
    pub fn standing(&self) -> Standing {
        let load = |count: &AtomicU64| count.load(Ordering::Relaxed);
        let Counts { requests, bytes, lost, too_deep, ended } = &*self.counts;
        Standing {
            requests: load(requests),
            bytes: load(bytes),
            lost: load(lost) + self.gauge.dropped(),
            too_deep: load(too_deep),
            ended: ended.lock().clone(),
        }
    }

    /// Waits until everything is written, once the [`Recorder`] is gone.
    pub fn finish(&self) -> Standing {
        // Whatever it comes back with, there is nothing more to wait for.
        let _ = self.done.lock().recv_timeout(LAST_CALL);
        self.standing()
    }
}

/// Whether a line was written by a recorder.
fn is_recorded(line: &[u8]) -> bool {
    line.starts_with(b"{\"resource") && json::arrived(line).is_some()
}

/// Writes what comes until the way in is gone. Once it cannot write any more, it counts what it would have written.
fn work(mut writer: Writer, mut exit: Exit, alarm: &Alarm, tell: &SyncSender<()>) {
    let packs = writer.file.form() != Form::Plain;
    let mut due: Option<Instant> = None;
    loop {
        let mut ended = false;
        match exit.next_until(due) {
            Some(Some(item)) => {
                writer.line(&item);
                exit.done(&item);
            }
            Some(None) => ended = true,
            None => {}
        }
        // Everything that is there already goes into the same pack.
        while writer.lines.len() < PACK
            && let Some(item) = exit.try_next()
        {
            writer.line(&item);
            exit.done(&item);
            if !packs && writer.lines.len() >= LINES {
                break;
            }
        }
        let now = Instant::now();
        if writer.lines.is_empty() {
            due = None;
        } else if !packs || ended || writer.lines.len() >= PACK || due.is_some_and(|due| now >= due) {
            due = None;
            if let Err(error) = writer.write() {
                alarm(&writer.give_up(&error));
            }
        } else {
            due = due.or(Some(now + PACK_TIME));
        }
        if ended {
            break;
        }
    }
    if let Err(error) = writer.file.sync() {
        alarm(&writer.give_up(&error));
    }
    // Its lock goes before the word that it is done.
    drop(writer);
    // Nobody may be waiting for the end.
    let _ = tell.try_send(());
}

struct Writer {
    settings: Settings,
    file: RecordFile,
    counts: Arc<Counts>,
    /// Whole lines that are not written yet, and how many.
    lines: Vec<u8>,
    requests: u64,
    /// When the last of them came.
    last_ns: u64,
}

impl Writer {
    /// Prints one request as a line.
    fn line(&mut self, item: &Item) {
        let add = |count: &AtomicU64, number| _ = count.fetch_add(number, Ordering::Relaxed);
        if self.counts.ended.lock().is_some() {
            return add(&self.counts.lost, 1);
        }
        let before = self.lines.len();
        match json::print(item.signal, &item.bytes, &mut self.lines) {
            Ok(too_deep) => add(&self.counts.too_deep, too_deep),
            // It was decoded once; that it cannot be now is for the counts all the same.
            Err(_) => return add(&self.counts.lost, 1),
        }
        if !json::stamp(&mut self.lines, before, item.arrived_ns) {
            // A request that holds nothing.
            self.lines.truncate(before);
            return;
        }
        self.lines.push(b'\n');
        self.requests += 1;
        self.last_ns = item.arrived_ns;
    }

    fn write(&mut self) -> io::Result<()> {
        let pack = self.file.form().pack(&self.lines)?;
        let size = self.file.size();
        if size > 0 && self.settings.most.is_some_and(|most| size + pack.len() as u64 > most) {
            self.file.turn_over(self.last_ns, self.settings.keep)?;
        }
        self.file.add(&pack)?;
        self.lines.clear();
        self.counts.bytes.fetch_add(pack.len() as u64, Ordering::Relaxed);
        self.counts.requests.fetch_add(std::mem::take(&mut self.requests), Ordering::Relaxed);
        Ok(())
    }

    /// Ends the recording; gives the sentence that says so.
    fn give_up(&mut self, error: &io::Error) -> String {
        self.lines = Vec::new();
        self.counts.lost.fetch_add(std::mem::take(&mut self.requests), Ordering::Relaxed);
        let words = format!("recording to {} has stopped: {error}", self.settings.path.display());
        *self.counts.ended.lock() = Some(error.to_string());
        words
    }
}

#[cfg(test)]
mod tests;
