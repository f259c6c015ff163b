//! Recordings as they are written.

use std::io::Read as _;
use std::sync::atomic::AtomicUsize;

use bytes::Bytes;

use super::*;
use crate::demo::{self, Cluster};
use crate::source::intake::Signal;

const START: u64 = 1_796_000_000_000_000_000;

/// What a simulated cluster sends in five seconds.
fn sent() -> Vec<(Signal, Bytes, u64)> {
    let mut cluster = Cluster::new(&demo::Settings::default(), START);
    let deliveries = cluster.advance(START + 5_000_000_000);
    let signal = |delivery: &demo::Delivery| match delivery.signal {
        demo::Signal::Traces => Signal::Traces,
        demo::Signal::Logs => Signal::Logs,
    };
    deliveries.iter().map(|delivery| (signal(delivery), delivery.body.clone(), delivery.at_ns)).collect()
}

fn text(path: &Path) -> String {
    let bytes = std::fs::read(path).unwrap();
    match Form::of(path) {
        Form::Plain => String::from_utf8(bytes).unwrap(),
        Form::Zstd => String::from_utf8(zstd::stream::decode_all(&bytes[..]).unwrap()).unwrap(),
        Form::Gzip => {
            let mut text = String::new();
            flate2::read::MultiGzDecoder::new(&bytes[..]).read_to_string(&mut text).unwrap();
            text
        }
    }
}

fn settings(path: &Path) -> Settings {
    Settings { path: path.to_owned(), most: None, keep: 4 }
}

#[test]
fn every_request_is_a_line_with_its_time_in_every_form() {
    let folder = tempfile::tempdir().unwrap();
    let sent = sent();
    for name in ["a.jsonl", "a.jsonl.gz", "a.jsonl.zst"] {
        let path = folder.path().join(name);
        // In two goes: the second is added to the first.
        for half in [&sent[..sent.len() / 2], &sent[sent.len() / 2..]] {
            let (mut recorder, recording) =
                Recording::start(settings(&path), Arc::new(|words: &str| panic!("{words}"))).unwrap();
            for (signal, bytes, at_ns) in half {
                recorder.take(&Item::straight(*signal, bytes, *at_ns));
            }
            recorder.take(&Item::straight(Signal::Traces, &Bytes::new(), START));
            drop(recorder);
            let standing = recording.finish();
            assert_eq!((standing.requests, standing.lost), (half.len() as u64, 0));
        }
        let text = text(&path);
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines.len(), sent.len());
        for (line, (signal, bytes, at_ns)) in lines.iter().zip(&sent) {
            assert_eq!(json::arrived(line.as_bytes()), Some(*at_ns));
            let mut printed = Vec::new();
            json::print(*signal, bytes, &mut printed).unwrap();
            assert!(line.as_bytes().starts_with(&printed[..printed.len() - 1]));
        }
    }
}

/// When it began and ended stands around what came; of nothing, nothing is written.
#[test]
fn its_first_and_last_moments_stand_around_what_came() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.jsonl");
    let record = |from_ns: u64, until_ns: u64, came: &[(Signal, Bytes, u64)]| {
        let (mut recorder, recording) =
            Recording::start(settings(&path), Arc::new(|words: &str| panic!("{words}"))).unwrap();
        recorder.begin(from_ns);
        came.iter().for_each(|(signal, bytes, at_ns)| recorder.take(&Item::straight(*signal, bytes, *at_ns)));
        recorder.end(until_ns);
        drop(recorder);
        recording.finish();
        let text = text(&path);
        text.lines().map(|line| json::arrived(line.as_bytes()).unwrap()).collect::<Vec<_>>()
    };
    assert!(record(1, 9, &[]).is_empty());
    let sent = &sent()[..2];
    let [first, second] = [sent[0].2, sent[1].2];
    assert_eq!(record(2, 8, sent), [2, first, second, 8]);
    assert_eq!(record(10, 11, &sent[..1]), [2, first, second, 8, 10, first, 11], "added to what is there");
    assert!(text(&path).starts_with(r#"{"resourceSpans":[],"#));
}

#[test]
fn a_new_file_is_begun_in_time_and_no_line_is_torn_apart() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.jsonl");
    let (mut recorder, recording) = Recording::start(
        Settings { most: Some(300_000), ..settings(&path) },
        Arc::new(|words: &str| panic!("{words}")),
    )
    .unwrap();
    for (signal, bytes, at_ns) in sent() {
        recorder.take(&Item::straight(signal, &bytes, at_ns));
    }
    drop(recorder);
    let standing = recording.finish();
    let files: Vec<_> = std::fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().path()).collect();
    assert!((3..=5).contains(&files.len()), "{files:?}");
    for file in &files {
        assert!(text(file).lines().all(|line| json::arrived(line.as_bytes()).is_some()));
    }
    assert!(standing.bytes > 600_000);
    assert_eq!((standing.requests + standing.removed, standing.lost), (sent().len() as u64, 0));
}

