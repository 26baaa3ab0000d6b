//! Lasting forms of a setting. A udev rule or a profile for TuneD applies the setting at every
//! start of the machine. Some commands apply the setting at once, and other commands undo it.
//!
//! All results are text that the user reads and installs. This module writes no files.

use std::path::Path;

use serde::{Deserialize, Serialize};

use super::drop_ins::{Named, OfControllers};
use super::recorded::{Recorded, shell};
use super::units::DropIn;
use crate::attribute::{Declaration, declaration, is_same};
use crate::block::BlockDevice;
use crate::roots::{read, value};
use iosched::{Setting, SettingError, controllers};

/// The kernel resets this attribute with every change of the scheduler.
const NR_REQUESTS: &str = "nr_requests";
const SCHEDULER: &str = "scheduler";
const ELEVATOR: &str = "iosched/";

/// Lasting forms of a device's setting. Commands are for a root shell.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Lasting {
    /// Commands that apply the setting until the next start of the machine.
    pub commands: Vec<String>,
    /// Path of the udev rule.
    pub rule_path: String,
    /// The udev rule, which applies the setting whenever the device appears.
    pub rule: String,
    /// Name of the TuneD profile.
    pub profile_name: String,
    /// Path of the profile.
    pub profile_path: String,
    /// The TuneD profile, which applies the setting while the profile is active. It does not
    /// include values of controllers.
    pub profile: String,
    /// Drop-ins of systemd with the values for cgroups.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub drop_ins: Vec<DropIn>,
    /// Commands that restore the previous setting.
    pub undo: Vec<String>,
}

impl Lasting {
    /// Returns the lasting forms of `setting` on `device`, a whole disk. `recorded` contains the
    /// settings of the disk before the change.
    #[must_use]
    pub fn of(device: &BlockDevice, setting: &Setting, recorded: &Recorded) -> Self {
        let name = device.name();
        let profile_name = format!("iosched-{name}");
        let assignments = assignments(device, setting, recorded);
        let controllers = OfControllers::of(setting);
        let (node, number) = (format!("/dev/{}", device.disk_name()), device.number().to_string());
        let known = Named { node: &node, number: &number };
        let rule = rule(device, &setting.to_string(), &assignments);
        let undone = commands(device, &undo(device, setting, recorded));
        Self {
            commands: commands(device, &assignments).into_iter().chain(controllers.commands(known)).collect(),
            rule_path: format!("{RULES}/{}", rule_name(name)),
            rule: rule.trim_end().to_owned() + &controllers.rule_parts() + "\n",
            drop_ins: controllers.drop_ins(known),
            profile_path: format!("/etc/tuned/{profile_name}/tuned.conf"),
            profile: profile(device, setting, &assignments),
            profile_name,
            undo: undone.into_iter().chain(controllers.undo(known)).collect(),
        }
    }
}

impl Recorded {
    /// Returns the recorded state as a setting: the scheduler, and all its tunables whose values
    /// are not the declared default. Tunables without a declaration are left out.
    ///
    /// # Errors
    /// A value cannot be written in a setting.
    pub fn setting(&self) -> Result<Setting, SettingError> {
        let mut text = self.scheduler.clone();
        let mut separator = ':';
        for (name, value) in self.values.iter().filter(|(name, value)| self.is_changed(name, value)) {
            text.push(separator);
            text.push_str(name.strip_prefix(ELEVATOR).unwrap_or(name));
            text.push('=');
            text.push_str(value);
            separator = ',';
        }
        Setting::parse_of_kernel(&text)
    }

    /// Returns whether the name is a declared tunable with a value other than its default.
    fn is_changed(&self, name: &str, value: &str) -> bool {
        match declaration(name, &self.scheduler).filter(|_| name.starts_with(ELEVATOR)) {
            Some(known @ Declaration::Number(spec)) => {
                !is_same(Some(known), value, &spec.number(spec.default).to_string())
            }
            _ => false,
        }
    }
}

/// Attributes below `queue` and their values, in the order of writing.
type Assignments = Vec<(String, String)>;

/// Directory of an administrator's udev rules.
pub const RULES: &str = "/etc/udev/rules.d";

