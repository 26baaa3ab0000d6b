//! One row of a table of requests. A row comes from a line of a file or from columns in memory. It
//! collects the values of the columns and forms a request from them.

use iosched::{Flags, IoClass, IoPriority, MICROSECOND_NS, MILLISECOND_NS, Op, SECTOR_BYTES, Time};

use super::columns::Column;
use crate::blktrace::Category;
use crate::names::Names;
use crate::record::TraceRequest;
use crate::text::{decimal, number, number_u32, plain, sectors_of_bytes};

/// Letters of flags, except for sync, which is a separate column.
const FLAGS: [(Flags, u8); 5] =
    [(Flags::IDLE, b'I'), (Flags::PRIO, b'P'), (Flags::FUA, b'F'), (Flags::PREFLUSH, b'B'), (Flags::AHEAD, b'A')];

/// Words for operations.
const OP_WORDS: [(Op, &[&str]); 4] = [
    (Op::Read, &["read", "reads", "rd", "pread", "pread64", "preadv", "diskread"]),
    (Op::Write, &["write", "writes", "wr", "pwrite", "pwrite64", "pwritev", "diskwrite"]),
    (Op::Discard, &["discard", "trim", "unmap"]),
    (Op::Flush, &["flush", "sync", "fsync", "fdatasync", "diskflush"]),
];

/// Returns the letters of flags, except for sync.
#[must_use]
pub fn flag_letters(flags: Flags) -> String {
    FLAGS.into_iter().filter(|(flag, _)| flags.contains(*flag)).map(|(_, letter)| char::from(letter)).collect()
}

/// Returns an ioprio in the format of the column `ioprio`, with the level if the class has one.
#[must_use]
pub fn ioprio_text(ioprio: IoPriority) -> String {
    match ioprio.class() {
        IoClass::None => format!("none/{}", ioprio.level()),
        _ => ioprio.to_string(),
    }
}

/// A row of a table of requests, filled value by value.
#[derive(Clone, Debug)]
pub struct TableRow {
    request: TraceRequest,
    has_arrival: bool,
    has_pid: bool,
    process: Vec<u8>,
    offset_bytes: Option<u64>,
    length_bytes: Option<u64>,
    completion_ns: Option<u64>,
    queued_ns: u64,
}

/// Time that is added to arrivals that are computed from completions, ns. Without it, an I/O could
/// begin before time 0 of the file.
pub(crate) const BEFORE_FIRST_NS: u64 = 1 << 42;

impl Default for TableRow {
    fn default() -> Self {
        let request = plain(Time::ZERO, Op::Read, 0, 0);
        Self {
            request,
            has_arrival: false,
            has_pid: false,
            process: Vec::new(),
            offset_bytes: None,
            length_bytes: None,
            completion_ns: None,
            queued_ns: 0,
        }
    }
}

impl TableRow {
    /// Adds a value, as text without quotes. Returns `None` if the column does
    /// not accept the value.
    pub fn take(&mut self, column: Column, value: &[u8], names: &mut Names) -> Option<()> {
        let request = &mut self.request;
        match column {
            Column::Arrival(unit_ns) => {
                request.arrival = Time::from_ns(decimal(value, unit_ns)?);
                self.has_arrival = true;
            }
            Column::Completion(_) if value.is_empty() => {}
            Column::Completion(unit_ns) => self.completion_ns = Some(decimal(value, unit_ns)?),
            Column::Queued(_) if value.is_empty() => {}
            Column::Queued(unit_ns) => self.queued_ns = decimal(value, unit_ns)?,
            Column::Offset(unit) => self.offset_bytes = Some(decimal(value, unit)?),
            Column::Length(unit) => self.length_bytes = Some(decimal(value, unit)?),
            Column::Pid => {
                request.pid = number_u32(value)?;
                self.has_pid = true;
            }
            Column::Op => {
                let (op, flags) = op_of(value)?;
                request.op = op;
                request.flags |= flags;
            }
            Column::Sync => request.flags.set(Flags::SYNC, sync_of(value)?),
            Column::Sector => request.sector = number(value)?,
            Column::Sectors => request.nr_sectors = number_u32(value)?,
            Column::OffsetBytes => self.offset_bytes = Some(number(value)?),
            Column::LengthBytes => self.length_bytes = Some(number(value)?),
            Column::Flags => request.flags |= flags_of(value)?,
            Column::Process => self.process = value.to_vec(),
            Column::IoPriority if value.is_empty() => {}
            Column::IoPriority => request.ioprio = Some(std::str::from_utf8(value).ok()?.parse().ok()?),
            Column::Device if value.is_empty() => {}
            Column::Device => request.device = Some(device_of(value, names)?),
            Column::Latency(_) if value.is_empty() => {}
            Column::Latency(unit_ns) => request.latency_ns = Some(decimal(value, unit_ns)?),
            Column::Unknown => {}
        }
        Some(())
    }

    /// Returns the name of the process. The name is empty if the row has none.
    #[must_use]
    pub fn process(&self) -> &[u8] {
        &self.process
    }

