//! Records the state of a device before a user changes its settings permanently.
//! [`undo`](super::undo) restores this state.
//!
//! The journal contains the state before the first change since the kernel booted. Later changes do
//! not replace this state. When the device is in this state again, the journal is removed.

use super::restore::is_same;
use super::{Change, Journal, PERMANENT, Recorded, SettingsError, VERSION};
use crate::block::BlockDevice;
use crate::state::{Entry, Locked, StateDirectory, parse};

/// State of a device before a permanent change.
#[derive(Debug)]
pub struct Before {
    device: BlockDevice,
    recorded: Recorded,
    /// Whether the journal contains an earlier change.
    is_later: bool,
    /// Changes by other programs since the change in the journal.
    foreign: Vec<Change>,
}

impl Before {
    /// Records the present settings of `device` and of the cgroup attributes `of_cgroups`. If the
    /// journal contains no earlier change, writes these settings to the journal, and returns only
    /// when they are on the disk.
    ///
    /// # Errors
    /// Attributes cannot be read, or the journal cannot be written.
    pub fn record(device: &BlockDevice, state: &StateDirectory, of_cgroups: &[&str]) -> Result<Self, SettingsError> {
        let device = device.disk();
        let mut recorded = Recorded::of(&device)?;
        for name in of_cgroups {
            recorded.add(&device, name)?;
        }
        let (mut is_later, mut foreign) = (true, Vec::new());
        if let Locked::ByUs(mut entry) = state.lock(PERMANENT, device.name())? {
            if let Some(mut journal) = valid(&mut entry, &device)? {
                foreign = journal.foreign(&device);
                let mut is_new = false;
                for name in of_cgroups {
                    is_new |= journal.recorded.add(&device, name)?;
                }
                // While the change is being made, the settings in force are not known.
                let end = base_end(&entry.text()?);
                entry.forget_behind(end)?;
                if is_new {
                    journal.applied = None;
                    entry.write(&journal)?;
                }
            } else {
                is_later = false;
                entry.write(&Journal::of(&device, recorded.clone()))?;
            }
        }
        Ok(Self { device, recorded, is_later, foreign })
    }

    /// Returns the whole disk.
    #[must_use]
    pub const fn device(&self) -> &BlockDevice {
        &self.device
    }

    /// Returns the values that differ from the recorded state, each as a change from the present
    /// value to the recorded value.
    #[must_use]
    pub fn changes(&self) -> Vec<Change> {
        self.recorded.changes(&self.device)
    }

    /// Returns the assignments for `iosched set`, in order, that restore the recorded state.
    #[must_use]
    pub fn undo(&self) -> Vec<(String, String)> {
        self.recorded.undo(&self.device)
    }

    /// Returns whether the device had the attribute `name` below `queue`.
    #[must_use]
    pub fn had(&self, name: &str) -> bool {
        self.recorded.values.iter().any(|(known, _)| known == name)
    }

    /// Returns whether the journal contains an earlier change. If this is true, undoing also undoes
    /// the earlier changes.
    #[must_use]
    pub const fn is_later(&self) -> bool {
        self.is_later
    }

    /// Ends the change. Records the settings in force, so that [`undo`](super::undo) detects later
    /// changes by other programs. If the device is in the state before the first change, removes
    /// the journal.
    ///
    /// # Errors
    /// The journal cannot be read, written or removed.
    pub fn end(&self, state: &StateDirectory) -> Result<(), SettingsError> {
        let Locked::ByUs(mut entry) = state.lock(PERMANENT, self.device.name())? else { return Ok(()) };
        match valid(&mut entry, &self.device)? {
            Some(mut journal) if !journal.recorded.changes(&self.device).is_empty() => {
                let mut applied = journal.recorded.now(&self.device)?;
                applied.leave_out(&self.foreign);
                journal.applied = Some(applied);
                entry.write(&journal)?;
            }
            _ => entry.remove()?,
        }
        Ok(())
    }
}

/// Returns the values that iosched has set on `device` since the kernel booted, with attributes of
/// cgroups. Omits values that other programs have changed later. The result is empty if iosched has
/// set nothing.
///
/// # Errors
/// The journal cannot be read.
pub fn set_values(device: &BlockDevice, state: &StateDirectory) -> Result<Vec<(String, String)>, SettingsError> {
    let device = device.disk();
    if !state.entries(PERMANENT).iter().any(|name| name == device.name()) {
        return Ok(Vec::new());
    }
    let Locked::ByUs(mut entry) = state.lock(PERMANENT, device.name())? else { return Ok(Vec::new()) };
    Ok(valid(&mut entry, &device)?
        .and_then(|journal| journal.applied)
        .map(|applied| applied.values)
        .unwrap_or_default())
}

/// Returns the end of the last value in a journal that does not contain the settings in force,
/// bytes from the start of the journal.
fn base_end(text: &str) -> u64 {
    let mut values = serde_json::Deserializer::from_str(text).into_iter::<Journal>();
    let mut end = 0;
    while let Some(Ok(journal)) = values.next() {
        if journal.applied.is_none() {
            end = values.byte_offset();
        }
    }
    // Include the end of the line.
    (end + usize::from(text[end..].starts_with('\n'))) as u64
}

