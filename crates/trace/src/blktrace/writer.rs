//! Writes events as blktrace's binary records, for blkparse, btt and other readers.
//!
//! The writer takes events in order, numbers them per CPU as the kernel does, and
//! writes each process's name once. The caller, such as a simulation's observer
//! or a converter, chooses the times. The format is little-endian, version 7.

use std::collections::BTreeMap;
use std::io::{BufWriter, Write};

use iosched::{Flags, IoPriority, Op, SECOND_NS, Sector, Time};

use super::{Action, BlkEvent, Category, HEADER_BYTES, MAGIC, Payload, ProcessName, VERSION};
use crate::error::TraceError;
use crate::names::NAMES_MAX;

/// Offset of written times, because for blkparse a time of 0 means that the time is missing.
const START: Time = Time::from_ns(SECOND_NS);
/// Maximum length of a message, bytes: as in the kernel (`BLK_TN_MAX_MSG`), without the zero at its
/// end.
const MESSAGE_MAX_BYTES: usize = 127;
/// Maximum length of a record's data, bytes.
const DATA_MAX_BYTES: usize = u16::MAX as usize;

/// Writes a block trace, event by event.
///
/// ```
/// use iosched::{Flags, Op, Time};
/// use iosched_trace::{Action, BlkEvent, EventWriter, ProcessName, TraceError, TraceReader};
///
/// let (device, pid) = (8 << 20, 4711);
/// let mut file = Vec::new();
/// let mut trace = EventWriter::new(&mut file);
/// trace.name_process(Time::ZERO, pid, ProcessName::new(b"postgres"))?;
/// for (action, time_ns) in [(Action::Queue, 0), (Action::GetRequest, 5), (Action::Insert, 9), (Action::Issue, 20)] {
///     let event = BlkEvent::new(action, Time::from_ns(time_ns), device, pid);
///     trace.write(&event.with_extent(Op::Read, Flags::SYNC, 2_048, 8))?;
/// }
/// let done = BlkEvent::new(Action::Complete, Time::from_ns(8_000), device, 0);
/// trace.write(&done.with_extent(Op::Read, Flags::SYNC, 2_048, 8))?;
/// trace.finish()?;
///
/// let requests: Vec<_> = TraceReader::from_reader(std::io::Cursor::new(file), "simulated", &Default::default())?
///     .collect::<Result<_, _>>()?;
/// assert_eq!((requests[0].pid, requests[0].latency_ns), (pid, Some(8_000)));
/// # Ok::<(), TraceError>(())
/// ```
pub struct EventWriter<W: Write> {
    cpus: Vec<Cpu<W>>,
    names: BTreeMap<u32, ProcessName>,
    ioprios: BTreeMap<u32, IoPriority>,
}

/// One CPU's file.
struct Cpu<W: Write> {
    out: BufWriter<W>,
    sequence: u32,
}

impl<W: Write> EventWriter<W> {
    /// Begins a trace of one CPU. blkparse expects the file name `BASE.blktrace.0`.
    pub fn new(out: W) -> Self {
        Self::of_cpus(vec![Cpu::new(out)])
    }

    /// Begins a trace of several CPUs. The first CPU is written to the first of `outs`, and so on.
    /// blkparse expects the file names `BASE.blktrace.0`, `BASE.blktrace.1`, …
    ///
    /// # Errors
    /// [`TraceError::NoFile`] if `outs` is empty.
    pub fn per_cpu(outs: impl IntoIterator<Item = W>) -> Result<Self, TraceError> {
        let cpus: Vec<_> = outs.into_iter().map(Cpu::new).collect();
        if cpus.is_empty() {
            return Err(TraceError::NoFile);
        }
        Ok(Self::of_cpus(cpus))
    }

    fn of_cpus(cpus: Vec<Cpu<W>>) -> Self {
        Self { cpus, names: BTreeMap::new(), ioprios: BTreeMap::new() }
    }

