//! Files as the field has them: each case by its number in the list of known field cases.

use std::fs;
use std::io::Write;

use flate2::Compression;
use flate2::write::GzEncoder;
use tempfile::TempDir;

use super::*;
use crate::lifecycle::packed::put_bytes;
use crate::source::decode;
use crate::source::intake::{Body, Signal};
use crate::source::otlp::json;

mod live;

/// Takes everything and keeps the numbers.
#[derive(Default)]
struct Desk {
    spans: Vec<String>,
    records: Vec<String>,
    signs: usize,
    other_logs: u64,
    points: u64,
    refused: u64,
    payloads: usize,
    problems: Vec<Problem>,
    progress: Vec<Progress>,
    stop_after: Option<usize>,
}

impl Sink for Desk {
    fn payload(&mut self, mut payload: Payload) -> Result<Receipt, Refusal> {
        assert!(!matches!(&payload.body, Body::Otlp(_, bytes) if bytes.is_empty()));
        let batch = decode(&mut payload).map_err(Refusal::Malformed)?;
        self.payloads += 1;
        self.spans.extend(batch.spans.iter().map(|span| span.id.to_string()));
        self.records.extend(batch.records.iter().map(|record| record.request_id.to_string()));
        self.signs += batch.signs.len();
        self.other_logs += batch.tally.other_logs;
        self.points += batch.tally.metric_points;
        self.refused += batch.tally.refused_spans + batch.tally.bad_records;
        Ok(Receipt::of(&batch))
    }

    fn problem(&mut self, problem: Problem) {
        self.problems.push(problem);
    }

    fn left_out(&mut self, problem: Problem) {
        self.problems.push(problem);
    }

    fn progress(&mut self, progress: Progress) -> ControlFlow<()> {
        self.progress.push(progress);
        match self.stop_after {
            Some(count) if self.progress.len() >= count => ControlFlow::Break(()),
            _ => ControlFlow::Continue(()),
        }
    }
}

struct Files(TempDir);

impl Files {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn with(&self, name: &str, bytes: impl AsRef<[u8]>) -> Input {
        let path = self.0.path().join(name);
        fs::write(&path, bytes).unwrap();
        Input::File(path)
    }
}

