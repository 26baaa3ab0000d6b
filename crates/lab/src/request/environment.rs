//! Environment of fio job files: variables and properties of the machine, as this process finds
//! them.

use iosched_workload::fio::{Environment, Machine};

/// Environment variables, files and machine of this process.
#[derive(Clone, Copy, Debug)]
pub struct ProcessEnvironment;

impl Environment for ProcessEnvironment {
    fn variable(&self, name: &str) -> Option<String> {
        std::env::var(name).ok()
    }

    fn machine(&self) -> Machine {
        let usual = Machine::default();
        let field_kib = |path: &str, field: &str| {
            let text = std::fs::read_to_string(path).ok()?;
            let line = text.lines().find_map(|line| line.strip_prefix(field))?;
            line.trim_start_matches(':').split_whitespace().next()?.parse::<u64>().ok()
        };
        Machine {
            page_size_bytes: field_kib("/proc/self/smaps", "KernelPageSize")
                .map_or(usual.page_size_bytes, |kib| kib * 1024),
            memory_mib: field_kib("/proc/meminfo", "MemTotal").map_or(usual.memory_mib, |kib| kib / 1024),
            cpus: std::thread::available_parallelism().map_or(usual.cpus, |cpus| cpus.get() as u64),
        }
    }
}
