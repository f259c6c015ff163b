//! An OTLP JSON-lines file to its first report, against `serde_json` parsing the same lines into `Value`.

use std::fmt::Write as _;
use std::hint::black_box;
use std::io::Write as _;
use std::ops::ControlFlow;
use std::time::{Duration, Instant};

use reqtop::pipeline::take_in;
use reqtop::report::{InputSection, Report};
use reqtop::source::file::{self, Input, Problem, Progress, Sink};
use reqtop::source::intake::{Payload, Receipt, Refusal};
use reqtop::store::{Limits, Store};
use serde_json::Value;

use crate::load::fixture;
use crate::{Line, against, median};

const COPIES: u32 = 25;
const ROUNDS: usize = 7;

/// The lines of a capture with ids of their own.
fn fresh(lines: &[Value], copy: u32) -> String {
    let mut out = String::new();
    for line in lines {
        let mut line = line.clone();
        renew(&mut line, &format!("{copy:08x}"));
        let _ = writeln!(out, "{line}");
    }
    out
}

fn renew(value: &mut Value, mark: &str) {
    match value {
        Value::Array(items) => items.iter_mut().for_each(|item| renew(item, mark)),
        Value::Object(members) => {
            let is_id = members.get("key").and_then(Value::as_str).is_some_and(|key| {
                ["request_id", "dynamo.request.id", "dynamo.operation.id", "dynamo.session.id", "trace_id", "parent_id"]
                    .contains(&key)
            });
            for (name, member) in members {
                match member {
                    Value::String(id)
                        if ["traceId", "spanId", "parentSpanId"].contains(&name.as_str()) && id.len() >= 16 =>
                    {
                        id.replace_range(..8, mark);
                    }
                    Value::Object(inner) if is_id && name == "value" => {
                        if let Some(Value::String(id)) = inner.get_mut("stringValue")
                            && id.is_char_boundary(8)
                        {
                            id.replace_range(..8, mark);
                        }
                    }
                    other => renew(other, mark),
                }
            }
        }
        _ => {}
    }
}

/// Straight into a store, as `reqtop report FILE` does.
struct Straight {
    store: Store,
    taken: usize,
}

impl Sink for Straight {
    fn payload(&mut self, mut payload: Payload) -> Result<Receipt, Refusal> {
        self.taken += payload.size();
        let receipt = take_in(&mut self.store, &mut payload, 1)?;
        if self.taken >= 8 << 20 {
            self.taken = 0;
            self.store.refresh(1);
        }
        Ok(receipt)
    }

    fn problem(&mut self, problem: Problem) {
        panic!("{problem}");
    }

    fn left_out(&mut self, problem: Problem) {
        panic!("{problem}");
    }

    fn progress(&mut self, _: Progress) -> ControlFlow<()> {
        ControlFlow::Continue(())
    }
}

pub fn lines() -> Vec<Line> {
    let text = fixture("dev-sim.traces.jsonl");
    let captured: Vec<Value> = text
        .split(|byte| *byte == b'\n')
        .filter(|line| !line.is_empty())
        .map(|line| serde_json::from_slice(line).unwrap())
        .collect();
    let mut file = tempfile::NamedTempFile::new().unwrap();
    for copy in 1..=COPIES {
        file.write_all(fresh(&captured, copy).as_bytes()).unwrap();
    }
    file.flush().unwrap();
    let size = file.as_file().metadata().unwrap().len();
    let input = [Input::File(file.path().to_owned())];
    let round = |_| {
        let start = Instant::now();
        let bytes = std::fs::read(file.path()).unwrap();
        for line in bytes.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
            black_box(serde_json::from_slice::<Value>(line).unwrap());
        }
        let reference = start.elapsed();
        let start = Instant::now();
        let mut sink = Straight { store: Store::new(Limits { memory: 4 << 30, ..Limits::default() }), taken: 0 };
        file::read(&input, file::Limits::default(), &mut sink);
        sink.store.finish(1);
        black_box(Report::of(&sink.store, InputSection::default(), None).to_string());
        let ours = start.elapsed();
        assert!(sink.store.counts().spans_kept > 0 && sink.store.counts().spans_duplicate == 0);
        (ours, reference)
    };
    let (ours, reference) = median((0..ROUNDS).map(round).collect());
    let rate = |time: Duration| format!("{:.0} MB/s", size as f64 / time.as_secs_f64() / 1e6);
    vec![Line {
        name: "JSON-lines file to first report".into(),
        measured: rate(ours),
        reference: format!("serde_json Value {}", rate(reference)),
        ratio: against(ours, reference),
        budget: 1.0,
        stretch: 0.3,
    }]
}