/// Returns the journal of an entry, if the journal is from this device and this boot.
fn valid(entry: &mut Entry, device: &BlockDevice) -> Result<Option<Journal>, SettingsError> {
    let is_of = |journal: &Journal| {
        journal.version == VERSION
            && journal.boot_id == device.roots().boot_id()
            && is_same(&journal.identity, &device.identity(), false)
    };
    Ok(parse::<Journal>(&entry.text()?).filter(is_of))
}

#[cfg(test)]
mod tests {
    use super::super::{LeftAlone, PutBack, Restoration, RestoreOptions, permanently_changed, undo};
    use super::*;
    use crate::recorded::Recorded as Machine;

    #[test]
    fn undo_restores_the_state_before_the_first_change() {
        let machine = Machine::new();
        let (sda, state) = (machine.device("sda"), StateDirectory::at(&machine.path().join("state")));
        let first = Before::record(&sda, &state, &[]).unwrap();
        sda.set_attribute("nr_requests", "7").unwrap();
        first.end(&state).unwrap();
        let second = Before::record(&sda, &state, &[]).unwrap();
        assert!(!first.is_later() && second.is_later());
        sda.set_attribute("fifo_batch", "8").unwrap();
        second.end(&state).unwrap();
        let changes_text = |changes: &[Change]| changes.iter().map(Change::to_string).collect::<Vec<_>>().join(", ");
        assert_eq!(changes_text(&second.changes()), "iosched/fifo_batch 8 -> 16");
        assert_eq!(permanently_changed(&state), ["sda"]);
        let done = undo(sda.roots(), &state, "sda", RestoreOptions::default()).unwrap();
        let Restoration::PutBack(PutBack { changes, .. }) = done else { panic!("{done:?}") };
        assert_eq!(changes_text(&changes), "nr_requests 7 -> 256, iosched/fifo_batch 8 -> 16");
        assert!(permanently_changed(&state).is_empty() && first.changes().is_empty());
    }

    #[test]
    fn undo_keeps_changes_by_other_programs_unless_forced() {
        let machine = Machine::new();
        let (sda, state) = (machine.device("sda"), StateDirectory::at(&machine.path().join("state")));
        let set = |name: &str, value: &str| {
            let before = Before::record(&sda, &state, &[]).unwrap();
            sda.set_attribute(name, value).unwrap();
            before.end(&state).unwrap();
        };
        let force = |force| undo(sda.roots(), &state, "sda", RestoreOptions { force, ..RestoreOptions::default() });
        set("nr_requests", "7");
        // A change by another program, such as udev or echo.
        sda.set_attribute("nr_requests", "9").unwrap();
        // iosched then changes another attribute. The change by the other program must still be
        // reported.
        set("fifo_batch", "8");
        let done = force(false).unwrap();
        let Restoration::Kept { reason: LeftAlone::Changed { foreign, undo } } = done else { panic!("{done:?}") };
        let changes_text = |changes: &[Change]| changes.iter().map(Change::to_string).collect::<Vec<_>>().join(", ");
        assert_eq!(changes_text(&foreign), "nr_requests 9 -> 7");
        assert_eq!(changes_text(&undo), "nr_requests 9 -> 256, iosched/fifo_batch 8 -> 16");
        assert_eq!(sda.attribute("fifo_batch").unwrap().value, "8", "nothing was changed");
        assert!(matches!(force(true).unwrap(), Restoration::PutBack(_)));
        assert_eq!(sda.attribute("nr_requests").unwrap().value, "256");
        // If another program has already restored a value, there is nothing to undo.
        set("nr_requests", "7");
        sda.set_attribute("nr_requests", "256").unwrap();
        assert!(matches!(force(false).unwrap(), Restoration::PutBack(done) if done.changes.is_empty()));
        // If iosched changes the same attribute, its value replaces the other program's value.
        set("nr_requests", "7");
        sda.set_attribute("nr_requests", "9").unwrap();
        set("nr_requests", "11");
        assert!(matches!(force(false).unwrap(), Restoration::PutBack(_)));
        assert_eq!(sda.attribute("nr_requests").unwrap().value, "256");
    }

    #[test]
    fn journal_is_removed_when_the_device_is_restored() {
        let machine = Machine::new();
        let (sda, state) = (machine.device("sda"), StateDirectory::at(&machine.path().join("state")));
        let before = Before::record(&sda, &state, &[]).unwrap();
        sda.set_attribute("nr_requests", "7").unwrap();
        before.end(&state).unwrap();
        let again = Before::record(&sda, &state, &[]).unwrap();
        sda.set_attribute("nr_requests", "256").unwrap();
        again.end(&state).unwrap();
        assert!(permanently_changed(&state).is_empty());
        // The journal does not grow with the number of changes.
        let size = || std::fs::metadata(state.path().join(PERMANENT).join("sda")).unwrap().len();
        let set = |value: &str| {
            let before = Before::record(&sda, &state, &[]).unwrap();
            sda.set_attribute("nr_requests", value).unwrap();
            before.end(&state).unwrap();
        };
        set("7");
        let first = size();
        ["8", "9"].into_iter().for_each(set);
        assert_eq!(size(), first);
        set("256");
        assert!(permanently_changed(&state).is_empty());
        // A new boot starts with the kernel's settings, so an old journal is replaced.
        let before = Before::record(&sda, &state, &[]).unwrap();
        sda.set_attribute("nr_requests", "7").unwrap();
        machine.write("proc/sys/kernel/random/boot_id", "another\n");
        let later = Before::record(&machine.device("sda"), &state, &[]).unwrap();
        assert!(!later.is_later() && before.changes().len() == 1);
    }
}
