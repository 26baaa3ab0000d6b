//! Traces written: requests in, a file in one of the formats out, and what the format could not hold told.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::fmt;
use std::io::{BufWriter, Write};

use iosched::{Flags, MICROSECOND_NS, Op, SECOND_NS, Time};

use crate::blktrace::writer::EventWriter;
use crate::blktrace::{Action, BlkEvent, Category, ProcessName};
use crate::error::TraceError;
use crate::vscsi::{RECORD_1_BYTES, command_of_op};
use crate::{Format, TraceReader, TraceRequest, blkreplay, csv};

/// What was written, and what of it the format has no place for.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct WriteReport {
    /// Requests written.
    pub written: u64,
    /// Requests left out: the format has no such operation, or none of that length.
    pub left_out: u64,
    /// Requests written whose operation was replaced by a nearby one (writing zeroes by writing).
    pub ops_replaced: u64,
    /// Requests written that lost flags.
    pub flags_lost: u64,
    /// Requests written that lost their process.
    pub pids_lost: u64,
    /// Requests written that lost their device.
    pub devices_lost: u64,
    /// Requests written that lost their latency.
    pub latencies_lost: u64,
    /// Requests written whose time was rounded down to the format's resolution.
    pub times_rounded: u64,
}

impl fmt::Display for WriteReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} requests written", self.written)?;
        for (count, what) in [
            (self.left_out, "left out: the format cannot hold them"),
            (self.ops_replaced, "zeroing requests written as writes"),
            (self.flags_lost, "without their flags"),
            (self.pids_lost, "without their process"),
            (self.devices_lost, "without their device"),
            (self.latencies_lost, "without their latency"),
            (self.times_rounded, "with their time rounded down"),
        ] {
            if count > 0 {
                write!(f, "\n{count:>10} {what}")?;
            }
        }
        Ok(())
    }
}

/// Writes requests in one format. What it holds back is written by [`TraceWriter::finish`].
pub struct TraceWriter<W: Write> {
    body: Body<W>,
    format: Format,
    report: WriteReport,
}

enum Body<W: Write> {
    Records(BufWriter<W>),
    Events(BlktraceWriter<W>),
}

/// What a format keeps of a request.
struct Keeps {
    flags: Flags,
    pid: bool,
    device: bool,
    latency: bool,
    time_ns: u64,
}

impl Keeps {
    const fn of(format: Format) -> Self {
        let nothing = Self { flags: Flags::empty(), pid: false, device: false, latency: false, time_ns: 1 };
        match format {
            Format::Blktrace | Format::Blkparse => {
                Self { flags: Flags::IDLE.complement(), pid: true, device: true, latency: true, time_ns: 1 }
            }
            Format::Csv => Self { flags: Flags::SYNC, pid: true, ..nothing },
            Format::Blkreplay => Self { flags: Flags::AHEAD, ..nothing },
            Format::Mqsim => Self { device: true, ..nothing },
            Format::Vscsi => Self { time_ns: MICROSECOND_NS, ..nothing },
        }
    }
}

impl<W: Write> TraceWriter<W> {
    /// Begins a trace in `format`: blktrace (all in one CPU's file), blkreplay, vscsi (version 1), MQSim or CSV.
    ///
    /// # Errors
    /// When the format cannot be written, or writing fails.
    pub fn new(out: W, format: Format) -> Result<Self, TraceError> {
        if !format.is_writable() {
            return Err(TraceError::NotWritable { format });
        }
        if format == Format::Blktrace {
            let body = Body::Events(BlktraceWriter::new(out));
            return Ok(Self { body, format, report: WriteReport::default() });
        }
        let mut out = BufWriter::new(out);
        match format {
            Format::Csv => writeln!(out, "{}", csv::HEADING),
            Format::Blkreplay => writeln!(out, "{}", blkreplay::HEADING),
            _ => Ok(()),
        }
        .map_err(TraceError::Write)?;
        Ok(Self { body: Body::Records(out), format, report: WriteReport::default() })
    }

    /// Writes one request, not earlier than the one before; `name` is its process', if known.
    ///
    /// # Errors
    /// When writing fails.
    pub fn write(&mut self, request: &TraceRequest, name: Option<ProcessName>) -> Result<(), TraceError> {
        if !holds(self.format, request) {
            self.report.left_out += 1;
            return Ok(());
        }
        self.account(request);
        let out = match &mut self.body {
            Body::Events(events) => return events.write(request, name),
            Body::Records(out) => out,
        };
        let TraceRequest { arrival, pid, op, flags, sector, nr_sectors, .. } = *request;
        match self.format {
            Format::Csv => {
                let (letter, sync) = (op.letter(), u8::from(flags.contains(Flags::SYNC)));
                writeln!(out, "{},{pid},{letter},{sync},{sector},{nr_sectors}", arrival.as_ns())
            }
            Format::Blkreplay => {
                let (seconds, ns) = (arrival.as_ns() / SECOND_NS, arrival.as_ns() % SECOND_NS);
                let ahead = if flags.contains(Flags::AHEAD) { "A" } else { "" };
                let letters = format_args!("{}{ahead}", op.letter());
                writeln!(out, "{seconds:7}.{ns:09} ; {sector:12} ; {nr_sectors:4} ; {letters} ; 0.0 ; 0.0")
            }
            Format::Mqsim => {
                let kind = u8::from(op == Op::Read);
                let device = request.device.unwrap_or(0);
                writeln!(out, "{} {device} {sector} {nr_sectors} {kind}", arrival.as_ns())
            }
            Format::Vscsi => out.write_all(&vscsi_record(request, self.report.written)),
            Format::Blktrace | Format::Blkparse => Ok(()),
        }
        .map_err(TraceError::Write)
    }

