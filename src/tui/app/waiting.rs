//! What waits to be handled: keys may come by the hundred thousand, when text is pasted into a terminal that does not say
//! so. They are handled in their order, what belongs together at once, and never so many that nothing is drawn or the way
//! out is not heard. Keeps out: what an event does (`app`).

use std::collections::VecDeque;

use super::{App, Event};
use crate::tui::action::Action;
use crate::tui::keys::{Stroke, stroke};
use crate::tui::layers::distance;

/// The most that wait; keys that come on top are left out. More than any text that could be meant.
const MOST: usize = 100_000;
/// From so many on nobody has typed them one by one: what ends the program goes first.
const FLOOD: usize = 64;
/// The most moves by one key at once; what it moves further is left out, so that a screen stands when the key does.
const MOVES: usize = 256;

/// Events in their order.
#[derive(Default)]
pub(super) struct Waiting {
    events: VecDeque<Event>,
    left_out: usize,
}

impl Waiting {
    pub(super) fn is_empty(&self) -> bool {
        self.events.is_empty()
    }

    /// Takes what has come. Of many at once, one that ends the program goes before all others.
    pub(super) fn take(&mut self, events: impl Iterator<Item = Event>, ends: impl Fn(&Event) -> bool) {
        let before = self.events.len();
        for event in events {
            if self.events.len() >= MOST && matches!(event, Event::Key(_) | Event::Mouse(_)) && !ends(&event) {
                self.left_out += 1;
            } else {
                self.events.push_back(event);
            }
        }
        if self.events.len() > FLOOD
            && let Some(end) = self.events.range(before..).position(ends).and_then(|at| self.events.remove(before + at))
        {
            self.events.push_front(end);
        }
    }

    /// Takes out the strokes that come next as long as they are wanted; keys that go up are none.
    fn strokes(&mut self, mut wanted: impl FnMut(Stroke) -> bool) {
        while let Some(Event::Key(key)) = self.events.front()
            && stroke(key).is_none_or(&mut wanted)
        {
            self.events.pop_front();
        }
    }
}

impl App<'_> {
    /// Whether an event ends the program wherever it comes: a key that types something does so in some places only.
    pub(super) fn ends(&self, event: &Event) -> bool {
        match event {
            Event::Signal(_) | Event::Closed => true,
            Event::Key(key) => {
                stroke(key).is_some_and(|stroke| stroke.key.ctrl && self.action(stroke) == Some(Action::Quit))
            }
            _ => false,
        }
    }

    /// Handles the next that waits and what goes with it: text that is typed is one text, and moves by one key are made in
    /// one look.
    pub(super) fn handle_next(&mut self, waiting: &mut Waiting) {
        let Some(event) = waiting.events.pop_front() else { return };
        match &event {
            Event::Key(key) => {
                if let Some(first) = stroke(key) {
                    self.let_go();
                    self.handle_strokes(first, waiting);
                }
            }
            event => self.on(event),
        }
        let left_out = std::mem::take(&mut waiting.left_out);
        if left_out > 0 {
            self.message.news(format!("too many keys at once: {left_out} were left out"));
        }
    }

    fn handle_strokes(&mut self, first: Stroke, waiting: &mut Waiting) {
        match self.action(first) {
            Some(action) if action.repeats() && distance(action, 1).is_some() => {
                let mut times = 1;
                waiting.strokes(|next| {
                    times += usize::from(next.key == first.key);
                    next.key == first.key
                });
                waiting.left_out += times.saturating_sub(MOVES);
                self.message.acted();
                self.with_top(times.min(MOVES), |layer, scene| layer.on(action, scene));
            }
            None if first.key.typed().is_some() => {
                let mut text = String::from_iter(first.key.typed());
                waiting.strokes(|next| {
                    let typed = next.key.typed().filter(|_| self.action(next).is_none());
                    text.extend(typed);
                    typed.is_some()
                });
                self.on_typed(&text);
            }
            _ => self.on_stroke(first),
        }
    }
}
