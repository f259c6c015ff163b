//! The message in the last line: how long it stays, and what takes it off.
//!
//! It stays for some seconds. What answers an action goes with the next one: it would speak of a screen that is no longer
//! there. News that nobody asked for stay for their time, whatever is done meanwhile.

use std::time::{Duration, Instant};

/// How long a message stays, whatever the pace of the data's clock.
const STAYS: Duration = Duration::from_secs(4);

/// What a message is about.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum About {
    /// What was done last.
    Action,
    /// What came by itself.
    News,
}

/// The message in the last line, if there is one.
#[derive(Debug, Default)]
pub(super) struct Message(Option<(About, String, Instant)>);

impl Message {
    fn put(&mut self, about: About, text: String) {
        self.0 = Some((about, text, Instant::now() + STAYS));
    }

    /// Answers what was done.
    pub(super) fn answer(&mut self, text: String) {
        self.put(About::Action, text);
    }

    /// Tells what came by itself.
    pub(super) fn news(&mut self, text: String) {
        self.put(About::News, text);
    }

    /// Something further is done.
    pub(super) fn acted(&mut self) {
        self.0.take_if(|(about, ..)| *about == About::Action);
    }

    /// Goes when its time is over.
    pub(super) fn lapse(&mut self) {
        self.0.take_if(|(.., until)| Instant::now() >= *until);
    }

    /// Its words.
    pub(super) fn text(&self) -> Option<&str> {
        self.0.as_ref().map(|(_, text, _)| text.as_str())
    }

    /// How long it stays yet.
    pub(super) fn stays(&self) -> Option<Duration> {
        self.0.as_ref().map(|(.., until)| until.saturating_duration_since(Instant::now()))
    }
}
