//! Queue: the requests of one process (sync), or of all processes of one class and level in a group
//! (async). This file also chooses the next request, and frees queues.

use super::Bfq;
use super::data::entity::{Class, Entity};
use super::data::group::GroupId;
use super::data::injection::Injection;
use super::data::queue::{Queue, QueueId, weight_of};
use super::data::raising::Raising;
use crate::decision::BfqEvent;
use crate::env::Env;
use crate::parts::head::Head;
use crate::request::{RequestId, Sector};

impl Bfq {
    /// Creates a queue.
    pub(super) fn new_queue(
        &mut self,
        env: &mut Env,
        pid: u32,
        sync: bool,
        group: GroupId,
        class: Class,
        level: u8,
    ) -> QueueId {
        let now = self.jiffies(env);
        let now_ns = env.now.as_ns();
        let entity = self.entities.create(Entity::new(group, None, class, weight_of(level)));
        self.queues.grow(self.entities.len());
        let id = QueueId::of(entity);
        self.queues.created += 1;
        let serial = self.queues.created;
        self.queues[id] = Queue {
            sync,
            max_budget: 2 * self.default_budget() / 3,
            last_completion_ns: now_ns + 1,
            short_think: sync,
            just_created: sync,
            io_start_ns: now_ns,
            raising: Raising::new(now),
            injection: Injection::new(now),
            serial,
            pid,
            level,
            created_at: now,
            ..Queue::vacant()
        };
        let cgroup = self.groups[group].cgroup;
        env.note(|| BfqEvent::Created { queue: serial, pid, sync, cgroup }.into());
        id
    }

    /// Frees a queue that is not used any more.
    pub(super) fn reap(&mut self, env: &mut Env, id: QueueId) {
        let queue = &self.queues[id];
        let used = queue.processes > 0 || queue.requests > 0 || queue.candidates > 0 || queue.counted;
        if used || self.is_on_tree_or_in_service(id.entity()) || self.active == Some(id) {
            return;
        }
        debug_assert!(!queue.busy && queue.is_empty() && !queue.positioned);
        let serial = queue.serial;
        env.note(|| BfqEvent::Freed { queue: serial }.into());
        self.leave_burst_list(id);
        self.lose_waker(id);
        while let Some(woken) = self.queues[id].woken.first() {
            self.lose_waker(woken);
        }
        if self.last_completed == Some(id) {
            self.last_completed = None;
        }
        let group = self.queues[id].sync.then(|| self.entities[id.entity()].group);
        if let Some(group) = group
            && self.groups[group].last_created == Some(id)
        {
            self.groups[group].last_created = None;
        }
        self.queues[id] = Queue::vacant();
        self.entities.free(id.entity());
    }

    /// Returns the head at `position`.
    #[inline]
    fn head(&self, position: Sector) -> Head {
        Head { position, back_seek: self.tunables.back_seek() }
    }

    /// Inserts a request into its queue. Returns whether the next request changed.
    #[inline]
    pub(super) fn add_sorted(&mut self, env: &mut Env, id: QueueId, request: RequestId) -> bool {
        let head = self.head(self.position);
        let queue = &mut self.queues[id];
        queue.sorted.insert(&mut env.requests, request);
        let before = queue.next;
        let next = head.better(&env.requests, before, Some(request));
        if next == before {
            return false;
        }
        self.queues.set_next(&env.requests, id, next);
        true
    }

    /// Returns the request to serve after `request`, which is still in the queue.
    #[inline]
    fn next_after(&mut self, env: &Env, id: QueueId, request: RequestId) -> Option<RequestId> {
        let head = self.head(env.requests[request].sector);
        let queue = &mut self.queues[id];
        if let Some(overdue) = queue.overdue(env, request) {
            return Some(overdue);
        }
        let (successor, predecessor) = queue.sorted.neighbours(&env.requests, request);
        head.better(&env.requests, successor, predecessor)
    }

    /// Removes a queued request from its queue. If the queue becomes empty and is not in service,
    /// it is no longer busy.
    #[inline]
    pub(super) fn remove_request(&mut self, env: &mut Env, id: QueueId, request: RequestId) {
        if self.queues[id].next == Some(request) {
            let next = self.next_after(env, id, request);
            self.queues.set_next(&env.requests, id, next);
            self.next_changed(env, id);
        }
        let queue = &mut self.queues[id];
        queue.fifo.remove(env.requests.list_nodes(), request);
        queue.sorted.remove(&mut env.requests, request);
        queue.queued -= 1;
        self.queued -= 1;
        if self.queues[id].is_empty() {
            debug_assert!(self.queues[id].next.is_none());
            if self.queues[id].busy && self.active != Some(id) {
                self.leave_busy(env, id, false);
                let entity = &mut self.entities[id.entity()];
                (entity.budget, entity.service) = (0, 0);
            }
            self.leave_position(id);
        } else {
            self.refresh_position(env, id);
        }
    }

    /// Handles the end of a request.
    #[inline]
    pub(super) fn forget_request(&mut self, env: &mut Env, id: QueueId, request: RequestId) {
        let context = env.requests[request].context;
        self.count_request(id, -1);
        self.process_mut(context).requests -= 1;
        self.put_request(env, id);
    }

    /// Reduces the number of requests of a queue by one.
    #[inline]
    pub(super) fn put_request(&mut self, env: &mut Env, id: QueueId) {
        let queue = &mut self.queues[id];
        queue.requests -= 1;
        if queue.processes == 0 && queue.requests == 0 {
            self.reap(env, id);
        }
    }
}
