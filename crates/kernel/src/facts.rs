//! Facts in a record about the machine and the device of a run.

use serde::{Deserialize, Serialize};

use crate::block::{BlockDevice, DeviceCard};
use crate::roots::{Roots, read, value};

/// State of a machine at one time.
#[derive(Clone, Default, PartialEq, Debug, Serialize, Deserialize)]
pub struct MachineFacts {
    /// Release of the kernel: `6.12.5-amd64`.
    pub kernel: String,
    /// Number of CPUs that are online.
    pub cpus: u32,
    /// Model of the first CPU.
    pub cpu_model: Option<String>,
    /// Governor that chooses the speed of the CPUs.
    pub governor: Option<String>,
    /// Memory, bytes.
    pub memory_bytes: u64,
    /// Virtual machine or hypervisor, if one is detected.
    pub virtualisation: Option<String>,
    /// Mean number of tasks in the last minute that ran or waited for a disk.
    pub load: Option<f64>,
    /// I/O controllers of cgroups.
    pub cgroups: Controllers,
}

/// Available I/O controllers of cgroups.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Controllers {
    /// Whether cgroup v1 has the blkio controller.
    pub blkio: bool,
    /// Whether cgroup v1 has the files of bfq, among them blkio.bfq.weight.
    pub blkio_bfq: bool,
    /// Whether cgroup v2 has the io controller.
    pub io: bool,
}

/// Facts in the record of a real run: a device in its machine.
#[derive(Clone, Default, PartialEq, Debug, Serialize, Deserialize)]
pub struct Facts {
    /// Facts about the machine.
    pub machine: MachineFacts,
    /// The device, then all devices below.
    pub devices: Vec<DeviceCard>,
}

impl Facts {
    /// Reads the present facts about a device and its machine.
    #[must_use]
    pub fn of(device: &BlockDevice) -> Self {
        let devices = std::iter::once(device.clone()).chain(device.stack());
        Self { machine: MachineFacts::of(device.roots()), devices: devices.map(|device| device.card()).collect() }
    }
}

impl MachineFacts {
    /// Reads the present facts about a machine.
    #[must_use]
    pub fn of(roots: &Roots) -> Self {
        let cpu_info = read(&roots.proc("cpuinfo")).unwrap_or_default();
        let meminfo = read(&roots.proc("meminfo")).unwrap_or_default();
        let kib = field(&meminfo, "MemTotal").and_then(|text| text.strip_suffix(" kB")?.trim().parse::<u64>().ok());
        Self {
            kernel: value(&roots.proc("sys/kernel/osrelease")).unwrap_or_default(),
            cpus: cpus(roots, &cpu_info),
            cpu_model: field(&cpu_info, "model name").map(str::to_owned),
            governor: value(&roots.sys("devices/system/cpu/cpu0/cpufreq/scaling_governor")),
            memory_bytes: kib.unwrap_or(0) << 10,
            virtualisation: virtualisation(roots, &cpu_info),
            load: read(&roots.proc("loadavg")).ok().and_then(|text| text.split(' ').next()?.parse().ok()),
            cgroups: controllers(roots),
        }
    }
}

/// Returns the value of the first line `name : value`.
fn field<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    let fields = text.lines().filter_map(|line| line.split_once(':'));
    fields.map(|(key, value)| (key.trim(), value.trim())).find(|(key, _)| *key == name).map(|(_, value)| value)
}

/// Counts the CPUs in the list of online CPUs, such as `0-3,8`. Without this list, counts the
/// processors in `cpu_info`.
fn cpus(roots: &Roots, cpu_info: &str) -> u32 {
    let online = value(&roots.sys("devices/system/cpu/online"));
    let count = |range: &str| {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        Some(last.parse::<u32>().ok()?.checked_sub(first.parse().ok()?)? + 1)
    };
    let listed = online.and_then(|text| text.split(',').map(count).sum::<Option<u32>>());
    listed.unwrap_or_else(|| cpu_info.lines().filter(|line| line.starts_with("processor")).count() as u32)
}

