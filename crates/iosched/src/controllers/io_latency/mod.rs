//! io.latency: if a group misses its latency target, its siblings get shorter queues.
//!
//! Each group with a target checks its latencies in windows. A bad window lowers the *cookie* of
//! the parent, a number that all siblings share. A sibling that sees the lower cookie and has a
//! longer target halves its limit on bios in flight. Good windows raise the cookie again. A group
//! that is limited to one bio at a time may still harm its siblings. io.latency then delays the
//! group's processes at the end of their system calls.
//!
//! | file | content |
//! |---|---|
//! | `window.rs` | whether a window was good, and the effects on the siblings |
//! | `rest.rs` | the pauses of processes of a group |

mod rest;
mod window;

use self::window::Statistic;
use super::bio_state::{BioId, Passage};
use super::site::Site;
use super::waits::Waits;
use super::wheel::TimerId;
use super::write_error::WriteError;
use crate::context::CgroupId;
use crate::time::{MICROSECOND_NS, MILLISECOND_NS, SECOND_NS, Time};

/// Cookie in the initial state.
const COOKIE: i64 = 1_000_000;
/// Depth without a limit.
const UNLIMITED: u32 = u32::MAX;
/// Share of the bios of all siblings, percent. A group with at most this share is not limited.
const SHARE_MIN_PERCENT: u64 = 5;
/// Shortest window, ns.
const WINDOW_MIN_NS: u64 = 100 * MILLISECOND_NS;
/// Longest window, ns.
const WINDOW_MAX_NS: u64 = SECOND_NS;
/// Length of a window as a multiple of the target, between the shortest and the longest window.
const WINDOW_TARGETS: u64 = 16;

/// Group, as a child of its parent and as a parent of other groups.
#[derive(Debug)]
struct Group {
    /// Latency target, ns; 0: none.
    target_ns: u64,
    depth: u32,
    waits: Waits,
    window_start: Time,
    window_ns: u64,
    window: Statistic,
    long: Statistic,
    /// Number of bios in the long statistic at the last check.
    samples: u64,
    /// Parent's cookie at the last check.
    own_cookie: i64,
    children: Children,
    rest: rest::Rest,
}

/// State that a parent stores for its children.
#[derive(Debug)]
struct Children {
    cookie: i64,
    /// Strictest missed target, ns; 0: none.
    missed_target_ns: u64,
    /// Group that missed this target.
    missed_by: Option<CgroupId>,
    /// Last change of the cookie because of a window; `None`: long ago.
    changed: Option<Time>,
    samples: u64,
}

impl Children {
    const fn new() -> Self {
        Self { cookie: COOKIE, missed_target_ns: 0, missed_by: None, changed: None, samples: 0 }
    }

    /// Removes all limits on the children.
    fn forgive(&mut self) {
        *self = Self { samples: self.samples, ..Self::new() };
    }
}

impl Group {
    fn new(now: Time, rotational: bool, own_cookie: i64) -> Self {
        Self {
            target_ns: 0,
            depth: UNLIMITED,
            waits: Waits::default(),
            window_start: now,
            window_ns: WINDOW_MIN_NS,
            window: Statistic::new(rotational),
            long: Statistic::new(rotational),
            samples: 0,
            own_cookie,
            children: Children::new(),
            rest: rest::Rest::default(),
        }
    }
}

/// Present state of a group.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct IoLatencyState {
    /// Limit on bios in flight. If it is `None`, there is no limit.
    pub depth: Option<u32>,
    /// Parent's cookie at the last check.
    pub own_cookie: i64,
    /// Number of bios in the long statistic.
    pub samples: u64,
    /// As a parent: cookie of the children; 1,000,000 if none is limited.
    pub cookie: i64,
    /// As a parent: strictest missed target of a child, ns. 0 if no child missed its target.
    pub missed_target_ns: u64,
    /// As a parent: child that missed this target.
    pub missed_by: Option<CgroupId>,
    /// As a parent: sum of the children's samples.
    pub children_samples: u64,
    /// Number of steps of the delay of its processes.
    pub use_delay: u32,
    /// Delay of its processes, ns.
    pub delay_ns: u64,
}

