//! The bounded way from sources to the one writer of the store.
//!
//! A payload is acknowledged only after the writer has taken it in, so nothing acknowledged is lost; a full channel is
//! answered with [`Refusal::Busy`] after a short wait. Owns: the channel, its bounds (payloads and bytes), the receipts.
//! Keeps out: decoding (`otlp`), keeping (`store`), what never gets here (`notices`).

use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread};
use std::time::{Duration, Instant};

use bytes::Bytes;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc, oneshot};

use crate::lifecycle::batch::{Batch, Tally};
use crate::lifecycle::record::Record;
use crate::source::way::Way;

/// How long [`Intake::offer`] waits for room before it answers [`Refusal::Busy`].
const PATIENCE: Duration = Duration::from_millis(200);

/// The three signals of OTLP.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Signal {
    /// Spans.
    Traces,
    /// Log records.
    Logs,
    /// Metric data points.
    Metrics,
}

impl Signal {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Traces, Self::Logs, Self::Metrics];
}

/// What a source delivers.
#[derive(Debug)]
pub struct Payload {
    /// The data.
    pub body: Body,
    /// What the source refused or only counted on the way; the batch starts from it.
    pub tally: Tally,
    /// When it arrived.
    pub arrival: Arrival,
    /// Who has passed it on before.
    pub way: Way,
}

/// When a payload arrived, as far as its source knows; nanoseconds since the epoch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Arrival {
    /// Just now, by the clock of whoever takes it in.
    #[default]
    Now,
    /// Then: a recording says so.
    At(u64),
    /// Likewise, of what begins a file that goes on where another one ended: with what arrived then.
    Continues(u64),
    /// Before that, and nobody noted when: a file.
    Before(u64),
}

impl Arrival {
    /// When it arrived, else what a clock says.
    pub fn or(self, clock: impl FnOnce() -> u64) -> u64 {
        match self {
            Self::At(arrived_ns) | Self::Continues(arrived_ns) => arrived_ns,
            Self::Now | Self::Before(_) => clock(),
        }
    }
}

/// The data of a payload.
#[derive(Debug)]
pub enum Body {
    /// An export request of this signal in protobuf.
    Otlp(Signal, Bytes),
    /// Request-trace records read from a file.
    Records(Vec<Record>),
}

impl Payload {
    /// An export request in protobuf, as it came.
    pub fn otlp(signal: Signal, bytes: impl Into<Bytes>) -> Self {
        Self {
            body: Body::Otlp(signal, bytes.into()),
            tally: Tally::default(),
            arrival: Arrival::Now,
            way: Way::Straight,
        }
    }

    /// Trace records read from a file.
    pub fn records(records: Vec<Record>) -> Self {
        Self { body: Body::Records(records), tally: Tally::default(), arrival: Arrival::Now, way: Way::Straight }
    }

    /// Whether it holds nothing at all, not even what was refused.
    pub fn is_nothing(&self) -> bool {
        self.size() == 0 && self.tally == Tally::default()
    }

    /// The bytes it takes in memory, about.
    pub fn size(&self) -> usize {
        match &self.body {
            Body::Otlp(_, bytes) => bytes.len(),
            Body::Records(records) => records.iter().map(Record::size).sum(),
        }
    }
}

/// What became of a payload that was taken in.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Receipt {
    /// Spans, log records, data points or trace records taken.
    pub taken: u64,
    /// Spans refused for themselves, records that could not be read.
    pub refused: u64,
    /// The first reason: what was expected and what came. With nothing refused, a word on what was taken without some part.
    pub reason: Option<String>,
}

impl Receipt {
    /// The receipt for a batch that was taken in.
    pub fn of(batch: &Batch<'_>) -> Self {
        let tally = &batch.tally;
        let held = batch.spans.len() + batch.records.len() + batch.signs.len();
        Self {
            taken: held as u64 + tally.other_logs + tally.metric_points,
            refused: tally.refused_spans + tally.bad_records,
            reason: tally.refusal.clone(),
        }
    }
}

/// Why a payload was not taken in at all.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// The bytes are not what they should be; the sentence says what was expected and what came.
    Malformed(String),
    /// The store cannot keep up; the sender should try again shortly.
    Busy,
    /// The program is ending.
    Closed,
}

/// How much may wait for the writer.
#[derive(Clone, Copy, Debug)]
pub struct Bounds {
    /// Payloads.
    pub payloads: usize,
    /// Bytes over all waiting payloads; a single larger one waits for an empty channel.
    pub bytes: usize,
}

impl Default for Bounds {
    fn default() -> Self {
        Self { payloads: 256, bytes: 64 << 20 }
    }
}

