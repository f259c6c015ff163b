//! The checks against what is known: one-fault requests answer exactly their fault, legal oddities and evidence captures
//! nothing, real captures no error; a load generator's list agrees as its truth says.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Read;
use std::ops::ControlFlow;
use std::path::PathBuf;

use reqtop::checks::load::{Class, Comparison, LoadList, LoadRecord, aiperf, compare, ledger};
use reqtop::checks::{self, Answer, Answers, Learned, Level, Moment, Run};
use reqtop::demo::{self, Cluster, Settings};
use reqtop::lifecycle::record::Record;
use reqtop::lifecycle::request::RequestKey;
use reqtop::lifecycle::stage::{Mode, Outcome, Phase};
use reqtop::pipeline::take_in;
use reqtop::report::InputSection;
use reqtop::report::check::{Accepted, CheckReport, Rules};
use reqtop::source::file::{self, Input, Problem, Progress, Sink};
use reqtop::source::intake::{Payload, Receipt, Refusal, Signal};
use reqtop::source::otlp::json::{Shape, transcode};
use reqtop::store::{Limits, Store};
use serde_json::Value as Json;

const START_NS: u64 = 1_796_003_500_000_000_000;

fn fixture(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures").join(name)
}

fn text(name: &str) -> String {
    let file = std::fs::File::open(fixture(name)).unwrap_or_else(|error| panic!("{name}: {error}"));
    let mut text = String::new();
    if name.ends_with(".gz") {
        flate2::read::MultiGzDecoder::new(file).read_to_string(&mut text).unwrap();
    } else {
        std::io::BufReader::new(file).read_to_string(&mut text).unwrap();
    }
    text
}

/// A store fed as a running dashboard feeds its own.
struct Fed(Store);

