//! Processes: their queues, changes of their priorities and cgroups, and their exit.

use super::Bfq;
use super::data::entity::Class;
use super::data::group::GroupId;
use super::data::process::{Process, Saved};
use super::data::queue::{QueueId, weight_of};
use crate::collections::Id as _;
use crate::context::{CgroupId, ContextId, IoClass, IoPriority};
use crate::decision::{BfqEvent, BfqReason};
use crate::env::Env;
use crate::parts::priority::effective;
use crate::request::RequestId;

/// Returns the effective class and level of an ioprio.
fn class_and_level(ioprio: IoPriority) -> (Class, u8) {
    let IoPriority { class, level } = effective(ioprio);
    let class = match class {
        IoClass::RealTime => Class::RealTime,
        IoClass::BestEffort | IoClass::None => Class::BestEffort,
        IoClass::Idle => Class::Idle,
    };
    (class, level)
}

impl Bfq {
    pub(super) fn process(&self, context: ContextId) -> Option<&Process> {
        self.processes.get(context.index())?.as_ref().filter(|process| !process.exited)
    }

    /// Returns the record of a process, which must have one. The process may have exited.
    #[inline]
    pub(super) fn process_mut(&mut self, context: ContextId) -> &mut Process {
        self.processes[context.index()].as_mut().expect("a process with requests has a record")
    }

    /// Returns the process' queue for sync or async requests, if it has one.
    #[inline]
    pub(super) fn queue_of(&self, context: ContextId, sync: bool) -> Option<QueueId> {
        self.process(context)?.queues[usize::from(sync)]
    }

    /// Sets or removes the process' queue for sync or async requests. The process is no longer the
    /// owner of the old queue.
    pub(super) fn attach(&mut self, env: &mut Env, context: ContextId, sync: bool, queue: Option<QueueId>) {
        let process = self.process_mut(context);
        let before = std::mem::replace(&mut process.queues[usize::from(sync)], queue);
        if let Some(before) = before
            && self.queues[before].owner == Some(context)
        {
            self.queues[before].owner = None;
        }
        if sync && queue.is_some() && self.process_mut(context).candidate == queue {
            self.drop_candidate(env, context);
        }
    }

    /// Cancels the later merge of the process with its candidate queue.
    pub(super) fn drop_candidate(&mut self, env: &mut Env, context: ContextId) {
        if let Some(candidate) = self.process_mut(context).candidate.take() {
            self.queues[candidate].candidates -= 1;
            self.reap(env, candidate);
        }
    }

    /// Updates the record of the process to its priority and to the cgroup of its I/O.
    #[inline]
    pub(super) fn refresh_process(&mut self, env: &mut Env, context: ContextId, cgroup: CgroupId) {
        let ioprio = env.contexts.get(context).ioprio;
        if let Some(Some(process)) = self.processes.get(context.index())
            && !process.exited
            && process.ioprio == ioprio
            && process.cgroup == cgroup
        {
            return;
        }
        self.renew_process(env, context, cgroup, ioprio);
    }

    #[cold]
    fn renew_process(&mut self, env: &mut Env, context: ContextId, cgroup: CgroupId, ioprio: IoPriority) {
        if self.processes.len() <= context.index() {
            self.processes.resize_with(context.index() + 1, || None);
        }
        let slot = &mut self.processes[context.index()];
        if slot.as_ref().is_none_or(|process| process.exited) {
            *slot = Some(Process {
                ioprio,
                cgroup,
                queues: [None; 2],
                requests: 0,
                candidate: None,
                stably_merged: false,
                saved: Saved::default(),
                exited: false,
            });
            self.group_of(env, cgroup);
            return;
        }
        if self.process_mut(context).ioprio != ioprio {
            self.process_mut(context).ioprio = ioprio;
            self.notice_priority(env, context, cgroup, ioprio);
        }
        self.notice_cgroup(env, context, cgroup);
    }

    /// Moves the queues of the process if its I/O comes from another cgroup than before.
    pub(super) fn notice_cgroup(&mut self, env: &mut Env, context: ContextId, cgroup: CgroupId) {
        if self.process_mut(context).cgroup != cgroup {
            self.process_mut(context).cgroup = cgroup;
            let group = self.group_of(env, cgroup);
            self.change_group(env, context, group);
        }
    }

    /// Handles a new ioprio of the process. The process changes to another async queue immediately.
    /// Its sync queue uses the new ioprio from its next insertion into a service tree.
    fn notice_priority(&mut self, env: &mut Env, context: ContextId, cgroup: CgroupId, ioprio: IoPriority) {
        let [async_queue, sync_queue] = self.process_mut(context).queues;
        if let Some(old) = async_queue {
            let group = self.group_of(env, cgroup);
            let new = self.async_queue(env, context, group, ioprio);
            self.attach(env, context, false, Some(new));
            self.release_process(env, old);
        }
        if let Some(queue) = sync_queue {
            let (class, level) = class_and_level(ioprio);
            let entity = &mut self.entities[queue.entity()];
            entity.new_class = class;
            entity.new_weight = weight_of(level);
            entity.changed = true;
        }
    }