/// The channel: the half that sources share, and the writer's half.
pub fn channel(bounds: Bounds) -> (Intake, Outlet) {
    let (sender, receiver) = mpsc::channel(bounds.payloads.max(1));
    let capacity = bounds.bytes.clamp(1, (u32::MAX as usize).min(Semaphore::MAX_PERMITS)) as u32;
    let room = Arc::new(Semaphore::new(capacity as usize));
    (Intake { sender, room, capacity }, Outlet { receiver })
}

/// The sources' half. Cloned for every source.
#[derive(Clone, Debug)]
pub struct Intake {
    sender: mpsc::Sender<Delivery>,
    room: Arc<Semaphore>,
    capacity: u32,
}

impl Intake {
    /// Hands over a payload and waits until the writer has taken it in; for network sources, within a tokio runtime.
    ///
    /// # Errors
    /// [`Refusal::Busy`] when there was no room for 200 ms; [`Refusal::Malformed`] and [`Refusal::Closed`] as they say.
    pub async fn offer(&self, payload: Payload) -> Result<Receipt, Refusal> {
        let enter = tokio::time::timeout(PATIENCE, self.enter(payload));
        let reply = enter.await.map_err(|_| Refusal::Busy)??;
        reply.await.unwrap_or(Err(Refusal::Closed))
    }

    /// Hands over a payload, waiting as long as it takes for room, and waits until the writer has taken it in; for
    /// file threads, which rather read slower than lose anything.
    ///
    /// # Errors
    /// [`Refusal::Malformed`] and [`Refusal::Closed`] as they say; never [`Refusal::Busy`].
    pub fn offer_blocking(&self, payload: Payload) -> Result<Receipt, Refusal> {
        let delivered = async { self.enter(payload).await?.await.unwrap_or(Err(Refusal::Closed)) };
        wait(delivered, None).unwrap_or(Err(Refusal::Closed))
    }

    async fn enter(&self, payload: Payload) -> Result<oneshot::Receiver<Result<Receipt, Refusal>>, Refusal> {
        let size = u32::try_from(payload.size()).unwrap_or(u32::MAX).clamp(1, self.capacity);
        let room = Arc::clone(&self.room).acquire_many_owned(size).await.map_err(|_| Refusal::Closed)?;
        let (reply, receipt) = oneshot::channel();
        let delivery = Delivery { payload, reply, room };
        self.sender.send(delivery).await.map_err(|_| Refusal::Closed)?;
        Ok(receipt)
    }
}

/// The writer's half.
#[derive(Debug)]
pub struct Outlet {
    receiver: mpsc::Receiver<Delivery>,
}

/// What [`Outlet::recv_timeout`] came back with.
#[derive(Debug)]
#[expect(clippy::large_enum_variant, reason = "one at a time")]
pub enum Received {
    /// A payload.
    Delivery(Delivery),
    /// Nothing in this time.
    Nothing,
    /// Every [`Intake`] is gone and everything was delivered.
    Closed,
}

impl Outlet {
    /// The next payload, waiting for it; `None` when every [`Intake`] is gone and everything was delivered.
    pub fn recv(&mut self) -> Option<Delivery> {
        wait(self.receiver.recv(), None).flatten()
    }

    /// The next payload, waiting for it at most this long.
    pub fn recv_timeout(&mut self, patience: Duration) -> Received {
        match wait(self.receiver.recv(), Some(Instant::now() + patience)) {
            None => Received::Nothing,
            Some(Some(delivery)) => Received::Delivery(delivery),
            Some(None) => Received::Closed,
        }
    }

    /// The next payload if one is there.
    pub fn try_recv(&mut self) -> Option<Delivery> {
        self.receiver.try_recv().ok()
    }

    /// Takes nothing more: what waits can still be received, what is offered from now on is [`Refusal::Closed`].
    pub fn close(&mut self) {
        self.receiver.close();
    }
}

/// A payload on its way, holding its room in the channel until it is answered. Dropped without an answer, it reads as
/// [`Refusal::Closed`].
#[derive(Debug)]
pub struct Delivery {
    /// What was delivered.
    pub payload: Payload,
    reply: oneshot::Sender<Result<Receipt, Refusal>>,
    #[expect(dead_code, reason = "held for its drop")]
    room: OwnedSemaphorePermit,
}

impl Delivery {
    /// Tells the source what became of it.
    pub fn answer(self, outcome: Result<Receipt, Refusal>) {
        // A source that went away meanwhile needs no answer.
        let _ = self.reply.send(outcome);
    }
}

