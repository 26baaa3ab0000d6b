//! Options that several commands share, and the parsing of their values.

mod number;
pub(crate) mod reading;
mod workload;

use clap::{Args, ValueEnum};
use iosched_lab::request::{self, ns};
use iosched_lab::verify::Limits;
use iosched_lab::{EQUAL_WITHIN_PERCENT, Experiment};
use iosched_sim::Replay;
use iosched_workload::Workload;

use crate::invocation::Rerun;

pub(crate) use number::{UNTIL_SURE_PERCENT, any_duration, or_cpus, percent, speed, whole};
pub(crate) use number::{seconds, seconds_above_0, seconds_in, whole_seconds};
pub(crate) use reading::Reading;
pub(crate) use workload::{files, open_workload, sample};

/// How differences are judged, and how much is told of them.
#[derive(Args, Debug)]
pub(crate) struct VerdictArgs {
    /// Largest difference that counts as equal, in percent of the baseline
    #[arg(long, value_name = "PERCENT", default_value_t = EQUAL_WITHIN_PERCENT, value_parser = percent)]
    pub(crate) equal_within: f64,

    /// Print everything: all metrics, all doubts about the result, and the details of each setting
    /// and device
    #[arg(long)]
    pub(crate) details: bool,
}

/// How long each run is, and from when it counts, in simulation and on real devices.
#[derive(Args, Clone, Copy, Debug)]
pub(crate) struct RunLength {
    /// Length of each run after the warm-up [default: the workload decides]
    #[arg(long, value_name = "SECONDS", help_heading = None, value_parser = seconds_above_0)]
    run_for: Option<f64>,

    /// Seconds at the start of each run that do not count in any result
    #[arg(long, value_name = "SECONDS", help_heading = None, default_value = "0", value_parser = seconds)]
    warm_up: f64,
}

impl RunLength {
    /// Returns the limits in ns.
    pub(crate) fn limits(self) -> Limits {
        Limits { warm_up_ns: ns(self.warm_up), run_for_ns: self.run_for.map(ns) }
    }

    /// Returns the warm-up, s, and the length of a run after the warm-up, s, if the user gave it.
    pub(crate) const fn seconds(self) -> (f64, Option<f64>) {
        (self.warm_up, self.run_for)
    }

    pub(crate) const fn is_default(self) -> bool {
        self.run_for.is_none() && self.warm_up == 0.0
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ReplayMode {
    /// Keep the order and the think times of each process. A process waits until its I/O completes,
    /// pauses for the recorded think time, and then sends the next I/O. Use this mode if the device
    /// is faster or slower than the recorded device
    Closed,
    /// Send each I/O at its recorded time, even if the device has not completed earlier I/Os. Use
    /// this mode if the load does not depend on the device, and the device is about as fast as the
    /// recorded device. On a slower device, requests pile up
    Open,
}

impl From<ReplayMode> for request::ReplayMode {
    fn from(mode: ReplayMode) -> Self {
        match mode {
            ReplayMode::Closed => Self::Closed,
            ReplayMode::Open => Self::Open,
        }
    }
}

/// Adds to a command line how the times of a trace are used, unless the user chose this.
pub(crate) fn replayed(line: Rerun, experiment: &Experiment) -> Rerun {
    match experiment.replay {
        _ if !matches!(experiment.workload(), Workload::Trace(_)) => line,
        Replay::Closed => line.chosen("replay", ["closed"]),
        Replay::Open { speed } => line.chosen("replay", ["open"]).chosen("speed", [speed]),
    }
}
