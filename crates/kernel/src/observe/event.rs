//! Events of requests, decoded from the ring buffer.

use std::path::Path;

use serde::{Deserialize, Serialize};

use super::format::{Field, Format};

/// Operation of a request or a process.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Operation {
    /// A read.
    Read,
    /// A write.
    Write,
    /// A flush of the write cache without data.
    Flush,
    /// A discard.
    Discard,
    /// A call of `fsync` or `fdatasync` of a file, from call to return.
    Fsync,
}

impl Operation {
    /// All operations that are observed separately.
    pub const ALL: [Self; 5] = [Self::Read, Self::Write, Self::Flush, Self::Discard, Self::Fsync];

    /// Returns the name, as labels of metrics use it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Write => "write",
            Self::Flush => "flush",
            Self::Discard => "discard",
            Self::Fsync => "fsync",
        }
    }

    /// Parses the letters of a request in a trace event.
    fn of(letters: &[u8], sectors: u32) -> Option<Self> {
        let (first, rest) = letters.split_first()?;
        let flushes_before = *first == b'F' && rest.first().is_some_and(|next| b"RWDFNZ".contains(next));
        match if flushes_before { rest.first()? } else { first } {
            // A flush is a write without data.
            b'W' if flushes_before && sectors == 0 => Some(Self::Flush),
            b'F' => Some(Self::Flush),
            b'R' => Some(Self::Read),
            b'W' => Some(Self::Write),
            b'D' => Some(Self::Discard),
            _ => None,
        }
    }
}

/// Kind of an event.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Kind {
    /// A process made a request.
    Start,
    /// The driver received the request.
    Issue,
    /// The request is complete.
    Complete,
    /// The request was merged into another request.
    Merge,
    /// A bio became the new first part of a request.
    FrontMerge,
    /// A process called `fsync`.
    SyncStart,
    /// The call returned.
    SyncEnd,
}

/// An event.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Event {
    pub(super) time_ns: u64,
    /// First sector, or the inode of a file.
    pub(super) sector: u64,
    pub(super) tid: u32,
    /// Device number in the kernel's encoding.
    pub(super) device: u32,
    pub(super) sectors: u32,
    /// I/O priority in the kernel's encoding. `None` if the kernel does not report it.
    pub(super) ioprio: Option<u16>,
    pub(super) operation: Operation,
    pub(super) kind: Kind,
    pub(super) comm: [u8; 16],
}

/// Layout of one kind of event.
#[derive(Clone, Debug)]
struct Layout {
    id: u16,
    kind: Kind,
    device: Field,
    sector: Field,
    sectors: Option<Field>,
    rwbs: Option<Field>,
    ioprio: Option<Field>,
    comm: Option<Field>,
}

/// Layouts of all events that are observed.
#[derive(Clone, Debug)]
pub(super) struct Layouts {
    layouts: Vec<Layout>,
    id: Field,
    tid: Field,
    /// Directories of the events, below `events`.
    pub(super) names: Vec<&'static str>,
    /// Whether the kernel reports requests that are merged into other requests.
    pub(super) reports_merges: bool,
    /// Whether calls of `fsync` are reported, for files on ext4.
    pub(super) reports_fsync: bool,
}

/// Events for the start of a request, in the order of preference.
const STARTS: [&str; 2] = ["block/block_io_start", "block/block_getrq"];
const OTHERS: [(&str, Kind); 6] = [
    ("block/block_rq_issue", Kind::Issue),
    ("block/block_rq_complete", Kind::Complete),
    ("block/block_rq_merge", Kind::Merge),
    ("block/block_bio_frontmerge", Kind::FrontMerge),
    ("ext4/ext4_sync_file_enter", Kind::SyncStart),
    ("ext4/ext4_sync_file_exit", Kind::SyncEnd),
];

impl Layouts {
    /// Reads the layouts from the directory `events`. Returns `None` if the kernel lacks an event
    /// that is needed.
    pub(super) fn read(events: &Path) -> Option<Self> {
        let start = STARTS.into_iter().find(|name| events.join(name).is_dir())?;
        let mut layouts = Vec::new();
        let mut names = Vec::new();
        let mut common = None;
        for (name, kind) in std::iter::once((start, Kind::Start)).chain(OTHERS) {
            let Some(format) = Format::read(&events.join(name)) else { continue };
            let is_file = matches!(kind, Kind::SyncStart | Kind::SyncEnd);
            let layout = Layout {
                id: format.id,
                kind,
                device: format.number("dev")?,
                sector: format.number(if is_file { "ino" } else { "sector" })?,
                sectors: format.number("nr_sector"),
                rwbs: format.text("rwbs"),
                ioprio: format.number("ioprio"),
                comm: format.text("comm"),
            };
            common = Some((format.number("common_type")?, format.number("common_pid")?));
            names.push(name);
            layouts.push(layout);
        }
        let has = |kind| layouts.iter().any(|layout: &Layout| layout.kind == kind);
        let (reports_merges, reports_fsync) = (has(Kind::Merge), has(Kind::SyncStart) && has(Kind::SyncEnd));
        if !has(Kind::Start) || !has(Kind::Complete) {
            return None;
        }
        let (id, tid) = common?;
        Some(Self { layouts, id, tid, names, reports_merges, reports_fsync })
    }

    /// Decodes an event. Returns `None` for an event or an operation that is not observed.
    #[inline]
    pub(super) fn decode(&self, time_ns: u64, bytes: &[u8]) -> Option<Event> {
        let id = self.id.number(bytes) as u16;
        let layout = self.layouts.iter().find(|layout| layout.id == id)?;
        let sectors = layout.sectors.map_or(0, |field| field.number(bytes) as u32);
        let operation = match layout.rwbs {
            Some(field) => Operation::of(field.text(bytes), sectors)?,
            None => Operation::Fsync,
        };
        let mut comm = [0; 16];
        // Only the process that submits a request is of interest.
        if let (Kind::Start, Some(field)) = (layout.kind, layout.comm) {
            let name = field.text(bytes);
            let length = name.len().min(comm.len());
            comm[..length].copy_from_slice(&name[..length]);
        }
        Some(Event {
            time_ns,
            sector: layout.sector.number(bytes),
            tid: self.tid.number(bytes) as u32,
            device: layout.device.number(bytes) as u32,
            sectors,
            ioprio: layout.ioprio.map(|field| field.number(bytes) as u16),
            operation,
            kind: layout.kind,
            comm,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rwbs_letters_give_the_operation() {
        for (letters, sectors, operation) in [
            ("RA", 8, Some(Operation::Read)),
            ("WS", 8, Some(Operation::Write)),
            ("FWFS", 8, Some(Operation::Write)),
            ("FWS", 0, Some(Operation::Flush)),
            ("FF", 0, Some(Operation::Flush)),
            ("F", 0, Some(Operation::Flush)),
            ("DE", 8, Some(Operation::Discard)),
            ("N", 0, None),
            ("ZR", 0, None),
            ("", 0, None),
        ] {
            assert_eq!(Operation::of(letters.as_bytes(), sectors), operation, "{letters}");
        }
    }
}
