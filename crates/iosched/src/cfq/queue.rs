//! Queue of CFQ: the requests of one process (sync), or of all
//! processes of one class and level (async).

use super::Cfq;
use super::data::queue::QueueId;
use super::generation::Generation;
use crate::env::Env;
use crate::parts::head::{BackSeek, Head};
use crate::request::{RequestId, Sector};

impl<G: Generation> Cfq<G> {
    #[inline]
    fn back_seek(&self) -> BackSeek {
        BackSeek { max_sectors: self.tunables.back_seek_max_kb * 2, penalty: self.tunables.back_seek_penalty }
    }

    /// Inserts a request into its queue. With its first request, the queue enters service.
    #[inline]
    pub(super) fn add_sorted(&mut self, env: &mut Env, queue: QueueId, id: RequestId) {
        let head = Head { position: self.position, back_seek: self.back_seek() };
        if G::UNIQUE_SECTORS {
            while let Err(alias) = self.queues[queue].sorted.insert_alone(&mut env.requests, id) {
                self.give_out(env, queue, alias);
                env.release_sorted(alias, true);
            }
        } else {
            self.queues[queue].sorted.insert(&mut env.requests, id);
        }
        if !self.queues[queue].busy {
            self.enter_service(env, queue);
        }
        let entry = &mut self.queues[queue];
        entry.queued += 1;
        let before = entry.next;
        let next = head.better(&env.requests, before, Some(id));
        if next != before {
            self.queues.set_next(&env.requests, queue, next);
            self.cooperator_tree_add(queue);
        }
    }

    /// Returns the request to serve after `id`, with the head at `position`. The candidates are the
    /// successor of `id` (or else the first request) and the predecessor of `id`.
    #[inline(always)]
    pub(super) fn next_after(&self, env: &Env, queue: QueueId, id: RequestId, position: Sector) -> Option<RequestId> {
        let (successor, predecessor) = self.queues[queue].sorted.neighbours(&env.requests, id);
        Head { position, back_seek: self.back_seek() }.better(&env.requests, successor, predecessor)
    }

    /// Removes a request from its queue for dispatch, and updates the next request.
    #[inline]
    pub(super) fn take_out(&mut self, env: &mut Env, queue: QueueId, id: RequestId) {
        let next = G::next_without(self, env, queue, id);
        self.queues.set_next(&env.requests, queue, next);
        self.remove(env, queue, id);
    }

    /// Removes a request from its queue. The request is not the next request of the queue.
    #[inline]
    pub(super) fn remove(&mut self, env: &mut Env, queue: QueueId, id: RequestId) {
        let entry = &mut self.queues[queue];
        debug_assert_ne!(entry.next, Some(id));
        entry.remove(&mut env.requests, id);
        self.queued -= 1;
        if entry.queued > 0 {
            return;
        }
        if G::EMPTY_LEAVES_SERVICE {
            self.leave_service(queue);
        } else if entry.cooperator_level.is_some() {
            // The queue stays in service until it expires, but cannot be a cooperator.
            self.cooperator_tree_remove(queue);
        }
    }

    /// Reduces the number of allocated requests of the queue by one.
    #[inline]
    pub(super) fn put_request(&mut self, env: &mut Env, id: QueueId) {
        let queue = &mut self.queues[id];
        queue.requests -= 1;
        if queue.requests == 0 && !self.is_used(id) {
            self.put_queue(env, id);
        }
    }

    /// Returns whether a process uses the queue or will use it.
    #[inline]
    pub(super) fn is_used(&self, id: QueueId) -> bool {
        let queue = &self.queues[id];
        if G::SPLIT_FORGETS_PLAN { queue.processes > queue.forgotten } else { queue.processes > 0 }
    }

    /// Releases a reference of a process or a request. The queue is freed with its last reference.
    pub(super) fn put_queue(&mut self, env: &mut Env, id: QueueId) {
        let queue = &self.queues[id];
        if self.is_used(id) || queue.requests > 0 || queue.registered {
            return;
        }
        if self.active == Some(id) {
            self.expire(env, id, false);
        }
        debug_assert!(!self.queues[id].busy);
        self.end_yield(id);
        if G::PLANS_INCLUDE_THE_GONE {
            self.forget_queue_in_plans(id);
        }
        self.queues.free(id);
    }
}
