//! The sixteen colours in the oldest spelling there is: `33`, not `38;5;3`, which terminals of eight colours take for
//! blinking (field case B54). Owns: that spelling, in whatever pieces the sequences are written. Keeps out: which colours.

use std::io::{self, Write};

/// The longest sequence that is looked at, bytes; none of ours is near it.
const LONGEST: usize = 64;

/// Passes on what is written, colours respelled.
pub struct Sixteen<W> {
    to: W,
    /// A sequence that has begun and not ended.
    held: Vec<u8>,
}

impl<W: Write> Sixteen<W> {
    /// In front of a terminal.
    pub fn new(to: W) -> Self {
        Self { to, held: Vec::new() }
    }

    fn let_go(&mut self) -> io::Result<()> {
        let held = std::mem::take(&mut self.held);
        self.to.write_all(&held)
    }
}

impl<W: Write> Write for Sixteen<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut rest = bytes;
        while let [first, after @ ..] = rest {
            if self.held.is_empty() {
                let plain = memchr::memchr(0x1b, rest).unwrap_or(rest.len());
                self.to.write_all(&rest[..plain])?;
                rest = &rest[plain..];
                if let [escape, after @ ..] = rest {
                    self.held.push(*escape);
                    rest = after;
                }
                continue;
            }
            self.held.push(*first);
            rest = after;
            match self.held[..] {
                [_, b'['] => {}
                [_, b'[', .., b'm'] => {
                    let respelled = respelled(&self.held[2..self.held.len() - 1]);
                    self.held.clear();
                    write!(self.to, "\x1b[{respelled}m")?;
                }
                [_, b'[', .., 0x20..0x40] if self.held.len() < LONGEST => {}
                _ => self.let_go()?,
            }
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.let_go()?;
        self.to.flush()
    }
}

/// The numbers of a sequence that sets a look.
fn respelled(numbers: &[u8]) -> String {
    let numbers: Vec<&str> = numbers.split(|byte| *byte == b';').map(|n| str::from_utf8(n).unwrap_or("")).collect();
    let mut out: Vec<String> = Vec::new();
    let mut rest = &numbers[..];
    while let [first, after @ ..] = rest {
        let ground = match *first {
            "38" => 30,
            "48" => 40,
            _ => 0,
        };
        let taken = match (ground, after) {
            (30 | 40, ["5", colour, ..]) => match colour.parse::<u8>() {
                Ok(dark @ 0..8) => {
                    out.push((ground + dark).to_string());
                    3
                }
                Ok(bright @ 8..16) => {
                    out.push((ground + 52 + bright).to_string());
                    3
                }
                _ => {
                    out.extend(rest[..3].iter().map(ToString::to_string));
                    3
                }
            },
            (30 | 40, ["2", ..]) => {
                let taken = rest.len().min(5);
                out.extend(rest[..taken].iter().map(ToString::to_string));
                taken
            }
            _ => {
                out.push(first.to_string());
                1
            }
        };
        rest = &rest[taken..];
    }
    out.join(";")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sixteen_are_spelled_as_ever_and_all_else_is_left_alone() {
        let cases = [
            ("plain \u{1b}[2Jtext\u{1b}[1;1H", "plain \u{1b}[2Jtext\u{1b}[1;1H"),
            ("\u{1b}[38;5;3mx\u{1b}[39m", "\u{1b}[33mx\u{1b}[39m"),
            ("\u{1b}[38;5;8;48;5;15m", "\u{1b}[90;107m"),
            ("\u{1b}[1;38;5;0;7;48;5;7m", "\u{1b}[1;30;7;47m"),
            ("\u{1b}[38;5;16m\u{1b}[48;2;1;38;5;38;5;1m", "\u{1b}[38;5;16m\u{1b}[48;2;1;38;5;31m"),
            ("\u{1b}[38;2;5;5;5m\u{1b}[m\u{1b}[?25h", "\u{1b}[38;2;5;5;5m\u{1b}[m\u{1b}[?25h"),
            ("\u{1b}]52;c;38;5;3m\u{7}\u{1b}\\", "\u{1b}]52;c;38;5;3m\u{7}\u{1b}\\"),
        ];
        for (given, wanted) in cases {
            for piece in 1..given.len() {
                let mut out = Vec::new();
                let mut sixteen = Sixteen::new(&mut out);
                given.as_bytes().chunks(piece).for_each(|part| sixteen.write_all(part).unwrap());
                sixteen.flush().unwrap();
                assert_eq!(String::from_utf8_lossy(&out), wanted, "{given:?} in pieces of {piece}");
            }
        }
    }
}
