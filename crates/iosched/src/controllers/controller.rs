//! What a controller is: the trait, and those that stand on one way.

use super::bio_state::{BioId, BioState, Passage};
use super::site::Site;
use super::wheel::TimerId;
use super::write_error::WriteError;
use crate::context::{CgroupId, ContextId};
use crate::request::{Op, Sector};
use crate::time::Time;

/// A request that a bio joins, as it is before.
#[derive(Clone, Copy, Debug)]
pub struct Target {
    /// Its first sector.
    pub sector: Sector,
    /// The sector behind its last.
    pub end: Sector,
    /// The first of its bios in order of sectors.
    pub first: BioId,
}

/// A request that is done.
#[derive(Clone, Copy, Debug)]
pub struct Served {
    /// The bio that it began with.
    pub founder: BioId,
    /// What it did.
    pub op: Op,
    /// Its length, with all that joined it.
    pub nr_sectors: u64,
    /// When it asked for a tag.
    pub requested: Time,
    /// When it got one.
    pub got: Time,
}

/// Where a bio meets controllers on its way.
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
    /// All of them.
    pub const ALL: Self = Self(u8::MAX);

    /// Those of either.
    #[must_use]
    pub const fn union(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Whether any is in both.
    #[must_use]
    pub const fn intersects(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }
}

/// A policy beside the elevator: which bios go on, and when.
///
/// A bio comes by in this order: [`enter`](Self::enter); then, if it joined a request, [`merged`](Self::merged), and
/// otherwise [`throttle`](Self::throttle), [`issued`](Self::issued) as the first of a request and
/// [`started`](Self::started) when the device takes that; at the end [`bio_done`](Self::bio_done) for each bio and
/// [`completed`](Self::completed) for the request. All have a default, which does nothing and lets everything pass.
pub trait Controller: Send {
    /// Its name, as users write it.
    fn name(&self) -> &'static str;

    // ---- a bio

    /// Where it has to do with bios: it is not called elsewhere. It is always the same.
    fn points(&self) -> Points {
        Points::ALL
    }

    /// A bio comes. One that is told to wait is held, and its process goes on; it is handed out by
    /// [`released`](Self::released).
    fn enter(&mut self, site: &mut Site, bio_id: BioId) -> Passage {
        let _ = (site, bio_id);
        Passage::Pass
    }

    /// Takes bios that were held and may go on, in their order.
    fn released(&mut self) -> Vec<BioId> {
        Vec::new()
    }

    /// A bio that joined no request asks for one. If it is told to wait its process sleeps, until the controller hands
    /// it to [`Site::go_on`].
    fn throttle(&mut self, site: &mut Site, bio_id: BioId) -> Passage {
        let _ = (site, bio_id);
        Passage::Pass
    }

    /// A bio that waited goes on; it may have to wait once more.
    fn resumed(&mut self, site: &mut Site, bio_id: BioId) -> Passage {
        let _ = (site, bio_id);
        Passage::Pass
    }

    /// A bio joins a request, and waits for nothing.
    fn merged(&mut self, site: &mut Site, bio_id: BioId, target: &Target) {
        let _ = (site, bio_id, target);
    }

    /// A bio has become a request.
    fn issued(&mut self, site: &mut Site, bio_id: BioId) {
        let _ = (site, bio_id);
    }

    /// The device takes the request that began with this bio.
    fn started(&mut self, site: &mut Site, bio_id: BioId) {
        let _ = (site, bio_id);
    }

    /// A bio is done; also one that joined a request, and never asked for one.
    fn bio_done(&mut self, site: &mut Site, bio_id: BioId) {
        let _ = (site, bio_id);
    }

    /// The request that began with this bio was joined to another.
    fn absorbed(&mut self, site: &mut Site, bio_id: BioId) {
        let _ = (site, bio_id);
    }

    /// The device is done with a request of these bios, in order of sectors.
    fn completed(&mut self, site: &mut Site, request: &Served, bios: &[BioId]) {
        let _ = (site, request, bios);
    }

    // ---- time

    /// A timer of the [wheel](Site::wheel) fires, of this controller or another.
    fn fire(&mut self, site: &mut Site, timer: TimerId) {
        let _ = (site, timer);
    }

    /// When a timer of its own, as fine as time itself, is due.
    fn next_timer(&self) -> Option<Time> {
        None
    }

    /// Its own timer is due.
    fn timer(&mut self, site: &mut Site) {
        let _ = site;
    }

    /// How long a process of `group` that was told to rest ([`Site::rests`]) does so, ns.
    fn rest_ns(&mut self, site: &Site, group: CgroupId) -> u64 {
        let _ = (site, group);
        0
    }

    // ---- what may change

