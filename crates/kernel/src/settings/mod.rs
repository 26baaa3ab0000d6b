//! Temporary changes of a device's settings, which are restored even if iosched is killed.
//!
//! | file | contents |
//! |---|---|
//! | `recorded.rs` | records, compares and restores the previous settings |
//! | `session.rs` | changes of settings that end with the session |
//! | `before.rs` | the settings before a permanent change |
//! | `restore.rs` | restores the settings after a killed session, and undoes a permanent change |
//! | `drop_ins.rs` | lasting forms of a setting's controllers: drop-ins of systemd, and io.cost |
//! | `units.rs` | values of a cgroup's files as properties of a systemd unit |
//! | `installed_tests.rs` | tests of the lasting forms with systemd's programs |
//! | `lasting.rs` | lasting forms of a setting, as text: commands, udev rule, TuneD profile, undo |
//!
//! Before its first change, a [`Session`] records all writable settings in a journal on the disk.
//! When the session is dropped, it restores these settings. After a kill or a reboot, [`restore`]
//! reads the journal.

mod before;
mod drop_ins;
#[cfg(test)]
mod installed_tests;
mod lasting;
mod recorded;
mod restore;
mod session;
pub mod units;

use std::path::PathBuf;
use std::time::{SystemTime, UNIX_EPOCH};

use iosched::Registry;
use serde::{Deserialize, Serialize};

use crate::attribute::AttributeError;
use crate::block::{BlockDevice, Identity};
use crate::state::StateError;

pub use before::{Before, set_values};
pub use drop_ins::{Named, OfControllers};
pub use lasting::{Lasting, RULES, RuleMatch, assigned, rule, rule_name};
pub use recorded::{Change, Left, NotRestored, Recorded, shell};
pub use restore::{LeftAlone, Restoration, RestoreOptions, left_over, permanently_changed, restore, undo};
pub use session::Session;
pub use units::DropIn;

/// Kind of entries in the state directory for journals of sessions.
const JOURNALS: &str = "settings";
/// Kind of entries for journals of permanent changes.
const PERMANENT: &str = "set";

/// Record that is on the disk before anything is changed.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
struct Journal {
    /// Version of the journal's format.
    version: u32,
    /// Process that changes settings.
    pid: u32,
    /// Start time, seconds since 1970.
    begun_unix_s: u64,
    /// Identifier of the boot of the kernel.
    boot_id: String,
    device: String,
    identity: Identity,
    /// State to restore: the original values, or newer values from other programs.
    recorded: Recorded,
    /// Settings in force that iosched has applied. `None` while iosched applies a setting. If a
    /// present value differs from these settings, another program has changed it.
    #[serde(default)]
    applied: Option<Recorded>,
}

impl Journal {
    /// Returns the changes that other programs have made to the settings in force.
    fn foreign(&self, device: &BlockDevice) -> Vec<Change> {
        self.applied.as_ref().map(|applied| applied.changes(device)).unwrap_or_default()
    }
}

/// Settings that were restored, and settings that were left alone.
#[derive(Clone, Default, PartialEq, Eq, Debug, Serialize)]
pub struct PutBack {
    /// Changes that were made.
    pub changes: Vec<Change>,
    /// Values that were not restored, because other programs have set them. `from` is the value of
    /// the other program, and `to` is the original value.
    pub left: Vec<Change>,
}

/// Version of the journal's format.
const VERSION: u32 = 1;

impl Journal {
    /// Creates a journal of this process with the present time.
    fn of(device: &BlockDevice, recorded: Recorded) -> Self {
        Self {
            version: VERSION,
            pid: std::process::id(),
            begun_unix_s: SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs(),
            boot_id: device.roots().boot_id(),
            device: device.name().to_owned(),
            identity: device.identity(),
            recorded,
            applied: None,
        }
    }
}

/// Reason why settings cannot be changed.
#[derive(Debug, thiserror::Error)]
pub enum SettingsError {
    /// Only root may change the settings.
    #[error("{device}: only root can change the settings of this device ({} cannot be written)", path.display())]
    Permission {
        /// Name of the device.
        device: String,
        /// Path of the file that cannot be written.
        path: PathBuf,
    },
    /// The device has no scheduler.
    #[error("{device}: this device has no scheduler{}", those_below(below))]
    NoScheduler {
        /// Name of the device.
        device: String,
        /// Devices below that have a scheduler.
        below: Vec<String>,
    },
    /// The kernel does not have the scheduler.
    #[error("{device}: the kernel has no scheduler {name} for this device; it has {available}{}", after_missing(name))]
    Missing {
        /// Name of the device.
        device: String,
        /// Requested scheduler.
        name: String,
        /// Available schedulers.
        available: String,
    },
    /// Another process changes the settings of the device.
    #[error("{device}: process {pid} is changing the settings of this device now")]
    Busy {
        /// Name of the device.
        device: String,
        /// Process id of the other process, 0 if not known.
        pid: u32,
    },
    /// The settings of an earlier session have not been restored.
    #[error(
        "{device}: an earlier iosched command changed the settings of this device and did not restore them, for \
         example because it was killed; first run: iosched restore {device}"
    )]
    LeftOver {
        /// Name of the device.
        device: String,
    },
    /// A value is not accepted.
    #[error(transparent)]
    Attribute(#[from] AttributeError),
    /// The journal cannot be written.
    #[error(transparent)]
    State(#[from] StateError),
    /// Some settings were not restored.
    #[error(transparent)]
    NotRestored(#[from] NotRestored),
}

fn those_below(below: &[String]) -> String {
    if below.is_empty() { String::new() } else { format!("; the devices below have one: {}", below.join(", ")) }
}

/// Returns a hint how to use a scheduler that the kernel does not have.
pub(crate) fn elsewhere(name: &str) -> String {
    let scheduler = Registry::linux().get(name).ok();
    if scheduler.is_some_and(|scheduler| scheduler.is_in_no_kernel()) {
        return format!(
            "no kernel has the scheduler {name}; to use {name}, let iosched serve the disk: iosched serve DISK \
             --scheduler {name}"
        );
    }
    match scheduler.and_then(|scheduler| scheduler.out_of_tree) {
        Some(kernels) => format!(
            "{name} is not in Linux; boot a kernel that has {name} ({kernels}), or let iosched serve the disk: \
             iosched serve DISK --scheduler {name}"
        ),
        None => format!("try modprobe {name}, or modprobe {name}-iosched"),
    }
}

fn after_missing(name: &str) -> String {
    format!("; {}", elsewhere(name))
}
