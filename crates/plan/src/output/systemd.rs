//! systemd: drop-ins of units, the udev rule of the device, tmpfiles.d lines for other cgroups, and
//! hwdb entries of io.cost.

use iosched::{IoClass, IoPriority};
use iosched_disk::io_cost::{self, IoCostQos, hwdb_name, hwdb_path};
use iosched_kernel::settings::units::{Property, is_unit, reset_command, unit_of};
use iosched_kernel::settings::{DropIn, OfControllers, RULES, rule_name, shell};

use super::file::{Comment, OutputFile};
use super::parts::{IO_COST_MODEL, IO_COST_QOS, Parts, UnitPart, Weight};
use super::{Form, Notes, OutputError, Place};
use crate::target::Target;

const RELOAD: &str = "systemctl daemon-reload";
/// Start of the path of a user manager's units.
const USER_MANAGER: &str = "user@";

pub(super) fn files(parts: &Parts<'_>, place: &Place, notes: &mut Notes) -> Result<Vec<OutputFile>, OutputError> {
    note_parents(parts, notes);
    // The scheduler comes first: systemd writes io.bfq.weight only if bfq is loaded.
    let mut files: Vec<OutputFile> = modules(parts, place).into_iter().chain(rule(parts, place, notes)).collect();
    let mut others = Vec::new();
    for part in parts.units_of(Form::Systemd) {
        match &part.unit.target {
            Target::Cgroup(path) if is_unit(path) => files.extend(unit(part, path, place, notes)),
            Target::Cgroup(path) => others.extend(tmpfiles(part, path, place, notes)),
            Target::Process(name) => process(part, name, place, notes),
            _ => {}
        }
    }
    if !others.is_empty() {
        let path = format!("/etc/tmpfiles.d/iosched-{}.conf", place.disk);
        let comments: Vec<String> = notes.about(&[]);
        let file = OutputFile::new(&*path, Comment::Hash, &comments, &others.concat());
        let undo = vec![format!("rm -f {path}")];
        files.push(file.activated(vec![format!("systemd-tmpfiles --create {path}")], undo));
    }
    Ok(files)
}

/// Returns the drop-in of a unit.
fn unit(part: &UnitPart<'_>, path: &str, place: &Place, notes: &mut Notes) -> Option<OutputFile> {
    let unit = unit_of(path);
    if path.contains(USER_MANAGER) && !path.ends_with(&format!("{USER_MANAGER}.service")) && is_below_user(path) {
        notes.unit(
            part.unit,
            format!(
                "{unit} belongs to a user's systemd, which has no io controller by default. Use the \
                 cgroup user.slice/user-UID.slice as match instead."
            ),
        );
        return None;
    }
    let at_once = part.properties(place);
    let at_start = scheduling(part, &unit, notes);
    let all: Vec<Property> = at_once.iter().chain(&at_start).cloned().collect();
    if all.is_empty() {
        notes.unit(part.unit, format!("The plan has no value for {unit}."));
        return None;
    }
    if !at_start.is_empty() {
        notes.unit(part.unit, format!("IOSchedulingClass= takes effect when {unit} starts the next time."));
    }
    if unit.ends_with(".scope") {
        notes.unit(
            part.unit,
            format!(
                "{unit} is a scope. The drop-in takes effect when the scope starts the next \
            time."
            ),
        );
    }
    let drop_in = DropIn::of(&unit, &all);
    let file = OutputFile::new(&*drop_in.path, Comment::Hash, &notes.about(&[&part.unit.name]), &drop_in.text);
    let reset = (!at_once.is_empty()).then(|| reset_command(&unit, &at_once));
    let remove = format!("rm -f {}", shell(&drop_in.path));
    let undo = reset.into_iter().chain([remove, RELOAD.to_owned()]).collect();
    Some(file.activated(vec![RELOAD.to_owned()], undo))
}

fn is_below_user(path: &str) -> bool {
    path.split('/').rev().skip(1).any(|part| part.starts_with(USER_MANAGER))
}

/// Returns the I/O priority of a unit's processes as properties.
fn scheduling(part: &UnitPart<'_>, unit: &str, notes: &mut Notes) -> Vec<Property> {
    let of_class = part.values.class.as_deref().and_then(|class| match class {
        "idle" => Some(IoPriority::new(IoClass::Idle, 7)),
        // `restrict-to-be` changes the class of real-time I/O, and of I/O without a class.
        "restrict-to-be" => {
            let best_effort = part.unit.priority.filter(|priority| priority.class() == IoClass::BestEffort);
            Some(best_effort.unwrap_or(IoPriority::new(IoClass::BestEffort, 4)))
        }
        "promote-to-rt" | "none-to-rt" => Some(IoPriority::new(IoClass::RealTime, 4)),
        _ => None,
    });
    let Some(priority) = of_class.or(part.unit.priority) else { return Vec::new() };
    if !unit.ends_with(".service") {
        let what = part.values.class.as_ref().map_or_else(
            || format!("the I/O priority {priority}"),
            |class| {
                format!(
                    "io.prio.class={class}. In {unit}, this value would have no effect on cgroups below \
                 {unit}"
                )
            },
        );
        notes.unit(
            part.unit,
            format!(
                "Only a service can have IOSchedulingClass=, so {unit} does not get {what}. Name the services of \
                 {unit} in the intents file."
            ),
        );
        return Vec::new();
    }
    if let Some(class) = &part.values.class {
        notes.unit(
            part.unit,
            format!(
                "systemd has no property for io.prio.class={class}. IOSchedulingClass= gives the processes of {unit} \
                 the same class, unless they change it themselves."
            ),
        );
    }
    let class = match priority.class() {
        IoClass::RealTime => "realtime",
        IoClass::BestEffort => "best-effort",
        IoClass::Idle => "idle",
        IoClass::None => return Vec::new(),
    };
    let mut properties = vec![("IOSchedulingClass", class.to_owned())];
    if priority.class() != IoClass::Idle {
        properties.push(("IOSchedulingPriority", priority.level().to_string()));
    }
    properties
}

