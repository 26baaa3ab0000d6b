//! mclock: a reservation, a weight and a limit for each group.
//!
//! The rules are those of "mClock: Handling Throughput Variability for Hypervisor IO Scheduling"
//! (Gulati, Merchant, Varman; OSDI 2010), and of dmClock in the same paper for several servers. No
//! kernel has this elevator. Each cgroup is a client of the paper; groups are not nested. The
//! requests of a group are served in the order of arrival.
//!
//! A group has three tags ([`order`]). Each served request advances them by its work, divided by
//! the reservation, the limit and the weight. A group whose limit tag is in the future waits. Among
//! the other groups, mclock first serves the group with the earliest reservation tag that is due.
//! If no reservation is due, the group with the smallest weight tag is served. Its reservation tag
//! then stays the same: service by weight does not use up the reservation.
//!
//! The paper gives each request its tags when it arrives. Here only the first request of a group
//! has tags, because later ones follow from them. Three rules go beyond the paper:
//!
//! - A limit tag is at most one request behind the present time. Therefore a group that waited for
//!   other groups cannot exceed its limit afterwards.
//! - A group without a reservation has a small one (`min_reservation`), so that it never starves.
//! - If the device cannot serve all reservations, mclock makes up for them later. It makes up for
//!   at most the time `catch_up`.

mod order;
mod tracker;

use std::collections::BTreeMap;

use crate::collections::List;
use crate::context::CgroupId;
use crate::decision::{Decision, MClockEvent, Phase};
use crate::elevator::{Elevator, PerGroup, Registered};
use crate::env::Env;
use crate::layer::{Layer, MultiQueueRules};
use crate::rates::{Rate, Work};
use crate::request::{Bio, Fifo, Op, Request, RequestId, SECTOR_BYTES};
use crate::time::{MILLISECOND_NS, Time};
use crate::tunable::{Declarations, Span, TunableSet, Tuned, tunable};
use order::{Order, Place, Tags};

pub use tracker::{Progress, Tracker};

pub(crate) const REGISTERED: Registered = Registered {
    about: "gives each group a reservation, a share by weight, and a limit; only for disks that iosched serves, and \
        for simulation",
    layer: Layer::MultiQueue(MultiQueueRules::USUAL),
    how: &[
        "Each cgroup or export has a reservation, a weight and a limit: I/Os or bytes per second.",
        "A group that has reached its limit waits. The disk can be idle meanwhile.",
        "If reservations are due, mclock serves the group whose reservation is due first.",
        "Otherwise mclock serves groups in proportion to their weights. I/O that a group gets by its reservation also \
         counts towards its share by weight.",
        "A group that was idle gains no credit. A group serves its requests in the order of arrival.",
        "A request longer than io_size counts as several I/Os.",
    ],
    when: "A served disk whose clients were promised a number of I/Os or bytes per second.",
    tunables: || DECLARATIONS.specs().collect(),
    ..Registered::new("mclock", &|_| Box::new(MClock::new()))
};

#[derive(Debug, Default)]
struct Tunables {
    io_bytes: u64,
    min_reservation: u64,
    catch_up_ns: u64,
}

static DECLARATIONS: Declarations<Tunables> = Declarations {
    owner: "mclock",
    what: "tunable",
    tunables: &[
        tunable!(Tunables.io_bytes, "io_size", Kibibytes, 1024, 64, 1..=1_048_576, "0.1",
            "longest request that counts as one I/O; a longer request counts in proportion to its length",
            { tuning: Span::of(4, 1024) }),
        tunable!(
            Tunables.min_reservation,
            "min_reservation",
            Count,
            1,
            1,
            0..=1_000_000,
            "0.1",
            "reservation in I/Os per second for each group that declares no reservation; 0: such groups can starve"
        ),
        tunable!(
            Tunables.catch_up_ns,
            "catch_up",
            Milliseconds,
            MILLISECOND_NS,
            1000,
            10..=3_600_000,
            "0.1",
            "if the disk is too slow for a reservation, the group gets the missing I/O later, but no more \
             than its reservation allows in this time"
        ),
    ],
};

