//! A recorded trace, to be replayed by many runs at once. A long one is in a temporary file, which
//! each run reads.

use std::collections::{BTreeMap, BTreeSet};
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

use crate::arrivals::Arrivals;
use crate::closed::{ByProcess, ClosedLoop};
use crate::error::WorkloadError;

/// Sectors that an entry can name: 2^48, 128 PiB.
const SECTORS_MAX: u64 = 1 << 48;
/// The latest arrival, ns: 36 years.
const TIME_MAX_NS: u64 = 1 << 60;
/// Devices that are told apart.
const DEVICES_MAX: usize = 1 << 16;
/// Stands for a latency that was not recorded.
const UNKNOWN: u64 = u64::MAX;

/// One recorded submission, 32 bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub struct Entry {
    /// When it was submitted, ns since the first submission of the trace.
    pub arrival_ns: u64,
    /// Sector, ioprio, op and flags.
    place: u64,
    /// Length in sectors; 0 for a flush.
    pub nr_sectors: u32,
    /// Number of its process in [`Trace::processes`].
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
/// Where an entry has its ioprio, and how wide that is.
const IOPRIO_SHIFT: u32 = 11;
const IOPRIO_BITS: u64 = 0b1_1111 << IOPRIO_SHIFT;

/// 0 of one that is not known. Of the idle class no level is kept.
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
    /// First sector; 0 for a flush.
    #[inline]
    #[must_use]
    pub const fn sector(&self) -> Sector {
        self.place >> 16
    }

    /// What it did.
    #[inline]
    #[must_use]
    pub const fn op(&self) -> Op {
        OPS[(self.place >> 8 & 7) as usize % OPS.len()]
    }

    /// How.
    #[inline]
    #[must_use]
    pub const fn flags(&self) -> Flags {
        Flags::from_bits_truncate(self.place as u8)
    }

    /// The ioprio that its process had, where known.
    #[inline]
    #[must_use]
    pub fn ioprio(&self) -> Option<IoPriority> {
        let code = (self.place & IOPRIO_BITS) >> IOPRIO_SHIFT;
        let (class, level) = (CLASSES[(code.checked_sub(1)? >> 3) as usize], ((code - 1) & 7) as u8);
        let level = if class == IoClass::Idle { LEVEL_DEFAULT } else { level };
        IoPriority::checked(class, level)
    }

    /// From submission to completion in the recorded system, ns, where known.
    #[must_use]
    pub const fn latency_ns(&self) -> Option<u64> {
        if self.latency_ns == UNKNOWN { None } else { Some(self.latency_ns) }
    }

    /// The same submission of a process with this ioprio.
    const fn prioritised(self, ioprio: IoPriority) -> Self {
        Self { place: self.place & !IOPRIO_BITS | ioprio_code(Some(ioprio)) << IOPRIO_SHIFT, ..self }
    }

    /// The same submission of a process that waits for it.
    #[inline]
    pub(crate) const fn waited_for(self) -> Self {
        Self { place: self.place | Flags::SYNC.bits() as u64, ..self }
    }

    /// The same submission of the only process.
    #[inline]
    pub(crate) const fn alone(self) -> Self {
        Self { process: 0, ..self }
    }

    /// The same submission elsewhere.
    #[must_use]
    pub(crate) const fn moved(self, sector: Sector, nr_sectors: u32) -> Self {
        Self { place: sector << 16 | self.place & 0xffff, nr_sectors, ..self }
    }
}

const _: () = assert!(size_of::<Entry>() == 32, "traces have hundreds of millions of submissions");

/// A process of a trace.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Process {
    /// Its id; 0 where the format does not say.
    pub pid: u32,
    /// Its name; empty if not recorded.
    pub name: String,
    /// Its submissions.
    pub requests: u64,
    /// The cgroup that it is in; `None`: in the root.
    pub cgroup: Option<String>,
    /// Its ioprio at its first submission that has one.
    pub ioprio: Option<IoPriority>,
}

/// So many values tell how exact they are.
const GRAIN_MIN: u64 = 16;

/// How exactly recorded values are written, found from the values.
#[derive(Clone, Copy, Debug, Default)]
struct Grain {
    count: u64,
    first_ns: u64,
    differ: bool,
    /// Their greatest common divisor, ns.
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

