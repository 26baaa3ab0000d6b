//! Command lines that users can copy into a shell.
//!
//! The crate `shlex` is not used, because it would quote `cfq:slice_idle=0`, which every shell
//! accepts without quotes.

use std::fmt;

use iosched_sim::Replay;
use iosched_trace::ReadOptions;
use iosched_workload::Workload;

use crate::compare::EQUAL_WITHIN_PERCENT;
use crate::experiment::Experiment;

/// Quotes a word for a POSIX shell, if necessary.
pub fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "_-./:=,@+%".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', r"'\''"))
    }
}

/// Command line that makes the same request. It is for requests that were not made on a command
/// line, such as from Python.
#[derive(Debug)]
pub(super) struct CommandLine(String);

impl CommandLine {
    /// Starts the line of one of iosched's commands.
    pub(super) fn of(command: &str) -> Self {
        Self(format!("iosched {command}"))
    }

    /// Adds a word.
    pub(super) fn word(&mut self, word: impl fmt::Display) {
        self.0.push(' ');
        self.0 += &quoted(&word.to_string());
    }

    /// Adds an option and its value.
    pub(super) fn option(&mut self, name: &str, value: impl fmt::Display) {
        self.word(name);
        self.word(value);
    }

    /// Adds an option once for each value.
    pub(super) fn options<V: fmt::Display>(&mut self, name: &str, values: impl IntoIterator<Item = V>) {
        values.into_iter().for_each(|value| self.option(name, value));
    }

    /// Adds the options for reading a trace.
    pub(super) fn reading(&mut self, reading: &ReadOptions) {
        self.options("--input-format", reading.format);
        self.options("--columns", &reading.columns);
        self.options("--time-unit", reading.time_unit);
        if reading.partial {
            self.word("--partial");
        }
        self.options("--cgroup", &reading.cgroups);
        self.options("--ionice", &reading.priorities);
    }

    /// Adds the options for the replay of a trace.
    pub(super) fn replay(&mut self, experiment: &Experiment) {
        match experiment.replay {
            _ if !matches!(experiment.workload(), Workload::Trace(_)) => {}
            Replay::Closed => self.option("--replay", "closed"),
            Replay::Open { speed } => {
                self.option("--replay", "open");
                self.option("--speed", speed);
            }
        }
    }

    /// Adds the options for the warm-up and, if given, for the length of the run after it. Both are
    /// in seconds.
    pub(super) fn length(&mut self, run_for_s: Option<f64>, warm_up_s: f64) {
        self.options("--run-for", run_for_s);
        if warm_up_s > 0.0 {
            self.option("--warm-up", warm_up_s);
        }
    }

    /// Adds the option for the bound of equality, unless the bound is the default.
    pub(super) fn equal_within(&mut self, percent: f64) {
        if percent != EQUAL_WITHIN_PERCENT {
            self.option("--equal-within", percent);
        }
    }
}

impl fmt::Display for CommandLine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
