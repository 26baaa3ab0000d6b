//! Findings about limits and weights of cgroups for a disk, and whether they are in force.
//! docs/controllers.md describes each of them. Source: Documentation/admin-guide/cgroup-v2.rst of
//! Linux 6.12.

use super::bfq;
use super::finding::{Finding, Id, Sure};
use super::groups::{Cost, Group, named};
use super::ionice::{self, Looks};
use super::snapshot::{Disk, Layer, Snapshot};

/// State of io.cost on a disk.
#[derive(Clone, Copy, Debug)]
pub(super) enum Costing<'m> {
    /// io.cost is on.
    On(&'m Cost),
    /// io.cost is off.
    Off,
    /// Only the root of the tree has the setting, and the root is not visible here.
    Unknown,
}

/// Returns the state of io.cost on a disk.
pub(super) fn costing<'m>(machine: &'m Snapshot, disk: &Disk) -> Costing<'m> {
    let Some(unified) = machine.cgroups.unified.as_ref().filter(|unified| unified.has_io) else { return Costing::Off };
    match &unified.cost {
        Some(costs) => {
            let cost = costs.iter().find(|cost| cost.number == disk.number && cost.is_enabled);
            cost.map_or(Costing::Off, Costing::On)
        }
        None if unified.is_part => Costing::Unknown,
        None => Costing::Off,
    }
}

/// Returns the findings about a disk.
pub(super) fn findings(machine: &Snapshot, disk: &Disk) -> Vec<Finding> {
    let mut found = Vec::new();
    for group in &machine.cgroups.groups {
        found.extend(limits(group, disk));
        found.extend(latency(group, disk));
    }
    let by_kernel = written_by_kernel(machine, disk);
    if disk.scheduler.is_some() {
        found.extend(io_cost(machine, disk));
        found.extend(io_weight(machine, disk));
        found.extend(bfq_weight(machine, disk));
        if disk.has_scheduler("bfq") && !matches!(costing(machine, disk), Costing::On(_)) {
            found.extend(bfq::scaled(machine, disk));
            found.extend(bfq::device_weight_missing(machine, disk));
        }
        found.extend(prio_class(machine, disk));
    }
    found.into_iter().map(|finding| but_for(&by_kernel, finding)).collect()
}

/// Returns the devices above a disk for which kernel threads send the writes of all processes.
fn written_by_kernel(machine: &Snapshot, disk: &Disk) -> Vec<String> {
    let mut above = machine.above(&disk.name);
    above.retain(|device| device.layer.as_ref().is_some_and(Layer::is_written_by_kernel));
    above.into_iter().map(|device| device.name.clone()).collect()
}

/// Adds a sentence to a finding about settings of groups: these settings do not hold for writes by
/// kernel threads.
fn but_for(by_kernel: &[String], finding: Finding) -> Finding {
    let is_in_force = matches!(
        finding.id,
        Id::IoMaxSet | Id::IoLatencySet | Id::IoWeightInForce | Id::BfqWeightInForce | Id::IoPrioClassInForce
    );
    if by_kernel.is_empty() || !is_in_force {
        return finding;
    }
    let through = by_kernel.join(", ");
    let meaning = format!(
        "{}. Writes through {through} do not count for any cgroup, because a kernel thread sends these writes",
        finding.meaning
    );
    Finding { meaning, sure: Sure::Likely, ..finding }
}

fn limits(group: &Group, disk: &Disk) -> Vec<Finding> {
    let of_disk = |limits: &[(_, String)]| {
        limits.iter().find(|(number, _)| *number == disk.number).map(|(_, words)| words.clone())
    };
    let name = &group.name;
    let max = of_disk(&group.max).map(|words| {
        let words: Vec<&str> = words.split_whitespace().filter(|word| !word.ends_with("=max")).collect();
        let words = words.join(" ");
        let meaning = format!("{name} is limited to {words} on this disk, even when no other process uses the disk");
        Finding::note(Id::IoMaxSet, Some(&disk.name), format!("{}/io.max", group.directory), meaning)
    });
    let throttle = of_disk(&group.throttle).map(|words| {
        let meaning = format!(
            "{name} is limited to {words} on this disk. Buffered writes do not count, because version 1 of cgroups \
             does not know which process made them"
        );
        let file = format!("{}/blkio.throttle.*_device", group.directory);
        Finding::note(Id::BlkioThrottleSet, Some(&disk.name), file, meaning)
    });
    max.into_iter().chain(throttle).collect()
}

