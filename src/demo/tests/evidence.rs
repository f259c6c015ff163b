//! The checks of the spec that a cluster without faults must pass.

use std::collections::{HashMap, HashSet};
use std::sync::LazyLock;

use super::super::*;
use super::aggregated;
use super::reading::{Read, Reading, named};
use crate::lifecycle::record::{Record, RecordBody};
use crate::lifecycle::stage::Stage;

const REQUEST: &str = "dynamo.request.id";

/// Both topologies and both modes, past the first death of a worker; read once for all tests.
fn both() -> &'static [(Settings, Reading); 2] {
    static BOTH: LazyLock<[(Settings, Reading); 2]> = LazyLock::new(|| {
        [Settings::default(), aggregated()].map(|settings| {
            let reading = Reading::run(&settings, 47);
            (settings, reading)
        })
    });
    &BOTH
}

#[test]
fn trees_are_whole_and_times_in_order() {
    for (_, reading) in both() {
        let mut ids = HashSet::new();
        for span in &reading.spans {
            assert!(ids.insert(&span.id), "a span id came twice");
            assert!(span.start <= span.end && span.end <= span.at_ns, "{} is sent after it ended", span.name);
        }
        for request in reading.requests() {
            let by_id: HashMap<_, _> = request.iter().map(|span| (&span.id, *span)).collect();
            let lost = request.iter().any(|span| {
                matches!(span.text("request.outcome").as_deref(), Some("worker_disconnected" | "connection_failed"))
            });
            for span in &request {
                match by_id.get(&span.parent) {
                    Some(parent) => assert!(span.start >= parent.start, "{} before {}", span.name, parent.name),
                    None if span.name == "http-request" => assert!(span.parent.is_empty()),
                    None => assert!(span.name == "worker.admission" && lost, "{} has no parent", span.name),
                }
            }
            one_request(&request);
        }
    }
}

fn one_request(request: &[&Read]) {
    let roots = named(request, "request.lifecycle");
    let [root] = roots[..] else { panic!("{} roots", roots.len()) };
    let [http] = named(request, "http-request")[..] else { panic!("one http-request") };
    assert_eq!(http.id, root.parent);
    let id = root.must(REQUEST);
    assert_eq!(http.must("request_id"), id);
    assert!(http.start <= root.start && root.start <= http.end);
    let outcome = root.must("dynamo.request.terminal.outcome");
    assert_eq!(root.must("dynamo.request.terminal.error"), (outcome != "success").to_string());
    let terminal = root.number("dynamo.request.terminal.timestamp_unix_ns");
    assert!(root.start <= terminal && terminal <= root.end);
    if root.must("dynamo.session.source") == "request_id_fallback" {
        assert_eq!(root.must("dynamo.session.id"), id);
    }
    if let Some(ttft) = http.text("ttft_ms") {
        assert!(ttft.parse::<f64>().unwrap() <= (root.end - root.start) as f64 / 1e6);
    } else {
        assert!(http.text("output_tokens").is_none_or(|tokens| tokens == "0"));
    }
    let mut epochs: HashMap<String, String> = HashMap::new();
    for span in request.iter().filter(|span| is_lifecycle(span)) {
        assert_eq!(span.must(REQUEST), id);
        assert_eq!(span.must("dynamo.lifecycle.identity.state"), "complete");
        let (role, component) = (span.must("dynamo.operation.role"), span.must("dynamo.component"));
        if role == "frontend" {
            assert_eq!(span.must("dynamo.operation.id"), root.must("dynamo.operation.id"));
            assert_eq!(component, if span.name.starts_with("router.") { "router" } else { "frontend" });
        } else {
            assert_eq!(component, "worker");
        }
        assert_eq!(span.must("dynamo.instance.id"), span.process);
        epochs.insert(span.must("dynamo.process.epoch"), span.process.clone());
        let mut keys = HashSet::new();
        for (key, _) in &span.attrs {
            let normal = span.name == "request.lifecycle" && key.starts_with("dynamo.session.");
            assert!(keys.insert(key) || normal, "{key} is repeated on {}", span.name);
        }
        if span.must("dynamo.lifecycle.mode") == "core" {
            for key in ["dynamo.router.candidates.top_k", "dynamo.stage.outcome", "dynamo.stream.events"] {
                assert!(span.text(key).is_none(), "core mode carries {key}");
            }
        }
    }
    for stage in named(request, "request.preprocessing") {
        let ready = stage.text("dynamo.stage.checkpoint").is_none_or(|checkpoint| checkpoint == "ready");
        assert_eq!(stage.text("dynamo.stage.outcome").is_none_or(|outcome| outcome == "success"), ready);
        assert!(ready || outcome == "rejected");
    }
    for stream in named(request, "response.streaming") {
        if let Some(word) = stream.text("dynamo.stage.outcome") {
            assert!(stream.number("dynamo.stream.events") >= 1);
            assert!(word == outcome || (word == "abandoned" && outcome == "cancelled"));
        }
        let first = named(request, "request.dispatch").iter().map(|span| span.end).min().unwrap();
        assert!(stream.start >= first);
    }
}

