//! Path of a bio through the legacy request queue: merging,
//! allocation within the limits, plug, insertion.

use crate::context::ContextId;
use crate::queue::{RequestQueue, Submit};
use crate::request::{Bio, Flags};

impl RequestQueue {
    /// Returns whether `bio` can take the short path to the elevator: there is no flush, no plug,
    /// no switch of elevators, no recording of decisions, and no run of the queue at insertion.
    #[inline(always)]
    pub(in crate::queue) fn goes_straight(&self, bio: &Bio) -> bool {
        !self.is_multi_queue()
            && bio.op.has_data()
            && !bio.flags.intersects(Flags::PREFLUSH | Flags::FUA)
            && !self.plugs.is_open(bio.context)
            && self.next.is_none()
            && !self.run_at_insertion
            && !self.env.log.is_on()
    }

    /// Does the same as [`submit_single`](Self::submit_single) for a bio that
    /// [`goes_straight`](Self::goes_straight) accepts.
    #[inline(always)]
    pub(in crate::queue) fn submit_straight(&mut self, bio: &Bio) -> Submit {
        // Same as `merge` without a plug. The repeated check for a plug would cost 25 instructions.
        if self.attributes.nomerges != 2
            && let Some((into, side)) = self.candidate(bio, None)
            && self.join_unless_too_large(bio, into, side)
        {
            return Submit::Merged;
        }
        let Some(id) = self.allocate(bio) else {
            return Submit::Full;
        };
        self.join_elevator(id);
        self.env.enqueue(id);
        self.elevator.add(&mut self.env, id);
        Submit::Queued(id)
    }

    /// Submits a bio with data.
    pub(in crate::queue) fn submit_single(&mut self, bio: &Bio) -> Submit {
        let switching = self.next.is_some();
        if !switching && self.merge(bio) {
            return Submit::Merged;
        }
        let Some(id) = self.allocate(bio) else {
            return Submit::Full;
        };
        if switching {
            self.held.push_back(self.env.requests.list_nodes(), id);
            return Submit::Queued(id);
        }
        self.give_to_elevator(id);
        if self.plugs.is_open(bio.context) {
            if self.plugs.push(bio.context, id) {
                // The plug stays open for the next requests.
                while let Some(id) = self.plugs.pop(&self.env.requests, bio.context) {
                    self.insert(id);
                }
            }
        } else {
            self.insert(id);
        }
        Submit::Queued(id)
    }

    /// Gives one request of a plug to the elevator, as [`RequestQueue::unplug`] describes.
    pub(in crate::queue) fn unplug_single(&mut self, context: ContextId) -> bool {
        match self.plugs.pop(&self.env.requests, context) {
            Some(id) => {
                self.insert(id);
                true
            }
            None => {
                self.plugs.close(context);
                false
            }
        }
    }
}
