//! Controllers: the trait, and the list of controllers in the path of a bio.

use super::bio_state::{BioId, BioState, Passage};
use super::site::Site;
use super::wheel::TimerId;
use super::write_error::WriteError;
use crate::context::{CgroupId, ContextId};
use crate::request::{Op, Sector};
use crate::time::Time;

/// Request that a bio joins, before the merge.
#[derive(Clone, Copy, Debug)]
pub struct Target {
    /// First sector of the request.
    pub sector: Sector,
    /// Sector after the end of the request.
    pub end: Sector,
    /// First bio of the request, in sector order.
    pub first: BioId,
}

/// Request that the device has completed, as a controller sees it.
#[derive(Clone, Copy, Debug)]
pub struct Served {
    /// First bio of the request.
    pub founder: BioId,
    /// Operation of the request.
    pub op: Op,
    /// Length with all merged bios, sectors.
    pub nr_sectors: u64,
    /// Time when the first bio requested a tag.
    pub requested: Time,
    /// Time when the first bio got a tag.
    pub got: Time,
}

/// Set of calls that a controller needs. The calls are those in the path of a bio.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Points(u8);

impl Points {
    /// [`Controller::enter`].
    pub const ENTER: Self = Self(1 << 0);
    /// [`Controller::throttle`].
    pub const THROTTLE: Self = Self(1 << 1);
    /// [`Controller::merged`].
    pub const MERGED: Self = Self(1 << 2);
    /// [`Controller::issued`].
    pub const ISSUED: Self = Self(1 << 3);
    /// [`Controller::started`].
    pub const STARTED: Self = Self(1 << 4);
    /// [`Controller::bio_done`].
    pub const BIO_DONE: Self = Self(1 << 5);
    /// [`Controller::absorbed`].
    pub const ABSORBED: Self = Self(1 << 6);
    /// [`Controller::completed`].
    pub const COMPLETED: Self = Self(1 << 7);
    /// Empty set.
    const NONE: Self = Self(0);
    /// Set of all calls to a controller.
    pub const ALL: Self = Self(u8::MAX);

    /// Returns the calls in either set.
    #[must_use]
    pub const fn union(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Returns whether the sets have a common call.
    #[must_use]
    pub const fn intersects(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }
}

/// Controller: a policy outside of the elevator that decides which bios continue, and when.
///
/// The calls for a bio have this order. [`enter`](Self::enter) is first. If the bio joins a
/// request, [`merged`](Self::merged) follows. Otherwise these calls follow:
/// [`throttle`](Self::throttle), [`issued`](Self::issued) for the first bio of a request, and
/// [`started`](Self::started) when the device takes the request. At the end,
/// [`bio_done`](Self::bio_done) is called for each bio and [`completed`](Self::completed) for the
/// request. By default, each of these calls does nothing and lets every bio pass.
pub trait Controller: Send {
    /// Returns the name, as users write it.
    fn name(&self) -> &'static str;

    // ---- a bio

    /// Returns the calls that the controller needs. The controller does not get other calls. The
    /// result must not change.
    fn points(&self) -> Points {
        Points::ALL
    }

    /// Handles a new bio. If the result is [`Passage::Wait`], the bio is held, but its process
    /// continues. [`released`](Self::released) returns the bio later.
    fn enter(&mut self, site: &mut Site, bio_id: BioId) -> Passage {
        let _ = (site, bio_id);
        Passage::Pass
    }

    /// Returns the held bios that may continue, in their order, and removes them.
    fn released(&mut self) -> Vec<BioId> {
        Vec::new()
    }

    /// Handles a bio that joined no request and needs a new request. If the result is
    /// [`Passage::Wait`], its process sleeps until the controller passes the bio to
    /// [`Site::go_on`].
    fn throttle(&mut self, site: &mut Site, bio_id: BioId) -> Passage {
        let _ = (site, bio_id);
        Passage::Pass
    }

    /// Handles a bio that continues after its wait. The bio may have to wait again.
    fn resumed(&mut self, site: &mut Site, bio_id: BioId) -> Passage {
        let _ = (site, bio_id);
        Passage::Pass
    }

