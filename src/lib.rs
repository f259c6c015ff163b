pub mod cli;
pub mod demo;
pub mod lifecycle;
pub mod pipeline;
pub mod query;
pub mod report;
pub mod source;
pub mod store;
