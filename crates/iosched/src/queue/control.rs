//! Control: attributes, tunables, cgroups, and switching of elevators at run time.

use super::allocation::Allocation;
use super::attributes::{ATTRIBUTES, default_nr_requests};
use super::config::DeviceQueues;
use super::{Next, RequestQueue};
use crate::context::{Cgroup, CgroupId, ContextId, WeightError, WeightRange};
use crate::controllers::{self, BFQ_WEIGHT, CgroupFileError, Controller, NamedWrite, Site, Wbt, WriteError};
use crate::decision::Decision;
use crate::elevator::{Elevator, Registered};
use crate::env::Env;
use crate::layer::Layer;
use crate::mclock::Progress;
use crate::rates::{MCLOCK_FILE, Rates, RatesWrite};
use crate::registry::Registry;
use crate::request::{Request, RequestStage};
use crate::time::Time;
use crate::tunable::{Spec, TunableError};

/// File that configures wbt.
const WBT_FILE: &str = "wbt_lat_usec";

impl DeviceQueues {
    /// Creates an elevator with its defaults.
    pub(super) fn build(self, env: &mut Env, registered: &Registered, nr_requests: u32) -> Box<dyn Elevator> {
        env.hw_queues = if registered.layer.is_multi_queue() { self.count } else { 1 };
        env.hw_queue = 0;
        let mut elevator = (registered.build)(env);
        if registered.layer.is_multi_queue() {
            elevator.resized(nr_requests);
        }
        elevator
    }
}