    /// A group was created, the last of all.
    fn group_created(&mut self, site: &mut Site, group: CgroupId) {
        let _ = (site, group);
    }

    /// A group was removed.
    fn group_removed(&mut self, site: &mut Site, group: CgroupId) {
        let _ = (site, group);
    }

    /// A group was removed, and no bio of it is on its way any more.
    fn group_left(&mut self, site: &mut Site, group: CgroupId) {
        let _ = (site, group);
    }

    /// The elevator of this name has taken over.
    fn elevator_changed(&mut self, site: &mut Site, elevator: &str) {
        let _ = (site, elevator);
    }

    /// Whether it has nothing to do with any bio before one of its files is written: they pass by it until then.
    fn begins_when_written(&self) -> bool {
        false
    }

    /// The files it has; those of a cgroup begin with `io.`.
    fn files(&self) -> &'static [&'static str];

    /// Whether nothing may be under way while this file is written now.
    fn drains(&self, file: &str) -> bool {
        let _ = file;
        false
    }

    /// Writes one of its [files](Self::files); `group` is the root for files of the queue.
    ///
    /// # Errors
    /// The file does not take `text`; nothing has changed that matters.
    fn write(&mut self, site: &mut Site, file: &str, group: CgroupId, text: &str) -> Result<(), WriteError>;

    /// What one of its files reads as.
    fn read(&self, file: &str, group: CgroupId) -> String;
}

/// How long bios of a cgroup waited at a controller.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ControllerWaits {
    /// The controller.
    pub controller: &'static str,
    /// Whose bios.
    pub cgroup: CgroupId,
    /// How many waited, and do no more.
    pub bios: u64,
    /// How long altogether, ns.
    pub wait_ns: u64,
}

/// The controllers of a queue, in the order in which bios meet them.
pub struct Controllers {
    /// What they share.
    pub site: Site,
    list: Vec<Box<dyn Controller>>,
    /// Those that bios meet, in their order.
    in_force: Vec<Met>,
    waits: Vec<ControllerWaits>,
}

/// A controller that bios meet.
#[derive(Clone, Copy, Debug)]
struct Met {
    /// Its place.
    at: usize,
    points: Points,
}

impl Controllers {
    /// None yet.
    #[must_use]
    pub fn new(site: Site) -> Self {
        Self { site, list: Vec::new(), in_force: Vec::new(), waits: Vec::new() }
    }

    /// One more, behind all others.
    pub fn add(&mut self, controller: Box<dyn Controller>) {
        if !controller.begins_when_written() {
            self.in_force.push(Met { at: self.list.len(), points: controller.points() });
        }
        self.list.push(controller);
    }

    /// Which controller has a file.
    #[must_use]
    pub fn of_file(&self, file: &str) -> Option<usize> {
        self.list.iter().position(|controller| controller.files().contains(&file))
    }

    /// Whether nothing may be under way while a file is written now.
    #[must_use]
    pub fn drains(&self, file: &str) -> bool {
        self.list.iter().any(|controller| controller.files().contains(&file) && controller.drains(file))
    }

    /// Writes a file, if any controller has it.
    ///
    /// # Errors
    /// The file does not take `text`.
    pub fn write(&mut self, file: &str, group: CgroupId, text: &str) -> Option<Result<(), WriteError>> {
        let at = self.of_file(file)?;
        if let Err(place) = self.in_force.binary_search_by_key(&at, |met| met.at) {
            self.in_force.insert(place, Met { at, points: self.list[at].points() });
        }
        Some(self.list[at].write(&mut self.site, file, group, text))
    }

    /// Reads a file, if any controller has it.
    #[must_use]
    pub fn read(&self, file: &str, group: CgroupId) -> Option<String> {
        Some(self.list[self.of_file(file)?].read(file, group))
    }

    // ---- a bio

