//! Values that a udev rule sets at every start of the system. A new rule keeps the values of
//! earlier changes.

use iosched_kernel::settings::{assigned, rule};
use iosched_kernel::{BlockDevice, Roots};

use crate::{AttributesError, Disks, Named};

const QUEUE: &str = "queue/";
const SCHEDULER: &str = "scheduler";
/// Directory of the present scheduler's tunables. They appear and disappear with the scheduler.
const TUNABLES: &str = "iosched/";

/// Values that the udev rule of one disk sets.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LastingRule {
    disk: String,
    /// Names below `queue` and values, in the order in which the rule sets them.
    assignments: Vec<(String, String)>,
}

impl LastingRule {
    /// Creates the rule of `disk` from `text`, the contents of the present rule file.
    #[must_use]
    pub fn of(disk: &str, text: &str) -> Self {
        Self { disk: disk.to_owned(), assignments: assigned(text) }
    }

    /// Returns the name of the disk.
    #[must_use]
    pub fn disk(&self) -> &str {
        &self.disk
    }

    /// Adds a value of an attribute of the queue. If the value is a new scheduler, removes the
    /// tunables of the previous scheduler.
    pub fn set(&mut self, file: &Named, value: &str) {
        let Some(name) = file.of_disk().strip_prefix(QUEUE) else { return };
        if name == SCHEDULER {
            let is_another = self.assignments.iter().all(|known| known.0 != SCHEDULER || known.1 != value);
            self.assignments.retain(|known| known.0 != SCHEDULER && !(is_another && known.0.starts_with(TUNABLES)));
            self.assignments.insert(0, (name.to_owned(), value.to_owned()));
            return;
        }
        match self.assignments.iter_mut().find(|known| known.0 == name) {
            Some(known) => value.clone_into(&mut known.1),
            None => self.assignments.push((name.to_owned(), value.to_owned())),
        }
    }

    /// Returns the text of the rule. The rule sets the present scheduler first, because its
    /// tunables exist only under this scheduler.
    ///
    /// # Errors
    /// The disk no longer exists.
    pub fn text(&mut self, disks: &mut Disks) -> Result<String, AttributesError> {
        let device = BlockDevice::named(&Roots::default(), &self.disk)?;
        let has = |begin: &str| self.assignments.iter().any(|known| known.0.starts_with(begin));
        if has(TUNABLES) && !has(SCHEDULER) {
            let disk = disks.disks.iter().find(|disk| disk.name == self.disk).cloned();
            if let Some(scheduler) = disk.and_then(|disk| disks.scheduler(&disk)) {
                self.assignments.insert(0, (SCHEDULER.to_owned(), scheduler));
            }
        }
        Ok(rule(&device, "what was set", &self.assignments))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Disk;

    #[test]
    fn another_scheduler_removes_the_tunables_of_the_earlier_one() {
        let mut rule = LastingRule::of("sda", "");
        let mut set = |name: &str, value| {
            let disk = Disk { name: "sda".to_owned(), path: String::new() };
            rule.set(&Named { disk, name: name.to_owned(), path: format!("queue/{name}") }, value);
            rule.assignments.iter().map(|(name, value)| format!("{name}={value}")).collect::<Vec<_>>().join(" ")
        };
        set("iosched/low_latency", "0");
        assert_eq!(set("nr_requests", "64"), "iosched/low_latency=0 nr_requests=64");
        assert_eq!(set("scheduler", "none"), "scheduler=none nr_requests=64");
        set("iosched/fifo_batch", "4");
        assert_eq!(set("scheduler", "none"), "scheduler=none nr_requests=64 iosched/fifo_batch=4");
        assert_eq!(set("nr_requests", "32"), "scheduler=none nr_requests=32 iosched/fifo_batch=4");
    }
}
