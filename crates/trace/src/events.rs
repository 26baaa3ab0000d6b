//! Block traces as streams of events, and what readers of any kind share: inputs, formats, what they accept.

use std::io::Read;
use std::path::Path;

use iosched::Time;

use crate::blkparse::{BlkparseReader, NAMES_MAX};
use crate::blktrace::binary::BinaryReader;
use crate::blktrace::follow::Follower;
use crate::blktrace::merge::Merge;
use crate::blktrace::{BlkEvent, EventSource, Payload};
use crate::completeness::{Completeness, Gap, Unmatched};
use crate::detect::detect;
use crate::error::{TraceError, WarningKind, Warnings};
use crate::input::Input;
use crate::reader::{ProcessNames, ReadOptions};
use crate::source::Source;
use crate::{Format, open};

/// The events of a block trace in the order they happened: blktrace's records merged, or blkparse's lines.
///
/// Damage is treated as by [`TraceReader`](crate::TraceReader).
pub struct EventReader {
    source: Box<dyn EventSource>,
    format: Format,
    accept: Accept,
    follower: Follower,
    /// The CPUs that the names of the files say, rising.
    cpus: Vec<u32>,
    pub(crate) warnings: Warnings,
    pub(crate) names: ProcessNames,
    last: Time,
    pub(crate) count: u64,
    finished: bool,
}

impl EventReader {
    /// Opens the trace called `path`, as [`TraceReader::open`](crate::TraceReader::open) does.
    ///
    /// # Errors
    /// As [`TraceReader::open`](crate::TraceReader::open), and [`TraceError::NoEvents`] when the format has none.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, TraceError> {
        Source::open(path)?.events(&ReadOptions::default())
    }

    /// Reads a stream; `name` stands for it in messages.
    ///
    /// # Errors
    /// As [`EventReader::open`].
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
        let source: Box<dyn EventSource> = match (format, inputs.len()) {
            (Format::Blkparse, 1) => Box::new(BlkparseReader::new(inputs.remove(0))),
            _ => Box::new(Merge::new(inputs.into_iter().map(BinaryReader::new).collect())),
        };
        Self {
            source,
            format,
            accept,
            follower: Follower::default(),
            cpus,
            warnings: Warnings::default(),
            names: ProcessNames::new(),
            last: Time::ZERO,
            count: 0,
            finished: false,
        }
    }

    /// The format.
    #[must_use]
    pub fn format(&self) -> Format {
        self.format
    }

    /// What was wrong so far.
    #[must_use]
    pub fn warnings(&self) -> &Warnings {
        &self.warnings
    }

    /// What is known to be missing of the recording: all of it after the last item.
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
        Completeness::of(gaps)
    }

    /// Names of processes, as far as they are known by now.
    #[must_use]
    pub fn process_names(&self) -> &ProcessNames {
        &self.names
    }

    /// What times were reduced by, ns: the time of the first event as recorded. 0 before the first item.
    #[must_use]
    pub fn origin_ns(&self) -> u64 {
        self.source.origin_ns()
    }

    #[inline]
    pub(crate) fn next_event(&mut self) -> Option<BlkEvent> {
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

/// What less than the whole will do.
pub(crate) struct Accept {
    file: String,
    partial: bool,
    /// The format was given, not guessed.
    given: bool,
}

impl Accept {
    pub(crate) fn of(inputs: &[Input], options: &ReadOptions) -> Self {
        let file = inputs.first().map_or_else(String::new, |input| input.name().to_owned());
        Self { file, partial: options.partial, given: options.format.is_some() || options.columns.is_some() }
    }

    /// The error of what does not do.
    pub(crate) fn refusal(&self, completeness: Completeness) -> Option<TraceError> {
        let file = || self.file.clone();
        let cut = completeness.certain().any(|gap| matches!(gap, Gap::Cut { .. }));
        if cut && !self.partial {
            return Some(TraceError::Partial { file: file(), completeness });
        }
        let bad_lines = completeness.certain().find(|gap| matches!(gap, Gap::BadLines { .. }));
        if let Some(gap) = bad_lines.filter(|_| !(self.partial && self.given)) {
            return Some(TraceError::BadLines { file: file(), gap: Box::new(gap.clone()) });
        }
        (completeness.is_partial() && !self.partial).then(|| TraceError::Partial { file: file(), completeness })
    }
}

/// The CPU whose file is called so.
fn cpu_of_name(name: &str) -> Option<u32> {
    let (base, cpu) = open::split_cpu(Path::new(name).file_name()?.to_str()?)?;
    base.ends_with(".blktrace").then_some(cpu)
}

pub(crate) fn unreadable(warnings: &Warnings) -> Option<TraceError> {
    let first = warnings.kept().first()?;
    Some(TraceError::Unreadable { place: first.place.clone(), problem: first.kind.clone() })
}

pub(crate) fn input_of(reader: impl Read + Send + 'static, name: &str) -> Result<Input, TraceError> {
    Input::new(Box::new(reader), name).map_err(|source| TraceError::Io { file: name.to_owned(), source })
}

pub(crate) fn format_of(inputs: &mut [Input], options: &ReadOptions) -> Result<Format, TraceError> {
    inputs.iter_mut().for_each(Input::skip_byte_order_mark);
    let given = if options.columns.is_some() { Some(Format::Csv) } else { options.format };
    let format = match given {
        Some(_) if inputs.is_empty() => return Err(TraceError::NoFile),
        Some(format) => format,
        None => return detect(inputs),
    };
    if inputs.len() > 1 && format != Format::Blktrace {
        return Err(TraceError::SeveralFiles { file: inputs[1].name().to_owned(), format });
    }
    Ok(format)
}
