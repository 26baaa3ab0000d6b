//! Output formats of a plan: files of systemd, container engines, hypervisors, Kubernetes and
//! served disks.
//!
//! Each format is a pure function from the plan and the device to files. If a format cannot express
//! a part of the plan, the output has a [`Note`] about this part.
//!
//! | file | content |
//! |---|---|
//! | `place.rs` | the device of a plan, as its files name it |
//! | `parts.rs` | the setting of a plan, split into the device's part and the units' parts |
//! | `file.rs` | an output file: its path, its mark, how to activate and undo it |
//! | `systemd.rs` | drop-ins, the udev rule, tmpfiles.d for other cgroups, hwdb |
//! | `containers.rs` | options of Docker and Podman, keys of Compose |
//! | `libvirt.rs` | `<blkiotune>`, `<iotune>`, commands of virsh |
//! | `qemu.rs` | throttle groups |
//! | `proxmox.rs` | disk options of `qm`, lines for containers |
//! | `kubernetes.rs` | drop-ins of the QoS classes, blockio classes and annotations |
//! | `exports.rs` | exports of a served disk |
//! | `apply.rs` | sets a plan until it is undone |
//! | `persist.rs` | writes and removes installed files, and refuses conflicts |

mod apply;
mod containers;
mod exports;
mod file;
#[cfg(test)]
mod installed_tests;
mod kubernetes;
mod libvirt;
mod parts;
mod persist;
mod place;
mod proxmox;
mod qemu;
mod systemd;

use std::fmt;
use std::str::FromStr;

use crate::plan::{Plan, UnitPlan};
use crate::target::Target;

pub use apply::{Applied, ApplyError, ApplyRequest, apply};
pub use file::{OutputFile, is_unchanged};
pub use persist::{Conflict, PersistError, conflicts, persist, unpersist, write_below};
pub use place::{Place, PlaceError};

use parts::Parts;

/// Output format of a plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// Drop-ins of systemd, the udev rule of the device, and tmpfiles.d for other cgroups.
    Systemd,
    /// The io.cost model and QoS as an entry of systemd's hwdb. The entry applies to all devices of
    /// a model.
    Hwdb,
    /// Options of Docker and Podman, and keys of Compose.
    Containers,
    /// XML and commands of libvirt.
    Libvirt,
    /// Command-line options of QEMU.
    Qemu,
    /// A script for Proxmox VE.
    Proxmox,
    /// Drop-ins of Kubernetes' QoS classes, blockio classes and annotations.
    Kubernetes,
    /// Exports of a served disk.
    Exports,
}

impl Form {
    /// All output formats of a plan.
    pub const ALL: [Self; 8] = [
        Self::Systemd,
        Self::Hwdb,
        Self::Containers,
        Self::Libvirt,
        Self::Qemu,
        Self::Proxmox,
        Self::Kubernetes,
        Self::Exports,
    ];

    /// Returns the name of the format, as on a command line.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Systemd => "systemd",
            Self::Hwdb => "hwdb",
            Self::Containers => "containers",
            Self::Libvirt => "libvirt",
            Self::Qemu => "qemu",
            Self::Proxmox => "proxmox",
            Self::Kubernetes => "kubernetes",
            Self::Exports => "exports",
        }
    }

    /// Returns the output format for a unit with this target.
    #[must_use]
    pub fn of(target: &Target) -> Self {
        match target {
            Target::Cgroup(_) | Target::Process(_) => Self::Systemd,
            Target::Container(_) => Self::Containers,
            Target::Libvirt(_) => Self::Libvirt,
            Target::Qemu(_) => Self::Qemu,
            Target::Proxmox(_) => Self::Proxmox,
            Target::Kubernetes(_) => Self::Kubernetes,
            Target::Export(_) => Self::Exports,
        }
    }
}

impl fmt::Display for Form {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Form {
    type Err = OutputError;

    fn from_str(text: &str) -> Result<Self, OutputError> {
        let found = Self::ALL.into_iter().find(|form| form.name() == text);
        found.ok_or_else(|| OutputError::UnknownForm { given: text.to_owned() })
    }
}

fn all_forms() -> String {
    Form::ALL.map(Form::name).join(", ")
}

/// Reason why a plan cannot be written in an output format.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum OutputError {
    /// There is no output format of this name.
    #[error("there is no output format {given:?}; available: {}", all_forms())]
    UnknownForm {
        /// The given name.
        given: String,
    },
    /// The plan has nothing for this output format.
    #[error(
        "iosched cannot write any part of the plan in the output format {form}; this plan needs the output formats: \
         {needed}"
    )]
    Nothing {
        /// The output format.
        form: Form,
        /// Output formats of the plan's units.
        needed: String,
    },
    /// The setting names a cgroup that no unit has.
    #[error(
        "the setting of the plan names the cgroup {cgroup:?}, but no unit has this cgroup; the units have: {known}"
    )]
    UnknownCgroup {
        /// The cgroup.
        cgroup: String,
        /// Cgroups of the units.
        known: String,
    },
    /// The scheduler is not in Linux.
    #[error(
        "the plan uses the scheduler {scheduler}, which Linux does not have; make the plan with a scheduler of Linux, \
         or serve the disk: iosched serve DISK --scheduler {scheduler}"
    )]
    NotInLinux {
        /// The scheduler.
        scheduler: String,
    },
    /// A name has characters that the files of the output format cannot contain.
    #[error(
        "unit {unit}: the output format cannot contain the name {name:?}, because of the character {character:?}; \
         change the name, or the match of the unit in the intents file"
    )]
    Name {
        /// Name of the unit.
        unit: String,
        /// Name of its target.
        name: String,
        /// The first such character.
        character: char,
    },
}

