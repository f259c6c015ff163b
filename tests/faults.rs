//! The checks against the simulated cluster: without faults nothing is violated, and of every kind of fault exactly the
//! injected ones are reported, on the requests that the ledger names, by the checks that its table names.

use std::collections::{BTreeMap, BTreeSet};

use reqtop::checks::{self, Answer};
use reqtop::demo::fault::Kind;
use reqtop::demo::ledger::Ledger;
use reqtop::demo::{Cluster, Settings, Signal};
use reqtop::lifecycle::stage::Mode;
use reqtop::pipeline::take_in;
use reqtop::source::intake::{Payload, Signal as Wire};
use reqtop::store::{Limits, Store};

const START_NS: u64 = 1_796_003_500_000_000_000;
const SECOND: u64 = 1_000_000_000;

/// Every mode and shape.
const FORMS: [(bool, Mode); 4] =
    [(false, Mode::Investigation), (true, Mode::Core), (false, Mode::Core), (true, Mode::Investigation)];

/// Checks that no fault of the simulated cluster can violate: a note, and what a load generator says.
const OUT_OF_REACH: [&str; 4] = ["admission.gate", "load.count", "load.request", "load.tokens"];

/// Violations: check and request id.
type Violations = BTreeSet<(&'static str, String)>;

/// Simulates, reads everything as a receiver does, and asks every check of every request.
fn simulate(settings: &Settings, seconds: u64) -> (Violations, BTreeMap<(&'static str, String), String>, Ledger) {
    let mut cluster = Cluster::new(settings, START_NS);
    let mut store = Store::new(Limits::default());
    let mut deliveries = cluster.advance(START_NS + seconds * SECOND);
    deliveries.extend(cluster.drain());
    for delivery in deliveries {
        let signal = match delivery.signal {
            Signal::Traces => Wire::Traces,
            Signal::Logs => Wire::Logs,
        };
        let receipt = take_in(&mut store, &mut Payload::otlp(signal, delivery.body), delivery.at_ns).unwrap();
        assert_eq!(receipt.refused, 0, "{receipt:?}");
    }
    store.finish(cluster.now_ns());
    store.check_all();
    let mut found = Violations::new();
    let mut said = BTreeMap::new();
    for (key, facts) in store.requests() {
        let answers = store.answers(key).unwrap_or_else(|| panic!("{} was not asked", facts.request_id));
        for (check, _) in answers.iter().filter(|(_, answer)| *answer == Answer::Violated) {
            found.insert((check.check().id, facts.request_id.to_string()));
        }
        for finding in answers.findings() {
            said.insert((finding.check.check().id, facts.request_id.to_string()), finding.to_string());
        }
    }
    (found, said, cluster.ledger().clone())
}

/// Runs with these kinds, and says where the report is not the ledger. Counts what was seen of each kind and check.
fn compare(settings: &Settings, seconds: u64, seen: &mut BTreeMap<(&'static str, &'static str), u64>) -> Vec<String> {
    let (found, said, ledger) = simulate(settings, seconds);
    let (mut must, mut may) = (Violations::new(), Violations::new());
    for (name, injected) in &ledger.faults {
        assert_eq!(injected.count, injected.requests.len() as u64);
        for id in &injected.requests {
            for check in injected.checks {
                must.insert((check, id.clone()));
                *seen.entry((name, check)).or_default() += 1;
            }
            for check in injected.also {
                may.insert((check, id.clone()));
                *seen.entry((name, check)).or_default() += u64::from(found.contains(&(*check, id.clone())));
            }
        }
    }
    let fault_of: BTreeMap<&str, &str> =
        ledger.requests.iter().filter_map(|truth| Some((&*truth.request_id, truth.fault?))).collect();
    let form = format!("{settings:?}").chars().take(100).collect::<String>();
    let name = |id: &str| fault_of.get(id).copied().unwrap_or("no fault");
    let missing = must.difference(&found).map(|(check, id)| format!("{}: {check} did not answer for {id}", name(id)));
    let extra = found.iter().filter(|one| !must.contains(*one) && !may.contains(*one));
    let extra = extra.map(|one| format!("{}: {}", name(&one.1), said[one]));
    missing.chain(extra).map(|line| format!("{line} ({form})")).collect()
}

#[test]
fn without_faults_nothing_is_violated() {
    for (aggregated, mode) in FORMS {
        for (seed, seconds) in [(1, 15), (2, 60)] {
            let settings = Settings { seed, aggregated, mode, ..Settings::default() };
            let (found, said, ledger) = simulate(&settings, seconds);
            assert!(ledger.finished > seconds * 8 && ledger.faults.is_empty());
            assert!(found.is_empty(), "seed {seed}, aggregated {aggregated}, {mode:?}: {said:?}");
        }
    }
}

/// Kinds, each alone, in a form that can tell it: a short run, and longer ones as long as nobody came to it.
fn each_alone(part: usize, parts: usize) {
    let mut wrong = Vec::new();
    for (at, kind) in Kind::all().enumerate().filter(|(at, _)| at % parts == part) {
        let forms: Vec<_> = FORMS.into_iter().filter(|(aggregated, mode)| kind.fits(*mode, *aggregated)).collect();
        // Two pools reject and lose more.
        let (aggregated, mode) = if kind.rare { forms[0] } else { forms[at / parts % forms.len()] };
        let mut seen = BTreeMap::new();
        for (seed, seconds) in [(1, 8), (2, 20), (3, 60), (4, 60), (5, 60)] {
            let settings = Settings { seed, aggregated, mode, faults: vec![kind], ..Settings::default() };
            wrong.extend(compare(&settings, seconds, &mut seen).into_iter().take(5));
            if kind.checks.iter().all(|check| seen.contains_key(&(kind.name, *check))) {
                break;
            }
        }
        if seen.is_empty() {
            wrong.push(format!("{}: never injected (aggregated {aggregated}, {mode:?})", kind.name));
        }
    }
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
}

#[test]
fn each_kind_alone_is_reported_and_nothing_else() {
    each_alone(0, 2);
}

#[test]
fn each_other_kind_alone_is_reported_and_nothing_else() {
    each_alone(1, 2);
}

#[test]
fn all_kinds_at_once_are_told_apart() {
    let mut wrong = Vec::new();
    let mut seen = BTreeMap::new();
    for (aggregated, mode) in FORMS {
        let faults: Vec<_> = Kind::all().filter(|kind| kind.fits(mode, aggregated)).collect();
        let settings = Settings { seed: 6, rate: 20.0, aggregated, mode, faults, ..Settings::default() };
        wrong.extend(compare(&settings, 40, &mut seen).into_iter().take(20));
    }
    assert!(seen.len() > 40, "{seen:?}");
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
}

#[test]
fn every_check_in_reach_has_its_fault() {
    let ids: BTreeSet<&str> = checks::ALL.iter().map(|check| check.id).collect();
    let mut reached = BTreeSet::new();
    let mut names = BTreeSet::new();
    for kind in Kind::all() {
        assert!(names.insert(kind.name), "{} stands twice", kind.name);
        assert!(kind.name.chars().all(|c| c.is_ascii_lowercase() || c == '-'), "{}", kind.name);
        for check in kind.checks.iter().chain(kind.also) {
            assert!(ids.contains(check), "{}: {check} is no check", kind.name);
            reached.insert(*check);
        }
    }
    let left: Vec<_> = ids.iter().filter(|id| !reached.contains(*id) && !OUT_OF_REACH.contains(id)).collect();
    assert!(left.is_empty(), "without a fault: {left:?}");
}

#[test]
fn faults_change_what_is_told_and_not_what_happens() {
    let run = |faults| {
        let mut cluster = Cluster::new(&Settings { seed: 9, faults, ..Settings::default() }, START_NS);
        cluster.advance(START_NS + 10 * SECOND);
        cluster.drain();
        let ledger = cluster.ledger().clone();
        ledger.requests.into_iter().map(|truth| (truth.request_id, truth.outcome, truth.waits_ns)).collect::<Vec<_>>()
    };
    let sorted = |mut list: Vec<_>| {
        list.sort();
        list
    };
    let faults = Kind::all().filter(|kind| kind.fits(Mode::Investigation, false)).collect();
    assert_eq!(sorted(run(Vec::new())), sorted(run(faults)));
}
