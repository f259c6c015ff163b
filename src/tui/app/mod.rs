//! The program's state on screen, and the loop that keeps it.
//!
//! Events come over one channel: keys, and at most one *data has come* at a time, so no key ever waits behind data. What
//! is waiting is handled first, then one frame is drawn if anything changed, at most [`MAX_FPS`] times a second. Nothing
//! is drawn while nothing changes. The loop knows neither terminal nor clock: tests type keys without a terminal.

mod contract;
mod message;
mod run;
mod waiting;

use std::sync::Arc;

use crossterm::event::{KeyEvent, MouseEvent};
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use self::message::Message;
use super::action::{Action, Place};
use super::keys::{self, Stroke};
use super::layers::live::Live;
use super::layers::menu::Menu;
use super::layers::palette::Palette;
use super::layers::theme_menu::Chosen;
use super::layers::{Command, Env, Layer, Scene};
use super::mouse::Hand;
use super::panes::footer;
use super::theme::{Entry, Signs};
use super::travel::{Moments, Travel};
use super::widgets::ascii::in_ascii;
use crate::lifecycle::request::RequestKey;
use crate::store::Past;
use crate::view::data::{Data, Frozen};
use crate::view::filter::Filter;
use crate::view::format::clock_ms;
use crate::view::header::{Meter, Vitals, header};
use crate::view::pace::Pace;

pub use contract::{Event, ExitReason, Host, Hub, Look, See, Setup};
pub use run::MAX_FPS;

/// What the loop is asked to do with its host.
enum Request {
    End(ExitReason),
    Suspend,
    Retake,
    Redraw,
    Act(Action),
    Copy(&'static str, String),
    Mouse(bool),
    Save(String, Vec<u8>, String),
}

/// The program's state on screen.
pub struct App<'a> {
    hub: &'a dyn Hub,
    clock: &'a dyn Fn() -> u64,
    layers: Vec<Box<dyn Layer>>,
    env: Env,
    frozen: Option<Frozen>,
    meter: Meter,
    message: Message,
    /// The notices there were at the last look.
    noticed: Vec<String>,
    /// Whether layers have acted since they were last brought up to date.
    stale: bool,
    area: Rect,
    requests: Vec<Request>,
    hand: Hand,
}

impl<'a> App<'a> {
    /// The first screen on a hub; `clock` gives nanoseconds since the epoch.
    pub fn new(hub: &'a dyn Hub, setup: impl Into<Setup>, clock: &'a dyn Fn() -> u64) -> Self {
        let Setup { keys, mouse, filter, window, themes, theme: Entry { name, theme, warnings, .. }, trace_url } =
            setup.into();
        let mut message = Message::default();
        if let Some(first) = warnings.first() {
            message.news(format!("theme {name}: {first}"));
        }
        Self {
            hub,
            clock,
            layers: vec![Box::new(Live::default())],
            env: Env { filter, window, mouse, trace_url, ..Env::new(keys, themes, Chosen { name, theme }) },
            frozen: None,
            meter: Meter::default(),
            message,
            noticed: Vec::new(),
            stale: true,
            area: Rect::default(),
            requests: Vec::from_iter(mouse.then_some(Request::Mouse(true))),
            hand: Hand::default(),
        }
    }

    fn past(&self) -> Option<Arc<Past>> {
        self.frozen.as_ref().map(|frozen| Arc::clone(frozen.past()))
    }

    fn pin(&self) -> Option<RequestKey> {
        self.layers.iter().rev().find_map(|layer| layer.looks_at())
    }

    /// Where layers are drawn: all but the last line.
    fn body(area: Rect) -> Rect {
        Rect { height: area.height.saturating_sub(u16::from(area.height > 2)), ..area }
    }

