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
    let writer = Writer {
        settings: settings(&path),
        file: RecordFile::broken(&path),
        counts: Arc::clone(&counts),
        lines: Vec::new(),
        requests: 0,
        last_ns: 0,
    };
    let alarm: Alarm = Arc::new(move |words: &str| {
        assert!(words.contains("has stopped") && words.contains("a.jsonl"), "{words}");
        heard.fetch_add(1, Ordering::Relaxed);
    });
    recording = Recording { path, counts, gauge, done: Mutex::new(done) };
    let mut recorder = Recorder(entry);
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
