//! The root: one, in its place, with its outcome and times.

use super::case::{Asked, Case, said, word};
use super::{ANY_LAYOUT, ANY_MODE, Check, Level, Why};
use crate::lifecycle::catalogue::Field;
use crate::lifecycle::packed::Value;
use crate::lifecycle::request::Up;
use crate::lifecycle::stage::{Outcome, Stage};

/// How far the terminal moment may lie outside the root (spec checks.md), nanoseconds.
const TERMINAL_SLACK_NS: u64 = 5_000_000;

pub(super) const UNIQUE: Check = Check {
    id: "root.unique",
    level: Level::Error,
    what: "one request.lifecycle per request id and trace; no two live requests share a public id",
    layouts: ANY_LAYOUT,
    modes: ANY_MODE,
    ask: unique,
};

fn unique(case: &Case<'_>, asked: &mut Asked<'_, '_>) {
    let Some(root) = case.root() else { return asked.unknown(Why::NoRoot) };
    for other in case.spans(Stage::Root).skip(1).filter(|other| other.view.trace == root.view.trace) {
        asked.expect(other, false, || format!("is a second root beside {}, expected one per trace", root.view.id));
    }
    let (start, end) = (root.view.start_ns, case.facts.end_ns.unwrap_or(u64::MAX));
    let twin = case.around.twin(case.view.key, &case.facts.request_id, root.view.trace, start, end);
    asked.expect_at(Level::Warning, Some(root), twin.is_none(), || {
        let overlap = twin.map_or(0, |twin| twin.overlap_ns / 1_000_000);
        let trace = said(twin.map(|twin| twin.trace));
        format!(
            "shares its request id with a live request in trace {trace} for {overlap} ms, expected ids of their own"
        )
    });
}

pub(super) const PARENT: Check = Check {
    id: "root.parent",
    level: Level::Error,
    what: "the root's parent is an http-request with the same request id",
    layouts: ANY_LAYOUT,
    modes: ANY_MODE,
    ask: parent,
};

fn parent(case: &Case<'_>, asked: &mut Asked<'_, '_>) {
    if case.root().is_none() {
        asked.unknown(Why::NoRoot);
    }
    for root in case.spans(Stage::Root) {
        match root.view.up {
            Up::At(_) => {
                let Some(above) = case.up(root) else { continue };
                let (mine, its) = (root.text(Field::RequestId), above.text(Field::RequestId));
                if above.view.stage != Stage::Http {
                    let name = above.view.name;
                    asked.expect(root, false, || format!("has the parent {name}, expected http-request"));
                } else if mine.is_empty() && its.is_empty() {
                    asked.unsaid();
                } else {
                    asked.expect(root, mine == its, || {
                        format!("has request id {}, its http-request has {}: expected one id", word(mine), word(its))
                    });
                }
            }
            // Some other span took the place of the http-request that is there.
            Up::Missing if case.settled && case.spans(Stage::Http).any(|http| http.view.trace == root.view.trace) => {
                let named = said(root.view.parent);
                asked.expect(root, false, || format!("names {named} as its parent, expected its http-request"));
            }
            Up::Missing => asked.unknown(if case.settled { Why::Lost } else { Why::Arriving }),
            Up::Top | Up::Elsewhere | Up::Cycle => {
                asked.expect(root, false, || "has no http-request above it, expected one".to_owned());
            }
        }
    }
}

pub(super) const START: Check = Check {
    id: "root.start",
    level: Level::Error,
    what: "the root starts while its http-request is open",
    layouts: ANY_LAYOUT,
    modes: ANY_MODE,
    ask: start,
};

fn start(case: &Case<'_>, asked: &mut Asked<'_, '_>) {
    let Some(root) = case.root() else { return asked.unknown(Why::NoRoot) };
    let above = case.up(root).filter(|above| above.view.stage == Stage::Http);
    let Some(http) = above.or_else(|| case.spans(Stage::Http).next()) else {
        return asked.unknown(if case.settled { Why::Lost } else { Why::Arriving });
    };
    let (at, from, to) = (root.view.start_ns, http.view.start_ns, http.view.end_ns);
    if at == 0 || from == 0 || to == 0 {
        return asked.unknown(Why::Unsaid);
    }
    // An http-request that ends before it starts is time.order's finding.
    asked.expect(root, from <= at && (at <= to || to < from), || {
        let offset = (at as i128 - from as i128) as f64 / 1e6;
        let length = to.saturating_sub(from) as f64 / 1e6;
        format!("starts {offset:.3} ms after its http-request, expected between 0 and {length:.3} ms")
    });
}

