//! Path of a bio through blk-mq: merging, allocation of a tag, plug, insertion.
//!
//! Before a new request is inserted, the queue tries to merge it into a queued request. In this
//! way, requests from a plug and bios that waited for a tag can merge. [`super::tags`] assigns tags
//! and orders the waiting contexts.

use super::tags::{Grant, UNLIMITED, Waiter};
use crate::context::ContextId;
use crate::controllers::Wbt;
use crate::decision::Decision;
use crate::issued::Part;
use crate::layer::{Merging, MultiQueueRules};
use crate::queue::plug::OnPlug;
use crate::queue::{RequestQueue, Submit};
use crate::request::{Bio, Flags, MergeSide, NO_TAG, Op, RequestId, RequestStage};

/// Smallest length of a request that ends its plug, in sectors.
const PLUG_SECTORS: u32 = 256;

impl RequestQueue {
    /// Submits a bio with data. Not inlined, so that the
    /// path of the single-queue layer stays short.
    #[inline(never)]
    pub(in crate::queue) fn submit_multi(&mut self, rules: &MultiQueueRules, bio: &Bio, part: Part) -> Submit {
        let granted = self.allocation.multi().is_some_and(|multi| multi.is_granted(bio.context));
        let is_controlled = self.controlled.is_some() || (self.throttles_writeback && Wbt::is_for(bio.op, bio.flags));
        // A context that waited for a tag before the controllers existed bypasses them, because it
        // has a reserved tag.
        if is_controlled && !(granted && self.is_uncontrolled(bio.context)) {
            return self.submit_controlled(rules, bio, part);
        }
        let switching = self.next.is_some();
        if !switching && !granted && self.merge_multi(rules, bio) {
            return Submit::Merged;
        }
        match self.allocate(bio) {
            Some(id) => self.place(rules, bio.context, id),
            None => Submit::Full,
        }
    }

    /// Puts a new request on its context's plug, or inserts it. During a
    /// switch of elevators, the request is held.
    #[inline(always)]
    pub(super) fn place(&mut self, rules: &MultiQueueRules, context: ContextId, id: RequestId) -> Submit {
        if self.next.is_some() {
            self.held.push_back(self.env.requests.list_nodes(), id);
        } else if self.plugs.is_open(context) {
            self.collect(rules, context, id);
        } else {
            self.note_insert(id);
            if !self.insert_multi(rules, id) {
                return Submit::Merged;
            }
        }
        Submit::Queued(id)
    }

    /// Allocates a request for `bio`, if a tag is free. Otherwise the context waits.
    #[inline]
    pub(in crate::queue) fn allocate_tagged(&mut self, bio: &Bio) -> Option<RequestId> {
        let (elevator, nr_requests) = (self.elevator.as_mut(), self.attributes.nr_requests);
        let multi = self.allocation.multi_mut()?;
        match multi.allocate(&self.env, elevator, nr_requests, bio) {
            Ok(grant) => Some(self.found_tagged(bio, grant)),
            Err(limit) => {
                let plugged = self.plugs.is_open(bio.context);
                let waiter = multi.wait(&self.env, bio, limit, plugged);
                if !plugged {
                    self.note_wait(&waiter);
                }
                None
            }
        }
    }

    /// Creates a request from `bio` and a granted tag.
    #[inline(always)]
    pub(super) fn found_tagged(&mut self, bio: &Bio, grant: Grant) -> RequestId {
        let Grant { tag, hw_queue, origin } = grant;
        let id = self.found(bio);
        let request = &mut self.env.requests[id];
        (request.tag, request.hw_queue) = (tag, hw_queue);
        (request.ioprio, request.cgroup) = (origin.ioprio, origin.cgroup);
        request.mergeable &= bio.op != Op::WriteZeroes;
        id
    }

    fn note_wait(&mut self, waiter: &Waiter) {
        let Waiter { bio: Bio { op, flags, sector, nr_sectors, context, cookie }, limit, .. } = *waiter;
        let (pid, sync) = (self.env.pid(context), self.seen_as_sync(op, flags));
        self.env.note(|| Decision::Wait { cookie, pid, sector, nr_sectors, op, sync, limit });
    }

    // ---- plug

    /// Puts `id` on its context's plug. A plug that is full, or has a long request, is flushed
    /// first.
    fn collect(&mut self, rules: &MultiQueueRules, context: ContextId, id: RequestId) {
        let is_long = |id: RequestId| self.env.requests[id].nr_sectors >= PLUG_SECTORS;
        let merging = self.attributes.nomerges != 2;
        let tested = match self.plug_rules.long {
            OnPlug::Oldest => self.plugs.oldest(context),
            OnPlug::Newest | OnPlug::Each => self.plugs.newest(context),
        };
        if self.plugs.len(context) >= self.plug_rules.most || merging && tested.is_some_and(is_long) {
            self.flush_plug(rules, context);
            self.env.run_queue();
        }
        self.plugs.push(context, id);
    }

    /// Inserts the requests of a plug in the order of arrival. In some versions of Linux, inserts
    /// the newest request first.
    fn flush_plug(&mut self, rules: &MultiQueueRules, context: ContextId) {
        let mut collected = self.plugs.take(context);
        if self.plug_rules.reversed {
            collected.make_contiguous().reverse();
        }
        for &id in &collected {
            self.note_insert(id);
        }
        for id in collected.drain(..) {
            self.insert_multi(rules, id);
        }
        self.plugs.put_back(context, collected);
    }

