//! What may be odd about a request: a bit, a sign and a word each. Keeps out: who finds it.

/// What is odd about a request; each is a bit.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, Hash)]
pub struct Marks(pub u16);

impl Marks {
    /// A parent that is named and has not arrived.
    pub const MISSING_PARENT: Self = Self(1);
    /// A cycle or a span that is its own parent.
    pub const CYCLE: Self = Self(2);
    /// Joined from several traces by request id alone.
    pub const INFERRED_JOIN: Self = Self(4);
    /// Another live request carries the same public id.
    pub const SHARED_ID: Self = Self(8);
    /// A span that ends before it starts.
    pub const END_BEFORE_START: Self = Self(16);
    /// A time of zero, or far from all the others.
    pub const BAD_TIME: Self = Self(32);
    /// A child of another process starts before its parent.
    pub const SKEW: Self = Self(64);
    /// The sender dropped attributes, events or links.
    pub const DROPPED: Self = Self(128);
    /// A payload record that is incomplete.
    pub const INCOMPLETE_PAYLOAD: Self = Self(256);
    /// The trace holds more than one request.
    pub const SHARED_TRACE: Self = Self(512);
    /// It has more spans than its facts are read from: what they say is true of a part of it.
    pub const CUT_SHORT: Self = Self(1024);
    /// It came after the request it is a part of had been let go.
    pub const LATE_PART: Self = Self(2048);
    /// It began before anybody listened: what was told of it by then did not come.
    pub const EARLY: Self = Self(4096);

    /// Every mark with its sign, one column wide, and its word; for screens and reports.
    pub const ALL: [(Self, char, &'static str); 13] = [
        (Self::MISSING_PARENT, '⌃', "missing parent"),
        (Self::CYCLE, '↺', "cycle"),
        (Self::INFERRED_JOIN, '⋈', "joined by request id"),
        (Self::SHARED_ID, '=', "id shared by two requests"),
        (Self::END_BEFORE_START, '⇤', "end before start"),
        (Self::BAD_TIME, '◔', "unlikely time"),
        (Self::SKEW, '±', "clock skew"),
        (Self::DROPPED, '⊘', "dropped by the sender"),
        (Self::INCOMPLETE_PAYLOAD, '½', "incomplete payload"),
        (Self::SHARED_TRACE, '∪', "trace shared by several requests"),
        (Self::CUT_SHORT, '≫', "too large to be read whole"),
        (Self::LATE_PART, '⋯', "rest of a request that was let go"),
        (Self::EARLY, '⊢', "began before anybody listened"),
    ];

    /// Sets a mark.
    pub fn set(&mut self, mark: Self) {
        self.0 |= mark.0;
    }

    /// Whether a mark is set.
    pub fn has(self, mark: Self) -> bool {
        self.0 & mark.0 != 0
    }

    /// Whether there may have been more of it than is here, so that nobody can say what it lacks.
    pub fn is_part(self) -> bool {
        self.has(Self::LATE_PART) || self.has(Self::EARLY)
    }

    /// The signs and words of the marks set.
    pub fn set_ones(self) -> impl Iterator<Item = (char, &'static str)> {
        Self::ALL.into_iter().filter(move |(mark, ..)| self.has(*mark)).map(|(_, sign, word)| (sign, word))
    }

    /// The words of the marks set.
    pub fn words(self) -> impl Iterator<Item = &'static str> {
        self.set_ones().map(|(_, word)| word)
    }
}
