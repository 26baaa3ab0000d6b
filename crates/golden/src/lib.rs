//! The recorded runs of Linux' own elevators, and what a run of ours must be to be the same.
//!
//! [`Events`] gathers what happens in a simulated [`Scenario`](iosched_workload::Scenario); [`lines`] writes it as the
//! recordings do. The recordings themselves are large: [`fixture`] is their compact form, of which `runs/` holds the
//! archives that `tests/recorded_runs.rs` compares every day. `cargo xtask golden` compares with the recordings, shows
//! where two runs part, and writes the archives. Runs that differ by design are told by [`reason`].
//!
//! | file | what it is |
//! |---|---|
//! | `event/` | events as the recordings write them: what all have in common, and a file for each family of elevators |
//! | `controlled/` | the controllers beside the elevator, each family in the block layer it was recorded in |
//! | `fixture.rs` | the compact form |
//! | `exceptions.rs` | runs that may differ, and why |
//!
//! Nothing here decides anything: it only compares.
#![forbid(unsafe_code)]

pub mod controlled;
mod event;
mod exceptions;
pub mod fixture;

pub use event::{Event, Events, lines};
pub use exceptions::reason;
