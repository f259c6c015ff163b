//! The request screen: its title, its tree as a waterfall, and what stands beside it.
//!
//! Owns: what each part says. Keeps out: which row is chosen, what is folded or scrolled (`tui`), drawing.

pub mod axis;
pub mod detail;
pub mod evidence;
pub mod records;
pub mod tree;

use super::{Line, Nothing, Piece, Tone, format, request_name, standing_piece};
use crate::lifecycle::facts::{Facts, State};
use crate::lifecycle::request::RequestView;

/// What stands before the trace id in the title.
const TRACE: &str = "trace ";

/// The title's pieces, most important first; what does not fit is left out from the end.
pub fn title(facts: &Facts, now_ns: u64) -> Vec<Line> {
    let mut parts = vec![vec![Piece::dim("request "), Piece::new(request_name(facts), Tone::Strong)]];
    parts.push(vec![standing_piece(facts)]);
    parts.push(vec![match (facts.total_ns(), facts.state) {
        (Some(ns), _) => Piece::plain(format::duration(ns)),
        (None, State::InFlight) if facts.start_ns > 0 => {
            Piece::new(format!("{} so far", format::duration(now_ns.saturating_sub(facts.start_ns))), Tone::Running)
        }
        (None, _) => Nothing::of(facts, Nothing::Missing).sentence(),
    }]);
    if let Some(trace) = facts.trace {
        parts.push(vec![Piece::dim(TRACE), Piece::plain(trace.to_string())]);
    }
    if !facts.session_id.is_empty() && !facts.session_fallback {
        parts.push(vec![Piece::dim("session "), Piece::plain(&*facts.session_id)]);
    }
    if !facts.model.is_empty() {
        parts.push(vec![Piece::dim("model "), Piece::plain(facts.model.as_str())]);
    }
    // Spans tell the layout.
    if facts.spans > 0 {
        parts.push(vec![Piece::dim(format!("{} · {} layout", facts.mode.word(), facts.layout.word()))]);
    }
    parts
}

/// Whether this is the title's piece that names the trace.
pub fn is_trace(part: &Line) -> bool {
    part.first().is_some_and(|piece| piece.text == TRACE)
}

/// What is odd about the request, in words; empty when nothing is.
pub fn marks(facts: &Facts) -> String {
    let mut words: Vec<String> = facts.marks.set_ones().map(|(sign, word)| format!("{sign} {word}")).collect();
    if facts.skew_ns > 0 {
        words.push(format!("skew {}", format::duration(facts.skew_ns)));
    }
    words.join(" · ")
}

