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
        let mut is_later = true;
        if let Locked::ByUs(mut entry) = state.lock(KEPT, device.name())? {
            if let Some(mut journal) = valid(&mut entry, &device)? {
                let mut is_new = false;
                for name in of_cgroups {
                    is_new |= journal.recorded.add(&device, name)?;
                }
                if is_new {
                    entry.write(&journal)?;
                }
            } else {
                is_later = false;
                entry.write(&Journal::of(&device, recorded.clone()))?;
            }
        }
        Ok(Self { device, recorded, is_later })
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

    /// Whether the journal is of an earlier change: undoing all is more than undoing this one.
    #[must_use]
    pub const fn is_later(&self) -> bool {
        self.is_later
    }

    /// Removes the journal if the device is as it says.
    ///
    /// # Errors
    /// It cannot be read or removed.
    pub fn forget_if_undone(&self, state: &StateDirectory) -> Result<(), SettingsError> {
        if let Locked::ByUs(mut entry) = state.lock(KEPT, self.device.name())? {
            let journal = valid(&mut entry, &self.device)?;
            if journal.is_none_or(|journal| journal.recorded.changes(&self.device).is_empty()) {
                entry.remove()?;
            }
        }
        Ok(())
    }
}

/// The journal of an entry, if it is of this device and of this start of the kernel.
fn valid(entry: &mut Entry, device: &BlockDevice) -> Result<Option<Journal>, SettingsError> {
    let is_of = |own: &Journal| {
        own.version == VERSION
            && own.boot_id == device.roots().boot_id()
            && is_same(&own.identity, &device.identity(), false)
    };
    Ok(parse::<Journal>(&entry.text()?).filter(is_of))
}

#[cfg(test)]
mod tests {
    use super::super::{PutBack, Restoration, RestoreOptions, kept, undo};
    use super::*;
    use crate::recorded::Recorded as Machine;

    #[test]
    fn undo_goes_back_before_the_first_change() {
        let machine = Machine::new();
        let (sda, state) = (machine.device("sda"), StateDirectory::at(&machine.path().join("state")));
        let first = Before::record(&sda, &state, &[]).unwrap();
        sda.set_attribute("nr_requests", "7").unwrap();
        first.forget_if_undone(&state).unwrap();
        let second = Before::record(&sda, &state, &[]).unwrap();
        assert!(!first.is_later() && second.is_later());
        sda.set_attribute("fifo_batch", "8").unwrap();
        second.forget_if_undone(&state).unwrap();
        let told = |changes: &[Change]| changes.iter().map(Change::to_string).collect::<Vec<_>>().join(", ");
        assert_eq!(told(&second.changes()), "iosched/fifo_batch 8 -> 16");
        assert_eq!(kept(&state), ["sda"]);
        let done = undo(sda.roots(), &state, "sda", RestoreOptions::default()).unwrap();
        let Restoration::PutBack(PutBack { changes, .. }) = done else { panic!("{done:?}") };
        assert_eq!(told(&changes), "nr_requests 7 -> 256, iosched/fifo_batch 8 -> 16");
        assert!(kept(&state).is_empty() && first.changes().is_empty());
    }

    #[test]
    fn a_journal_goes_when_the_device_is_as_it_was() {
        let machine = Machine::new();
        let (sda, state) = (machine.device("sda"), StateDirectory::at(&machine.path().join("state")));
        let before = Before::record(&sda, &state, &[]).unwrap();
        sda.set_attribute("nr_requests", "7").unwrap();
        before.forget_if_undone(&state).unwrap();
        let again = Before::record(&sda, &state, &[]).unwrap();
        sda.set_attribute("nr_requests", "256").unwrap();
        again.forget_if_undone(&state).unwrap();
        assert!(kept(&state).is_empty());
        // After a start of the kernel its own settings are in force: an old journal is replaced.
        let before = Before::record(&sda, &state, &[]).unwrap();
        sda.set_attribute("nr_requests", "7").unwrap();
        machine.write("proc/sys/kernel/random/boot_id", "another\n");
        let later = Before::record(&machine.device("sda"), &state, &[]).unwrap();
        assert!(!later.is_later() && before.changes().len() == 1);
    }
}