/// Controller io.latency of a queue.
#[derive(Debug)]
pub struct IoLatency {
    rotational: bool,
    nr_requests: u32,
    enabled: bool,
    groups: Vec<Group>,
    timer: TimerId,
}

impl IoLatency {
    /// Creates the controller for a queue of `nr_requests` requests
    /// and the existing groups, without targets.
    pub fn new(site: &mut Site, rotational: bool, nr_requests: u32) -> Self {
        let groups = site.groups.all().map(|_| Group::new(site.now, rotational, COOKIE)).collect();
        Self { rotational, nr_requests, enabled: false, groups, timer: site.wheel.create() }
    }

    /// Returns the timer.
    #[must_use]
    pub fn timer_id(&self) -> TimerId {
        self.timer
    }

    /// Adds a new group, which must have the highest index.
    pub fn group_created(&mut self, site: &Site, group: CgroupId) {
        let cookie = site.groups.parent(group).map_or(COOKIE, |parent| self.children(parent).cookie);
        self.groups.push(Group::new(site.now, self.rotational, cookie));
        debug_assert_eq!(self.groups.len(), group.index() + 1);
    }

    fn group(&mut self, group: CgroupId) -> &mut Group {
        &mut self.groups[group.index()]
    }

    fn children(&mut self, parent: CgroupId) -> &mut Children {
        &mut self.group(parent).children
    }

    /// Returns the number of a group's bios in flight.
    #[must_use]
    pub fn inflight(&self, group: CgroupId) -> i64 {
        self.groups[group.index()].waits.inflight
    }

    /// Returns the state of a group.
    #[must_use]
    pub fn state(&self, group: CgroupId) -> IoLatencyState {
        let Group { depth, own_cookie, samples, children, rest, .. } = &self.groups[group.index()];
        IoLatencyState {
            depth: (*depth != UNLIMITED).then_some(*depth),
            own_cookie: *own_cookie,
            samples: *samples,
            cookie: children.cookie,
            missed_target_ns: children.missed_target_ns,
            missed_by: children.missed_by,
            children_samples: children.samples,
            use_delay: rest.steps,
            delay_ns: rest.delay_ns,
        }
    }

    // ---- a bio

    /// Decides whether a new bio may pass or must wait.
    pub fn throttle(&mut self, site: &mut Site, id: BioId) -> Passage {
        if !self.enabled {
            return Passage::Pass;
        }
        site.bios[id].by_latency = true;
        let group = site.bios[id].cgroup;
        self.climb(site, id, Some(group))
    }

    /// Continues a bio that waited and now has its place. The bio then needs a place in the group
    /// above.
    pub fn resumed(&mut self, site: &mut Site, id: BioId) -> Passage {
        let above = site.bios[id].waits_in.and_then(|group| site.groups.parent(group));
        self.climb(site, id, above)
    }

    /// Takes a place in `group` and in all groups above it except the root.
    fn climb(&mut self, site: &mut Site, id: BioId, mut group: Option<CgroupId>) -> Passage {
        let state = &site.bios[id];
        let (context, is_urgent) = (state.context, state.is_urgent());
        while let Some((here, parent)) = group.and_then(|group| Some((group, site.groups.parent(group)?))) {
            self.look(site, here, parent);
            let group_here = self.group(here);
            if group_here.rest.steps > 0 {
                site.rests(context);
            }
            if is_urgent {
                group_here.waits.inflight += 1;
            } else if group_here.waits.arrive(id, group_here.depth) == Passage::Wait {
                site.bios[id].waits_in = Some(here);
                return Passage::Wait;
            }
            group = Some(parent);
        }
        if !site.wheel.is_pending(self.timer) {
            site.arm(self.timer, site.jiffies() + u64::from(site.hz));
        }
        Passage::Pass
    }

