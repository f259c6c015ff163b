//! The message in the last line: how long it stays, what takes it off, and which of two is told first.
//!
//! It stays for some seconds. What answers an action goes with the next one: it would speak of a screen that is no longer
//! there. News that nobody asked for stay for their time, whatever is done meanwhile; while an answer stands they wait.

use std::time::{Duration, Instant};

/// How long a message stays, whatever the pace of the data's clock.
const STAYS: Duration = Duration::from_secs(4);

/// The message in the last line, if there is one.
#[derive(Debug, Default)]
pub(super) struct Message {
    /// What answers what was done last.
    answer: Option<(String, Instant)>,
    /// What came by itself, the latest of it; without an end until it is told.
    news: Option<(String, Option<Instant>)>,
}

impl Message {
    /// Answers what was done.
    pub(super) fn answer(&mut self, text: String) {
        self.answer = Some((text, Instant::now() + STAYS));
        // What it covers is told afterwards.
        if let Some((_, until)) = &mut self.news {
            *until = None;
        }
    }

    /// Tells what came by itself.
    pub(super) fn news(&mut self, text: String) {
        self.news = Some((text, None));
    }

    /// Something further is done.
    pub(super) fn acted(&mut self) {
        self.answer = None;
    }

    /// Goes when its time is over.
    pub(super) fn lapse(&mut self) {
        let now = Instant::now();
        self.answer.take_if(|(_, until)| now >= *until);
        self.news.take_if(|(_, until)| until.is_some_and(|until| now >= until));
        if let (None, Some((_, until))) = (&self.answer, &mut self.news) {
            until.get_or_insert(now + STAYS);
        }
    }

    /// Its words.
    pub(super) fn text(&self) -> Option<&str> {
        let news = self.news.as_ref().map(|(text, _)| text.as_str());
        self.answer.as_ref().map(|(text, _)| text.as_str()).or(news)
    }

    /// How long it stays yet.
    pub(super) fn stays(&self) -> Option<Duration> {
        let until = match (&self.answer, &self.news) {
            (Some((_, until)), _) => *until,
            (None, Some((_, Some(until)))) => *until,
            (None, Some((_, None))) => return Some(STAYS),
            (None, None) => return None,
        };
        Some(until.saturating_duration_since(Instant::now()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn news_wait_while_an_answer_stands() {
        let mut message = Message::default();
        message.news("one came".into());
        message.lapse();
        assert_eq!(message.text(), Some("one came"));
        message.answer("written to x".into());
        message.news("another came".into());
        message.lapse();
        assert_eq!(message.text(), Some("written to x"));
        // For its whole time, not for what the answer left of it.
        message.acted();
        message.lapse();
        assert_eq!(message.text(), Some("another came"));
        message.acted();
        message.lapse();
        assert_eq!(message.text(), Some("another came"));
        assert!(message.stays().unwrap() <= STAYS);
        message.news = Some(("another came".into(), Some(Instant::now())));
        message.lapse();
        assert_eq!((message.text(), message.stays()), (None, None));
    }
}
