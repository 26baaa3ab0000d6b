//! The kernel's own schedulers on real devices: what can be known and set through `/sys/block`, and workloads run with
//! real system calls.
//!
//! | module | what it is |
//! |---|---|
//! | [`roots`] | where the kernel tells about itself: the roots of `/sys`, `/proc` and `/dev` |
//! | [`block`] | block devices: which they are, what they are made of, who uses them, how busy they are |
//! | [`attribute`] | what stands in `/sys/block/<dev>/queue`: listed, read, written and read back |
//! | [`cgroup`] | what cgroups have for a disk, as attributes of it; cgroups of our own, which are removed |
//! | [`command`] | commands of others, run and timed |
//! | [`consent`] | who may write to a device |
//! | `demand` | what a workload asks of a device, as far as knobs depend on it |
//! | [`directory`] | directories of our own, which are removed |
//! | [`target`] | what a workload is run on: a device, a file, or files in a directory |
//! | [`doctor`] | what is in force on the way to a disk, and what of it does nothing there |
//! | `ioprio` | priorities of threads, as the kernel writes them |
//! | [`mod@file`] | files that are read as if they were a device |
//! | `held` | directories held by descriptor, in which files are made and removed |
//! | [`execute`] | workloads carried out with real system calls |
//! | [`mod@record`] | what a device is asked, recorded with the kernel's block tracer |
//! | `process` | whether a process is about to end |
//! | [`quiet`] | a device that does nothing, and nothing of it in memory |
//! | [`settings`] | settings that are changed for a while and put back, whatever ends us |
//! | [`state`] | where what must outlive us is kept |
//! | [`checks`] | what makes figures doubtful, or must be known to understand them |
//! | [`knobs`] | what a setting or a workload asks for that can change nothing |
//! | [`facts`] | what a record says of the machine and the device |
#![forbid(unsafe_code)]
#![warn(missing_docs)]

pub mod attribute;
pub mod block;
pub mod cgroup;
pub mod checks;
pub mod command;
pub mod consent;
mod demand;
pub mod directory;
pub mod doctor;
pub mod execute;
pub mod facts;
pub mod file;
mod held;
mod ioprio;
pub mod knobs;
mod process;
pub mod quiet;
pub mod record;
#[cfg(test)]
#[path = "tests/recorded.rs"]
mod recorded;
pub mod roots;
pub mod settings;
pub mod state;
pub mod target;

pub use block::{BlockDevice, DeviceNumber, FindError};
pub use consent::{Consent, Refusal};
pub use directory::OwnDirectory;
pub use execute::{ExecuteError, ExecuteOptions, Prepared};
pub use record::{RecordError, Recorded, Recorder};
pub use roots::Roots;
pub use settings::{Session, SettingsError};
pub use state::{StateDirectory, StateError};
pub use target::Target;