/// Returns lines of tmpfiles.d for a cgroup that is not a systemd unit.
fn tmpfiles(part: &UnitPart<'_>, path: &str, place: &Place, notes: &mut Notes) -> Vec<String> {
    if let Some(priority) = part.unit.priority {
        notes.unit(
            part.unit,
            format!(
                "A cgroup has no I/O priority. To give its processes the I/O priority {priority}, start these \
                 processes with ionice."
            ),
        );
    }
    let Some(number) = &place.number else {
        notes.unit(
            part.unit,
            format!(
                "{path} is not a systemd unit, and {} is not on this machine, so iosched does not know the number of \
                 the device. Write the plan on the machine that has the device.",
                place.node
            ),
        );
        return Vec::new();
    };
    notes.unit(
        part.unit,
        format!(
            "{path} is not a systemd unit. systemd-tmpfiles sets the values of this cgroup only if the cgroup already \
             exists, and only while the device has the number {number}. A slice does not have these two limitations, \
             so start the processes in a slice."
        ),
    );
    let of_device = |file: &str| file != "io.prio.class";
    let line = |write: &iosched::controllers::NamedWrite| {
        let value = if of_device(&write.file) { format!("{number} {}", write.text) } else { write.text.clone() };
        let path = path.replace('\\', "\\\\");
        format!("w- /sys/fs/cgroup/{path}/{} - - - - {value}\n", write.file)
    };
    part.values.writes.iter().map(line).collect()
}

/// Adds a note that says how to start processes in a separate unit.
fn process(part: &UnitPart<'_>, name: &str, place: &Place, notes: &mut Notes) {
    let command = run_command(part, place);
    let priority = part.unit.priority.map(|priority| format!(" {}", ionice(priority))).unwrap_or_default();
    notes.unit(
        part.unit,
        format!(
            "Processes named {name} have no cgroup of their own. Start these processes in a unit: {command}{priority} \
             {name} ..."
        ),
    );
}

/// Returns the command that runs a program in a scope with a unit's properties.
pub(super) fn run_command(part: &UnitPart<'_>, place: &Place) -> String {
    let properties: String = part
        .properties(place)
        .iter()
        .map(|(name, value)| format!(" -p {}", shell(&format!("{name}={value}"))))
        .collect();
    format!("systemd-run --scope --unit={}{properties}", part.unit.name)
}

/// Returns the command that runs a program with an I/O priority.
pub(super) fn ionice(priority: IoPriority) -> String {
    match priority.class() {
        IoClass::Idle => "ionice -c 3".to_owned(),
        IoClass::RealTime => format!("ionice -c 1 -n {}", priority.level()),
        IoClass::BestEffort | IoClass::None => format!("ionice -c 2 -n {}", priority.level()),
    }
}

/// Returns the file that loads bfq early at every start, if units have weights for bfq. Without
/// this file, io.bfq.weight may not exist yet when systemd starts the units.
fn modules(parts: &Parts<'_>, place: &Place) -> Option<OutputFile> {
    let is_needed = parts.units.iter().any(|part| matches!(part.values.weight, Some(Weight::Bfq(_))));
    let path = format!("/etc/modules-load.d/iosched-{}.conf", place.disk);
    let file = is_needed.then(|| OutputFile::new(&*path, Comment::Hash, &[], "bfq\n"))?;
    Some(file.activated(vec!["modprobe bfq".to_owned()], vec![format!("rm -f {path}")]))
}

