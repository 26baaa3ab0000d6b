//! What replay needs of a trace: one item per submission, in time order.

use std::fmt;

use iosched::{Flags, IoPriority, Op, Sector, Time};

/// One submission to the request queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TraceRequest {
    /// When it was submitted, since the trace's origin (see [`FormatSpec::from_first`](crate::FormatSpec)). Never less
    /// than that of the item before.
    pub arrival: Time,
    /// Who submitted it; 0 where the format does not say.
    pub pid: u32,
    /// Which device of the trace: `major << 20 | minor` in block traces and FIU's ([`DeviceName`] prints it), else a
    /// plain number, which stands for a name where the format has names
    /// ([`TraceReader::device_names`](crate::TraceReader::device_names)); `None` where the format does not say.
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
    /// The ioprio that its process had, where known. [`IoClass::None`](iosched::IoClass::None): it had set none.
    pub ioprio: Option<IoPriority>,
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
    /// Of a major number below 4,096 and a minor number below 1,048,576; `None` of others.
    #[must_use]
    pub const fn new(major: u32, minor: u32) -> Option<Self> {
        if major < 1 << 12 && minor < 1 << 20 { Some(Self(major << 20 | minor)) } else { None }
    }

    /// Reads `major,minor`, or a plain number; `None` if it is neither.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        match text.split_once(',') {
            Some((major, minor)) => Self::new(major.parse().ok()?, minor.parse().ok()?),
            None => text.parse().ok().map(Self),
        }
    }
}
