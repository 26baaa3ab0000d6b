//! Changes settings of a device until the session ends.

use std::fs::OpenOptions;

use super::{Change, JOURNALS, Journal, PutBack, Recorded, SettingsError};
use crate::attribute::{AttributeError, Declaration};
use crate::block::BlockDevice;
use crate::cgroup::{CGROUP, files};
use crate::state::{Entry, Locked, StateDirectory, parse};
use iosched::Setting;

const WBT: &str = "wbt_lat_usec";
/// Schedulers under which the kernel does not throttle writeback. This changes when a program
/// writes the device's `wbt_lat_usec`: the kernel remembers the write until the device is removed,
/// and nothing can undo it.
const WITHOUT_WBT: [&str; 1] = ["bfq"];

/// Returns whether `name` is a file of a workload's cgroups. In a setting, the values of such a
/// file belong to cgroups that the workload names.
fn is_of_workload(name: &str) -> bool {
    files().iter().any(|file| file.name == name && !file.is_of_root)
}

/// Right to change the settings of a device. Dropping the session restores all settings.
#[derive(Debug)]
pub struct Session {
    device: BlockDevice,
    journal: Journal,
    /// Entry of the journal. `None` after everything is restored.
    entry: Option<Entry>,
    /// End of the first part of the journal, bytes. The first part contains the state to restore.
    /// The second part contains the settings in force.
    base_end: u64,
    /// Settings at the start of the session.
    begun: Recorded,
    /// Changes by other programs since the start of the session, one for each attribute.
    left: Vec<Change>,
    /// Attributes that the present setting has changed, and their previous values.
    changed: Vec<(String, String)>,
    /// The writeback latency under the schedulers of [`WITHOUT_WBT`], from before iosched wrote the
    /// attribute for the first time.
    wbt_under: Option<Vec<(String, String)>>,
}

impl Session {
    /// Starts a session. Records all writable settings of `device` in `state`. The record is on the
    /// disk when this function returns. The settings are not changed yet.
    ///
    /// # Errors
    /// - The device has no scheduler.
    /// - This process may not write its attributes.
    /// - Another session is changing the device, or a killed session was not restored.
    /// - The journal cannot be written.
    pub fn begin(device: &BlockDevice, state: &StateDirectory) -> Result<Self, SettingsError> {
        let device = device.disk();
        let name = device.name().to_owned();
        if device.scheduler().is_none() {
            let below = device.scheduled().iter().map(|below| below.name().to_owned()).collect();
            return Err(SettingsError::NoScheduler { device: name, below });
        }
        let path = device.queue().join("scheduler");
        if OpenOptions::new().write(true).open(&path).is_err() {
            return Err(SettingsError::Permission { device: name, path });
        }
        let mut entry = match state.lock(JOURNALS, &name)? {
            Locked::ByUs(entry) => entry,
            Locked::ByAnother(text) => {
                let pid = parse::<Journal>(&text).map_or(0, |journal| journal.pid);
                return Err(SettingsError::Busy { device: name, pid });
            }
        };
        // An empty entry was never written, so nothing was changed.
        if !entry.text()?.trim().is_empty() {
            return Err(SettingsError::LeftOver { device: name });
        }
        let begun = Recorded::of(&device)?;
        let journal = Journal::of(&device, begun.clone());
        let base_end = entry.write(&journal)?;
        let (entry, left, changed) = (Some(entry), Vec::new(), Vec::new());
        let mut session =
            Self { device, journal, entry, base_end, begun: begun.clone(), left, changed, wbt_under: None };
        session.mark(Some(begun))?;
        Ok(session)
    }

    /// Returns the whole disk.
    #[must_use]
    pub const fn device(&self) -> &BlockDevice {
        &self.device
    }

    /// Returns the settings at the start of the session.
    #[must_use]
    pub const fn recorded(&self) -> &Recorded {
        &self.begun
    }

