//! Copying by OSC 52: the terminal, not this program, holds the clipboard, so it works over SSH. Nobody answers, so what
//! is said is how it was sent, not that it arrived (field case B57).

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;

/// Terminals take about this many bytes of base64; more is dropped without a word.
const MOST: usize = 74_994;

/// What to write to the terminal to copy `text`. Inside tmux both as it is, which tmux takes when `set-clipboard` is on, and
/// wrapped, which it passes on when `allow-passthrough` is on (off by default since 3.3); either alone is often dropped.
///
/// # Errors
/// A sentence for the screen when the text is longer than terminals take.
pub fn sequence(text: &str, in_tmux: bool) -> Result<String, String> {
    let encoded = BASE64.encode(text);
    if encoded.len() > MOST {
        return Err(format!(
            "too long to copy: {}, terminals take about {}",
            crate::view::format::bytes(text.len() as u64),
            crate::view::format::bytes(MOST as u64 * 3 / 4)
        ));
    }
    let plain = format!("\x1b]52;c;{encoded}\x07");
    Ok(if in_tmux { format!("{plain}\x1bPtmux;{}\x1b\\", plain.replace('\x1b', "\x1b\x1b")) } else { plain })
}

/// How it was sent, for the screen.
pub fn told(what: &str, in_tmux: bool) -> String {
    format!("{what} sent to the terminal by OSC 52{}", if in_tmux { " through tmux" } else { "" })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sequence_is_wrapped_for_tmux() {
        assert_eq!(sequence("id", false).unwrap(), "\x1b]52;c;aWQ=\x07");
        assert_eq!(sequence("id", true).unwrap(), "\x1b]52;c;aWQ=\x07\x1bPtmux;\x1b\x1b]52;c;aWQ=\x07\x1b\\");
        assert!(sequence(&"x".repeat(100_000), false).unwrap_err().contains("97.7 KiB"));
    }
}