fn is_lifecycle(span: &Read) -> bool {
    Stage::of(&span.name).is_lifecycle()
}

#[test]
fn a_success_has_as_many_lifecycle_spans_as_its_topology_gives() {
    for (settings, reading) in both() {
        let whole = if settings.aggregated { 9 } else { 15 };
        let mut seen = 0;
        for request in reading.requests() {
            let root = named(&request, "request.lifecycle")[0];
            let legs = if settings.aggregated { 1 } else { 2 };
            let dispatches = named(&request, "request.dispatch").len();
            if root.must("dynamo.request.terminal.outcome") != "success" || dispatches != legs {
                continue;
            }
            let unary = usize::from(named(&request, "response.streaming").is_empty());
            assert_eq!(request.iter().filter(|span| is_lifecycle(span)).count(), whole - unary);
            seen += 1;
        }
        assert!(seen > 300);
    }
}

#[test]
fn queues_follow_their_rules() {
    for (_, reading) in both() {
        for request in reading.requests() {
            let outcome = named(&request, "request.lifecycle")[0].must("dynamo.request.terminal.outcome");
            for queue in named(&request, "router.queue") {
                let key = |name: &str| queue.text(&format!("dynamo.router.queue.{name}"));
                let reason = key("reason");
                let deferred = key("deferred").unwrap() == "true";
                let after: Vec<_> = request.iter().filter(|span| span.parent == queue.parent).collect();
                match key("outcome").unwrap().as_str() {
                    "dequeued" => {
                        assert_eq!(deferred, reason.is_some());
                        assert!(reason.is_none_or(|why| why == "prefill_capacity" || why == "class_backlog"));
                        let selection = after.iter().find(|span| span.name == "router.selection").unwrap();
                        assert!(selection.start >= queue.end);
                    }
                    "rejected" => {
                        assert!(matches!(reason.as_deref(), Some("request_limit" | "raw_isl_token_limit")));
                        assert!(!deferred && key("depth.in") == key("depth.out"));
                        assert!(outcome == "rejected" && after.len() == 1);
                    }
                    "cancelled" => {
                        assert_eq!(reason.unwrap(), "request_lifecycle_ended_before_admission");
                        assert_eq!(outcome, "cancelled");
                    }
                    other => panic!("no such outcome: {other}"),
                }
            }
        }
    }
}

#[test]
fn depths_are_those_of_everybody_who_waits() {
    let reading = &both()[1].1;
    let queues: Vec<_> = reading.spans.iter().filter(|span| span.name == "router.queue").collect();
    let inside: Vec<_> = queues.iter().filter(|span| span.must("dynamo.router.queue.outcome") != "rejected").collect();
    let waiting = |at: u64| inside.iter().filter(|wait| wait.start < at && at < wait.end).count() as u64;
    assert!(queues.iter().any(|queue| queue.number("dynamo.router.queue.depth.in") > 5));
    for queue in &queues {
        assert_eq!(queue.number("dynamo.router.queue.depth.in"), waiting(queue.start));
        if queue.must("dynamo.router.queue.outcome") != "rejected" {
            assert_eq!(queue.number("dynamo.router.queue.depth.out"), waiting(queue.end));
        }
    }
}

