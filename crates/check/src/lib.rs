//! Random operations on the request queue, and the properties that must hold.
//!
//! A [`Host`] of an [`iosched::Driver`] does [`Operation`]s: it submits bios, opens and ends plugs,
//! dispatches, completes and fails requests, fires timers, changes all settings, switches elevators
//! and drains the queue. An independent model observes the host. The first violated [`Property`]
//! ends the run with a [`Violation`]. An operation is one 64-bit word, so seeds, fuzzers and
//! shrinking can all produce lists of operations. Only the [`Config`] and the operations determine
//! a run.
//!
//! [`Contents`] is independent of these runs. It has the contents that a disk must have now and
//! after a power failure, as far as the disk's clients can know them.
//!
//! `cargo test` does short lists of operations on every elevator of the registry. `cargo soak` does
//! long lists for a given time. `fuzz/` has a fuzz target.
//!
//! # Inside
//!
//! | file | content |
//! |---|---|
//! | `config.rs` | the start of a run: queue, device, tasks |
//! | `operation.rs`, `random.rs` | operations of 64 bits, and their random choice |
//! | `run.rs` | runs of a list of operations, or from a seed |
//! | `host/` | the host that does the operations: submission, control, draining |
//! | `model/` | the independent model: requests in flight, barriers, flushes, deadlines, sums |
//! | `violation.rs` | the properties that must hold |
//! | `contents.rs` | the contents that a disk must have |
//! | `coverage.rs` | counts of events, which show that a check was exercised |
//! | `fuzz.rs` | the entry of the fuzz target |
//!
//! # Duties of the host
//!
//! - After every submission, it starts the requests that the queue wants started immediately.
//! - After every completion, exit, switch and change of `nr_requests`, it carries out a turn. In
//!   the turn, the device takes either all requests for which it has room, or none.
//! - A task that finds the queue full ends its plug, waits, and submits again when it is woken.
//! - Time never goes back.
//! - Bios longer than `max_sectors` are split.
//! - A process that has exited submits nothing.
//!
//! # Not asserted
//!
//! A wait under CFQ has no upper bound. CFQ in Linux has the same properties:
//!
//! - With a depth of 1, two random readers can preempt one another in turn. Other random readers
//!   then starve for a long time.
//! - Any sync request preempts a queue of the sync-noidle kind that is empty and not alone in its
//!   tree. A sequential queue therefore preempts seeky queues.
//! - Async requests wait as long as new sync requests arrive. The idle class waits as long as any
//!   other requests arrive.
//!
//! Progress is asserted: whenever the device is idle and a request waits, a request is dispatched
//! or a timer is set. After the last submission, all requests are served.
//!
//! The tunables of deadline limit the wait of an expired request. If `writes_starved` is 0, reads
//! may wait forever. This is the meaning of 0.
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
