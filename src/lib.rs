pub mod lifecycle;
pub mod query;
pub mod source;
pub mod store;
