//! The store's one writer: takes payloads off the channel, decodes, ingests, answers.
//!
//! Owns: when the store is refreshed, and the lock under which it is shared with readers. The lock is fair: a reader that
//! waits gets it between two payloads, so a screen is drawn while data pours in. Keeps out: sockets and files (`source`),
//! drawing (`tui`), where payloads go on to (`tap`).

use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use parking_lot::FairMutex;

use crate::heap::Heap;
use crate::source::decode;
use crate::source::intake::{Arrival, Body, Outlet, Payload, Receipt, Received, Refusal};
use crate::source::otlp::json::left_out::LeftOut;
use crate::store::Store;
use crate::tap::Taps;
use crate::tap::queue::Item;

/// After how many bytes taken in without a pause the store is brought up to date all the same.
const REFRESH_BYTES: usize = 2 << 20;

/// When senders pause, the store is brought up to date at once, and from then on at most once in this time: each message
/// changes requests that the next one changes again. Whoever looks at the store brings it up to date first.
const REFRESH_AFTER: Duration = Duration::from_millis(15);

/// How long the writer waits at least for a payload before it asks further checks.
const SHORTEST_WAIT: Duration = Duration::from_millis(1);

/// And how long at most: the clock may have gone back since it was planned.
const LONGEST_WAIT: Duration = Duration::from_secs(10);

/// The clock by which arrivals are counted, nanoseconds since the Unix epoch. An argument, so that tests choose it.
pub type Clock = Arc<dyn Fn() -> u64 + Send + Sync>;

/// Takes one payload into the store; one that arrives just now at `now_ns`.
///
/// # Errors
/// When the payload is not what it should be; the store is then as before.
pub fn take_in(store: &mut Store, payload: &mut Payload, now_ns: u64) -> Result<Receipt, Refusal> {
    let arrival = payload.arrival;
    let is_nothing = payload.is_nothing();
    let batch = decode(payload).map_err(Refusal::Malformed)?;
    let done = match arrival {
        Arrival::Now => store.ingest(&batch, now_ns),
        Arrival::At(arrived_ns) => {
            // A recording tells with nothing that came from when on it listened, and until when.
            if is_nothing {
                store.listens_from(arrived_ns);
            }
            store.ingest(&batch, arrived_ns)
        }
        Arrival::Continues(arrived_ns) => {
            // Who has not read that other file has listened from its end on.
            if store.arrived_ns() != arrived_ns {
                store.listens_from(arrived_ns);
            }
            store.ingest(&batch, arrived_ns)
        }
        Arrival::Before(by_ns) => store.ingest_undated(&batch, by_ns),
    };
    let mut receipt = Receipt::of(&batch);
    if done.shed > 0 {
        receipt.taken -= done.shed;
        receipt.refused += done.shed;
        receipt.reason.get_or_insert_with(|| "memory is full of what may not go (--max-memory)".into());
    }
    Ok(receipt)
}

/// Brings the store up to date and asks the checks that are due; gives how long until there are more to ask, `None` while
/// none are waited for.
fn bring_up_to_date(store: &mut Store, now_ns: u64) -> Option<Duration> {
    store.refresh(now_ns);
    store.check(now_ns);
    let next_ns = store.next_check_ns()?;
    Some(Duration::from_nanos(next_ns.saturating_sub(now_ns)).clamp(SHORTEST_WAIT, LONGEST_WAIT))
}

/// Starts the writer without taps; see [`start_with`].
///
/// # Errors
/// The system gives no thread.
pub fn start(
    outlet: Outlet,
    store: Arc<FairMutex<Store>>,
    clock: Clock,
    changed: impl Fn() + Send + 'static,
) -> std::io::Result<JoinHandle<()>> {
    start_with(outlet, store, clock, Taps::new(), changed)
}

