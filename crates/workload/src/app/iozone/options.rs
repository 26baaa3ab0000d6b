//! IOzone's options.

use crate::WorkloadError;
use crate::app::About;
use crate::app::command_line::Line;
use crate::app::iozone::pattern::{GROUPS, Test};
use crate::app::option::{DIRECT_BYTES, flag, option};

/// Name and options of IOzone.
pub(in crate::app) const ABOUT: About = About {
    name: "iozone",
    about: "writes and reads a file record by record in thirteen tests, and prints the KB/s of each test",
    options: &[
        flag("-a", "without -s, test all file sizes; without -r, test all record sizes"),
        option("-s", "SIZE", "size of the file in KiB, or with k, m, g; default 512; may be repeated"),
        option("-r", "SIZE", "size of a record in KiB, or with k, m, g; default 4; may be repeated"),
        option(
            "-i",
            "N",
            "number of a test; may be repeated; default: all tests. 0 write and rewrite, 1 read and reread, 2 random read and write, 3 read \
             backwards, 4 rewrite the first record, 5 strided read, 6 fwrite and frewrite, 7 fread and freread",
        ),
        flag("-e", "the measured time includes fsync()"),
        flag("-c", "the measured time includes close()"),
        flag("-o", "files are opened with O_SYNC"),
        flag("-I", "files are opened with O_DIRECT"),
        option("-t", "N", "number of processes, each with a separate file; default 1"),
        option(
            "-l",
            "N",
            "smallest number of processes. If -l and -u have the same number, they are the same as -t with this \
             number",
        ),
        option(
            "-u",
            "N",
            "largest number of processes. If -l and -u have the same number, they are the same as -t \
                           with this number",
        ),
        flag("-x", "with -t: after the first process has finished, the other processes continue"),
        option("-n", "SIZE", "with -a: the smallest size of a file; default 64k"),
        option("-g", "SIZE", "with -a: the largest size of a file; default 512m"),
        option("-y", "SIZE", "with -a: the smallest size of a record; default 4k"),
        option("-q", "SIZE", "with -a: the largest size of a record; default 16m"),
        flag("-z", "with -a: also use records below 64 KiB in files above 16 MiB"),
        flag("-+n", "leave out rewrite and reread"),
        option("-f", "FILE", "name of the file; default iozone.tmp"),
        option("-F", "FILES", "with -t: the names of the files, one for each process"),
        flag("-R", "print a table for a spreadsheet; no effect in iosched"),
        option("-b", "FILE", "print a table for a spreadsheet; no effect in iosched"),
        flag("-w", "no effect in iosched, because iosched always keeps the files"),
        flag("-p", "no effect in iosched, because iosched does not simulate CPU caches"),
        flag("-+u", "no effect in iosched, because the option affects only the output"),
        flag("-M", "no effect in iosched, because the option affects only the output"),
        flag("-C", "no effect in iosched, because the option affects only the output"),
    ],
};

/// Number that selects IOzone's last test.
const TEST_MAX: u64 = 12;
/// Largest number of processes.
const PROCESSES_MAX: u64 = 1_000;

/// Largest number of pairs of a file size and a record size.
const ROUNDS_MAX: usize = 1_000;
const KIB: u64 = 1024;
/// With `-a`, IOzone accesses files above the first size (bytes) only with records of at least the
/// second size (bytes).
const LARGE_FILE_BYTES: u64 = 16 << 20;
const LARGE_RECORD_BYTES: u64 = 64 << 10;

/// A file size and a record size. All tests run in each round.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Round {
    /// Number of records in a file, at least 1.
    pub(super) records: u64,
    pub(super) record_bytes: u64,
}

impl Round {
    /// Returns the size of a file, bytes.
    pub(super) const fn bytes(self) -> u64 {
        self.records * self.record_bytes
    }
}

/// Parsed options of IOzone.
#[derive(Clone, Debug)]
pub(in crate::app) struct IozoneOptions {
    /// Tests in order; at least one.
    pub(super) tests: Vec<Test>,
    /// Rounds in order; at least one.
    pub(super) rounds: Vec<Round>,
    pub(super) include_flush: bool,
    pub(super) include_close: bool,
    pub(super) sync: bool,
    pub(super) direct: bool,
    pub(super) name_bytes: u8,
    pub(super) stonewall: bool,
    processes: usize,
}

impl IozoneOptions {
    /// Returns the largest space that the files take, bytes.
    pub(in crate::app) fn file_bytes(&self) -> u64 {
        let largest = self.rounds.iter().map(|round| round.bytes()).max().unwrap_or(0);
        largest.saturating_mul(self.processes as u64)
    }

    pub(in crate::app) const fn task_count(&self) -> usize {
        self.processes
    }