/// Advance of a weight tag for one unit of [`Work::ios`] at weight 1.
const WEIGHT_SCALE: u128 = 1024;

/// A cgroup that has or had requests.
#[derive(Debug, Default)]
struct Group {
    fifo: List<Fifo>,
    /// Number of requests in `fifo`.
    queued: usize,
    /// Number of requests in the elevator and in the device.
    requests: u32,
    tags: Tags,
    place: Place,
    /// Time when the group's last queued request was served.
    idle_since: u64,
}

struct MClock {
    tunables: Tuned<Tunables>,
    groups: BTreeMap<CgroupId, Group>,
    order: Order,
    /// Requests to serve before all others.
    head: List<Fifo>,
    head_queued: usize,
    /// Number of groups with requests in the elevator or in the device.
    busy: u32,
}

/// Returns the advance of a weight tag.
fn weight_step(work: Work, weight: u32) -> u128 {
    u128::from(work.ios) * WEIGHT_SCALE / u128::from(weight.max(1))
}

/// Returns the group of a request or process that belongs to `cgroup`.
fn group_of(env: &Env, cgroup: CgroupId) -> CgroupId {
    if env.groups { env.cgroups.living(cgroup) } else { CgroupId::ROOT }
}

impl MClock {
    fn new() -> Self {
        Self {
            tunables: DECLARATIONS.tuned(Tunables::default()),
            groups: BTreeMap::new(),
            order: Order::default(),
            head: List::default(),
            head_queued: 0,
            busy: 0,
        }
    }

    /// Returns the reservation that applies to a group.
    fn reservation(&self, env: &Env, cgroup: CgroupId) -> Option<Rate> {
        let least = Some(self.tunables.min_reservation).filter(|&rate| rate > 0).map(Rate::Ios);
        env.cgroups.rates(cgroup).reservation.or(least)
    }

    /// Returns the work of a request. Operations without data transfer count as one I/O.
    fn work(&self, request: &Request) -> Work {
        let sectors = if matches!(request.op, Op::Read | Op::Write) { request.nr_sectors } else { 0 };
        Work::of_request(u64::from(sectors) * SECTOR_BYTES, self.tunables.io_bytes)
    }

    /// Counts a new request of a group.
    fn count(&mut self, cgroup: CgroupId) -> &mut Group {
        let group = self.groups.entry(cgroup).or_default();
        self.busy += u32::from(group.requests == 0);
        group.requests += 1;
        group
    }

    /// Reduces the number of requests of a group by one.
    fn uncount(&mut self, cgroup: CgroupId) {
        if let Some(group) = self.groups.get_mut(&cgroup) {
            group.requests -= 1;
            self.busy -= u32::from(group.requests == 0);
        }
    }

    // ---- places

    /// Puts a group with requests and without a place into the order.
    fn put(&mut self, env: &Env, cgroup: CgroupId) {
        let reserved = self.reservation(env, cgroup).is_some();
        let Some(group) = self.groups.get_mut(&cgroup) else { return };
        let Some(first) = group.fifo.first() else { return };
        let due = reserved.then(|| group.tags.reservation.max(env.requests[first].deadline.as_ns()));
        group.place = self.order.put(env.now.as_ns(), cgroup, &group.tags, due);
    }

    /// Puts a group, whose first request has just arrived, into the order.
    fn activate(&mut self, env: &Env, cgroup: CgroupId) {
        let (now, start) = (env.now.as_ns(), self.order.weight_now());
        let forgotten_ns = self.tunables.catch_up_ns;
        if let Some(group) = self.groups.get_mut(&cgroup) {
            // Service by reservation may have advanced the weight tag far beyond the clock of
            // weights. The weight tag stays there if the group comes back soon.
            let owes = now.saturating_sub(group.idle_since) <= forgotten_ns;
            group.tags.weight = if owes { group.tags.weight.max(start) } else { start };
        }
        self.put(env, cgroup);
    }

