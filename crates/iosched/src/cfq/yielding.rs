//! Queue yielding: a task that waits for the I/O of another task gives its turn to that task.
//!
//! The rules follow the patch series of 2010 for fsync: a process waits for the commit of its
//! journal thread, while CFQ idles for the process. Yielding helps only a single stream. If any
//! other queue is busy, that queue takes the turn, as without yielding.

use super::Cfq;
use super::clock::Clock as _;
use super::data::queue::QueueId;
use super::data::yields::Yield;
use super::generation::Generation;
use crate::context::ContextId;
use crate::decision::Decision;
use crate::env::Env;

impl<G: Generation> Cfq<G> {
    /// Begins a yield: the process `from` waits for `to`.
    pub(super) fn begin_yield(&mut self, env: &mut Env, from: ContextId, to: ContextId) {
        if !self.tunables.yielding {
            return;
        }
        let Some(id) = self.queue_of(from, true) else { return };
        if self.queue_of(to, true) == Some(id) {
            return;
        }
        let (pid, to_pid) = (env.pid(from), env.pid(to));
        env.note(|| Decision::Yield { pid, to_pid });
        self.end_yield(id);
        let until = G::Clock::now(env).saturating_add(self.tunables.slice_idle);
        self.yields.push(Yield { queue: id, target: to, until });
        if self.active == Some(id) && self.turn.waiting {
            self.turn.waiting = false;
            env.cancel_idle();
        }
    }

    #[inline]
    pub(super) fn end_yield(&mut self, id: QueueId) {
        if !self.yields.is_empty() {
            self.yields.retain(|mark| mark.queue != id);
        }
    }

    fn yield_of(&self, env: &Env, id: QueueId) -> Option<&Yield> {
        self.yields.iter().find(|mark| mark.queue == id && G::Clock::now(env) < mark.until)
    }

    /// Returns whether a queue has given up its turn.
    #[inline]
    pub(super) fn is_yielding(&self, env: &Env, id: QueueId) -> bool {
        !self.yields.is_empty() && self.yield_of(env, id).is_some()
    }

    /// Returns the queue with requests that the active, empty queue yields to.
    pub(super) fn yield_target(&self, env: &Env, active: QueueId) -> Option<QueueId> {
        let target = self.queue_of(self.yield_of(env, active)?.target, true)?;
        let queue = &self.queues[target];
        let ready = target != active && queue.busy && !queue.is_empty();
        (ready && queue.group == self.queues[active].group).then_some(target)
    }

    /// Ends all yields to a process whose requests are all served.
    pub(super) fn end_yields_to(&mut self, context: ContextId) {
        self.yields.retain(|mark| mark.target != context);
    }
}
