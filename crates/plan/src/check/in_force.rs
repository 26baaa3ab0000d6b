//! Compares the setting of a device with a plan.

use iosched::IoClass;
use iosched::controllers::{NamedWrite, is_file};
use iosched_kernel::BlockDevice;
use iosched_kernel::attribute::is_same;
use iosched_kernel::observe::{Operation, Sample, class_name};
use serde::Serialize;

use super::unit::is_of;
use crate::plan::{Plan, UnitPlan};
use crate::target::Target;

/// A value of a plan that is not in force.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Deviation {
    /// Name of the attribute, such as `scheduler` or `cgroup/backup.slice/io.max`.
    pub name: String,
    /// The value of the plan.
    pub planned: String,
    /// The value in force.
    pub found: Option<String>,
    /// Why there is no value in force.
    pub error: Option<String>,
}

/// Returns the values of the plan's setting that are not in force on the device.
#[must_use]
pub fn deviations(plan: &Plan, device: &BlockDevice) -> Vec<Deviation> {
    let setting = &plan.setting;
    let mut wanted: Vec<(String, String)> = Vec::new();
    if !setting.is_present() {
        wanted.push(("scheduler".to_owned(), setting.name().to_owned()));
    }
    for tunable in setting.tunables() {
        wanted.push((format!("iosched/{}", tunable.name()), tunable.text()));
    }
    let mut found = Vec::new();
    for assignment in setting.attributes() {
        let (name, text) = (assignment.name(), assignment.text());
        if !is_file(name) {
            wanted.push((name.to_owned(), text));
            continue;
        }
        match NamedWrite::parse(name, &text) {
            Ok(writes) => wanted.extend(writes.into_iter().map(|write| (attribute_of(plan, &write), write.text))),
            Err(error) => found.push(Deviation {
                name: name.to_owned(),
                planned: text,
                found: None,
                error: Some(error.to_string()),
            }),
        }
    }
    found.extend(wanted.into_iter().filter_map(|(name, planned)| compare(device, name, planned)));
    found
}

/// Returns the I/O priority class of a unit's requests, if it differs from the class of the plan.
pub(super) fn priority(unit: &UnitPlan, sample: &Sample) -> Option<Deviation> {
    let planned = unit.priority?;
    // Processes without a class have the class best effort.
    let effective = |class| if class == IoClass::None { IoClass::BestEffort } else { class };
    let of_unit = sample.series.iter().filter(|series| is_of(&unit.target, &series.owner));
    let requests = of_unit.filter(|series| series.operation != Operation::Fsync && series.ios > 0);
    let others = requests.filter(|series| effective(series.class) != effective(planned.class()));
    let most = others.max_by_key(|series| series.ios)?;
    Some(Deviation {
        name: format!("I/O priority of {}", unit.name),
        planned: planned.to_string(),
        found: Some(format!("{} for {} requests", class_name(most.class), most.ios)),
        error: None,
    })
}

/// Returns the attribute for a write to a unit's cgroup or to the device's file.
fn attribute_of(plan: &Plan, write: &NamedWrite) -> String {
    if write.is_of_device() {
        return format!("cgroup/{}", write.file);
    }
    let unit = plan.units.iter().find(|unit| unit.cgroup == write.cgroup);
    let path = match unit.map(|unit| &unit.target) {
        Some(Target::Cgroup(path)) => path,
        _ => &write.cgroup,
    };
    format!("cgroup/{path}/{}", write.file)
}

fn compare(device: &BlockDevice, name: String, planned: String) -> Option<Deviation> {
    match device.disk().attribute(&name) {
        Ok(attribute) if is_same(attribute.declaration, &attribute.value, &planned) => None,
        Ok(attribute) => Some(Deviation { name, planned, found: Some(attribute.value), error: None }),
        Err(error) => Some(Deviation { name, planned, found: None, error: Some(error.to_string()) }),
    }
}
