//! Control of a served disk: reads and changes the state that the attribute tree shows.

use std::collections::BTreeMap;

use iosched::controllers::CgroupFileError;
use iosched::recording::Record;
use iosched::{
    ContextId, IoPriority, Rates, Registry, RequestQueue, Spec, Stat, Time, TunableError, UnknownElevator, WeightError,
    WeightRange,
};
use iosched_system::Pool;

use iosched_trace::BlkEvent;

use crate::Portion;

use super::{Client, ClientId, ClientStat, DecisionCounts, Failures, LiveDisk, RemoveGroupError, SyncWrites};

/// File with a group's reservation and limit.
pub(crate) const MCLOCK: &str = "io.mclock";
/// Maximum number of requests of all clients together.
const REQUESTS_MAX: u64 = 1 << 20;
/// Maximum number of requests of one client. This maximum bounds the memory. The queue itself
/// allows more requests.
const NR_REQUESTS_MAX: u64 = 1 << 16;

/// Returns the range of values that a served disk accepts for an attribute of its queue. The queue
/// itself may accept more values.
#[must_use]
pub fn attribute_spec(declared: &Spec) -> Spec {
    let max = if declared.name == "nr_requests" { NR_REQUESTS_MAX } else { declared.max };
    Spec { max, ..*declared }
}

