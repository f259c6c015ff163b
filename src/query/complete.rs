//! What may stand at the cursor: names of fields, operators, values that are known or have been seen.

use std::ops::Range;

use crate::lifecycle::catalogue;

use super::eval::Answer;
use super::fields::{Kind, ROWS, Row, Target, row};
use super::number::Unit;
use super::parse::{Parser, ends_word};
use super::term::Op;
use super::text::fold;
use super::write::{Name, term};

/// One thing that may stand at the cursor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Completion {
    /// The bytes of the text that it replaces.
    pub replace: Range<usize>,
    /// What comes there.
    pub text: String,
    /// What it is; may be empty.
    pub doc: &'static str,
}

/// What has been seen, most usual first.
pub trait Vocabulary {
    /// Values of a field, by its id in [`super::ROWS`] or the evidence catalogue: workers (`worker`, `best.worker`, …),
    /// sessions, models, classes, reasons, check ids (`check`), ….
    fn values(&self, field: &str) -> Vec<String>;

    /// Names of attributes that are no fields.
    fn attributes(&self) -> Vec<String>;

    /// Values of an attribute.
    fn attribute_values(&self, key: &str) -> Vec<String> {
        let _ = key;
        Vec::new()
    }
}

/// Nothing has been seen.
impl Vocabulary for () {
    fn values(&self, _: &str) -> Vec<String> {
        Vec::new()
    }

    fn attributes(&self) -> Vec<String> {
        Vec::new()
    }
}

/// How many are offered at most.
const MOST: usize = 64;

/// What may stand at the cursor, a byte offset (one inside a character counts as before it). Names that begin with what
/// is there come before those that hold it.
pub fn complete(text: &str, cursor: usize, seen: &dyn Vocabulary) -> Vec<Completion> {
    let mut cursor = cursor.min(text.len());
    while !text.is_char_boundary(cursor) {
        cursor -= 1;
    }
    let mut offers = match place(&text[..cursor]) {
        Some(Place::Name(from)) => names(text, from..cursor, seen),
        Some(Place::Value { target, op, from }) => values(text, &target, op, from..cursor, seen),
        None => Vec::new(),
    };
    offers.truncate(MOST);
    offers
}

/// What the cursor stands in.
enum Place {
    /// A name or free text, from here.
    Name(usize),
    /// A field's value, from here.
    Value { target: Target, op: Op, from: usize },
}

/// Reads the text before the cursor; `None` where nothing can be offered, such as in a quote of free text.
fn place(before: &str) -> Option<Place> {
    let mut at = Parser { text: before, at: 0, depth: 0, cut: 0 };
    loop {
        while at.peek().is_some_and(|c| c.is_whitespace() || matches!(c, '(' | ')' | '-' | '!' | '|' | '&' | ',')) {
            at.at += at.peek().map_or(0, char::len_utf8);
        }
        let from = at.at;
        if at.rest().is_empty() {
            return Some(Place::Name(from));
        }
        let name = at.word(false).ok()?;
        if at.rest().is_empty() && !name.quoted {
            return Some(Place::Name(from));
        }
        let Some(op) = at.op() else {
            if at.at == from {
                return None;
            }
            continue;
        };
        let target = if name.quoted { Target::Attribute(name.text.into()) } else { Target::of(&name.text) };
        if op != Op::Is {
            at.space();
        }
        let set = at.eat("(");
        loop {
            at.space_if(set);
            let from = at.at;
            if at.rest().is_empty() {
                return Some(Place::Value { target, op, from });
            }
            match at.word(true) {
                Ok(_) if at.rest().is_empty() => return Some(Place::Value { target, op, from }),
                Ok(_) => {}
                // An open quote: what is in it may become a value.
                Err(_) if before[from..].starts_with('"') => return Some(Place::Value { target, op, from }),
                Err(_) => return None,
            }
            at.space_if(set);
            if !at.eat(",") {
                break;
            }
            at.space();
        }
    }
}

impl Parser<'_> {
    fn space_if(&mut self, set: bool) {
        if set {
            self.space();
        }
    }
}

/// How well an offer fits what is there: it begins so, or holds it; `None` when neither.
fn fit(offer: &str, typed: &str) -> Option<u8> {
    let lower = |text: &str| text.chars().map(fold).collect::<String>();
    let (offer, typed) = (lower(offer), lower(typed));
    if offer.starts_with(&typed) {
        Some(0)
    } else if offer.contains(&typed) {
        Some(1)
    } else {
        None
    }
}

