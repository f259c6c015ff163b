//! From text to filter. One pass, by descent; depth and length are bounded, and what is wrong is named where it stands.

use std::ops::Range;

use super::fields::{Kind, ROWS, Target};
use super::term::{Op, Term, Written};
use super::text::{Needle, nearest};
use super::{Error, Expr, MAX_DEPTH, MAX_LENGTH, Node};
use crate::lifecycle::catalogue;

/// The filter of a text, `None` for every request, and where the text ends without its last top-level term.
pub(super) fn parse(text: &str) -> Result<(Option<Node>, usize), Error> {
    if text.len() > MAX_LENGTH {
        let message = format!("expected at most {MAX_LENGTH} bytes, found {}", text.len());
        return Err(Error { span: 0..text.len(), message });
    }
    let mut parser = Parser { text, at: 0, depth: 0, cut: 0 };
    parser.space();
    if parser.rest().is_empty() {
        return Ok((None, 0));
    }
    let root = parser.or()?;
    match parser.peek() {
        None => Ok((Some(root), parser.cut)),
        Some(c) => Err(parser.here(format!("expected a term or the end, found {c:?} without its opening parenthesis"))),
    }
}

/// Whether a character ends a word without quotes. Values may hold more than names.
pub(super) fn ends_word(c: char, value: bool) -> bool {
    c.is_whitespace() || matches!(c, '(' | ')' | '"' | ',' | '|') || (!value && matches!(c, ':' | '=' | '<' | '>'))
}

/// Whether a character needs quotes wherever it stands: nothing here has the meaning it has in patterns.
pub(super) fn needs_quotes(c: char) -> bool {
    matches!(c, '[' | ']' | '{' | '}' | '\\' | '*')
}

/// Whether a word may not begin so without quotes.
pub(super) fn cannot_begin(c: char, value: bool) -> bool {
    matches!(c, '+' | '\'')
        || if value { matches!(c, '<' | '>' | '=' | ':' | '!') } else { matches!(c, '-' | '!' | '&') }
}

/// A name that stands for an attribute and is one slip away from a field.
pub(super) fn slip(name: &str) -> Option<&'static str> {
    let known = catalogue::ROWS.iter().any(|row| row.names.contains(&name));
    (!known && matches!(Target::of(name), Target::Attribute(_)))
        .then(|| nearest(name, ROWS.iter().flat_map(|row| std::iter::once(row.id).chain(row.aliases.iter().copied()))))
        .flatten()
}

/// Reads text; completion reads the part before its cursor with the same hands.
pub(super) struct Parser<'t> {
    pub text: &'t str,
    pub at: usize,
    pub depth: usize,
    pub cut: usize,
}