fn latency(group: &Group, disk: &Disk) -> Option<Finding> {
    let (_, target_us) = group.latency.iter().find(|(number, _)| *number == disk.number)?;
    let (name, file) = (&group.name, format!("{}/io.latency", group.directory));
    let note = |id, meaning: String| Finding::note(id, Some(&disk.name), file.clone(), meaning);
    if disk.scheduler.is_none() {
        let meaning = format!(
            "the latency target of {name} ({target_us} us) does nothing on this device. io.latency acts on request \
             queues, and this device has no request queue. Set the target for the disks below this device"
        );
        return Some(note(Id::IoLatencyWithoutQueue, meaning).matters().sure(Sure::Likely));
    }
    let bad = match disk.is_rotational {
        Some(true) => "the mean latency in a time window exceeds the target (the rule for rotating disks)",
        _ => "at least a tenth of the I/Os in a time window take longer than the target",
    };
    let meaning = format!(
        "{name} has a latency target of {target_us} us. Siblings that have a longer target or no target get fewer \
         I/Os in flight when {bad}"
    );
    Some(note(Id::IoLatencySet, meaning))
}

fn io_cost(machine: &Snapshot, disk: &Disk) -> Vec<Finding> {
    let (Costing::On(cost), Some(unified)) = (costing(machine, disk), &machine.cgroups.unified) else {
        return Vec::new();
    };
    let note = |id, file: &str, meaning: String| {
        Finding::note(id, Some(&disk.name), format!("{}/{file}", unified.root), meaning)
    };
    let latency = match cost.looks_at_latency {
        true => "io.cost slows the disk down when requests miss the latency targets",
        false => {
            "io.cost has no latency targets, so it slows the disk down only when all tags of the disk are in \
            use"
        }
    };
    let meaning = format!("io.cost is on. Cgroups share this disk by io.weight, and {latency}");
    let mut found = vec![note(Id::IoCostOn, "io.cost.qos", meaning)];
    if cost.has_default_model {
        let meaning = "io.cost.model has no costs for this disk, so the kernel guesses the cost of a bio from the \
            kind of disk. If the real disk is faster, weights lose their effect";
        found.push(note(Id::IoCostDefaultModel, "io.cost.model", meaning.to_owned()).sure(Sure::Likely));
    }
    found
}

/// Returns whether a finding about settings of all disks is reported for this disk. It is not
/// reported for loop devices, because a machine may have dozens of them.
fn is_reported(disk: &Disk) -> bool {
    !disk.layer.as_ref().is_some_and(Layer::is_loop)
}

/// Returns the groups with a weight on the disk, and their weights.
fn weighted<'m>(
    machine: &'m Snapshot,
    disk: &Disk,
    of: impl Fn(&Group) -> Option<&super::Weights>,
) -> Vec<(&'m Group, u32)> {
    let on = |group: &'m Group| {
        let weights = of(group)?;
        let is_named = weights.on_disks.iter().any(|(number, _)| *number == disk.number);
        weights.on(disk.number).filter(|_| is_named || is_reported(disk)).map(|weight| (group, weight))
    };
    machine.cgroups.groups.iter().filter_map(on).collect()
}

fn io_weight(machine: &Snapshot, disk: &Disk) -> Option<Finding> {
    let mut groups = weighted(machine, disk, |group| group.weight.as_ref());
    let note = |id, groups: &[(&Group, u32)], meaning: String| {
        let file = groups.first().map_or_else(String::new, |(group, _)| format!("{}/io.weight", group.directory));
        Finding::note(id, Some(&disk.name), file, meaning)
    };
    let is_bfq = disk.has_scheduler("bfq");
    let costing = costing(machine, disk);
    if is_bfq && !matches!(costing, Costing::On(_)) {
        // `bfq_weight` and `bfq::device_weight_missing` report these groups.
        groups.retain(|(group, _)| {
            let is_in_force = group.bfq_weight.as_ref().and_then(|weights| weights.on(disk.number)).is_some();
            !is_in_force && !bfq::lacks_device_weight(group, disk)
        });
    }
    if groups.is_empty() {
        return None;
    }
    let names = named(&groups);
    match costing {
        Costing::On(_) => {
            let meaning = format!("io.weight takes effect, because io.cost is on for this disk ({names})");
            Some(note(Id::IoWeightInForce, &groups, meaning))
        }
        Costing::Unknown => {
            let meaning = format!(
                "io.weight ({names}) has an effect only if io.cost is on for this disk. From inside a container, \
                 iosched cannot see whether io.cost is on"
            );
            Some(note(Id::IoWeightUnknown, &groups, meaning).sure(Sure::CannotKnow))
        }
        Costing::Off => {
            let why = if is_bfq { "bfq uses only io.bfq.weight" } else { "bfq is not the scheduler" };
            let meaning = format!(
                "io.weight does nothing on this disk ({names}), because io.cost is off for this disk, and {why}"
            );
            let finding = note(Id::IoWeightIgnored, &groups, meaning).matters();
            Some(match weight_remedy(machine, disk, &groups) {
                Some(command) => finding.remedy(command),
                None => finding,
            })
        }
    }
}

