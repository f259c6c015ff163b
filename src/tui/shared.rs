//! What the writer, the sources and the screen share: the store, what the header tells beside it, and the bell that
//! says something has changed.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::Sender;

use parking_lot::{FairMutex, Mutex};

use super::app::{Event, Hub};
use crate::lifecycle::request::RequestKey;
use crate::store::Store;
use crate::view::data::Data;
use crate::view::header::Vitals;

/// See the module.
pub struct Shared {
    /// The store. Fair, so that a frame waits for one batch at most, and a batch for one frame.
    pub store: FairMutex<Store>,
    /// What the sources tell. Change it through [`Shared::report`].
    vitals: Mutex<Vitals>,
    /// Whether the screen has been told and has not looked yet.
    told: AtomicBool,
    screen: Mutex<Option<Sender<Event>>>,
}

impl Shared {
    /// Around a store.
    pub fn new(store: Store, vitals: Vitals) -> Self {
        Self {
            store: FairMutex::new(store),
            vitals: Mutex::new(vitals),
            told: AtomicBool::new(false),
            screen: Mutex::new(None),
        }
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
        change(&mut self.vitals.lock());
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
    fn look(&self, now_ns: u64, pin: Option<RequestKey>, see: &mut dyn FnMut(&dyn Data, &Vitals)) {
        // Before looking: what comes while we look is told again.
        self.told.store(false, Ordering::Release);
        let vitals = self.vitals.lock().clone();
        let mut store = self.store.lock();
        store.pin(pin);
        store.refresh(now_ns);
        see(&*store, &vitals);
    }
}
