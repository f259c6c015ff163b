//! The verdict: what fails, and that every form says so.

use super::*;
use crate::checks::load::ledger::Ledger;
use crate::checks::load::{LoadPhase, LoadRecord, Seen, Usage};
use crate::lifecycle::batch::Batch;
use crate::lifecycle::ids::TraceId;
use crate::lifecycle::made::{Made, with_batch};
use crate::lifecycle::record::Record;

/// What a load generator saw of a request: a success, unless its id says otherwise.
fn record(id: &str) -> LoadRecord {
    LoadRecord {
        x_request_id: id.into(),
        phase: "p".into(),
        // What was refused leaves no record.
        seen: if id.starts_with("refused") { Seen::Code(529) } else { Seen::Success },
        usage: Usage::default(),
        end_ns: None,
        ran_ns: None,
    }
}

/// A store that has a request which the load generator calls `rooted`, a success, and these records.
fn store_of(records: Vec<Record>) -> Store {
    let mut store = Store::new(crate::store::Limits::default());
    let span = |id, parent, name, attrs| Made {
        trace: TraceId([7; 16]),
        id,
        parent,
        name,
        kind: 2,
        start_ns: 1_796_003_500_000_000_000,
        end_ns: 1_796_003_500_100_000_000,
        dropped: 0,
        resource: vec![("service.name", "dynamo-frontend")],
        attrs,
    };
    let http = vec![("request_id", "r7"), ("x_request_id", "rooted"), ("uri", "/v1/chat/completions")];
    let root = vec![("dynamo.request.id", "r7"), ("dynamo.request.terminal.outcome", "success")];
    let spans = [span(1, 0, "http-request", http), span(2, 1, "request.lifecycle", root)];
    with_batch(&spans, |batch| store.ingest(&batch, 1));
    store.ingest(&Batch { records, ..Batch::default() }, 1);
    store.finish(1);
    store.check_all();
    store
}

/// Asks what compares with a load generator alone.
fn load_alone() -> Rules {
    Rules { only: vec!["load".into()], ..Rules::default() }
}

/// The generator's record of that request, and these.
fn list(records: impl IntoIterator<Item = LoadRecord>) -> Option<LoadList> {
    let records = [record("rooted")].into_iter().chain(records).collect();
    Some(LoadList { records, phases: Vec::new() })
}

/// Nothing came, as from an exporter with another address: that is no pass, unless nothing was expected.
#[test]
fn a_run_without_requests_does_not_pass() {
    let mut store = Store::new(crate::store::Limits::default());
    store.check_all();
    let report =
        |expectations| CheckReport::of(&store, &InputSection::default(), &Rules { expectations, ..load_alone() });
    let nothing = report(Vec::new());
    assert_eq!((nothing.passed, nothing.incomplete_fails), (false, Some(Whole::Run)));
    assert!(nothing.to_string().contains("✕ not asked, which fails a run without requests"), "{nothing}");
    assert!(nothing.to_string().ends_with("(never a pass)\n") && nothing.to_string().contains(": no request came\n"));
    assert!(report(vec![Expectation::read(">=0").unwrap()]).passed);
    assert!(!report(vec![Expectation::read(">=1").unwrap()]).passed);
}

/// Completions make no root, and without tracing nothing does: of those the client's word is compared with nothing, which is
/// no agreement.
#[test]
fn a_comparison_of_nothing_does_not_pass() {
    let mut store = Store::new(crate::store::Limits::default());
    let records = vec![Record::payload_marker("r1", 1, "", "{}".into())];
    store.ingest(&Batch { records, ..Batch::default() }, 1);
    store.finish(1);
    store.check_all();
    let mut ledger = Ledger { without_root: 4, ..Ledger::default() };
    let report = |ledger: &Ledger, skip: &[&str]| {
        let skip = skip.iter().map(|id| (*id).to_owned()).collect();
        let rules = Rules { ledger: Some(ledger.clone()), skip, ..load_alone() };
        CheckReport::of(&store, &InputSection::default(), &rules)
    };
    let nothing = report(&ledger, &[]);
    let count = nothing.checks.iter().find(|row| row.id == "load.count").unwrap();
    assert_eq!((nothing.incomplete_fails, count.holds), (Some(Whole::Comparison), 0), "{nothing}");
    assert!(nothing.to_string().contains("no request that it tells of has a root here"), "{nothing}");
    assert_eq!(report(&ledger, &["load"]).incomplete_fails, None);
    ledger.counts.insert("rejected", 0);
    assert_eq!(report(&ledger, &[]).incomplete_fails, None, "that none was rejected is something");
}

