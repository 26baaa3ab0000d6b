//! What readers of any kind share: their options, their inputs, the format, and what less than the whole will do.

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

/// How to read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReadOptions {
    /// The format; `None` to tell it by content, then by name.
    pub format: Option<Format>,
    /// Only requests to this device. `None`: in a block trace, all that were not passed on from another traced
    /// device; in others, all.
    pub device: Option<u32>,
    /// Whether to look for completions in block traces. Without, requests are not held for them and
    /// [`TraceRequest::latency_ns`](crate::TraceRequest::latency_ns) is `None`.
    pub latencies: bool,
    /// Read as a table with these columns ([`Format::Csv`]), whatever its first line says.
    pub columns: Option<Columns>,
    /// The unit of times that are bare numbers, instead of the one that the format assumes. Only
    /// for formats of bare times ([`Format::has_bare_times`]); they may then have decimals.
    pub time_unit: Option<TimeUnit>,
    /// Whether less than the whole recording will do. Without, the last item of a part is [`TraceError::Partial`].
    /// Where more than a small share of the lines are bad ([`TraceError::BadLines`]), the format must be given, too.
    pub partial: bool,
    /// Which processes are in which cgroups, for whoever replays the trace: readers look at none of it.
    pub cgroups: Vec<InCgroup>,
    /// Priorities of processes, likewise; they replace those of the trace.
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

/// Processes of a trace that are in a cgroup, as users write it: `db=postgres`, `db=post*`, `db=4711`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InCgroup {
    /// The cgroup's name.
    pub cgroup: String,
    /// A process' name or id; `*` stands for any letters.
    pub process: String,
}

impl InCgroup {
    /// Whether a process is meant.
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

/// The priority of processes of a trace, as users write it: `backup=idle`, `db*=best-effort:2`, `4711=realtime:0`.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Ionice {
    /// A process' name or id; `*` stands for any letters.
    pub process: String,
    /// Its class and level.
    pub ioprio: IoPriority,
}

impl Ionice {
    /// Whether a process is meant.
    #[must_use]
    pub fn is_of(&self, pid: u32, name: &str) -> bool {
        is_of(&self.process, pid, name)
    }
}

impl FromStr for Ionice {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        // A process' name may hold an equals sign; a class does not.
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

/// A class as ionice(1) or as iosched calls it, perhaps with its level.
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

/// Whether a process is the one called `process`, by name, id, or both: `dd (1234)`.
fn is_of(process: &str, pid: u32, name: &str) -> bool {
    process == pid.to_string() || matches(process, name) || is_one_of_name(process, pid, name)
}

/// Whether `given` names one process of several that have the same name, as `dd (1234)`.
#[must_use]
pub fn is_one_of_name(given: &str, pid: u32, name: &str) -> bool {
    let parts = given.strip_suffix(')').and_then(|rest| rest.rsplit_once(" ("));
    parts.is_some_and(|(of, number)| of == name && number.parse() == Ok(pid))
}

/// Whether a name is as a pattern says.
fn matches(pattern: &str, name: &str) -> bool {
    match pattern.split_once('*') {
        None => pattern == name,
        Some((front, rest)) => name.strip_prefix(front).is_some_and(|name| {
            (0..=name.len()).filter(|&at| name.is_char_boundary(at)).any(|at| matches(rest, &name[at..]))
        }),
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
    fn a_priority_is_written_as_ionice_names_it() {
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
        // One process of several that have the same name.
        let one: Ionice = "dd (1234)=idle".parse().unwrap();
        assert_eq!([1234, 1240].map(|pid| one.is_of(pid, "dd")), [true, false]);
        assert!(!one.is_of(1234, "db"));
        for wrong in ["", "backup", "=idle", "backup=lazy", "backup=best-effort:8", "backup=idle:x"] {
            let problem = wrong.parse::<Ionice>().unwrap_err();
            assert!(problem.contains("PROCESS=CLASS"), "{wrong}: {problem}");
        }
    }
}
