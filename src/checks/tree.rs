//! How the spans hang together, and how many there are.

use super::case::{Asked, Case, Span, Way, named, one_worker, said, word};
use super::{ANY_LAYOUT, ANY_MODE, Check, EVIDENCE, Level, Why};
use crate::lifecycle::catalogue::Field;
use crate::lifecycle::facts::Dispatch;
use crate::lifecycle::request::Up;
use crate::lifecycle::stage::{Layout, Phase, Stage};

pub(super) const ROOTED: Check = Check {
    id: "tree.rooted",
    level: Level::Error,
    what: "each lifecycle span's trace has a root, and every router and dispatch span descends from it",
    layouts: ANY_LAYOUT,
    modes: ANY_MODE,
    ask: rooted,
};

fn rooted(case: &Case<'_>, asked: &mut Asked<'_, '_>) {
    // Endpoints without a root are scope.endpoints' matter.
    if case.root().is_none() && case.is_chat() == Some(false) {
        return;
    }
    let level = if case.facts.layout == Layout::Evidence { Level::Error } else { Level::Warning };
    let rooted: Vec<_> = case.spans(Stage::Root).map(|root| root.view.trace).collect();
    let mut rootless = Vec::new();
    for span in case.lifecycle() {
        let trace = span.view.trace;
        if rootless.contains(&trace) {
            continue;
        }
        if !rooted.contains(&trace) {
            rootless.push(trace);
            if is_drafts_own(case, span) {
                asked.unknown(Why::Layout);
            } else if !case.settled {
                asked.unknown(Why::Arriving);
            } else if case.spans_lost {
                asked.unknown(Why::Lost);
            } else {
                asked.expect_at(level, Some(span), false, || {
                    format!("stands in trace {trace} without a root, expected request.lifecycle in that trace")
                });
            }
            continue;
        }
        let descends = matches!(span.view.stage, Stage::Queue | Stage::Selection)
            || (span.view.stage == Stage::Dispatch && !case.is_worker_side(span));
        match descends.then(|| case.way(span, |above| above.view.stage == Stage::Root)) {
            Some(Way::Elsewhere) => asked.expect_at(level, Some(span), false, || {
                "does not descend from request.lifecycle, expected it below the root".to_owned()
            }),
            Some(Way::Broken) => asked.unknown(if case.settled { Why::Lost } else { Why::Arriving }),
            Some(Way::There) | None => asked.expect_at(level, Some(span), true, String::new),
        }
    }
}

/// Whether it is a router span that a draft wrote as a trace of its own, of one span (spec lifecycle-spans §1).
fn is_drafts_own(case: &Case<'_>, span: Span<'_>) -> bool {
    case.facts.layout == Layout::Draft
        && matches!(span.view.stage, Stage::Queue | Stage::Selection)
        && span.view.parent.is_none()
        && case.all().filter(|other| other.view.trace == span.view.trace).nth(1).is_none()
}

pub(super) const ROUTE_NESTING: Check = Check {
    id: "tree.route-nesting",
    level: Level::Error,
    what: "every route_request is a child of request.dispatch with the same worker and attempt",
    layouts: EVIDENCE,
    modes: ANY_MODE,
    ask: route_nesting,
};

fn route_nesting(case: &Case<'_>, asked: &mut Asked<'_, '_>) {
    for route in case.spans(Stage::Route) {
        if !case.spans(Stage::Root).any(|root| root.view.trace == route.view.trace) {
            asked.unknown(Why::NoRoot);
            continue;
        }
        match route.view.up {
            Up::Missing => asked.unknown(if case.settled { Why::Lost } else { Why::Arriving }),
            _ => {
                let above = case.up(route).filter(|above| above.view.stage == Stage::Dispatch);
                let Some(dispatch) = above else {
                    let parent = case.up(route).map_or("no span", |above| above.view.name);
                    asked.expect(route, false, || format!("is a child of {parent}, expected request.dispatch"));
                    continue;
                };
                let (to, destination) = (route.worker(Field::RouteWorker, Field::RouteRank), dispatch.destination());
                let one = to.zip(destination).and_then(|(to, destination)| one_worker(to, destination));
                asked.expect_if_told(Some(route), one, || {
                    let (to, destination) = (named(to), named(destination));
                    format!("goes to worker {to}, its dispatch to {destination}: expected one worker")
                });
                let (mine, its) = (route.number(Field::Attempt), dispatch.number(Field::Attempt));
                asked.expect_if_told(Some(route), mine.zip(its).map(|(mine, its)| mine == its), || {
                    format!("is attempt {}, its dispatch {}: expected one number", said(mine), said(its))
                });
            }
        }
    }
}

