//! The request's trace record against its spans and against itself (spec request-trace.md).

use super::around::{Place, Stood};
use super::case::{Asked, Case, named, one_worker, said};
use super::places::places;
use super::{ANY_LAYOUT, ANY_MODE, Check, Level, Why};
use crate::lifecycle::catalogue::Field;
use crate::lifecycle::facts::{Leg, Marks};
use crate::lifecycle::ids::Worker;
use crate::lifecycle::record::EndWorkers;
use crate::lifecycle::stage::{Layout, Origin, Phase, Stage};

/// How far received + total may be from the event's time (spec checks.md), milliseconds.
const EVENT_SLACK_MS: f64 = 50.0;

pub(super) const UNIQUE: Check = Check {
    id: "record.unique",
    level: Level::Error,
    what: "one request_end per request id",
    layouts: ANY_LAYOUT,
    modes: ANY_MODE,
    ask: unique,
};

fn unique(case: &Case<'_>, asked: &mut Asked<'_, '_>) {
    let mut ends = case.ends();
    let Some((first, _)) = ends.next() else { return asked.unknown(Why::NoRecord) };
    let more: Vec<String> = ends.map(|(record, _)| record.time_ms.to_string()).collect();
    asked.expect_at(Level::Error, None, more.is_empty(), || {
        let (count, times) = (more.len() + 1, more.join(", "));
        format!("has {count} request_end records (at {}, {times} Unix ms), expected one", first.time_ms)
    });
}

pub(super) const PRESENT: Check = Check {
    id: "record.present",
    level: Level::Warning,
    what: "a successful request has its record, and a chat request's record has its root",
    layouts: ANY_LAYOUT,
    modes: ANY_MODE,
    ask: present,
};

fn present(case: &Case<'_>, asked: &mut Asked<'_, '_>) {
    let recorded = case.ends().next().is_some();
    if let Some(root) = case.root() {
        if !case.succeeded() {
            return;
        }
        // A record names only the id: of two requests that share one, it may be the other's.
        if !recorded && case.facts.marks.has(Marks::SHARED_ID) {
            return asked.unknown(Why::NoRecord);
        }
        if !recorded && (case.facts.marks.is_part() || case.around.records_lost()) {
            return asked.unknown(Why::Lost);
        }
        // Whether records are written at all: this request's others, or other requests'.
        if recorded || !case.view.records.is_empty() || case.around.has_records() {
            asked.expect_at(Level::Warning, Some(root), recorded || !case.settled, || {
                "is a success without a request_end record, expected one (delivery is best effort)".to_owned()
            });
            if !recorded && !case.settled {
                asked.unknown(Why::Arriving);
            }
        } else {
            asked.unknown(Why::NoRecord);
        }
    } else if recorded {
        // A record does not say its endpoint, and sampling leaves records without spans: the spans must say both.
        let span = case.lifecycle().next();
        if span.is_none() || case.is_chat() == Some(false) {
            return asked.unknown(Why::NoRoot);
        }
        if !case.settled {
            return asked.unknown(Why::Arriving);
        }
        if case.spans_lost {
            return asked.unknown(Why::Lost);
        }
        asked.expect_at(Level::Warning, span, false, || {
            "belongs to a request with a request_end record and no root, expected its request.lifecycle".to_owned()
        });
    } else {
        asked.unknown(Why::NoRecord);
    }
}

pub(super) const TOKENS: Check = Check {
    id: "record.tokens",
    level: Level::Error,
    what: "token counts equal http-request's on completed streams; input tokens equal the replay's length",
    layouts: ANY_LAYOUT,
    modes: ANY_MODE,
    ask: tokens,
};

fn tokens(case: &Case<'_>, asked: &mut Asked<'_, '_>) {
    let Some((_, end)) = case.ends().next() else { return asked.unknown(Why::NoRecord) };
    let replay = end.replay.as_ref().and_then(|replay| replay.input_length);
    if end.replay.is_some() && (replay.is_none() || end.input_tokens.is_none()) {
        asked.unknown(Why::Unsaid);
    }
    if let (Some(input), Some(length)) = (end.input_tokens, replay) {
        asked.expect_at(Level::Error, None, input == length, || {
            format!("has {input} input tokens and replay.input_length {length} in its record, expected them equal")
        });
    }
    if case.facts.outcome.is_none() {
        // Whether its stream was completed is not known.
        return asked.unknown(match case.spans(Stage::Root).next() {
            Some(_) => Why::Unsaid,
            None if case.settled => Why::NoRoot,
            None => Why::Arriving,
        });
    }
    if !case.succeeded() {
        return;
    }
    // What was counted on one side alone was not compared.
    let Some(http) = case.spans(Stage::Http).next() else {
        return asked.unknown(if case.settled { Why::Unsaid } else { Why::Arriving });
    };
    for (field, recorded, kind) in
        [(Field::InputTokens, end.input_tokens, "input"), (Field::OutputTokens, end.output_tokens, "output")]
    {
        let (Some(spans), Some(record)) = (http.number(field), recorded) else {
            asked.unknown(Why::Unsaid);
            continue;
        };
        asked.expect(http, spans == record, || {
            format!("counts {spans} {kind} tokens, the record {record}: expected them equal")
        });
    }
}