impl RequestQueue {
    /// Returns the declarations of all attributes except `scheduler`.
    pub fn attribute_specs() -> impl Iterator<Item = &'static Spec> {
        ATTRIBUTES.specs()
    }

    /// Reads an attribute of the queue. For `scheduler`, returns the names of all elevators of
    /// Linux, with the present elevator in brackets. If the present elevator is not in this list,
    /// its name comes last.
    ///
    /// # Errors
    /// Fails if the name does not exist.
    pub fn attribute(&self, name: &str) -> Result<String, TunableError> {
        if name == "scheduler" {
            return Ok(Registry::linux().listed(self.scheduler()));
        }
        if name == WBT_FILE && self.throttles_writeback {
            if let Some(target) = self
                .controlled
                .as_ref()
                .filter(|_| self.is_multi_queue())
                .and_then(|controlled| controlled.read(WBT_FILE, CgroupId::ROOT))
            {
                return Ok(target);
            }
            let throttles = self.is_multi_queue() && self.scheduler() != "bfq";
            let target_us = if throttles { Wbt::target_default_us(self.attributes.rotational) } else { 0 };
            return Ok(target_us.to_string());
        }
        ATTRIBUTES.get(&self.attributes, name).map(|value| value.to_string())
    }

    /// Writes an attribute other than `scheduler` (see
    /// [`RequestQueue::switch`]). An error changes nothing.
    ///
    /// # Errors
    /// Fails if the name does not exist, if the attribute is read-only, or if it refuses the value.
    pub fn set_attribute(&mut self, now: Time, name: &str, value: &str) -> Result<(), TunableError> {
        self.enter(now);
        if controllers::is_file(name) {
            return self.set_named_cgroups(name, value);
        }
        if name == "iostats" && self.attributes.iostats {
            self.stat.advance(now);
        }
        self.attributes.set(name, value)?;
        match name {
            "nr_requests" => match &mut self.allocation {
                Allocation::Single(limits) => limits.resized(now, self.attributes.nr_requests),
                Allocation::Multi(_) => self.resize_tags(),
            },
            WBT_FILE => {
                self.throttles_writeback = false;
                if self.controlled.is_some() || self.attributes.wbt_lat_usec > 0 {
                    let _ = self.write_controlled(name, CgroupId::ROOT, value);
                }
            }
            // The statistics do not count the time in which they were off.
            "iostats" => self.stat.stamp = now,
            _ => {}
        }
        Ok(())
    }

    /// Returns the maximum length of a request, in sectors. Hosts split longer I/Os.
    #[must_use]
    pub fn max_sectors(&self) -> u32 {
        self.attributes.max_sectors
    }

    /// Returns the maximum readahead window, in KiB. Only hosts with a page cache use it.
    #[must_use]
    pub fn read_ahead_kb(&self) -> u32 {
        self.attributes.read_ahead_kb
    }

    /// Reads a tunable of the elevator, in the unit of its declaration. During a switch, reads the
    /// tunable of the new elevator.
    ///
    /// # Errors
    /// Fails if the name does not exist.
    pub fn tunable(&self, name: &str) -> Result<u64, TunableError> {
        match self.incoming().tunables() {
            Some(tunables) => tunables.get(name),
            None => Err(TunableError::none(name, self.scheduler())),
        }
    }

    /// Reads a tunable or another file of the elevator as text, without the last line end. During a
    /// switch, reads the file of the new elevator.
    ///
    /// # Errors
    /// Fails if the name does not exist, or if the file is write-only.
    pub fn tunable_text(&self, name: &str) -> Result<String, TunableError> {
        match self.incoming().tunables() {
            Some(tunables) => tunables.text(name),
            None => Err(TunableError::none(name, self.scheduler())),
        }
    }

    /// Writes a tunable of the elevator. During a switch, writes the tunable of the new elevator.
    /// An error changes nothing.
    ///
    /// # Errors
    /// Fails if the name does not exist, or if the file refuses the value.
    pub fn set_tunable(&mut self, now: Time, name: &str, value: &str) -> Result<(), TunableError> {
        self.enter(now);
        let owner = self.scheduler();
        let elevator = self.next.as_mut().map_or(&mut self.elevator, |next| &mut next.elevator);
        match elevator.tunables_mut() {
            Some(tunables) => tunables.set(name, value)?,
            None => return Err(TunableError::none(name, owner)),
        }
        elevator.tunable_changed(&mut self.env, name);
        Ok(())
    }

    /// Returns the weights of cgroups that the elevator accepts. During a switch, the new elevator
    /// determines the result.
    #[must_use]
    pub fn weight_range(&self) -> WeightRange {
        self.incoming_registered().weights
    }

    /// Creates a cgroup.
    ///
    /// # Errors
    /// Fails if a weight is out of range.
    pub fn create_cgroup(&mut self, cgroup: Cgroup) -> Result<CgroupId, WeightError> {
        let parent = cgroup.parent.unwrap_or(CgroupId::ROOT);
        self.env.cgroups.require(parent);
        let id = self.env.cgroups.create(self.weight_range(), cgroup)?;
        self.cgroup_controlled(id, Some(parent));
        self.write_named(id);
        Ok(id)
    }

    /// Changes the weights of a cgroup. An elevator uses the new weights when it next charges the
    /// group, or when it next adds the group to its active groups.
    ///
    /// # Errors
    /// Fails if a weight is out of range; nothing changes then.
    pub fn set_weights(
        &mut self,
        cgroup: CgroupId,
        weight: Option<u32>,
        leaf_weight: Option<u32>,
    ) -> Result<(), WeightError> {
        self.env.cgroups.require(cgroup);
        self.env.cgroups.set_weights(self.weight_range(), cgroup, weight, leaf_weight)?;
        if let Some(elevator) = self.elevator.per_group() {
            elevator.weight_changed(&mut self.env, cgroup);
        }
        Ok(())
    }

    /// Adds a controller after the controllers of Linux. With an elevator of
    /// [`Layer::SingleQueue`](crate::Layer::SingleQueue), the controller has no effect.
    pub fn add_controller(&mut self, now: Time, make: impl FnOnce(&mut Site) -> Box<dyn Controller>) {
        self.enter(now);
        self.add_to_controlled(make);
    }

    /// Reads a controller's file of a cgroup (`io.max`, `io.latency`).
    ///
    /// # Errors
    /// Fails if no controller has a file of that name.
    pub fn cgroup_attribute(&mut self, cgroup: CgroupId, file: &str) -> Result<String, CgroupFileError> {
        self.env.cgroups.require(cgroup);
        if file == MCLOCK_FILE {
            let (rates, weight) = (self.env.cgroups.rates(cgroup), self.env.cgroups.weight(cgroup));
            let (reservation, limit) = (rates.reservation_text(), rates.limit_text());
            return Ok(format!("reservation={reservation} weight={weight} limit={limit}"));
        }
        let unknown = || CgroupFileError::new(file, "", WriteError::NoSuchFile);
        self.read_controlled(file, cgroup).ok_or_else(unknown)
    }

    /// Writes a controller's file of a cgroup. Some files change only when no request is in flight.
    /// The queue then holds new bios until all requests are complete. Only then does the value take
    /// effect. Elevators of the single-queue layer have no controllers.
    ///
    /// # Errors
    /// Fails if no controller has a file of that name, or if the file refuses the text. Nothing
    /// changes then.
    pub fn set_cgroup_attribute(
        &mut self,
        now: Time,
        cgroup: CgroupId,
        file: &str,
        text: &str,
    ) -> Result<(), CgroupFileError> {
        self.enter(now);
        self.env.cgroups.require(cgroup);
        if file == MCLOCK_FILE {
            return self.write_rates(cgroup, text).map_err(|error| CgroupFileError::new(file, text, error));
        }
        let written = self.write_controlled(file, cgroup, text).unwrap_or(Err(WriteError::NoSuchFile));
        written.map_err(|error| CgroupFileError::new(file, text, error))
    }

    /// Writes the file of mclock. Nothing changes if the file refuses the text.
    fn write_rates(&mut self, cgroup: CgroupId, text: &str) -> Result<(), WriteError> {
        let write = RatesWrite::parse(text).ok_or(WriteError::Invalid)?;
        let rates = write.applied_to(self.env.cgroups.rates(cgroup));
        if !rates.is_consistent() {
            return Err(WriteError::AboveLimit);
        }
        if let Some(weight) = write.weight {
            self.set_weights(cgroup, Some(weight), None).map_err(|_| WriteError::Range)?;
        }
        self.set_rates(cgroup, rates);
        Ok(())
    }

    fn set_rates(&mut self, cgroup: CgroupId, rates: Rates) {
        self.env.cgroups.set_rates(cgroup, rates);
        if let Some(elevator) = self.elevator.per_group() {
            elevator.rates_changed(&mut self.env, cgroup);
        }
    }

    /// Reports service that other servers of a pool gave to the client `cgroup`. Call this function
    /// before each request of the client, with the service that the request
    /// [reports](crate::Tracker::next_request). mclock then keeps the reservation, weight and limit
    /// for all servers together. Other elevators ignore the report.
    pub fn served_elsewhere(&mut self, now: Time, cgroup: CgroupId, progress: &Progress) {
        self.enter(now);
        self.env.cgroups.require(cgroup);
        if let Some(elevator) = self.elevator.per_group() {
            elevator.served_elsewhere(&mut self.env, cgroup, progress);
        }
    }

    /// Writes a controller's file for cgroups by name. Values for cgroups that do not exist yet are
    /// written when the cgroups are created.
    fn set_named_cgroups(&mut self, file: &str, given: &str) -> Result<(), TunableError> {
        if file == BFQ_WEIGHT && self.scheduler() != "bfq" {
            return Err(CgroupFileError::new(file, given, WriteError::OfBfq).into());
        }
        if file == MCLOCK_FILE && self.scheduler() != "mclock" {
            return Err(CgroupFileError::new(file, given, WriteError::OfMClock).into());
        }
        self.named.extend(NamedWrite::parse(file, given)?);
        for id in self.env.cgroups.ids() {
            self.write_named(id);
        }
        Ok(())
    }

    /// Writes the values that were stored for the name of the cgroup `id`.
    fn write_named(&mut self, id: CgroupId) {
        let name = &self.env.cgroups.get(id).name;
        let (matching, others) = std::mem::take(&mut self.named).into_iter().partition(|write| write.cgroup == *name);
        self.named = others;
        let matching: Vec<NamedWrite> = matching;
        for NamedWrite { file, text, .. } in matching {
            // The values were checked when they were stored.
            if file == MCLOCK_FILE {
                let _ = self.write_rates(id, &text);
            } else if file == BFQ_WEIGHT {
                let _ = self.set_weights(id, text.parse().ok(), None);
            } else {
                let _ = self.write_controlled(&file, id, &text);
            }
        }
    }

    /// Returns the values that were written for cgroups that do not exist yet.
    #[must_use]
    pub fn set_of_no_cgroup(&self) -> &[NamedWrite] {
        &self.named
    }

    /// Moves a process to another cgroup. Its later bios belong to the new cgroup. The elevator
    /// uses the new cgroup at the process' next request. After the process has exited, the call has
    /// no effect.
    pub fn move_context(&mut self, now: Time, context: ContextId, cgroup: CgroupId) {
        self.enter(now);
        self.env.cgroups.require(cgroup);
        if self.env.contexts.require(context).exited {
            return;
        }
        self.env.contexts.get_mut(context).cgroup = cgroup;
    }

    /// Removes a cgroup. Its processes and queued requests go to the nearest remaining ancestor.
    /// Later calls that name the removed cgroup mean that ancestor. Weights of the removed cgroup
    /// have no effect. Removing the root, or a removed cgroup again, has no effect.
    pub fn remove_cgroup(&mut self, now: Time, cgroup: CgroupId) {
        self.enter(now);
        self.env.cgroups.require(cgroup);
        if self.env.cgroups.remove(cgroup) {
            self.cgroup_controlled(cgroup, None);
            if let Some(elevator) = self.elevator.per_group() {
                elevator.remove_cgroup(&mut self.env, cgroup);
            }
        }
    }

    /// Returns the name of the elevator. During a switch, returns the name of the new elevator.
    #[must_use]
    pub fn scheduler(&self) -> &'static str {
        self.incoming_registered().name
    }

    /// Returns the elevator. During a switch, returns the new elevator.
    fn incoming(&self) -> &dyn Elevator {
        self.next.as_ref().map_or(self.elevator.as_ref(), |next| next.elevator.as_ref())
    }

    /// Returns the entry of the elevator. During a switch, returns the entry of the new elevator.
    fn incoming_registered(&self) -> &Registered {
        self.next.as_ref().map_or(&self.registered, |next| &next.registered)
    }

    /// Returns whether a switch waits for requests of the old elevator to complete.
    #[must_use]
    pub fn is_switching(&self) -> bool {
        self.next.is_some()
    }

    /// Switches to the elevator `registered` with its defaults. All queued requests are released to
    /// the device in the order of the old elevator. When they are complete, the new elevator takes
    /// over. Requests that arrive in the meantime wait, within the limit of `nr_requests`. Nothing
    /// happens if the present elevator has the same name.
    pub fn switch(&mut self, now: Time, registered: Registered) {
        self.enter(now);
        if registered.name == self.scheduler() {
            return;
        }
        for context in self.plugs.contexts() {
            while self.unplug(now, context) {}
        }
        self.drain(self.env.now);
        let nr_requests = self.nr_requests_under(registered.layer);
        let elevator = self.device.build(&mut self.env, &registered, nr_requests);
        self.next = Some(Next { elevator, registered, nr_requests });
        if self.may_finish_switch() {
            self.finish_switch();
        }
    }

    /// Returns whether a switch can finish: no request of the old elevator is left. In kernels with
    /// barriers, no barrier or flush may be left either, because the order of new requests depends
    /// on them.
    pub(super) fn may_finish_switch(&self) -> bool {
        self.elevator_requests == 0 && (!self.barriers || self.flushes.is_idle())
    }

    /// Inserts all requests on the tasks' plugs; the plugs stay open.
    pub(super) fn drain_plugs(&mut self) {
        for context in self.plugs.contexts() {
            while let Some(id) = self.plugs.pop(&self.env.requests, context) {
                self.insert(id);
            }
        }
    }

    /// Moves all queued requests of the elevator to the dispatch list, in the elevator's order.
    /// These requests are dispatched next, even if the elevator idles.
    pub fn drain(&mut self, now: Time) {
        self.enter(now);
        while let Some(id) = self.elevator.drain(&mut self.env) {
            self.env.unqueue(id);
            self.env.dispatch_list.push_back(&mut self.env.requests, id);
        }
        debug_assert_eq!(self.env.queued, 0, "a drained elevator is empty");
    }

    /// Returns `nr_requests` after a switch to an elevator of `layer`. A switch keeps the value
    /// only if both elevators are of the single-queue layer.
    fn nr_requests_under(&self, layer: Layer) -> u32 {
        if layer.is_multi_queue() || self.is_multi_queue() {
            default_nr_requests(layer, self.device.depth)
        } else {
            self.attributes.nr_requests
        }
    }

    /// Changes the allocation to the new layer: counts the existing
    /// requests and lets waiting contexts try again.
    fn change_layer(&mut self, layer: Layer, nr_requests: u32) {
        // In the single-queue layer, `nr_requests` may have been written since the switch began.
        if !layer.is_multi_queue() && !self.is_multi_queue() {
            return;
        }
        let waiters = self.allocation.waiters();
        self.attributes.nr_requests = nr_requests;
        self.allocation = Allocation::new(layer, self.device, nr_requests);
        self.env.limit_word = self.allocation.limit_word();
        self.allocation.adopt(&mut self.env, nr_requests, self.flushes.device_flush(), waiters);
        if !layer.is_multi_queue() {
            self.pass_controlled_by();
        }
    }

    /// Ends a switch when the old elevator is empty: the new
    /// elevator takes over and gets the held requests.
    pub(super) fn finish_switch(&mut self) {
        let Some(Next { elevator, registered, nr_requests }) = self.next.take() else {
            return;
        };
        debug_assert_eq!(self.env.queued, 0, "the old elevator has no requests");
        self.env.timer = None;
        self.elevator = elevator;
        self.registered = registered;
        self.env.cgroups.weights = registered.weights;
        self.change_layer(registered.layer, nr_requests);
        let elevator = registered.name;
        self.env.note(|| Decision::Switch { elevator });
        self.tell_controlled(elevator);
        self.elevator.recording(&mut self.env);
        let mut exited = Vec::new();
        while let Some(id) = self.held.first() {
            self.held.remove(self.env.requests.list_nodes(), id);
            debug_assert_eq!(self.env.requests[id].stage, RequestStage::Held);
            let Request { op, flags, context, .. } = self.env.requests[id];
            if self.is_sequence(op, flags) {
                self.start_sequence(id);
                continue;
            }
            match self.allocation.rules() {
                Some(rules) => {
                    self.note_insert(id);
                    self.insert_multi(&rules, id);
                }
                None => {
                    self.give_to_elevator(id);
                    self.insert(id);
                }
            }
            if self.env.contexts.get(context).exited && !exited.contains(&context) {
                exited.push(context);
            }
        }
        // The old elevator has handled these exits. The new elevator has just learned of the
        // processes, so it must also handle their exits.
        for context in exited {
            self.exit_elevator(context);
        }
    }
}