impl LiveDisk {
    /// Returns the name of the disk.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.settings.name
    }

    /// Returns the size of the disk in bytes. Only [`LiveDisk::rescan`] increases the size.
    #[must_use]
    pub fn capacity_bytes(&self) -> u64 {
        self.size.bytes()
    }

    /// Returns the block size of the back end in bytes: the smallest unit that the back end reads
    /// and writes.
    #[must_use]
    pub fn block_bytes(&self) -> u32 {
        self.settings.card.block_bytes
    }

    /// Returns the maximum number of bytes of all clients' operations together.
    #[must_use]
    pub fn budget_bytes(&self) -> u64 {
        self.settings.budget_bytes
    }

    /// Returns whether trimmed ranges read as zeroes.
    #[must_use]
    pub fn trim_zeroes(&self) -> bool {
        self.settings.card.trim_zeroes
    }

    /// Returns whether the disk is a rotational device.
    #[must_use]
    pub fn is_rotational(&self) -> bool {
        self.settings.card.device.rotational
    }

    /// Returns the pool of the disk's buffers.
    #[must_use]
    pub fn pool(&self) -> &Pool {
        &self.pool
    }

    /// Returns the request queue: its scheduler, tunables and statistics. [`LiveDisk::attribute`]
    /// reads attributes.
    #[must_use]
    pub fn queue(&self) -> &RequestQueue {
        self.driver.queue()
    }

    /// Returns the schedulers that the disk can be switched to.
    #[must_use]
    pub fn registry(&self) -> &Registry {
        &self.settings.registry
    }

    /// Switches to another scheduler. The current scheduler first serves its remaining requests.
    /// `nr_requests` does not change.
    ///
    /// # Errors
    /// No scheduler has this name.
    pub fn switch(&mut self, now: Time, name: &str) -> Result<(), UnknownElevator> {
        let registered = self.settings.registry.get(name)?;
        self.driver.switch(now, registered);
        self.switching = true;
        self.follow_switch(now);
        self.feed_all(now);
        Ok(())
    }

    /// Restores each client's `nr_requests` when a switch has ended. The new scheduler may have
    /// changed the queue's value. Returns whether a switch has ended.
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
    /// The queue has no attribute of this name.
    pub fn attribute(&self, name: &str) -> Result<String, TunableError> {
        match name {
            "nr_requests" => Ok(self.nr_requests.to_string()),
            "scheduler" => Ok(self.settings.registry.listed(self.queue().scheduler())),
            _ => self.driver.queue().attribute(name),
        }
    }

    /// Writes an attribute of the queue other than `scheduler`. An error changes nothing.
    ///
    /// # Errors
    /// The queue has no attribute of this name, the attribute is read-only, or the value is out of
    /// range.
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

    /// Writes a tunable of the scheduler. An error changes nothing.
    ///
    /// # Errors
    /// The scheduler has no tunable of this name, or the value is out of range.
    pub fn set_tunable(&mut self, now: Time, name: &str, value: &str) -> Result<(), TunableError> {
        self.driver.set_tunable(now, name, value)
    }

    /// Uses the queue's `nr_requests` as the number of requests of each client.
    pub(super) fn adopt_nr_requests(&mut self) {
        let read = self.driver.queue().attribute("nr_requests").ok().and_then(|value| value.parse().ok());
        self.nr_requests = read.unwrap_or(self.nr_requests).max(1);
    }

    /// Sets the queue's `nr_requests` to the total number of requests of all clients.
    pub(super) fn scale_requests(&mut self, now: Time) {
        let wanted = u64::from(self.nr_requests) * self.clients.len().max(1) as u64;
        let wanted = wanted.min(REQUESTS_MAX);
        if self.driver.queue().attribute("nr_requests").ok() != Some(wanted.to_string()) {
            // The write cannot fail, because the attribute accepts every number from 1.
            let _ = self.driver.set_attribute(now, "nr_requests", &wanted.to_string());
        }
    }

    /// Returns the statistics of the queue up to `now`.
    pub fn stat(&mut self, now: Time) -> Stat {
        *self.driver.stat(now)
    }

    /// Returns the number of reads and the number of writes in the back end.
    #[must_use]
    pub fn inflight(&self) -> [u32; 2] {
        self.in_device
    }

    /// Returns the counts of failed commands. If a request with several parts fails, the disk
    /// retries the parts one at a time. Each part that fails again counts as another failure.
    #[must_use]
    pub fn failures(&self) -> &Failures {
        &self.failures
    }

    /// Returns whether the back end writes zeroes faster than data.
    #[must_use]
    pub fn has_fast_zeroes(&self) -> bool {
        self.settings.card.fast_zeroes
    }

    /// Returns the queue depth: the maximum number of commands in the back end at the same time.
    #[must_use]
    pub fn depth(&self) -> u32 {
        self.settings.card.device.depth
    }

    /// Returns the maximum queue depth that the back end supports.
    #[must_use]
    pub fn depth_max(&self) -> u32 {
        self.settings.card.depth_max
    }

    /// Sets the queue depth. A value out of range becomes 1 or [`LiveDisk::depth_max`].
    pub fn set_depth(&mut self, depth: u32) {
        self.settings.card.device.depth = depth.clamp(1, self.settings.card.depth_max.max(1));
        self.driver.note_depth(self.settings.card.device.depth);
    }

    /// Iterates over all clients, in an unspecified order.
    pub fn clients(&self) -> impl Iterator<Item = &Client> {
        self.clients.iter()
    }

    /// Returns a connected client.
    #[must_use]
    pub fn client(&self, id: ClientId) -> Option<&Client> {
        self.clients.get(id).filter(|client| !client.leaving)
    }

    pub(super) fn client_ids(&self) -> Vec<ClientId> {
        self.clients.iter().map(|client| client.id).collect()
    }

    /// Changes the I/O priority of a connected client.
    pub fn set_client_ioprio(&mut self, id: ClientId, ioprio: IoPriority) {
        if let Some(client) = self.clients.get_mut(id) {
            client.identity.ioprio = ioprio;
            let context: ContextId = client.context;
            self.driver.set_ioprio(context, ioprio);
        }
    }

    /// Selects which of a client's writes are sync. The selection applies from the next operation
    /// on.
    pub fn set_client_sync(&mut self, id: ClientId, sync: SyncWrites) {
        if let Some(client) = self.clients.get_mut(id) {
            client.identity.sync = sync;
        }
    }

    /// Moves a client to a group. `None` is the root. Creates the group if it does not exist. Only
    /// later operations of the client belong to the new group.
    pub fn set_client_group(&mut self, now: Time, id: ClientId, group: Option<String>) {
        let cgroup = self.clients.cgroup(&mut self.driver, group.as_deref());
        if let Some(client) = self.clients.move_to(id, group) {
            self.driver.move_context(now, client.context, cgroup);
        }
    }

    /// Returns the statistics of each group since its creation. They include clients that have
    /// disconnected or moved to another group. `None` is the root.
    #[must_use]
    pub fn group_stats(&self) -> BTreeMap<Option<String>, ClientStat> {
        self.clients.group_stats()
    }

    /// Declares the group of an export and sets its weight, reservation and limit. The group stays
    /// until [`LiveDisk::release_group`].
    ///
    /// # Errors
    /// The current scheduler does not accept the weight. The group exists even after this error.
    pub fn group(&mut self, name: &str, portion: Portion) -> Result<(), WeightError> {
        let set = self.set_group_weight(name, portion.weight);
        let (reservation, limit) = (portion.rates.reservation_text(), portion.rates.limit_text());
        let now = self.queue().env().now;
        // This write cannot fail, because exports declare only reservations up to the limit.
        let _ = self.set_group_file(now, name, MCLOCK, &format!("reservation={reservation} limit={limit}"));
        self.clients.declare(name, true);
        set
    }

    /// Returns the reservations and limits of all groups by name.
    pub fn group_rates(&self) -> impl Iterator<Item = (&str, Rates)> {
        let cgroups = &self.driver.queue().env().cgroups;
        self.clients.groups().map(|(name, cgroup)| (name, cgroups.rates(cgroup)))
    }

    /// Ends the declaration of a group, because its export is removed. Users can then remove the
    /// group.
    pub fn release_group(&mut self, name: &str) {
        self.clients.declare(name, false);
    }

    /// Sets the weight of the group `name`. `None` is the scheduler's default. Creates the group if
    /// it does not exist.
    ///
    /// # Errors
    /// The current scheduler does not accept the weight.
    pub fn set_group_weight(&mut self, name: &str, weight: Option<u32>) -> Result<(), WeightError> {
        self.clients.set_weight(&mut self.driver, name, weight)
    }

    /// Removes a group. Its name can be used again.
    ///
    /// # Errors
    /// No group has this name, an export declares the group, or the group has clients.
    pub fn remove_group(&mut self, now: Time, name: &str) -> Result<(), RemoveGroupError> {
        self.clients.remove_group(&mut self.driver, now, name)?;
        self.feed_all(now);
        Ok(())
    }

    /// Iterates over all groups by name, with the weights in force.
    pub fn groups(&self) -> impl Iterator<Item = (&str, u32)> {
        let cgroups = &self.driver.queue().env().cgroups;
        self.clients.groups().map(|(name, cgroup)| (name, cgroups.weight(cgroup)))
    }

    /// Returns the content of a group's controller file, for example `io.max`. Returns `None` if
    /// the group or the file does not exist.
    pub fn group_file(&mut self, group: &str, file: &str) -> Option<String> {
        let cgroup = self.clients.groups().find(|(name, _)| *name == group)?.1;
        self.driver.cgroup_attribute(cgroup, file).ok()
    }

    /// Writes a group's controller file. Creates the group if it does not exist. The new limits
    /// also apply to requests that already wait.
    ///
    /// # Errors
    /// No controller has this file, or the file does not accept the text. The group exists even
    /// after this error, but its limits do not change.
    pub fn set_group_file(&mut self, now: Time, group: &str, file: &str, text: &str) -> Result<(), CgroupFileError> {
        let cgroup = self.clients.cgroup(&mut self.driver, Some(group));
        self.driver.set_cgroup_attribute(now, cgroup, file, text)?;
        self.feed_all(now);
        Ok(())
    }

    /// Returns the weights that the current scheduler accepts.
    #[must_use]
    pub fn weight_range(&self) -> WeightRange {
        self.driver.queue().weight_range()
    }

    /// Starts to count the scheduler's decisions. If `trace` is true, also keeps the events of a
    /// block trace for [`LiveDisk::take_events`].
    pub fn watch(&mut self, now: Time, trace: bool) {
        let watch = self.watch.get_or_insert_default();
        watch.trace(trace);
        for client in self.clients.iter() {
            watch.connected(now, client.trace_pid(), &client.identity.name);
        }
        self.driver.record_decisions(true);
    }

    /// Starts to count the scheduler's decisions.
    pub fn count_decisions(&mut self, now: Time) {
        if self.watch.is_none() {
            self.watch(now, false);
        }
    }

    /// Returns the counts of the scheduler's decisions since [`LiveDisk::watch`]. Returns `None` if
    /// the disk does not count decisions.
    pub fn decision_counts(&mut self) -> Option<DecisionCounts> {
        let watch = self.watch.as_mut()?;
        watch.look(&mut self.driver);
        Some(watch.counts)
    }

    /// Returns the events of the block trace since the last call. While the disk is
    /// [watched](LiveDisk::watch), the caller must call this method often, because events
    /// accumulate.
    pub fn take_events(&mut self) -> Vec<BlkEvent> {
        let Some(watch) = &mut self.watch else { return Vec::new() };
        watch.look(&mut self.driver);
        watch.take_events()
    }

    /// Ends the recording of the disk.
    pub fn end_records(&mut self) {
        self.driver.end_record();
        if let Some(watch) = &mut self.watch {
            watch.keep_decisions(false);
        }
    }

    /// Returns the driver's inputs and the decisions since the last call, if the disk is recorded.
    /// The caller must call this method often, because records accumulate.
    pub fn take_records(&mut self) -> Vec<Record> {
        let mut records = self.driver.take_records();
        if let Some(watch) = &mut self.watch {
            watch.look(&mut self.driver);
            records.append(&mut watch.decisions);
        }
        records
    }
}