    /// The name of the controller at a place.
    #[must_use]
    pub fn name(&self, at: usize) -> &'static str {
        self.list[at].name()
    }

    /// A bio comes; if it is held, `Some` is where.
    pub fn enter(&mut self, bio_id: BioId) -> Option<usize> {
        for &Met { at, points } in &self.in_force {
            if points.intersects(Points::ENTER) && self.list[at].enter(&mut self.site, bio_id) == Passage::Wait {
                self.site.bios[bio_id].waits_since = self.site.now;
                return Some(at);
            }
        }
        self.entered(bio_id);
        None
    }

    /// A bio goes on; what came with it enters by itself.
    fn entered(&mut self, bio_id: BioId) {
        let state = &mut self.site.bios[bio_id];
        (state.started, state.nr_sectors) = (self.site.now, state.own_sectors);
    }

    /// Takes bios that were held and may go on, and where each was.
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

    /// A bio asks for a request; if it waits, `Some` is where.
    pub fn throttle(&mut self, bio_id: BioId) -> Option<usize> {
        self.throttle_from(bio_id, 0)
    }

    /// A bio that waited at a place goes on; if it waits again, `Some` is where.
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

    /// How long a bio has waited where it waits, or did last, ns.
    #[must_use]
    pub fn waited_ns(&self, bio_id: BioId) -> u64 {
        self.site.now.since(self.site.bios[bio_id].waits_since)
    }

    /// A bio waits no more at the controller `at`.
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

    /// Who waited at which controller, in the order in which each first did.
    #[must_use]
    pub fn waits(&self) -> &[ControllerWaits] {
        &self.waits
    }

    fn throttle_from(&mut self, bio_id: BioId, from: usize) -> Option<usize> {
        for &Met { at, points } in self.in_force.iter().filter(|met| met.at >= from) {
            if points.intersects(Points::THROTTLE) && self.list[at].throttle(&mut self.site, bio_id) == Passage::Wait {
                self.site.bios[bio_id].waits_since = self.site.now;
                return Some(at);
            }
        }
        self.site.bios[bio_id].requested = self.site.now;
        None
    }

    /// See [`Controller::merged`].
    pub fn merged(&mut self, bio_id: BioId, target: &Target) {
        self.each_at(Points::MERGED, |controller, site| controller.merged(site, bio_id, target));
    }

    /// See [`Controller::issued`].
    pub fn issued(&mut self, bio_id: BioId) {
        self.site.bios[bio_id].got = self.site.now;
        self.each_at(Points::ISSUED, |controller, site| controller.issued(site, bio_id));
    }

    /// See [`Controller::started`].
    pub fn started(&mut self, bio_id: BioId) {
        self.site.bios[bio_id].dispatched = self.site.now;
        self.each_at(Points::STARTED, |controller, site| controller.started(site, bio_id));
    }

    /// See [`Controller::absorbed`].
    pub fn absorbed(&mut self, bio_id: BioId) {
        self.each_at(Points::ABSORBED, |controller, site| controller.absorbed(site, bio_id));
    }

    /// The device is done with a request that began with `founder` and is of these bios, `nr_sectors` long: they end.
    pub fn completed(&mut self, founder: BioId, bios: &[BioId], nr_sectors: u64) {
        let BioState { op, requested, got, .. } = self.site.bios[founder];
        let served = Served { founder, op, nr_sectors, requested, got };
        for &bio_id in bios {
            self.each_at(Points::BIO_DONE, |controller, site| controller.bio_done(site, bio_id));
        }
        self.each_at(Points::COMPLETED, |controller, site| controller.completed(site, &served, bios));
        for &bio_id in bios {
            if let Some(group) = self.site.end(bio_id) {
                self.each(|controller, site| controller.group_left(site, group));
            }
        }
    }

    /// Those that bios meet there.
    #[inline]
    fn each_at(&mut self, point: Points, mut call: impl FnMut(&mut dyn Controller, &mut Site)) {
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

    /// When something is due.
    #[must_use]
    pub fn next_timer(&self) -> Option<Time> {
        let jiffy = |jiffy: u64| Time::from_ns(jiffy.saturating_mul(self.site.jiffy_ns));
        let coarse = self.site.wheel.next().map(|bucket| match jiffy(bucket) {
            at if at >= self.site.now => at,
            _ => jiffy(self.site.jiffies() + 1),
        });
        self.list.iter().map(|controller| controller.next_timer()).chain([coarse]).flatten().min()
    }

    /// Does what is due.
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

    /// How long a process rests before it does anything else, ns: asked when its system call ends.
    pub fn rest_ns(&mut self, context: ContextId, group: CgroupId) -> u64 {
        if !self.site.take_rest(context) {
            return 0;
        }
        let rests = self.list.iter_mut().map(|controller| controller.rest_ns(&self.site, group));
        rests.max().unwrap_or(0)
    }

    // ---- what may change

    /// A group in `parent`.
    pub fn create_group(&mut self, parent: CgroupId) {
        let group = self.site.groups.create(parent);
        self.each(|controller, site| controller.group_created(site, group));
    }

    /// A group is no more.
    pub fn remove_group(&mut self, group: CgroupId) {
        let left = self.site.remove_group(group);
        self.each(|controller, site| controller.group_removed(site, group));
        if let Some(group) = left {
            self.each(|controller, site| controller.group_left(site, group));
        }
    }

    /// See [`Controller::elevator_changed`].
    pub fn elevator_changed(&mut self, elevator: &str) {
        self.each(|controller, site| controller.elevator_changed(site, elevator));
    }
}
