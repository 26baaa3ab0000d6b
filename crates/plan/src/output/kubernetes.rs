//! Kubernetes: drop-ins for the slices of QoS classes, and blockio classes of containerd and CRI-O
//! with the annotation that selects them.
//!
//! Kubernetes itself has no control of block I/O (kubernetes issue 54923).

use iosched_kernel::settings::DropIn;
use iosched_kernel::settings::units::{Property, reset_command};

use super::containers::oci_weight;
use super::file::{Comment, OutputFile};
use super::parts::{Parts, UnitPart, Weight};
use super::{Form, Notes, OutputError, Place};
use crate::target::{QosClass, Target};

const RELOAD: &str = "systemctl daemon-reload";
const CLASSES: &str = "/etc/iosched/blockio.yaml";
const ANNOTATION: &str = "blockio.resources.beta.kubernetes.io/pod";
const KEYS: [&str; 4] = ["ThrottleReadBps", "ThrottleWriteBps", "ThrottleReadIOPS", "ThrottleWriteIOPS"];
/// Weight of a pod's cgroup. No program sets this weight.
const WEIGHT_USUAL: f64 = 100.0;
const WEIGHTS: std::ops::RangeInclusive<f64> = 1.0..=10_000.0;

pub(super) fn files(parts: &Parts<'_>, place: &Place, notes: &mut Notes) -> Result<Vec<OutputFile>, OutputError> {
    notes.plan(
        "Kubernetes has no field for block I/O in a pod (kubernetes issue 54923). The drop-ins set the QoS classes on \
         each node, for kubelets with --cgroup-driver=systemd.",
    );
    let units: Vec<&UnitPart<'_>> = parts.units_of(Form::Kubernetes).collect();
    let factor = factor(&units, notes);
    let mut files = Vec::new();
    for part in &units {
        if let Some(slice) = slice(part) {
            files.extend(drop_in(part, slice, factor, place, notes));
        }
    }
    files.extend(classes(&units, place, notes));
    Ok(files)
}

fn class(part: &UnitPart<'_>) -> Option<QosClass> {
    match part.unit.target {
        Target::Kubernetes(class) => Some(class),
        _ => None,
    }
}

