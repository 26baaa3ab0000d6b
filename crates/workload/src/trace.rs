//! A recorded trace that many runs can replay at the same time. A long trace is stored in a
//! temporary file, and each run reads this file.

use std::collections::{BTreeMap, BTreeSet};
use std::hash::Hasher as _;
use std::io;
use std::ops::Range;
use std::path::Path;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use bytemuck::{Pod, Zeroable};
use iosched::{Flags, IoClass, IoPriority, LEVEL_DEFAULT, Op, Sector};
use iosched_numbers::SplitMix64;
use iosched_system::rows::{Cursor, Filling, Rows};
use iosched_trace::{
    COARSE_NS, Completeness, Fit, InCgroup, Ionice, Oddity, ReadOptions, Source, Survey, TIMELESS_MIN, TraceError,
    TraceReader, TraceRequest, Warnings, common_divisor, decimal_grain,
};
use twox_hash::XxHash3_64;

use crate::arrivals::Arrivals;
use crate::closed::{ByProcess, ClosedLoop};
use crate::error::WorkloadError;

/// Limit of the sectors that an entry can access: 2^48, 128 PiB.
const SECTORS_MAX: u64 = 1 << 48;
/// The latest arrival, ns: 36 years.
const TIME_MAX_NS: u64 = 1 << 60;
/// Largest number of devices that a trace distinguishes.
const DEVICES_MAX: usize = 1 << 16;
/// Value of a latency that was not recorded.
const UNKNOWN: u64 = u64::MAX;

/// A recorded submission, 32 bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub struct Entry {
    /// Submission time, ns since the first submission of the trace.
    pub arrival_ns: u64,
    /// Sector, ioprio, operation and flags, packed.
    place: u64,
    /// Length in sectors; 0 for a flush.
    pub nr_sectors: u32,
    /// Number of the process in [`Trace::processes`].
    pub process: u32,
    latency_ns: u64,
}

const OPS: [Op; 5] = [Op::Read, Op::Write, Op::Discard, Op::WriteZeroes, Op::Flush];

const fn op_code(op: Op) -> u64 {
    match op {
        Op::Read => 0,
        Op::Write => 1,
        Op::Discard => 2,
        Op::WriteZeroes => 3,
        Op::Flush => 4,
    }
}

const CLASSES: [IoClass; 4] = [IoClass::None, IoClass::RealTime, IoClass::BestEffort, IoClass::Idle];
/// Position and width of the ioprio in `place`.
const IOPRIO_SHIFT: u32 = 11;
const IOPRIO_BITS: u64 = 0b1_1111 << IOPRIO_SHIFT;

/// Returns the packed ioprio; 0 if it is not known. The idle class has no level.
const fn ioprio_code(ioprio: Option<IoPriority>) -> u64 {
    let Some(ioprio) = ioprio else { return 0 };
    let level = ioprio.level();
    let (class, level) = match ioprio.class() {
        IoClass::None => (0, level),
        IoClass::RealTime => (1, level),
        IoClass::BestEffort => (2, level),
        IoClass::Idle => (3, 0),
    };
    1 + (class << 3 | level as u64)
}

impl Entry {
    /// Returns the first sector; 0 for a flush.
    #[inline]
    #[must_use]
    pub const fn sector(&self) -> Sector {
        self.place >> 16
    }

    /// Returns the operation of the I/O.
    #[inline]
    #[must_use]
    pub const fn op(&self) -> Op {
        OPS[(self.place >> 8 & 7) as usize % OPS.len()]
    }

    /// Returns the flags of the I/O.
    #[inline]
    #[must_use]
    pub const fn flags(&self) -> Flags {
        Flags::from_bits_truncate(self.place as u8)
    }

    /// Returns the ioprio of the process at this submission, if known.
    #[inline]
    #[must_use]
    pub fn ioprio(&self) -> Option<IoPriority> {
        let code = (self.place & IOPRIO_BITS) >> IOPRIO_SHIFT;
        let (class, level) = (CLASSES[(code.checked_sub(1)? >> 3) as usize], ((code - 1) & 7) as u8);
        let level = if class == IoClass::Idle { LEVEL_DEFAULT } else { level };
        IoPriority::checked(class, level)
    }

    /// Returns the time from submission to completion in the recorded system, ns, if known.
    #[must_use]
    pub const fn latency_ns(&self) -> Option<u64> {
        if self.latency_ns == UNKNOWN { None } else { Some(self.latency_ns) }
    }

