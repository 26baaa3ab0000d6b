//! The common part of all readers: options, inputs, detection of the format, and acceptance of
//! incomplete data.

use std::fmt;
use std::io::Read;
use std::path::Path;
use std::str::FromStr;

use iosched::{IoClass, IoPriority, LEVEL_DEFAULT, LEVEL_MAX};

use crate::completeness::{Completeness, Gap};
use crate::error::{TraceError, Warnings};
use crate::format::Format;
use crate::formats::{Columns, detect};
use crate::input::Input;
use crate::open;
use crate::unit::TimeUnit;

/// Options for reading a trace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReadOptions {
    /// The format, or `None` to detect it by content, then by name.
    pub format: Option<Format>,
    /// Only requests to this device are read. With `None`, a block trace gives all requests
    /// that were not passed on from another traced device, and other formats give all requests.
    pub device: Option<u32>,
    /// Whether the reader finds the completions of requests in block traces. If false, the reader
    /// does not hold requests until they complete, and
    /// [`TraceRequest::latency_ns`](crate::TraceRequest::latency_ns) is `None`.
    pub latencies: bool,
    /// Columns with which the file is read as a table ([`Format::Csv`]), even if its first line
    /// names other columns.
    pub columns: Option<Columns>,
    /// The unit of times that are bare numbers, instead of the unit that the format assumes. It is
    /// allowed only for formats with bare times ([`Format::has_bare_times`]). With a unit, their
    /// times may have decimals.
    pub time_unit: Option<TimeUnit>,
    /// Whether an incomplete recording is accepted. Otherwise the reader's last item is
    /// [`TraceError::Partial`]. If more than a small part of the lines are bad
    /// ([`TraceError::BadLines`]), the format must also be given.
    pub partial: bool,
    /// Processes in cgroups, for replay. Readers ignore them.
    pub cgroups: Vec<InCgroup>,
    /// Priorities of processes, for replay. They replace those of the trace. Readers ignore them.
    pub priorities: Vec<Ionice>,
}

impl Default for ReadOptions {
    fn default() -> Self {
        Self {
            format: None,
            device: None,
            latencies: true,
            columns: None,
            time_unit: None,
            partial: false,
            cgroups: Vec::new(),
            priorities: Vec::new(),
        }
    }
}

/// A cgroup and its processes in a trace, as users write them: `db=postgres`, `db=post*`,
/// `db=4711`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InCgroup {
    /// The cgroup's name.
    pub cgroup: String,
    /// A process's name or id. `*` stands for any letters.
    pub process: String,
}

impl InCgroup {
    /// Returns whether a process matches.
    #[must_use]
    pub fn is_of(&self, pid: u32, name: &str) -> bool {
        is_of(&self.process, pid, name)
    }
}

impl FromStr for InCgroup {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.split_once('=') {
            Some((cgroup, process)) if !cgroup.is_empty() && !process.is_empty() => {
                Ok(Self { cgroup: cgroup.to_owned(), process: process.to_owned() })
            }
            _ => Err("write CGROUP=PROCESS, such as db=postgres or db=post*".to_owned()),
        }
    }
}

impl fmt::Display for InCgroup {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}={}", self.cgroup, self.process)
    }
}

/// The priority of processes of a trace, as users write it: `backup=idle`,
/// `db*=best-effort:2`, `4711=realtime:0`.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Ionice {
    /// A process's name or id. `*` stands for any letters.
    pub process: String,
    /// Class and level of the processes.
    pub ioprio: IoPriority,
}

impl Ionice {
    /// Returns whether a process matches.
    #[must_use]
    pub fn is_of(&self, pid: u32, name: &str) -> bool {
        is_of(&self.process, pid, name)
    }
}

impl FromStr for Ionice {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        // A process's name may contain an equals sign, but a class does not.
        let named = text.rsplit_once('=').filter(|(process, _)| !process.is_empty());
        let found = named.and_then(|(process, class)| Some((process, class_of(class)?)));
        match found {
            Some((process, ioprio)) => Ok(Self { process: process.to_owned(), ioprio }),
            None => Err("write PROCESS=CLASS or PROCESS=CLASS:LEVEL, such as backup=idle or db=best-effort:2; the \
             class is realtime, best-effort, idle or none, and the level is from 0 (most urgent) to 7"
                .to_owned()),
        }
    }
}

impl TryFrom<String> for Ionice {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        text.parse().map_err(|problem| format!("{text:?} {problem}"))
    }
}

