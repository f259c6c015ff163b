//! Times as such. A child that ends after its parent is normal (spec lifecycle-spans §6).

use super::case::{Asked, Case, Span};
use super::{ANY_LAYOUT, ANY_MODE, Check, Level};
use crate::lifecycle::catalogue::Field;
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
    for span in case.all() {
        let (start, end) = (span.view.start_ns, span.view.end_ns);
        if start == 0 {
            continue;
        }
        asked.expect(span, end == 0 || end >= start, || {
            format!("ends {:.3} ms before it starts, expected it afterwards", (start - end) as f64 / 1e6)
        });
        // The root and its http-request are root.start's matter.
        let parent = case.up(span).filter(|above| span.view.stage != Stage::Root || above.view.stage != Stage::Http);
        let Some(parent) = parent.filter(|parent| parent.view.start_ns > 0) else { continue };
        let level = if one_host(span, parent) { Level::Error } else { Level::Warning };
        asked.expect_at(level, Some(span), start >= parent.view.start_ns, || {
            let early = (parent.view.start_ns - start) as f64 / 1e6;
            let clocks = if level == Level::Error { "" } else { " (clocks of two hosts may differ by as much)" };
            let (name, id) = (parent.view.name, parent.view.id);
            format!("starts {early:.3} ms before its parent {name} {id}, expected it afterwards{clocks}")
        });
    }
}

/// Whether one clock timed both: the same process, or hosts that say they are one.
fn one_host(one: Span<'_>, other: Span<'_>) -> bool {
    if one.view.resource == other.view.resource {
        return true;
    }
    let epoch = one.text(Field::Epoch);
    if !epoch.is_empty() && epoch == other.text(Field::Epoch) {
        return true;
    }
    let host = one.view.resource.host();
    !host.is_empty() && host == other.view.resource.host()
}

#[cfg(test)]
mod tests {
    use super::super::Why;
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
        skewed.on_host("one").violates(id, "starts 4.205 ms");
        // Children outlive their parents; the root and its http-request are root.start's matter.
        Scene::aggregated().times("handle_payload", 1_300, 130_000).holds(id);
        Scene::aggregated().times("request.lifecycle", -5, 98_900).holds(id);
        Scene::aggregated().records_only().unknown(id, Why::NotHere);
    }
}
