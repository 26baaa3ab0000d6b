//! Device models, in virtual time: `fixed`, `disk`, `hdd`, `ssd`, `array`, `server` and `empirical`, and the profiles
//! of real devices.
//!
//! A model is a state machine without a clock. Its host hands it commands, asks when it next wants to be
//! looked at, and takes completions one at a time: [`Device`]. What a device is comes from a [`Profile`]: a name
//! that is known here, or a file.
//!
//! - [`Fixed`] and [`Disk`]: the devices of the recorded runs of Linux' elevators, to the nanosecond;
//! - [`Hdd`]: a rotating disk with zones, a seek curve, rotation, read-ahead, a write cache and command queueing;
//! - [`Ssd`]: flash dies behind a link and a write buffer, and the cleaning of blocks;
//! - [`Array`]: disks behind a controller with memory;
//! - [`Server`]: servers behind one queue, with a measured spread: virtual disks, disks over a network;
//! - [`Empirical`]: no mechanism, but what was measured, drawn again.
//!
//! [`measure`] drives any of them as a benchmark would.
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
//! | file | what it is |
//! |---|---|
//! | `hdd/` | the rotating disk: `geometry` (where a sector is), `seek`, `spindle`, `queue` (which command next), `read_cache`, `write_cache`, `arm` (what the arm does) |
//! | `ssd/` | flash: dies, write buffer, translation with garbage collection |
//! | `array/` | members in stripes behind a controller's memory |
//! | `server/` | servers behind one queue, with a measured spread: virtual disks and those over a network |
//! | `empirical/` | measured latencies, drawn again |
//! | `credits.rs`, `rest.rs`, `distribution.rs`, `ends.rs` | what devices allow in the long run; what waking up costs; distributions as they were measured; which command continues another |
//! | `measure/` | the figures a device is known by, and how they are measured of a model: for anchors, cards and pages alike |
//! | `profile.rs` | a model, its parameters and its anchors, from TOML |
//! | `io_cost/` | what io.cost is told of devices: models as files and hwdb have them, and profiles made of them |
//! | `disksim/` | DiskSim's descriptions of real disks, and what was measured of them |
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
pub mod io_cost;
mod link;
pub mod measure;
mod profile;
mod profile_file;
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
pub use profile::{Anchor, Fit, Model, Profile, ProfileError, StartState, Validated, is_path};
pub use rest::RestConfig;
pub use server::{Server, ServerConfig};
pub use ssd::{Ssd, SsdConfig};

use iosched::{Op, Sector, Time};

/// What a host needs to know of a device before it sends anything.
#[derive(Clone, Debug, PartialEq)]
pub struct Card {
    /// Size in sectors of 512 bytes.
    pub capacity_sectors: u64,
    /// Commands it takes at once, at least 1.
    pub depth: u32,
    /// Hardware queues it takes them from, at least 1; each may hold as many.
    pub hw_queues: u16,
    /// Whether seeking costs.
    pub rotational: bool,
    /// Whether it acknowledges writes from a volatile cache, so that flushes matter.
    pub write_cache: bool,
    /// Whether it honours force-unit-access itself.
    pub fua: bool,
    /// Largest command in KiB.
    pub max_hw_sectors_kb: u32,
}

/// One command to a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Command {
    /// The host's number for it, given back at completion; unique among those outstanding.
    pub tag: u32,
    /// What to do.
    pub op: Op,
    /// First sector; the host keeps commands within the capacity.
    pub sector: Sector,
    /// Length in sectors; 0 for a flush.
    pub nr_sectors: u32,
    /// On stable storage at completion.
    pub fua: bool,
}

/// A device in virtual time.
///
/// The host calls [`submit`](Self::submit) while fewer than [`Card::depth`] commands are outstanding,
/// sleeps until [`next_event`](Self::next_event), and calls [`advance`](Self::advance) with that time until
/// it returns `None`. `now` never goes back. The same calls give the same answers.
pub trait Device {
    /// What the host needs to know of it.
    fn card(&self) -> &Card;

    /// Takes a command.
    fn submit(&mut self, now: Time, command: Command);

    /// When something happens inside next, if anything is under way.
    fn next_event(&self) -> Option<Time>;

    /// Does what is due at `now`; returns the tag of the next command that is complete, in the order of
    /// completion (at equal times, of submission), or `None` when nothing more is due.
    fn advance(&mut self, now: Time) -> Option<u32>;
}

impl<D: Device + ?Sized> Device for Box<D> {
    fn card(&self) -> &Card {
        (**self).card()
    }

    fn submit(&mut self, now: Time, command: Command) {
        (**self).submit(now, command);
    }

    fn next_event(&self) -> Option<Time> {
        (**self).next_event()
    }

    fn advance(&mut self, now: Time) -> Option<u32> {
        (**self).advance(now)
    }
}