fn capture(name: &str) -> Input {
    Input::File(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures").join(name))
}

fn read_all(inputs: &[Input]) -> (Desk, Summary) {
    let mut desk = Desk::default();
    let summary = read(inputs, Limits::default(), &mut desk);
    assert!(!summary.stopped);
    let told = summary.bad + summary.partly + summary.idle + summary.unreadable;
    assert_eq!(desk.problems.len() as u64, told, "{:?}", desk.problems);
    (desk, summary)
}

/// What one file with this content comes to.
fn read_one(bytes: impl AsRef<[u8]>) -> (Desk, Summary) {
    let files = Files::new();
    read_all(&[files.with("one", bytes)])
}

fn resource(id: u64) -> String {
    format!(
        r#"{{"resource":{{"attributes":[]}},"scopeSpans":[{{"spans":[{{"traceId":"0123456789abcdef0123456789abcdef","spanId":"{id:016x}","name":"x"}}]}}]}}"#
    )
}

fn line(id: u64) -> String {
    format!(r#"{{"resourceSpans":[{}]}}"#, resource(id))
}

fn pretty(json: &str) -> String {
    serde_json::to_string_pretty(&serde_json::from_str::<serde_json::Value>(json).unwrap()).unwrap()
}

const RECORD: &str = r#"{"schema":"dynamo.request.trace.v1","event_type":"request_end","event_time_unix_ms":1760000001000,"request":{"request_id":"r-b","output_tokens":3}}"#;

#[test]
fn captures_in_every_form_hold_the_same() {
    // Numbers of the captures' README.
    for name in ["dev-sim.traces.jsonl.gz", "dev-sim.traces.pb.gz"] {
        let (desk, summary) = read_all(&[capture(name)]);
        assert_eq!((desk.spans.len(), summary.bad), (1167, 0), "{name}");
        let last = desk.progress.last().unwrap();
        assert_eq!(Some(last.bytes), last.total);
    }
    for name in ["dev-sim.logs.jsonl.gz", "dev-sim.logs.pb.gz"] {
        let (desk, _) = read_all(&[capture(name)]);
        assert_eq!((desk.records.len(), desk.signs), (152, 156), "{name}");
        assert!(desk.other_logs > 0);
    }
    let (desk, _) = read_all(&[capture("dev-sim.request_trace.jsonl.gz")]);
    assert_eq!(desk.records.len(), 152);
    assert!(read_all(&[capture("metrics.metrics.jsonl.gz")]).0.points > 0);
}

#[test]
fn plain_gzip_of_many_members_and_zstd() {
    let files = Files::new();
    let (one, two) = (line(1) + "\n", line(2) + "\n");
    let mut members = Vec::new();
    for member in [&one, &two] {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
        encoder.write_all(member.as_bytes()).unwrap();
        members.extend(encoder.finish().unwrap());
    }
    let both = one + &two;
    for bytes in [both.clone().into_bytes(), members.clone(), zstd::encode_all(both.as_bytes(), 1).unwrap()] {
        assert_eq!(read_all(&[files.with("named.any", bytes)]).0.spans.len(), 2);
    }
    // Frames that hold nothing may stand before, between and behind those that do.
    for magic in 0x50..=0x5f {
        let skipped = [&[magic, 0x2a, 0x4d, 0x18, 4, 0, 0, 0][..], b"size"].concat();
        let [one, two] = [&line(1), &line(2)].map(|line| zstd::encode_all(format!("{line}\n").as_bytes(), 1).unwrap());
        let bytes = [&skipped[..], &skipped, &one, &skipped, &two, &skipped].concat();
        let (desk, summary) = read_all(&[files.with("pieces.zst", bytes)]);
        assert_eq!((desk.spans.len(), summary.bad), (2, 0), "{magic:x}: {:?}", desk.problems);
    }
    // A stream that is cut off gives what it has, and a report.
    let (desk, summary) = read_all(&[files.with("cut.gz", &members[..members.len() - 12])]);
    assert_eq!((desk.spans[0].as_str(), summary.unreadable, summary.bad > 0), ("0000000000000001", 0, true));
    assert!(desk.problems.iter().any(|problem| problem.reason.contains("cannot be read further")));
}

#[test]
fn b45_a_record_alone_wrapped_and_bare() {
    let (desk, _) = read_one(format!("{RECORD}\n{{\"timestamp\":5,\"event\":{RECORD}}}\n"));
    assert_eq!(desk.records, ["r-b", "r-b"]);
}

#[test]
fn b65_a_torn_line_is_reported_or_joined_with_its_other_half() {
    let files = Files::new();
    let torn = line(3);
    for at in [1, 5, 40, torn.len() - 1] {
        let a = files.with("a.jsonl", format!("{}\n{}\n{}", line(1), line(2), &torn[..at]));
        let b = files.with("b.jsonl", format!("{}\n{}\n", &torn[at..], line(4)));
        let (desk, summary) = read_all(&[a.clone(), b.clone()]);
        assert_eq!((desk.spans.len(), summary.bad, summary.pieces), (4, 0, 4), "at {at}: {:?}", desk.problems);
        // Alone, or in the wrong order, each half is a report with file and line.
        let (desk, summary) = read_all(&[b, a]);
        assert_eq!((desk.spans.len(), summary.bad), (3, 2), "at {at}");
        assert!(desk.problems[0].to_string().contains("b.jsonl:1: "), "{}", desk.problems[0]);
        assert!(desk.problems[1].to_string().contains("a.jsonl:3: "), "{}", desk.problems[1]);
    }
    // A good first line is no half of anything.
    let (desk, summary) = read_all(&[files.with("a", &torn[..40]), files.with("b", line(4))]);
    assert_eq!((desk.spans.len(), summary.bad), (1, 1));
}

#[test]
fn b65_a_text_glued_to_a_torn_one_is_taken() {
    let (desk, summary) = read_one(format!("{}\n{}{}\n{}", line(1), &line(2)[..50], line(3), line(4)));
    assert_eq!((desk.spans.len(), summary.bad), (3, 1));
    assert_eq!(desk.problems[0].place, Place::Line(2));
    assert!(desk.problems[0].reason.contains("glued"));
    // Two whole ones on a line are two.
    let (desk, summary) = read_one(format!("{} {}\n", line(1), line(2)));
    assert_eq!((desk.spans.len(), summary.bad), (2, 0));
    let (_, summary) = read_one("{}".repeat(20_000));
    assert_eq!((summary.bad, summary.idle), (0, 1));
}

#[test]
fn b66_marks_returns_blanks_and_nuls() {
    let mut bytes = b"\xef\xbb\xbf".to_vec();
    bytes.extend(line(1).bytes());
    bytes.extend(b"\r\n\r\n");
    bytes.extend([0; 4096]);
    bytes.extend(b"\xef\xbb\xbf");
    bytes.extend(line(2).bytes());
    let (desk, summary) = read_one(&bytes);
    assert_eq!((desk.spans.len(), summary), (2, Summary { pieces: 2, ..Summary::default() }));
    let nuls_first = [vec![0; 4096], line(1).into_bytes()].concat();
    assert_eq!(read_one(nuls_first).0.spans.len(), 1);
    for nothing in [&b""[..], b"\n\n", b"\0\0\0\0\0\0", b"\xef\xbb\xbf"] {
        assert_eq!(read_one(nothing).1, Summary::default());
    }
}

#[test]
fn b67_a_huge_line_is_read_whole_and_one_over_the_limit_is_told() {
    let spans: Vec<String> = (1..=50_000).map(resource).collect();
    let huge = format!("{{\"resourceSpans\":[{}]}}\n{}\n", spans.join(","), line(50_001));
    let files = Files::new();
    let input = files.with("huge.jsonl", &huge);
    let (desk, summary) = read_all(std::slice::from_ref(&input));
    assert_eq!((desk.spans.len(), summary.bad), (50_001, 0));
    let mut desk = Desk::default();
    let summary = read(&[input], Limits { piece: 1 << 20, ..Limits::default() }, &mut desk);
    assert_eq!((desk.spans.len(), summary.bad), (1, 1));
    assert!(desk.problems[0].to_string().contains("huge.jsonl:1: longer than the limit of 1048576"));
}

#[test]
fn b69_near_misses() {
    // (a) bare resources, (b) one pretty-printed document, (c) an array of requests, on one line and over many.
    assert_eq!(read_one(format!("{}\n{}\n", resource(1), resource(2))).0.spans.len(), 2);
    let array = format!("[{},{}]", line(1), line(2));
    let cases = [
        pretty(&line(1)),
        format!("{}\n{}\n", pretty(&line(1)), pretty(&line(2))),
        format!("{}\n{}", pretty(&line(1)), line(2)),
        array.clone(),
        pretty(&array),
        format!("[\n{},\n{}\n]\n", line(1), line(2)),
        pretty(&resource(1)).replace('\n', "\r\n"),
    ];
    for text in cases {
        let (desk, summary) = read_one(&text);
        assert_eq!(desk.spans.len(), text.matches("spanId").count(), "{text}");
        assert_eq!((summary.bad, summary.idle), (0, 0), "{:?}", desk.problems);
    }
    // (d) signals mixed line by line.
    let log = r#"{"resourceLogs":[{"scopeLogs":[{"logRecords":[{"body":{"stringValue":"x"}}]}]}]}"#;
    let metric = r#"{"resourceMetrics":[{"scopeMetrics":[{"metrics":[{"gauge":{"dataPoints":[{},{}]}}]}]}]}"#;
    let (desk, _) = read_one(format!("{}\n{log}\n{metric}\n{RECORD}\n{}\n", line(1), line(2)));
    assert_eq!((desk.spans.len(), desk.other_logs, desk.points, desk.records.len()), (2, 1, 2, 1));
    // (e) the Collector's `proto` format.
    let mut messages = Vec::new();
    for id in [1, 2] {
        let mut message = Vec::new();
        let shape = crate::source::otlp::json::Shape::Request(crate::source::intake::Signal::Traces);
        crate::source::otlp::json::transcode(shape, line(id).as_bytes(), &mut message).unwrap();
        messages.extend((message.len() as u32).to_be_bytes());
        messages.extend(message);
    }
    let (desk, summary) = read_one(&messages);
    assert_eq!((desk.spans.len(), summary.bad), (2, 0));
    let (desk, summary) = read_one(&messages[..messages.len() - 3]);
    assert_eq!((desk.spans.len(), summary.bad, desk.problems[0].place), (1, 1, Place::Message(2)));
    assert!(desk.problems[0].reason.contains("cut off"));
}

#[test]
fn messages_compressed_one_by_one_are_read_in_both_forms() {
    let frame = |plain: &[u8]| {
        let packed = zstd::encode_all(plain, 3).unwrap();
        [&(packed.len() as u32).to_be_bytes()[..], &packed].concat()
    };
    let mut message = Vec::new();
    let shape = crate::source::otlp::json::Shape::Request(crate::source::intake::Signal::Traces);
    crate::source::otlp::json::transcode(shape, line(3).as_bytes(), &mut message).unwrap();
    let (desk, summary) = read_one([frame(line(1).as_bytes()), frame(line(2).as_bytes()), frame(&message)].concat());
    assert_eq!((desk.spans.len(), summary.bad), (3, 0), "{:?}", desk.problems);
    let mut broken = frame(line(1).as_bytes());
    let at = broken.len() - 9;
    broken[at] ^= 0xff;
    let (desk, summary) =
        read_one([frame(line(2).as_bytes()), broken, frame(b"{}"), frame(line(3).as_bytes())].concat());
    assert_eq!((desk.spans.len(), summary.bad), (2, 2), "{:?}", desk.problems);
}

#[test]
fn never_a_silent_zero() {
    let (desk, summary) = read_one("{\"case\":\"A1\",\"check\":\"root.unique\",\"traces\":[]}\n{\"a\":1}\n");
    assert_eq!((summary.idle, desk.problems.len()), (2, 2));
    let (_, summary) = read_one("hello\nworld\n");
    assert_eq!((summary.pieces, summary.bad), (2, 2));
    let (desk, summary) = read_one([0x89, b'P', b'N', b'G', 0, 1, 2, 3]);
    assert_eq!(summary.unreadable, 1);
    assert!(desk.problems[0].reason.contains("89 50 4e 47"));
    let (desk, summary) = read_all(&[Input::File("/nowhere/at/all".into()), capture("dev-sim.traces.pb.gz")]);
    assert_eq!((summary.unreadable, desk.spans.len()), (1, 1167));
    assert!(desk.problems[0].to_string().starts_with("/nowhere/at/all: cannot be opened"));
}

#[test]
fn a_document_that_is_none_is_given_up() {
    let (desk, summary) = read_one(format!("{{\"resourceSpans\":[\n{}\n{}\n", line(1), line(2)));
    assert_eq!((desk.spans.len(), summary.bad), (2, 1));
    let (desk, summary) = read_one(format!("{}\n  oops\n}}\n{}\n", "{", line(2)));
    assert_eq!((desk.spans.len(), summary.bad), (1, 1), "{:?}", desk.problems);
}

#[test]
fn a_bad_message_costs_itself() {
    let good = {
        let mut message = Vec::new();
        let shape = crate::source::otlp::json::Shape::Request(crate::source::intake::Signal::Traces);
        crate::source::otlp::json::transcode(shape, line(1).as_bytes(), &mut message).unwrap();
        message
    };
    let mut bytes = Vec::new();
    for message in [&good[..], b"\x0a\x03\x12\x7f\x00", b"", &good] {
        bytes.push(message.len() as u8);
        bytes.extend(message);
    }
    assert!(good.len() < 0x80);
    let (desk, summary) = read_one(&bytes);
    assert_eq!((desk.spans.len(), summary.bad), (2, 1), "{:?}", desk.problems);
    assert!(desk.problems[0].to_string().contains("message 2: not valid protobuf"), "{}", desk.problems[0]);
}

#[test]
fn a_bad_part_of_a_line_costs_itself_and_is_told() {
    let bad = r#"{"traceId":"0123456789abcdef0123456789abcdef","spanId":"00000000000000b1","name":7}"#;
    let both = line(2).replacen("\"spans\":[", &format!("\"spans\":[{bad},"), 1);
    let (desk, summary) = read_one(format!("{}\n{both}\n{}\n", line(1), line(3)));
    assert_eq!((desk.spans.len(), summary.bad, summary.partly, desk.refused), (3, 0, 1, 1), "{:?}", desk.problems);
    assert_eq!(desk.problems[0].place, Place::Line(2));
    assert!(desk.problems[0].reason.starts_with("left out 1 span: name: expected text"), "{}", desk.problems[0]);
    // With nothing good in it the line is a bad one.
    let (desk, summary) = read_one(format!("{}\n", line(1).replace("\"x\"", "7")));
    assert_eq!((desk.spans.len(), summary.bad, summary.partly, desk.refused), (0, 1, 0, 0), "{:?}", desk.problems);
    // A span without ids, in every form of a file.
    let anonymous = line(2).replacen("\"spans\":[", "\"spans\":[{\"name\":\"y\"},", 1);
    let (mut message, mut without) = (Vec::new(), Vec::new());
    json::transcode(json::Shape::Request(Signal::Traces), line(2).as_bytes(), &mut message).unwrap();
    put_bytes(&mut without, 5, b"y");
    for number in [2, 2, 1] {
        let inner = std::mem::take(&mut without);
        put_bytes(&mut without, number, &inner);
    }
    message.extend(without);
    for bytes in [anonymous.into_bytes(), [vec![message.len() as u8], message].concat()] {
        let (desk, summary) = read_one(bytes);
        assert_eq!(desk.spans, ["0000000000000002"]);
        assert_eq!((summary.bad, summary.partly, desk.refused), (0, 1, 1), "{:?}", desk.problems);
        assert!(desk.problems[0].reason.contains("span \"y\": traceId: expected"), "{}", desk.problems[0]);
    }
}

#[test]
fn requests_of_several_signals_in_one_object_are_all_taken() {
    let log = r#""resourceLogs":[{"scopeLogs":[{"logRecords":[{"body":{"stringValue":"x"}}]}]}]"#;
    let metrics = r#""resource_metrics":[{"scopeMetrics":[{"metrics":[{"gauge":{"dataPoints":[{},{}]}}]}]}]"#;
    let spans = line(1);
    let spans = &spans[1..spans.len() - 1];
    for text in [format!("{{{spans},{log},{metrics}}}"), format!("{{{log},{metrics},\"zzz\":[{{}}],{spans}}}")] {
        let (desk, summary) = read_one(&text);
        assert_eq!((desk.spans.len(), desk.other_logs, desk.points), (1, 1, 2), "{text}");
        assert_eq!((summary.bad, summary.partly, summary.pieces), (0, 0, 1), "{:?}", desk.problems);
    }
    // One of them is nothing: the others are taken, and it is told.
    let (desk, summary) = read_one(format!("{{{spans},\"resourceLogs\":7}}"));
    assert_eq!((desk.spans.len(), summary.bad, summary.partly), (1, 0, 1));
    assert!(desk.problems[0].reason.contains("left out 1 part: not OTLP/JSON: resourceLogs"), "{}", desk.problems[0]);
}

#[test]
fn the_sink_may_end_it() {
    let mut desk = Desk { stop_after: Some(1), ..Desk::default() };
    let summary = read(&[capture("dev-sim.traces.pb.gz"), capture("dev-sim.logs.pb.gz")], Limits::default(), &mut desk);
    assert!(summary.stopped && desk.spans.len() < 1167 && desk.payloads == 1);
}

#[test]
fn what_is_behind_any_number_of_blanks_is_read() {
    let long = |blank: &str, count: usize| format!("{}{}\nbad\n", blank.repeat(count), line(1));
    for (text, bad_line) in [
        (long("\0", 1 << 20), 2),
        (long(" ", 300_000), 2),
        (long("\n", 7), 9),
        (long("\n", 300_000), 300_002),
        (long("\0\n", 10), 12),
    ] {
        let (desk, summary) = read_one(&text);
        assert_eq!((desk.spans.len(), summary.pieces, summary.bad), (1, 2, 1), "{:?}", desk.problems);
        assert_eq!(desk.problems[0].place, Place::Line(bad_line));
    }
    let files = Files::new();
    let Input::File(path) = files.with("cut", long("\0", 1 << 20)) else { panic!() };
    let size = fs::metadata(&path).unwrap().len();
    let mut followed = follow::Followed::new(&path);
    let news = followed.news().unwrap().unwrap();
    fs::remove_file(&path).unwrap();
    let (desk, _) = read_all(&[news]);
    assert_eq!((desk.spans.len(), desk.progress.last().unwrap().bytes), (1, size));
}

#[test]
fn blanks_without_end_are_told() {
    let limits = Limits { blank: 1 << 20, ..Limits::default() };
    let mut desk = Desk::default();
    let summary = read(&[Input::File("/dev/zero".into())], limits, &mut desk);
    assert_eq!((summary.unreadable, summary.bad), (1, 0));
    assert_eq!(
        desk.problems[0].to_string(),
        "/dev/zero: begins with more than 1048576 bytes of NULs and blanks: not read further"
    );
    // A file knows its size.
    let files = Files::new();
    let mut desk = Desk::default();
    let summary = read(&[files.with("cut", "\0".repeat(3 << 20) + &line(1))], limits, &mut desk);
    assert_eq!((desk.spans.len(), summary.unreadable), (1, 0));
}

#[test]
fn a_pipe_may_give_a_byte_at_a_time() {
    let mut gzip = GzEncoder::new(Vec::new(), Compression::fast());
    gzip.write_all(line(1).as_bytes()).unwrap();
    for bytes in [gzip.finish().unwrap(), zstd::encode_all(line(1).as_bytes(), 1).unwrap(), line(1).into_bytes()] {
        let mut read = Vec::new();
        open::inflated(Box::new(Dribble(bytes.into_iter())), std::rc::Rc::default())
            .and_then(|mut reader| reader.read_to_end(&mut read))
            .unwrap();
        assert_eq!(String::from_utf8(read).unwrap(), line(1));
    }
}

/// Gives a byte at a time.
struct Dribble(std::vec::IntoIter<u8>);

impl Read for Dribble {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let byte = self.0.next();
        buffer.iter_mut().zip(byte).for_each(|(to, byte)| *to = byte);
        Ok(usize::from(byte.is_some()))
    }
}

#[test]
fn a_text_that_is_read_whole_is_bounded() {
    assert_eq!(text_of(&b"abc"[..], 3).unwrap(), "abc");
    let error = text_of(std::io::repeat(b'a'), 3).unwrap_err();
    assert!(error.to_string().contains("at most 3 bytes"), "{error}");
}
