//! Traces as streams of requests ([`TraceReader`]), in any format.

use std::io::Read;
use std::path::{Path, PathBuf};

use iosched::{SECOND_NS, Time};

use crate::blktrace::convert::Converter;
use crate::completeness::Completeness;
use crate::error::{TraceError, WarningKind, Warnings};
use crate::events::EventReader;
use crate::format::Format;
use crate::formats::{self, Times};
use crate::input::Input;
use crate::names::{DeviceNames, Names, ProcessNames};
use crate::reading::{Accept, ReadOptions, format_of, input_of, unreadable};
use crate::record::TraceRequest;
use crate::reorder::Reorder;
use crate::source::Source;
use crate::survey::StepsBack;
use crate::text::RequestSource;
use crate::unit::TimeUnit;

/// Number of requests that are held to repair their order. Some formats are written in the order of
/// completion or by several writers.
const WINDOW_REQUESTS: usize = 4_096;

/// Seconds from 1970 to the years 2000 and 2050.
const YEARS_2000_TO_2050_S: std::ops::Range<u64> = 946_684_800..2_524_608_000;

/// The requests of a trace, in the order of submission.
///
/// Memory is bounded, independent of the length of the trace. After damage, the reader continues if
/// it can. [`TraceReader::warnings`] and [`TraceReader::completeness`] report the damage; their
/// reports are complete after the last item. An error is returned once, as the last item:
/// [`TraceError::Unreadable`] if nothing could be read, [`TraceError::Partial`] or
/// [`TraceError::BadLines`] if the data is incomplete.
pub struct TraceReader {
    body: Body,
    format: Format,
    time_unit: Option<TimeUnit>,
    accept: Accept,
    given: u64,
    last: Time,
    finished: bool,
}

enum Body {
    Events { events: Box<EventReader>, converter: Converter, ended: bool },
    Requests(Requests),
}

struct Requests {
    source: Box<dyn RequestSource>,
    window: Reorder<TraceRequest>,
    device: Option<u32>,
    /// Time that is subtracted from all times, or `None` until the first time is known.
    origin: Option<Time>,
    resolution_ns: u64,
    /// Time of the preceding request, as written. `latest` is the sum of all steps forward.
    previous: Time,
    previous_device: Option<u32>,
    latest: Time,
    /// Steps of times back to before the time of the preceding request.
    steps: StepsBack,
    of_completions: bool,
    in_sectors: bool,
    warnings: Warnings,
    names: Names,
}

