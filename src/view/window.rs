//! How far back panes and list look.

/// A window of time that ends now, or at the moment of the pause; in what does not go on, as files, with the last moment of
/// what is held. What is in flight is always within it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Window {
    /// Ten seconds.
    TenSeconds,
    /// A minute.
    Minute,
    /// Five minutes.
    FiveMinutes,
    /// Everything held.
    #[default]
    All,
}

impl Window {
    /// From the shortest to the longest.
    pub const ALL: [Self; 4] = [Self::TenSeconds, Self::Minute, Self::FiveMinutes, Self::All];

    /// Its length, nanoseconds; `None` for everything.
    pub fn length_ns(self) -> Option<u64> {
        match self {
            Self::TenSeconds => Some(10_000_000_000),
            Self::Minute => Some(60_000_000_000),
            Self::FiveMinutes => Some(300_000_000_000),
            Self::All => None,
        }
    }

    /// The word shown.
    pub fn word(self) -> &'static str {
        match self {
            Self::TenSeconds => "10 s",
            Self::Minute => "1 m",
            Self::FiveMinutes => "5 m",
            Self::All => "all",
        }
    }

    /// The next shorter one (`-1`) or longer one (`1`).
    #[must_use]
    pub fn step(self, by: isize) -> Self {
        let at = Self::ALL.iter().position(|window| *window == self).unwrap_or(0);
        Self::ALL[at.saturating_add_signed(by).min(Self::ALL.len() - 1)]
    }
}