/// Returns the slice of a unit's QoS class. Guaranteed pods have no slice for their class, because
/// they are children of kubepods.slice.
fn slice(part: &UnitPart<'_>) -> Option<&'static str> {
    match class(part)? {
        QosClass::Guaranteed => None,
        QosClass::Burstable => Some("kubepods-burstable.slice"),
        QosClass::BestEffort => Some("kubepods-besteffort.slice"),
    }
}

/// Returns the factor for the weights of all slices. The weight of a guaranteed pod is always 100,
/// so the other weights must keep their ratio to this weight.
fn factor(units: &[&UnitPart<'_>], notes: &mut Notes) -> f64 {
    let Some(part) = units.iter().find(|part| class(part) == Some(QosClass::Guaranteed)) else { return 1.0 };
    if !part.values.limits.is_empty() {
        notes.unit(
            part.unit,
            "Guaranteed pods have no common slice, so their total I/O has no limit. The blockio class limits each \
             container instead.",
        );
    }
    part.note_missing("Kubernetes", "Guaranteed pods have no common slice.", notes);
    let Some(weight) = part.values.weight else { return 1.0 };
    notes.unit(
        part.unit,
        format!(
            "Guaranteed pods have no common slice. Each of these pods has the weight 100, and competes with the \
             slices of the other classes. To keep the ratios of the plan, iosched multiplies the weights of those \
             slices by 100/{}. N guaranteed pods together have N times the weight of one pod.",
            weight.value()
        ),
    );
    WEIGHT_USUAL / f64::from(weight.value())
}

fn drop_in(part: &UnitPart<'_>, slice: &str, factor: f64, place: &Place, notes: &mut Notes) -> Option<OutputFile> {
    let scaled = part.values.weight.map(|weight| {
        let wanted = f64::from(weight.value()) * factor;
        let weight = wanted.round().clamp(*WEIGHTS.start(), *WEIGHTS.end());
        if (weight - wanted).abs() > wanted * 0.05 {
            notes.unit(part.unit, format!("The weight {wanted:.2} of {slice} becomes {weight}."));
        }
        weight as u32
    });
    let is_bfq = matches!(part.values.weight, Some(Weight::Bfq(_)));
    let io_weight =
        scaled.map(|weight| if is_bfq { iosched_kernel::settings::units::io_weight_for_bfq(weight) } else { weight });
    let mut properties: Vec<Property> = part.properties(place);
    for property in &mut properties {
        if let ("IOWeight", Some(weight)) = (property.0, io_weight) {
            property.1 = weight.to_string();
        }
    }
    if let Some(value) = &part.values.class {
        notes.unit(
            part.unit,
            format!(
                "io.prio.class={value} has no effect on the pods below {slice}, and Kubernetes has no \
                 setting for io.prio.class."
            ),
        );
    }
    if let Some(priority) = part.unit.priority {
        notes.unit(part.unit, format!("Kubernetes cannot set the I/O priority {priority} of a pod's processes."));
    }
    if properties.is_empty() {
        notes.unit(part.unit, format!("The plan has no value for {slice}."));
        return None;
    }
    let drop_in = DropIn::of(slice, &properties);
    let undo = vec![reset_command(slice, &properties), format!("rm -f {}", drop_in.path), RELOAD.to_owned()];
    let file = OutputFile::new(&*drop_in.path, Comment::Hash, &notes.about(&[&part.unit.name]), &drop_in.text);
    Some(file.activated(vec![RELOAD.to_owned()], undo))
}

/// Returns the file of blockio classes, and for each class a patch that selects the class.
fn classes(units: &[&UnitPart<'_>], place: &Place, notes: &mut Notes) -> Vec<OutputFile> {
    let mut text = "Classes:\n".to_owned();
    let mut patches = Vec::new();
    for part in units {
        if part.values.weight.is_none() && part.values.limits.is_empty() {
            continue;
        }
        let name = &part.unit.name;
        text += &format!("  {name}:\n");
        // The weight of a container counts only inside its pod.
        if let Some(weight) = oci_weight(part, "The blockio class", notes) {
            text += &format!("    - Weight: {weight}\n");
        }
        if !part.values.limits.is_empty() {
            text += &format!("    - Devices:\n        - {}\n", place.node);
            for (key, rate) in part.values.limits.named(KEYS) {
                text += &format!("      {key}: \"{rate}\"\n");
            }
        }
        patches.push(patch(name));
    }
    if patches.is_empty() {
        return Vec::new();
    }
    let mut comments = notes.about(&units.iter().map(|part| &*part.unit.name).collect::<Vec<_>>());
    comments.push(
        "containerd: set blockio_config_file in [plugins.\"io.containerd.service.v1.tasks-service\"].".to_owned(),
    );
    comments.push("CRI-O: set blockio_config_file in [crio.runtime].".to_owned());
    let scope = "The limits of a class apply to each container. The weights of classes divide I/O \
         only between the containers of one pod.";
    comments.push(scope.to_owned());
    notes.plan(
        "A blockio class applies to each container that an annotation selects. The drop-ins apply to all pods of a QoS \
         class together. Neither replaces the other.",
    );
    let activate = vec!["systemctl restart containerd".to_owned()];
    let undo = vec![format!("rm -f {CLASSES}"), "systemctl restart containerd".to_owned()];
    let file = OutputFile::new(CLASSES, Comment::Hash, &comments, &text).activated(activate, undo);
    std::iter::once(file).chain(patches).collect()
}

/// Returns the patch that makes a workload's pod template select a class.
fn patch(name: &str) -> OutputFile {
    let text = format!("spec:\n  template:\n    metadata:\n      annotations:\n        {ANNOTATION}: {name}\n");
    let path = format!("{name}.patch.yaml");
    let command = format!("kubectl patch deployment NAME --patch-file {path}");
    let remove = format!(
        "kubectl patch deployment NAME --type json -p \
         '[{{\"op\":\"remove\",\"path\":\"/spec/template/metadata/annotations/{}\"}}]'",
        ANNOTATION.replace('/', "~1")
    );
    let comments = vec![format!("Use: {command}")];
    OutputFile::new(path, Comment::Hash, &comments, &text).activated(vec![command], vec![remove])
}
