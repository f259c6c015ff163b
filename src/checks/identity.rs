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
    let (id, operation) = (root.text(Field::RequestId), root.text(Field::OperationId));
    for span in case.lifecycle().filter(|span| span.at != root.at) {
        // Without an id it is identity.complete's finding.
        let its = span.text(Field::RequestId);
        if !matches!(its, "" | "unknown") {
            asked.expect(span, its == id, || format!("carries request id {its}, its root {}: expected one", word(id)));
        }
        let component = span.text(Field::Component);
        // Drafts gave router spans operations of their own (spec lifecycle-spans §1).
        let shares = component == "frontend" || (component == "router" && case.facts.layout != Layout::Draft);
        if shares && !span.view.stage.is_worker_side() && !case.is_worker_side(span) {
            let its = span.text(Field::OperationId);
            asked.expect(span, its == operation, || {
                format!("carries operation id {}, its root {}: expected one", word(its), word(operation))
            });
        }
    }
}
