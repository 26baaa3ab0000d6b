//! Resolution of a name into the files of a trace.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use crate::Format;
use crate::error::TraceError;

/// Returns the files of the trace `path`: the file itself, or all per-CPU files if `path` is the
/// name of a per-CPU file. If there is no file `path`, returns the per-CPU files whose names begin
/// with `path`, or the compressed file.
///
/// # Errors
/// If no such file exists.
pub fn resolve(path: &Path) -> Result<Vec<PathBuf>, TraceError> {
    let file_name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    if path.exists() {
        return Ok(match split_cpu(file_name) {
            Some((base, _)) if base.ends_with(".blktrace") => {
                let files = per_cpu(path, base);
                if files.is_empty() { vec![path.to_owned()] } else { files }
            }
            _ => vec![path.to_owned()],
        });
    }
    for base in [file_name.to_owned(), format!("{file_name}.blktrace")] {
        let files = per_cpu(path, &base);
        if !files.is_empty() {
            return Ok(files);
        }
    }
    for suffix in ["gz", "zst"] {
        let compressed = path.with_file_name(format!("{file_name}.{suffix}"));
        if compressed.is_file() {
            return Ok(vec![compressed]);
        }
    }
    Err(TraceError::NotFound { file: path.display().to_string() })
}

/// Splits `NAME.N`, possibly with an extension for compression, into (NAME, N).
pub(crate) fn split_cpu(file_name: &str) -> Option<(&str, u32)> {
    let (base, cpu) = strip_compression(file_name).rsplit_once('.')?;
    (!cpu.is_empty() && cpu.bytes().all(|b| b.is_ascii_digit())).then_some(())?;
    Some((base, cpu.parse().ok()?))
}

pub(crate) fn strip_compression(file_name: &str) -> &str {
    file_name.strip_suffix(".gz").or_else(|| file_name.strip_suffix(".zst")).unwrap_or(file_name)
}

/// Returns all files named `base.N` in the directory of `path`, one for each N, in the order of N.
/// An uncompressed file takes precedence over a compressed one.
fn per_cpu(path: &Path, base: &str) -> Vec<PathBuf> {
    let directory = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let Ok(entries) = std::fs::read_dir(directory) else { return Vec::new() };
    let mut found: Vec<(u32, usize, String)> = entries
        .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
        .filter_map(|name| {
            let (prefix, cpu) = split_cpu(&name)?;
            (prefix == base).then(|| (cpu, name.len(), name.clone()))
        })
        .collect();
    found.sort();
    found.dedup_by_key(|(cpu, ..)| *cpu);
    found.into_iter().map(|(.., name)| path.with_file_name(name)).collect()
}

/// Returns a few names of traces in a directory. For per-CPU files, returns the common start of the
/// names.
pub(crate) fn traces_in(directory: &Path) -> Vec<String> {
    const NAMES_MAX: usize = 3;
    let Ok(entries) = std::fs::read_dir(directory) else { return Vec::new() };
    let names = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
    let stem = |name: String| match split_cpu(&name) {
        Some((base, _)) if base.ends_with(".blktrace") => base.to_owned(),
        _ => name,
    };
    let traces = names.filter(|name| Format::of_file_name(name).is_some()).map(stem);
    traces.collect::<BTreeSet<_>>().into_iter().take(NAMES_MAX).collect()
}