impl<'t> Parser<'t> {
    pub fn rest(&self) -> &'t str {
        &self.text[self.at..]
    }

    pub fn peek(&self) -> Option<char> {
        self.rest().chars().next()
    }

    pub fn space(&mut self) {
        self.at = self.text.len() - self.rest().trim_start().len();
    }

    pub fn eat(&mut self, sign: &str) -> bool {
        let found = self.rest().starts_with(sign);
        self.at += if found { sign.len() } else { 0 };
        found
    }

    /// Eats a word of the grammar, in any case, that stands alone.
    pub fn keyword(&mut self, word: &str) -> bool {
        let rest = self.rest();
        let Some((head, tail)) = rest.split_at_checked(word.len()) else { return false };
        let alone = tail.chars().next().is_none_or(|c| ends_word(c, true));
        // `and > 5` asks for an attribute of that name.
        let compared = Op::ALL.iter().any(|op| op.orders() && tail.trim_start().starts_with(op.sign()));
        let found = alone && !compared && head.eq_ignore_ascii_case(word);
        self.at += if found { word.len() } else { 0 };
        found
    }

    fn here(&self, message: String) -> Error {
        let end = self.at + self.peek().map_or(0, char::len_utf8);
        Error { span: self.at..end, message }
    }

    fn deeper<T>(&mut self, inner: impl FnOnce(&mut Self) -> Result<T, Error>) -> Result<T, Error> {
        if self.depth == MAX_DEPTH {
            return Err(self.here(format!("nested too deeply: expected at most {MAX_DEPTH} levels")));
        }
        self.depth += 1;
        let result = inner(self);
        self.depth -= 1;
        result
    }

    fn or(&mut self) -> Result<Node, Error> {
        let mut nodes = vec![self.and()?];
        loop {
            self.space();
            let before = self.at;
            if !(self.keyword("or") || self.eat("||") || self.eat("|")) {
                return Ok(Node::either(nodes));
            }
            self.cut_at(before);
            nodes.push(self.and()?);
        }
    }

    fn and(&mut self) -> Result<Node, Error> {
        let mut nodes = vec![self.not()?];
        loop {
            self.space();
            let before = self.at;
            if matches!(self.peek(), None | Some(')' | '|')) || self.keyword("or") {
                self.at = before;
                return Ok(Node::both(nodes));
            }
            let _ = self.keyword("and") || self.eat("&&") || self.eat("&");
            self.cut_at(before);
            nodes.push(self.not()?);
        }
    }

    fn cut_at(&mut self, at: usize) {
        if self.depth == 0 {
            self.cut = at;
        }
    }

    fn not(&mut self) -> Result<Node, Error> {
        self.space();
        let sign = matches!(self.peek(), Some('-' | '!'));
        if sign || self.keyword("not") {
            self.at += usize::from(sign);
            if sign && self.peek().is_none_or(char::is_whitespace) {
                return Err(self.here("expected a term right after the negation, found nothing".into()));
            }
            return Ok(Node::not(self.deeper(Self::not)?));
        }
        self.primary()
    }

    fn primary(&mut self) -> Result<Node, Error> {
        match self.peek() {
            None => Err(self.here("expected a term, found the end".into())),
            Some('(') => self.group(),
            Some(c @ (')' | ',' | '|' | '&' | ':' | '=' | '<' | '>')) => {
                Err(self.here(format!("expected a term such as outcome:cancelled or \"free text\", found {c:?}")))
            }
            Some(_) => self.term(),
        }
    }

    fn group(&mut self) -> Result<Node, Error> {
        let open = self.at;
        self.at += 1;
        self.space();
        if self.peek().is_none() {
            return Err(self.here("expected a term after (, found the end".into()));
        }
        let inner = self.deeper(Self::or)?;
        if self.eat(")") {
            return Ok(inner);
        }
        Err(Error { span: open..self.text.len(), message: "expected ) to close this (, found the end".into() })
    }

    fn term(&mut self) -> Result<Node, Error> {
        let start = self.at;
        for word in ["and", "or"] {
            if self.keyword(word) {
                let message = format!("expected a term, found {word}: quote \"{word}\" to search for it");
                return Err(Error { span: start..self.at, message });
            }
        }
        let name = self.word(false)?;
        if !name.quoted && name.text.eq_ignore_ascii_case("leg") && self.peek() == Some('(') {
            return Ok(Node::leg(self.group()?));
        }
        let span = start..self.at;
        let Some(op) = self.op() else {
            return self.free_text(name, span);
        };
        if !name.quoted
            && let Some(near) = slip(&name.text)
        {
            let message =
                format!("no field {0}: did you mean {near}? Quote \"{0}\" for an attribute of that name", name.text);
            return Err(Error { span, message });
        }
        let target = if name.quoted { Target::Attribute(name.text.into()) } else { Target::of(&name.text) };
        let values = self.values(&target, start, op)?;
        Term::new(target, op, values).map(Node::term)
    }

    fn free_text(&self, text: Written, span: Range<usize>) -> Result<Node, Error> {
        if text.star {
            let message = "a * stands only at the end of a field's value, such as session:s-30*: free text needs none";
            return Err(Error { span, message: message.into() });
        }
        if text.text.is_empty() {
            return Err(Error { span, message: "expected text between the quotes, found none".into() });
        }
        Ok(Node::text(Needle::new(&text.text, text.quoted)))
    }

    /// The operator here, if one is: `:` right after the name, the others also after space.
    pub fn op(&mut self) -> Option<Op> {
        let start = self.at;
        self.space();
        let spaced = self.at > start;
        let found = Op::ALL.into_iter().find(|op| (*op != Op::Is || !spaced) && self.eat(op.sign()));
        match found {
            None => self.at = start,
            // `:>5` is `>5`.
            Some(Op::Is) => return Op::ALL[1..].iter().copied().find(|op| self.eat(op.sign())).or(found),
            // `==` is `=`.
            Some(Op::Equals) => self.at += usize::from(self.rest().starts_with('=')),
            Some(_) => {}
        }
        found
    }

    fn values(&mut self, target: &Target, start: usize, op: Op) -> Result<Vec<(Written, Range<usize>)>, Error> {
        if op != Op::Is {
            self.space();
        }
        let set = self.eat("(");
        let mut values = Vec::new();
        loop {
            if set || !values.is_empty() {
                self.space();
            }
            let from = self.at;
            if self.peek().is_none_or(|c| c.is_whitespace() || matches!(c, ')' | ',' | '|' | '(')) {
                let found = self.peek().map_or("the end".into(), |c| format!("{c:?}"));
                let message = format!("expected {} after {}, found {found}", example(target), &self.text[start..from]);
                return Err(Error { span: start..from, message });
            }
            let value = self.word(true)?;
            values.push((value, from..self.at));
            if set {
                self.space();
                if self.eat(")") {
                    return Ok(values);
                }
                if !(self.eat(",") || self.eat("|") || self.keyword("or")) {
                    return Err(self.here("expected , and another value, or ) to close the list".into()));
                }
            } else if !self.eat(",") {
                return match self.peek() {
                    Some(c @ ('|' | '(' | '"')) => Err(self.here(format!(
                        "expected a space or , after the value, found {c:?}: a list is written a,b and a choice a or b"
                    ))),
                    _ => Ok(values),
                };
            }
        }
    }

    /// A word or quoted text; `value` says on which side of an operator.
    pub fn word(&mut self, value: bool) -> Result<Written, Error> {
        if self.peek() == Some('"') {
            let text = self.quoted()?;
            return Ok(Written { text, quoted: true, star: value && self.eat("*") });
        }
        let from = self.at;
        for (offset, c) in self.rest().char_indices() {
            let differs = c == '!' && !value && self.text[from + offset..].starts_with("!=");
            if ends_word(c, value) || differs {
                break;
            }
            self.at = from + offset;
            if offset == 0 && cannot_begin(c, value) {
                return Err(self.here(format!("expected a word, found {c:?}: text that begins so needs quotes")));
            }
            let last = self.text[self.at + c.len_utf8()..].chars().next().is_none_or(|next| ends_word(next, value));
            if c == '*' && last && (value || offset > 0) {
                self.at += 1;
                return Ok(Written { text: self.text[from..self.at - 1].into(), quoted: false, star: true });
            }
            if needs_quotes(c) {
                let hint =
                    if c == '*' { "a * stands only at the end of a field's value" } else { "there are no patterns" };
                return Err(self.here(format!("{c:?} needs quotes here: {hint}")));
            }
            self.at += c.len_utf8();
        }
        Ok(Written { text: self.text[from..self.at].into(), quoted: false, star: false })
    }

    fn quoted(&mut self) -> Result<String, Error> {
        let open = self.at;
        let mut text = String::new();
        let mut chars = self.rest().char_indices().skip(1);
        while let Some((offset, c)) = chars.next() {
            match c {
                '"' => {
                    self.at = open + offset + 1;
                    return Ok(text);
                }
                '\\' => text.push(match chars.next() {
                    Some((_, c @ ('"' | '\\'))) => c,
                    Some((_, 'n')) => '\n',
                    Some((_, 'r')) => '\r',
                    Some((_, 't')) => '\t',
                    Some((at, c)) => {
                        let span = open + offset..open + at + c.len_utf8();
                        let message = format!("expected \\\" \\\\ \\n \\r or \\t, found \\{c}");
                        return Err(Error { span, message });
                    }
                    None => break,
                }),
                c => text.push(c),
            }
        }
        Err(Error { span: open..self.text.len(), message: "expected \" to close this quote, found the end".into() })
    }
}

