//! bonnie++: writes, rewrites and reads files that are twice as large as the memory, then seeks in
//! the files.
//!
//! The model follows the system calls of version 2.00a. One file has the data. A phase that writes
//! ends with an fsync, whose duration is part of the phase. The phases by character move 3 MiB with
//! calls of one byte each, independent of the size of the file. Five processes divide 8,192 seeks
//! among themselves. Each seek reads a block, and every tenth seek also writes the block. The
//! phases that create, stat and delete small files are not simulated.

use crate::WorkloadError;
use crate::app::command_line::Line;
use crate::app::option::{flag, option};
use crate::app::phased::{Action, Order, Phase, PhaseResult, Plan, Syncs};
use crate::app::{About, Better, Figure, OpenFlags, Report};
use crate::outcome::Note;

/// Name and options of bonnie++.
pub(in crate::app) const ABOUT: About = About {
    name: "bonnie++",
    about: "writes, rewrites and reads files that are twice as large as the memory, and then seeks in these files",
    options: &[
        option(
            "-s",
            "SIZE[:BLOCK]",
            "size of all files together, in MiB or with k, m, g (default: twice the size of -r); size of a block \
             (default: 8k)",
        ),
        option("-r", "MIB", "size of the memory in MiB"),
        option("-d", "DIR", "directory of the files; no effect in iosched"),
        option("-n", "FILES", "must be 0, because iosched does not simulate small files"),
        flag("-f", "skip the phases that read and write single characters"),
        flag("-b", "fsync after each write"),
        flag("-D", "bypass the page cache"),
        option("-u", "USER", "user or group of the process; no effect in iosched"),
        option("-g", "GROUP", "user or group of the process; no effect in iosched"),
        option("-m", "NAME", "no effect in iosched, because the option affects only the output"),
        option("-z", "SEED", "no effect in iosched, because each run has a seed"),
        flag("-q", "no effect in iosched, because the option affects only the output"),
        option("-c", "N", "number of copies at the same time; must be 1"),
        option("-x", "N", "number of repetitions; no effect in iosched, use --runs instead"),
    ],
};

const MIB: u64 = 1 << 20;
const BLOCK_BYTES: u64 = 8 << 10;
/// Bytes that the phases by character move.
const CHARACTERS: u64 = 3 << 20;
const SEEKERS: usize = 5;
const SEEKS: u64 = 8_192;
/// Seeks whose number is a multiple of this number also write the block.
const UPDATE_EVERY: u64 = 10;

/// Parses the options of bonnie++ into phases.
pub(in crate::app) fn plan(line: &Line<'_>) -> Result<Plan, WorkloadError> {
    let given = line.letters(ABOUT.options)?;
    let last = |name: &str| given.iter().rev().find(|given| given.name == name).copied();
    let has = |name: &str| last(name).is_some();
    if let Some(given) = last("-c").filter(|given| given.value != "1") {
        let remedy = "write -c 1, or use a fio command line with --numjobs";
        return Err(line.error(
            "-c",
            format!("iosched does not simulate {} copies at the same time", given.value),
            remedy,
        ));
    }
    let memory = last("-r").map(|given| line.size(given, MIB)).transpose()?.map(|bytes| bytes.div_ceil(MIB));
    let (size, block) = match last("-s") {
        None => (None, None),
        Some(given) => {
            let (size, block) = given.value.split_once(':').map_or((given.value, None), |(a, b)| (a, Some(b)));
            let part = |value, unit| line.size(crate::app::command_line::Given { value, ..given }, unit);
            (Some(part(size, MIB)?), block.map(|block| part(block, 1)).transpose()?)
        }
    };
    let Some(total_bytes) = size.or_else(|| memory.map(|mib| mib * 2 * MIB)) else {
        let problem = "the option is missing. The default is twice the size of the memory, but iosched does not know \
                       the size of the memory";
        return Err(line.error("-s", problem, "add -s SIZE, such as -s 8g"));
    };
    let block_bytes = block.unwrap_or(BLOCK_BYTES);
    if !block_bytes.is_power_of_two() || !(512..=total_bytes).contains(&block_bytes) {
        let problem = format!("a block of {block_bytes} bytes");
        return Err(line.error("-s", problem, "write a power of two from 512 up to the size of the file"));
    }
    let syncs = Syncs { each_write: has("-b"), at_end: true, ..Syncs::default() };
    let open = OpenFlags { direct: has("-D"), ..OpenFlags::default() };
    let make = OpenFlags { create: true, truncate: true, ..open };
    let block = Phase {
        name: "block_write",
        tasks: 1,
        action: Action::Write,
        order: Order::Once,
        block_bytes,
        file_bytes_max: u64::MAX,
        flags: make,
        requests: None,
        duration_ns: None,
        compute_ns: 0,
        syncs,
        has_latency: false,
    };
    // Direct I/O cannot move single bytes.
    let by_character = Phase {
        name: "char_write",
        block_bytes: 1,
        file_bytes_max: CHARACTERS,
        flags: OpenFlags { direct: false, ..make },
        syncs: Syncs { at_end: true, ..Syncs::default() },
        ..block.clone()
    };
    let rewrite = Phase { name: "rewrite", action: Action::Rewrite, flags: open, ..block.clone() };
    let read = Phase { name: "block_read", action: Action::Read, syncs: Syncs::default(), ..rewrite.clone() };
    let read_by_character = Phase {
        name: "char_read",
        action: Action::Read,
        flags: OpenFlags::default(),
        syncs: Syncs::default(),
        ..by_character.clone()
    };
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
        let what = "by default, bonnie++ also creates small files, reads their status and deletes them".to_owned();
        notes.push(Note::NotCarriedOut {
            what,
            why: "iosched does not simulate small files; add -n 0 to skip this phase".to_owned(),
        });
    }
    Ok(Plan {
        program: ABOUT.name,
        files: vec![total_bytes],
        files_exist: false,
        tasks: SEEKERS,
        phases: all.into_iter().filter(|(wanted, _)| *wanted).map(|(_, phase)| phase).collect(),
        report,
        notes,
    })
}