/// Proposes bfq if all groups also have a weight for bfq. Otherwise, proposes io.cost.
fn weight_remedy(machine: &Snapshot, disk: &Disk, groups: &[(&Group, u32)]) -> Option<String> {
    let has_bfq = disk.schedulers.iter().any(|name| name == "bfq") && !disk.is_nvme();
    let have_both = groups.iter().all(|(group, _)| group.bfq_weight.is_some());
    if has_bfq && have_both {
        return Some(format!("iosched set {} scheduler=bfq", disk.name));
    }
    machine.cgroups.unified.as_ref().filter(|unified| unified.cost.is_some())?;
    Some(format!("iosched set {} cgroup/io.cost.qos=enable=1", disk.name))
}

fn bfq_weight(machine: &Snapshot, disk: &Disk) -> Option<Finding> {
    let mut groups = weighted(machine, disk, |group| group.bfq_weight.as_ref());
    let is_bfq = disk.has_scheduler("bfq");
    if !is_bfq {
        // systemd sets both weights. If a group has both, `io_weight` reports the group.
        groups.retain(|(group, _)| group.weight.as_ref().and_then(|weights| weights.on(disk.number)).is_none());
    }
    let (first, _) = groups.first()?;
    let names = named(&groups);
    let file = format!("{}/io.bfq.weight", first.directory);
    let note = |id, meaning: String| Finding::note(id, Some(&disk.name), file, meaning);
    if is_bfq {
        return Some(note(
            Id::BfqWeightInForce,
            format!("io.bfq.weight takes effect, because the scheduler of this disk is bfq ({names})"),
        ));
    }
    let meaning =
        format!("io.bfq.weight does nothing on this disk ({names}), because the scheduler of this disk is not bfq");
    let finding = note(Id::BfqWeightIgnored, meaning).matters();
    let has_bfq = disk.schedulers.iter().any(|name| name == "bfq");
    Some(if has_bfq { finding.remedy(format!("iosched set {} scheduler=bfq", disk.name)) } else { finding })
}

fn prio_class(machine: &Snapshot, disk: &Disk) -> Option<Finding> {
    let of_group = |group| Some((group, Group::prio_class(group)?));
    let groups: Vec<(&Group, &str)> = machine.cgroups.groups.iter().filter_map(of_group).collect();
    let (first, _) = groups.first().filter(|_| is_reported(disk))?;
    let names = named(&groups);
    let note = |id, meaning: String| {
        Finding::note(id, Some(&disk.name), format!("{}/io.prio.class", first.directory), meaning)
    };
    let scheduler = disk.scheduler.as_deref().unwrap_or_default();
    match ionice::looks(machine, disk)? {
        Looks::Nowhere if disk.drive_priority.is_none() => {
            let meaning = format!(
                "io.prio.class does nothing on this disk ({names}), because the scheduler of this disk is {scheduler}"
            );
            let finding = note(Id::IoPrioClassIgnored, meaning).matters();
            Some(match ionice::remedy(disk) {
                Some(command) => finding.remedy(command),
                None => finding,
            })
        }
        Looks::Nowhere => None,
        Looks::AtClasses | Looks::AtBoth => {
            let meaning = format!("io.prio.class takes effect ({names}), because {scheduler} uses the class");
            Some(note(Id::IoPrioClassInForce, meaning))
        }
    }
}
