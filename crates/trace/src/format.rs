//! The formats of traces, each declared once: names, recognition, contents. Options, messages, the
//! losses that [`TraceWriter`](crate::TraceWriter) reports, and `docs/traces.md` are generated from
//! these declarations.

use std::fmt;

use iosched::{Flags, MICROSECOND_NS, Op, SECOND_NS, SECTOR_BYTES, Sector};

use crate::record::{DeviceName, TraceRequest};

/// Format of a trace that iosched can read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum Format {
    /// blktrace's binary records, one file per CPU.
    Blktrace,
    /// blkparse's default text.
    Blkparse,
    /// The kernel's block tracepoints as text.
    Tracepoints,
    /// fio's I/O log, version 2.
    #[serde(rename = "fio-v2")]
    FioV2,
    /// fio's I/O log, version 3.
    #[serde(rename = "fio-v3")]
    FioV3,
    /// The columns of the traces of Microsoft Research Cambridge.
    Msr,
    /// The Storage Performance Council's trace format.
    Spc,
    /// The text of the traces of Florida International University.
    Fiu,
    /// The columns of Alibaba's block traces.
    Alibaba,
    /// The columns of the traces of Tencent's cloud block storage.
    Tencent,
    /// blkreplay's text.
    Blkreplay,
    /// vscsiStats' binary records, versions 1 and 2.
    Vscsi,
    /// MQSim's text.
    Mqsim,
    /// iosched's own comma-separated columns.
    Csv,
}

/// Properties of a format: its names, extensions and contents.
#[derive(Clone, Copy, Debug)]
pub struct FormatSpec {
    /// Name in options and messages.
    pub name: &'static str,
    /// Description, with the programs that write it.
    pub about: &'static str,
    /// Extensions of file names, the preferred one first. [`Format::of_file_name`] uses them.
    pub extensions: &'static [&'static str],
    /// Description of how iosched recognises files of the format.
    pub recognised: &'static str,
    /// Layout of a record, with units.
    pub record: &'static str,
    /// A file of one record: a read of 8 sectors from sector 4,530,168 on. For binary formats
    /// ([`Format::is_binary`]), the bytes of the file in hexadecimal.
    pub example: &'static str,
    /// Further data that the reader uses.
    pub read: &'static str,
    /// Whether the reader subtracts the time of the first record from all times. Otherwise the
    /// reader returns the times as written.
    pub from_first: bool,
    /// Resolution of the format's times, ns. A simulator may move an arrival by less than this
    /// without contradicting the trace.
    pub resolution_ns: u64,
    /// Data that a written file can hold, or `None` if the format cannot be written.
    pub holds: Option<Holds>,
}

/// Properties of requests that a written file holds. Other properties are lost, and counted in
/// [`WriteReport`](crate::WriteReport).
#[derive(Clone, Copy, Debug)]
pub struct Holds {
    /// Operations that the format has. If [`Op::WriteZeroes`] is missing, the writer writes it as a
    /// write. The writer leaves out requests of other missing operations.
    pub ops: &'static [Op],
    /// Flags that the format has.
    pub flags: Flags,
    /// Whether it holds times.
    pub times: bool,
    /// Whether it holds processes and their names.
    pub processes: bool,
    /// Whether it holds devices.
    pub devices: bool,
    /// Whether it holds latencies.
    pub latencies: bool,
    /// Whether it holds priorities of processes ([`TraceRequest::ioprio`]).
    pub priorities: bool,
    /// Maximum length of a request, sectors. The writer leaves out longer requests.
    pub sectors_max: u32,
    /// Last sector at which a request may end. The writer leaves out requests that end later.
    pub end_max: Sector,
}

const READ_WRITE: &[Op] = &[Op::Read, Op::Write];

/// Reads and writes with their time and position.
const PLAIN: Holds = Holds {
    ops: READ_WRITE,
    flags: Flags::empty(),
    times: true,
    processes: false,
    devices: false,
    latencies: false,
    priorities: false,
    sectors_max: u32::MAX,
    end_max: Sector::MAX,
};

