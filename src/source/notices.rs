//! What a source turned away before it became a payload, for the screen: counts, and the latest of each kind in words.
//!
//! Owns: the kinds of notice and their bounded memory (one line each, whatever comes in). Keeps out: what reached the
//! store and was refused there (its tally), how it is shown.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use parking_lot::Mutex;

use crate::lifecycle::text;

/// Longest words kept for a notice, in characters.
const WORDS: usize = 160;

/// What happened to a request that brought nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Notice {
    /// HTTP 404 to a POST or gRPC `UNIMPLEMENTED`: no such path or method (field case B17).
    UnknownPath,
    /// HTTP 405 or 404: not a POST, such as a look at whether something answers here; it brought nothing.
    WrongMethod,
    /// HTTP 415: a media type or coding that is not read here, or plain HTTP on the gRPC port.
    UnknownType,
    /// HTTP 413 or gRPC `RESOURCE_EXHAUSTED`: larger than the limit, before or after inflating.
    TooLarge,
    /// HTTP 400 or gRPC `INVALID_ARGUMENT`: not what its type says.
    Malformed,
    /// HTTP 400 or gRPC `ABORTED`: the body ended before it was whole, as when its sender goes; that has it still.
    CutOff,
    /// HTTP 408: the body did not come in time.
    TooSlow,
    /// HTTP 503 or gRPC `UNAVAILABLE`: the store could not keep up; the sender was asked to try again.
    Busy,
    /// JSON with snake_case keys: taken, but worth telling (field case B06).
    SnakeCase,
    /// JSON of which something was left out beside spans and log records, which are counted for themselves: a key of another
    /// signal, an attribute of a resource.
    LeftOut,
    /// HTTP 401 or gRPC `UNAUTHENTICATED`: without the token, or with another.
    Unauthorized,
    /// HTTP 403 or gRPC `PERMISSION_DENIED`: sent by a web page that may not.
    Origin,
    /// A connection that brought no request: TLS where none is spoken, none where it is, or a handshake that failed.
    Tls,
    /// The files of TLS are other ones than before: read anew, or no good.
    Certificate,
    /// A connection that was turned away, or let go for another, because there were too many.
    Crowded,
}

impl Notice {
    /// All kinds, in the order of their numbers.
    pub const ALL: [Self; 15] = [
        Self::UnknownPath,
        Self::WrongMethod,
        Self::UnknownType,
        Self::TooLarge,
        Self::Malformed,
        Self::CutOff,
        Self::TooSlow,
        Self::Busy,
        Self::SnakeCase,
        Self::LeftOut,
        Self::Unauthorized,
        Self::Origin,
        Self::Tls,
        Self::Certificate,
        Self::Crowded,
    ];

    /// Whether an export was turned away for good: not one that is to be sent again, one that was taken, or a request or
    /// connection that brought none.
    pub fn is_refusal(self) -> bool {
        match self {
            Self::UnknownPath
            | Self::UnknownType
            | Self::TooLarge
            | Self::Malformed
            | Self::CutOff
            | Self::TooSlow
            | Self::Unauthorized
            | Self::Origin => true,
            Self::WrongMethod
            | Self::Busy
            | Self::SnakeCase
            | Self::LeftOut
            | Self::Tls
            | Self::Certificate
            | Self::Crowded => false,
        }
    }

    /// Whether an export was there whose sender will not send it again, or may not, so that what it held may be lost: one that
    /// was cut off may come from a sender that is gone, and 408 is no answer that OTLP/HTTP sends again after.
    pub fn loses(self) -> bool {
        matches!(self, Self::UnknownType | Self::TooLarge | Self::Malformed | Self::CutOff | Self::TooSlow)
    }

    /// A short label.
    pub fn label(self) -> &'static str {
        match self {
            Self::UnknownPath => "unknown path",
            Self::WrongMethod => "wrong method",
            Self::UnknownType => "unknown type or coding",
            Self::TooLarge => "too large",
            Self::Malformed => "malformed",
            Self::CutOff => "cut off",
            Self::TooSlow => "too slow",
            Self::Busy => "busy",
            Self::SnakeCase => "snake_case keys",
            Self::LeftOut => "left out",
            Self::Unauthorized => "without the token",
            Self::Origin => "web page",
            Self::Tls => "TLS",
            Self::Certificate => "certificate",
            Self::Crowded => "too many connections",
        }
    }
}

/// A kind of notice that occurred.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Noted {
    /// The kind.
    pub notice: Notice,
    /// How often.
    pub count: u64,
    /// The latest one in words; scrubbed and short.
    pub latest: String,
}

/// The notices of all sources; clones share them.
#[derive(Clone, Debug, Default)]
pub struct Notices(Arc<Inner>);

