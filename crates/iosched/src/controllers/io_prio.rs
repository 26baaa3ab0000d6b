//! io.prio.class: sets the ioprio class of a group's
//! requests, instead of the class of its processes.
//!
//! io.prio.class holds no bios. It has an effect under mq-deadline, which uses the class of each
//! request. It has no effect under bfq, which uses the class that the process set. A policy applies
//! to the group's own processes, but not to processes of groups below. The source is the
//! documentation of cgroups in Linux 6.12.

use super::bio_state::{BioId, Passage};
use super::controller::Controller;
use super::site::Site;
use super::write_error::WriteError;
use crate::context::{CgroupId, IoClass, IoPriority};

/// Policy for an ioprio.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
enum Policy {
    /// The ioprio stays the same.
    #[default]
    NoChange,
    /// An ioprio outside of the real-time class becomes real time at level 4.
    PromoteToRt,
    /// An ioprio above best effort, or an unset ioprio, becomes best effort at its highest level.
    RestrictToBe,
    /// Every ioprio becomes the idle class.
    Idle,
}

impl Policy {
    const ALL: [(Self, &'static str); 4] = [
        (Self::NoChange, "no-change"),
        (Self::PromoteToRt, "promote-to-rt"),
        (Self::RestrictToBe, "restrict-to-be"),
        (Self::Idle, "idle"),
    ];

    fn parse(text: &str) -> Option<Self> {
        // A name of earlier kernels is still accepted.
        let text = if text == "none-to-rt" { "promote-to-rt" } else { text };
        Self::ALL.into_iter().find(|&(_, name)| name == text).map(|(policy, _)| policy)
    }

    fn name(self) -> &'static str {
        Self::ALL.into_iter().find(|&(policy, _)| policy == self).map_or("no-change", |(_, name)| name)
    }

    fn apply(self, ioprio: IoPriority) -> IoPriority {
        match (self, ioprio.class) {
            (Self::PromoteToRt, class) if class != IoClass::RealTime => IoPriority::new(IoClass::RealTime, 4),
            (Self::RestrictToBe, IoClass::None | IoClass::RealTime) => IoPriority::new(IoClass::BestEffort, 0),
            (Self::Idle, class) if class != IoClass::Idle => IoPriority::new(IoClass::Idle, 0),
            _ => ioprio,
        }
    }
}

/// Policies of all groups.
#[derive(Debug, Default)]
pub(super) struct IoPrio {
    /// Policies by group; groups without an entry have no policy.
    policies: Vec<Policy>,
}

impl Controller for IoPrio {
    fn name(&self) -> &'static str {
        "io.prio"
    }

    fn enter(&mut self, site: &mut Site, bio_id: BioId) -> Passage {
        let state = &mut site.bios[bio_id];
        if let Some(policy) = self.policies.get(state.cgroup.index()) {
            state.ioprio = policy.apply(state.ioprio);
        }
        Passage::Pass
    }

    fn begins_when_written(&self) -> bool {
        true
    }

    fn files(&self) -> &'static [&'static str] {
        &["io.prio.class"]
    }

    fn write(&mut self, _: &mut Site, _: &str, group: CgroupId, text: &str) -> Result<(), WriteError> {
        let policy = Policy::parse(text.trim()).ok_or(WriteError::Invalid)?;
        if self.policies.len() <= group.index() {
            self.policies.resize(group.index() + 1, Policy::NoChange);
        }
        self.policies[group.index()] = policy;
        Ok(())
    }

    fn read(&self, _: &str, group: CgroupId) -> String {
        self.policies.get(group.index()).copied().unwrap_or_default().name().to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn policies_change_each_class_as_documented() {
        let given = ["none", "rt/2", "rt/5", "be/0", "be/6", "idle"];
        let all = |policy: &str| {
            let policy = Policy::parse(policy).unwrap();
            given.map(|ioprio| policy.apply(ioprio.parse().unwrap()).to_string())
        };
        assert_eq!(all("no-change"), given);
        assert_eq!(all("promote-to-rt"), ["rt/4", "rt/2", "rt/5", "rt/4", "rt/4", "rt/4"]);
        assert_eq!(all("none-to-rt"), all("promote-to-rt"));
        assert_eq!(all("restrict-to-be"), ["be/0", "be/0", "be/0", "be/0", "be/6", "idle"]);
        assert_eq!(all("idle"), ["idle"; 6]);
        assert_eq!(Policy::parse("rt"), None);
    }
}
