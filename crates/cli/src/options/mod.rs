//! What several commands take: options, the values they are read into, and what becomes of them.

mod length;
mod number;
pub(crate) mod reading;
mod replay;
mod scan;
mod scheduler;
mod verdicts;
mod words;
mod workload;

pub(crate) use length::{RunLength, ns};
pub(crate) use number::{UNTIL_SURE_PERCENT, or_cpus, percent, speed, whole};
pub(crate) use reading::Reading;
pub(crate) use replay::{ReplayMode, replay, replay_options};
pub(crate) use scan::scanned;
pub(crate) use scheduler::{setting, settings};
pub(crate) use verdicts::VerdictArgs;
pub(crate) use words::quoted;
pub(crate) use workload::{DEVICE_DEFAULT, files, machine, open_workload};

pub(crate) use number::seconds;
