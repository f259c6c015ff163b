//! What must hold of every parser whatever it is given, beyond not to panic. Shared by the short runs (`tests/fuzz.rs`) and
//! the long, coverage-guided ones (`tests/fuzz/fuzz_targets`).

use std::io::Write;
use std::ops::ControlFlow;

use reqtop::checks::load::{aiperf, ledger};
use reqtop::lifecycle::batch::Batch;
use reqtop::lifecycle::packed;
use reqtop::lifecycle::record::Record;
use reqtop::lifecycle::text;
use reqtop::pipeline::take_in;
use reqtop::query::{Query, drop_last_term};
use reqtop::report::check::{Accepted, Expectation};
use reqtop::report::export::json_lines;
use reqtop::settings::understood;
use reqtop::source::file::{self, Input, Problem, Progress, Sink};
use reqtop::source::intake::{Payload, Receipt, Refusal, Signal};
use reqtop::source::otlp::Token;
use reqtop::source::otlp::json::{Shape, print as print_json, transcode};
use reqtop::source::otlp::wire;
use reqtop::source::remote::client;
use reqtop::store::{Limits, Store};
use reqtop::tap::forward::target::Target as Onward;
use reqtop::tui::keys::Key;
use reqtop::tui::theme::{Depth, Signs, Themes};
use reqtop::view::account::Account;
use reqtop::view::filter;

/// A parser under attack.
pub type Target = fn(&[u8]);

/// All of them by name.
pub const ALL: [(&str, Target); 12] = [
    ("wire", wire),
    ("json", json),
    ("record", record),
    ("packed", packed),
    ("filter", filter),
    ("theme", theme),
    ("key", key),
    ("file", file),
    ("load", load),
    ("settings", settings),
    ("config", config),
    ("print", print),
];

const NOW: u64 = 1_796_003_500_000_000_000;

/// No control character but those that texts may have: nothing that a terminal obeys.
fn assert_clean(text: &str) {
    assert!(text::is_clean(text.as_bytes()), "not scrubbed: {text:?}");
}

fn assert_even(store: &Store) {
    let (spans, records) = (Account::of_spans(store.counts()), Account::of_records(store.counts()));
    assert!(spans.is_even() && records.is_even(), "spans: {spans}; records: {records}");
    assert_eq!(store.spans().count() as u64, spans.held);
    assert_eq!(store.records().count() as u64, records.held);
}

/// Export requests of any signal in protobuf.
pub fn wire(data: &[u8]) {
    let _ = wire::signal_of(data);
    if let Ok(parts) = wire::each_resource(data) {
        assert!(parts.iter().map(|part| part.len()).sum::<usize>() <= data.len());
    }
    if let Ok((traces, _)) = wire::unwrapped(data) {
        assert!(traces.iter().map(|trace| trace.len()).sum::<usize>() <= data.len());
    }
    for signal in Signal::ALL {
        let mut batch = Batch::default();
        if wire::decode(signal, data, &mut batch).is_err() {
            continue;
        }
        let parts =
            batch.resources.len() + batch.scopes.len() + batch.attrs.len() + batch.events.len() + batch.links.len();
        assert!(parts <= 64 + data.len() / 8 + data.len() / 2 / 8, "{parts} parts in {} bytes", data.len());
        let Batch { spans, records, signs, .. } = &batch;
        assert!(spans.len() * 28 <= data.len() && records.len() + signs.len() <= data.len());
        // The checks' table of block hashes alone takes 2.6 MB.
        let mut store = Store::new(Limits { memory: 4 << 20, ..Limits::default() });
        for _ in 0..2 {
            // Twice: all of it is a duplicate then, unless it was let go.
            take_in(&mut store, &mut Payload::otlp(signal, data.to_vec()), NOW).expect("decoded before");
            assert_even(&store);
            store.refresh(NOW);
            assert_even(&store);
        }
        store.finish(NOW);
        store.check_all();
        assert!(store.memory() <= 4 << 20, "{}", store.memory());
    }
    let mut store = Store::new(Limits::default());
    if take_in(&mut store, &mut Payload::otlp(Signal::Traces, data.to_vec()), NOW).is_ok() {
        comes_back(&mut store);
    }
}

