//! The SDKs