/// What went with the oldest files is not there, and is counted.
#[test]
fn what_the_oldest_files_held_is_counted_when_they_go() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.jsonl");
    let settings = Settings { most: Some(200_000), keep: 1, ..settings(&path) };
    let (mut recorder, recording) = Recording::start(settings, Arc::new(|words: &str| panic!("{words}"))).unwrap();
    for (signal, bytes, at_ns) in sent() {
        recorder.take(&Item::straight(signal, &bytes, at_ns));
    }
    drop(recorder);
    let standing = recording.finish();
    let files: Vec<_> = std::fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().path()).collect();
    let there: u64 = files.iter().map(|file| requests(&text(file))).sum();
    let bytes: u64 = files.iter().map(|file| std::fs::metadata(file).unwrap().len()).sum();
    assert!(files.len() == 2 && standing.removed > 0, "{files:?}");
    assert_eq!((standing.requests, standing.bytes, standing.lost), (there, bytes, 0));
    assert_eq!(standing.requests + standing.removed, sent().len() as u64);
}

#[test]
fn a_recording_that_cannot_be_written_ends_with_a_word_and_counts() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.jsonl");
    let said = Arc::new(AtomicUsize::new(0));
    let heard = Arc::clone(&said);
    let (mut recorder, mut recording) = Recording::start(settings(&path), Arc::new(|_: &str| {})).unwrap();
    recorder.take(&Item::straight(Signal::Metrics, &Bytes::from_static(b"x"), START));
    drop(recorder);
    recording.finish();
    // The same again on a file that cannot be written to.
    let (entry, exit, gauge) = queue(WAITING);
    let counts = Arc::<Counts>::default();
    let (tell, done) = sync_channel(1);
    let writer = Writer::new(settings(&path), RecordFile::broken(&path), Arc::clone(&counts), gauge.clone());
    let alarm: Alarm = Arc::new(move |words: &str| {
        assert!(words.contains("has stopped") && words.contains("a.jsonl"), "{words}");
        heard.fetch_add(1, Ordering::Relaxed);
    });
    recording = Recording { path, counts, gauge, done: Mutex::new(done) };
    let mut recorder = Recorder { entry, lost: None };
    let sent = sent();
    for (signal, bytes, at_ns) in &sent {
        recorder.take(&Item::straight(*signal, bytes, *at_ns));
    }
    drop(recorder);
    work(writer, exit, &alarm, &tell);
    let standing = recording.finish();
    assert_eq!((standing.requests, standing.lost), (0, sent.len() as u64));
    assert!(standing.ended.is_some() && said.load(Ordering::Relaxed) >= 1);
}

/// A recorder whose thread is this one.
struct Bench {
    writer: Writer,
    alarm: Alarm,
    said: Arc<Mutex<Vec<String>>>,
}

impl Bench {
    fn new(settings: Settings) -> Self {
        let (file, _) = RecordFile::open(&settings.path, is_recorded).unwrap();
        let said = Arc::<Mutex<Vec<String>>>::default();
        let heard = Arc::clone(&said);
        let alarm: Alarm = Arc::new(move |words: &str| heard.lock().push(words.to_owned()));
        Self { writer: Writer::new(settings, file, Arc::default(), queue(1).2), alarm, said }
    }

    /// Writes so many exports, a second after those before.
    fn write(&mut self, count: usize) -> io::Result<()> {
        for (signal, bytes, at_ns) in sent().iter().take(count) {
            self.writer.line(&Item::straight(*signal, bytes, *at_ns), &(Arc::new(|_: &str| {}) as Alarm));
        }
        self.writer.looked = None;
        self.writer.write(&self.alarm)
    }