    /// Assigns a new request to its queue: creates, splits and updates queues as needed.
    pub(super) fn prepare_request(&mut self, env: &mut Env, id: RequestId) {
        let request = &env.requests[id];
        let (context, sync) = (request.context, request.is_sync());
        let cgroup = self.cgroup_of_request(env, id);
        self.refresh_process(env, context, cgroup);
        let mut split = false;
        let queue = match self.process_mut(context).queues[usize::from(sync)] {
            Some(queue) => {
                let slot = &self.queues[queue];
                if slot.coop && slot.split && !self.process_mut(context).stably_merged {
                    split = true;
                    self.split_queue(env, context, queue, cgroup)
                } else {
                    (queue, true)
                }
            }
            None => (self.create_queue(env, context, sync, cgroup, false), false),
        };
        let (queue, is_retained) = queue;
        self.queues[queue].requests += 1;
        self.count_request(queue, 1);
        self.process_mut(context).requests += 1;
        env.requests[id].elevator = queue.number();
        let slot = &mut self.queues[queue];
        if slot.planned.is_none() && slot.processes == 1 {
            slot.owner = Some(context);
            if split {
                self.restore(env, context, queue, is_retained);
            }
        }
        if self.queues[queue].just_created && (self.burst.size > 0 || self.busy == 0) {
            self.join_burst(env, queue);
        }
    }

    /// Creates a queue for a process that has no queue for this kind of requests.
    pub(super) fn create_queue(
        &mut self,
        env: &mut Env,
        context: ContextId,
        sync: bool,
        cgroup: CgroupId,
        split: bool,
    ) -> QueueId {
        let group = self.group_of(env, cgroup);
        let ioprio = self.process_mut(context).ioprio;
        if !sync {
            let id = self.async_queue(env, context, group, ioprio);
            self.attach(env, context, false, Some(id));
            return id;
        }
        let (class, level) = class_and_level(ioprio);
        let pid = env.pid(context);
        let id = self.new_queue(env, pid, true, group, class, level);
        self.queues[id].processes = 1;
        self.attach(env, context, true, Some(id));
        if split { id } else { self.meet_last_created(env, context, id) }
    }

    /// Returns the group's async queue for an ioprio, and counts one more process.
    fn async_queue(&mut self, env: &mut Env, context: ContextId, group: GroupId, ioprio: IoPriority) -> QueueId {
        let (class, level) = class_and_level(ioprio);
        let id = match self.groups[group].async_queues[class.index()][usize::from(level)] {
            Some(id) => id,
            None => {
                let pid = env.pid(context);
                let id = self.new_queue(env, pid, false, group, class, level);
                self.queues[id].processes = 1;
                self.groups[group].async_queues[class.index()][usize::from(level)] = Some(id);
                id
            }
        };
        self.queues[id].processes += 1;
        id
    }

    /// Reduces the number of processes of a queue by one.
    pub(super) fn release_process(&mut self, env: &mut Env, id: QueueId) {
        let queue = &self.queues[id];
        if queue.busy && queue.is_empty() && self.active != Some(id) {
            self.leave_busy(env, id, false);
        }
        let group = self.entities[id.entity()].group;
        if self.groups[group].last_created == Some(id) {
            self.groups[group].last_created = None;
        }
        self.queues[id].processes -= 1;
        self.reap(env, id);
    }

    /// Handles the exit of a process: ends the turn of its active queue, and releases its queues.
    pub(super) fn exit_process(&mut self, env: &mut Env, context: ContextId) {
        if self.process(context).is_none() {
            return;
        }
        self.drop_candidate(env, context);
        for sync in [true, false] {
            let Some(id) = self.process_mut(context).queues[usize::from(sync)] else { continue };
            self.attach(env, context, sync, None);
            if self.active == Some(id) {
                // The process still counts while the turn ends, so that the queue stays alive.
                self.end_turn(env, id, BfqReason::Timeout);
            }
            self.undo_plan(env, id);
            self.release_process(env, id);
        }
        self.process_mut(context).exited = true;
    }

    /// Records that a process moves from one queue to another.
    pub(super) fn note_merge(&self, env: &mut Env, id: QueueId, into: QueueId) {
        let (queue, into) = (self.queues[id].serial, self.queues[into].serial);
        env.note(|| BfqEvent::Merge { queue, into }.into());
    }
}
