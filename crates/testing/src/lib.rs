//! Test helpers that several crates share.
//!
//! | module | contents |
//! |---|---|
//! | [`command`] | commands that tests run, and their directories |
//! | [`fuzzing`] | random and damaged inputs, corpora of fuzz targets |
//! | [`machine`] | programs, features and files that the machine may lack |
//! | [`prometheus`] | a Prometheus process, and the queries of a dashboard |
//! | [`workloads`] | task files |
#![forbid(unsafe_code)]
#![warn(missing_docs)]

pub mod command;
pub mod fuzzing;
pub mod machine;
pub mod prometheus;
pub mod workloads;

pub use iosched_check::Random;
