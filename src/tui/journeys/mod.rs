//! Journeys: keys are typed and frames looked at, without a terminal and without a clock.

mod chaos;
mod checks;
mod fingers;
mod list;
mod looks;
mod mouse;
mod paused;
mod request;
mod running;
mod sizes;
mod still;
mod time;

use std::cell::{Cell, RefCell};
use std::io;

use crossterm::event::{KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use proptest::prelude::*;

use super::app::{App, Event, ExitReason, Host, Hub, Look, See};
use super::keys::Key;
use super::screen::{Screen, dump};
use super::shared::Shared;
use super::theme::Theme;
use crate::lifecycle::facts::{Facts, State};
use crate::lifecycle::packed::Value;
use crate::lifecycle::request::RequestKey;
use crate::lifecycle::stage::Outcome;
use crate::store::{Limits, Store};
use crate::view::data::Data;
use crate::view::fixture::{Fixture, MS, NOW, cluster, def};
use crate::view::header::{Done, Listener, Loading, Vitals};

struct Desk {
    data: RefCell<Fixture>,
    vitals: RefCell<Vitals>,
    pinned: Cell<Option<RequestKey>>,
}

impl Hub for Desk {
    fn look(&self, look: &Look<'_>, see: &mut See<'_>) {
        self.pinned.set(look.pin);
        let past = see(&*self.data.borrow(), &self.vitals.borrow());
        self.data.borrow_mut().hold(past.is_some());
    }
}

#[derive(Default)]
struct Hands {
    copied: Vec<String>,
    stops: u32,
    mouse: Vec<bool>,
    saved: Vec<(String, String)>,
    disk_is_full: bool,
}

impl Host for Hands {
    fn suspend(&mut self) -> io::Result<bool> {
        self.stops += 1;
        Ok(true)
    }
    fn retake(&mut self) -> io::Result<()> {
        Ok(())
    }
    fn copy(&mut self, what: &str, text: &str) -> String {
        self.copied.push(text.to_owned());
        format!("{what} sent")
    }
    fn mouse(&mut self, on: bool) -> io::Result<()> {
        self.mouse.push(on);
        Ok(())
    }
    fn save(&mut self, stem: &str, bytes: &[u8]) -> Result<String, String> {
        if self.disk_is_full {
            return Err("nothing was exported: no room".into());
        }
        self.saved.push((stem.to_owned(), String::from_utf8_lossy(bytes).into_owned()));
        Ok(format!("saved {stem}"))
    }
    fn is_there(&self) -> bool {
        true
    }
}

fn desk(data: Fixture) -> Desk {
    let at = |protocol, address: &str| Listener { protocol, address: address.parse().unwrap() };
    let vitals = Vitals {
        listeners: vec![at("grpc", "127.0.0.1:4317"), at("grpc", "[::1]:4317"), at("http", "127.0.0.1:4318")],
        last_arrival_ns: None,
        ..Vitals::default()
    };
    Desk { data: RefCell::new(data), vitals: RefCell::new(vitals), pinned: Cell::new(None) }
}

struct Journey<'a> {
    app: App<'a>,
    hands: Hands,
    size: (u16, u16),
}

fn now() -> u64 {
    NOW
}

impl<'a> Journey<'a> {
    fn new(desk: &'a Desk, size: (u16, u16)) -> Self {
        let theme = Theme::named("terminal").unwrap();
        let mut journey = Self { app: App::new(desk, theme, &now), hands: Hands::default(), size };
        journey.screen();
        journey
    }

    fn screen(&mut self) -> String {
        dump(&self.app.frame(self.size.0, self.size.1))
    }

    /// Types keys by their names, parted by spaces; gives the screen after them.
    fn keys(&mut self, names: &str) -> String {
        for name in names.split(' ') {
            let key = Key::parse(name).unwrap_or_else(|| panic!("no key {name}"));
            let modifiers = if key.ctrl { KeyModifiers::CONTROL } else { KeyModifiers::NONE };
            assert_eq!(self.event(key.code, modifiers, KeyEventKind::Press), None, "{name} ended the program");
        }
        self.screen()
    }

    fn text(&mut self, text: &str) -> String {
        for c in text.chars() {
            self.event(KeyCode::Char(c), KeyModifiers::NONE, KeyEventKind::Press);
        }
        self.screen()
    }

    fn event(&mut self, code: KeyCode, modifiers: KeyModifiers, kind: KeyEventKind) -> Option<ExitReason> {
        self.app.press(&Event::Key(KeyEvent::new_with_kind(code, modifiers, kind)), &mut self.hands)
    }

    /// The row under the cursor.
    fn row(&mut self) -> String {
        self.screen().lines().find(|line| line.contains('▸') && !line.contains("filter")).unwrap_or("").to_owned()
    }
}

/// A simulated cluster after twenty seconds, as the program holds it.
fn living() -> Shared {
    running(Limits::default(), Vec::new()).0
}

/// The same with these limits and faults, and the cluster to go on with.
fn running(limits: Limits, faults: Vec<&'static crate::demo::fault::Kind>) -> (Shared, crate::demo::Cluster) {
    let start_ns = NOW - 20_000 * MS;
    let settings = crate::demo::Settings { seed: 4, faults, ..Default::default() };
    let mut cluster = crate::demo::Cluster::new(&settings, start_ns);
    let store = std::sync::Arc::new(parking_lot::FairMutex::new(Store::new(limits)));
    let shared = Shared::new(store, Vitals::default());
    feed(&shared, &mut cluster, NOW);
    (shared, cluster)
}

/// Takes in what a cluster delivers up to a moment.
fn feed(shared: &Shared, cluster: &mut crate::demo::Cluster, until_ns: u64) {
    let mut store = shared.store.lock();
    for delivery in cluster.advance(until_ns) {
        let signal = match delivery.signal {
            crate::demo::Signal::Traces => crate::source::intake::Signal::Traces,
            crate::demo::Signal::Logs => crate::source::intake::Signal::Logs,
        };
        let mut payload = crate::source::intake::Payload::otlp(signal, delivery.body);
        crate::pipeline::take_in(&mut store, &mut payload, delivery.at_ns).unwrap();
        store.refresh(delivery.at_ns);
    }
}

/// A real capture in a real store (captures/README.md).
fn captured(name: &str) -> Shared {
    use crate::source::intake::{Arrival, Payload, Signal};
    use std::io::Read as _;
    let path = format!("{}/tests/fixtures/{name}", env!("CARGO_MANIFEST_DIR"));
    let mut bytes = Vec::new();
    flate2::read::MultiGzDecoder::new(std::fs::File::open(path).unwrap()).read_to_end(&mut bytes).unwrap();
    let mut store = Store::new(Limits::default());
    let mut rest = bytes.as_slice();
    while let Some(length) = crate::lifecycle::packed::varint(&mut rest) {
        let (message, tail) = rest.split_at(length as usize);
        rest = tail;
        let mut payload = Payload { arrival: Arrival::Before(NOW), ..Payload::otlp(Signal::Traces, message.to_vec()) };
        crate::pipeline::take_in(&mut store, &mut payload, NOW).unwrap();
    }
    store.finish(NOW);
    Shared::new(std::sync::Arc::new(parking_lot::FairMutex::new(store)), Vitals::default())
}
