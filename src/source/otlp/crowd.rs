//! The connections that are open, over all listeners: how many there may be, and which one goes when there are too many.
//!
//! Owns: the bound and the choice. One that never asked for anything goes before one that did, then the one idle longest;
//! one with a request under way never goes. Keeps out: sockets.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio::time::Instant;

/// The open connections; clones share them.
#[derive(Clone)]
pub(super) struct Crowd(Arc<Inner>);

struct Inner {
    most: usize,
    since: Instant,
    places: Mutex<Places>,
}

#[derive(Default)]
struct Places {
    next: u64,
    held: HashMap<u64, Arc<Seat>>,
}

/// What is known of one connection.
#[derive(Default)]
struct Seat {
    /// Requests under way.
    busy: AtomicU32,
    /// Requests so far.
    asked: AtomicU64,
    /// When the last one was answered, or it came; milliseconds since the crowd began.
    idle_since_ms: AtomicU64,
    leave: Notify,
}

/// A connection's place among the others; given back when dropped.
pub(super) struct Place {
    crowd: Crowd,
    number: u64,
    seat: Arc<Seat>,
}

/// Counts a connection's requests.
#[derive(Clone)]
pub(super) struct Requests {
    crowd: Crowd,
    seat: Arc<Seat>,
}

/// A request under way, until dropped.
pub(super) struct Busy(Requests);

/// How a connection came in.
pub(super) enum Entered {
    /// There was room.
    Free(Place),
    /// An idle one went for it.
    Instead(Place),
    /// All are busy.
    Full,
}

impl Crowd {
    /// At most this many.
    pub fn new(most: usize) -> Self {
        Self(Arc::new(Inner { most: most.max(1), since: Instant::now(), places: Mutex::default() }))
    }

    /// How many there may be.
    pub fn most(&self) -> usize {
        self.0.most
    }

    fn now_ms(&self) -> u64 {
        u64::try_from(self.0.since.elapsed().as_millis()).unwrap_or(u64::MAX)
    }

    /// Takes one in, if need be for one that is idle.
    pub fn enter(&self) -> Entered {
        let mut places = self.0.places.lock();
        let full = places.held.len() >= self.0.most;
        if full && !let_go(&mut places) {
            return Entered::Full;
        }
        let number = places.next;
        places.next += 1;
        let seat = Arc::new(Seat { idle_since_ms: AtomicU64::new(self.now_ms()), ..Seat::default() });
        places.held.insert(number, Arc::clone(&seat));
        drop(places);
        let place = Place { crowd: self.clone(), number, seat };
        if full { Entered::Instead(place) } else { Entered::Free(place) }
    }

    /// Lets the one go that is idle longest, if one is idle.
    pub fn let_one_go(&self) {
        let_go(&mut self.0.places.lock());
    }
}

fn let_go(places: &mut Places) -> bool {
    let idle = places.held.iter().filter(|(_, seat)| seat.busy.load(Ordering::Relaxed) == 0);
    let longest = idle.min_by_key(|(number, seat)| {
        (seat.asked.load(Ordering::Relaxed) > 0, seat.idle_since_ms.load(Ordering::Relaxed), **number)
    });
    let Some(number) = longest.map(|(number, _)| *number) else { return false };
    if let Some(seat) = places.held.remove(&number) {
        seat.leave.notify_one();
    }
    true
}

impl Place {
    /// Ready when the connection has to go.
    pub async fn leave(&self) {
        self.seat.leave.notified().await;
    }

    /// Counts its requests.
    pub fn requests(&self) -> Requests {
        Requests { crowd: self.crowd.clone(), seat: Arc::clone(&self.seat) }
    }
}

impl Requests {
    /// A request came; it is under way until what is given is dropped.
    pub fn busy(&self) -> Busy {
        self.seat.busy.fetch_add(1, Ordering::Relaxed);
        self.seat.asked.fetch_add(1, Ordering::Relaxed);
        Busy(self.clone())
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.crowd.0.places.lock().held.remove(&self.number);
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        let Self(Requests { crowd, seat }) = self;
        seat.idle_since_ms.store(crowd.now_ms(), Ordering::Relaxed);
        seat.busy.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(entered: Entered) -> Place {
        match entered {
            Entered::Free(place) | Entered::Instead(place) => place,
            Entered::Full => panic!("full"),
        }
    }

    fn must_leave(place: &Place) -> bool {
        use std::task::{Context, Poll, Waker};
        let mut context = Context::from_waker(Waker::noop());
        std::pin::pin!(place.leave()).poll(&mut context) == Poll::Ready(())
    }

    #[test]
    fn strangers_go_first_then_the_longest_idle_and_busy_ones_never() {
        let crowd = Crowd::new(3);
        let known = place(crowd.enter());
        drop(known.requests().busy());
        let stranger = place(crowd.enter());
        let working = place(crowd.enter());
        let at_work = working.requests().busy();
        let fourth = crowd.enter();
        assert!(matches!(fourth, Entered::Instead(_)) && must_leave(&stranger) && !must_leave(&known));
        let fourth = place(fourth);
        let _under_way = fourth.requests().busy();
        let fifth = place(crowd.enter());
        assert!(must_leave(&known));
        let _too = fifth.requests().busy();
        assert!(matches!(crowd.enter(), Entered::Full));
        // What was let go gives back nothing twice.
        drop((stranger, known));
        assert!(matches!(crowd.enter(), Entered::Full));
        drop(at_work);
        assert!(matches!(crowd.enter(), Entered::Instead(_)) && must_leave(&working));
    }
}
