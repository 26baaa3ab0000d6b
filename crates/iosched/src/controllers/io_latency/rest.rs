//! Pauses of processes of a group that does harm.

use super::IoLatency;
use crate::context::CgroupId;
use crate::controllers::site::Site;
use crate::time::{MILLISECOND_NS, SECOND_NS, Time};

/// Longest pause, ns.
const REST_MAX_NS: u64 = 250 * MILLISECOND_NS;

/// Delay of a group's processes.
#[derive(Clone, Debug, Default)]
pub(super) struct Rest {
    /// Number of steps beyond the limit of one bio at a time. 0: no process is delayed.
    pub(super) steps: u32,
    pub(super) delay_ns: u64,
    start: Time,
    last_delay_ns: u64,
    last_steps: u32,
}

impl Rest {
    /// Reduces delays that are older than a second.
    fn decay(&mut self, now: Time) {
        if self.start + SECOND_NS >= now {
            return;
        }
        let passed_ns = now.since(std::mem::replace(&mut self.start, now));
        let mut paid_ns = self.last_delay_ns.min(passed_ns);
        if self.steps < self.last_steps {
            paid_ns = paid_ns.max(self.last_delay_ns >> 1);
        }
        self.delay_ns = self.delay_ns.saturating_sub(paid_ns);
        self.last_delay_ns = self.delay_ns;
        self.last_steps = self.steps;
    }

    pub(super) fn add(&mut self, now: Time, ns: u64) {
        self.decay(now);
        self.delay_ns = self.delay_ns.wrapping_add(ns);
    }
}

impl IoLatency {
    /// Returns the pause of a process of `group` at the end of its system
    /// call, ns. The process was marked before.
    pub fn rest_ns(&mut self, site: &Site, group: CgroupId) -> u64 {
        if site.groups.is_removed(group) {
            return 0;
        }
        let mut longest_ns = 0;
        for here in site.groups.up(group).filter(|&group| group != CgroupId::ROOT) {
            let rest = &mut self.group(here).rest;
            if rest.steps > 0 {
                rest.decay(site.now);
                longest_ns = longest_ns.max(rest.delay_ns);
            }
        }
        longest_ns.min(REST_MAX_NS)
    }
}