    /// Handles a bio that joins a request. The bio does not wait.
    fn merged(&mut self, site: &mut Site, bio_id: BioId, target: &Target) {
        let _ = (site, bio_id, target);
    }

    /// Reports that a process of `group` has dirtied much memory, and sleeps until the device has
    /// written some of it.
    fn dirtier_sleeps(&mut self, site: &mut Site, group: CgroupId) {
        let _ = (site, group);
    }

    /// Handles a bio that has become a request.
    fn issued(&mut self, site: &mut Site, bio_id: BioId) {
        let _ = (site, bio_id);
    }

    /// Reports that the device takes the request that began with this bio.
    fn started(&mut self, site: &mut Site, bio_id: BioId) {
        let _ = (site, bio_id);
    }

    /// Reports that a bio is complete. This includes bios that joined a request.
    fn bio_done(&mut self, site: &mut Site, bio_id: BioId) {
        let _ = (site, bio_id);
    }

    /// Reports that the request that began with this bio was merged into another request.
    fn absorbed(&mut self, site: &mut Site, bio_id: BioId) {
        let _ = (site, bio_id);
    }

    /// Reports that the device has finished a request. `bios`: its bios, in sector order.
    fn completed(&mut self, site: &mut Site, request: &Served, bios: &[BioId]) {
        let _ = (site, request, bios);
    }

    // ---- time

    /// Handles a timer of the [wheel](Site::wheel). The timer may belong to another controller.
    fn fire(&mut self, site: &mut Site, timer: TimerId) {
        let _ = (site, timer);
    }

    /// Returns the time of the controller's own timer, which is not rounded to jiffies.
    fn next_timer(&self) -> Option<Time> {
        None
    }

    /// Handles the controller's own timer.
    fn timer(&mut self, site: &mut Site) {
        let _ = site;
    }

    /// Handles an interrupt of the processor's clock. A timer with a range of times fires if the
    /// range has begun.
    fn clock_interrupt(&mut self, site: &mut Site) {
        let _ = site;
    }

    /// Returns the pause of a process of `group` that [`Site::rests`] has marked, ns.
    fn rest_ns(&mut self, site: &Site, group: CgroupId) -> u64 {
        let _ = (site, group);
        0
    }

    // ---- changes

    /// Reports a new group. Its number is higher than the numbers of all other groups.
    fn group_created(&mut self, site: &mut Site, group: CgroupId) {
        let _ = (site, group);
    }

    /// Reports that a group was removed.
    fn group_removed(&mut self, site: &mut Site, group: CgroupId) {
        let _ = (site, group);
    }

    /// Reports that a group was removed and has no bios in flight any more.
    fn group_left(&mut self, site: &mut Site, group: CgroupId) {
        let _ = (site, group);
    }

    /// Reports that the queue has switched to `elevator`.
    fn elevator_changed(&mut self, site: &mut Site, elevator: &str) {
        let _ = (site, elevator);
    }

    /// Reports that a file of another controller was written.
    fn other_written(&mut self, site: &mut Site) {
        let _ = site;
    }

    /// Returns whether the controller needs no bios until one of its files is written. Until then,
    /// bios bypass the controller.
    fn begins_when_written(&self) -> bool {
        false
    }

    /// Returns the names of the controller's files. The names of a cgroup's files begin with `io.`.
    fn files(&self) -> &'static [&'static str];

    /// Returns whether no bio may be in flight while this file is written.
    fn drains(&self, file: &str) -> bool {
        let _ = file;
        false
    }

    /// Writes one of the [files](Self::files). `group` is the root for files of the queue.
    ///
    /// # Errors
    /// Fails if the file refuses `text`; the settings do not change then.
    fn write(&mut self, site: &mut Site, file: &str, group: CgroupId, text: &str) -> Result<(), WriteError>;

    /// Returns the content of one of the files.
    fn read(&self, file: &str, group: CgroupId) -> String;
}

