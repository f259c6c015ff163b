//! How long peers may take: for every wait on one there is a limit here. Owns: these limits. Keeps out: what is waited for.

use std::time::Duration;

/// Limits on waiting for a peer. The defaults suit slow networks and stalled senders; tests take shorter ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Times {
    /// How long a connection may be silent before or within the head of a request. HTTP/2 connections may idle for good as
    /// long as the peer answers pings, which are sent after such a silence.
    pub silence: Duration,
    /// How long the answer to such a ping may take.
    pub pong: Duration,
    /// How long the TLS handshake, and then the first bytes of HTTP, may take.
    pub opening: Duration,
    /// How long the body of a request may take to come, from its head on.
    pub body: Duration,
    /// How long an answer may wait for a peer that reads nothing.
    pub stall: Duration,
}

impl Default for Times {
    fn default() -> Self {
        let seconds = Duration::from_secs;
        Self { silence: seconds(60), pong: seconds(20), opening: seconds(10), body: seconds(30), stall: seconds(30) }
    }
}
