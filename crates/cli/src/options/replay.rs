//! How a trace's times are used.

use clap::ValueEnum;
use iosched_lab::asked;

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ReplayMode {
    /// Keep the order and the think times of each process: it sends an I/O its recorded think time after the I/O that
    /// it waited for completes. Use it if the recorded device was faster or slower than this one
    Closed,
    /// Send I/Os at their recorded times, whatever the speed of the device. Use it if the load comes from outside and
    /// the device is about as fast as the recorded one; on a slower one, requests pile up
    Open,
}

impl From<ReplayMode> for asked::ReplayMode {
    fn from(mode: ReplayMode) -> Self {
        match mode {
            ReplayMode::Closed => Self::Closed,
            ReplayMode::Open => Self::Open,
        }
    }
}
