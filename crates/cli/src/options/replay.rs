//! How a trace's times are used.

use clap::ValueEnum;
use iosched_lab::asked;

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

impl From<ReplayMode> for asked::ReplayMode {
    fn from(mode: ReplayMode) -> Self {
        match mode {
            ReplayMode::Closed => Self::Closed,
            ReplayMode::Open => Self::Open,
        }
    }
}