/// Returns the file name of a disk's rule, in udev's naming scheme.
#[must_use]
pub fn rule_name(disk: &str) -> String {
    format!("90-iosched-{disk}.rules")
}

/// Returns the udev rule that sets these attributes below `queue`, in this order, whenever the
/// device appears. `about` describes the rule.
#[must_use]
pub fn rule(device: &BlockDevice, about: &str, assignments: &[(String, String)]) -> String {
    RuleMatch::of(device).rule(device.name(), about, assignments)
}

/// Condition with which a udev rule identifies a disk.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RuleMatch {
    condition: String,
    /// Comment about the condition, if one is needed.
    note: Option<&'static str>,
}

impl RuleMatch {
    /// Returns the condition for a disk: an identifier in udev's database, or its name.
    #[must_use]
    pub fn of(device: &BlockDevice) -> Self {
        let number = device.number();
        let entry = device.roots().run(format!("udev/data/b{}:{}", number.major, number.minor));
        let database = read(&entry).unwrap_or_default();
        let property = |name: &str| {
            let found =
                database.lines().find_map(|line| line.strip_prefix("E:")?.strip_prefix(name)?.strip_prefix('='));
            // Accept only plain characters, because patterns and quotes have a meaning in a rule.
            found.filter(|text| {
                text.chars().all(|c| c.is_ascii_alphanumeric() || "_-.:".contains(c)) && !text.is_empty()
            })
        };
        for name in ["ID_WWN_WITH_EXTENSION", "ID_SERIAL", "DM_UUID", "MD_UUID"] {
            if let Some(text) = property(name) {
                return Self { condition: format!("ENV{{{name}}}==\"{text}\""), note: None };
            }
        }
        Self::named(device.disk_name())
    }

    /// Returns the condition for the disk with this kernel name, such as `sda`.
    #[must_use]
    pub fn named(disk: &str) -> Self {
        let note = "iosched can identify this device only by its name. After a restart, another device may have this \
                    name";
        Self { condition: format!("KERNEL==\"{disk}\""), note: Some(note) }
    }

    /// Returns the udev rule that sets these attributes below `queue` of the disk `name`. `about`
    /// describes the rule.
    #[must_use]
    pub fn rule(&self, name: &str, about: &str, assignments: &[(String, String)]) -> String {
        let mut rule = format!("# {about} for {name}\n");
        if let Some(note) = self.note {
            rule += &format!("# {note}\n");
        }
        let condition = &self.condition;
        rule += &format!("ACTION==\"add|change\", SUBSYSTEM==\"block\", ENV{{DEVTYPE}}==\"disk\", {condition}");
        for (name, value) in assignments {
            rule += &format!(", {ATTRIBUTE}{name}{VALUE}{value}\"");
        }
        rule + "\n"
    }
}

/// Text before the name of an attribute below `queue` in a rule. The other constant is the text
/// between the name and the value.
const ATTRIBUTE: &str = "ATTR{queue/";
const VALUE: &str = "}=\"";

/// Returns the attributes and values that a rule of [`rule`] sets, in order.
#[must_use]
pub fn assigned(rule: &str) -> Vec<(String, String)> {
    let lines = rule.lines().filter(|line| !line.starts_with('#'));
    let parts =
        lines.flat_map(|line| line.split(", ")).filter_map(|part| part.strip_prefix(ATTRIBUTE)?.strip_suffix('"'));
    parts.filter_map(|part| part.split_once(VALUE)).map(|(name, value)| (name.to_owned(), value.to_owned())).collect()
}

/// Returns the scheduler under `setting`.
fn scheduler<'s>(setting: &'s Setting, recorded: &'s Recorded) -> &'s str {
    if setting.is_present() { &recorded.scheduler } else { setting.name() }
}

fn assignments(device: &BlockDevice, setting: &Setting, recorded: &Recorded) -> Assignments {
    let scheduler = scheduler(setting, recorded);
    let assigned = setting.assignments().filter(|assignment| !controllers::is_file(assignment.name()));
    let values = assigned.map(|assignment| (full_name(device, assignment.name(), scheduler), assignment.text()));
    [(SCHEDULER.to_owned(), scheduler.to_owned())].into_iter().chain(values).collect()
}

