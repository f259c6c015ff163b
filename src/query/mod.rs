//! The filter language: parse, evaluate, complete, write back (design §2; the reference is [`reference()`]).
//!
//! Owns: the grammar, the fields one can ask for and how a request answers. Keeps out: how requests are kept
//! and looked up (`store`), which checks there are (`checks`: their answers come in through [`Lazy`]), the input line
//! (`tui`). Pure: no clock, no state, nothing that can be slow (no patterns but a final `*`, bounded length and depth).
//!
//! ```text
//! query  = or                        an empty text is every request
//! or     = and { ("or" | "|" | "||") and }
//! and    = not { [ "and" | "&" | "&&" ] not }
//! not    = ("not" | "-" | "!") not | "(" or ")" | "leg(" or ")" | term
//! term   = field op values | text
//! op     = ":" | "=" | "!=" | "<" | "<=" | ">" | ">="
//! values = value { "," value } | "(" value { "," value } ")"
//! value  = word | word"*" | "*" | a..b | a..<b | a.. | ..b | "quoted"
//! ```
//!
//! - Comparing text ignores case. `:` and `=` ask for the whole value, but `:` finds request and trace ids by a beginning
//!   of eight or more hex digits, as screens show them. `*` at the end stands for any ending; `field:*` holds where the
//!   value is known, `-field:*` where it is not.
//! - `a!=b` is `not a=b`: it holds where nothing equals `b`, so also where nothing is known.
//! - Times without a unit are milliseconds. `a..b` includes both ends, `a..<b` leaves the upper one out; a lower end
//!   without a unit takes the upper one's (`1..5s`).
//! - A leg-level term holds if any leg satisfies it, each term on its own. `leg(phase:decode dispatch.result:failed)`
//!   asks that one leg satisfies all of it; request-level terms and attributes mean the same inside as outside.
//! - A name that is no field is the name of an attribute, looked up in spans, their events, resources and scopes; of a
//!   repeated key the last value counts (spec lifecycle-spans §2). A quoted name is always an attribute's.
//! - A word without an operator is free text: part of an id, session, model, worker, outcome, reason, span or event
//!   name, or attribute value.
//! - `check:violated`, `check:unknown`, `check:holds`: some check says so. `check:queue.reason` means that this check
//!   is violated, `check:queue.reason:unknown` that it is unknown.
//! - Quoted text knows `\"`, `\\`, `\n`, `\r` and `\t`.

mod complete;
mod eval;
mod fields;
mod needs;
mod number;
mod parse;
mod term;
mod text;
mod worker;
mod write;

#[cfg(test)]
mod tests;

use std::ops::Range;

pub use complete::{Completion, Vocabulary, complete};
pub use eval::{Answer, Lazy, OnDemand};
pub use fields::{ROWS, Row, reference};
pub use term::Op;
pub use text::meant;
pub use write::{Name, append, append_term, drop_last_term, term};

/// The longest text that is parsed, bytes.
pub const MAX_LENGTH: usize = 4096;

/// How deep parentheses and negations may nest.
pub const MAX_DEPTH: usize = 32;

/// A filter, ready to be asked. The default is every request. Its text form parses to the same filter.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Query {
    root: Option<Node>,
    /// Of the root; counted once, as it is wanted for every request that is asked.
    cost: Cost,
}

/// What a filter compares a request with at most, in comparisons with a value.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Cost {
    /// Of what its facts say.
    pub facts: usize,
    /// Of what each of its spans says; a free text is one.
    pub spans: usize,
}

/// Why a text is no filter. Whoever asked keeps the last filter that was one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error {
    /// The bytes of the text that are meant; empty at its end when something is missing.
    pub span: Range<usize>,
    /// What was expected and what came.
    pub message: String,
}

impl std::fmt::Display for Error {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "filter, column {}: {}", self.span.start + 1, self.message)
    }
}

impl std::error::Error for Error {}

/// A part of a filter.
#[derive(Clone, Debug, PartialEq)]
struct Node {
    expr: Expr,
    /// Whether answering may need more than the facts; such parts are asked last.
    lazy: bool,
}

#[derive(Clone, Debug, PartialEq)]
enum Expr {
    Term(term::Term),
    Text(text::Needle),
    Not(Box<Node>),
    And(Vec<Node>),
    Or(Vec<Node>),
    Leg(Box<Node>),
}

impl Query {
    /// Reads a filter. A text of nothing but space is every request.
    ///
    /// # Errors
    /// The first place where the text is no filter, or not one yet.
    pub fn parse(text: &str) -> Result<Self, Error> {
        let (root, _) = parse::parse(text)?;
        let mut cost = Cost::default();
        root.iter().for_each(|root| root.add_to(&mut cost));
        Ok(Self { root, cost })
    }

    /// Whether this is the filter of every request.
    pub fn is_all(&self) -> bool {
        self.root.is_none()
    }

    /// Whether answering may need a request's spans or checks; otherwise its facts are enough.
    pub fn needs_spans(&self) -> bool {
        self.root.as_ref().is_some_and(|root| root.lazy)
    }

    /// Whether answering may need what the checks say.
    pub fn asks_checks(&self) -> bool {
        self.root.as_ref().is_some_and(Node::asks_checks)
    }

    /// What asking a request costs.
    pub fn cost(&self) -> Cost {
        self.cost
    }

    /// The words without quotes that are searched for as text, wherever they stand.
    pub fn words(&self) -> Vec<&str> {
        let mut words = Vec::new();
        self.root.iter().for_each(|root| root.add_words(&mut words));
        words
    }

    /// The names in it that are of no field, and so are taken for attributes'.
    pub fn attributes(&self) -> Vec<&str> {
        let mut names = Vec::new();
        self.root.iter().for_each(|root| root.add_attributes(&mut names));
        names
    }
}

impl Node {
    fn add_attributes<'a>(&'a self, names: &mut Vec<&'a str>) {
        match &self.expr {
            Expr::Term(term) => names.extend(term.target.attribute()),
            Expr::Text(_) => {}
            Expr::Not(inner) | Expr::Leg(inner) => inner.add_attributes(names),
            Expr::And(nodes) | Expr::Or(nodes) => nodes.iter().for_each(|node| node.add_attributes(names)),
        }
    }

    fn add_words<'a>(&'a self, words: &mut Vec<&'a str>) {
        match &self.expr {
            Expr::Text(needle) if !needle.quoted => words.push(&needle.text),
            Expr::Text(_) | Expr::Term(_) => {}
            Expr::Not(inner) | Expr::Leg(inner) => inner.add_words(words),
            Expr::And(nodes) | Expr::Or(nodes) => nodes.iter().for_each(|node| node.add_words(words)),
        }
    }

    fn asks_checks(&self) -> bool {
        match &self.expr {
            Expr::Term(term) => term.target.asks_checks(),
            Expr::Text(_) => false,
            Expr::Not(inner) | Expr::Leg(inner) => inner.asks_checks(),
            Expr::And(nodes) | Expr::Or(nodes) => nodes.iter().any(Self::asks_checks),
        }
    }

    fn add_to(&self, cost: &mut Cost) {
        match &self.expr {
            Expr::Term(term) if self.lazy => cost.spans += term.values.len().max(1),
            Expr::Term(term) => cost.facts += term.values.len().max(1),
            Expr::Text(_) => cost.spans += 1,
            Expr::Not(inner) | Expr::Leg(inner) => inner.add_to(cost),
            Expr::And(nodes) | Expr::Or(nodes) => nodes.iter().for_each(|node| node.add_to(cost)),
        }
    }
}

impl std::str::FromStr for Query {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        Self::parse(text)
    }
}
