//! The order of things within a worker.

use super::case::{Asked, Case};
use super::{ANY_LAYOUT, ANY_MODE, Check, Level, Why};
use crate::lifecycle::stage::Stage;

/// How far a stream may outlive its operation, nanoseconds: a span ends at its last exit, not when it is closed
/// (spec lifecycle-spans §6).
const LAST_EXIT_NS: u64 = 1_000_000;

pub(super) const ORDER: Check = Check {
    id: "worker.order",
    level: Level::Error,
    what: "admission ends before the operation starts; the worker's stream lies within its operation",
    layouts: ANY_LAYOUT,
    modes: ANY_MODE,
    ask: order,
};

fn order(case: &Case<'_>, asked: &mut Asked<'_, '_>) {
    for operation in case.spans(Stage::Operation) {
        let started = operation.view.start_ns;
        for admission in case.siblings(operation, Stage::Admission) {
            let ended = admission.view.end_ns;
            if started == 0 || ended == 0 {
                asked.unknown(Why::Unsaid);
                continue;
            }
            asked.expect(admission, ended <= started, || {
                let late = (ended - started) as f64 / 1e6;
                let (name, id) = (operation.view.name, operation.view.id);
                format!("ends {late:.3} ms after {name} {id} started, expected it to end before")
            });
        }
    }
    for stream in case.spans(Stage::WorkerStreaming) {
        let Some(operation) = case.up(stream).filter(|above| above.view.stage == Stage::Operation) else { continue };
        let (from, to) = (operation.view.start_ns, operation.view.end_ns);
        // An operation that ends before it starts is time.order's finding.
        if from == 0 || to < from || stream.view.start_ns == 0 || stream.view.end_ns == 0 {
            asked.unknown(Why::Unsaid);
            continue;
        }
        let within = stream.view.start_ns >= from && stream.view.end_ns <= to.saturating_add(LAST_EXIT_NS);
        asked.expect(stream, within, || {
            let millis = |time: u64| (i128::from(time) - i128::from(from)) as f64 / 1e6;
            format!(
                "lies {:.3} to {:.3} ms after the start of {}, expected within its {:.3} ms",
                millis(stream.view.start_ns),
                millis(stream.view.end_ns),
                operation.view.name,
                millis(to)
            )
        });
    }
}

#[cfg(test)]
mod tests {
    use super::super::fixture::Scene;
    use super::*;

    #[test]
    fn order() {
        let id = "worker.order";
        Scene::disaggregated().holds(id);
        Scene::base().holds(id);
        Scene::aggregated()
            .times("worker.admission", 1_310, 6_405)
            .violates(id, "ends 5.000 ms after worker.operation");
        Scene::aggregated().times("response.streaming.worker", 1_500, 99_990).violates(id, "expected within its");
        Scene::aggregated().times("response.streaming.worker", 1_400, 97_000).violates(id, "lies -0.005 to");
        Scene::aggregated().drop("worker.operation").unknown(id, Why::NotHere);
    }
}