    fn standing(&self) -> (u64, u64, u64) {
        let load = |count: &AtomicU64| count.load(Ordering::Relaxed);
        let Counts { requests, bytes, lost, .. } = &*self.writer.counts;
        (load(requests), load(bytes), load(lost))
    }

    fn said(&self) -> String {
        std::mem::take(&mut *self.said.lock()).join("\n")
    }
}

/// How many lines hold requests.
fn requests(text: &str) -> u64 {
    text.lines().filter(|line| holds_a_request(line.as_bytes())).count() as u64
}

/// Requests and bytes of files.
fn there(paths: &[&Path]) -> (u64, u64) {
    let lines = paths.iter().map(|path| requests(&text(path))).sum();
    (lines, paths.iter().map(|path| std::fs::metadata(path).unwrap().len()).sum())
}

#[test]
fn what_others_do_to_the_file_is_told_and_counted() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    for name in ["a.jsonl", "a.jsonl.gz", "a.jsonl.zst"] {
        let (path, aside) = (at(name), at(&format!("aside-{name}")));
        let mut bench = Bench::new(settings(&path));
        bench.write(5).unwrap();
        // Moved, as one rotates logs: it goes on in a new file, and nothing is lost.
        std::fs::rename(&path, &aside).unwrap();
        bench.write(3).unwrap();
        assert_eq!(bench.said(), format!("the recording {} was moved; a new one is begun", path.display()));
        let (lines, bytes) = there(&[&path, &aside]);
        assert_eq!((bench.standing(), lines), ((8, bytes, 0), 8), "{name}");
        // Removed: what was in it is lost.
        std::fs::remove_file(&path).unwrap();
        bench.write(4).unwrap();
        assert!(bench.said().ends_with("was removed, and with it 3 exports; a new one is begun"));
        let (lines, bytes) = there(&[&path, &aside]);
        assert_eq!((bench.standing(), lines), ((9, bytes, 3), 9), "{name}");
        // Cut: so is what is no longer there.
        bench.write(2).unwrap();
        let size = std::fs::metadata(&path).unwrap().len();
        std::fs::File::options().write(true).open(&path).unwrap().set_len(size - 5).unwrap();
        bench.write(2).unwrap();
        assert!(bench.said().contains("was cut by another program, and with it "), "{name}");
        let (lines, bytes) = there(&[&path, &aside]);
        let standing = bench.standing();
        assert_eq!((standing, lines), ((lines, bytes, 16 - lines), lines), "{name}");
        // A torn pack costs all its lines, a torn line itself.
        assert_eq!(lines, if name == "a.jsonl" { 12 } else { 11 }, "{name}");
        // Gone at the end: nothing more is begun, and nothing said to be there.
        std::fs::remove_file(&path).unwrap();
        bench.writer.look(Next::End, &bench.alarm).unwrap();
        assert!(bench.said().contains("was removed") && !path.exists());
        let (lines, bytes) = there(&[&aside]);
        assert_eq!((bench.standing(), lines), ((5, bytes, 11), 5), "{name}");
    }
}

#[test]
fn a_recording_that_cannot_go_on_in_a_new_file_ends() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.jsonl");
    let mut bench = Bench::new(settings(&path));
    bench.write(2).unwrap();
    std::fs::remove_file(&path).unwrap();
    std::fs::write(&path, "somebody else's\n").unwrap();
    let error = bench.write(2).unwrap_err();
    assert!(error.to_string().contains("was removed, and no new one can be begun: "), "{error}");
    bench.writer.give_up(&error);
    assert_eq!(bench.standing(), (0, 0, 4));
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "somebody else's\n");
}

#[test]
fn what_is_put_aside_is_ours() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.jsonl");
    let mut bench = Bench::new(Settings { most: Some(1), ..settings(&path) });
    bench.write(2).unwrap();
    bench.writer.looked = Some(Instant::now());
    std::fs::rename(&path, folder.path().join("aside")).unwrap();
    std::fs::write(&path, "").unwrap();
    for (signal, bytes, at_ns) in sent().iter().take(1) {
        bench.writer.line(&Item::straight(*signal, bytes, *at_ns), &(Arc::new(|_: &str| {}) as Alarm));
    }
    bench.writer.write(&bench.alarm).unwrap();
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 2, "the empty file is taken up, not put aside");
}
