//! Changes settings of a device while it lives.

use std::fs::OpenOptions;

use super::{Change, JOURNALS, Journal, PutBack, Recorded, SettingsError};
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
    /// Where in the journal what is to be put back ends; behind it is what is in force by us.
    base_end: u64,
    /// What was set when it began.
    begun: Recorded,
    /// What something else has set since, each attribute once.
    left: Vec<Change>,
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
        let begun = Recorded::of(&device)?;
        let journal = Journal::of(&device, begun.clone());
        let base_end = entry.write(&journal)?;
        let (entry, left, changed) = (Some(entry), Vec::new(), Vec::new());
        let mut session =
            Self { device, journal, entry, base_end, begun: begun.clone(), left, changed, wbt_under: None };
        session.mark(Some(begun))?;
        Ok(session)
    }

    /// The device, whole.
    #[must_use]
    pub const fn device(&self) -> &BlockDevice {
        &self.device
    }

    /// What was set when it began.
    #[must_use]
    pub const fn recorded(&self) -> &Recorded {
        &self.begun
    }

    /// What is not as the session has set it, because something else set it meanwhile: udev, tuned, another iosched.
    /// `from` is what is there, `to` what the session set.
    #[must_use]
    pub fn foreign(&self) -> Vec<Change> {
        self.journal.foreign(&self.device)
    }

    /// Sets the device as `setting` says, whatever was applied before: the scheduler with the kernel's defaults,
    /// attributes that it does not name as they were, but for those that come with the scheduler (`nr_requests`,
    /// `wbt_lat_usec`). Files of the workload's cgroups are for whoever makes those. What something else has set
    /// meanwhile gives way, and is put back at the end.
    ///
    /// # Errors
    /// The kernel lacks the scheduler; a name or value is not taken. What was applied until then stays until the next setting, or the end.
    pub fn apply(&mut self, setting: &Setting) -> Result<(), SettingsError> {
        self.reclaim()?;
        self.mark(None)?;
        self.apply_all(setting)?;
        self.mark(Some(self.journal.recorded.now(&self.device)?))
    }

    /// Sets again what something else has changed, so that settings follow each other on the same device.
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

    /// Takes note of what something else has changed; whether there is anything.
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

    /// Writes into the journal what is in force by us; `None` while that changes. However many settings follow each
    /// other, the journal does not grow.
    fn mark(&mut self, applied: Option<Recorded>) -> Result<(), SettingsError> {
        self.journal.applied = applied;
        let Some(entry) = &mut self.entry else { return Ok(()) };
        entry.forget_behind(self.base_end)?;
        if self.journal.applied.is_some() {
            entry.write(&self.journal)?;
        }
        Ok(())
    }

    /// Writes into the journal what is to be put back.
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

    /// Gives one attribute a value, until the end or the next setting.
    ///
    /// # Errors
    /// There is none of that name, or it does not take the value.
    pub fn change(&mut self, name: &str, value: &str) -> Result<(), SettingsError> {
        self.look_for_foreign()?;
        self.mark(None)?;
        self.set(name, value)?;
        self.mark(Some(self.journal.recorded.now(&self.device)?))
    }

    fn set(&mut self, name: &str, value: &str) -> Result<(), SettingsError> {
        if self.device.resolve(name).is_ok_and(|name| self.device.is_write_only(&name)) {
            // An action: there is nothing to put back.
            self.device.set_attribute(name, value)?;
            return Ok(());
        }
        let mut before = self.device.attribute(name)?;
        if let Some(Declaration::Cgroup(file)) = before.declaration {
            before.value = file.kept(&before.value);
            if self.journal.recorded.add(&self.device, name)? {
                self.write_base()?;
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

    /// Ends: puts everything back, but for what something else has set meanwhile.
    ///
    /// # Errors
    /// Not everything could be put back; the journal stays then.
    pub fn end(mut self) -> Result<PutBack, SettingsError> {
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

    fn put_back(&mut self) -> Result<PutBack, SettingsError> {
        if self.entry.is_some() {
            self.look_for_foreign()?;
        }
        let Some(entry) = self.entry.take() else { return Ok(PutBack::default()) };
        // Let go of, not removed, if this fails.
        let changes = self.journal.recorded.put_back(&self.device)?;
        entry.remove()?;
        Ok(PutBack { changes, left: std::mem::take(&mut self.left) })
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        // What fails here stays in the journal, and `iosched restore` tells of it.
        let _ = self.put_back();
    }
}
