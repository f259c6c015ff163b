//! `reqtop export`: spans as OTLP JSON lines, one export request per trace.

use std::fmt::Write;

use serde_json::{Map, Value as Json};

use crate::lifecycle::request::SpanView;
use crate::query::Query;
use crate::store::Store;
use crate::view::otlp_json;

/// Everything the store holds, or the spans of the requests that match, as OTLP JSON lines: what came in, in meaning.
pub fn json_lines(store: &Store, filter: Option<&Query>) -> String {
    let mut out = String::new();
    match filter {
        None => {
            let spans: Vec<SpanView<'_>> = store.spans().collect();
            for of_trace in spans.chunk_by(|one, other| one.trace == other.trace) {
                line(&mut out, of_trace);
            }
        }
        Some(query) => {
            for (key, _) in store.requests() {
                if store.matches(query, key)
                    && let Some(request) = store.request(key)
                    && !request.spans.is_empty()
                {
                    line(&mut out, &request.spans);
                }
            }
        }
    }
    out
}

/// The spans of a scope, the first of them to speak for it.
type OfScope<'a, 'b> = (&'b SpanView<'a>, Vec<Json>);

/// One export request: spans grouped by who sent them.
fn line(out: &mut String, spans: &[SpanView<'_>]) {
    let mut resources: Vec<(&SpanView<'_>, Vec<OfScope<'_, '_>>)> = Vec::new();
    for span in spans {
        let at = resources.iter().position(|(first, _)| first.resource == span.resource).unwrap_or_else(|| {
            resources.push((span, Vec::new()));
            resources.len() - 1
        });
        let scopes = &mut resources[at].1;
        let at = scopes.iter().position(|(first, _)| first.scope == span.scope).unwrap_or_else(|| {
            scopes.push((span, Vec::new()));
            scopes.len() - 1
        });
        scopes[at].1.push(otlp_json::span(span));
    }
    let resource_spans = resources.into_iter().map(|(of, scopes)| {
        let scope_spans = scopes.into_iter().map(|(of, spans)| {
            let mut out = Map::new();
            out.insert("scope".into(), otlp_json::scope(of.scope));
            out.insert("spans".into(), Json::Array(spans));
            put(&mut out, "schemaUrl", of.scope.schema_url());
            Json::Object(out)
        });
        let mut out = Map::new();
        out.insert("resource".into(), otlp_json::resource(of.resource));
        out.insert("scopeSpans".into(), Json::Array(scope_spans.collect()));
        put(&mut out, "schemaUrl", of.resource.schema_url());
        Json::Object(out)
    });
    let request = Json::Array(resource_spans.collect());
    let _ = writeln!(out, "{{\"resourceSpans\":{request}}}");
}

fn put(out: &mut Map<String, Json>, key: &str, text: &str) {
    if !text.is_empty() {
        out.insert(key.into(), text.into());
    }
}
