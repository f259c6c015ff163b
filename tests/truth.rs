//! Every number of the evidence captures' `.truth.json` is the report's, and so are the requests they name. A number that
//! this test does not know fails it.

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use reqtop::lifecycle::facts::Facts;
use reqtop::pipeline::take_in;
use reqtop::report::{InputSection, Report};
use reqtop::source::file::{Input, Limits as FileLimits, Problem, Progress, Sink, read};
use reqtop::source::intake::{Payload, Receipt, Refusal};
use reqtop::store::rollup::Rollup;
use reqtop::store::{Limits, Store};
use serde_json::Value as Json;

const NOW_NS: u64 = 1_800_000_000_000_000_000;

struct Straight(Store);

impl Sink for Straight {
    fn payload(&mut self, mut payload: Payload) -> Result<Receipt, Refusal> {
        take_in(&mut self.0, &mut payload, NOW_NS)
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

fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures").join(name)
}

fn store(name: &str) -> Store {
    let files = ["traces", "request_trace"].map(|kind| fixture(&format!("{name}.{kind}.jsonl.gz")));
    let inputs: Vec<Input> = files.iter().map(|path| Input::from(path.as_path())).collect();
    let mut sink = Straight(Store::new(Limits::default()));
    read(&inputs, FileLimits::default(), &mut sink);
    sink.0.finish(NOW_NS);
    sink.0
}

/// Every leaf by its path.
fn leaves(at: &Json, path: String, found: &mut BTreeMap<String, Json>) {
    match at {
        Json::Object(map) if !map.is_empty() => {
            for (key, value) in map {
                let key = key.replace('/', "\\");
                leaves(value, if path.is_empty() { key } else { format!("{path}/{key}") }, found);
            }
        }
        Json::Object(_) => {}
        leaf => _ = found.insert(path, leaf.clone()),
    }
}

/// What stands in the truth and is no number of a report: what it was made from, and words.
const ABOUT: [&str; 10] = [
    "file",
    "from",
    "layout",
    "mode",
    "quantile",
    "batches",
    "notes",
    "violations_expected",
    "records/lines",
    "requests_named",
];

/// Where the report says the same.
fn place(path: &str) -> String {
    let renamed = [
        ("spans_by_name/", "spans/by_name/"),
        ("queue/reasons_all/None", "queue/reasons/none"),
        ("queue/reasons_all/", "queue/reasons/"),
        ("selection/near_ties_margin_lt_0.1_ties_excluded", "selection/near_ties"),
        ("admission/result|transport/", "dispatch/admission/by_result/"),
        ("admission/", "dispatch/admission/"),
        ("latency/http_ttft_ms/", "latency/http_ttft_ns/"),
        ("latency/record_ttft_ms/", "latency/record_ttft_ns/"),
        ("latency/record_total_ms/", "latency/record_total_ns/"),
        // Requests of the truth are those with a root.
        ("requests/total", "requests/with_root"),
    ];
    match path {
        "spans" => return "spans/total".into(),
        "traces" => return "traces/total".into(),
        "duplicates" => return "spans/duplicates".into(),
        _ => {}
    }
    let found = renamed.iter().find_map(|(from, to)| Some(format!("{to}{}", path.strip_prefix(from)?)));
    found.unwrap_or_else(|| path.to_owned())
}

/// The same numbers; milliseconds of the truth as nanoseconds.
fn same(path: &str, truth: &Json, report: &Json) -> bool {
    match (truth.as_f64(), report.as_f64()) {
        (Some(truth), Some(report)) if path.contains("_ms/") && !path.ends_with("/n") => {
            (truth * 1e6).round() == report
        }
        (Some(truth), Some(report)) => truth == report,
        _ => truth == report,
    }
}

fn compare(name: &str) {
    let store = store(name);
    let truth: Json =
        serde_json::from_str(&std::fs::read_to_string(fixture(&format!("{name}.truth.json"))).unwrap()).unwrap();
    let report = Report::of(&store, InputSection::default(), None);
    let mut rollup = Rollup::default();
    store.requests().for_each(|(_, facts)| rollup.add(facts));
    let (mut wanted, mut said) = (BTreeMap::new(), BTreeMap::new());
    leaves(&truth, String::new(), &mut wanted);
    leaves(&serde_json::from_str(&report.to_json()).unwrap(), String::new(), &mut said);
    // What the report says in rows.
    for row in &report.dispatch.recorded.matrix {
        let path = format!("dispatch/phase|result|attempt/{}|{}|{}", row.phase, row.result, row.attempt);
        said.insert(path, row.count.into());
    }
    for row in report.workers.iter().filter(|row| row.origin == "span") {
        let path = format!("dispatch/per_worker/{}|{}", row.phase, row.worker);
        let before = said.get(&path).and_then(Json::as_u64).unwrap_or(0);
        said.insert(path, (before + row.dispatched).into());
    }
    let selection = &report.selection.recorded;
    let ties = "selection/near_ties_margin_lt_0.1_ties_included".to_owned();
    said.insert(ties, (selection.ties + selection.near_ties).into());
    let below_one = rollup.selection.contested_margins.between(0.0, 1.0);
    said.insert("selection/near_ties_margin_lt_1.0_ties_included".into(), below_one.into());
    let mut compared = 0;
    for (path, truth) in &wanted {
        if ABOUT.iter().any(|about| path.starts_with(about)) || path.ends_with("/def") {
            continue;
        }
        if path == "queue/wait_ns_deferred_only" && truth.is_null() {
            assert_eq!(report.queue.wait_ns_deferred_only.n, 0);
            continue;
        }
        let place = place(path);
        let said = said.get(&place).unwrap_or(&Json::Null);
        // What the report leaves out of a map is none.
        let said = if said.is_null() && truth == &Json::from(0) { truth } else { said };
        assert!(same(path, truth, said), "{name}: {path}: the truth is {truth}, the report says {said} at {place}");
        compared += 1;
    }
    assert!(compared > 90, "{name}: {compared}");
    for request in truth["requests_named"].as_array().unwrap() {
        named(&store, request);
    }
}

/// One request, told in full.
fn named(store: &Store, truth: &Json) {
    let id = truth["request_id"].as_str().unwrap();
    let facts: &Facts = store.requests().map(|(_, facts)| facts).find(|facts| *facts.request_id == *id).unwrap();
    let text = |value: &Json| value.as_str().unwrap_or("").to_owned();
    assert_eq!(facts.trace.unwrap().to_string(), text(&truth["trace_id"]), "{id}");
    assert_eq!(facts.outcome_text(), text(&truth["outcome"]), "{id}");
    let dispatches = facts.legs.iter().filter(|leg| leg.dispatch.is_some()).count() as u64;
    assert_eq!(Some(dispatches), truth["dispatches"].as_u64(), "{id}");
    if dispatches > 0 {
        assert_eq!(Some(u64::from(facts.attempts())), truth["attempts"].as_u64(), "{id}");
    }
    assert_eq!(facts.total_ns(), truth["root_duration_ns"].as_u64(), "{id}");
    assert_eq!(facts.stream.as_ref().and_then(|stream| stream.events), truth["stream_events"].as_u64(), "{id}");
    let stream = facts.stream.as_ref().map_or("", |stream| &stream.outcome);
    assert_eq!(stream, text(&truth["streaming_outcome"]), "{id}");
    let legs = truth["legs"].as_array().unwrap();
    assert_eq!(facts.legs.len(), legs.len(), "{id}");
    for (leg, truth) in facts.legs.iter().zip(legs) {
        assert_eq!(
            (leg.phase.word(), Some(u64::from(leg.attempt))),
            (text(&truth["phase"]).as_str(), truth["attempt"].as_u64())
        );
        let (queue, of) = (leg.queue.as_ref().unwrap(), &truth["queue"]);
        assert_eq!(Some(queue.wait_ns), of["wait_ns"].as_u64(), "{id}");
        assert_eq!((queue.depth_in, queue.depth_out), (of["depth_in"].as_u64(), of["depth_out"].as_u64()), "{id}");
        assert_eq!((queue.deferred, &*queue.reason), (of["deferred"].as_bool(), &*text(&of["reason"])), "{id}");
        assert_eq!((&*queue.class, &*queue.policy), (&*text(&of["cls"]), &*text(&of["policy"])), "{id}");
        let (selection, of) = (leg.selection.as_ref().unwrap(), &truth["selection"]);
        assert_eq!((selection.candidates, selection.margin), (of["count"].as_u64(), of["margin"].as_f64()), "{id}");
        for (choice, of) in [(selection.selected, &of["selected"]), (selection.best, &of["best"])] {
            let choice = choice.unwrap();
            assert_eq!((choice.worker.id.to_string(), choice.cost), (text(&of[0]), of[2].as_f64()), "{id}");
        }
        let (dispatch, of) = (leg.dispatch.as_ref().unwrap(), &truth["dispatch"]);
        assert_eq!(leg.worker().unwrap().id.to_string(), text(&of["worker"]), "{id}");
        assert_eq!((&*dispatch.result, &*dispatch.route), (&*text(&of["result"]), &*text(&of["route"])), "{id}");
        assert_eq!(&*dispatch.attempt_outcome, text(&of["route_outcome"]), "{id}");
    }
}

#[test]
fn the_evidence_captures_are_read_as_they_are() {
    for name in ["evidence-agg", "evidence-disagg", "evidence-abort"] {
        compare(name);
    }
}

#[test]
fn base_captures_infer_what_the_records_say() {
    for name in ["dev-sim-disagg-http", "queue-wait", "agg-kv-core"] {
        let store = store(name);
        let report = Report::of(&store, InputSection::default(), None);
        assert_eq!(report.queue.recorded.spans, 0, "{name}: the base layout has no queue spans");
        assert_eq!(report.queue.inferred.spans, report.selection.from_records.spans, "{name}: a wait for each choice");
        assert_eq!(report.selection.recorded.spans, 0, "{name}");
        assert_eq!(
            report.dispatch.inferred.spans, report.selection.from_records.spans,
            "{name}: an attempt for each choice"
        );
        assert_eq!(report.records.by_type["router_selection"], report.selection.from_records.made, "{name}");
        assert_eq!(
            report.selection.from_records.chosen_costs_more_than_best, 0,
            "{name}: the chosen one was the cheapest"
        );
        let selected: u64 = report.ranks.iter().map(|rank| rank.selected_by_records).sum();
        let attempts: u64 = report.ranks.iter().filter_map(|rank| rank.attempts).sum();
        assert_eq!(selected, attempts, "{name}");
    }
}
