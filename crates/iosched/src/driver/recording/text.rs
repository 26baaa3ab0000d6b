//! Records as lines of text: the time in ns, a word for the kind of
//! record, and its fields, separated by spaces.

use std::fmt;
use std::str::{FromStr, SplitWhitespace};

use super::{DecisionText, Record, Rerun, What};
use crate::context::{Cgroup, CgroupId, ContextId};
use crate::issued::{Issued, Part};
use crate::kernel::KernelVersion;
use crate::parts::tags::TagLayout;
use crate::queue::{IoError, QueueConfig};
use crate::request::{Bio, Flags, Op};
use crate::time::Time;

/// Mark of a missing value.
const NONE: &str = "-";

/// Error in a line of a recording.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RecordError {
    /// The line does not begin with a time.
    #[error("{given:?} is not a time in ns; a record consists of a time, a kind and fields")]
    Time {
        /// The text instead of the time.
        given: String,
    },
    /// The kind of record does not exist.
    #[error("there is no kind of record {given:?}; available: {}", KINDS.join(", "))]
    Kind {
        /// The text instead of the kind.
        given: String,
    },
    /// The line ends too early.
    #[error("{kind}: the field {part} is missing")]
    Missing {
        /// Kind of the record.
        kind: String,
        /// The missing field.
        part: &'static str,
    },
    /// A field is not valid.
    #[error("{kind}: {given:?} is not a valid {part}")]
    Part {
        /// Kind of the record.
        kind: String,
        /// The field.
        part: &'static str,
        /// The text of the field.
        given: String,
    },
    /// Text follows after the last field.
    #[error("{kind}: unexpected trailing text {rest:?}")]
    Rest {
        /// Kind of the record.
        kind: String,
        /// The trailing text.
        rest: String,
    },
}

/// Words for the kinds of records.
const KINDS: &[&str] = &[
    "queue",
    "depth",
    "complete",
    "requeue",
    "timer",
    "rerun",
    "submit",
    "plug",
    "unplug",
    "decline",
    "context",
    "ioprio",
    "exit",
    "yield",
    "cgroup",
    "weights",
    "move",
    "remove",
    "attribute",
    "tunable",
    "switch",
    "turn",
    "decision",
];

/// Value that may be missing.
struct Maybe<T>(Option<T>);

impl<T: fmt::Display> fmt::Display for Maybe<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Some(value) => value.fmt(f),
            None => f.write_str(NONE),
        }
    }
}

/// Replaces control characters, so that a name fits on one line.
fn one_line(name: &str) -> String {
    name.chars().map(|letter| if letter.is_control() { '?' } else { letter }).collect()
}