/// [`PLAIN`], with 64-bit positions in bytes.
const PLAIN_BYTES: Holds = Holds { end_max: u64::MAX / SECTOR_BYTES, ..PLAIN };

const FIO: Holds = Holds { ops: &[Op::Read, Op::Write, Op::Discard, Op::Flush], devices: true, ..PLAIN_BYTES };

/// Longest request in formats with 32-bit lengths in bytes, sectors.
const SECTORS_MAX_32_BITS: u32 = crate::blktrace::SECTORS_MAX;

impl Format {
    /// All formats of traces, in the order of the documentation.
    pub const ALL: [Self; 14] = [
        Self::Blktrace,
        Self::Blkparse,
        Self::Tracepoints,
        Self::FioV2,
        Self::FioV3,
        Self::Msr,
        Self::Spc,
        Self::Fiu,
        Self::Alibaba,
        Self::Tencent,
        Self::Blkreplay,
        Self::Vscsi,
        Self::Mqsim,
        Self::Csv,
    ];

    /// Returns the properties of the format.
    #[must_use]
    pub const fn spec(self) -> FormatSpec {
        match self {
            Self::Blktrace => BLKTRACE,
            Self::Blkparse => BLKPARSE,
            Self::Tracepoints => TRACEPOINTS,
            Self::FioV2 => FIO_V2,
            Self::FioV3 => FIO_V3,
            Self::Msr => MSR,
            Self::Spc => SPC,
            Self::Fiu => FIU,
            Self::Alibaba => ALIBABA,
            Self::Tencent => TENCENT,
            Self::Blkreplay => BLKREPLAY,
            Self::Vscsi => VSCSI,
            Self::Mqsim => MQSIM,
            Self::Csv => CSV,
        }
    }

    /// Returns the name in options and messages.
    #[must_use]
    pub const fn name(self) -> &'static str {
        self.spec().name
    }

    /// Returns the format with this name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|format| format.name() == name)
    }

    /// Returns the format of a file with this name, by the extension before `.gz` or `.zst`. The
    /// extension `.blktrace.N` also means blktrace.
    #[must_use]
    pub fn of_file_name(name: &str) -> Option<Self> {
        if crate::open::split_cpu(name).is_some_and(|(base, _)| base.ends_with(".blktrace")) {
            return Some(Self::Blktrace);
        }
        let (_, extension) = crate::open::strip_compression(name).rsplit_once('.')?;
        Self::ALL.into_iter().find(|format| format.spec().extensions.contains(&extension))
    }

    /// Returns the resolution of the format's times, ns. A simulator may move an arrival by less
    /// than this without contradicting the trace.
    #[must_use]
    pub const fn resolution_ns(self) -> u64 {
        self.spec().resolution_ns
    }

    /// Returns whether the order of the lines is the order of submission, even if the times of the
    /// lines are not in order. fio replays its logs in the order of the lines.
    #[must_use]
    pub(crate) const fn keeps_order(self) -> bool {
        matches!(self, Self::FioV2 | Self::FioV3)
    }

    /// Returns whether [`TraceWriter`](crate::TraceWriter) can write the format.
    #[must_use]
    pub const fn is_writable(self) -> bool {
        self.spec().holds.is_some()
    }

    /// Returns whether the format records the later events of requests. If it does,
    /// [`EventReader`](crate::EventReader) can read it.
    #[must_use]
    pub const fn has_events(self) -> bool {
        matches!(self, Self::Blktrace | Self::Blkparse | Self::Tracepoints)
    }

    /// Returns [`TraceRequest::device`] as text: `major,minor` if the format has
    /// device numbers, otherwise a plain number.
    #[must_use]
    pub fn device_text(self, device: u32) -> String {
        match self {
            Self::Blktrace | Self::Blkparse | Self::Tracepoints | Self::Fiu => DeviceName(device).to_string(),
            _ => device.to_string(),
        }
    }

    /// Returns whether files of the format are binary.
    #[must_use]
    pub const fn is_binary(self) -> bool {
        matches!(self, Self::Blktrace | Self::Vscsi)
    }

    /// Returns whether the times are bare numbers in a unit that only a convention defines.
    #[must_use]
    pub const fn has_bare_times(self) -> bool {
        matches!(self, Self::FioV2 | Self::FioV3 | Self::Fiu | Self::Alibaba | Self::Tencent | Self::Mqsim)
    }

    /// Returns whether the times of the published traces in this format count from 1970.
    #[must_use]
    pub(crate) const fn has_unix_times(self) -> bool {
        matches!(self, Self::Alibaba | Self::Tencent)
    }

    /// Returns the names of the formats with bare times, for messages.
    pub(crate) fn bare_time_names() -> String {
        let names: Vec<_> = Self::ALL.into_iter().filter(|f| f.has_bare_times()).map(Self::name).collect();
        names.join(", ")
    }

    /// Returns the names of all formats, for messages.
    #[must_use]
    pub fn names() -> String {
        Self::ALL.map(Self::name).join(", ")
    }

    /// Returns the names of formats that can be written, for messages.
    #[must_use]
    pub fn writable_names() -> String {
        let names: Vec<_> = Self::ALL.into_iter().filter(|f| f.is_writable()).map(Self::name).collect();
        names.join(", ")
    }
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl Holds {
    /// Returns the operation with which a request is written, or `None` if the request is left out.
    pub(crate) fn op_of(&self, request: &TraceRequest) -> Option<Op> {
        if request.nr_sectors > self.sectors_max || request.end() > self.end_max {
            return None;
        }
        match request.op {
            op if self.ops.contains(&op) => Some(op),
            Op::WriteZeroes => Some(Op::Write),
            _ => None,
        }
    }
}

