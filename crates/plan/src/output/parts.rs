//! The setting of a plan, split into the part of the device and the parts of the units.

use std::fmt;

use iosched::Setting;
use iosched::controllers::{self, NamedWrite};
use iosched_kernel::settings::units::Property;

use super::{Form, Notes, OutputError, Place};
use crate::plan::{Plan, UnitPlan};
use crate::target::Target;

pub(super) const IO_COST_MODEL: &str = "io.cost.model";
pub(super) const IO_COST_QOS: &str = "io.cost.qos";
const BFQ: &str = "bfq";
const ELEVATOR: &str = "iosched/";

/// The parts of a plan's setting.
pub(super) struct Parts<'p> {
    pub(super) plan: &'p Plan,
    pub(super) device: DevicePart,
    pub(super) units: Vec<UnitPart<'p>>,
}

/// The part of the device.
#[derive(Default)]
pub(super) struct DevicePart {
    /// Attributes below `queue` and their values, in the order of writing. The scheduler comes
    /// first, unless the plan keeps the present one.
    pub(super) assigned: Vec<(String, String)>,
    /// Values of io.cost.
    pub(super) io_cost: Vec<NamedWrite>,
}

/// A unit of a plan with its values.
pub(super) struct UnitPart<'p> {
    pub(super) unit: &'p UnitPlan,
    pub(super) values: Values,
}

/// Values of a unit's controllers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Values {
    /// Weight, if the plan sets one.
    pub(super) weight: Option<Weight>,
    pub(super) limits: Limits,
    /// Target of io.latency, us.
    pub(super) latency_us: Option<u64>,
    /// Value of io.prio.class.
    pub(super) class: Option<String>,
    /// The values in the form of the setting, for the files of the unit's cgroup.
    pub(super) writes: Vec<NamedWrite>,
}

/// Weight of a unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Weight {
    /// Weight of io.cost, 1 to 10000.
    IoCost(u32),
    /// Weight of bfq, 1 to 1000.
    Bfq(u32),
}

impl Weight {
    pub(super) fn value(self) -> u32 {
        match self {
            Self::IoCost(weight) | Self::Bfq(weight) => weight,
        }
    }
}

/// Limits of io.max. `None` is no limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Limits {
    /// Bytes read per second.
    pub(super) rbps: Option<u64>,
    /// Bytes written per second.
    pub(super) wbps: Option<u64>,
    /// Reads per second.
    pub(super) riops: Option<u64>,
    /// Writes per second.
    pub(super) wiops: Option<u64>,
}

impl Limits {
    pub(super) fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Returns the limits with the given names, in the order rbps, wbps, riops, wiops.
    pub(super) fn named<'n>(&self, names: [&'n str; 4]) -> impl Iterator<Item = (&'n str, u64)> {
        let values = [self.rbps, self.wbps, self.riops, self.wiops];
        names.into_iter().zip(values).filter_map(|(name, value)| Some((name, value?)))
    }
}

impl<'p> Parts<'p> {
    /// Splits the setting of a plan.
    pub(super) fn of(plan: &'p Plan) -> Result<Self, OutputError> {
        let setting = &plan.setting;
        let serves = plan.units.iter().any(|unit| matches!(unit.target, Target::Export(_)));
        // A served disk can use all schedulers.
        if !serves && !setting.is_in_linux() && setting.registered().is_ok_and(|known| known.out_of_tree.is_none()) {
            return Err(OutputError::NotInLinux { scheduler: setting.name().to_owned() });
        }
        let writes = writes(setting);
        for write in writes.iter().filter(|write| !write.is_of_device()) {
            if !plan.units.iter().any(|unit| unit.cgroup == write.cgroup) {
                let known: Vec<&str> = plan.units.iter().map(|unit| &*unit.cgroup).collect();
                return Err(OutputError::UnknownCgroup { cgroup: write.cgroup.clone(), known: known.join(", ") });
            }
        }
        let is_bfq = setting.name() == BFQ;
        let part = |unit: &'p UnitPlan| {
            check_name(unit)?;
            let writes = writes.iter().filter(|write| !write.is_of_device() && write.cgroup == unit.cgroup);
            Ok(UnitPart { unit, values: Values::of(writes.cloned().collect(), is_bfq) })
        };
        let units = plan.units.iter().map(part).collect::<Result<_, _>>()?;
        Ok(Self { plan, device: DevicePart::of(setting, &writes), units })
    }

    /// Returns the units whose output format is `form`.
    pub(super) fn units_of(&self, form: Form) -> impl Iterator<Item = &UnitPart<'p>> {
        self.units.iter().filter(move |part| Form::of(&part.unit.target) == form)
    }
}

/// Returns the values of a setting for files of cgroups.
fn writes(setting: &Setting) -> Vec<NamedWrite> {
    let files = setting.attributes().iter().filter(|assignment| controllers::is_file(assignment.name()));
    // The parser of a setting has accepted all values, so parsing cannot fail here.
    files.filter_map(|file| NamedWrite::parse(file.name(), &file.text()).ok()).flatten().collect()
}