/// Returns the assignments that undo `setting`. They include the recorded tunables with a value
/// other than the default, because a change of the scheduler resets tunables.
fn undo(device: &BlockDevice, setting: &Setting, recorded: &Recorded) -> Assignments {
    let scheduler = scheduler(setting, recorded);
    let touched: Vec<String> =
        setting.assignments().map(|assignment| full_name(device, assignment.name(), scheduler)).collect();
    let is_switched = scheduler != recorded.scheduler;
    let is_wanted = |name: &str, value: &str| {
        let declared = declaration(name, &recorded.scheduler).is_some();
        let is_tunable = name.starts_with(ELEVATOR);
        // The default of a tunable without a declaration is not known. The undo commands therefore
        // also restore the value of such a tunable.
        let lost = is_switched && is_tunable && (recorded.is_changed(name, value) || !declared);
        lost || touched.iter().any(|touched_name| touched_name == name) || (is_switched && name == NR_REQUESTS)
    };
    let values = recorded.values.iter().filter(|(name, value)| is_wanted(name, value)).cloned();
    [(SCHEDULER.to_owned(), recorded.scheduler.clone())].into_iter().chain(values).collect()
}

/// Returns the name below `queue`. A tunable of `scheduler` may be given without its directory.
fn full_name(device: &BlockDevice, name: &str, scheduler: &str) -> String {
    let tunable = format!("{ELEVATOR}{name}");
    let is_attribute = declaration(name, scheduler).is_some() || device.queue().join(name).exists();
    if declaration(&tunable, scheduler).is_some() || !is_attribute { tunable } else { name.to_owned() }
}

fn commands(device: &BlockDevice, assignments: &Assignments) -> Vec<String> {
    let command = |(name, value): &(String, String)| format!("echo {} > {}", shell(value), path(device, name));
    assignments.iter().map(command).collect()
}

/// Returns the path of an attribute on a real machine. The root of this machine's files does not
/// matter.
fn path(device: &BlockDevice, name: &str) -> String {
    format!("/sys/block/{}/queue/{name}", device.disk_name())
}

