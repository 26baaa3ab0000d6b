//! Processes: their queues, and changes of their priorities.

use super::Cfq;
use super::clock::Clock as _;
use super::data::group::GroupId;
use super::data::process::Process;
use super::data::queue::QueueId;
use super::data::service_tree::Class;
use super::generation::Generation;
use crate::context::{ContextId, IoPriority, LEVEL_DEFAULT};
use crate::env::Env;
use crate::parts::priority;
use crate::parts::seek::ProcessSeeks;
use crate::parts::think_time::ThinkTime;
use crate::request::RequestId;

/// Returns the effective class and level of an ioprio.
fn effective(ioprio: IoPriority) -> (Class, u8) {
    let IoPriority { class, level } = priority::effective(ioprio);
    (Class::from(class), level)
}

impl<G: Generation> Cfq<G> {
    pub(super) fn process(&self, context: ContextId) -> Option<&Process> {
        self.processes.get(context.index())?.as_ref()
    }

    /// Returns the record of a process, which must have one.
    pub(super) fn process_mut(&mut self, context: ContextId) -> &mut Process {
        self.processes[context.index()].as_mut().expect("a process with requests has a record")
    }

    /// Returns the process' queue for sync or async requests, if it has one.
    #[inline]
    pub(super) fn queue_of(&self, context: ContextId, sync: bool) -> Option<QueueId> {
        let process = self.process(context)?;
        if sync { process.sync_queue } else { process.async_queue }
    }

    /// Returns the queue for a new request of its process.
    #[inline]
    pub(super) fn queue_for(&mut self, env: &mut Env, id: RequestId) -> QueueId {
        let request = &env.requests[id];
        let (context, sync) = (request.context, request.is_sync());
        let lifted = request.flags.contains(G::LIFTED_BY);
        let ioprio = env.contexts.get(context).ioprio;
        if let Some(Some(process)) = self.processes.get(context.index())
            && process.ioprio == ioprio
            && let Some(queue) = if sync { process.sync_queue } else { process.async_queue }
        {
            // Nearly always, nothing has changed.
            self.lift(queue, lifted);
            let entry = &self.queues[queue];
            if !entry.split && entry.merge_into.is_none() {
                return queue;
            }
        }
        self.look_up_queue(env, context, sync, lifted)
    }

    /// Returns the queue in the general case: something has changed, or the process is new.
    #[cold]
    fn look_up_queue(&mut self, env: &mut Env, context: ContextId, sync: bool, lifted: bool) -> QueueId {
        if self.processes.len() <= context.index() {
            self.processes.resize_with(context.index() + 1, || None);
        }
        let ioprio = env.contexts.get(context).ioprio;
        let new = || Process {
            ioprio,
            sync_queue: None,
            async_queue: None,
            think_time: ThinkTime::new(G::Clock::now(env)),
            exited: false,
        };
        let process = self.processes[context.index()].get_or_insert_with(new);
        if process.exited {
            *process = new();
            if let Some(seeks) = self.process_seeks.get_mut(context.index()) {
                *seeks = ProcessSeeks::default();
            }
        }
        let priority_changed = process.ioprio != ioprio;
        if let Some(present) = if sync { process.sync_queue } else { process.async_queue } {
            self.lift(present, lifted);
        }
        if priority_changed {
            self.notice_priority(env, context, ioprio);
        }
        loop {
            let Some(queue) = self.queue_of(context, sync) else { return self.create_queue(env, context, sync) };
            if self.queues[queue].coop && self.queues[queue].split && !self.split_queue(env, context, queue) {
                continue;
            }
            let Some(into) = self.queues[queue].merge_into else { return queue };
            self.merge_queues(env, context, queue, into);
            return into;
        }
    }

    /// Lifts a queue out of the idle class and the lower levels for a request with a lifting flag.
    /// The next request without the flag resets the queue.
    #[inline]
    fn lift(&mut self, id: QueueId, lifted: bool) {
        let queue = &mut self.queues[id];
        if lifted {
            if queue.class == Class::Idle {
                queue.class = Class::BestEffort;
            }
            queue.level = queue.level.min(LEVEL_DEFAULT);
        } else {
            queue.class = queue.original_class;
            queue.level = queue.original_level;
        }
        G::class_changed(self, id);
    }

