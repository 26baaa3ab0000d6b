//! Messages about wrong values, before the values are written. The messages come from the
//! declarations that also define the attributes of the kernel and of served disks. Without these
//! messages, a user would see only an error number.

use iosched::{IoPriority, Registry, Spec, WeightRange};
use iosched_kernel::attribute::{Declaration, ValueError};
use iosched_lab::{did_you_mean, is_scheduler_name};
use iosched_live::SyncWrites;
use iosched_live::control::tree::{IN_NO_GROUP, check_group_name, rate, weight};
use iosched_live::disk::attribute_spec;

use crate::{Disks, Named};

const SCHEDULER: &str = "queue/scheduler";

impl Disks {
    /// Returns the message about a wrong `value` of a file while `scheduler` is the present
    /// scheduler. Returns `None` if no problem is known.
    pub fn wrong_value(&mut self, file: &Named, scheduler: &str, value: &str) -> Option<String> {
        let value = value.trim();
        let named = |problem: String| format!("{}: {problem}", file.name);
        match Self::declaration(file, scheduler) {
            // A served disk itself reports that a number is read-only.
            Some(declaration) if self.are_the_kernels => {
                declaration.check(value).err().map(|error| wrong_value(&file.disk.name, &error))
            }
            Some(declaration) => {
                let narrowed = |spec: &Spec| self.of_live(file, spec);
                let checked = declaration.check_within(value, narrowed);
                checked.err().map(|error| wrong_value(&file.disk.name, &error))
            }
            None if self.are_the_kernels && file.of_disk() == SCHEDULER && !is_scheduler_name(value) => {
                let takes = self.takes(file).map(|takes| format!("; {takes}")).unwrap_or_default();
                Some(named(format!("{value:?} is not the name of a scheduler{takes}")))
            }
            None if self.are_the_kernels => None,
            None => self.wrong_live(file, scheduler, value).map(named),
        }
    }

    /// Returns the declaration that applies to a served disk. Its back end may narrow the range.
    fn of_live(&mut self, file: &Named, spec: &Spec) -> Spec {
        let mut narrowed = attribute_spec(spec);
        if spec.name == "max_sectors_kb" {
            let most = self.tree.read(&file.disk.path_of("queue/max_hw_sectors_kb")).ok();
            narrowed.max = most.and_then(|text| text.trim().parse().ok()).unwrap_or(narrowed.max);
        }
        narrowed
    }

    /// Returns the accepted values of a file, for errors of the kernel without a reason.
    pub(crate) fn takes(&mut self, file: &Named) -> Option<String> {
        if file.of_disk() == SCHEDULER {
            return Some(format!("the value must be one of {}", self.schedulers(file)?.join(", ")));
        }
        if file.of_disk() == "device/queue_depth" {
            return Some("the value must be the number of commands in flight on the backing, 1 or more".to_owned());
        }
        let scheduler = self.scheduler(&file.disk)?;
        Self::declaration(file, &scheduler).map(Declaration::takes)
    }

    /// Returns the problem with a value of a served disk's file that has no declaration.
    fn wrong_live(&mut self, file: &Named, scheduler: &str, value: &str) -> Option<String> {
        let parts: Vec<&str> = file.of_disk().split('/').collect();
        match parts.as_slice() {
            ["queue", "scheduler"] => self.is_none_of(file, value),
            ["device", "queue_depth"] => {
                let is_depth = value.parse::<u32>().is_ok_and(|depth| depth > 0);
                (!is_depth).then(|| {
                    format!("{value:?} is not a queue depth; a queue depth is a number of commands, 1 or more")
                })
            }
            ["clients", client, "weight"] if self.is_in_no_group(file, client) => Some(IN_NO_GROUP.to_owned()),
            ["groups" | "clients", _, "weight"] => weight(value, scheduler, weights(scheduler)?).err(),
            ["groups", _, name @ ("reservation" | "limit")] => rate(name, value).err(),
            ["clients", _, "ioprio"] => value.parse::<IoPriority>().err().map(|error| error.to_string()),
            ["clients", _, "sync"] => value.parse::<SyncWrites>().err().map(|error| error.to_string()),
            ["clients", _, "group"] if value != "/" => check_group_name(value).err(),
            _ => None,
        }
    }

    /// Returns the problem if the disk does not list the scheduler `value`. A served disk may have
    /// schedulers that are not in the registry, so the list of the disk counts.
    fn is_none_of(&mut self, file: &Named, value: &str) -> Option<String> {
        let known = self.schedulers(file)?;
        let meant = || did_you_mean(value, known.iter().map(String::as_str));
        let is_known = known.iter().any(|name| name == value);
        (!is_known).then(|| format!("there is no scheduler {value:?}; available: {}{}", known.join(", "), meant()))
    }

    /// Returns the schedulers that the file `queue/scheduler` lists.
    pub(crate) fn schedulers(&mut self, file: &Named) -> Option<Vec<String>> {
        let listed = self.tree.read(&file.path).ok()?.replace(['[', ']'], "");
        Some(listed.split_whitespace().map(str::to_owned).collect())
    }

    fn is_in_no_group(&mut self, file: &Named, client: &str) -> bool {
        let group = self.tree.read(&file.disk.path_of(&format!("clients/{client}/group")));
        group.is_ok_and(|group| group.trim() == "/")
    }
}

/// Returns the message about a value that a declaration of a disk's attribute does not accept.
pub(crate) fn wrong_value(disk: &str, error: &ValueError) -> String {
    let meant = match error {
        ValueError::Choice { choice, value } => did_you_mean(value, choice.values.iter().copied()),
        _ => String::new(),
    };
    format!("{disk}: {error}{meant}")
}

/// Returns the range of weights that a scheduler accepts.
fn weights(scheduler: &str) -> Option<WeightRange> {
    Some(Registry::linux().get(scheduler).ok()?.weights)
}
