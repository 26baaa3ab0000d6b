//! Sets a plan until `iosched restore` undoes it or the system starts again.

use iosched::controllers;
use iosched_kernel::cgroup::{CGROUP, CgroupError, Controls, Tree};
use iosched_kernel::settings::{Before, Change, SettingsError, set_values};
use iosched_kernel::{BlockDevice, Session, StateDirectory};

use iosched::Setting;

use super::parts::{Parts, UnitPart};
use super::systemd::ionice;
use super::{Form, Note, Notes, OutputError};
use crate::plan::Plan;
use crate::target::{QosClass, Target};

/// The plan to set, and its device.
#[derive(Clone, Copy, Debug)]
pub struct ApplyRequest<'a> {
    /// The plan.
    pub plan: &'a Plan,
    /// The device.
    pub device: &'a BlockDevice,
    /// Directory of the record that `iosched restore` uses.
    pub state: &'a StateDirectory,
    /// Whether to replace values that another program or user has set.
    pub force: bool,
}

/// A plan that is in force.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Applied {
    /// Changed values. Each [`Change`] describes the undo of a value: `from` is the present value,
    /// and `to` is the earlier value, which the undo writes.
    pub changes: Vec<Change>,
    /// Assignments for `iosched set` that undo the changes.
    pub undo: Vec<(String, String)>,
    /// Parts of the plan that could not be set directly.
    pub notes: Vec<Note>,
}

