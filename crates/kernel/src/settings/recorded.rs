//! Records the previous settings of a device, compares them with the present settings, and restores
//! them.

use std::fmt;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::attribute::{Attribute, AttributeError, Declaration, declaration, is_same};
use crate::block::BlockDevice;
use crate::cgroup::{CGROUP, CgroupError};

const SCHEDULER: &str = "scheduler";
/// Prefix of the names of tunables.
const TUNABLE: &str = "iosched/";
/// Attribute that a scheduler sets when it starts.
const NR_REQUESTS: &str = "nr_requests";
/// Attributes that the kernel sets when a scheduler starts or ends.
const SET_BY_SCHEDULER: [&str; 2] = [NR_REQUESTS, "wbt_lat_usec"];
/// Suffix of the names of cgroup files that only bfq provides.
const BFQ_WEIGHT: &str = "/io.bfq.weight";

/// Recorded settings of a device: its scheduler, and all writable attributes of its queue. They
/// also include the attributes of cgroups that a change sets.
#[derive(Clone, Default, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Recorded {
    /// Name of the scheduler.
    pub scheduler: String,
    /// Values in the order of writing. Attributes of the queue come before tunables of the
    /// scheduler, because writing an attribute may change a tunable. Attributes of cgroups come
    /// last.
    pub values: Vec<(String, String)>,
}

/// A value that differs from the recorded value.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Change {
    /// Name of the attribute, below `queue`.
    pub name: String,
    /// Present value. `None` if the attribute does not exist.
    pub from: Option<String>,
    /// Recorded value, which a restore writes.
    pub to: String,
}

impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.from {
            None if self.is_of_cgroup() => write!(f, "{} no longer exists, because its cgroup was removed", self.name),
            from => write!(f, "{} {} -> {}", self.name, from.as_deref().unwrap_or("(none)"), self.to),
        }
    }
}

impl Change {
    /// Describes the change as a change by another program: from `to`, the value that iosched had
    /// set, to the present value `from`.
    #[must_use]
    pub fn of_others(&self) -> String {
        format!(
            "{} from {} to {}",
            self.name,
            self.to,
            self.from.as_deref().unwrap_or("nothing (this attribute no longer exists)")
        )
    }

    fn is_of_cgroup(&self) -> bool {
        self.name.starts_with(CGROUP)
    }
}

/// A value that could not be restored.
#[derive(Debug)]
pub struct Left {
    /// The value.
    pub change: Change,
    /// Path of its file.
    pub path: PathBuf,
    /// Line to write to the file.
    pub line: String,
    /// Error from the kernel, if there was one.
    pub error: Option<AttributeError>,
}

/// Error about values that could not be restored.
#[derive(Debug, thiserror::Error)]
pub struct NotRestored {
    /// Name of the device.
    pub device: String,
    /// Values that were not restored.
    pub left: Vec<Left>,
}

impl fmt::Display for NotRestored {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{}: iosched could not restore some settings; to restore these settings yourself, run:",
            self.device
        )?;
        for Left { change, path, line, error } in &self.left {
            write!(f, "\n  echo {} > {}", shell(line), path.display())?;
            match error {
                Some(error) => write!(f, "   # {error}")?,
                None => write!(f, "   # the present value is {}", change.from.as_deref().unwrap_or("missing"))?,
            }
        }
        Ok(())
    }
}

/// Quotes a value for a shell. The value contains no apostrophes.
#[must_use]
pub fn shell(value: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    if !value.is_empty() && value.chars().all(is_plain) { value.to_owned() } else { format!("'{value}'") }
}

impl Recorded {
    /// Returns the present settings of `device`.
    ///
    /// # Errors
    /// The attributes of the device cannot be read.
    pub fn of(device: &BlockDevice) -> Result<Self, AttributeError> {
        let attributes = device.attributes()?.into_iter().filter(|attribute| attribute.is_writable);
        let values = attributes.filter(|attribute| attribute.name != SCHEDULER);
        let values = values.map(|Attribute { name, value, .. }| (name, value)).collect();
        Ok(Self { scheduler: device.scheduler().unwrap_or_default(), values })
    }