/// What is exported and read again is exported the same.
fn comes_back(store: &mut Store) {
    store.finish(NOW);
    let lines = exported(store);
    let mut again = Store::new(Limits::default());
    for line in lines.lines() {
        let mut bytes = Vec::new();
        let tally = transcode(Shape::Request(Signal::Traces), line.as_bytes(), &mut bytes).expect("our own export");
        assert_eq!((tally.refused_spans, tally.bad_texts, tally.snake_case), (0, 0, 0), "{line}");
        match take_in(&mut again, &mut Payload::otlp(Signal::Traces, bytes), NOW) {
            Ok(receipt) => assert_eq!(receipt.refused, 0, "{line}"),
            // A message of many empty parts, too many for one that has lost its other bytes on the way.
            Err(Refusal::Malformed(reason)) if reason.contains("mostly empty") => return,
            Err(refusal) => panic!("{refusal:?}: {line}"),
        }
    }
    again.finish(NOW);
    assert_eq!(again.counts().spans_kept, store.counts().spans_kept);
    assert_eq!(sorted(&exported(&again)), sorted(&lines));
    let one = |store: &Store| store.requests().map(|(_, facts)| facts.spans).sum::<u32>();
    assert_eq!((again.len(), one(&again)), (store.len(), one(store)), "the same requests");
}

fn exported(store: &Store) -> String {
    let mut lines = Vec::new();
    json_lines(store, None, &mut lines).expect("memory takes what it is given");
    String::from_utf8(lines).expect("JSON")
}

fn sorted(lines: &str) -> Vec<&str> {
    let mut lines: Vec<&str> = lines.lines().collect();
    lines.sort_unstable();
    lines
}

/// OTLP/JSON in every shape.
pub fn json(data: &[u8]) {
    for signal in Signal::ALL {
        for shape in [Shape::Request(signal), Shape::Resource(signal)] {
            let mut out = b"before".to_vec();
            let done = transcode(shape, data, &mut out);
            assert!(out.starts_with(b"before"));
            let Ok(tally) = done else {
                assert_eq!(out, b"before", "nothing is left behind by what failed");
                continue;
            };
            let bytes = out.split_off(6);
            // Lengths with room for any number take five bytes where JSON takes two.
            assert!(bytes.len() <= 8 * data.len() + 64, "{} from {}", bytes.len(), data.len());
            let mut batch = Batch::default();
            match wire::decode(signal, &bytes, &mut batch) {
                // Whoever is wrong was left out by the transcoder already.
                Ok(()) => assert_eq!(batch.tally.refused_spans, 0, "{tally:?}"),
                Err(reason) => assert!(reason.contains("mostly empty"), "{reason}"),
            }
            if signal == Signal::Traces {
                let mut store = Store::new(Limits::default());
                if take_in(&mut store, &mut Payload::otlp(signal, bytes), NOW).is_ok() {
                    comes_back(&mut store);
                }
            }
        }
    }
}

/// Request-trace records.
pub fn record(data: &[u8]) {
    let Ok(record) = Record::from_json(data) else { return };
    assert_clean(&record.raw);
    [&record.request_id, &record.session_id, &record.event_type].into_iter().for_each(|text| assert_clean(text));
    // Scrubbing may make a byte three.
    assert!(record.size() <= 4096 + 32 * data.len(), "{} from {}", record.size(), data.len());
    let again = Record::from_json(record.raw.as_bytes()).expect("a record's own text");
    assert_eq!((&again.raw, &again.request_id, again.time_ms), (&record.raw, &record.request_id, record.time_ms));
    let mut store = Store::new(Limits::default());
    for _ in 0..2 {
        store.ingest(&Batch { records: vec![record.clone()], ..Batch::default() }, NOW);
        store.refresh(NOW);
    }
    store.check_all();
    assert_eq!(store.counts().records_duplicate, 1);
    assert_even(&store);
}