impl TraceReader {
    /// Opens the trace `path`: a file, or per-CPU files. For per-CPU files, `path` is the name of
    /// one of them, or the common start of their names. Decompresses compressed files.
    ///
    /// # Errors
    /// If there is no such file, or it cannot be opened, is empty, or is in no known format.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, TraceError> {
        Self::open_with(path, &ReadOptions::default())
    }

    /// Opens a trace like [`TraceReader::open`], with options.
    ///
    /// # Errors
    /// The errors of [`TraceReader::open`].
    pub fn open_with(path: impl AsRef<Path>, options: &ReadOptions) -> Result<Self, TraceError> {
        Source::open(path)?.requests(options)
    }

    /// Opens exactly these files: one, or one per CPU.
    ///
    /// # Errors
    /// The errors of [`TraceReader::open`], and [`TraceError::SeveralFiles`].
    pub fn open_files(paths: &[PathBuf], options: &ReadOptions) -> Result<Self, TraceError> {
        Source::of_files(paths).requests(options)
    }

    /// Reads a stream, such as standard input. Messages call the stream `name`.
    ///
    /// # Errors
    /// The errors of [`TraceReader::open`].
    pub fn from_reader(
        reader: impl Read + Send + 'static,
        name: &str,
        options: &ReadOptions,
    ) -> Result<Self, TraceError> {
        Self::from_inputs(vec![input_of(reader, name)?], options)
    }

    /// Reads the streams of one trace, such as the files of its CPUs in memory. Each stream has a
    /// name, which appears in messages and may determine the format.
    ///
    /// # Errors
    /// The errors of [`TraceReader::open_files`].
    pub fn from_readers<R: Read + Send + 'static>(
        readers: impl IntoIterator<Item = (String, R)>,
        options: &ReadOptions,
    ) -> Result<Self, TraceError> {
        let inputs = readers.into_iter().map(|(name, reader)| input_of(reader, &name));
        Self::from_inputs(inputs.collect::<Result<_, _>>()?, options)
    }

    pub(crate) fn from_inputs(mut inputs: Vec<Input>, options: &ReadOptions) -> Result<Self, TraceError> {
        let format = format_of(&mut inputs, options)?;
        let accept = Accept::of(&inputs, options);
        let body = if format.has_events() {
            let mut events = Box::new(EventReader::new(inputs, format, options));
            let converter = Converter::new(options.device, options.latencies, events.arrivals());
            Body::Events { events, converter, ended: false }
        } else {
            let Some(input) = inputs.pop() else { return Err(TraceError::NoFile) };
            Body::Requests(Requests::new(input, format, options))
        };
        Ok(Self { body, format, time_unit: options.time_unit, accept, given: 0, last: Time::ZERO, finished: false })
    }

    /// Returns the format of the trace that is read.
    #[must_use]
    pub fn format(&self) -> Format {
        self.format
    }

    /// Returns the resolution of arrivals, ns.
    #[must_use]
    pub fn resolution_ns(&self) -> u64 {
        match &self.body {
            Body::Events { events, .. } => events.resolution_ns,
            Body::Requests(requests) => requests.resolution_ns,
        }
    }

    /// Returns whether the file counts starts or lengths in sectors, so that they may be bytes by
    /// mistake.
    pub(crate) fn counts_sectors(&self) -> bool {
        matches!(&self.body, Body::Requests(Requests { in_sectors: true, .. }))
    }

    /// Returns the unit of times that the options gave.
    #[must_use]
    pub const fn time_unit(&self) -> Option<TimeUnit> {
        self.time_unit
    }

    /// Returns the unit in which the first time is in the years 2000 to 2050. Returns `None` if the
    /// user gave a unit, if the format assumes the same unit, or if the format's times do not count
    /// from 1970.
    #[must_use]
    pub fn likely_unit(&self) -> Option<TimeUnit> {
        let Body::Requests(Requests { origin: Some(origin), .. }) = &self.body else { return None };
        let is_open = self.time_unit.is_none() && self.format.has_unix_times();
        let count = origin.as_ns() / self.format.resolution_ns();
        let is_recent = |unit: &TimeUnit| YEARS_2000_TO_2050_S.contains(&(count / (SECOND_NS / unit.ns())));
        let assumed = TimeUnit::ALL.into_iter().find(|unit| unit.ns() == self.format.resolution_ns())?;
        TimeUnit::ALL.into_iter().find(is_recent).filter(|unit| is_open && *unit != assumed)
    }

    /// Returns the steps back in time in the part of the file that was read. Formats of events
    /// have no such steps, because events are merged in order.
    #[must_use]
    pub fn steps_back(&self) -> StepsBack {
        match &self.body {
            Body::Events { .. } => StepsBack::default(),
            Body::Requests(requests) => requests.steps,
        }
    }

    /// Returns the known gaps of the recording. The list is complete after the last item.
    #[must_use]
    pub fn completeness(&self) -> Completeness {
        match &self.body {
            Body::Events { events, .. } => events.completeness(),
            Body::Requests(requests) => Completeness::of(requests.warnings.gaps(self.format, self.given)),
        }
    }

    /// Returns the warnings so far.
    #[must_use]
    pub fn warnings(&self) -> &Warnings {
        match &self.body {
            Body::Events { events, .. } => &events.warnings,
            Body::Requests(requests) => &requests.warnings,
        }
    }

    /// Returns the names of processes that are known so far. A process's name
    /// comes before its first request.
    #[must_use]
    pub fn process_names(&self) -> &ProcessNames {
        match &self.body {
            Body::Events { events, .. } => &events.names,
            Body::Requests(requests) => &requests.names.processes,
        }
    }

    /// Returns the names of devices that are known so far, by their number in
    /// [`TraceRequest::device`]. Only some formats have names: fio's files, the
    /// hosts' disks of MSR's traces.
    #[must_use]
    pub fn device_names(&self) -> &DeviceNames {
        static NONE: DeviceNames = DeviceNames::new();
        match &self.body {
            Body::Events { .. } => &NONE,
            Body::Requests(requests) => &requests.names.devices,
        }
    }

    /// Returns the name of a device if it has one, otherwise the text of [`Format::device_text`].
    #[must_use]
    pub fn device_text(&self, device: u32) -> String {
        let name = self.device_names().get(&device);
        name.map_or_else(|| self.format.device_text(device), ToString::to_string)
    }

    /// Returns the time that was subtracted from arrivals, ns. If the reader subtracts the time of
    /// the first record, it is this time. It is 0 before the first item.
    #[must_use]
    pub fn origin_ns(&self) -> u64 {
        match &self.body {
            Body::Events { events, .. } => events.origin_ns(),
            Body::Requests(requests) => {
                let origin_ns = requests.origin.map_or(0, Time::as_ns);
                origin_ns.saturating_sub(if requests.of_completions { formats::BEFORE_FIRST_NS } else { 0 })
            }
        }
    }

    /// Returns the number of requests whose latency is uncertain, because it may be the latency of
    /// another request of the same sectors. The number is complete at the end of the trace.
    pub(crate) fn uncertain_pairs(&self) -> u64 {
        match &self.body {
            Body::Events { events, .. } => events.uncertain,
            Body::Requests(_) => 0,
        }
    }

    fn next_request(&mut self) -> Option<TraceRequest> {
        match &mut self.body {
            Body::Events { events, converter, ended } => loop {
                if let Some(request) = converter.take(*ended) {
                    return Some(request);
                }
                if *ended {
                    events.without_submission = converter.without_submission();
                    events.uncertain = converter.uncertain();
                    return None;
                }
                match events.next_event() {
                    Some(event) => converter.add(&event),
                    None => *ended = true,
                }
            },
            Body::Requests(requests) => requests.next(),
        }
    }

    /// Returns the error for the end of the trace, if nothing could be read or the data is refused.
    fn failure(&self) -> Option<TraceError> {
        let read = match &self.body {
            Body::Events { events, .. } => events.count,
            Body::Requests(_) => self.given,
        };
        let nothing = if read == 0 { unreadable(self.warnings()) } else { None };
        nothing.or_else(|| self.accept.refusal(self.completeness()))
    }
}