    /// Returns values of the session that other programs (udev, TuneD or another iosched) have
    /// changed. `from` is the present value, and `to` is the session's value.
    #[must_use]
    pub fn foreign(&self) -> Vec<Change> {
        self.journal.foreign(&self.device)
    }

    /// Applies `setting`. The result does not depend on earlier settings.
    ///
    /// The scheduler starts with the kernel's defaults. Attributes that the setting does not name
    /// get their original values, except those that depend on the scheduler (`nr_requests`,
    /// `wbt_lat_usec`). This function does not write files of the workload's cgroups, because the
    /// code that creates these cgroups writes them. Values of other programs are overwritten, and
    /// are restored at the end.
    ///
    /// # Errors
    /// The kernel lacks the scheduler, or a name or value is not accepted. The values applied so
    /// far stay until the next setting or the end.
    pub fn apply(&mut self, setting: &Setting) -> Result<(), SettingsError> {
        self.reclaim()?;
        self.mark(None)?;
        self.apply_all(setting)?;
        self.mark(Some(self.journal.recorded.now(&self.device)?))
    }

    /// Resets values that other programs have changed to the values of the session. All settings
    /// then start from the same state.
    fn reclaim(&mut self) -> Result<(), SettingsError> {
        let applied = self.journal.applied.clone();
        if self.look_for_foreign()?
            && let Some(applied) = applied
        {
            self.mark(None)?;
            applied.put_back(&self.device)?;
        }
        Ok(())
    }

    /// Records changes by other programs. Returns whether there are any.
    fn look_for_foreign(&mut self) -> Result<bool, SettingsError> {
        let foreign = self.foreign();
        let taken = self.journal.recorded.adopt(&self.device, &foreign);
        if !taken.is_empty() {
            self.write_base()?;
        }
        for taken in taken {
            match self.left.iter_mut().find(|known| known.name == taken.name) {
                Some(known) => known.from = taken.from,
                None => self.left.push(taken),
            }
        }
        Ok(!foreign.is_empty())
    }

    /// Writes the settings in force to the journal, instead of the previous ones. With `None`, only
    /// removes the previous ones, because the settings are being changed. The journal does not grow
    /// with the number of settings.
    fn mark(&mut self, applied: Option<Recorded>) -> Result<(), SettingsError> {
        self.journal.applied = applied;
        let Some(entry) = &mut self.entry else { return Ok(()) };
        entry.forget_behind(self.base_end)?;
        if self.journal.applied.is_some() {
            entry.write(&self.journal)?;
        }
        Ok(())
    }

    /// Writes the state to restore to the journal.
    fn write_base(&mut self) -> Result<(), SettingsError> {
        self.journal.applied = None;
        if let Some(entry) = &mut self.entry {
            self.base_end = entry.write(&self.journal)?;
        }
        Ok(())
    }

    fn apply_all(&mut self, setting: &Setting) -> Result<(), SettingsError> {
        while let Some((name, value)) = self.changed.pop() {
            self.device.write_raw(&name, &value)?;
        }
        if self.wbt_under.is_none() && setting.assignments().any(|assignment| assignment.name() == WBT) {
            self.wbt_under = Some(self.look_at_wbt()?);
        }
        match setting.name() {
            _ if setting.is_present() => {
                self.begun.put_back(&self.device)?;
            }
            scheduler => {
                self.switch(scheduler)?;
                let known = self.wbt_under.iter().flatten().find(|(under, _)| under == scheduler);
                if let Some((_, value)) = known.cloned() {
                    self.set(WBT, &value)?;
                }
            }
        }
        for assignment in setting.assignments().filter(|assignment| !is_of_workload(assignment.name())) {
            let of_root = files().iter().any(|file| file.name == assignment.name());
            let name = if of_root { format!("{CGROUP}{}", assignment.name()) } else { assignment.name().to_owned() };
            self.set(&name, &assignment.text())?;
        }
        Ok(())
    }

