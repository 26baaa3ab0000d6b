//! dd's operands: the files, the block sizes and the ranges to copy.
//!
//! A line can contain several commands, separated by `;` or `&&`. If a command reads a file that no
//! earlier command has written, the file exists at the start. It is as large as the command needs.
//! A device is as large as the simulated disk. The original dd does not have the operands `jobs`
//! and `repeat`: it needs a loop of the shell instead.

use std::collections::BTreeMap;

use crate::WorkloadError;
use crate::app::command_line::{BYTES_MAX, Given, Line};
use crate::app::option::{DIRECT_BYTES, option};
use crate::app::{About, OpenFlags};

/// Name and options of dd.
pub(in crate::app) const ABOUT: About = About {
    name: "dd",
    about: "copies a file block by block; for several commands, write `;` or `&&` between the commands",
    options: &[
        option(
            "if",
            "FILE",
            "the input: a file, a device, /dev/zero, /dev/urandom or /dev/random. With one of the last three, give \
             count=, unless the output of= is a device",
        ),
        option("of", "FILE", "the output: a file, a device, or /dev/null"),
        option(
            "bs",
            "BYTES",
            "size of a block; default 512. It can end in c (1), w (2), b (512), k, K, M, G, T, KiB (powers of 1024), \
             or kB, MB, GB, TB (powers of 1000)",
        ),
        option("ibs", "BYTES", "size of a block of the input, instead of bs"),
        option(
            "obs",
            "BYTES",
            "size of a block of the output, instead of bs; one of ibs and obs must be a \
             multiple of the other",
        ),
        option(
            "count",
            "BLOCKS",
            "number of blocks to copy (number of bytes if the value ends in B); default: up to the end of the input",
        ),
        option(
            "skip",
            "BLOCKS",
            "number of blocks to skip at the start of the input (number of bytes if the value ends in B); default 0",
        ),
        option(
            "seek",
            "BLOCKS",
            "number of blocks to skip at the start of the output (number of bytes if the value ends in B); default 0",
        ),
        option(
            "iflag",
            "FLAGS",
            "any of direct (bypass the page cache), count_bytes and skip_bytes (count and skip are in bytes), \
             separated by commas; fullblock, nocache, dsync, sync, nonblock, noatime, nofollow, noctty and binary \
             have no effect",
        ),
        option(
            "oflag",
            "FLAGS",
            "any of direct, dsync, sync, append and seek_bytes, separated by commas; nonblock, noatime, nofollow, \
             noctty and binary have no effect",
        ),
        option(
            "conv",
            "HOW",
            "any of fsync, fdatasync (flush the data before dd ends) and notrunc, separated by commas; noerror, \
             sync, nocreat and excl have no effect",
        ),
        option("status", "LEVEL", "no effect in iosched, because the option affects only the output"),
        option(
            "jobs",
            "N",
            "only in iosched: number of processes; each process has its own files NAME.0, NAME.1, ...; default 1",
        ),
        option("repeat", "N", "only in iosched: number of repetitions in one process; default 1"),
    ],
};

/// Inputs that are not files.
const SOURCES: [&str; 3] = ["/dev/zero", "/dev/urandom", "/dev/random"];
const INPUT_FLAGS: &[&str] = &[
    "direct",
    "count_bytes",
    "skip_bytes",
    "fullblock",
    "nocache",
    "dsync",
    "sync",
    "nonblock",
    "noatime",
    "nofollow",
    "noctty",
    "binary",
];
const OUTPUT_FLAGS: &[&str] =
    &["direct", "dsync", "sync", "append", "seek_bytes", "nonblock", "noatime", "nofollow", "noctty", "binary"];
