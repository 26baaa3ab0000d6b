//! Implementations of [`Controller`] for the controllers of Linux.

use super::bio_state::{BioId, Passage};
use super::controller::{Controller, Controllers, Points, Served, Target};
use super::io_cost::{IoCost, IoCostFile};
use super::io_latency::IoLatency;
use super::io_max::IoMax;
use super::io_prio::IoPrio;
use super::site::Site;
use super::wbt::Wbt;
use super::wheel::TimerId;
use super::write_error::WriteError;
use crate::context::CgroupId;
use crate::kernel::KernelVersion;
use crate::time::Time;

/// Properties of a device and its queue that controllers need.
#[derive(Clone, Copy, Debug)]
pub struct ControlledDevice {
    /// Whether seeks cost time on the device.
    pub rotational: bool,
    /// Whether the device acknowledges writes from a volatile cache.
    pub write_cache: bool,
    /// Number of commands that the device accepts at the same time.
    pub depth: u32,
    /// Number of requests that may be allocated at the same time.
    pub nr_requests: u32,
    /// Whether wbt is on by default.
    pub throttles_writeback: bool,
    /// Version of Linux whose rules apply.
    pub kernel: KernelVersion,
}

impl Controllers {
    /// Creates the controllers of Linux. Bios meet them in the order io.max, io.prio, io.cost,
    /// io.latency, wbt. Each controller is inactive until one of its files is written. Only wbt is
    /// active from the start, if [`ControlledDevice::throttles_writeback`] is set.
    #[must_use]
    pub fn of_linux(mut site: Site, device: ControlledDevice) -> Self {
        let io_cost = IoCost::new(&mut site, device.rotational, device.depth);
        let io_max = IoMax::new(&mut site).of_kernel(&site, device.kernel, device.rotational);
        let io_latency = IoLatency::new(&mut site, device.rotational, device.nr_requests);
        let mut wbt = Wbt::new(&mut site, device.rotational, device.write_cache, device.depth).of_kernel(device.kernel);
        if !device.throttles_writeback {
            wbt.turn_off(&mut site);
        }
        let mut controllers = Self::new(site);
        // io.cost has no `enter`, so bios meet it after io.max and io.prio although it is first in
        // the list.
        controllers.add(Box::new(io_cost));
        controllers.add(Box::new(io_max));
        controllers.add(Box::<IoPrio>::default());
        controllers.add(Box::new(io_latency));
        controllers.add(Box::new(wbt));
        controllers
    }
}

/// Linux 6.5 to 6.10 behave differently when wbt is turned off. In these versions, waiting
/// processes continue to sleep, and a bio that has a place and waits for a tag loses the place.
/// Here, waiting processes continue, and such a bio returns its place.
impl Controller for Wbt {
    fn name(&self) -> &'static str {
        "wbt"
    }

    fn points(&self) -> Points {
        Points::THROTTLE.union(Points::ISSUED).union(Points::STARTED).union(Points::ABSORBED).union(Points::COMPLETED)
    }

    fn throttle(&mut self, site: &mut Site, bio_id: BioId) -> Passage {
        self.throttle(site, bio_id)
    }

    fn resumed(&mut self, site: &mut Site, _: BioId) -> Passage {
        self.resumed(site);
        Passage::Pass
    }

    fn issued(&mut self, site: &mut Site, bio_id: BioId) {
        self.issued(site, bio_id);
        self.even_out(site, bio_id);
    }

    fn dirtier_sleeps(&mut self, site: &mut Site, group: CgroupId) {
        self.dirtier_sleeps(site, group);
    }

    fn started(&mut self, site: &mut Site, bio_id: BioId) {
        self.started(site, bio_id);
    }

    fn absorbed(&mut self, site: &mut Site, bio_id: BioId) {
        self.done(site, bio_id);
    }

    fn completed(&mut self, site: &mut Site, request: &Served, _: &[BioId]) {
        self.completed(site, request.founder);
    }

    fn fire(&mut self, site: &mut Site, timer: TimerId) {
        if timer == self.timer_id() {
            self.fire(site);
        }
    }

    fn elevator_changed(&mut self, site: &mut Site, elevator: &str) {
        if elevator == "bfq" {
            self.bfq_taken(site);
        } else {
            self.bfq_given_up();
        }
    }

    fn other_written(&mut self, site: &mut Site) {
        self.follow_io_cost(site);
    }

    fn begins_when_written(&self) -> bool {
        self.read() == 0
    }

    fn files(&self) -> &'static [&'static str] {
        &["wbt_lat_usec"]
    }

    /// Except in Linux 6.5 to 6.10, the target changes only when no bio is in flight.
    fn drains(&self, _: &str) -> bool {
        Wbt::drains(self)
    }

    fn write(&mut self, site: &mut Site, _: &str, _: CgroupId, text: &str) -> Result<(), WriteError> {
        self.write(site, text)?;
        if self.read() == 0 {
            self.release(site);
        }
        Ok(())
    }

    fn read(&self, _: &str, _: CgroupId) -> String {
        self.read().to_string()
    }
}