/// Called after each notice.
type Bell = Box<dyn Fn(&Notices) + Send + Sync>;

#[derive(Default)]
struct Inner {
    counts: [AtomicU64; Notice::ALL.len()],
    lost: AtomicU64,
    coming: AtomicU64,
    latest: Mutex<Latest>,
    bell: OnceLock<Bell>,
}

/// The latest words of each kind, and which were latest of all.
#[derive(Default)]
struct Latest {
    words: [String; Notice::ALL.len()],
    at: [u64; Notice::ALL.len()],
}

impl fmt::Debug for Inner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Notices").field("counts", &self.counts).finish_non_exhaustive()
    }
}

impl Notices {
    /// Counts one and keeps its words.
    pub fn note(&self, notice: Notice, words: &str) {
        let words = text::scrub(words.as_bytes()).chars().take(WORDS).collect();
        {
            let mut latest = self.0.latest.lock();
            latest.at[notice as usize] = latest.at.iter().max().map_or(1, |last| last + 1);
            latest.words[notice as usize] = words;
        }
        self.0.counts[notice as usize].fetch_add(1, Ordering::Relaxed);
        if let Some(bell) = self.0.bell.get() {
            bell(self);
        }
    }

    /// Counts an export of spans or logs that came from a sender who may send, to where it belongs, and could not be read
    /// or did not come whole.
    pub fn lose(&self) {
        self.0.lost.fetch_add(1, Ordering::Relaxed);
    }

    /// How many of these there were.
    pub fn lost(&self) -> u64 {
        self.0.lost.load(Ordering::Relaxed)
    }

    /// An export of spans or logs, or of something else, whose body is coming in; see [`UnderWay`].
    pub fn begin(&self, may_lose: bool) -> UnderWay<'_> {
        self.0.coming.fetch_add(1, Ordering::Relaxed);
        UnderWay { notices: self, may_lose, is_over: false }
    }

    /// How many bodies are coming in.
    pub fn under_way(&self) -> u64 {
        self.0.coming.load(Ordering::Relaxed)
    }

    /// Has this called after each notice from now on; the first one asked for stays.
    pub fn on_note(&self, bell: impl Fn(&Self) + Send + Sync + 'static) {
        let _ = self.0.bell.set(Box::new(bell));
    }

    /// How often this kind occurred.
    pub fn count(&self, notice: Notice) -> u64 {
        self.0.counts[notice as usize].load(Ordering::Relaxed)
    }

    /// How many there were in all; whoever draws compares it to know whether there is something new.
    pub fn total(&self) -> u64 {
        self.0.counts.iter().map(|count| count.load(Ordering::Relaxed)).sum()
    }

    /// The kinds that occurred, the latest last.
    pub fn list(&self) -> Vec<Noted> {
        let latest = self.0.latest.lock();
        let noted = |notice: &Notice| Noted {
            notice: *notice,
            count: self.count(*notice),
            latest: latest.words[*notice as usize].clone(),
        };
        let mut list: Vec<Noted> = Notice::ALL.iter().map(noted).filter(|noted| noted.count > 0).collect();
        list.sort_by_key(|noted| latest.at[noted.notice as usize]);
        list
    }
}

/// A body that is coming in. Let go before it [is over](Self::over), as when the program ends, it was cut off: nobody is left
/// who would say so.
#[derive(Debug)]
pub struct UnderWay<'a> {
    notices: &'a Notices,
    may_lose: bool,
    is_over: bool,
}

impl UnderWay<'_> {
    /// It is whole, or whoever reads it says why it is not.
    pub fn over(&mut self) {
        if !std::mem::replace(&mut self.is_over, true) {
            self.notices.0.coming.fetch_sub(1, Ordering::Relaxed);
        }
    }
}

impl Drop for UnderWay<'_> {
    fn drop(&mut self) {
        if !self.is_over {
            self.notices.note(Notice::CutOff, "an export had not come whole when it was let go");
            if self.may_lose {
                self.notices.lose();
            }
            self.over();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn notices_are_counted_and_only_the_latest_words_kept() {
        let notices = Notices::default();
        assert!(notices.list().is_empty());
        notices.note(Notice::UnknownPath, "/a");
        notices.clone().note(Notice::UnknownPath, &format!("/\u{1b}{}", "x".repeat(1000)));
        let [noted] = &notices.list()[..] else { panic!() };
        assert_eq!((noted.notice, noted.count, notices.total()), (Notice::UnknownPath, 2, 2));
        assert!(noted.latest.starts_with("/\u{fffd}xx") && noted.latest.chars().count() == WORDS);
        for (index, notice) in Notice::ALL.iter().enumerate() {
            assert_eq!(*notice as usize, index);
        }
    }
}