    /// Takes an event.
    fn on(&mut self, event: &Event) {
        match event {
            Event::Key(key) => self.on_key(key),
            Event::Mouse(mouse) => self.on_mouse(mouse),
            Event::Paste(text) => self.on_typed(text),
            Event::Data => {}
            // Also when the size is the old one again: the terminal has cut what it showed in between.
            Event::Resize => self.requests.push(Request::Redraw),
            Event::Signal(number) => self.requests.push(Request::End(ExitReason::Signal(*number))),
            Event::Stop => self.requests.push(Request::Suspend),
            Event::Resumed => self.requests.push(Request::Retake),
            Event::Closed => self.requests.push(Request::End(ExitReason::Closed)),
        }
    }

    fn on_key(&mut self, event: &KeyEvent) {
        if let Some(stroke) = keys::stroke(event) {
            self.let_go();
            self.on_stroke(stroke);
        }
    }

    /// Has every layer give up what the mouse had begun there.
    fn let_go(&mut self) {
        self.layers.iter_mut().for_each(|layer| layer.let_go());
    }

    /// What a stroke does where keys go now; `None` when it types or does nothing.
    fn action(&self, stroke: Stroke) -> Option<Action> {
        self.env.keys.find(stroke.key, self.place())
    }

    fn on_stroke(&mut self, stroke: Stroke) {
        match self.action(stroke) {
            Some(action) if stroke.repeated && !action.repeats() => {}
            Some(action) => self.act(action),
            None => {
                if let Some(c) = stroke.key.typed() {
                    self.on_typed(c.encode_utf8(&mut [0; 4]));
                }
            }
        }
    }

    fn on_mouse(&mut self, event: &MouseEvent) {
        let Some(pointer) = self.hand.point(event, (self.clock)()) else { return };
        if pointer.is_press() {
            self.let_go();
        }
        let layers = self.layers.len();
        let last = Rect { y: self.area.bottom().saturating_sub(1), height: 1, ..self.area };
        let is_footer = self.area.height > 2 && self.place() != Place::FilterLine && last.contains(pointer.at);
        match footer::action_at(last, self.place(), self.message.text(), &self.env.keys, pointer.at.x) {
            Some(action) if is_footer && pointer.is_press() => self.act(action),
            _ if is_footer && pointer.is_press() => {}
            _ => {
                // A drag goes on with what its press began. What a press on the message uncovered could be pressed by the next.
                if pointer.is_press() || pointer.wheel().is_some() {
                    self.message.acted();
                }
                self.with_top(1, |layer, scene| layer.point(pointer, scene));
            }
        }
        // A press that closed a layer or opened one is not the first of two on what is there now.
        if self.layers.len() != layers {
            self.hand.forget();
        }
    }

    /// Where keys go.
    fn place(&self) -> Place {
        self.layers.last().map_or(Place::Live, |layer| layer.place())
    }

    fn act(&mut self, action: Action) {
        // The same screen again is no other one.
        if !matches!(action, Action::Redraw | Action::Suspend) {
            self.message.acted();
        }
        match action {
            Action::Quit => self.requests.push(Request::End(ExitReason::Quit)),
            Action::Suspend => self.requests.push(Request::Suspend),
            Action::Redraw => self.requests.push(Request::Redraw),
            Action::Mouse => {
                self.env.mouse = !self.env.mouse;
                self.requests.push(Request::Mouse(self.env.mouse));
                let said = if self.env.mouse {
                    "the mouse works here; most terminals select text with Shift"
                } else {
                    "the mouse is the terminal's"
                };
                self.say(said.into());
            }
            Action::Theme => self.layers.push(Box::new(Menu::of_themes(&self.env))),
            Action::Palette => self.layers.push(Box::new(Palette::new(self.place()))),
            action => self.with_top(1, |layer, scene| layer.on(action, scene)),
        }
    }

    fn on_typed(&mut self, text: &str) {
        self.message.acted();
        self.with_top(1, |layer, scene| layer.typed(text, scene));
    }