    /// Takes a group out of the order.
    fn take(&mut self, cgroup: CgroupId) {
        if let Some(group) = self.groups.get_mut(&cgroup) {
            self.order.take(cgroup, &mut group.place);
        }
    }

    /// Makes limited groups ready if their limits now permit a request. While the groups were
    /// limited, they collected credit for at most one request.
    fn permit(&mut self, env: &Env) {
        let now = env.now.as_ns();
        while let Some(cgroup) = self.order.permitted(now) {
            self.take(cgroup);
            let first = self.groups.get(&cgroup).and_then(|group| group.fifo.first());
            let Some(work) = first.map(|id| self.work(&env.requests[id])) else { return };
            let step_ns = self.reservation(env, cgroup).map_or(0, |rate| rate.reserved_ns(work));
            let reservation = self.order.reservation_start(now).saturating_sub(step_ns);
            let weight = self.order.weight_now().saturating_sub(weight_step(work, env.cgroups.weight(cgroup)));
            if let Some(Group { tags, .. }) = self.groups.get_mut(&cgroup) {
                tags.reservation = tags.reservation.max(reservation);
                tags.weight = tags.weight.max(weight);
            }
            self.put(env, cgroup);
        }
    }

    // ---- service

    /// Advances the tags of a group without a place by `work`.
    fn charge(&mut self, env: &Env, cgroup: CgroupId, due: Option<u64>, phase: Phase, work: Work) {
        let rate = self.reservation(env, cgroup);
        let limit = env.cgroups.rates(cgroup).limit;
        let now = env.now.as_ns();
        let Some(group) = self.groups.get_mut(&cgroup) else { return };
        let tags = &mut group.tags;
        tags.weight += weight_step(work, env.cgroups.weight(cgroup));
        // Service by weight leaves the reservation to the next request.
        tags.reservation = tags.reservation.max(due.unwrap_or(0));
        if let Some(rate) = rate.filter(|_| phase == Phase::Reservation) {
            tags.reservation = tags.reservation.saturating_add(rate.reserved_ns(work));
        }
        if let Some(limit) = limit {
            let step_ns = limit.limited_ns(work);
            tags.limit = tags.limit.max(now.saturating_sub(step_ns)).saturating_add(step_ns);
        }
    }

    /// Serves the first request of a group.
    fn serve(&mut self, env: &mut Env, cgroup: CgroupId, phase: Phase) -> Option<RequestId> {
        let group = self.groups.get_mut(&cgroup)?;
        let id = group.fifo.first()?;
        group.fifo.remove(env.requests.list_nodes(), id);
        group.queued -= 1;
        group.idle_since = env.now.as_ns();
        let due = env.requests[id].deadline.as_ns();
        self.order.take(cgroup, &mut group.place);
        let work = self.work(&env.requests[id]);
        self.charge(env, cgroup, Some(due), phase, work);
        self.put(env, cgroup);
        self.note_choice(env, id, cgroup, phase, work);
        Some(id)
    }

    /// Serves the oldest request that was inserted at the head. The request is charged to its
    /// group, but the group's limit does not delay it.
    fn serve_head(&mut self, env: &mut Env) -> Option<RequestId> {
        let id = self.head.first()?;
        self.head.remove(env.requests.list_nodes(), id);
        self.head_queued -= 1;
        let (cgroup, work) = (group_of(env, env.requests[id].cgroup), self.work(&env.requests[id]));
        self.take(cgroup);
        self.charge(env, cgroup, None, Phase::Head, work);
        self.put(env, cgroup);
        self.note_choice(env, id, cgroup, Phase::Head, work);
        Some(id)
    }

    fn note_choice(&self, env: &mut Env, id: RequestId, cgroup: CgroupId, phase: Phase, work: Work) {
        if env.log.is_on() {
            let cookie = env.requests.cookie(id);
            env.note(|| Decision::MClock(MClockEvent::Choice { cookie, cgroup, phase, work }));
        }
    }
}

