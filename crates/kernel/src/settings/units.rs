//! Values of a cgroup's files as properties of a systemd unit, and the unit's drop-in.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::recorded::shell;

/// Suffixes of systemd units that have cgroups.
const UNITS: [&str; 3] = [".service", ".slice", ".scope"];
/// Default weight. Up to this weight, the weights for io.cost and bfq are the same.
const WEIGHT_USUAL: u32 = 100;
/// Step of `IOWeight=` above [`WEIGHT_USUAL`]: each step increases bfq's weight by 1.
const BFQ_SCALE: u32 = 11;

/// A property of a unit with its value.
pub type Property = (&'static str, String);

/// Drop-in file that sets properties of a unit of systemd.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct DropIn {
    /// Name of the unit.
    pub unit: String,
    /// Path of the drop-in.
    pub path: String,
    /// Contents of the drop-in.
    pub text: String,
}

impl DropIn {
    /// File name of a drop-in, in a directory of its unit.
    pub const FILE: &str = "50-iosched.conf";

    /// Returns the drop-in that gives `unit` these properties whenever the unit starts.
    #[must_use]
    pub fn of(unit: &str, properties: &[Property]) -> Self {
        let lines: String =
            properties.iter().map(|(name, value)| format!("{name}={}\n", value.replace('%', "%%"))).collect();
        let text = format!("[{}]\n{lines}", section(unit));
        Self { path: format!("/etc/systemd/system/{unit}.d/{}", Self::FILE), unit: unit.to_owned(), text }
    }

    /// Returns the path of the drop-in, relative to a directory of units.
    #[must_use]
    pub fn below_units(&self) -> PathBuf {
        Path::new(&format!("{}.d", self.unit)).join(Self::FILE)
    }
}

/// Returns the io.bfq.weight that systemd writes for an `IOWeight=`.
#[must_use]
pub const fn bfq_weight_of(io_weight: u32) -> u32 {
    if io_weight <= WEIGHT_USUAL { io_weight } else { WEIGHT_USUAL + (io_weight - WEIGHT_USUAL) / BFQ_SCALE }
}

/// Returns the `IOWeight=` for which systemd writes this io.bfq.weight.
#[must_use]
pub const fn io_weight_for_bfq(bfq_weight: u32) -> u32 {
    if bfq_weight <= WEIGHT_USUAL { bfq_weight } else { WEIGHT_USUAL + (bfq_weight - WEIGHT_USUAL) * BFQ_SCALE }
}

/// Returns whether the last part of the path of a cgroup is the name of a systemd unit.
#[must_use]
pub fn is_unit(cgroup: &str) -> bool {
    let name = cgroup.rsplit('/').next().unwrap_or_default();
    UNITS.iter().any(|suffix| name.len() > suffix.len() && name.ends_with(suffix))
}

/// Returns the unit of a cgroup. A name without a unit's suffix is a service.
#[must_use]
pub fn unit_of(cgroup: &str) -> String {
    let name = cgroup.trim_matches('/').rsplit('/').next().unwrap_or_default();
    match name {
        "" => "-.slice".to_owned(),
        _ if is_unit(name) => name.to_owned(),
        _ => format!("{name}.service"),
    }
}

fn section(unit: &str) -> &'static str {
    match unit.rsplit_once('.') {
        Some((_, "slice")) => "Slice",
        Some((_, "scope")) => "Scope",
        _ => "Service",
    }
}

/// Converts a value of a cgroup's file to properties of systemd. `node` is the device file. An item
/// is `None` if systemd has no property for a word of the value.
pub fn properties<'v>(file: &'v str, text: &'v str, node: &'v str) -> impl Iterator<Item = Option<Property>> + 'v {
    text.split_whitespace().map(move |word| property(file, word, node))
}

fn property(file: &str, word: &str, node: &str) -> Option<Property> {
    match file {
        "io.weight" => return word.parse::<u32>().ok().map(|weight| ("IOWeight", weight.to_string())),
        "io.bfq.weight" => {
            return word.parse().ok().map(|weight| ("IOWeight", io_weight_for_bfq(weight).to_string()));
        }
        _ => {}
    }
    let (name, value) = word.split_once('=')?;
    let property = match name {
        "rbps" => "IOReadBandwidthMax",
        "wbps" => "IOWriteBandwidthMax",
        "riops" => "IOReadIOPSMax",
        "wiops" => "IOWriteIOPSMax",
        "target" => return Some(("IODeviceLatencyTargetSec", format!("{node} {value}us"))),
        _ => return None,
    };
    let value = if value == "max" { "infinity" } else { value };
    Some((property, format!("{node} {value}")))
}

/// Returns the command that gives a unit these properties until the next start of the system.
#[must_use]
pub fn set_command(unit: &str, properties: &[Property]) -> String {
    let all: Vec<String> = properties.iter().map(|(name, value)| format!("\"{name}={value}\"")).collect();
    format!("systemctl set-property --runtime {} {}", shell(unit), all.join(" "))
}

/// Returns the command that resets these properties of a unit.
#[must_use]
pub fn reset_command(unit: &str, properties: &[Property]) -> String {
    let mut names: Vec<&str> = properties.iter().map(|property| property.0).collect();
    names.dedup();
    let all: Vec<String> = names.iter().map(|name| format!("{name}=")).collect();
    format!("systemctl set-property --runtime {} {}", shell(unit), all.join(" "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bfq_weights_survive_the_scaling_of_systemd() {
        for weight in 1..=1000 {
            assert_eq!(bfq_weight_of(io_weight_for_bfq(weight)), weight);
        }
        assert_eq!((bfq_weight_of(10_000), io_weight_for_bfq(200)), (1000, 1200));
        assert_eq!(property("io.bfq.weight", "200", "/dev/sda"), Some(("IOWeight", "1200".to_owned())));
    }

    #[test]
    fn units_are_recognised_by_their_suffix() {
        assert!(is_unit("system.slice/db.service") && is_unit("a.slice") && is_unit("qemu.slice/101.scope"));
        assert!(!is_unit("tenants/a") && !is_unit(".service") && !is_unit("db.service/worker"));
        assert_eq!((unit_of("db"), unit_of("/")), ("db.service".to_owned(), "-.slice".to_owned()));
    }

    #[test]
    fn percent_signs_are_escaped_for_systemd() {
        let drop_in = DropIn::of("a.slice", &[("IOReadIOPSMax", "/dev/disk/by-id/50%d 7".to_owned())]);
        assert_eq!(drop_in.text, "[Slice]\nIOReadIOPSMax=/dev/disk/by-id/50%%d 7\n");
    }

    #[test]
    fn values_without_a_systemd_property_give_none() {
        let all: Vec<_> = properties("io.prio.class", "idle", "/dev/sda").collect();
        assert_eq!(all, [None]);
    }
}
