//! Verdict on a window, and its effects on the siblings.

use super::{COOKIE, Children, IoLatency, UNLIMITED};
use crate::context::CgroupId;
use crate::controllers::site::Site;
use crate::time::{MILLISECOND_NS, SECOND_NS};

/// Minimum time between changes of a cookie by windows, ns.
const CHANGE_NS: u64 = 500 * MILLISECOND_NS;
/// Time after which a missed target is forgotten if it is not missed again, ns.
const MISSED_NS: u64 = 5 * SECOND_NS;
/// Number of bios in a long statistic above which the situation counts as good again.
const GOOD_MIN: u64 = 5;

/// Latencies of bios, compared with the target of their group.
#[derive(Clone, Copy, Debug)]
pub(super) enum Statistic {
    /// For devices that are not rotational: the number of
    /// bios, and the number that missed the target.
    Missed { total: u64, missed: u64 },
    /// For rotational devices: the number of bios, and the sum of their latencies, ns.
    Mean { count: u64, sum_ns: u64 },
}

impl Statistic {
    pub(super) const fn new(rotational: bool) -> Self {
        if rotational { Self::Mean { count: 0, sum_ns: 0 } } else { Self::Missed { total: 0, missed: 0 } }
    }

    fn add(&mut self, latency_ns: u64, target_ns: u64) {
        match self {
            Self::Missed { total, missed } => {
                *total += 1;
                *missed += u64::from(latency_ns >= target_ns);
            }
            Self::Mean { count, sum_ns } => {
                *count += 1;
                *sum_ns = sum_ns.wrapping_add(latency_ns);
            }
        }
    }

    fn take(&mut self) -> Self {
        std::mem::replace(self, Self::new(matches!(self, Self::Mean { .. })))
    }

    /// Adds a window to a longer statistic. For means, it adds only the count, so that the longer
    /// statistic never counts as bad.
    fn join(&mut self, window: Self) {
        match (self, window) {
            (Self::Missed { total, missed }, Self::Missed { total: more, missed: missed_more }) => {
                *total += more;
                *missed += missed_more;
            }
            (Self::Mean { count, .. }, Self::Mean { count: more, .. }) => *count += more,
            _ => unreachable!("all statistics of a device have the same kind"),
        }
    }

    const fn count(&self) -> u64 {
        match *self {
            Self::Missed { total, .. } => total,
            Self::Mean { count, .. } => count,
        }
    }

    /// Returns whether nine of ten bios met the target, or whether the mean latency met the target.
    fn is_good(&self, target_ns: u64) -> bool {
        match *self {
            Self::Missed { total, missed } => missed < (total / 10).max(1),
            Self::Mean { count, sum_ns } => sum_ns.checked_div(count).unwrap_or(0) <= target_ns,
        }
    }
}

impl Children {
    /// Changes the cookie: up in small steps, down in large steps.
    fn move_cookie(&mut self, up: bool, nr_requests: u32) {
        let nr_requests = i64::from(nr_requests);
        let lowered = COOKIE.wrapping_sub(self.cookie).max(0);
        if up {
            let step = (nr_requests >> 4).max(1);
            let most = if lowered > nr_requests { 1 } else { step };
            self.cookie = if self.cookie + step > COOKIE { COOKIE } else { self.cookie + most };
        } else if lowered <= nr_requests {
            self.cookie -= (nr_requests >> 2).max(1);
        } else if lowered < 2 * nr_requests {
            self.cookie -= 1;
        }
    }
}

impl IoLatency {
    /// Adds the latency of a bio of a group with a target.
    pub(super) fn sample(&mut self, site: &Site, here: CgroupId, latency_ns: u64, urgent: bool) {
        let group = self.group(here);
        let target_ns = group.target_ns;
        if latency_ns == 0 {
            return;
        }
        if urgent && group.depth != UNLIMITED {
            // The bio passed where others must wait. The saved time is charged as a delay.
            if latency_ns < target_ns {
                group.rest.add(site.now, target_ns - latency_ns);
            }
            return;
        }
        group.window.add(latency_ns, target_ns);
    }

    /// Handles the end of a group's window.
    pub(super) fn check(&mut self, site: &Site, here: CgroupId, parent: CgroupId) {
        let nr_requests = self.nr_requests;
        let group = &mut self.groups[here.index()];
        let target_ns = group.target_ns;
        let window = group.window.take();
        let good = window.is_good(target_ns);
        // A parent has a smaller index than its children.
        let [above, group] = self
            .groups
            .get_disjoint_mut([parent.index(), here.index()])
            .unwrap_or_else(|_| unreachable!("no group is its own parent"));
        let children = &mut above.children;
        if good && children.cookie == COOKIE {
            return;
        }
        group.long.join(window);
        let samples = group.long.count();
        children.samples = children.samples.wrapping_add(samples).wrapping_sub(group.samples);
        group.samples = samples;
        if children.changed.is_some_and(|changed| changed >= site.now || site.now.since(changed) < CHANGE_NS) {
            return;
        }
        if group.long.is_good(target_ns) && good {
            if samples < GOOD_MIN {
                return;
            }
            if children.missed_by == Some(here) {
                children.changed = Some(site.now);
                children.move_cookie(true, nr_requests);
            }
        } else if children.missed_target_ns == 0 || children.missed_target_ns >= target_ns {
            children.changed = Some(site.now);
            if children.missed_by.is_none() || children.missed_target_ns > target_ns {
                children.missed_target_ns = target_ns;
                children.missed_by = Some(here);
            }
            children.move_cookie(false, nr_requests);
        }
        group.long.take();
    }

    /// Handles the timer, each second. If no target was missed lately, raises the limits of the
    /// siblings by one step. Forgets a missed target after five seconds.
    pub fn fire(&mut self, site: &Site) {
        for group in &mut self.groups {
            let children = &mut group.children;
            if children.cookie >= COOKIE || children.changed.is_some_and(|changed| changed >= site.now) {
                continue;
            }
            if children.missed_by.is_none() {
                children.move_cookie(true, self.nr_requests);
            } else if children.changed.is_none_or(|changed| site.now.since(changed) >= MISSED_NS) {
                children.missed_by = None;
            }
        }
    }
}
