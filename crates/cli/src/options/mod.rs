//! Options that several commands share, and the parsing of their values.

mod length;
mod number;
pub(crate) mod reading;
mod replay;
mod verdicts;
mod workload;

pub(crate) use length::RunLength;
pub(crate) use number::{UNTIL_SURE_PERCENT, any_duration, or_cpus, percent, speed, whole};
pub(crate) use reading::Reading;
pub(crate) use replay::{ReplayMode, replayed};
pub(crate) use verdicts::VerdictArgs;
pub(crate) use workload::{files, open_workload, sample};

pub(crate) use number::{seconds, seconds_above_0, seconds_in, whole_seconds};
