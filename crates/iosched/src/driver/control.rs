//! Changes by the host: processes, cgroups, attributes, tunables and the elevator. Each function
//! records the call and then calls the queue's function of the same name.

use super::Driver;
use super::recording::{Record, What};
use crate::context::{Cgroup, CgroupId, ContextId, IoPriority, WeightError};
use crate::controllers::CgroupFileError;
use crate::elevator::Registered;
use crate::queue::QueueConfig;
use crate::time::Time;
use crate::tunable::TunableError;

impl Driver {
    /// Creates an io context for a new process: see [`crate::RequestQueue::create_context`].
    pub fn create_context(&mut self, pid: u32, ioprio: IoPriority, cgroup: CgroupId) -> ContextId {
        self.note(None, || What::Context { pid, ioprio, cgroup });
        self.queue.create_context(pid, ioprio, cgroup)
    }

    /// Changes a process' ioprio: see [`crate::RequestQueue::set_ioprio`].
    pub fn set_ioprio(&mut self, context: ContextId, ioprio: IoPriority) {
        self.note(None, || What::IoPriority(context, ioprio));
        self.queue.set_ioprio(context, ioprio);
    }

    /// Ends a process: see [`crate::RequestQueue::exit`].
    pub fn exit(&mut self, now: Time, context: ContextId) {
        self.note(Some(now), || What::Exit(context));
        self.queue.exit(now, context);
    }

    /// Gives the turn of a process to another process: see [`crate::RequestQueue::yield_to`].
    pub fn yield_to(&mut self, now: Time, from: ContextId, to: ContextId) {
        self.note(Some(now), || What::Yield { from, to });
        self.queue.yield_to(now, from, to);
    }

    /// Reports that a process with dirty memory sleeps: see
    /// [`crate::RequestQueue::dirtier_sleeps`].
    pub fn dirtier_sleeps(&mut self, now: Time, context: ContextId) {
        self.note(Some(now), || What::DirtierSleeps(context));
        self.queue.dirtier_sleeps(now, context);
    }

    /// Releases the tag that is reserved for a woken context: see [`crate::RequestQueue::decline`].
    pub fn decline(&mut self, context: ContextId) {
        self.note(None, || What::Decline(context));
        self.queue.decline(context);
    }

    /// Creates a cgroup: see [`crate::RequestQueue::create_cgroup`].
    ///
    /// # Errors
    /// Fails if a weight is out of range.
    pub fn create_cgroup(&mut self, cgroup: Cgroup) -> Result<CgroupId, WeightError> {
        self.note(None, || What::Cgroup(cgroup.clone()));
        self.queue.create_cgroup(cgroup)
    }

    /// Changes the weights of a cgroup: see [`crate::RequestQueue::set_weights`].
    ///
    /// # Errors
    /// Fails if a weight is out of range; nothing changes then.
    pub fn set_weights(
        &mut self,
        cgroup: CgroupId,
        weight: Option<u32>,
        leaf_weight: Option<u32>,
    ) -> Result<(), WeightError> {
        self.note(None, || What::Weights { cgroup, weight, leaf_weight });
        self.queue.set_weights(cgroup, weight, leaf_weight)
    }

    /// Moves a process to another cgroup: see [`crate::RequestQueue::move_context`].
    pub fn move_context(&mut self, now: Time, context: ContextId, cgroup: CgroupId) {
        self.note(Some(now), || What::Move(context, cgroup));
        self.queue.move_context(now, context, cgroup);
    }

    /// Removes a cgroup: see [`crate::RequestQueue::remove_cgroup`].
    pub fn remove_cgroup(&mut self, now: Time, cgroup: CgroupId) {
        self.note(Some(now), || What::Remove(cgroup));
        self.queue.remove_cgroup(now, cgroup);
    }

    /// Writes an attribute of the queue: see [`crate::RequestQueue::set_attribute`].
    ///
    /// # Errors
    /// Fails if the name does not exist, if the attribute is read-only, or if it refuses the value.
    pub fn set_attribute(&mut self, now: Time, name: &str, value: &str) -> Result<(), TunableError> {
        self.note(Some(now), || What::Attribute { name: name.to_owned(), value: value.to_owned() });
        self.queue.set_attribute(now, name, value)
    }

    /// Reads a controller's file of a cgroup: see [`crate::RequestQueue::cgroup_attribute`].
    ///
    /// # Errors
    /// Fails if no controller has a file of that name.
    pub fn cgroup_attribute(&mut self, cgroup: CgroupId, file: &str) -> Result<String, CgroupFileError> {
        self.queue.cgroup_attribute(cgroup, file)
    }

    /// Writes a controller's file of a cgroup: see [`crate::RequestQueue::set_cgroup_attribute`].
    ///
    /// # Errors
    /// Fails if no controller has a file of that name, or if it refuses the text.
    pub fn set_cgroup_attribute(
        &mut self,
        now: Time,
        cgroup: CgroupId,
        name: &str,
        value: &str,
    ) -> Result<(), CgroupFileError> {
        self.note(Some(now), || What::CgroupAttribute { cgroup, name: name.to_owned(), value: value.to_owned() });
        self.queue.set_cgroup_attribute(now, cgroup, name, value)
    }

    /// Writes a tunable of the elevator: see [`crate::RequestQueue::set_tunable`].
    ///
    /// # Errors
    /// Fails if the elevator has no tunable of that name, or if it refuses the value.
    pub fn set_tunable(&mut self, now: Time, name: &str, value: &str) -> Result<(), TunableError> {
        self.note(Some(now), || What::Tunable { name: name.to_owned(), value: value.to_owned() });
        self.queue.set_tunable(now, name, value)
    }

    /// Switches to another elevator: see [`crate::RequestQueue::switch`].
    pub fn switch(&mut self, now: Time, registered: Registered) {
        self.note(Some(now), || What::Switch(registered.name.to_owned()));
        self.queue.switch(now, registered);
    }

    // ---- recording

    /// Starts recording the calls of this driver. Its queue must have just been created from
    /// `config`. The device takes `depth` requests at the same time. The host must regularly
    /// [take](Self::take_records) the records.
    pub fn record(&mut self, now: Time, config: QueueConfig, depth: u32) {
        self.recording = Some(Box::default());
        let (elevator, rerun) = (self.queue.scheduler().to_owned(), self.rerun);
        self.note(Some(now), || What::Queue { config, elevator, rerun });
        self.note_depth(depth);
    }

    /// Records that the device takes `depth` requests at the same time from now on. A host that
    /// records its driver calls this function at each change of this number.
    pub fn note_depth(&mut self, depth: u32) {
        self.note(None, || What::Depth(depth));
    }

    /// Ends the recording.
    pub fn end_record(&mut self) {
        self.recording = None;
    }

    /// Returns the records since the last call. Without a recording, returns no records.
    pub fn take_records(&mut self) -> Vec<Record> {
        self.recording.as_mut().map(|recording| recording.take()).unwrap_or_default()
    }

    #[inline(always)]
    pub(super) fn note(&mut self, at: Option<Time>, what: impl FnOnce() -> What) {
        if self.recording.is_some() {
            self.note_recorded(at, what());
        }
    }

    #[cold]
    fn note_recorded(&mut self, at: Option<Time>, what: What) {
        if let Some(recording) = &mut self.recording {
            recording.note(at, what);
        }
    }
}
