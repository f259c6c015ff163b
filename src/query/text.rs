//! Comparing text without regard to case and without allocating.

use std::fmt;

use memchr::memchr2_iter;

/// A character without its case. One to one, so that positions stay; ASCII only ever meets ASCII.
pub(super) fn fold(c: char) -> char {
    if c.is_ascii() {
        return c.to_ascii_lowercase();
    }
    let mut lower = c.to_lowercase();
    match (lower.next(), lower.next()) {
        (Some(single), None) if !single.is_ascii() => single,
        _ => c,
    }
}

/// [`fold`] for words of our own: `timed out`, `timed-out` and `timed_out` are one.
pub(super) fn fold_word(c: char) -> char {
    match fold(c) {
        '_' | '-' => ' ',
        other => other,
    }
}

/// What a text value must be.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Pattern {
    Any,
    Whole(Box<str>),
    Start(Box<str>),
}

impl Pattern {
    /// `folding` must be the one that [`Self::holds`] is asked with.
    pub fn new(text: &str, star: bool, folding: impl Fn(char) -> char) -> Self {
        let folded: String = text.chars().map(folding).collect();
        match (star, folded.is_empty()) {
            (true, true) => Self::Any,
            (true, false) => Self::Start(folded.into()),
            (false, _) => Self::Whole(folded.into()),
        }
    }

    #[inline]
    pub fn holds(&self, text: &str, folding: impl Fn(char) -> char) -> bool {
        let mut chars = text.chars().map(folding);
        match self {
            Self::Any => true,
            Self::Whole(whole) => chars.eq(whole.chars()),
            Self::Start(start) => start.chars().all(|c| chars.next() == Some(c)),
        }
    }

    /// Whether a text of lower-case ASCII, given character by character, is meant.
    pub fn holds_chars(&self, mut chars: impl Iterator<Item = char>) -> bool {
        match self {
            Self::Any => true,
            Self::Whole(whole) => chars.eq(whole.chars()),
            Self::Start(start) => start.chars().all(|c| chars.next() == Some(c)),
        }
    }
}

/// A piece of text to be found inside others, in time linear in theirs (Knuth, Morris, Pratt).
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Needle {
    /// As written, for writing back.
    pub text: Box<str>,
    pub quoted: bool,
    /// Could be part of an id of digits, hex digits and a rank, so that others need not be written out for it.
    pub in_ids: bool,
    folded: Box<[char]>,
    /// Per position, the longest proper beginning that also ends there.
    back: Box<[u16]>,
}

impl Needle {
    /// `text` is not empty and at most [`super::MAX_LENGTH`] long.
    pub fn new(text: &str, quoted: bool) -> Self {
        let folded: Box<[char]> = text.chars().map(fold).collect();
        let mut back = vec![0u16; folded.len()];
        let mut length = 0;
        for at in 1..folded.len() {
            while length > 0 && folded[at] != folded[length] {
                length = usize::from(back[length - 1]);
            }
            length += usize::from(folded[at] == folded[length]);
            back[at] = length as u16;
        }
        let in_ids = folded.iter().all(|c| c.is_ascii_hexdigit() || *c == ':');
        Self { text: text.into(), quoted, in_ids, folded, back: back.into() }
    }

    /// Whether the needle is somewhere in `text`.
    pub fn is_in(&self, text: &str) -> bool {
        let Some(first) = self.folded.first() else { return true };
        if !self.text.is_ascii() {
            return self.walk(text.chars().map(fold), &mut 0);
        }
        // Bytes above ASCII become characters that are in no ASCII needle.
        let (bytes, low) = (text.as_bytes(), *first as u8);
        let mut from = 0;
        for start in memchr2_iter(low, low.to_ascii_uppercase(), bytes) {
            if start < from {
                continue;
            }
            if bytes.len() - start < self.folded.len() {
                return false;
            }
            let mut seen = 0;
            if self.walk(bytes[start..].iter().map(|byte| char::from(byte.to_ascii_lowercase())), &mut seen) {
                return true;
            }
            from = start + seen;
        }
        false
    }

    /// Walks until the needle is found or nothing of it is left to go on from; `seen` counts what was walked over when
    /// that happened.
    fn walk(&self, chars: impl Iterator<Item = char>, seen: &mut usize) -> bool {
        let ascii = self.text.is_ascii();
        let mut length = 0;
        for c in chars {
            while length > 0 && self.folded[length] != c {
                length = usize::from(self.back[length - 1]);
            }
            length += usize::from(self.folded[length] == c);
            *seen += 1;
            if length == self.folded.len() {
                return true;
            }
            if length == 0 && ascii {
                return false;
            }
        }
        false
    }
}

/// A small text on the stack: numbers and ids are looked at without allocating.
pub(super) struct Small {
    bytes: [u8; 48],
    length: usize,
}

impl Small {
    /// What `args` writes; cut at 48 bytes.
    pub fn of(args: fmt::Arguments<'_>) -> Self {
        let mut small = Self { bytes: [0; 48], length: 0 };
        let _ = fmt::write(&mut small, args);
        small
    }

    pub fn as_str(&self) -> &str {
        std::str::from_utf8(&self.bytes[..self.length]).unwrap_or("")
    }
}

impl fmt::Write for Small {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let room = self.bytes.get_mut(self.length..self.length + text.len()).ok_or(fmt::Error)?;
        room.copy_from_slice(text.as_bytes());
        self.length += text.len();
        Ok(())
    }
}

/// The candidate that `word` is most likely a slip of: one edit away for words of five letters and
/// more, two from eight on. Shorter words are too like each other.
pub(super) fn nearest<'a>(word: &str, candidates: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let length = word.chars().count();
    let allowed = match length {
        0..=4 | 40.. => return None,
        5..=7 => 1,
        _ => 2,
    };
    within(word, allowed, candidates)
}

/// The same for words out of a short list that the user is known to mean, such as the names of settings: a slip in a
/// word of three letters counts, too.
pub fn meant<'a>(word: &str, candidates: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    match word.chars().count() {
        0..=2 | 40.. => None,
        3..=5 => within(word, 1, candidates),
        _ => within(word, 2, candidates),
    }
}

fn within<'a>(word: &str, allowed: usize, candidates: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let length = word.chars().count();
    candidates
        .filter(|candidate| candidate.len().abs_diff(length) <= allowed)
        .map(|candidate| (distance(word, candidate), candidate))
        .filter(|(distance, _)| (1..=allowed).contains(distance))
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}

/// Edits between two words: letters put in, left out, changed, or two neighbours swapped.
fn distance(a: &str, b: &str) -> usize {
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().map(fold).collect(), b.chars().map(fold).collect());
    let mut before: Vec<usize> = Vec::new();
    let mut above: Vec<usize> = (0..=b.len()).collect();
    for i in 1..=a.len() {
        let mut row = vec![i];
        for j in 1..=b.len() {
            let changed = above[j - 1] + usize::from(a[i - 1] != b[j - 1]);
            let mut least = changed.min(above[j] + 1).min(row[j - 1] + 1);
            if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                least = least.min(before[j - 2] + 1);
            }
            row.push(least);
        }
        before = std::mem::replace(&mut above, row);
    }
    above[b.len()]
}