const CONVERSIONS: &[&str] = &["fsync", "fdatasync", "notrunc", "noerror", "sync", "nocreat", "excl"];
/// Operands whose words accumulate if they are given several times, as in GNU dd.
const LISTS: [&str; 3] = ["iflag", "oflag", "conv"];
/// Largest number of processes of a command.
const JOBS_MAX: u64 = 10_000;
/// Largest number of commands on a line.
const COMMANDS_MAX: usize = 100;
/// Largest number of processes of all commands.
const PROCESSES_MAX: usize = 100_000;

/// A file that commands read or write.
#[derive(Clone, Debug)]
pub(super) struct File {
    pub(super) name: String,
    /// Initial size; `None`: the file does not exist.
    pub(super) existing_bytes: Option<u64>,
    /// Size after the commands parsed so far.
    bytes: u64,
    /// Largest space that the data takes, bytes. Parts that were never written need no space.
    room_bytes: u64,
    /// Whether the file is the disk itself.
    pub(super) device: bool,
}

/// Source of the blocks. Files are given by their numbers, one for each job.
#[derive(Clone, Debug)]
pub(super) enum Input {
    Zero,
    /// The kernel's random number generator.
    Random,
    Files(Vec<usize>),
}

impl Input {
    pub(super) fn file(&self, job: usize) -> Option<usize> {
        match self {
            Self::Zero | Self::Random => None,
            Self::Files(files) => files.get(job).copied(),
        }
    }
}

/// Action after the last block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    None,
    Fsync,
    Fdatasync,
}

/// A command on the line.
#[derive(Clone, Debug)]
pub(super) struct Command {
    /// Action of the command: `write`, `read` or `copy`. If several commands have the same action,
    /// an index follows.
    pub(super) label: String,
    pub(super) input: Input,
    /// Numbers of the files that the command writes; empty: /dev/null.
    output: Vec<usize>,
    pub(super) input_block_bytes: u64,
    pub(super) output_block_bytes: u64,
    /// Bytes that a process copies. For devices this is an upper limit.
    pub(super) bytes: u64,
    pub(super) skip_bytes: u64,
    pub(super) seek_bytes: u64,
    pub(super) direct_input: bool,
    pub(super) output_flags: OpenFlags,
    pub(super) end: End,
    pub(super) jobs: usize,
    pub(super) repeat: u64,
}

impl Command {
    /// Returns the number of bytes to read, and then to write, if `left` bytes remain. The result
    /// is the larger block size, rounded down to a multiple of the smaller block size. At the end
    /// of the copy, the result can be smaller.
    pub(super) fn piece_bytes(&self, left: u64) -> u64 {
        let (input, output) = (self.input_block_bytes, self.output_block_bytes);
        let (lesser, larger) = (input.min(output), input.max(output));
        if left < lesser { left } else { left.min(larger) / lesser * lesser }
    }

    /// Limits a copy from or to the disk, so that it ends at the end of the disk.
    pub(super) fn end_with_the_disk(&mut self, files: &[File], disk_bytes: u64) {
        let is_device = |file: Option<usize>| file.is_some_and(|file| files[file].device);
        for (starts, from) in
            [(is_device(self.input.file(0)), self.skip_bytes), (is_device(self.output_file(0)), self.seek_bytes)]
        {
            if starts {
                self.bytes = self.bytes.min(disk_bytes.saturating_sub(from));
            }
        }
    }

    pub(super) fn output_file(&self, job: usize) -> Option<usize> {
        self.output.get(job).copied()
    }

    pub(super) fn label_of(&self, job: usize) -> String {
        if self.jobs == 1 { self.label.clone() } else { format!("{} {job}", self.label) }
    }
}

/// All commands on a line.
#[derive(Clone, Debug)]
pub(in crate::app) struct DdOptions {
    /// Commands; at least one.
    pub(super) commands: Vec<Command>,
    pub(super) files: Vec<File>,
}

impl DdOptions {
    /// Returns the largest space that the files take, bytes.
    pub(in crate::app) fn file_bytes(&self) -> u64 {
        self.files.iter().fold(0, |sum, file| sum.saturating_add(file.room_bytes))
    }

