//! Processes that write, from `/proc/PID/io` (Documentation/filesystems/proc.rst). The kernel
//! increases `write_bytes` when a process dirties a page or writes directly. Buffered writes
//! therefore count for the process that made them, although a kworker sends them to the disk later.
//! The kernel does not count each disk separately. Only root sees processes of other users.

use std::collections::BTreeMap;
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

/// Largest number of processes that are named.
const NAMED_MAX: usize = 3;

/// The bytes that processes have written.
pub(super) struct Writers {
    proc: PathBuf,
    /// Bytes since the start of each process, by process number.
    before: BTreeMap<u32, u64>,
}

impl Writers {
    /// Starts counting. `proc` is the directory of procfs.
    pub(super) fn at(proc: &Path) -> Self {
        let before = written(proc).0;
        Self { proc: proc.to_owned(), before }
    }

    /// Returns a line about the processes that wrote since the last call, `seconds` ago. The
    /// process that wrote most comes first. If no process wrote, the line says whether the kernel
    /// denied access.
    pub(super) fn note(&mut self, seconds: f64) -> Option<String> {
        let (now, is_refused) = written(&self.proc);
        let mut writers: Vec<(u64, u32)> = now
            .iter()
            .map(|(pid, bytes)| (bytes.saturating_sub(self.before.get(pid).copied().unwrap_or(0)), *pid))
            .filter(|(bytes, _)| *bytes > 0)
            .collect();
        self.before = now;
        writers.sort_unstable_by_key(|&(bytes, pid)| (std::cmp::Reverse(bytes), pid));
        let named = writers.iter().take(NAMED_MAX).map(|(bytes, pid)| {
            let name = fs::read_to_string(self.proc.join(format!("{pid}/comm"))).unwrap_or_default();
            let name = name.trim_end().replace(char::is_control, "?");
            format!("{name} ({pid}) {:.1} MB/s", *bytes as f64 / 1e6 / seconds)
        });
        let named: Vec<_> = named.collect();
        let more = writers.len() - named.len();
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        let others = if is_refused { "; only root can see the writes of other users" } else { "" };
        match named.is_empty() {
            false => Some(format!("writers (to any disk): {}{more}{others}", named.join(", "))),
            true if is_refused => {
                Some("only root can see which processes write through the page cache (/proc/PID/io)".to_owned())
            }
            true => None,
        }
    }
}

/// Returns the bytes that each process has written, and whether access to a process was denied.
fn written(proc: &Path) -> (BTreeMap<u32, u64>, bool) {
    let (mut found, mut is_refused) = (BTreeMap::new(), false);
    for entry in fs::read_dir(proc).into_iter().flatten().flatten() {
        let Some(pid) = entry.file_name().to_str().and_then(|name| name.parse().ok()) else { continue };
        match fs::read_to_string(entry.path().join("io")) {
            Ok(text) => {
                let bytes = text.lines().find_map(|line| line.strip_prefix("write_bytes:")?.trim().parse().ok());
                found.extend(bytes.map(|bytes: u64| (pid, bytes)));
            }
            Err(error) => is_refused |= error.kind() == ErrorKind::PermissionDenied,
        }
    }
    (found, is_refused)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn process(proc: &Path, pid: u32, name: &str, write_bytes: u64) {
        let here = proc.join(pid.to_string());
        fs::create_dir_all(&here).unwrap();
        fs::write(here.join("comm"), format!("{name}\n")).unwrap();
        let text =
            format!("rchar: 7\nwchar: 8\nread_bytes: 4096\nwrite_bytes: {write_bytes}\ncancelled_write_bytes: 0\n");
        fs::write(here.join("io"), text).unwrap();
    }

    #[test]
    fn processes_that_wrote_are_named_with_their_rate() {
        let proc = tempfile::tempdir().unwrap();
        process(proc.path(), 10, "idle", 5);
        process(proc.path(), 11, "tar", 1_000_000);
        fs::create_dir(proc.path().join("sys")).unwrap();
        let mut writers = Writers::at(proc.path());
        assert_eq!(writers.note(2.0), None);
        process(proc.path(), 11, "tar", 3_000_000);
        process(proc.path(), 12, "odd\tname", 8_000_000);
        assert_eq!(writers.note(2.0).unwrap(), "writers (to any disk): odd?name (12) 4.0 MB/s, tar (11) 1.0 MB/s");
        for pid in 20..25 {
            process(proc.path(), pid, "many", 2_000_000);
        }
        assert!(writers.note(1.0).unwrap().ends_with("many (22) 2.0 MB/s and 2 more"));
    }
}