impl Elevator for MClock {
    fn insert(&mut self, env: &mut Env, id: RequestId) {
        let cgroup = group_of(env, env.requests[id].cgroup);
        env.requests[id].deadline = Time::from_ns(self.order.reservation_start(env.now.as_ns()));
        let group = self.count(cgroup);
        group.fifo.push_back(env.requests.list_nodes(), id);
        group.queued += 1;
        if matches!(group.place, Place::Idle) {
            self.activate(env, cgroup);
        }
    }

    fn insert_at_head(&mut self, env: &mut Env, id: RequestId) {
        let cgroup = group_of(env, env.requests[id].cgroup);
        self.count(cgroup);
        env.hide(id);
        self.head.push_back(env.requests.list_nodes(), id);
        self.head_queued += 1;
    }

    fn dispatch(&mut self, env: &mut Env) -> Option<RequestId> {
        if self.head_queued > 0 {
            return self.serve_head(env);
        }
        let now = env.now.as_ns();
        self.permit(env);
        let ns = self.order.drop_missed(now, self.tunables.catch_up_ns);
        if ns > 0 {
            env.note(|| Decision::MClock(MClockEvent::Dropped { ns }));
        }
        let by_weight = self.order.next_by_weight();
        if let Some(cgroup) = self.order.due(now) {
            return self.serve(env, cgroup, Phase::Reservation);
        }
        if let Some(cgroup) = by_weight {
            return self.serve(env, cgroup, Phase::Weight);
        }
        let (until, _) = self.order.first_limited()?;
        let until = Time::from_ns(until);
        if env.timer != Some(until) {
            env.set_timer(until);
            env.note(|| Decision::MClock(MClockEvent::Limited { until }));
        }
        None
    }

    /// Limits do not hold while the elevator is drained.
    fn drain(&mut self, env: &mut Env) -> Option<RequestId> {
        self.dispatch(env).or_else(|| {
            let (_, cgroup) = self.order.first_limited()?;
            self.serve(env, cgroup, Phase::Weight)
        })
    }

    fn may_merge(&mut self, env: &mut Env, bio: &Bio, into: RequestId) -> bool {
        let cgroup = env.contexts.get(bio.context).cgroup;
        group_of(env, cgroup) == group_of(env, env.requests[into].cgroup)
    }

    fn absorb(&mut self, env: &mut Env, _survivor: RequestId, absorbed: RequestId) {
        let cgroup = group_of(env, env.requests[absorbed].cgroup);
        self.take(cgroup);
        if let Some(group) = self.groups.get_mut(&cgroup) {
            group.fifo.remove(env.requests.list_nodes(), absorbed);
            group.queued -= 1;
        }
        self.put(env, cgroup);
        self.uncount(cgroup);
    }

    fn complete(&mut self, env: &mut Env, id: RequestId) {
        self.uncount(group_of(env, env.requests[id].cgroup));
    }

    /// Limits each busy group to an equal part of the tags, at most half of them. Otherwise the
    /// requests of a limited group would leave no tags for other groups.
    fn limit_depth(&mut self, env: &Env, bio: &Bio, nr_requests: u32) -> Option<u32> {
        if !env.groups || env.cgroups.len() == 1 {
            return None;
        }
        let cgroup = group_of(env, env.contexts.get(bio.context).cgroup);
        let requests = self.groups.get(&cgroup).map_or(0, |group| group.requests);
        let others = self.busy - u32::from(requests > 0);
        let part = nr_requests / (others + 1).max(2);
        (requests >= part.max(1)).then_some(1)
    }

    fn tunables(&self) -> Option<&dyn TunableSet> {
        Some(&self.tunables)
    }

    fn tunables_mut(&mut self) -> Option<&mut dyn TunableSet> {
        Some(&mut self.tunables)
    }

