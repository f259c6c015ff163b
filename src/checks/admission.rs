//! The worker's admission and what the frontend says of it.

use super::case::{Asked, Case, Way, named, said, word};
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
            let (transport, bytes) = (span.text(Field::Transport), span.number(Field::PayloadBytes));
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
    for leg in &case.facts.legs {
        let Some(dispatch) = leg.dispatch.as_ref().filter(|dispatch| dispatch.result == "accepted") else { continue };
        let Some(span) = case.dispatches().find(|span| span.view.id == dispatch.span) else { continue };
        if dispatch.lost_worker() {
            asked.unknown(Why::Silent);
            continue;
        }
        let to = || named(dispatch.worker);
        match &leg.admission {
            Some(admission) => asked.expect(span, admission.result == "accepted", || {
                let result = word(&admission.result);
                format!(
                    "to {} was accepted, worker.admission {} says {result}: expected accepted",
                    to(),
                    admission.span
                )
            }),
            None => {
                let heard = case.lifecycle().any(|other| {
                    other.view.stage.is_worker_side() && case.way(other, |above| above.at == span.at) == Way::There
                });
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
