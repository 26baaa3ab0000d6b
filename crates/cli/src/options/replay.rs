//! The use of a trace's times.

use clap::ValueEnum;
use iosched_lab::request;

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ReplayMode {
    /// Keep the order and the think times of each process. A process waits until its I/O completes, thinks as long as
    /// recorded, and sends the next I/O. Use this mode if the recorded device was faster or slower than this one
    Closed,
    /// Send I/Os at their recorded times, even if the device is late. Use this mode if the load comes from outside and
    /// the device is about as fast as the recorded one. On a slower device, requests pile up
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