    /// Writes one event to the file of its CPU, modulo the number of files. The event gets a new
    /// sequence number in this file; [`BlkEvent::sequence`] is ignored. Events of one CPU must come
    /// in order of time.
    ///
    /// Keeps the first 127 bytes of a message, and the first 16 bytes of a name. Does not write a
    /// name that the process already has.
    ///
    /// # Errors
    /// [`TraceError::Write`].
    pub fn write(&mut self, event: &BlkEvent) -> Result<(), TraceError> {
        if let Payload::Name(name) = event.payload
            && !self.is_news(event.pid, name)
        {
            return Ok(());
        }
        let number = event.cpu as usize % self.cpus.len();
        self.cpus[number].write(event, number as u32).map_err(TraceError::Write)
    }

    /// Writes the name of a process, if it is new. Call it before the process's first event.
    ///
    /// # Errors
    /// [`TraceError::Write`].
    pub fn name_process(&mut self, time: Time, pid: u32, name: ProcessName) -> Result<(), TraceError> {
        if self.names.get(&pid) == Some(&name) {
            return Ok(());
        }
        let payload = Payload::Name(name);
        self.write(&BlkEvent { payload, ..BlkEvent::new(Action::NoteProcess, time, 0, pid) })
    }

    /// Writes the ioprio that a process has from now on, unless the last one written for this
    /// process is the same. Call this before the process's next event.
    ///
    /// # Errors
    /// [`TraceError::Write`].
    pub fn set_ioprio(&mut self, time: Time, pid: u32, ioprio: IoPriority) -> Result<(), TraceError> {
        let has_room = self.ioprios.len() < NAMES_MAX || self.ioprios.contains_key(&pid);
        if !has_room || self.ioprios.insert(pid, ioprio) == Some(ioprio) {
            return Ok(());
        }
        self.write(&BlkEvent::new(Action::NoteMessage, time, 0, pid).with_ioprio(ioprio))
    }

    /// Writes all buffered data, and returns the outputs in the order of CPUs.
    ///
    /// # Errors
    /// [`TraceError::Write`].
    pub fn finish(self) -> Result<Vec<W>, TraceError> {
        let inner = |cpu: Cpu<W>| cpu.out.into_inner().map_err(|error| TraceError::Write(error.into_error()));
        self.cpus.into_iter().map(inner).collect()
    }

    /// Returns whether the name is new. The writer remembers at most [`NAMES_MAX`] names, and does
    /// not write names of later processes.
    fn is_news(&mut self, pid: u32, name: ProcessName) -> bool {
        if self.names.len() >= NAMES_MAX && !self.names.contains_key(&pid) {
            return false;
        }
        self.names.insert(pid, name) != Some(name)
    }
}

impl<W: Write> Cpu<W> {
    fn new(out: W) -> Self {
        Self { out: BufWriter::new(out), sequence: 0 }
    }

    fn write(&mut self, event: &BlkEvent, number: u32) -> std::io::Result<()> {
        let data = data_of(&event.payload);
        self.sequence = self.sequence.wrapping_add(1);
        let mut header = [0; HEADER_BYTES];
        header[0..4].copy_from_slice(&(MAGIC | u32::from(VERSION)).to_le_bytes());
        header[4..8].copy_from_slice(&self.sequence.to_le_bytes());
        header[8..16].copy_from_slice(&(event.time + START.as_ns()).as_ns().to_le_bytes());
        header[16..24].copy_from_slice(&event.sector.to_le_bytes());
        header[24..28].copy_from_slice(&event.bytes.to_le_bytes());
        header[28..32].copy_from_slice(&action_word(event).to_le_bytes());
        header[32..36].copy_from_slice(&event.pid.to_le_bytes());
        header[36..40].copy_from_slice(&event.device.to_le_bytes());
        header[40..44].copy_from_slice(&number.to_le_bytes());
        header[44..46].copy_from_slice(&event.error.to_le_bytes());
        header[46..48].copy_from_slice(&(data.len() as u16).to_le_bytes());
        self.out.write_all(&header)?;
        self.out.write_all(&data)
    }
}

fn action_word(event: &BlkEvent) -> u32 {
    u32::from(event.category.bits()) << 16 | u32::from(event.action.code())
}

