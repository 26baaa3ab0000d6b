//! The policy library.
#![forbid(unsafe_code)]

mod cfq;
mod collections;
mod context;
mod deadline;
mod decision;
mod elevator;
mod noop;
mod queue;
mod request;
mod sorted;
mod time;
mod tunable;

pub use context::*;
pub use decision::*;
pub use elevator::*;
pub use queue::*;
pub use request::*;
pub use time::*;
pub use tunable::*;