    /// Handles a new ioprio of the process. Its sync queue uses the new ioprio from its next
    /// request. Its async queue is looked up again.
    fn notice_priority(&mut self, env: &mut Env, context: ContextId, ioprio: IoPriority) {
        let process = self.process_mut(context);
        let before = std::mem::replace(&mut process.ioprio, ioprio);
        let (sync_queue, async_queue) = (process.sync_queue, process.async_queue);
        if let Some(old) = async_queue {
            let group = self.group_of(env, context);
            let new = if G::ASYNC_FOLLOWS_LATE {
                self.async_queue(env, context, group, before)
            } else {
                self.async_queue_or(group, ioprio, old)
            };
            self.process_mut(context).async_queue = Some(new);
            self.put_process(env, old);
        }
        if let Some(queue) = sync_queue {
            self.queues[queue].priority_changed = true;
        }
    }

    fn group_of(&mut self, env: &Env, context: ContextId) -> GroupId {
        if !G::GROUPS || !env.groups {
            return GroupId::ROOT;
        }
        self.groups.of(env, G::Clock::now(env), env.cgroups.living(env.contexts.get(context).cgroup))
    }

    /// Creates a queue for a process that has no queue for this kind of requests.
    fn create_queue(&mut self, env: &mut Env, context: ContextId, sync: bool) -> QueueId {
        let group = self.group_of(env, context);
        let ioprio = self.process_mut(context).ioprio;
        if sync {
            let id = self.queues.create(env.pid(context), true, group);
            self.queues[id].processes = 1;
            self.set_priority(id, ioprio);
            self.process_mut(context).sync_queue = Some(id);
            id
        } else {
            let id = self.async_queue(env, context, group, ioprio);
            self.process_mut(context).async_queue = Some(id);
            id
        }
    }

    /// Returns the group's async queue for an ioprio, and counts one more process.
    fn async_queue(&mut self, env: &Env, context: ContextId, group: GroupId, ioprio: IoPriority) -> QueueId {
        let (class, level) = effective(ioprio);
        let id = match *self.groups[group].async_queue(class, level) {
            Some(id) => id,
            None => {
                let id = self.queues.create(env.pid(context), false, group);
                self.queues[id].registered = true;
                self.set_priority(id, ioprio);
                *self.groups[group].async_queue(class, level) = Some(id);
                id
            }
        };
        self.queues[id].processes += 1;
        id
    }

    /// Returns the group's async queue for an ioprio, and counts one more process in it. If there
    /// is no such queue, `old` is also registered for this ioprio. `old` keeps its class and level.
    fn async_queue_or(&mut self, group: GroupId, ioprio: IoPriority, old: QueueId) -> QueueId {
        let (class, level) = effective(ioprio);
        let id = *self.groups[group].async_queue(class, level).get_or_insert(old);
        self.queues[id].processes += 1;
        id
    }

    fn set_priority(&mut self, id: QueueId, ioprio: IoPriority) {
        let (class, level) = effective(ioprio);
        let queue = &mut self.queues[id];
        (queue.class, queue.level) = (class, level);
        (queue.original_class, queue.original_level) = (class, level);
        queue.priority_changed = false;
        if class == Class::Idle {
            queue.idle_window = false;
        }
        G::class_changed(self, id);
    }

    /// Applies a priority that changed since the queue's last insertion.
    #[inline]
    pub(super) fn refresh_priority(&mut self, context: ContextId, id: QueueId) {
        let ioprio = self.process_mut(context).ioprio;
        self.set_priority(id, ioprio);
    }

    /// Handles the exit of a process: ends the turn of its active queue, and releases its queues.
    pub(super) fn exit_process(&mut self, env: &mut Env, context: ContextId) {
        let Some(Some(process)) = self.processes.get_mut(context.index()) else { return };
        process.exited = true;
        let queues = [process.async_queue.take(), process.sync_queue.take()];
        for id in queues.into_iter().flatten() {
            if self.active == Some(id) {
                self.expire(env, id, false);
            }
            self.undo_plan(env, id);
            self.put_process(env, id);
        }
        if let Some((active, exited)) = &mut self.active_process
            && *active == context
        {
            *exited = true;
        }
    }
}
