//! A byte stream whose first bytes have told which HTTP it speaks, and which does not wait for ever for a peer that stops
//! reading.
//!
//! Owns: these bytes until they are read again, the limit on stalled writing. Keeps out: what the bytes mean otherwise.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, ReadBuf};
use tokio::time::{Sleep, sleep};

/// What every HTTP/2 connection begins with (RFC 9113 3.4).
const PREFACE: &[u8; 24] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// Which HTTP a stream speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Version {
    Http1,
    Http2,
}

/// See the module.
pub(super) struct Stream<S> {
    inner: S,
    first: [u8; PREFACE.len()],
    /// What is left of the first bytes.
    left: std::ops::Range<usize>,
    stall: Duration,
    stalled: Option<Pin<Box<Sleep>>>,
}

impl<S: AsyncRead + AsyncWrite + Unpin> Stream<S> {
    /// Reads until it is clear which HTTP this is; how long that may take is up to the caller. Writing then waits for a peer
    /// that reads nothing no longer than `stall`.
    ///
    /// # Errors
    /// When the peer ends or breaks the stream before that.
    pub async fn open(mut inner: S, stall: Duration) -> io::Result<(Version, Self)> {
        let (mut first, mut read) = ([0; PREFACE.len()], 0);
        let version = loop {
            let more = inner.read(&mut first[read..]).await?;
            if more == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            read += more;
            if first[..read] != PREFACE[..read] {
                break Version::Http1;
            }
            if read == PREFACE.len() {
                break Version::Http2;
            }
        };
        Ok((version, Self { inner, first, left: 0..read, stall, stalled: None }))
    }
}

impl<S> Stream<S> {
    /// Ends a write that has made no progress for too long.
    fn patiently<T>(&mut self, context: &mut Context<'_>, polled: Poll<io::Result<T>>) -> Poll<io::Result<T>> {
        if polled.is_ready() {
            self.stalled = None;
            return polled;
        }
        let stall = self.stall;
        let stalled = self.stalled.get_or_insert_with(|| Box::pin(sleep(stall)));
        ready!(stalled.as_mut().poll(context));
        Poll::Ready(Err(io::ErrorKind::TimedOut.into()))
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Stream<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if self.left.is_empty() {
            return Pin::new(&mut self.inner).poll_read(context, buffer);
        }
        let count = self.left.len().min(buffer.remaining());
        let from = self.left.start;
        buffer.put_slice(&self.first[from..from + count]);
        self.left.start += count;
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Stream<S> {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let polled = Pin::new(&mut self.inner).poll_write(context, bytes);
        self.patiently(context, polled)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        parts: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let polled = Pin::new(&mut self.inner).poll_write_vectored(context, parts);
        self.patiently(context, polled)
    }

    fn is_write_vectored(&self) -> bool {
        self.inner.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let polled = Pin::new(&mut self.inner).poll_flush(context);
        self.patiently(context, polled)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let polled = Pin::new(&mut self.inner).poll_shutdown(context);
        self.patiently(context, polled)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::{AsyncWriteExt, duplex};

    const STALL: Duration = Duration::from_millis(50);

    #[tokio::test]
    async fn the_first_bytes_tell_and_are_read_again() {
        for (bytes, version) in [
            (&b"POST /v1/traces HTTP/1.1\r\n\r\nbody"[..], Version::Http1),
            (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\nframes", Version::Http2),
            (b"PRI * HTTP/2.0\r\n\r\nSN", Version::Http1),
            (b"\r", Version::Http1),
        ] {
            let (mut peer, ours) = duplex(64);
            // In pieces, as a slow peer sends.
            let sent = tokio::spawn(async move {
                for byte in bytes.chunks(3) {
                    peer.write_all(byte).await.unwrap();
                    tokio::task::yield_now().await;
                }
            });
            let (found, mut stream) = Stream::open(ours, STALL).await.unwrap();
            let mut read = Vec::new();
            stream.read_to_end(&mut read).await.unwrap();
            sent.await.unwrap();
            assert_eq!((found, &read[..]), (version, bytes));
        }
        let (peer, ours) = duplex(64);
        drop(peer);
        assert_eq!(Stream::open(ours, STALL).await.err().map(|error| error.kind()), Some(io::ErrorKind::UnexpectedEof));
    }

    #[tokio::test]
    async fn writing_does_not_wait_for_ever_for_a_peer_that_reads_nothing() {
        let (mut peer, ours) = duplex(16);
        peer.write_all(b"GET").await.unwrap();
        let (_, mut stream) = Stream::open(ours, STALL).await.unwrap();
        stream.write_all(b"0123456789abcdef").await.unwrap();
        assert_eq!(stream.write_all(b"more").await.unwrap_err().kind(), io::ErrorKind::TimedOut);
        // Read again in time, it goes on.
        let (mut peer, ours) = duplex(16);
        peer.write_all(b"GET").await.unwrap();
        let (_, mut stream) = Stream::open(ours, STALL).await.unwrap();
        let reading = tokio::spawn(async move {
            let mut all = Vec::new();
            peer.read_to_end(&mut all).await.unwrap();
            all.len()
        });
        stream.write_all(&[b'x'; 100]).await.unwrap();
        drop(stream);
        assert_eq!(reading.await.unwrap(), 100);
    }
}
