//! The compact form of recorded runs.
//!
//! An archive is compressed with gzip. It has the name, the scenario, the minimal events and hashes
//! of all events of each run. Fields that can be computed from other fields of the same run are
//! left out.

use std::io::{self, Read};

use flate2::read::GzDecoder;
use iosched::{Decision, MergeSide};
use iosched_workload::{Brief, Scenario};

use crate::event::{Event, Sum};

/// Number of events that one hash of a fixture covers.
pub const HASH_EVENTS: usize = 128;

/// One recorded run of an elevator of Linux.
#[derive(Clone, Debug, Default)]
pub struct Run {
    /// Name of the run.
    pub name: String,
    /// The scenario's JSON.
    pub scenario: Vec<u8>,
    /// Minimal events, encoded. Empty for runs of controllers.
    pub minimal: Vec<u8>,
    /// Low half of a hash of all lines so far, after every [`HASH_EVENTS`] events and at the end.
    pub hashes: Vec<u32>,
}

/// FNV-1a hash over the lines of a recording.
#[derive(Clone, Copy, Debug)]
pub struct LineHash {
    state: u64,
    lines: usize,
}

impl Default for LineHash {
    fn default() -> Self {
        Self { state: 0xcbf2_9ce4_8422_2325, lines: 0 }
    }
}

impl LineHash {
    /// Adds a line. Returns a hash after every [`HASH_EVENTS`] lines.
    pub fn add(&mut self, line: &str) -> Option<u32> {
        for byte in line.bytes().chain(*b"\n") {
            self.state = (self.state ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3);
        }
        self.lines += 1;
        self.lines.is_multiple_of(HASH_EVENTS).then(|| self.value())
    }

    /// Returns the hash so far.
    pub fn value(&self) -> u32 {
        (self.state ^ (self.state >> 32)) as u32
    }

    /// Returns the hashes of all `lines`.
    pub fn of<'a>(lines: impl Iterator<Item = &'a str>) -> Vec<u32> {
        let mut hash = Self::default();
        let mut hashes: Vec<u32> = lines.filter_map(|line| hash.add(line)).collect();
        hashes.push(hash.value());
        hashes
    }
}

/// Appends a number, with seven bits per byte, the low bits first.
pub fn put(bytes: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        bytes.push(value as u8 | 0x80);
        value >>= 7;
    }
    bytes.push(value as u8);
}

fn signed(value: u64, base: u64) -> u64 {
    let delta = value.wrapping_sub(base) as i64;
    ((delta << 1) ^ (delta >> 63)) as u64
}

/// An event that must be exactly the same in the recorded and in the simulated run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Minimal {
    /// A request is given to the elevator.
    Insert(BioFields),
    /// A bio joins a request.
    Merge {
        /// The bio.
        bio: BioFields,
        /// The request's first bio.
        into: u64,
        /// Whether the bio joins at the front of the request instead of the end.
        front: bool,
    },
    /// Two requests become one.
    RequestMerge {
        /// First bio of the request that is absorbed.
        id: u64,
        /// First bio of the request that stays.
        into: u64,
    },
    /// A request goes to the device.
    Dispatch {
        /// First bio of the request.
        id: u64,
    },
    /// A request is complete.
    Complete {
        /// First bio of the request.
        id: u64,
    },
    /// A sum of all dispatches so far.
    Sum {
        /// Number of requests.
        dispatches: u64,
        /// Value of the sum.
        value: u64,
    },
}

/// The fields of a bio in events.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BioFields {
    /// Number of the bio.
    pub id: u64,
    /// Process of the bio.
    pub pid: u32,
    /// First sector.
    pub sector: u64,
    /// Length in sectors.
    pub nr_sectors: u32,
    /// `r`, `w` or another letter of its operation.
    pub rw: char,
    /// Whether the bio is sync.
    pub sync: bool,
}

impl Minimal {
    /// Returns the minimal events of a simulated run that a recording of the scenario contains.
    pub fn all(scenario: &Scenario, events: &[(u64, Event)]) -> Vec<(u64, Self)> {
        let mut sum = Sum::default();
        let mut kept = |now_ns: u64, event: Self| match (scenario.brief, event) {
            (Brief::No, _)
            | (Brief::Dispatches, Self::Dispatch { .. } | Self::Merge { .. } | Self::RequestMerge { .. }) => {
                Some(event)
            }
            (Brief::Sums, Self::Dispatch { id }) => {
                sum.add(now_ns, id).map(|(dispatches, value)| Self::Sum { dispatches, value })
            }
            _ => None,
        };
        let minimal = events.iter().filter_map(|(now_ns, event)| Some((*now_ns, Self::of(event)?)));
        minimal.filter_map(|(now_ns, event)| Some((now_ns, kept(now_ns, event)?))).collect()
    }

