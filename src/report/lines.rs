//! Lines of text outputs: what was received stays within the line that holds it.
//!
//! Owns: that. A name with a line break would begin a line of its own, and some who read lines obey them (`::error::` in a
//! GitHub workflow). Keeps out: what the lines say.

use std::fmt::{self, Write};

use crate::lifecycle::text;

/// Takes `writeln!`, one line at a time.
pub(super) struct Lines<'a, 'b>(pub &'a mut fmt::Formatter<'b>);

impl Lines<'_, '_> {
    /// What `writeln!` calls.
    pub fn write_fmt(&mut self, line: fmt::Arguments<'_>) -> fmt::Result {
        let line = line.to_string();
        self.0.write_str(&text::one_line(line.strip_suffix('\n').unwrap_or(&line)))?;
        self.0.write_char('\n')
    }
}
