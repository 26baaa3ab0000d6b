//! Changes settings of a device while it lives.

use std::fs::OpenOptions;

use super::{Change, JOURNALS, Journal, Recorded, SettingsError};
use crate::attribute::{AttributeError, Declaration};
use crate::block::BlockDevice;
use crate::cgroup::{CGROUP, files};
use crate::state::{Entry, Locked, StateDirectory, parse};
use iosched::Setting;

const WBT: &str = "wbt_lat_usec";
/// Schedulers under which the kernel throttles no writeback, unless the latency was ever written: that it remembers as
/// long as it knows the device, and nothing puts it back.
const WITHOUT_WBT: [&str; 1] = ["bfq"];

/// Whether it is a file of cgroups that a setting gives by the names of a workload's.
fn is_of_workload(name: &str) -> bool {
    files().iter().any(|file| file.name == name && !file.is_of_root)
}

/// The right to change the settings of a device; ends with everything put back.
#[derive(Debug)]
pub struct Session {
    device: BlockDevice,
    journal: Journal,
    /// Where the journal is; `None` once everything is back.
    entry: Option<Entry>,
    /// Attributes that the present setting has changed, and what they were.
    changed: Vec<(String, String)>,
    /// Before the latency of writeback was first written: what it was under schedulers that decide about it.
    wbt_under: Option<Vec<(String, String)>>,
}

impl Session {
    /// Begins: what can be written of `device` is recorded in `state`, and is on the disk when this returns. Nothing is
    /// changed yet.
    ///
    /// # Errors
    /// It has no scheduler; we may not write its attributes; another session changes them, or one was killed and what it changed has not
    /// been put back; the journal cannot be written.
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
        // One that is empty was never written, so that nothing was changed.
        if !entry.text()?.trim().is_empty() {
            return Err(SettingsError::LeftOver { device: name });
        }
        let journal = Journal::of(&device, Recorded::of(&device)?);
        entry.write(&journal)?;
        Ok(Self { device, journal, entry: Some(entry), changed: Vec::new(), wbt_under: None })
    }

    /// The device, whole.
    #[must_use]
    pub const fn device(&self) -> &BlockDevice {
        &self.device
    }

    /// What was set when it began, and of cgroups before it was changed.
    #[must_use]
    pub const fn recorded(&self) -> &Recorded {
        &self.journal.recorded
    }

    /// Sets the device as `setting` says, whatever was applied before: the scheduler with the kernel's defaults,
    /// attributes that it does not name as they were, but for those that come with the scheduler (`nr_requests`,
    /// `wbt_lat_usec`). Files of the workload's cgroups are for whoever makes those.
    ///
    /// # Errors
    /// The kernel lacks the scheduler; a name or value is not taken. What was applied until then stays until the next setting, or the end.
    pub fn apply(&mut self, setting: &Setting) -> Result<(), SettingsError> {
        while let Some((name, value)) = self.changed.pop() {
            self.device.write_raw(&name, &value)?;
        }
        if self.wbt_under.is_none() && setting.assignments().any(|own| own.name() == WBT) {
            self.wbt_under = Some(self.look_at_wbt()?);
        }
        match setting.name() {
            _ if setting.is_present() => {
                self.journal.recorded.put_back(&self.device)?;
            }
            scheduler => {
                self.switch(scheduler)?;
                let known = self.wbt_under.iter().flatten().find(|(under, _)| under == scheduler);
                if let Some((_, value)) = known.cloned() {
                    self.change(WBT, &value)?;
                }
            }
        }
        for own in setting.assignments().filter(|own| !is_of_workload(own.name())) {
            let of_root = files().iter().any(|file| file.name == own.name());
            let name = if of_root { format!("{CGROUP}{}", own.name()) } else { own.name().to_owned() };
            self.change(&name, &own.text())?;
        }
        Ok(())
    }

    /// Gives one attribute a value, until the end or the next setting.
    ///
    /// # Errors
    /// There is none of that name, or it does not take the value.
    pub fn change(&mut self, name: &str, value: &str) -> Result<(), SettingsError> {
        let mut before = self.device.attribute(name)?;
        if let Some(Declaration::Cgroup(file)) = before.declaration {
            before.value = file.kept(&before.value);
            if self.journal.recorded.add(&self.device, name)?
                && let Some(entry) = &mut self.entry
            {
                entry.write(&self.journal)?;
            }
        }
        // Tunables go with their scheduler.
        if !before.is_tunable() {
            self.changed.push((before.name, before.value));
        }
        self.device.set_attribute(name, value)?;
        Ok(())
    }

    /// What the latency of writeback is under schedulers that decide about it, as long as it has not been written.
    fn look_at_wbt(&self) -> Result<Vec<(String, String)>, SettingsError> {
        let mut found = Vec::new();
        let there = self.device.schedulers();
        for scheduler in WITHOUT_WBT.iter().filter(|name| there.iter().any(|there| there == *name)) {
            self.switch(scheduler)?;
            found.push(((*scheduler).to_owned(), self.device.attribute(WBT)?.value));
        }
        Ok(found)
    }

    /// Has `scheduler` begin afresh, with its defaults.
    fn switch(&self, scheduler: &str) -> Result<(), SettingsError> {
        let others = self.device.schedulers();
        if self.device.scheduler().as_deref() == Some(scheduler) {
            // Switching to itself changes nothing; none is the quickest way round, and one that is there needs no
            // module.
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

    /// Ends: puts everything back. What was changed at the end.
    ///
    /// # Errors
    /// Not everything could be put back; the journal stays then.
    pub fn end(mut self) -> Result<Vec<Change>, SettingsError> {
        self.put_back()
    }

    /// Ends with what is applied left as it is.
    ///
    /// # Errors
    /// The journal cannot be removed; it would be put back by [`restore`](super::restore) then.
    pub fn keep(mut self) -> Result<(), SettingsError> {
        match self.entry.take() {
            Some(entry) => Ok(entry.remove()?),
            None => Ok(()),
        }
    }

    fn put_back(&mut self) -> Result<Vec<Change>, SettingsError> {
        let Some(entry) = self.entry.take() else { return Ok(Vec::new()) };
        // Let go of, not removed, if this fails.
        let changes = self.journal.recorded.put_back(&self.device)?;
        entry.remove()?;
        Ok(changes)
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        // What fails here stays in the journal, and `iosched restore` tells of it.
        let _ = self.put_back();
    }
}
