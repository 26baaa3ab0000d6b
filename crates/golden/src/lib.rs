//! The recorded runs of Linux' original elevators, and the comparison of simulated runs with them.
//!
//! [`Events`] collects the events of a simulated [`Scenario`](iosched_workload::Scenario).
//! [`lines`] writes them in the format of the recordings. The recordings are large, so [`fixture`]
//! has a compact form of them. `runs/` has archives in this form, which the test
//! `tests/recorded_runs.rs` reads. `cargo xtask golden` compares with the recordings, shows where
//! two runs diverge, and writes the archives. [`reason`] returns why a run may differ by design.
//!
//! | file | contents |
//! |---|---|
//! | `event/` | events in the format of the recordings: common lines, and a file for each family of elevators |
//! | `controlled/` | the controllers, each family in the block layer in which it was recorded |
//! | `fixture.rs` | the compact form |
//! | `exceptions.rs` | runs that may differ, and the reasons |
//!
//! This crate contains no scheduling logic. It only makes comparisons.
#![forbid(unsafe_code)]

pub mod controlled;
mod event;
mod exceptions;
pub mod fixture;

pub use event::{Event, Events, lines};
pub use exceptions::reason;
