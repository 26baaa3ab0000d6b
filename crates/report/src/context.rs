//! The section about the comparison: workload, devices, settings, runs.

use iosched_kernel::facts::MachineFacts;
use iosched_lab::{DeviceRecord, Header, ValueRecord, WorkloadKind, grouped};
use iosched_sim::Replay;
use maud::{Markup, html};

use super::parts::name;
use super::units::{SECTOR, bytes, counted, time};
use super::view::View;

/// Returns the section for one device, or for all devices of a page. The section for one device
/// includes the values in effect.
pub(crate) fn section(views: &[View<'_>]) -> Markup {
    let Some(first) = views.first() else { return html! {} };
    let header = first.header();
    let ios = views.iter().map(|view| view.results.simulated_ios).sum();
    let simulated_ns: f64 = views.iter().map(|view| view.results.simulated_ns as f64).sum();
    html! {
        dl .facts {
            dt { "Workload" }
            dd { strong { (header.workload.name) } ", " (workload(header)) }
            dt { @if first.several { "Devices" } @else { "Device" } }
            @for view in views {
                dd { strong { (view.device().name) } ", " (device(view.device())) }
            }
            @if let Some(machine) = &header.machine {
                dt { "Machine" }
                dd { strong { (machine.name) } ", " (machine.about) }
            }
            dt { "Host" }
            dd { (first.device().measured.as_ref().map_or_else(|| block_layer(header), |measured| machine(&measured.facts.machine))) }
            @if header.workload.kind == WorkloadKind::Trace {
                dt { "Replay" }
                dd { (replay(header.replay)) }
            }
            @if let Some(limit) = limit(header) {
                dt { "Limit" }
                dd { (limit) }
            }
            dt { "Runs" }
            dd {
                @if first.device().measured.is_some() {
                    (grouped(first.results.rounds.into())) " of each setting; the settings take turns in random order. "
                    "iosched " (header.version) " ran " (counted(ios, "I/O", "I/Os")) " in " (time(simulated_ns, 3)) " on the device."
                } @else {
                    (grouped(header.runs.into())) " of each setting" @if first.several { " on each device" } "\
                        ; the settings take turns. Run " i { "i" }
                    " has the same seed for all settings" @if first.several { " and devices" } ". The experiment has the seed " (header.seed) ". "
                    "In total, iosched " (header.version) " simulated " (counted(ios, "I/O", "I/Os")) " and "
                    (time(simulated_ns, 3)) " of device time."
                }
            }
        }
        (settings(first))
        @if !first.several { (values(first)) }
    }
}

/// Returns the values in effect on a device, in a collapsed block.
pub(crate) fn values(view: &View<'_>) -> Markup {
    html! {
        details {
            summary { "All values in effect" }
            div .scroll tabindex="0" { (all_values(view)) }
        }
    }
}

fn workload(header: &Header) -> String {
    let workload = &header.workload;
    let mut parts = Vec::new();
    parts.extend(workload.is_part().then(|| "a part of the recording".to_owned()));
    if let Some(requests) = workload.requests {
        let reads = workload.reads.map_or_else(String::new, |reads| format!(", {} of them reads", grouped(reads)));
        parts.push(format!("{}{reads}", counted(requests, "request", "requests")));
    }
    let (singular, many) = match workload.kind {
        WorkloadKind::Application | WorkloadKind::Several => ("task", "tasks"),
        WorkloadKind::Command => ("command", "commands"),
        _ => ("process", "processes"),
    };
    parts.push(counted(workload.tasks, singular, many));
    if let Some(span) = workload.span_ns {
        parts.push(format!("recorded over {}", time(span as f64, 3)));
    } else {
        let what = match workload.kind {
            WorkloadKind::Application => "a program's system calls",
            WorkloadKind::Command => "measured from start to end",
            WorkloadKind::Several => "several units at the same time",
            _ => "synthetic",
        };
        parts.push(what.to_owned());
    }
    parts.join("; ")
}

pub(crate) fn device(device: &DeviceRecord) -> String {
    if !device.about.is_empty() {
        return device.about.clone();
    }
    let cache = if device.write_cache { "write cache on" } else { "no write cache" };
    let moves = if device.rotational { "rotational" } else { "no seeks" };
    let depth = counted(device.depth.into(), "command", "commands");
    format!("{}; {depth} in flight; {cache}; {moves}", bytes(device.capacity_sectors as f64 * SECTOR))
}

fn block_layer(header: &Header) -> String {
    let block_layer = &header.block_layer;
    let groups = if block_layer.groups { "cgroups distinguished" } else { "cgroups not distinguished" };
    let plug = if block_layer.plug { "plugs as on real systems" } else { "no plugs" };
    format!("{} jiffies per second; {groups}; {plug}", grouped(block_layer.hz.into()))
}

/// Describes the machine on which a real device was measured.
fn machine(machine: &MachineFacts) -> String {
    let cpu = machine.cpu_model.as_deref().map_or_else(String::new, |model| format!(", {model}"));
    let within =
        machine.virtualisation.as_deref().map_or_else(String::new, |kind| format!("; virtual machine: {kind}"));
    let memory = bytes(machine.memory_bytes as f64);
    format!(
        "Linux {}; {}{cpu}; {memory} of memory{within}",
        machine.kernel,
        counted(machine.cpus.into(), "CPU", "CPUs")
    )
}

fn replay(replay: Replay) -> String {
    match replay {
        Replay::Open { speed } => {
            let pace = if speed == 1.0 {
                "at the recorded pace".to_owned()
            } else {
                format!("at {speed} times the recorded speed")
            };
            format!("open: I/Os arrive at their recorded times, {pace}, and do not wait for the device")
        }
        Replay::Closed => "closed: each process keeps its think times and the order of its I/Os, and waits for I/O on \
            this device"
            .to_owned(),
    }
}

fn limit(header: &Header) -> Option<String> {
    let last = header.limit.time_ns.map(|ns| format!("no I/O is submitted after {}", time(ns as f64, 3)));
    let ios = header.limit.ios.map(|ios| format!("at most {} I/Os are submitted", grouped(ios)));
    let warm_up = (header.warm_up_ns > 0)
        .then(|| format!("the first {} of each run are a warm-up and do not count", time(header.warm_up_ns as f64, 3)));
    let parts: Vec<String> = warm_up.into_iter().chain(last).chain(ios).collect();
    (!parts.is_empty()).then(|| parts.join("; "))
}

fn settings(view: &View<'_>) -> Markup {
    html! {
        div .scroll tabindex="0" {
            table .settings {
                thead { tr { th scope="col" { "#" } th scope="col" { "Setting" } th scope="col" { "Values set" } } }
                tbody {
                    @for (setting, values) in view.settings.iter().zip(&view.device().values) {
                        tr {
                            td .number { (setting.number + 1) }
                            th scope="row" {
                                (name(setting))
                                @if setting.number == view.header().baseline { " " span .quiet { "baseline" } }
                            }
                            td { (set_values(values)) }
                        }
                    }
                }
            }
        }
    }
}

fn shown(value: &str, unit: &str) -> String {
    if unit.is_empty() { value.to_owned() } else { format!("{value} {unit}") }
}

fn set_values(values: &[ValueRecord]) -> String {
    let set: Vec<String> = values
        .iter()
        .filter(|value| value.set)
        .map(|value| format!("{} = {}", value.name, shown(&value.value, &value.unit)))
        .collect();
    if set.is_empty() { "none: all defaults".to_owned() } else { set.join(", ") }
}

/// Returns the table of values, with a row per tunable and attribute and a column per setting.
fn all_values(view: &View<'_>) -> Markup {
    let settings = &view.device().values;
    let mut rows: Vec<(bool, &str, &str)> = Vec::new();
    for value in settings.iter().flatten() {
        let row = (value.attribute, value.name.as_str(), value.unit.as_str());
        if !rows.contains(&row) {
            rows.push(row);
        }
    }
    rows.sort_by_key(|&(attribute, ..)| attribute);
    let value = |values: &[ValueRecord], row: (bool, &str, &str)| {
        let found = values.iter().find(|v| (v.attribute, v.name.as_str(), v.unit.as_str()) == row);
        found.map(|v| (v.value.clone(), v.set))
    };
    html! {
        table {
            thead {
                tr {
                    th scope="col" { "Name" }
                    th scope="col" { "Unit" }
                    th scope="col" { "Of" }
                    @for setting in &view.settings { th scope="col" .number { (name(setting)) } }
                }
            }
            tbody {
                @for row in rows {
                    tr {
                        th scope="row" { (row.1) }
                        td .unit { (row.2) }
                        td .quiet { @if row.0 { "queue" } @else { "elevator" } }
                        @for setting in settings {
                            @match value(setting, row) {
                                Some((value, true)) => { td .number { strong { (value) } } }
                                Some((value, false)) => { td .number { (value) } }
                                None => { td .number .quiet { "–" } }
                            }
                        }
                    }
                }
            }
        }
    }
}