impl Iterator for TraceReader {
    type Item = Result<TraceRequest, TraceError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.finished {
            return None;
        }
        if let Some(mut request) = self.next_request() {
            self.given += 1;
            if request.arrival < self.last {
                if let Body::Requests(requests) = &mut self.body {
                    let kind = WarningKind::Late { late_ns: self.last.since(request.arrival) };
                    requests.warnings.push(requests.source.place(), kind);
                }
                request.arrival = self.last;
            }
            self.last = request.arrival;
            return Some(Ok(request));
        }
        self.finished = true;
        self.failure().map(Err)
    }
}

impl Requests {
    fn new(mut input: Input, format: Format, options: &ReadOptions) -> Self {
        let Times { as_written, resolution_ns, of_completions, in_sectors } =
            formats::times(&mut input, format, options);
        Self {
            source: formats::reader(input, format, options),
            window: Reorder::new(WINDOW_REQUESTS),
            device: options.device,
            origin: as_written.then_some(Time::ZERO),
            resolution_ns,
            previous: Time::ZERO,
            previous_device: None,
            latest: Time::ZERO,
            steps: StepsBack { kept: format.keeps_order(), ..StepsBack::default() },
            of_completions,
            in_sectors,
            warnings: Warnings::default(),
            names: Names::default(),
        }
    }

    /// Counts a step back. If the file's order is the order of submission, the request gets the
    /// arrival of the preceding request. Otherwise a step to another device does not count: the
    /// requests of a device may begin at an earlier time, and the reader sorts requests by time.
    fn step(&mut self, arrival: &mut Time, device: Option<u32>) {
        let written = *arrival;
        if written < self.previous && (self.steps.kept || device == self.previous_device) {
            self.steps.count += 1;
            self.steps.largest_ns = self.steps.largest_ns.max(self.previous.since(written));
        }
        if self.steps.kept {
            self.latest = self.latest + if written > self.previous { written.since(self.previous) } else { 0 };
            *arrival = self.latest;
        }
        (self.previous, self.previous_device) = (written, device);
    }

    fn next(&mut self) -> Option<TraceRequest> {
        while !self.window.is_full() {
            let Some(mut request) = self.source.next_request(&mut self.warnings, &mut self.names) else { break };
            self.step(&mut request.arrival, request.device);
            if self.device.is_none_or(|device| request.device == Some(device)) {
                self.window.push(request.arrival.as_ns(), 0, request);
            }
        }
        let mut request = self.window.pop()?;
        let origin = *self.origin.get_or_insert(request.arrival);
        request.arrival = Time::from_ns(request.arrival.since(origin));
        Some(request)
    }
}
