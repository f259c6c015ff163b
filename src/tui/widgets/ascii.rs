//! The fallback for terminals and fonts without Unicode: every sign of the program's own as a letter or mark of ASCII.
//! Texts that came from outside stay as they are.

use ratatui::buffer::Buffer;

/// What stands for a sign; `None` for what is no sign of the program's.
fn plain(sign: &str) -> Option<&'static str> {
    let mut chars = sign.chars();
    let (first, None) = (chars.next()?, chars.next()) else { return None };
    Some(match first {
        '\u{2800}'..='\u{28ff}' => match (first as u32 - 0x2800).count_ones() {
            0 => " ",
            1..=2 => ".",
            3..=5 => ":",
            _ => "#",
        },
        '▁' | '▂' => ".",
        '▃' | '▄' | '▅' => ":",
        '▆' | '▇' | '█' | '▉' | '▊' | '▋' | '▌' => "#",
        '▍' | '▎' | '▏' => "|",
        '─' | '━' | '┄' => "-",
        '│' => "|",
        '╭' | '╮' | '╰' | '╯' | '┤' | '└' | '├' => "+",
        '┝' => "[",
        '┥' => "]",
        '▸' => ">",
        '▾' | '▴' => "^",
        '●' => "@",
        '◉' => "@",
        '○' => "o",
        '◌' => "~",
        '•' => "*",
        '·' => ".",
        '–' | '−' => "-",
        '…' => ".",
        '✓' => "+",
        '✕' => "x",
        '↯' => "!",
        '⧗' => "t",
        '⚠' => "!",
        '⚑' => "F",
        '∅' => "0",
        '↻' => "r",
        '↷' => ">",
        '→' => ">",
        '←' => "<",
        '↑' => "^",
        '↓' => "v",
        '≠' => "#",
        '⇥' => "t",
        '⇤' => "<",
        '⊘' => "/",
        '⌃' => "^",
        '⋯' => ".",
        'ʳ' | '®' => "R",
        '␊' | '␉' => "_",
        'µ' => "u",
        _ => return None,
    })
}

/// Draws everything anew in ASCII.
pub fn in_ascii(buf: &mut Buffer) {
    for cell in &mut buf.content {
        if let (false, Some(sign)) = (cell.symbol().is_ascii(), plain(cell.symbol())) {
            cell.set_symbol(sign);
        }
    }
}
