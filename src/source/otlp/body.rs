//! Bodies as they come in, within bounds: of each one, of all that are coming in at once, and of what those are made into
//! that come compressed or as JSON.
//!
//! What senders have sent of bodies that are not whole yet lies here, outside the channel's bounds; a thousand of them that
//! each stop before the last byte would fill any memory, and so would a thousand small ones that inflate to the largest
//! message each. Keeps out: what bodies mean (`grpc`, `http`), inflating itself (`coding`).

use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use bytes::{Bytes, BytesMut};
use http_body_util::BodyExt;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// How long a body waits for room before its sender is told to try again.
const PATIENCE: Duration = Duration::from_millis(200);
/// How many of the largest messages may be coming in at once, and how many may lie here inflated or read from JSON.
const MESSAGES: usize = 8;
/// Room for a body is taken in steps of at least this many bytes.
const STEP: usize = 4 << 10;
/// Parts of a body below this many bytes are put together at once: each on its own would cost more than it holds.
const SMALL_PART: usize = 4 << 10;
/// What is put together grows to about this many bytes.
const TOGETHER: usize = 64 << 10;

/// Room for bodies that are coming in.
#[derive(Clone)]
pub(super) struct Room {
    bytes: Arc<Semaphore>,
    made: Arc<Semaphore>,
    patience: Duration,
}

/// Room for what a body is made into, until dropped.
pub(super) struct Making(OwnedSemaphorePermit);

impl Making {
    /// Keeps as much as there turned out to be.
    pub fn came_to(&mut self, size: usize) {
        drop(self.0.split(self.0.num_permits().saturating_sub(size)));
    }
}

/// A whole body. Holds its room until it is dropped.
pub(super) struct Whole {
    pub bytes: Bytes,
    _room: Option<OwnedSemaphorePermit>,
}

/// Why a body did not become whole.
#[derive(Debug)]
pub(super) enum Broken {
    /// Larger than its limit.
    TooLarge,
    /// Too much is coming in.
    Busy,
    /// It ended early; says how.
    Early(String),
}

impl Room {
    /// Room beside messages of at most this size.
    pub fn new(max_message: usize) -> Self {
        let bytes = max_message.saturating_mul(MESSAGES).clamp(1, Semaphore::MAX_PERMITS);
        Self { bytes: Arc::new(Semaphore::new(bytes)), made: Arc::new(Semaphore::new(bytes)), patience: PATIENCE }
    }

    /// Waits for room to make something of at most this size.
    pub async fn making(&self, most: usize) -> Result<Making, Broken> {
        permits(&self.made, most.min(u32::MAX as usize), self.patience).await.map(Making)
    }

    /// Reads a body to its end.
    pub async fn whole(&self, mut body: Body, limit: usize) -> Result<Whole, Broken> {
        let mut gathered = Gathered::default();
        let mut size = 0usize;
        let mut room: Option<OwnedSemaphorePermit> = None;
        while let Some(frame) = body.frame().await {
            let frame = frame.map_err(|error| Broken::Early(error.to_string()))?;
            let Ok(part) = frame.into_data() else { continue };
            size = size.saturating_add(part.len());
            if size > limit {
                return Err(Broken::TooLarge);
            }
            let held = room.as_ref().map_or(0, OwnedSemaphorePermit::num_permits);
            if size > held {
                let step = (size - held).max(STEP).min(limit - held);
                let more = permits(&self.bytes, step, self.patience).await?;
                match &mut room {
                    Some(room) => room.merge(more),
                    none => *none = Some(more),
                }
            }
            gathered.add(part);
        }
        Ok(Whole { bytes: gathered.whole(size), _room: room })
    }
}

/// The parts of a body.
#[derive(Default)]
struct Gathered {
    parts: Vec<Bytes>,
    together: BytesMut,
}

impl Gathered {
    fn add(&mut self, part: Bytes) {
        if part.len() < SMALL_PART {
            self.together.extend_from_slice(&part);
            if self.together.len() >= TOGETHER {
                self.settle();
            }
        } else {
            self.settle();
            self.parts.push(part);
        }
    }

    fn settle(&mut self) {
        if !self.together.is_empty() {
            self.parts.push(self.together.split().freeze());
        }
    }

    fn whole(mut self, size: usize) -> Bytes {
        self.settle();
        if self.parts.len() == 1 {
            return self.parts.swap_remove(0);
        }
        let mut all = BytesMut::with_capacity(size);
        self.parts.iter().for_each(|part| all.extend_from_slice(part));
        all.freeze()
    }
}

async fn permits(of: &Arc<Semaphore>, count: usize, patience: Duration) -> Result<OwnedSemaphorePermit, Broken> {
    let count = u32::try_from(count).map_err(|_| Broken::TooLarge)?;
    match tokio::time::timeout(patience, Arc::clone(of).acquire_many_owned(count)).await {
        Ok(Ok(permits)) => Ok(permits),
        _ => Err(Broken::Busy),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn bodies_in_the_making_share_their_room() {
        let room = Room { patience: Duration::ZERO, ..Room::new(4) };
        let body = |size: usize| Body::from(vec![0u8; size]);
        let held = room.whole(body(30), 30).await.unwrap();
        assert_eq!(held.bytes.len(), 30);
        assert!(matches!(room.whole(body(4), 64).await, Err(Broken::Busy)));
        assert!(matches!(room.whole(body(5), 4).await, Err(Broken::TooLarge)));
        drop(held);
        assert!(room.whole(body(32), 32).await.is_ok());
        assert_eq!(room.whole(Body::empty(), 4).await.unwrap().bytes.len(), 0);
    }

    #[tokio::test]
    async fn a_body_in_many_parts_is_whole_and_costs_no_more_than_it_holds() {
        let room = Room::new(1 << 20);
        for sizes in [vec![1; 70_000], vec![5_000, 1, 1, 9_000, 3, 70_000, 2], vec![3], vec![100_000]] {
            let parts: Vec<Bytes> = sizes.iter().enumerate().map(|(at, size)| vec![at as u8; *size].into()).collect();
            let mut gathered = Gathered::default();
            parts.iter().cloned().for_each(|part| gathered.add(part));
            assert!(gathered.parts.len() <= 2 * (parts.concat().len() / SMALL_PART + 1));
            assert_eq!(gathered.whole(0), parts.concat());
            let body = Body::from(parts.concat());
            assert_eq!(room.whole(body, 1 << 20).await.unwrap().bytes, parts.concat());
        }
    }

    #[tokio::test]
    async fn what_bodies_are_made_into_shares_its_room() {
        let room = Room { patience: Duration::ZERO, ..Room::new(4) };
        let mut first = room.making(30).await.unwrap();
        assert!(matches!(room.making(4).await, Err(Broken::Busy)));
        first.came_to(2);
        let second = room.making(30).await;
        assert!(second.is_ok() && matches!(room.making(1).await, Err(Broken::Busy)));
        drop((first, second));
        assert!(room.making(32).await.is_ok());
    }
}
