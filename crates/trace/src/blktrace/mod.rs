//! Block trace events: the events of requests on their way through the request queue.
//!
//! [`binary`] reads the records of one CPU, [`merge`] puts several CPUs' records into one order.
//! [`arrivals`] decides which events are requests, and [`convert`] converts them into requests.
//! [`follow`] finds events without their counterparts, [`writer`] writes events, and [`pass`]
//! converts them from one trace to another. [`ioprio`] writes and reads the priorities of
//! processes. The text of blkparse and of the kernel's tracepoints gives the same events. The
//! record layout is that of `include/uapi/linux/blktrace_api.h` of Linux, format version 7.

pub(crate) mod arrivals;
pub(crate) mod binary;
pub(crate) mod convert;
pub(crate) mod follow;
mod ioprio;
pub(crate) mod merge;
pub(crate) mod pass;
pub(crate) mod writer;

use iosched::{Flags, IoPriority, Op, Sector, Time};

/// Upper 24 bits of a record's first word.
pub(crate) const MAGIC: u32 = 0x6561_7400;
/// Lower 8 bits of a record's first word: the only version in use since 2006.
pub(crate) const VERSION: u8 = 7;
/// Bytes of a record before its data.
pub(crate) const HEADER_BYTES: usize = 48;
/// Maximum number of sectors of an event, because lengths are 32-bit numbers of bytes.
pub(crate) const SECTORS_MAX: u32 = (1 << 23) - 1;
/// Flag of an action whose data begins with a cgroup's id of 8 bytes.
pub(crate) const ACTION_CGROUP: u32 = 1 << 8;

/// Kind of an event of blktrace, such as Q or C.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Action {
    /// `Q`: a process submitted a bio.
    Queue,
    /// `M`: a bio was merged to the end of a request.
    BackMerge,
    /// `F`: a bio was merged to the front of a request.
    FrontMerge,
    /// `G`: a request was allocated.
    GetRequest,
    /// `S`: no request was free, so the submitter sleeps.
    SleepRequest,
    /// `R`: a request went back to the queue.
    Requeue,
    /// `D`: a request was issued to the driver.
    Issue,
    /// `C`: a request, or a part of it, was completed.
    Complete,
    /// `P`: a process began to collect requests in a plug.
    Plug,
    /// `U`: a plug released its requests.
    Unplug,
    /// `UT`: a timer or the scheduler made a plug release its requests.
    UnplugTimer,
    /// `I`: a request was inserted into the scheduler.
    Insert,
    /// `X`: a bio was split.
    Split,
    /// `B`: the data of a bio was copied to memory that the device can reach (a bounce buffer).
    Bounce,
    /// `A`: a bio was remapped to another device, or to the device of its partition.
    Remap,
    /// A request was aborted.
    Abort,
    /// Data from a driver.
    DriverData,
    /// A process's name ([`Payload::Name`]).
    NoteProcess,
    /// The wall clock at the trace's start ([`Payload::WallClock`]).
    NoteTimestamp,
    /// `m`: a message from the scheduler or from user space ([`Payload::Message`]).
    NoteMessage,
    /// An unknown event, with the low 8 bits of its code.
    Other(u8),
}

impl Action {
    pub(crate) const fn from_code(code: u8, notify: bool) -> Self {
        if notify {
            return match code {
                0 => Self::NoteProcess,
                1 => Self::NoteTimestamp,
                2 => Self::NoteMessage,
                code => Self::Other(code),
            };
        }
        match code {
            1 => Self::Queue,
            2 => Self::BackMerge,
            3 => Self::FrontMerge,
            4 => Self::GetRequest,
            5 => Self::SleepRequest,
            6 => Self::Requeue,
            7 => Self::Issue,
            8 => Self::Complete,
            9 => Self::Plug,
            10 => Self::Unplug,
            11 => Self::UnplugTimer,
            12 => Self::Insert,
            13 => Self::Split,
            14 => Self::Bounce,
            15 => Self::Remap,
            16 => Self::Abort,
            17 => Self::DriverData,
            code => Self::Other(code),
        }
    }