    /// Sets one attribute until the session ends or the next setting is applied.
    ///
    /// # Errors
    /// There is no attribute of this name, or the value is not accepted.
    pub fn change(&mut self, name: &str, value: &str) -> Result<(), SettingsError> {
        self.look_for_foreign()?;
        self.mark(None)?;
        self.set(name, value)?;
        self.mark(Some(self.journal.recorded.now(&self.device)?))
    }

    fn set(&mut self, name: &str, value: &str) -> Result<(), SettingsError> {
        if self.device.resolve(name).is_ok_and(|name| self.device.is_write_only(&name)) {
            // A write triggers an action, so there is no value to restore.
            self.device.set_attribute(name, value)?;
            return Ok(());
        }
        let mut before = self.device.attribute(name)?;
        if let Some(Declaration::Cgroup(file)) = before.declaration {
            before.value = file.settable(&before.value);
            if self.journal.recorded.add(&self.device, name)? {
                self.write_base()?;
            }
        }
        // Tunables disappear with their scheduler.
        if !before.is_tunable() {
            self.changed.push((before.name, before.value));
        }
        self.device.set_attribute(name, value)?;
        Ok(())
    }

    /// Returns the writeback latency under the schedulers of [`WITHOUT_WBT`]. The caller must call
    /// this function before the first write of the latency.
    fn look_at_wbt(&self) -> Result<Vec<(String, String)>, SettingsError> {
        let mut found = Vec::new();
        let there = self.device.schedulers();
        for scheduler in WITHOUT_WBT.iter().filter(|name| there.iter().any(|there| there == *name)) {
            self.switch(scheduler)?;
            found.push(((*scheduler).to_owned(), self.device.attribute(WBT)?.value));
        }
        Ok(found)
    }

    /// Restarts `scheduler` with its defaults.
    fn switch(&self, scheduler: &str) -> Result<(), SettingsError> {
        let others = self.device.schedulers();
        if self.device.scheduler().as_deref() == Some(scheduler) {
            // Choosing the present scheduler again has no effect. Therefore another scheduler is
            // chosen first. `none` is the fastest one to choose. A scheduler that the kernel
            // already lists needs no module.
            let other = others.iter().find(|name| *name == "none").filter(|name| *name != scheduler);
            if let Some(other) = other.or_else(|| others.iter().find(|name| *name != scheduler)) {
                self.device.set_attribute("scheduler", other)?;
            }
        }
        match self.device.set_attribute("scheduler", scheduler) {
            Ok(_) => Ok(()),
            Err(AttributeError::Refused { .. }) if !others.iter().any(|name| name == scheduler) => {
                let (device, name) = (self.device.name().to_owned(), scheduler.to_owned());
                Err(SettingsError::Missing { device, name, available: others.join(", ") })
            }
            Err(error) => Err(error.into()),
        }
    }

    /// Ends the session and restores everything, except values of other programs.
    ///
    /// # Errors
    /// Not everything could be restored. The journal remains.
    pub fn end(mut self) -> Result<PutBack, SettingsError> {
        self.put_back()
    }

    /// Ends the session and keeps the applied settings.
    ///
    /// # Errors
    /// The journal cannot be removed. A later [`restore`](super::restore) would undo the settings.
    pub fn keep(mut self) -> Result<(), SettingsError> {
        match self.entry.take() {
            Some(entry) => Ok(entry.remove()?),
            None => Ok(()),
        }
    }

    fn put_back(&mut self) -> Result<PutBack, SettingsError> {
        if self.entry.is_some() {
            self.look_for_foreign()?;
        }
        let Some(entry) = self.entry.take() else { return Ok(PutBack::default()) };
        // If this fails, the entry is unlocked but not removed.
        let changes = self.journal.recorded.put_back(&self.device)?;
        entry.remove()?;
        Ok(PutBack { changes, left: std::mem::take(&mut self.left) })
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        // A failure leaves the journal, and `iosched restore` reports it.
        let _ = self.put_back();
    }
}