impl<D: Clone + Into<DecisionText>> fmt::Display for Record<D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ", self.at.as_ns())?;
        match &self.what {
            What::Queue { config, elevator, rerun } => {
                let &QueueConfig { hz, rotational, groups, command_queueing, write_cache, fua, barriers, .. } = config;
                let &QueueConfig { max_hw_sectors_kb, depth, hw_queues, tag_layout, .. } = config;
                write!(f, "queue {elevator} {hz} {rotational} {groups} {} {write_cache}", Maybe(command_queueing))?;
                write!(f, " {fua} {barriers} {max_hw_sectors_kb} {depth} {hw_queues}")?;
                f.write_str(if tag_layout == TagLayout::Spread { " spread" } else { " compact" })?;
                match *rerun {
                    Rerun::Never => f.write_str(" never"),
                    Rerun::DeviceIdle { after_ns, drain_ns } => write!(f, " idle {after_ns} {drain_ns}"),
                    Rerun::Barren { after_ns } => write!(f, " barren {after_ns}"),
                }?;
                f.write_str(if config.run_at_insertion { " insertions" } else { "" })?;
                f.write_str(if config.throttles_writeback { " wbt" } else { "" })?;
                f.write_str(if config.driver_has_budget { "" } else { " no-budget" })?;
                if config.kernel == KernelVersion::default() { Ok(()) } else { write!(f, " {}", config.kernel) }
            }
            What::Depth(depth) => write!(f, "depth {depth}"),
            What::Complete { request, result } => {
                write!(f, "complete {request} {}", Maybe(result.err().map(|IoError(errno)| errno)))
            }
            What::Requeue(request) => write!(f, "requeue {request}"),
            What::Timer => f.write_str("timer"),
            What::Rerun => f.write_str("rerun"),
            What::Submit(bio, Issued { ioprio, part, at_head }) => {
                let &Bio { op, flags, sector, nr_sectors, context, cookie } = bio;
                write!(f, "submit {} {} {sector} {nr_sectors}", op.letter(), flags.bits())?;
                write!(f, " {} {cookie} {}", context.index(), Maybe(*ioprio))?;
                match part {
                    Part::Whole => Ok(()),
                    Part::First { of_sectors } => write!(f, " of {of_sectors}"),
                    Part::Rest => f.write_str(" rest"),
                }?;
                f.write_str(if *at_head { " head" } else { "" })
            }
            What::Plug(context) => write!(f, "plug {}", context.index()),
            What::Unplug(context) => write!(f, "unplug {}", context.index()),
            What::Decline(context) => write!(f, "decline {}", context.index()),
            What::Context { pid, ioprio, cgroup } => write!(f, "context {pid} {ioprio} {}", cgroup.index()),
            What::IoPriority(context, ioprio) => write!(f, "ioprio {} {ioprio}", context.index()),
            What::Exit(context) => write!(f, "exit {}", context.index()),
            What::Yield { from, to } => write!(f, "yield {} {}", from.index(), to.index()),
            What::DirtierSleeps(context) => write!(f, "dirtier-sleeps {}", context.index()),
            What::Cgroup(Cgroup { name, parent, weight, leaf_weight }) => {
                let parent = parent.map(CgroupId::index);
                let (weight, leaf_weight) = (Maybe(*weight), Maybe(*leaf_weight));
                write!(f, "cgroup {} {weight} {leaf_weight} {}", Maybe(parent), one_line(name))
            }
            What::Weights { cgroup, weight, leaf_weight } => {
                write!(f, "weights {} {} {}", cgroup.index(), Maybe(*weight), Maybe(*leaf_weight))
            }
            What::Move(context, cgroup) => write!(f, "move {} {}", context.index(), cgroup.index()),
            What::Remove(cgroup) => write!(f, "remove {}", cgroup.index()),
            What::CgroupAttribute { cgroup, name, value } => {
                write!(f, "cgroup-attribute {} {} {}", cgroup.index(), one_line(name), one_line(value))
            }
            What::Attribute { name, value } => write!(f, "attribute {} {}", one_line(name), one_line(value)),
            What::Tunable { name, value } => write!(f, "tunable {} {}", one_line(name), one_line(value)),
            What::Switch(elevator) => write!(f, "switch {elevator}"),
            What::Turn => f.write_str("turn"),
            What::Decision(decision) => write!(f, "decision {}", decision.clone().into()),
        }
    }
}

/// Remaining fields of a line.
struct Parts<'a> {
    kind: &'a str,
    words: SplitWhitespace<'a>,
}

