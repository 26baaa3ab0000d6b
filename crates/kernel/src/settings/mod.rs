//! Settings of a device that are changed for a while and put back, whatever ends us.
//!
//! | file | what it does |
//! |---|---|
//! | `recorded.rs` | what was set before: recorded, compared, put back |
//! | `session.rs` | changes settings while it lives |
//! | `restore.rs` | puts back what a session that was killed has left |
//! | `lasting.rs` | how a setting is made to last, as text: commands, udev rule, profile of tuned, undo |
//!
//! A [`Session`] records everything that can be written before it changes anything, in a journal that is on the disk by then. Dropped,
//! by whatever way but a kill, it puts everything back; after a kill or a reboot [`restore`] does what the journal says.

mod lasting;
mod recorded;
mod restore;
mod session;

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::attribute::AttributeError;
use crate::block::Identity;
use crate::state::StateError;

pub use lasting::Lasting;
pub use recorded::{Change, Left, NotRestored, Recorded};
pub use restore::{Kept, Options, Restoration, left_over, restore};
pub use session::Session;

/// The kind of entries in the state directory that journals are.
const JOURNALS: &str = "settings";

/// What is set on a device. Written `bfq:low_latency=0,nr_requests=64`; `present:wbt_lat_usec=0` begins with what the device had.
#[derive(Clone, Default, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Setting {
    /// The scheduler, with the kernel's own defaults; `None`: the one that was there, with its tunables as they were.
    pub scheduler: Option<String>,
    /// Attributes of the queue and tunables of the scheduler, in the order they are written.
    pub values: Vec<(String, String)>,
}

/// Stands for the scheduler that was there.
const PRESENT: &str = "present";

/// What is no setting.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{text}: {part:?} is not name=value; write it like bfq:low_latency=0,nr_requests=64")]
pub struct SettingError {
    text: String,
    part: String,
}

impl FromStr for Setting {
    type Err = SettingError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (scheduler, values) = text.split_once(':').unwrap_or((text, ""));
        let scheduler = Some(scheduler.trim().to_owned()).filter(|name| name != PRESENT);
        let parts = values.split(',').map(str::trim).filter(|part| !part.is_empty());
        let value = |part: &str| match part.split_once('=') {
            Some((name, value)) => Ok((name.trim().to_owned(), value.trim().to_owned())),
            None => Err(SettingError { text: text.to_owned(), part: part.to_owned() }),
        };
        Ok(Self { scheduler, values: parts.map(value).collect::<Result<_, _>>()? })
    }
}

impl fmt::Display for Setting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.scheduler.as_deref().unwrap_or(PRESENT))?;
        for (index, (name, value)) in self.values.iter().enumerate() {
            write!(f, "{}{name}={value}", if index == 0 { ':' } else { ',' })?;
        }
        Ok(())
    }
}

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
    recorded: Recorded,
}

/// The form of journals.
const VERSION: u32 = 1;

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
    #[error(
        "{device}: the kernel has no scheduler {name}; it has {available}, and modprobe {name} (or {name}-iosched) may add it"
    )]
    Missing {
        /// The device.
        device: String,
        /// What was asked for.
        name: String,
        /// What there is.
        available: String,
    },
    /// Somebody else changes its settings.
    #[error("{device}: process {pid} changes its settings at the moment")]
    Busy {
        /// The device.
        device: String,
        /// Who; 0 if that is not known.
        pid: u32,
    },
    /// What was changed before has not been put back.
    #[error("{device}: its settings were changed and not put back, as after a kill; first: iosched restore {device}")]
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_setting_reads_as_it_is_written() {
        for text in ["bfq", "bfq:low_latency=0,nr_requests=64", "present", "present:wbt_lat_usec=0"] {
            assert_eq!(text.parse::<Setting>().unwrap().to_string(), text);
        }
        assert_eq!("present".parse::<Setting>().unwrap(), Setting::default());
        assert_eq!("none: a = 1 ,".parse::<Setting>().unwrap().to_string(), "none:a=1");
        let error = "bfq:low_latency".parse::<Setting>().unwrap_err().to_string();
        assert!(error.contains("\"low_latency\" is not name=value"), "{error}");
    }
}
