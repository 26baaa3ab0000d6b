//! Control of a live disk: what its tree shows and changes.

use iosched::controllers::CgroupFileError;
use iosched::recording::Record;
use iosched::{
    ContextId, IoPriority, Registry, RequestQueue, Spec, Stat, Time, TunableError, UnknownElevator, WeightError,
    WeightRange,
};
use iosched_system::Pool;

use iosched_trace::BlkEvent;

use super::{Client, ClientId, DecisionCounts, Failures, LiveDisk, RemoveGroupError, SyncWrites};

/// Requests of all clients together are at most so many.
const REQUESTS_MAX: u64 = 1 << 20;
/// Requests of one client: memory is bounded, whatever the queue would take.
const NR_REQUESTS_MAX: u64 = 1 << 16;

/// What a live disk takes for an attribute of its queue, which may be less than the queue would.
#[must_use]
pub fn attribute_spec(declared: &Spec) -> Spec {
    let max = if declared.name == "nr_requests" { NR_REQUESTS_MAX } else { declared.max };
    Spec { max, ..*declared }
}

impl LiveDisk {
    /// What it is called.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.settings.name
    }

    /// Its size in bytes; it grows by [`LiveDisk::rescan`].
    #[must_use]
    pub fn capacity_bytes(&self) -> u64 {
        self.size.bytes()
    }

    /// What the back end reads and writes at least, in bytes.
    #[must_use]
    pub fn block_bytes(&self) -> u32 {
        self.settings.card.block_bytes
    }

    /// Bytes that clients' operations are to hold together at most.
    #[must_use]
    pub fn budget_bytes(&self) -> u64 {
        self.settings.budget_bytes
    }

    /// Whether what is trimmed reads as zeroes.
    #[must_use]
    pub fn trim_zeroes(&self) -> bool {
        self.settings.card.trim_zeroes
    }

    /// Whether seeking costs on it.
    #[must_use]
    pub fn is_rotational(&self) -> bool {
        self.settings.card.device.rotational
    }

    /// Where its buffers come from.
    #[must_use]
    pub fn pool(&self) -> &Pool {
        &self.pool
    }

    /// The request queue: its elevator, tunables and statistics. Attributes are read by [`LiveDisk::attribute`].
    #[must_use]
    pub fn queue(&self) -> &RequestQueue {
        self.driver.queue()
    }

    /// The elevators that it can be switched to.
    #[must_use]
    pub fn registry(&self) -> &Registry {
        &self.settings.registry
    }

    /// Changes the elevator. What is queued under the present one is served first. `nr_requests` stays as it is.
    ///
    /// # Errors
    /// If there is no such elevator.
    pub fn switch(&mut self, now: Time, name: &str) -> Result<(), UnknownElevator> {
        let registered = self.settings.registry.get(name)?;
        self.driver.switch(now, registered);
        self.switching = true;
        self.follow_switch(now);
        self.feed_all(now);
        Ok(())
    }

    /// Each client keeps its `nr_requests`, whatever the queue makes of them when the new elevator takes over. Whether
    /// it has.
    #[inline]
    pub(super) fn follow_switch(&mut self, now: Time) -> bool {
        let over = self.switching && !self.driver.queue().is_switching();
        if over {
            self.switching = false;
            self.scale_requests(now);
        }
        over
    }

    pub(super) fn feed_all(&mut self, now: Time) {
        for client in self.client_ids() {
            self.feed(now, client);
        }
        self.settle(now);
    }

    /// Reads an attribute of the queue.
    ///
    /// # Errors
    /// If there is none of that name.
    pub fn attribute(&self, name: &str) -> Result<String, TunableError> {
        match name {
            "nr_requests" => Ok(self.nr_requests.to_string()),
            "scheduler" => Ok(self.settings.registry.listed(self.queue().scheduler())),
            _ => self.driver.queue().attribute(name),
        }
    }

    /// Writes an attribute of the queue, other than `scheduler`. On error nothing has changed.
    ///
    /// # Errors
    /// If there is none of that name, it is read-only, or it does not take that value.
    pub fn set_attribute(&mut self, now: Time, name: &str, value: &str) -> Result<(), TunableError> {
        let nr_requests = name == "nr_requests";
        if let Some(spec) = RequestQueue::attribute_specs().find(|spec| nr_requests && spec.name == name) {
            attribute_spec(spec).parse(value)?;
        }
        self.driver.set_attribute(now, name, value)?;
        if nr_requests {
            self.adopt_nr_requests();
            self.scale_requests(now);
        }
        self.feed_all(now);
        Ok(())
    }

    /// Writes a tunable of the elevator. On error nothing has changed.
    ///
    /// # Errors
    /// If the elevator has none of that name, or it does not take that value.
    pub fn set_tunable(&mut self, now: Time, name: &str, value: &str) -> Result<(), TunableError> {
        self.driver.set_tunable(now, name, value)
    }

    /// What the queue has as `nr_requests` is what each client has from now on.
    pub(super) fn adopt_nr_requests(&mut self) {
        let read = self.driver.queue().attribute("nr_requests").ok().and_then(|value| value.parse().ok());
        self.nr_requests = read.unwrap_or(self.nr_requests).max(1);
    }

    /// The queue has room for what every client may have.
    pub(super) fn scale_requests(&mut self, now: Time) {
        let wanted = u64::from(self.nr_requests) * self.clients.len().max(1) as u64;
        let wanted = wanted.min(REQUESTS_MAX);
        if self.driver.queue().attribute("nr_requests").ok() != Some(wanted.to_string()) {
            // It takes every number from 1 on.
            let _ = self.driver.set_attribute(now, "nr_requests", &wanted.to_string());
        }
    }

    /// The statistics of the queue up to now.
    pub fn stat(&mut self, now: Time) -> Stat {
        *self.driver.stat(now)
    }

    /// Reads and writes in the back end.
    #[must_use]
    pub fn inflight(&self) -> [u32; 2] {
        self.in_device
    }

    /// Commands that the back end has failed to do. What it was then tried again part by part counts once more for
    /// each part that fails.
    #[must_use]
    pub fn failures(&self) -> &Failures {
        &self.failures
    }

    /// Whether zeroes are written faster than data.
    #[must_use]
    pub fn has_fast_zeroes(&self) -> bool {
        self.settings.card.fast_zeroes
    }

    /// Commands the back end is given at once.
    #[must_use]
    pub fn depth(&self) -> u32 {
        self.settings.card.device.depth
    }

    /// The most commands that the back end takes at once.
    #[must_use]
    pub fn depth_max(&self) -> u32 {
        self.settings.card.depth_max
    }

    /// Changes how many commands the back end is given at once, within 1 and [`LiveDisk::depth_max`].
    pub fn set_depth(&mut self, depth: u32) {
        self.settings.card.device.depth = depth.clamp(1, self.settings.card.depth_max.max(1));
        self.driver.note_depth(self.settings.card.device.depth);
    }

    /// All clients, in no order that means anything.
    pub fn clients(&self) -> impl Iterator<Item = &Client> {
        self.clients.iter()
    }

    /// A client that is connected.
    #[must_use]
    pub fn client(&self, id: ClientId) -> Option<&Client> {
        self.clients.get(id).filter(|client| !client.leaving)
    }

    pub(super) fn client_ids(&self) -> Vec<ClientId> {
        self.clients.iter().map(|client| client.id).collect()
    }

    /// Changes a client's priority.
    pub fn set_client_ioprio(&mut self, id: ClientId, ioprio: IoPriority) {
        if let Some(client) = self.clients.get_mut(id) {
            client.identity.ioprio = ioprio;
            let context: ContextId = client.context;
            self.driver.set_ioprio(context, ioprio);
        }
    }

    /// Changes which of a client's writes are sync, from the next one on.
    pub fn set_client_sync(&mut self, id: ClientId, sync: SyncWrites) {
        if let Some(client) = self.clients.get_mut(id) {
            client.identity.sync = sync;
        }
    }

    /// Moves a client to a group, made if it is not there; `None` is the root. What it asks for from now on belongs
    /// there.
    pub fn set_client_group(&mut self, now: Time, id: ClientId, group: Option<String>) {
        let cgroup = self.clients.cgroup(&mut self.driver, group.as_deref());
        if let Some(client) = self.clients.get_mut(id) {
            client.identity.group = group;
            self.driver.move_context(now, client.context, cgroup);
        }
    }

    /// Declares the group of an export, and gives it a weight; `None` is the elevator's default. It stays until
    /// [`LiveDisk::release_group`].
    ///
    /// # Errors
    /// If the present elevator does not take that weight; the group is there all the same.
    pub fn group(&mut self, name: &str, weight: Option<u32>) -> Result<(), WeightError> {
        let set = self.set_group_weight(name, weight);
        self.clients.declare(name, true);
        set
    }

    /// The export that declared a group is gone: the group can be removed.
    pub fn release_group(&mut self, name: &str) {
        self.clients.declare(name, false);
    }

    /// Gives the group of that name a weight, and makes it if it is not there; `None` is the elevator's default.
    ///
    /// # Errors
    /// If the present elevator does not take that weight.
    pub fn set_group_weight(&mut self, name: &str, weight: Option<u32>) -> Result<(), WeightError> {
        self.clients.set_weight(&mut self.driver, name, weight)
    }

    /// Removes a group. Its name can be had again.
    ///
    /// # Errors
    /// If there is none, an export declares it, or clients are in it.
    pub fn remove_group(&mut self, now: Time, name: &str) -> Result<(), RemoveGroupError> {
        self.clients.remove_group(&mut self.driver, now, name)?;
        self.feed_all(now);
        Ok(())
    }

    /// All groups by name, with the weights in force.
    pub fn groups(&self) -> impl Iterator<Item = (&str, u32)> {
        let cgroups = &self.driver.queue().env().cgroups;
        self.clients.groups().map(|(name, cgroup)| (name, cgroups.weight(cgroup)))
    }

    /// What a controller's file of a group holds, as `io.max`; `None` if there is no such group or file.
    pub fn group_file(&mut self, group: &str, file: &str) -> Option<String> {
        let cgroup = self.clients.groups().find(|(name, _)| *name == group)?.1;
        self.driver.cgroup_attribute(cgroup, file).ok()
    }

    /// Writes a controller's file of a group, which is made if it is not there. What waits goes by that at once.
    ///
    /// # Errors
    /// If no controller has such a file, or it does not take that text; nothing has changed then, but for the group.
    pub fn set_group_file(&mut self, now: Time, group: &str, file: &str, text: &str) -> Result<(), CgroupFileError> {
        let cgroup = self.clients.cgroup(&mut self.driver, Some(group));
        self.driver.set_cgroup_attribute(now, cgroup, file, text)?;
        self.feed_all(now);
        Ok(())
    }

    /// The weights that the present elevator takes.
    #[must_use]
    pub fn weight_range(&self) -> WeightRange {
        self.driver.queue().weight_range()
    }

    /// Counts what the elevator decides from now on, and keeps the events of a block trace for
    /// [`LiveDisk::take_events`] if `trace`.
    pub fn watch(&mut self, now: Time, trace: bool) {
        let watch = self.watch.get_or_insert_default();
        watch.trace(trace);
        for client in self.clients.iter() {
            watch.connected(now, client.trace_pid(), &client.identity.name);
        }
        self.driver.record_decisions(true);
    }

    /// Counts what the elevator decides from now on.
    pub fn count_decisions(&mut self, now: Time) {
        if self.watch.is_none() {
            self.watch(now, false);
        }
    }

    /// How often the elevator decided what since it is [watched](LiveDisk::watch); `None` if it is not.
    pub fn decision_counts(&mut self) -> Option<DecisionCounts> {
        let watch = self.watch.as_mut()?;
        watch.look(&mut self.driver);
        Some(watch.counts)
    }

    /// The block trace since the last call. Whoever has the disk [watched](LiveDisk::watch) asks often, or what is not
    /// looked at piles up.
    pub fn take_events(&mut self) -> Vec<BlkEvent> {
        let Some(watch) = &mut self.watch else { return Vec::new() };
        watch.look(&mut self.driver);
        watch.take_events()
    }

    /// The disk is recorded no longer.
    pub fn end_records(&mut self) {
        self.driver.end_record();
        if let Some(watch) = &mut self.watch {
            watch.keep_decisions(false);
        }
    }

    /// What the disk's driver was told and what was decided since the last call, if the disk is recorded. Whoever has
    /// it recorded asks often, or what is not taken piles up.
    pub fn take_records(&mut self) -> Vec<Record> {
        let mut records = self.driver.take_records();
        if let Some(watch) = &mut self.watch {
            watch.look(&mut self.driver);
            records.append(&mut watch.decisions);
        }
        records
    }
}