pub(super) const HASHES: Check = Check {
    id: "record.hashes",
    level: Level::Error,
    what: "a hash per started block of input, one block size per run, and equal prefixes share leading hashes",
    layouts: ANY_LAYOUT,
    modes: ANY_MODE,
    ask: hashes,
};

fn hashes(case: &Case<'_>, asked: &mut Asked<'_, '_>) {
    let Some((_, end)) = case.ends().next() else { return asked.unknown(Why::NoRecord) };
    let Some(replay) = &end.replay else { return asked.unknown(Why::Unsaid) };
    let (Some(size), Some(length)) = (replay.trace_block_size, replay.input_length) else {
        return asked.unknown(Why::Unsaid);
    };
    let count = replay.input_sequence_hashes.len() as u64;
    let expected = if size == 0 { 0 } else { length.div_ceil(size) };
    asked.expect_at(Level::Error, None, size > 0 && count == expected, || {
        format!("has {count} hashes for {length} input tokens in blocks of {size}, expected {expected}")
    });
    let common = case.around.block_size();
    asked.expect_at(Level::Error, None, common.is_none_or(|common| common == size), || {
        format!("has block size {size}, most records of the run {}: expected one size", said(common))
    });
    for (hash, Place { index, before }) in places(replay) {
        match case.around.stood(hash, Place { index, before }) {
            Stood::Fits => {}
            Stood::Forgotten => asked.unknown(Why::Forgotten),
            Stood::Elsewhere(Place { index: at, before: after }) => {
                asked.expect_at(Level::Error, None, false, || {
                    format!(
                        "has hash {hash} at {index} after {before}, this or other records have it at {at} after {after}: \
                         expected equal prefixes to share their leading hashes"
                    )
                });
                break;
            }
        }
    }
}

pub(super) const TIMES: Check = Check {
    id: "record.times",
    level: Level::Error,
    what: "ttft ≤ total; received + total is the event's time (± 50 ms); cached ≤ input; reasoning ≤ output",
    layouts: ANY_LAYOUT,
    modes: ANY_MODE,
    ask: times,
};

fn times(case: &Case<'_>, asked: &mut Asked<'_, '_>) {
    let Some((record, end)) = case.ends().next() else { return asked.unknown(Why::NoRecord) };
    // When it was received and how long it took is what its times are; the other fields are written where there is
    // something to write: no first token, no reasoning.
    let first_token = end.ttft_ms.is_some() || end.output_tokens == Some(0) || !case.succeeded();
    if end.request_received_ms.is_none() || end.total_time_ms.is_none() || end.cached_tokens.is_none() || !first_token {
        asked.unknown(Why::Unsaid);
    }
    let mut expect = |holds: Option<bool>, say: &dyn Fn() -> String| asked.expect_if_told(None, holds, say);
    if let (Some(ttft), Some(total)) = (end.ttft_ms, end.total_time_ms) {
        expect(Some(ttft <= total), &|| {
            format!("has ttft {ttft} ms and total {total} ms in its record, expected ttft ≤ total")
        });
    }
    let compared = end.request_received_ms.zip(end.total_time_ms).filter(|_| record.time_ms > 0);
    if let Some((received, total)) = compared {
        let off = record.time_ms as f64 - (received as f64 + total);
        expect(Some(off.abs() <= EVENT_SLACK_MS), &|| {
            format!("was recorded {off:.1} ms after received + total, expected within {EVENT_SLACK_MS} ms")
        });
    }
    for (part, whole, names) in [
        (end.cached_tokens, end.input_tokens, ("cached", "input")),
        (end.reasoning_tokens, end.output_tokens, ("reasoning", "output")),
    ] {
        if let Some(part) = part {
            expect(whole.map(|whole| part <= whole), &|| {
                let whole = said(whole);
                format!("has {part} {} and {whole} {} tokens in its record, expected no more", names.0, names.1)
            });
        }
    }
    // A record that does not say when it was written.
    if record.time_ms == 0 {
        asked.unknown(Why::Unsaid);
    }
}

