//! What every request that a filter means must have, as far as a trace store can search for it: terms that all have to
//! hold, of trace ids and of names of services and spans. What a term says of attributes, times or outcomes is left out: where
//! requests have these from (spans, events, records, several spans together) is more than one span's condition can say.

use super::fields::{Get, Of, Target};
use super::term::{Op, Term, Written};
use super::{Expr, Node, Query};
use crate::lifecycle::ids::TraceId;
use crate::lifecycle::must::{Must, Name};

impl Query {
    /// What the traces of the requests that are meant must have. The filter may ask for more.
    pub fn needs(&self) -> Vec<Must> {
        let mut needs = Vec::new();
        if let Some(root) = &self.root {
            gather(root, &mut needs);
        }
        needs
    }
}

fn gather(node: &Node, needs: &mut Vec<Must>) {
    match &node.expr {
        Expr::And(nodes) => nodes.iter().for_each(|node| gather(node, needs)),
        Expr::Term(term) => needs.extend(need(term)),
        Expr::Text(_) | Expr::Not(_) | Expr::Or(_) | Expr::Leg(_) => {}
    }
}

fn need(term: &Term) -> Option<Must> {
    let Target::Field(row) = &term.target else { return None };
    if !matches!(term.op, Op::Is | Op::Equals) {
        return None;
    }
    let names = || term.values.iter().map(name).collect::<Option<Vec<_>>>();
    match row.get {
        Get::Trace => term.values.iter().map(trace).collect::<Option<_>>().map(Must::Be),
        Get::Spans(Of::Service) => names().map(Must::Service),
        Get::Spans(Of::Name) => names().map(Must::Span),
        _ => None,
    }
}

/// A whole id; the beginning of one can be asked of no store.
fn trace(value: &Written) -> Option<TraceId> {
    (!value.star).then(|| TraceId::from_hex(&value.text)).flatten()
}

/// Stores fold the case of ASCII as filters do; of other letters that is not sure.
fn name(value: &Written) -> Option<Name> {
    let fits = !value.text.is_empty() && value.text.bytes().all(|byte| byte.is_ascii_graphic() || byte == b' ');
    fits.then(|| Name { text: value.text.clone(), is_start: value.star })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_all_requests_of_the_filter_must_have_is_needed() {
        let needs = |text: &str| Query::parse(text).unwrap().needs();
        let name = |text: &str, is_start| Name { text: text.into(), is_start };
        let id = "0123456789abcdef0123456789ABCDEF";
        assert_eq!(
            needs(&format!("outcome:failed trace:{id} (service:a,b* span=worker.operation total>3s)")),
            [
                Must::Be(vec![TraceId::from_hex(id).unwrap()]),
                Must::Service(vec![name("a", false), name("b", true)]),
                Must::Span(vec![name("worker.operation", false)]),
            ]
        );
        for nothing in [
            "",
            "outcome:failed",
            "-service:a",
            "service!=a",
            "service:a or outcome:failed",
            "service:*",
            "service:größe",
            "trace:01234567",
            "trace:0123456789abcdef*",
            "leg(service:a)",
            "\"service\":a",
            "dynamo",
        ] {
            assert!(needs(nothing).is_empty(), "{nothing}");
        }
    }
}
