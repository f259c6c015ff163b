//! The account of what came: every span and record that was received is held, or counted where it went.
//!
//! Owns: the equation and its words, for the header, the notices and reports. Keeps out: the counting (`store`), what never
//! became spans or records (requests turned away, lines that could not be read).

use std::fmt;

use super::format;
use crate::store::Counts;

/// received = held + all that is gone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Account {
    /// All that came, good or bad.
    pub received: u64,
    /// What is there.
    pub held: u64,
    /// What is not, by what became of it.
    pub gone: [(&'static str, u64); 4],
}

impl Account {
    /// The account of spans.
    pub fn of_spans(counts: &Counts) -> Self {
        Self {
            received: counts.spans_received,
            held: counts.spans_held(),
            gone: [
                ("duplicate", counts.spans_duplicate),
                ("rejected", counts.spans_refused),
                ("shed", counts.spans_shed),
                ("evicted", counts.spans_evicted),
            ],
        }
    }

    /// The account of request-trace records; a bad one could not be read. None is ever shed.
    pub fn of_records(counts: &Counts) -> Self {
        Self {
            received: counts.records_received,
            held: counts.records_held(),
            gone: [
                ("duplicate", counts.records_duplicate),
                ("bad", counts.records_bad),
                ("shed", 0),
                ("evicted", counts.records_evicted),
            ],
        }
    }

    /// Whether it comes out even.
    pub fn is_even(&self) -> bool {
        self.received == self.held + self.gone.iter().map(|(_, count)| count).sum::<u64>()
    }
}

impl fmt::Display for Account {
    /// `1,204 in = 1,000 held + 200 duplicate + 4 rejected`
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} in = {} held", format::count(self.received), format::count(self.held))?;
        for (what, count) in self.gone.iter().filter(|(_, count)| *count > 0) {
            write!(f, " + {} {what}", format::count(*count))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_says_what_there_is_and_comes_out_even() {
        let counts = Counts {
            spans_received: 1_204,
            spans_kept: 1_100,
            spans_evicted: 100,
            spans_duplicate: 4,
            spans_shed: 100,
            ..Counts::default()
        };
        let account = Account::of_spans(&counts);
        assert_eq!(account.to_string(), "1,204 in = 1,000 held + 4 duplicate + 100 shed + 100 evicted");
        assert!(account.is_even() && Account::of_records(&counts).is_even());
        assert_eq!(Account::of_records(&counts).to_string(), "0 in = 0 held");
        assert!(!Account { received: 1, ..account }.is_even());
    }
}
