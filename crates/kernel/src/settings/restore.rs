//! Restores the settings after a killed session, and undoes a permanent change.

use serde::Serialize;

use super::{Change, JOURNALS, Journal, PERMANENT, PutBack, SettingsError, VERSION};
use crate::block::{BlockDevice, Identity};
use crate::roots::Roots;
use crate::state::{Entry, Locked, StateDirectory, parse};

/// Options of restoring the settings of a disk.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub struct RestoreOptions {
    /// Whether only to report the changes, without making them.
    pub dry_run: bool,
    /// Whether to restore even after a reboot, on another device with the same name, and over
    /// values of other programs. If the device no longer exists, its journal is removed.
    pub force: bool,
    /// Whether to remove the journal of a device that no longer exists or was replaced, without
    /// setting anything.
    pub forget: bool,
}

/// Result of restoring the settings in one journal.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Restoration {
    /// The settings were restored, except values of other programs. In a dry run, they would be
    /// restored.
    PutBack(PutBack),
    /// The kernel has booted since the session, so the kernel's own settings are in force. The
    /// device was left unchanged, and its journal was removed.
    Rebooted {
        /// Values that differ from the values before the session.
        changes: Vec<Change>,
    },
    /// The device was left unchanged, and its journal is kept.
    Kept {
        /// Reason.
        reason: LeftAlone,
    },
    /// The device no longer exists or was replaced. Its journal was removed, and nothing was set.
    Forgotten,
    /// There was nothing to restore.
    Nothing,
}

/// Reason why a device was left unchanged.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum LeftAlone {
    /// A session is changing the device.
    InUse {
        /// Process id of the session, 0 if not known.
        pid: u32,
    },
    /// There is no device of this name.
    Gone,
    /// The device of this name is not the device in the journal.
    Another {
        /// Identity of the original device.
        then: Box<Identity>,
        /// Identity of the present device.
        now: Box<Identity>,
    },
    /// Other programs have changed the device since the change that is to be undone.
    Changed {
        /// Changes by other programs: `from` is the present value, and `to` the value that iosched
        /// had set.
        foreign: Vec<Change>,
        /// Changes that undoing would make, including the changes that revert `foreign`.
        undo: Vec<Change>,
    },
    /// The journal cannot be parsed.
    Damaged {
        /// Path of the journal.
        path: std::path::PathBuf,
    },
}

/// Returns the devices with a journal of a session. Devices of running sessions are included.
#[must_use]
pub fn left_over(state: &StateDirectory) -> Vec<String> {
    state.entries(JOURNALS)
}

/// Returns the devices whose settings [`Before`](super::Before) has recorded before a permanent
/// change.
#[must_use]
pub fn permanently_changed(state: &StateDirectory) -> Vec<String> {
    state.entries(PERMANENT)
}

/// Undoes the permanent changes of the device `name` since the kernel booted. Undoes nothing if
/// another program has changed the device since then, unless `force` is set.
///
/// # Errors
/// As [`restore`].
pub fn undo(
    roots: &Roots,
    state: &StateDirectory,
    name: &str,
    options: RestoreOptions,
) -> Result<Restoration, SettingsError> {
    of_kind(PERMANENT, roots, state, name, options)
}

/// Restores the settings in the journal of the device `name`.
///
/// # Errors
/// The journal cannot be read, or not everything could be restored.
pub fn restore(
    roots: &Roots,
    state: &StateDirectory,
    name: &str,
    options: RestoreOptions,
) -> Result<Restoration, SettingsError> {
    of_kind(JOURNALS, roots, state, name, options)
}

fn of_kind(
    kind: &str,
    roots: &Roots,
    state: &StateDirectory,
    name: &str,
    options: RestoreOptions,
) -> Result<Restoration, SettingsError> {
    if !state.entries(kind).iter().any(|left| left == name) {
        return Ok(Restoration::Nothing);
    }
    let mut entry = match state.lock(kind, name)? {
        Locked::ByUs(entry) => entry,
        Locked::ByAnother(text) => {
            let pid = parse::<Journal>(&text).map_or(0, |journal| journal.pid);
            return Ok(Restoration::Kept { reason: LeftAlone::InUse { pid } });
        }
    };
    let text = entry.text()?;
    if text.trim().is_empty() {
        // The process was killed before it wrote the journal, so it had changed nothing.
        finish(entry, options)?;
        return Ok(Restoration::Nothing);
    }
    let Some(journal) = parse::<Journal>(&text).filter(|journal| journal.version == VERSION) else {
        return Ok(Restoration::Kept { reason: LeftAlone::Damaged { path: entry.path().to_owned() } });
    };
    let rebooted = journal.boot_id != roots.boot_id();
    let Ok(device) = BlockDevice::named(roots, name) else {
        if !options.force && !options.forget && !rebooted {
            return Ok(Restoration::Kept { reason: LeftAlone::Gone });
        }
        finish(entry, options)?;
        return Ok(Restoration::Forgotten);
    };
    if rebooted && !options.force {
        let changes = journal.recorded.changes(&device);
        finish(entry, options)?;
        return Ok(Restoration::Rebooted { changes });
    }
    let (then, now) = (journal.identity.clone(), device.identity());
    let is_another = !is_same(&then, &now, rebooted);
    if is_another && options.forget {
        finish(entry, options)?;
        return Ok(Restoration::Forgotten);
    }
    if is_another && !options.force {
        return Ok(Restoration::Kept { reason: LeftAlone::Another { then: Box::new(then), now: Box::new(now) } });
    }
    // If another program has already restored a value, there is nothing to undo.
    let undo = journal.recorded.changes(&device);
    let mut foreign = journal.foreign(&device);
    foreign.retain(|change| undo.iter().any(|undone| undone.name == change.name));
    if kind == PERMANENT && !foreign.is_empty() && !options.force {
        return Ok(Restoration::Kept { reason: LeftAlone::Changed { foreign, undo } });
    }
    put_back(entry, journal, &device, options)
}

fn put_back(
    entry: Entry,
    journal: Journal,
    device: &BlockDevice,
    options: RestoreOptions,
) -> Result<Restoration, SettingsError> {
    let foreign = journal.foreign(device);
    let mut recorded = journal.recorded;
    // With `force`, the state before the session is restored.
    let left = if options.force { Vec::new() } else { recorded.adopt(device, &foreign) };
    let changes = if options.dry_run { recorded.changes(device) } else { recorded.put_back(device)? };
    finish(entry, options)?;
    Ok(Restoration::PutBack(PutBack { changes, left }))
}

fn finish(entry: Entry, options: RestoreOptions) -> Result<(), SettingsError> {
    if !options.dry_run {
        entry.remove()?;
    }
    Ok(())
}

/// Returns whether both identities belong to the same device. Within one boot, the kernel's
/// sequence number of the disk decides this.
pub(super) fn is_same(then: &Identity, now: &Identity, rebooted: bool) -> bool {
    match (then.sequence, now.sequence) {
        (Some(then), Some(now)) if !rebooted => then == now,
        _ => {
            (then.number, then.size_bytes, &then.serial, &then.backing_file)
                == (now.number, now.size_bytes, &now.serial, &now.backing_file)
        }
    }
}

#[cfg(test)]
#[path = "../tests/settings.rs"]
mod tests;
