//! What a job file may ask of the world around it: variables, files that it includes, and the machine.

use std::io::Read;
use std::path::Path;

/// Bytes of one job file at most.
pub(super) const FILE_BYTES_MAX: u64 = 4 << 20;

/// The world around a job file, given by whoever reads it: nothing here looks at the process' own.
pub trait Environment {
    /// An environment variable, for `${NAME}`. `None` if it is not set.
    fn variable(&self, name: &str) -> Option<String>;

    /// The bytes of a file. Files above 4 MiB are refused.
    ///
    /// # Errors
    /// What the system says.
    fn read(&self, path: &Path) -> std::io::Result<Vec<u8>> {
        let file = iosched_trace::open_plain(path)?;
        let mut bytes = Vec::new();
        file.take(FILE_BYTES_MAX + 1).read_to_end(&mut bytes)?;
        if bytes.len() as u64 > FILE_BYTES_MAX {
            return Err(std::io::Error::other("larger than 4 MiB: not a job file"));
        }
        Ok(bytes)
    }

    /// The machine, for `$pagesize`, `$mb_memory` and `$ncpus`.
    fn machine(&self) -> Machine {
        Machine::default()
    }
}

/// What fio's keywords stand for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Machine {
    /// `$pagesize`, bytes.
    pub page_size_bytes: u64,
    /// `$mb_memory`: memory, MiB.
    pub memory_mib: u64,
    /// `$ncpus`: CPUs online.
    pub cpus: u64,
}

impl Default for Machine {
    /// A page of 4 KiB, 8 GiB of memory and four CPUs: the same everywhere, so that runs are.
    fn default() -> Self {
        Self { page_size_bytes: 4096, memory_mib: 8192, cpus: 4 }
    }
}

/// A world without variables, in which files can be read.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoVariables;

impl Environment for NoVariables {
    fn variable(&self, _name: &str) -> Option<String> {
        None
    }
}