fn names(text: &str, typed: Range<usize>, seen: &dyn Vocabulary) -> Vec<Completion> {
    let word = &text[typed.clone()];
    let end = text[typed.end..].find(|c| ends_word(c, false)).map_or(text.len(), |at| typed.end + at);
    let replace = typed.start..end;
    let followed = Op::ALL.iter().any(|op| text[end..].starts_with(op.sign()));
    let mut offers: Vec<(u8, Completion)> = Vec::new();
    let mut offer = |name: &str, shown: String, doc| {
        if let Some(fit) = fit(name, word) {
            offers.push((fit, Completion { replace: replace.clone(), text: shown, doc }));
        }
    };
    let with_op = |name: &str, op: Op| if followed { name.to_owned() } else { format!("{name}{}", op.sign()) };
    for Row { id, aliases, doc, get, .. } in ROWS {
        if std::iter::once(id).chain(*aliases).any(|name| *name == word) && !followed {
            for op in ops(get.kind()) {
                offer(word, format!("{id}{}", op.sign()), doc);
            }
            continue;
        }
        let alias = aliases.iter().find(|alias| !word.is_empty() && fit(alias, word) == Some(0));
        offer(alias.unwrap_or(id), with_op(id, Op::Is), doc);
    }
    if !word.is_empty() {
        for (name, doc) in [
            ("or", "one or the other"),
            ("not", "what does not"),
            ("and", "both; the same as a space"),
            ("leg(", "all of it in one leg"),
        ] {
            offer(name, name.to_owned(), doc);
        }
        for evidence in catalogue::ROWS.iter().filter(|evidence| row(evidence.id).is_none()) {
            offer(evidence.id, with_op(evidence.id, Op::Is), evidence.label);
        }
        for key in seen.attributes() {
            let named = term(Name::Attribute(&key), Op::Is, "");
            let named = named.strip_suffix(":\"\"").unwrap_or(&named);
            offer(&key, with_op(named, Op::Is), "attribute");
        }
    }
    offers.sort_by_key(|(fit, _)| *fit);
    offers.into_iter().map(|(_, offer)| offer).collect()
}

fn ops(kind: Kind) -> &'static [Op] {
    match kind {
        Kind::Number(_) | Kind::Attribute(_) => &[Op::Is, Op::Above, Op::AtLeast, Op::Below, Op::AtMost, Op::Differs],
        _ => &[Op::Is, Op::Differs],
    }
}

fn values(text: &str, target: &Target, op: Op, typed: Range<usize>, seen: &dyn Vocabulary) -> Vec<Completion> {
    let (field, hints, known): (Name<'_>, &[&'static str], Vec<String>) = match target {
        Target::Field(row) => (Name::Field(row.id), row.hints, seen.values(row.id)),
        Target::Evidence(row) => (Name::Field(row.id), &[], seen.values(row.id)),
        Target::Attribute(key) => (Name::Attribute(key), &[], seen.attribute_values(key)),
    };
    let raw = &text[typed.clone()];
    let open = raw.starts_with('"');
    let word = raw.trim_matches('"');
    let end = if open {
        text[typed.end..].find('"').map_or(typed.end, |at| typed.end + at + 1)
    } else {
        text[typed.end..].find(|c| ends_word(c, true)).map_or(text.len(), |at| typed.end + at)
    };
    let mut words: Vec<(String, &'static str)> = Vec::new();
    match target.kind() {
        Kind::Words(known) => words.extend(known().into_iter().map(|word| (word.to_owned(), ""))),
        Kind::Flag => words.extend(["true", "false"].map(|word| (word.to_owned(), ""))),
        Kind::Check => words.extend(Answer::ALL.map(|answer| (answer.word().to_owned(), "an answer"))),
        Kind::Number(measure) | Kind::Attribute(measure) if measure.unit != Unit::Plain => {
            let digits = !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
            let units = measure.unit.suffixes().iter().filter(|(name, _)| digits && name.is_ascii());
            words.extend(units.map(|(unit, _)| (format!("{word}{unit}"), "")));
        }
        _ => {}
    }
    words.extend(known.into_iter().map(|value| (value, "seen")));
    words.extend(hints.iter().map(|hint| ((*hint).to_owned(), "")));
    let mut offers: Vec<(u8, Completion)> = Vec::new();
    for (value, doc) in words {
        let written = term(field, op, &value);
        let prefix = term(field, op, "").len() - 2;
        let text = written[prefix..].to_owned();
        let Some(fit) = fit(&value, word) else { continue };
        if offers.iter().all(|(_, offer)| offer.text != text) {
            offers.push((fit, Completion { replace: typed.start..end, text, doc }));
        }
    }
    offers.sort_by_key(|(fit, _)| *fit);
    offers.into_iter().map(|(_, offer)| offer).collect()
}