/// Waits of a cgroup's bios at a controller.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ControllerWaits {
    /// Name of the controller.
    pub controller: &'static str,
    /// Cgroup of the bios.
    pub cgroup: CgroupId,
    /// Number of bios whose wait has ended.
    pub bios: u64,
    /// Sum of the waits, ns.
    pub wait_ns: u64,
}

/// Controllers of a queue, in the order in which bios meet them.
pub struct Controllers {
    /// Data that the controllers share.
    pub site: Site,
    list: Vec<Box<dyn Controller>>,
    /// Active controllers, in the order in which bios meet them.
    in_force: Vec<Met>,
    /// Calls that at least one active controller needs.
    needed: Points,
    waits: Vec<ControllerWaits>,
}

/// Active controller.
#[derive(Clone, Copy, Debug)]
struct Met {
    /// Index of the controller.
    at: usize,
    points: Points,
}

impl Controllers {
    /// Creates a list without controllers for a queue.
    #[must_use]
    pub fn new(site: Site) -> Self {
        Self { site, list: Vec::new(), in_force: Vec::new(), needed: Points::NONE, waits: Vec::new() }
    }

    /// Adds a controller at the end.
    pub fn add(&mut self, controller: Box<dyn Controller>) {
        if !controller.begins_when_written() {
            self.needed = self.needed.union(controller.points());
            self.in_force.push(Met { at: self.list.len(), points: controller.points() });
        }
        self.list.push(controller);
    }

    /// Returns the index of the controller with a file.
    #[must_use]
    pub fn of_file(&self, file: &str) -> Option<usize> {
        self.list.iter().position(|controller| controller.files().contains(&file))
    }

    /// Returns whether no bio may be in flight while a file is written.
    #[must_use]
    pub fn drains(&self, file: &str) -> bool {
        self.list.iter().any(|controller| controller.files().contains(&file) && controller.drains(file))
    }

    /// Writes a file. Returns `None` if no controller has it.
    ///
    /// # Errors
    /// Fails if the file refuses `text`.
    pub fn write(&mut self, file: &str, group: CgroupId, text: &str) -> Option<Result<(), WriteError>> {
        let at = self.of_file(file)?;
        if let Err(place) = self.in_force.binary_search_by_key(&at, |met| met.at) {
            let points = self.list[at].points();
            self.needed = self.needed.union(points);
            self.in_force.insert(place, Met { at, points });
        }
        let result = self.list[at].write(&mut self.site, file, group, text);
        let others = self.list.iter_mut().enumerate().filter(|&(other, _)| other != at);
        others.for_each(|(_, other)| other.other_written(&mut self.site));
        Some(result)
    }

    /// Reads a file. Returns `None` if no controller has it.
    #[must_use]
    pub fn read(&self, file: &str, group: CgroupId) -> Option<String> {
        Some(self.list[self.of_file(file)?].read(file, group))
    }

    // ---- a bio

