//! What `iosched set` tells of the kernel's disks: what a value was, what else changed with it, and how to undo it.

use std::collections::BTreeSet;
use std::io::IsTerminal;

use anyhow::Result;
use iosched_kernel::cgroup::CGROUP;
use iosched_kernel::settings::{Before, Change};
use iosched_kernel::{BlockDevice, Roots, StateDirectory};
use iosched_lab::asked::quoted;

use crate::fail::usage;
use crate::output::say;
use crate::tree::{Disks, Named};

const QUEUE: &str = "queue/";
const TUNABLE: &str = "iosched/";

/// How the kernel's disks were before they are set.
#[derive(Default)]
pub(super) struct Earlier {
    disks: Vec<Before>,
    state: Option<StateDirectory>,
}

impl Earlier {
    /// Records the disks of `files`. What cannot be recorded is told, and keeps nobody from setting it.
    pub(super) fn record(disks: &Disks, files: &[Named]) -> Self {
        if !disks.are_the_kernels {
            return Self::default();
        }
        let recorded = || -> Result<Self> {
            let state = StateDirectory::usual()?;
            let names: BTreeSet<&str> = files.iter().map(|file| file.disk.name.as_str()).collect();
            let record = |name: &str| {
                let of_cgroups = files.iter().filter(|file| file.disk.name == name).map(Named::of_disk);
                let of_cgroups: Vec<&str> = of_cgroups.filter(|name| name.starts_with(CGROUP)).collect();
                let device = BlockDevice::named(&Roots::default(), name)?;
                Ok(Before::record(&device, &state, &of_cgroups)?)
            };
            let recorded = names.into_iter().map(record).collect::<Result<_>>()?;
            Ok(Self { disks: recorded, state: Some(state) })
        };
        recorded().unwrap_or_else(|error| {
            say!("warning: {error}; iosched restore cannot undo this change");
            Self::default()
        })
    }

    /// Tells what has changed, by `files`, which were set, and with them.
    pub(super) fn tell(&self, files: &[Named]) {
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
            let (own, others): (Vec<_>, Vec<_>) = changes.iter().partition(|change| is_set(change));
            for change in own {
                say!("{disk}: {}", line(change));
            }
            for change in others {
                say!("{disk}: {}: the kernel changed it too", line(change));
            }
            // With a scheduler its tunables come: these were not there before.
            for file in files.iter().filter(|file| file.disk.name == disk) {
                let name = file.of_disk().strip_prefix(QUEUE).unwrap_or_default();
                if name.starts_with(TUNABLE) && !before.had(name) {
                    let value = before.device().attribute(name).map(|own| own.value).unwrap_or_default();
                    say!("{disk}: {name} is new with this scheduler and has its default, {value}");
                }
            }
            if !changes.is_empty() {
                let undo = before.undo();
                let words: Vec<String> = undo.iter().map(|(name, value)| quoted(&format!("{name}={value}"))).collect();
                let all = if before.is_later() { ", with all changes since the start" } else { "" };
                say!("undo: iosched set {disk} {}", words.join(" "));
                say!("      or: iosched restore {disk}{all}");
            }
            let ended = self.state.as_ref().map(|state| before.end(state));
            if let Some(Err(error)) = ended {
                say!("warning: {error}");
            }
        }
    }
}

/// Refuses, at a terminal, to set what the root file system is on, unless `--yes` is given.
pub(super) fn allows(disks: &Disks, files: &[Named], yes: bool) -> Result<()> {
    if yes || !disks.are_the_kernels || !std::io::stdin().is_terminal() || !std::io::stderr().is_terminal() {
        return Ok(());
    }
    let is_under_root =
        |name: &str| BlockDevice::named(&Roots::default(), name).is_ok_and(|device| device.is_under_root());
    match files.iter().find(|file| is_under_root(&file.disk.name)) {
        Some(file) => Err(usage(format_args!(
            "{disk}: holds the root file system; a wrong value may slow down or stop this machine. To set it, add \
             --yes",
            disk = file.disk.name
        ))),
        None => Ok(()),
    }
}
