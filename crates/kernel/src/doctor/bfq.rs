//! Weights of units under bfq.
//!
//! systemd writes the `IOWeight=` of a unit to io.weight, and for bfq to io.bfq.weight. The maximum
//! of io.bfq.weight is 1,000, and the maximum of io.weight is 10,000. systemd writes weights up to
//! 100 unchanged. It scales the range from 100 to 10,000 to the range from 100 to 1,000 (systemd
//! issue 27622). It writes `IODeviceWeight=` only to io.weight (systemd issue 34219).

use super::finding::{Finding, Id, Sure};
use super::groups::{Group, named};
use super::snapshot::{Disk, Snapshot};
use crate::settings::units::{bfq_weight_of as written, io_weight_for_bfq as asking};

/// Default weight. Up to this weight, systemd writes the same value to both files.
const USUAL: u32 = 100;
/// Largest weight of bfq.
const BFQ_MAX: u32 = 1000;

/// A group with its configured `IOWeight=` and its weight in bfq.
struct Scaled<'m> {
    group: &'m Group,
    configured: u32,
    has: u32,
}

impl Scaled<'_> {
    fn parent(&self) -> &str {
        self.group.directory.rsplit_once('/').map_or("", |(parent, _)| parent)
    }
}

/// Reports weights that systemd has scaled down, and the shares that result.
pub(super) fn scaled<'m>(machine: &'m Snapshot, disk: &Disk) -> Option<Finding> {
    let scaled = |group: &'m Group| {
        let Group { weight: Some(weight), bfq_weight, .. } = group else { return None };
        // The finding about `IODeviceWeight=` is separate.
        let configured = weight.usual;
        let has = bfq_weight.as_ref().map_or(USUAL, |weight| weight.on(disk.number).unwrap_or(USUAL));
        Some(Scaled { group, configured, has })
    };
    let all: Vec<Scaled<'_>> = machine.cgroups.groups.iter().filter_map(scaled).collect();
    let is_scaled = |unit: &&Scaled<'_>| unit.configured > USUAL && unit.has == written(unit.configured);
    let groups: Vec<&Scaled<'_>> = all.iter().filter(is_scaled).collect();
    let first = groups.first()?;
    let numbers: Vec<(&Group, String)> =
        groups.iter().map(|unit| (unit.group, format!("IOWeight={} became {}", unit.configured, unit.has))).collect();
    let (with, configured, has) = beside(first, &all);
    let meaning = format!(
        "systemd reduces an IOWeight= above {USUAL} when it writes io.bfq.weight ({}). If {} and {with} are \
         always busy, they share the disk {} instead of {}. systemd does not reduce weights up to {USUAL}. {}",
        named(&numbers),
        first.group.name,
        shares(has),
        shares(configured),
        lasting(&groups)
    );
    let file = format!("{}/io.bfq.weight", first.group.directory);
    let finding = Finding::note(Id::BfqWeightScaled, Some(&disk.name), &file, meaning).matters();
    // The remedy must set all weights, because only their ratio matters.
    let write = |unit: &&Scaled<'_>| format!("echo {} > '{}/io.bfq.weight'", unit.configured, unit.group.directory);
    let is_possible = groups.iter().all(|unit| unit.configured <= BFQ_MAX);
    Some(if is_possible { finding.remedy(groups.iter().map(write).collect::<Vec<_>>().join(" && ")) } else { finding })
}

/// Returns the name of a sibling with another weight, the configured weights of both units, and
/// their weights in bfq. If there is no such sibling, the second unit is a unit without a weight.
fn beside(scaled: &Scaled<'_>, all: &[Scaled<'_>]) -> (String, [u32; 2], [u32; 2]) {
    let is_sibling = |other: &&Scaled<'_>| other.parent() == scaled.parent() && other.configured != scaled.configured;
    match all.iter().find(is_sibling) {
        Some(other) => (other.group.name.clone(), [scaled.configured, other.configured], [scaled.has, other.has]),
        None => ("a sibling without a weight".to_owned(), [scaled.configured, USUAL], [scaled.has, USUAL]),
    }
}

/// Formats the shares of two weights in per cent: `48:52`.
fn shares([one, other]: [u32; 2]) -> String {
    let sum = u64::from(one) + u64::from(other);
    let percent = (u64::from(one) * 200 + sum) / (2 * sum).max(1);
    format!("{percent}:{}", 100 - percent)
}

/// Describes a lasting way to get the configured weights.
fn lasting(groups: &[&Scaled<'_>]) -> String {
    if groups.iter().any(|unit| unit.configured > BFQ_MAX) {
        return format!(
            "bfq accepts no weight above {BFQ_MAX}: divide all weights by the same number, so that no weight exceeds \
             {USUAL}"
        );
    }
    let settings: Vec<(&Group, String)> =
        groups.iter().map(|unit| (unit.group, format!("IOWeight={}", asking(unit.configured)))).collect();
    format!(
        "Each time systemd applies the unit, systemd overwrites io.bfq.weight. To keep the weights under bfq, set \
         {}. Or divide all weights by the same number, so that no weight exceeds {USUAL}",
        named(&settings)
    )
}

/// Returns whether a group has an io.weight for this disk, and no io.bfq.weight for this disk.
pub(super) fn lacks_device_weight(group: &Group, disk: &Disk) -> bool {
    let names = |weights: Option<&super::Weights>| {
        weights.is_some_and(|weights| weights.on_disks.iter().any(|(number, _)| *number == disk.number))
    };
    names(group.weight.as_ref()) && !names(group.bfq_weight.as_ref())
}

/// Reports weights of one disk that systemd does not write for bfq.
pub(super) fn device_weight_missing(machine: &Snapshot, disk: &Disk) -> Option<Finding> {
    let of_disk =
        |group: &Group| group.weight.as_ref()?.on_disks.iter().find(|(number, _)| *number == disk.number).copied();
    let groups = machine.cgroups.groups.iter().filter(|group| lacks_device_weight(group, disk));
    let groups: Vec<(&Group, u32)> = groups.filter_map(|group| Some((group, of_disk(group)?.1))).collect();
    let (first, weight) = groups.first()?;
    let meaning = format!(
        "bfq does not use the io.weight that is set for this disk ({}), because systemd does not write \
         IODeviceWeight= to io.bfq.weight. Write the weight to io.bfq.weight yourself. To write the weight at \
         every start of the unit, use ExecStartPost=. Or set IOWeight= instead",
        named(&groups)
    );
    let file = format!("{}/io.bfq.weight", first.directory);
    let finding = Finding::note(Id::BfqDeviceWeightMissing, Some(&disk.name), &file, meaning).matters();
    let finding = finding.sure(Sure::Certain);
    // Weights of bfq end at 1,000.
    Some(if *weight <= BFQ_MAX {
        finding.remedy(format!("echo '{}:{} {weight}' > '{file}'", disk.number.major, disk.number.minor))
    } else {
        finding
    })
}
