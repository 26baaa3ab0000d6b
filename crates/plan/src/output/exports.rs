//! Exports of a served disk: the file of `--exports`, and the options of `iosched serve`.

use iosched::IoClass;
use iosched::controllers;
use iosched_kernel::settings::shell;

use super::file::{Comment, OutputFile};
use super::parts::{Parts, UnitPart, Weight};
use super::{Form, Notes, OutputError};
use crate::target::Target;

const FILE: &str = "exports.toml";
/// Weights that exports allow.
const WEIGHT_MIN: u32 = 10;
const WEIGHT_MAX: u32 = 1000;
/// Weight of a cgroup if no program sets its weight.
const WEIGHT_USUAL: u32 = 100;

pub(super) fn files(parts: &Parts<'_>, notes: &mut Notes) -> Result<Vec<OutputFile>, OutputError> {
    let units: Vec<&UnitPart<'_>> = parts.units_of(Form::Exports).collect();
    // The setting of the scheduler has io.weight, so the file of exports does not need it.
    let has_weights = units.iter().any(|part| matches!(part.values.weight, Some(Weight::Bfq(_))));
    let mut text = String::new();
    for part in &units {
        text += &format!("[export.{}]\n", name(part));
        text += &if has_weights { weight(part, notes) } else { priority(part) };
        if let (true, Some(priority)) = (has_weights, part.unit.priority) {
            notes.unit(
                part.unit,
                format!(
                    "A file of exports has either weights or classes. This file has weights, so the export does not \
                     get the I/O priority {priority}."
                ),
            );
        }
    }
    if units.iter().any(|part| part.values.class.is_some()) {
        notes.plan(
            "For a served disk, the option --scheduler sets io.prio.class. This works only with schedulers of \
             blk-mq.",
        );
    }
    let scheduler = scheduler(parts, &units);
    let option = scheduler.map(|setting| format!(" --scheduler {}", shell(&setting))).unwrap_or_default();
    let command = format!("iosched serve DISK --unix DISK.sock --exports {FILE}{option}");
    let mut comments = notes.about(&units.iter().map(|part| &*part.unit.name).collect::<Vec<_>>());
    comments.push(format!("Use: {command}"));
    let undo = vec!["iosched serve DISK --unix DISK.sock".to_owned()];
    Ok(vec![OutputFile::new(FILE, Comment::Hash, &comments, &text).activated(vec![command], undo)])
}

fn name<'p>(part: &'p UnitPart<'_>) -> &'p str {
    match &part.unit.target {
        Target::Export(name) => name,
        _ => &part.unit.name,
    }
}

fn weight(part: &UnitPart<'_>, notes: &mut Notes) -> String {
    let wanted = part.values.weight.map_or(WEIGHT_USUAL, Weight::value);
    let weight = wanted.clamp(WEIGHT_MIN, WEIGHT_MAX);
    if weight != wanted {
        notes.unit(
            part.unit,
            format!("Exports take weights from {WEIGHT_MIN} to {WEIGHT_MAX}, so the weight {wanted} becomes {weight}."),
        );
    }
    format!("weight = {weight}\n")
}

fn priority(part: &UnitPart<'_>) -> String {
    let Some(priority) = part.unit.priority else { return String::new() };
    match priority.class() {
        IoClass::Idle => "class = \"idle\"\n".to_owned(),
        IoClass::RealTime => format!("class = \"rt\"\nlevel = {}\n", priority.level()),
        IoClass::BestEffort | IoClass::None => format!("class = \"be\"\nlevel = {}\n", priority.level()),
    }
}

/// Returns the setting for `--scheduler`, with the names of the exports instead of the cgroups.
fn scheduler(parts: &Parts<'_>, units: &[&UnitPart<'_>]) -> Option<String> {
    let setting = &parts.plan.setting;
    if setting.is_present() {
        return None;
    }
    let plain = setting.tunables().iter().chain(setting.attributes());
    let plain = plain.filter(|value| !controllers::is_file(value.name()));
    let mut values: Vec<String> = plain.map(|value| format!("{}={}", value.name(), value.text())).collect();
    let words = |text: &str| text.split_whitespace().collect::<Vec<_>>().join("/");
    values.extend(parts.device.io_cost.iter().map(|write| format!("{}={}", write.file, words(&write.text))));
    for file in controllers::files().filter(|file| *file != "io.bfq.weight") {
        let all: Vec<String> = units
            .iter()
            .flat_map(|part| part.values.writes.iter().map(move |write| (name(part), write)))
            .filter(|(_, write)| write.file == file)
            .map(|(name, write)| format!("{name}:{}", words(&write.text)))
            .collect();
        if !all.is_empty() {
            values.push(format!("{file}={}", all.join("+")));
        }
    }
    let values = values.join(",");
    Some(if values.is_empty() { setting.name().to_owned() } else { format!("{}:{values}", setting.name()) })
}