const BLKTRACE: FormatSpec = FormatSpec {
    name: "blktrace",
    about: "binary traces of Linux's blktrace, version 7: the events of each request, in one file per CPU",
    extensions: &["blktrace"],
    recognised: "the magic number 0x65617400 in either byte order, or a name that ends in .blktrace.N",
    record: "48 bytes, and then data. Times are in ns, positions in sectors of 512 bytes, lengths in bytes",
    example: "07746165 01000000 48b29c3b 00000000 f81f4500 00000000 00100000 01001100 67120000 00008000 00000000 \
           00000000",
    read: "submissions (Q), the latencies until completion (C), and names of processes. Recordings by \
        `iosched record` also have \
        priorities",
    from_first: true,
    resolution_ns: 1,
    holds: Some(Holds {
        ops: &[Op::Read, Op::Write, Op::Discard, Op::Flush],
        flags: Flags::IDLE.complement(),
        times: true,
        processes: true,
        devices: true,
        latencies: true,
        priorities: true,
        sectors_max: SECTORS_MAX_32_BITS,
        end_max: Sector::MAX,
    }),
};

const BLKPARSE: FormatSpec = FormatSpec {
    name: "blkparse",
    about: "the text that blkparse prints by default",
    extensions: &["blkparse"],
    recognised: "lines as in the column *a record*",
    record: "`major,minor cpu sequence seconds.ns pid action RWBS sector + sectors [process]`",
    example: "8,0 3 1 0.009507758 697 Q RS 4530168 + 8 [postgres]",
    read: "the fields of blktrace's events that blkparse prints",
    from_first: false,
    resolution_ns: 1,
    holds: None,
};

const TRACEPOINTS: FormatSpec = FormatSpec {
    name: "tracepoints",
    about: "events of the kernel's block tracepoints as text, from `perf script`, `trace-cmd report`, or the files \
            `trace` and `trace_pipe` of tracefs",
    extensions: &[],
    recognised: "lines as in the column *a record*. At least one line has a block event",
    record: "`process pid [cpu] seconds: event: major,minor RWBS bytes () sector + sectors priority [process]` in \
        perf. In trace-cmd and tracefs, a line begins with `process-pid [cpu] flags seconds:`. The priority exists \
        since Linux 6.12",
    example: "postgres-697 [003] ..... 14737.828653: block_rq_issue: 8,0 R 4096 () 4530168 + 8 be,0,4 [postgres]",
    read: "the same events of requests and bios as in blktrace, and the priorities of requests. iosched ignores \
        other events",
    from_first: true,
    resolution_ns: MICROSECOND_NS,
    holds: None,
};

