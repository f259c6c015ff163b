//! A long text, whole: a value, a record, a span as JSON. Wrapped to the screen, never cut (field case B41).

use std::ops::Range;

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use super::help::Help;
use super::{Command, Env, Layer, Scene, moved};
use crate::tui::action::{Action, Place};
use crate::tui::theme::Theme;
use crate::tui::widgets::frame::frame;
use crate::tui::widgets::text::{At, put, wrap};
use crate::view::request::detail::Whole;
use crate::view::{Tone, format};

/// The reader.
pub struct Reader {
    whole: Whole,
    /// Where the text breaks at this width.
    rows: Vec<Range<usize>>,
    width: u16,
    top: usize,
}

impl Reader {
    /// A reader of a text.
    pub fn new(whole: Whole) -> Self {
        Self { whole, rows: Vec::new(), width: 0, top: 0 }
    }
}

fn page(area: Rect) -> u16 {
    area.height.saturating_sub(2)
}

impl Layer for Reader {
    fn place(&self) -> Place {
        Place::Reader
    }

    fn on(&mut self, action: Action, scene: &Scene<'_>) -> Vec<Command> {
        match action {
            Action::Back => return vec![Command::Pop],
            Action::Copy => return vec![Command::Copy("the text", self.whole.text.clone())],
            Action::Help => return vec![Command::Push(Box::new(Help::new(Place::Reader)))],
            _ => {}
        }
        let page = page(scene.area);
        let most = self.rows.len().saturating_sub(usize::from(page)) + 1;
        if let Some(top) = moved(action, self.top, most, page) {
            self.top = top;
        }
        Vec::new()
    }

    fn refresh(&mut self, scene: &Scene<'_>) {
        let width = scene.area.width.saturating_sub(4);
        if self.width != width || self.rows.is_empty() {
            // The text at the top stays at the top.
            let at = self.rows.get(self.top).map_or(0, |range| range.start);
            self.rows = wrap(&self.whole.text, width);
            self.width = width;
            self.top = self.rows.partition_point(|range| range.end <= at);
        }
        self.top = self.top.min(self.rows.len().saturating_sub(usize::from(page(scene.area))));
    }

    fn draw(&self, buf: &mut Buffer, area: Rect, _: &Env, theme: &Theme) {
        let last = (self.top + usize::from(page(area))).min(self.rows.len());
        let place = format!("{}–{} of {} rows", self.top + 1, last, format::count(self.rows.len() as u64));
        let inside = frame(buf, area, &self.whole.title, &place, true, theme);
        for (row, range) in (0..inside.height).zip(self.rows.iter().skip(self.top)) {
            let text = self.whole.text.get(range.clone()).unwrap_or_default();
            put(buf, At::row(inside, row), text, theme.tone(Tone::Plain));
        }
    }
}
