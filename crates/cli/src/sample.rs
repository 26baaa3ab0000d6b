//! The sample trace inside the binary: pgbench on ext4, recorded with blktrace on two CPUs.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, Result};
use iosched_trace::{ReadOptions, TraceReader};
use iosched_workload::{Trace, Workload};

pub(crate) const NAME: &str = "pgbench.blktrace";

const FILES: [(&str, &[u8]); 2] = [
    ("pgbench.blktrace.0.zst", include_bytes!("../../trace/samples/pgbench.blktrace.0.zst")),
    ("pgbench.blktrace.1.zst", include_bytes!("../../trace/samples/pgbench.blktrace.1.zst")),
];

/// The sample, ready for replay. A trace of several CPUs is read from files, so it goes through a directory of its own.
pub(crate) fn open() -> Result<Workload> {
    let directory = Directory::new().context("the sample trace cannot be unpacked")?;
    let mut paths = Vec::new();
    for (name, bytes) in FILES {
        let path = directory.0.join(name);
        std::fs::write(&path, bytes).with_context(|| format!("{}: cannot be written", path.display()))?;
        paths.push(path);
    }
    let reader = TraceReader::open_files(&paths, &ReadOptions::default())?;
    Ok(Workload::Trace(Arc::new(Trace::read(NAME, reader)?)))
}

/// A new directory for temporary files, removed in the end.
struct Directory(PathBuf);

impl Directory {
    fn new() -> std::io::Result<Self> {
        let base: &Path = &std::env::temp_dir();
        let mut last = None;
        for attempt in 0..100 {
            let path = base.join(format!("iosched-sample-{}-{attempt}", std::process::id()));
            match std::fs::create_dir(&path) {
                Ok(()) => return Ok(Self(path)),
                Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => last = Some(error),
                Err(error) => return Err(error),
            }
        }
        Err(last.unwrap_or_else(|| std::io::ErrorKind::AlreadyExists.into()))
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
