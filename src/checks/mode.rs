//! What the producer's mode records, and that it is one mode.

use super::case::{Asked, Case, Span, word};
use super::{ANY_LAYOUT, ANY_MODE, Check, DETAILED, Level};
use crate::lifecycle::catalogue::Field;
use crate::lifecycle::stage::{Mode, Stage};

/// What only investigation mode may carry.
const INVESTIGATED: [(Field, &str); 4] = [
    (Field::TopK, "dynamo.router.candidates.top_k"),
    (Field::StageOutcome, "dynamo.stage.outcome"),
    (Field::Checkpoint, "dynamo.stage.checkpoint"),
    (Field::StreamEvents, "dynamo.stream.events"),
];

pub(super) const CORE: Check = Check {
    id: "mode.core",
    level: Level::Error,
    what: "core mode carries no candidates, stage outcome, checkpoint or stream events",
    layouts: ANY_LAYOUT,
    modes: &[Mode::Core],
    ask: core,
};

fn core(case: &Case<'_>, asked: &mut Asked<'_, '_>) {
    for span in case.lifecycle() {
        let found = INVESTIGATED.iter().find(|(field, _)| span.has(*field)).map(|(_, name)| *name);
        asked.expect(span, found.is_none(), || {
            format!("carries {} in core mode, expected it in investigation mode only", found.unwrap_or_default())
        });
    }
}

pub(super) const INVESTIGATION: Check = Check {
    id: "mode.investigation",
    level: Level::Error,
    what: "investigation mode carries a stage outcome on preprocessing and streaming",
    layouts: DETAILED,
    modes: &[Mode::Investigation],
    ask: investigation,
};

fn investigation(case: &Case<'_>, asked: &mut Asked<'_, '_>) {
    for span in case.lifecycle().filter(|span| matches!(span.view.stage, Stage::Preprocessing | Stage::Streaming)) {
        asked.expect(span, span.has(Field::StageOutcome), || {
            "carries no dynamo.stage.outcome in investigation mode, expected one".to_owned()
        });
    }
}

pub(super) const MIXED: Check = Check {
    id: "mode.mixed",
    level: Level::Error,
    what: "one mode within one process (several modes across processes: a warning)",
    layouts: ANY_LAYOUT,
    modes: ANY_MODE,
    ask: mixed,
};

fn mixed(case: &Case<'_>, asked: &mut Asked<'_, '_>) {
    // The first span of each process; usually two or three processes.
    let mut firsts: Vec<(&str, Span<'_>)> = Vec::new();
    for span in case.lifecycle() {
        if !asked.compares(span, &[Field::Epoch, Field::Mode]) {
            continue;
        }
        let (epoch, mode) = (span.text(Field::Epoch), span.text(Field::Mode));
        match firsts.iter().find(|(other, _)| *other == epoch) {
            Some((_, first)) => {
                let known = first.text(Field::Mode);
                asked.expect(span, mode == known, || {
                    format!(
                        "says mode {mode}, {} of the same process {epoch} says {known}: expected one",
                        first.view.name
                    )
                });
            }
            None => {
                let other = case.around.other_mode(epoch, Mode::of(mode));
                asked.expect(span, other.is_none(), || {
                    let other = word(other.map_or("", Mode::word));
                    format!("says mode {mode}, as many requests of process {epoch} or more say {other}: expected one")
                });
                firsts.push((epoch, span));
            }
        }
    }
    for pair in firsts.windows(2) {
        let (one, other) = (pair[0].1, pair[1].1);
        let (mode, its) = (one.text(Field::Mode), other.text(Field::Mode));
        asked.expect_at(Level::Warning, Some(other), mode == its, || {
            format!("says mode {its}, {} of another process says {mode}: expected one in the cluster", one.view.name)
        });
    }
}

#[cfg(test)]
mod tests {
    use super::super::fixture::{Scene, violates};
    use super::super::{CheckId, Moment, Surroundings, Why};
    use super::*;

    const MODE: &str = "dynamo.lifecycle.mode";

    fn in_core_mode() -> Scene {
        Scene::aggregated()
            .set_all(MODE, "core")
            .without("router.selection", "dynamo.router.candidates.top_k")
            .without("request.preprocessing", "dynamo.stage.checkpoint")
            .without("request.preprocessing", "dynamo.stage.outcome")
            .without("response.streaming", "dynamo.stage.outcome")
            .without("response.streaming", "dynamo.stream.events")
    }

    #[test]
    fn core() {
        let id = "mode.core";
        in_core_mode().holds(id);
        in_core_mode().is_clean();
        in_core_mode().set("response.streaming", "dynamo.stream.events", 3).violates(id, "dynamo.stream.events");
        Scene::aggregated().set_all(MODE, "core").violates(id, "top_k");
        Scene::aggregated().unknown(id, Why::Mode);
    }

    #[test]
    fn investigation() {
        let (id, key) = ("mode.investigation", "dynamo.stage.outcome");
        Scene::aggregated().holds(id);
        Scene::aggregated().without("request.preprocessing", key).violates(id, "no dynamo.stage.outcome");
        Scene::aggregated().without("response.streaming", key).violates(id, "no dynamo.stage.outcome");
        in_core_mode().unknown(id, Why::Mode);
        Scene::base().unknown(id, Why::Layout);
    }

    struct Mostly(Mode);

    impl Surroundings for Mostly {
        fn other_mode(&self, epoch: &str, mode: Mode) -> Option<Mode> {
            (epoch == "1:f" && mode != self.0).then_some(self.0)
        }
    }

    #[test]
    fn mixed() {
        let id = "mode.mixed";
        Scene::disaggregated().holds(id);
        Scene::aggregated().set("router.queue", MODE, "core").violates(id, "of the same process 1:f");
        let worker = Scene::aggregated()
            .set("worker.admission", MODE, "core")
            .set("worker.operation", MODE, "core")
            .set("response.streaming.worker", MODE, "core");
        worker.violates_at(id, Level::Warning, "another process");
        let answers = Scene::aggregated().answers(&Mostly(Mode::Core), Moment::Settled);
        violates(
            answers.of(CheckId::of(id).unwrap()),
            &answers,
            id,
            Level::Error,
            "requests of process 1:f or more say core",
        );
        let answers = Scene::aggregated().answers(&Mostly(Mode::Investigation), Moment::Settled);
        assert!(!answers.violated());
        Scene::aggregated().records_only().unknown(id, Why::NotHere);
    }
}
