//! The requests of a trace for replay: one item per submission, in order of time.

use std::fmt;

use iosched::{Flags, IoPriority, Op, Sector, Time};

/// One submission to the request queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TraceRequest {
    /// Time of submission since the origin of the trace's times (see
    /// [`FormatSpec::from_first`](crate::FormatSpec)). It is never earlier than the time of the
    /// preceding item.
    pub arrival: Time,
    /// The submitting process; 0 if the format has none.
    pub pid: u32,
    /// Device: `major << 20 | minor` in block traces and in FIU's traces ([`DeviceName`] prints
    /// it), otherwise a plain number. If the format has names of devices, the number stands for a
    /// name ([`TraceReader::device_names`](crate::TraceReader::device_names)). `None` if the format
    /// has no devices.
    pub device: Option<u32>,
    /// Operation. Block traces do not distinguish writing zeroes from writing.
    pub op: Op,
    /// Flags. No format has [`Flags::IDLE`].
    pub flags: Flags,
    /// First sector, in units of 512 bytes; 0 for a flush.
    pub sector: Sector,
    /// Length in sectors, at least 1; 0 for a flush.
    pub nr_sectors: u32,
    /// Time from submission to completion in the recorded system, ns, if known.
    pub latency_ns: Option<u64>,
    /// The ioprio of the process, if known. [`IoClass::None`](iosched::IoClass::None) means that
    /// the process had set no priority.
    pub ioprio: Option<IoPriority>,
}

impl TraceRequest {
    /// Returns the sector after the last one. Saturates.
    #[must_use]
    pub const fn end(&self) -> Sector {
        self.sector.saturating_add(self.nr_sectors as u64)
    }

    /// Returns whether the request is sync: a read, or a write flagged sync.
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
    /// Returns the device with a major number below 4,096 and a minor number below 1,048,576.
    /// Returns `None` for larger numbers.
    #[must_use]
    pub const fn new(major: u32, minor: u32) -> Option<Self> {
        if major < 1 << 12 && minor < 1 << 20 { Some(Self(major << 20 | minor)) } else { None }
    }

    /// Parses `major,minor`, or a plain number. Returns `None` for other texts.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        match text.split_once(',') {
            Some((major, minor)) => Self::new(major.parse().ok()?, minor.parse().ok()?),
            None => text.parse().ok().map(Self),
        }
    }
}