    /// How exact they are, ns; 1 if there are too few to tell, or all are equal.
    const fn resolution_ns(self) -> u64 {
        if self.differ && self.count >= GRAIN_MIN { decimal_grain(self.grain_ns) } else { 1 }
    }
}

/// A trace: its submissions in order of time, and who made them.
#[derive(Debug, Default)]
pub struct Trace {
    name: String,
    rows: Arc<Rows<Entry>>,
    /// Those that are its own.
    range: Range<usize>,
    /// It is one process of a trace, whatever number its rows have there.
    alone: bool,
    processes: Vec<Process>,
    /// Those that processes were put into, also where these are left out.
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
    /// Why it could not be brought onto a device.
    failure: OnceLock<io::Error>,
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

/// Submissions on their way into a trace.
#[derive(Default)]
struct Filled {
    entries: Filling<Entry>,
    origin_ns: Option<u64>,
    last_ns: u64,
}

/// A trace on a device of another size.
#[derive(Debug)]
struct Fitted {
    capacity_sectors: Sector,
    trace: Option<Arc<Trace>>,
    fit: Fit,
}

impl Trace {
    /// Loads the trace called `path`, in any format that [`iosched_trace`] knows.
    ///
    /// # Errors
    /// It cannot be read, is not the whole recording, or holds no request.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, WorkloadError> {
        Self::open_with(path, &ReadOptions::default())
    }

    /// Likewise, read as `options` say. Its name tells which files were read together.
    ///
    /// # Errors
    /// As [`Trace::open`].
    pub fn open_with(path: impl AsRef<Path>, options: &ReadOptions) -> Result<Self, WorkloadError> {
        let source = Source::open(path)?;
        Self::read(&source.title(), source.requests(options)?)
    }

    /// Puts processes into cgroups; the first that is meant for a process counts.
    ///
    /// # Errors
    /// One is of no process of the trace.
    pub fn put(&mut self, cgroups: &[InCgroup]) -> Result<(), WorkloadError> {
        for of in cgroups {
            self.expect_process(of, |process| of.is_of(process.pid, &process.name))?;
        }
        self.cgroups.clear();
        for of in cgroups {
            if !self.cgroups.contains(&of.cgroup) {
                self.cgroups.push(of.cgroup.clone());
            }
        }
        for process in &mut self.processes {
            let own = cgroups.iter().find(|of| of.is_of(process.pid, &process.name));
            process.cgroup = own.map(|of| of.cgroup.clone());
        }
        Ok(())
    }

    /// Gives processes priorities for the whole trace, whatever was recorded; the first that is meant for a process
    /// counts.
    ///
    /// # Errors
    /// One is of no process of the trace, or a long trace cannot be written to its temporary file.
    pub fn prioritise(&mut self, priorities: &[Ionice]) -> Result<(), WorkloadError> {
        for of in priorities {
            self.expect_process(of, |process| of.is_of(process.pid, &process.name))?;
        }
        let given = |process: &Process| priorities.iter().find(|of| of.is_of(process.pid, &process.name));
        for process in &mut self.processes {
            process.ioprio = given(process).map_or(process.ioprio, |of| Some(of.ioprio));
        }
        let given: Vec<_> = self.processes.iter().map(|process| given(process).map(|of| of.ioprio)).collect();
        let with_priority =
            |entry: Entry| given[entry.process as usize].map_or(entry, |ioprio| entry.prioritised(ioprio));
        let rows = Rows::collect(self.entries().map(with_priority));
        let rows = rows.map_err(|source| WorkloadError::Io { file: self.name.clone(), source })?;
        let processes = std::mem::take(&mut self.processes);
        *self = self.with_rows(rows.into(), 0..self.len(), processes);
        Ok(())
    }

    /// # Errors
    /// There is no such process.
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

    /// Names of processes, those with most submissions first.
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

    /// Calls it by another name.
    pub fn rename(&mut self, name: &str) {
        name.clone_into(&mut self.name);
    }