fn data_of(payload: &Payload) -> Vec<u8> {
    match payload {
        // Records have no field for a priority.
        Payload::None | Payload::Priority(_) => Vec::new(),
        Payload::Count(number) | Payload::SplitAt(number) => number.to_be_bytes().to_vec(),
        Payload::Remap { from_device, from_sector, to_device } => {
            let mut data = Vec::with_capacity(16);
            data.extend(from_device.to_be_bytes());
            data.extend(to_device.to_be_bytes());
            data.extend(from_sector.to_be_bytes());
            data
        }
        Payload::Name(name) => name.bytes().to_vec(),
        Payload::WallClock { seconds, nanoseconds } => [seconds.to_le_bytes(), nanoseconds.to_le_bytes()].concat(),
        Payload::Message(text) => text.as_bytes()[..cut(text)].to_vec(),
        Payload::Bytes(bytes) => bytes[..bytes.len().min(DATA_MAX_BYTES)].to_vec(),
    }
}

/// Returns the length to which a message is cut. The cut is not inside a character.
fn cut(text: &str) -> usize {
    (0..=MESSAGE_MAX_BYTES.min(text.len())).rev().find(|&at| text.is_char_boundary(at)).unwrap_or(0)
}

impl BlkEvent {
    /// Creates an event without sectors (a plug, a note). [`BlkEvent::with_extent`] adds the
    /// sectors of other events.
    ///
    /// `time` is since the trace's start; `device` is `major << 20 | minor`. `pid` is the running
    /// process. For events at submission, this is the submitter. For an idle CPU, it is 0.
    #[must_use]
    pub fn new(action: Action, time: Time, device: u32, pid: u32) -> Self {
        Self {
            time,
            sector: 0,
            bytes: 0,
            action,
            category: action.stage() | action.direction_without_extent(),
            pid,
            device,
            cpu: 0,
            sequence: 0,
            error: 0,
            payload: Payload::None,
        }
    }

    /// Sets the operation and the sectors. [`Action::Queue`], [`Action::BackMerge`],
    /// [`Action::FrontMerge`], [`Action::Split`] and [`Action::Remap`] have the sectors of the bio.
    /// [`Action::GetRequest`] has the sectors of the bio for which the request is allocated.
    /// [`Action::Insert`], [`Action::Requeue`], [`Action::Issue`] and [`Action::Complete`] have the
    /// sectors of the whole request. A flush has sector 0 and no length. A record holds at most
    /// 8,388,607 sectors; a larger length is reduced to this number.
    #[must_use]
    pub fn with_extent(self, op: Op, flags: Flags, sector: Sector, nr_sectors: u32) -> Self {
        let category = Category::of(op, flags) | self.action.stage();
        Self { category, sector, bytes: nr_sectors.min(super::SECTORS_MAX) << 9, ..self }
    }

    /// Sets the number of requests that left the plug. Use it with
    /// [`Action::Unplug`] and [`Action::UnplugTimer`].
    #[must_use]
    pub fn with_count(self, requests: u64) -> Self {
        Self { payload: Payload::Count(requests), ..self }
    }

    /// Sets the first sector of the second part. Use it with [`Action::Split`].
    #[must_use]
    pub fn with_split(self, at: Sector) -> Self {
        Self { payload: Payload::SplitAt(at), ..self }
    }

    /// Sets the device and sector from which the bio came. Use it with [`Action::Remap`].
    #[must_use]
    pub fn with_remap(self, from_device: u32, from_sector: Sector) -> Self {
        let payload = Payload::Remap { from_device, from_sector, to_device: self.device };
        Self { payload, ..self }
    }

    /// Sets the text of a message. Use it with [`Action::NoteMessage`].
    #[must_use]
    pub fn with_message(self, text: &str) -> Self {
        Self { payload: Payload::Message(text.into()), ..self }
    }

    /// Sets the error: 0, or a negative error number as in the kernel. Use it with
    /// [`Action::Complete`].
    #[must_use]
    pub const fn with_error(mut self, error: i16) -> Self {
        self.error = error;
        self
    }

    /// Sets the CPU, from 0.
    #[must_use]
    pub const fn on_cpu(mut self, cpu: u32) -> Self {
        self.cpu = cpu;
        self
    }
}