    /// Returns the code of the action: the inverse of [`Action::from_code`].
    pub(crate) const fn code(self) -> u8 {
        match self {
            Self::NoteProcess => 0,
            Self::NoteTimestamp | Self::Queue => 1,
            Self::NoteMessage | Self::BackMerge => 2,
            Self::FrontMerge => 3,
            Self::GetRequest => 4,
            Self::SleepRequest => 5,
            Self::Requeue => 6,
            Self::Issue => 7,
            Self::Complete => 8,
            Self::Plug => 9,
            Self::Unplug => 10,
            Self::UnplugTimer => 11,
            Self::Insert => 12,
            Self::Split => 13,
            Self::Bounce => 14,
            Self::Remap => 15,
            Self::Abort => 16,
            Self::DriverData => 17,
            Self::Other(code) => code,
        }
    }

    /// Returns the category bit of the stage at which the event happens.
    pub(crate) fn stage(self) -> Category {
        match self {
            Self::NoteProcess | Self::NoteTimestamp | Self::NoteMessage => Category::NOTIFY,
            Self::Requeue => Category::REQUEUE | Category::FS,
            Self::Issue => Category::ISSUE | Category::FS,
            Self::Complete => Category::COMPLETE | Category::FS,
            Self::Insert => Category::QUEUE | Category::FS,
            Self::DriverData => Category::DRIVER,
            Self::Split | Self::Bounce | Self::Other(_) => Category::empty(),
            _ => Category::QUEUE,
        }
    }

    /// Returns the direction of events without sectors. The kernel writes some of them as reads.
    fn direction_without_extent(self) -> Category {
        match self {
            Self::Plug | Self::Unplug | Self::UnplugTimer => Category::READ,
            _ => Category::empty(),
        }
    }

    /// Returns the letters that blkparse prints for the action, or `?` if it prints none.
    #[must_use]
    pub const fn letters(self) -> &'static str {
        match self {
            Self::Queue => "Q",
            Self::BackMerge => "M",
            Self::FrontMerge => "F",
            Self::GetRequest => "G",
            Self::SleepRequest => "S",
            Self::Requeue => "R",
            Self::Issue => "D",
            Self::Complete => "C",
            Self::Plug => "P",
            Self::Unplug => "U",
            Self::UnplugTimer => "UT",
            Self::Insert => "I",
            Self::Split => "X",
            Self::Bounce => "B",
            Self::Remap => "A",
            Self::NoteMessage => "m",
            Self::Abort | Self::DriverData | Self::NoteProcess | Self::NoteTimestamp | Self::Other(_) => "?",
        }
    }

    pub(crate) fn from_letters(letters: &[u8]) -> Option<Self> {
        Some(match letters {
            b"Q" => Self::Queue,
            b"M" => Self::BackMerge,
            b"F" => Self::FrontMerge,
            b"G" => Self::GetRequest,
            b"S" => Self::SleepRequest,
            b"R" => Self::Requeue,
            b"D" => Self::Issue,
            b"C" => Self::Complete,
            b"P" => Self::Plug,
            b"U" => Self::Unplug,
            b"UT" => Self::UnplugTimer,
            b"I" => Self::Insert,
            b"X" => Self::Split,
            b"B" => Self::Bounce,
            b"A" => Self::Remap,
            b"m" => Self::NoteMessage,
            _ => return None,
        })
    }
}

bitflags::bitflags! {
    /// The upper half of a record's action: direction, hints and origin.
    #[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
    pub struct Category: u16 {
        /// Read.
        const READ = 1;
        /// Write.
        const WRITE = 2;
        /// Preceded by a cache flush. Without data, the flush itself.
        const FLUSH = 4;
        /// Sync.
        const SYNC = 8;
        /// Queueing and merging.
        const QUEUE = 0x10;
        /// Requeueing.
        const REQUEUE = 0x20;
        /// Issue.
        const ISSUE = 0x40;
        /// Completion.
        const COMPLETE = 0x80;
        /// From a file system.
        const FS = 0x100;
        /// A passed-through (SCSI) command.
        const PC = 0x200;
        /// A note instead of an event.
        const NOTIFY = 0x400;
        /// Readahead.
        const AHEAD = 0x800;
        /// Metadata.
        const META = 0x1000;
        /// Discard.
        const DISCARD = 0x2000;
        /// From a driver.
        const DRIVER = 0x4000;
        /// Force unit access.
        const FUA = 0x8000;
    }
}