    /// Returns the submission with this ioprio.
    const fn prioritised(self, ioprio: IoPriority) -> Self {
        Self { place: self.place & !IOPRIO_BITS | ioprio_code(Some(ioprio)) << IOPRIO_SHIFT, ..self }
    }

    /// Returns the bytes of the submission, which are the same on every machine. A priority that was
    /// never set gives the same bytes as an unknown priority, because both have the same effect.
    #[inline]
    fn portable(self) -> [u8; 32] {
        let is_default = self.ioprio() == Some(IoPriority::default());
        let place = if is_default { self.place & !IOPRIO_BITS } else { self.place };
        let Self { arrival_ns, nr_sectors, process, latency_ns, .. } = self;
        bytemuck::cast(Self {
            arrival_ns: arrival_ns.to_le(),
            place: place.to_le(),
            nr_sectors: nr_sectors.to_le(),
            process: process.to_le(),
            latency_ns: latency_ns.to_le(),
        })
    }

    /// Returns the submission with the flag `SYNC`.
    #[inline]
    pub(crate) const fn waited_for(self) -> Self {
        Self { place: self.place | Flags::SYNC.bits() as u64, ..self }
    }

    /// Returns the submission with process number 0, for a trace with a single process.
    #[inline]
    pub(crate) const fn alone(self) -> Self {
        Self { process: 0, ..self }
    }

    /// Returns the submission with another position and length.
    #[must_use]
    pub(crate) const fn moved(self, sector: Sector, nr_sectors: u32) -> Self {
        Self { place: sector << 16 | self.place & 0xffff, nr_sectors, ..self }
    }
}

const _: () = assert!(size_of::<Entry>() == 32, "traces have hundreds of millions of submissions");

/// A process of a trace.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Process {
    /// Process id; 0 if the format does not record it.
    pub pid: u32,
    /// Name of the process; empty if not recorded.
    pub name: String,
    /// Number of submissions.
    pub requests: u64,
    /// Cgroup of the process; `None`: the root.
    pub cgroup: Option<String>,
    /// Ioprio of the process at its first submission that has one.
    pub ioprio: Option<IoPriority>,
}

/// Number of values that are needed to derive their resolution.
const GRAIN_MIN: u64 = 16;

/// Resolution of recorded values, derived from the values.
#[derive(Clone, Copy, Debug, Default)]
struct Grain {
    count: u64,
    first_ns: u64,
    differ: bool,
    /// Greatest common divisor of the values, ns.
    grain_ns: u64,
}

impl Grain {
    #[inline]
    fn add(&mut self, value_ns: u64) {
        if self.count == 0 {
            self.first_ns = value_ns;
        }
        self.count += 1;
        self.differ |= value_ns != self.first_ns;
        if self.grain_ns == 0 || !value_ns.is_multiple_of(self.grain_ns) {
            self.grain_ns = common_divisor(self.grain_ns, value_ns);
        }
    }

    /// Returns the resolution, ns. 1 if there are too few values, or if all are equal.
    const fn resolution_ns(self) -> u64 {
        if self.differ && self.count >= GRAIN_MIN { decimal_grain(self.grain_ns) } else { 1 }
    }
}

/// A trace: its submissions in order of time, and their processes.
#[derive(Debug, Default)]
pub struct Trace {
    name: String,
    rows: Arc<Rows<Entry>>,
    /// Rows that belong to this trace.
    range: Range<usize>,
    /// Whether this is a single process of a larger trace. Process numbers in the rows are then
    /// ignored.
    alone: bool,
    processes: Vec<Process>,
    /// Cgroups that processes were put into. They include cgroups of processes that this trace
    /// leaves out.
    cgroups: Vec<String>,
    resolution_ns: u64,
    left_out: u64,
    devices: BTreeSet<u32>,
    end_sector: Sector,
    warnings: Warnings,
    completeness: Completeness,
    oddities: Vec<Oddity>,
    latencies: Grain,
    times: Grain,
    unknown_ioprios: u64,
    by_process: OnceLock<ByProcess>,
    closed: OnceLock<ClosedLoop>,
    fits: Mutex<Vec<Fitted>>,
    /// The reason why the trace could not be fitted onto a device.
    failure: OnceLock<io::Error>,
}