/// Starts the writer. It ends when every source is gone and everything is taken in; the taps, which are handed all that was
/// taken in before it is acknowledged, end with it. `changed` is called after the store has been brought up to date.
///
/// # Errors
/// The system gives no thread.
pub fn start_with(
    mut outlet: Outlet,
    store: Arc<FairMutex<Store>>,
    clock: Clock,
    mut taps: Taps,
    changed: impl Fn() + Send + 'static,
) -> std::io::Result<JoinHandle<()>> {
    let work = move || {
        let mut patience = None;
        let mut refreshed_ns = 0u64;
        let mut heap = Heap::default();
        let begun_ns = clock();
        taps.iter_mut().for_each(|tap| tap.begin(begun_ns));
        loop {
            let first = match patience {
                None => outlet.recv(),
                Some(time) => match outlet.recv_timeout(time) {
                    Received::Delivery(delivery) => Some(delivery),
                    Received::Closed => None,
                    Received::Nothing => {
                        refreshed_ns = clock();
                        let held = {
                            let mut store = store.lock();
                            patience = bring_up_to_date(&mut store, refreshed_ns);
                            store.memory()
                        };
                        heap.follow(held);
                        changed();
                        continue;
                    }
                },
            };
            let Some(first) = first else {
                let now_ns = clock();
                bring_up_to_date(&mut store.lock(), now_ns);
                taps.iter_mut().for_each(|tap| tap.end(now_ns));
                changed();
                return;
            };
            let (mut next, mut taken) = (Some(first), 0);
            while let Some(mut delivery) = next {
                taken += delivery.payload.size();
                let now_ns = delivery.payload.arrival.or(|| clock());
                let left_out = if taps.is_empty() { None } else { LeftOut::of(&delivery.payload.tally) };
                let mut store = store.lock();
                let outcome = take_in(&mut store, &mut delivery.payload, now_ns);
                next = outlet.try_recv();
                let since = Duration::from_nanos(now_ns.saturating_sub(refreshed_ns));
                let due = taken >= REFRESH_BYTES || (next.is_none() && since >= REFRESH_AFTER);
                if due {
                    (taken, refreshed_ns) = (0, now_ns);
                    patience = bring_up_to_date(&mut store, now_ns);
                } else {
                    patience = Some(REFRESH_AFTER.saturating_sub(since).max(SHORTEST_WAIT));
                }
                let held = due.then(|| store.memory());
                drop(store);
                if let (Ok(_), Body::Otlp(signal, bytes), false) = (&outcome, &delivery.payload.body, taps.is_empty()) {
                    let (bytes, way) = (bytes.clone(), delivery.payload.way.clone());
                    let item = Item { signal: *signal, bytes, arrived_ns: now_ns, way, left_out };
                    taps.iter_mut().for_each(|tap| tap.take(&item));
                }
                delivery.answer(outcome);
                if let Some(held) = held {
                    heap.follow(held);
                    changed();
                }
            }
        }
    };
    std::thread::Builder::new().name("store".into()).spawn(work)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source::intake::{Bounds, Signal, channel};
    use crate::store::Limits;

    #[test]
    fn what_is_offered_is_in_the_store_when_it_is_acknowledged() {
        let (intake, outlet) = channel(Bounds::default());
        let store = Arc::new(FairMutex::new(Store::new(Limits::default())));
        let writer = start(outlet, Arc::clone(&store), Arc::new(|| 7), || {}).unwrap();
        let receipt = intake.offer_blocking(Payload::otlp(Signal::Metrics, Vec::new())).unwrap();
        assert_eq!(receipt, Receipt::default());
        assert_eq!(store.lock().arrived_ns(), 7);
        let refusal = intake.offer_blocking(Payload::otlp(Signal::Traces, vec![0xff])).unwrap_err();
        assert!(matches!(refusal, Refusal::Malformed(_)));
        drop(intake);
        writer.join().unwrap();
    }

    #[test]
    fn the_store_is_brought_up_to_date_though_nothing_more_comes() {
        let (intake, outlet) = channel(Bounds::default());
        let store = Arc::new(FairMutex::new(Store::new(Limits::default())));
        let (bell, rung) = std::sync::mpsc::channel();
        // A clock that stands still: by it, no time ever passes.
        let writer = start(outlet, Arc::clone(&store), Arc::new(|| 7), move || bell.send(()).unwrap()).unwrap();
        for _ in 0..3 {
            intake.offer_blocking(Payload::otlp(Signal::Metrics, Vec::new())).unwrap();
        }
        rung.recv_timeout(Duration::from_secs(20)).unwrap();
        drop(intake);
        writer.join().unwrap();
    }
}