impl Category {
    /// Parses blkparse's letters: first `F` for a flush, then `D`, `W`, `R` or `N`, then `F` (FUA),
    /// `A` (ahead), `S` (sync) and `M` (meta) in any order. Returns `None` for other letters.
    pub(crate) fn from_letters(letters: &[u8]) -> Option<Self> {
        let mut category = Self::empty();
        let mut rest = letters;
        if let [b'F', after @ ..] = rest {
            category |= Self::FLUSH;
            rest = after;
        }
        match rest {
            [b'D', b'E', after @ ..] | [b'D', after @ ..] => {
                category |= Self::DISCARD | Self::WRITE;
                rest = after;
            }
            [b'W', b'Z', after @ ..] | [b'W', after @ ..] => {
                category |= Self::WRITE;
                rest = after;
            }
            [b'R', after @ ..] => {
                category |= Self::READ;
                rest = after;
            }
            [b'N', after @ ..] => rest = after,
            _ if category.is_empty() => return None,
            _ => {}
        }
        for letter in rest {
            category |= match letter {
                b'F' => Self::FUA,
                b'A' => Self::AHEAD,
                b'S' => Self::SYNC,
                b'M' => Self::META,
                b'B' => Self::FLUSH,
                _ => return None,
            };
        }
        Some(category)
    }

    /// Returns the letters that blkparse prints for an event of this category and length.
    #[must_use]
    pub fn letters(self, bytes: u32) -> String {
        let mut letters = String::new();
        if self.contains(Self::FLUSH) {
            letters.push('F');
        }
        letters.push(if self.contains(Self::DISCARD) {
            'D'
        } else if self.contains(Self::WRITE) {
            'W'
        } else if bytes > 0 {
            'R'
        } else {
            'N'
        });
        for (flag, letter) in [(Self::FUA, 'F'), (Self::AHEAD, 'A'), (Self::SYNC, 'S'), (Self::META, 'M')] {
            if self.contains(flag) {
                letters.push(letter);
            }
        }
        letters
    }

    /// Returns the operation and the flags of a request of this category. `has_data` tells whether
    /// the request has at least one sector. Returns `None` if the request is not a read, write,
    /// discard or flush.
    pub(crate) fn to_op(self, has_data: bool) -> Option<(Op, Flags)> {
        let op = match () {
            () if !has_data => {
                return self.contains(Self::FLUSH).then_some((Op::Flush, self.flags() - Flags::PREFLUSH));
            }
            () if self.contains(Self::DISCARD) => Op::Discard,
            () if self.contains(Self::WRITE) => Op::Write,
            () => Op::Read,
        };
        Some((op, self.flags()))
    }

    fn flags(self) -> Flags {
        let mut flags = Flags::empty();
        flags.set(Flags::SYNC, self.contains(Self::SYNC));
        flags.set(Flags::PRIO, self.contains(Self::META));
        flags.set(Flags::FUA, self.contains(Self::FUA));
        flags.set(Flags::PREFLUSH, self.contains(Self::FLUSH));
        flags.set(Flags::AHEAD, self.contains(Self::AHEAD));
        flags
    }

    /// Returns the category of a request's submission.
    pub(crate) fn of(op: Op, flags: Flags) -> Self {
        let mut category = match op {
            Op::Read => Self::READ,
            Op::Write | Op::WriteZeroes => Self::WRITE,
            Op::Discard => Self::WRITE | Self::DISCARD,
            Op::Flush => Self::WRITE | Self::FLUSH,
        };
        category.set(Self::SYNC, flags.contains(Flags::SYNC));
        category.set(Self::META, flags.contains(Flags::PRIO));
        category.set(Self::FUA, flags.contains(Flags::FUA));
        category.set(Self::AHEAD, flags.contains(Flags::AHEAD));
        if flags.contains(Flags::PREFLUSH) {
            category |= Self::FLUSH;
        }
        category
    }
}

