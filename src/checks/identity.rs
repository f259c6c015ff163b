//! Who a span says it belongs to.

use super::case::{Asked, Case, word};
use super::{ANY_LAYOUT, ANY_MODE, Check, Level, Why};
use crate::lifecycle::catalogue::Field;
use crate::lifecycle::stage::Layout;

pub(super) const COMPLETE: Check = Check {
    id: "identity.complete",
    level: Level::Error,
    what: "every lifecycle span has schema v1, a complete identity and a request id",
    layouts: ANY_LAYOUT,
    modes: ANY_MODE,
    ask: complete,
};

fn complete(case: &Case<'_>, asked: &mut Asked<'_, '_>) {
    for span in case.lifecycle() {
        let (schema, state, id) =
            (span.text(Field::Schema), span.text(Field::IdentityState), span.text(Field::RequestId));
        asked.expect(span, schema == "v1", || format!("has lifecycle schema {}, expected v1", word(schema)));
        asked.expect(span, state == "complete", || format!("has identity state {}, expected complete", word(state)));
        asked.expect(span, !matches!(id, "" | "unknown"), || format!("has request id {}, expected one", word(id)));
    }
}

pub(super) const SESSION: Check = Check {
    id: "identity.session",
    level: Level::Error,
    what: "a session that falls back to the request id is the request id",
    layouts: ANY_LAYOUT,
    modes: ANY_MODE,
    ask: session,
};

fn session(case: &Case<'_>, asked: &mut Asked<'_, '_>) {
    let Some(root) = case.root() else { return asked.unknown(Why::NoRoot) };
    if root.text(Field::SessionSource) == "request_id_fallback" {
        let (session, id) = (root.text(Field::SessionId), root.text(Field::RequestId));
        if !asked.compares(root, &[Field::RequestId]) {
            return;
        }
        asked.expect(root, session == id, || {
            format!("has session {} by request_id_fallback, expected its request id {}", word(session), word(id))
        });
    }
}

pub(super) const OPERATION: Check = Check {
    id: "identity.operation",
    level: Level::Error,
    what: "frontend and router spans carry the root's request and operation id, worker spans its request id",
    layouts: ANY_LAYOUT,
    modes: ANY_MODE,
    ask: operation,
};

fn operation(case: &Case<'_>, asked: &mut Asked<'_, '_>) {
    let Some(root) = case.root() else { return asked.unknown(Why::NoRoot) };
    if !root.says(Field::OperationId) {
        asked.expect(root, false, || "has no operation id, expected one that its spans share".to_owned());
    }
    if !asked.compares(root, &[Field::RequestId, Field::OperationId]) {
        return;
    }
    let (id, operation) = (root.text(Field::RequestId), root.text(Field::OperationId));
    for span in case.lifecycle().filter(|span| span.at != root.at) {
        // Without an id it is identity.complete's finding.
        let its = span.text(Field::RequestId);
        if matches!(its, "" | "unknown") {
            asked.unsaid();
        } else {
            asked.expect(span, its == id, || format!("carries request id {its}, its root {}: expected one", word(id)));
        }
        if span.view.stage.is_worker_side() || !asked.compares(span, &[Field::Component]) {
            continue;
        }
        let component = span.text(Field::Component);
        // Drafts gave router spans operations of their own (spec lifecycle-spans §1).
        let shares = component == "frontend" || (component == "router" && case.facts.layout != Layout::Draft);
        if shares && !case.is_worker_side(span) {
            let its = span.text(Field::OperationId);
            asked.expect(span, its == operation, || {
                format!("carries operation id {}, its root {}: expected one", word(its), word(operation))
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::fixture::Scene;
    use super::*;

    #[test]
    fn complete() {
        let id = "identity.complete";
        Scene::aggregated().holds(id);
        Scene::aggregated().set("router.selection", "dynamo.lifecycle.schema", "v2").violates(id, "schema v2");
        let state = "dynamo.lifecycle.identity.state";
        Scene::aggregated().set("router.queue", state, "missing_request_id").violates(id, "missing_request_id");
        Scene::aggregated().set("worker.admission", "dynamo.request.id", "unknown").violates(id, "request id unknown");
        Scene::aggregated().records_only().unknown(id, Why::NotHere);
    }

    #[test]
    fn session() {
        let (id, root) = ("identity.session", "request.lifecycle");
        Scene::aggregated().holds(id);
        Scene::aggregated().set(root, "dynamo.session.id", "other").violates(id, "session other");
        Scene::aggregated().set(root, "dynamo.session.source", "agent_context").unknown(id, Why::NotHere);
    }

    #[test]
    fn operation() {
        let id = "identity.operation";
        Scene::aggregated().holds(id);
        Scene::aggregated().set("worker.operation", "dynamo.request.id", "other").violates(id, "request id other");
        Scene::aggregated().set("router.queue", "dynamo.operation.id", "other").violates(id, "operation id other");
        Scene::draft().set("router.queue", "dynamo.operation.id", "other").holds(id);
        Scene::draft_disaggregated().router_apart().holds(id);
        let draft = Scene::draft_disaggregated().set("request.dispatch", "dynamo.operation.id", "other");
        draft.violates_at(id, Level::Warning, "operation id other");
        Scene::aggregated().lose("request.lifecycle").unknown(id, Why::NoRoot);
    }
}