pub(super) const FINISH: Check = Check {
    id: "record.finish",
    level: Level::Error,
    what: "a successful request of an agent session has a finish reason",
    layouts: ANY_LAYOUT,
    modes: ANY_MODE,
    ask: finish,
};

fn finish(case: &Case<'_>, asked: &mut Asked<'_, '_>) {
    let Some((record, end)) = case.ends().next() else { return asked.unknown(Why::NoRecord) };
    if case.root().is_none() {
        return asked.unknown(Why::NoRoot);
    }
    // Records without an agent context do not carry it.
    if !case.succeeded() || record.session_id.is_empty() {
        return;
    }
    let finish = end.finish.as_ref().and_then(|finish| finish.finish_reason.as_deref());
    asked.expect_at(Level::Error, None, finish.is_some_and(|finish| !finish.is_empty()), || {
        format!("is a success of session {} without a finish reason in its record, expected one", record.session_id)
    });
}

pub(super) const WORKERS: Check = Check {
    id: "record.workers",
    level: Level::Error,
    what: "the record's workers are the dispatch destinations per phase",
    layouts: ANY_LAYOUT,
    modes: ANY_MODE,
    ask: workers,
};

fn workers(case: &Case<'_>, asked: &mut Asked<'_, '_>) {
    let Some((_, end)) = case.ends().next() else { return asked.unknown(Why::NoRecord) };
    let Some(workers) = &end.worker else { return asked.unknown(Why::Unsaid) };
    // Which dispatch is the last of its phase.
    let of_leg = [Field::Attempt, Field::DispatchPhase];
    if case.facts.layout == Layout::Evidence && !case.dispatches().all(|span| asked.compares(span, &of_leg)) {
        return;
    }
    for (phase, id, rank) in [
        (Phase::Prefill, workers.prefill_worker_id, workers.prefill_dp_rank),
        (Phase::Decode, workers.decode_worker_id, workers.decode_dp_rank),
    ] {
        let Some(recorded) = id.map(|id| Worker { id, rank }) else {
            // It ought to name whom this phase was dispatched to.
            if case.facts.legs.iter().any(|leg| leg.phase == phase && leg.dispatch.is_some()) {
                asked.unknown(Why::Unsaid);
            }
            continue;
        };
        let legs = || case.facts.legs.iter().filter(|leg| serves(leg, phase) != Some(false));
        let went = || legs().filter_map(|leg| leg.dispatch.as_ref()?.worker);
        if legs().any(|leg| serves(leg, phase).is_none()) && !alone(case, workers) {
            let fits = went().filter(|worker| worker.agrees(recorded)).count();
            let all = legs().filter(|leg| leg.dispatch.is_some()).count();
            // It went there whichever leg served this phase, or whichever did, it went elsewhere.
            if fits == all && all > 0 {
                asked.expect_at(Level::Error, None, true, String::new);
            } else if fits == 0 && went().count() == all && has_all(case) {
                asked.expect_there(None, false, || {
                    let went: Vec<String> = went().map(|worker| named(Some(worker))).collect();
                    let (went, recorded) = (went.join(" and "), named(Some(recorded)));
                    format!("went to {went}, its record names {recorded} for {}: expected one of them", phase.word())
                });
            } else {
                asked.unknown(Why::Unsaid);
            }
            continue;
        }
        let Some(last) = went().next_back() else {
            asked.unknown(Why::Unsaid);
            continue;
        };
        let migrated = case.facts.attempts() > 1;
        let first = went().next().is_some_and(|first| first.agrees(recorded));
        if migrated && !last.agrees(recorded) && first {
            // Today's producer does so after every migration (spec request-trace.md).
            asked.unknown(Why::KnownFlaw);
            let (recorded, last) = (named(Some(recorded)), named(Some(last)));
            asked.note(
                None,
                format!("migrated to {last} for {}; its record still names the first worker {recorded}", phase.word()),
            );
            continue;
        }
        // What it names may be the first attempt's, which has not come.
        if migrated && !legs().any(|leg| leg.attempt == 0 && leg.dispatch.is_some()) {
            asked.unknown(Why::Lost);
            continue;
        }
        if one_worker(last, recorded).is_none() {
            asked.unknown(Why::Unsaid);
            continue;
        }
        // It names none of those it went to, and all attempts are there.
        let names_none = || went().all(|worker| one_worker(worker, recorded) == Some(false));
        let dispatched = |number| legs().any(|leg| leg.attempt == number && leg.dispatch.is_some());
        let is_other = || names_none() && (0..case.facts.attempts()).all(dispatched);
        let level = if migrated && !is_other() { Level::Warning } else { Level::Error };
        asked.expect_at(level, None, last.agrees(recorded), || {
            let (recorded, last) = (named(Some(recorded)), named(Some(last)));
            format!("went to {last} for {}, its record names {recorded}: expected one worker", phase.word())
        });
    }
}