impl From<Ionice> for String {
    fn from(ionice: Ionice) -> Self {
        ionice.to_string()
    }
}

impl fmt::Display for Ionice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let level = self.ioprio.level();
        match self.ioprio.class() {
            IoClass::None => write!(f, "{}=none:{level}", self.process),
            IoClass::RealTime => write!(f, "{}=realtime:{level}", self.process),
            IoClass::BestEffort => write!(f, "{}=best-effort:{level}", self.process),
            IoClass::Idle => write!(f, "{}=idle", self.process),
        }
    }
}

/// Parses a class as ionice(1) or iosched names it. A level may follow.
fn class_of(text: &str) -> Option<IoPriority> {
    let (class, level) = match text.split_once([':', '/']) {
        Some((class, level)) => (class, level.parse().ok().filter(|&level: &u8| level <= LEVEL_MAX)?),
        None => (text, LEVEL_DEFAULT),
    };
    let class = match class {
        "none" => IoClass::None,
        "realtime" | "rt" => IoClass::RealTime,
        "best-effort" | "be" => IoClass::BestEffort,
        "idle" => IoClass::Idle,
        _ => return None,
    };
    Some(IoPriority::new(class, level))
}

/// Returns whether a process matches `process`, by name, by id, or by both: `dd (1234)`.
fn is_of(process: &str, pid: u32, name: &str) -> bool {
    process == pid.to_string() || matches(process, name) || is_one_of_name(process, pid, name)
}

/// Returns whether `given` selects one of several processes with the same name, such as
/// `dd (1234)`.
#[must_use]
pub fn is_one_of_name(given: &str, pid: u32, name: &str) -> bool {
    let parts = given.strip_suffix(')').and_then(|rest| rest.rsplit_once(" ("));
    parts.is_some_and(|(process, number)| process == name && number.parse() == Ok(pid))
}

/// Returns whether a name matches a pattern.
fn matches(pattern: &str, name: &str) -> bool {
    match pattern.split_once('*') {
        None => pattern == name,
        Some((front, rest)) => name.strip_prefix(front).is_some_and(|name| {
            (0..=name.len()).filter(|&at| name.is_char_boundary(at)).any(|at| matches(rest, &name[at..]))
        }),
    }
}

/// The acceptance of incomplete data.
pub(crate) struct Accept {
    file: String,
    partial: bool,
    /// Whether the format was given instead of detected.
    given: bool,
}

impl Accept {
    pub(crate) fn of(inputs: &[Input], options: &ReadOptions) -> Self {
        let file = inputs.first().map_or_else(String::new, |input| input.name().to_owned());
        Self { file, partial: options.partial, given: options.format.is_some() || options.columns.is_some() }
    }

    /// Returns the error for incomplete data that is not accepted.
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

/// Returns the CPU number in the name of a file of blktrace.
pub(crate) fn cpu_of_name(name: &str) -> Option<u32> {
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
        None => detect(inputs, options.time_unit)?,
    };
    if options.time_unit.is_some() && !format.has_bare_times() {
        return Err(TraceError::TimeUnit { file: inputs[0].name().to_owned(), format });
    }
    if inputs.len() > 1 && format != Format::Blktrace {
        return Err(TraceError::SeveralFiles { file: inputs[1].name().to_owned(), format });
    }
    Ok(format)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ionice_argument_parses_and_prints_class_and_level() {
        for (text, ioprio, again) in [
            ("backup=idle", "idle", "backup=idle"),
            ("4711=best-effort:7", "be/7", "4711=best-effort:7"),
            ("a=b=rt/0", "rt/0", "a=b=realtime:0"),
            ("*=none", "none", "*=none:4"),
        ] {
            let given: Ionice = text.parse().unwrap();
            assert_eq!((given.ioprio, given.to_string()), (ioprio.parse().unwrap(), again.to_owned()), "{text}");
            assert_eq!(again.parse(), Ok(given));
        }
        // This is one of several processes with the same name.
        let one: Ionice = "dd (1234)=idle".parse().unwrap();
        assert_eq!([1234, 1240].map(|pid| one.is_of(pid, "dd")), [true, false]);
        assert!(!one.is_of(1234, "db"));
        for wrong in ["", "backup", "=idle", "backup=lazy", "backup=best-effort:8", "backup=idle:x"] {
            let problem = wrong.parse::<Ionice>().unwrap_err();
            assert!(problem.contains("PROCESS=CLASS"), "{wrong}: {problem}");
        }
    }
}
