//! How an attribute is to be written: as one piece, or as the piece of its key with a value beside it.
//!
//! Owns: the choice, from what the attribute is and how often its like was seen. Keeps out: spans, and what attributes mean
//! but for the ids that come under several keys.

use super::interner::{Interner, NONE};
use crate::lifecycle::body::Code;
use crate::lifecycle::catalogue::Field;
use crate::lifecycle::packed;
use crate::lifecycle::text;

/// How an attribute is written.
#[derive(Clone, Copy)]
pub struct Found {
    /// The piece of its key; [`NONE`] when it is not in the usual form.
    pub key: u32,
    /// The piece of the whole of it, or of its value; [`NONE`] when the value is written in place.
    pub piece: u32,
    pub form: Form,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Form {
    Piece,
    Int,
    Text,
    Keyed,
}

/// From how many texts never seen before on the texts of a key are taken for measured ones, which
/// are not worth a piece: a piece costs about a hundred bytes beside its text.
const MEASURED: u8 = 8;

/// Integers that come again and again, such as line numbers: a piece of theirs is shorter than they are.
const FEW: std::ops::Range<i64> = 0..1024;

/// Keys whose pieces have a greater number than this are not watched for measured texts.
const MOST_KEYS: usize = 1 << 16;

/// The longest text that is written in place, or apart from its key.
const LONGEST: usize = 64;

/// The codes of an event's or link's attributes, held.
pub fn codes_of<'a>(attrs: &mut Interner, news: &mut Vec<u8>, cleaned: &mut u64, raw: &[&'a [u8]]) -> Vec<Code<'a>> {
    let mut of = |raw: &&'a [u8]| {
        let found = Finder { attrs, news, cleaned }.keep_new(raw);
        let code = code(attrs, found, raw);
        hold(attrs, code, &mut NONE.clone());
        if found.form == Form::Piece && found.key != NONE {
            attrs.drop_unheld(found.key);
        }
        code
    };
    raw.iter().map(&mut of).collect()
}

/// What is written for an attribute that was found like this.
#[inline]
pub fn code<'a>(attrs: &Interner, found: Found, raw: &'a [u8]) -> Code<'a> {
    let Found { key, piece, form } = found;
    let value = || raw.get(attrs.get(key).len()..).unwrap_or(&[]);
    match form {
        Form::Piece => Code::Piece(piece),
        Form::Keyed => Code::Keyed(key, piece),
        Form::Int => Code::Int(key, int_value(value()).unwrap_or(0)),
        Form::Text => Code::Text(key, value().get(BEFORE_TEXT..).unwrap_or(&[])),
    }
}

/// Holds what a code points to; notes the piece of a request's id.
#[inline]
pub fn hold(attrs: &mut Interner, code: Code<'_>, rid: &mut u32) {
    let is_rid = attrs.hold(code.piece()) == Field::RequestId;
    match code {
        Code::Keyed(_, value) => {
            attrs.hold(value);
            if is_rid {
                *rid = value;
            }
        }
        Code::Piece(piece) if is_rid => *rid = piece,
        _ => {}
    }
}

pub fn hold_one(attrs: &mut Interner, piece: u32) {
    if piece != NONE {
        attrs.hold(piece);
    }
}

pub fn release_one(attrs: &mut Interner, piece: u32) {
    if piece != NONE {
        attrs.release(piece);
    }
}

/// Finds out how an attribute is to be written.
pub struct Finder<'a> {
    pub attrs: &'a mut Interner,
    pub news: &'a mut Vec<u8>,
    pub cleaned: &'a mut u64,
}

