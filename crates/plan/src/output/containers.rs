//! Container engines: options of Docker and Podman, and keys of Compose.

use super::file::{Comment, OutputFile};
use super::parts::{Parts, UnitPart, Weight};
use super::{Form, Notes, OutputError, Place};

/// Weights that the runtime specification of containers allows.
const WEIGHT_MIN: u32 = 10;
const WEIGHT_MAX: u32 = 1000;
/// Largest change of a weight by rounding that is not noted, per cent.
const ROUNDING_PERCENT: u32 = 5;
const OPTIONS: [&str; 4] = ["device-read-bps", "device-write-bps", "device-read-iops", "device-write-iops"];
const KEYS: [&str; 4] = ["device_read_bps", "device_write_bps", "device_read_iops", "device_write_iops"];

pub(super) fn files(parts: &Parts<'_>, place: &Place, notes: &mut Notes) -> Result<Vec<OutputFile>, OutputError> {
    let mut files = Vec::new();
    let mut services = String::new();
    let mut written = Vec::new();
    for part in parts.units_of(Form::Containers) {
        let name = target_name(part);
        let weight = oci_weight(part, "The container engine", notes);
        part.note_missing(
            "A container engine",
            &format!(
                "Put the container into a slice (--cgroup-parent={0}.slice) and write the plan for {0}.slice with \
                 --write systemd.",
                part.unit.name
            ),
            notes,
        );
        if weight.is_none() && part.values.limits.is_empty() {
            notes.unit(part.unit, "The plan has no value that a container engine can express.");
            continue;
        }
        written.push(&*part.unit.name);
        files.push(options(part, &name, weight, place, notes));
        services += &service(part, &name, weight, place);
    }
    if !services.is_empty() {
        let file = "compose.iosched.yaml";
        let mut comments = notes.about(&written);
        comments.push("Each service must have the name of its container.".to_owned());
        let up = format!("docker compose -f compose.yaml -f {file} up -d");
        let undo = vec![format!("rm -f {file}"), "docker compose -f compose.yaml up -d".to_owned()];
        let body = format!("services:\n{services}");
        files.push(OutputFile::new(file, Comment::Hash, &comments, &body).activated(vec![up], undo));
    }
    Ok(files)
}

fn target_name(part: &UnitPart<'_>) -> String {
    match &part.unit.target {
        crate::target::Target::Container(name) => name.clone(),
        _ => part.unit.name.clone(),
    }
}

/// Returns the file with the options of a container's command line.
fn options(part: &UnitPart<'_>, name: &str, weight: Option<u32>, place: &Place, notes: &Notes) -> OutputFile {
    let node = &place.node;
    let weight_option = weight.map(|weight| format!("--blkio-weight={weight}"));
    let limits = part.values.limits.named(OPTIONS).map(|(option, rate)| format!("--{option}={node}:{rate}"));
    let all: Vec<String> = weight_option.iter().cloned().chain(limits).collect();
    let path = format!("{name}.options");
    let mut comments = notes.about(&[&part.unit.name]);
    comments.push(format!("Use: docker run --name {name} $(grep -v '^#' {path}) IMAGE, or podman instead of docker."));
    let mut activate =
        vec![format!("docker rm -f {name}"), format!("docker run --name {name} $(grep -v '^#' {path}) IMAGE")];
    if part.values.limits.is_empty() {
        // Weights are the only values that Docker can change in a running container.
        activate = weight_option.iter().map(|option| format!("docker update {option} {name}")).collect();
    }
    let undo = vec![format!("docker rm -f {name}"), format!("docker run --name {name} IMAGE"), format!("rm -f {path}")];
    OutputFile::new(path, Comment::Hash, &comments, &format!("{}\n", all.join(" "))).activated(activate, undo)
}

/// Returns the keys of a service in a Compose file.
fn service(part: &UnitPart<'_>, name: &str, weight: Option<u32>, place: &Place) -> String {
    let mut text = format!("  {name}:\n    blkio_config:\n");
    if let Some(weight) = weight {
        text += &format!("      weight: {weight}\n");
    }
    for (key, rate) in part.values.limits.named(KEYS) {
        text += &format!("      {key}:\n        - path: {}\n          rate: {rate}\n", place.node);
    }
    text
}

/// Returns the weight of a unit in the range that the runtime specification of containers allows.
/// Runtimes write this weight to io.bfq.weight without a change. For io.weight, they convert 10 to
/// 1000 into 1 to 10000.
pub(super) fn oci_weight(part: &UnitPart<'_>, program: &str, notes: &mut Notes) -> Option<u32> {
    let weight = part.values.weight?;
    let (written, becomes) = match weight {
        Weight::Bfq(weight) => {
            let written = weight.clamp(WEIGHT_MIN, WEIGHT_MAX);
            (written, written)
        }
        Weight::IoCost(weight) => {
            let written = (WEIGHT_MIN + ((weight - 1) * 990 + 4999) / 9999).min(WEIGHT_MAX);
            (written, 1 + (written - WEIGHT_MIN) * 9999 / 990)
        }
    };
    let wanted = weight.value();
    if becomes.abs_diff(wanted) * 100 > wanted * ROUNDING_PERCENT {
        notes.unit(
            part.unit,
            format!(
                "{program} takes weights from {WEIGHT_MIN} to {WEIGHT_MAX}. With the weight {written}, the cgroup \
                 gets the weight {becomes} instead of {wanted}."
            ),
        );
    }
    Some(written)
}
