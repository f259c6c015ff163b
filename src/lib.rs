pub mod lifecycle;
pub mod source;
pub mod store;
pub mod tui;
pub mod view;
