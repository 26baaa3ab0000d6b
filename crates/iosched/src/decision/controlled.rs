//! Decisions of controllers.

use super::io_cost::IoCostEvent;
use super::wbt::WbtEvent;
use crate::context::CgroupId;
use crate::time::Time;

/// Decision of a controller, or of the queue about its controllers.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum ControlledEvent {
    /// A bio must wait.
    Wait {
        /// Controller where the bio waits.
        controller: &'static str,
        /// Host's name for the bio.
        cookie: u64,
        /// Process of the bio.
        pid: u32,
        /// Cgroup of the bio.
        cgroup: CgroupId,
    },
    /// A bio that waited continues.
    GoOn {
        /// Controller where the bio waited.
        controller: &'static str,
        /// Host's name for the bio.
        cookie: u64,
        /// Duration of the wait, ns.
        waited_ns: u64,
    },
    /// Decision of wbt.
    Wbt(WbtEvent),
    /// Decision of io.cost.
    IoCost(IoCostEvent),
}

impl ControlledEvent {
    /// Rebases times and renames cookies: see [`Decision::rebased`](super::Decision::rebased).
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
