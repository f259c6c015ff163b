//! Texts that are JSON by its grammar and yet no reader's: what is wrong with them is replaced, so that the rest can be read.
//! Owns: lone surrogates, numbers beyond all bounds. Keeps out: everything else that is not JSON, which is refused.

/// The text with every `\ud800`–`\udfff` that is not half of a pair replaced by `\ufffd`, and how many there were; every
/// number too large for any is replaced by the text that says so. `None` when there is nothing to replace.
pub(super) fn repaired(text: &str) -> Option<(String, u64)> {
    let bytes = text.as_bytes();
    let (mut out, mut from, mut at, mut count) = (String::new(), 0, 0, 0);
    let mut quoted = false;
    while let Some(byte) = bytes.get(at) {
        match byte {
            b'"' => {
                quoted = !quoted;
                at += 1;
            }
            b'\\' if quoted => match (unit(bytes, at), unit(bytes, at + 6)) {
                (Some(0xd800..=0xdbff), Some(0xdc00..=0xdfff)) => at += 12,
                (Some(0xd800..=0xdfff), _) => {
                    out.push_str(&text[from..at]);
                    out.push_str("\\ufffd");
                    at += 6;
                    from = at;
                    count += 1;
                }
                (Some(_), _) => at += 6,
                // Past the backslash and what it escapes; one at the end of the text is the parser's to refuse.
                (None, _) => at += 1 + usize::from(bytes.get(at + 1).is_some_and(u8::is_ascii)),
            },
            b'-' | b'0'..=b'9' if !quoted => {
                let length = bytes[at..]
                    .iter()
                    .take_while(|byte| matches!(byte, b'0'..=b'9' | b'+' | b'-' | b'.' | b'e' | b'E'));
                let number = &text[at..at + length.count()];
                if number.parse().is_ok_and(f64::is_infinite) {
                    out.push_str(&text[from..at]);
                    out.push_str(if number.starts_with('-') { "\"-Infinity\"" } else { "\"Infinity\"" });
                    from = at + number.len();
                }
                at += number.len();
            }
            _ if quoted => at += memchr::memchr2(b'"', b'\\', &bytes[at..]).unwrap_or(bytes.len() - at),
            _ => at += 1,
        }
    }
    (from > 0).then(|| {
        out.push_str(&text[from..]);
        (out, count)
    })
}

/// The UTF-16 unit that is escaped at a place.
fn unit(bytes: &[u8], at: usize) -> Option<u16> {
    let digits = bytes.get(at..at + 6)?.strip_prefix(b"\\u")?;
    u16::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()
}