fn virtualisation(roots: &Roots, cpu_info: &str) -> Option<String> {
    if let Some(kind) = value(&roots.sys("hypervisor/type")) {
        return Some(kind);
    }
    let has_hypervisor =
        field(cpu_info, "flags").is_some_and(|flags| flags.split(' ').any(|flag| flag == "hypervisor"));
    let of_firmware = |name: &str| value(&roots.sys("class/dmi/id").join(name)).filter(|text| !text.is_empty());
    has_hypervisor.then(|| match (of_firmware("sys_vendor"), of_firmware("product_name")) {
        (Some(vendor), Some(product)) => format!("{vendor} {product}"),
        (Some(one), None) | (None, Some(one)) => one,
        (None, None) => "a hypervisor".to_owned(),
    })
}

fn controllers(roots: &Roots) -> Controllers {
    let has_v1 = |line: &str| {
        // Fields: name, hierarchy, cgroups, enabled. Controllers with hierarchy 0 do not belong to
        // version 1.
        let fields: Vec<_> = line.split_whitespace().collect();
        matches!(fields[..], ["blkio", hierarchy, _, "1"] if hierarchy != "0")
    };
    let blkio = read(&roots.proc("cgroups")).unwrap_or_default().lines().any(has_v1);
    let of_v2 = ["fs/cgroup/cgroup.controllers", "fs/cgroup/unified/cgroup.controllers"];
    let io =
        of_v2.iter().filter_map(|path| value(&roots.sys(path))).any(|text| text.split(' ').any(|name| name == "io"));
    // The root cgroup has no weight, but it has bfq's statistics.
    let blkio_bfq = roots.sys("fs/cgroup/blkio/blkio.bfq.io_serviced").exists();
    Controllers { blkio, blkio_bfq, io }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recorded::Recorded;

    #[test]
    fn facts_describe_devices_and_machine() {
        let machine = Recorded::new();
        let facts = Facts::of(&machine.device("dm-0"));
        let names: Vec<_> = facts.devices.iter().map(|card| card.name.as_str()).collect();
        assert_eq!(names, ["dm-0", "sda2", "sda"]);
        let MachineFacts { kernel, cpus, cpu_model, memory_bytes, virtualisation, load, cgroups, .. } = &facts.machine;
        assert_eq!((kernel.as_str(), *cpus, cpu_model.as_deref()), ("6.12.5-amd64", 6, Some("A Fine CPU @ 3.00GHz")));
        assert_eq!((*memory_bytes, virtualisation.as_deref(), *load), (16_318_480 << 10, None, Some(0.25)));
        assert_eq!(*cgroups, Controllers { io: true, ..Controllers::default() });
        let text = serde_json::to_string(&facts).unwrap();
        assert_eq!(serde_json::from_str::<Facts>(&text).unwrap(), facts);
    }

    #[test]
    fn virtual_machine_is_recognised_by_cpu_and_firmware() {
        let machine = Recorded::new();
        machine.write("sys/class/dmi/id/sys_vendor", "QEMU\n");
        assert_eq!(MachineFacts::of(&machine.roots()).virtualisation, None);
        machine.write("proc/cpuinfo", "processor : 0\nflags : fpu hypervisor lm\n");
        let facts = MachineFacts::of(&machine.roots());
        assert_eq!(facts.virtualisation.as_deref(), Some("QEMU"));
        std::fs::remove_file(machine.path().join("sys/devices/system/cpu/online")).unwrap();
        assert_eq!(MachineFacts::of(&machine.roots()).cpus, 1);
    }

    #[test]
    fn cgroup_v1_controllers_in_a_hierarchy_are_found() {
        let machine = Recorded::new();
        machine.write("proc/cgroups", "#subsys_name\thierarchy\tnum_cgroups\tenabled\nblkio\t7\t1\t1\n");
        machine.write("sys/fs/cgroup/blkio/blkio.bfq.io_serviced", "0\n");
        machine.write("sys/fs/cgroup/cgroup.controllers", "cpu memory\n");
        let found = MachineFacts::of(&machine.roots()).cgroups;
        assert_eq!(found, Controllers { blkio: true, blkio_bfq: true, io: false });
    }
}
