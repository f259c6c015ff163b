//! What a trace must have, whichever of its spans has it, for a request of it to be meant by a filter: as much of the filter
//! as a trace store can search by. Owns: that vocabulary, shared by who reads filters and who asks stores. Keeps out: both.

use super::ids::TraceId;

/// One thing it must have; of several values, one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Must {
    /// Be one of these traces.
    Be(Vec<TraceId>),
    /// A span of such a service.
    Service(Vec<Name>),
    /// A span of such a name.
    Span(Vec<Name>),
}

/// A name, or the beginning of one, of ASCII in any case.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Name {
    /// The text.
    pub text: String,
    /// Whether more may follow.
    pub is_start: bool,
}

impl Name {
    /// Whether a name is meant.
    pub fn means(&self, name: &str) -> bool {
        let start = name.as_bytes().get(..self.text.len());
        start.is_some_and(|start| start.eq_ignore_ascii_case(self.text.as_bytes()))
            && (self.is_start || name.len() == self.text.len())
    }
}
