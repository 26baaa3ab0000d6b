//! Random operations on the request queue, and what must hold.
//!
//! A [`Host`] of an [`iosched::Driver`] does [`Operation`]s: it submits, merges, plugs, dispatches, completes, fails,
//! fires timers, changes everything that can be changed, switches elevators and drains.
//! A model that knows nothing of the library's insides watches, and every [`Property`] that does not hold ends the run
//! with a [`Violation`]. An operation is one 64-bit word, so a seed, a fuzzer's bytes and a list that shrinks all make
//! them alike; a run follows from its [`Config`] and its operations alone.
//!
//! [`Contents`] is apart from that: what a disk has to hold, now and after a power failure, by what its clients know.
//!
//! `cargo test` does short lists on every elevator of the registry; `cargo soak` long ones for as long as asked;
//! `fuzz/` has a target.
//!
//! # What the host does for its part
//!
//! After every submission it starts what is kicked. After every completion, exit, switch and change of `nr_requests`,
//! it carries out a turn, in which the device takes all it has room for or nothing. A task that finds the queue full
//! ends its plug, waits, and submits again when it is called. Time never goes back. Bios longer than `max_sectors` are
//! split. A process that exited submits nothing more.
//!
//! # What is not asserted
//!
//! CFQ promises no bounded wait, and has none. With a depth of 1, two random readers can preempt one another in turn
//! and starve other random readers for long; any sync request preempts a queue of the sync-noidle kind that is empty
//! and not alone in its tree, so seeky queues lose to a sequential one; async requests wait for as long as sync ones
//! keep coming, and the idle class for as long as anything else does. These are the original's, reproduced. What is
//! asserted is progress: whenever the device is idle and something waits, something is given out or a timer is set, and
//! once submissions stop everything is served.
//!
//! deadline bounds the wait of an expired request by what its tunables say; with `writes_starved` at 0 reads may be
//! passed over for ever, which is what that value asks for.
#![forbid(unsafe_code)]

mod config;
mod contents;
mod coverage;
pub mod fuzz;
mod host;
mod model;
mod operation;
mod random;
mod run;
mod violation;

pub use config::{Config, Preset, elevator_index, elevators};
pub use contents::{Contents, Moment, Stamp, Wrong, bytes_of};
pub use coverage::Coverage;
pub use host::Host;
pub use operation::{Mix, Near, Operation, SectorChoice, Theme, Value};
pub use random::{Digest, Random};
pub use run::{Outcome, Watch, operations, run, run_alike, shrink};
pub use violation::{Checked, Property, Violation};