    pub(in crate::app) fn task_count(&self) -> usize {
        self.commands.iter().map(|command| command.jobs).sum()
    }

    pub(in crate::app) fn parse(line: &Line<'_>) -> Result<Self, WorkloadError> {
        let mut reader = Reader { line, files: Files::default(), commands: Vec::new() };
        for part in line.text().split(';').flat_map(|part| part.split("&&")) {
            let mut words = part.split_whitespace();
            match words.next() {
                Some("dd") => reader.command(words)?,
                other => {
                    let problem = "after a dd command, only another dd command is allowed";
                    return Err(line.error(other.unwrap_or(";"), problem, "give only dd commands: dd ... ; dd ..."));
                }
            }
            if reader.commands.len() > COMMANDS_MAX {
                return Err(line.error(";", "too many commands", format!("give at most {COMMANDS_MAX} commands")));
            }
            if reader.commands.iter().map(|command| command.jobs).sum::<usize>() > PROCESSES_MAX {
                let remedy = format!("give at most {PROCESSES_MAX} processes in total");
                return Err(line.error("jobs", "too many processes", remedy));
            }
        }
        let Reader { files, mut commands, .. } = reader;
        number_labels(&mut commands);
        Ok(Self { commands, files: files.files })
    }
}

/// Appends a number to the labels of commands with the same action.
fn number_labels(commands: &mut [Command]) {
    for label in ["write", "read", "copy"] {
        let mut same: Vec<&mut Command> = commands.iter_mut().filter(|command| command.label == label).collect();
        if same.len() > 1 {
            for (number, command) in same.iter_mut().enumerate() {
                command.label = format!("{label}_{}", number + 1);
            }
        }
    }
}

#[derive(Debug, Default)]
struct Files {
    files: Vec<File>,
    by_name: BTreeMap<String, usize>,
}

impl Files {
    /// Returns the numbers of the files with this name, one for each job.
    fn of(&mut self, name: &str, jobs: usize) -> Vec<usize> {
        let names = (0..jobs).map(|job| if jobs == 1 { name.to_owned() } else { format!("{name}.{job}") });
        let numbers = names.map(|name| {
            let next = self.files.len();
            *self.by_name.entry(name.clone()).or_insert_with(|| {
                let device = is_disk(&name);
                self.files.push(File {
                    name,
                    existing_bytes: None,
                    bytes: if device { BYTES_MAX } else { 0 },
                    room_bytes: 0,
                    device,
                });
                next
            })
        });
        numbers.collect()
    }
}

struct Reader<'a> {
    line: &'a Line<'a>,
    files: Files,
    commands: Vec<Command>,
}

