//! The mouse: what presses, drags and the wheel come to. Only while it is asked for; else the terminal selects text as
//! ever (most do so all the same while Shift is held).

use crossterm::event::{MouseButton, MouseEvent, MouseEventKind};
use ratatui::layout::{Position, Rect};

/// What was done where.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Pointer {
    /// The cell under it.
    pub at: Position,
    /// What was done.
    pub gesture: Gesture,
}

/// What was done.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Gesture {
    /// The left button went down.
    Press,
    /// It went down a second time at the same place.
    Double,
    /// It is held while the mouse moves.
    Drag,
    /// It went up again.
    Release,
    /// The wheel was turned up.
    WheelUp,
    /// The wheel was turned down.
    WheelDown,
}

/// Rows that one step of the wheel moves.
pub const STEP: usize = 3;
/// Two presses within this time are a double one, nanoseconds.
const DOUBLE_NS: u64 = 400_000_000;

/// What is known of the presses before.
#[derive(Debug, Default)]
pub struct Hand {
    last: Option<(Position, u64)>,
}

impl Hand {
    /// What an event comes to.
    pub fn point(&mut self, event: &MouseEvent, now_ns: u64) -> Option<Pointer> {
        let at = Position::new(event.column, event.row);
        let gesture = match event.kind {
            MouseEventKind::Down(MouseButton::Left) => {
                let again =
                    self.last.take().is_some_and(|(last, ns)| last == at && now_ns.saturating_sub(ns) <= DOUBLE_NS);
                if again {
                    Gesture::Double
                } else {
                    self.last = Some((at, now_ns));
                    Gesture::Press
                }
            }
            MouseEventKind::Drag(MouseButton::Left) => Gesture::Drag,
            MouseEventKind::Up(MouseButton::Left) => Gesture::Release,
            MouseEventKind::ScrollUp => Gesture::WheelUp,
            MouseEventKind::ScrollDown => Gesture::WheelDown,
            _ => return None,
        };
        Some(Pointer { at, gesture })
    }

    /// Forgets the presses before: what they were meant for is not there any more, and a further one is not its second.
    pub fn forget(&mut self) {
        self.last = None;
    }
}

impl Pointer {
    /// Which of `len` rows it is on, in a list that shows rows from `top` on in an area.
    pub fn row(self, area: Rect, top: usize, len: usize) -> Option<usize> {
        let row = top + usize::from(self.at.y.checked_sub(area.y)?);
        (area.contains(self.at) && row < len).then_some(row)
    }

    /// Whether the button went down.
    pub fn is_press(self) -> bool {
        matches!(self.gesture, Gesture::Press | Gesture::Double)
    }

    /// How far the wheel was turned, rows down.
    pub fn wheel(self) -> Option<isize> {
        match self.gesture {
            Gesture::WheelUp => Some(-(STEP as isize)),
            Gesture::WheelDown => Some(STEP as isize),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crossterm::event::KeyModifiers;

    #[test]
    fn two_presses_at_one_place_are_a_double_one_and_a_third_begins_anew() {
        let mut hand = Hand::default();
        let mut press = |column, ms: u64| {
            let kind = MouseEventKind::Down(MouseButton::Left);
            let event = MouseEvent { kind, column, row: 1, modifiers: KeyModifiers::NONE };
            hand.point(&event, ms * 1_000_000).map(|pointer| pointer.gesture)
        };
        let (press_once, double) = (Some(Gesture::Press), Some(Gesture::Double));
        assert_eq!([press(5, 0), press(5, 300), press(5, 500)], [press_once, double, press_once]);
        assert_eq!([press(6, 600), press(6, 1100)], [press_once, press_once], "another place, and too late");
    }

    #[test]
    fn rows_are_found_where_they_are_shown() {
        let at = |x, y| Pointer { at: Position::new(x, y), gesture: Gesture::Press };
        let area = Rect::new(2, 3, 10, 4);
        assert_eq!(
            [at(2, 3), at(11, 6), at(12, 3), at(2, 2)].map(|at| at.row(area, 7, 10)),
            [Some(7), None, None, None]
        );
        assert_eq!(at(5, 5).row(area, 7, 10), Some(9));
    }
}