/// Checks that the name of a unit's target can be written to every file.
fn check_name(unit: &UnitPlan) -> Result<(), OutputError> {
    let wrong = |name: &str, allowed: &str| {
        let character = name.chars().find(|c| !(c.is_ascii_alphanumeric() || allowed.contains(*c)));
        character.map(|character| OutputError::Name { unit: unit.name.clone(), name: name.to_owned(), character })
    };
    let found = match &unit.target {
        Target::Cgroup(path) => wrong(path, "_.-@:\\/"),
        Target::Container(name)
        | Target::Libvirt(name)
        | Target::Qemu(name)
        | Target::Export(name)
        | Target::Process(name) => wrong(name, "_.-"),
        Target::Proxmox(_) | Target::Kubernetes(_) => None,
    };
    // Names of files, classes and scopes contain the name of the unit.
    let found = found.or_else(|| wrong(&unit.name, "_.-@"));
    found.map_or(Ok(()), Err)
}

impl DevicePart {
    fn of(setting: &Setting, writes: &[NamedWrite]) -> Self {
        let scheduler = (!setting.is_present()).then(|| ("scheduler".to_owned(), setting.name().to_owned()));
        let tunable = |name: &str| format!("{ELEVATOR}{}", name.strip_prefix(ELEVATOR).unwrap_or(name));
        let tunables = setting.tunables().iter().map(|value| (tunable(value.name()), value.text()));
        let attributes = setting.attributes().iter().filter(|value| !controllers::is_file(value.name()));
        let attributes = attributes.map(|value| (value.name().to_owned(), value.text()));
        let io_cost = writes.iter().filter(|write| write.is_of_device()).cloned().collect();
        Self { assigned: scheduler.into_iter().chain(tunables).chain(attributes).collect(), io_cost }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.assigned.is_empty() && self.io_cost.is_empty()
    }
}

impl fmt::Display for DevicePart {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let assigned = self.assigned.iter().map(|(name, value)| format!("{name}={value}"));
        let io_cost = self.io_cost.iter().map(|write| write.file.clone());
        f.write_str(&assigned.chain(io_cost).collect::<Vec<_>>().join(", "))
    }
}

impl Values {
    fn of(writes: Vec<NamedWrite>, is_bfq: bool) -> Self {
        let mut values = Self::default();
        let (mut io_cost, mut bfq) = (None, None);
        for write in &writes {
            match &*write.file {
                "io.weight" => io_cost = last_number(&write.text).map(Weight::IoCost),
                "io.bfq.weight" => bfq = last_number(&write.text).map(Weight::Bfq),
                "io.prio.class" => values.class = Some(write.text.clone()),
                _ => write.text.split_whitespace().for_each(|word| values.word(word)),
            }
        }
        // Only one of the two weights has an effect.
        values.weight = if is_bfq { bfq.or(io_cost) } else { io_cost.or(bfq) };
        Self { writes, ..values }
    }

    fn word(&mut self, word: &str) {
        let Some((name, value)) = word.split_once('=') else { return };
        let number = value.parse().ok();
        match name {
            "rbps" => self.limits.rbps = number,
            "wbps" => self.limits.wbps = number,
            "riops" => self.limits.riops = number,
            "wiops" => self.limits.wiops = number,
            "target" => self.latency_us = number,
            _ => {}
        }
    }
}

fn last_number(text: &str) -> Option<u32> {
    text.split_whitespace().next_back()?.parse().ok()
}

impl UnitPart<'_> {
    /// Returns the properties of a systemd unit that set this unit's weight, limits and latency
    /// target.
    pub(super) fn properties(&self, place: &Place) -> Vec<Property> {
        use iosched_kernel::settings::units::{io_weight_for_bfq, properties};
        let weight = self.values.weight.map(|weight| match weight {
            Weight::IoCost(weight) => weight,
            Weight::Bfq(weight) => io_weight_for_bfq(weight),
        });
        let weight = weight.map(|weight| ("IOWeight", weight.to_string()));
        let others = self.values.writes.iter().filter(|write| matches!(&*write.file, "io.max" | "io.latency"));
        let others = others.flat_map(|write| properties(&write.file, &write.text, &place.node)).flatten();
        weight.into_iter().chain(others).collect()
    }

    /// Adds notes about a latency target, an I/O priority class and an I/O priority. Use it for an
    /// output format that cannot express them.
    pub(super) fn note_missing(&self, program: &str, remedy: &str, notes: &mut Notes) {
        if let Some(target) = self.values.latency_us {
            notes.unit(
                self.unit,
                format!("{program} cannot express the latency target of {target} us (io.latency). {remedy}"),
            );
        }
        if let Some(class) = &self.values.class {
            notes.unit(self.unit, format!("{program} cannot express io.prio.class={class}. {remedy}"));
        }
        if let Some(priority) = self.unit.priority {
            notes.unit(self.unit, format!("{program} cannot express the I/O priority {priority}. {remedy}"));
        }
    }
}