impl Controller for IoMax {
    fn name(&self) -> &'static str {
        "io.max"
    }

    fn points(&self) -> Points {
        Points::ENTER
    }

    fn enter(&mut self, site: &mut Site, bio_id: BioId) -> Passage {
        self.enter(site, bio_id)
    }

    fn released(&mut self) -> Vec<BioId> {
        self.released()
    }

    fn fire(&mut self, site: &mut Site, timer: TimerId) {
        let level = self.timers(site).find(|&(_, of_level)| of_level == timer);
        if let Some((cgroup, _)) = level {
            self.fire(site, cgroup);
        }
    }

    fn group_created(&mut self, site: &mut Site, group: CgroupId) {
        self.group_created(site, group);
    }

    fn group_removed(&mut self, site: &mut Site, group: CgroupId) {
        self.group_removed(site, group);
    }

    fn begins_when_written(&self) -> bool {
        true
    }

    fn files(&self) -> &'static [&'static str] {
        &["io.max"]
    }

    fn write(&mut self, site: &mut Site, _: &str, group: CgroupId, text: &str) -> Result<(), WriteError> {
        if group == CgroupId::ROOT { Err(WriteError::Invalid) } else { self.write(site, group, text) }
    }

    fn read(&self, _: &str, group: CgroupId) -> String {
        self.read(group)
    }
}

impl Controller for IoLatency {
    fn name(&self) -> &'static str {
        "io.latency"
    }

    fn points(&self) -> Points {
        Points::THROTTLE.union(Points::BIO_DONE)
    }

    fn throttle(&mut self, site: &mut Site, bio_id: BioId) -> Passage {
        self.throttle(site, bio_id)
    }

    fn resumed(&mut self, site: &mut Site, bio_id: BioId) -> Passage {
        self.resumed(site, bio_id)
    }

    fn bio_done(&mut self, site: &mut Site, bio_id: BioId) {
        self.bio_done(site, bio_id);
    }

    fn fire(&mut self, site: &mut Site, timer: TimerId) {
        if timer == self.timer_id() {
            self.fire(site);
        }
    }

    fn rest_ns(&mut self, site: &Site, group: CgroupId) -> u64 {
        self.rest_ns(site, group)
    }

    fn group_created(&mut self, site: &mut Site, group: CgroupId) {
        self.group_created(site, group);
    }

    fn group_removed(&mut self, site: &mut Site, group: CgroupId) {
        self.group_removed(site, group);
    }

    fn begins_when_written(&self) -> bool {
        true
    }

    fn files(&self) -> &'static [&'static str] {
        &["io.latency"]
    }

    /// io.latency turns on and off only when no bio is in flight.
    fn drains(&self, _: &str) -> bool {
        true
    }

    fn write(&mut self, site: &mut Site, _: &str, group: CgroupId, text: &str) -> Result<(), WriteError> {
        if group == CgroupId::ROOT {
            return Err(WriteError::Invalid);
        }
        self.write(site, group, text)?;
        self.switch();
        Ok(())
    }

    fn read(&self, _: &str, group: CgroupId) -> String {
        self.read(group).map_or_else(|| "target=max".to_owned(), |us| format!("target={us}"))
    }
}

impl Controller for IoCost {
    fn name(&self) -> &'static str {
        "io.cost"
    }

    fn points(&self) -> Points {
        Points::THROTTLE.union(Points::MERGED).union(Points::COMPLETED)
    }

    fn throttle(&mut self, site: &mut Site, bio_id: BioId) -> Passage {
        self.throttle(site, bio_id)
    }

    fn merged(&mut self, site: &mut Site, bio_id: BioId, target: &Target) {
        self.merged(site, bio_id, target);
    }

    fn completed(&mut self, site: &mut Site, request: &Served, bios: &[BioId]) {
        self.completed(site, request, bios);
    }

    fn fire(&mut self, site: &mut Site, timer: TimerId) {
        self.fire(site, timer);
    }

    fn next_timer(&self) -> Option<Time> {
        self.next_timer()
    }

    fn timer(&mut self, site: &mut Site) {
        self.timer(site);
    }

    fn clock_interrupt(&mut self, site: &mut Site) {
        // Timers of groups may fire from their earliest time on.
        self.timer(site);
    }

    fn rest_ns(&mut self, site: &Site, group: CgroupId) -> u64 {
        IoCost::rest_ns(self, site, group)
    }

    fn group_left(&mut self, site: &mut Site, group: CgroupId) {
        self.group_left(site, group);
    }

    fn begins_when_written(&self) -> bool {
        true
    }

    fn files(&self) -> &'static [&'static str] {
        &["io.cost.qos", "io.cost.model", "io.weight", "io.stat"]
    }

    /// The cost of a bio may not change while the bio is in flight.
    fn drains(&self, file: &str) -> bool {
        matches!(IoCostFile::named(file), Some(IoCostFile::Qos | IoCostFile::Model))
    }

    fn write(&mut self, site: &mut Site, file: &str, group: CgroupId, text: &str) -> Result<(), WriteError> {
        self.write(site, IoCostFile::named(file).ok_or(WriteError::NoSuchFile)?, group, text)
    }

    fn read(&self, file: &str, group: CgroupId) -> String {
        IoCostFile::named(file).map(|file| self.read(file, group)).unwrap_or_default()
    }
}
