//! Random numbers ([`SplitMix64`]) and distributions of times ([`Histogram`]), as every model, simulation and record
//! has them, and what samples say ([`stat`]).
//!
//! The first two are ours, though libraries have the like: what a seed gives, and how a histogram is written in a
//! record, must not change with a library's version. None knows anything of I/O; nothing here reads a clock or draws a
//! seed.
//!
//! ```
//! use iosched_numbers::{Histogram, SplitMix64};
//!
//! let mut random = SplitMix64::new(7);
//! let mut times = Histogram::default();
//! (0..1000).for_each(|_| times.record(random.below(1_000_000)));
//! assert!((450_000..550_000).contains(&times.quantile_ns(0.5)));
//! ```
#![forbid(unsafe_code)]

mod histogram;
mod random;
pub mod stat;

pub use histogram::Histogram;
pub use random::SplitMix64;
