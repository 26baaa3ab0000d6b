//! bonnie++: writes, rewrites and reads files of twice the memory, and seeks in them.
//!
//! Files of at most 1 GiB hold the data. The phases by character use stdio, which moves blocks of 4 KiB: they are the
//! same I/O as the phases by block, with CPU time for each character. Five processes share 8,192 seeks: each reads a
//! block, and every tenth writes it again. The phases that create, stat and delete small files are not simulated.

use crate::WorkloadError;
use crate::app::command_line::Line;
use crate::app::option::{flag, option};
use crate::app::phased::{Action, Order, Phase, PhaseResult, Plan, Syncs};
use crate::app::{About, Better, Figure, OpenFlags, Report};
use crate::outcome::Note;

/// bonnie++.
pub(in crate::app) const ABOUT: About = About {
    name: "bonnie++",
    about: "writes, rewrites and reads files of twice the memory, and seeks in them",
    options: &[
        option("-s", "SIZE[:BLOCK]", "of all files, MiB, or with k, m, g; blocks of 8k; twice -r"),
        option("-r", "MIB", "memory, MiB"),
        option("-d", "DIR", "accepted: where the files are"),
        option("-n", "FILES", "0; small files are not simulated"),
        flag("-f", "no phases by character"),
        flag("-b", "fsync after each write"),
        flag("-D", "past the page cache"),
        option("-u", "USER", "accepted: whose process it is"),
        option("-g", "GROUP", "accepted: whose process it is"),
        option("-m", "NAME", "accepted: what is printed"),
        option("-z", "SEED", "accepted: each run has a seed"),
        flag("-q", "accepted: what is printed"),
    ],
};

const MIB: u64 = 1 << 20;
/// Largest file.
const FILE_BYTES: u64 = 1 << 30;
const BLOCK_BYTES: u64 = 8 << 10;
/// What stdio moves at once.
const STDIO_BYTES: u64 = 4 << 10;
/// CPU time of putc(3) and getc(3), ns a character.
const CHARACTER_NS: u64 = 10;
const SEEKERS: usize = 5;
const SEEKS: u64 = 8_192;
/// Every so many seeks the block is written again.
const UPDATE_EVERY: u64 = 10;

/// What bonnie++ is asked to do.
pub(in crate::app) fn plan(line: &Line<'_>) -> Result<Plan, WorkloadError> {
    let given = line.letters(ABOUT.options)?;
    let last = |name: &str| given.iter().rev().find(|given| given.name == name).copied();
    let has = |name: &str| last(name).is_some();
    let memory = last("-r").map(|given| line.number(given, 1, 1 << 30)).transpose()?;
    let (size, block) = match last("-s") {
        None => (None, None),
        Some(given) => {
            let (size, block) = given.value.split_once(':').map_or((given.value, None), |(a, b)| (a, Some(b)));
            let part = |value, unit| line.size(crate::app::command_line::Given { value, ..given }, unit);
            (Some(part(size, MIB)?), block.map(|block| part(block, 1)).transpose()?)
        }
    };
    let Some(total_bytes) = size.or_else(|| memory.map(|mib| mib * 2 * MIB)) else {
        let problem = "is missing: bonnie++ takes twice the memory of its machine";
        return Err(line.error("-s", problem, "write -s SIZE, as -s 8g"));
    };
    let block_bytes = block.unwrap_or(BLOCK_BYTES);
    let file_bytes = total_bytes.min(FILE_BYTES);
    if !block_bytes.is_power_of_two() || !(512..=file_bytes).contains(&block_bytes) {
        let problem = format!("a block of {block_bytes} bytes");
        return Err(line.error("-s", problem, "write a power of two from 512 up to the size of a file"));
    }
    let mut files = vec![FILE_BYTES; (total_bytes / FILE_BYTES) as usize];
    files.extend(Some(total_bytes % FILE_BYTES).filter(|&rest| rest >= block_bytes));
    let syncs = Syncs { each_write: has("-b"), ..Syncs::default() };
    let open = OpenFlags { direct: has("-D"), ..OpenFlags::default() };
    let make = OpenFlags { create: true, truncate: true, ..open };
    let block = Phase {
        name: "block_write",
        tasks: 1,
        action: Action::Write,
        order: Order::Once,
        block_bytes,
        flags: make,
        requests: None,
        duration_ns: None,
        compute_ns: 0,
        syncs,
        has_latency: false,
    };
    // stdio knows no O_DIRECT.
    let by_character = Phase {
        name: "char_write",
        block_bytes: STDIO_BYTES,
        compute_ns: CHARACTER_NS * STDIO_BYTES,
        flags: OpenFlags { create: true, truncate: true, ..OpenFlags::default() },
        ..block.clone()
    };
    let rewrite = Phase { name: "rewrite", action: Action::Rewrite, flags: open, ..block.clone() };
    let read = Phase { name: "block_read", action: Action::Read, ..rewrite.clone() };
    let read_by_character =
        Phase { name: "char_read", action: Action::Read, flags: OpenFlags::default(), ..by_character.clone() };
    let seeks = Phase {
        name: "seeks",
        tasks: SEEKERS,
        action: Action::ReadAndUpdate { every: UPDATE_EVERY },
        order: Order::Random,
        requests: Some(SEEKS),
        ..rewrite.clone()
    };
    let characters = !has("-f");
    let all = [
        (characters, by_character),
        (true, block),
        (true, rewrite),
        (characters, read_by_character),
        (true, read),
        (true, seeks),
    ];
    let mut notes = Vec::new();
    if last("-n").is_none_or(|given| given.value != "0") {
        let what = "the phases of bonnie++ that create, stat and delete small files".to_owned();
        notes.push(Note::NotCarriedOut { what, why: "they are not simulated; -n 0 leaves them out".to_owned() });
    }
    Ok(Plan {
        program: ABOUT.name,
        files,
        files_exist: false,
        tasks: SEEKERS,
        phases: all.into_iter().filter(|(wanted, _)| *wanted).map(|(_, phase)| phase).collect(),
        report,
        notes,
    })
}