    /// The minimal reservation may have appeared or disappeared.
    fn tunable_changed(&mut self, env: &mut Env, _name: &str) {
        let cgroups: Vec<CgroupId> = self.groups.keys().copied().collect();
        for cgroup in cgroups {
            self.take(cgroup);
            self.put(env, cgroup);
        }
    }

    fn per_group(&mut self) -> Option<&mut dyn PerGroup> {
        Some(self)
    }

    fn check(&self, env: &Env) {
        let mut queued = self.head_queued;
        let (mut placed, mut busy) = (0, 0);
        for (&cgroup, group) in &self.groups {
            let listed = std::iter::successors(group.fifo.first(), |&id| env.requests.list_links(id).next()).count();
            assert_eq!(listed, group.queued);
            assert!(group.requests as usize >= group.queued, "requests count until they complete");
            let is_idle = matches!(group.place, Place::Idle);
            assert_eq!(is_idle, group.queued == 0, "a group is idle exactly when it has no requests");
            assert_eq!(env.cgroups.living(cgroup), cgroup, "a removed group has no state");
            queued += group.queued;
            placed += usize::from(group.queued > 0);
            busy += u32::from(group.requests > 0);
        }
        assert_eq!((queued, placed, busy), (env.queued(), self.order.len(), self.busy));
    }
}

impl PerGroup for MClock {
    /// The queued requests of a removed group go behind the queued requests of the nearest
    /// remaining ancestor.
    fn remove_cgroup(&mut self, env: &mut Env, cgroup: CgroupId) {
        self.take(cgroup);
        let Some(mut group) = self.groups.remove(&cgroup) else { return };
        self.busy -= u32::from(group.requests > 0);
        let heir = group_of(env, cgroup);
        let into = self.groups.entry(heir).or_default();
        self.busy += u32::from(into.requests == 0 && group.requests > 0);
        into.requests += group.requests;
        into.queued += group.queued;
        while let Some(id) = group.fifo.first() {
            group.fifo.remove(env.requests.list_nodes(), id);
            into.fifo.push_back(env.requests.list_nodes(), id);
        }
        if matches!(into.place, Place::Idle) {
            self.activate(env, heir);
        }
    }

    /// After a change, a group with a higher limit need not wait for its old limit, and a larger
    /// reservation is due earlier.
    fn rates_changed(&mut self, env: &mut Env, cgroup: CgroupId) {
        self.take(cgroup);
        let now = env.now.as_ns();
        let rate = self.reservation(env, cgroup);
        let start = self.order.reservation_start(now);
        let io = Work { ios: Work::IO, bytes: self.tunables.io_bytes };
        if let Some(group) = self.groups.get_mut(&cgroup) {
            let until = env.cgroups.rates(cgroup).limit.map_or(0, |limit| now.saturating_add(limit.limited_ns(io)));
            group.tags.limit = group.tags.limit.min(until);
            let due = start.saturating_add(rate.map_or(0, |rate| rate.reserved_ns(io)));
            group.tags.reservation = group.tags.reservation.min(due);
        }
        self.put(env, cgroup);
        if self.order.len() > 0 {
            env.set_timer(env.now);
        }
    }

    fn served_elsewhere(&mut self, env: &mut Env, cgroup: CgroupId, progress: &Progress) {
        let cgroup = group_of(env, cgroup);
        let Progress { served, reserved } = *progress;
        self.groups.entry(cgroup).or_default();
        self.take(cgroup);
        let rate = self.reservation(env, cgroup);
        let limit = env.cgroups.rates(cgroup).limit;
        if let Some(group) = self.groups.get_mut(&cgroup) {
            group.tags.weight += weight_step(served, env.cgroups.weight(cgroup));
            let reserved_ns = rate.map_or(0, |rate| rate.reserved_ns(reserved));
            group.tags.reservation = group.tags.reservation.saturating_add(reserved_ns);
            let limited_ns = limit.map_or(0, |limit| limit.limited_ns(served));
            group.tags.limit = group.tags.limit.saturating_add(limited_ns);
        }
        self.put(env, cgroup);
    }
}
