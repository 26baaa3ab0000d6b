//! What controllers beside the elevator decide.

use super::io_cost::IoCostEvent;
use super::wbt::WbtEvent;
use crate::context::CgroupId;
use crate::time::Time;

/// A decision of a controller.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum ControlledEvent {
    /// A bio has to wait.
    Wait {
        /// At which controller.
        controller: &'static str,
        /// The host's name for the bio.
        cookie: u64,
        /// Its process.
        pid: u32,
        /// The group that it counts for.
        cgroup: CgroupId,
    },
    /// A bio that waited goes on.
    GoOn {
        /// At which controller it waited.
        controller: &'static str,
        /// The host's name for the bio.
        cookie: u64,
        /// How long it waited, ns.
        waited_ns: u64,
    },
    /// How wbt goes on.
    Wbt(WbtEvent),
    /// What io.cost charges, and how it goes on.
    IoCost(IoCostEvent),
}

impl ControlledEvent {
    /// See [`Decision::rebased`](super::Decision::rebased).
    pub(super) fn tell(&mut self, beginning: Time, renamed: impl Fn(u64) -> u64) {
        match self {
            Self::Wait { cookie, .. }
            | Self::GoOn { cookie, .. }
            | Self::IoCost(IoCostEvent::Admit { cookie, .. } | IoCostEvent::Merge { cookie, .. }) => {
                *cookie = renamed(*cookie);
            }
            Self::IoCost(IoCostEvent::Arm { soft, hard, .. }) => {
                for moment in [soft, hard] {
                    *moment = Time::from_ns(moment.since(beginning));
                }
            }
            Self::Wbt(_) | Self::IoCost(_) => {}
        }
    }
}
