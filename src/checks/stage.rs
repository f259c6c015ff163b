//! The frontend's stages: preprocessing and the stream.

use super::case::{Asked, Case, said, word};
use super::{ANY_MODE, Check, DETAILED, Level, Why};
use crate::lifecycle::catalogue::Field;
use crate::lifecycle::stage::{Mode, Outcome, Stage};

/// Both stages record their state in investigation mode only.
const INVESTIGATION: &[Mode] = &[Mode::Investigation];

pub(super) const PREPROCESSING: Check = Check {
    id: "stage.preprocessing",
    level: Level::Error,
    what: "success exactly at checkpoint ready; rejected ends the request rejected; nothing is dispatched after a failure",
    layouts: DETAILED,
    modes: INVESTIGATION,
    ask: preprocessing,
};

fn preprocessing(case: &Case<'_>, asked: &mut Asked<'_, '_>) {
    for span in case.spans(Stage::Preprocessing) {
        let (outcome, checkpoint) = (span.text(Field::StageOutcome), span.text(Field::Checkpoint));
        if outcome.is_empty() || checkpoint.is_empty() {
            asked.unknown(Why::Unsaid);
            continue;
        }
        let success = outcome == "success";
        asked.expect(span, success == (checkpoint == "ready"), || {
            let expected = if success { "ready" } else { "one before ready" };
            format!("is {outcome} at checkpoint {checkpoint}, expected {expected}")
        });
        if outcome == "rejected" {
            match case.outcome() {
                Some(root) => asked.expect(span, root == Outcome::Rejected, || {
                    format!("is rejected, the root ended {}: expected rejected", root.word())
                }),
                None => asked.unknown(case.no_outcome()),
            }
        }
        if !success {
            let next = case.dispatches().find(|dispatch| dispatch.view.start_ns >= span.view.start_ns);
            asked.expect(span, next.is_none(), || {
                let next = said(next.map(|next| next.view.id));
                format!("is {outcome}, yet request.dispatch {next} followed: expected nothing after it")
            });
        }
    }
}

pub(super) const STREAMING: Check = Check {
    id: "stage.streaming",
    level: Level::Error,
    what: "the stream yielded at least one event and ended as the root did, or abandoned",
    layouts: DETAILED,
    modes: INVESTIGATION,
    ask: streaming,
};

fn streaming(case: &Case<'_>, asked: &mut Asked<'_, '_>) {
    for span in case.spans(Stage::Streaming) {
        match span.counted(Field::StreamEvents) {
            Some(events) => asked.expect(span, events >= 1, || format!("yielded {events} events, expected 1 or more")),
            None => asked.unknown(Why::Unsaid),
        }
        let outcome = span.text(Field::StageOutcome);
        let Some(root) = case.root() else {
            asked.unknown(Why::NoRoot);
            continue;
        };
        let ended = root.text(Field::Outcome);
        if outcome.is_empty() || ended.is_empty() {
            asked.unknown(Why::Unsaid);
        } else {
            asked.expect(span, outcome == ended || outcome == "abandoned", || {
                format!("ended {outcome}, the root {}: expected the same or abandoned", word(ended))
            });
        }
    }
}

pub(super) const ABANDONED: Check = Check {
    id: "stage.abandoned",
    level: Level::Warning,
    what: "an abandoned stream is not a successful request's",
    layouts: DETAILED,
    modes: INVESTIGATION,
    ask: abandoned,
};

fn abandoned(case: &Case<'_>, asked: &mut Asked<'_, '_>) {
    for span in case.spans(Stage::Streaming) {
        if !asked.compares(span, &[Field::StageOutcome]) || span.text(Field::StageOutcome) != "abandoned" {
            continue;
        }
        match case.outcome() {
            Some(outcome) => asked.expect(span, outcome != Outcome::Success, || {
                "was abandoned, the root ended success: expected another outcome".to_owned()
            }),
            None => asked.unknown(case.no_outcome()),
        }
    }
}

pub(super) const ORDER: Check = Check {
    id: "stage.order",
    level: Level::Warning,
    what: "the stream starts after the first dispatch ended",
    layouts: DETAILED,
    modes: ANY_MODE,
    ask: order,
};

fn order(case: &Case<'_>, asked: &mut Asked<'_, '_>) {
    let Some(stream) = case.spans(Stage::Streaming).next() else { return };
    // Where the first attempt is missing, the stream may well be older than the others.
    let Some(first) = case.dispatches().next() else { return };
    if !asked.compares(first, &[Field::Attempt]) || first.attempt() > 0 {
        return;
    }
    let (started, ended) = (stream.view.start_ns, first.view.end_ns);
    if ended < first.view.start_ns || started == 0 {
        return asked.unknown(Why::Unsaid);
    }
    asked.expect(stream, started >= ended, || {
        let early = (ended - started) as f64 / 1e6;
        format!("starts {early:.3} ms before request.dispatch {} ended, expected it afterwards", first.view.id)
    });
}

#[cfg(test)]
mod tests {
    use super::super::fixture::Scene;
    use super::*;

    #[test]
    fn preprocessing() {
        let (id, span) = ("stage.preprocessing", "request.preprocessing");
        let (checkpoint, outcome) = ("dynamo.stage.checkpoint", "dynamo.stage.outcome");
        Scene::aggregated().holds(id);
        Scene::aggregated()
            .set(span, checkpoint, "tool_constraints")
            .violates(id, "success at checkpoint tool_constraints");
        Scene::aggregated().set(span, outcome, "failed").violates(id, "expected one before ready");
        let refused = Scene::aggregated().set(span, checkpoint, "prepare").set(span, outcome, "rejected");
        refused.violates(id, "the root ended success");
        refused.clone().ended("rejected").violates(id, "yet request.dispatch");
        refused.ended("rejected").drop("request.dispatch").holds(id);
        Scene::aggregated().without(span, checkpoint).unknown(id, Why::Unsaid);
        Scene::aggregated().set_all("dynamo.lifecycle.mode", "core").unknown(id, Why::Mode);
    }

    #[test]
    fn streaming() {
        let (id, span) = ("stage.streaming", "response.streaming");
        Scene::aggregated().holds(id);
        Scene::aggregated().set(span, "dynamo.stream.events", 0).violates(id, "yielded 0 events");
        Scene::aggregated().set(span, "dynamo.stage.outcome", "failed").violates(id, "ended failed, the root success");
        Scene::aggregated().set(span, "dynamo.stage.outcome", "abandoned").holds(id);
        Scene::aggregated().without(span, "dynamo.stream.events").unknown(id, Why::Unsaid);
        Scene::aggregated().drop(span).unknown(id, Why::NotHere);
    }

    #[test]
    fn abandoned() {
        let id = "stage.abandoned";
        let left = Scene::aggregated().set("response.streaming", "dynamo.stage.outcome", "abandoned");
        left.violates(id, "the root ended success");
        left.ended("cancelled").holds(id);
        Scene::aggregated().unknown(id, Why::NotHere);
    }

    #[test]
    fn order() {
        let id = "stage.order";
        Scene::disaggregated().holds(id);
        Scene::aggregated().times("response.streaming", 1_000, 98_800).violates(id, "starts 1.500 ms before");
        Scene::aggregated().drop("response.streaming").unknown(id, Why::NotHere);
        Scene::base().unknown(id, Why::Layout);
    }
}