    /// Compares the cookie of `group`'s parent with its last value, and changes the group's limit
    /// by one step.
    fn look(&mut self, site: &mut Site, here: CgroupId, parent: CgroupId) {
        let nr_requests = self.nr_requests;
        let &mut Children { cookie, missed_target_ns, samples: all_samples, .. } = self.children(parent);
        let group = self.group(here);
        let before = std::mem::replace(&mut group.own_cookie, cookie);
        if before == cookie {
            return;
        }
        let down = cookie < before;
        if down && group.target_ns > 0 {
            if missed_target_ns == 0 || group.target_ns <= missed_target_ns {
                return;
            }
            if group.samples <= (all_samples.wrapping_mul(SHARE_MIN_PERCENT) / 100).max(1) {
                return;
            }
        }
        if down && group.depth == 1 {
            group.rest.steps += 1;
            return;
        }
        if cookie == COOKIE {
            group.rest.steps = 0;
            group.depth = UNLIMITED;
        } else {
            let depth = group.depth.min(nr_requests);
            if down {
                group.depth = (depth >> 1).max(1);
                return;
            }
            if depth == 1 && group.rest.steps > 0 {
                group.rest.steps -= 1;
                return;
            }
            if depth >= nr_requests {
                return;
            }
            group.depth = depth.saturating_add((nr_requests >> 4).max(1)).min(nr_requests);
        }
        while group.waits.wake_one(site, group.depth) {}
    }

    /// Removes a completed bio from the counts of its groups.
    pub fn bio_done(&mut self, site: &mut Site, id: BioId) {
        let state = &site.bios[id];
        if !self.enabled || !state.by_latency {
            return;
        }
        let (lasted_ns, is_urgent) = (site.now.since(state.started), state.is_urgent());
        let mut group = Some(state.cgroup);
        while let Some((here, parent)) = group.and_then(|group| Some((group, site.groups.parent(group)?))) {
            self.group(here).waits.inflight -= 1;
            if self.group(here).target_ns > 0 {
                self.sample(site, here, lasted_ns, is_urgent);
                let group = self.group(here);
                if site.now > group.window_start && site.now.since(group.window_start) >= group.window_ns {
                    group.window_start = site.now;
                    self.check(site, here, parent);
                }
            }
            let group_here = self.group(here);
            let depth = group_here.depth;
            group_here.waits.wake_one(site, depth);
            group = Some(parent);
        }
    }

    // ---- changes

    /// Returns whether any group has a target. To apply a change of the result, the host calls
    /// [`switch`](Self::switch) while the queue is empty.
    #[must_use]
    pub fn is_wanted(&self) -> bool {
        self.groups.iter().any(|group| group.target_ns > 0)
    }

    /// Returns whether the controller is on.
    #[must_use]
    pub fn is_enabled(&self) -> bool {
        self.enabled
    }

    /// Turns the controller on if a group has a target, otherwise off. No bio may be in flight.
    pub fn switch(&mut self) {
        self.enabled = self.is_wanted();
    }

    /// Writes a group's `io.latency`: `target=N` in µs, or `target=max` for none.
    ///
    /// # Errors
    /// Fails if `text` has another form; nothing changes then.
    pub fn write(&mut self, site: &Site, group: CgroupId, text: &str) -> Result<(), WriteError> {
        let mut target_ns = 0;
        for word in text.trim_end_matches('\n').split(' ') {
            target_ns = match word.strip_prefix("target=").ok_or(WriteError::Invalid)? {
                "max" => 0,
                target => target.parse::<u64>().map_err(|_| WriteError::Invalid)?.wrapping_mul(MICROSECOND_NS),
            };
        }
        self.set_target(site, group, target_ns);
        Ok(())
    }

    fn set_target(&mut self, site: &Site, here: CgroupId, target_ns: u64) {
        let group = self.group(here);
        let before = std::mem::replace(&mut group.target_ns, target_ns);
        group.window_ns = target_ns.wrapping_mul(WINDOW_TARGETS).clamp(WINDOW_MIN_NS, WINDOW_MAX_NS);
        if target_ns == 0 {
            group.rest.steps = 0;
        }
        if before != target_ns
            && let Some(parent) = site.groups.parent(here)
        {
            self.children(parent).forgive();
        }
    }

    /// Returns a group's target in `io.latency`, µs, if it has one.
    #[must_use]
    pub fn read(&self, group: CgroupId) -> Option<u64> {
        let target_ns = self.groups[group.index()].target_ns;
        (target_ns > 0).then_some(target_ns / MICROSECOND_NS)
    }

    /// Handles the removal of a group.
    pub fn group_removed(&mut self, site: &Site, group: CgroupId) {
        self.set_target(site, group, 0);
        if let Some(parent) = site.groups.parent(group) {
            self.children(parent).forgive();
        }
    }
}
