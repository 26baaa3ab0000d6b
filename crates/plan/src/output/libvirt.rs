//! libvirt: `<blkiotune>` and `<iotune>`, and the commands of virsh that set `<blkiotune>`.

use super::file::{Comment, OutputFile};
use super::parts::{Parts, UnitPart};
use super::{Form, Notes, OutputError, Place};
use crate::target::Target;

/// Weights that libvirt's schema allows.
const WEIGHT_MIN: u32 = 100;
const WEIGHT_MAX: u32 = 1000;
/// Weight of a cgroup if no program sets its weight.
const WEIGHT_USUAL: u32 = 100;
const ELEMENTS: [&str; 4] = ["read_bytes_sec", "write_bytes_sec", "read_iops_sec", "write_iops_sec"];
const OPTIONS: [&str; 4] =
    ["device-read-bytes-sec", "device-write-bytes-sec", "device-read-iops-sec", "device-write-iops-sec"];

pub(super) fn files(parts: &Parts<'_>, place: &Place, notes: &mut Notes) -> Result<Vec<OutputFile>, OutputError> {
    let scale = scale(parts, notes);
    let mut files = Vec::new();
    for part in parts.units_of(Form::Libvirt) {
        let Target::Libvirt(domain) = &part.unit.target else { continue };
        part.note_missing(
            "libvirt",
            "Give the domain a slice (<resource><partition>), and write the plan for this slice with --write systemd.",
            notes,
        );
        let weight = part.values.weight.map(|weight| scale.of(weight.value()));
        if weight.is_none() && part.values.limits.is_empty() {
            notes.unit(part.unit, "The plan has no value that libvirt can express.");
            continue;
        }
        if part.values.limits.riops.or(part.values.limits.wiops).is_some_and(|rate| rate > u64::from(u32::MAX)) {
            notes.unit(part.unit, "libvirt takes at most 4294967295 I/Os per second.");
        }
        files.extend(of_domain(part, domain, weight, place, notes));
    }
    Ok(files)
}

fn of_domain(part: &UnitPart<'_>, domain: &str, weight: Option<u32>, place: &Place, notes: &Notes) -> Vec<OutputFile> {
    let node = &place.node;
    let about = notes.about(&[&part.unit.name]);
    let limits: Vec<(&str, u64)> = part.values.limits.named(ELEMENTS).collect();
    let elements = |indent: &str| -> String {
        limits.iter().map(|(name, rate)| format!("{indent}<{name}>{rate}</{name}>\n")).collect()
    };
    let mut text = "<blkiotune>\n".to_owned();
    if let Some(weight) = weight {
        text += &format!("  <weight>{weight}</weight>\n");
    }
    if !limits.is_empty() {
        text += &format!("  <device>\n    <path>{node}</path>\n{}  </device>\n", elements("    "));
    }
    text += "</blkiotune>\n";
    let mut options: Vec<String> = weight.map(|weight| format!("--weight {weight}")).into_iter().collect();
    options.extend(part.values.limits.named(OPTIONS).map(|(option, rate)| format!("--{option} {node},{rate}")));
    let mut undo_options: Vec<String> = weight.map(|_| format!("--weight {WEIGHT_USUAL}")).into_iter().collect();
    undo_options.extend(part.values.limits.named(OPTIONS).map(|(option, _)| format!("--{option} {node},0")));
    let command = |options: &[String], when: &str| format!("virsh blkiotune {domain} {} {when}", options.join(" "));
    let both = |options: &[String]| vec![command(options, "--config"), command(options, "--live")];
    let mut comments = about.clone();
    comments.push(format!(
        "Add this element to the domain with virsh edit {domain}, or run the commands of \
            {domain}.virsh.sh."
    ));
    let xml = OutputFile::new(format!("{domain}.blkiotune.xml"), Comment::Xml, &comments, &text);
    let mut files = vec![xml.activated(both(&options), both(&undo_options))];
    let script = format!(
        "#!/bin/sh\nset -e\n{}\nif [ \"$(virsh domstate {domain})\" = running ]; then\n    {}\nfi\n",
        command(&options, "--config"),
        command(&options, "--live")
    );
    let name = format!("{domain}.virsh.sh");
    let undo = both(&undo_options);
    files.push(OutputFile::new(&*name, Comment::Hash, &about, &script).activated(vec![format!("sh {name}")], undo));
    if !limits.is_empty() {
        let mut comments = about;
        comments.push(
            "If the disk of the guest is not on this host (for example on Ceph or iSCSI), use this element inside \
             <disk> instead of the limits of <blkiotune>. Do not use both."
                .to_owned(),
        );
        let text = format!("<iotune>\n{}</iotune>\n", elements("  "));
        let edit = vec![format!("virsh edit {domain}")];
        let file = OutputFile::new(format!("{domain}.iotune.xml"), Comment::Xml, &comments, &text);
        files.push(file.activated(edit.clone(), edit));
    }
    files
}

/// Conversion of the plan's weights to weights that libvirt allows. It keeps the ratios of the
/// domains if libvirt's range is wide enough.
struct Scale {
    factor: f64,
}

impl Scale {
    fn of(&self, weight: u32) -> u32 {
        ((f64::from(weight) * self.factor).round() as u32).clamp(WEIGHT_MIN, WEIGHT_MAX)
    }
}

fn scale(parts: &Parts<'_>, notes: &mut Notes) -> Scale {
    let weights = || parts.units_of(Form::Libvirt).filter_map(|part| part.values.weight).map(|weight| weight.value());
    let (Some(min), Some(max)) = (weights().min(), weights().max()) else { return Scale { factor: 1.0 } };
    let factor = if min < WEIGHT_MIN {
        f64::from(WEIGHT_MIN) / f64::from(min)
    } else if max > WEIGHT_MAX {
        f64::from(WEIGHT_MAX) / f64::from(max)
    } else {
        return Scale { factor: 1.0 };
    };
    notes.plan(format!(
        "libvirt takes weights from {WEIGHT_MIN} to {WEIGHT_MAX}. iosched multiplies the weights of the domains by \
         {factor:.2}, so their ratio to the weights of other cgroups changes."
    ));
    let scale = Scale { factor };
    if f64::from(max) * factor > f64::from(WEIGHT_MAX) || f64::from(min) * factor < f64::from(WEIGHT_MIN) {
        notes.plan(format!(
            "The weights {min} and {max} are further apart than libvirt allows. iosched changes the weights to {} and \
             {}.",
            scale.of(min),
            scale.of(max)
        ));
    }
    scale
}