pub(super) const COMPONENT: Check = Check {
    id: "tree.component",
    level: Level::Error,
    what: "component and role fit the span's name",
    layouts: ANY_LAYOUT,
    modes: ANY_MODE,
    ask: component,
};

const FRONTEND: &[&str] = &["frontend"];
const ANY_WORKER: &[&str] = &["encode", "prefill", "decode", "worker"];

/// The component and the roles that fit a lifecycle span.
fn fitting(case: &Case<'_>, span: Span<'_>) -> Option<(&'static str, &'static [&'static str])> {
    let of_worker = || match span.view.name.rsplit('.').next() {
        Some("encode") => &["encode"][..],
        Some("prefill") => &["prefill"],
        Some("decode") => &["decode"],
        _ => &["worker"],
    };
    Some(match span.view.stage {
        Stage::Root | Stage::Preprocessing | Stage::Streaming => ("frontend", FRONTEND),
        Stage::Queue | Stage::Selection => ("router", FRONTEND),
        Stage::Dispatch if case.is_worker_side(span) => ("worker", ANY_WORKER),
        Stage::Dispatch => ("frontend", FRONTEND),
        Stage::Admission => ("worker", ANY_WORKER),
        Stage::Operation | Stage::WorkerStreaming => ("worker", of_worker()),
        _ => return None,
    })
}

fn component(case: &Case<'_>, asked: &mut Asked<'_, '_>) {
    for span in case.lifecycle() {
        let Some((component, roles)) = fitting(case, span) else { continue };
        let (its, role) = (span.text(Field::Component), span.text(Field::Role));
        asked.expect(span, its == component, || format!("has component {}, expected {component}", word(its)));
        asked.expect(span, roles.contains(&role), || {
            format!("has operation role {}, expected {}", word(role), roles.join(" or "))
        });
    }
}

pub(super) const LAYOUTS: Check = Check {
    id: "tree.layouts",
    level: Level::Warning,
    what: "no worker-side and frontend-side request.dispatch in one trace: all processes speak one version",
    layouts: ANY_LAYOUT,
    modes: ANY_MODE,
    ask: layouts,
};

fn layouts(case: &Case<'_>, asked: &mut Asked<'_, '_>) {
    for span in case.spans(Stage::Dispatch) {
        let worker_side = case.is_worker_side(span);
        let other = || case.dispatches().find(|other| other.view.trace == span.view.trace);
        asked.expect(span, !worker_side || other().is_none(), || {
            let other = said(other().map(|other| other.view.id));
            format!("is a worker's, dispatch {other} of the same trace the frontend's: expected one version")
        });
    }
}

pub(super) const SPAN_COUNT: Check = Check {
    id: "tree.span-count",
    level: Level::Warning,
    what: "a successful stream has 15 (disaggregated), 9 (KV routing) or 7 lifecycle spans, a unary request one fewer",
    layouts: EVIDENCE,
    modes: ANY_MODE,
    ask: span_count,
};

fn span_count(case: &Case<'_>, asked: &mut Asked<'_, '_>) {
    let Some(root) = case.root() else { return asked.unknown(Why::NoRoot) };
    if !case.succeeded() {
        return;
    }
    let Some(streaming) = case.facts.streaming else { return asked.unknown(Why::Unsaid) };
    // Which legs there are, and of which spans each consists.
    let told = [Field::DispatchRoute, Field::DispatchResult, Field::Attempt];
    if !case.dispatches().all(|span| asked.compares(span, &told))
        || !case.spans(Stage::Selection).all(|span| asked.compares(span, &[Field::Pool]))
    {
        return;
    }
    let attempts = || case.facts.legs.iter().filter_map(|leg| leg.dispatch.as_ref());
    if case.dispatches().any(|span| span.attempt() > 0 || matches!(span.text(Field::DispatchResult), "failed"))
        || attempts().any(Dispatch::lost_worker)
    {
        return asked.unknown(Why::Silent);
    }
    let dispatched = case.dispatches().count();
    if dispatched == 0 {
        return if case.settled { asked.unknown(Why::Lost) } else { asked.unknown(Why::Arriving) };
    }
    if case.dispatches().any(|span| case.phase(span) == Phase::Unknown) {
        return asked.unknown(Why::Unsaid);
    }
    // The legs that the topology asks for: a prefill that was selected and never dispatched is one of them.
    let prefill = case.dispatches().any(|span| case.phase(span) == Phase::Prefill)
        || case.spans(Stage::Selection).any(|span| span.pool() == Phase::Prefill);
    let decode = case.dispatches().any(|span| case.phase(span) != Phase::Prefill);
    let legs = usize::from(prefill) + usize::from(decode);
    // A dispatch and three spans of the worker; with KV routing a queue and a selection before them.
    let of_leg = |is_prefill: bool| {
        let mut dispatches = case.dispatches().filter(|span| (case.phase(*span) == Phase::Prefill) == is_prefill);
        if dispatches.all(|span| matches!(span.text(Field::DispatchRoute), "" | "kv")) { 6 } else { 4 }
    };
    let of_legs = if prefill { of_leg(true) } else { 0 } + if decode { of_leg(false) } else { 0 };
    let worker_spans =
        |leg: Span<'_>| case.lifecycle().any(|span| span.view.stage.is_worker_side() && case.is_below(span, leg));
    if let Some(silent) = case.dispatches().find(|leg| !worker_spans(*leg)) {
        let exports = silent.destination().is_some_and(|worker| case.around.exports(worker.id));
        if !exports {
            return asked.unknown(Why::Silent);
        }
    }
    let frontend = 2 + usize::from(streaming);
    let expected = frontend + of_legs;
    // Encoding is a leg without a dispatch.
    let encodes = case.lifecycle().any(|span| span.text(Field::Role) == "encode");
    let further = dispatched.saturating_sub(legs) + usize::from(encodes);
    // Advisory selections are no part of a leg.
    let advisory = |span: Span<'_>| case.up(span).is_some_and(|above| above.view.stage == Stage::Advisory);
    let count = case.lifecycle().filter(|span| !advisory(*span)).count();
    // Of a leg without its dispatch nothing is expected, and something may be there.
    if count > expected && case.lost {
        return asked.unknown(Why::Lost);
    }
    let fits = if further == 0 { count == expected } else { count >= expected + 3 * further };
    let say = || {
        let more =
            if further > 0 { format!(" and at least 3 for each of {further} further legs") } else { String::new() };
        let kind = if streaming { "streaming" } else { "unary" };
        format!("has {count} lifecycle spans in a {kind} request of {legs} legs, expected {expected}{more}")
    };
    if count < expected {
        asked.expect_there(Some(root), false, say);
    } else {
        asked.expect(root, fits, say);
    }
}

#[cfg(test)]
mod tests {
    use super::super::fixture::Scene;
    use super::super::{Answer, CheckId, Moment, Nothing};
    use super::*;

    #[test]
    fn rooted() {
        let id = "tree.rooted";
        Scene::disaggregated().holds(id);
        Scene::aggregated().alone("router.selection").violates(id, "without a root");
        Scene::aggregated().under("request.dispatch", "http-request").violates(id, "below the root");
        // Whoever called the frontend is no part of the request.
        Scene::aggregated().called_from_afar().holds(id);
        let astray = Scene::aggregated().called_from_afar().under("request.dispatch", "http-request");
        astray.violates(id, "below the root");
        Scene::aggregated().lose("request.lifecycle").violates(id, "without a root");
        Scene::base().lose("request.lifecycle").violates_at(id, Level::Warning, "without a root");
        // A draft's router spans may be traces of their own, of one span each.
        Scene::draft_disaggregated().holds(id);
        Scene::draft_disaggregated().router_apart().unknown(id, Why::Layout);
        Scene::draft().alone("router.queue").alone("router.selection").violates_at(
            id,
            Level::Warning,
            "without a root",
        );
        Scene::draft().under("request.dispatch", "http-request").violates_at(id, Level::Warning, "below the root");
        Scene::aggregated().lose("kv_router.schedule").unknown(id, Why::Lost);
        let arriving = Scene::aggregated().lose("request.lifecycle").answers(&Nothing, Moment::Arriving);
        assert_eq!(arriving.of(CheckId::of(id).unwrap()), Answer::Unknown(Why::Arriving));
        Scene::aggregated().records_only().unknown(id, Why::NotHere);
    }

    #[test]
    fn route_nesting() {
        let (id, route) = ("tree.route-nesting", "kv_router.route_request");
        Scene::disaggregated().holds(id);
        Scene::aggregated().set(route, "worker_id", 7).violates(id, "goes to worker 7:0");
        Scene::aggregated().set(route, "dp_rank", 1).violates(id, ":1, its dispatch to");
        Scene::aggregated().set(route, "request.attempt", 1).violates(id, "is attempt 1, its dispatch 0");
        Scene::aggregated().under(route, "request.lifecycle").violates(id, "child of request.lifecycle");
        Scene::draft().unknown(id, Why::Layout);
        Scene::base().unknown(id, Why::Layout);
        Scene::aggregated().lose("request.lifecycle").unknown(id, Why::NoRoot);
    }

    #[test]
    fn component() {
        let id = "tree.component";
        Scene::disaggregated().holds(id);
        Scene::base().holds(id);
        Scene::aggregated().with_worker_dispatch().holds(id);
        Scene::aggregated().set("router.queue", "dynamo.component", "frontend").violates(id, "expected router");
        let role = "dynamo.operation.role";
        Scene::disaggregated().set("worker.operation.prefill", role, "decode").violates(id, "expected prefill");
        Scene::aggregated().without("worker.admission", role).violates(id, "role nothing");
        Scene::aggregated().records_only().unknown(id, Why::NotHere);
    }

    #[test]
    fn layouts() {
        let id = "tree.layouts";
        Scene::aggregated().holds(id);
        Scene::aggregated().with_worker_dispatch().violates(id, "expected one version");
        Scene::base().unknown(id, Why::NotHere);
    }

    #[test]
    fn span_count() {
        let id = "tree.span-count";
        Scene::disaggregated().holds(id);
        Scene::aggregated().holds(id);
        Scene::disaggregated().drop("request.preprocessing").violates(id, "has 14 lifecycle spans");
        Scene::aggregated().again("router.queue").violates(id, "has 10 lifecycle spans");
        let unary = Scene::aggregated().drop("response.streaming").without("http-request", "ttft_ms");
        unary.holds(id);
        unary.drop("request.preprocessing").violates(id, "unary request of 1 legs, expected 8");
        let plain = Scene::aggregated().drop("kv_router.select_worker");
        plain.set("request.dispatch", "dynamo.dispatch.route", "round-robin").holds(id);
        Scene::disaggregated().with_encoding().holds(id);
        Scene::disaggregated()
            .with_encoding()
            .drop("worker.operation.encode")
            .violates(id, "16 lifecycle spans in a streaming request of 2 legs, expected 15 and at least 3");
        // Each leg by its own route.
        let mixed = Scene::disaggregated().drop("kv_router.select_worker");
        mixed.set("request.dispatch", "dynamo.dispatch.route", "direct").holds(id);
        // A worker that exports nothing, a lost attempt, a layout that has other spans.
        Scene::aggregated().drop("worker.admission").drop("worker.operation").unknown(id, Why::Silent);
        Scene::migrated().unknown(id, Why::Silent);
        Scene::base().unknown(id, Why::Layout);
        Scene::draft_disaggregated().unknown(id, Why::Layout);
        Scene::aggregated().ended("cancelled").unknown(id, Why::NotHere);
        // The route span says the phase; where nothing does, how many legs there are is not known.
        let phase = "dynamo.dispatch.phase";
        Scene::disaggregated().without("request.dispatch", phase).holds(id);
        let unsaid = Scene::disaggregated().without_words().without("request.dispatch", phase);
        unsaid.unaddressed(1).unknown(id, Why::Unsaid);
    }
}
