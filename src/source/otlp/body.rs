//! Bodies as they come in, within bounds: of each one, and of all that are coming in at once.
//!
//! What senders have sent of bodies that are not whole yet lies here, outside the channel's bounds; a thousand of them that
//! each stop before the last byte would fill any memory. Keeps out: what bodies mean (`grpc`, `http`).

use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use bytes::{Bytes, BytesMut};
use http_body_util::BodyExt;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// How long a body waits for room before its sender is told to try again.
const PATIENCE: Duration = Duration::from_millis(200);
/// How many of the largest messages may be coming in at once.
const MESSAGES: usize = 8;

/// Room for bodies that are coming in.
#[derive(Clone)]
pub(super) struct Room {
    bytes: Arc<Semaphore>,
    patience: Duration,
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
        Self { bytes: Arc::new(Semaphore::new(bytes)), patience: PATIENCE }
    }

    /// Reads a body to its end.
    pub async fn whole(&self, mut body: Body, limit: usize) -> Result<Whole, Broken> {
        let mut parts: Vec<Bytes> = Vec::new();
        let mut size = 0usize;
        let mut room: Option<OwnedSemaphorePermit> = None;
        while let Some(frame) = body.frame().await {
            let frame = frame.map_err(|error| Broken::Early(error.to_string()))?;
            let Ok(part) = frame.into_data() else { continue };
            size = size.saturating_add(part.len());
            if size > limit {
                return Err(Broken::TooLarge);
            }
            let wanted = u32::try_from(part.len()).map_err(|_| Broken::TooLarge)?;
            let more = tokio::time::timeout(self.patience, Arc::clone(&self.bytes).acquire_many_owned(wanted)).await;
            let more = more.map_err(|_| Broken::Busy)?.map_err(|_| Broken::Busy)?;
            match &mut room {
                Some(room) => room.merge(more),
                none => *none = Some(more),
            }
            parts.push(part);
        }
        let bytes = if parts.len() == 1 {
            parts.swap_remove(0)
        } else {
            let mut all = BytesMut::with_capacity(size);
            parts.iter().for_each(|part| all.extend_from_slice(part));
            all.freeze()
        };
        Ok(Whole { bytes, _room: room })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn bodies_in_the_making_share_their_room() {
        let room = Room { patience: Duration::ZERO, ..Room::new(4) };
        let body = |size: usize| Body::from(vec![0u8; size]);
        let held = room.whole(body(30), 64).await.unwrap();
        assert_eq!(held.bytes.len(), 30);
        assert!(matches!(room.whole(body(4), 64).await, Err(Broken::Busy)));
        assert!(matches!(room.whole(body(5), 4).await, Err(Broken::TooLarge)));
        drop(held);
        assert!(room.whole(body(32), 64).await.is_ok());
        assert_eq!(room.whole(Body::empty(), 4).await.unwrap().bytes.len(), 0);
    }
}
