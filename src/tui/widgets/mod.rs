//! Small things drawn on a buffer: text, frames, bars, a waterfall. They know no state and no pane.

pub mod bar;
pub mod frame;
pub mod text;
