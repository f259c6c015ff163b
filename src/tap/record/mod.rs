//! The recorder: what arrives, as OTLP/JSON lines with the time it arrived.
//!
//! One export request a line, as the Collector's file exporter writes it; the time stands in a key of our own behind it,
//! which OTLP's readers ignore. The first line is a request of nothing: when recording began; and so is the last: when it
//! ended, as far as it did by itself.
//! A thread prints and writes; the store's writer never waits for it. When the file cannot be
//! written to any more the recording ends, says so, and the rest lives on. Owns: lines, when they are written, what is told
//! of it. Keeps out: the file itself ([`file`]).

pub mod file;

use std::collections::HashMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::time::{Duration, Instant};

use bytes::Bytes;
use parking_lot::Mutex;

use self::file::{Form, Found, RecordFile};
use super::queue::{Entry, Exit, Gauge, Item, queue};
use super::{Alarm, Tap};
use crate::source::intake::Signal;
use crate::source::notices::Notices;
use crate::source::otlp::json::{self, left_out::LeftOut};

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
/// How often it is looked whether the file is still there, while there is something to write.
const LOOK: Duration = Duration::from_secs(1);
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
    /// Requests written, and not taken away since.
    pub requests: u64,
    /// Their bytes, as they lie in files.
    pub bytes: u64,
    /// Requests that are not recorded: no room in the queue, the recording had ended, or what was written was taken away by
    /// others.
    pub lost: u64,
    /// Requests that went with the oldest files put aside, as [`Settings::keep`] asks.
    pub removed: u64,
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
    removed: AtomicU64,
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
pub struct Recorder {
    entry: Entry,
    /// Who knows how many exports were lost before anybody could take them, and how many of these are recorded.
    lost: Option<(Notices, u64)>,
}

impl Recorder {
    /// What is lost at the door is recorded, too.
    #[must_use]
    pub fn hearing(self, notices: Notices) -> Self {
        Self { lost: Some((notices, 0)), ..self }
    }

    fn nothing(&self, now_ns: u64, left_out: Option<Box<LeftOut>>) {
        self.entry.put(Item { left_out, ..Item::straight(Signal::Traces, &Bytes::new(), now_ns) });
    }

    /// Records the exports that were lost since it last did.
    fn tell_lost(&mut self, now_ns: u64) {
        let Some((notices, told)) = &mut self.lost else { return };
        let lost = notices.lost();
        let exports = lost - std::mem::replace(told, lost);
        if exports > 0 {
            self.nothing(now_ns, Some(Box::new(LeftOut { exports, ..LeftOut::default() })));
        }
    }
}

impl Tap for Recorder {
    fn take(&mut self, item: &Item) {
        self.tell_lost(item.arrived_ns);
        if !item.bytes.is_empty() || item.left_out.is_some() {
            self.entry.put(item.clone());
        }
    }

    fn begin(&mut self, now_ns: u64) {
        self.nothing(now_ns, None);
    }

    fn end(&mut self, now_ns: u64) {
        self.tell_lost(now_ns);
        self.nothing(now_ns, None);
    }
}

impl Recording {
    /// Begins. `alarm` is called of a torn end that was mended, of a file that is open to others, when others have moved,
    /// removed or cut it, and when the recording ends early.
    ///
    /// # Errors
    /// Why this file cannot be recorded to, and what to do.
    pub fn start(settings: Settings, alarm: Alarm) -> Result<(Recorder, Self), String> {
        let (file, notes) = RecordFile::open(&settings.path, is_recorded)?;
        notes.iter().for_each(|note| alarm(note));
        let (entry, exit, gauge) = queue(WAITING);
        let counts = Arc::<Counts>::default();
        let (tell, done) = sync_channel(1);
        let path = settings.path.clone();
        let writer = Writer::new(settings, file, Arc::clone(&counts), gauge.clone());
        std::thread::Builder::new()
            .name("recorder".into())
            .spawn(move || work(writer, exit, &alarm, &tell))
            .map_err(|error| format!("cannot start the recorder's thread: {error}"))?;
        Ok((Recorder { entry, lost: None }, Self { path, counts, gauge, done: Mutex::new(done) }))
    }

