//! Attributes as such: their schema, repeats and limits.

use super::case::{Asked, Case, Repeat, word};
use super::{ANY_LAYOUT, ANY_MODE, Check, DETAILED, Level};
use crate::lifecycle::catalogue::Field;
use crate::lifecycle::stage::Stage;

/// The exporter's usual limit; a span that reaches it may have lost attributes.
const LIMIT: u32 = 128;

pub(super) const SCHEMA: Check = Check {
    id: "attr.schema",
    level: Level::Error,
    what: "detail_schema fits the span",
    layouts: DETAILED,
    modes: ANY_MODE,
    ask: schema,
};

fn schema(case: &Case<'_>, asked: &mut Asked<'_, '_>) {
    for span in case.lifecycle() {
        let expected = match span.view.stage {
            Stage::Queue => "router_queue.v1",
            Stage::Selection => "router_selection.v1",
            Stage::Admission => "admission.v1",
            Stage::Dispatch if !case.is_worker_side(span) => "dispatch.v1",
            _ => continue,
        };
        let schema = span.text(Field::DetailSchema);
        asked.expect(span, schema == expected, || format!("has detail_schema {}, expected {expected}", word(schema)));
    }
}

/// Of the repeated keys of one span, so many are told by name.
const TOLD: usize = 8;

pub(super) const REPEAT: Check = Check {
    id: "attr.repeat",
    level: Level::Error,
    what: "no attribute key is repeated (an error on router.queue; session id and source on the root are normal)",
    layouts: ANY_LAYOUT,
    modes: ANY_MODE,
    ask: repeat,
};

fn repeat(case: &Case<'_>, asked: &mut Asked<'_, '_>) {
    for repeats in case.repeats.chunk_by(|one, other| one.at == other.at) {
        let span = case.span(repeats[0].at);
        let level = if span.view.stage == Stage::Queue { Level::Error } else { Level::Warning };
        for Repeat { key, times, .. } in repeats.iter().take(TOLD) {
            let normal =
                span.view.stage == Stage::Root && matches!(*key, "dynamo.session.id" | "dynamo.session.source");
            asked.expect_at(level, Some(span), normal, || format!("carries {key} {times} times, expected once"));
        }
        if let Some(more) = repeats.len().checked_sub(TOLD).filter(|more| *more > 0) {
            asked.expect_at(level, Some(span), false, || {
                format!("carries {more} more keys several times, expected once")
            });
        }
    }
    for span in case.lifecycle().take(1) {
        asked.expect(span, true, String::new);
    }
}

pub(super) const LIMIT_CHECK: Check = Check {
    id: "attr.limit",
    level: Level::Error,
    what: "no span has dropped attributes or as many as the exporter's limit of 128",
    layouts: ANY_LAYOUT,
    modes: ANY_MODE,
    ask: limit,
};

fn limit(case: &Case<'_>, asked: &mut Asked<'_, '_>) {
    for span in case.all() {
        let dropped = span.view.body.head().dropped[0];
        asked.expect(span, dropped == 0, || format!("lost {dropped} attributes at its sender, expected none"));
        let count = span.count;
        asked.expect(span, count < LIMIT, || format!("carries {count} attributes, expected fewer than {LIMIT}"));
    }
}

#[cfg(test)]
mod tests {
    use super::super::Why;
    use super::super::fixture::Scene;
    use super::*;

    #[test]
    fn schema() {
        let (id, key) = ("attr.schema", "dynamo.lifecycle.detail_schema");
        Scene::disaggregated().holds(id);
        Scene::aggregated()
            .set("router.selection", key, "router_queue.v1")
            .violates(id, "expected router_selection.v1");
        Scene::aggregated().without("worker.admission", key).violates(id, "detail_schema nothing");
        Scene::draft().without("worker.admission", key).violates_at(id, Level::Warning, "detail_schema nothing");
        Scene::base().unknown(id, Why::Layout);
    }

    #[test]
    fn repeat() {
        let id = "attr.repeat";
        Scene::aggregated().holds(id);
        let result = "dynamo.dispatch.result";
        Scene::aggregated().repeat("request.dispatch", result, "accepted").violates_at(id, Level::Warning, "2 times");
        Scene::aggregated().repeat("router.queue", "dynamo.router.queue.deferred", "true").violates(id, "2 times");
        Scene::aggregated().repeat("request.lifecycle", "dynamo.session.id", "x").holds(id);
        Scene::aggregated().crowd("request.lifecycle", 500).holds(id);
        // However many there are, they are looked at once, and few are told by name.
        let crowded = || Scene::aggregated().crowd("request.dispatch", 20_000).crowd("request.dispatch", 20_000);
        crowded().violates_at(id, Level::Warning, "carries extra.1 2 times");
        crowded().violates_at(id, Level::Warning, "carries 19992 more keys several times");
        Scene::aggregated().records_only().unknown(id, Why::NotHere);
    }

    #[test]
    fn limit() {
        let id = "attr.limit";
        Scene::aggregated().holds(id);
        Scene::aggregated().crowd("request.lifecycle", 128).violates(id, "expected fewer than 128");
        Scene::aggregated().dropped("router.queue", 3).violates(id, "lost 3 attributes");
        Scene::aggregated().records_only().unknown(id, Why::NotHere);
    }
}