/// A process's name, at most 16 bytes, as in the kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct ProcessName([u8; 16]);

impl ProcessName {
    /// Creates a name from the first 16 bytes of `bytes`, up to a zero.
    #[must_use]
    pub fn new(bytes: &[u8]) -> Self {
        let mut name = [0; 16];
        for (to, from) in name.iter_mut().zip(bytes.iter().take_while(|&&b| b != 0)) {
            *to = *from;
        }
        Self(name)
    }

    pub(crate) fn bytes(&self) -> &[u8; 16] {
        &self.0
    }

    /// Returns the name as text. Bytes that are not UTF-8 are replaced.
    #[must_use]
    pub fn to_text(self) -> String {
        let length = self.0.iter().position(|&b| b == 0).unwrap_or(16);
        String::from_utf8_lossy(&self.0[..length]).into_owned()
    }
}

/// Data that some kinds of events carry.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Payload {
    /// Nothing.
    #[default]
    None,
    /// With [`Action::Unplug`] and [`Action::UnplugTimer`]: number of requests that left the plug.
    Count(u64),
    /// With [`Action::Split`]: first sector of the second part.
    SplitAt(Sector),
    /// With [`Action::Remap`]: origin and target.
    Remap {
        /// The device to which the bio was first sent.
        from_device: u32,
        /// The sector on that device.
        from_sector: Sector,
        /// The device to which the bio is sent now: the device of the event, or a partition of it.
        to_device: u32,
    },
    /// With [`Action::NoteProcess`]: the name of the event's process.
    Name(ProcessName),
    /// With [`Action::NoteTimestamp`]: the wall clock.
    WallClock {
        /// Seconds since 1970.
        seconds: u32,
        /// Nanoseconds of the second.
        nanoseconds: u32,
    },
    /// With [`Action::NoteMessage`]: text of the message.
    Message(Box<str>),
    /// With [`Action::Insert`] and [`Action::Issue`]: the priority of the
    /// request. Only the text of tracepoints has it.
    Priority(IoPriority),
    /// A command or a driver's data, at most 65,535 bytes.
    Bytes(Box<[u8]>),
}

/// One event of a block trace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BlkEvent {
    /// Time since the trace's first event; 0 for notes before that.
    pub time: Time,
    /// First sector, in units of 512 bytes.
    pub sector: Sector,
    /// Length in bytes; 0 for events without data.
    pub bytes: u32,
    /// Kind of the event.
    pub action: Action,
    /// Direction and hints.
    pub category: Category,
    /// The running process. For [`Action::Queue`], it is the submitter.
    pub pid: u32,
    /// `major << 20 | minor`.
    pub device: u32,
    /// The CPU of the event.
    pub cpu: u32,
    /// Number of the record on its CPU.
    pub sequence: u32,
    /// With [`Action::Complete`]: 0, or a negative error number as in the kernel.
    pub error: i16,
    /// Data of the event.
    pub payload: Payload,
}

impl BlkEvent {
    /// Returns the length in sectors, rounded up.
    #[must_use]
    pub const fn nr_sectors(&self) -> u32 {
        self.bytes.div_ceil(512)
    }

    /// Returns whether it is a note instead of an event of a request or plug.
    #[must_use]
    pub const fn is_note(&self) -> bool {
        matches!(self.action, Action::NoteProcess | Action::NoteTimestamp | Action::NoteMessage)
    }
}

/// A source of events. It reports damage as warnings.
pub(crate) trait EventSource: Send {
    fn next_event(&mut self, warnings: &mut crate::Warnings) -> Option<BlkEvent>;

    /// Returns the position of the source.
    fn place(&self) -> crate::TracePlace;

    /// Returns the time that was subtracted from all times, ns.
    fn origin_ns(&self) -> u64 {
        0
    }
}
