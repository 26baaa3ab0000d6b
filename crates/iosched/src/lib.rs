//! The policy library.
#![forbid(unsafe_code)]

mod collections;
mod context;
mod decision;
mod elevator;
mod noop;
mod queue;
mod request;
mod time;
mod tunable;

pub use context::*;
pub use decision::*;
pub use elevator::*;
pub use queue::*;
pub use request::*;
pub use time::*;
pub use tunable::*;
