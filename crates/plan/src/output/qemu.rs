//! QEMU: throttle groups, and options of a disk in a throttle group.

use super::file::{Comment, OutputFile};
use super::parts::{Parts, UnitPart};
use super::systemd::{ionice, run_command};
use super::{Form, Notes, OutputError, Place};
use crate::target::Target;

const LIMITS: [&str; 4] = ["bps-read", "bps-write", "iops-read", "iops-write"];

pub(super) fn files(parts: &Parts<'_>, place: &Place, notes: &mut Notes) -> Result<Vec<OutputFile>, OutputError> {
    let mut files = Vec::new();
    for part in parts.units_of(Form::Qemu) {
        let Target::Qemu(name) = &part.unit.target else { continue };
        note_of_process(part, name, place, notes);
        if part.values.limits.is_empty() {
            notes.unit(part.unit, "The plan sets no limit, so QEMU needs no throttle group.");
            continue;
        }
        files.push(of_machine(part, name, notes));
    }
    Ok(files)
}

/// Adds notes about values that QEMU's options cannot express, and that need a cgroup or `ionice`.
fn note_of_process(part: &UnitPart<'_>, name: &str, place: &Place, notes: &mut Notes) {
    if part.values.weight.is_some() || part.values.latency_us.is_some() {
        notes.unit(
            part.unit,
            format!(
                "QEMU has no weights and no latency targets. Start the machine in a unit that has them: {} \
                 qemu-system-x86_64 -name {name} ...",
                run_command(part, place)
            ),
        );
    }
    if let Some(priority) = part.unit.priority {
        notes.unit(
            part.unit,
            format!("QEMU does not set the I/O priority {priority}. Start QEMU with {}.", ionice(priority)),
        );
    }
    if let Some(class) = &part.values.class {
        notes.unit(
            part.unit,
            format!("QEMU cannot express io.prio.class={class}. Start QEMU with ionice in the same class."),
        );
    }
}

fn of_machine(part: &UnitPart<'_>, name: &str, notes: &Notes) -> OutputFile {
    let limits: Vec<(&str, u64)> = part.values.limits.named(LIMITS).collect();
    let json: Vec<String> = limits.iter().map(|(limit, rate)| format!("\"{limit}\":{rate}")).collect();
    let group = format!("{name}-limits");
    let object = format!(r#"-object '{{"qom-type":"throttle-group","id":"{group}","limits":{{{}}}}}'"#, json.join(","));
    let drive: String = limits.iter().map(|(limit, rate)| format!(",throttling.{limit}={rate}")).collect();
    let path = format!("{name}.qemu-options");
    let mut comments = notes.about(&[&part.unit.name]);
    comments.push("Use one of the two ways below. All disks of a group share the limits of the group.".to_owned());
    comments.push(
        "1. With -blockdev: NODE is the node name of the disk's image. Attach the new node `NODE-limited` to the device.".to_owned(),
    );
    comments.push("2. With -drive: append the line to the -drive option of the disk.".to_owned());
    let node = format!(
        r#"-blockdev '{{"driver":"throttle","node-name":"NODE-limited","throttle-group":"{group}","file":"NODE"}}'"#
    );
    let text = format!("{object}\n{node}\n,throttling.group={group}{drive}\n");
    // The limits of a running virtual machine. 0 means no limit.
    let of_limit = |limit: &str| limits.iter().find(|(name, _)| *name == limit).map_or(0, |(_, rate)| *rate);
    let [rbps, wbps, riops, wiops] = LIMITS.map(of_limit);
    let monitor = |[rbps, wbps, riops, wiops]: [u64; 4]| {
        format!("echo 'block_set_io_throttle DEVICE 0 {rbps} {wbps} 0 {riops} {wiops}' | socat - UNIX-CONNECT:MONITOR")
    };
    let undo = vec![monitor([0; 4]), format!("rm -f {path}")];
    OutputFile::new(path, Comment::Hash, &comments, &text).activated(vec![monitor([rbps, wbps, riops, wiops])], undo)
}