/// `17 spans · 2 processes`.
pub fn tree_summary(request: &RequestView<'_>) -> String {
    let mut processes: Vec<(&str, &str)> = request.spans.iter().map(|span| span.process()).collect();
    processes.retain(|(service, epoch)| !service.is_empty() || !epoch.is_empty());
    processes.sort_unstable();
    // Spans outside the lifecycle schema name no process epoch: they count only where nothing better names their service.
    let named: std::collections::HashSet<&str> =
        processes.iter().filter(|(_, epoch)| !epoch.is_empty()).map(|(service, _)| *service).collect();
    processes.retain(|(service, epoch)| !epoch.is_empty() || !named.contains(service));
    processes.dedup();
    let (spans, processes) = (request.spans.len() as u64, processes.len() as u64);
    format!("{} · {}", format::counted(spans, "span", "spans"), format::counted(processes, "process", "processes"))
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::detail::{Opens, cut, everything, raw, whole};
    use super::tree::{Fold, NodeId, open_rows};
    use crate::lifecycle::facts::Facts;
    use crate::lifecycle::ids::SpanId;
    use crate::lifecycle::packed::Value;
    use crate::lifecycle::request::RequestKey;
    use crate::lifecycle::stage::{Layout, Mode, Stage};
    use crate::view::data::Data;
    use crate::view::fixture::{Fixture, NOW, cluster, def};
    use crate::view::request::axis::Axis;

    fn text(line: &crate::view::Line) -> String {
        line.iter().map(|piece| piece.text.as_str()).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn b34_a_row_keeps_its_name_while_its_parents_arrive() {
        let mut fixture = Fixture::default();
        let key = fixture.add(Facts::default());
        let mut depths = Vec::new();
        let mut chosen = None;
        for (id, parent) in [(3, 2), (2, 1), (1, 0)] {
            fixture.span(key, def(id, parent, "x", id as f64, 10.0));
            let request = fixture.request(key).unwrap();
            let rows = open_rows(&request, &HashSet::new());
            let names: Vec<_> = rows.iter().map(|row| NodeId::of(row.node, &request)).collect();
            let chosen = *chosen.get_or_insert(names[1]);
            let at = names.iter().position(|name| *name == chosen).unwrap();
            depths.push((rows.len(), rows[at].depth));
        }
        assert_eq!(depths, [(2, 1), (3, 2), (3, 2)]);
    }

    #[test]
    fn folding_hides_what_is_below() {
        let fixture = cluster();
        let request = fixture.request(RequestKey(5)).unwrap();
        let all = open_rows(&request, &HashSet::new());
        let root = all.iter().find(|row| row.depth == 1).unwrap();
        let folded = HashSet::from([NodeId::of(root.node, &request)]);
        assert_eq!(open_rows(&request, &folded).len(), all.len() - root.below as usize);
        let line = super::tree::line(*root, &request, &folded, &Axis::of(&request, NOW));
        assert_eq!(line.fold, Fold::Closed(root.below));
    }

    #[test]
    fn b41_long_values_are_cut_with_their_length_and_can_be_read_whole() {
        let mut fixture = Fixture::default();
        let key = fixture.add(Facts::default());
        let long = "é".repeat(500_000);
        let mut span = def(1, 0, "x", 0.0, 1.0).with(&[("prompt", Value::Str(&long))]);
        let keys: Vec<String> = (0..1000).map(|n| format!("k{n}")).collect();
        span.attrs.extend(keys.iter().map(|key| (key.as_str(), Value::Bool(true))));
        span.dropped = [7, 0, 0];
        fixture.span(key, span);
        let request = fixture.request(key).unwrap();
        let rows = everything(&request.spans[0], false);
        let prompt = rows.iter().find(|row| row.label.text == "prompt").unwrap();
        assert!(text(&prompt.value).ends_with("… 977 KiB in all, Enter to read"), "{:?}", prompt.value[1]);
        let node = NodeId::Span(request.spans[0].trace, request.spans[0].id);
        assert_eq!(whole(&request, node, prompt.opens.unwrap()).unwrap().text, long);
        assert!(rows.iter().any(|row| text(&row.value).contains("7 dropped by the sender")));
        assert!(keys.iter().all(|key| rows.iter().any(|row| row.label.text == *key)));
        assert!(raw(&request, node).unwrap().text.contains(&long));
        assert_eq!(text(&cut(Value::Str(""))), "(empty text)");
    }

    #[test]
    fn what_is_missing_is_said_as_what_kind_of_missing_it_is() {
        let mut fixture = cluster();
        let key = RequestKey(5);
        let lacking = |fixture: &Fixture, stage| {
            let request = fixture.request(key).unwrap();
            let span = request.spans.iter().find(|span| span.stage == stage).unwrap();
            let rows = super::evidence::evidence(span, &request);
            rows.into_iter().map(|row| format!("{}: {}", row.label.text, text(&row.value))).collect::<Vec<_>>()
        };
        let has = |rows: &[String], row: &str| assert!(rows.iter().any(|r| r == row), "{row} not in {rows:#?}");
        has(&lacking(&fixture, Stage::Preprocessing), "checkpoint: missing although expected");
        has(&lacking(&fixture, Stage::Dispatch), "route: missing although expected");
        has(&lacking(&fixture, Stage::Queue), "depth on entering: 9");
        has(&lacking(&fixture, Stage::Selection), "chosen worker: 7f37 (9167075440562241335)");
        fixture.facts_mut(key).mode = Mode::Core;
        has(&lacking(&fixture, Stage::Preprocessing), "checkpoint: not recorded in core mode");
        fixture.facts_mut(key).layout = Layout::Base;
        has(&lacking(&fixture, Stage::Dispatch), "route: not recorded by the base layout");
    }

    #[test]
    fn a_record_is_read_whole_and_a_missing_parent_has_no_raw_form() {
        let fixture = cluster();
        let request = fixture.request(RequestKey(5)).unwrap();
        let node = NodeId::Missing(SpanId([1; 8]));
        assert!(whole(&request, node, Opens::Record(0)).unwrap().text.contains("\"input_tokens\": 640"));
        assert_eq!(raw(&request, node), None);
    }
}
