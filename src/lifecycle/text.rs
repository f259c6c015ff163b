//! Remote text is hostile: what may stay in it and what is replaced, decided in one place.

use std::borrow::Cow;

/// The text with everything that could act on a terminal replaced by U+FFFD: C0 and C1 controls but tab, line feed
/// and carriage return; DEL; the bidirectional overrides and isolates. Invalid UTF-8 is replaced likewise.
/// Line breaks and tabs stay, so that filters and exports see what was sent; drawing shows them as signs.
pub fn scrub(bytes: &[u8]) -> Cow<'_, str> {
    let text = String::from_utf8_lossy(bytes);
    if text.bytes().all(plain) || !text.chars().any(is_hostile) {
        return text;
    }
    Cow::Owned(text.chars().map(|c| if is_hostile(c) { char::REPLACEMENT_CHARACTER } else { c }).collect())
}

/// Whether [`scrub`] would leave these bytes as they are.
#[inline]
pub fn is_clean(bytes: &[u8]) -> bool {
    bytes.iter().all(|byte| plain(*byte)) || matches!(scrub(bytes), Cow::Borrowed(_))
}

/// Printable ASCII: the common case, decided without looking at characters.
#[inline]
fn plain(byte: u8) -> bool {
    (0x20..0x7f).contains(&byte)
}

fn is_hostile(c: char) -> bool {
    match c {
        '\t' | '\n' | '\r' => false,
        '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => true,
        _ => c.is_control(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn controls_are_replaced_and_text_is_kept() {
        assert_eq!(scrub(b"a\x1b[31mb\x07\x7f"), "a\u{fffd}[31mb\u{fffd}\u{fffd}");
        assert_eq!(scrub("a\u{9b}31m\u{202e}x".as_bytes()), "a\u{fffd}31m\u{fffd}x");
        assert_eq!(scrub(b"ab\xffcd"), "ab\u{fffd}cd");
        for kept in ["tab\tline\n", "推理服务 👩‍🔬 é", ""] {
            assert!(matches!(scrub(kept.as_bytes()), Cow::Borrowed(text) if text == kept));
            assert!(is_clean(kept.as_bytes()));
        }
        assert!(!is_clean(b"\x00") && !is_clean(b"\xff"));
    }
}
