//! Settings of a device that are changed for a while and put back, whatever ends us.
//!
//! | file | what it does |
//! |---|---|
//! | `recorded.rs` | what was set before: recorded, compared, put back |
//! | `session.rs` | changes settings while it lives |
//! | `kept.rs` | what was set before a change that stays |
//! | `restore.rs` | puts back what a session that was killed has left, and undoes a change that stays |
//! | `drop_ins.rs` | likewise of what a setting has of controllers: drop-ins of systemd, and io.cost |
//! | `installed_tests.rs` | what is made to last, held against systemd's own programs |
//! | `lasting.rs` | how a setting is made to last, as text: commands, udev rule, profile of tuned, undo |
//!
//! A [`Session`] records everything that can be written before it changes anything, in a journal that is on the disk by
//! then. Dropped, by whatever way but a kill, it puts everything back; after a kill or a reboot [`restore`] does what
//! the journal says.

mod drop_ins;
#[cfg(test)]
mod installed_tests;
mod kept;
mod lasting;
mod recorded;
mod restore;
mod session;

use std::path::PathBuf;
use std::time::{SystemTime, UNIX_EPOCH};

use iosched::Registry;
use serde::{Deserialize, Serialize};

use crate::attribute::AttributeError;
use crate::block::{BlockDevice, Identity};
use crate::state::StateError;

pub use drop_ins::{DropIn, Named, OfControllers};
pub use kept::Before;
pub use lasting::{Lasting, RULES, assigned, rule, rule_name};
pub use recorded::{Change, Left, NotRestored, Recorded};
pub use restore::{LeftAlone, Restoration, RestoreOptions, kept, left_over, restore, undo};
pub use session::Session;

/// The kind of entries in the state directory that journals are.
const JOURNALS: &str = "settings";
/// The kind of those that journals of changes that stay are.
const KEPT: &str = "set";

/// What is on the disk before anything is changed.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
struct Journal {
    /// Of the form of this.
    version: u32,
    /// Who changes settings.
    pid: u32,
    /// Since when, seconds since 1970.
    begun_unix_s: u64,
    /// Of which start of the kernel.
    boot_id: String,
    device: String,
    identity: Identity,
    /// What is to be put back: what was there, and what something else has set since.
    recorded: Recorded,
    /// What is in force by us; `None` while a setting is applied. What differs from it, something else has set.
    #[serde(default)]
    applied: Option<Recorded>,
}

impl Journal {
    /// What is not as we set it, because something else has set it meanwhile.
    fn foreign(&self, device: &BlockDevice) -> Vec<Change> {
        self.applied.as_ref().map(|applied| applied.changes(device)).unwrap_or_default()
    }
}

/// What became of settings that were put back.
#[derive(Clone, Default, PartialEq, Eq, Debug, Serialize)]
pub struct PutBack {
    /// What was changed.
    pub changes: Vec<Change>,
    /// What was left, because something else has set it meanwhile: `from` is what that set, `to` what was there before.
    pub left: Vec<Change>,
}

/// The form of journals.
const VERSION: u32 = 1;

impl Journal {
    /// A journal that this process begins now.
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

/// Why settings cannot be changed.
#[derive(Debug, thiserror::Error)]
pub enum SettingsError {
    /// Only root may.
    #[error("{device}: changing its settings needs root ({} cannot be written)", path.display())]
    Permission {
        /// The device.
        device: String,
        /// What cannot be written.
        path: PathBuf,
    },
    /// It has no scheduler.
    #[error("{device}: has no scheduler of its own{}", those_below(below))]
    NoScheduler {
        /// The device.
        device: String,
        /// Those below it that have one.
        below: Vec<String>,
    },
    /// A scheduler that the kernel does not have.
    #[error("{device}: the kernel has no scheduler {name}; it has {available}{}", after_missing(name))]
    Missing {
        /// The device.
        device: String,
        /// What was asked for.
        name: String,
        /// What there is.
        available: String,
    },
    /// Somebody else changes its settings.
    #[error("{device}: process {pid} is changing its settings now")]
    Busy {
        /// The device.
        device: String,
        /// Who; 0 if that is not known.
        pid: u32,
    },
    /// What was changed before has not been put back.
    #[error(
        "{device}: its settings were changed and not put back, for example because iosched was killed; first run: \
         iosched restore {device}"
    )]
    LeftOver {
        /// The device.
        device: String,
    },
    /// A value is not taken.
    #[error(transparent)]
    Attribute(#[from] AttributeError),
    /// The journal cannot be kept.
    #[error(transparent)]
    State(#[from] StateError),
    /// Not everything was put back.
    #[error(transparent)]
    NotRestored(#[from] NotRestored),
}

fn those_below(below: &[String]) -> String {
    if below.is_empty() { String::new() } else { format!("; below it {} have one", below.join(", ")) }
}

/// How to have a scheduler that the kernel does not have.
pub(crate) fn elsewhere(name: &str) -> String {
    match Registry::linux().get(name).ok().and_then(|scheduler| scheduler.out_of_tree) {
        Some(kernels) => format!(
            "{name} is not in Linux: boot a kernel that has it ({kernels}), or serve the disk: \
             iosched serve DISK --scheduler {name}"
        ),
        None => format!("try modprobe {name}, or modprobe {name}-iosched"),
    }
}

fn after_missing(name: &str) -> String {
    format!("; {}", elsewhere(name))
}
