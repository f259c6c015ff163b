//! The worker's admission and what the frontend says of it.

use super::case::{Asked, Case, named, said, word};
use super::{ANY_MODE, Check, DETAILED, Level, Why};
use crate::lifecycle::catalogue::Field;
use crate::lifecycle::stage::{Outcome, Stage};

pub(super) const RESULT: Check = Check {
    id: "admission.result",
    level: Level::Error,
    what: "the result is accepted, rejected or failed; accepted came by tcp or quic with a payload",
    layouts: DETAILED,
    modes: ANY_MODE,
    ask: result,
};

fn result(case: &Case<'_>, asked: &mut Asked<'_, '_>) {
    for span in case.spans(Stage::Admission) {
        let result = span.text(Field::AdmissionResult);
        asked.expect(span, matches!(result, "accepted" | "rejected" | "failed"), || {
            format!("has result {}, expected accepted, rejected or failed", word(result))
        });
        if result == "accepted" {
            let (transport, bytes) = (span.text(Field::Transport), span.counted(Field::PayloadBytes));
            asked.expect(span, matches!(transport, "tcp" | "quic"), || {
                format!("was accepted by transport {}, expected tcp or quic", word(transport))
            });
            asked.expect(span, bytes.is_some_and(|bytes| bytes > 0), || {
                format!("was accepted with {} payload bytes, expected more than 0", said(bytes))
            });
        }
    }
}

pub(super) const WITNESS: Check = Check {
    id: "admission.witness",
    level: Level::Warning,
    what: "an accepted dispatch has an accepted admission at its worker",
    layouts: DETAILED,
    modes: ANY_MODE,
    ask: witness,
};

fn witness(case: &Case<'_>, asked: &mut Asked<'_, '_>) {
    for dispatch in case.dispatches() {
        asked.compares(dispatch, &[Field::DispatchResult]);
    }
    for leg in &case.facts.legs {
        let Some(dispatch) = leg.dispatch.as_ref().filter(|dispatch| dispatch.result == "accepted") else { continue };
        let Some(span) = case.dispatches().find(|span| span.view.id == dispatch.span) else { continue };
        if dispatch.lost_worker() {
            asked.unknown(Why::Silent);
            continue;
        }
        let to = || named(dispatch.worker);
        match &leg.admission {
            Some(admission) => {
                let its = case.spans(Stage::Admission).find(|other| other.view.id == admission.span);
                if !its.is_none_or(|its| asked.compares(its, &[Field::AdmissionResult])) {
                    continue;
                }
                asked.expect(span, admission.result == "accepted", || {
                    let result = word(&admission.result);
                    format!(
                        "to {} was accepted, worker.admission {} says {result}: expected accepted",
                        to(),
                        admission.span
                    )
                });
            }
            None => {
                let heard =
                    case.lifecycle().any(|other| other.view.stage.is_worker_side() && case.is_below(other, span));
                if heard || dispatch.worker.is_some_and(|worker| case.around.exports(worker.id)) {
                    asked.expect_there(Some(span), false, || {
                        format!("to {} was accepted, no worker.admission came: expected an accepted one", to())
                    });
                } else {
                    asked.unknown(Why::Silent);
                }
            }
        }
    }
}

pub(super) const GATE: Check = Check {
    id: "admission.gate",
    level: Level::Note,
    what: "admitted, then refused by the backend: the worker was at capacity (legal, and told)",
    layouts: DETAILED,
    modes: ANY_MODE,
    ask: gate,
};

fn gate(case: &Case<'_>, asked: &mut Asked<'_, '_>) {
    if case.outcome() != Some(Outcome::Rejected) {
        return;
    }
    for leg in case.facts.legs.iter().filter(|leg| leg.at_capacity()) {
        let Some(dispatch) = &leg.dispatch else { continue };
        let Some(span) = case.dispatches().find(|span| span.view.id == dispatch.span) else { continue };
        asked.expect(span, true, String::new);
        asked.note(
            Some(span),
            format!("to {} failed after an accepted admission: worker at capacity", named(dispatch.worker)),
        );
    }
}

#[cfg(test)]
mod tests {
    use super::super::fixture::{Scene, WORKER, violates};
    use super::super::{Answer, CheckId, Moment, Nothing, Surroundings};
    use super::*;

    const ADMISSION: &str = "worker.admission";
    const RESULT_KEY: &str = "dynamo.worker.admission.result";

    #[test]
    fn result() {
        let id = "admission.result";
        Scene::disaggregated().holds(id);
        Scene::aggregated().set(ADMISSION, RESULT_KEY, "ok").violates(id, "result ok");
        Scene::aggregated().set(ADMISSION, "dynamo.worker.admission.transport", "nats").violates(id, "transport nats");
        Scene::aggregated().set(ADMISSION, "dynamo.worker.admission.payload.bytes", 0).violates(id, "0 payload bytes");
        Scene::aggregated().drop(ADMISSION).unknown(id, Why::NotHere);
        Scene::base().unknown(id, Why::Layout);
    }

    struct Exports;

    impl Surroundings for Exports {
        fn exports(&self, worker: u64) -> bool {
            worker == WORKER
        }
    }

    #[test]
    fn witness() {
        let id = "admission.witness";
        Scene::disaggregated().holds(id);
        Scene::aggregated().set(ADMISSION, RESULT_KEY, "failed").violates(id, "says failed");
        Scene::aggregated().drop(ADMISSION).violates(id, "no worker.admission came");
        let silent = Scene::aggregated().drop(ADMISSION).drop("worker.operation");
        silent.unknown(id, Why::Silent);
        let answers = silent.answers(&Exports, Moment::Settled);
        violates(answers.of(CheckId::of(id).unwrap()), &answers, id, Level::Warning, "no worker.admission came");
        Scene::migrated().unknown(id, Why::Silent);
    }

    #[test]
    fn gate() {
        let id = "admission.gate";
        let full = Scene::aggregated().set("request.dispatch", "dynamo.dispatch.result", "failed").ended("rejected");
        full.holds(id);
        let answers = full.answers(&Nothing, Moment::Settled);
        let note = answers.findings().iter().find(|finding| finding.check.check().id == id).unwrap();
        assert!(note.level == Level::Note && note.message.contains("worker at capacity"), "{note}");
        assert_eq!(answers.of(CheckId::of(id).unwrap()), Answer::Holds);
        Scene::aggregated().unknown(id, Why::NotHere);
    }
}