impl Reader<'_> {
    fn error(&self, option: &str, problem: impl Into<String>, remedy: impl Into<String>) -> WorkloadError {
        self.line.error(option, problem, remedy)
    }

    fn command<'w>(&mut self, words: impl Iterator<Item = &'w str>) -> Result<(), WorkloadError> {
        let given = self.line.operands(words, ABOUT.options, &LISTS)?;
        let value = |name: &str| given.iter().find(|given| given.name == name).copied();
        let number =
            |name: &str, default: u64, least| value(name).map_or(Ok(default), |given| self.number(given, least));
        let block_bytes = number("bs", 512, 1)?;
        let (input_block, output_block) = match value("bs") {
            Some(_) => (block_bytes, block_bytes),
            None => (number("ibs", block_bytes, 1)?, number("obs", block_bytes, 1)?),
        };
        if input_block == 0 || output_block == 0 {
            let option = ["bs", "ibs", "obs"].into_iter().find(|name| value(name).is_some()).unwrap_or("bs");
            return Err(self.error(option, "the size of a block is 0", "write at least 1"));
        }
        if input_block.max(output_block) % input_block.min(output_block) != 0 {
            let problem = format!(
                "neither of the block sizes {input_block} and {output_block} is a multiple of the \
                                   other"
            );
            return Err(self.error("obs", problem, "write two sizes, one of which is a multiple of the other"));
        }
        let iflag = self.words(&given, "iflag", INPUT_FLAGS)?;
        let oflag = self.words(&given, "oflag", OUTPUT_FLAGS)?;
        let conv = self.words(&given, "conv", CONVERSIONS)?;
        let length = |name: &str, are_bytes: bool, block: u64| -> Result<Option<u64>, WorkloadError> {
            let Some(given) = value(name) else { return Ok(None) };
            let unit = if are_bytes || given.value.ends_with('B') { 1 } else { block };
            let bytes = u128::from(self.number(given, u64::from(name == "count"))?) * u128::from(unit);
            let fits = u64::try_from(bytes).ok().filter(|bytes| *bytes <= BYTES_MAX);
            let too_large = || self.error(name, "more than 1 PiB", "give a smaller number, or a smaller block size");
            fits.ok_or_else(too_large).map(Some)
        };
        let count = length("count", iflag.contains(&"count_bytes"), input_block)?;
        let skip_bytes = length("skip", iflag.contains(&"skip_bytes"), input_block)?.unwrap_or(0);
        let seek_bytes = length("seek", oflag.contains(&"seek_bytes"), output_block)?.unwrap_or(0);
        if skip_bytes.max(seek_bytes) + count.unwrap_or(0) > BYTES_MAX {
            return Err(self.error("count", "more than 1 PiB", "give a smaller number, or a smaller block size"));
        }
        if count == Some(0) {
            return Err(self.error("count", "the number of blocks is 0", "write at least 1"));
        }
        let once = Given { name: "jobs", value: "1" };
        let jobs = self.line.number(value("jobs").unwrap_or(once), 1, JOBS_MAX)? as usize;
        let repeat = self.line.number(value("repeat").unwrap_or(once), 1, u64::from(u32::MAX))?;
        let (direct_input, direct_output) = (iflag.contains(&"direct"), oflag.contains(&"direct"));
        for (direct, bytes, name) in [(direct_input, input_block, "ibs"), (direct_output, output_block, "obs")] {
            if direct && !bytes.is_multiple_of(DIRECT_BYTES) {
                let name = if value(name).is_some() { name } else { "bs" };
                let problem = format!("direct I/O of {bytes} bytes");
                return Err(self.error(name, problem, format!("write a multiple of {DIRECT_BYTES}")));
            }
        }
        let end = match (conv.contains(&"fsync"), conv.contains(&"fdatasync")) {
            (true, _) => End::Fsync,
            (_, true) => End::Fdatasync,
            _ => End::None,
        };
        let output_flags = OpenFlags {
            create: true,
            truncate: !conv.contains(&"notrunc"),
            direct: direct_output,
            sync: oflag.contains(&"sync") || oflag.contains(&"dsync"),
            data_only: !oflag.contains(&"sync") && oflag.contains(&"dsync"),
            ..OpenFlags::default()
        };
        let output = self.device(value("of"), "of", &["/dev/null"])?;
        let input = self.device(value("if"), "if", &SOURCES)?;
        let is_random = value("if").is_some_and(|given| given.value != SOURCES[0]);
        let disk = [input, output].into_iter().flatten().find(|name| is_disk(name));
        if let Some(disk) = disk {
            let other = self.files.files.iter().find(|file| file.device && file.name != disk);
            let other = other.map(|file| file.name.as_str()).or(output.filter(|&name| is_disk(name) && name != disk));
            if let Some(other) = other {
                let problem = format!("{other} is a second device, but iosched simulates only one device");
                return Err(self.error("of", problem, "name a file instead of one of the two devices"));
            }
            if jobs > 1 {
                return Err(self.error(
                    "jobs",
                    "several processes of dd cannot share one device",
                    "write jobs=1, or a file",
                ));
            }
        }
        let label = match (input, output) {
            (None, None) => {
                return Err(self.error("if", "this command neither reads nor writes a file", "name a file"));
            }
            (None, _) => "write",
            (_, None) => "read",
            _ => "copy",
        };
        let label = label.to_owned();
        let room = output.filter(|&name| is_disk(name)).map(|_| BYTES_MAX);
        let length = count.or(room.filter(|_| input.is_none()));
        let (bytes, input) = match self.input(input, jobs, (skip_bytes, length))? {
            (bytes, Input::Zero) if is_random => (bytes, Input::Random),
            known => known,
        };
        let is_known = count.is_some() || disk.is_none();
        if (direct_input || direct_output) && is_known && !bytes.is_multiple_of(DIRECT_BYTES) {
            let problem = format!("direct I/O is not possible for a file of {bytes} bytes");
            return Err(self.error("count", problem, format!("copy a multiple of {DIRECT_BYTES}")));
        }
        let output = output.map_or_else(Vec::new, |name| self.files.of(name, jobs));
        // With `append`, the writes start at the end of the file.
        let appends = oflag.contains(&"append") && !output_flags.truncate;
        let end_bytes = output.iter().map(|&file| self.files.files[file].bytes).max().filter(|_| appends);
        let seek_bytes = end_bytes.map_or(seek_bytes, |end_bytes| end_bytes.max(seek_bytes));
        self.output(&input, &output, seek_bytes, bytes, output_flags.truncate)?;
        self.commands.push(Command {
            label,
            input,
            output,
            input_block_bytes: input_block,
            output_block_bytes: output_block,
            bytes,
            skip_bytes,
            seek_bytes,
            direct_input,
            output_flags,
            end,
            jobs,
            repeat,
        });
        Ok(())
    }

    /// Returns the name of a file, or `None` if the name is one of `devices`.
    fn device<'w>(
        &self,
        given: Option<Given<'w>>,
        option: &str,
        devices: &[&str],
    ) -> Result<Option<&'w str>, WorkloadError> {
        let remedy = || format!("write {option}=FILE or {option}={}", devices.join(&format!(" or {option}=")));
        let Some(Given { value, .. }) = given else {
            return Err(self.error(option, "is missing", remedy()));
        };
        if value.starts_with("/dev/") && !devices.contains(&value) && !is_disk(value) {
            let problem = format!("{value} is not a file, a disk or {}", devices.join(", "));
            return Err(self.error(option, problem, remedy()));
        }
        Ok(Some(value).filter(|value| !devices.contains(value)))
    }

    /// Returns the number of bytes that a process copies, and the input of the process. `range` is
    /// the start and the maximum length of the copy, bytes.
    fn input(
        &mut self,
        name: Option<&str>,
        jobs: usize,
        range: (u64, Option<u64>),
    ) -> Result<(u64, Input), WorkloadError> {
        let (start, length) = range;
        let Some(name) = name else {
            return match length {
                Some(bytes) => Ok((bytes, Input::Zero)),
                None => Err(self.error("count", "the input has no end", "write count=BLOCKS")),
            };
        };
        let files = self.files.of(name, jobs);
        let mut least = u64::MAX;
        for &file in &files {
            let file = &mut self.files.files[file];
            if file.bytes == 0 {
                let Some(length) = length else {
                    let problem = format!("no earlier command has written {}", file.name);
                    return Err(self.error(
                        "count",
                        problem,
                        "give count=BLOCKS; iosched then assumes that the file exists and ends after these blocks",
                    ));
                };
                file.bytes = start + length;
                file.existing_bytes = Some(file.bytes);
                file.room_bytes = file.bytes;
            }
            least = least.min(file.bytes.saturating_sub(start));
        }
        if least == 0 {
            return Err(self.error("skip", format!("{name} ends before this position"), "write a smaller number"));
        }
        Ok((length.map_or(least, |length| length.min(least)), Input::Files(files)))
    }

    /// Updates the sizes of the files that are written.
    fn output(
        &mut self,
        input: &Input,
        output: &[usize],
        start: u64,
        bytes: u64,
        truncate: bool,
    ) -> Result<(), WorkloadError> {
        for (job, &file) in output.iter().enumerate() {
            let before = &self.files.files[file];
            if before.device {
                continue;
            }
            if truncate && input.file(job) == Some(file) {
                return Err(self.error(
                    "of",
                    "dd would truncate the file before it reads the file",
                    "add conv=notrunc",
                ));
            }
            if truncate && start > 0 && before.bytes > 0 {
                let problem =
                    format!("dd would truncate {} at the position of seek, which iosched does not model", before.name);
                return Err(self.error("seek", problem, "add conv=notrunc"));
            }
            let before = if truncate { 0 } else { before.bytes };
            let written = &mut self.files.files[file];
            written.bytes = before.max(start + bytes);
            // If a command truncates the file, the result is the larger of the spaces before and
            // after the truncation.
            written.room_bytes =
                if truncate { written.room_bytes.max(bytes) } else { (written.room_bytes + bytes).min(written.bytes) };
        }
        Ok(())
    }

    /// Splits the values of all operands with this name at commas, and returns the words.
    fn words<'w>(&self, given: &[Given<'w>], name: &str, known: &[&str]) -> Result<Vec<&'w str>, WorkloadError> {
        let operands = given.iter().filter(|given| given.name == name);
        let words: Vec<&str> = operands.flat_map(|given| given.value.split(',')).collect();
        match words.iter().find(|word| !known.contains(word)) {
            Some(other) => {
                Err(self.error(name, format!("`{other}` is not a known value"), format!("use {}", known.join(", "))))
            }
            None => Ok(words),
        }
    }

    /// Parses a number in dd's format: with a suffix, and with products such as `2x512`. `least` is
    /// the smallest valid number, which the error message gives.
    fn number(&self, given: Given<'_>, least: u64) -> Result<u64, WorkloadError> {
        let product = given.value.split('x').try_fold(1u64, |product, part| product.checked_mul(factor(part)?));
        product.filter(|&number| number <= BYTES_MAX).ok_or_else(|| {
            let problem = format!("`{}` is not a number from {least} to 2^50", given.value);
            self.error(given.name, problem, "write a number such as 512, 4k, 1M, 1MB or 2x512")
        })
    }
}

