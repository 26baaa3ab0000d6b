//! io.cost: cgroups share a device by weight. A group's use of the device is the sum of the costs
//! of its bios. The rules are those of Linux 6.12.
//!
//! A model gives the cost of a bio. Virtual time measures the capacity of the device that was
//! available so far. A group may spend its share of this capacity. A bio that exceeds the budget of
//! its group waits. If the bio must not wait, its cost becomes a debt. In each period, groups
//! donate shares that they do not use, and the rate of virtual time follows the performance of the
//! device.
//!
//! | call | when |
//! |---|---|
//! | [`IoCost::throttle`] | a bio joined no request, before it requests a tag |
//! | [`IoCost::merged`] | a bio joins a request, before the request grows |
//! | [`IoCost::completed`] | a request is complete |
//! | [`IoCost::next_timer`], [`IoCost::timer`] | timers of groups, exact to the nanosecond |
//! | [`IoCost::fire`] | a timer of [`Site::wheel`] fires: the period may end |
//! | [`IoCost::write`], [`IoCost::read`] | files of the cgroup file system |
//! | [`IoCost::group_left`] | a group was removed and has no bios in flight any more |
//! | [`IoCost::rest_ns`] | a process marked by [`Site::rests`] returns to user space |
//!
//! The host calls [`write`](IoCost::write) for qos and model only while no bio is in flight.
//!
//! # Source files
//!
//! | file | content |
//! |---|---|
//! | `admission.rs` | whether a bio passes, waits or becomes a debt; when a group becomes active |
//! | `kick.rs` | release of waiting bios, the time of the next check, payment of debts |
//! | `delay.rs` | pauses of processes of a group in debt |
//! | `period.rs` | the steps at the end of a period; which groups are idle, short, lagging or donors |
//! | `donation.rs` | the weights of donors |
//! | `rate.rs` | the rate of virtual time |
//! | `forgiveness.rs` | reduction of debts |
//! | `settings.rs` | reading and writing of files, and the values that follow from settings |
//! | `files.rs`, `table.rs` | the text of files; the default parameters of a device |
//! | `model.rs`, `share.rs`, `clock.rs` | costs, shares, virtual time |
//! | `tree.rs`, `group.rs` | groups, their weights and their state |
//! | `stat.rs`, `timers.rs` | statistics; timers of groups |

mod admission;
mod clock;
mod delay;
mod donation;
mod files;
mod forgiveness;
mod group;
mod kick;
mod model;
mod period;
mod rate;
mod settings;
mod share;
mod stat;
mod table;
#[cfg(test)]
mod tests;
mod timers;
mod tree;

pub use files::IoCostFile;
pub use model::BioCosts;

use clock::Clock;
use forgiveness::Forgiveness;
use period::Periods;
use rate::Load;
use settings::Settings;
use timers::GroupTimers;
use tree::Tree;

use super::event::ControllerEvent;
use super::site::Site;
use super::wheel::TimerId;
use crate::context::CgroupId;
use crate::decision::IoCostEvent;
use crate::time::Time;

/// Controller io.cost of one device.
#[derive(Clone, Debug)]
pub struct IoCost {
    settings: Settings,
    clock: Clock,
    tree: Tree,
    /// Timers of groups with waiting bios.
    timers: GroupTimers,
    periods: Periods,
    load: Load,
    forgiveness: Forgiveness,
}

impl IoCost {
    /// Creates the controller of a device that takes `depth` requests at the same time. The
    /// controller is off until `enable=1` is written to `io.cost.qos`.
    pub fn new(site: &mut Site, rotational: bool, depth: u32) -> Self {
        Self {
            settings: Settings::new(rotational, depth),
            clock: Clock::new(),
            tree: Tree::new(),
            timers: GroupTimers::default(),
            periods: Periods::new(site.wheel.create()),
            load: Load::default(),
            forgiveness: Forgiveness::default(),
        }
    }

    /// Returns when a group's timer next fires, if any is set.
    #[must_use]
    pub fn next_timer(&self) -> Option<Time> {
        self.timers.next()
    }

    /// Fires the timers of groups that are due, or that may already fire.
    pub fn timer(&mut self, site: &mut Site) {
        while let Some(group) = self.timers.fire(site.now) {
            note(site, IoCostEvent::Timer { group });
            let at = self.clock.at(site.now);
            self.kick(site, group, &at, None);
        }
    }

    /// Handles a timer of the wheel. If it is the timer of the period, the period ends.
    pub fn fire(&mut self, site: &mut Site, timer: TimerId) {
        if timer == self.periods.timer {
            self.end_period(site);
        }
    }

    /// Handles a removed group whose last bio is complete. Until then, the
    /// group keeps its share and its waiting bios.
    pub fn group_left(&mut self, site: &mut Site, group: CgroupId) {
        self.tree.know(&site.groups);
        self.tree[group].left = true;
        self.free_if_gone(site, group);
    }

    /// Returns whether a group was removed and freed.
    #[must_use]
    pub fn is_freed(&self, group: CgroupId) -> bool {
        self.tree.get(group).is_some_and(|group| group.freed)
    }

    /// Frees a removed group without bios and child groups. Its
    /// debt and its unspent budget are dropped.
    fn free_if_gone(&mut self, site: &mut Site, group: CgroupId) {
        let state = &mut self.tree[group];
        if !state.left || state.freed || state.children > 0 {
            return;
        }
        debug_assert!(state.waiting.is_empty(), "a bio that waits holds its group");
        state.freed = true;
        note(site, IoCostEvent::Free { group });
        self.timers.cancel(group);
        if self.tree[group].active {
            self.tree.deactivate(group);
            self.tree.commit();
        }
        let state = &mut self.tree[group];
        (state.debt, state.delay_us) = (0, 0);
        self.report_delay(site, group, 0);
        if let Some(parent) = self.tree[group].parent {
            self.tree[parent].children -= 1;
            self.free_if_gone(site, parent);
        }
    }

    /// Returns the pause of a process of `group`, ns: the
    /// longest delay of the group and its ancestors.
    #[must_use]
    pub fn rest_ns(&self, site: &Site, group: CgroupId) -> u64 {
        let delays = site.groups.up(group).filter_map(|group| self.tree.get(group));
        delays.filter(|group| group.delayed).map(|group| group.delay_reported_ns).max().unwrap_or(0)
    }
}

/// Records a decision if recording is on.
fn note(site: &mut Site, event: IoCostEvent) {
    site.note(|| ControllerEvent::IoCost(event));
}
