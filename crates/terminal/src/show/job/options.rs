//! The list of fio's options.

use std::fmt::Write as _;

use anyhow::Result;
use iosched_workload::fio::{Category, JobOption, Treatment, job_options};
use serde_json::json;

use crate::fail::usage;

/// Returns all options, or only the options whose names contain `name`.
///
/// # Errors
/// No name of an option contains `name`.
pub fn list(name: Option<&str>, as_json: bool) -> Result<String> {
    let matches = |option: &&JobOption| {
        let names = || option.aliases.iter().copied().chain([option.name]);
        name.is_none_or(|name| names().any(|known| known.contains(name)))
    };
    let options: Vec<&JobOption> = job_options().filter(matches).collect();
    if let (true, Some(name)) = (options.is_empty(), name) {
        return Err(usage(format_args!("{name}: no fio option has this text in its name")));
    }
    if as_json {
        let options: Vec<_> = options.iter().map(|option| json_of(option)).collect();
        return Ok(serde_json::to_string_pretty(&options)? + "\n");
    }
    Ok(if options.len() <= DETAILS_MAX { details(&options) } else { table(&options) })
}

/// Largest number of options that are shown with details.
const DETAILS_MAX: usize = 12;

fn json_of(option: &JobOption) -> serde_json::Value {
    json!({
        "name": option.name,
        "aliases": option.aliases,
        "category": option.category.title(),
        "value": option.kind.to_string(),
        "engines": option.engines,
        "treatment": option.treatment.name(),
        "reason": option.treatment.reason(),
        "meaning": option.help,
    })
}

fn names(option: &JobOption) -> String {
    let mut names = option.name.to_owned();
    for alias in option.aliases {
        let _ = write!(names, ", {alias}");
    }
    names
}

fn details(options: &[&JobOption]) -> String {
    let mut text = String::new();
    for option in options {
        let _ = writeln!(text, "{}: {}", names(option), option.help);
        let _ = writeln!(text, "  takes    {}", option.kind);
        if !option.engines.is_empty() {
            let _ = writeln!(text, "  engines  {}", option.engines.join(", "));
        }
        let reason = option.treatment.reason();
        let colon = if reason.is_empty() { "" } else { ": " };
        let _ = writeln!(text, "  here     {}{colon}{reason}", option.treatment.name());
    }
    text
}

fn table(options: &[&JobOption]) -> String {
    let mut text = String::new();
    let width = options.iter().map(|option| names(option).len()).max().unwrap_or(0);
    for category in Category::ALL {
        let of_category: Vec<_> = options.iter().filter(|option| option.category == category).collect();
        if of_category.is_empty() {
            continue;
        }
        let _ = writeln!(text, "{}{}", if text.is_empty() { "" } else { "\n" }, category.title());
        for option in of_category {
            let _ = writeln!(text, "  {:width$}  {:20} {}", names(option), option.treatment.name(), option.help);
        }
    }
    let count = |wanted: fn(Treatment) -> bool| options.iter().filter(|option| wanted(option.treatment)).count();
    let _ = writeln!(
        text,
        "\n{} options: {} supported, {} without effect, {} not supported. `iosched job options NAME` says why.",
        options.len(),
        count(|treatment| treatment == Treatment::Honoured),
        count(|treatment| matches!(treatment, Treatment::NoEffect { .. })),
        count(|treatment| !matches!(treatment, Treatment::Honoured | Treatment::NoEffect { .. })),
    );
    text
}
