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

/// Controls, and what is not seen and yet changes the direction of text (Unicode's `Bidi_Control`), breaks lines or is no
/// character at all.
fn is_hostile(c: char) -> bool {
    match c {
        '\t' | '\n' | '\r' => false,
        '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => true,
        '\u{2028}' | '\u{2029}' | '\u{fff9}'..='\u{fffb}' | '\u{fffe}' | '\u{ffff}' => true,
        _ => c.is_control(),
    }
}

/// A text as part of a line of ours: scrubbed, and without the line breaks and tabs that [`scrub`] keeps. Whoever reads
/// our lines one by one, such as a CI that obeys some of them, reads none that others began.
pub fn one_line(text: &str) -> Cow<'_, str> {
    let breaks = |c: char| matches!(c, '\t' | '\n' | '\r');
    if text.bytes().all(plain) {
        return Cow::Borrowed(text);
    }
    let clean = scrub(text.as_bytes());
    if clean.contains(breaks) { Cow::Owned(clean.replace(breaks, " ")) } else { Cow::Owned(clean.into_owned()) }
}

/// A JSON text without the blanks between its parts.
pub fn without_blanks(json: &str) -> Cow<'_, str> {
    let (mut in_string, mut escaped) = (false, false);
    let mut is_blank = |c: char| {
        let quotes = c == '"' && !escaped;
        escaped = in_string && c == '\\' && !escaped;
        in_string ^= quotes;
        !in_string && c.is_ascii_whitespace()
    };
    let Some(first) = json.find(&mut is_blank) else { return Cow::Borrowed(json) };
    let mut out = String::with_capacity(json.len());
    out.push_str(&json[..first]);
    out.extend(json[first + 1..].chars().filter(|c| !is_blank(*c)));
    Cow::Owned(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn controls_are_replaced_and_text_is_kept() {
        assert_eq!(scrub(b"a\x1b[31mb\x07\x7f"), "a\u{fffd}[31mb\u{fffd}\u{fffd}");
        assert_eq!(scrub("a\u{9b}31m\u{202e}x".as_bytes()), "a\u{fffd}31m\u{fffd}x");
        assert_eq!(scrub(b"ab\xffcd"), "ab\u{fffd}cd");
        for hidden in "\u{61c}\u{200f}\u{2028}\u{2066}\u{fff9}\u{ffff}".chars() {
            assert_eq!(scrub(hidden.to_string().as_bytes()), "\u{fffd}");
        }
        assert_eq!(one_line("a\r\n::error::b\tc\u{1b}"), "a  ::error::b c\u{fffd}");
        assert!(matches!(one_line("plain"), Cow::Borrowed("plain")));
        for kept in ["tab\tline\n", "推理服务 👩‍🔬 é", ""] {
            assert!(matches!(scrub(kept.as_bytes()), Cow::Borrowed(text) if text == kept));
            assert!(is_clean(kept.as_bytes()));
        }
        assert!(!is_clean(b"\x00") && !is_clean(b"\xff"));
    }

    #[test]
    fn blanks_between_the_parts_of_json_go_and_those_within_stay() {
        for (json, expected) in [
            (r#"{"a":1,"b":" c \" d "}"#, r#"{"a":1,"b":" c \" d "}"#),
            (r#" { "a" : [ 1 , 2 ] , "b\\" : " \\" , "é" : null } "#, r#"{"a":[1,2],"b\\":" \\","é":null}"#),
            ("{\n\t\"a\": 1\r\n}", r#"{"a":1}"#),
        ] {
            assert_eq!(without_blanks(json), expected);
        }
    }
}
