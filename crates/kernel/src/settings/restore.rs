//! Puts back what a session that was killed has left, and undoes a change that stays.

use serde::Serialize;

use super::{Change, JOURNALS, Journal, KEPT, PutBack, SettingsError, VERSION};
use crate::block::{BlockDevice, Identity};
use crate::roots::Roots;
use crate::state::{Entry, Locked, StateDirectory, parse};

/// How to go about it.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub struct RestoreOptions {
    /// Only look what would be done.
    pub dry_run: bool,
    /// Put back also after a reboot, on another device of that name, and what something else has set since; forget a
    /// device that is gone.
    pub force: bool,
    /// Forget a device that is gone, or another one by now; nothing is set.
    pub forget: bool,
}

/// What became of one journal.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Restoration {
    /// Everything is as it was, but for what something else has set meanwhile; what was changed for that, or would be.
    PutBack(PutBack),
    /// It was left alone, and its journal is no longer needed: the kernel has started since, so that its own settings,
    /// and those of the machine's start, are there. What is not as it was before the session.
    Rebooted {
        /// What is not as it was.
        changes: Vec<Change>,
    },
    /// It was left alone, and its journal is kept.
    Kept {
        /// Why.
        reason: LeftAlone,
    },
    /// A device that is gone, or another one by now, was forgotten, and nothing was set.
    Forgotten,
    /// There was nothing to put back.
    Nothing,
}

/// Why a device was left alone.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum LeftAlone {
    /// A session is at work on it.
    InUse {
        /// Its process; 0 if that is not known.
        pid: u32,
    },
    /// There is no device of that name.
    Gone,
    /// The device of that name is another one.
    Another {
        /// What it was.
        then: Box<Identity>,
        /// What it is.
        now: Box<Identity>,
    },
    /// Something else has changed it since the change that is to be undone.
    Changed {
        /// What that has changed: `from` is what is there, `to` what was set by the change.
        foreign: Vec<Change>,
        /// What undoing would change, also of those.
        undo: Vec<Change>,
    },
    /// The journal cannot be understood.
    Damaged {
        /// Its file.
        path: std::path::PathBuf,
    },
}

/// The devices whose settings were changed and, it seems, not put back; those that a session is at work on are among
/// them.
#[must_use]
pub fn left_over(state: &StateDirectory) -> Vec<String> {
    state.entries(JOURNALS)
}

/// The devices whose settings [`Before`](super::Before) has recorded before a change that stays.
#[must_use]
pub fn kept(state: &StateDirectory) -> Vec<String> {
    state.entries(KEPT)
}

/// Undoes the changes that stay of the device `name`, back to before the first one since the kernel's start. If
/// something else has changed it since, it is left alone unless `force` is given.
///
/// # Errors
/// As [`restore`].
pub fn undo(
    roots: &Roots,
    state: &StateDirectory,
    name: &str,
    options: RestoreOptions,
) -> Result<Restoration, SettingsError> {
    of_kind(KEPT, roots, state, name, options)
}

/// Puts back what the journal of the device `name` says.
///
/// # Errors
/// The journal cannot be read, or not everything could be put back.
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
        // Killed before it was written: nothing had been changed.
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
    // What another has set back already needs no undoing.
    let undo = journal.recorded.changes(&device);
    let mut foreign = journal.foreign(&device);
    foreign.retain(|change| undo.iter().any(|undone| undone.name == change.name));
    if kind == KEPT && !foreign.is_empty() && !options.force {
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
    // Who insists wants it as it was before the session.
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

/// Whether it is the same device. The kernel counts disks as they come, so that the count tells, until it starts again.
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
