//! How a trace's times are used.

use anyhow::Result;
use clap::ValueEnum;
use iosched_lab::Experiment;
use iosched_sim::Replay;
use iosched_workload::Workload;

use crate::fail::usage;

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ReplayMode {
    /// Each process keeps its order and its think times: an I/O is sent its recorded think time after the completion of
    /// the one that its process waited for. Right where the recorded device and this one are not equally fast, since
    /// processes that wait for I/O send the next one later on a slower device
    Closed,
    /// I/Os arrive when they did in the recording, however fast the device is. Right where load comes from outside and
    /// waits for nothing, on a device about as fast as the recorded one; a slower one is buried in requests
    Open,
}

/// How a trace's times are used: as was asked for; else open with a speed, or where the recording does not tell which I/O waited for
/// which.
pub(crate) fn replay(mode: Option<ReplayMode>, speed: Option<f64>, workload: &Workload) -> Result<Replay> {
    if !matches!(workload, Workload::Trace(_)) && (mode.is_some() || speed.is_some()) {
        return Err(usage("--replay and --speed are for traces; other workloads say themselves when tasks submit"));
    }
    if mode == Some(ReplayMode::Closed) && speed.is_some() {
        return Err(usage(
            "--speed needs --replay open: in closed replay, processes go as fast as the device lets them",
        ));
    }
    let blind = matches!(workload, Workload::Trace(trace) if !trace.knows_completions());
    let open = mode.map_or(speed.is_some() || blind, |mode| mode == ReplayMode::Open);
    Ok(if open { Replay::Open { speed: speed.unwrap_or(1.0) } } else { Replay::Closed })
}

/// How a trace is replayed, as options.
pub(crate) fn replay_options(experiment: &Experiment, option: &mut impl FnMut(&str, String)) {
    match experiment.replay {
        _ if !matches!(experiment.workload(), Workload::Trace(_)) => {}
        Replay::Closed => option("--replay", "closed".to_owned()),
        Replay::Open { speed } => {
            option("--replay", "open".to_owned());
            option("--speed", speed.to_string());
        }
    }
}
