//! Two buffers and the difference between them: what is written to the terminal is what changed.
//!
//! Never asks the terminal anything, so it works on one that never answers.

use std::io;

use ratatui::backend::{Backend, ClearType};
use ratatui::buffer::{Buffer, Cell};
use ratatui::layout::{Position, Rect};

use super::widgets::text::width;

/// The largest area that is drawn, columns and rows; the rest of a larger terminal stays blank. No display shows as much,
/// but any program may give a terminal any size, and 65,535 by 65,535 cells are no memory's.
const LARGEST: (u16, u16) = (1000, 500);

/// A screen on a backend.
pub struct Screen<B> {
    backend: B,
    shown: Buffer,
    next: Buffer,
    /// Whether nothing is known of what the terminal shows.
    forgotten: bool,
}

impl<B: Backend> Screen<B>
where
    B::Error: std::error::Error + Send + Sync + 'static,
{
    /// A screen whose content is not known.
    pub fn new(backend: B) -> Self {
        Self { backend, shown: Buffer::default(), next: Buffer::default(), forgotten: true }
    }

    /// Forgets what the terminal shows; the next frame is drawn whole.
    pub fn forget(&mut self) {
        self.forgotten = true;
    }

    /// Takes on the terminal's size; gives the area that is drawn.
    ///
    /// # Errors
    /// The terminal is gone.
    pub fn resize(&mut self) -> io::Result<Rect> {
        let size = self.backend.size().map_err(io::Error::other)?;
        let area = Rect::new(0, 0, size.width.min(LARGEST.0), size.height.min(LARGEST.1));
        if self.next.area != area {
            self.next = Buffer::empty(area);
            self.forgotten = true;
        }
        Ok(area)
    }

    /// Draws a frame and writes what changed.
    ///
    /// # Errors
    /// The terminal could not be written to.
    pub fn show(&mut self, draw: impl FnOnce(&mut Buffer)) -> io::Result<()> {
        self.next.reset();
        draw(&mut self.next);
        if self.forgotten {
            self.backend.clear_region(ClearType::All).map_err(io::Error::other)?;
            self.shown = Buffer::empty(self.next.area);
            self.forgotten = false;
        }
        let changes = changes(&self.shown, &self.next);
        if !changes.is_empty() {
            self.backend.draw(changes.into_iter()).map_err(io::Error::other)?;
            self.backend.set_cursor_position(Position::ORIGIN).map_err(io::Error::other)?;
        }
        self.backend.flush().map_err(io::Error::other)?;
        std::mem::swap(&mut self.shown, &mut self.next);
        Ok(())
    }

    /// The backend.
    pub fn backend(&self) -> &B {
        &self.backend
    }
}

/// The cells to write, in order. A wide character goes with the column it covers: both are written when either changes
/// or when something wide stood there. Terminals disagree on the width of composed emoji, so the covered column is
/// blanked before such a one is written, and as many columns as the parts could take are written after it: whatever the
/// terminal thinks, nothing stays behind (field case B53).
fn changes<'a>(shown: &Buffer, next: &'a Buffer) -> Vec<(u16, u16, &'a Cell)> {
    let area = next.area;
    let mut changes = Vec::new();
    for y in area.top()..area.bottom() {
        // Up to here the terminal shows nothing that can be relied on.
        let mut doubtful = area.left();
        let mut x = area.left();
        while x < area.right() {
            let (before, now) = (&shown[(x, y)], &next[(x, y)]);
            let wide = width(now.symbol()).max(1);
            let end = x.saturating_add(wide).min(area.right());
            let covered = (x + 1..end).any(|x| shown[(x, y)] != next[(x, y)]);
            if before != now || covered || x < doubtful {
                if wide > 1 && now.symbol().chars().count() > 1 {
                    changes.extend((x + 1..end).map(|x| (x, y, &next[(x, y)])));
                }
                changes.push((x, y, now));
                doubtful = doubtful.max(x.saturating_add(reach(before.symbol()).max(reach(now.symbol()))));
            }
            x = end;
        }
    }
    changes
}

/// The most columns a terminal may give a symbol: one that does not compose emoji shows each part by itself.
fn reach(symbol: &str) -> u16 {
    let parts = symbol.chars().map(|part| width(part.encode_utf8(&mut [0; 4])));
    parts.fold(0, u16::saturating_add).max(width(symbol)).max(1)
}

/// A buffer as lines of text, for snapshots; blanks at line ends are left out.
pub fn dump(buf: &Buffer) -> String {
    let mut out = String::new();
    for y in buf.area.top()..buf.area.bottom() {
        let mut line = String::new();
        let mut x = buf.area.left();
        while x < buf.area.right() {
            let symbol = buf[(x, y)].symbol();
            line.push_str(symbol);
            x += width(symbol).max(1);
        }
        out.push_str(line.trim_end());
        out.push('\n');
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    /// B53: a terminal that shows 🧑🏽‍🚒 as its three parts has put them over columns that nobody wrote to.
    #[test]
    fn the_columns_that_parts_of_a_composed_sign_may_have_covered_are_written_again() {
        let area = Rect::new(0, 0, 12, 1);
        let (blank, mut composed) = (Buffer::empty(area), Buffer::empty(area));
        composed[(2, 0)].set_symbol("🧑🏽\u{200d}🚒");
        composed[(3, 0)].set_symbol(" ");
        for (before, after) in [(&composed, &blank), (&blank, &composed)] {
            let written: Vec<u16> = changes(before, after).iter().map(|(x, ..)| *x).collect();
            assert!((4..8).all(|x| written.contains(&x)), "{written:?}");
            assert!(!written.contains(&8) && !written.contains(&1), "{written:?}");
        }
        assert!(changes(&composed, &composed.clone()).is_empty());
    }
}
