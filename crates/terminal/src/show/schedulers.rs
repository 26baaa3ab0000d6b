//! Descriptions of schedulers and controllers.

use std::fmt::Write as _;

use anyhow::Result;
use iosched::controllers::{About, FileOf, policies};
use iosched::{Layer, Registry, RequestQueue, Spec, TextSpec};

use crate::fail::usage;

/// Returns a line for each controller.
pub fn controllers() -> String {
    let mut text = String::new();
    for policy in policies() {
        let _ = writeln!(text, "{:12}{:16}{}", policy.name, kernels(policy), policy.about);
    }
    text
}

/// Returns the description of the controller with this name or with a file of this name.
///
/// # Errors
/// There is no such controller.
pub fn controller(name: &str) -> Result<String> {
    let mut text = String::new();
    show_policy(&mut text, named_policy(name)?);
    Ok(text)
}

fn named_policy(name: &str) -> Result<&'static About> {
    let is_named = |policy: &&About| policy.name == name || policy.files.iter().any(|file| file.name == name);
    policies().iter().find(is_named).ok_or_else(|| {
        let known: Vec<&str> = policies().iter().map(|policy| policy.name).collect();
        usage(format!("there is no controller {name:?}; available: {}", known.join(", ")))
    })
}

/// Returns the versions of Linux with the controller.
fn kernels(policy: &About) -> String {
    if policy.since.is_empty() { "iosched".to_owned() } else { format!("{} to today", policy.since) }
}

fn show_policy(text: &mut String, policy: &About) {
    let _ = writeln!(text, "{}: {}\n", policy.name, policy.about);
    let place = if policy.since.is_empty() { "part of" } else { "in Linux" };
    let _ = writeln!(text, "{place:12}{}, with blk-mq schedulers", kernels(policy));
    for (title, lines) in [("use it for", &[policy.when][..]), ("decides", policy.how), ("harms", policy.harms)] {
        for (number, line) in lines.iter().enumerate() {
            let _ = writeln!(text, "{:12}{line}", if number == 0 { title } else { "" });
        }
    }
    let _ = writeln!(text, "\n{:16}{:14}takes", "file", "of");
    for file in policy.files {
        let owner = match file.of {
            FileOf::Queue => "the queue",
            FileOf::Cgroup => "a cgroup",
            FileOf::Root => "the device",
        };
        let _ = writeln!(text, "{:16}{owner:14}{}", file.name, file.takes);
    }
    let elevator = match policy.name {
        "io.bfq" => "bfq",
        "io.mclock" => "mclock",
        _ => "mq-deadline",
    };
    text.push('\n');
    for file in policy.files {
        let _ = writeln!(text, "set with --scheduler {elevator}:{}={}", file.name, file.example);
    }
}

/// Returns a line for each scheduler.
pub fn schedulers() -> String {
    let mut text = String::new();
    for elevator in Registry::linux().elevators() {
        let _ = writeln!(text, "{:14}{:25}{}", elevator.name, elevator.kernels(), elevator.about);
    }
    text
}

/// Returns the description of a scheduler, with its tunables and the attributes of its queue.
///
/// # Errors
/// There is no such scheduler.
pub fn scheduler(name: &str) -> Result<String> {
    let mut text = String::new();
    let elevator = Registry::linux().get(name)?;
    let _ = writeln!(text, "{}: {}\n", elevator.name, elevator.about);
    let place = if elevator.is_in_no_kernel() { "part of" } else { "in Linux" };
    let _ = writeln!(text, "{place:12}{}, {}", elevator.kernels(), layer(elevator.layer));
    let _ = writeln!(text, "{:12}{}", "use it for", elevator.when);
    for (number, line) in elevator.how.iter().enumerate() {
        let _ = writeln!(text, "{:12}{line}", if number == 0 { "decides" } else { "" });
    }
    text.push('\n');
    let tunables = (elevator.tunables)();
    if tunables.is_empty() {
        let _ = writeln!(text, "this scheduler has no tunables");
    } else {
        specs(&mut text, "tunable", &tunables);
    }
    for TextSpec { name, takes, doc, .. } in elevator.texts {
        let takes = if takes.is_empty() { "read-only".to_owned() } else { format!("takes {takes}") };
        let _ = writeln!(text, "{name:20}{doc}; {takes}");
    }
    text.push('\n');
    specs(&mut text, "of the queue", &RequestQueue::attribute_specs().collect::<Vec<_>>());
    if let Some(first) = tunables.first() {
        let _ = writeln!(text, "\nset with --scheduler {}:{}={}", elevator.name, first.name, first.default);
    }
    Ok(text)
}

fn layer(layer: Layer) -> &'static str {
    match layer {
        Layer::SingleQueue => "on the legacy request queue",
        Layer::MultiQueue(_) => "on blk-mq",
    }
}

/// Writes a table of declared tunables.
fn specs(text: &mut String, title: &str, specs: &[&Spec]) {
    let range = |spec: &Spec| format!("{}..={}", spec.number(spec.min), spec.number(spec.max));
    let ranges = specs.iter().map(|spec| range(spec).len()).max().unwrap_or(0);
    let sinces = specs.iter().map(|spec| spec.since.len()).max().unwrap_or(0).max("since".len());
    let _ =
        writeln!(text, "{title:24}{:>8} {:>10}  {:ranges$}  {:sinces$}  meaning", "unit", "default", "range", "since");
    for spec in specs {
        let mut doc = spec.doc.to_owned();
        if spec.read_only {
            doc.push_str("; read-only");
        }
        if let Some(other) = spec.alias_of {
            let _ = write!(doc, "; the same value as {other}");
        }
        let _ = writeln!(
            text,
            "{:24}{:>8} {:>10}  {:ranges$}  {:sinces$}  {doc}",
            spec.name,
            spec.unit.to_string(),
            spec.number(spec.default),
            range(spec),
            spec.since
        );
    }
}
