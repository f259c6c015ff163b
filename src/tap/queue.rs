//! A queue between the store's writer and a way out: bounded in bytes, never waited for on the way in.
//!
//! Owns: the bound, and the counts of what waits and what did not fit. Keeps out: what becomes of the items.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Instant;

use bytes::Bytes;
use tokio::sync::mpsc;

use crate::source::intake::{Signal, wait};
use crate::source::otlp::json::left_out::LeftOut;
use crate::source::way::Way;

/// What an item takes beside its bytes.
const OVERHEAD: usize = 128;

/// Something on its way out.
#[derive(Clone, Debug)]
pub struct Item {
    /// What it is.
    pub signal: Signal,
    /// An export request in protobuf.
    pub bytes: Bytes,
    /// When it came, nanoseconds since the epoch.
    pub arrived_ns: u64,
    /// Who has passed it on before.
    pub way: Way,
    /// What is not in the bytes; `None` for nothing.
    pub left_out: Option<Box<LeftOut>>,
}

impl Item {
    /// What came straight from its sender.
    pub fn straight(signal: Signal, bytes: &Bytes, arrived_ns: u64) -> Self {
        Self { signal, bytes: bytes.clone(), arrived_ns, way: Way::Straight, left_out: None }
    }

    fn size(&self) -> usize {
        self.bytes.len() + self.left_out.as_ref().map_or(0, |left_out| left_out.size()) + OVERHEAD
    }
}

#[derive(Debug, Default)]
struct Counts {
    waiting: AtomicUsize,
    waiting_bytes: AtomicUsize,
    dropped: AtomicU64,
}

/// The way in.
#[derive(Debug)]
pub struct Entry {
    sender: mpsc::UnboundedSender<Item>,
    counts: Arc<Counts>,
    bound: usize,
}

/// The way out.
#[derive(Debug)]
pub struct Exit {
    receiver: mpsc::UnboundedReceiver<Item>,
    counts: Arc<Counts>,
}

/// What waits.
#[derive(Clone, Debug)]
pub struct Gauge(Arc<Counts>);

/// A queue that holds items of at most `bound` bytes together, and at least one.
pub fn queue(bound: usize) -> (Entry, Exit, Gauge) {
    let (sender, receiver) = mpsc::unbounded_channel();
    let counts = Arc::<Counts>::default();
    (
        Entry { sender, counts: Arc::clone(&counts), bound },
        Exit { receiver, counts: Arc::clone(&counts) },
        Gauge(counts),
    )
}

impl Entry {
    /// Puts an item into the queue; drops and counts it when there is no room or nobody takes items out any more.
    pub fn put(&self, item: Item) {
        let size = item.size();
        let before = self.counts.waiting_bytes.fetch_add(size, Ordering::AcqRel);
        self.counts.waiting.fetch_add(1, Ordering::AcqRel);
        let fits = before == 0 || before + size <= self.bound;
        if !fits || self.sender.send(item).is_err() {
            self.counts.waiting_bytes.fetch_sub(size, Ordering::AcqRel);
            self.counts.waiting.fetch_sub(1, Ordering::AcqRel);
            self.counts.dropped.fetch_add(1, Ordering::AcqRel);
        }
    }
}

impl Exit {
    /// The next item; `None` when the way in is gone and everything came out. It still counts as waiting until it is
    /// [`Exit::done`].
    pub async fn next(&mut self) -> Option<Item> {
        self.receiver.recv().await
    }

    /// Likewise on a thread that may wait, but not longer than `until`: the outer `None` is that the time is over.
    pub fn next_until(&mut self, until: Option<Instant>) -> Option<Option<Item>> {
        wait(self.next(), until)
    }

    /// The next item, when there is one.
    pub fn try_next(&mut self) -> Option<Item> {
        self.receiver.try_recv().ok()
    }

    /// Gives an item's room back.
    pub fn done(&self, item: &Item) {
        self.counts.waiting_bytes.fetch_sub(item.size(), Ordering::AcqRel);
        self.counts.waiting.fetch_sub(1, Ordering::AcqRel);
    }
}

impl Gauge {
    /// Items that wait, or are being dealt with.
    pub fn waiting(&self) -> u64 {
        self.0.waiting.load(Ordering::Acquire) as u64
    }

    /// Their bytes.
    pub fn waiting_bytes(&self) -> usize {
        self.0.waiting_bytes.load(Ordering::Acquire)
    }

    /// Items that found no room.
    pub fn dropped(&self) -> u64 {
        self.0.dropped.load(Ordering::Acquire)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn item(size: usize) -> Item {
        Item::straight(Signal::Traces, &vec![0; size - OVERHEAD].into(), 0)
    }

    #[test]
    fn what_does_not_fit_is_counted_and_room_comes_back() {
        let (entry, mut exit, gauge) = queue(1000);
        // Larger than all the room there is: it still goes in, alone.
        entry.put(item(2000));
        entry.put(item(200));
        assert_eq!((gauge.waiting(), gauge.waiting_bytes(), gauge.dropped()), (1, 2000, 1));
        let first = exit.try_next().unwrap();
        assert_eq!(gauge.waiting(), 1);
        exit.done(&first);
        (0..6).for_each(|_| entry.put(item(200)));
        assert_eq!((gauge.waiting(), gauge.waiting_bytes(), gauge.dropped()), (5, 1000, 2));
        drop(entry);
        let mut out = 0;
        while let Some(Some(item)) = exit.next_until(None) {
            exit.done(&item);
            out += 1;
        }
        assert_eq!((out, gauge.waiting(), gauge.waiting_bytes()), (5, 0, 0));
        let (entry, exit, gauge) = queue(1000);
        drop(exit);
        entry.put(item(200));
        assert_eq!((gauge.waiting(), gauge.dropped()), (0, 1));
    }
}