pub(super) const OUTCOME: Check = Check {
    id: "root.outcome",
    level: Level::Error,
    what: "the outcome is one of the six, and terminal.error says whether it is not success",
    layouts: ANY_LAYOUT,
    modes: ANY_MODE,
    ask: outcome,
};

fn outcome(case: &Case<'_>, asked: &mut Asked<'_, '_>) {
    let Some(root) = case.root() else { return asked.unknown(Why::NoRoot) };
    let outcome = root.text(Field::Outcome);
    let known = Outcome::ALL.iter().any(|known| known.word() == outcome);
    asked.expect(root, known, || {
        let six: Vec<_> = Outcome::ALL.iter().map(|known| known.word()).collect();
        format!("has the outcome {}, expected one of {}", word(outcome), six.join(", "))
    });
    if known {
        let (error, expected) = (root.flag(Field::TerminalError), outcome != Outcome::Success.word());
        asked.expect(root, error == Some(expected), || {
            format!("has terminal.error {} with outcome {outcome}, expected {expected}", said(error))
        });
    }
}

pub(super) const UNKNOWN: Check = Check {
    id: "root.unknown",
    level: Level::Warning,
    what: "the outcome is known: the request was not dropped without an observed end",
    layouts: ANY_LAYOUT,
    modes: ANY_MODE,
    ask: unknown,
};

fn unknown(case: &Case<'_>, asked: &mut Asked<'_, '_>) {
    let Some(root) = case.root() else { return asked.unknown(Why::NoRoot) };
    match root.text(Field::Outcome) {
        "" => asked.unknown(Why::Unsaid),
        outcome => asked.expect(root, outcome != Outcome::Unknown.word(), || {
            "has the outcome unknown: it was dropped without an observed end, expected one".to_owned()
        }),
    }
}

pub(super) const TERMINAL_TIME: Check = Check {
    id: "root.terminal-time",
    level: Level::Error,
    what: "the terminal moment lies within the root (5 ms slack)",
    layouts: ANY_LAYOUT,
    modes: ANY_MODE,
    ask: terminal_time,
};

fn terminal_time(case: &Case<'_>, asked: &mut Asked<'_, '_>) {
    let Some(root) = case.root() else { return asked.unknown(Why::NoRoot) };
    let (from, to) = (root.view.start_ns, root.view.end_ns);
    let Some(at) = root.number(Field::TerminalTime) else {
        // Dropped without an observed end, it has no such moment.
        let dropped = root.text(Field::Outcome) == Outcome::Unknown.word();
        if dropped {
            return asked.unknown(Why::Unsaid);
        }
        return asked.expect(root, false, || "has no terminal timestamp, expected one within it".to_owned());
    };
    if from == 0 || to < from {
        return asked.unknown(Why::Unsaid);
    }
    let within = at.saturating_add(TERMINAL_SLACK_NS) >= from && at <= to.saturating_add(TERMINAL_SLACK_NS);
    asked.expect(root, within, || {
        let offset = (i128::from(at) - i128::from(from)) as f64 / 1e6;
        let length = (to - from) as f64 / 1e6;
        format!("ended {offset:.3} ms after its start by its terminal timestamp, expected 0 to {length:.3} ms")
    });
}

pub(super) const TTFT: Check = Check {
    id: "root.ttft",
    level: Level::Error,
    what: "a stream with output tokens has a time to first token, no longer than the root",
    layouts: ANY_LAYOUT,
    modes: ANY_MODE,
    ask: ttft,
};

