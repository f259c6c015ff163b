//! The filter line: text with completion, taking effect as it is typed. A text that is no filter (yet) leaves the last
//! one in force and says what is wrong (field cases B62, B63).

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use super::line::{Edit, Line};
use super::{Command, Env, Layer, Scene, clear, moved};
use crate::tui::action::{Action, Place};
use crate::tui::theme::{Role, Theme};
use crate::tui::widgets::text::{At, paint, put, width};
use crate::view::Tone;
use crate::view::filter::{Completion, complete, settled};

/// The filter line.
pub struct FilterLine {
    before: String,
    line: Line,
    offers: Vec<Completion>,
    cursor: usize,
}

/// Completions on screen.
const OFFERS: usize = 8;
const PROMPT: &str = "filter ▸ ";

impl FilterLine {
    /// A line that starts with the filter in force.
    pub fn new(text: &str) -> Self {
        let text = if text.is_empty() || text.ends_with(' ') { text.to_owned() } else { format!("{text} ") };
        Self { before: text.trim_end().to_owned(), line: Line::new(text), offers: Vec::new(), cursor: 0 }
    }

    fn changed(&mut self, scene: &Scene<'_>) -> Vec<Command> {
        self.cursor = 0;
        self.offer(scene);
        vec![Command::Filter(settled(self.line.value()).to_owned())]
    }

    fn offer(&mut self, scene: &Scene<'_>) {
        self.offers = complete(self.line.value(), self.line.cursor(), scene.data, OFFERS);
        self.cursor = self.cursor.min(self.offers.len().saturating_sub(1));
    }
}

impl Layer for FilterLine {
    fn place(&self) -> Place {
        Place::FilterLine
    }

    fn is_opaque(&self) -> bool {
        false
    }

    fn on(&mut self, action: Action, scene: &Scene<'_>) -> Vec<Command> {
        match action {
            // What is wrong stands in the line; it is not kept until it is mended.
            Action::Accept if scene.env.unread.is_some() => {}
            Action::Accept => return vec![Command::Filter(self.line.value().trim_end().to_owned()), Command::Pop],
            Action::Back => return vec![Command::Filter(self.before.clone()), Command::Pop],
            Action::Complete => {
                if let Some(offer) = self.offers.get(self.cursor) {
                    let length = self.line.value().len();
                    let closed = !offer.text.ends_with([':', '=', '<', '>']);
                    let end = offer.replace.end.min(length);
                    let insert = format!("{}{}", offer.text, if closed && end == length { " " } else { "" });
                    self.line.replace(offer.replace.start.min(end)..end, &insert);
                    return self.changed(scene);
                }
            }
            _ => match self.line.edit(action) {
                Edit::Changed => return self.changed(scene),
                Edit::Moved => {}
                Edit::None => {
                    if let Some(cursor) = moved(action, self.cursor, self.offers.len(), OFFERS as u16) {
                        self.cursor = cursor;
                    }
                }
            },
        }
        Vec::new()
    }

    fn typed(&mut self, text: &str, scene: &Scene<'_>) -> Vec<Command> {
        if self.line.insert(text) { self.changed(scene) } else { Vec::new() }
    }

    fn refresh(&mut self, scene: &Scene<'_>) {
        self.offer(scene);
    }

    fn draw(&self, buf: &mut Buffer, area: Rect, env: &Env, theme: &Theme) {
        let Some(last) = area.height.checked_sub(1) else { return };
        let at = At::row(area, last);
        clear(buf, Rect { y: area.y + last, height: 1, ..area });
        let at = at.after(put(buf, at, PROMPT, theme.tone(Tone::Dim)));
        let note = self.line.note();
        let problem = env.unread.as_ref().map(|(_, problem)| problem.message.as_str());
        self.line.draw(buf, at, note.as_deref().or(problem), theme);
        let rows = (self.offers.len() as u16).min(last);
        let labels = self.offers.iter().map(|offer| width(&offer.text)).max().unwrap_or(0) + 2;
        let hints = self.offers.iter().map(|offer| width(offer.doc)).max().unwrap_or(0);
        let popup = Rect {
            x: area.x + width(PROMPT).min(area.width),
            y: area.y + last - rows,
            width: (labels + hints + 1).min(area.width.saturating_sub(width(PROMPT))),
            height: rows,
        };
        clear(buf, popup);
        for (index, offer) in (0..rows).zip(&self.offers) {
            let at = At::row(popup, index);
            put(buf, at, &offer.text, theme.tone(Tone::Accent));
            put(buf, at.after(labels), offer.doc, theme.tone(Tone::Dim));
            if usize::from(index) == self.cursor {
                paint(buf, at, theme.role(Role::Cursor));
            }
        }
    }
}
