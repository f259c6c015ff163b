//! What the writer, the sources and the screen share: the store, what the header tells beside it, and the bell that
//! says something has changed.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::Sender;
use std::time::{Duration, Instant};

use parking_lot::{FairMutex, Mutex};

use super::app::{Event, Hub, Look, See};
use crate::store::{Past, Store, time_of};
use crate::view::header::{Vitals, WayOut};

/// Notices kept; older ones go.
const NOTICES: usize = 500;

/// Tells how the ways out stand at the moment.
type Watch = Box<dyn Fn() -> Vec<WayOut> + Send + Sync>;

/// Hears whether the screen stands still.
type Hold = Box<dyn Fn(bool) + Send + Sync>;

/// The last moment of what is held. To find it costs a look at every request: no more of the time than a share goes to it.
#[derive(Default)]
struct LastMoment {
    version: Option<u64>,
    at_ns: u64,
    looked: Option<Instant>,
    cost: Duration,
}

/// The share of time spent on looking for it, as its inverse.
const REST: u32 = 8;

impl LastMoment {
    /// As a report has it, nanoseconds since the epoch; 0 while nothing is held. Of what there was, while that stands still.
    fn of(&mut self, store: &Store, past: Option<&Arc<Past>>) -> u64 {
        let rested = self.looked.is_none_or(|looked| looked.elapsed() >= self.cost * REST);
        if self.version != Some(store.version()) && rested {
            let started = Instant::now();
            let there = store.requests().filter_map(|(key, facts)| match past {
                Some(past) if !past.has(key) => None,
                Some(past) => Some(store.before(past, key).map_or(facts, |before| &before.facts)),
                None => Some(facts),
            });
            let noted_ns = store.noted_ns().min(past.map_or(u64::MAX, |past| past.at_ns()));
            self.at_ns = there.map(time_of).max().unwrap_or(0).max(noted_ns);
            (self.version, self.looked, self.cost) = (Some(store.version()), Some(started), started.elapsed());
        }
        self.at_ns
    }
}

/// See the module.
pub struct Shared {
    /// The store. Fair, so that a frame waits for one batch at most, and a batch for one frame.
    pub store: Arc<FairMutex<Store>>,
    /// What the sources tell. Change it through [`Shared::report`].
    vitals: Mutex<Vitals>,
    /// Whether the screen has been told and has not looked yet.
    told: AtomicBool,
    screen: Mutex<Option<Sender<Event>>>,
    watch: Mutex<Option<Watch>>,
    hold: Mutex<Option<Hold>>,
    /// Where windows of time end; `None`: at the present.
    end: Mutex<Option<LastMoment>>,
}

impl Shared {
    /// Around a store.
    pub fn new(store: Arc<FairMutex<Store>>, vitals: Vitals) -> Self {
        Self {
            store,
            vitals: Mutex::new(vitals),
            told: AtomicBool::new(false),
            screen: Mutex::new(None),
            watch: Mutex::new(None),
            hold: Mutex::new(None),
            end: Mutex::new(None),
        }
    }

    /// Tells this from now on, at each look, whether the screen stands still.
    pub fn on_hold(&self, hold: impl Fn(bool) + Send + Sync + 'static) {
        *self.hold.lock() = Some(Box::new(hold));
    }

    /// Has windows of time end with what is held, as those of a report do: nothing comes in that happens now, and files are
    /// as old as they are.
    pub fn ends_with_what_is_held(&self) {
        *self.end.lock() = Some(LastMoment::default());
    }

    /// Where a window of time ends, nanoseconds since the epoch.
    fn until_ns(&self, look: &Look<'_>, store: &Store) -> u64 {
        let past = store.held();
        // A moment that was gone back to is one of what is held already.
        let looks_back = past.is_some_and(|past| past.looks_back());
        match &mut *self.end.lock() {
            Some(last) if look.window_ns.is_some() && !looks_back => last.of(store, past),
            _ => store.shown_ns(),
        }
    }

    /// Asks this from now on how the ways out stand.
    pub fn watch(&self, ways: impl Fn() -> Vec<WayOut> + Send + Sync + 'static) {
        *self.watch.lock() = Some(Box::new(ways));
    }

    /// Says that something has changed; costs next to nothing while the screen has not looked since the last time.
    pub fn changed(&self) {
        if !self.told.swap(true, Ordering::AcqRel)
            && let Some(screen) = &*self.screen.lock()
        {
            // The screen has just ended: nobody is left to be told.
            let _ = screen.send(Event::Data);
        }
    }

    /// Changes what the sources tell, and says so.
    pub fn report(&self, change: impl FnOnce(&mut Vitals)) {
        {
            let mut vitals = self.vitals.lock();
            change(&mut vitals);
            let over = vitals.notices.len().saturating_sub(NOTICES);
            vitals.notices.drain(..over);
        }
        self.changed();
    }

    /// Tells this screen from now on.
    pub(super) fn tell(&self, screen: Sender<Event>) {
        *self.screen.lock() = Some(screen);
    }

    /// Tells nobody any more.
    pub(super) fn hush(&self) {
        *self.screen.lock() = None;
    }
}

impl Hub for Shared {
    fn look(&self, look: &Look<'_>, see: &mut See<'_>) {
        // Before looking: what comes while we look is told again.
        self.told.store(false, Ordering::Release);
        let mut vitals = self.vitals.lock().clone();
        vitals.ways_out = self.watch.lock().as_ref().map_or_else(Vec::new, |ways| ways());
        let mut store = self.store.lock();
        vitals.last_arrival_ns = (store.arrived_ns() > 0).then(|| store.arrived_ns());
        store.pin(look.pin);
        store.refresh(look.now_ns);
        let until_ns = self.until_ns(look, &store);
        store.look(look.filter.query(), look.window_ns, until_ns);
        store.refresh_lens(until_ns);
        let past = see(&*store, &vitals);
        match &past {
            Some(past) => store.hold(past),
            None => store.release(),
        }
        drop(store);
        if let Some(hold) = &*self.hold.lock() {
            hold(past.is_some());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::Limits;
    use crate::view::data::Data;
    use crate::view::filter::Filter;
    use std::sync::mpsc::channel;

    fn look(shared: &Shared, see: &mut dyn FnMut(&dyn Data, &Vitals)) {
        let look = Look { now_ns: 1, pin: None, filter: &Filter::default(), window_ns: None };
        shared.look(&look, &mut |data, vitals| {
            see(data, vitals);
            None
        });
    }

    #[test]
    fn the_screen_is_told_once_until_it_looks() {
        let shared = Shared::new(Arc::new(FairMutex::new(Store::new(Limits::default()))), Vitals::default());
        shared.changed();
        let (sender, events) = channel();
        shared.tell(sender);
        // What changed before there was a screen needs no telling: its first frame shows it.
        look(&shared, &mut |_, _| {});
        for _ in 0..3 {
            shared.report(|vitals| vitals.busy += 1);
        }
        assert_eq!(events.try_iter().count(), 1);
        look(&shared, &mut |_, vitals| assert_eq!(vitals.busy, 3));
        shared.changed();
        assert_eq!(events.try_iter().count(), 1);
        shared.hush();
        look(&shared, &mut |_, _| {});
        shared.changed();
        assert!(events.try_recv().is_err());
    }
}
