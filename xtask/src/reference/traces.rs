//! The page of trace formats.

use std::fmt::Write as _;

use iosched::{Flags, Op};
use iosched_trace::{Format, FormatSpec, Holds};

/// The page.
pub(super) fn page() -> String {
    let mut page = String::from(
        "# Traces\n\n\
         Written by `cargo xtask reference` from the declarations in the code.\n\n\
         A trace is recognised by its content, then by its name; gzip and Zstandard by their magic, whatever the name. A \
         name without a file stands for the per-CPU files of blktrace that begin with it. Files are read as streams, with \
         bounded memory; records that are slightly out of order are sorted; damage is told with its place, and what can \
         be read around it is read. What is not aligned to sectors of 512 bytes is widened to whole ones. What a format \
         does not say stays unknown: no latency is 0 because it was not recorded.\n\n\
         `iosched trace info` says what a trace is like. `convert`, `slice`, `scale`, `remap` and `filter` write one, in \
         any format that can be written, and say on standard error what of it the format has no place for.\n\n\
         ## Recognised and read\n\n\
         | format | what it is | names end in | recognised by | a record | what is read | times |\n\
         |---|---|---|---|---|---|---|\n",
    );
    for format in Format::ALL {
        let FormatSpec { name, about, extensions, recognised, record, read, from_first, resolution_ns, .. } =
            format.spec();
        let extensions: Vec<_> = extensions.iter().map(|extension| format!("`.{extension}`")).collect();
        let origin = if from_first { "since the first record" } else { "as written" };
        let record = record.replace('|', "\\|");
        let _ = writeln!(
            page,
            "| `{name}` | {about} | {} | {recognised} | {record} | {read} | {origin}, to {} |",
            extensions.join(", "),
            duration(resolution_ns)
        );
    }
    page.push_str(
        "\n## Written\n\n\
         | format | operations | flags | times | processes | devices | latencies |\n|---|---|---|---|---|---|---|\n",
    );
    for format in Format::ALL {
        let FormatSpec { name, resolution_ns, holds, .. } = format.spec();
        let Some(holds) = holds else {
            let _ = writeln!(page, "| `{name}` | not written | | | | | |");
            continue;
        };
        let times = if holds.times { format!("to {}", duration(resolution_ns)) } else { "lost".to_owned() };
        let held = |held: bool| if held { "held" } else { "lost" };
        let _ = writeln!(
            page,
            "| `{name}` | {} | {} | {times} | {} | {} | {} |",
            operations(&holds),
            flags(holds.flags),
            held(holds.processes),
            held(holds.devices),
            held(holds.latencies)
        );
    }
    page.push_str(
        "\nWriting zeroes is written as a write where the format does not tell them apart; other operations that a format \
         does not have are left out. A latency that is not known is left empty in `csv` and `msr`, and has no completion in \
         `blktrace`; a device that is not known is 0, in `blktrace` 8,0. From a block trace to `blktrace` every event is written, else \
         submissions and completions; in the file of one CPU, which blkparse and btt read under the name \
         `BASE.blktrace.0`. Full event \
         streams are written through `EventWriter`.\n\n\
         `fio-v2` is written without times: fio's manual has `wait` in µs since the previous one, fio 3.33 waits until so \
         many ms after its start. `fio-v3` is replayed in time: \
         `fio --name=replay --read_iolog=FILE --replay_redirect=/dev/DEVICE --ioengine=libaio --direct=1`.\n",
    );
    page
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