/// Runs a future on this thread until it is ready or the time is over. For channels, whose parts need no runtime, but may be
/// used within one: a task's budget, which its scheduler would renew, must not run out while it stands still here.
pub fn wait<T>(future: impl Future<Output = T>, until: Option<Instant>) -> Option<T> {
    struct Unpark(Thread);
    impl Wake for Unpark {
        fn wake(self: Arc<Self>) {
            self.0.unpark();
        }
    }
    let waker = Waker::from(Arc::new(Unpark(thread::current())));
    let mut context = Context::from_waker(&waker);
    let mut future = std::pin::pin!(tokio::task::unconstrained(future));
    loop {
        if let Poll::Ready(value) = future.as_mut().poll(&mut context) {
            return Some(value);
        }
        match until {
            None => thread::park(),
            Some(until) => match until.checked_duration_since(Instant::now()) {
                Some(left) if !left.is_zero() => thread::park_timeout(left),
                _ => return None,
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn payload(size: usize) -> Payload {
        Payload::otlp(Signal::Traces, vec![0; size])
    }

    #[test]
    fn what_is_answered_is_what_the_source_hears() {
        let (intake, mut outlet) = channel(Bounds::default());
        let writer = thread::spawn(move || {
            let mut sizes = Vec::new();
            while let Some(delivery) = outlet.recv() {
                sizes.push(delivery.payload.size());
                match sizes.len() {
                    1 => delivery.answer(Ok(Receipt { taken: 3, ..Receipt::default() })),
                    2 => delivery.answer(Err(Refusal::Malformed("why".into()))),
                    // Forgotten: the source hears that all the same.
                    _ => drop(delivery),
                }
            }
            sizes
        });
        assert_eq!(intake.offer_blocking(payload(1)).map(|receipt| receipt.taken), Ok(3));
        assert_eq!(intake.offer_blocking(payload(2)), Err(Refusal::Malformed("why".into())));
        assert_eq!(intake.offer_blocking(payload(3)), Err(Refusal::Closed));
        drop(intake);
        assert_eq!(writer.join().unwrap(), [1, 2, 3]);
    }

    /// A trace store's reader waits for the writer in the middle of its task, as often as there are traces in a page.
    #[test]
    fn any_number_of_payloads_is_handed_over_within_one_task() {
        let (intake, mut outlet) = channel(Bounds::default());
        let writer = thread::spawn(move || {
            let mut count = 0;
            while let Some(delivery) = outlet.recv() {
                count += 1;
                delivery.answer(Ok(Receipt::default()));
            }
            count
        });
        let (done, is_done) = std::sync::mpsc::channel();
        thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
            runtime.block_on(async { (0..1000).for_each(|_| _ = intake.offer_blocking(payload(1)).unwrap()) });
            let _ = done.send(());
        });
        is_done.recv_timeout(Duration::from_secs(60)).expect("all of them within one poll of a task");
        assert_eq!(writer.join().unwrap(), 1000);
    }

    #[test]
    fn a_full_channel_is_busy_and_room_comes_back_with_the_answer() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        for bounds in [Bounds { payloads: 1, bytes: 1 << 20 }, Bounds { payloads: 9, bytes: 10 }] {
            let (intake, mut outlet) = channel(bounds);
            runtime.block_on(async {
                // Larger than all the room there is: it still goes in, alone.
                let mut first = std::pin::pin!(intake.offer(payload(100)));
                assert!(std::future::poll_fn(|context| Poll::Ready(first.as_mut().poll(context).is_pending())).await);
                assert_eq!(intake.offer(payload(1)).await, Err(Refusal::Busy));
                outlet.try_recv().unwrap().answer(Ok(Receipt::default()));
                assert_eq!(first.await, Ok(Receipt::default()));
                let mut next = std::pin::pin!(intake.offer(payload(1)));
                assert!(std::future::poll_fn(|context| Poll::Ready(next.as_mut().poll(context).is_pending())).await);
                outlet.close();
                assert_eq!(intake.offer(payload(1)).await, Err(Refusal::Closed));
                outlet.try_recv().unwrap().answer(Ok(Receipt::default()));
                assert_eq!(next.await, Ok(Receipt::default()));
            });
        }
    }

    #[test]
    fn waiting_ends_in_time_and_with_the_last_source() {
        let (intake, mut outlet) = channel(Bounds::default());
        assert!(matches!(outlet.recv_timeout(Duration::from_millis(1)), Received::Nothing));
        assert!(outlet.try_recv().is_none());
        drop(intake);
        assert!(matches!(outlet.recv_timeout(Duration::from_secs(9)), Received::Closed));
        assert!(outlet.recv().is_none());
    }
}
