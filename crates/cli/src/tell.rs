//! What iosched knows: traces and schedulers.

use std::fmt::Write as _;
use std::path::Path;

use anyhow::Result;
use iosched::{RequestQueue, Spec};
use iosched_lab::grouped;
use iosched_trace::{Format, TraceReader, convert, summarize};

use crate::args::{ElevatorCommand, TraceCommand};
use crate::fail::usage;
use crate::output;

pub(crate) fn trace(command: &TraceCommand) -> Result<()> {
    match command {
        TraceCommand::Info { file, json } => {
            let summary = summarize(&mut TraceReader::open(file)?)?;
            output::print(&if *json { serde_json::to_string_pretty(&summary)? + "\n" } else { format!("{summary}\n") })
        }
        TraceCommand::Convert { input, output: path, format } => convert_trace(input, path, *format),
    }
}

fn convert_trace(input: &Path, path: &Path, format: Option<Format>) -> Result<()> {
    let format = match format.or_else(|| format_of_name(path)) {
        Some(format) => format,
        None => {
            let writable = Format::ALL.into_iter().filter(|format| format.is_writable());
            let first = writable.filter_map(|format| format.spec().extensions.first().copied());
            let endings: Vec<_> = first.map(|ending| format!(".{ending}")).collect();
            return Err(usage(format_args!(
                "{}: the name does not tell the format; say --format FORMAT, or end it in one of {}",
                path.display(),
                endings.join(", ")
            )));
        }
    };
    let mut reader = TraceReader::open(input)?;
    let report = if path == Path::new("-") {
        convert(&mut reader, std::io::stdout().lock(), format).map_err(unwrap_write)?
    } else {
        output::whole_file(path, |out| Ok(convert(&mut reader, out, format)?))?
    };
    for warning in reader.warnings().kept() {
        eprintln!("warning: {warning}");
    }
    let more = reader.warnings().total() - reader.warnings().kept().len() as u64;
    if more > 0 {
        eprintln!("warning: and {} more", grouped(more));
    }
    eprintln!("{report}");
    Ok(())
}

/// A closed pipe is to be seen as such.
fn unwrap_write(error: iosched_trace::TraceError) -> anyhow::Error {
    match error {
        iosched_trace::TraceError::Write(error) => error.into(),
        other => other.into(),
    }
}

fn format_of_name(path: &Path) -> Option<Format> {
    Format::of_file_name(path.file_name()?.to_str()?).filter(|format| format.is_writable())
}

pub(crate) fn elevator(command: &ElevatorCommand) -> Result<()> {
    let mut text = String::new();
    match command {
        ElevatorCommand::List => {
            for elevator in iosched::ELEVATORS {
                let _ = writeln!(text, "{:16}{}", elevator.name, elevator.about);
            }
        }
        ElevatorCommand::Show { name } => {
            let elevator = iosched::elevator(name)?;
            let _ = writeln!(text, "{}: {}\n", elevator.name, elevator.about);
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

/// A table of declarations.
fn specs(text: &mut String, title: &str, specs: &[&Spec]) {
    let range = |spec: &Spec| format!("{}..={}", spec.min, spec.max);
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
            spec.default,
            range(spec),
            spec.since
        );
    }
}
