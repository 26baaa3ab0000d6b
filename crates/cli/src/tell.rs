//! What iosched knows of schedulers.

use std::fmt::Write as _;

use anyhow::Result;
use clap::Subcommand;
use iosched::{Layer, Registered, RequestQueue, Spec};

use crate::output;

#[derive(Debug, Subcommand)]
pub(crate) enum ElevatorCommand {
    /// List the schedulers
    List,
    /// Say what can be set of a scheduler and of its queue
    Show {
        /// Its name
        #[arg(value_name = "NAME")]
        name: String,
    },
}

pub(crate) fn elevator(command: &ElevatorCommand) -> Result<()> {
    let mut text = String::new();
    match command {
        ElevatorCommand::List => {
            for elevator in iosched::Registry::linux().elevators() {
                let _ = writeln!(text, "{:14}{:18}{}", elevator.name, kernels(elevator), elevator.about);
            }
        }
        ElevatorCommand::Show { name } => {
            let elevator = iosched::Registry::linux().get(name)?;
            let _ = writeln!(text, "{}: {}\n", elevator.name, elevator.about);
            let _ = writeln!(text, "{:12}{}, {}", "in Linux", kernels(&elevator), layer(elevator.layer));
            let _ = writeln!(text, "{:12}{}", "use it for", elevator.when);
            for (number, line) in elevator.how.iter().enumerate() {
                let _ = writeln!(text, "{:12}{line}", if number == 0 { "decides" } else { "" });
            }
            text.push('\n');
            let tunables = (elevator.tunables)();
            if tunables.is_empty() {
                let _ = writeln!(text, "nothing can be set of it");
            } else {
                specs(&mut text, "tunable", &tunables);
            }
            text.push('\n');
            specs(&mut text, "of the queue", &RequestQueue::attribute_specs().collect::<Vec<_>>());
            if let Some(first) = tunables.first() {
                let _ = writeln!(text, "\nset with --scheduler {}:{}={}", elevator.name, first.name, first.default);
            }
        }
    }
    output::print(&text)
}

/// The kernels that have it, or had.
fn kernels(elevator: &Registered) -> String {
    match elevator.until {
        Some(until) => format!("{} to {until}", elevator.since),
        None => format!("{} to today", elevator.since),
    }
}

fn layer(layer: Layer) -> &'static str {
    match layer {
        Layer::SingleQueue => "on the legacy request queue",
        Layer::MultiQueue(_) => "on blk-mq",
    }
}

/// A table of declarations.
fn specs(text: &mut String, title: &str, specs: &[&Spec]) {
    let range = |spec: &Spec| format!("{}..={}", spec.number(spec.min), spec.number(spec.max));
    let ranges = specs.iter().map(|spec| range(spec).len()).max().unwrap_or(0);
    let _ = writeln!(text, "{title:20}{:>10}{:>10}  {:ranges$}  {:8}what it does", "unit", "default", "range", "since");
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
            "{:20}{:>10}{:>10}  {:ranges$}  {:8}{doc}",
            spec.name,
            spec.unit.to_string(),
            spec.number(spec.default),
            range(spec),
            spec.since
        );
    }
}
