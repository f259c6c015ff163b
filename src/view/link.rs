//! Links out: the address of a trace in its store's own user interface.
//!
//! Owns: the template (`--trace-url`, given by whoever starts the program) and filling it in with ids, which are hex. Keeps
//! out: drawing links, opening them.

use crate::lifecycle::ids::TraceId;

/// What stands for the trace id in a template.
pub const PLACE: &str = "{trace_id}";

/// A template of addresses of traces.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TraceUrl {
    template: String,
}

impl TraceUrl {
    /// Reads a template, such as `http://jaeger:16686/trace/{trace_id}`.
    ///
    /// # Errors
    /// What was expected of it.
    pub fn parse(template: &str) -> Result<Self, String> {
        let template = template.trim();
        let expected =
            |what: &str| format!("expected {what}, as in http://jaeger:16686/trace/{PLACE}, found {template:?}");
        if !["http://", "https://"].iter().any(|scheme| template.starts_with(scheme)) {
            return Err(expected("an http or https address"));
        }
        // It becomes part of a sequence that terminals obey.
        if !template.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err(expected("letters, digits and signs of ASCII without spaces"));
        }
        if !template.contains(PLACE) {
            return Err(expected(PLACE));
        }
        Ok(Self { template: template.to_owned() })
    }

    /// The address of a trace.
    pub fn of(&self, trace: TraceId) -> String {
        self.template.replace(PLACE, &trace.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn templates_are_filled_in_and_nothing_else_is_let_through() {
        let url = TraceUrl::parse(" https://grafana/explore?id=%22{trace_id}%22#{trace_id} ").unwrap();
        let id = "0af7651916cd43dd8448eb211c80319c";
        let trace = TraceId::from_hex(id).unwrap();
        assert_eq!(url.of(trace), format!("https://grafana/explore?id=%22{id}%22#{id}"));
        for (bad, why) in [
            ("jaeger:16686/trace/{trace_id}", "http"),
            ("javascript:{trace_id}", "http"),
            ("http://jaeger/trace", "{trace_id}"),
            ("http://jaeger/\u{1b}]8;;{trace_id}", "ASCII"),
            ("http://jaeger/a b/{trace_id}", "ASCII"),
        ] {
            assert!(TraceUrl::parse(bad).unwrap_err().contains(why), "{bad}");
        }
    }
}