/// Numbers about the submissions of a trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Contents {
    /// Number of reads.
    pub reads: u64,
    /// Hash of all submissions and of the cgroups of the processes. It is the same on every machine.
    pub hash: u64,
}

/// The submissions of a trace, in order of time.
pub struct Entries<'a> {
    rows: Cursor<'a, Entry>,
    alone: bool,
}

impl Iterator for Entries<'_> {
    type Item = Entry;

    #[inline]
    fn next(&mut self) -> Option<Entry> {
        let entry = self.rows.next()?;
        Some(if self.alone { entry.alone() } else { entry })
    }

    #[inline]
    fn size_hint(&self) -> (usize, Option<usize>) {
        self.rows.size_hint()
    }
}

impl ExactSizeIterator for Entries<'_> {}

/// Submissions while a trace is being read.
#[derive(Default)]
struct Filled {
    entries: Filling<Entry>,
    origin_ns: Option<u64>,
    last_ns: u64,
}

/// A trace fitted onto a device of another size.
#[derive(Debug)]
struct Fitted {
    capacity_sectors: Sector,
    trace: Option<Arc<Trace>>,
    fit: Fit,
}

impl Trace {
    /// Loads the trace at `path`, in any format that [`iosched_trace`] knows.
    ///
    /// # Errors
    /// The trace cannot be read, is an incomplete recording, or has no requests.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, WorkloadError> {
        Self::open_with(path, &ReadOptions::default())
    }

    /// Loads a trace with these options. Its name shows which files were read together.
    ///
    /// # Errors
    /// As [`Trace::open`].
    pub fn open_with(path: impl AsRef<Path>, options: &ReadOptions) -> Result<Self, WorkloadError> {
        let source = Source::open(path)?;
        Self::read(&source.title(), source.requests(options)?)
    }

    /// Puts processes into cgroups. The first entry that matches a process counts.
    ///
    /// # Errors
    /// An entry matches no process of the trace.
    pub fn put(&mut self, cgroups: &[InCgroup]) -> Result<(), WorkloadError> {
        for assignment in cgroups {
            self.expect_process(assignment, |process| assignment.is_of(process.pid, &process.name))?;
        }
        self.cgroups.clear();
        for assignment in cgroups {
            if !self.cgroups.contains(&assignment.cgroup) {
                self.cgroups.push(assignment.cgroup.clone());
            }
        }
        for process in &mut self.processes {
            let assignment = cgroups.iter().find(|assignment| assignment.is_of(process.pid, &process.name));
            process.cgroup = assignment.map(|found| found.cgroup.clone());
        }
        Ok(())
    }

    /// Sets the priorities of processes for the whole trace. They replace the recorded priorities.
    /// The first entry that matches a process counts.
    ///
    /// # Errors
    /// An entry matches no process of the trace, or a long trace cannot be written to its temporary
    /// file.
    pub fn prioritise(&mut self, priorities: &[Ionice]) -> Result<(), WorkloadError> {
        for priority in priorities {
            self.expect_process(priority, |process| priority.is_of(process.pid, &process.name))?;
        }
        let given = |process: &Process| priorities.iter().find(|priority| priority.is_of(process.pid, &process.name));
        for process in &mut self.processes {
            process.ioprio = given(process).map_or(process.ioprio, |priority| Some(priority.ioprio));
        }
        let given: Vec<_> =
            self.processes.iter().map(|process| given(process).map(|priority| priority.ioprio)).collect();
        let with_priority =
            |entry: Entry| given[entry.process as usize].map_or(entry, |ioprio| entry.prioritised(ioprio));
        let rows = Rows::collect(self.entries().map(with_priority));
        let rows = rows.map_err(|source| WorkloadError::Io { file: self.name.clone(), source })?;
        let processes = std::mem::take(&mut self.processes);
        *self = self.with_rows(rows.into(), 0..self.len(), processes);
        Ok(())
    }

    /// Checks that `given` matches a process of the trace.
    ///
    /// # Errors
    /// No process matches.
    fn expect_process(&self, given: &impl ToString, is_it: impl Fn(&Process) -> bool) -> Result<(), WorkloadError> {
        if self.processes.iter().any(is_it) {
            return Ok(());
        }
        Err(WorkloadError::NoSuchProcess {
            file: self.name.clone(),
            given: given.to_string(),
            known: self.known_processes(),
        })
    }

    /// Returns names of processes. Processes with the most submissions come first.
    fn known_processes(&self) -> String {
        const NAMED: usize = 8;
        let mut by_name: BTreeMap<String, u64> = BTreeMap::new();
        for process in &self.processes {
            let name = if process.name.is_empty() { process.pid.to_string() } else { process.name.clone() };
            *by_name.entry(name).or_default() += process.requests;
        }
        let mut names: Vec<(String, u64)> = by_name.into_iter().collect();
        names.sort_by_key(|&(_, requests)| std::cmp::Reverse(requests));
        let more = if names.len() > NAMED { " and others" } else { "" };
        let names: Vec<String> = names.into_iter().take(NAMED).map(|(name, _)| name).collect();
        format!("{}{more}", names.join(", "))
    }

    /// Changes the name of the trace.
    pub fn rename(&mut self, name: &str) {
        name.clone_into(&mut self.name);
    }

    /// Loads the requests of `reader`.
    ///
    /// # Errors
    /// The trace cannot be read, or has no requests.
    pub fn read(name: &str, mut reader: TraceReader) -> Result<Self, WorkloadError> {
        let mut survey = Survey::default();
        let seen = reader.by_ref().inspect(|request| request.iter().for_each(|request| survey.add(request)));
        let mut trace = Self::collect(name, 1, seen)?;
        trace.resolution_ns = survey.resolution_ns(reader.resolution_ns().max(1));
        trace.oddities = survey.oddities_of(&reader);
        trace.name_processes(|pid| reader.process_names().get(&pid).map(|name| name.to_text()));
        trace.warnings = reader.warnings().clone();
        trace.completeness = reader.completeness();
        Ok(trace)
    }

    /// Creates a trace from requests in order of time. `resolution_ns` is the resolution of their
    /// times.
    ///
    /// # Errors
    /// The iterator returns an error, or gives no requests.
    pub fn collect(
        name: &str,
        resolution_ns: u64,
        requests: impl Iterator<Item = Result<TraceRequest, TraceError>>,
    ) -> Result<Self, WorkloadError> {
        let mut trace = Self { name: name.to_owned(), resolution_ns: resolution_ns.max(1), ..Self::default() };
        let mut numbers: BTreeMap<u32, u32> = BTreeMap::new();
        let mut filling = Filled::default();
        let no_room = |source| WorkloadError::Io { file: name.to_owned(), source };
        for request in requests {
            trace.add(&request?, &mut numbers, &mut filling).map_err(no_room)?;
        }
        if filling.entries.is_empty() {
            return Err(WorkloadError::NoRequests { file: name.to_owned() });
        }
        let rows = filling.entries.finish().map_err(no_room)?;
        trace.range = 0..rows.len();
        trace.rows = rows.into();
        Ok(trace)
    }

    fn add(
        &mut self,
        request: &TraceRequest,
        numbers: &mut BTreeMap<u32, u32>,
        filled: &mut Filled,
    ) -> std::io::Result<()> {
        let &TraceRequest { arrival, pid, op, flags, sector, nr_sectors, latency_ns, device, ioprio } = request;
        let origin_ns = *filled.origin_ns.get_or_insert(arrival.as_ns());
        let arrival_ns = arrival.as_ns().saturating_sub(origin_ns);
        if Self::lacks(request, origin_ns).is_some() || filled.entries.len() >= u32::MAX as usize - 1 {
            self.left_out += 1;
            return Ok(());
        }
        if let Some(device) = device
            && self.devices.len() < DEVICES_MAX
        {
            self.devices.insert(device);
        }
        let process = *numbers.entry(pid).or_insert(self.processes.len() as u32);
        if process as usize == self.processes.len() {
            self.processes.push(Process { pid, ..Process::default() });
        }
        let counted = &mut self.processes[process as usize];
        counted.requests += 1;
        counted.ioprio = counted.ioprio.or(ioprio);
        self.unknown_ioprios += u64::from(ioprio.is_none());
        self.end_sector = self.end_sector.max(sector + u64::from(nr_sectors));
        if let Some(latency_ns) = latency_ns {
            self.latencies.add(latency_ns);
        }
        self.times.add(arrival_ns);
        // Readers give requests in order of time. A decreasing time would break every run.
        filled.last_ns = arrival_ns.max(filled.last_ns);
        filled.entries.push(Entry {
            arrival_ns: filled.last_ns,
            place: sector << 16 | ioprio_code(ioprio) << IOPRIO_SHIFT | op_code(op) << 8 | u64::from(flags.bits()),
            nr_sectors,
            process,
            latency_ns: latency_ns.unwrap_or(UNKNOWN),
        })
    }

    /// Returns the reason why a request is invalid in a trace whose first request arrived at
    /// `origin_ns`. Returns `None` if the request is valid.
    #[must_use]
    pub fn lacks(request: &TraceRequest, origin_ns: u64) -> Option<&'static str> {
        let &TraceRequest { arrival, op, sector, nr_sectors, .. } = request;
        if (nr_sectors > 0) != op.has_data() {
            return Some("a length above 0, or 0 for a flush");
        }
        if sector.saturating_add(nr_sectors.into()) >= SECTORS_MAX {
            return Some("an I/O that ends below 128 PiB");
        }
        let late = arrival.as_ns().saturating_sub(origin_ns) > TIME_MAX_NS;
        late.then_some("a time at most 36 years after the first time")
    }

    /// Sets the names of processes. `name` maps a process id to a name.
    pub fn name_processes(&mut self, name: impl Fn(u32) -> Option<String>) {
        for process in &mut self.processes {
            if let Some(name) = name(process.pid) {
                process.name = name;
            }
        }
    }

    /// Returns the names of the processes in results, in the order of the processes. If processes
    /// with the same name have different priorities, an unusual priority is part of the name: `fio`
    /// and `fio (idle)`.
    #[must_use]
    pub fn names_in_results(&self) -> Vec<String> {
        let usual = ["none".to_owned(), IoPriority::new(IoClass::BestEffort, LEVEL_DEFAULT).to_string()];
        let priority = |process: &Process| {
            let priority = process.ioprio.unwrap_or_default().to_string();
            if usual.contains(&priority) { String::new() } else { priority }
        };
        let mut known: BTreeMap<&str, BTreeSet<String>> = BTreeMap::new();
        for process in &self.processes {
            known.entry(&process.name).or_default().insert(priority(process));
        }
        let name = |process: &Process| match priority(process) {
            suffix if suffix.is_empty() || process.name.is_empty() || known[process.name.as_str()].len() == 1 => {
                process.name.clone()
            }
            suffix => format!("{} ({suffix})", process.name),
        };
        self.processes.iter().map(name).collect()
    }

    /// Returns the name of the trace for display.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the submissions in order of time.
    #[must_use]
    pub fn entries(&self) -> Entries<'_> {
        Entries { rows: self.rows.cursor(self.range.clone()), alone: self.alone }
    }

    /// Returns the submissions, each with its time in a replay at this speed, ns. If recorded times
    /// are coarse, `rng` draws a time within the resolution.
    #[must_use]
    pub fn arrivals(&self, speed: f64, rng: SplitMix64) -> Arrivals<'_> {
        Arrivals::new((&self.rows, self.range.clone(), self.alone), self.resolution_ns, speed, rng)
    }

    /// Returns the submissions of one process, each with its time in a replay at this speed, ns.
    #[must_use]
    pub fn arrivals_of(&self, process: usize, speed: f64, rng: SplitMix64) -> Arrivals<'_> {
        let by_process = self.by_process();
        let rows = (by_process.rows().as_ref(), by_process.range(process), self.alone);
        Arrivals::new(rows, self.resolution_ns, speed, rng).with_window(by_process.window_bytes())
    }

    /// Returns the number of submissions.
    #[must_use]
    pub fn len(&self) -> usize {
        self.range.len()
    }

    /// Returns whether the trace has no submissions.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.range.is_empty()
    }

    /// Returns the rows, and the range of the submissions in them.
    pub(crate) fn rows(&self) -> (&Arc<Rows<Entry>>, Range<usize>) {
        (&self.rows, self.range.clone())
    }

    /// Checks that all parts of the trace that were read so far had no errors. Call this after you
    /// have used the trace, because readers end early after an error.
    ///
    /// # Errors
    /// The temporary file of a long trace failed or was full.
    pub fn check(&self) -> Result<(), WorkloadError> {
        let failures = [
            self.failure.get(),
            self.rows.failure(),
            self.by_process.get().and_then(ByProcess::failure),
            self.closed.get().and_then(ClosedLoop::failure),
        ];
        match failures.into_iter().flatten().next() {
            None => Ok(()),
            Some(error) => {
                let source = io::Error::new(error.kind(), error.to_string());
                Err(WorkloadError::Io { file: self.name.clone(), source })
            }
        }
    }

    /// Returns the processes in the order of their first submissions.
    #[must_use]
    pub fn processes(&self) -> &[Process] {
        &self.processes
    }

    /// Returns the cgroups that processes were [put](Self::put) into.
    #[must_use]
    pub fn cgroups(&self) -> &[String] {
        &self.cgroups
    }

    /// Returns the unusual properties of the recording, the worst first.
    #[must_use]
    pub fn oddities(&self) -> &[Oddity] {
        &self.oddities
    }

    /// Returns whether the trace has no real times: it has more than a few requests, and all their
    /// times are equal. This is false for a coarse clock, where equal times are within one tick.
    #[must_use]
    pub fn is_timeless(&self) -> bool {
        let is_coarse = || self.oddities.iter().any(|oddity| matches!(oddity, Oddity::Coarse { .. }));
        self.len() as u64 > TIMELESS_MIN && self.span_ns() == 0 && !is_coarse()
    }

    /// Returns the rounding error of recorded times and latencies, ns. A recorded completion can be
    /// later than the real completion by at most this error. Times that are multiples of a coarse
    /// unit count as exact, unless [`Self::resolution_ns`] is larger.
    #[must_use]
    pub(crate) fn rounding_ns(&self) -> u64 {
        let times_ns = Some(self.times.resolution_ns()).filter(|&grain_ns| grain_ns < COARSE_NS);
        let times_ns = times_ns.unwrap_or(1).max(self.resolution_ns);
        times_ns - 1 + self.latencies.resolution_ns() - 1
    }

    /// Returns the resolution of the recorded times, ns, at least 1.
    #[must_use]
    pub fn resolution_ns(&self) -> u64 {
        self.resolution_ns
    }

    /// Sets the resolution of the arrivals, ns, for a trace whose format does not define it.
    pub fn set_resolution_ns(&mut self, resolution_ns: u64) {
        self.resolution_ns = resolution_ns.max(1);
    }

    /// Returns the number of records that were left out because their sectors or times are out of
    /// range.
    #[must_use]
    pub fn left_out(&self) -> u64 {
        self.left_out
    }

    /// Returns the number of known devices in the recording, at most 65,536. A run has only one
    /// device.
    #[must_use]
    pub fn devices(&self) -> usize {
        self.devices.len()
    }

    /// Returns the number of the sector after the last accessed sector. This is the smallest
    /// capacity that the trace fits on.
    #[must_use]
    pub fn end_sector(&self) -> Sector {
        self.end_sector
    }

    /// Returns the time from the first submission to the last, ns.
    #[must_use]
    pub fn span_ns(&self) -> u64 {
        let Range { start, end } = self.range;
        self.rows.cursor(end.saturating_sub(1).max(start)..end).next().map_or(0, |entry| entry.arrival_ns)
    }

    /// Returns whether the recording has the completions of more than half of its I/Os. Without
    /// completions the dependencies between I/Os are unknown.
    #[must_use]
    pub fn knows_completions(&self) -> bool {
        let known = self.entries().filter(|entry| entry.latency_ns().is_some()).count();
        2 * known > self.len()
    }

    /// Returns the number of reads and the hash of the trace. Each call reads all submissions.
    #[must_use]
    pub fn contents(&self) -> Contents {
        let mut hasher = XxHash3_64::new();
        let mut reads = 0;
        for entry in self.entries() {
            reads += u64::from(entry.op() == Op::Read);
            hasher.write(&entry.portable());
        }
        for (number, process) in (0u64..).zip(&self.processes) {
            if let Some(cgroup) = &process.cgroup {
                hasher.write(&number.to_le_bytes());
                hasher.write(cgroup.as_bytes());
            }
        }
        Contents { reads, hash: hasher.finish() }
    }

    /// Returns the number of submissions whose ioprio is not known.
    #[must_use]
    pub fn unknown_ioprios(&self) -> u64 {
        self.unknown_ioprios
    }

    /// Returns the warnings about the file.
    #[must_use]
    pub fn warnings(&self) -> &Warnings {
        &self.warnings
    }

    /// Returns the known gaps of the recording.
    #[must_use]
    pub fn completeness(&self) -> &Completeness {
        &self.completeness
    }

    /// Returns a copy of the trace with other rows, in order of time, and these processes.
    pub(crate) fn with_rows(&self, rows: Arc<Rows<Entry>>, range: Range<usize>, processes: Vec<Process>) -> Self {
        // A single pass, because a long trace is read from its file.
        let (mut unknown_ioprios, mut end_sector) = (0, 0);
        for entry in rows.cursor(range.clone()) {
            unknown_ioprios += u64::from(entry.ioprio().is_none());
            end_sector = end_sector.max(entry.sector() + u64::from(entry.nr_sectors));
        }
        Self {
            name: self.name.clone(),
            unknown_ioprios,
            end_sector,
            rows,
            range,
            alone: self.alone,
            processes,
            cgroups: self.cgroups.clone(),
            resolution_ns: self.resolution_ns,
            left_out: self.left_out,
            devices: self.devices.clone(),
            warnings: self.warnings.clone(),
            completeness: self.completeness.clone(),
            oddities: self.oddities.clone(),
            latencies: self.latencies,
            times: self.times,
            by_process: OnceLock::new(),
            closed: OnceLock::new(),
            fits: Mutex::default(),
            failure: OnceLock::new(),
        }
    }

    /// Returns the trace of one process with its recorded times, to run the process alone. Returns
    /// `None` if there is no process with this number.
    #[must_use]
    pub fn only(&self, process: usize) -> Option<Self> {
        let process_record = self.processes.get(process)?.clone();
        let by_process = self.by_process();
        Some(Self {
            alone: true,
            ..self.with_rows(Arc::clone(by_process.rows()), by_process.range(process), vec![process_record])
        })
    }

    /// Returns the trace fitted onto a device of `capacity_sectors`, at least 1. Returns `None` and
    /// [`Fit::AsIs`] if the trace fits without a change. The first call fits the trace; runs on
    /// devices of one size share the result.
    #[must_use]
    pub fn fitted(&self, capacity_sectors: Sector) -> (Option<Arc<Self>>, Fit) {
        if self.end_sector <= capacity_sectors {
            return (None, Fit::AsIs);
        }
        let mut fits = self.fits.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = fits.iter().find(|known| known.capacity_sectors == capacity_sectors) {
            return (known.trace.clone(), known.fit);
        }
        let (trace, fit) = self.fit(capacity_sectors).unwrap_or_else(|error| {
            let _ = self.failure.set(error);
            (None, Fit::AsIs)
        });
        let trace = trace.map(Arc::new);
        fits.push(Fitted { capacity_sectors, trace: trace.clone(), fit });
        (trace, fit)
    }

    /// Returns the submissions by process. They are sorted at the first call.
    #[must_use]
    pub fn by_process(&self) -> &ByProcess {
        self.by_process.get_or_init(|| ByProcess::of(self))
    }

    /// Returns the dependencies between the I/Os. They are computed at the first call; later calls
    /// return the same dependencies.
    #[must_use]
    pub fn closed_loop(&self) -> &ClosedLoop {
        self.closed.get_or_init(|| ClosedLoop::of(self))
    }
}

