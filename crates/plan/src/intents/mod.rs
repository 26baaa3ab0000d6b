//! Intents: the goals of each unit of a machine for one device.

mod read;

use std::path::PathBuf;

use iosched::KernelVersion;
use iosched_workload::Workload;

use crate::goal::WantedGoal;
use crate::target::Target;

/// The goals of each unit of a machine for one device: the content of an intents file.
///
/// ```toml
/// device = "/dev/sdb"          # a device file with a profile, the name of a profile, or a list
/// profile = "sdb.toml"         # for a device file: the profile that `iosched calibrate` wrote
///
/// [unit.postgresql]
/// match = "system.slice/postgresql.service"
/// workload = "pgbench.fio"     # a trace, a fio job file, a task file, or "observed"
/// goal = "p99(read) < 5 ms"
///
/// [unit.backup]
/// match = "backup.slice"
/// workload = "backup.fio"
/// goal = ["throughput >= 50 MB/s", "best effort"]
/// ```
#[derive(Clone, Debug)]
pub struct Intents {
    /// Name of the file for people.
    pub name: String,
    /// The device file, such as `/dev/sdb`. `None` for a modelled device.
    pub device: Option<String>,
    /// Name or path of the profile.
    pub profile: String,
    /// Version of Linux whose rules the plan follows. `None` means the default of the simulation.
    pub kernel: Option<KernelVersion>,
    /// The units, in the order of the file; at least one.
    pub units: Vec<Unit>,
    /// Notes for readers of the plan, such as how a workload was recorded.
    pub notes: Vec<String>,
}

/// A unit, its workload and its goals.
#[derive(Clone, Debug)]
pub struct Unit {
    /// Name of the unit.
    pub name: String,
    /// The unit's counterpart on the machine, such as a cgroup.
    pub target: Target,
    /// Path of the workload's file. Empty for an observed workload.
    pub path: PathBuf,
    /// The workload. Its load is the load of the file times [`Unit::scale`].
    pub workload: Workload,
    /// Whether [`record`](crate::record) must record the workload first.
    pub needs_recording: bool,
    /// Factor of the load, from 0.1 to 10; 1 if the file has none.
    pub scale: f64,
    /// The goals. A unit without goals only runs with the other units.
    pub goals: Vec<WantedGoal>,
}

/// An error in an intents file, with its place.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{file}:{line}: {problem}")]
pub struct IntentsError {
    /// Name of the file.
    pub file: String,
    /// Line, from 1.
    pub line: usize,
    /// The problem, and how to correct it.
    pub problem: String,
}

impl Intents {
    /// Returns whether the workload of a unit must be recorded before a plan can be made.
    #[must_use]
    pub fn needs_recording(&self) -> bool {
        self.units.iter().any(|unit| unit.needs_recording)
    }
}

impl Unit {
    /// Returns the path of the unit's cgroup below the root in the simulation. The parents of the
    /// cgroup are those that the usual managers create. The path is empty for a process without a
    /// cgroup.
    #[must_use]
    pub fn cgroup_path(&self) -> String {
        match &self.target {
            Target::Cgroup(path) if path.contains('/') || path.ends_with(".slice") => path.clone(),
            Target::Cgroup(name) if name.ends_with(".service") || name.ends_with(".scope") => {
                format!("system.slice/{name}")
            }
            Target::Cgroup(path) => path.clone(),
            Target::Container(name) => format!("system.slice/container-{name}.scope"),
            Target::Libvirt(name) | Target::Qemu(name) => format!("machine.slice/{name}.scope"),
            Target::Proxmox(number) => format!("qemu.slice/{number}.scope"),
            Target::Kubernetes(class) => match class {
                crate::target::QosClass::Guaranteed => "kubepods.slice/guaranteed".to_owned(),
                class => format!("kubepods.slice/kubepods-{}.slice", class.name()),
            },
            Target::Export(name) => name.clone(),
            Target::Process(_) => String::new(),
        }
    }
}