/// Returns the throughput of each phase in KiB per second, and the seeks per second.
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
    fn phases_transfer_expected_bytes_and_report_in_order() {
        let (timed_calls, app) = calls("bonnie++ -d /mnt -s 16 -n 0 -u root", 1_000);
        let bytes =
            |wanted: fn(&Call) -> Option<u64>| timed_calls.iter().filter_map(|timed| wanted(&timed.call)).sum::<u64>();
        let written = bytes(|call| match call {
            Call::Write { bytes, calls, .. } => Some(bytes * calls),
            _ => None,
        });
        let read = bytes(|call| match call {
            Call::Read { bytes, calls, .. } => Some(bytes * calls),
            _ => None,
        });
        // The terms are the bytes of the writes by character, of the block writes and the rewrite,
        // and of every tenth seek. The terms of the reads are similar.
        assert_eq!(written, (3 << 20) + 2 * (16 << 20) + 819 * 8_192);
        assert_eq!(read, (3 << 20) + 2 * (16 << 20) + 8_192 * 8_192);
        let syncs = timed_calls.iter().filter(|timed| matches!(timed.call, Call::Fsync { .. })).count();
        assert_eq!(syncs, 4, "each phase that writes ends with an fsync");
        let names: Vec<String> = app.report().figures.into_iter().map(|figure| figure.name).collect();
        assert_eq!(names, ["char_write", "block_write", "rewrite", "char_read", "block_read", "seeks"]);
        let fast = calls("bonnie++ -f -s 16", 1_000).1;
        assert_eq!(fast.report().figures[0].name, "block_write");
    }

    #[test]
    fn one_file_holds_the_data() {
        let spec = Spec::parse("bonnie++ -f -r 1100 -n 0").unwrap();
        assert!(spec.start(1, u64::MAX).existing().is_empty());
        let (timed_calls, _) = calls("bonnie++ -f -s 2200m:1m -n 0", 1_000);
        let opened =
            timed_calls.iter().filter(|timed| matches!(timed.call, Call::Open { flags, .. } if flags.truncate)).count();
        assert_eq!(opened, 1);
    }

    #[test]
    fn character_phase_writes_3_mib_byte_by_byte() {
        let (timed_calls, _) = calls("bonnie++ -s 64 -n 0", 1_000);
        let characters: u64 = timed_calls
            .iter()
            .map(|timed| match timed.call {
                Call::Write { bytes: 1, calls, .. } => calls,
                _ => 0,
            })
            .sum();
        assert_eq!(characters, 3 << 20);
    }

    #[test]
    fn unsimulated_small_files_give_a_note() {
        let notes = |text: &str| Spec::parse(text).unwrap().start(1, u64::MAX).outcome(0).notes.len();
        assert_eq!((notes("bonnie++ -f -s 16"), notes("bonnie++ -f -s 16 -n 0")), (1, 0));
    }

    #[test]
    fn errors_name_the_option() {
        let error = |text: &str| Spec::parse(text).map(|_| ()).unwrap_err().to_string();
        assert!(error("bonnie++ -d /tmp").contains("-s: the option is missing"));
        assert!(error("bonnie++ -s 16 -k 3").contains("-k: unknown option"));
        assert!(error("bonnie++ -s 16 -c 4").contains("-c: iosched does not simulate 4 copies at the same time"));
        assert!(error("bonnie++ -s 16:3k").contains("-s: a block of 3072 bytes"));
    }
}