    pub(in crate::app) fn parse(line: &Line<'_>) -> Result<Self, WorkloadError> {
        let (mut files, mut records, mut processes) = (Vec::new(), Vec::new(), 1);
        let (mut file_range, mut record_range) = ([64 * KIB, 512 << 20], [4 * KIB, 16 << 20]);
        let (mut automatic, mut all_records, mut retests) = (false, false, true);
        let mut chosen = [false; GROUPS.len()];
        let mut name = "iozone.tmp";
        let mut range = (None, None);
        let (mut include_flush, mut include_close, mut sync, mut direct, mut stonewall) =
            (false, false, false, false, true);
        let (all_given, names) = line.options(ABOUT.options)?;
        if let Some(word) = names.first().filter(|_| all_given.iter().all(|given| given.name != "-F")) {
            return Err(line.error(*word, "is not an option", "name the file with -f"));
        }
        for given in all_given {
            match given.name {
                "-a" => automatic = true,
                "-z" => all_records = true,
                "-+n" => retests = false,
                "-s" => files.push(line.size(given, KIB)?),
                "-r" => records.push(line.size(given, KIB)?),
                "-n" => file_range[0] = line.size(given, KIB)?,
                "-g" => file_range[1] = line.size(given, KIB)?,
                "-y" => record_range[0] = line.size(given, KIB)?,
                "-q" => record_range[1] = line.size(given, KIB)?,
                "-i" if (GROUPS.len() as u64..=TEST_MAX).any(|test| given.value.parse() == Ok(test)) => {
                    let problem =
                        format!("iosched does not simulate test {} (mixed, pwrite, pread and vectors)", given.value);
                    let remedy = format!("write -i 0 to -i {}, or use a fio command line", GROUPS.len() - 1);
                    return Err(line.error("-i", problem, remedy));
                }
                "-i" => chosen[line.number(given, 0, GROUPS.len() as u64 - 1)? as usize] = true,
                "-l" => range.0 = Some(line.number(given, 1, PROCESSES_MAX)?),
                "-u" => range.1 = Some(line.number(given, 1, PROCESSES_MAX)?),
                "-t" => processes = line.number(given, 1, PROCESSES_MAX)? as usize,
                "-f" | "-F" => name = given.value,
                "-e" => include_flush = true,
                "-c" => include_close = true,
                "-o" => sync = true,
                "-I" => direct = true,
                "-x" => stonewall = false,
                // The other options do not change the I/O.
                _ => {}
            }
        }
        match range {
            (None, None) => {}
            (Some(least), Some(most)) if least == most => processes = least as usize,
            _ => {
                let problem = "iosched does not simulate several numbers of processes in one run";
                return Err(line.error("-l", problem, "write -t N, once for each number"));
            }
        }
        let named = !records.is_empty();
        let sizes = |named: Vec<u64>, range: [u64; 2], usual: u64| match (named.is_empty(), automatic) {
            (false, _) => named,
            (true, false) => vec![usual],
            (true, true) => {
                let next = |bytes: &u64| bytes.checked_mul(2).filter(|&next| next <= range[1]);
                std::iter::successors(Some(range[0]), next).collect()
            }
        };
        let (files, records) = (sizes(files, file_range, 512 * KIB), sizes(records, record_range, 4 * KIB));
        let is_made = |file: u64, record: u64| {
            let small = file > LARGE_FILE_BYTES && record < LARGE_RECORD_BYTES;
            record <= file && (!small || all_records || named || !automatic)
        };
        let pairs = files.iter().flat_map(|&file| records.iter().map(move |&record| (file, record)));
        let pairs: Vec<(u64, u64)> = pairs.filter(|&(file, record)| is_made(file, record)).collect();
        if pairs.is_empty() {
            let problem = format!("a record of {} bytes does not fit in a file of {} bytes", records[0], files[0]);
            return Err(line.error("-r", problem, "write a smaller record, or a larger file"));
        }
        if pairs.len() > ROUNDS_MAX {
            let problem = format!("the options give {} pairs of a file size and a record size", pairs.len());
            return Err(line.error(
                "-r",
                problem,
                format!("write fewer sizes; at most {ROUNDS_MAX} pairs are possible"),
            ));
        }
        if let Some((_, record)) = pairs.iter().find(|(_, record)| direct && !record.is_multiple_of(DIRECT_BYTES)) {
            let problem = format!("direct I/O of {record} bytes");
            return Err(line.error("-r", problem, format!("write a multiple of {DIRECT_BYTES} bytes")));
        }
        let round = |(file, record_bytes)| Round { records: file / record_bytes, record_bytes };
        let all = chosen == [false; GROUPS.len()];
        let groups = GROUPS.iter().zip(chosen).filter(|&(_, chosen)| chosen || all);
        Ok(Self {
            tests: groups
                .flat_map(|(tests, _)| tests.iter().copied())
                .filter(|test| retests || !test.repeats())
                .collect(),
            rounds: pairs.into_iter().map(round).collect(),
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
