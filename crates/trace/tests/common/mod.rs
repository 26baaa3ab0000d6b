//! What the tests share.
#![allow(dead_code)]

use std::io::{Cursor, Read};
use std::path::{Path, PathBuf};

use iosched_trace::{EventReader, ReadOptions, TraceError, TraceReader, TraceRequest};

pub(crate) fn samples() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("samples")
}

pub(crate) fn corpus(name: &str) -> Vec<u8> {
    std::fs::read(Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz/corpus").join(name)).unwrap()
}

/// A folder beside the repository, or what the environment says; `None`, and a word about it, without.
pub(crate) fn beside(folder: &str, variable: &str) -> Option<PathBuf> {
    let default = || Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared").join(folder);
    let path = std::env::var_os(variable).map_or_else(default, PathBuf::from);
    if path.is_dir() {
        return Some(path);
    }
    println!("skipped: no traces in {} (set {variable} to a folder that has them)", path.display());
    None
}

pub(crate) fn unzstd(path: &Path) -> Vec<u8> {
    let mut data = Vec::new();
    let file = std::fs::File::open(path).unwrap();
    ruzstd::decoding::StreamingDecoder::new(file).unwrap().read_to_end(&mut data).unwrap();
    data
}

pub(crate) fn open(data: &[u8]) -> Result<TraceReader, TraceError> {
    open_with(data, &ReadOptions::default())
}

pub(crate) fn open_with(data: &[u8], options: &ReadOptions) -> Result<TraceReader, TraceError> {
    TraceReader::from_reader(Cursor::new(data.to_vec()), "input", options)
}

/// All requests and warnings.
pub(crate) fn read(data: &[u8]) -> (Vec<TraceRequest>, Vec<String>) {
    read_with(data, &ReadOptions::default())
}

pub(crate) fn read_with(data: &[u8], options: &ReadOptions) -> (Vec<TraceRequest>, Vec<String>) {
    let mut reader = open_with(data, options).unwrap();
    let requests = reader.by_ref().collect::<Result<_, _>>().unwrap();
    (requests, reader.warnings().kept().iter().map(ToString::to_string).collect())
}

/// A file's records, header and data.
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

/// The same little-endian records as a big-endian machine writes them.
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

/// The lines blkparse prints by default for the events of a trace.
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

/// The lines of a blkparse output that are events.
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

/// A folder that goes when the test is over.
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