fn ttft(case: &Case<'_>, asked: &mut Asked<'_, '_>) {
    let Some(http) = case.spans(Stage::Http).next() else { return };
    let Some(tokens) = http.counted(Field::OutputTokens).filter(|tokens| *tokens > 0) else { return };
    let Some(root) = case.root() else { return asked.unknown(Why::NoRoot) };
    let duration_ms = root.view.duration_ns() as f64 / 1e6;
    match http.get(Field::Ttft) {
        None => asked.expect(http, false, || format!("has {tokens} output tokens and no ttft_ms, expected one")),
        Some(value) => {
            let ttft = value.as_f64();
            if root.view.start_ns == 0 || root.view.end_ns == 0 {
                asked.unsaid();
            }
            // Both are written with hundredths of a millisecond.
            let fits = ttft.is_some_and(|ttft| (0.0..=duration_ms + 0.01).contains(&ttft));
            asked.expect(http, fits || (ttft.is_some_and(|ttft| ttft >= 0.0) && root.view.end_ns == 0), || {
                format!("has ttft_ms {}, expected 0 to the root's {duration_ms:.3} ms", Value::display(value))
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::fixture::{REQUEST, Scene, violates};
    use super::super::{Answer, CheckId, Moment, Surroundings, Twin};
    use super::*;
    use crate::lifecycle::ids::TraceId;
    use crate::lifecycle::request::RequestKey;

    const ROOT: &str = "request.lifecycle";

    #[test]
    fn unique() {
        let id = "root.unique";
        Scene::aggregated().holds(id);
        Scene::aggregated().again(ROOT).violates(id, "second root");
        Scene::aggregated().lose(ROOT).unknown(id, Why::NoRoot);
    }

    struct Twinned;

    impl Surroundings for Twinned {
        fn twin(&self, _: RequestKey, request_id: &str, _: TraceId, start: u64, end: u64) -> Option<Twin> {
            (request_id == REQUEST && start < end).then_some(Twin { trace: TraceId([7; 16]), overlap_ns: 3_000_000 })
        }
    }

    #[test]
    fn a_live_twin_is_a_warning() {
        let answers = Scene::aggregated().answers(&Twinned, Moment::Settled);
        let answer = answers.of(CheckId::of("root.unique").unwrap());
        violates(answer, &answers, "root.unique", Level::Warning, "for 3 ms");
    }

    #[test]
    fn parent() {
        let id = "root.parent";
        Scene::aggregated().holds(id);
        Scene::aggregated().set("http-request", "request_id", "other").violates(id, "its http-request has other");
        Scene::aggregated().under(ROOT, "").violates(id, "no http-request above it");
        Scene::aggregated().under(ROOT, "kv_router.route_request").violates(id, "expected http-request");
        Scene::aggregated().lose("http-request").unknown(id, Why::Lost);
        let arriving = Scene::aggregated().lose("http-request").answers(&super::super::Nothing, Moment::Arriving);
        assert_eq!(arriving.of(CheckId::of(id).unwrap()), Answer::Unknown(Why::Arriving));
        Scene::aggregated().lose(ROOT).unknown(id, Why::NoRoot);
    }

    #[test]
    fn start() {
        let id = "root.start";
        Scene::aggregated().holds(id);
        Scene::aggregated().times(ROOT, -5_000, 98_900).violates(id, "starts -5.000 ms");
        Scene::aggregated().times(ROOT, 99_001, 99_900).violates(id, "expected between 0 and 99.000 ms");
        Scene::aggregated().lose("http-request").unknown(id, Why::Lost);
    }

    #[test]
    fn outcome() {
        let id = "root.outcome";
        Scene::aggregated().holds(id);
        Scene::aggregated().ended("finished").violates(id, "outcome finished, expected one of success");
        let error = "dynamo.request.terminal.error";
        Scene::aggregated().set(ROOT, error, true).violates(id, "terminal.error true");
        Scene::aggregated().ended("failed").set(ROOT, error, false).violates(id, "expected true");
        Scene::aggregated().lose(ROOT).unknown(id, Why::NoRoot);
    }

    #[test]
    fn unknown() {
        let id = "root.unknown";
        Scene::aggregated().holds(id);
        Scene::aggregated().ended("unknown").violates(id, "without an observed end");
        Scene::aggregated().without(ROOT, "dynamo.request.terminal.outcome").unknown(id, Why::Unsaid);
    }

    #[test]
    fn terminal_time() {
        let (id, key) = ("root.terminal-time", "dynamo.request.terminal.timestamp_unix_ns");
        Scene::aggregated().holds(id);
        Scene::aggregated().set(ROOT, key, 1_796_003_545_103_000_000u64).holds(id);
        Scene::aggregated().set(ROOT, key, 1_796_003_547_000_000_000u64).violates(id, "1999.950 ms");
        Scene::aggregated().set(ROOT, key, 1_796_003_544_990_000_000u64).violates(id, "-10.050 ms");
        Scene::aggregated().without(ROOT, key).violates(id, "no terminal timestamp");
        Scene::aggregated().without(ROOT, key).ended("unknown").unknown(id, Why::Unsaid);
    }

    #[test]
    fn ttft() {
        let id = "root.ttft";
        Scene::aggregated().holds(id);
        Scene::aggregated().set("http-request", "ttft_ms", "99999.99").violates(id, "ttft_ms 99999.99");
        Scene::aggregated().set("http-request", "ttft_ms", "-0.50").violates(id, "expected 0 to");
        Scene::aggregated().without("http-request", "ttft_ms").violates(id, "8 output tokens and no ttft_ms");
        Scene::aggregated().without("http-request", "output_tokens").unknown(id, Why::NotHere);
        Scene::aggregated().lose(ROOT).unknown(id, Why::NoRoot);
    }
}