/// What may stand after a field's operator.
fn example(target: &Target) -> String {
    match target.kind() {
        Kind::Text | Kind::Attribute(_) => "a value or * for any".into(),
        Kind::Id => "an id or its beginning".into(),
        Kind::Words(words) => format!("one of {}", words().join(", ")),
        Kind::Number(measure) => format!("{} or a range a..b", measure.unit.expected()),
        Kind::Flag => "true or false".into(),
        Kind::Worker => "a worker such as 7587890, 7f3a or 7f3a:0".into(),
        Kind::Check => "violated, unknown, holds or a check's id".into(),
    }
}

impl Node {
    fn term(term: Term) -> Self {
        Self { lazy: term.target.lazy(), expr: Expr::Term(term) }
    }

    fn text(needle: Needle) -> Self {
        Self { lazy: true, expr: Expr::Text(needle) }
    }

    fn not(inner: Self) -> Self {
        Self { lazy: inner.lazy, expr: Expr::Not(Box::new(inner)) }
    }

    fn leg(inner: Self) -> Self {
        Self { lazy: inner.lazy, expr: Expr::Leg(Box::new(inner)) }
    }

    /// All of them; what is already such a list becomes part of it.
    fn both(nodes: Vec<Self>) -> Self {
        Self::list(nodes, Expr::And, |expr| match expr {
            Expr::And(nodes) => Ok(nodes),
            other => Err(other),
        })
    }

    /// Any of them.
    fn either(nodes: Vec<Self>) -> Self {
        Self::list(nodes, Expr::Or, |expr| match expr {
            Expr::Or(nodes) => Ok(nodes),
            other => Err(other),
        })
    }

    fn list(nodes: Vec<Self>, wrap: fn(Vec<Self>) -> Expr, open: fn(Expr) -> Result<Vec<Self>, Expr>) -> Self {
        let mut flat = Vec::with_capacity(nodes.len());
        for node in nodes {
            match open(node.expr) {
                Ok(inner) => flat.extend(inner),
                Err(expr) => flat.push(Self { expr, lazy: node.lazy }),
            }
        }
        if flat.len() == 1
            && let Some(only) = flat.pop()
        {
            return only;
        }
        Self { lazy: flat.iter().any(|node| node.lazy), expr: wrap(flat) }
    }
}
