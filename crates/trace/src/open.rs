//! From a name to files, from files to a format.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use crate::blktrace::binary;
use crate::error::TraceError;
use crate::input::{HEAD_BYTES, Input};
use crate::{Format, alibaba, blkparse, blkreplay, csv, fio, fiu, mqsim, msr, spc, tencent, vscsi};

/// The files that the name `path` of a trace stands for: itself; its siblings of other CPUs, if it is named as one CPU's; if there
/// is no such file, the per-CPU files that begin with its name, or itself compressed.
///
/// # Errors
/// There is none.
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

/// `NAME.N`, perhaps compressed, as (NAME, N).
pub(crate) fn split_cpu(file_name: &str) -> Option<(&str, u32)> {
    let (base, cpu) = strip_compression(file_name).rsplit_once('.')?;
    (!cpu.is_empty() && cpu.bytes().all(|b| b.is_ascii_digit())).then_some(())?;
    Some((base, cpu.parse().ok()?))
}

pub(crate) fn strip_compression(file_name: &str) -> &str {
    file_name.strip_suffix(".gz").or_else(|| file_name.strip_suffix(".zst")).unwrap_or(file_name)
}

/// All files beside `path` named `base.N`, one per N, by N; one that is not compressed wins.
fn per_cpu(path: &Path, base: &str) -> Vec<PathBuf> {
    let directory = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let Ok(entries) = std::fs::read_dir(directory) else { return Vec::new() };
    let mut found: Vec<(u32, usize, String)> = entries
        .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
        .filter_map(|name| {
            let (of, cpu) = split_cpu(&name)?;
            (of == base).then(|| (cpu, name.len(), name.clone()))
        })
        .collect();
    found.sort();
    found.dedup_by_key(|(cpu, ..)| *cpu);
    found.into_iter().map(|(.., name)| path.with_file_name(name)).collect()
}

pub(crate) fn open_file(path: &Path) -> Result<Input, TraceError> {
    let name = path.display().to_string();
    let is_directory = || io::Error::new(io::ErrorKind::IsADirectory, "is a directory, not a trace");
    let file = if path.is_dir() { Err(is_directory()) } else { File::open(path) };
    let opened = file.and_then(|file| Input::new(Box::new(file), &name));
    opened.map_err(|source| TraceError::Io { file: name, source })
}

/// The format of files that belong together.
pub(crate) fn detect(inputs: &mut [Input]) -> Result<Format, TraceError> {
    let Some(first) = inputs.first() else { return Err(TraceError::NoFile) };
    let first_name = first.name().to_owned();
    let mut all_empty = true;
    let mut formats = Vec::new();
    for input in inputs.iter_mut() {
        let name = input.name().to_owned();
        let head = input.peek(HEAD_BYTES);
        all_empty &= head.is_empty();
        formats.push(of_content(head, &name)?.or_else(|| Format::of_file_name(&name)));
    }
    if all_empty {
        // A file that cannot even be read a little is not empty but damaged.
        return match inputs.iter_mut().find_map(Input::failure_at_start) {
            Some(error) => Err(error),
            None => Err(TraceError::Empty { file: first_name }),
        };
    }
    if let [one] = formats[..] {
        return one.ok_or(TraceError::UnknownFormat { file: first_name });
    }
    // One that cannot be told beside others that can is damaged at its start.
    let wrong = formats.iter().position(|format| format.is_some_and(|format| format != Format::Blktrace));
    match wrong {
        Some(at) => {
            let format = formats[at].unwrap_or(Format::Blktrace);
            Err(TraceError::SeveralFiles { file: inputs[at].name().to_owned(), format })
        }
        None if formats.iter().all(Option::is_none) => Err(TraceError::UnknownFormat { file: first_name }),
        None => Ok(Format::Blktrace),
    }
}

fn of_content(head: &[u8], name: &str) -> Result<Option<Format>, TraceError> {
    if let Some(version) = binary::sniff(head) {
        // One record of another version among ours is damage.
        let is_ours = || head.windows(4).any(|word| binary::sniff(word) == Some(crate::blktrace::VERSION));
        if version != crate::blktrace::VERSION && !is_ours() {
            return Err(TraceError::UnsupportedVersion { file: name.to_owned(), version });
        }
        return Ok(Some(Format::Blktrace));
    }
    if vscsi::sniff(head).is_some() {
        return Ok(Some(Format::Vscsi));
    }
    if head.iter().take(512).any(|&b| b == 0) {
        return Ok(None);
    }
    let whole_lines = head.iter().rposition(|&b| b == b'\n').map_or(head, |end| &head[..end]);
    Ok(match whole_lines {
        lines if fio::sniff(lines) == Some(fio::Version::Two) => Some(Format::FioV2),
        lines if fio::sniff(lines) == Some(fio::Version::Three) => Some(Format::FioV3),
        lines if csv::sniff(lines) => Some(Format::Csv),
        lines if msr::sniff(lines) => Some(Format::Msr),
        lines if alibaba::sniff(lines) => Some(Format::Alibaba),
        lines if tencent::sniff(lines) => Some(Format::Tencent),
        lines if spc::sniff(lines) => Some(Format::Spc),
        lines if fiu::sniff(lines) => Some(Format::Fiu),
        lines if blkreplay::sniff(lines) => Some(Format::Blkreplay),
        lines if blkparse::sniff(lines) => Some(Format::Blkparse),
        lines if mqsim::sniff(lines) => Some(Format::Mqsim),
        _ => None,
    })
}
