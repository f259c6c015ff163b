//! What the panes show of real captures, whole and with parts of them lost, is what the report says.

use std::path::{Path, PathBuf};

use reqtop::lifecycle::record::Record;
use reqtop::pipeline::take_in;
use reqtop::source::intake::{Payload, Signal};
use reqtop::source::otlp::json::{Shape, transcode};
use reqtop::store::{Limits, Store, time_of};
use serde_json::Value as Json;

#[path = "common/panes.rs"]
mod panes;

/// What is lost of a capture.
#[derive(Clone, Copy, Debug)]
enum Lost {
    Nothing,
    /// All its records.
    Records,
    /// All its spans.
    Spans,
    /// One span of so many, and one record of so many.
    OneOf(u64),
    /// Whatever came after its first half.
    Half,
}

const LOSSES: [Lost; 6] = [Lost::Nothing, Lost::Records, Lost::Spans, Lost::OneOf(7), Lost::OneOf(2), Lost::Half];

fn lines(path: &Path) -> Vec<String> {
    let Ok(file) = std::fs::read(path) else { return Vec::new() };
    let text = std::io::read_to_string(flate2::read::MultiGzDecoder::new(&file[..])).unwrap();
    text.lines().map(str::to_owned).collect()
}

/// The same for the same text, and spread over all of `of`.
fn falls(text: &str, of: u64) -> bool {
    text.bytes()
        .fold(14_695_981_039_346_656_037_u64, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(1_099_511_628_211))
        % of
        == 0
}

/// An export without the spans that are lost one by one.
fn thinned(line: &str, of: u64) -> String {
    let mut export: Json = serde_json::from_str(line).unwrap();
    for resource in export["resourceSpans"].as_array_mut().unwrap() {
        for scope in resource["scopeSpans"].as_array_mut().unwrap() {
            scope["spans"].as_array_mut().unwrap().retain(|span| !falls(span["spanId"].as_str().unwrap(), of));
        }
    }
    export.to_string()
}

fn fed(folder: &Path, name: &str, lost: Lost) -> Store {
    let mut store = Store::new(Limits::default());
    let mut spans = lines(&folder.join(format!("{name}.traces.jsonl.gz")));
    let mut records = lines(&folder.join(format!("{name}.request_trace.jsonl.gz")));
    match lost {
        Lost::Nothing => {}
        Lost::Records => records.clear(),
        Lost::Spans => spans.clear(),
        Lost::OneOf(of) => {
            spans.iter_mut().for_each(|line| *line = thinned(line, of));
            records.retain(|record| !falls(record, of));
        }
        Lost::Half => {
            spans.truncate(spans.len() / 2);
            records.truncate(records.len() / 2);
        }
    }
    for line in spans {
        let mut bytes = Vec::new();
        transcode(Shape::Request(Signal::Traces), line.as_bytes(), &mut bytes).unwrap();
        take_in(&mut store, &mut Payload::otlp(Signal::Traces, bytes), 1).unwrap();
    }
    let records = records.iter().filter_map(|record| Record::from_json(record.as_bytes()).ok()).collect();
    take_in(&mut store, &mut Payload::records(records), 1).unwrap();
    store.finish(1);
    store
}

#[test]
fn panes_and_report_say_the_same_of_real_requests_whatever_is_lost() {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures");
    let mut names: Vec<String> = std::fs::read_dir(&folder)
        .unwrap()
        .filter_map(|file| Some(file.unwrap().file_name().to_str()?.strip_suffix(".traces.jsonl.gz")?.to_owned()))
        .collect();
    names.sort();
    assert!(names.len() > 15, "{names:?}");
    for name in names {
        for lost in LOSSES {
            let mut store = fed(&folder, &name, lost);
            let Some(last) = store.requests().map(|(_, facts)| time_of(facts)).max() else { continue };
            let last = last.max(store.noted_ns());
            for filter in ["", "outcome:success", "-outcome:success", "attempts>1 or root:false"] {
                for window_ns in [None, Some(5_000_000_000)] {
                    panes::look(&mut store, filter, window_ns, last);
                    panes::same_as_report(&store, filter, window_ns, &format!("{name}, lost {lost:?}"));
                }
            }
        }
    }
}
