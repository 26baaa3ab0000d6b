//! Values of the kernel's disks before a change. After the change, a report lists all changed
//! attributes, including attributes that changed as a side effect. It also lists the commands that
//! undo the changes.

use std::collections::BTreeSet;

use iosched_kernel::cgroup::CGROUP;
use iosched_kernel::settings::{Before, Change};
use iosched_kernel::{BlockDevice, Roots, StateDirectory};
use iosched_lab::quoted;

use crate::error::failed;
use crate::{AttributesError, Disks, Named};

const QUEUE: &str = "queue/";
const TUNABLE: &str = "iosched/";

/// State of the kernel's disks before a change.
#[derive(Default)]
pub struct Earlier {
    disks: Vec<Before>,
    state: Option<StateDirectory>,
}

impl Earlier {
    /// Records the disks of `files`.
    ///
    /// # Errors
    /// A disk cannot be recorded, so that `iosched restore` could not undo the change.
    pub fn record(disks: &Disks, files: &[Named]) -> Result<Self, AttributesError> {
        if !disks.are_the_kernels {
            return Ok(Self::default());
        }
        let state = StateDirectory::usual().map_err(failed)?;
        let names: BTreeSet<&str> = files.iter().map(|file| file.disk.name.as_str()).collect();
        let record = |name: &str| {
            let of_cgroups = files.iter().filter(|file| file.disk.name == name).map(Named::of_disk);
            let of_cgroups: Vec<&str> = of_cgroups.filter(|name| name.starts_with(CGROUP)).collect();
            let device = BlockDevice::named(&Roots::default(), name)?;
            Before::record(&device, &state, &of_cgroups).map_err(failed)
        };
        let recorded = names.into_iter().map(record).collect::<Result<_, AttributesError>>()?;
        Ok(Self { disks: recorded, state: Some(state) })
    }

    /// Returns lines about the changes of `files`, about other attributes that also changed, and
    /// about how to undo these changes. Ends the record.
    #[must_use]
    pub fn report(&self, files: &[Named]) -> Vec<String> {
        let mut lines = Vec::new();
        let mut say = |line: String| lines.push(line);
        for before in &self.disks {
            let disk = before.device().name();
            let changes = before.changes();
            let is_set = |change: &Change| {
                let name = |file: &Named| file.of_disk().strip_prefix(QUEUE).unwrap_or(file.of_disk()).to_owned();
                files.iter().any(|file| file.disk.name == disk && name(file) == change.name)
            };
            let line = |change: &Change| {
                let now = change.from.as_deref().unwrap_or("gone");
                format!("{} was {} and is {now}", change.name, change.to)
            };
            let (set, others): (Vec<_>, Vec<_>) = changes.iter().partition(|change| is_set(change));
            for change in set {
                say(format!("{disk}: {}", line(change)));
            }
            for change in others {
                say(format!("{disk}: {}: the kernel also changed this attribute", line(change)));
            }
            // A new scheduler brings its tunables, which did not exist before.
            for file in files.iter().filter(|file| file.disk.name == disk) {
                let name = file.of_disk().strip_prefix(QUEUE).unwrap_or_default();
                if name.starts_with(TUNABLE) && !before.had(name) {
                    let value = before.device().attribute(name).map(|read| read.value).unwrap_or_default();
                    say(format!("{disk}: {name} is {value}; the previous scheduler does not have this attribute"));
                }
            }
            if !changes.is_empty() {
                let undo = before.undo();
                let words: Vec<String> = undo.iter().map(|(name, value)| quoted(&format!("{name}={value}"))).collect();
                let all = if before.is_later() { " (undoes all changes since the system started)" } else { "" };
                say(format!("undo: iosched set {disk} {}", words.join(" ")));
                say(format!("      or: iosched restore {disk}{all}"));
            }
            let ended = self.state.as_ref().map(|state| before.end(state));
            if let Some(Err(error)) = ended {
                say(format!("warning: {error}"));
            }
        }
        lines
    }
}

/// Returns the first of `files` whose disk holds the root file system.
#[must_use]
pub fn holds_root<'f>(disks: &Disks, files: &'f [Named]) -> Option<&'f Named> {
    let is_under_root =
        |name: &str| BlockDevice::named(&Roots::default(), name).is_ok_and(|device| device.is_under_root());
    files.iter().find(|file| disks.are_the_kernels && is_under_root(&file.disk.name))
}