fn profile(device: &BlockDevice, setting: &Setting, assignments: &Assignments) -> String {
    let name = device.name();
    let mut profile = format!("[main]\nsummary={setting} on {name}\n");
    // The profile includes the active profile, so it extends that profile instead of replacing it.
    let active = value(&device.roots().etc(Path::new("tuned/active_profile"))).filter(|active| !active.is_empty());
    if let Some(active) = active.filter(|active| !active.contains(&format!("iosched-{name}"))) {
        profile += &format!("include={active}\n");
    }
    profile += &format!("\n[iosched-{name}]\ntype=sysfs\n");
    for (attribute, value) in assignments {
        profile += &format!("{}={value}\n", path(device, attribute));
    }
    profile
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recorded::Recorded as Machine;

    fn lasting(machine: &Machine, setting: &str) -> Lasting {
        let device = machine.device("sda");
        let recorded = Recorded {
            scheduler: "mq-deadline".to_owned(),
            values: [
                ("nr_requests", "64"),
                ("nomerges", "0"),
                ("iosched/fifo_batch", "1"),
                ("iosched/writes_starved", "2"),
            ]
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .to_vec(),
        };
        Lasting::of(&device, &Setting::parse_of_kernel(setting).unwrap(), &recorded)
    }

    #[test]
    fn undo_restores_values_lost_by_switching() {
        let machine = Machine::new();
        let of = lasting(&machine, "bfq:low_latency=0,nomerges=2");
        assert_eq!(
            of.commands,
            [
                "echo bfq > /sys/block/sda/queue/scheduler",
                "echo 0 > /sys/block/sda/queue/iosched/low_latency",
                "echo 2 > /sys/block/sda/queue/nomerges"
            ]
        );
        assert_eq!(
            of.undo,
            [
                "echo mq-deadline > /sys/block/sda/queue/scheduler",
                "echo 64 > /sys/block/sda/queue/nr_requests",
                "echo 0 > /sys/block/sda/queue/nomerges",
                "echo 1 > /sys/block/sda/queue/iosched/fifo_batch"
            ]
        );
        // If the scheduler does not change, the commands undo only the values of the setting.
        let of = lasting(&machine, "present:fifo_batch=8");
        assert_eq!(of.commands[1], "echo 8 > /sys/block/sda/queue/iosched/fifo_batch");
        assert_eq!(of.undo[1..], ["echo 1 > /sys/block/sda/queue/iosched/fifo_batch"]);
    }

    #[test]
    fn controller_settings_are_written_to_cgroups() {
        let machine = Machine::new();
        let of = lasting(&machine, "none:nomerges=2,io.max=backup:wbps=1000,io.cost.qos=enable=1");
        assert!(of.commands.iter().all(|command| !command.contains("queue/io.")), "{:?}", of.commands);
        assert_eq!(of.commands[2], "echo \"8:0 enable=1\" > /sys/fs/cgroup/io.cost.qos");
        assert_eq!(of.drop_ins[0].text, "[Service]\nIOWriteBandwidthMax=/dev/sda 1000\n");
        assert!(
            of.rule.ends_with(
                "ATTR{queue/nomerges}=\"2\", RUN+=\"/bin/sh -c 'echo %M:%m enable=1 > /sys/fs/cgroup/io.cost.qos'\"\n"
            ),
            "{}",
            of.rule
        );
        assert!(of.undo.contains(&"echo \"8:0 enable=0 ctrl=auto\" > /sys/fs/cgroup/io.cost.qos".to_owned()));
        assert!(!of.profile.contains("sys/fs/cgroup"));
    }

    #[test]
    fn rule_matches_the_serial_number_or_else_the_name() {
        let machine = Machine::new();
        let by_name = lasting(&machine, "none").rule;
        assert!(
            by_name.contains("# iosched can identify this device only by its name")
                && by_name.contains("KERNEL==\"sda\""),
            "{by_name}"
        );
        machine.write("run/udev/data/b8:0", "S:disk/by-id/x\nE:ID_SERIAL=ST1000DM003_Z1D\nE:ID_BUS=ata\n");
        let rule = lasting(&machine, "bfq:low_latency=0").rule;
        assert_eq!(
            rule.lines().last().unwrap(),
            "ACTION==\"add|change\", SUBSYSTEM==\"block\", ENV{DEVTYPE}==\"disk\", ENV{ID_SERIAL}==\"ST1000DM003_Z1D\", \
             ATTR{queue/scheduler}=\"bfq\", ATTR{queue/iosched/low_latency}=\"0\""
        );
        let assigned = assigned(&rule);
        assert_eq!(assigned[0], ("scheduler".to_owned(), "bfq".to_owned()));
        assert_eq!(assigned[1], ("iosched/low_latency".to_owned(), "0".to_owned()));
        machine.write("run/udev/data/b8:0", "E:ID_SERIAL=a\"b*\n");
        assert!(lasting(&machine, "none").rule.contains("KERNEL==\"sda\""));
    }

    #[test]
    fn profile_includes_the_active_profile() {
        let machine = Machine::new();
        machine.write("etc/tuned/active_profile", "throughput-performance\n");
        assert_eq!(
            lasting(&machine, "bfq:low_latency=0").profile,
            "[main]\nsummary=bfq:low_latency=0 on sda\ninclude=throughput-performance\n\n[iosched-sda]\ntype=sysfs\n\
             /sys/block/sda/queue/scheduler=bfq\n/sys/block/sda/queue/iosched/low_latency=0\n"
        );
        machine.write("etc/tuned/active_profile", "iosched-sda\n");
        assert!(!lasting(&machine, "none").profile.contains("include"));
    }

    #[test]
    fn recorded_setting_lists_non_default_tunables() {
        let recorded = Recorded {
            scheduler: "mq-deadline".to_owned(),
            values: [
                ("nr_requests", "64"),
                ("iosched/fifo_batch", "1"),
                ("iosched/writes_starved", "2"),
                ("iosched/new", "7"),
            ]
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .to_vec(),
        };
        assert_eq!(recorded.setting().unwrap().to_string(), "mq-deadline:fifo_batch=1");
    }
}
