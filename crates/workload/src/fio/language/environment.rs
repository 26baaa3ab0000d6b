//! Inputs of a job file from its environment: variables, included files, and the machine.

use std::io::Read;
use std::path::Path;

/// Largest size of a job file, bytes.
pub(super) const FILE_BYTES_MAX: u64 = 4 << 20;

/// Environment of a job file. The caller provides it. This crate never reads the environment of the
/// process.
pub trait Environment {
    /// Returns the value of the environment variable in `${NAME}`. Returns `None` if the variable
    /// is not set.
    fn variable(&self, name: &str) -> Option<String>;

    /// Returns the bytes of a file.
    ///
    /// # Errors
    /// The file cannot be read, or is larger than 4 MiB.
    fn read(&self, path: &Path) -> std::io::Result<Vec<u8>> {
        let file = iosched_trace::open_plain(path)?;
        let mut bytes = Vec::new();
        file.take(FILE_BYTES_MAX + 1).read_to_end(&mut bytes)?;
        if bytes.len() as u64 > FILE_BYTES_MAX {
            return Err(std::io::Error::other("the file is larger than 4 MiB, so it is not a job file"));
        }
        Ok(bytes)
    }

    /// Returns the machine that determines `$pagesize`, `$mb_memory` and `$ncpus`.
    fn machine(&self) -> Machine {
        Machine::default()
    }
}

/// Values of the keywords of fio that depend on the machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Machine {
    /// `$pagesize`, bytes.
    pub page_size_bytes: u64,
    /// `$mb_memory`: memory, MiB.
    pub memory_mib: u64,
    /// `$ncpus`: number of CPUs online.
    pub cpus: u64,
}

impl Default for Machine {
    /// Returns a machine with pages of 4 KiB, 8 GiB of memory and four CPUs. It does not depend on
    /// the real machine, so runs are the same everywhere.
    fn default() -> Self {
        Self { page_size_bytes: 4096, memory_mib: 8192, cpus: 4 }
    }
}

/// An environment without variables. Files can be read.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoVariables;

impl Environment for NoVariables {
    fn variable(&self, _name: &str) -> Option<String> {
        None
    }
}