#[cfg(test)]
mod tests {
    use iosched::Time;

    use super::*;

    fn one(change: impl FnOnce(&mut TraceRequest)) -> Contents {
        let mut second = TraceRequest {
            arrival: Time::from_ns(1_000),
            pid: 2,
            device: None,
            op: Op::Write,
            flags: Flags::empty(),
            sector: 80,
            nr_sectors: 8,
            latency_ns: Some(5_000),
            ioprio: None,
        };
        let first = TraceRequest { arrival: Time::ZERO, pid: 1, op: Op::Read, ..second };
        change(&mut second);
        Trace::collect("t", 1, [first, second].map(Ok).into_iter()).unwrap().contents()
    }

    #[test]
    fn the_hash_of_a_trace_depends_on_every_field() {
        let usual = one(|_| ());
        assert_eq!((usual.reads, usual), (1, one(|_| ())));
        let changed = [
            one(|request| request.arrival = Time::from_ns(1_001)),
            one(|request| request.pid = 1),
            one(|request| request.op = Op::Read),
            one(|request| request.flags = Flags::SYNC),
            one(|request| request.sector = 81),
            one(|request| request.nr_sectors = 9),
            one(|request| request.latency_ns = None),
            one(|request| request.ioprio = Some(IoPriority::new(IoClass::Idle, LEVEL_DEFAULT))),
        ];
        assert!(changed.iter().all(|contents| contents.hash != usual.hash), "{changed:x?}");
        assert_eq!(one(|request| request.ioprio = Some(IoPriority::default())), usual);
    }
}