const FIO_V2: FormatSpec = FormatSpec {
    name: "fio-v2",
    about: "fio's I/O log, version 2. `read_iolog` reads this version. Before fio 3.31, `write_iolog` wrote this \
            version",
    extensions: &[],
    recognised: "its first line, `fio version 2 iolog`",
    record: "`file action [offset length]`: offset and length in bytes. `wait` is in µs",
    example: "fio version 2 iolog\n/dev/sda read 2319446016 4096",
    read: "the reads, writes and trims of each file. sync and datasync become flushes. The time of an I/O is the sum \
           of all `wait` lines before the I/O. Before the first `wait`, the time is 0. iosched ignores \
           sync_file_range, because this call does not reach the device",
    from_first: false,
    resolution_ns: MICROSECOND_NS,
    // According to fio's manual, `wait` is a time in µs after the previous wait. fio 3.33 reads it
    // as a time in ms after the start of fio. Therefore iosched never writes `wait`.
    holds: Some(Holds { times: false, ..FIO }),
};

const FIO_V3: FormatSpec = FormatSpec {
    name: "fio-v3",
    about: "fio's I/O log, version 3. Since fio 3.31, `read_iolog` reads this version, and `write_iolog` writes this \
            version",
    extensions: &["iolog"],
    recognised: "its first line, `fio version 3 iolog`",
    record: "`time file action [offset length]`: time in µs (as in fio 3.33), offset and length in bytes",
    example: "fio version 3 iolog\n125 /dev/sda read 2319446016 4096",
    read: "the reads, writes and trims of each file. sync and datasync become flushes. iosched ignores sync_file_range",
    from_first: false,
    resolution_ns: MICROSECOND_NS,
    holds: Some(FIO),
};

const MSR: FormatSpec = FormatSpec {
    name: "msr",
    about: "traces of Microsoft Research Cambridge (published at SNIA IOTTA)",
    extensions: &["msr"],
    recognised: "lines of seven columns. The fourth column is Read or Write",
    record: "`timestamp,host,disk,type,offset,size,response`: the timestamp is a Windows file time. Timestamp and \
        response are in units of 100 ns, offset and size in bytes",
    example: "128166372003061629,hm,1,Read,2319446016,4096,413",
    read: "all columns. Each disk of a host is a volume (`host.disk`). The response time may be empty or missing",
    from_first: true,
    resolution_ns: 100,
    holds: Some(Holds { devices: true, latencies: true, ..PLAIN_BYTES }),
};

const SPC: FormatSpec = FormatSpec {
    name: "spc",
    about: "the format of the Storage Performance Council, used for the traces Financial and WebSearch of UMass",
    extensions: &["spc"],
    recognised: "lines `number,number,number,R or W,seconds`",
    record: "`ASU,LBA,size,opcode,timestamp`: LBA in sectors of 512 bytes, size in bytes, time in seconds",
    example: "0,4530168,4096,R,0.551706",
    read: "these five columns. iosched ignores further columns. A device is an application storage unit (ASU)",
    from_first: false,
    resolution_ns: MICROSECOND_NS,
    holds: Some(Holds { devices: true, ..PLAIN }),
};

const FIU: FormatSpec = FormatSpec {
    name: "fiu",
    about: "traces of Florida International University (published at SNIA IOTTA)",
    extensions: &["fiu"],
    recognised: "lines of eight or nine columns, separated by spaces. The sixth column is R or W",
    record: "`ns pid process LBA sectors R|W major minor [md5]`; a sector has 512 bytes",
    example: "89966104463 697 postgres 4530168 8 R 8 0 bd5f7c",
    read: "all columns except the hash. The process name ? means that the name is unknown",
    from_first: true,
    resolution_ns: 1,
    holds: Some(Holds { processes: true, devices: true, ..PLAIN }),
};

