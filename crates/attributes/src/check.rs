//! What is wrong with a value, in words, before it is written: by the same declarations that the kernel's attributes
//! and a live disk's are made from. Over a file only an error number would come back.

use iosched::{IoPriority, Registry, Spec, WeightRange};
use iosched_kernel::attribute::{Declaration, ValueError};
use iosched_lab::{did_you_mean, is_scheduler_name};
use iosched_live::SyncWrites;
use iosched_live::control::tree::{IN_NO_GROUP, check_group_name, weight};
use iosched_live::disk::attribute_spec;

use crate::{Disks, Named};

const SCHEDULER: &str = "queue/scheduler";

impl Disks {
    /// The message about a wrong `value` of a file while `scheduler` is the present one; `None`: nothing that is known.
    pub fn wrong_value(&mut self, file: &Named, scheduler: &str, value: &str) -> Option<String> {
        let value = value.trim();
        let named = |problem: String| format!("{}: {problem}", file.name);
        match Self::declaration(file, scheduler) {
            // A served disk says that its numbers are read-only.
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

    /// What a live disk takes for an attribute: no more than its back end.
    fn of_live(&mut self, file: &Named, spec: &Spec) -> Spec {
        let mut narrowed = attribute_spec(spec);
        if spec.name == "max_sectors_kb" {
            let most = self.tree.read(&file.disk.path_of("queue/max_hw_sectors_kb")).ok();
            narrowed.max = most.and_then(|text| text.trim().parse().ok()).unwrap_or(narrowed.max);
        }
        narrowed
    }

    /// What would be right for a file, where the kernel only says that something is wrong.
    pub(crate) fn takes(&mut self, file: &Named) -> Option<String> {
        if file.of_disk() == SCHEDULER {
            return Some(format!("it must be one of {}", self.schedulers(file)?.join(", ")));
        }
        if file.of_disk() == "device/queue_depth" {
            return Some("it must be a number of commands in flight on the backing, 1 or more".to_owned());
        }
        let scheduler = self.scheduler(&file.disk)?;
        Self::declaration(file, &scheduler).map(Declaration::takes)
    }

    /// Of a live disk's files that have no declared number.
    fn wrong_live(&mut self, file: &Named, scheduler: &str, value: &str) -> Option<String> {
        let parts: Vec<&str> = file.of_disk().split('/').collect();
        match parts.as_slice() {
            ["queue", "scheduler"] => self.is_none_of(file, value),
            ["device", "queue_depth"] => {
                let is_depth = value.parse::<u32>().is_ok_and(|depth| depth > 0);
                (!is_depth)
                    .then(|| format!("{value:?} is not a queue depth; it must be a number of commands, 1 or more"))
            }
            ["clients", client, "weight"] if self.is_in_no_group(file, client) => Some(IN_NO_GROUP.to_owned()),
            ["groups" | "clients", _, "weight"] => weight(value, scheduler, weights(scheduler)?).err(),
            ["clients", _, "ioprio"] => value.parse::<IoPriority>().err().map(|error| error.to_string()),
            ["clients", _, "sync"] => value.parse::<SyncWrites>().err().map(|error| error.to_string()),
            ["clients", _, "group"] if value != "/" => check_group_name(value).err(),
            _ => None,
        }
    }

    /// A disk may have elevators that are not of Linux: it lists them.
    fn is_none_of(&mut self, file: &Named, value: &str) -> Option<String> {
        let known = self.schedulers(file)?;
        let meant = || did_you_mean(value, known.iter().map(String::as_str));
        let is_known = known.iter().any(|name| name == value);
        (!is_known).then(|| format!("there is no scheduler {value:?}; available: {}{}", known.join(", "), meant()))
    }

    /// The schedulers that the file `queue/scheduler` lists.
    pub(crate) fn schedulers(&mut self, file: &Named) -> Option<Vec<String>> {
        let listed = self.tree.read(&file.path).ok()?.replace(['[', ']'], "");
        Some(listed.split_whitespace().map(str::to_owned).collect())
    }

    fn is_in_no_group(&mut self, file: &Named, client: &str) -> bool {
        let group = self.tree.read(&file.disk.path_of(&format!("clients/{client}/group")));
        group.is_ok_and(|group| group.trim() == "/")
    }
}

/// The message about a value of a disk that its declaration does not take.
pub(crate) fn wrong_value(disk: &str, error: &ValueError) -> String {
    let meant = match error {
        ValueError::Choice { choice, value } => did_you_mean(value, choice.values.iter().copied()),
        _ => String::new(),
    };
    format!("{disk}: {error}{meant}")
}

/// The weights that an elevator takes.
fn weights(scheduler: &str) -> Option<WeightRange> {
    Some(Registry::linux().get(scheduler).ok()?.weights)
}
