//! Writes requests as a trace in one of the formats, and reports the losses.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::fmt;
use std::io::{BufWriter, Write};

use iosched::{Op, Time};

use crate::blktrace::writer::EventWriter;
use crate::blktrace::{Action, BlkEvent, Category, ProcessName};
use crate::error::TraceError;
use crate::formats;
use crate::names::Labels;
use crate::text::RecordFormat;
use crate::transform::next_kept;
use crate::{Chain, Format, FormatSpec, Holds, TraceReader, TraceRequest};

/// Counts of written requests, and of data that the format cannot hold.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct WriteReport {
    /// Requests written.
    pub written: u64,
    /// Requests left out, because the format does not have their operation or length.
    pub left_out: u64,
    /// Written requests whose operation was replaced by a similar one: writing zeroes became a
    /// write.
    pub ops_replaced: u64,
    /// Written requests that lost flags.
    pub flags_lost: u64,
    /// Written requests that lost their process.
    pub pids_lost: u64,
    /// Written requests that lost their device.
    pub devices_lost: u64,
    /// Written requests that lost their latency.
    pub latencies_lost: u64,
    /// Written requests that lost the ioprio of their process.
    #[serde(default)]
    pub priorities_lost: u64,
    /// Written requests that lost their time. A reader gives all of them the same time.
    pub times_lost: u64,
    /// Written requests whose time or latency was rounded down to the format's resolution.
    pub times_rounded: u64,
}

impl WriteReport {
    /// Returns each kind of loss: the number of requests, and a description.
    pub fn losses(&self) -> impl Iterator<Item = (u64, &'static str)> {
        let all = [
            (self.left_out, "left out, because the format cannot store them"),
            (self.ops_replaced, "write-zeroes requests, stored as writes"),
            (self.flags_lost, "without their flags"),
            (self.pids_lost, "without their process"),
            (self.devices_lost, "without their device"),
            (self.latencies_lost, "without their latency"),
            (self.priorities_lost, "without their priority (ioprio)"),
            (self.times_lost, "without their time"),
            (self.times_rounded, "stored with a rounded time or latency"),
        ];
        all.into_iter().filter(|(count, _)| *count > 0)
    }
}

impl fmt::Display for WriteReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} requests written", self.written)?;
        self.losses().try_for_each(|(count, what)| write!(f, "\n{count:>10} {what}"))
    }
}

/// Writes requests in one format. [`TraceWriter::finish`] writes buffered data.
pub struct TraceWriter<W: Write> {
    body: Body<W>,
    holds: Holds,
    resolution_ns: u64,
    report: WriteReport,
}

enum Body<W: Write> {
    Records(BufWriter<W>, Box<dyn RecordFormat>),
    Events(BlktraceWriter<W>),
}

impl<W: Write> TraceWriter<W> {
    /// Begins a trace in `format`. In the format blktrace, this is the file of one CPU. In the
    /// format vscsi, the trace has version 1.
    ///
    /// # Errors
    /// If the format cannot be written, or writing fails.
    pub fn new(out: W, format: Format) -> Result<Self, TraceError> {
        let FormatSpec { holds, resolution_ns, .. } = format.spec();
        let holds = holds.ok_or(TraceError::NotWritable { format })?;
        let body = match formats::writer(format) {
            None => Body::Events(BlktraceWriter::new(out)),
            Some(mut records) => {
                let mut out = BufWriter::new(out);
                records.begin(&mut out).map_err(TraceError::Write)?;
                Body::Records(out, records)
            }
        };
        Ok(Self { body, holds, resolution_ns, report: WriteReport::default() })
    }

    /// Writes one request, which must not be earlier than the preceding one. `process` is the name
    /// of its process, and `device` the name of its device, if known.
    ///
    /// # Errors
    /// If writing fails.
    pub fn write(
        &mut self,
        request: &TraceRequest,
        process: Option<ProcessName>,
        device: Option<&str>,
    ) -> Result<(), TraceError> {
        let Some(op) = self.holds.op_of(request) else {
            self.report.left_out += 1;
            return Ok(());
        };
        self.account(request, op);
        let request = TraceRequest { op, ..*request };
        match &mut self.body {
            Body::Events(events) => events.write(&request, process),
            Body::Records(out, records) => {
                records.write(out, &request, Labels { process, device }).map_err(TraceError::Write)
            }
        }
    }

    /// Ends the trace and returns the report of losses.
    ///
    /// # Errors
    /// If writing fails.
    pub fn finish(self) -> Result<WriteReport, TraceError> {
        match self.body {
            Body::Records(mut out, mut records) => {
                records.end(&mut out).and_then(|()| out.flush()).map_err(TraceError::Write)?;
            }
            Body::Events(events) => events.finish()?,
        }
        Ok(self.report)
    }

    fn account(&mut self, request: &TraceRequest, op: Op) {
        let Self { holds, report, .. } = self;
        let is_rounded = |ns: u64| !ns.is_multiple_of(self.resolution_ns);
        report.written += 1;
        report.ops_replaced += u64::from(op != request.op);
        report.flags_lost += u64::from(!holds.flags.contains(request.flags));
        report.pids_lost += u64::from(!holds.processes && request.pid != 0);
        report.devices_lost += u64::from(!holds.devices && request.device.is_some());
        report.latencies_lost += u64::from(!holds.latencies && request.latency_ns.is_some());
        report.priorities_lost += u64::from(!holds.priorities && request.ioprio.is_some());
        report.times_lost += u64::from(!holds.times && request.arrival != Time::ZERO);
        let latency_rounded = holds.latencies && request.latency_ns.is_some_and(is_rounded);
        report.times_rounded += u64::from(holds.times && (is_rounded(request.arrival.as_ns()) || latency_rounded));
    }
}

/// Writes requests as events. A request becomes a submission and, if the latency is known, a
/// completion.
struct BlktraceWriter<W: Write> {
    events: EventWriter<W>,
    completions: BinaryHeap<Reverse<Completion>>,
}

/// Maximum number of completions that are held until their time. If there are more, the earliest
/// ones are written too early, and readers sort them.
const COMPLETIONS_MAX: usize = 1 << 20;
/// The device of requests that have no device: 8,0, the first SCSI disk.
const DEVICE: u32 = 8 << 20;

/// Time, sector, category, bytes, device.
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
        if let Some(ioprio) = request.ioprio {
            self.events.set_ioprio(arrival, pid, ioprio)?;
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

/// Writes all requests of `reader` in `format` to `out`.
///
/// # Errors
/// If nothing can be read, the format cannot be written, or writing fails.
pub fn convert(reader: &mut TraceReader, out: impl Write, format: Format) -> Result<WriteReport, TraceError> {
    convert_with(reader, &Chain::default(), out, format)
}

/// Writes all requests of `reader`, transformed by `chain`, in `format` to `out`.
///
/// # Errors
/// The errors of [`convert`].
pub fn convert_with(
    reader: &mut TraceReader,
    chain: &Chain,
    out: impl Write,
    format: Format,
) -> Result<WriteReport, TraceError> {
    let mut writer = TraceWriter::new(out, format)?;
    while let Some(request) = next_kept(reader, chain) {
        let request = request?;
        let process = reader.process_names().get(&request.pid).copied();
        let device = request.device.and_then(|device| reader.device_names().get(&device));
        writer.write(&request, process, device.map(AsRef::as_ref))?;
    }
    writer.finish()
}