impl<'a> Parts<'a> {
    fn word(&mut self, part: &'static str) -> Result<&'a str, RecordError> {
        self.words.next().ok_or_else(|| RecordError::Missing { kind: self.kind.to_owned(), part })
    }

    fn wrong(&self, part: &'static str, given: &str) -> RecordError {
        RecordError::Part { kind: self.kind.to_owned(), part, given: given.to_owned() }
    }

    fn next<T: FromStr>(&mut self, part: &'static str) -> Result<T, RecordError> {
        let word = self.word(part)?;
        word.parse().map_err(|_| self.wrong(part, word))
    }

    fn maybe<T: FromStr>(&mut self, part: &'static str) -> Result<Option<T>, RecordError> {
        let word = self.word(part)?;
        if word == NONE { Ok(None) } else { word.parse().map(Some).map_err(|_| self.wrong(part, word)) }
    }

    fn context(&mut self) -> Result<ContextId, RecordError> {
        self.next("process").map(ContextId)
    }

    fn cgroup(&mut self) -> Result<CgroupId, RecordError> {
        self.next("cgroup").map(CgroupId)
    }

    fn op(&mut self) -> Result<Op, RecordError> {
        let word = self.word("operation")?;
        let all = [Op::Read, Op::Write, Op::Discard, Op::WriteZeroes, Op::Flush];
        let found = all.into_iter().find(|op| word.chars().eq([op.letter()]));
        found.ok_or_else(|| self.wrong("operation (R, W, D, Z or F)", word))
    }

    fn rest(&mut self) -> String {
        let words: Vec<&str> = self.words.by_ref().collect();
        words.join(" ")
    }

    fn queue(&mut self) -> Result<What<DecisionText>, RecordError> {
        let elevator = self.next("elevator")?;
        let mut config = QueueConfig {
            hz: self.next("hz")?,
            rotational: self.next("rotational")?,
            groups: self.next("groups")?,
            command_queueing: self.maybe("command queueing")?,
            write_cache: self.next("write cache")?,
            fua: self.next("fua")?,
            barriers: self.next("barriers")?,
            max_hw_sectors_kb: self.next("max_hw_sectors_kb")?,
            depth: self.next("depth")?,
            hw_queues: self.next("hw_queues")?,
            tag_layout: match self.word("tag layout")? {
                "spread" => TagLayout::Spread,
                "compact" => TagLayout::Compact,
                other => return Err(self.wrong("tag layout", other)),
            },
            run_at_insertion: false,
            throttles_writeback: false,
            kernel: KernelVersion::default(),
            driver_has_budget: true,
            // No decision depends on the other values.
            ..QueueConfig::default()
        };
        let rerun = match self.word("rerun")? {
            "never" => Rerun::Never,
            "idle" => Rerun::DeviceIdle { after_ns: self.next("time in ns")?, drain_ns: self.next("time in ns")? },
            "barren" => Rerun::Barren { after_ns: self.next("time in ns")? },
            other => return Err(self.wrong("rerun", other)),
        };
        while let Some(word) = self.words.next() {
            match word {
                "insertions" => config.run_at_insertion = true,
                "wbt" => config.throttles_writeback = true,
                "no-budget" => config.driver_has_budget = false,
                other => match other.parse() {
                    Ok(kernel) => config.kernel = kernel,
                    Err(_) => return Err(self.wrong("option (insertions, wbt, no-budget or a kernel version)", other)),
                },
            }
        }
        Ok(What::Queue { config, elevator, rerun })
    }

    fn what(&mut self) -> Result<What<DecisionText>, RecordError> {
        Ok(match self.kind {
            "queue" => self.queue()?,
            "depth" => What::Depth(self.next("number of requests")?),
            "complete" => What::Complete {
                request: self.next("request")?,
                result: self.maybe("error")?.map_or(Ok(()), |errno| Err(IoError(errno))),
            },
            "requeue" => What::Requeue(self.next("request")?),
            "timer" => What::Timer,
            "rerun" => What::Rerun,
            "submit" => {
                let op = self.op()?;
                let flags = Flags::from_bits_retain(self.next("flags")?);
                let (sector, nr_sectors) = (self.next("sector")?, self.next("number of sectors")?);
                let (context, cookie) = (self.context()?, self.next("cookie")?);
                let ioprio = self.maybe("ioprio")?;
                let (mut part, mut at_head) = (Part::Whole, false);
                while let Some(word) = self.words.next() {
                    match word {
                        "of" => part = Part::First { of_sectors: self.next("number of sectors")? },
                        "rest" => part = Part::Rest,
                        "head" => at_head = true,
                        other => return Err(self.wrong("of, rest or head", other)),
                    }
                }
                What::Submit(Bio { op, flags, sector, nr_sectors, context, cookie }, Issued { ioprio, part, at_head })
            }
            "plug" => What::Plug(self.context()?),
            "unplug" => What::Unplug(self.context()?),
            "decline" => What::Decline(self.context()?),
            "context" => What::Context { pid: self.next("pid")?, ioprio: self.next("ioprio")?, cgroup: self.cgroup()? },
            "ioprio" => What::IoPriority(self.context()?, self.next("ioprio")?),
            "exit" => What::Exit(self.context()?),
            "yield" => What::Yield { from: self.context()?, to: self.context()? },
            "dirtier-sleeps" => What::DirtierSleeps(self.context()?),
            "cgroup" => What::Cgroup(Cgroup {
                parent: self.maybe("cgroup")?.map(CgroupId),
                weight: self.maybe("weight")?,
                leaf_weight: self.maybe("weight")?,
                name: self.rest(),
            }),
            "weights" => What::Weights {
                cgroup: self.cgroup()?,
                weight: self.maybe("weight")?,
                leaf_weight: self.maybe("weight")?,
            },
            "move" => What::Move(self.context()?, self.cgroup()?),
            "remove" => What::Remove(self.cgroup()?),
            "cgroup-attribute" => {
                What::CgroupAttribute { cgroup: self.cgroup()?, name: self.next("name")?, value: self.rest() }
            }
            "attribute" => What::Attribute { name: self.next("name")?, value: self.rest() },
            "tunable" => What::Tunable { name: self.next("name")?, value: self.rest() },
            "switch" => What::Switch(self.next("elevator")?),
            "turn" => What::Turn,
            "decision" => What::Decision(DecisionText(self.rest().into())),
            other => return Err(RecordError::Kind { given: other.to_owned() }),
        })
    }
}

impl Record<DecisionText> {
    /// Parses a line.
    ///
    /// # Errors
    /// Fails if the line is not a record.
    pub fn parse(line: &str) -> Result<Self, RecordError> {
        let mut words = line.split_whitespace();
        let first = words.next().unwrap_or_default();
        let at = first.parse().map(Time::from_ns).map_err(|_| RecordError::Time { given: first.to_owned() })?;
        let kind = words.next().unwrap_or_default();
        let mut parts = Parts { kind, words };
        let what = parts.what()?;
        let rest = parts.rest();
        if !rest.is_empty() {
            return Err(RecordError::Rest { kind: kind.to_owned(), rest });
        }
        Ok(Self { at, what })
    }
}
