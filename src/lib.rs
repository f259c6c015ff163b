pub mod lifecycle;
pub mod report;
pub mod source;
pub mod store;
