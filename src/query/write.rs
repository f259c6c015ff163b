//! From filter to text: the canonical form, and terms made from what somebody points at.

use std::fmt;

use super::fields::{Kind, Target};
use super::number::Interval;
use super::parse::{cannot_begin, ends_word, needs_quotes, parse, slip};
use super::term::{Op, Term, Written};
use super::text::{fold_word, nearest};
use super::{Expr, Node, Query};

/// What a term is made about.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Name<'a> {
    /// A field of [`super::ROWS`] or of the evidence catalogue, by its id.
    Field(&'a str),
    /// An attribute, by its key.
    Attribute(&'a str),
}

/// Longer values are written by their beginning.
const LONGEST: usize = 512;

/// Words that mean something to the grammar.
const KEYWORDS: [&str; 4] = ["and", "or", "not", "leg"];

/// The text of a term, quoted and escaped as needed, so that it means exactly this value. Of a number field the value
/// may also be a range (`1ms..<2ms`). A value of more than 512 bytes is asked for by its beginning.
pub fn term(name: Name<'_>, op: Op, value: &str) -> String {
    let target = match name {
        Name::Field(id) => Target::of(id),
        Name::Attribute(key) => Target::Attribute(key.into()),
    };
    let mut end = value.len().min(LONGEST);
    while !value.is_char_boundary(end) {
        end -= 1;
    }
    let mut written = Written { text: value[..end].to_owned(), quoted: false, star: end < value.len() };
    written.quoted = !is_bare(&written, &target, op);
    format!("{}{}{written}", Named(&target), op.sign())
}

/// The filter with a term added that must hold too; see [`append`].
pub fn append_term(text: &str, name: Name<'_>, op: Op, value: &str) -> String {
    append(text, &term(name, op, value))
}

/// The filter with another one added that must hold too; one that it asks for already is not added again. What is no
/// filter stays none.
pub fn append(text: &str, term: &str) -> String {
    let text = text.trim();
    let Ok((before, _)) = parse(text) else { return format!("{text} {term}") };
    let Some(before) = before else { return term.to_owned() };
    let added = parse(term).ok().and_then(|(node, _)| node);
    let parts = |node: &Node| match &node.expr {
        Expr::And(nodes) => nodes.clone(),
        _ => vec![node.clone()],
    };
    let asked_for = parts(&before);
    let asked = added.as_ref().is_some_and(|added| parts(added).iter().all(|part| asked_for.contains(part)));
    match before.expr {
        _ if asked => text.to_owned(),
        Expr::Or(_) => format!("({text}) {term}"),
        _ => format!("{text} {term}"),
    }
}

/// The filter without its last top-level term; a group in parentheses is one term. Of a text that is no filter, what
/// stands before its last space.
pub fn drop_last_term(text: &str) -> String {
    let cut = match parse(text) {
        Ok((_, cut)) => cut,
        Err(_) => text.trim_end().rfind(char::is_whitespace).unwrap_or(0),
    };
    text[..cut].trim_end().to_owned()
}

/// Whether a value can stand without quotes and still mean itself.
fn is_bare(value: &Written, target: &Target, op: Op) -> bool {
    let text = value.text.as_str();
    let plain = !text.is_empty()
        && !text.chars().any(|c| ends_word(c, true) || needs_quotes(c))
        && !text.chars().next().is_some_and(|c| cannot_begin(c, true));
    plain
        && match target.kind() {
            Kind::Words(words) => {
                let known = words().iter().any(|word| word.chars().map(fold_word).eq(text.chars().map(fold_word)));
                known || nearest(text, words().into_iter()).is_none()
            }
            // Without quotes `1..5` is a range and `007` is 7; with them they are texts.
            Kind::Attribute(measure) => {
                op.orders()
                    || Interval::read(text, measure).is_err()
                    || text.parse().is_ok_and(|number: u64| number.to_string() == text)
            }
            Kind::Text | Kind::Id | Kind::Number(_) | Kind::Flag | Kind::Worker | Kind::Check => true,
        }
}

fn quote(text: &str, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    use fmt::Write;
    f.write_char('"')?;
    for c in text.chars() {
        match c {
            '"' => f.write_str("\\\"")?,
            '\\' => f.write_str("\\\\")?,
            '\n' => f.write_str("\\n")?,
            '\r' => f.write_str("\\r")?,
            '\t' => f.write_str("\\t")?,
            c => f.write_char(c)?,
        }
    }
    f.write_char('"')
}

impl fmt::Display for Written {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.quoted {
            quote(&self.text, f)?
        } else {
            f.write_str(&self.text)?
        }
        f.write_str(if self.star { "*" } else { "" })
    }
}

/// Writes the name of a target.
struct Named<'a>(&'a Target);

impl fmt::Display for Named<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = match self.0 {
            Target::Field(row) => return f.write_str(row.id),
            Target::Evidence(row) => return f.write_str(row.id),
            Target::Attribute(name) => &**name,
        };
        let bare = !name.is_empty()
            && name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-' | '/' | '@'))
            && !name.starts_with('-')
            && !KEYWORDS.iter().any(|word| word.eq_ignore_ascii_case(name))
            && matches!(Target::of(name), Target::Attribute(_))
            && slip(name).is_none();
        if bare { f.write_str(name) } else { quote(name, f) }
    }
}

impl fmt::Display for Term {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", Named(&self.target), self.op.sign())?;
        for (index, value) in self.values.iter().enumerate() {
            write!(f, "{}{value}", if index > 0 { "," } else { "" })?;
        }
        Ok(())
    }
}

impl fmt::Display for Node {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let list = |nodes: &[Node], between: &str, f: &mut fmt::Formatter<'_>| {
            nodes.iter().enumerate().try_for_each(|(index, node)| {
                f.write_str(if index > 0 { between } else { "" })?;
                match node.expr {
                    Expr::Or(_) => write!(f, "({node})"),
                    _ => write!(f, "{node}"),
                }
            })
        };
        match &self.expr {
            Expr::Term(term) => write!(f, "{term}"),
            Expr::Text(needle) if needle.quoted => quote(&needle.text, f),
            Expr::Text(needle) => f.write_str(&needle.text),
            Expr::Not(inner) => match inner.expr {
                Expr::And(_) | Expr::Or(_) => write!(f, "-({inner})"),
                _ => write!(f, "-{inner}"),
            },
            Expr::And(nodes) => list(nodes, " ", f),
            Expr::Or(nodes) => list(nodes, " or ", f),
            Expr::Leg(inner) => write!(f, "leg({inner})"),
        }
    }
}

/// The canonical text: it parses to the same filter.
impl fmt::Display for Query {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.root.as_ref().map_or(Ok(()), |root| write!(f, "{root}"))
    }
}