    /// Returns the request. A process that has only a name gets a number for its name.
    ///
    /// # Errors
    /// If the values contradict each other. The text describes correct values.
    /// The caller handles requests of zero length.
    pub fn request(&self, names: &mut Names) -> Result<TraceRequest, &'static str> {
        const TOO_LARGE: &str = "an I/O that ends below 2^64 bytes and has fewer than 2^32 sectors";
        let mut request = self.request;
        if (self.offset_bytes, self.length_bytes) != (None, None) {
            let offset = self.offset_bytes.map_or_else(|| request.sector.checked_mul(SECTOR_BYTES), Some);
            let length = self.length_bytes.unwrap_or(u64::from(request.nr_sectors) * SECTOR_BYTES);
            let place = offset.and_then(|offset| sectors_of_bytes(offset, length));
            (request.sector, request.nr_sectors) = place.ok_or(TOO_LARGE)?;
        }
        if let Some(latency_ns) = &mut request.latency_ns {
            *latency_ns = latency_ns.saturating_add(self.queued_ns);
        }
        if self.has_arrival {
            if let (None, Some(completion_ns)) = (request.latency_ns, self.completion_ns) {
                let latency_ns = completion_ns.checked_sub(request.arrival.as_ns());
                request.latency_ns = Some(latency_ns.ok_or("a completion that is not earlier than the submission")?);
            }
        } else {
            let completion_ns = self.completion_ns.ok_or("a time")?;
            let latency_ns = request.latency_ns.ok_or(
                "a latency, because the time in this table is the time of the completion, not of the submission",
            )?;
            let arrival_ns = completion_ns.saturating_add(BEFORE_FIRST_NS).saturating_sub(latency_ns);
            request.arrival = Time::from_ns(arrival_ns);
        }
        if !request.op.has_data() && request.nr_sectors > 0 {
            return Err("a flush of length 0");
        }
        if !self.has_pid && !self.process.is_empty() {
            request.pid = names.number_process(&self.process);
        }
        Ok(request)
    }
}

impl Column {
    /// Returns a description of the values that the column accepts, for messages.
    #[must_use]
    pub fn takes(self) -> String {
        let unit = |ns: u64| match ns {
            1 => "ns",
            MICROSECOND_NS => "us",
            MILLISECOND_NS => "ms",
            _ => "s",
        };
        match self {
            Self::Arrival(unit_ns) => format!("a time, a number of {}", unit(unit_ns)),
            Self::Completion(unit_ns) => format!("the time of completion, a number of {}", unit(unit_ns)),
            Self::Offset(bytes) | Self::Length(bytes) => {
                format!("a number of {}", if bytes == 1_024 { "KiB" } else { "MiB" })
            }
            Self::Latency(unit_ns) | Self::Queued(unit_ns) => {
                format!("a number of {}, or an empty field", unit(unit_ns))
            }
            Self::Pid => "the number of a process".to_owned(),
            Self::Op => "an operation (R, W, D, Z, F; read, write, discard, flush; RA, WS)".to_owned(),
            Self::Sync => "0 or 1".to_owned(),
            Self::Sector | Self::Sectors => "a number of sectors of 512 bytes".to_owned(),
            Self::OffsetBytes | Self::LengthBytes => "a number of bytes".to_owned(),
            Self::Device => "the number or name of a device".to_owned(),
            Self::Flags => "some of the letters I, P, F, B and A".to_owned(),
            Self::Process => "a name; each quote in the name must be doubled".to_owned(),
            Self::IoPriority => "none, idle, rt/LEVEL or be/LEVEL with LEVEL 0 to 7, or an empty field".to_owned(),
            Self::Unknown => "anything".to_owned(),
        }
    }
}

/// Parses an operation: iosched's letters, words, or blkparse's letters, which may include flags.
pub(super) fn op_of(field: &[u8]) -> Option<(Op, Flags)> {
    let letters = [Op::Read, Op::Write, Op::Discard, Op::WriteZeroes, Op::Flush];
    if let Some(op) = letters.into_iter().find(|op| field.eq_ignore_ascii_case(&[op.letter() as u8])) {
        return Some((op, Flags::empty()));
    }
    let is_any = |words: &[&str]| words.iter().any(|word| field.eq_ignore_ascii_case(word.as_bytes()));
    if let Some((op, _)) = OP_WORDS.into_iter().find(|(_, words)| is_any(words)) {
        return Some((op, Flags::empty()));
    }
    Category::from_letters(field)?.to_op(true)
}

/// Returns the number of a device, or the number that stands for its name.
fn device_of(field: &[u8], names: &mut Names) -> Option<u32> {
    match number_u32(field) {
        Some(number) => Some(number),
        None if field.iter().all(|&b| b.is_ascii_digit() || b == b'-' || b == b'.') => None,
        None => names.device(field),
    }
}

fn sync_of(field: &[u8]) -> Option<bool> {
    match field {
        b"0" => Some(false),
        b"1" => Some(true),
        _ => None,
    }
}

fn flags_of(field: &[u8]) -> Option<Flags> {
    field.iter().try_fold(Flags::empty(), |flags, letter| {
        let (flag, _) = FLAGS.into_iter().find(|(_, known)| known == letter)?;
        Some(flags | flag)
    })
}
