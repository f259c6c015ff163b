pub mod demo;
pub mod lifecycle;
pub mod source;
pub mod store;
