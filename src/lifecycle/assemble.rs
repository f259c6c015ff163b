//! From a request's spans and records to its facts.