/// Whether a leg served a phase: where one worker does both, both. `None` when that is not known for sure.
fn serves(leg: &Leg, phase: Phase) -> Option<bool> {
    match (leg.phase, leg.phase_origin) {
        (Phase::Unknown, _) => None,
        // The pool says decode; that no prefill came before it is what was not seen.
        (Phase::Aggregated, Origin::Inferred) if phase == Phase::Prefill => None,
        (own, _) => Some(own == phase || own == Phase::Aggregated),
    }
}

/// Whether each attempt is one dispatch and the record names one worker: then that served every phase.
fn alone(case: &Case<'_>, workers: &EndWorkers) -> bool {
    let mut numbers: Vec<u32> =
        case.facts.legs.iter().filter(|leg| leg.dispatch.is_some()).map(|leg| leg.attempt).collect();
    let all = numbers.len();
    numbers.sort_unstable();
    numbers.dedup();
    let (prefill, decode) = (workers.prefill_worker_id, workers.decode_worker_id);
    numbers.len() == all && prefill.is_none_or(|prefill| decode.is_none_or(|decode| prefill == decode))
}

/// Whether every attempt has two dispatches: all that a record may name.
fn has_all(case: &Case<'_>) -> bool {
    let dispatched =
        |number: u32| case.facts.legs.iter().filter(move |leg| leg.dispatch.is_some() && leg.attempt == number);
    (0..case.facts.attempts()).all(|number| dispatched(number).nth(1).is_some())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::fixture::{PREFILL, Scene, violates};
    use super::super::{Answer, CheckId, Moment, Nothing, Place, Surroundings};
    use super::*;

    #[test]
    fn unique() {
        let id = "record.unique";
        Scene::aggregated().holds(id);
        Scene::aggregated().record_again().violates(id, "has 2 request_end records");
        Scene::aggregated().without_records().unknown(id, Why::NoRecord);
    }

    struct Recorded;

    impl Surroundings for Recorded {
        fn has_records(&self) -> bool {
            true
        }

        fn block_size(&self) -> Option<u64> {
            Some(32)
        }

        fn stood(&self, hash: u64, place: Place) -> Stood {
            let there = Place { index: 1, before: 9 };
            if hash == 2 && place != there { Stood::Elsewhere(there) } else { Stood::Fits }
        }
    }

    #[test]
    fn present() {
        let id = "record.present";
        Scene::aggregated().holds(id);
        let lost = Scene::aggregated().without_records();
        lost.unknown(id, Why::NoRecord);
        let answers = lost.answers(&Recorded, Moment::Settled);
        violates(answers.of(CheckId::of(id).unwrap()), &answers, id, Level::Warning, "without a request_end record");
        let answers = lost.answers(&Recorded, Moment::Arriving);
        assert_eq!(answers.of(CheckId::of(id).unwrap()), Answer::Unknown(Why::Arriving));
        Scene::aggregated().lose("request.lifecycle").violates(id, "and no root");
        Scene::aggregated().records_only().unknown(id, Why::NoRoot);
        Scene::aggregated().ended("cancelled").unknown(id, Why::NotHere);
    }

    #[test]
    fn tokens() {
        let id = "record.tokens";
        Scene::aggregated().holds(id);
        Scene::aggregated().record("/output_tokens", json!(7)).violates(id, "counts 8 output tokens, the record 7");
        Scene::aggregated().record("/replay/input_length", json!(34)).violates(id, "replay.input_length 34");
        Scene::aggregated().record("/output_tokens", json!(7)).ended("cancelled").holds(id);
        // What only one side counted was not compared, unless something else is wrong.
        Scene::aggregated().without("http-request", "output_tokens").unknown(id, Why::Unsaid);
        let silent = Scene::aggregated().record("/output_tokens", json!(null));
        silent.unknown(id, Why::Unsaid);
        silent.record("/replay/input_length", json!(34)).violates(id, "replay.input_length 34");
        Scene::aggregated().lose("http-request").unknown(id, Why::Unsaid);
        let rootless = Scene::aggregated().lose("request.lifecycle");
        rootless.unknown(id, Why::NoRoot);
        rootless.record("/replay/input_length", json!(34)).violates(id, "replay.input_length 34");
        Scene::aggregated().without_records().unknown(id, Why::NoRecord);
    }

    #[test]
    fn hashes() {
        let id = "record.hashes";
        Scene::aggregated().holds(id);
        Scene::aggregated().record("/replay/input_sequence_hashes", json!([1, 2])).violates(id, "has 2 hashes");
        let answers = Scene::aggregated().answers(&Recorded, Moment::Settled);
        let answer = answers.of(CheckId::of(id).unwrap());
        violates(answer, &answers, id, Level::Error, "most records of the run 32");
        violates(
            answer,
            &answers,
            id,
            Level::Error,
            "hash 2 at 1 after 18446744073709551615, this or other records have it at 1 after 9",
        );
        Scene::aggregated().record("/replay", json!(null)).unknown(id, Why::Unsaid);
        Scene::aggregated().without_records().unknown(id, Why::NoRecord);
    }

    #[test]
    fn times() {
        let id = "record.times";
        Scene::aggregated().holds(id);
        Scene::aggregated().record("/ttft_ms", json!(120.0)).violates(id, "expected ttft ≤ total");
        Scene::aggregated().record("/total_time_ms", json!(200.0)).violates(id, "-101.0 ms after received + total");
        Scene::aggregated().record("/cached_tokens", json!(34)).violates(id, "34 cached and 33 input");
        Scene::aggregated().record("/reasoning_tokens", json!(9)).violates(id, "9 reasoning and 8 output");
        let undated = Scene::aggregated().record("//event_time_unix_ms", json!(null));
        undated.unknown(id, Why::Unsaid);
        undated.record("/ttft_ms", json!(120.0)).violates(id, "expected ttft ≤ total");
        Scene::aggregated().without_records().unknown(id, Why::NoRecord);
    }

    #[test]
    fn finish() {
        let id = "record.finish";
        Scene::aggregated().holds(id);
        let unfinished = Scene::aggregated().record("/finish_reason_metadata", json!(null));
        unfinished.violates(id, "session s without a finish reason");
        unfinished.record("//agent_context", json!(null)).unknown(id, Why::NotHere);
        Scene::aggregated().lose("request.lifecycle").unknown(id, Why::NoRoot);
    }

    #[test]
    fn workers() {
        let id = "record.workers";
        Scene::disaggregated().holds(id);
        Scene::base().holds(id);
        Scene::disaggregated()
            .record("/worker/decode_worker_id", json!(PREFILL))
            .violates(id, "for decode, its record names");
        Scene::disaggregated().record("/worker/prefill_dp_rank", json!(1)).violates(id, "for prefill");
        // Today's producer names the first worker after a migration; anything else is odd.
        Scene::migrated().unknown(id, Why::KnownFlaw);
        let notes = Scene::migrated().answers(&Nothing, Moment::Settled);
        assert!(notes.findings().iter().any(|finding| finding.level == Level::Note && finding.check.check().id == id));
        Scene::migrated().drop("kv_router.select_worker").drop("request.dispatch").unknown(id, Why::Lost);
        // The first may be named, another may not.
        Scene::migrated().record("/worker/decode_worker_id", json!(7)).violates(id, "names 7:0");
        Scene::aggregated().record("/worker", json!(null)).unknown(id, Why::Unsaid);
        Scene::aggregated().without_records().unknown(id, Why::NoRecord);
    }

    #[test]
    fn workers_of_drafts() {
        let id = "record.workers";
        let draft = Scene::draft_disaggregated();
        draft.holds(id);
        draft.clone().router_apart().holds(id);
        draft.clone().without_words().holds(id);
        let other = |scene: Scene| scene.record("/worker/prefill_worker_id", json!(7));
        other(draft.clone()).violates_at(id, Level::Warning, "for prefill, its record names 7:0");
        // No selection tells the legs: what the record names is one of the workers, or none of them.
        let legless = draft.without_words().drop("kv_router.select_worker").drop("kv_router.select_worker");
        legless.unknown(id, Why::Unsaid);
        other(legless.clone()).violates_at(
            id,
            Level::Warning,
            "its record names 7:0 for prefill: expected one of them",
        );
        other(legless.clone().unaddressed(1)).unknown(id, Why::Unsaid);
        other(legless.drop("request.dispatch")).unknown(id, Why::Unsaid);
        // One worker for both, as the record names it, served both.
        Scene::draft().without_words().holds(id);
        let alone = Scene::draft().without_words().drop("kv_router.select_worker");
        alone.holds(id);
        other(alone.clone()).unknown(id, Why::Unsaid);
        let both = other(alone).record("/worker/decode_worker_id", json!(7));
        both.violates_at(id, Level::Warning, "its record names 7:0");
    }
}