    /// Ends the trace and says what was lost.
    ///
    /// # Errors
    /// When writing fails.
    pub fn finish(self) -> Result<WriteReport, TraceError> {
        match self.body {
            Body::Records(mut out) => out.flush().map_err(TraceError::Write)?,
            Body::Events(events) => events.finish()?,
        }
        Ok(self.report)
    }

    fn account(&mut self, request: &TraceRequest) {
        let keeps = Keeps::of(self.format);
        let report = &mut self.report;
        report.written += 1;
        report.ops_replaced += u64::from(request.op == Op::WriteZeroes && self.format == Format::Blktrace);
        report.flags_lost += u64::from(!keeps.flags.contains(request.flags));
        report.pids_lost += u64::from(!keeps.pid && request.pid != 0);
        report.devices_lost += u64::from(!keeps.device && request.device.is_some());
        report.latencies_lost += u64::from(!keeps.latency && request.latency_ns.is_some());
        report.times_rounded += u64::from(!request.arrival.as_ns().is_multiple_of(keeps.time_ns));
    }
}

fn holds(format: Format, request: &TraceRequest) -> bool {
    match format {
        Format::Csv => true,
        Format::Blktrace | Format::Vscsi => request.nr_sectors < 1 << 23,
        _ => matches!(request.op, Op::Read | Op::Write),
    }
}

fn vscsi_record(request: &TraceRequest, serial: u64) -> [u8; RECORD_1_BYTES] {
    let mut record = [0; RECORD_1_BYTES];
    record[0..4].copy_from_slice(&(serial as u32).to_le_bytes());
    record[4..8].copy_from_slice(&(request.nr_sectors << 9).to_le_bytes());
    record[8..12].copy_from_slice(&1u32.to_le_bytes());
    record[12..14].copy_from_slice(&command_of_op(request.op).to_le_bytes());
    record[14..16].copy_from_slice(&0x0100u16.to_le_bytes());
    record[16..24].copy_from_slice(&request.sector.to_le_bytes());
    record[24..32].copy_from_slice(&(request.arrival.as_ns() / MICROSECOND_NS).to_le_bytes());
    record
}

/// Requests as the events of their submission and, where the latency is known, of their completion.
struct BlktraceWriter<W: Write> {
    events: EventWriter<W>,
    completions: BinaryHeap<Reverse<Completion>>,
}

/// Completions held until their time has come; beyond, they are written early and readers sort them.
const COMPLETIONS_MAX: usize = 1 << 20;
/// The device of requests that name none: 8,0, the first SCSI disk.
const DEVICE: u32 = 8 << 20;

/// (time, sector, category, bytes, device).
type Completion = (Time, u64, u16, u32, u32);

impl<W: Write> BlktraceWriter<W> {
    fn new(out: W) -> Self {
        Self { events: EventWriter::new(out), completions: BinaryHeap::new() }
    }

    fn write(&mut self, request: &TraceRequest, name: Option<ProcessName>) -> Result<(), TraceError> {
        self.complete_until(request.arrival)?;
        let &TraceRequest { arrival, pid, op, flags, sector, nr_sectors, .. } = request;
        if let Some(name) = name {
            self.events.name_process(arrival, pid, name)?;
        }
        let device = request.device.unwrap_or(DEVICE);
        let queue = BlkEvent::new(Action::Queue, arrival, device, pid).with_extent(op, flags, sector, nr_sectors);
        self.events.write(&queue)?;
        if let Some(latency_ns) = request.latency_ns {
            let done = BlkEvent::new(Action::Complete, arrival + latency_ns, device, 0)
                .with_extent(op, flags, sector, nr_sectors);
            self.completions.push(Reverse((done.time, sector, done.category.bits(), done.bytes, device)));
        }
        Ok(())
    }

    fn complete_until(&mut self, until: Time) -> Result<(), TraceError> {
        while let Some(&Reverse((time, sector, category, bytes, device))) = self.completions.peek() {
            if time > until && self.completions.len() < COMPLETIONS_MAX && until != Time::MAX {
                break;
            }
            self.completions.pop();
            let category = Category::from_bits_retain(category);
            let done = BlkEvent { category, sector, bytes, ..BlkEvent::new(Action::Complete, time, device, 0) };
            self.events.write(&done)?;
        }
        Ok(())
    }

    fn finish(mut self) -> Result<(), TraceError> {
        self.complete_until(Time::MAX)?;
        self.events.finish().map(drop)
    }
}

/// Writes all that `reader` gives in `format` to `out`.
///
/// # Errors
/// When nothing can be read, the format cannot be written, or writing fails.
pub fn convert(reader: &mut TraceReader, out: impl Write, format: Format) -> Result<WriteReport, TraceError> {
    let mut writer = TraceWriter::new(out, format)?;
    while let Some(request) = reader.next() {
        let request = request?;
        let name = reader.process_names().get(&request.pid).copied();
        writer.write(&request, name)?;
    }
    writer.finish()
}
