//! Command lines that people may copy.
//!
//! `shlex` would put quotes round `cfq:slice_idle=0`, which every shell takes as it is.

use std::fmt;

use iosched_sim::Replay;
use iosched_trace::ReadOptions;
use iosched_workload::Workload;

use crate::compare::EQUAL_WITHIN_PERCENT;
use crate::experiment::Experiment;

/// As a POSIX shell wants it.
pub fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "_-./:=,@+%".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', r"'\''"))
    }
}

/// A command line, written word by word.
#[derive(Debug)]
pub struct CommandLine(String);

impl CommandLine {
    /// Of one of iosched's commands.
    #[must_use]
    pub fn of(command: &str) -> Self {
        Self(format!("iosched {command}"))
    }

    /// One more word.
    pub fn word(&mut self, word: impl fmt::Display) {
        self.0.push(' ');
        self.0 += &quoted(&word.to_string());
    }

    /// An option and its value.
    pub fn option(&mut self, name: &str, value: impl fmt::Display) {
        self.word(name);
        self.word(value);
    }

    /// An option, once for each value.
    pub fn options<V: fmt::Display>(&mut self, name: &str, values: impl IntoIterator<Item = V>) {
        values.into_iter().for_each(|value| self.option(name, value));
    }

    /// An option with all values in one word, if there are any.
    pub fn list<S: AsRef<str>>(&mut self, name: &str, values: impl IntoIterator<Item = S>) {
        let mut word = String::new();
        for value in values {
            word += if word.is_empty() { "" } else { "," };
            word += value.as_ref();
        }
        self.options(name, Some(word).filter(|word| !word.is_empty()));
    }

    /// How a trace is read.
    pub fn reading(&mut self, reading: &ReadOptions) {
        self.options("--input-format", reading.format);
        self.options("--columns", &reading.columns);
        self.options("--time-unit", reading.time_unit);
        self.options("--cgroup", &reading.cgroups);
        self.options("--ionice", &reading.priorities);
        if reading.partial {
            self.word("--partial");
        }
    }

    /// How a trace is replayed.
    pub fn replay(&mut self, experiment: &Experiment) {
        match experiment.replay {
            _ if !matches!(experiment.workload(), Workload::Trace(_)) => {}
            Replay::Closed => self.option("--replay", "closed"),
            Replay::Open { speed } => {
                self.option("--replay", "open");
                self.option("--speed", speed);
            }
        }
    }

    /// How long runs are after their warm-up, if that is said, and the warm-up, seconds.
    pub fn length(&mut self, run_for_s: Option<f64>, warm_up_s: f64) {
        self.options("--run-for", run_for_s);
        if warm_up_s > 0.0 {
            self.option("--warm-up", warm_up_s);
        }
    }

    /// Within what differences matter to nobody.
    pub fn equal_within(&mut self, percent: f64) {
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
