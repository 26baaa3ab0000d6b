//! Control: attributes, tunables, cgroups, and switching elevators at run time.

use super::attributes::{ATTRIBUTES, Attributes};
use super::{QueueConfig, RequestQueue};
use crate::context::{Cgroup, CgroupId, ContextId, WeightError, WeightRange};
use crate::decision::Decision;
use crate::elevator::{Elevator, UnknownElevator, elevator, elevator_names};
use crate::request::Stage;
use crate::time::Time;
use crate::tunable::{Spec, TunableError};

impl Attributes {
    pub(super) fn new(config: &QueueConfig) -> Self {
        let mut attributes = Self::default();
        ATTRIBUTES.set_defaults(&mut attributes);
        attributes.max_hw_sectors = config.max_hw_sectors_kb.saturating_mul(2);
        attributes.max_sectors = attributes.max_sectors.min(attributes.max_hw_sectors);
        attributes.rotational = config.rotational;
        attributes
    }
}

impl RequestQueue {
    /// The declarations of all attributes but `scheduler`.
    pub fn attribute_specs() -> impl Iterator<Item = &'static Spec> {
        ATTRIBUTES.specs()
    }

    /// Reads an attribute of the queue. `scheduler` reads as all elevators with the present one in brackets.
    ///
    /// # Errors
    /// If there is none of that name.
    pub fn attribute(&self, name: &str) -> Result<String, TunableError> {
        if name == "scheduler" {
            let present = self.scheduler();
            let shown =
                elevator_names().into_iter().map(|n| if n == present { format!("[{n}]") } else { n.to_owned() });
            return Ok(shown.collect::<Vec<_>>().join(" "));
        }
        ATTRIBUTES.get(&self.attributes, name).map(|value| value.to_string())
    }

    /// Writes an attribute other than `scheduler` (see [`RequestQueue::switch`]). On error nothing has changed.
    ///
    /// # Errors
    /// If there is none of that name, it is read-only, or it does not take that value.
    pub fn set_attribute(&mut self, now: Time, name: &str, value: &str) -> Result<(), TunableError> {
        self.env.now = now;
        if name == "iostats" && self.attributes.iostats {
            self.stat.advance(now);
        }
        self.attributes.set(name, value)?;
        match name {
            "nr_requests" => self.limits.resized(now, self.attributes.nr_requests),
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

    /// Reads a tunable of the elevator, while switching of the new one, in the unit of its declaration.
    ///
    /// # Errors
    /// If there is none of that name.
    pub fn tunable(&self, name: &str) -> Result<u64, TunableError> {
        self.incoming().tunable(name)
    }

    /// Writes a tunable of the elevator, while switching of the new one. On error nothing has changed.
    ///
    /// # Errors
    /// If there is none of that name, or it does not take that value.
    pub fn set_tunable(&mut self, now: Time, name: &str, value: &str) -> Result<(), TunableError> {
        self.env.now = now;
        let elevator = self.next_elevator.as_mut().unwrap_or(&mut self.elevator);
        elevator.set_tunable(name, value)?;
        elevator.tunable_changed(&mut self.env, name);
        Ok(())
    }

    /// Which weights of cgroups the elevator takes; while switching, the new one.
    #[must_use]
    pub fn weight_range(&self) -> WeightRange {
        self.incoming().weights()
    }

    /// A new cgroup.
    ///
    /// # Errors
    /// If a weight is out of range.
    pub fn create_cgroup(&mut self, cgroup: Cgroup) -> Result<CgroupId, WeightError> {
        self.env.cgroups.create(self.weight_range(), cgroup)
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
        self.env.cgroups.set_weights(self.weight_range(), cgroup, weight, leaf_weight)
    }

    /// Moves a process to another cgroup. What it submits from now on belongs there; the elevator notices at its next request.
    pub fn move_context(&mut self, now: Time, context: ContextId, cgroup: CgroupId) {
        self.env.now = now;
        self.env.contexts.get_mut(context).cgroup = cgroup;
    }

    /// Removes a cgroup: its processes, and what they have queued, go to the nearest group above it that is not removed. The
    /// root stays.
    pub fn remove_cgroup(&mut self, now: Time, cgroup: CgroupId) {
        self.env.now = now;
        if self.env.cgroups.remove(cgroup) {
            self.elevator.remove_cgroup(&mut self.env, cgroup);
        }
    }

    /// The name of the elevator; while switching, of the new one.
    #[must_use]
    pub fn scheduler(&self) -> &'static str {
        self.incoming().name()
    }

    /// The elevator; while switching, the new one.
    fn incoming(&self) -> &dyn Elevator {
        self.next_elevator.as_deref().unwrap_or(self.elevator.as_ref())
    }

    /// Whether a switch waits for requests of the old elevator to complete.
    #[must_use]
    pub fn is_switching(&self) -> bool {
        self.next_elevator.is_some()
    }

    /// Switches to the elevator `name`, with its defaults: everything queued is released to the device in the old one's
    /// order, and once it has completed the new one takes over. What arrives meanwhile waits, within `nr_requests`.
    /// To the present elevator: nothing happens.
    ///
    /// # Errors
    /// If there is no such elevator; nothing has changed then.
    pub fn switch(&mut self, now: Time, name: &str) -> Result<(), UnknownElevator> {
        self.env.now = now;
        let registered = elevator(name)?;
        if registered.name == self.scheduler() {
            return Ok(());
        }
        for context in self.plugs.contexts() {
            while self.unplug(now, context) {}
        }
        self.drain();
        self.next_elevator = Some((registered.build)(&self.env));
        if self.elevator_requests == 0 {
            self.finish_switch();
        }
        Ok(())
    }

    /// Releases everything the elevator has queued to the dispatch list, in its order.
    fn drain(&mut self) {
        while let Some(id) = self.elevator.drain(&mut self.env) {
            self.env.unqueue(id);
            self.env.dispatch_list.push_back(&mut self.env.requests, id);
        }
        debug_assert_eq!(self.elevator.queued(), 0, "a drained elevator is empty");
    }

    /// The old elevator has nothing left: the new one takes over, and takes in what waited.
    pub(super) fn finish_switch(&mut self) {
        let Some(next) = self.next_elevator.take() else {
            return;
        };
        self.env.timer = None;
        self.elevator = next;
        self.env.cgroups.weights = self.elevator.weights();
        let elevator = self.elevator.name();
        self.env.note(|| Decision::Switch { elevator });
        self.elevator.recording(&mut self.env);
        let mut exited = Vec::new();
        while let Some(id) = self.held.first() {
            self.held.remove(self.env.requests.list_nodes(), id);
            debug_assert_eq!(self.env.requests[id].stage, Stage::Held);
            self.give_to_elevator(id);
            self.insert(id);
            let context = self.env.requests[id].context;
            if self.env.contexts.get(context).exited && !exited.contains(&context) {
                exited.push(context);
            }
        }
        // The old elevator was told; the new one has only now met them.
        for context in exited {
            self.elevator.exit(&mut self.env, context);
        }
    }
}
