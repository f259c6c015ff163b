//! Which endpoints make lifecycle spans.

use super::case::{Asked, Case};
use super::{ANY_LAYOUT, ANY_MODE, Check, Level};

pub(super) const ENDPOINTS: Check = Check {
    id: "scope.endpoints",
    level: Level::Error,
    what: "completions, responses and other endpoints without a root emit no lifecycle spans",
    layouts: ANY_LAYOUT,
    modes: ANY_MODE,
    ask: endpoints,
};

fn endpoints(case: &Case<'_>, asked: &mut Asked<'_, '_>) {
    // Chat completions make a root; with one, the endpoint is such too.
    if case.is_chat() != Some(false) || case.root().is_some() {
        return;
    }
    let count = case.lifecycle().count();
    let first = case.lifecycle().next();
    asked.expect_at(Level::Error, first, first.is_none(), || {
        let endpoint = &case.facts.endpoint;
        format!("is one of {count} lifecycle spans of {endpoint}, which makes no root: expected none")
    });
}

#[cfg(test)]
mod tests {
    use super::super::Why;
    use super::super::fixture::Scene;

    #[test]
    fn endpoints() {
        let id = "scope.endpoints";
        let completions = Scene::aggregated().lift("request.lifecycle").set("http-request", "uri", "/v1/completions");
        completions.violates(id, "of /v1/completions, which makes no root");
        let names = ["response.streaming", "request.preprocessing", "kv_router.select_worker", "request.dispatch"];
        names.into_iter().fold(completions, Scene::drop).holds(id);
        Scene::aggregated().unknown(id, Why::NotHere);
        Scene::aggregated().records_only().unknown(id, Why::NotHere);
    }
}
