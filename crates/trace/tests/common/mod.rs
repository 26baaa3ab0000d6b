//! The common parts of the tests.
#![allow(dead_code)]

use std::collections::BTreeSet;
use std::io::{Cursor, Read};
use std::path::{Path, PathBuf};
use std::process::Command;

pub(crate) use iosched_testing::machine::shared_folder;
use iosched_trace::{EventReader, ReadOptions, TraceError, TraceReader, TraceRequest};

pub(crate) fn samples() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("samples")
}

pub(crate) fn corpus(name: &str) -> Vec<u8> {
    std::fs::read(Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz/corpus").join(name)).unwrap()
}

pub(crate) fn unzstd(path: &Path) -> Vec<u8> {
    let mut data = Vec::new();
    let file = std::fs::File::open(path).unwrap();
    ruzstd::decoding::StreamingDecoder::new(file).unwrap().read_to_end(&mut data).unwrap();
    data
}

/// Returns options that accept incomplete data.
pub(crate) fn partial() -> ReadOptions {
    ReadOptions { partial: true, ..ReadOptions::default() }
}

/// Opens data in the detected format. Accepts incomplete data.
pub(crate) fn open(data: &[u8]) -> Result<TraceReader, TraceError> {
    open_with(data, &ReadOptions::default())
}

pub(crate) fn open_with(data: &[u8], options: &ReadOptions) -> Result<TraceReader, TraceError> {
    let format = strictly(data, options)?.format();
    strictly(data, &ReadOptions { format: Some(format), partial: true, ..options.clone() })
}

/// Opens data with exactly these options.
pub(crate) fn strictly(data: &[u8], options: &ReadOptions) -> Result<TraceReader, TraceError> {
    TraceReader::from_reader(Cursor::new(data.to_vec()), "input", options)
}

/// Returns all requests and warnings.
pub(crate) fn read(data: &[u8]) -> (Vec<TraceRequest>, Vec<String>) {
    read_with(data, &ReadOptions::default())
}

pub(crate) fn read_with(data: &[u8], options: &ReadOptions) -> (Vec<TraceRequest>, Vec<String>) {
    let mut reader = open_with(data, options).unwrap();
    let requests = reader.by_ref().collect::<Result<_, _>>().unwrap();
    (requests, reader.warnings().kept().iter().map(ToString::to_string).collect())
}

/// Splits a file into its records, with header and data.
pub(crate) fn records(data: &[u8]) -> Vec<&[u8]> {
    let mut records = Vec::new();
    let mut rest = data;
    while rest.len() >= 48 {
        let length = 48 + usize::from(u16::from_le_bytes([rest[46], rest[47]]));
        records.push(&rest[..length]);
        rest = &rest[length..];
    }
    records
}

/// Converts little-endian records into records of a big-endian machine.
pub(crate) fn big_endian(data: &[u8]) -> Vec<u8> {
    let mut swapped = Vec::with_capacity(data.len());
    for record in records(data) {
        let mut at = 0;
        for width in [4, 4, 8, 8, 4, 4, 4, 4, 4, 2, 2] {
            swapped.extend(record[at..at + width].iter().rev());
            at += width;
        }
        swapped.extend(&record[48..]);
    }
    swapped
}

/// Returns the lines that blkparse prints by default for the events of a trace.
pub(crate) fn lines_of(mut events: EventReader) -> Vec<String> {
    let mut lines = Vec::new();
    while let Some(event) = events.next() {
        let event = event.unwrap();
        let name = events.process_names().get(&event.pid).copied().filter(|_| event.pid != 0);
        lines.extend(event.to_blkparse_line(name));
    }
    assert!(events.warnings().is_empty(), "{:?}", events.warnings().kept());
    lines
}

/// Returns the lines of a blkparse output that are events.
pub(crate) fn event_lines(text: &str) -> Vec<String> {
    let events = text.lines().filter(|line| line.split_whitespace().next().is_some_and(|word| word.contains(',')));
    events.map(|line| line.trim_end().to_owned()).collect()
}

pub(crate) fn assert_same_lines(what: &str, ours: &[String], theirs: &[String]) {
    for (at, (ours, theirs)) in ours.iter().zip(theirs).enumerate() {
        assert_eq!(ours.trim_end(), theirs, "{what}: record {at}");
    }
    assert_eq!(ours.len(), theirs.len(), "{what}");
}

/// A folder that is removed when the test ends.
pub(crate) struct Folder(pub(crate) PathBuf);

impl Folder {
    pub(crate) fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("iosched-trace-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        Self(path)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Returns the output of the installed blkparse for `folder`/`name`.blktrace.*. Prints a message
/// and returns `None` if blkparse is not installed.
pub(crate) fn blkparse(folder: &Path, name: &str) -> Option<Vec<String>> {
    match Command::new("blkparse").args(["-q", "-i", name]).current_dir(folder).output() {
        Ok(output) => {
            assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
            Some(event_lines(&String::from_utf8_lossy(&output.stdout)))
        }
        Err(error) => {
            assert!(std::env::var_os("CI").is_none(), "blkparse cannot be run ({error}), and CI skips nothing");
            println!("skipped: blkparse cannot be run ({error}); the package blktrace has it");
            None
        }
    }
}

/// Returns the output of the installed btt for `folder`/`name`.blktrace.*. Prints a message and
/// returns `None` if btt is not installed.
pub(crate) fn btt(folder: &Path, name: &str) -> Option<String> {
    let run = |program: &str, args: &[&str]| Command::new(program).args(args).current_dir(folder).output();
    let binary = format!("{name}.bin");
    let text = format!("{name}.text");
    blkparse(folder, name)?;
    run("blkparse", &["-q", "-i", name, "-d", &binary, "-o", &text]).unwrap();
    match run("btt", &["-i", &binary]) {
        Ok(output) => {
            assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
            Some(String::from_utf8_lossy(&output.stdout).into_owned())
        }
        Err(error) => {
            assert!(std::env::var_os("CI").is_none(), "btt cannot be run ({error}), and CI skips nothing");
            println!("skipped: btt cannot be run ({error}); the package blktrace has it");
            None
        }
    }
}

/// Unpacks the block traces of `source` into `folder`. Returns the names before `.blktrace.N`.
pub(crate) fn unpack(source: &Path, folder: &Folder) -> BTreeSet<String> {
    let mut bases = BTreeSet::new();
    for entry in std::fs::read_dir(source).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap();
        let Some((base, cpu)) = name.strip_suffix(".zst").and_then(|name| name.split_once(".blktrace.")) else {
            continue;
        };
        bases.insert(base.to_owned());
        std::fs::write(folder.0.join(format!("{base}.blktrace.{cpu}")), unzstd(&path)).unwrap();
    }
    bases
}
