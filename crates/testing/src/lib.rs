//! Test helpers that several crates share.
//!
//! | module | contents |
//! |---|---|
//! | [`command`] | commands that tests run, and their directories |
//! | [`fuzzing`] | random and damaged inputs, corpora of fuzz targets |
//! | [`machine`] | programs and features that the machine may lack |
#![forbid(unsafe_code)]
#![warn(missing_docs)]

pub mod command;
pub mod fuzzing;
pub mod machine;

pub use iosched_check::Random;
