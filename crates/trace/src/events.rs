//! Block traces as streams of events.

use std::collections::VecDeque;
use std::io::Read;
use std::path::Path;

use iosched::Time;

use crate::blktrace::arrivals::{AHEAD_MAX, Arrivals};
use crate::blktrace::follow::Follower;
use crate::blktrace::{Action, BlkEvent, EventSource, Payload};
use crate::completeness::{Completeness, Gap, Unmatched};
use crate::error::{TraceError, WarningKind, Warnings};
use crate::format::Format;
use crate::formats;
use crate::input::Input;
use crate::names::{NAMES_MAX, ProcessNames};
use crate::reading::{Accept, ReadOptions, cpu_of_name, format_of, input_of, unreadable};
use crate::source::Source;

/// The events of a block trace in order of time: the merged records of blktrace, or the lines of
/// blkparse and of the kernel's tracepoints.
///
/// Damaged data has the same effect as in a [`TraceReader`](crate::TraceReader).
pub struct EventReader {
    source: Box<dyn EventSource>,
    format: Format,
    /// Resolution of the trace's times, ns.
    pub(crate) resolution_ns: u64,
    accept: Accept,
    follower: Follower,
    /// The CPU numbers from the names of the files, in rising order.
    cpus: Vec<u32>,
    pub(crate) warnings: Warnings,
    pub(crate) names: ProcessNames,
    last: Time,
    pub(crate) count: u64,
    /// Events that were read ahead.
    ahead: VecDeque<BlkEvent>,
    arrivals: Option<Arrivals>,
    /// Requests that come from events other than submissions.
    pub(crate) without_submission: u64,
    /// Number of requests whose latency is uncertain, because it may be the latency of another
    /// request of the same sectors.
    pub(crate) uncertain: u64,
    finished: bool,
}

impl EventReader {
    /// Opens the trace `path`, as [`TraceReader::open`](crate::TraceReader::open) does.
    ///
    /// # Errors
    /// The errors of [`TraceReader::open`](crate::TraceReader::open), and [`TraceError::NoEvents`]
    /// if the format has no events.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, TraceError> {
        Source::open(path)?.events(&ReadOptions::default())
    }

    /// Reads a stream. Messages call the stream `name`.
    ///
    /// # Errors
    /// The errors of [`EventReader::open`].
    pub fn from_reader(
        reader: impl Read + Send + 'static,
        name: &str,
        options: &ReadOptions,
    ) -> Result<Self, TraceError> {
        Self::from_inputs(vec![input_of(reader, name)?], options)
    }

    pub(crate) fn from_inputs(mut inputs: Vec<Input>, options: &ReadOptions) -> Result<Self, TraceError> {
        let format = format_of(&mut inputs, options)?;
        if format.has_events() {
            return Ok(Self::new(inputs, format, options));
        }
        let file = inputs.first().map_or_else(String::new, |input| input.name().to_owned());
        Err(TraceError::NoEvents { file, format })
    }

    pub(crate) fn new(mut inputs: Vec<Input>, format: Format, options: &ReadOptions) -> Self {
        let accept = Accept::of(&inputs, options);
        let cpus = inputs.iter().filter_map(|input| cpu_of_name(input.name())).collect();
        let resolution_ns = inputs.first_mut().map_or(1, |input| formats::times(input, format, options).resolution_ns);
        let source = formats::event_source(inputs, format);
        Self {
            source,
            format,
            resolution_ns,
            accept,
            follower: Follower::default(),
            cpus,
            warnings: Warnings::default(),
            names: ProcessNames::new(),
            last: Time::ZERO,
            count: 0,
            ahead: VecDeque::new(),
            arrivals: None,
            without_submission: 0,
            uncertain: 0,
            finished: false,
        }
    }

    /// Returns the format of the trace that is read.
    #[must_use]
    pub fn format(&self) -> Format {
        self.format
    }

    /// Returns the warnings so far.
    #[must_use]
    pub fn warnings(&self) -> &Warnings {
        &self.warnings
    }

    /// Returns the known gaps of the recording. The list is complete after the last item.
    #[must_use]
    pub fn completeness(&self) -> Completeness {
        let mut gaps = self.warnings.gaps(self.format, self.count);
        let last = self.cpus.iter().max().copied().unwrap_or(0);
        let missing: Vec<u32> = if self.cpus.is_empty() || self.format != Format::Blktrace {
            Vec::new()
        } else {
            (0..last).filter(|cpu| !self.cpus.contains(cpu)).collect()
        };
        let unmatched = self.follower.unmatched();
        if !missing.is_empty() {
            let unmatched = unmatched.as_ref().is_some_and(Unmatched::is_inside);
            gaps.push(Gap::MissingCpus { missing: missing.clone(), read: self.cpus.clone(), unmatched });
        }
        if let Some(unmatched) = unmatched {
            gaps.push(Gap::Unmatched(Unmatched { cpus_missing: !missing.is_empty(), ..unmatched }));
        }
        if let Some(issued) = self.follower.issued_without_completions() {
            let one_file = self.format == Format::Blktrace && self.cpus.len() == 1;
            gaps.push(Gap::NoCompletions { issued, cpus: self.follower.cpus(), one_file });
        }
        if let Some(completions) = self.follower.completions_alone() {
            gaps.push(Gap::CompletionsAlone { completions });
        }
        if self.without_submission > 0 {
            gaps.push(Gap::NoSubmissions { issued: self.without_submission });
        }
        Completeness::of(gaps)
    }

    /// Returns the names of processes that are known so far.
    #[must_use]
    pub fn process_names(&self) -> &ProcessNames {
        &self.names
    }

    /// Returns the time that was subtracted from all times, ns: the recorded
    /// time of the first event. It is 0 before the first item.
    #[must_use]
    pub fn origin_ns(&self) -> u64 {
        self.source.origin_ns()
    }

    /// Returns which events are requests. Before the first event is returned, this method reads
    /// ahead as many events as it needs.
    pub(crate) fn arrivals(&mut self) -> Arrivals {
        if let Some(known) = self.arrivals {
            return known;
        }
        while self.ahead.len() < AHEAD_MAX
            && let Some(event) = self.read_event()
        {
            let is_submission = event.action == Action::Queue;
            self.ahead.push_back(event);
            if is_submission {
                break;
            }
        }
        *self.arrivals.insert(Arrivals::of(self.ahead.iter()))
    }

    #[inline]
    pub(crate) fn next_event(&mut self) -> Option<BlkEvent> {
        match self.ahead.pop_front() {
            Some(event) => Some(event),
            None => self.read_event(),
        }
    }

    fn read_event(&mut self) -> Option<BlkEvent> {
        let mut event = self.source.next_event(&mut self.warnings)?;
        self.count += 1;
        if event.time < self.last {
            let kind = WarningKind::Late { late_ns: self.last.since(event.time) };
            self.warnings.push(self.source.place(), kind);
            event.time = self.last;
        }
        self.last = event.time;
        self.follower.add(&event);
        if let Payload::Name(name) = event.payload
            && (self.names.len() < NAMES_MAX || self.names.contains_key(&event.pid))
        {
            self.names.insert(event.pid, name);
        }
        Some(event)
    }
}

impl Iterator for EventReader {
    type Item = Result<BlkEvent, TraceError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.finished {
            return None;
        }
        if let Some(event) = self.next_event() {
            return Some(Ok(event));
        }
        self.finished = true;
        let nothing = if self.count == 0 { unreadable(&self.warnings) } else { None };
        nothing.or_else(|| self.accept.refusal(self.completeness())).map(Err)
    }
}