impl Sink for Fed {
    fn payload(&mut self, mut payload: Payload) -> Result<Receipt, Refusal> {
        take_in(&mut self.0, &mut payload, 1)
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

impl Fed {
    fn new() -> Self {
        Self(Store::new(Limits::default()))
    }

    /// The spans and, where there are any, the records of a capture.
    fn capture(name: &str) -> Self {
        let files = ["traces", "request_trace"].map(|kind| fixture(&format!("{name}.{kind}.jsonl.gz")));
        let inputs: Vec<Input> = files.into_iter().filter(|file| file.exists()).map(Input::File).collect();
        let mut fed = Self::new();
        file::read(&inputs, file::Limits::default(), &mut fed);
        fed.0.finish(1);
        fed
    }

    /// What every check says of every request, in surroundings that have seen all of them.
    fn answers(&self) -> Vec<(RequestKey, Answers)> {
        let mut run = Run::beside(64 << 20);
        let keys: Vec<RequestKey> = self.0.requests().map(|(key, _)| key).collect();
        for key in &keys {
            run.learn(&self.0.request(*key).unwrap(), &mut Learned::default());
        }
        let ask = |key: &RequestKey| checks::answer(&self.0.request(*key).unwrap(), &run, Moment::Settled);
        keys.iter().map(|key| (*key, ask(key))).collect()
    }

    /// The HTTP status that a request's spans tell.
    fn status(&self, key: RequestKey) -> Option<u64> {
        self.0.request(key).and_then(|view| view.http_status())
    }

    /// The requests compared with a load generator's list.
    fn compared(&self, list: &LoadList) -> Comparison {
        compare(list, self.0.requests(), |key| self.status(key))
    }
}

fn violated(answers: &Answers) -> BTreeSet<&'static str> {
    answers.iter().filter(|(_, answer)| *answer == Answer::Violated).map(|(check, _)| check.check().id).collect()
}

fn sentences(answers: &Answers) -> String {
    answers.findings().iter().map(|finding| format!("\n  {finding}")).collect()
}

#[test]
fn every_mutation_answers_exactly_its_fault() {
    let mut wrong = String::new();
    for line in text("mutations.jsonl.gz").lines() {
        let case: Json = serde_json::from_str(line).unwrap();
        let mut fed = Fed::new();
        for request in case["traces"].as_array().unwrap() {
            let mut bytes = Vec::new();
            transcode(Shape::Request(Signal::Traces), request.to_string().as_bytes(), &mut bytes).unwrap();
            fed.payload(Payload::otlp(Signal::Traces, bytes)).unwrap();
        }
        let records = case["records"].as_array().unwrap();
        let records = records.iter().map(|record| Record::from_json(record.to_string().as_bytes()).unwrap()).collect();
        fed.payload(Payload::records(records)).unwrap();
        fed.0.finish(1);
        let words = |list: &Json| -> BTreeSet<String> {
            list.as_array().unwrap().iter().map(|id| id.as_str().unwrap().to_owned()).collect()
        };
        let (must, may) = (words(&case["expect"]["violated"]), words(&case["expect"]["allowed"]));
        let mut found = BTreeSet::new();
        let mut said = String::new();
        for (key, answers) in fed.answers() {
            let facts = fed.0.facts(key).unwrap();
            found.extend(violated(&answers).into_iter().map(str::to_owned));
            said += &sentences(&answers);
            assert_eq!(&*facts.request_id, case["expect"]["request_id"].as_str().unwrap(), "{}", case["case"]);
            for finding in answers.findings() {
                assert!(finding.message.contains(&*facts.request_id), "{finding}");
                let expected = if case["level"] == "W" { Level::Warning } else { Level::Error };
                if finding.check.check().id == case["check"].as_str().unwrap() {
                    assert_eq!(finding.level, expected, "{}: {finding}", case["case"]);
                }
            }
        }
        let extra: Vec<_> = found.iter().filter(|id| !must.contains(*id) && !may.contains(*id)).collect();
        let missing: Vec<_> = must.iter().filter(|id| !found.contains(*id)).collect();
        if !extra.is_empty() || !missing.is_empty() {
            let (name, what) = (&case["case"], &case["what"]);
            wrong += &format!("{name} {what}: missing {missing:?}, too many {extra:?}{said}\n");
        }
    }
    assert!(wrong.is_empty(), "\n{wrong}");
}

const REAL: [&str; 24] = [
    "abort",
    "agg-kv-core",
    "agg-kv-http",
    "agg-kv-investigation",
    "busy-threshold",
    "completions",
    "dev-mocker",
    "dev-sim",
    "dev-sim-disagg-http",
    "disagg-migration",
    "disagg-mocker",
    "fast-flush",
    "invalid",
    "lifecycle-off",
    "metrics",
    "migration",
    "no-workers",
    "queue",
    "queue-wait",
    "round-robin",
    "sessions",
    "timeout",
    "tools",
    "worker-killed",
];

#[test]
fn no_real_capture_errs() {
    let mut wrong = String::new();
    for name in REAL {
        for (_, answers) in Fed::capture(name).answers() {
            if answers.violated() {
                wrong += &format!("{name}:{}\n", sentences(&answers));
            }
        }
    }
    assert!(wrong.is_empty(), "\n{wrong}");
}

/// A real frontend numbers every prefill 0, that of a migration too; its decode has the number (`request.attempt`). Without a
/// failure that it may have moved from, a second one is none of a migration.
#[test]
fn a_migrations_prefill_is_the_attempt_after_what_failed() {
    let given = text("disagg-migration.traces.jsonl.gz");
    let fed = |change: &dyn Fn(&str) -> String| {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("changed.jsonl");
        std::fs::write(&path, change(&given)).unwrap();
        let mut fed = Fed::new();
        file::read(&[Input::File(path)], file::Limits::default(), &mut fed);
        fed.0.finish(1);
        fed
    };
    let answers = |fed: &Fed| -> BTreeMap<String, u64> {
        let id = checks::CheckId::of("dispatch.attempts").unwrap();
        let mut counts = BTreeMap::new();
        for (_, answers) in fed.answers() {
            *counts.entry(format!("{:?}", answers.of(id))).or_default() += 1;
        }
        counts
    };
    let real = fed(&str::to_owned);
    assert_eq!(answers(&real), BTreeMap::from([("Holds".into(), 17)]));
    for (_, facts) in real.0.requests() {
        let numbers = |phase: Phase| -> Vec<u32> {
            facts.legs.iter().filter(|leg| leg.phase == phase).map(|leg| leg.attempt).collect()
        };
        assert_eq!((numbers(Phase::Prefill), facts.attempts()), (vec![0, 1], 2), "{}", facts.request_id);
        assert!(numbers(Phase::Decode).len() <= 2);
    }
    // Where a decode with the number followed, that tells it, too.
    let failed = ["worker_disconnected", "connection_failed"];
    let quiet = fed(&|text| failed.iter().fold(text.to_owned(), |text, word| text.replace(word, "success")));
    let followed = 5;
    assert_eq!(answers(&quiet), BTreeMap::from([("Holds".into(), followed), ("Violated".into(), 17 - followed)]));
    // A number that nothing had is not filled by the prefill of the one after it.
    let skips = |text: &str| {
        let spans = text.replace(
            r#"{"key":"request.attempt","value":{"stringValue":"1"}}"#,
            r#"{"key":"request.attempt","value":{"stringValue":"2"}}"#,
        );
        assert_ne!(spans, text);
        spans
    };
    assert_eq!(answers(&fed(&skips))["Violated"], followed);
    let unsaid = fed(&|text| text.replace("request.outcome", "request.odd"));
    assert_eq!(
        answers(&unsaid),
        BTreeMap::from([("Holds".into(), followed), ("Unknown(Unsaid)".into(), 17 - followed)])
    );
}

#[test]
fn evidence_captures_hold() {
    // What each must hold at least, request by request: everything that these requests can show.
    for (name, roots, routed, successes) in
        [("evidence-abort", 8, 8, 0), ("evidence-agg", 77, 73, 67), ("evidence-disagg", 56, 55, 52)]
    {
        let mut held: BTreeMap<&str, u64> = BTreeMap::new();
        for (_, answers) in Fed::capture(name).answers() {
            assert!(!answers.violated(), "{name}:{}", sentences(&answers));
            for (check, _) in answers.iter().filter(|(_, answer)| *answer == Answer::Holds) {
                *held.entry(check.check().id).or_default() += 1;
            }
        }
        let holds = |ids: &[&str], count: u64| {
            for id in ids {
                assert_eq!(held.get(id).copied().unwrap_or(0), count, "{name}: {id}");
            }
        };
        holds(&["root.unique", "root.parent", "root.start", "root.outcome", "root.unknown"], roots);
        holds(&["root.terminal-time", "identity.complete", "tree.rooted", "tree.component", "mode.mixed"], roots);
        holds(&["identity.operation", "tree.route-nesting", "tree.layouts", "attr.schema"], routed);
        holds(&["mode.investigation", "queue.facts", "queue.reason", "queue.then-selection"], routed);
        holds(&["selection.accounting", "selection.eligible", "selection.complete", "selection.best"], routed);
        holds(&["selection.tie", "selection.top-k", "dispatch.facts", "dispatch.selection"], routed);
        holds(&["dispatch.one-to-one", "admission.result", "admission.witness", "worker.order"], routed);
        holds(&["stage.preprocessing"], routed);
        holds(&["tree.span-count", "dispatch.success", "record.present"], successes);
    }
}

/// The simulated cluster, disaggregated in investigation mode and aggregated in core mode: past lost workers,
/// migrations, rejections and departures.
#[test]
fn a_simulated_cluster_without_faults_violates_nothing() {
    for (aggregated, mode) in [(false, Mode::Investigation), (true, Mode::Core)] {
        let mut cluster = Cluster::new(&Settings { seed: 5, aggregated, mode, ..Settings::default() }, START_NS);
        let mut fed = Fed::new();
        let mut deliveries = cluster.advance(START_NS + 90_000_000_000);
        deliveries.extend(cluster.drain());
        for delivery in deliveries {
            let signal = match delivery.signal {
                demo::Signal::Traces => Signal::Traces,
                demo::Signal::Logs => Signal::Logs,
            };
            fed.payload(Payload::otlp(signal, delivery.body)).unwrap();
        }
        fed.0.finish(1);
        let answers = fed.answers();
        let mut wrong = BTreeMap::new();
        for (_, answers) in answers.iter().filter(|(_, answers)| answers.violated()) {
            for id in violated(answers) {
                let (count, first) = wrong.entry(id).or_insert((0, sentences(answers)));
                *count += 1;
                let _ = first;
            }
        }
        let all: String =
            wrong.iter().map(|(id, (count, first))| format!("{id} {count} times, first:{first}\n")).collect();
        assert!(wrong.is_empty(), "\n{all}");
    }
}

#[test]
fn aiperf_agrees_as_its_truth_says() {
    for name in ["aiperf-plain", "aiperf-cancel", "aiperf-queue"] {
        let fed = Fed::capture(name);
        let list = LoadList {
            records: aiperf::profile_export(&text(&format!("{name}.profile_export.jsonl.gz"))).unwrap(),
            phases: aiperf::phase_manifest(&text(&format!("{name}.phase_manifest.json"))).unwrap(),
        };
        let truth: Json = serde_json::from_str(&text(&format!("{name}.truth.json"))).unwrap();
        let comparison = fed.compared(&list);
        assert_eq!(comparison.roots, truth["roots"].as_u64().unwrap());
        let sides = [("aiperf", true), ("root", false)];
        for (side, client) in sides {
            let counts: BTreeMap<_, _> = comparison
                .phases
                .iter()
                .map(|(phase, counts)| (phase.to_string(), if client { &counts.client } else { &counts.root }))
                .collect();
            assert_eq!(serde_json::to_value(counts).unwrap(), truth["by_outcome"][side], "{name} {side}");
        }
        assert!(comparison.agrees(), "{name}: {:?} {:?}", comparison.disagreements, comparison.unequal_counts());
        assert_eq!(truth["disagreements"], Json::Array(Vec::new()));
        assert!(comparison.others.is_empty() && truth["roots_of_others"] == Json::Array(Vec::new()));
        assert_eq!(comparison.phases.values().map(|counts| counts.classes.len()).sum::<usize>(), 0);
        // Request by request, and through the checks.
        let mut run = Run::beside(64 << 20);
        run.set_load(list.records.iter().cloned());
        let by_id: BTreeMap<&str, RequestKey> =
            fed.0.requests().map(|(key, facts)| (&*facts.x_request_id, key)).collect();
        for row in truth["per_request"]["rows"].as_array().unwrap() {
            let cell = |at: usize| row[at].as_str().unwrap();
            let record = list.records.iter().find(|record| record.x_request_id == cell(0)).unwrap();
            let view = fed.0.request(by_id[cell(0)]).unwrap();
            let client = record.seen.outcome().unwrap().word();
            let root = view.facts.outcome.unwrap().word();
            assert_eq!([&*view.facts.request_id, &*record.phase, client, root], [cell(1), cell(2), cell(3), cell(4)]);
            let answers = checks::answer(&view, &run, Moment::Settled);
            for id in ["load.request", "load.tokens"] {
                let answer = answers.of(checks::CheckId::of(id).unwrap());
                let expected = id == "load.request" || client == "success";
                assert_eq!(answer == Answer::Holds, expected, "{id}: {answer:?}");
            }
        }
    }
}

#[test]
fn disagreements_with_aiperf_are_found_and_classes_named() {
    let fed = Fed::capture("aiperf-cancel");
    let mut list = LoadList {
        records: aiperf::profile_export(&text("aiperf-cancel.profile_export.jsonl.gz")).unwrap(),
        phases: aiperf::phase_manifest(&text("aiperf-cancel.phase_manifest.json")).unwrap(),
    };
    // One record says another outcome, one counts another number of tokens, one root has no record.
    let at = |list: &LoadList, word: &str| {
        list.records.iter().position(|record| record.seen.word() == word && record.phase == "profiling").unwrap()
    };
    let success = at(&list, "success");
    list.records[success].usage.completion = Some(1);
    let cancelled = at(&list, "cancelled");
    list.records[cancelled].seen = reqtop::checks::load::Seen::Code(529);
    let gone = at(&list, "cancelled");
    let gone = list.records.remove(gone);
    let end_ns = fed.0.requests().find(|(_, facts)| *facts.x_request_id == *gone.x_request_id).unwrap().1.terminal_ns;
    list.phases[1].end_ns = end_ns.map(|end_ns| end_ns + 2_000_000);
    let comparison = fed.compared(&list);
    let checks: Vec<_> = comparison.disagreements.iter().map(|found| found.check).collect();
    assert_eq!(checks.len(), 2, "{:?}", comparison.disagreements);
    assert!(checks.contains(&"load.tokens") && checks.contains(&"load.request"));
    assert_eq!(comparison.phases["profiling"].classes, BTreeMap::from([(Class::CutOff, 1)]));
    assert_eq!(comparison.unequal_counts().len(), 2);
    // A record twice, and one without an id.
    let mut odd = list.clone();
    odd.records.push(odd.records[0].clone());
    odd.records.push(LoadRecord { x_request_id: "".into(), ..odd.records[0].clone() });
    let told: Vec<_> = fed.compared(&odd).disagreements.into_iter().map(|one| one.message).collect();
    assert!(told.iter().any(|one| one.contains("lists this client id twice, expected once")), "{told:?}");
    assert!(
        told.iter().any(|one| one.starts_with("a request without a client id: the load generator saw")),
        "{told:?}"
    );
    // The root of a client that sends no such id.
    list.phases[1].end_ns = Some(7);
    assert_eq!(fed.compared(&list).others.len(), 1);
}

/// A client that claims success of what was answered with 529 is not explained by a stream that broke after 200.
#[test]
fn a_rejection_is_not_called_a_broken_stream() {
    use reqtop::checks::load::{Seen, Usage};
    let fed = Fed::capture("aiperf-queue");
    let mut list = LoadList {
        records: aiperf::profile_export(&text("aiperf-queue.profile_export.jsonl.gz")).unwrap(),
        phases: aiperf::phase_manifest(&text("aiperf-queue.phase_manifest.json")).unwrap(),
    };
    let statuses: BTreeSet<_> = fed.0.requests().filter_map(|(key, _)| fed.status(key)).collect();
    assert_eq!(statuses, BTreeSet::from([200, 529]));
    let rejected = list.records.iter().position(|record| record.seen == Seen::Code(529)).unwrap();
    (list.records[rejected].seen, list.records[rejected].usage) = (Seen::Success, Usage::default());
    let told: Vec<_> = fed.compared(&list).disagreements.into_iter().map(|one| one.message).collect();
    assert!(matches!(&told[..], [one] if one.contains("saw success, the cluster rejected")), "{told:?}");
    let mut run = Run::beside(64 << 20);
    run.set_load(list.records.iter().cloned());
    let id = &list.records[rejected].x_request_id;
    let (key, _) = fed.0.requests().find(|(_, facts)| *facts.x_request_id == **id).unwrap();
    let answers = checks::answer(&fed.0.request(key).unwrap(), &run, Moment::Settled);
    assert_eq!(violated(&answers), BTreeSet::from(["load.request"]));
}

/// The exit status, JSON, JUnit and annotations come from one verdict: none fails alone.
#[test]
fn every_form_tells_the_same_verdict() {
    let mut fed = Fed::capture("fast-flush");
    let root = fed.0.standing().by_outcome;
    let of = |outcome: Outcome| root[Outcome::ALL.iter().position(|other| *other == outcome).unwrap()];
    let ledger = |success: u64| {
        let text = format!(
            r#"{{"results":{{"unary":{{"200":{success},"429":{}}},"abort":{{"aborted":{}}}}}}}"#,
            of(Outcome::Rejected),
            of(Outcome::Cancelled)
        );
        Some(ledger::parse(&text).unwrap())
    };
    fed.0.check_all();
    for wrong in [0, 1] {
        let rules = Rules { ledger: ledger(of(Outcome::Success) + wrong), ..Rules::default() };
        let report = CheckReport::of(&fed.0, &InputSection::default(), &rules);
        assert_eq!(report.passed, wrong == 0);
        let json: Json = serde_json::from_str(&report.to_json()).unwrap();
        assert_eq!(json["ledger"]["unequal"].as_array().unwrap().len() as u64, wrong);
        assert!(report.to_junit().contains(&format!("failures=\"{wrong}\"")), "{}", report.to_junit());
        assert_eq!(report.to_github().matches("::error").count() as u64, wrong);
    }
    // The same of a violation: one the baseline accepts fails in no form.
    let case: Json =
        text("mutations.jsonl.gz").lines().map(|line| serde_json::from_str::<Json>(line).unwrap()).next().unwrap();
    assert_eq!(case["level"], "E");
    let mut fed = Fed::new();
    for request in case["traces"].as_array().unwrap() {
        let mut bytes = Vec::new();
        transcode(Shape::Request(Signal::Traces), request.to_string().as_bytes(), &mut bytes).unwrap();
        fed.payload(Payload::otlp(Signal::Traces, bytes)).unwrap();
    }
    fed.0.finish(1);
    fed.0.check_all();
    let plain = CheckReport::of(&fed.0, &InputSection::default(), &Rules::default());
    let failing: Vec<&str> = plain.checks.iter().filter(|check| check.failing > 0).map(|check| check.id).collect();
    assert!(failing.contains(&case["check"].as_str().unwrap()));
    let baseline = Accepted::read(&failing.join("\n")).unwrap();
    let accepted = CheckReport::of(&fed.0, &InputSection::default(), &Rules { baseline, ..Rules::default() });
    for (report, failing) in [(plain, failing.len()), (accepted, 0)] {
        assert_eq!(report.passed, failing == 0);
        assert!(report.to_junit().contains(&format!("failures=\"{failing}\"")));
        assert_eq!(report.to_junit().matches("<failure").count(), failing);
        assert_eq!(report.to_github().contains("::error"), failing > 0);
    }
}

#[test]
fn a_check_that_is_none_is_said_and_lists_are_read_compressed() {
    let files = ["traces.jsonl.gz", "request_trace.jsonl.gz"].map(|kind| fixture(&format!("aiperf-plain.{kind}")));
    let check = |more: &[&str]| {
        let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_reqtop"));
        let output = command.arg("check").args(&files).args(more).output().unwrap();
        (output.status.code(), String::from_utf8(output.stderr).unwrap())
    };
    for more in [["--only", "root.uniqe"], ["--only", "root.unique,nope"], ["--skip", "nope"], ["--only", ""]] {
        let (status, said) = check(&more);
        assert!(status == Some(2) && said.contains("no check or family is called that"), "{more:?}: {said}");
    }
    assert_eq!(check(&["--only", "root.unique,queue", "--skip", "queue.*"]).0, Some(0));
    let list = fixture("aiperf-plain.profile_export.jsonl.gz");
    let (status, said) = check(&["--aiperf", list.to_str().unwrap()]);
    assert_eq!(status, Some(0), "{said}");
}

/// What is asked, skipped and accepted is so of the load generator's side, too; the form and the status agree.
#[test]
fn the_load_comparison_follows_what_is_asked_and_accepted() {
    let mut list = LoadList {
        records: aiperf::profile_export(&text("aiperf-plain.profile_export.jsonl.gz")).unwrap(),
        phases: aiperf::phase_manifest(&text("aiperf-plain.phase_manifest.json")).unwrap(),
    };
    let success = list.records.iter().position(|record| record.seen.word() == "success").unwrap();
    list.records[success].seen = reqtop::checks::load::Seen::Code(529);
    let mut fed = Fed::capture("aiperf-plain");
    fed.0.expect_load(&list);
    fed.0.check_all();
    let verdict = |only: &[&str], skip: &[&str], baseline: &str| {
        let owned = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        let (only, skip, baseline) = (owned(only), owned(skip), Accepted::read(baseline).unwrap());
        let rules = Rules { load: Some(list.clone()), only, skip, baseline, ..Rules::default() };
        let report = CheckReport::of(&fed.0, &InputSection::default(), &rules);
        let failures = report.to_junit().matches("<failure").count();
        assert_eq!((failures == 0, report.to_github().contains("::error")), (report.passed, !report.passed));
        report.passed
    };
    assert!(!verdict(&[], &[], ""));
    assert!(!verdict(&["load.request"], &[], "") && !verdict(&["load.count"], &[], ""));
    assert!(verdict(&["record.times"], &[], "") && verdict(&["load.tokens"], &[], ""));
    assert!(verdict(&[], &["load"], "") && !verdict(&[], &["load.count"], ""));
    assert!(verdict(&[], &[], "load.request\nload.count") && !verdict(&[], &[], "load.request"));
    // By words of the sentence that is printed.
    assert!(verdict(&[], &[], "load.request rejected (529)\nload.count"));
    assert!(!verdict(&[], &[], "load.request timed_out\nload.count"));
}

/// What the client says that may stand for several outcomes counts as the root's where they agree (spec request-trace.md).
#[test]
fn a_stream_that_broke_before_its_first_token_counts_as_its_root() {
    use reqtop::checks::load::Seen;
    let fed = Fed::capture("aiperf-cancel");
    let list = LoadList {
        records: aiperf::profile_export(&text("aiperf-cancel.profile_export.jsonl.gz")).unwrap(),
        phases: aiperf::phase_manifest(&text("aiperf-cancel.phase_manifest.json")).unwrap(),
    };
    for (seen, root, agrees) in [
        (Seen::Invalid, Outcome::Rejected, true),
        (Seen::Invalid, Outcome::Failed, true),
        (Seen::Invalid, Outcome::Success, false),
        (Seen::Broken, Outcome::TimedOut, true),
        (Seen::Broken, Outcome::Cancelled, false),
    ] {
        let mut list = list.clone();
        let at = list.records.iter().position(|record| record.seen.word() == "success").unwrap();
        list.records[at].seen = seen.clone();
        let id = list.records[at].x_request_id.clone();
        let facts: Vec<_> = fed.0.requests().map(|(key, facts)| (key, facts.clone())).collect();
        let changed = facts.into_iter().map(|(key, mut facts)| {
            if *facts.x_request_id == *id {
                facts.outcome = Some(root);
                facts.outcome_word = root.word().into();
            }
            (key, facts)
        });
        let changed: Vec<_> = changed.collect();
        let comparison = compare(&list, changed.iter().map(|(key, facts)| (*key, facts)), |key| fed.status(key));
        assert_eq!(comparison.agrees(), agrees, "{seen:?} {root:?}: {:?}", comparison.unequal_counts());
    }
}
