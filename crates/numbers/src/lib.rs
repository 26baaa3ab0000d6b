//! Random numbers ([`SplitMix64`]), distributions of times ([`Histogram`]) and
//! statistics of samples ([`stat`]) for models, simulations and records.
//!
//! Libraries offer similar random numbers and histograms. This crate does not use them, because the
//! numbers of a seed and the format of a histogram in a record must not change with the version of
//! a library. This crate contains nothing about I/O, reads no clock and chooses no seed.
//!
//! | file | content |
//! |---|---|
//! | `random.rs` | the generator of pseudo-random numbers |
//! | `histogram.rs` | latency histograms |
//! | `stat/` | means, tests of differences (`mod.rs`), bootstrap, ranks, groups of samples, numbers of runs (`power.rs`) |
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