    /// Loads what `reader` gives.
    ///
    /// # Errors
    /// Nothing could be read, or it holds no request.
    pub fn read(name: &str, mut reader: TraceReader) -> Result<Self, WorkloadError> {
        let mut survey = Survey::default();
        let seen = reader.by_ref().inspect(|request| request.iter().for_each(|request| survey.add(request)));
        let mut trace = Self::collect(name, 1, seen)?;
        trace.resolution_ns = survey.resolution_ns(reader.resolution_ns().max(1));
        trace.oddities =
            survey.oddities(reader.format(), reader.resolution_ns(), reader.time_unit(), reader.steps_back());
        trace.name_processes(|pid| reader.process_names().get(&pid).map(|name| name.to_text()));
        trace.warnings = reader.warnings().clone();
        trace.completeness = reader.completeness();
        Ok(trace)
    }

    /// Makes a trace of requests in order of time. `resolution_ns`: how exact their times are.
    ///
    /// # Errors
    /// As the iterator's, or it gives nothing.
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
        let own = &mut self.processes[process as usize];
        own.requests += 1;
        own.ioprio = own.ioprio.or(ioprio);
        self.unknown_ioprios += u64::from(ioprio.is_none());
        self.end_sector = self.end_sector.max(sector + u64::from(nr_sectors));
        if let Some(latency_ns) = latency_ns {
            self.latencies.add(latency_ns);
        }
        self.times.add(arrival_ns);
        // Readers promise order; a clock that runs back would break every run.
        filled.last_ns = arrival_ns.max(filled.last_ns);
        filled.entries.push(Entry {
            arrival_ns: filled.last_ns,
            place: sector << 16 | ioprio_code(ioprio) << IOPRIO_SHIFT | op_code(op) << 8 | u64::from(flags.bits()),
            nr_sectors,
            process,
            latency_ns: latency_ns.unwrap_or(UNKNOWN),
        })
    }

    /// What a request lacks to be one of a trace whose first request arrived at `origin_ns`; `None`: nothing.
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
        late.then_some("a time at most 36 years after the first")
    }

    /// Gives processes the names that `name` has for their ids.
    pub fn name_processes(&mut self, name: impl Fn(u32) -> Option<String>) {
        for process in &mut self.processes {
            if let Some(name) = name(process.pid) {
                process.name = name;
            }
        }
    }

    /// The names that its processes have in results, in order. The priority tells processes of one name apart if they
    /// differ in it: `fio` and `fio (idle)`.
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
            own if own.is_empty() || process.name.is_empty() || known[process.name.as_str()].len() == 1 => {
                process.name.clone()
            }
            own => format!("{} ({own})", process.name),
        };
        self.processes.iter().map(name).collect()
    }

    /// Its name, for people.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The submissions, in order of time.
    #[must_use]
    pub fn entries(&self) -> Entries<'_> {
        Entries { rows: self.rows.cursor(self.range.clone()), alone: self.alone }
    }

    /// The submissions, each with the time of a replay at this speed, ns; `rng` draws what the recording leaves open.
    #[must_use]
    pub fn arrivals(&self, speed: f64, rng: SplitMix64) -> Arrivals<'_> {
        Arrivals::new((&self.rows, self.range.clone(), self.alone), self.resolution_ns, speed, rng)
    }

    /// Likewise those of one process.
    #[must_use]
    pub fn arrivals_of(&self, process: usize, speed: f64, rng: SplitMix64) -> Arrivals<'_> {
        let own = self.by_process();
        let rows = (own.rows().as_ref(), own.range(process), self.alone);
        Arrivals::new(rows, self.resolution_ns, speed, rng).with_window(own.window_bytes())
    }

    /// How many submissions there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.range.len()
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.range.is_empty()
    }

    /// Where its submissions are.
    pub(crate) fn rows(&self) -> (&Arc<Rows<Entry>>, Range<usize>) {
        (&self.rows, self.range.clone())
    }

    /// Whether all of the trace could be read up to now. Check this after you have used it: readers
    /// end early where they cannot read.
    ///
    /// # Errors
    /// The temporary file that holds a long trace failed, or was full.
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

    /// The processes, in the order of their first submissions.
    #[must_use]
    pub fn processes(&self) -> &[Process] {
        &self.processes
    }

    /// The cgroups that processes were [put](Self::put) into.
    #[must_use]
    pub fn cgroups(&self) -> &[String] {
        &self.cgroups
    }

    /// What is odd about it as a recording, the worst first.
    #[must_use]
    pub fn oddities(&self) -> &[Oddity] {
        &self.oddities
    }

    /// Whether it has no times: all are equal, and there are more than a few. Equal times of a
    /// coarse clock are one tick of it.
    #[must_use]
    pub fn is_timeless(&self) -> bool {
        let is_coarse = || self.oddities.iter().any(|oddity| matches!(oddity, Oddity::Coarse { .. }));
        self.len() as u64 > TIMELESS_MIN && self.span_ns() == 0 && !is_coarse()
    }

    /// By less than this a recorded completion may be later than it was, ns, because times and latencies are rounded.
    /// Coarse times are regular ones unless [`Self::resolution_ns`] says otherwise.
    #[must_use]
    pub(crate) fn rounding_ns(&self) -> u64 {
        let times_ns = Some(self.times.resolution_ns()).filter(|&grain_ns| grain_ns < COARSE_NS);
        let times_ns = times_ns.unwrap_or(1).max(self.resolution_ns);
        times_ns - 1 + self.latencies.resolution_ns() - 1
    }

    /// How exact the recorded times are, ns, at least 1.
    #[must_use]
    pub fn resolution_ns(&self) -> u64 {
        self.resolution_ns
    }

    /// Says how exact arrivals are, ns, of a trace whose format does not.
    pub fn set_resolution_ns(&mut self, resolution_ns: u64) {
        self.resolution_ns = resolution_ns.max(1);
    }

    /// Records that lie beyond any device or lifetime and were left out.
    #[must_use]
    pub fn left_out(&self) -> u64 {
        self.left_out
    }

    /// How many devices it was recorded on, as far as that is known; a run has one. At most 65,536 are counted.
    #[must_use]
    pub fn devices(&self) -> usize {
        self.devices.len()
    }

    /// The sector behind the last that it touches: the least capacity it fits on.
    #[must_use]
    pub fn end_sector(&self) -> Sector {
        self.end_sector
    }

    /// Time from the first submission to the last, ns.
    #[must_use]
    pub fn span_ns(&self) -> u64 {
        let Range { start, end } = self.range;
        self.rows.cursor(end.saturating_sub(1).max(start)..end).next().map_or(0, |entry| entry.arrival_ns)
    }

    /// Whether the recording says when its I/Os completed, most of them at least. Without that, nobody knows which I/O
    /// waited for which.
    #[must_use]
    pub fn knows_completions(&self) -> bool {
        let known = self.entries().filter(|entry| entry.latency_ns().is_some()).count();
        2 * known > self.len()
    }

    /// Submissions whose ioprio is not known.
    #[must_use]
    pub fn unknown_ioprios(&self) -> u64 {
        self.unknown_ioprios
    }

    /// What was wrong with the file.
    #[must_use]
    pub fn warnings(&self) -> &Warnings {
        &self.warnings
    }

    /// What is known to be missing of the recording.
    #[must_use]
    pub fn completeness(&self) -> &Completeness {
        &self.completeness
    }

    /// The same trace with other submissions, in order of time, of these processes.
    pub(crate) fn with_rows(&self, rows: Arc<Rows<Entry>>, range: Range<usize>, processes: Vec<Process>) -> Self {
        // In one pass: a long trace is read from its file.
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

    /// What one process did, at the times it did it: for a run of this process alone. `None` if there is no process
    /// of that number.
    #[must_use]
    pub fn only(&self, process: usize) -> Option<Self> {
        let kept = self.processes.get(process)?.clone();
        let own = self.by_process();
        Some(Self { alone: true, ..self.with_rows(Arc::clone(own.rows()), own.range(process), vec![kept]) })
    }

    /// This trace on a device of `capacity_sectors`, at least 1: `None` and [`Fit::AsIs`] if it fits as it is. Found
    /// when first asked for; the runs on devices of one size share it.
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

    /// The submissions of each process. Found when first asked for.
    #[must_use]
    pub fn by_process(&self) -> &ByProcess {
        self.by_process.get_or_init(|| ByProcess::of(self))
    }

    /// What waited for what. Found when first asked for; the runs share it.
    #[must_use]
    pub fn closed_loop(&self) -> &ClosedLoop {
        self.closed.get_or_init(|| ClosedLoop::of(self))
    }
}
