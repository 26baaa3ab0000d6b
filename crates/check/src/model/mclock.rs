//! The audit of mclock's recorded decisions. A group exceeds its limit by at most one request. If
//! all groups wait, mclock waits until a time in the future.

use std::collections::BTreeMap;

use iosched::{CgroupId, MClockEvent, Phase, Rate, RequestQueue, SECOND_NS, Time, Work};

use crate::violation::{Checked, ensure};

/// Service of a group since its limit was set.
#[derive(Clone, Copy, Debug)]
struct Served {
    /// Service above the limit, in units of work times ns. It decreases at the rate of the limit.
    level: i128,
    /// Largest request so far, in the same unit.
    largest: i128,
    at: Time,
}

/// The audit of mclock's decisions.
#[derive(Debug, Default)]
pub(super) struct MClockAudit {
    served: BTreeMap<CgroupId, Served>,
    limits: BTreeMap<CgroupId, Rate>,
    /// Whether limits do not hold now, because requests are drained.
    suspended: bool,
}

impl MClockAudit {
    /// Reads the limits, one of which may have changed.
    pub(super) fn rates_changed(&mut self, queue: &RequestQueue, cgroup: CgroupId) {
        self.served.remove(&cgroup);
        match queue.env().cgroups.rates(cgroup).limit {
            Some(limit) => self.limits.insert(cgroup, limit),
            None => self.limits.remove(&cgroup),
        };
    }

    /// Records that the elevator is drained, or that another elevator takes over.
    pub(super) fn suspend(&mut self) {
        self.suspended = true;
    }

    /// Records that mclock takes over.
    pub(super) fn resume(&mut self) {
        self.suspended = false;
        self.served.clear();
    }

    pub(super) fn take(&mut self, now: Time, event: MClockEvent) -> Checked {
        match event {
            MClockEvent::Choice { cgroup, phase, work, .. } => self.choice(now, cgroup, phase, work),
            MClockEvent::Limited { until } => {
                ensure!(until > now, Progress, "mclock waits until {until:?}, but the time is {now:?}");
                Ok(())
            }
            MClockEvent::Dropped { .. } => Ok(()),
        }
    }

    fn choice(&mut self, now: Time, cgroup: CgroupId, phase: Phase, work: Work) -> Checked {
        let Some(&limit) = self.limits.get(&cgroup) else { return Ok(()) };
        let (amount, per_second) = match limit {
            Rate::Ios(rate) => (work.ios, u128::from(rate) * u128::from(Work::IO)),
            Rate::Bytes(rate) => (work.bytes, u128::from(rate)),
        };
        // One unit of work has 10^9 parts. The limit permits `per_second` parts in each ns.
        let amount = i128::from(amount) * i128::from(SECOND_NS);
        let per_ns = i128::try_from(per_second).unwrap_or(i128::MAX);
        let served = self.served.entry(cgroup).or_insert(Served { level: 0, largest: 0, at: now });
        let drained = i128::from(now.since(served.at)).saturating_mul(per_ns);
        served.level = served.level.saturating_sub(drained).max(0);
        served.at = now;
        let level = served.level;
        served.largest = served.largest.max(amount);
        served.level = level.saturating_add(amount);
        // mclock rounds times to whole ns, so the parts of one ns are also permitted.
        let permitted = served.largest.saturating_add(per_ns);
        ensure!(
            self.suspended || phase == Phase::Head || level <= permitted,
            Limits,
            "cgroup {} has a limit of {limit}, but got a request {} ns too early",
            cgroup.index(),
            (level - permitted) / per_ns.max(1)
        );
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_request_above_the_limit_is_detected() {
        let io = Work { ios: Work::IO, bytes: 4096 };
        let at = |ms: u64| Time::from_ns(ms * 1_000_000);
        let mut audit = MClockAudit::default();
        audit.limits.insert(CgroupId::ROOT, Rate::Ios(10));
        let mut serve = |ms| audit.choice(at(ms), CgroupId::ROOT, Phase::Weight, io);
        assert!([0, 0, 100, 200, 700].into_iter().all(|ms| serve(ms).is_ok()), "one request may be early");
        assert!(serve(700).is_ok());
        let violation = serve(799).unwrap_err().to_string();
        assert!(violation.contains("has a limit of 10, but got a request"), "{violation}");
    }

    #[test]
    fn one_large_request_may_exceed_the_limit_as_a_burst() {
        let work = |bytes| Work { ios: Work::IO, bytes };
        let mut audit = MClockAudit::default();
        audit.limits.insert(CgroupId::ROOT, Rate::Bytes(1000));
        assert!(audit.choice(Time::ZERO, CgroupId::ROOT, Phase::Weight, work(1000)).is_ok());
        assert!(audit.choice(Time::ZERO, CgroupId::ROOT, Phase::Weight, work(10)).is_ok());
        let early = Time::from_ns(9_000_000);
        assert!(audit.choice(early, CgroupId::ROOT, Phase::Weight, work(10)).is_err());
    }
}