    /// Ends a plug as [`RequestQueue::unplug`] describes.
    pub(in crate::queue) fn unplug_multi(&mut self, rules: &MultiQueueRules, context: ContextId) -> bool {
        let waits = self.allocation.multi().is_some_and(|multi| multi.waits(context));
        if self.plugs.len(context) > 0 {
            self.flush_plug(rules, context);
            // Linux runs the queue before a task sleeps.
            if waits {
                self.env.run_queue();
            }
            return true;
        }
        self.plugs.close(context);
        if waits && let Some(waiter) = self.allocation.multi_mut().and_then(|multi| multi.tell(context)) {
            self.note_wait(&waiter);
        }
        false
    }

    // ---- merging

    /// Merges `bio` into a request on its context's plug, or into a queued request.
    fn merge_multi(&mut self, rules: &MultiQueueRules, bio: &Bio) -> bool {
        let Some((into, side)) = self.find_merge(rules, bio) else { return false };
        self.join(bio, into, side);
        true
    }

    /// Returns the request that `bio` can join, and the side. The request is on the context's plug,
    /// or queued.
    #[inline(always)]
    pub(super) fn find_merge(&mut self, rules: &MultiQueueRules, bio: &Bio) -> Option<(RequestId, MergeSide)> {
        if self.attributes.nomerges == 2 || bio.flags.intersects(Flags::FUA | Flags::PREFLUSH) {
            return None;
        }
        if self.plugs.is_open(bio.context)
            && let Some((into, side)) = self.joined_on_plug(rules, bio)
            && self.takes(into, bio)
        {
            return Some((into, side));
        }
        let candidate = match rules.merging {
            Merging::Queue => self.candidate(bio, Some(rules)),
            Merging::Own => self.elevator.find_merge(&mut self.env, bio),
        };
        candidate.filter(|&(into, _)| self.takes(into, bio))
    }

    /// Returns the request on its context's plug that `bio` can join.
    #[inline]
    fn joined_on_plug(&self, rules: &MultiQueueRules, bio: &Bio) -> Option<(RequestId, MergeSide)> {
        let joined = |id: RequestId| Some((id, rules.joins(&self.env, bio, id)?));
        match self.plug_rules.merging {
            OnPlug::Newest => self.plugs.newest(bio.context).and_then(joined),
            OnPlug::Oldest => self.plugs.oldest(bio.context).and_then(joined),
            OnPlug::Each => self.plugs.newest_first(bio.context).find_map(joined),
        }
    }

    // ---- insertion

    /// Inserts `id`. Returns `false` if `id` was merged into a queued request.
    pub(in crate::queue) fn insert_multi(&mut self, rules: &MultiQueueRules, id: RequestId) -> bool {
        self.join_elevator(id);
        self.elevator.prepare(&mut self.env, id);
        match rules.merging {
            Merging::Queue if self.merge_new(id) => return false,
            Merging::Queue => self.env.enqueue(id),
            Merging::Own => {
                self.env.requests[id].stage = RequestStage::Queued;
                self.env.queued += 1;
            }
        }
        self.elevator.insert(&mut self.env, id);
        true
    }

    /// Returns whether `bio` may be inserted at the head: it has data, and an elevator of this
    /// layer is active and is not being replaced.
    pub(in crate::queue) fn may_go_to_head(&self, bio: &Bio) -> bool {
        bio.op.has_data() && self.next.is_none() && self.is_multi_queue()
    }

    /// Submits a bio that is inserted at the head.
    pub(in crate::queue) fn submit_at_head(&mut self, bio: &Bio) -> Submit {
        let Some(id) = self.allocate(bio) else { return Submit::Full };
        self.insert_at_head(id);
        Submit::Queued(id)
    }

    fn insert_at_head(&mut self, id: RequestId) {
        self.note_insert(id);
        self.join_elevator(id);
        self.elevator.prepare(&mut self.env, id);
        self.env.requests[id].mergeable = false;
        self.env.enqueue(id);
        self.elevator.insert_at_head(&mut self.env, id);
    }

    /// Inserts the data of a flush sequence.
    pub(in crate::queue) fn insert_flush_data(&mut self, rules: &MultiQueueRules, id: RequestId, at_head: bool) {
        if at_head {
            self.insert_at_head(id);
        } else {
            self.note_insert(id);
            self.insert_multi(rules, id);
        }
        self.env.run_queue();
    }

    /// Tries to merge `new`, which is not queued, into the request merged last, then into a request
    /// that ends where `new` begins. If this succeeds, tries to merge the resulting request in the
    /// same way, and so on.
    fn merge_new(&mut self, new: RequestId) -> bool {
        if self.attributes.nomerges == 2 || !self.env.requests[new].mergeable {
            return false;
        }
        if let Some(last) = self.env.merging.last
            && self.meets(last, new)
        {
            self.merge_requests(last, new);
            return true;
        }
        let mut grown = new;
        while self.attributes.nomerges == 0
            && let Some(before) = self.env.merging.hash.find(&self.env.requests, self.env.requests[grown].sector)
            && self.meets(before, grown)
        {
            self.merge_requests(before, grown);
            grown = before;
        }
        grown != new
    }

    // ---- control

    /// Handles a change of `nr_requests`.
    pub(in crate::queue) fn resize_tags(&mut self) {
        let nr_requests = self.attributes.nr_requests;
        let Some(multi) = self.allocation.multi_mut() else { return };
        if nr_requests == UNLIMITED {
            self.env.requests.for_each_id(|_, request| request.tag = NO_TAG);
        }
        multi.resize(nr_requests);
        self.env.limit_word = multi.limit_word();
        self.elevator.resized(nr_requests);
    }
}
