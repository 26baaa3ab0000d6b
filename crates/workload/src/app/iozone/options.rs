//! IOzone's options.

use crate::WorkloadError;
use crate::app::command_line::Line;
use crate::app::iozone::pattern::{GROUPS, Test};
use crate::app::{About, AppOption};

/// IOzone.
pub(in crate::app) const ABOUT: About = About {
    name: "iozone",
    about: "writes and reads a file in thirteen ways, record by record, KB/s of each",
    options: &[
        AppOption { name: "-s", value: Some("SIZE"), about: "size of the file, KiB, or with k, m, g; 512" },
        AppOption { name: "-r", value: Some("SIZE"), about: "size of a record, KiB, or with k, m, g; 4" },
        AppOption {
            name: "-i",
            value: Some("N"),
            about: "a test, may be repeated: 0 write and rewrite, 1 read and reread, 2 random read and write, 3 read \
                    backwards, 4 rewrite the first record, 5 strided read, 6 fwrite and frewrite, 7 fread and freread; all",
        },
        AppOption { name: "-e", value: None, about: "fsync is in the timing" },
        AppOption { name: "-c", value: None, about: "close is in the timing" },
        AppOption { name: "-o", value: None, about: "files are opened with O_SYNC" },
        AppOption { name: "-I", value: None, about: "files are opened with O_DIRECT" },
        AppOption { name: "-t", value: Some("N"), about: "so many processes at once, each with a file of its own; 1" },
        AppOption { name: "-x", value: None, about: "with -t: no process stops when the first is through" },
        AppOption { name: "-f", value: Some("FILE"), about: "name of the file; iozone.tmp" },
        AppOption { name: "-R", value: None, about: "accepted: a table for a spreadsheet" },
    ],
};

/// Most processes.
const PROCESSES_MAX: u64 = 1_000;
/// What direct I/O must be a multiple of, bytes.
const DIRECT_BYTES: u64 = 512;

/// What IOzone was told to do.
#[derive(Clone, Debug)]
pub(in crate::app) struct IozoneOptions {
    /// In order; at least one.
    pub(super) tests: Vec<Test>,
    /// At least 1.
    pub(super) records: u64,
    pub(super) record_bytes: u64,
    pub(super) include_flush: bool,
    pub(super) include_close: bool,
    pub(super) sync: bool,
    pub(super) direct: bool,
    pub(super) name_bytes: u8,
    pub(super) stonewall: bool,
    processes: usize,
}

impl IozoneOptions {
    pub(in crate::app) const fn task_count(&self) -> usize {
        self.processes
    }

    /// Size of a file.
    pub(super) const fn bytes(&self) -> u64 {
        self.records * self.record_bytes
    }

    pub(in crate::app) fn parse(line: &Line<'_>) -> Result<Self, WorkloadError> {
        const KIB: u64 = 1024;
        let (mut file_bytes, mut record_bytes, mut processes) = (512 * KIB, 4 * KIB, 1);
        let mut chosen = [false; GROUPS.len()];
        let mut name = "iozone.tmp";
        let (mut include_flush, mut include_close, mut sync, mut direct, mut stonewall) =
            (false, false, false, false, true);
        for given in line.letters(ABOUT.options)? {
            match given.name {
                "-s" => file_bytes = line.size(given, KIB)?,
                "-r" => record_bytes = line.size(given, KIB)?,
                "-i" => chosen[line.number(given, 0, GROUPS.len() as u64 - 1)? as usize] = true,
                "-t" => processes = line.number(given, 1, PROCESSES_MAX)? as usize,
                "-f" => name = given.value,
                "-e" => include_flush = true,
                "-c" => include_close = true,
                "-o" => sync = true,
                "-I" => direct = true,
                "-x" => stonewall = false,
                // -R: what is printed is not IOzone's business here.
                _ => {}
            }
        }
        if record_bytes > file_bytes {
            let problem = format!("a record of {record_bytes} bytes in a file of {file_bytes}");
            return Err(line.error("-r", problem, "write a smaller record, or a larger file"));
        }
        if direct && !record_bytes.is_multiple_of(DIRECT_BYTES) {
            let problem = format!("direct I/O of {record_bytes} bytes");
            return Err(line.error("-r", problem, format!("write a multiple of {DIRECT_BYTES} bytes")));
        }
        let all = chosen == [false; GROUPS.len()];
        let groups = GROUPS.iter().zip(chosen).filter(|&(_, chosen)| chosen || all);
        Ok(Self {
            tests: groups.flat_map(|(tests, _)| tests.iter().copied()).collect(),
            records: file_bytes / record_bytes,
            record_bytes,
            include_flush,
            include_close,
            sync,
            direct,
            name_bytes: u8::try_from(name.len()).unwrap_or(u8::MAX),
            stonewall,
            processes,
        })
    }
}