/// Attributes.
pub fn packed(data: &[u8]) {
    let clean = packed::clean(data);
    let (key, value) = packed::read(&clean);
    assert_clean(key);
    assert_clean(&value.display());
    assert_eq!(packed::clean(&clean), clean, "clean is clean");
    assert!(
        clean.len() <= 3 * data.len() + 64 || clean.len() <= 12 * data.len(),
        "{} from {}",
        clean.len(),
        data.len()
    );
    let (_, raw) = packed::read(data);
    let _ = (raw.display(), raw.as_u64(), raw.as_f64(), raw.as_bool(), raw.as_str());
    let _ = raw.items().count() + raw.entries().count();
}

/// The filter language.
pub fn filter(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let store = Store::new(Limits::default());
    let cursor = text.char_indices().map(|(at, _)| at).nth(text.len() / 2).unwrap_or(text.len());
    filter::complete(&text, cursor, &store, 8);
    let _ = filter::settled(&text);
    match Query::parse(&text) {
        Ok(query) => {
            let written = query.to_string();
            let again =
                Query::parse(&written).unwrap_or_else(|error| panic!("{text:?} is written {written:?}: {error}"));
            assert_eq!(again, query, "{text:?} is written {written:?}");
            let fewer = drop_last_term(&text);
            assert!(fewer.len() <= text.len(), "{text:?} without its last term is {fewer:?}");
            Query::parse(&fewer).unwrap_or_else(|error| panic!("{text:?} without its last term is {fewer:?}: {error}"));
        }
        Err(error) => {
            assert!(error.span.start <= error.span.end && error.span.end <= text.len(), "{text:?}: {error:?}");
            assert!(text.is_char_boundary(error.span.start) && text.is_char_boundary(error.span.end), "{text:?}");
        }
    }
    // A value taken from the screen asks for itself.
    if text.len() < 1000 {
        let asked = filter::with_attribute("", "odd \"key\"", &text);
        Query::parse(&asked).unwrap_or_else(|error| panic!("{text:?} is asked for as {asked:?}: {error}"));
    }
}

/// A file of this content, on memory where there is such a folder.
fn with_file(name: &str, data: &[u8], read: impl FnOnce(&std::path::Path)) {
    let memory = std::path::Path::new("/dev/shm");
    let folder = match memory.is_dir() {
        true => tempfile::tempdir_in(memory),
        false => tempfile::tempdir(),
    };
    let folder = folder.expect("a folder for temporary files");
    let path = folder.path().join(name);
    std::fs::File::create(&path).and_then(|mut file| file.write_all(data)).expect("a temporary file");
    read(&path);
}

/// Theme files.
pub fn theme(data: &[u8]) {
    with_file("x.toml", data, |path| {
        let themes = Themes::new(path.parent().map(std::path::Path::to_owned), Depth::None, Signs::Unicode);
        if let Ok(entry) = themes.find("x") {
            assert_clean(&entry.about);
            assert!(entry.warnings.len() < 100, "{} warnings", entry.warnings.len());
            entry.warnings.iter().for_each(|warning| assert_clean(warning));
        }
        if data.len().is_multiple_of(64) {
            let _ = themes.list();
        }
    });
}

/// Names of keys.
pub fn key(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    for word in text.split_whitespace().chain([&*text]) {
        if let Some(key) = Key::parse(word) {
            let _ = key.typed();
            if !key.ctrl && word.len() < 16 {
                assert!(Key::parse(&format!("C-{word}")).expect("with Control").ctrl);
            }
        }
    }
}

/// Takes what a file holds into a store.
struct Taker<'a> {
    store: &'a mut Store,
    problems: u64,
}

