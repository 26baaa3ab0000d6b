//! fs_mark's options.

use crate::WorkloadError;
use crate::app::command_line::Line;
use crate::app::{About, AppOption};

/// Name and options of fs_mark.
pub(in crate::app) const ABOUT: About = About {
    name: "fs_mark",
    about: "writes many small files, flushes the files to the disk in one of seven ways, and prints files per second",
    options: &[
        AppOption {
            name: "-S",
            value: Some("METHOD"),
            about: "when to flush. 0: never. 1: fsync each file before closing it. 2 to 6 flush at the end. 2: call \
                 sync, then fsync the last file. 3: fsync every file in reverse order. 4: call sync, then do the same \
                 as 3. 5: fsync every file in order. 6: call sync, then do the same as 5. Default 1",
        },
        AppOption {
            name: "-D",
            value: Some("N"),
            about: "number of directories for the files; default 0: all files are in one directory",
        },
        AppOption {
            name: "-N",
            value: Some("N"),
            about: "number of files in one directory before fs_mark uses the next directory; default 1",
        },
        AppOption {
            name: "-n",
            value: Some("N"),
            about: "number of files of each thread in an iteration; default 1000",
        },
        AppOption {
            name: "-s",
            value: Some("BYTES"),
            about: "size of a file in bytes, or with k, m, g; default 51200",
        },
        AppOption {
            name: "-w",
            value: Some("BYTES"),
            about: "size of a write in bytes, or with k, m, g; default 16384",
        },
        AppOption {
            name: "-t",
            value: Some("N"),
            about: "number of threads, which all write at the same time; default 1",
        },
        AppOption {
            name: "-d",
            value: Some("DIR"),
            about: "directory of the files; default: the root of the file system",
        },
        AppOption {
            name: "-k",
            value: None,
            about: "keep the files; without this option, fs_mark removes the files after each iteration",
        },
        AppOption { name: "-L", value: Some("N"), about: "number of iterations; default 1" },
    ],
};

/// Largest number of files.
const FILES_MAX: u64 = 100_000_000;
/// Largest number of directories, threads, and iterations.
const MANY_MAX: u64 = 10_000;

/// Point at which the program makes written files durable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Method {
    None,
    BeforeClose,
    /// Makes the files durable at the end of the iteration.
    After {
        sync: bool,
        files: Flushed,
    },
}

/// Files that are reopened and flushed at the end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Flushed {
    Last,
    Forwards,
    Backwards,
}

/// Methods, in the order of the numbers of `-S`.
const METHODS: [Method; 7] = [
    Method::None,
    Method::BeforeClose,
    Method::After { sync: true, files: Flushed::Last },
    Method::After { sync: false, files: Flushed::Backwards },
    Method::After { sync: true, files: Flushed::Backwards },
    Method::After { sync: false, files: Flushed::Forwards },
    Method::After { sync: true, files: Flushed::Forwards },
];

/// Parsed options of fs_mark.
#[derive(Clone, Debug)]
pub(in crate::app) struct FsMarkOptions {
    pub(super) method: Method,
    pub(super) directories: u64,
    pub(super) files_per_directory: u64,
    /// Number of files of a thread in an iteration.
    pub(super) files: u64,
    pub(super) file_bytes: u64,
    pub(super) write_bytes: u64,
    pub(super) keep: bool,
    pub(super) iterations: u64,
    /// Length of the name of a separate directory, bytes; `None`: the files are in the root.
    pub(super) own_directory: Option<u8>,
    threads: u64,
}

impl FsMarkOptions {
    /// Returns the largest space that the files take, bytes.
    pub(in crate::app) const fn all_file_bytes(&self) -> u64 {
        let iterations = if self.keep { self.iterations } else { 1 };
        let files = self.files.saturating_mul(self.threads).saturating_mul(iterations);
        files.saturating_mul(self.file_bytes)
    }

    pub(in crate::app) const fn task_count(&self) -> usize {
        self.threads as usize
    }

    pub(in crate::app) fn parse(line: &Line<'_>) -> Result<Self, WorkloadError> {
        let mut options = Self {
            method: Method::BeforeClose,
            directories: 0,
            files_per_directory: 1,
            files: 1_000,
            file_bytes: 51_200,
            write_bytes: 16_384,
            keep: false,
            iterations: 1,
            own_directory: None,
            threads: 1,
        };
        for given in line.letters(ABOUT.options)? {
            match given.name {
                "-S" => options.method = METHODS[line.number(given, 0, METHODS.len() as u64 - 1)? as usize],
                "-D" => options.directories = line.number(given, 0, MANY_MAX)?,
                "-N" => options.files_per_directory = line.number(given, 1, FILES_MAX)?,
                "-n" => options.files = line.number(given, 1, FILES_MAX)?,
                "-s" => options.file_bytes = line.size(given, 1)?,
                "-w" => options.write_bytes = line.size(given, 1)?,
                "-t" => options.threads = line.number(given, 1, MANY_MAX)?,
                "-L" => options.iterations = line.number(given, 1, MANY_MAX)?,
                "-d" if options.own_directory.is_some() => {
                    return Err(line.error("-d", "a second directory", "give one directory; all threads share it"));
                }
                "-d" => options.own_directory = Some(u8::try_from(given.value.len()).unwrap_or(u8::MAX)),
                _ => options.keep = true,
            }
        }
        let files = options.files.checked_mul(options.threads * options.iterations);
        if files.is_none_or(|files| files > FILES_MAX) {
            let problem = format!("more than {FILES_MAX} files in all threads and iterations");
            return Err(line.error("-n", problem, "write a smaller number"));
        }
        Ok(options)
    }
}
