//! Finds the requests of a unit.

use iosched_kernel::observe::{GroupIo, Operation, Owner, Sample};
use iosched_numbers::Histogram;

use crate::goal::Operation as Wanted;
use crate::plan::UnitPlan;
use crate::target::{QosClass, Target};

/// The observed values of a unit.
#[derive(Clone, Debug, Default)]
pub(super) struct Unit {
    /// Why requests of the unit cannot be found.
    pub(super) unknown: Option<String>,
    /// Latencies by operation.
    latencies: Vec<(Operation, Histogram)>,
    pub(super) ios: u64,
    pub(super) bytes: u64,
    /// Bytes and I/Os from `io.stat`, which also counts buffered writes.
    pub(super) io: Option<GroupIo>,
    /// Mean share of the latency that passed before the driver received a request.
    pub(super) waited_share: Option<f64>,
    /// Mean number of requests in flight.
    pub(super) in_flight: f64,
}

impl Unit {
    pub(super) fn of(planned: &UnitPlan, sample: &Sample) -> Self {
        let mut unit = Self { unknown: unknown(&planned.target), ..Self::default() };
        let (mut waited_ns, mut issued_ns, mut all_ns) = (0.0, 0.0, 0.0);
        for series in sample.series.iter().filter(|series| is_of(&planned.target, &series.owner)) {
            match unit.latencies.iter_mut().find(|(operation, _)| *operation == series.operation) {
                Some((_, latency)) => latency.merge(&series.latency),
                None => unit.latencies.push((series.operation, series.latency.clone())),
            }
            if series.operation == Operation::Fsync {
                continue;
            }
            unit.ios += series.ios;
            unit.bytes += series.bytes;
            waited_ns += series.waited_ns as f64;
            issued_ns += series.latency.mean_ns() * series.issued as f64;
            all_ns += series.latency.mean_ns() * series.ios as f64;
        }
        unit.waited_share = (issued_ns > 0.0).then(|| (waited_ns / issued_ns).min(1.0));
        unit.in_flight = if sample.seconds > 0.0 { all_ns / 1e9 / sample.seconds } else { 0.0 };
        if let Target::Cgroup(path) = &planned.target {
            let groups = sample.groups.iter().filter(|group| is_named(&group.cgroup, path));
            // The I/O of a cgroup includes the I/O of its descendants.
            let top = groups.min_by_key(|group| group.cgroup.len());
            unit.io = top.map(|group| group.io);
        }
        unit
    }

    /// Returns the latencies of a goal's I/Os.
    pub(super) fn latency(&self, wanted: Wanted) -> Histogram {
        let is_wanted = |operation: Operation| match wanted {
            Wanted::Read => operation == Operation::Read,
            Wanted::Write => operation == Operation::Write,
            Wanted::Fsync => operation == Operation::Fsync,
            Wanted::All => operation != Operation::Fsync,
        };
        let mut all = Histogram::default();
        self.latencies.iter().filter(|(operation, _)| is_wanted(*operation)).for_each(|(_, one)| all.merge(one));
        all
    }

    /// Returns the bytes of the unit. `io.stat` also counts buffered writes.
    pub(super) fn all_bytes(&self) -> u64 {
        self.io.map_or(self.bytes, |io| io.bytes().max(self.bytes))
    }

    /// Returns the I/Os of the unit.
    pub(super) fn all_ios(&self) -> u64 {
        self.io.map_or(self.ios, |io| io.ios().max(self.ios))
    }
}

/// Returns why requests of a target cannot be found.
pub(crate) fn unknown(target: &Target) -> Option<String> {
    match target {
        Target::Container(name) => Some(format!(
            "the cgroup of container {name} is not known; write the path of the cgroup as match (docker \
             inspect shows the id)"
        )),
        Target::Qemu(name) => Some(format!(
            "the name of a process does not show the virtual machine of the process; write the cgroup of virtual \
                 machine {name} as match"
        )),
        Target::Export(_) => {
            Some("the kernel has no data about exports; use the metrics of the served disk".to_owned())
        }
        _ => None,
    }
}

/// Returns whether a cgroup is at or below the cgroup or unit `name`.
fn is_named(cgroup: &str, name: &str) -> bool {
    let parts: Vec<&str> = cgroup.split('/').collect();
    let wanted: Vec<&str> = name.split('/').collect();
    // A systemd unit may be named without its slice.
    parts.starts_with(&wanted) || (wanted.len() == 1 && parts.contains(&wanted[0]))
}

/// Returns whether an owner belongs to a target.
pub(crate) fn is_of(target: &Target, owner: &Owner) -> bool {
    if let Target::Process(name) = target {
        // The kernel stores 15 bytes of a name.
        let short: String = name.chars().take(15).collect();
        return owner.process.as_deref() == Some(&short);
    }
    let Some(cgroup) = &owner.cgroup else { return false };
    let mut parts = cgroup.split('/');
    match target {
        Target::Cgroup(path) => is_named(cgroup, path),
        Target::Libvirt(name) => {
            // systemd writes a hyphen in a name as \x2d.
            let end = format!("\\x2d{}.scope", name.replace('-', "\\x2d"));
            parts.any(|part| part.starts_with("machine-qemu") && part.ends_with(&end))
        }
        Target::Proxmox(number) => {
            is_named(cgroup, &format!("qemu.slice/{number}.scope")) || is_named(cgroup, &format!("lxc/{number}"))
        }
        Target::Kubernetes(class) => {
            let pods = parts.next() == Some("kubepods.slice");
            let below = parts.next().unwrap_or_default();
            pods && match class {
                QosClass::Guaranteed => below.starts_with("kubepods-pod"),
                class => below == format!("kubepods-{}.slice", class.name()),
            }
        }
        Target::Process(_) | Target::Container(_) | Target::Qemu(_) | Target::Export(_) => false,
    }
}
