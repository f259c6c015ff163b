//! A pane on the whole screen, with all that it has no room for beside others.

use std::time::Duration;

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use super::help::Help;
use super::seat::Seat;
use super::{Command, Env, Layer, Scene, pane_command, pane_of};
use crate::tui::action::{Action, Place};
use crate::tui::mouse::{Gesture, Pointer};
use crate::tui::panes::{header, outcomes};
use crate::tui::theme::Theme;
use crate::view::outcomes::Count;
use crate::view::panes::PaneId;

/// A zoomed pane.
pub struct Zoom {
    seat: Seat,
    outcomes: Vec<Count>,
    stays_right: Option<Duration>,
}

/// The pane's own area, below header and outcomes.
fn pane_area(area: Rect) -> Rect {
    let top = if area.height > 12 { 2 } else { 0 };
    Rect { y: area.y + top, height: area.height - top, ..area }
}

impl Zoom {
    /// A pane on the whole screen.
    pub fn new(id: PaneId) -> Self {
        Self { seat: Seat::new(id), outcomes: Vec::new(), stays_right: None }
    }
}

impl Layer for Zoom {
    fn place(&self) -> Place {
        Place::Pane
    }

    fn on(&mut self, action: Action, scene: &Scene<'_>) -> Vec<Command> {
        if let Some(commands) = pane_command(action, scene) {
            return commands;
        }
        match action {
            Action::Back | Action::Zoom | Action::Requests => return vec![Command::Pop],
            Action::Help => return vec![Command::Push(Box::new(Help::new(Place::Pane)))],
            Action::Pick => {
                if let Some(text) = self.seat.filter(scene.env.filter.text()) {
                    return vec![Command::Filter(text)];
                }
            }
            Action::NextPart | Action::PrevPart => {
                let at = PaneId::ALL.iter().position(|(id, _)| *id == self.seat.id()).unwrap_or(0);
                let by = if action == Action::NextPart { 1 } else { PaneId::ALL.len() - 1 };
                self.seat = Seat::new(PaneId::ALL[(at + by) % PaneId::ALL.len()].0);
            }
            action => match pane_of(action) {
                Some(id) => self.seat = Seat::new(id),
                None => self.seat.go(action),
            },
        }
        Vec::new()
    }

    fn point(&mut self, pointer: Pointer, scene: &Scene<'_>) -> Vec<Command> {
        match pointer.gesture {
            Gesture::WheelUp => self.seat.go(Action::Up),
            Gesture::WheelDown => self.seat.go(Action::Down),
            _ => {}
        }
        self.seat.point(pointer, scene.env.filter.text()).map(Command::Filter).into_iter().collect()
    }

    fn let_go(&mut self) {
        self.seat.let_go();
    }

    fn refresh(&mut self, scene: &Scene<'_>) {
        self.seat.refresh(scene, pane_area(scene.area), true);
        self.outcomes = crate::view::outcomes::outcomes(&scene.data.standing(), scene.data.said().violations());
        self.stays_right = super::panes_stay_right(scene);
    }

    fn draw(&self, buf: &mut Buffer, area: Rect, env: &Env, theme: &Theme) {
        let pane = pane_area(area);
        if pane.y > area.y {
            let line = |y| Rect { y: area.y + y, height: 1, ..area };
            header::draw(buf, line(0), &env.header, theme);
            outcomes::draw(buf, line(1), &self.outcomes, env.filter.text(), theme);
        }
        self.seat.draw(buf, pane, true, env, theme);
    }

    fn stays_right(&self) -> Option<Duration> {
        self.stays_right
    }
}