#[test]
fn selections_add_up_and_dispatches_go_where_they_say() {
    for (settings, reading) in both() {
        for request in reading.requests() {
            let selections = named(&request, "router.selection");
            selections.iter().for_each(|selection| one_selection(selection, settings));
            let dispatches = named(&request, "request.dispatch");
            assert_eq!(selections.len(), dispatches.len());
            for dispatch in dispatches {
                let attempt = dispatch.number("dynamo.request.attempt");
                let phase = dispatch.must("dynamo.dispatch.phase");
                let role = if phase == "aggregated" { "decode" } else { &phase };
                let selection = selections
                    .iter()
                    .find(|one| {
                        one.number("dynamo.request.attempt") == attempt && one.must("dynamo.router.pool.role") == role
                    })
                    .unwrap();
                assert!(selection.end <= dispatch.start);
                let to = dispatch.number("dynamo.dispatch.destination.worker.id");
                assert!(to > 1 << 53);
                assert_eq!(to, selection.number("dynamo.router.selected.worker.id"));
                assert_eq!(
                    dispatch.number("dynamo.dispatch.destination.dp.rank"),
                    selection.number("dynamo.router.selected.dp.rank")
                );
                let route = request.iter().find(|span| span.parent == dispatch.id).unwrap();
                assert_eq!((route.number("worker_id"), route.number("request.attempt")), (to, attempt));
                assert_eq!(route.must("migration.is_retry"), (attempt > 0).to_string());
            }
        }
    }
}

fn one_selection(selection: &Read, settings: &Settings) {
    let count = |name: &str| selection.number(&format!("dynamo.router.candidate.{name}"));
    let parts: u64 = ledger::FILTERS.iter().map(|part| count(&format!("filtered.{part}"))).sum();
    assert_eq!(count("filtered.count"), parts);
    assert_eq!(count("eligible.count"), count("count") + count("filtered.policy"));
    let real = |name: &str| selection.real(&format!("dynamo.router.{name}"));
    let (chosen, best, margin) = (real("selected.score"), real("best.score"), real("best.margin"));
    assert!(best <= chosen && margin >= 0.0 && (count("count") > 1 || margin == 0.0));
    let same = selection.must("dynamo.router.selected.worker.id") == selection.must("dynamo.router.best.worker.id")
        && selection.must("dynamo.router.selected.dp.rank") == selection.must("dynamo.router.best.dp.rank");
    assert_eq!(same, chosen == best);
    let Some(top) = selection.text("dynamo.router.candidates.top_k") else {
        assert_eq!(settings.mode, Mode::Core);
        return;
    };
    let rows: Vec<serde_json::Value> = serde_json::from_str(&top).unwrap();
    let scores: Vec<f64> = rows.iter().map(|row| row["score"].as_f64().unwrap()).collect();
    assert!(rows.len() <= 4 && rows.len() as u64 <= count("count"));
    assert!(scores.is_sorted() && scores[0] == best);
    let selected: Vec<_> = rows.iter().filter(|row| row["selected"] == true).collect();
    let [selected] = selected[..] else { panic!("one row is selected") };
    assert_eq!(selected["worker_id"].as_u64(), Some(selection.number("dynamo.router.selected.worker.id")));
    assert_eq!(selected["score"].as_f64(), Some(chosen));
}

#[test]
fn records_agree_with_the_spans() {
    for (_, reading) in both() {
        let mut ends = HashMap::new();
        for (scope, body, attrs) in &reading.logs {
            if scope != "dynamo.request_trace" {
                continue;
            }
            let record = Record::from_json(attrs["payload"].as_bytes()).unwrap();
            let RecordBody::End(end) = record.body else { continue };
            assert_eq!(body, "request_end");
            let replay = end.replay.unwrap();
            let blocks = replay.input_length.unwrap().div_ceil(replay.trace_block_size.unwrap());
            assert_eq!(replay.input_sequence_hashes.len() as u64, blocks);
            assert!(end.cached_tokens <= end.input_tokens && end.ttft_ms <= end.total_time_ms || end.ttft_ms.is_none());
            assert!(ends.insert(attrs["rid"].clone(), (end.input_tokens, end.output_tokens)).is_none());
        }
        for request in reading.requests() {
            let root = named(&request, "request.lifecycle")[0];
            let http = named(&request, "http-request")[0];
            let end = ends.get(&root.must(REQUEST));
            assert!(end.is_some() || root.must("dynamo.request.terminal.outcome") != "success");
            if let (Some(input), Some(output), Some(_)) =
                (http.text("input_tokens"), http.text("output_tokens"), http.text("ttft_ms"))
            {
                assert_eq!(end, Some(&(input.parse().ok(), output.parse().ok())));
            }
        }
    }
}
