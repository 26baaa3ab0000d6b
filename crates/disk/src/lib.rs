//! Device models in virtual time: `fixed`, `disk`, `hdd`, `ssd`, `array`, `server` and `empirical`,
//! and the profiles of real devices.
//!
//! A model is a state machine without a clock. Its host submits commands, asks for the time of the
//! next event, and takes completions one at a time: see [`Device`]. A [`Profile`] describes a
//! device. You load a profile by its built-in name or from a file.
//!
//! - [`Fixed`] and [`Disk`]: the devices of the recorded runs of Linux' elevators, exact to the
//!   nanosecond;
//! - [`Hdd`]: a rotating disk with zones, a seek curve, rotation, read-ahead, a write cache and
//!   command queueing;
//! - [`Ssd`]: flash dies behind a link and a write buffer, with garbage collection;
//! - [`Array`]: disks behind a controller with memory;
//! - [`Server`]: servers behind one queue, with a measured spread, for virtual disks and disks over
//!   a network;
//! - [`Empirical`]: random latencies from measured distributions, without a mechanism.
//!
//! [`measure`] measures each of these models like a benchmark.
//!
//! ```
//! use iosched::{Op, Time};
//! use iosched_disk::{Command, Device, Profile};
//!
//! let mut disk = Profile::named("sata-7200")?.device(1);
//! disk.submit(Time::ZERO, Command { tag: 0, op: Op::Read, sector: 4096, nr_sectors: 8, fua: false });
//! while let Some(now) = disk.next_event() {
//!     while let Some(tag) = disk.advance(now) {
//!         println!("command {tag} was complete at {now}");
//!     }
//! }
//! # Ok::<(), iosched_disk::ProfileError>(())
//! ```
//!
//! # Inside
//!
//! | file | content |
//! |---|---|
//! | `hdd/` | the rotating disk: `geometry` (place of a sector), `seek`, `spindle`, `queue` (choice of the next command), `read_cache`, `write_cache`, `arm` (actions of the arm) |
//! | `ssd/` | flash: dies, write buffer, translation with garbage collection |
//! | `array/` | members in stripes behind a controller's memory |
//! | `server/` | servers behind one queue, with a measured spread: virtual disks and disks over a network |
//! | `empirical/` | random latencies from measured distributions |
//! | `credits.rs`, `rest.rs`, `distribution.rs`, `ends.rs` | long-run limits of devices; the cost of waking up; measured distributions; commands that continue another one |
//! | `measure/` | metrics of devices, and their measurement on a model, for anchors, cards and pages |
//! | `profile.rs` | a model, its parameters and its anchors, from TOML |
//! | `host.rs` | costs of I/O on the host of a disk |
//! | `io_cost/` | io.cost's models of devices, as in files and hwdb, and profiles from them |
//! | `disksim/` | DiskSim's descriptions of real disks, and measurements of them |
#![forbid(unsafe_code)]

mod any;
pub mod array;
mod completions;
mod config;
mod credits;
mod disk;
pub mod disksim;
mod distribution;
pub mod empirical;
mod ends;
mod fixed;
pub mod hdd;
mod host;
pub mod io_cost;
mod link;
pub mod measure;
mod outside;
mod profile;
mod profile_file;
mod recorded;
mod rest;
pub mod server;
pub mod ssd;

pub use any::AnyDevice;
pub use array::{Array, ArrayConfig};
pub use config::ConfigError;
pub use credits::{CreditsConfig, CreditsOf, CreditsUnit};
pub use disk::{Disk, DiskConfig};
pub use distribution::QuantilePoint;
pub use empirical::{Empirical, EmpiricalConfig};
pub use fixed::{Fixed, FixedConfig, FixedStep};
pub use hdd::{Hdd, HddConfig};
pub use host::{Host, SchedulerCost, TimeSlices};
pub use profile::{Anchor, Fit, Model, Profile, ProfileError, StartState, Validated, is_path};
pub use recorded::{Recorded, RecordedError, RecordedLoad};
pub use rest::RestConfig;
pub use server::{Server, ServerConfig};
pub use ssd::{Ssd, SsdConfig};

use iosched::{Op, Sector, Time};

/// Properties of a device that a host needs before it submits commands.
#[derive(Clone, Debug, PartialEq)]
pub struct Card {
    /// Size in sectors of 512 bytes.
    pub capacity_sectors: u64,
    /// Number of commands that a hardware queue of the device takes at the same time, at least 1.
    pub depth: u32,
    /// Number of hardware queues, at least 1. Each queue can have `depth` commands.
    pub hw_queues: u16,
    /// Whether the device has seek times.
    pub rotational: bool,
    /// Whether the device acknowledges writes from a volatile cache, so that flushes matter.
    pub write_cache: bool,
    /// Whether the device itself supports force-unit-access.
    pub fua: bool,
    /// Largest command, KiB.
    pub max_hw_sectors_kb: u32,
}

impl Card {
    /// Returns the number of commands that the device takes at the same time, over all its hardware
    /// queues.
    #[must_use]
    pub fn commands_max(&self) -> u32 {
        self.depth.saturating_mul(u32::from(self.hw_queues))
    }

    /// Returns the name of the scheduler that Linux 6.12 selects for a new disk with these
    /// properties.
    #[must_use]
    pub const fn default_scheduler(&self) -> &'static str {
        if self.hw_queues > 1 { "none" } else { "mq-deadline" }
    }
}

/// A command to a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Command {
    /// Number that the host chooses and that the device returns at completion. It must be unique
    /// among outstanding commands.
    pub tag: u32,
    /// Operation of the command.
    pub op: Op,
    /// First sector. The host keeps commands within the capacity.
    pub sector: Sector,
    /// Length in sectors; 0 for a flush.
    pub nr_sectors: u32,
    /// Whether the data must be on stable storage at completion.
    pub fua: bool,
}

/// A device in virtual time.
///
/// The host calls [`submit`](Self::submit) while fewer than [`Card::commands_max`] commands are
/// outstanding. It sleeps until [`next_event`](Self::next_event), and calls
/// [`advance`](Self::advance) with this time until the result is `None`. `now` never goes back. The
/// same calls give the same results.
pub trait Device {
    /// Returns the properties of the device.
    fn card(&self) -> &Card;

    /// Submits a command.
    fn submit(&mut self, now: Time, command: Command);

    /// Submits a command to a hardware queue, from 0. A device that takes commands from its queues
    /// in turn overrides this method.
    #[inline]
    fn submit_to(&mut self, now: Time, hw_queue: u16, command: Command) {
        let _ = hw_queue;
        self.submit(now, command);
    }

    /// Returns the time of the next internal event. `None` if the device is idle.
    fn next_event(&self) -> Option<Time>;

    /// Executes everything that is due at `now`. Returns the tag of the next complete command. Tags
    /// come in the order of completion or, at equal times, of submission. Returns `None` when
    /// nothing more is due.
    fn advance(&mut self, now: Time) -> Option<u32>;
}

impl<D: Device + ?Sized> Device for Box<D> {
    fn card(&self) -> &Card {
        (**self).card()
    }

    fn submit(&mut self, now: Time, command: Command) {
        (**self).submit(now, command);
    }

    fn submit_to(&mut self, now: Time, hw_queue: u16, command: Command) {
        (**self).submit_to(now, hw_queue, command);
    }

    fn next_event(&self) -> Option<Time> {
        (**self).next_event()
    }

    fn advance(&mut self, now: Time) -> Option<u32> {
        (**self).advance(now)
    }
}