/// Returns whether a name is the path of a block device.
fn is_disk(name: &str) -> bool {
    const DISKS: [&str; 18] = [
        "sd", "hd", "vd", "xvd", "nvme", "mmcblk", "md", "dm-", "mapper/", "disk/", "loop", "ram", "zram", "nbd",
        "rbd", "drbd", "zd", "ublkb",
    ];
    name.strip_prefix("/dev/").is_some_and(|name| DISKS.iter().any(|start| name.starts_with(start)))
}

/// Parses a number with one of dd's suffixes.
fn factor(text: &str) -> Option<u64> {
    const ENDINGS: &[(&str, u64)] = &[
        ("KiB", 1 << 10),
        ("MiB", 1 << 20),
        ("GiB", 1 << 30),
        ("TiB", 1 << 40),
        ("kB", 1_000),
        ("KB", 1_000),
        ("MB", 1_000_000),
        ("GB", 1_000_000_000),
        ("TB", 1_000_000_000_000),
        ("B", 1),
        ("c", 1),
        ("w", 2),
        ("b", 512),
        ("k", 1 << 10),
        ("K", 1 << 10),
        ("M", 1 << 20),
        ("G", 1 << 30),
        ("T", 1 << 40),
    ];
    let ending = ENDINGS.iter().find(|(ending, _)| text.ends_with(ending));
    let (ending, unit) = ending.copied().unwrap_or(("", 1));
    text.strip_suffix(ending)?.parse::<u64>().ok()?.checked_mul(unit)
}
