//! The schedulers of the running kernel on real devices: reads and changes their settings in
//! `/sys/block`, and runs workloads with real system calls.
//!
//! | module | contents |
//! |---|---|
//! | [`roots`] | the roots of `/sys`, `/proc`, `/dev`, `/run` and `/etc`, below which everything is read |
//! | [`block`] | block devices: their properties, the devices above and below, their uses and statistics |
//! | [`attribute`] | attributes in `/sys/block/<dev>/queue`: lists, reads, writes and checks them |
//! | [`cgroup`] | settings of cgroups for a disk, as attributes of the disk; cgroups of iosched itself, which are removed |
//! | [`command`] | runs and times external commands |
//! | [`consent`] | permission to write to a device |
//! | `demand` | properties of a workload on which the effect of parameters depends |
//! | [`directory`] | directories of iosched itself, which are removed |
//! | [`target`] | targets of a workload: a device, a file, or files in a directory |
//! | [`doctor`] | settings between a process and a disk, and which of them have no effect |
//! | `ioprio` | the ioprio of threads |
//! | [`mod@file`] | files that are read as if they were a device |
//! | [`execute`] | runs workloads with real system calls |
//! | [`observe`] | observes disks in use: latencies by operation, priority class and cgroup |
//! | [`mod@record`] | records the requests of a device with the kernel's block tracer |
//! | `process` | whether a process is about to end |
//! | [`quiet`] | waiting for an idle device, and dropping caches |
//! | [`settings`] | temporary changes of settings, which are restored even after a kill |
//! | [`state`] | the directory for records that must survive a crash |
//! | [`checks`] | reasons to doubt results, and facts that are needed to interpret them |
//! | [`knobs`] | parameters of a setting or a workload that have no effect |
//! | [`facts`] | facts in a record about the machine and the device |
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
mod ioprio;
pub mod knobs;
pub mod observe;
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
