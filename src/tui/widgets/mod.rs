//! Small things drawn on a buffer: text, frames, bars, plots, tables, a waterfall. They know no state and no pane.

pub mod ascii;
pub mod bar;
pub mod frame;
pub mod link;
pub mod plot;
pub mod table;
pub mod text;