/// KiB a second of each phase, and seeks a second.
fn report(results: &[PhaseResult]) -> Report {
    let mut report = Report::default();
    for result in results.iter().filter(|result| result.requests > 0) {
        let kib = result.bytes_read.max(result.bytes_written) as f64 / 1_024.0;
        let (unit, amount) = match result.name {
            "seeks" => ("1/s", result.requests as f64),
            _ => ("KiB/s", kib),
        };
        let (name, value) = (result.name.to_owned(), amount / result.seconds());
        report.figures.push(Figure { name, unit: unit.into(), value, better: Better::Higher });
    }
    report
}

#[cfg(test)]
mod tests {
    use crate::app::tests::calls;
    use crate::app::{Call, Spec};

    #[test]
    fn phases_follow_each_other() {
        let (made, app) = calls("bonnie++ -d /mnt -s 16 -n 0 -u root", 1_000);
        let bytes = |wanted: fn(&Call) -> Option<u64>| made.iter().filter_map(|made| wanted(&made.call)).sum::<u64>();
        let written = bytes(|call| match call {
            Call::Write { bytes, calls, .. } => Some(bytes * calls),
            _ => None,
        });
        let read = bytes(|call| match call {
            Call::Read { bytes, calls, .. } => Some(bytes * calls),
            _ => None,
        });
        // By character, by block and rewritten, and every tenth seek; likewise read.
        assert_eq!(written, 3 * (16 << 20) + 819 * 8_192);
        assert_eq!(read, 3 * (16 << 20) + 8_192 * 8_192);
        let names: Vec<String> = app.report().figures.into_iter().map(|own| own.name).collect();
        assert_eq!(names, ["char_write", "block_write", "rewrite", "char_read", "block_read", "seeks"]);
        let fast = calls("bonnie++ -f -s 16", 1_000).1;
        assert_eq!(fast.report().figures[0].name, "block_write");
    }

    #[test]
    fn files_have_at_most_one_gib() {
        let spec = Spec::parse("bonnie++ -f -r 1100 -n 0").unwrap();
        let app = spec.start(1, u64::MAX);
        assert!(app.existing().is_empty());
        let (made, _) = calls("bonnie++ -f -s 2200m:1m -n 0", 1_000);
        let opened = made.iter().filter(|made| matches!(made.call, Call::Open { flags, .. } if flags.truncate)).count();
        assert_eq!(opened, 3);
    }

    #[test]
    fn small_files_are_said_not_to_be_simulated() {
        let notes = |text: &str| Spec::parse(text).unwrap().start(1, u64::MAX).told(0).notes.len();
        assert_eq!((notes("bonnie++ -f -s 16"), notes("bonnie++ -f -s 16 -n 0")), (1, 0));
    }

    #[test]
    fn errors_name_the_option() {
        let error = |text: &str| Spec::parse(text).map(|_| ()).unwrap_err().to_string();
        assert!(error("bonnie++ -d /tmp").contains("-s: is missing"));
        assert!(error("bonnie++ -s 16 -x 3").contains("-x: unknown option"));
        assert!(error("bonnie++ -s 16:3k").contains("-s: a block of 3072 bytes"));
    }
}
