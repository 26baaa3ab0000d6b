//! Processes: the queues of their requests, and the priorities.

use super::Cfq2616;
use super::queue::QueueId;
use crate::collections::Id;
use crate::context::{ContextId, IoClass, LEVEL_DEFAULT};
use crate::env::Env;
use crate::parts::priority::effective;
use crate::parts::think_time::ThinkTime;
use crate::request::{Flags, RequestId};

/// Data of one process.
#[derive(Debug)]
pub(super) struct Process {
    /// Queue of all its requests, sync and async.
    pub(super) queue: QueueId,
    pub(super) think_time: ThinkTime,
}

impl Cfq2616 {
    pub(super) fn process_mut(&mut self, context: ContextId) -> Option<&mut Process> {
        self.processes.get_mut(context.index())?.as_mut()
    }

    /// Returns the queue of a request.
    pub(super) fn queue_of(env: &Env, id: RequestId) -> QueueId {
        QueueId::new(env.requests[id].elevator)
    }

    /// Returns the queue for a new request: the queue of its process. A new process gets its own
    /// queue. Exception: if the first request is async and the process has set an ioprio, the
    /// process shares an existing queue of this ioprio.
    pub(super) fn queue_for(&mut self, env: &mut Env, id: RequestId) -> QueueId {
        let (context, sync) = (env.requests[id].context, env.requests[id].is_sync());
        if let Some(process) = self.process_mut(context) {
            return process.queue;
        }
        let ioprio = env.contexts.get(context).ioprio;
        let found = if sync { None } else { self.queues.shared(ioprio) };
        let queue = found.unwrap_or_else(|| self.queues.create(env.pid(context), sync, effective(ioprio)));
        self.queues[queue].processes += 1;
        if self.processes.len() <= context.index() {
            self.processes.resize_with(context.index() + 1, || None);
        }
        self.processes[context.index()] = Some(Process { queue, think_time: ThinkTime::new(env.jiffies()) });
        queue
    }

    /// Lifts a queue out of the idle class and the lower levels for a request with FS_EXCL; a
    /// request without the flag resets the queue. Only a queue whose present priority is the ioprio
    /// of the process is changed, so a queue that an earlier request lifted may stay lifted.
    pub(super) fn boost(&mut self, env: &Env, id: RequestId) {
        let request = &env.requests[id];
        let (context, sync, exclusive) = (request.context, request.is_sync(), request.flags.contains(Flags::FS_EXCL));
        let ioprio = env.contexts.get(context).ioprio;
        let found = if sync {
            let queue = self.process_mut(context).map(|process| process.queue);
            queue.filter(|&queue| self.queues[queue].sync && self.queues[queue].priority == ioprio)
        } else {
            self.queues.shared(ioprio)
        };
        let Some(queue) = found else { return };
        let before = self.queues[queue].priority;
        let mut priority = self.queues[queue].original;
        if exclusive {
            priority = before;
            if priority.class == IoClass::Idle {
                priority.class = IoClass::BestEffort;
            }
            priority.level = priority.level.min(LEVEL_DEFAULT);
        }
        if priority != before {
            self.queues.show(queue, priority);
            self.rounds.file(&mut self.queues, queue, false);
        }
    }

    /// Handles a new ioprio of the process: its queue uses the new ioprio immediately.
    pub(super) fn change_priority(&mut self, env: &Env, context: ContextId) {
        let Some(queue) = self.process_mut(context).map(|process| process.queue) else { return };
        let priority = effective(env.contexts.get(context).ioprio);
        self.queues.show(queue, priority);
        self.queues[queue].original = priority;
        if priority.class == IoClass::Idle {
            self.queues[queue].idle_window = false;
        }
        self.rounds.file(&mut self.queues, queue, false);
    }

    /// Handles the exit of a process: ends the turn if its queue is active.
    pub(super) fn exit_process(&mut self, env: &mut Env, context: ContextId) {
        let Some(process) = self.processes.get_mut(context.index()).and_then(Option::take) else { return };
        if self.active == Some(process.queue) {
            self.expire(env, process.queue, false);
        }
        self.queues[process.queue].processes -= 1;
        self.retire(env, process.queue);
    }

    /// Frees a queue that no process and no request uses.
    pub(super) fn retire(&mut self, env: &mut Env, id: QueueId) {
        if self.queues[id].processes > 0 || self.queues[id].requests > 0 {
            return;
        }
        if self.active == Some(id) {
            self.expire(env, id, false);
        }
        self.queues.remove(id);
    }
}