    /// Returns the present settings of `device`, including the attributes of cgroups that `self`
    /// contains.
    ///
    /// # Errors
    /// The attributes of the device cannot be read.
    pub(super) fn now(&self, device: &BlockDevice) -> Result<Self, AttributeError> {
        let mut now = Self::of(device)?;
        for (name, _) in self.values.iter().filter(|(name, _)| name.starts_with(CGROUP)) {
            match now.add(device, name) {
                Err(AttributeError::Cgroup(_)) | Ok(_) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(now)
    }

    /// Adopts the values of other programs: a restore then writes these values instead of the
    /// original values. Returns the adopted changes, with the original value in `to`.
    pub(super) fn adopt(&mut self, device: &BlockDevice, foreign: &[Change]) -> Vec<Change> {
        let mut taken = Vec::new();
        for Change { name, from, .. } in foreign {
            let Some(value) = from else { continue };
            let value = match declaration(name, &self.scheduler) {
                Some(Declaration::Cgroup(file)) => file.settable(value),
                _ => value.clone(),
            };
            if name == SCHEDULER {
                let was = std::mem::replace(&mut self.scheduler, value);
                // Tunables disappear with their scheduler.
                self.values.retain(|(name, _)| !name.starts_with(TUNABLE));
                // The kernel has set other attributes together with the scheduler.
                for (name, value) in Self::of(device).unwrap_or_default().values {
                    if name.starts_with(TUNABLE) {
                        self.values.push((name, value));
                    } else if SET_BY_SCHEDULER.contains(&&*name)
                        && !foreign.iter().any(|change| change.name == name)
                        && let Some((_, known)) = self.values.iter_mut().find(|(known, _)| *known == name)
                    {
                        *known = value;
                    }
                }
                taken.push(Change { name: name.clone(), from: from.clone(), to: was });
            } else if let Some((_, known)) = self.values.iter_mut().find(|(known, _)| known == name) {
                let was = std::mem::replace(known, value);
                taken.push(Change { name: name.clone(), from: from.clone(), to: was });
            }
        }
        taken.retain(|change| change.from.as_ref() != Some(&change.to));
        taken
    }

    /// Reverts the changes of other programs in `foreign`. Each value becomes the value before the
    /// change, unless the value has changed again.
    pub(super) fn leave_out(&mut self, foreign: &[Change]) {
        for Change { name, from, to } in foreign {
            let value = if name == SCHEDULER {
                Some(&mut self.scheduler)
            } else {
                self.values.iter_mut().find(|(known, _)| known == name).map(|(_, value)| value)
            };
            if let Some(value) = value.filter(|value| from.as_ref() == Some(*value)) {
                value.clone_from(to);
            }
        }
    }

    /// Adds the present value of the cgroup attribute `name`. Returns whether `self` did not have
    /// the attribute before.
    pub(super) fn add(&mut self, device: &BlockDevice, name: &str) -> Result<bool, AttributeError> {
        if self.values.iter().any(|(known, _)| known == name) {
            return Ok(false);
        }
        let Attribute { name, value, declaration, .. } = device.attribute(name)?;
        let value_to_restore = match declaration {
            Some(Declaration::Cgroup(file)) => file.settable(&value),
            _ => value,
        };
        self.values.push((name, value_to_restore));
        Ok(true)
    }

    /// Returns the values that differ from the recorded values. Compares tunables only if their
    /// scheduler is the present scheduler.
    #[must_use]
    pub fn changes(&self, device: &BlockDevice) -> Vec<Change> {
        let present = device.scheduler();
        let is_present = present.as_deref() == Some(&self.scheduler);
        let switch = Change { name: SCHEDULER.to_owned(), from: present, to: self.scheduler.clone() };
        let switch = (!is_present && !self.scheduler.is_empty()).then_some(switch);
        let now = device.attributes().unwrap_or_default();
        let value = |(name, to): &(String, String)| {
            let of_cgroup = name.starts_with(CGROUP);
            let from = if of_cgroup {
                device.attribute(name).ok().map(|attribute| attribute.value)
            } else {
                now.iter().find(|attribute| attribute.name == *name).map(|attribute| attribute.value.clone())
            };
            let is_compared = is_present || !is_of_scheduler(name);
            let declaration = of_cgroup.then(|| declaration(name, &self.scheduler)).flatten();
            let is_as_it_was = from.as_ref().is_some_and(|from| is_same(declaration, from, to));
            (is_compared && !is_as_it_was).then(|| Change { name: name.clone(), from, to: to.clone() })
        };
        switch.into_iter().chain(self.values.iter().filter_map(value)).collect()
    }

    /// Returns the values to write, in order, to restore the state of `device`. If a scheduler must
    /// be chosen again, it starts with its defaults. The list then includes all values that the
    /// scheduler sets.
    #[must_use]
    pub fn undo(&self, device: &BlockDevice) -> Vec<(String, String)> {
        let changes = self.changes(device);
        let scheduler = changes.first().filter(|change| change.name == SCHEDULER);
        let begins_again = |name: &str| {
            scheduler.is_some() && (is_of_scheduler(name) || name == NR_REQUESTS) && !self.is_kept_finer(name)
        };
        let is_to_be_written = |(name, _): &&(String, String)| match changes.iter().find(|change| change.name == *name)
        {
            Some(change) => !self.is_kept_finer(name) && !is_gone(device, change),
            None => begins_again(name),
        };
        let scheduler = scheduler.map(|change| (change.name.clone(), change.to.clone()));
        scheduler.into_iter().chain(self.values.iter().filter(is_to_be_written).cloned()).collect()
    }

    /// Restores all values that differ, and checks the result. Returns all changed values. They
    /// include values that the kernel changed together with the scheduler.
    ///
    /// # Errors
    /// Some value still differs.
    pub fn put_back(&self, device: &BlockDevice) -> Result<Vec<Change>, NotRestored> {
        let before = self.changes(device);
        let mut done: Vec<Change> = Vec::new();
        let mut errors: Vec<(String, AttributeError)> = Vec::new();
        // If the scheduler changed, the first round restores only the scheduler. The next round
        // restores its tunables and other values. The last round restores values that the kernel
        // changed in these rounds.
        for _ in 0..3 {
            let changes = self.changes(device);
            if changes.is_empty() {
                break;
            }
            let switches = changes[0].name == SCHEDULER;
            for change in changes.into_iter().take(if switches { 1 } else { usize::MAX }) {
                if self.is_kept_finer(&change.name) || is_gone(device, &change) {
                    continue;
                }
                match device.write_raw(&change.name, &change.to) {
                    Ok(()) if done.iter().any(|done| done.name == change.name) => {}
                    Ok(()) => done.push(change),
                    Err(error) => errors.push((change.name, error)),
                }
            }
        }
        let (gone, left): (Vec<_>, Vec<_>) =
            self.changes(device).into_iter().partition(|change| is_gone(device, change));
        if left.is_empty() {
            done.extend(gone);
            let is_new =
                |change: &Change| !self.is_kept_finer(&change.name) && done.iter().all(|done| done.name != change.name);
            let by_kernel: Vec<Change> = before.into_iter().filter(is_new).collect();
            done.extend(by_kernel);
            return Ok(done);
        }
        let mut error_of = |name: &str| {
            let at = errors.iter().position(|(failed, _)| failed == name)?;
            Some(errors.swap_remove(at).1)
        };
        let left = left.into_iter().map(|change| Left {
            path: device.attribute_path(&change.name),
            line: device.line(&change.name, &change.to),
            error: error_of(&change.name),
            change,
        });
        Err(NotRestored { device: device.name().to_owned(), left: left.collect() })
    }

    /// Returns whether another recorded tunable contains the value of the tunable `name` in a finer
    /// unit. Writing the tunable `name` would then lose precision.
    fn is_kept_finer(&self, name: &str) -> bool {
        self.values.iter().any(|(other, _)| match declaration(other, &self.scheduler) {
            Some(Declaration::Number(spec)) => {
                spec.alias_of.is_some_and(|alias| name.strip_prefix(TUNABLE) == Some(alias))
            }
            _ => false,
        })
    }
}

/// Returns whether an attribute appears and disappears with a scheduler.
fn is_of_scheduler(name: &str) -> bool {
    name.starts_with(TUNABLE) || name.ends_with(BFQ_WEIGHT)
}

/// Returns whether the attribute disappeared with its cgroup, so that nothing can be restored.
fn is_gone(device: &BlockDevice, change: &Change) -> bool {
    change.is_of_cgroup()
        && matches!(
            device.resolve(&change.name),
            Err(AttributeError::Cgroup(CgroupError::NoGroup { .. } | CgroupError::NotEnabled { .. }))
        )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recorded::Recorded as Machine;

    #[test]
    fn restore_writes_changed_attributes_only() {
        let machine = Machine::new();
        let sda = machine.device("sda");
        let recorded = Recorded::of(&sda).unwrap();
        assert_eq!(recorded.changes(&sda), []);
        assert_eq!(recorded.put_back(&sda).unwrap(), []);
        sda.set_attribute("nr_requests", "7").unwrap();
        sda.set_attribute("fifo_batch", "8").unwrap();
        sda.set_attribute("write_cache", "write through").unwrap();
        let done: Vec<_> = recorded.put_back(&sda).unwrap().iter().map(Change::to_string).collect();
        assert_eq!(
            done,
            ["nr_requests 7 -> 256", "write_cache write through -> write back", "iosched/fifo_batch 8 -> 16"]
        );
        assert_eq!(Recorded::of(&sda).unwrap(), recorded);
    }

    #[test]
    fn attribute_with_a_finer_variant_is_recognised() {
        let machine = Machine::new();
        machine.write("sys/devices/sdc/queue/scheduler", "[bfq]\n");
        machine.write("sys/devices/sdc/queue/iosched/slice_idle", "0\n");
        machine.write("sys/devices/sdc/queue/iosched/slice_idle_us", "500\n");
        let recorded = Recorded::of(&machine.device("sdc")).unwrap();
        assert!(recorded.is_kept_finer("iosched/slice_idle"));
        assert!(!recorded.is_kept_finer("iosched/slice_idle_us"));
        assert!(!recorded.is_kept_finer("iosched/fifo_batch"));
    }

    #[test]
    fn failed_restore_names_the_manual_command() {
        let machine = Machine::new();
        let sda = machine.device("sda");
        let recorded = Recorded::of(&sda).unwrap();
        std::fs::remove_file(machine.path().join("sys/devices/sda/queue/write_cache")).unwrap();
        let error = recorded.put_back(&sda).unwrap_err().to_string();
        assert!(
            error.starts_with(
                "sda: iosched could not restore some settings; to restore these settings \
                yourself, run:\n  echo 'write back' > "
            ),
            "{error}"
        );
        assert!(error.contains("sda/queue/write_cache   # "), "{error}");
    }
}