const ALIBABA: FormatSpec = FormatSpec {
    name: "alibaba",
    about: "block traces of Alibaba (block-traces, 2020)",
    extensions: &["alibaba"],
    recognised: "lines `number,R or W,number,number,number`",
    record: "`device,opcode,offset,length,timestamp`: offset and length in bytes, time in µs",
    example: "419,R,2319446016,4096,1577808000000046",
    read: "all columns",
    from_first: true,
    resolution_ns: MICROSECOND_NS,
    holds: Some(Holds { devices: true, ..PLAIN_BYTES }),
};

const TENCENT: FormatSpec = FormatSpec {
    name: "tencent",
    about: "traces of Tencent's cloud block storage (published at SNIA IOTTA)",
    extensions: &["tencent"],
    recognised: "lines of five numbers, separated by commas. The fourth number is 0 or 1",
    record: "`timestamp,offset,size,type,volume`: time in seconds, offset and size in sectors of 512 bytes. Type 0 is \
        a read, type 1 a write",
    example: "1538323200,4530168,8,0,1063",
    read: "all columns. Times are whole seconds",
    from_first: true,
    resolution_ns: SECOND_NS,
    holds: Some(Holds { devices: true, ..PLAIN }),
};

const BLKREPLAY: FormatSpec = FormatSpec {
    name: "blkreplay",
    about: "load files of the program blkreplay",
    extensions: &["load", "blkreplay"],
    recognised: "the heading `start ; sector; …`, or lines as in the column *a record*",
    record: "`seconds ; sector ; sectors ; op ; …`; a sector has 512 bytes",
    example: "0.000125 ; 4530168 ; 8 ; R",
    read: "the first four columns. op can also be the letters of blkparse",
    from_first: false,
    resolution_ns: 1,
    holds: Some(Holds { flags: Flags::AHEAD, ..PLAIN }),
};

const VSCSI: FormatSpec = FormatSpec {
    name: "vscsi",
    about: "VMware's vscsiStats, versions 1 and 2: SCSI commands of one virtual disk",
    extensions: &["vscsi"],
    recognised: "the version in the first two records",
    record: "32 or 40 bytes: positions in blocks of 512 bytes, lengths in bytes, times in µs",
    example: "01000000 00100000 01000000 28000001 f81f4500 00000000 404b4c00 00000000",
    read: "the commands read, write, unmap, write same and synchronize cache; in version 2 also response times",
    from_first: true,
    resolution_ns: MICROSECOND_NS,
    // iosched writes version 1, because version 2 cannot express an unknown response time.
    holds: Some(Holds {
        ops: &[Op::Read, Op::Write, Op::Discard, Op::WriteZeroes, Op::Flush],
        sectors_max: SECTORS_MAX_32_BITS,
        ..PLAIN
    }),
};

const MQSIM: FormatSpec = FormatSpec {
    name: "mqsim",
    about: "input files of the simulator MQSim",
    extensions: &["mqsim"],
    recognised: "lines of five numbers, separated by spaces. The last number is 0 or 1",
    record: "`arrival_ns device sector sectors type`: a sector has 512 bytes. Type 0 is a write, type 1 a read",
    example: "125000 0 4530168 8 1",
    read: "all columns",
    from_first: true,
    resolution_ns: 1,
    holds: Some(Holds { devices: true, ..PLAIN }),
};

const CSV: FormatSpec = FormatSpec {
    name: "csv",
    about: "a text table with iosched's own columns",
    extensions: &["csv"],
    recognised: "a heading that names at least a time, the operation, a position and a length",
    record: "`arrival_ns,pid,op,sync,sector,nr_sectors,device,latency_ns,flags,process,ioprio`, in any order",
    example: "arrival_ns,pid,op,sync,sector,nr_sectors,device,latency_ns\n125000,697,R,1,4530168,8,0,89000",
    read: "all columns. pid, sync and the columns after nr_sectors can be missing. iosched ignores other columns",
    from_first: false,
    resolution_ns: 1,
    holds: Some(Holds {
        ops: &[Op::Read, Op::Write, Op::Discard, Op::WriteZeroes, Op::Flush],
        flags: Flags::all(),
        times: true,
        processes: true,
        devices: true,
        latencies: true,
        priorities: true,
        sectors_max: u32::MAX,
        end_max: Sector::MAX,
    }),
};
