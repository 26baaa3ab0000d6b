//! What replay needs of a trace: one item per submission, in time order.

use std::fmt;

use iosched::{Flags, Op, Sector, Time};

/// One submission to the request queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TraceRequest {
    /// When it was submitted, since the trace's origin (see [`Format`]). Never less than that of the item before.
    pub arrival: Time,
    /// Who submitted it; 0 where the format does not say.
    pub pid: u32,
    /// Which device of the trace: `major << 20 | minor` in block traces ([`DeviceName`] prints it), a plain
    /// number in MQSim's; `None` where the format does not say.
    pub device: Option<u32>,
    /// What to do. Block traces do not tell writing zeroes from writing.
    pub op: Op,
    /// How. [`Flags::IDLE`] is in no format.
    pub flags: Flags,
    /// First sector, in 512 bytes; 0 for a flush.
    pub sector: Sector,
    /// Sectors, at least 1; 0 for a flush.
    pub nr_sectors: u32,
    /// From submission to completion in the recorded system, ns, where known.
    pub latency_ns: Option<u64>,
}

impl TraceRequest {
    /// The sector behind the last; saturates.
    #[must_use]
    pub const fn end(&self) -> Sector {
        self.sector.saturating_add(self.nr_sectors as u64)
    }

    /// Whether somebody waits for it: reads, and writes flagged sync.
    #[must_use]
    pub const fn is_sync(&self) -> bool {
        !self.op.is_write() || self.flags.contains(Flags::SYNC)
    }
}

/// A block trace's device number, printed as `major,minor`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct DeviceName(pub u32);

impl fmt::Display for DeviceName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{},{}", self.0 >> 20, self.0 & 0xf_ffff)
    }
}

impl DeviceName {
    /// Reads `major,minor`, or a plain number; `None` if it is neither.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        match text.split_once(',') {
            Some((major, minor)) => {
                let (major, minor): (u32, u32) = (major.parse().ok()?, minor.parse().ok()?);
                (major < 1 << 12 && minor < 1 << 20).then_some(Self(major << 20 | minor))
            }
            None => text.parse().ok().map(Self),
        }
    }
}

/// The formats of traces.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum Format {
    /// blktrace's binary records, one file per CPU. Origin: the first event.
    Blktrace,
    /// blkparse's default text. Origin: its own, which is the first event.
    Blkparse,
    /// blkreplay's text. Origin: as written.
    Blkreplay,
    /// vscsiStats' binary records, versions 1 and 2. Origin: the first record.
    Vscsi,
    /// MQSim's text. Origin: the first record.
    Mqsim,
    /// Our own comma-separated columns. Origin: as written.
    Csv,
}

impl Format {
    /// All of them.
    pub const ALL: [Self; 6] = [Self::Blktrace, Self::Blkparse, Self::Blkreplay, Self::Vscsi, Self::Mqsim, Self::Csv];

    /// Its name in options and messages.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Blktrace => "blktrace",
            Self::Blkparse => "blkparse",
            Self::Blkreplay => "blkreplay",
            Self::Vscsi => "vscsi",
            Self::Mqsim => "mqsim",
            Self::Csv => "csv",
        }
    }

    /// The format of that name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|format| format.name() == name)
    }

    /// How exact its times are, ns: a simulator may move an arrival by less than this without contradicting the trace.
    #[must_use]
    pub const fn resolution_ns(self) -> u64 {
        match self {
            Self::Vscsi => 1_000,
            _ => 1,
        }
    }

    /// Whether [`TraceWriter`](crate::TraceWriter) writes it.
    #[must_use]
    pub const fn is_writable(self) -> bool {
        !matches!(self, Self::Blkparse)
    }

    /// Whether it records what becomes of a request, so that [`EventReader`](crate::EventReader) reads it.
    #[must_use]
    pub const fn has_events(self) -> bool {
        matches!(self, Self::Blktrace | Self::Blkparse)
    }

    pub(crate) fn names() -> String {
        Self::ALL.map(Self::name).join(", ")
    }

    pub(crate) fn writable_names() -> String {
        let names: Vec<_> = Self::ALL.into_iter().filter(|f| f.is_writable()).map(Self::name).collect();
        names.join(", ")
    }
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