    /// Lets the top layer act on the data so many times, and does what it asks for.
    fn with_top(&mut self, times: usize, mut act: impl FnMut(&mut dyn Layer, &Scene<'_>) -> Vec<Command>) {
        let (hub, now_ns, pin, filter) = (self.hub, (self.clock)(), self.pin(), self.env.filter.clone());
        let window_ns = self.env.window.length_ns();
        hub.look(&Look { now_ns, pin, filter: &filter, window_ns }, &mut |live, vitals| {
            for time in 0..times {
                let Some(mut top) = self.layers.pop() else { break };
                // Several keys in one frame: each finds what the one before made.
                if self.stale && time == 0 {
                    self.scene(live, vitals, |scene| top.refresh(scene));
                }
                self.stale = true;
                let commands = self.scene(live, vitals, |scene| act(top.as_mut(), scene));
                self.layers.push(top);
                for command in commands {
                    self.obey(command, live, vitals, now_ns);
                }
            }
            self.past()
        });
    }

    fn scene<T>(&self, live: &dyn Data, vitals: &Vitals, see: impl FnOnce(&Scene<'_>) -> T) -> T {
        let frozen = self.frozen.as_ref().map(|frozen| frozen.over(live));
        let data = frozen.as_ref().map_or(live, |frozen| frozen);
        see(&Scene { data, vitals, env: &self.env, area: Self::body(self.area), clock: self.clock })
    }

    fn obey(&mut self, command: Command, live: &dyn Data, vitals: &Vitals, now_ns: u64) {
        match command {
            Command::Push(layer) => self.layers.push(layer),
            Command::Pop if self.layers.len() > 1 => _ = self.layers.pop(),
            Command::Pop => {}
            Command::Filter(text) => match Filter::parse(&text) {
                Ok(filter) => (self.env.filter, self.env.unread) = (filter, None),
                Err(problem) => self.env.unread = Some((text, problem)),
            },
            Command::Window(window) => self.env.window = window,
            Command::Sort(sort) => self.layers.iter_mut().for_each(|layer| layer.sort(sort)),
            Command::Theme(chosen) => self.env.chosen = *chosen,
            Command::Pause if self.frozen.is_some() => self.frozen = None,
            Command::Pause => {
                self.frozen = Some(Frozen::new(live, now_ns));
                self.say("what is shown stands still; , and . move it back and forth in time, p goes on".into());
            }
            Command::Act(action) => self.requests.push(Request::Act(action)),
            Command::Travel(travel) => self.travel(travel, live, now_ns),
            Command::Bookmark => self.bookmark(live, now_ns),
            Command::Copy(what, text) => self.requests.push(Request::Copy(what, text)),
            Command::Save { stem, bytes, note } => self.requests.push(Request::Save(stem, bytes, note)),
            Command::Say(text) => self.say(text),
            Command::Step(by) => {
                let mut layers = std::mem::take(&mut self.layers);
                let key = self.scene(live, vitals, |scene| layers.iter_mut().find_map(|layer| layer.step(by, scene)));
                if let (Some(key), Some(top)) = (key, layers.last_mut()) {
                    top.look(key);
                }
                self.layers = layers;
            }
        }
        self.env.paused = self.frozen.is_some();
    }

    /// Shows another moment.
    fn travel(&mut self, travel: Travel, live: &dyn Data, now_ns: u64) {
        let Some(moments) = Moments::of(live, now_ns) else { return self.say("nothing is kept yet".into()) };
        // A pause stands at the present; looking back begins at the last moment there is.
        let shown_ns = self.frozen.as_ref().map(|frozen| frozen.at_ns().min(moments.last_ns));
        let (at_ns, word) = moments.target(travel, shown_ns);
        if let Some(word) = word {
            self.say(word.into());
        }
        if self.frozen.as_ref().is_none_or(|frozen| !frozen.past().looks_back() || frozen.at_ns() != at_ns) {
            self.frozen = Some(Frozen::back(live, at_ns));
        }
    }

    /// Marks the moment that is shown.
    fn bookmark(&mut self, live: &dyn Data, now_ns: u64) {
        let Some(moments) = Moments::of(live, now_ns) else { return self.say("nothing is kept yet".into()) };
        let at_ns = self.frozen.as_ref().map_or(moments.last_ns, |frozen| frozen.at_ns().min(moments.last_ns));
        let marks = &mut self.env.bookmarks;
        if let Err(place) = marks.binary_search(&at_ns) {
            marks.insert(place, at_ns);
        }
        self.say(format!("bookmark at {}; ' lists them", clock_ms(at_ns)));
    }

    fn say(&mut self, text: String) {
        self.message.answer(text);
    }

    /// Brings everything up to date for a screen of this size.
    fn refresh(&mut self, area: Rect) {
        self.area = area;
        let (hub, now_ns, pin, filter) = (self.hub, (self.clock)(), self.pin(), self.env.filter.clone());
        self.message.lapse();
        let window_ns = self.env.window.length_ns();
        hub.look(&Look { now_ns, pin, filter: &filter, window_ns }, &mut |live, vitals| {
            // Where nothing more comes the clock stands, and a rate would never fall.
            if vitals.ended {
                self.meter = Meter::default();
            } else {
                self.meter.sample(live.counts().spans_received, now_ns);
            }
            let pace = match &self.frozen {
                Some(frozen) if frozen.past().looks_back() => {
                    let last_ns = Moments::of(live, now_ns).map_or(now_ns, |moments| moments.last_ns);
                    Pace::Back { at_ns: frozen.at_ns(), ago_ns: last_ns.saturating_sub(frozen.at_ns()) }
                }
                Some(frozen) => Pace::Paused { newer: frozen.newer(live) },
                None if vitals.ended => Pace::Ended,
                None => Pace::Live,
            };
            if let Some(newest) = vitals.notices.last()
                && !self.noticed.contains(newest)
            {
                self.message.news(newest.clone());
            }
            if self.noticed != vitals.notices {
                self.noticed.clone_from(&vitals.notices);
            }
            self.env.now_ns = self.frozen.as_ref().map_or(now_ns, Frozen::at_ns);
            let mut layers = std::mem::take(&mut self.layers);
            let top = self
                .scene(live, vitals, |scene| header(scene.data, vitals, &self.meter, pace, scene.env.window, now_ns));
            (self.env.header, self.env.pace) = (top, pace);
            self.scene(live, vitals, |scene| layers.iter_mut().for_each(|layer| layer.refresh(scene)));
            self.layers = layers;
            self.stale = false;
            self.past()
        });
    }

    /// Draws everything. Changes nothing.
    fn draw(&self, buf: &mut Buffer) {
        let (area, body) = (buf.area, Self::body(buf.area));
        let theme = &self.env.chosen.theme;
        let bottom = self.layers.iter().rposition(|layer| layer.is_opaque()).unwrap_or(0);
        for (index, layer) in self.layers.iter().enumerate().skip(bottom) {
            // What opens over a screen may use the last line too.
            let area = if index == bottom || layer.place() != Place::FilterLine { body } else { area };
            layer.draw(buf, area, &self.env, theme);
        }
        let place = self.place();
        if area.height > 2 && place != Place::FilterLine {
            let last = Rect { y: area.bottom() - 1, height: 1, ..area };
            super::layers::clear(buf, last);
            footer::draw(buf, last, place, self.message.text(), &self.env.keys, theme);
        }
        theme.fill(buf);
        if theme.signs() == Signs::Ascii {
            in_ascii(buf);
        }
    }

    /// One frame of a size, for screenshots and tests.
    pub fn frame(&mut self, width: u16, height: u16) -> Buffer {
        let area = Rect::new(0, 0, width, height);
        self.refresh(area);
        let mut buf = Buffer::empty(area);
        self.draw(&mut buf);
        buf
    }

    /// Takes an event and does what needs no terminal; for screenshots and tests. `Some` ends the program.
    pub fn press(&mut self, event: &Event, host: &mut dyn Host) -> Option<ExitReason> {
        self.on(event);
        self.serve(host).ok().and_then(|served| served.end)
    }
}