/// A note about a part of the plan that the files do not express, or about a step for the user.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Note {
    /// Name of the unit, or `None` for the whole plan.
    pub unit: Option<String>,
    /// One or two sentences.
    pub text: String,
}

impl fmt::Display for Note {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.unit {
            Some(unit) => write!(f, "{unit}: {}", self.text),
            None => f.write_str(&self.text),
        }
    }
}

/// A plan in one output format.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Output {
    /// The output format.
    pub form: Form,
    /// The files, in a fixed order.
    pub files: Vec<OutputFile>,
    /// Notes about the parts of the plan that the files do not express. Each note is also a comment
    /// in the file of its unit.
    pub notes: Vec<Note>,
}

/// Collects the notes of an output format.
#[derive(Default)]
struct Notes(Vec<Note>);

impl Notes {
    fn unit(&mut self, unit: &UnitPlan, text: impl Into<String>) {
        self.0.push(Note { unit: Some(unit.name.clone()), text: text.into() });
    }

    fn plan(&mut self, text: impl Into<String>) {
        self.0.push(Note { unit: None, text: text.into() });
    }

    /// Returns the notes about some units as text for a comment, one note per line.
    fn about(&self, units: &[&str]) -> Vec<String> {
        let is_of = |note: &&Note| note.unit.as_deref().is_none_or(|unit| units.contains(&unit));
        self.0.iter().filter(is_of).map(|note| format!("note: {note}")).collect()
    }
}

/// Returns the files of a plan in one output format, with notes about everything that the format
/// cannot express.
///
/// The same plan and place give the same bytes. This function reads and writes no files.
///
/// The plan has nothing for this output format, its scheduler is not in Linux, or a name cannot be
/// written.
pub fn output(form: Form, plan: &Plan, place: &Place) -> Result<Output, OutputError> {
    let parts = Parts::of(plan)?;
    let mut notes = Notes::default();
    let of_form = |unit: &&UnitPlan| Form::of(&unit.target) == form;
    let has_own = plan.units.iter().any(|unit| of_form(&unit));
    // Only these two formats contain the device's part of the plan.
    let has_device = match form {
        Form::Systemd => !parts.device.is_empty(),
        Form::Hwdb => parts.device.io_cost.iter().any(|write| write.file == parts::IO_COST_MODEL),
        _ => false,
    };
    if !(has_own || has_device) {
        let mut needed: Vec<&str> = plan.units.iter().map(|unit| Form::of(&unit.target).name()).collect();
        needed.extend((!parts.device.is_empty()).then_some(Form::Systemd.name()));
        needed.sort_unstable();
        needed.dedup();
        let needed = if needed.is_empty() { "none".to_owned() } else { needed.join(", ") };
        return Err(OutputError::Nothing { form, needed });
    }
    if form != Form::Hwdb {
        for unit in plan.units.iter().filter(|unit| !of_form(unit)) {
            let other = Form::of(&unit.target);
            notes.unit(unit, format!("{} is not in these files. Write this unit with --write {other}.", unit.target));
        }
    }
    if !matches!(form, Form::Systemd | Form::Hwdb | Form::Exports) && !parts.device.is_empty() {
        notes.plan(format!(
            "These files do not set the device ({}). The udev rule sets the device: write this rule with --write \
             systemd.",
            parts.device
        ));
    }
    let files = match form {
        Form::Systemd => systemd::files(&parts, place, &mut notes)?,
        Form::Hwdb => systemd::hwdb(&parts, place, &mut notes)?,
        Form::Containers => containers::files(&parts, place, &mut notes)?,
        Form::Libvirt => libvirt::files(&parts, place, &mut notes)?,
        Form::Qemu => qemu::files(&parts, place, &mut notes)?,
        Form::Proxmox => proxmox::files(&parts, place, &mut notes)?,
        Form::Kubernetes => kubernetes::files(&parts, place, &mut notes)?,
        Form::Exports => exports::files(&parts, &mut notes)?,
    };
    Ok(Output { form, files, notes: notes.0 })
}
