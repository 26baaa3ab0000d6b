//! Control: attributes, tunables, cgroups, and switching elevators at run time.

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
use crate::registry::Registry;
use crate::request::{Request, RequestStage};
use crate::time::Time;
use crate::tunable::{Spec, TunableError};

/// What wbt is set by.
const WBT_FILE: &str = "wbt_lat_usec";

impl DeviceQueues {
    /// An elevator with its defaults.
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
    /// The declarations of all attributes but `scheduler`.
    pub fn attribute_specs() -> impl Iterator<Item = &'static Spec> {
        ATTRIBUTES.specs()
    }

    /// Reads an attribute of the queue. `scheduler` reads as all elevators of Linux with the present one in brackets;
    /// one that is not of Linux stands behind them.
    ///
    /// # Errors
    /// If there is none of that name.
    pub fn attribute(&self, name: &str) -> Result<String, TunableError> {
        if name == "scheduler" {
            return Ok(Registry::linux().listed(self.scheduler()));
        }
        if name == WBT_FILE && self.throttles_writeback {
            let throttles = self.is_multi_queue() && self.scheduler() != "bfq";
            let target_us = if throttles { Wbt::target_default_us(self.attributes.rotational) } else { 0 };
            return Ok(target_us.to_string());
        }
        ATTRIBUTES.get(&self.attributes, name).map(|value| value.to_string())
    }

    /// Writes an attribute other than `scheduler` (see [`RequestQueue::switch`]). On error nothing has changed.
    ///
    /// # Errors
    /// If there is none of that name, it is read-only, or it does not take that value.
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
            // What went unaccounted while off stays so.
            "iostats" => self.stat.stamp = now,
            _ => {}
        }
        Ok(())
    }

    /// Largest request, in sectors: hosts split longer bios.
    #[must_use]
    pub fn max_sectors(&self) -> u32 {
        self.attributes.max_sectors
    }

    /// Largest readahead window, in KiB: hosts with a page cache read ahead at most that far.
    #[must_use]
    pub fn read_ahead_kb(&self) -> u32 {
        self.attributes.read_ahead_kb
    }

    /// Reads a tunable of the elevator, while switching of the new one, in the unit of its declaration.
    ///
    /// # Errors
    /// If there is none of that name.
    pub fn tunable(&self, name: &str) -> Result<u64, TunableError> {
        match self.incoming().tunables() {
            Some(tunables) => tunables.get(name),
            None => Err(TunableError::none(name, self.scheduler())),
        }
    }

    /// What a tunable or another file of the elevator reads as, while switching of the new one, without the last line
    /// end.
    ///
    /// # Errors
    /// If there is none of that name, or it can be written only.
    pub fn tunable_text(&self, name: &str) -> Result<String, TunableError> {
        match self.incoming().tunables() {
            Some(tunables) => tunables.text(name),
            None => Err(TunableError::none(name, self.scheduler())),
        }
    }

    /// Writes a tunable of the elevator, while switching of the new one. On error nothing has changed.
    ///
    /// # Errors
    /// If there is none of that name, or it does not take that value.
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

    /// Which weights of cgroups the elevator takes; while switching, the new one.
    #[must_use]
    pub fn weight_range(&self) -> WeightRange {
        self.incoming_registered().weights
    }

    /// A new cgroup.
    ///
    /// # Errors
    /// If a weight is out of range.
    pub fn create_cgroup(&mut self, cgroup: Cgroup) -> Result<CgroupId, WeightError> {
        let parent = cgroup.parent.unwrap_or(CgroupId::ROOT);
        self.env.cgroups.require(parent);
        let id = self.env.cgroups.create(self.weight_range(), cgroup)?;
        self.cgroup_controlled(id, Some(parent));
        self.write_named(id);
        Ok(id)
    }

    /// Changes the weights of a cgroup. Elevators take them into account when the group is next charged or joins.
    ///
    /// # Errors
    /// If a weight is out of range; nothing has changed then.
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

    /// A controller of one's own beside the elevator, behind those of Linux. Beside an elevator of
    /// [`Layer::SingleQueue`](crate::Layer::SingleQueue) it has nothing to do.
    pub fn add_controller(&mut self, now: Time, make: impl FnOnce(&mut Site) -> Box<dyn Controller>) {
        self.enter(now);
        self.add_to_controlled(make);
    }

    /// Reads a file of a cgroup that a controller has (`io.max`, `io.latency`).
    ///
    /// # Errors
    /// If no controller has one of that name.
    pub fn cgroup_attribute(&mut self, cgroup: CgroupId, file: &str) -> Result<String, CgroupFileError> {
        self.env.cgroups.require(cgroup);
        let unknown = || CgroupFileError::new(file, "", WriteError::NoSuchFile);
        self.read_controlled(file, cgroup).ok_or_else(unknown)
    }

    /// Writes a file of a cgroup that a controller has. Where nothing may be under way meanwhile, what is submitted
    /// waits until everything is complete, and only then it takes effect. Elevators of the single-queue layer have no
    /// controllers beside them.
    ///
    /// # Errors
    /// If no controller has one of that name, or it does not take that text. Nothing has changed then.
    pub fn set_cgroup_attribute(
        &mut self,
        now: Time,
        cgroup: CgroupId,
        file: &str,
        text: &str,
    ) -> Result<(), CgroupFileError> {
        self.enter(now);
        self.env.cgroups.require(cgroup);
        let written = self.write_controlled(file, cgroup, text).unwrap_or(Err(WriteError::NoSuchFile));
        written.map_err(|error| CgroupFileError::new(file, text, error))
    }

    /// Writes a controller's file of cgroups by their names; of those that do not exist yet, when they do.
    fn set_named_cgroups(&mut self, file: &str, given: &str) -> Result<(), TunableError> {
        if file == BFQ_WEIGHT && self.scheduler() != "bfq" {
            return Err(CgroupFileError::new(file, given, WriteError::OfBfq).into());
        }
        self.named.extend(NamedWrite::parse(file, given)?);
        for id in self.env.cgroups.ids() {
            self.write_named(id);
        }
        Ok(())
    }

    /// Writes what is kept for the cgroup's name.
    fn write_named(&mut self, id: CgroupId) {
        let name = &self.env.cgroups.get(id).name;
        let (matching, others) = std::mem::take(&mut self.named).into_iter().partition(|write| write.cgroup == *name);
        self.named = others;
        let matching: Vec<NamedWrite> = matching;
        for NamedWrite { file, text, .. } in matching {
            // They were checked.
            if file == BFQ_WEIGHT {
                let _ = self.set_weights(id, text.parse().ok(), None);
            } else {
                let _ = self.write_controlled(&file, id, &text);
            }
        }
    }

    /// What was set of cgroups that do not exist.
    #[must_use]
    pub fn set_of_no_cgroup(&self) -> &[NamedWrite] {
        &self.named
    }

    /// Moves a process to another cgroup. What it submits from now on belongs there; the elevator notices at its next
    /// request.
    pub fn move_context(&mut self, now: Time, context: ContextId, cgroup: CgroupId) {
        self.enter(now);
        self.env.cgroups.require(cgroup);
        self.env.contexts.get_mut(context).cgroup = cgroup;
    }

    /// Removes a cgroup: its processes, and what they have queued, go to the nearest group above it that is not
    /// removed. The root stays.
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

    /// The name of the elevator; while switching, of the new one.
    #[must_use]
    pub fn scheduler(&self) -> &'static str {
        self.incoming_registered().name
    }

    /// The elevator; while switching, the new one.
    fn incoming(&self) -> &dyn Elevator {
        self.next.as_ref().map_or(self.elevator.as_ref(), |next| next.elevator.as_ref())
    }

    /// The entry of the elevator; while switching, of the new one.
    fn incoming_registered(&self) -> &Registered {
        self.next.as_ref().map_or(&self.registered, |next| &next.registered)
    }

    /// Whether a switch waits for requests of the old elevator to complete.
    #[must_use]
    pub fn is_switching(&self) -> bool {
        self.next.is_some()
    }

    /// Switches to the elevator `registered`, with its defaults: everything queued is released to the device in the old
    /// one's order, and once it has completed the new one takes over. What arrives meanwhile waits, within
    /// `nr_requests`. To an elevator of the present one's name: nothing happens.
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

    /// Whether nothing is left that the elevator has to hear of, and no barrier or flush that new ones would have to be
    /// ordered with.
    pub(super) fn may_finish_switch(&self) -> bool {
        self.elevator_requests == 0 && (!self.barriers || self.flushes.is_idle())
    }

    /// Inserts what all tasks' plugs have collected; the plugs stay.
    pub(super) fn drain_plugs(&mut self) {
        for context in self.plugs.contexts() {
            while let Some(id) = self.plugs.pop(&self.env.requests, context) {
                self.insert(id);
            }
        }
    }

    /// Releases everything the elevator has queued to the dispatch list, in its order: it is dispatched next, whatever
    /// the elevator waits for.
    pub fn drain(&mut self, now: Time) {
        self.enter(now);
        while let Some(id) = self.elevator.drain(&mut self.env) {
            self.env.unqueue(id);
            self.env.dispatch_list.push_back(&mut self.env.requests, id);
        }
        debug_assert_eq!(self.env.queued, 0, "a drained elevator is empty");
    }

    /// What `nr_requests` is once an elevator of `layer` has taken over: the single-queue layer keeps it as long as it
    /// is that layer, the multi-queue layer never does.
    fn nr_requests_under(&self, layer: Layer) -> u32 {
        if layer.is_multi_queue() || self.is_multi_queue() {
            default_nr_requests(layer, self.device.depth)
        } else {
            self.attributes.nr_requests
        }
    }

    /// The allocation follows the elevator's layer: what there is is counted anew, and who waits tries again.
    fn change_layer(&mut self, layer: Layer, nr_requests: u32) {
        // `nr_requests` may have been written since the switch began.
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

    /// The old elevator has nothing left: the new one takes over, and takes in what waited.
    pub(super) fn finish_switch(&mut self) {
        let Some(Next { elevator, registered, nr_requests }) = self.next.take() else {
            return;
        };
        debug_assert_eq!(self.env.queued, 0, "the old elevator has nothing left");
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
        // The old elevator was told; the new one has only now met them.
        exited.retain(|&context| !self.exits_later(context));
        if let Some(elevator) = self.elevator.per_process() {
            for context in exited {
                elevator.exit(&mut self.env, context);
            }
        }
    }
}