impl Finder<'_> {
    /// An attribute that is byte for byte that of the predecessor.
    #[inline]
    pub fn again(&mut self, old: Found) -> Found {
        if old.form == Form::Text
            && let Some(news) = self.news.get_mut(old.key as usize)
        {
            *news /= 2;
        }
        old
    }

    /// An attribute that differs from its predecessor: usually the same key with another value.
    #[inline]
    pub fn other(&mut self, old: Found, raw: &[u8]) -> Found {
        if old.key != NONE
            && let Some(value) = raw.strip_prefix(self.attrs.get(old.key))
        {
            return self.valued(old.key, value, raw);
        }
        self.keep_new(raw)
    }

    pub fn keep_new(&mut self, raw: &[u8]) -> Found {
        match key_and_value(raw) {
            Some((key, value)) => {
                let key = self.attrs.keep(key, || field_of(key));
                self.valued(key, value, raw)
            }
            None => Found { key: NONE, piece: self.whole(raw).0, form: Form::Piece },
        }
    }

    fn valued(&mut self, key: u32, value: &[u8], raw: &[u8]) -> Found {
        let number = int_value(value);
        if number.is_some_and(|number| !FEW.contains(&number)) {
            return Found { key, piece: NONE, form: Form::Int };
        }
        if number.is_some() || !is_text(value) {
            return Found { key, piece: self.whole(raw).0, form: Form::Piece };
        }
        if names_a_request(self.attrs.field(key)) {
            return Found { key, piece: self.attrs.keep(value, || Field::Other), form: Form::Keyed };
        }
        let at = key as usize;
        if self.news.get(at).is_some_and(|news| *news >= MEASURED) {
            self.news[at] = self.news[at].saturating_add(1);
            return Found { key, piece: NONE, form: Form::Text };
        }
        let (piece, is_new) = self.whole(raw);
        if is_new && at < MOST_KEYS {
            if self.news.len() <= at {
                self.news.resize(at + 1, 0);
            }
            self.news[at] += 1;
        } else if let Some(news) = self.news.get_mut(at) {
            *news /= 2;
        }
        Found { key, piece, form: Form::Piece }
    }

    /// The piece of the whole attribute, and whether it was never seen before.
    fn whole(&mut self, raw: &[u8]) -> (u32, bool) {
        let cleaned = &mut *self.cleaned;
        let clean = |raw| {
            let clean = packed::clean(raw);
            *cleaned += u64::from(*clean != *raw);
            clean
        };
        self.attrs.keep_clean(raw, clean, field_of)
    }
}

/// Ids come with each span of their request and under several keys: their values are kept apart.
fn names_a_request(field: Field) -> bool {
    matches!(field, Field::RequestId | Field::XRequestId | Field::OperationId | Field::SessionId)
}

/// The key field and the value field of an attribute in the usual form with a clean key, each whole.
#[inline]
fn key_and_value(raw: &[u8]) -> Option<(&[u8], &[u8])> {
    let [0x0a, length @ 0..=0x7f, ..] = raw else { return None };
    let (key, value) = raw.split_at_checked(2 + usize::from(*length))?;
    text::is_clean(&key[2..]).then_some((key, value))
}

/// What stands before the text in [`is_text`]'s form, bytes.
const BEFORE_TEXT: usize = 4;

/// Whether this is `12 len 0a len text`: the value field of an attribute that holds nothing but a short clean text.
#[inline]
fn is_text(value: &[u8]) -> bool {
    let [0x12, outer, 0x0a, inner, text @ ..] = value else { return false };
    let fits = usize::from(*outer) == text.len() + 2 && usize::from(*inner) == text.len() && text.len() <= LONGEST;
    fits && text::is_clean(text)
}

/// The integer in `12 len 18 varint`: the value field of an attribute that holds nothing but an integer.
#[inline]
fn int_value(value: &[u8]) -> Option<i64> {
    let [0x12, length, 0x18, rest @ ..] = value else { return None };
    let mut rest = rest;
    if usize::from(*length) != rest.len() + 1 {
        return None;
    }
    let number = packed::varint(&mut rest)?;
    rest.is_empty().then_some(number as i64)
}

fn field_of(attribute: &[u8]) -> Field {
    Field::of(packed::read(attribute).0)
}
