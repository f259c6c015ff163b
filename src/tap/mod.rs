//! Ways out: what was taken in goes on to a file ([`record`]) with the time it came, or to another endpoint ([`forward`]).
//!
//! A tap is handed every payload after the store has taken it in, also what the store shed of it, and never makes the
//! writer wait: it queues within a bound of bytes and counts what does not fit. Owns: the queue, what is told of a way out.
//! Keeps out: sources, the store, screens.

pub mod forward;
pub mod queue;
pub mod record;

use self::queue::Item;

/// Is handed everything that was taken in.
pub trait Tap: Send {
    /// Takes what came. Never waits.
    fn take(&mut self, item: &Item);

    /// From then on everything that comes is taken, nanoseconds since the epoch.
    fn begin(&mut self, _now_ns: u64) {}

    /// Everything was taken; nothing more came until then, nanoseconds since the epoch.
    fn end(&mut self, _now_ns: u64) {}
}

/// The taps of one writer.
pub type Taps = Vec<Box<dyn Tap>>;

/// Called when a way out has trouble that people must hear of, with a sentence.
pub type Alarm = std::sync::Arc<dyn Fn(&str) + Send + Sync>;
