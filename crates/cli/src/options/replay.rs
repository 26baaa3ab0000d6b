//! The use of a trace's times.

use clap::ValueEnum;
use iosched_lab::{Experiment, request};
use iosched_sim::Replay;
use iosched_workload::Workload;

use crate::invocation::Rerun;

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

/// Writes out how the times of a trace are used, unless the user chose it.
pub(crate) fn replayed(line: Rerun, experiment: &Experiment) -> Rerun {
    match experiment.replay {
        _ if !matches!(experiment.workload(), Workload::Trace(_)) => line,
        Replay::Closed => line.chosen("replay", ["closed"]),
        Replay::Open { speed } => line.chosen("replay", ["open"]).chosen("speed", [speed]),
    }
}
