//! The policy library.
#![forbid(unsafe_code)]

mod collections;
mod context;
mod decision;
mod request;
mod time;

pub use context::*;
pub use decision::*;
pub use request::*;
pub use time::*;