    /// The file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// How it stands.
    pub fn standing(&self) -> Standing {
        let load = |count: &AtomicU64| count.load(Ordering::Relaxed);
        let Counts { requests, bytes, lost, removed, too_deep, ended } = &*self.counts;
        Standing {
            requests: load(requests),
            bytes: load(bytes),
            lost: load(lost) + self.gauge.dropped(),
            removed: load(removed),
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
                writer.line(&item, alarm);
                exit.done(&item);
            }
            Some(None) => ended = true,
            None => {}
        }
        // Everything that is there already goes into the same pack.
        while writer.lines.len() < PACK
            && let Some(item) = exit.try_next()
        {
            writer.line(&item, alarm);
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
            if let Err(error) = writer.write(alarm) {
                alarm(&writer.give_up(&error));
            }
        } else {
            due = due.or(Some(now + PACK_TIME));
        }
        if ended {
            break;
        }
    }
    let is_going = writer.counts.ended.lock().is_none();
    let last = if is_going { writer.look(Next::End, alarm) } else { Ok(()) };
    if let Err(error) = last.and_then(|()| writer.file.sync()) {
        alarm(&writer.give_up(&error));
    }
    // Its lock goes before the word that it is done.
    drop(writer);
    // Nobody may be waiting for the end.
    let _ = tell.try_send(());
}

/// The request of nothing.
const NOTHING: &[u8] = br#"{"resourceSpans":[]}"#;

/// Whether a line of ours is a request that came.
fn holds_a_request(line: &[u8]) -> bool {
    !line.starts_with(&NOTHING[..NOTHING.len() - 1])
}

/// A line of a request that holds nothing.
fn empty(left_out: Option<LeftOut>, now_ns: u64) -> Vec<u8> {
    let mut line = NOTHING.to_vec();
    if let Some(left_out) = left_out {
        json::left_out::put(&mut line, 0, &left_out);
    }
    json::stamp(&mut line, 0, now_ns);
    line.push(b'\n');
    line
}

struct Writer {
    settings: Settings,
    file: RecordFile,
    counts: Arc<Counts>,
    /// Whole lines that are not written yet, and how many.
    lines: Vec<u8>,
    requests: u64,
    /// When the last of them came, and the last one that was written.
    last_ns: u64,
    written_ns: u64,
    /// Exports that are not in the file and should be, and how many of these the file tells of.
    missed: u64,
    missed_told: u64,
    /// What waits to come here, and what found no room.
    gauge: Gauge,
    /// From when on is recorded what comes, until that is written.
    begun_ns: Option<u64>,
    /// Requests in the file that were written by us.
    in_file: u64,
    /// The files put aside that are still there, with the requests and bytes in them that were written by us.
    aside: HashMap<PathBuf, (u64, u64)>,
    /// When it was looked whether the file is still there.
    looked: Option<Instant>,
    /// Whether it was told that an export could not be recorded.
    is_told: bool,
}

/// What follows a look at the file.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Next {
    Write,
    End,
}

impl Writer {
    fn new(settings: Settings, file: RecordFile, counts: Arc<Counts>, gauge: Gauge) -> Self {
        Self {
            settings,
            file,
            counts,
            lines: Vec::new(),
            requests: 0,
            last_ns: 0,
            written_ns: 0,
            missed: 0,
            missed_told: 0,
            gauge,
            begun_ns: None,
            in_file: 0,
            aside: HashMap::new(),
            looked: None,
            is_told: false,
        }
    }

    /// Prints one request as a line.
    fn line(&mut self, item: &Item, alarm: &Alarm) {
        let add = |count: &AtomicU64, number| _ = count.fetch_add(number, Ordering::Relaxed);
        if self.counts.ended.lock().is_some() {
            return add(&self.counts.lost, 1);
        }
        if item.bytes.is_empty() && item.left_out.is_none() {
            return self.moment(item.arrived_ns);
        }
        if let Some(begun_ns) = self.begun_ns.take() {
            self.nothing(begun_ns);
        }
        let before = self.lines.len();
        match json::print(item.signal, &item.bytes, &mut self.lines) {
            Ok(too_deep) => add(&self.counts.too_deep, too_deep),
            // What was taken as another signal than it is, for example.
            Err(reason) => {
                if !std::mem::replace(&mut self.is_told, true) {
                    alarm(&format!("an export is not recorded, and others like it: {reason}"));
                }
                self.missed += 1;
                return add(&self.counts.lost, 1);
            }
        }
        if let Some(left_out) = &item.left_out {
            json::left_out::put(&mut self.lines, before, left_out);
        }
        if !json::stamp(&mut self.lines, before, item.arrived_ns) {
            // A request that holds nothing.
            self.lines.truncate(before);
            return;
        }
        self.lines.push(b'\n');
        self.requests += u64::from(!item.bytes.is_empty());
        self.last_ns = item.arrived_ns;
    }

