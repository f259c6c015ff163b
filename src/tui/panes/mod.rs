//! Panes: one file each, drawing a view model into an area. Drawing never changes state.

pub mod blocks;
pub mod details;
pub mod footer;
pub mod header;
pub mod outcomes;
pub mod requests;
pub mod story;
pub mod tree;