/// Reason why a plan is not set. In this case, all values are the same as before.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ApplyError {
    /// The plan cannot be written.
    #[error(transparent)]
    Output(#[from] OutputError),
    /// A unit has no cgroup that can be found.
    #[error("unit {unit}: iosched cannot set values of {target} directly; write the plan with --write {form}")]
    Unit {
        /// Name of the unit.
        unit: String,
        /// Target of the unit.
        target: String,
        /// Output format for this unit.
        form: Form,
    },
    /// There is no cgroup of a unit.
    #[error("unit {unit}: there is no cgroup {cgroup}; start the unit first, or correct its match in the intents file")]
    NoCgroup {
        /// Name of the unit.
        unit: String,
        /// The cgroup.
        cgroup: String,
    },
    /// Several cgroups have the name of a unit.
    #[error("unit {unit}: several cgroups are called {name}: {found}; give the whole path in the intents file")]
    Ambiguous {
        /// Name of the unit.
        unit: String,
        /// Name in the plan.
        name: String,
        /// Paths of the cgroups.
        found: String,
    },
    /// Another program or user has set values.
    #[error("{device}: another program or user has set these values, so iosched changed nothing:{}", listed(values))]
    Foreign {
        /// Name of the device.
        device: String,
        /// Name, present value, and the plan's value if it has one.
        values: Vec<(String, String, Option<String>)>,
    },
    /// The cgroups of the machine cannot be used.
    #[error(transparent)]
    Cgroup(#[from] CgroupError),
    /// A value is refused.
    #[error(transparent)]
    Settings(#[from] SettingsError),
}

fn listed(values: &[(String, String, Option<String>)]) -> String {
    let mut text = String::new();
    for (name, value, planned) in values {
        let planned = planned.as_ref().map_or_else(
            || "a change of the scheduler would reset this value".to_owned(),
            |planned| format!("the plan has {planned}"),
        );
        text += &format!("\n  {name} is {value:?}; {planned}");
    }
    text + "\nReset these values, or apply the plan with --replace-settings"
}

/// Sets the plan. It records the values before the change, and `iosched restore` restores them.
///
/// Sets either all values or no value: if the kernel refuses a value, the session restores all
/// values.
///
/// # Errors
/// - A unit has no cgroup on this machine.
/// - Another program or user has set a value that the plan would change, and `force` is false.
/// - The kernel refuses a value.
pub fn apply(request: &ApplyRequest<'_>) -> Result<Applied, ApplyError> {
    let ApplyRequest { plan, device, state, force } = *request;
    let device = &device.disk();
    let parts = Parts::of(plan)?;
    let mut notes = Notes::default();
    let values = values(&parts, device, &mut notes)?;
    if !force {
        let foreign = foreign(&parts, &values, device, state)?;
        if !foreign.is_empty() {
            return Err(ApplyError::Foreign { device: device.name().to_owned(), values: foreign });
        }
    }
    // A cgroup file of bfq may appear only after bfq is set. The session then records its value.
    let there = |name: &&String| device.attribute(name).is_ok();
    let of_cgroups: Vec<&str> = values.iter().map(|(name, _)| name).filter(there).map(String::as_str).collect();
    let before = Before::record(device, state, &of_cgroups)?;
    let set = || -> Result<(), SettingsError> {
        let mut session = Session::begin(device, state)?;
        session.apply(&of_device(&plan.setting))?;
        values.iter().try_for_each(|(name, value)| session.change(name, value))?;
        session.keep()
    };
    let done = set();
    before.end(state)?;
    done?;
    Ok(Applied { changes: before.changes(), undo: before.undo(), notes: notes.0 })
}

/// Returns the setting without files of cgroups, because these files are set one by one.
fn of_device(setting: &Setting) -> Setting {
    let mut plain = if setting.is_present() { Setting::present() } else { Setting::defaults(setting.name()) };
    let values = setting.assignments().filter(|value| !controllers::is_file(value.name()));
    values.for_each(|value| plain.set_of_kernel(value.name(), &value.text()));
    plain
}

/// Returns the attributes of cgroups and their values, in the order of writing.
fn values(parts: &Parts<'_>, device: &BlockDevice, notes: &mut Notes) -> Result<Vec<(String, String)>, ApplyError> {
    let words = |text: &str| text.split_whitespace().collect::<Vec<_>>().join("/");
    let of_device = &parts.device.io_cost;
    let mut values: Vec<_> =
        of_device.iter().map(|write| (format!("{CGROUP}{}", write.file), words(&write.text))).collect();
    let has_values = parts.units.iter().any(|part| !part.values.writes.is_empty());
    let groups = if has_values { Tree::of(device.roots())?.groups() } else { Vec::new() };
    for part in &parts.units {
        if let Some(priority) = part.unit.priority {
            let processes = match &part.unit.target {
                Target::Cgroup(path) => format!("$(cat /sys/fs/cgroup/{path}/cgroup.procs)"),
                Target::Process(name) => format!("$(pgrep -x {name})"),
                _ => "PID".to_owned(),
            };
            notes.unit(
                part.unit,
                format!(
                    "An I/O priority belongs to processes, so iosched did not set {priority}. To set this \
                     priority, run {} -p {processes}.",
                    ionice(priority)
                ),
            );
        }
        if part.values.writes.is_empty() {
            continue;
        }
        let group = group(part, &groups)?;
        let of_unit = part.values.writes.iter();
        values.extend(of_unit.map(|write| (format!("{CGROUP}{group}/{}", write.file), words(&write.text))));
    }
    Ok(values)
}

/// Returns the path of a unit's cgroup.
fn group<'g>(part: &UnitPart<'_>, groups: &'g [String]) -> Result<&'g str, ApplyError> {
    let name = match &part.unit.target {
        Target::Cgroup(path) => path.clone(),
        Target::Kubernetes(QosClass::Burstable) => "kubepods-burstable.slice".to_owned(),
        Target::Kubernetes(QosClass::BestEffort) => "kubepods-besteffort.slice".to_owned(),
        Target::Proxmox(number) => format!("{number}.scope"),
        other => {
            let (unit, target) = (part.unit.name.clone(), other.to_string());
            return Err(ApplyError::Unit { unit, target, form: Form::of(other) });
        }
    };
    let exactly = groups.iter().find(|group| **group == name);
    let below = format!("/{name}");
    let found: Vec<&String> = exactly.map_or_else(
        || groups.iter().filter(|group| !name.contains('/') && group.ends_with(&below)).collect(),
        |group| vec![group],
    );
    let unit = part.unit.name.clone();
    match found[..] {
        [group] => Ok(group),
        [] => Err(ApplyError::NoCgroup { unit, cgroup: name }),
        _ => {
            let found: Vec<&str> = found.into_iter().map(String::as_str).collect();
            Err(ApplyError::Ambiguous { unit, name, found: found.join(", ") })
        }
    }
}

/// Returns the values that another program or user has set and that the plan would change.
fn foreign(
    parts: &Parts<'_>,
    values: &[(String, String)],
    device: &BlockDevice,
    state: &StateDirectory,
) -> Result<Vec<(String, String, Option<String>)>, ApplyError> {
    let ours = set_values(device, state)?;
    let is_ours = |name: &str, value: &str| ours.iter().any(|(known, set)| known == name && set == value);
    let mut found = Vec::new();
    for (name, value) in Controls::of(device.roots()).on(device.number()) {
        let Some((_, planned)) = values.iter().find(|(planned, _)| *planned == name) else { continue };
        let same = iosched_kernel::cgroup::is_same(&name, &value, planned);
        // After io.cost is turned off, the kernel still shows a line with its own values.
        let is_off = value.contains("ctrl=auto") && !value.contains("enable=1");
        if !same && !is_off && !is_ours(&name, &value) {
            found.push((name, value, Some(planned.clone())));
        }
    }
    // A change of the scheduler sets all tunables to their defaults, so changed tunables are lost.
    let switches = parts.device.assigned.first().is_some_and(|(name, _)| name == "scheduler");
    let present = iosched_kernel::settings::Recorded::of(device).map_err(SettingsError::from)?;
    if let (true, Ok(setting)) = (switches, present.setting()) {
        for tunable in setting.tunables() {
            let name = format!("iosched/{}", tunable.name());
            let planned = parts.device.assigned.iter().find(|(planned, _)| *planned == name).map(|(_, value)| value);
            let is_kept = planned == Some(&tunable.text());
            if !is_kept && !is_ours(&name, &tunable.text()) {
                found.push((name, tunable.text(), planned.cloned()));
            }
        }
    }
    Ok(found)
}

#[cfg(test)]
#[path = "apply_tests.rs"]
mod tests;
