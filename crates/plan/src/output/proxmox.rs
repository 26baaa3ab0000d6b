//! Proxmox VE: a script that sets the disk options of a virtual machine, or the cgroup lines of a
//! container.

use super::file::{Comment, OutputFile};
use super::parts::{Parts, UnitPart};
use super::{Form, Notes, OutputError, Place};
use crate::target::Target;

/// Proxmox multiplies `mbps_rd` and `mbps_wr` by this number of bytes.
const MEGABYTE: f64 = 1_048_576.0;

pub(super) fn files(parts: &Parts<'_>, place: &Place, notes: &mut Notes) -> Result<Vec<OutputFile>, OutputError> {
    let mut files = Vec::new();
    for part in parts.units_of(Form::Proxmox) {
        let Target::Proxmox(number) = part.unit.target else { continue };
        let remedy = format!("Write the plan for qemu.slice/{number}.scope with --write systemd.");
        if part.values.weight.is_some() {
            notes.unit(part.unit, format!("The disk options of a virtual machine cannot express weights. {remedy}"));
        }
        part.note_missing("A disk option of Proxmox", &remedy, notes);
        let lines = container_lines(part, place, notes);
        if part.values.limits.is_empty() && lines.is_empty() {
            notes.unit(part.unit, "The plan has no value that Proxmox can express.");
            continue;
        }
        files.push(script(part, number, &lines, notes));
    }
    Ok(files)
}

/// Returns the lines for the configuration of a container.
fn container_lines(part: &UnitPart<'_>, place: &Place, notes: &mut Notes) -> Vec<String> {
    if part.values.writes.is_empty() {
        return Vec::new();
    }
    let Some(number) = &place.number else {
        notes.unit(
            part.unit,
            format!(
                "{} is not on this machine, so iosched does not know the number of the device. Therefore the script \
                 does not change containers.",
                place.node
            ),
        );
        return Vec::new();
    };
    let line = |write: &iosched::controllers::NamedWrite| {
        let of_device = write.file != "io.prio.class";
        let device = if of_device { format!("{number} ") } else { String::new() };
        format!("lxc.cgroup2.{}: {device}{}", write.file, write.text)
    };
    part.values.writes.iter().map(line).collect()
}

fn disk_options(part: &UnitPart<'_>) -> String {
    let limits = &part.values.limits;
    let megabytes = |bytes: u64| {
        let text = format!("{:.4}", bytes as f64 / MEGABYTE);
        text.trim_end_matches('0').trim_end_matches('.').to_owned()
    };
    let bytes = [("mbps_rd", limits.rbps), ("mbps_wr", limits.wbps)];
    let bytes = bytes.into_iter().filter_map(|(name, rate)| Some(format!(",{name}={}", megabytes(rate?))));
    let ios = [("iops_rd", limits.riops), ("iops_wr", limits.wiops)];
    let ios = ios.into_iter().filter_map(|(name, rate)| Some(format!(",{name}={}", rate?)));
    bytes.chain(ios).collect()
}

fn script(part: &UnitPart<'_>, number: u32, lines: &[String], notes: &Notes) -> OutputFile {
    let path = format!("proxmox-{number}.sh");
    let mut comments = notes.about(&[&part.unit.name]);
    comments
        .push(format!("Run: sh {path} DISK, where DISK is an option of qm such as scsi0. Containers need no DISK."));
    comments.push(format!("Undo: sh {path} DISK undo."));
    comments.push("The limits of a virtual machine apply to each disk, not to all disks together.".to_owned());
    let echo: String = lines.iter().map(|line| format!("    echo '{line}' >>\"$new\"\n")).collect();
    let container = if lines.is_empty() {
        "    echo \"the plan sets nothing for containers\" >&2\n    exit 1\n".to_owned()
    } else {
        format!(
            "    file=${{PVE:-/etc/pve}}/lxc/{number}.conf\n    new=$file.new\n    grep -v '^lxc\\.cgroup2\\.io\\.' \
             \"$file\" >\"$new\" || true\n    if [ \"$undo\" != undo ]; then\n    {}    fi\n    mv \"$new\" \"$file\"\n    \
             echo \"the container uses the new values when it starts the next time\" >&2\n",
            echo.replace("\n    echo", "\n        echo")
        )
    };
    let options = disk_options(part);
    let machine = if options.is_empty() {
        "    echo \"the plan sets nothing for virtual machines\" >&2\n    exit 1\n".to_owned()
    } else {
        format!(
            "    disk=${{1:?name the disk of the virtual machine, for example scsi0}}\n    \
             was=$(qm config {number} | sed -n \"s/^$disk: //p\")\n    \
             [ -n \"$was\" ] || {{ echo \"{number} has no disk $disk\" >&2; exit 1; }}\n    \
             plain=$(printf %s \"$was\" | sed -E 's/,(mbps|iops)(_rd|_wr)?(_max|_max_length)?=[^,]*//g')\n    \
             if [ \"$undo\" = undo ]; then options=; else options={options}; fi\n    \
             qm set {number} \"--$disk\" \"$plain$options\"\n"
        )
    };
    let body = format!(
        "#!/bin/sh\nset -e\nundo=${{2:-$1}}\nif qm config {number} >/dev/null 2>&1; then\n{machine}else\n{container}fi\n"
    );
    let undo = vec![format!("sh {path} scsi0 undo")];
    OutputFile::new(&*path, Comment::Hash, &comments, &body).activated(vec![format!("sh {path} scsi0")], undo)
}
