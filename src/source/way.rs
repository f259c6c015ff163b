//! The way an export has come: which reqtops have passed it on, so that none passes it round.
//!
//! A header of our own holds their ids, the latest last; what stands between two reqtops may drop it. Owns: that header.
//! Keeps out: who reads it (`otlp`) and who writes it (`tap`).

use std::sync::Arc;

/// The header, in gRPC the metadata.
pub const HEADER: &str = "reqtop-way";

/// The longest way that is kept, bytes: some sixty ids.
const LONGEST: usize = 1024;

/// One reqtop that passes on, for as long as it runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Id(String);

impl Id {
    /// An id that no other has.
    pub fn new() -> Self {
        Self(format!("{:016x}", fastrand::u64(..)))
    }
}

impl Default for Id {
    fn default() -> Self {
        Self::new()
    }
}

/// Who has passed something on.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Way {
    /// Nobody: it came from its sender.
    #[default]
    Straight,
    /// These.
    Over(Arc<str>),
    /// So many that it can only be going round.
    Endless,
}

impl Way {
    /// Reads the header, where there is one.
    pub fn of(header: Option<&str>) -> Self {
        match header {
            None | Some("") => Self::Straight,
            Some(ids) if ids.len() > LONGEST => Self::Endless,
            Some(ids) => Self::Over(ids.into()),
        }
    }

    /// Whether it has come over this one before.
    pub fn is_over(&self, id: &Id) -> bool {
        match self {
            Self::Straight => false,
            Self::Over(ids) => ids.split(',').any(|other| other.trim() == id.0),
            Self::Endless => true,
        }
    }

    /// The header for who is next.
    pub fn and(&self, id: &Id) -> String {
        match self {
            Self::Over(ids) => format!("{ids},{}", id.0),
            Self::Straight | Self::Endless => id.0.clone(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_way_knows_whom_it_has_come_over() {
        let (one, other) = (Id::new(), Id::new());
        assert_ne!(one, other);
        let way = Way::of(None);
        assert!(!way.is_over(&one));
        let way = Way::of(Some(&way.and(&one)));
        assert!(way.is_over(&one) && !way.is_over(&other));
        let way = Way::of(Some(&way.and(&other)));
        assert!(way.is_over(&one) && way.is_over(&other));
        assert_eq!(Way::of(Some(&"x,".repeat(LONGEST))), Way::Endless);
        assert!(Way::Endless.is_over(&one) && !Way::of(Some("")).is_over(&one));
    }
}