/// What was lost, or had not come yet, is not missed, and leaves no comparison that passes.
#[test]
fn a_request_that_may_have_been_lost_is_not_missed() {
    let mut ledger = Ledger::default();
    ledger.counts.insert("success", 2);
    let rules = Rules { load: list([record("x")]), ledger: Some(ledger), ..load_alone() };
    let mut store = store_of(Vec::new());
    let report = |store: &Store| CheckReport::of(store, &InputSection::default(), &rules);
    assert!(!report(&store).passed);
    store.note_losses();
    store.check_all();
    let lost = report(&store);
    let count = lost.checks.iter().find(|row| row.id == "load.count").unwrap();
    assert_eq!((lost.incomplete_fails, count.violated, count.unknown), (Some(Whole::Comparison), 0, 1), "{lost}");
    assert!(lost.checks.iter().all(|row| row.failing == 0), "{lost}");
    assert!(lost.incomplete.iter().any(|told| told.contains("without a root here")), "{lost}");
}

/// A comparison that lacks what was let go contradicts nobody, and fails for that: every form says so, and why.
#[test]
fn what_was_let_go_is_not_missed_and_a_comparison_without_it_fails_in_every_form() {
    let mut store = Store::new(crate::store::Limits { memory: 0, ..crate::store::Limits::default() });
    let records = vec![Record::payload_marker("r1", 1, "", "{}".into())];
    store.ingest(&Batch { records, ..Batch::default() }, 1);
    store.finish(1);
    store.check_all();
    assert_eq!(store.counts().requests_evicted, 1);
    let record = LoadRecord {
        x_request_id: "x".into(),
        phase: "p".into(),
        seen: Seen::Success,
        usage: Usage::default(),
        end_ns: None,
        ran_ns: None,
    };
    let load = Some(LoadList { records: vec![record], phases: Vec::new() });
    let mut ledger = Ledger::default();
    ledger.counts.insert("success", 1);
    let report = |rules: &Rules| CheckReport::of(&store, &InputSection::default(), rules);
    for rules in [Rules { load, ..load_alone() }, Rules { ledger: Some(ledger), ..load_alone() }] {
        let said = report(&rules);
        let of =
            |id: &str| said.checks.iter().find(|row| row.id == id).map(|row| (row.violated, row.unknown, row.failing));
        assert_eq!((said.passed, said.incomplete_fails), (false, Some(Whole::Comparison)));
        assert_eq!(of("load.count"), Some((0, 1, 0)), "{said}");
        assert_eq!(of("load.request"), Some((0, 1, 0)), "{said}");
        assert!(said.to_json().contains(r#""incomplete_fails": "comparison""#));
        assert!(said.to_junit().contains("failures=\"1\"") && said.to_junit().contains("fails a comparison"));
        assert!(said.to_github().contains("::error title=input::1 requests were let go"), "{}", said.to_github());
        assert!(!said.to_github().contains("::warning"), "{}", said.to_github());
        assert!(
            said.to_string().contains("✕ not asked, which fails a comparison with a load generator: 1 requests were")
        );
    }
    let alone = report(&Rules::default());
    assert_eq!((alone.passed, alone.incomplete_fails), (true, None));
    assert!(alone.to_junit().contains("failures=\"0\"") && alone.to_github().starts_with("::warning title=input::"));
    let strict = report(&Rules { strict: true, ..load_alone() });
    assert_eq!((strict.passed, strict.incomplete_fails), (false, Some(Whole::Strict)));
}

/// A list that is shorter than its manifest says is told, and fails a strict run.
#[test]
fn a_list_that_lacks_requests_of_a_phase_is_incomplete() {
    let store = store_of(Vec::new());
    let phase = |requests| LoadPhase { phase: "p".into(), end_ns: None, requests };
    for (requests, told, strict) in
        [(None, false, false), (Some(1), false, true), (Some(60), true, false), (Some(60), true, true)]
    {
        let load = Some(LoadList { records: vec![record("rooted")], phases: vec![phase(requests)] });
        let report = CheckReport::of(&store, &InputSection::default(), &Rules { load, strict, ..load_alone() });
        assert_eq!(
            report.to_string().contains("has 1 requests of phase \"p\", its manifest counts 60"),
            told,
            "{report}"
        );
        assert_eq!(report.passed, !(told && strict), "{report}");
    }
}

/// The verdict, its rows and its forms say one thing, also of what no request's own check tells.
#[test]
fn what_the_load_generator_contradicts_is_in_the_rows() {
    let record = |id: &str| LoadRecord { seen: Seen::Refused, ..record(id) };
    let twice = list([record("x"), record("x")]).unwrap();
    let ledger = |success| {
        let mut ledger = Ledger::default();
        ledger.counts.insert("success", success);
        Some(ledger)
    };
    let store = store_of(Vec::new());
    let report = |rules: &Rules| CheckReport::of(&store, &InputSection::default(), rules);
    let row = |report: &CheckReport, id: &str| {
        let row = report.checks.iter().find(|row| row.id == id).unwrap();
        (row.holds, row.violated, row.unknown, row.failing)
    };
    let listed = report(&Rules { load: Some(twice.clone()), ..load_alone() });
    assert_eq!((listed.passed, row(&listed, "load.request")), (false, (0, 1, 1, 1)), "{listed}");
    assert_eq!((row(&listed, "load.count"), row(&listed, "load.tokens")), ((1, 0, 0, 0), (0, 0, 1, 0)));
    let accepted = Rules { load: Some(twice), baseline: Accepted::read("load.request").unwrap(), ..load_alone() };
    let accepted = report(&accepted);
    assert_eq!((accepted.passed, row(&accepted, "load.request")), (true, (0, 1, 1, 0)), "{accepted}");
    for (success, answer) in [(1, (1, 0, 0, 0)), (2, (0, 1, 0, 1))] {
        let counted = report(&Rules { ledger: ledger(success), ..load_alone() });
        assert_eq!((counted.passed, row(&counted, "load.count")), (success == 1, answer), "{counted}");
        let forms = [counted.to_junit(), counted.to_github(), counted.to_string()];
        let tells = forms.map(|form| form.contains("the ledger counts 2 success, the roots 1"));
        assert_eq!(tells, [success > 1; 3]);
    }
    let skipped = report(&Rules { ledger: ledger(2), skip: vec!["load".into()], ..load_alone() });
    assert!(skipped.passed);
}

/// With sampling most requests have records and no spans; records do not have the client's id.
#[test]
fn a_request_that_was_sampled_out_is_not_missed() {
    let end = r#"{"event_type":"request_end","event_time_unix_ms":1796003500001,"request":{"request_id":"r1"}}"#;
    let store = store_of(vec![Record::from_json(end.as_bytes()).unwrap()]);
    let report = |ids: &[&str]| {
        let load = list(ids.iter().map(|id| record(id)));
        CheckReport::of(&store, &InputSection::default(), &Rules { load, ..load_alone() })
    };
    let one = report(&["x"]);
    assert!(one.passed && one.incomplete.iter().any(|told| told.contains("sampled out")), "{one}");
    // More than are known from records: so many are too many, and nobody knows which.
    let two = report(&["x", "y"]);
    let row = |id: &str| two.checks.iter().find(|row| row.id == id).unwrap();
    assert!(!two.passed && row("load.request").violated == 0, "{two}");
    assert_eq!((row("load.count").violated, row("load.count").violations.len()), (1, 1), "{two}");
    assert!(row("load.count").violations[0].message.starts_with("the load generator saw 1 request succeed"), "{two}");
    assert!(report(&["x", "refused", "refused too"]).passed && report(&["refused"]).passed);
    let ledger = |success, rejected| {
        let mut ledger = Ledger::default();
        ledger.counts.extend([("success", success), ("rejected", rejected)]);
        let rules = Rules { ledger: Some(ledger), ..load_alone() };
        CheckReport::of(&store, &InputSection::default(), &rules).passed
    };
    assert!(ledger(2, 5) && !ledger(3, 5));
    let alone = LoadList { records: vec![record("x")], phases: Vec::new() };
    let alone = CheckReport::of(&store, &InputSection::default(), &Rules { load: Some(alone), ..load_alone() });
    assert_eq!(alone.incomplete_fails, Some(Whole::Comparison), "no root was compared");
    let nothing = Store::new(crate::store::Limits::default());
    let load = Some(LoadList { records: vec![record("refused")], ..LoadList::default() });
    assert!(
        !CheckReport::of(&nothing, &InputSection::default(), &Rules { load, ..load_alone() }).passed,
        "no record stands alone: nothing says that spans were sampled out"
    );
}
