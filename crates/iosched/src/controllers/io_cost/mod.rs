//! io.cost: cgroups share a device by weight, in units of what each bio costs it, as in Linux 6.12.
//!
//! A model says what a bio costs. Virtual time says how much of the device there has been; a group may spend its share
//! of it, and a bio that its group cannot pay for waits, or, if it must not wait, is owed for. Period by period groups
//! lend what they do not use, and virtual time is made faster or slower by how the device does.
//!
//! | call | when |
//! |---|---|
//! | [`IoCost::throttle`] | it joined no request, before it asks for a tag |
//! | [`IoCost::merged`] | it joins a request, before the request grows |
//! | [`IoCost::completed`] | a request is done |
//! | [`IoCost::next_timer`], [`IoCost::timer`] | timers of groups, exact to the nanosecond |
//! | [`IoCost::fire`] | a timer of [`Site::wheel`] fires: the period may end |
//! | [`IoCost::write`], [`IoCost::read`] | files of the cgroup file system |
//! | [`IoCost::group_left`] | a group was removed, and no bio of it is on its way any more |
//! | [`IoCost::rest_ns`] | a process that was marked by [`Site::rests`] returns to user space |
//!
//! The host calls [`write`](IoCost::write) for qos and model only while no bio is between its coming and its
//! completion.
//!
//! # Inside
//!
//! | file | what it decides |
//! |---|---|
//! | `admission.rs` | whether a bio passes, waits or is owed for; when a group begins to take part |
//! | `kick.rs` | who goes on when there is budget, when to look again, how debts are paid |
//! | `delay.rs` | how long the processes of a debtor rest |
//! | `period.rs` | what happens when a period ends, in which order; who is idle, short, lagging or lends |
//! | `donation.rs` | what the weights of those who lend become |
//! | `rate.rs` | how fast virtual time goes, by how the device does |
//! | `forgiveness.rs` | which debts are forgiven |
//! | `settings.rs` | files that are written and read, and what follows from settings |
//! | `files.rs`, `table.rs` | the text of files; what a device is taken for by default |
//! | `model.rs`, `share.rs`, `clock.rs` | costs, shares, virtual time |
//! | `tree.rs`, `group.rs` | groups, their weights and what is kept of each |
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

/// io.cost of one device.
#[derive(Clone, Debug)]
pub struct IoCost {
    settings: Settings,
    clock: Clock,
    tree: Tree,
    /// Timers of groups whose bios wait.
    timers: GroupTimers,
    periods: Periods,
    load: Load,
    forgiveness: Forgiveness,
}

impl IoCost {
    /// The controller of a device that takes `depth` requests at once: off, until a file is written.
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

    /// When a group's timer next fires, if any is set.
    #[must_use]
    pub fn next_timer(&self) -> Option<Time> {
        self.timers.next()
    }

    /// A group's timer is due: it fires, and with it those that may fire already.
    pub fn timer(&mut self, site: &mut Site) {
        while let Some(group) = self.timers.fire(site.now) {
            note(site, IoCostEvent::Timer { group });
            let at = self.clock.at(site.now);
            self.kick(site, group, &at, None);
        }
    }

    /// A timer of the wheel fires; if it is the period's, the period ends.
    pub fn fire(&mut self, site: &mut Site, timer: TimerId) {
        if timer == self.periods.timer {
            self.end_period(site);
        }
    }

    /// A group was removed, and its last bio is done: until then it keeps its share, and its waiting bios.
    pub fn group_left(&mut self, site: &mut Site, group: CgroupId) {
        self.tree.know(&site.groups);
        self.tree[group].left = true;
        self.free_if_gone(site, group);
    }

    /// Whether a group was removed and had nothing under way any more.
    #[must_use]
    pub fn is_freed(&self, group: CgroupId) -> bool {
        self.tree.get(group).is_some_and(|group| group.freed)
    }

    /// Forgets a group that has been left and that no group in it holds. What it owes and has not spent is
    /// forgotten with it.
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

    /// How long a process of `group` rests, in ns: the longest delay of the group and those above it.
    #[must_use]
    pub fn rest_ns(&self, site: &Site, group: CgroupId) -> u64 {
        let delays = site.groups.up(group).filter_map(|group| self.tree.get(group));
        delays.filter(|group| group.delayed).map(|group| group.delay_reported_ns).max().unwrap_or(0)
    }
}

/// Records a decision, if decisions are recorded.
fn note(site: &mut Site, event: IoCostEvent) {
    site.note(|| ControllerEvent::IoCost(event));
}