    /// Returns the minimal form of an event, if it has one.
    fn of(event: &Event) -> Option<Self> {
        let Event::Decision(decision) = event else {
            return None;
        };
        Some(match *decision {
            Decision::Insert { cookie: id, pid, sector, nr_sectors, op, sync, .. } => {
                Self::Insert(BioFields { id, pid, sector, nr_sectors, rw: op.letter(), sync })
            }
            Decision::Merge { cookie: id, pid, sector, nr_sectors, op, sync, into, side } => {
                let bio = BioFields { id, pid, sector, nr_sectors, rw: op.letter(), sync };
                Self::Merge { bio, into, front: side == MergeSide::Front }
            }
            Decision::RequestMerge { cookie: id, into } => Self::RequestMerge { id, into },
            Decision::Dispatch { cookie: id, .. } => Self::Dispatch { id },
            Decision::Complete { cookie: id } => Self::Complete { id },
            _ => return None,
        })
    }
}

/// Encodes minimal events, one after another.
#[derive(Clone, Debug, Default)]
pub struct Encoder {
    last_ns: u64,
    id: u64,
    dispatched: u64,
    completed: u64,
    sector: u64,
}

impl Encoder {
    /// Appends the bytes of one event.
    pub fn encode(&mut self, bytes: &mut Vec<u8>, now_ns: u64, event: &Minimal) {
        let kind = match event {
            Minimal::Insert(_) => 0,
            Minimal::Dispatch { .. } => 1,
            Minimal::Complete { .. } => 2,
            Minimal::Merge { front: false, .. } => 3,
            Minimal::Merge { front: true, .. } => 4,
            Minimal::RequestMerge { .. } => 5,
            Minimal::Sum { .. } => 6,
        };
        put(bytes, now_ns.wrapping_sub(self.last_ns) << 3 | kind);
        self.last_ns = now_ns;
        match event {
            Minimal::Insert(bio) => self.bio(bytes, bio),
            Minimal::Merge { bio, into, .. } => {
                self.bio(bytes, bio);
                put(bytes, signed(*into, bio.id));
            }
            Minimal::RequestMerge { id, into } => {
                put(bytes, signed(*id, self.id));
                put(bytes, signed(*into, *id));
            }
            Minimal::Dispatch { id } => {
                put(bytes, signed(*id, self.dispatched + 1));
                self.dispatched = *id;
            }
            Minimal::Complete { id } => {
                put(bytes, signed(*id, self.completed + 1));
                self.completed = *id;
            }
            Minimal::Sum { dispatches, value } => {
                put(bytes, *dispatches);
                put(bytes, *value);
            }
        }
    }

    fn bio(&mut self, bytes: &mut Vec<u8>, bio: &BioFields) {
        put(bytes, signed(bio.id, self.id + 1));
        put(bytes, u64::from(bio.pid) << 8 | u64::from(bio.rw as u8 & 0x7f) << 1 | u64::from(bio.sync));
        put(bytes, signed(bio.sector, self.sector));
        put(bytes, bio.nr_sectors.into());
        self.id = bio.id;
        self.sector = bio.sector + u64::from(bio.nr_sectors);
    }
}

/// Reads the runs of an archive.
pub fn read(archive: &[u8]) -> io::Result<Vec<Run>> {
    let mut plain = Vec::new();
    GzDecoder::new(archive).read_to_end(&mut plain)?;
    let mut rest = &plain[..];
    let mut take = || -> Option<Vec<u8>> {
        let mut length = 0u64;
        for shift in (0..64).step_by(7) {
            let (&byte, tail) = rest.split_first()?;
            rest = tail;
            length |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                break;
            }
        }
        let (bytes, tail) = rest.split_at_checked(usize::try_from(length).ok()?)?;
        rest = tail;
        Some(bytes.to_vec())
    };
    let mut runs = Vec::new();
    while let Some(name) = take() {
        let broken = || io::Error::other("the archive ends inside a run");
        let name = String::from_utf8(name).map_err(io::Error::other)?;
        let (scenario, minimal, hashes) =
            (take().ok_or_else(broken)?, take().ok_or_else(broken)?, take().ok_or_else(broken)?);
        let hashes = hashes.chunks_exact(4).map(|b| u32::from_le_bytes([b[0], b[1], b[2], b[3]])).collect();
        runs.push(Run { name, scenario, minimal, hashes });
    }
    Ok(runs)
}