/// Returns the udev rule of the device.
fn rule(parts: &Parts<'_>, place: &Place, notes: &mut Notes) -> Option<OutputFile> {
    if parts.device.is_empty() {
        return None;
    }
    let about = format!("plan of {}", parts.plan.profile);
    let rule = place.matched.rule(&place.disk, &about, &parts.device.assigned);
    let text = format!("{}{}\n", rule.trim_end(), OfControllers::of(&parts.plan.setting).rule_parts());
    let path = format!("{RULES}/{}", rule_name(&place.disk));
    let trigger = format!("udevadm trigger --action=change --settle /dev/{}", place.disk);
    let mut undo = vec![format!("rm -f {path}"), "udevadm control --reload".to_owned()];
    if let Some(number) = place.number.as_ref().filter(|_| !parts.device.io_cost.is_empty()) {
        undo.push(format!("echo '{number} enable=0 ctrl=auto' > /sys/fs/cgroup/{IO_COST_QOS}"));
        undo.push(format!("echo '{number} ctrl=auto' > /sys/fs/cgroup/{IO_COST_MODEL}"));
    }
    if !parts.device.assigned.is_empty() {
        notes.plan(format!(
            "If you remove the udev rule, {} keeps its scheduler and attributes until the system starts again.",
            place.disk
        ));
    }
    let file = OutputFile::new(path, Comment::Hash, &notes.about(&[]), &text);
    Some(file.activated(vec!["udevadm control --reload".to_owned(), trigger], undo))
}

/// Returns the hwdb entry of io.cost.
pub(super) fn hwdb(parts: &Parts<'_>, place: &Place, notes: &mut Notes) -> Result<Vec<OutputFile>, OutputError> {
    let text: String = parts.device.io_cost.iter().map(|write| format!("{}\n", without_words(&write.text))).collect();
    let nothing = || OutputError::Nothing { form: Form::Hwdb, needed: Form::Systemd.name().to_owned() };
    let described = io_cost::read(&text).ok().and_then(|all| all.into_iter().next()).ok_or_else(nothing)?;
    let model = place.model_name.as_deref();
    if model.is_none() {
        notes.plan(
            "iosched does not know the model name of the device. Write this name into the first line instead \
            of MODEL_NAME.",
        );
    }
    let qos = described.qos.unwrap_or_else(|| {
        notes.plan("The plan has no io.cost.qos. Therefore, with this entry, io.cost does not check latencies.");
        IoCostQos { rpct: 0.0, rlat_us: 0, wpct: 0.0, wlat_us: 0, min: IoCostQos::MIN, max: IoCostQos::MAX }
    });
    notes.plan("The entry applies to every disk of this model. Only systemd 254 and later versions read the entry.");
    notes.plan("The entry sets io.cost only. Write the other parts of the plan with --write systemd.");
    let text = io_cost::hwdb(&hwdb_name(model), &described.model, &qos);
    let path = hwdb_path(model);
    let update = "systemd-hwdb update".to_owned();
    let activate = vec![update.clone(), format!("udevadm trigger --action=change --settle /dev/{}", place.disk)];
    let undo = vec![format!("rm -f {path}"), update];
    let file = OutputFile::new(path, Comment::Hash, &notes.about(&[]), &text);
    Ok(vec![file.activated(activate, undo)])
}

/// Removes the words of io.cost's files that hwdb entries cannot have.
fn without_words(text: &str) -> String {
    let words =
        text.split_whitespace().filter(|word| !["enable=", "ctrl=", "model="].iter().any(|w| word.starts_with(w)));
    words.collect::<Vec<_>>().join(" ")
}

/// Adds a note if units have different parents, because weights compare only units with one parent.
fn note_parents(parts: &Parts<'_>, notes: &mut Notes) {
    let weighted = parts.units_of(Form::Systemd).filter(|part| part.values.weight.is_some());
    let parents: Vec<(&str, String)> = weighted
        .filter_map(|part| match &part.unit.target {
            Target::Cgroup(path) => Some((&*part.unit.name, parent(path))),
            _ => None,
        })
        .collect();
    let Some((first, of_first)) = parents.first() else { return };
    for (name, of_other) in parents.iter().filter(|(_, of_other)| of_other != of_first) {
        notes.plan(format!(
            "You cannot compare the weights of {first} and {name} directly, because {first} is in {of_first} and \
             {name} is in {of_other}. The weights of these parents also count."
        ));
    }
}

/// Returns the parent of a unit's cgroup. If the path has no parent, this is the cgroup in which
/// systemd starts the unit by default.
fn parent(path: &str) -> String {
    if let Some((parent, _)) = path.rsplit_once('/') {
        return parent.rsplit('/').next().unwrap_or(parent).to_owned();
    }
    match path.strip_suffix(".slice") {
        Some(slice) => {
            slice.rsplit_once('-').map_or_else(|| "the root".to_owned(), |(above, _)| format!("{above}.slice"))
        }
        None if is_unit(path) => "system.slice".to_owned(),
        None => "the root".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parents_of_units_match_systemd() {
        for (path, expected) in [
            ("system.slice/db.service", "system.slice"),
            ("db.service", "system.slice"),
            ("backup.slice", "the root"),
            ("a-b.slice", "a.slice"),
            ("tenants/a", "tenants"),
        ] {
            assert_eq!(parent(path), expected, "{path}");
        }
    }

    #[test]
    fn priority_is_printed_as_ionice_options() {
        assert_eq!(ionice("idle".parse().unwrap()), "ionice -c 3");
        assert_eq!(ionice("rt/2".parse().unwrap()), "ionice -c 1 -n 2");
    }
}