    /// Returns the name of the controller at an index.
    #[must_use]
    pub fn name(&self, at: usize) -> &'static str {
        self.list[at].name()
    }

    /// Submits a bio. Returns the index of the controller that holds it, if any.
    #[inline(always)]
    pub fn enter(&mut self, bio_id: BioId) -> Option<usize> {
        if self.needed.intersects(Points::ENTER)
            && let Some(at) = self.enter_each(bio_id)
        {
            return Some(at);
        }
        self.entered(bio_id);
        None
    }

    #[inline(never)]
    fn enter_each(&mut self, bio_id: BioId) -> Option<usize> {
        self.first_to_hold(bio_id, Points::ENTER, 0, |controller, site| controller.enter(site, bio_id))
    }

    /// Calls `call` for each active controller that needs this call, from index `from` on, until a
    /// controller lets the bio wait. Returns the index of that controller.
    #[inline(always)]
    fn first_to_hold(
        &mut self,
        bio_id: BioId,
        point: Points,
        from: usize,
        mut call: impl FnMut(&mut dyn Controller, &mut Site) -> Passage,
    ) -> Option<usize> {
        for &Met { at, points } in &self.in_force {
            if points.intersects(point) && at >= from && call(self.list[at].as_mut(), &mut self.site) == Passage::Wait {
                self.site.bios[bio_id].waits_since = self.site.now;
                return Some(at);
            }
        }
        None
    }

    /// Handles a bio that has passed `enter`. From now on, its length no longer includes the
    /// following parts of its I/O: these parts enter separately.
    #[inline]
    fn entered(&mut self, bio_id: BioId) {
        let state = &mut self.site.bios[bio_id];
        (state.started, state.nr_sectors) = (self.site.now, state.own_sectors);
    }

    /// Returns the held bios that may continue, each with its controller, and removes them.
    pub fn released(&mut self) -> Vec<(BioId, usize)> {
        let mut all = Vec::new();
        for at in 0..self.list.len() {
            for bio_id in self.list[at].released() {
                self.waited(bio_id, at);
                self.entered(bio_id);
                all.push((bio_id, at));
            }
        }
        all
    }

    /// Asks the controllers whether a bio may get a request. Returns the index of the controller
    /// where the bio waits, if any.
    #[inline(always)]
    pub fn throttle(&mut self, bio_id: BioId) -> Option<usize> {
        self.throttle_from(bio_id, 0)
    }

    /// Continues a bio that waited at a controller. Returns the index of the controller where the
    /// bio waits again, if any.
    pub fn resumed(&mut self, bio_id: BioId, at: usize) -> Option<usize> {
        self.waited(bio_id, at);
        match self.list[at].resumed(&mut self.site, bio_id) {
            Passage::Wait => {
                self.site.bios[bio_id].waits_since = self.site.now;
                Some(at)
            }
            Passage::Pass => self.throttle_from(bio_id, at + 1),
        }
    }

    /// Returns the duration of a bio's present or last wait, ns.
    #[must_use]
    pub fn waited_ns(&self, bio_id: BioId) -> u64 {
        self.site.now.since(self.site.bios[bio_id].waits_since)
    }

    /// Counts the end of a bio's wait at the controller `at`.
    fn waited(&mut self, bio_id: BioId, at: usize) {
        let (controller, cgroup, wait_ns) = (self.name(at), self.site.bios[bio_id].cgroup, self.waited_ns(bio_id));
        let same = |waits: &&mut ControllerWaits| waits.controller == controller && waits.cgroup == cgroup;
        match self.waits.iter_mut().find(same) {
            Some(waits) => {
                waits.bios += 1;
                waits.wait_ns += wait_ns;
            }
            None => self.waits.push(ControllerWaits { controller, cgroup, bios: 1, wait_ns }),
        }
    }

    /// Returns the waits at each controller, in the order of the first wait.
    #[must_use]
    pub fn waits(&self) -> &[ControllerWaits] {
        &self.waits
    }

    #[inline(always)]
    fn throttle_from(&mut self, bio_id: BioId, from: usize) -> Option<usize> {
        if self.needed.intersects(Points::THROTTLE)
            && let Some(at) =
                self.first_to_hold(bio_id, Points::THROTTLE, from, |controller, site| controller.throttle(site, bio_id))
        {
            return Some(at);
        }
        self.site.bios[bio_id].requested = self.site.now;
        None
    }

    /// See [`Controller::merged`].
    pub fn merged(&mut self, bio_id: BioId, target: &Target) {
        self.each_at(Points::MERGED, |controller, site| controller.merged(site, bio_id, target));
    }

    /// See [`Controller::issued`].
    #[inline(always)]
    pub fn issued(&mut self, bio_id: BioId) {
        self.site.bios[bio_id].got = self.site.now;
        self.each_at(Points::ISSUED, |controller, site| controller.issued(site, bio_id));
    }

    /// See [`Controller::started`].
    #[inline(always)]
    pub fn started(&mut self, bio_id: BioId) {
        self.site.bios[bio_id].dispatched = self.site.now;
        self.each_at(Points::STARTED, |controller, site| controller.started(site, bio_id));
    }

    /// See [`Controller::absorbed`].
    pub fn absorbed(&mut self, bio_id: BioId) {
        self.each_at(Points::ABSORBED, |controller, site| controller.absorbed(site, bio_id));
    }

    /// Completes a request of `nr_sectors` sectors that began with `founder`. Ends its `bios`.
    #[inline(always)]
    pub fn completed(&mut self, founder: BioId, bios: &[BioId], nr_sectors: u64) {
        let BioState { op, requested, got, .. } = self.site.bios[founder];
        let served = Served { founder, op, nr_sectors, requested, got };
        if self.needed.intersects(Points::BIO_DONE) {
            for &bio_id in bios {
                self.each_at(Points::BIO_DONE, |controller, site| controller.bio_done(site, bio_id));
            }
        }
        self.each_at(Points::COMPLETED, |controller, site| controller.completed(site, &served, bios));
        for &bio_id in bios {
            if let Some(group) = self.site.end(bio_id) {
                self.group_left(group);
            }
        }
    }

    #[cold]
    fn group_left(&mut self, group: CgroupId) {
        self.each(|controller, site| controller.group_left(site, group));
    }

    /// Calls `call` for each active controller that needs this call.
    #[inline(always)]
    fn each_at(&mut self, point: Points, mut call: impl FnMut(&mut dyn Controller, &mut Site)) {
        if !self.needed.intersects(point) {
            return;
        }
        for met in self.in_force.iter().filter(|met| met.points.intersects(point)) {
            call(self.list[met.at].as_mut(), &mut self.site);
        }
    }

    fn each(&mut self, mut call: impl FnMut(&mut dyn Controller, &mut Site)) {
        for controller in &mut self.list {
            call(controller.as_mut(), &mut self.site);
        }
    }

    // ---- time

    /// Returns when the next timer is due.
    #[must_use]
    pub fn next_timer(&self) -> Option<Time> {
        let jiffy = |jiffy: u64| Time::from_ns(jiffy.saturating_mul(self.site.jiffy_ns));
        let coarse = self.site.wheel.next().map(|bucket| match jiffy(bucket) {
            at if at >= self.site.now => at,
            _ => jiffy(self.site.jiffies() + 1),
        });
        self.list.iter().map(|controller| controller.next_timer()).chain([coarse]).flatten().min()
    }

    /// Calls the controllers whose timers are due.
    pub fn timer(&mut self) {
        let now = self.site.now;
        for controller in &mut self.list {
            if controller.next_timer().is_some_and(|at| at <= now) {
                controller.timer(&mut self.site);
            }
        }
        while let Some(timer) = self.site.wheel.fire(self.site.jiffies()) {
            self.site.fired(timer);
            self.each(|controller, site| controller.fire(site, timer));
        }
    }

    /// Handles an interrupt of the processor's clock. Timers that are due later stay.
    pub fn clock_interrupt(&mut self) {
        self.each(|controller, site| controller.clock_interrupt(site));
    }

    /// Returns the pause of a process at the end of its system call, ns.
    pub fn rest_ns(&mut self, context: ContextId, group: CgroupId) -> u64 {
        if !self.site.take_rest(context) {
            return 0;
        }
        let rests = self.list.iter_mut().map(|controller| controller.rest_ns(&self.site, group));
        rests.max().unwrap_or(0)
    }

    // ---- changes

    /// Creates a group in `parent`.
    pub fn create_group(&mut self, parent: CgroupId) {
        let group = self.site.groups.create(parent);
        self.each(|controller, site| controller.group_created(site, group));
    }

    /// Removes a group.
    pub fn remove_group(&mut self, group: CgroupId) {
        let left = self.site.remove_group(group);
        self.each(|controller, site| controller.group_removed(site, group));
        if let Some(group) = left {
            self.group_left(group);
        }
    }

    /// See [`Controller::dirtier_sleeps`].
    pub fn dirtier_sleeps(&mut self, group: CgroupId) {
        self.each(|controller, site| controller.dirtier_sleeps(site, group));
    }

    /// See [`Controller::elevator_changed`].
    pub fn elevator_changed(&mut self, elevator: &str) {
        self.each(|controller, site| controller.elevator_changed(site, elevator));
    }
}
