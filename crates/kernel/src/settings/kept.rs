//! How a device was before a person changed its settings to stay. [`undo`](super::undo) puts that back.
//!
//! The journal is of the first change since the kernel's start. Later changes leave it as it is, and it goes when the
//! device is as it was.

use super::restore::is_same;
use super::{Change, Journal, KEPT, Recorded, SettingsError, VERSION};
use crate::block::BlockDevice;
use crate::state::{Entry, Locked, StateDirectory, parse};

/// What was set on a device before a change that stays.
#[derive(Debug)]
pub struct Before {
    device: BlockDevice,
    recorded: Recorded,
    /// Whether an earlier change is in the journal.
    is_later: bool,
    /// What something else has changed since the change that is in the journal.
    foreign: Vec<Change>,
}

impl Before {
    /// Records what is set on `device` now, and what the attributes `of_cgroups` are. Unless an earlier change is in the
    /// journal, this is, and is on the disk when this returns.
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
        if let Locked::ByUs(mut entry) = state.lock(KEPT, device.name())? {
            if let Some(mut journal) = valid(&mut entry, &device)? {
                foreign = journal.foreign(&device);
                let mut is_new = false;
                for name in of_cgroups {
                    is_new |= journal.recorded.add(&device, name)?;
                }
                // What is in force is not known until the change is made.
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

    /// The device, whole.
    #[must_use]
    pub const fn device(&self) -> &BlockDevice {
        &self.device
    }

    /// What is not as it was, from the value now to the value before.
    #[must_use]
    pub fn changes(&self) -> Vec<Change> {
        self.recorded.changes(&self.device)
    }

    /// What `iosched set` is to be given, in this order, so that all is as it was.
    #[must_use]
    pub fn undo(&self) -> Vec<(String, String)> {
        self.recorded.undo(&self.device)
    }

    /// Whether the device had the attribute `name`, below `queue`.
    #[must_use]
    pub fn had(&self, name: &str) -> bool {
        self.recorded.values.iter().any(|(known, _)| known == name)
    }

    /// Whether the journal is of an earlier change: undoing all is more than undoing this one.
    #[must_use]
    pub const fn is_later(&self) -> bool {
        self.is_later
    }

    /// Ends the change: what is in force now is in the journal, so that [`undo`](super::undo) finds what something else
    /// has changed since. If the device is as it was before the first change, the journal is removed.
    ///
    /// # Errors
    /// The journal cannot be read, written or removed.
    pub fn end(&self, state: &StateDirectory) -> Result<(), SettingsError> {
        let Locked::ByUs(mut entry) = state.lock(KEPT, self.device.name())? else { return Ok(()) };
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

/// Where the last value of a journal that does not tell what is in force ends, bytes.
fn base_end(text: &str) -> u64 {
    let mut values = serde_json::Deserializer::from_str(text).into_iter::<Journal>();
    let mut end = 0;
    while let Some(Ok(journal)) = values.next() {
        if journal.applied.is_none() {
            end = values.byte_offset();
        }
    }
    // With the end of its line.
    (end + usize::from(text[end..].starts_with('\n'))) as u64
}

/// The journal of an entry, if it is of this device and of this start of the kernel.
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
    use super::super::{LeftAlone, PutBack, Restoration, RestoreOptions, kept, undo};
    use super::*;
    use crate::recorded::Recorded as Machine;

    #[test]
    fn undo_goes_back_before_the_first_change() {
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
        assert_eq!(kept(&state), ["sda"]);
        let done = undo(sda.roots(), &state, "sda", RestoreOptions::default()).unwrap();
        let Restoration::PutBack(PutBack { changes, .. }) = done else { panic!("{done:?}") };
        assert_eq!(changes_text(&changes), "nr_requests 7 -> 256, iosched/fifo_batch 8 -> 16");
        assert!(kept(&state).is_empty() && first.changes().is_empty());
    }

    #[test]
    fn undo_keeps_later_changes_of_the_device() {
        let machine = Machine::new();
        let (sda, state) = (machine.device("sda"), StateDirectory::at(&machine.path().join("state")));
        let set = |name: &str, value: &str| {
            let before = Before::record(&sda, &state, &[]).unwrap();
            sda.set_attribute(name, value).unwrap();
            before.end(&state).unwrap();
        };
        let force = |force| undo(sda.roots(), &state, "sda", RestoreOptions { force, ..RestoreOptions::default() });
        set("nr_requests", "7");
        // udev, or a person with echo.
        sda.set_attribute("nr_requests", "9").unwrap();
        // A later change by iosched of another attribute does not hide it.
        set("fifo_batch", "8");
        let done = force(false).unwrap();
        let Restoration::Kept { reason: LeftAlone::Changed { foreign, undo } } = done else { panic!("{done:?}") };
        let changes_text = |changes: &[Change]| changes.iter().map(Change::to_string).collect::<Vec<_>>().join(", ");
        assert_eq!(changes_text(&foreign), "nr_requests 9 -> 7");
        assert_eq!(changes_text(&undo), "nr_requests 9 -> 256, iosched/fifo_batch 8 -> 16");
        assert_eq!(sda.attribute("fifo_batch").unwrap().value, "8", "nothing was changed");
        assert!(matches!(force(true).unwrap(), Restoration::PutBack(_)));
        assert_eq!(sda.attribute("nr_requests").unwrap().value, "256");
        // What something else has set back needs no undoing.
        set("nr_requests", "7");
        sda.set_attribute("nr_requests", "256").unwrap();
        assert!(matches!(force(false).unwrap(), Restoration::PutBack(done) if done.changes.is_empty()));
        // A change of the same attribute by iosched takes it over.
        set("nr_requests", "7");
        sda.set_attribute("nr_requests", "9").unwrap();
        set("nr_requests", "11");
        assert!(matches!(force(false).unwrap(), Restoration::PutBack(_)));
        assert_eq!(sda.attribute("nr_requests").unwrap().value, "256");
    }

    #[test]
    fn a_journal_goes_when_the_device_is_as_it_was() {
        let machine = Machine::new();
        let (sda, state) = (machine.device("sda"), StateDirectory::at(&machine.path().join("state")));
        let before = Before::record(&sda, &state, &[]).unwrap();
        sda.set_attribute("nr_requests", "7").unwrap();
        before.end(&state).unwrap();
        let again = Before::record(&sda, &state, &[]).unwrap();
        sda.set_attribute("nr_requests", "256").unwrap();
        again.end(&state).unwrap();
        assert!(kept(&state).is_empty());
        // However often it is set, the journal does not grow.
        let size = || std::fs::metadata(state.path().join(KEPT).join("sda")).unwrap().len();
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
        assert!(kept(&state).is_empty());
        // After a start of the kernel its own settings are in force: an old journal is replaced.
        let before = Before::record(&sda, &state, &[]).unwrap();
        sda.set_attribute("nr_requests", "7").unwrap();
        machine.write("proc/sys/kernel/random/boot_id", "another\n");
        let later = Before::record(&machine.device("sda"), &state, &[]).unwrap();
        assert!(!later.is_later() && before.changes().len() == 1);
    }
}
