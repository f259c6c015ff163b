//! Times as such. A child that ends after its parent is normal (spec lifecycle-spans §6).

use super::case::{Asked, Case, Span};
use super::{ANY_LAYOUT, ANY_MODE, Check, Level, Why};
use crate::lifecycle::catalogue::Field;
use crate::lifecycle::request::Node;
use crate::lifecycle::stage::Stage;

pub(super) const ORDER: Check = Check {
    id: "time.order",
    level: Level::Error,
    what: "no span ends before it starts; no child starts before its parent (across hosts: a warning with the offset)",
    layouts: ANY_LAYOUT,
    modes: ANY_MODE,
    ask: order,
};

fn order(case: &Case<'_>, asked: &mut Asked<'_, '_>) {
    let mut clocks = None;
    for span in case.all() {
        let (start, end) = (span.view.start_ns, span.view.end_ns);
        if start == 0 || end == 0 {
            asked.unknown(Why::Unsaid);
        }
        if start == 0 {
            continue;
        }
        asked.expect(span, end == 0 || end >= start, || {
            format!("ends {:.3} ms before it starts, expected it afterwards", (start - end) as f64 / 1e6)
        });
        // The root and its http-request are root.start's matter.
        let parent = case.up(span).filter(|above| span.view.stage != Stage::Root || above.view.stage != Stage::Http);
        let Some(parent) = parent.filter(|parent| parent.view.start_ns > 0) else { continue };
        let is_early = start < parent.view.start_ns;
        let one_clock = !is_early || clocks.get_or_insert_with(|| Clocks::of(case)).is_one(span, parent);
        let level = if one_clock { Level::Error } else { Level::Warning };
        asked.expect_at(level, Some(span), !is_early, || {
            let early = (parent.view.start_ns - start) as f64 / 1e6;
            let clocks = if level == Level::Error { "" } else { " (clocks of two hosts may differ by as much)" };
            let (name, id) = (parent.view.name, parent.view.id);
            format!("starts {early:.3} ms before its parent {name} {id}, expected it afterwards{clocks}")
        });
    }
}

/// What of a resource tells hosts apart, the surest first (OpenTelemetry's conventions for resources).
const HOSTS: [&str; 4] = ["host.id", "host.name", "k8s.node.name", "k8s.pod.uid"];

/// Where each span of a request was timed, as far as the spans around it say so.
struct Clocks<'c>(Vec<Clock<'c>>);

#[derive(Clone, Copy, Default)]
struct Clock<'c> {
    /// Whether it is a worker's: by its stage, its component, or what it stands below.
    worker: bool,
    /// The epoch of its process: its own, or one of those around it on the same side with the same resource.
    process: Option<&'c str>,
}

impl<'c> Clocks<'c> {
    fn of(case: &'c Case<'_>) -> Self {
        let mut clocks = vec![Clock::default(); case.view.spans.len()];
        let rows = case.view.tree();
        let spans =
            || rows.iter().filter_map(|row| if let Node::Span(at) = row.node { Some(case.span(at)) } else { None });
        let alike = |span: Span<'_>, above: Span<'_>| span.view.resource == above.view.resource;
        // Down the tree, then up it.
        for span in spans() {
            let above = case.up(span).map(|above| (above, clocks[above.at as usize]));
            let says = span.view.stage.is_worker_side() || span.text(Field::Component) == "worker";
            let worker = says || above.is_some_and(|(_, clock)| clock.worker);
            let own = Some(span.text(Field::Epoch)).filter(|epoch| !epoch.is_empty());
            let near = above.filter(|(above, clock)| clock.worker == worker && alike(span, *above));
            let process = own.or_else(|| near.and_then(|(_, clock)| clock.process));
            clocks[span.at as usize] = Clock { worker, process };
        }
        for span in spans().collect::<Vec<_>>().into_iter().rev() {
            let Clock { worker, process } = clocks[span.at as usize];
            let Some(above) = case.up(span).filter(|above| alike(span, *above)) else { continue };
            let clock = &mut clocks[above.at as usize];
            if clock.worker == worker {
                clock.process = clock.process.or(process);
            }
        }
        Self(clocks)
    }

    /// Whether one clock timed both: one process, or hosts that say they are one. A resource that is alike says so of one
    /// side only: a frontend and a worker on two hosts may well share one service name.
    fn is_one(&self, span: Span<'_>, parent: Span<'_>) -> bool {
        let [one, other] = [span, parent].map(|span| self.0[span.at as usize]);
        if one.process.is_some() && one.process == other.process {
            return true;
        }
        let (here, there) = (span.view.resource, parent.view.resource);
        match HOSTS.iter().find_map(|key| Some((here.text(key)?, there.text(key)?))) {
            Some((here, there)) => here == there,
            None if one.process.is_some() && other.process.is_some() => false,
            None => here == there && one.worker == other.worker,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::fixture::Scene;
    use super::*;

    #[test]
    fn order() {
        let id = "time.order";
        Scene::disaggregated().holds(id);
        Scene::aggregated().times("request.preprocessing", 700, 200).violates(id, "ends 0.500 ms before it starts");
        Scene::aggregated().times("kv_router.schedule", 900, 1_170).violates(id, "starts 0.100 ms before its parent");
        let skewed = Scene::aggregated().times("handle_payload", -3_000, 90_000);
        skewed.violates_at(id, Level::Warning, "starts 4.205 ms before its parent kv_router.route_request");
        skewed.clone().on_host("one").violates(id, "starts 4.205 ms");
        // One service name for both sides says nothing of the host, with or without the workers' own spans.
        let alike = skewed.of_service("dynamo");
        alike.violates_at(id, Level::Warning, "(clocks of two hosts may differ by as much)");
        alike.clone().on_host("one").violates(id, "starts 4.205 ms");
        let bare = alike.clone().lift("worker.admission").lift("response.streaming.worker").lift("worker.operation");
        bare.violates_at(id, Level::Warning, "(clocks of two hosts may differ by as much)");
        // One process does both.
        alike.set_all("dynamo.process.epoch", "1:f").violates(id, "starts 4.205 ms");
        // On one side it is one process's clock.
        let within = Scene::aggregated().of_service("dynamo");
        within.clone().times("worker.operation", 900, 90_000).violates(id, "worker.operation");
        within.times("kv_router.schedule", 900, 1_170).violates(id, "starts 0.100 ms before its parent");
        // Children outlive their parents; the root and its http-request are root.start's matter.
        Scene::aggregated().times("handle_payload", 1_300, 130_000).holds(id);
        Scene::aggregated().times("request.lifecycle", -5, 98_900).holds(id);
        Scene::aggregated().records_only().unknown(id, Why::NotHere);
    }
}