impl Sink for Taker<'_> {
    fn payload(&mut self, mut payload: Payload) -> Result<Receipt, Refusal> {
        take_in(self.store, &mut payload, NOW)
    }

    fn problem(&mut self, problem: Problem) {
        self.problems += 1;
        assert!(!problem.to_string().is_empty());
    }

    fn left_out(&mut self, problem: Problem) {
        self.problem(problem);
    }

    fn progress(&mut self, _: Progress) -> ControlFlow<()> {
        ControlFlow::Continue(())
    }
}

/// Files of any kind: what they are, whether they are compressed, how they go on.
pub fn file(data: &[u8]) {
    // A hint from the name for every other input.
    let name = ["x", "x.traces.pb", "x.logs.pb"][data.len() % 3];
    with_file(name, data, |path| {
        let mut store = Store::new(Limits::default());
        let mut sink = Taker { store: &mut store, problems: 0 };
        // The file torn in two by rotation is read like any other.
        let inputs = [Input::from(path), Input::from(path)];
        let summary = file::read(&inputs, file::Limits { piece: 1 << 20, ..file::Limits::default() }, &mut sink);
        let problems = sink.problems;
        assert!(!summary.stopped);
        assert_eq!(
            problems,
            summary.bad + summary.partly + summary.idle + summary.unreadable,
            "each is told: {summary:?}"
        );
        assert_even(&store);
        store.finish(NOW);
        assert_even(&store);
    });
}

/// Lists of load generators, their ledgers, what is expected and what is accepted.
pub fn load(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    if let Ok(records) = aiperf::profile_export(&text) {
        assert!(records.len() <= text.len());
    }
    let _ = aiperf::phase_manifest(&text);
    if let Ok(ledger) = ledger::parse(&text) {
        assert!(ledger.records.len() <= text.len());
        let _ = (ledger.has_counts(), ledger.unequal([1; 6]));
    }
    let _ = Expectation::read(&text);
    let _ = Accepted::read(&text);
}

/// Values of the command line: addresses, headers, tokens.
pub fn settings(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    if let Ok(base) = client::Base::parse(&text) {
        let written = base.to_string();
        let again = client::Base::parse(&written).unwrap_or_else(|error| panic!("{text:?} is {written:?}: {error}"));
        assert_eq!(again.to_string(), written);
        assert_clean(&written);
    }
    if let Ok(target) = Onward::parse(&text) {
        let written = target.to_string();
        let again = Onward::parse(&written).unwrap_or_else(|error| panic!("{text:?} is {written:?}: {error}"));
        assert_eq!(again, target);
        assert_clean(&written);
    }
    let _ = client::header(&text);
    let _ = Token::new(data);
}

/// Settings files.
pub fn config(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    for (line, what) in understood(&text).err().unwrap_or_default() {
        assert!(line <= text.matches('\n').count() + 1, "line {line}: {what}");
        assert_clean(&what);
    }
}

/// What is received, printed as a recording has it.
pub fn print(data: &[u8]) {
    for signal in [Signal::Traces, Signal::Logs] {
        let mut received = Batch::default();
        if wire::decode(signal, data, &mut received).is_err() {
            continue;
        }
        let (mut line, mut bytes) = (b"before".to_vec(), Vec::new());
        // A message that is not walked to its end here may be broken where nobody looks.
        let Ok(_) = print_json(signal, data, &mut line) else {
            assert_eq!(line, b"before");
            continue;
        };
        let line = &line[6..];
        assert!(!line.contains(&b'\n'));
        let tally = transcode(Shape::Request(signal), line, &mut bytes).expect("our own print");
        assert_eq!((tally.refused_spans, tally.passed_over), (received.tally.refused_spans, 0));
        let mut again = Batch::default();
        match wire::decode(signal, &bytes, &mut again) {
            Ok(()) => {
                let counts = |batch: &Batch<'_>| (batch.spans.len(), batch.records.len(), batch.signs.len());
                assert_eq!(counts(&again), counts(&received));
            }
            Err(reason) => assert!(reason.contains("mostly empty"), "{reason}"),
        }
    }
}
