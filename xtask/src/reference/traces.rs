//! The page of trace formats: a template, and tables from the declarations of the formats.

use std::fmt::Write as _;

use iosched::{Flags, Op};
use iosched_trace::{Format, FormatSpec, Holds, LOST_PERCENT_MAX, UNMATCHED_MIN};

/// Text of the page. Names in double braces stand for generated parts.
const TEMPLATE: &str = include_str!("traces.md");

/// Returns the page.
pub(super) fn page() -> String {
    let parts = [
        ("formats", formats()),
        ("written", written()),
        ("lost_percent", LOST_PERCENT_MAX.to_string()),
        ("unmatched", UNMATCHED_MIN.to_string()),
    ];
    let fill = |page: String, (name, text): &(&str, String)| page.replace(&format!("{{{{{name}}}}}"), text);
    parts.iter().fold(TEMPLATE.to_owned(), fill)
}

/// Returns a row for each format that iosched can read. The example in each row is the same
/// request.
fn formats() -> String {
    let mut rows = String::new();
    for format in Format::ALL {
        let FormatSpec {
            name, about, extensions, recognised, record, read, from_first, resolution_ns, example, ..
        } = format.spec();
        let extensions: Vec<_> = extensions.iter().map(|extension| format!("`.{extension}`")).collect();
        let origin = if from_first { "since the first record" } else { "as written" };
        let record = record.replace('|', "\\|");
        let _ = writeln!(
            rows,
            "| `{name}` | {about} | {} | {recognised} | {record} | `{}` | {read} | {origin}, with a precision of {} |",
            extensions.join(", "),
            example.replace('\n', " ⏎ "),
            duration(resolution_ns)
        );
    }
    rows
}

/// Returns a row for each format that iosched can write, with the data that the format can store.
fn written() -> String {
    let mut rows = String::new();
    for format in Format::ALL {
        let FormatSpec { name, resolution_ns, holds, .. } = format.spec();
        let Some(holds) = holds else {
            let _ = writeln!(rows, "| `{name}` | not written | | | | | | |");
            continue;
        };
        let times = if holds.times { format!("precision of {}", duration(resolution_ns)) } else { "lost".to_owned() };
        let held = |held: bool| if held { "held" } else { "lost" };
        let _ = writeln!(
            rows,
            "| `{name}` | {} | {} | {times} | {} | {} | {} | {} |",
            operations(&holds),
            flags(holds.flags),
            held(holds.processes),
            held(holds.priorities),
            held(holds.devices),
            held(holds.latencies)
        );
    }
    rows
}

fn operations(holds: &Holds) -> String {
    let name = |op: &Op| match op {
        Op::Read => "read",
        Op::Write => "write",
        Op::Discard => "discard",
        Op::WriteZeroes => "write zeroes",
        Op::Flush => "flush",
    };
    holds.ops.iter().map(name).collect::<Vec<_>>().join(", ")
}

fn flags(flags: Flags) -> String {
    if flags.is_empty() {
        return "none".to_owned();
    }
    let names = [
        (Flags::SYNC, "sync"),
        (Flags::IDLE, "idle"),
        (Flags::PRIO, "priority"),
        (Flags::FUA, "FUA"),
        (Flags::PREFLUSH, "preflush"),
        (Flags::AHEAD, "readahead"),
    ];
    let held = names.into_iter().filter(|(flag, _)| flags.contains(*flag));
    held.map(|(_, name)| name).collect::<Vec<_>>().join(", ")
}

fn duration(ns: u64) -> String {
    match ns {
        1_000_000_000.. => format!("{} s", ns / 1_000_000_000),
        1_000.. => format!("{} µs", ns / 1_000),
        _ => format!("{ns} ns"),
    }
}