    /// Notes from when on what comes is recorded, once something does, or until when nothing more came.
    fn moment(&mut self, now_ns: u64) {
        if self.in_file + self.requests == 0 {
            self.begun_ns = Some(now_ns);
        } else {
            self.nothing(now_ns);
        }
    }

    /// A line of a request that holds nothing.
    fn nothing(&mut self, now_ns: u64) {
        self.lines.extend(empty(None, now_ns));
        self.last_ns = now_ns;
    }

    fn write(&mut self, alarm: &Alarm) -> io::Result<()> {
        let missed = self.missed + self.gauge.dropped();
        let exports = missed - std::mem::replace(&mut self.missed_told, missed);
        if exports > 0 {
            self.lines.extend(empty(Some(LeftOut { exports, ..LeftOut::default() }), self.last_ns));
        }
        let pack = self.file.form().pack(&self.lines)?;
        let most = self.settings.most;
        let is_full = |size: u64| size > 0 && most.is_some_and(|most| size + pack.len() as u64 > most);
        // What is put aside must be ours, too.
        if is_full(self.file.size()) || self.looked.is_none_or(|looked| looked.elapsed() >= LOOK) {
            self.looked = Some(Instant::now());
            self.look(Next::Write, alarm)?;
        }
        if is_full(self.file.size()) {
            self.turn_over()?;
        }
        if self.file.size() == 0 && self.written_ns > 0 {
            let first = empty(Some(LeftOut { continues: true, ..LeftOut::default() }), self.written_ns);
            let first = self.file.form().pack(&first)?;
            self.file.add(&first)?;
            self.counts.bytes.fetch_add(first.len() as u64, Ordering::Relaxed);
        }
        self.file.add(&pack)?;
        self.lines.clear();
        self.written_ns = self.last_ns;
        self.in_file += self.requests;
        self.counts.bytes.fetch_add(pack.len() as u64, Ordering::Relaxed);
        self.counts.requests.fetch_add(std::mem::take(&mut self.requests), Ordering::Relaxed);
        Ok(())
    }

    /// Begins a new file, and counts what went with the oldest ones.
    fn turn_over(&mut self) -> io::Result<()> {
        let ours = (std::mem::take(&mut self.in_file), self.file.written());
        let (aside, gone) = self.file.turn_over(self.last_ns, self.settings.keep)?;
        self.aside.insert(aside, ours);
        for (requests, bytes) in gone.iter().filter_map(|path| self.aside.remove(path)) {
            self.counts.requests.fetch_sub(requests, Ordering::Relaxed);
            self.counts.bytes.fetch_sub(bytes, Ordering::Relaxed);
            self.counts.removed.fetch_add(requests, Ordering::Relaxed);
        }
        Ok(())
    }

    /// Looks what others have done to the file and counts what is no longer there. Where it lost its name, a new one is begun
    /// if there is more to write: whoever moves a recording away, as one rotates a log, goes on with the next.
    fn look(&mut self, next: Next, alarm: &Alarm) -> io::Result<()> {
        let (before, found) = (self.file.written(), self.file.look()?);
        let (what, left) = match found {
            Found::Whole => return Ok(()),
            Found::Moved => ("was moved", self.in_file),
            Found::Removed => ("was removed", 0),
            Found::Cut => ("was cut by another program", self.file.take_up(holds_a_request)?.min(self.in_file)),
        };
        let bytes = match found {
            Found::Removed => before,
            Found::Cut => before.saturating_sub(self.file.written()),
            Found::Moved | Found::Whole => 0,
        };
        let lost = self.in_file - left;
        self.in_file = left;
        if found == Found::Cut {
            self.missed += lost;
        }
        self.counts.requests.fetch_sub(lost, Ordering::Relaxed);
        self.counts.bytes.fetch_sub(bytes, Ordering::Relaxed);
        self.counts.lost.fetch_add(lost, Ordering::Relaxed);
        let path = &self.settings.path;
        let mut words = format!("the recording {} {what}", path.display());
        if lost > 0 {
            words += &format!(", and with it {lost} {}", if lost == 1 { "export" } else { "exports" });
        }
        if found != Found::Cut && next == Next::Write {
            let (file, notes) = RecordFile::open(path, is_recorded)
                .map_err(|error| io::Error::other(format!("it {what}, and no new one can be begun: {error}")))?;
            (self.file, self.in_file) = (file, 0);
            words += "; a new one is begun";
            notes.iter().for_each(|note| alarm(note));
        }
        alarm(&words);
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
